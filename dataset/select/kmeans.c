/* k-means with k-means++ starts, several of which are tried; the assignment runs over a pool and
 * gives the same bits for any number of threads. */
#include "dataset/select/kmeans.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { CHUNK = 512 };

typedef struct {
    const float *x;
    size_t n, dim, k;
    uint64_t seed;
    cd_threads *pool;
    cd_kmeans *m;    /* the start under way */
    float *across;   /* (dim, k) */
    float *dist;     /* (workers, k) */
    float *near;     /* (n) squared distance to the nearest centre */
    float *trial;    /* (n) the same with one more centre */
    float *kept;     /* (n) the best trial so far */
    uint32_t *order; /* (n) points by label */
    size_t *first;   /* (k+1) of each label in `order` */
    bool moved;
} run;

void cd_kmeans_transpose(const float *centre, size_t k, size_t dim, float *across) {
    for (size_t c = 0; c < k; c++)
        for (size_t j = 0; j < dim; j++) across[j * k + c] = centre[c * dim + j];
}

void cd_kmeans_distances(const float *x, const float *across, size_t dim, size_t k, float *d) {
    memset(d, 0, k * sizeof *d);
    for (size_t j = 0; j < dim; j++) {
        const float v = x[j], *row = across + j * k;
        for (size_t c = 0; c < k; c++) d[c] += (v - row[c]) * (v - row[c]);
    }
}

/* ---- start: greedy k-means++ ---- */
typedef struct {
    run *r;
    const float *point;
} offer;

/* Eight sums side by side, so that a compiler that must keep their order can use vectors. */
static float distance(const float *a, const float *b, size_t dim) {
    float s[8] = {0};
    size_t j = 0;
    for (; j + 8 <= dim; j += 8)
        for (size_t l = 0; l < 8; l++) s[l] += (a[j + l] - b[j + l]) * (a[j + l] - b[j + l]);
    for (; j < dim; j++) s[0] += (a[j] - b[j]) * (a[j] - b[j]);
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
}

static cdmpp_status offer_chunk(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const offer *o = ctx;
    const run *r = o->r;
    (void)w, (void)err;
    for (size_t i = beg; i < end; i++)
        r->trial[i] = fminf(r->near[i], distance(r->x + i * r->dim, o->point, r->dim));
    return CDMPP_OK;
}

static double sum_of(const float *v, size_t n) {
    double s = 0;
    for (size_t i = 0; i < n; i++) s += (double)v[i];
    return s;
}

/* The point at which the running sum of `near` passes u of its total: far points are
 * likely. Points that are centres already have no share. */
static size_t draw(const run *r, double u) {
    const double at = u * sum_of(r->near, r->n);
    size_t last = 0;
    double s = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (!(r->near[i] > 0)) continue;
        s += (double)r->near[i];
        last = i;
        if (s > at) break;
    }
    return last;
}

static void swap(float **a, float **b) {
    float *t = *a;
    *a = *b;
    *b = t;
}

/* Centre c: of a few draws the one that leaves the least sum of squares. */
static cdmpp_status add_centre(run *r, size_t c, uint64_t start, cdmpp_err *err) {
    const size_t n_try = c ? 2 + (size_t)log((double)r->k) : 1;
    size_t best = 0;
    double least = INFINITY;
    for (size_t t = 0; t < n_try; t++) {
        const double u = cd_rng_unit(r->seed, (start * r->k + c) * 64 + t);
        const size_t i = c ? draw(r, u) : (size_t)(u * (double)r->n);
        offer o = {r, r->x + i * r->dim};
        CD_TRY(cd_threads_run(r->pool, r->n, CHUNK, offer_chunk, &o, err));
        const double s = sum_of(r->trial, r->n);
        if (t && !(s < least)) continue;
        least = s;
        best = i;
        swap(&r->trial, &r->kept);
    }
    swap(&r->near, &r->kept);
    memcpy(r->m->centre + c * r->dim, r->x + best * r->dim, r->dim * sizeof(float));
    return CDMPP_OK;
}

static cdmpp_status start_at(run *r, uint64_t start, cdmpp_err *err) {
    for (size_t i = 0; i < r->n; i++) r->near[i] = INFINITY;
    for (size_t c = 0; c < r->k; c++) CD_TRY(add_centre(r, c, start, err));
    memset(r->m->label, 0xff, r->n * sizeof *r->m->label);
    return CDMPP_OK;
}

/* ---- Lloyd ---- */
static cdmpp_status label_chunk(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    run *r = ctx;
    float *d = r->dist + (size_t)w * r->k;
    (void)err;
    for (size_t i = beg; i < end; i++) {
        uint32_t best = 0;
        cd_kmeans_distances(r->x + i * r->dim, r->across, r->dim, r->k, d);
        for (uint32_t c = 1; c < r->k; c++)
            if (d[c] < d[best]) best = c;
        r->near[i] = d[best];
        r->order[i] = best; /* for now: the new label */
    }
    return CDMPP_OK;
}

static cdmpp_status label_all(run *r, cdmpp_err *err) {
    cd_kmeans_transpose(r->m->centre, r->k, r->dim, r->across);
    CD_TRY(cd_threads_run(r->pool, r->n, CHUNK, label_chunk, r, err));
    r->moved = memcmp(r->m->label, r->order, r->n * sizeof *r->order) != 0;
    memcpy(r->m->label, r->order, r->n * sizeof *r->order);
    r->m->inertia = sum_of(r->near, r->n);
    memset(r->m->size, 0, r->k * sizeof *r->m->size);
    for (size_t i = 0; i < r->n; i++) r->m->size[r->m->label[i]]++;
    return CDMPP_OK;
}

/* A cluster without points takes the farthest point of all. */
static void fill_empty(run *r) {
    for (uint32_t c = 0; c < r->k; c++) {
        size_t far = 0;
        if (r->m->size[c]) continue;
        for (size_t i = 1; i < r->n; i++)
            if (r->near[i] > r->near[far]) far = i;
        if (!(r->near[far] > 0)) return; /* fewer different points than centres */
        r->m->size[r->m->label[far]]--;
        r->m->size[c] = 1;
        r->m->label[far] = c;
        r->near[far] = 0;
    }
}

static void sort_by_label(run *r) {
    size_t at = 0;
    for (size_t c = 0; c < r->k; c++) {
        r->first[c] = at;
        at += r->m->size[c];
    }
    r->first[r->k] = at;
    for (size_t i = 0; i < r->n; i++) r->order[r->first[r->m->label[i]]++] = (uint32_t)i;
    for (size_t c = r->k; c > 0; c--) r->first[c] = r->first[c - 1];
    r->first[0] = 0;
}

/* Each centre is one sum in the order of its points, whoever adds it up. */
static cdmpp_status centre_chunk(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const run *r = ctx;
    (void)w, (void)err;
    for (size_t c = beg; c < end; c++) {
        const size_t n = r->first[c + 1] - r->first[c];
        for (size_t j = 0; n && j < r->dim; j++) {
            double s = 0;
            for (size_t i = r->first[c]; i < r->first[c + 1]; i++)
                s += (double)r->x[r->order[i] * r->dim + j];
            r->m->centre[c * r->dim + j] = (float)(s / (double)n);
        }
    }
    return CDMPP_OK;
}

static cdmpp_status lloyd(run *r, cdmpp_err *err) {
    CD_TRY(label_all(r, err));
    for (int round = 0; round < CD_KMEANS_ROUNDS && r->moved; round++) {
        fill_empty(r);
        sort_by_label(r);
        CD_TRY(cd_threads_run(r->pool, r->k, 1, centre_chunk, r, err));
        CD_TRY(label_all(r, err));
    }
    return CDMPP_OK;
}

/* ---- all starts ---- */
static cdmpp_status kmeans_new(cd_kmeans *m, size_t n, size_t dim, size_t k, cdmpp_err *err) {
    *m = (cd_kmeans){.k = k, .dim = dim, .inertia = INFINITY};
    m->centre = cd_mem_zalloc(k * dim, sizeof *m->centre);
    m->label = cd_mem_zalloc(n, sizeof *m->label);
    m->size = cd_mem_zalloc(k, sizeof *m->size);
    return m->centre && m->label && m->size
               ? CDMPP_OK
               : CD_FAIL(err, ENOMEM, "%zu clusters of %zu points", k, n);
}

void cd_kmeans_free(cd_kmeans *m) {
    cd_mem_free(m->centre);
    cd_mem_free(m->label);
    cd_mem_free(m->size);
    *m = (cd_kmeans){0};
}

static cdmpp_status best_start(run *r, cd_kmeans *best, cd_kmeans *other, cdmpp_err *err) {
    for (uint64_t s = 0; s < CD_KMEANS_STARTS; s++) {
        r->m = other;
        CD_TRY(start_at(r, s, err));
        CD_TRY(lloyd(r, err));
        if (other->inertia >= best->inertia) continue;
        const cd_kmeans t = *best;
        *best = *other;
        *other = t;
    }
    return CDMPP_OK;
}

/* Two results are in memory: the best so far and the one under way. */
cdmpp_status cd_kmeans_find(const float *x, size_t n, size_t dim, size_t k, uint64_t seed,
                            cd_threads *pool, cd_kmeans *out, cdmpp_err *err) {
    run r = {.x = x, .n = n, .dim = dim, .k = k, .seed = seed, .pool = pool};
    cd_kmeans other = {0};
    cdmpp_status st = kmeans_new(out, n, dim, k, err);
    if (!st) st = kmeans_new(&other, n, dim, k, err);
    cd_arena a = {0};
    r.across = CD_NEWN(&a, float, dim *k);
    r.dist = CD_NEWN(&a, float, (size_t)cd_threads_count(pool) * k);
    r.near = CD_NEWN(&a, float, n);
    r.trial = CD_NEWN(&a, float, n);
    r.kept = CD_NEWN(&a, float, n);
    r.order = CD_NEWN(&a, uint32_t, n);
    r.first = CD_NEWN(&a, size_t, k + 1);
    if (!st && a.oom) st = CD_FAIL(err, ENOMEM, "%zu clusters", k);
    if (!st) st = best_start(&r, out, &other, err);
    cd_arena_free(&a);
    cd_kmeans_free(&other);
    if (st) cd_kmeans_free(out);
    return st;
}

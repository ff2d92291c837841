/* Chooses tasks that stand for all: those nearest to the centres of clusters of their programs. */
#include "dataset/select/select.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/select/kmeans.h"

/* k-means with k-means++ starts, several of which are tried; the assignment runs over a pool and
 * gives the same bits for any number of threads. */

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
} run_kmeans;

static void kmeans_transpose(const float *centre, size_t k, size_t dim, float *across) {
    for (size_t c = 0; c < k; c++)
        for (size_t j = 0; j < dim; j++) across[j * k + c] = centre[c * dim + j];
}

/* d[c] = squared distance of one point to centre c; `across` (dim, k) is the centres
 * transposed, so that the inner loop runs over centres: exact and fast without
 * reordering sums. */
static void kmeans_distances(const float *x, const float *across, size_t dim, size_t k, float *d) {
    memset(d, 0, k * sizeof *d);
    for (size_t j = 0; j < dim; j++) {
        const float v = x[j], *row = across + j * k;
        for (size_t c = 0; c < k; c++) d[c] += (v - row[c]) * (v - row[c]);
    }
}

/* ---- start: greedy k-means++ ---- */
typedef struct {
    run_kmeans *r;
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
    const run_kmeans *r = o->r;
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
static size_t draw(const run_kmeans *r, double u) {
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
static cdmpp_status add_centre(run_kmeans *r, size_t c, uint64_t start, cdmpp_err *err) {
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

static cdmpp_status start_at(run_kmeans *r, uint64_t start, cdmpp_err *err) {
    for (size_t i = 0; i < r->n; i++) r->near[i] = INFINITY;
    for (size_t c = 0; c < r->k; c++) CD_TRY(add_centre(r, c, start, err));
    memset(r->m->label, 0xff, r->n * sizeof *r->m->label);
    return CDMPP_OK;
}

/* ---- Lloyd ---- */
static cdmpp_status label_chunk(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    run_kmeans *r = ctx;
    float *d = r->dist + (size_t)w * r->k;
    (void)err;
    for (size_t i = beg; i < end; i++) {
        uint32_t best = 0;
        kmeans_distances(r->x + i * r->dim, r->across, r->dim, r->k, d);
        for (uint32_t c = 1; c < r->k; c++)
            if (d[c] < d[best]) best = c;
        r->near[i] = d[best];
        r->order[i] = best; /* for now: the new label */
    }
    return CDMPP_OK;
}

static cdmpp_status label_all(run_kmeans *r, cdmpp_err *err) {
    kmeans_transpose(r->m->centre, r->k, r->dim, r->across);
    CD_TRY(cd_threads_run(r->pool, r->n, CHUNK, label_chunk, r, err));
    r->moved = memcmp(r->m->label, r->order, r->n * sizeof *r->order) != 0;
    memcpy(r->m->label, r->order, r->n * sizeof *r->order);
    r->m->inertia = sum_of(r->near, r->n);
    memset(r->m->size, 0, r->k * sizeof *r->m->size);
    for (size_t i = 0; i < r->n; i++) r->m->size[r->m->label[i]]++;
    return CDMPP_OK;
}

/* A cluster without points takes the farthest point of all. */
static void fill_empty(run_kmeans *r) {
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

static void sort_by_label(run_kmeans *r) {
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
    const run_kmeans *r = ctx;
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

static cdmpp_status lloyd(run_kmeans *r, cdmpp_err *err) {
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

static cdmpp_status best_start(run_kmeans *r, cd_kmeans *best, cd_kmeans *other, cdmpp_err *err) {
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
    run_kmeans r = {.x = x, .n = n, .dim = dim, .k = k, .seed = seed, .pool = pool};
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

/* Programs that stand for all, as far as a budget goes: greedy k-medoids. */

enum { CHUNK_MEDOIDS = 16 };

typedef struct {
    const float *x;
    size_t n, dim;
    const double *price; /* (n) */
    cd_threads *pool;
    float *across;  /* (dim, n) */
    float *between; /* (n, n) distances */
    /* (n) to the nearest that is chosen; before the first one the largest distance of all */
    float *near;
    double *gain; /* (n) by how much a point would lower the sum of `near`, for its price */
    bool *out;    /* (n) chosen, or too dear */
} run_medoids;

static cdmpp_status between_chunk(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    run_medoids *r = ctx;
    (void)w, (void)err;
    for (size_t i = beg; i < end; i++) {
        float *d = r->between + i * r->n;
        kmeans_distances(r->x + i * r->dim, r->across, r->dim, r->n, d);
        for (size_t j = 0; j < r->n; j++) d[j] = sqrtf(d[j]);
    }
    return CDMPP_OK;
}

/* Eight sums side by side, so that a compiler that must keep their order can use vectors. */
static double lowered(const float *near, const float *d, size_t n) {
    float s[8] = {0};
    size_t j = 0;
    for (; j + 8 <= n; j += 8)
        for (size_t l = 0; l < 8; l++) s[l] += near[j + l] > d[j + l] ? near[j + l] - d[j + l] : 0;
    for (; j < n; j++) s[0] += near[j] > d[j] ? near[j] - d[j] : 0;
    return (double)((s[0] + s[4]) + (s[1] + s[5])) + (double)((s[2] + s[6]) + (s[3] + s[7]));
}

static cdmpp_status gain_chunk(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    run_medoids *r = ctx;
    (void)w, (void)err;
    for (size_t i = beg; i < end; i++) {
        r->gain[i] = r->out[i] ? 0 : lowered(r->near, r->between + i * r->n, r->n) / r->price[i];
    }
    return CDMPP_OK;
}

static void begin(run_medoids *r) {
    float far = 0;
    for (size_t k = 0; k < r->n * r->n; k++) far = fmaxf(far, r->between[k]);
    /* all points are one: the first of them */
    for (size_t j = 0; j < r->n; j++) r->near[j] = far > 0 ? far : 1;
}

static cdmpp_status choose_medoids(run_medoids *r, double rest, size_t k, uint32_t *chosen,
                                   size_t *n_chosen, cdmpp_err *err) {
    kmeans_transpose(r->x, r->n, r->dim, r->across);
    CD_TRY(cd_threads_run(r->pool, r->n, CHUNK_MEDOIDS, between_chunk, r, err));
    begin(r);
    while (*n_chosen < k) {
        size_t best = 0;
        for (size_t i = 0; i < r->n; i++) r->out[i] |= r->price[i] > rest;
        CD_TRY(cd_threads_run(r->pool, r->n, CHUNK_MEDOIDS, gain_chunk, r, err));
        for (size_t i = 1; i < r->n; i++)
            if (r->gain[i] > r->gain[best]) best = i;
        if (!(r->gain[best] > 0)) break;
        chosen[(*n_chosen)++] = (uint32_t)best;
        r->out[best] = true;
        rest -= r->price[best];
        for (size_t j = 0; j < r->n; j++)
            r->near[j] = fminf(r->near[j], r->between[best * r->n + j]);
    }
    return CDMPP_OK;
}

cdmpp_status cd_select_medoids(const float *x, size_t n, size_t dim, const double *price,
                               double budget, size_t k, cd_threads *pool, uint32_t *chosen,
                               size_t *n_chosen, cdmpp_err *err) {
    cd_arena a = {0};
    run_medoids r = {.x = x, .n = n, .dim = dim, .price = price, .pool = pool};
    *n_chosen = 0;
    for (size_t i = 0; i < n * dim; i++)
        if (!isfinite(x[i]))
            return CD_FAIL(err, ENUMERIC, "value %zu of program %zu is not finite", i % dim,
                           i / dim);
    if (!n) return CDMPP_OK;
    r.across = CD_NEWN(&a, float, n *dim);
    r.between = CD_NEWN(&a, float, n *n);
    r.near = CD_NEWN(&a, float, n);
    r.gain = CD_NEWN(&a, double, n);
    r.out = CD_NEWN(&a, bool, n);
    cdmpp_status st = CDMPP_OK;
    if (a.oom) st = CD_FAIL(err, ENOMEM, "distances of %zu programs", n);
    else st = choose_medoids(&r, budget, k, chosen, n_chosen, err);
    cd_arena_free(&a);
    return st;
}

/* Program vectors scaled to equal spread, in which distances mean something for clustering. */

/* v (2 n_col): means, then maxima of the rows of a program. */
static void summarise(const cd_dataset *d, size_t p, float *v) {
    const int64_t a = d->row_ptr[p], b = d->row_ptr[p + 1];
    for (size_t j = 0; j < d->n_col; j++) {
        double sum = 0;
        float most = -INFINITY;
        for (int64_t r = a; r < b; r++) {
            sum += (double)d->row[(size_t)r * d->n_col + j];
            most = fmaxf(most, d->row[(size_t)r * d->n_col + j]);
        }
        v[j] = (float)(sum / (double)(b - a));
        v[d->n_col + j] = most;
    }
}

/* Column j of v (n, m) to zero mean and unit deviation; false when it does not vary. */
static bool standardise(float *v, size_t n, size_t m, size_t j) {
    double mean = 0, var = 0;
    for (size_t i = 0; i < n; i++) mean += (double)v[i * m + j] / (double)n;
    for (size_t i = 0; i < n; i++)
        var += ((double)v[i * m + j] - mean) * ((double)v[i * m + j] - mean) / (double)n;
    const double std = sqrt(var);
    if (!(std > 1e-6 * (1 + fabs(mean)))) return false;
    for (size_t i = 0; i < n; i++) v[i * m + j] = (float)(((double)v[i * m + j] - mean) / std);
    return true;
}

cdmpp_status cd_task_embedding_rows(const cd_dataset *d, const size_t *program, size_t n, float **x,
                                    size_t *dim, cdmpp_err *err) {
    const size_t m = 2 * d->n_col;
    float *v = cd_mem_zalloc(n * m + 1, sizeof *v);
    if (!v) return CD_FAIL(err, ENOMEM, "vectors of %zu programs", n);
    for (size_t i = 0; i < n; i++) summarise(d, program[i], v + i * m);
    size_t kept = 0;
    for (size_t j = 0; j < m; j++) {
        if (!standardise(v, n, m, j)) continue;
        /* kept <= j: columns behind are untouched */
        for (size_t i = 0; i < n; i++) v[i * m + kept] = v[i * m + j];
        kept++;
    }
    if (!kept && n)
        for (size_t i = 0; i < n; i++) v[i * m + kept] = 0;
    *dim = kept ? kept : 1;
    for (size_t i = 1; i < n; i++) memmove(v + i * *dim, v + i * m, *dim * sizeof *v);
    *x = v;
    return CDMPP_OK;
}

/* A program in the canonical order. */
typedef struct {
    const float *x; /* NULL: random */
    size_t dim;
    uint64_t key; /* of its task */
    uint32_t task;
} point;

/* A task that has programs: points first .. first+n of the order by task. */
typedef struct {
    uint64_t key, rank;
    uint32_t task;
    size_t first, n;
    double distance;
    bool taken;
} candidate;

typedef struct {
    cd_arena arena; /* of all arrays */
    const cd_select_input *in;
    cd_threads *pool;
    point *p;     /* (n) by contents, then by task */
    float *x;     /* (n, dim) the same */
    candidate *t; /* (n_t) by key */
    size_t n_t;
    const cd_kmeans *m;
    float *across, *dist;
    double *mean; /* (n_t, k) mean distances */
} run;

/* ---- canonical order ---- */
static int by_contents(const void *a, const void *b) {
    const point *p = a, *q = b;
    for (size_t j = 0; p->x && j < p->dim; j++)
        if (p->x[j] != q->x[j]) return p->x[j] < q->x[j] ? -1 : 1;
    return p->key == q->key ? 0 : p->key < q->key ? -1 : 1;
}

static int by_key(const void *a, const void *b) {
    const candidate *s = a, *t = b;
    return s->key == t->key ? 0 : s->key < t->key ? -1 : 1;
}

static cdmpp_status order_points(run *r, cdmpp_err *err) {
    const cd_select_input *in = r->in;
    for (size_t i = 0; i < in->n; i++) {
        r->p[i] = (point){in->x ? in->x + i * in->dim : NULL, in->dim, in->task_key[in->task[i]],
                          in->task[i]};
        for (size_t j = 0; in->x && j < in->dim; j++)
            if (!isfinite(r->p[i].x[j]))
                return CD_FAIL(err, ENUMERIC, "value %zu of program %zu is not finite", j, i);
    }
    if (in->n) qsort(r->p, in->n, sizeof *r->p, by_contents);
    for (size_t i = 0; in->x && i < in->n; i++)
        memcpy(r->x + i * in->dim, r->p[i].x, in->dim * sizeof(float));
    return CDMPP_OK;
}

/* `slot` (n_task): number of a task's candidate. */
static void list_candidates(run *r, uint64_t seed, size_t *slot) {
    memset(slot, 0xff, r->in->n_task * sizeof *slot);
    for (size_t i = 0; i < r->in->n; i++) {
        const uint32_t t = r->p[i].task;
        if (slot[t] != SIZE_MAX) continue;
        slot[t] = r->n_t;
        r->t[r->n_t++] =
            (candidate){.key = r->p[i].key, .task = t, .rank = cd_rng_at(seed, r->p[i].key)};
    }
    if (r->n_t) qsort(r->t, r->n_t, sizeof *r->t, by_key);
    for (size_t k = 0; k < r->n_t; k++) slot[r->t[k].task] = k;
    for (size_t i = 0; i < r->in->n; i++) r->t[slot[r->p[i].task]].n++;
    for (size_t k = 1; k < r->n_t; k++) r->t[k].first = r->t[k - 1].first + r->t[k - 1].n;
}

/* ---- mean distances of tasks to centres ---- */
typedef struct {
    run *r;
    const uint32_t *of; /* (n) points by candidate, each candidate's in canonical order */
} measuring;

/* The distance of a task from a centre is the mean over its programs. */
static cdmpp_status mean_chunk(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const measuring *q = ctx;
    run *r = q->r;
    const size_t k = r->m->k, dim = r->m->dim;
    float *d = r->dist + (size_t)w * k;
    (void)err;
    for (size_t t = beg; t < end; t++) {
        double *mean = r->mean + t * k;
        for (size_t i = 0; i < r->t[t].n; i++) {
            kmeans_distances(r->x + q->of[r->t[t].first + i] * dim, r->across, dim, k, d);
            for (size_t c = 0; c < k; c++) mean[c] += sqrt((double)d[c]);
        }
        for (size_t c = 0; c < k; c++) mean[c] /= (double)r->t[t].n;
    }
    return CDMPP_OK;
}

/* Programs are brought into the order of their tasks. */
static cdmpp_status measure(run *r, const cd_kmeans *m, size_t *slot, cdmpp_err *err) {
    uint32_t *of = CD_NEWN(&r->arena, uint32_t, r->in->n);
    r->m = m;
    r->across = CD_NEWN(&r->arena, float, m->k * m->dim);
    r->dist = CD_NEWN(&r->arena, float, (size_t)cd_threads_count(r->pool) * m->k);
    r->mean = CD_NEWN(&r->arena, double, r->n_t * m->k);
    if (r->arena.oom) return CD_FAIL(err, ENOMEM, "distances of %zu tasks", r->n_t);
    kmeans_transpose(m->centre, m->k, m->dim, r->across);
    for (size_t k = 0; k < r->n_t; k++) slot[r->t[k].task] = r->t[k].first;
    for (size_t i = 0; i < r->in->n; i++) of[slot[r->p[i].task]++] = (uint32_t)i;
    measuring q = {r, of};
    return cd_threads_run(r->pool, r->n_t, 1, mean_chunk, &q, err);
}

/* ---- the three ways ---- */
/* The nearest task that is not taken yet, to centre c; the first by key of equals. */
static void take_nearest(run *r, size_t c, uint32_t *chosen, size_t *n) {
    candidate *best = NULL;
    for (size_t t = 0; t < r->n_t; t++)
        if (!r->t[t].taken &&
            (!best || r->mean[t * r->m->k + c] < r->mean[(size_t)(best - r->t) * r->m->k + c]))
            best = &r->t[t];
    best->taken = true;
    chosen[(*n)++] = best->task;
}

static cdmpp_status by_kmeans(run *r, size_t k, uint64_t seed, size_t *slot, uint32_t *chosen,
                              size_t *n, cdmpp_err *err) {
    cd_kmeans m = {0};
    CD_TRY(cd_kmeans_find(r->x, r->in->n, r->in->dim, k, seed, r->pool, &m, err));
    const cdmpp_status st = measure(r, &m, slot, err);
    for (size_t turn = 0; !st && turn < k; turn++) {
        size_t large = SIZE_MAX;
        for (size_t c = 0; c < k; c++)
            if (m.size[c] != SIZE_MAX && (large == SIZE_MAX || m.size[c] > m.size[large]))
                large = c;
        m.size[large] = SIZE_MAX; /* served */
        take_nearest(r, large, chosen, n);
    }
    cd_kmeans_free(&m);
    return st;
}

static cdmpp_status by_center(run *r, size_t k, size_t *slot, uint32_t *chosen, size_t *n,
                              cdmpp_err *err) {
    const size_t dim = r->in->dim;
    cd_kmeans m = {.k = 1, .dim = dim, .centre = CD_NEWN(&r->arena, float, dim)};
    if (!m.centre) return CD_FAIL(err, ENOMEM, "mean of %zu values", dim);
    for (size_t j = 0; j < dim; j++) {
        double s = 0;
        for (size_t i = 0; i < r->in->n; i++) s += (double)r->x[i * dim + j];
        m.centre[j] = (float)(s / (double)r->in->n);
    }
    CD_TRY(measure(r, &m, slot, err));
    for (size_t turn = 0; turn < k; turn++) take_nearest(r, 0, chosen, n);
    return CDMPP_OK;
}

static int by_rank(const void *a, const void *b) {
    const candidate *s = a, *t = b;
    return s->rank == t->rank ? by_key(a, b) : s->rank < t->rank ? -1 : 1;
}

static void by_draw(run *r, size_t k, uint32_t *chosen, size_t *n) {
    if (r->n_t) qsort(r->t, r->n_t, sizeof *r->t, by_rank);
    while (*n < k) {
        chosen[*n] = r->t[*n].task;
        ++*n;
    }
}

static cdmpp_status choose(run *r, cd_select_kind kind, size_t k, uint64_t seed, size_t *slot,
                           uint32_t *chosen, size_t *n, cdmpp_err *err) {
    CD_TRY(order_points(r, err));
    list_candidates(r, seed, slot);
    if (k > r->n_t) k = r->n_t;
    if (!k) return CDMPP_OK;
    if (kind == CD_SELECT_KMEANS) return by_kmeans(r, k, seed, slot, chosen, n, err);
    if (kind == CD_SELECT_CENTER) return by_center(r, k, slot, chosen, n, err);
    by_draw(r, k, chosen, n);
    return CDMPP_OK;
}

cdmpp_status cd_select_tasks(const cd_select_input *in, cd_select_kind kind, size_t k,
                             uint64_t seed, cd_threads *pool, uint32_t *chosen, size_t *n_chosen,
                             cdmpp_err *err) {
    run r = {.in = in, .pool = pool};
    size_t *slot = CD_NEWN(&r.arena, size_t, in->n_task);
    r.p = CD_NEWN(&r.arena, point, in->n);
    r.x = CD_NEWN(&r.arena, float, in->x ? in->n * in->dim : 0);
    r.t = CD_NEWN(&r.arena, candidate, in->n_task);
    *n_chosen = 0;
    cdmpp_status st = r.arena.oom ? CD_FAIL(err, ENOMEM, "%zu programs", in->n) : CDMPP_OK;
    if (!st) st = choose(&r, kind, k, seed, slot, chosen, n_chosen, err);
    cd_arena_free(&r.arena);
    return st;
}

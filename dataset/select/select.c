/* Chooses tasks that stand for all: those nearest to the centres of clusters of their programs. */
#include "dataset/select/select.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/select/kmeans.h"

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
            cd_kmeans_distances(r->x + q->of[r->t[t].first + i] * dim, r->across, dim, k, d);
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
    cd_kmeans_transpose(m->centre, m->k, m->dim, r->across);
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

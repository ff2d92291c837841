/* Programs that stand for all, as far as a budget goes: greedy k-medoids. */
#include "dataset/select/select.h"

#include <math.h>
#include <stdbool.h>

#include "dataset/select/kmeans.h"

enum { CHUNK = 16 };

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
} run;

static cdmpp_status between_chunk(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    run *r = ctx;
    (void)w, (void)err;
    for (size_t i = beg; i < end; i++) {
        float *d = r->between + i * r->n;
        cd_kmeans_distances(r->x + i * r->dim, r->across, r->dim, r->n, d);
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
    run *r = ctx;
    (void)w, (void)err;
    for (size_t i = beg; i < end; i++) {
        r->gain[i] = r->out[i] ? 0 : lowered(r->near, r->between + i * r->n, r->n) / r->price[i];
    }
    return CDMPP_OK;
}

static void begin(run *r) {
    float far = 0;
    for (size_t k = 0; k < r->n * r->n; k++) far = fmaxf(far, r->between[k]);
    /* all points are one: the first of them */
    for (size_t j = 0; j < r->n; j++) r->near[j] = far > 0 ? far : 1;
}

static cdmpp_status choose(run *r, double rest, size_t k, uint32_t *chosen, size_t *n_chosen,
                           cdmpp_err *err) {
    cd_kmeans_transpose(r->x, r->n, r->dim, r->across);
    CD_TRY(cd_threads_run(r->pool, r->n, CHUNK, between_chunk, r, err));
    begin(r);
    while (*n_chosen < k) {
        size_t best = 0;
        for (size_t i = 0; i < r->n; i++) r->out[i] |= r->price[i] > rest;
        CD_TRY(cd_threads_run(r->pool, r->n, CHUNK, gain_chunk, r, err));
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
    run r = {.x = x, .n = n, .dim = dim, .price = price, .pool = pool};
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
    else st = choose(&r, budget, k, chosen, n_chosen, err);
    cd_arena_free(&a);
    return st;
}

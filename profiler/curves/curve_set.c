/* Curves with their laws, as they are added. Only the first few keep their points: a chart shows no
 * more, and a file may have thousands. */
#include <stdlib.h>
#include <string.h>

#include "profiler/curves/curves_internal.h"

void cd_curve_set_free(cd_curve_set *c) {
    for (size_t i = 0; i < c->n; i++) cd_perf_curve_free(&c->curve[i].fit);
    cd_mem_free(c->curve);
    cd_arena_free(&c->arena);
    *c = (cd_curve_set){0};
}

bool cd_curve_set_full(const cd_curve_set *c) { return c->limit && c->n >= c->limit; }

void cd_curve_set_skip(cd_curve_set *c, const cdmpp_err *why) {
    c->skipped++;
    if (c->skip) c->skip(c->ctx, why);
}

/* ---- points ---- */

typedef struct {
    double x, t;
} point;

static int by_size(const void *a, const void *b) {
    const point *p = a, *q = b;
    return p->x != q->x ? (p->x > q->x) - (p->x < q->x) : (p->t > q->t) - (p->t < q->t);
}

size_t cd_curve_set_sort(double *x, double *t, size_t n) {
    size_t kept = 0;
    point *p = cd_mem_zalloc(n + 1, sizeof *p);
    if (!p) return 0;
    for (size_t i = 0; i < n; i++) p[i] = (point){x[i], t[i]};
    qsort(p, n, sizeof *p, by_size);
    for (size_t i = 0; i < n; i++)
        if (!kept || p[i].x > x[kept - 1]) x[kept] = p[i].x, t[kept++] = p[i].t;
    cd_mem_free(p);
    return kept;
}

static cdmpp_status keep_points(cd_curve_set *c, cd_curve_set_curve *one, const double *x,
                                const double *t, size_t n, cdmpp_err *err) {
    one->x = CD_NEWN(&c->arena, double, 2 * n);
    if (!one->x) return CD_FAIL(err, ENOMEM, "%zu points", n);
    one->t = one->x + n;
    one->n = n;
    memcpy(one->x, x, n * sizeof *x);
    memcpy(one->t, t, n * sizeof *t);
    return CDMPP_OK;
}

cdmpp_status cd_curve_set_add(cd_curve_set *c, const char *name, const char *op, const double *x,
                              const double *t, size_t n, cdmpp_err *err) {
    const cd_perf_curve_options how = {.tolerance = c->tolerance};
    cdmpp_err why = {0};
    cd_curve_set_curve one = {.name = cd_str_dup(&c->arena, (cd_str){name, strlen(name)}),
                              .op = cd_str_dup(&c->arena, (cd_str){op, strlen(op)})};
    if (!one.name || !one.op || CD_GROW(c->curve, c->n, c->cap))
        return CD_FAIL(err, ENOMEM, "curves");
    if (c->n < CD_CURVE_SET_DRAWN) CD_TRY(keep_points(c, &one, x, t, n, err));
    const cdmpp_status st = cd_perf_curve_fit(x, t, n, &how, &one.fit, &why);
    if (st == CDMPP_ENOMEM) return *err = why, st;
    if (st) {
        cd_err_add_key(&why, name);
        cd_curve_set_skip(c, &why);
        return CDMPP_OK;
    }
    c->curve[c->n++] = one;
    return CDMPP_OK;
}

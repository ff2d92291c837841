/* autotvm's relation curves: for a buffer in the innermost loops, how its count, its reuse and the
 * iterations around it grow from loop to loop, each against another, read off at fixed points. They
 * do not depend on how many loops there are. */
#include <math.h>
#include <string.h>

#include "predictor/tune/rank/rank_internal.h"

typedef struct {
    double *count, *reuse, *topdown; /* (n) ascending log2, each begins with 0 */
    size_t n;
} curves;

static bool same_buffer(const cd_tune_access *a, const cd_tune_access *b) {
    return a->n_raw == b->n_raw && !memcmp(a->name, b->name, a->n_raw);
}

static int32_t deepest(const cd_tune_touches *t) {
    int32_t level = 0;
    for (uint32_t k = 0; k < t->n_loop; k++)
        if (t->loop[k].level > level) level = t->loop[k].level;
    return level;
}

/* Of each buffer (A, A.local and A.shared are one) the last access in loops of the deepest
 * level. */
static void mark_innermost(const cd_tune_touches *t, bool *chosen) {
    const uint32_t level = (uint32_t)deepest(t);
    for (uint32_t k = t->n_access; k-- > 0;) {
        const cd_tune_access *c = &t->access[k];
        chosen[k] = level && c->depth == level;
        for (uint32_t j = k + 1; j < t->n_access && chosen[k]; j++)
            if (chosen[j] && same_buffer(c, &t->access[j])) chosen[k] = false;
    }
}

static void fill(const cd_tune_touches *t, const cd_tune_access *c, curves *w) {
    w->count[0] = w->reuse[0] = w->topdown[0] = 0;
    w->n = c->depth + 1;
    for (uint32_t d = 0; d < c->depth; d++) {
        w->count[d + 1] = log2(c->touch[d].count);
        w->reuse[d + 1] = log2(c->touch[d].reuse);
        w->topdown[d + 1] = log2(t->loop[c->loop[d]].topdown);
    }
    cd_sort_doubles(w->count, w->n);
    cd_sort_doubles(w->reuse, w->n);
    cd_sort_doubles(w->topdown, w->n);
}

/* At 0, 1, .. of x: y at the last of its points that are not beyond, and how far that is behind. */
static void sample(const double *x, const double *y, size_t n, cd_tune_row *out) {
    for (int i = 0; i < CD_TUNE_CURVE_POINTS; i++) {
        size_t j = n - 1;
        while (j && i <= x[j] - 1e-6) j--;
        cd_tune_row_put(out, y[j]);
        cd_tune_row_put(out, i - x[j]);
    }
}

static void buffer(const cd_tune_touches *t, const cd_tune_access *c, curves *w, cd_tune_row *out) {
    fill(t, c, w);
    sample(w->count, w->reuse, w->n, out);
    sample(w->reuse, w->count, w->n, out);
    sample(w->count, w->topdown, w->n, out);
    sample(w->topdown, w->count, w->n, out);
}

cdmpp_status cd_tune_feat_curve(cd_tune_touches *t, cd_tune_row *out, cdmpp_err *err) {
    bool *chosen = cd_arena_zalloc(&t->a, t->n_access + 1, sizeof *chosen);
    const size_t n = (size_t)deepest(t) + 1;
    curves w = {cd_arena_zalloc(&t->a, n, sizeof(double)),
                cd_arena_zalloc(&t->a, n, sizeof(double)),
                cd_arena_zalloc(&t->a, n, sizeof(double)), 0};
    if (!chosen || !w.count || !w.reuse || !w.topdown)
        return CD_FAIL(err, ENOMEM, "curves of %u accesses", t->n_access);
    mark_innermost(t, chosen);
    for (uint32_t k = 0; k < t->n_access; k++)
        if (chosen[t->by_name[k]]) buffer(t, &t->access[t->by_name[k]], &w, out);
    return CDMPP_OK;
}

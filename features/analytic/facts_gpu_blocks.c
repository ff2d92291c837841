/* What blocks that follow each other touch of a tensor: those of a wave run at the same time, and
 * the L2 cache gives them what one of them has loaded.
 *
 *   input[bx // 56 * 4 + .., rc, ..]     16 blocks: bx // 56 is one value, bx % 56 has 16
 *
 * An address that is a sum of digits has its distinct sectors in closed form (facts_lines.c), block
 * digits cut at the number of blocks. Of another one every dimension has a width: how many values
 * its expression can take. */
#include <math.h>
#include <stdlib.h>

#include "features/analytic/analytic_internal.h"

/* Blocks between two values of the axis. */
static double weight(const cd_an_gpu *g, uint8_t axis) {
    double w = 1;
    if (axis == CD_AST_TAG_BX + 1) return w;
    w *= (double)g->extent[CD_AST_TAG_BX];
    if (axis == CD_AST_TAG_BZ + 1) w *= (double)g->extent[CD_AST_TAG_BY];
    return w;
}

/* A loop, no axis, outside of the node. */
static bool stands(const cd_an_gpu *g, int32_t var, int32_t home) {
    for (uint32_t l = 0; l < g->n_path; l++)
        if (g->path[l].var == var) return !g->path[l].axis && g->path[l].ast < home;
    return false;
}

/* ---- digits ---- */

static void put(cd_an_access *a, int64_t stride, int64_t n, bool moves, int32_t dim) {
    if (n <= 1 || !stride || a->n == CD_AN_TERMS) return;
    if (stride < 0) {
        a->c += cd_an_mul(stride, n - 1);
        stride = -stride;
    }
    uint32_t k = a->n++;
    for (; k > 0 && a->t[k - 1].stride > stride; k--) a->t[k] = a->t[k - 1];
    a->t[k] = (cd_an_term){.stride = stride,
                           .n = n,
                           .reach = cd_an_mul(stride, n - 1),
                           .node = moves,
                           .dim = (uint8_t)dim};
}

static void put_slice(const cd_an_gpu *g, cd_an_access *a, const cd_an_slice *s, double n,
                      int32_t home) {
    const uint8_t axis = g->w->var[s->var].axis;
    if (!cd_an_gpu_is_block(axis)) {
        put(a, s->k, s->n, !stands(g, s->var, home), s->dim);
        return;
    }
    const double part = ceil(n / ((double)s->lo * weight(g, axis)));
    const int64_t within = part < (double)s->n ? (int64_t)fmax(part, 1) : s->n;
    put(a, s->k, within, true, s->dim);
    put(a, cd_an_mul(s->k, within), (s->n + within - 1) / within, false, s->dim);
}

/* ---- widths ---- */

static double width_of_var(const cd_an_gpu *g, const cd_expr *e, double n, int32_t home) {
    const int32_t v = g->w->var_of[e->u.i];
    if (v < 0) return 1;
    const cd_an_var *x = &g->w->var[v];
    if (!cd_an_gpu_is_block(x->axis)) return stands(g, v, home) ? 1 : (double)x->extent;
    return fmin((double)x->extent, fmax(1, n / weight(g, x->axis)));
}

/* Values that the expression takes within n blocks, those between its least and its greatest. */
static double width(const cd_an_gpu *g, const cd_expr *e, double n, int32_t home) {
    if (!(e->flags & CD_EXPR_HAS_VAR)) return 1;
    const double a = e->op == CD_VAR || !e->n ? 1 : width(g, e->a[0], n, home);
    const cd_expr *d = e->n == 2 ? e->a[1] : NULL;
    const double k = d && d->op == CD_INT ? fabs((double)d->u.i) : 0;
    switch ((cd_expr_op)e->op) {
    case CD_VAR: return width_of_var(g, e, n, home);
    case CD_ADD:
    case CD_SUB: return a + width(g, d, n, home) - 1;
    case CD_MUL: return k > 0 ? (a - 1) * k + 1 : a * width(g, d, n, home);
    case CD_DIV:
    case CD_FDIV: return k > 0 ? (a - 1) / k + 1 : a;
    case CD_MOD:
    case CD_FMOD: return k > 0 ? fmin(a, k) : a;
    case CD_MIN:
    case CD_MAX: return fmax(a, width(g, d, n, home));
    case CD_SELECT: return fmax(width(g, e->a[1], n, home), width(g, e->a[2], n, home));
    case CD_CAST: return a;
    default: return (double)CD_AN_MOST; /* anywhere: the extent bounds it */
    }
}

double cd_facts_gpu_sectors(const cd_an_gpu *g, const cd_an_raw *r, double n, int32_t home) {
    const cd_an_tensor *t = &g->w->tensor[r->tensor];
    cd_an_term term[CD_AN_TERMS];
    cd_an_access a = {.elem = t->elem, .c = r->c, .t = term};
    double bytes;
    if (r->inexact || r->gather) {
        a.c = 0;
        for (uint32_t d = 0; d < t->rank; d++)
            put(&a, t->stride[d],
                (int64_t)ceil(fmin(width(g, r->x[d], n, home), (double)t->extent[d])), true,
                (int32_t)d);
    } else {
        for (uint32_t i = 0; i < r->n; i++) put_slice(g, &a, &r->t[i], n, home);
        cd_facts_tree_find_out(t, &a);
    }
    const double all = ceil(t->bytes / CD_GPU_SECTOR),
                 some = cd_facts_lines_count(&a, 1, (int64_t)CD_GPU_SECTOR, &bytes);
    return fmin(some, all);
}

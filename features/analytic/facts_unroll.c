/* Which loops a compiler writes out and which become vectors: TVM's rule for auto_unroll_max_step,
 * the schedule's vectorised loops, serial loops of neighbours, then an estimate of what LLVM and
 * GCC write out. The generator of C follows the same rules (docs/internals/add-a-back-end.md); here
 * they are read off strides. */
#include <string.h>

#include "features/analytic/analytic_internal.h"

#define MAX_DEPTH 8 /* TVM's auto_max_depth */
#define LEAST     4 /* turns of a serial loop that are worth a vector */
#define MOST_STEP 4 /* elements from lane to lane that compilers load in groups and shuffle */
/* instructions of a loop that a compiler writes out; a store with its loads is so many: */
#define MOST_COST   300
#define SCALAR_COST 6
#define VECTOR_COST 8
#define KEPT_COST   2 /* spared where the element stays in a register */

typedef struct {
    double step;
    int depth, normal;
} count;

static void mark(cd_an *w, int32_t var, bool guessed) {
    for (uint32_t j = 0; j < w->var[var].n_digit; j++) {
        w->node[w->var[var].node + (int32_t)j].copied = true;
        w->node[w->var[var].node + (int32_t)j].guessed = guessed;
    }
}

/* ---- TVM ---- */

static count written_out(cd_an *w, int32_t from, int32_t to);

static count of_loop(cd_an *w, int32_t k) {
    const cd_an_node *n = &w->node[k];
    const cd_an_var *v = &w->var[n->var];
    count c = written_out(w, cd_an_innermost(w, n->var) + 1, n->end);
    if (n->loop == CD_LOOP_VECTORIZED) return c;
    const bool serial = n->loop == CD_LOOP_SERIAL && c.normal == 0 && c.depth <= MAX_DEPTH;
    if ((serial && (double)v->extent * c.step <= (double)n->unroll) ||
        n->loop == CD_LOOP_UNROLLED) {
        mark(w, n->var, false);
        c.step *= (double)v->extent;
        c.depth++;
    } else {
        c.normal++;
    }
    return c;
}

static count written_out(cd_an *w, int32_t from, int32_t to) {
    count all = {0};
    for (int32_t k = from; k < to; k = w->node[k].end) {
        const count c = w->node[k].kind == CD_AN_STORE ? (count){.step = 1} : of_loop(w, k);
        all.step += c.step;
        if (c.depth > all.depth) all.depth = c.depth;
        if (c.normal > all.normal) all.normal = c.normal;
    }
    return all;
}

/* ---- vectors ---- */

/* No condition of the value depends on the loop, no function but roots. */
static bool clean(const cd_expr *e, const cd_expr *var) {
    if (e->op == CD_LOAD || !e->n) return true;
    uint32_t from = 0;
    if (e->op == CD_SELECT || (e->op == CD_CALL && e->n == 3)) {
        if (cd_expr_uses(e->a[0], var)) return false;
        from = 1;
    } else if (e->op == CD_CALL) {
        if (strcmp(e->u.name, "sqrt") && strcmp(e->u.name, "rsqrt") && !cd_expr_is_dot4(e))
            return false;
    } else if (!cd_expr_op_is_arith((cd_expr_op)e->op)) {
        return false;
    }
    for (uint32_t i = from; i < e->n; i++)
        if (!clean(e->a[i], var)) return false;
    return true;
}

static bool store_fits(const cd_an *w, int32_t k, int32_t loop) {
    const cd_an_node *n = &w->node[k];
    for (uint32_t i = n->acc0; i < n->acc1; i++) {
        const cd_an_access *a = &w->acc[i];
        const int64_t s = cd_an_stride(a, loop);
        if (a->copy) continue;
        if (a->gather || s > MOST_STEP * a->elem || s % a->elem ||
            (a->write && !s && !cd_an_private(w, a, loop)))
            return false;
    }
    return clean(w->ast->node[n->ast].e, w->var[w->node[loop].var].e);
}

/* Compilers find the vector around loops that they leave or write out themselves only where these
 * sum up the outer loop's own elements. */
static bool sums_up(const cd_an *w, int32_t store, int32_t loop) {
    if (cd_an_private(w, &w->acc[w->node[store].acc0], loop)) return true;
    for (int32_t p = w->node[store].parent; p != loop; p = w->node[p].parent)
        if ((!w->node[p].copied || w->node[p].guessed) &&
            cd_an_stride(&w->acc[w->node[store].acc0], p))
            return false;
    return true;
}

/* A loop of neighbours all of whose inner loops are written out, but for one that may stay: GCC
 * vectorises the outer of two loops. */
static bool fits(const cd_an *w, int32_t k) {
    const cd_an_node *n = &w->node[k];
    int32_t stays = -1;
    if (w->var[n->var].extent < LEAST || w->var[n->var].n_digit > 1) return false;
    for (int32_t i = k + 1; i < n->end; i++) {
        const cd_an_node *l = &w->node[i];
        if (l->kind == CD_AN_STORE) {
            if (!store_fits(w, i, k) || !sums_up(w, i, k)) return false;
            continue;
        }
        if (cd_an_is_vector(w, i) || (!l->copied && stays >= 0 && l->var != stays)) return false;
        if (!l->copied) stays = l->var;
    }
    return true;
}

static void set_vector(cd_an *w, int32_t var) {
    w->var[var].vector = true;
    for (uint32_t j = 0; j < w->var[var].n_digit; j++)
        w->node[w->var[var].node + (int32_t)j].copied = false;
}

/* ---- compilers ---- */

/* Elements of the store that stay at their place from turn to turn of the loop. */
static double kept(const cd_an *w, int32_t store, int32_t loop) {
    const cd_an_access *a = &w->acc[w->node[store].acc0];
    double n = 1;
    if (cd_an_stride(a, loop)) return 0;
    for (int32_t p = w->node[store].parent; p != loop; p = w->node[p].parent)
        if (!cd_an_is_vector(w, p)) n *= cd_an_stride(a, p) ? w->node[p].extent : 0;
    return n;
}

/* Instructions of what is below node k, vectors whole; -1: a loop stays. */
static double below(const cd_an *w, int32_t from, int32_t to, double vectors) {
    double all = 0;
    for (int32_t k = from; k < to; k = w->node[k].end) {
        const cd_an_node *n = &w->node[k];
        if (n->kind == CD_AN_STORE) {
            all += vectors > 0 ? VECTOR_COST * vectors : SCALAR_COST;
            continue;
        }
        const cd_an_var *v = &w->var[n->var];
        const int64_t lanes = w->nest->vector_bytes / 4;
        const double c = below(w, cd_an_innermost(w, n->var) + 1, n->end,
                               v->vector ? (double)((v->extent + lanes - 1) / lanes) : vectors);
        if (c < 0 || (!n->copied && !v->vector)) return -1;
        all += v->vector ? c : c * (double)v->extent;
    }
    return all;
}

static bool short_enough(const cd_an *w, int32_t k) {
    const cd_an_node *n = &w->node[k];
    const cd_an_var *v = &w->var[n->var];
    if (n->loop != CD_LOOP_SERIAL || v->extent * SCALAR_COST / 2 > MOST_COST) return false;
    double c = below(w, cd_an_innermost(w, n->var) + 1, n->end, 0);
    for (int32_t i = k + 1; i < n->end && c >= 0; i++)
        if (w->node[i].kind == CD_AN_STORE) c -= KEPT_COST * kept(w, i, k);
    return c >= 0 && c * (double)v->extent <= MOST_COST;
}

void cd_facts_unroll_loops(cd_an *w) {
    written_out(w, 1, w->n_node);
    for (int32_t k = w->n_node; k-- > 1;) {
        const cd_an_node *n = &w->node[k];
        if (n->kind != CD_AN_LOOP || w->var[n->var].node != k) continue;
        if (n->loop == CD_LOOP_VECTORIZED || fits(w, k)) set_vector(w, n->var);
        else if (!n->copied && short_enough(w, k)) mark(w, n->var, true);
    }
}

/* Decides which loops get "#pragma unroll": those that TVM's UnrollLoop would unroll, innermost
 * first, whose body times their length stays within the pragma's number of steps. A statement is
 * one step, times its virtual threads. */
#include "profiler/codegen/gpu/codegen_gpu_internal.h"

#define MAX_DEPTH  8
#define MAX_SPREAD 16 /* fewer virtual threads are written out by TVM, more are a loop */

typedef struct {
    int64_t step;
    int depth, loops;
} count;

static count count_range(cd_gpu *g, int32_t from, int32_t to, int64_t most);

static count statement(const cd_gpu *g, int32_t k) {
    count c = {.step = 1};
    const uint32_t m = cd_gpu_vt_of_node(g, k) & cd_gpu_vt_around(g, k);
    for (uint32_t v = 0; v < g->n_vt; v++) {
        if (!(m >> v & 1)) continue;
        if (g->vt_extent[v] < MAX_SPREAD) c.step *= g->vt_extent[v];
        else c.loops++;
    }
    return c;
}

/* A loop in which threads meet is not unrolled: it gains nothing. */
static count loop(cd_gpu *g, int32_t k, int64_t most) {
    const cd_ast_node *n = &g->t->node[k];
    count c = count_range(g, k + 1, n->end, most);
    if (n->loop == CD_LOOP_VECTORIZED) return c.step = 1, c;
    int64_t steps = 0;
    const bool fits = cd_expr_is_int(n->extent_e) && n->extent >= 0 &&
                      !__builtin_mul_overflow(n->extent, c.step, &steps) && steps <= most;
    const bool automatic =
        n->loop == CD_LOOP_SERIAL && c.loops == 0 && c.depth <= MAX_DEPTH && fits;
    bool meets = false; /* a loop in which threads meet gains nothing */
    for (int32_t i = k + 1; i < n->end; i++)
        meets |= g->barrier[i] || g->t->node[i].kind == CD_AST_EVAL;
    g->unroll[k] = !meets && (automatic || n->loop == CD_LOOP_UNROLLED);
    if (!automatic && n->loop != CD_LOOP_UNROLLED) return c.loops++, c;
    c.step = steps;
    c.depth++;
    return c;
}

static count count_node(cd_gpu *g, int32_t k, int64_t most) {
    const cd_ast_node *n = &g->t->node[k];
    if (n->kind == CD_AST_STORE || n->kind == CD_AST_EVAL) return statement(g, k);
    if (n->kind == CD_AST_FOR) return loop(g, k, most);
    if (n->kind == CD_AST_ATTR && n->attr == CD_ATTR_UNROLL_STEP) most = n->extent;
    return count_range(g, k + 1, n->end, most);
}

/* Steps are summed; depth and the number of loops that stay are those of the deepest part. */
static count count_range(cd_gpu *g, int32_t from, int32_t to, int64_t most) {
    count all = {0};
    for (int32_t k = from; k < to;) {
        if (g->t->node[k].dead) {
            k++;
            continue;
        }
        const count c = count_node(g, k, most);
        if (__builtin_add_overflow(all.step, c.step, &all.step)) all.step = INT64_MAX;
        if (c.depth > all.depth) all.depth = c.depth;
        if (c.loops > all.loops) all.loops = c.loops;
        k = g->t->node[k].end;
    }
    return all;
}

void cd_gpu_unroll(cd_gpu *g) { count_range(g, g->begin, g->end, 0); }

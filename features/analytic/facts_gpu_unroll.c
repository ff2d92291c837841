/* Which loops of a GPU program are written out: TVM's rule for auto_unroll_max_step, where a
 * statement has a copy for each virtual thread, then short loops whose inner ones are, as compilers
 * do. */
#include <math.h>

#include "features/analytic/analytic_internal.h"

#define MAX_DEPTH 8 /* TVM's auto_max_depth */

typedef struct {
    /* statements written out; by the compiler too, INFINITY: a loop stays */
    double step, copies;
    int depth, normal;
} count;

static count range(cd_an_gpu *g, int32_t from, int32_t to, double step, double vthreads);

static count loop(cd_an_gpu *g, int32_t k, double step, double vthreads) {
    const cd_ast_node *n = &g->w->ast->node[k];
    count c = range(g, k + 1, n->end, step, vthreads);
    const double extent = (double)n->extent;
    if (n->loop == CD_LOOP_VECTORIZED) return c;
    const bool serial = n->loop == CD_LOOP_SERIAL && c.normal == 0 && c.depth <= MAX_DEPTH;
    if ((serial && extent * c.step <= step) || n->loop == CD_LOOP_UNROLLED) {
        c.step *= extent;
        c.depth++;
        g->copied[k] = true;
    } else {
        c.normal++;
        g->copied[k] = extent * c.copies <= CD_GPU_COPIES;
    }
    c.copies = g->copied[k] ? c.copies * extent : (double)INFINITY;
    return c;
}

static count range(cd_an_gpu *g, int32_t from, int32_t to, double step, double vthreads) {
    count all = {0};
    for (int32_t k = from; k < to;) {
        const cd_ast_node *n = &g->w->ast->node[k];
        if (n->dead) {
            k++;
            continue;
        }
        count c = {0};
        if (n->kind == CD_AST_STORE) c = (count){.step = vthreads, .copies = 1};
        else if (n->kind == CD_AST_FOR) c = loop(g, k, step, vthreads);
        else if (n->kind == CD_AST_THREAD)
            c = range(g, k + 1, n->end, step,
                      n->tag == CD_AST_TAG_VTHREAD ? vthreads * (double)n->extent : vthreads);
        else
            c = range(g, k + 1, n->end,
                      n->kind == CD_AST_ATTR && n->attr == CD_ATTR_UNROLL_STEP ? (double)n->extent
                                                                               : step,
                      vthreads);
        all.step += c.step;
        all.copies += c.copies;
        if (c.depth > all.depth) all.depth = c.depth;
        if (c.normal > all.normal) all.normal = c.normal;
        k = n->end;
    }
    return all;
}

void cd_facts_gpu_unroll(cd_an_gpu *g) { (void)range(g, 0, g->w->ast->n, 0, 1); }

/* Statements of a kernel's body. A node that depends on virtual threads is written inside loops
 * over them, as close to the statement as possible. */
#include "profiler/codegen/gpu/codegen_gpu_internal.h"

static cdmpp_status write_node(cd_gpu *g, int32_t k, cdmpp_err *err);

cdmpp_status cd_gpu_write_range(cd_gpu *g, int32_t from, int32_t to, cdmpp_err *err) {
    for (int32_t k = from; k < to;) {
        if (g->t->node[k].dead) {
            k++;
            continue;
        }
        CD_TRY(write_node(g, k, err));
        k = g->t->node[k].end;
    }
    return CDMPP_OK;
}

/* Vectorised loops that are copies become vector moves; others are unrolled by the compiler. */
static cdmpp_status write_loop(cd_gpu *g, int32_t k, cdmpp_err *err) {
    const cd_ast_node *n = &g->t->node[k];
    const uint32_t i = g->plan.var[n->var->u.i];
    bool done = false;
    if (n->loop == CD_LOOP_VECTORIZED) CD_TRY(cd_gpu_write_vector(g, k, &done, err));
    if (done) return CDMPP_OK;
    if (n->loop == CD_LOOP_VECTORIZED || g->unroll[k]) cd_gpu_line(g, "#pragma unroll");
    cd_gpu_indent(g);
    cd_buf_putf(g->w.out, "for (int i%u = 0; i%u < ", i, i);
    CD_TRY(cd_codegen_expr_write(&g->w, n->extent_e, err));
    cd_buf_putf(g->w.out, "; i%u++) {\n", i);
    g->indent++;
    g->open[n->var->u.i] = true;
    CD_TRY(cd_gpu_write_range(g, k + 1, n->end, err));
    g->open[n->var->u.i] = false;
    g->indent--;
    cd_gpu_line(g, "}");
    return CDMPP_OK;
}

static cdmpp_status write_if(cd_gpu *g, int32_t k, cdmpp_err *err) {
    cd_gpu_indent(g);
    cd_buf_puts(g->w.out, "if (");
    CD_TRY(cd_codegen_expr_write(&g->w, g->t->node[k].e, err));
    cd_buf_puts(g->w.out, ") {\n");
    g->indent++;
    CD_TRY(cd_gpu_write_range(g, k + 1, g->t->node[k].end, err));
    g->indent--;
    cd_gpu_line(g, "}");
    return CDMPP_OK;
}

/* A loop with vectors is one statement, as it is for TVM. */
static uint32_t turns_of(const cd_gpu *g, int32_t k) {
    const cd_ast_node *n = &g->t->node[k];
    if (n->kind == CD_AST_STORE || n->kind == CD_AST_IF || n->kind == CD_AST_EVAL)
        return cd_gpu_vt_of_node(g, k);
    if (n->kind != CD_AST_FOR || n->loop != CD_LOOP_VECTORIZED) return 0;
    uint32_t m = 0;
    for (int32_t i = k + 1; i < n->end; i++)
        if (!g->t->node[i].dead) m |= turns_of(g, i);
    return m;
}

static cdmpp_status write_plain(cd_gpu *g, int32_t k, cdmpp_err *err) {
    const cd_ast_node *n = &g->t->node[k];
    switch ((cd_ast_kind)n->kind) {
    case CD_AST_FOR: return write_loop(g, k, err);
    case CD_AST_IF: return write_if(g, k, err);
    case CD_AST_STORE: return cd_gpu_write_store(g, k, err);
    case CD_AST_EVAL: return cd_gpu_write_allreduce(g, k, err);
    case CD_AST_LET: return CD_FAIL(err, EUNSUPPORTED, "a variable that was not simplified away");
    default: return cd_gpu_write_range(g, k + 1, n->end, err);
    }
}

/* The node inside loops over those virtual threads that it depends on and that have none yet. */
static cdmpp_status write_node(cd_gpu *g, int32_t k, cdmpp_err *err) {
    const uint32_t turns = turns_of(g, k) & ~g->active, before = g->active;
    if (g->barrier[k]) cd_gpu_write_barrier(g);
    for (uint32_t v = 0; v < g->n_vt; v++) {
        if (!(turns >> v & 1)) continue;
        if (g->vt_extent[v] < 16) cd_gpu_line(g, "#pragma unroll");
        cd_gpu_line(g, "for (int v%u = 0; v%u < %lld; v%u++) {", v, v, (long long)g->vt_extent[v],
                    v);
        g->indent++;
    }
    g->active |= turns;
    CD_TRY(write_plain(g, k, err));
    g->active = before;
    for (uint32_t v = 0; v < g->n_vt; v++) {
        if (!(turns >> v & 1)) continue;
        g->indent--;
        cd_gpu_line(g, "}");
    }
    return CDMPP_OK;
}

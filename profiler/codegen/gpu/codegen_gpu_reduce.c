/* tvm_thread_allreduce: every thread of a group puts its part into shared memory,
 * a tree folds them, every thread reads the result (TVM's LowerThreadAllreduce). */
#include "profiler/codegen/gpu/codegen_gpu_internal.h"

typedef struct {
    int64_t length, threads; /* of the group; of the block */
    /* number of a thread in its group; of it in the block, groups apart */
    cd_buf rank, thread;
} group;

/* Linear numbers: the axes that are reduced vary fastest. */
static void add_axis(cd_buf *out, int64_t *stride, const cd_gpu *g, cd_ast_tag tag) {
    if (g->extent[tag] <= 1) return;
    cd_buf_putf(out, "%s%s*%lld", out->n ? " + " : "", cd_gpu_tag_text(tag), (long long)*stride);
    *stride *= g->extent[tag];
}

static cdmpp_status make_group(const cd_gpu *g, int32_t k, uint32_t n_out, group *r,
                               cdmpp_err *err) {
    const cd_ast_node *n = &g->t->node[k];
    bool reduced[CD_AST_TAG_COUNT] = {false};
    int64_t stride = 1;
    for (uint32_t i = n_out; i < n->n; i++) {
        if (n->x[i]->op == CD_INT) continue; /* of length one */
        const uint8_t tag = n->x[i]->op == CD_VAR ? g->tag[n->x[i]->u.i] : 0;
        if (!tag || tag - 1 == CD_AST_TAG_VTHREAD || cd_ast_tag_rank((cd_ast_tag)(tag - 1)) == 0)
            return CD_FAIL(err, EUNSUPPORTED,
                           "a reduction over something else than the threads of a block");
        reduced[tag - 1] = true;
    }
    for (int t = 0; t < CD_AST_TAG_COUNT; t++)
        if (reduced[t]) add_axis(&r->rank, &stride, g, (cd_ast_tag)t);
    r->length = stride;
    if (r->rank.n) cd_buf_put(&r->thread, r->rank.p, r->rank.n);
    for (int t = 0; t < CD_AST_TAG_COUNT; t++)
        if (!reduced[t] && t != CD_AST_TAG_VTHREAD && cd_ast_tag_rank((cd_ast_tag)t))
            add_axis(&r->thread, &stride, g, (cd_ast_tag)t);
    r->threads = stride;
    return r->rank.oom || r->thread.oom ? CD_FAIL(err, ENOMEM, "code") : CDMPP_OK;
}

static void free_group(group *r) {
    cd_buf_free(&r->rank);
    cd_buf_free(&r->thread);
}

/* One array for each component of the reduction, an element a thread; groups of length 1 need
 * none. */
cdmpp_status cd_gpu_declare_allreduce(cd_gpu *g, int32_t k, int64_t *bytes, cdmpp_err *err) {
    uint32_t result = 0;
    const cd_te_reducer *red = NULL;
    group r = {0};
    CD_TRY(cd_gpu_allreduce(g, k, &result, &red, err));
    const cdmpp_status st = make_group(g, k, red->n, &r, err);
    for (uint32_t o = 0; !st && r.length > 1 && o < red->n; o++) {
        const cd_dtype t = g->plan.slot[result + o].dtype;
        cd_gpu_line(g, "%s %s r%d_%u[%lld];",
                    g->dialect == CD_DIALECT_OPENCL ? "__local" : "__shared__",
                    cd_codegen_value_type(g->dialect, t), k - g->begin, o, (long long)r.threads);
        *bytes += r.threads * (int64_t)cd_expr_dtype_bytes(t);
    }
    free_group(&r);
    return st;
}

static cdmpp_status write_parts(cd_gpu *g, int32_t k, const cd_te_reducer *red, const group *r,
                                cdmpp_err *err) {
    for (uint32_t o = 0; o < red->n; o++) {
        cd_gpu_indent(g);
        cd_buf_putf(g->w.out, "r%d_%u[%s] = ", k - g->begin, o, r->thread.p);
        CD_TRY(cd_codegen_expr_write(&g->w, g->t->node[k].x[o], err));
        cd_buf_puts(g->w.out, ";\n");
    }
    return CDMPP_OK;
}

/* The two sides by name, so that every component is computed from the old ones. */
static cdmpp_status write_fold(cd_gpu *g, int32_t k, uint32_t result, const cd_te_reducer *red,
                               const group *r, cdmpp_err *err) {
    cdmpp_status st = CDMPP_OK;
    for (uint32_t o = 0; o < red->n; o++) {
        const char *type = cd_codegen_value_type(g->dialect, g->plan.slot[result + o].dtype);
        cd_gpu_line(g, "const %s a%u = r%d_%u[%s], b%u = r%d_%u[%s + s];", type, o, k - g->begin, o,
                    r->thread.p, o, k - g->begin, o, r->thread.p);
    }
    g->reducer = red;
    for (uint32_t o = 0; o < red->n && !st; o++) {
        cd_gpu_indent(g);
        cd_buf_putf(g->w.out, "r%d_%u[%s] = ", k - g->begin, o, r->thread.p);
        st = cd_codegen_expr_write(&g->w, red->result[o], err);
        cd_buf_puts(g->w.out, ";\n");
    }
    g->reducer = NULL;
    return st;
}

/* Halves the number of parts in each step; the length need not be a power of two. */
static cdmpp_status write_tree(cd_gpu *g, int32_t k, uint32_t result, const cd_te_reducer *red,
                               const group *r, cdmpp_err *err) {
    int64_t half = 1;
    while (half * 2 < r->length) half *= 2;
    cd_gpu_write_barrier(g);
    cd_gpu_line(g, "for (int s = %lld; s > 0; s >>= 1) {", (long long)half);
    g->indent++;
    cd_gpu_line(g, "if (%s < s && %s + s < %lld) {", r->rank.p, r->rank.p, (long long)r->length);
    g->indent++;
    CD_TRY(write_fold(g, k, result, red, r, err));
    g->indent--;
    cd_gpu_line(g, "}");
    cd_gpu_write_barrier(g);
    g->indent--;
    cd_gpu_line(g, "}");
    return CDMPP_OK;
}

/* The result's only element; `from`: text of a group's first part, or an expression. */
static cdmpp_status write_result(cd_gpu *g, int32_t k, uint32_t tensor, uint32_t o, const group *r,
                                 cdmpp_err *err) {
    const cd_ast_node *alloc = &g->t->node[g->plan.slot[tensor].node];
    cd_gpu_indent(g);
    CD_TRY(cd_gpu_write_element(g, tensor, &alloc->x[0], alloc->n / 2, err));
    if (r->length > 1)
        cd_buf_putf(g->w.out, " = r%d_%u[%s - (%s)];\n", k - g->begin, o, r->thread.p, r->rank.p);
    else {
        cd_buf_puts(g->w.out, " = ");
        CD_TRY(cd_codegen_expr_write(&g->w, g->t->node[k].x[o], err));
        cd_buf_puts(g->w.out, ";\n");
    }
    return CDMPP_OK;
}

static cdmpp_status write_all(cd_gpu *g, int32_t k, uint32_t result, const cd_te_reducer *red,
                              const group *r, cdmpp_err *err) {
    if (r->length > 1) {
        CD_TRY(write_parts(g, k, red, r, err));
        CD_TRY(write_tree(g, k, result, red, r, err));
    }
    for (uint32_t o = 0; o < red->n; o++)
        if (g->plan.slot[result + o].used) CD_TRY(write_result(g, k, result + o, o, r, err));
    if (r->length > 1) cd_gpu_write_barrier(g); /* the parts are free again */
    return CDMPP_OK;
}

cdmpp_status cd_gpu_write_allreduce(cd_gpu *g, int32_t k, cdmpp_err *err) {
    uint32_t result = 0;
    const cd_te_reducer *red = NULL;
    group r = {0};
    CD_TRY(cd_gpu_allreduce(g, k, &result, &red, err));
    cdmpp_status st = make_group(g, k, red->n, &r, err);
    if (!st) st = write_all(g, k, result, red, &r, err);
    free_group(&r);
    return st;
}

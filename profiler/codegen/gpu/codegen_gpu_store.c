/* Loads and stores: single elements, and vectors where a vectorised loop only copies float32
 * between shared or global memory. */
#include "profiler/codegen/gpu/codegen_gpu_internal.h"

/* An element's place in its memory: sum over d of (x[d] - min[d]) * stride[d], as a sum of terms.
 * Terms that the start of a region and the index share cancel, so that an array in registers is
 * indexed by constants, which the compiler needs to keep it there. */

static bool multiply(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}

static bool add_term(cd_gpu_sum *s, const cd_expr *e, int64_t by) {
    for (uint32_t k = 0; k < s->n; k++)
        if (s->term[k].e == e) return !__builtin_add_overflow(s->term[k].by, by, &s->term[k].by);
    if (s->n == CD_GPU_MAX_TERM) return false;
    s->term[s->n].e = e;
    s->term[s->n++].by = by;
    return true;
}

/* s += e * by, down to atoms. False: overflow or too many terms. */
static bool add(cd_gpu_sum *s, const cd_expr *e, int64_t by) {
    int64_t x = 0;
    switch ((cd_expr_op)e->op) {
    case CD_INT:
        return multiply(e->u.i, by, &x) && !__builtin_add_overflow(s->constant, x, &s->constant);
    case CD_ADD: return add(s, e->a[0], by) && add(s, e->a[1], by);
    case CD_SUB: return multiply(by, -1, &x) && add(s, e->a[0], by) && add(s, e->a[1], x);
    case CD_MUL:
        if (cd_expr_is_int(e->a[1])) return multiply(e->a[1]->u.i, by, &x) && add(s, e->a[0], x);
        if (cd_expr_is_int(e->a[0])) return multiply(e->a[0]->u.i, by, &x) && add(s, e->a[1], x);
        return add_term(s, e, by);
    default: return add_term(s, e, by);
    }
}

/* (x // c) * (c * q) + (x % c) * q  =  x * q. Returns false when nothing is left to join. */
static bool join_one(cd_gpu_sum *s) {
    for (uint32_t i = 0; i < s->n; i++) {
        const cd_expr *div = s->term[i].e;
        if (div->op != CD_FDIV || !cd_expr_is_int(div->a[1]) || !s->term[i].by) continue;
        for (uint32_t j = 0; j < s->n; j++) {
            const cd_expr *mod = s->term[j].e;
            int64_t whole = 0;
            if (mod->op != CD_FMOD || mod->a[0] != div->a[0] || mod->a[1] != div->a[1]) continue;
            if (!multiply(s->term[j].by, div->a[1]->u.i, &whole) || whole != s->term[i].by)
                continue;
            const int64_t by = s->term[j].by;
            s->term[i].by = s->term[j].by = 0;
            return add(s, div->a[0], by);
        }
    }
    return false;
}

static void drop_zeros(cd_gpu_sum *s) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < s->n; k++)
        if (s->term[k].by) s->term[n++] = s->term[k];
    s->n = n;
}

/* Quotients and remainders of one expression are joined again after the sum is complete. */
cdmpp_status cd_gpu_address(const cd_gpu *g, uint32_t tensor, const cd_expr *const *x, uint32_t n,
                            cd_gpu_sum *out, cdmpp_err *err) {
    const cd_codegen_slot *slot = &g->plan.slot[tensor];
    bool good = n == slot->n_dim;
    out->n = 0;
    out->constant = 0;
    out->wide = slot->elements > INT32_MAX;
    for (uint32_t d = 0; d < n && good; d++) {
        good = add(out, x[d], slot->stride[d]);
        if (good && slot->min) good = add(out, slot->min[d], -slot->stride[d]);
    }
    if (!good)
        return CD_FAIL(err, EUNSUPPORTED, "the place of an element of \"%.60s\"",
                       g->plan.nest->tensor[tensor].name);
    drop_zeros(out);
    while (join_one(out)) drop_zeros(out);
    drop_zeros(out);
    return CDMPP_OK;
}

/* ---- what is known of it ---- */

/* A number that always divides e where var is 0; 0 for zero itself. */
static int64_t divisor(const cd_expr *e, const cd_expr *var) {
    int64_t x = 0;
    switch ((cd_expr_op)e->op) {
    case CD_INT: return e->u.i;
    case CD_VAR: return e == var ? 0 : 1;
    case CD_ADD:
    case CD_SUB:
    case CD_FMOD: return cd_expr_gcd(divisor(e->a[0], var), divisor(e->a[1], var));
    case CD_MUL: return multiply(divisor(e->a[0], var), divisor(e->a[1], var), &x) ? x : 1;
    case CD_FDIV:
        x = divisor(e->a[0], var);
        return cd_expr_is_int(e->a[1]) && e->a[1]->u.i > 0 && x % e->a[1]->u.i == 0
                   ? x / e->a[1]->u.i
                   : 1;
    default: return 1;
    }
}

/* The growth of e with each step of var from 0 to width-1; false: not the same for all steps, or
 * not known. */
static bool step(const cd_expr *e, const cd_expr *var, int64_t width, int64_t *by) {
    int64_t a = 0, b = 0, span = 0;
    *by = e == var;
    if (e == var || !cd_expr_uses(e, var)) return true;
    if (!cd_expr_op_is_binary((cd_expr_op)e->op) || !step(e->a[0], var, width, &a) ||
        !step(e->a[1], var, width, &b))
        return false;
    switch ((cd_expr_op)e->op) {
    case CD_ADD: return !__builtin_add_overflow(a, b, by);
    case CD_SUB: return !__builtin_sub_overflow(a, b, by);
    case CD_MUL:
        return cd_expr_is_int(e->a[1]) ? multiply(a, e->a[1]->u.i, by)
                                       : cd_expr_is_int(e->a[0]) && multiply(b, e->a[0]->u.i, by);
    case CD_FDIV:
    case CD_FMOD: /* the steps stay inside one turn of the divisor */
        if (!cd_expr_is_int(e->a[1]) || e->a[1]->u.i <= 0 || a < 0 || !multiply(a, width, &span))
            return false;
        *by = e->op == CD_FMOD ? a : 0;
        return !span || (e->a[1]->u.i % span == 0 && divisor(e->a[0], var) % span == 0);
    default: return false;
    }
}

bool cd_gpu_sum_step(const cd_gpu_sum *s, const cd_expr *var, int64_t width, int64_t *by) {
    *by = 0;
    for (uint32_t k = 0; k < s->n; k++) {
        int64_t one = 0;
        if (!step(s->term[k].e, var, width, &one) || !multiply(one, s->term[k].by, &one) ||
            __builtin_add_overflow(*by, one, by))
            return false;
    }
    return true;
}

int64_t cd_gpu_sum_divisor(const cd_gpu_sum *s, const cd_expr *var) {
    int64_t all = s->constant;
    for (uint32_t k = 0; k < s->n; k++) {
        int64_t x = 0;
        if (!multiply(divisor(s->term[k].e, var), s->term[k].by, &x)) return 1;
        all = cd_expr_gcd(all, x);
    }
    return all;
}

/* ---- text ---- */

static cdmpp_status term(cd_gpu *g, const cd_expr *e, int64_t by, bool wide, cdmpp_err *err) {
    if (wide) cd_buf_puts(g->w.out, g->dialect == CD_DIALECT_OPENCL ? "(long)" : "(long long)");
    if (by != 1) cd_buf_puts(g->w.out, wide ? "" : "(");
    CD_TRY(cd_codegen_expr_write(&g->w, e, err));
    if (by != 1) cd_buf_putf(g->w.out, wide ? "*%lld" : "*%lld)", (long long)by);
    return CDMPP_OK;
}

/* The sum as text; g->zero is written as 0. */
static cdmpp_status gpu_write_sum(cd_gpu *g, const cd_gpu_sum *s, cdmpp_err *err) {
    bool first = true;
    for (uint32_t k = 0; k < s->n; k++) {
        if (s->term[k].e == g->zero) continue;
        if (!first) cd_buf_puts(g->w.out, s->term[k].by < 0 ? " - " : " + ");
        /* a term in front keeps its sign */
        CD_TRY(term(g, s->term[k].e, !first && s->term[k].by < 0 ? -s->term[k].by : s->term[k].by,
                    s->wide, err));
        first = false;
    }
    if (first) cd_buf_putf(g->w.out, "%lld", (long long)s->constant);
    else if (s->constant)
        cd_buf_putf(g->w.out, s->constant < 0 ? " - %lld" : " + %lld",
                    s->constant < 0 ? -(long long)s->constant : (long long)s->constant);
    return CDMPP_OK;
}

/* " + v0*len" for every virtual thread that the tensor has copies for. */
static void write_copy(cd_gpu *g, uint32_t tensor) {
    int64_t size = g->plan.slot[tensor].elements;
    for (uint32_t v = 0; v < g->n_vt; v++) {
        if (!(g->vt_mask[tensor] >> v & 1)) continue;
        cd_buf_putf(g->w.out, " + v%u*%lld", v, (long long)size);
        size *= g->vt_extent[v];
    }
}

cdmpp_status cd_gpu_write_element(cd_gpu *g, uint32_t tensor, const cd_expr *const *x, uint32_t n,
                                  cdmpp_err *err) {
    cd_gpu_sum sum;
    CD_TRY(cd_gpu_address(g, tensor, x, n, &sum, err));
    cd_buf_putf(g->w.out, "t%u[", g->plan.slot[tensor].order);
    CD_TRY(gpu_write_sum(g, &sum, err));
    write_copy(g, tensor);
    cd_buf_puts(g->w.out, "]");
    return CDMPP_OK;
}

cdmpp_status cd_gpu_write_load(cd_codegen_expr *w, const cd_expr *e, cdmpp_err *err) {
    cd_gpu *g = w->ctx;
    const char *wrap = cd_codegen_expr_load_wrap(g->plan.slot[e->u.i].dtype);
    if (*wrap) cd_buf_putf(w->out, "%s(", wrap);
    CD_TRY(cd_gpu_write_element(g, (uint32_t)e->u.i, e->a, e->n, err));
    if (*wrap) cd_buf_puts(w->out, ")");
    return CDMPP_OK;
}

/* Is the axis bound by a node above? */
static bool bound_above(const cd_gpu *g, int32_t k, cd_ast_tag tag) {
    for (int32_t p = g->t->node[k].parent; p >= 0; p = g->t->node[p].parent)
        if (g->t->node[p].kind == CD_AST_THREAD && g->t->node[p].tag == tag) return true;
    return false;
}

/* A stage that does not divide its work among some thread axis is done by thread 0 of it, where
 * other threads see the result. */
static void write_lone(cd_gpu *g, int32_t k) {
    static const cd_ast_tag tag[] = {CD_AST_TAG_TX, CD_AST_TAG_TY, CD_AST_TAG_TZ};
    const char *before = "if (";
    if (!cd_gpu_is_shared(g, g->t->node[k].tensor)) return;
    for (size_t i = 0; i < sizeof tag / sizeof *tag; i++) {
        if (g->extent[tag[i]] <= 1 || bound_above(g, k, tag[i])) continue;
        cd_buf_putf(g->w.out, "%s%s == 0", before, cd_gpu_tag_text(tag[i]));
        before = " && ";
    }
    if (*before == ' ') cd_buf_puts(g->w.out, ") ");
}

/* TVM does not guard the store of an allreduce, whose loops may go beyond the tensor. */
static cdmpp_status write_rim(cd_gpu *g, const cd_ast_node *n, cdmpp_err *err) {
    const cd_codegen_slot *s = &g->plan.slot[n->tensor];
    const char *before = "if (";
    const bool reduced = n->e->op == CD_LOAD && g->plan.slot[n->e->u.i].node >= 0 &&
                         g->t->node[g->plan.slot[n->e->u.i].node].kind == CD_AST_ALLOC;
    for (uint32_t d = 0; reduced && d < n->n; d++) {
        const int64_t end =
            s->extent[d] + (s->min && cd_expr_is_int(s->min[d]) ? s->min[d]->u.i : 0);
        if ((s->min && !cd_expr_is_int(s->min[d])) ||
            cd_codegen_range_of(&g->plan.ranges, n->x[d]).hi < end)
            continue;
        cd_buf_puts(g->w.out, before);
        CD_TRY(cd_codegen_expr_write(&g->w, n->x[d], err));
        cd_buf_putf(g->w.out, " < %lld", (long long)end);
        before = " && ";
    }
    if (*before == ' ') cd_buf_puts(g->w.out, ") ");
    return CDMPP_OK;
}

cdmpp_status cd_gpu_write_store(cd_gpu *g, int32_t k, cdmpp_err *err) {
    const cd_ast_node *n = &g->t->node[k];
    const char *wrap = cd_codegen_expr_store_wrap(g->plan.slot[n->tensor].dtype);
    cd_gpu_indent(g);
    write_lone(g, k);
    CD_TRY(write_rim(g, n, err));
    CD_TRY(cd_gpu_write_element(g, n->tensor, n->x, n->n, err));
    cd_buf_putf(g->w.out, " = %s%s", wrap, *wrap ? "(" : "");
    CD_TRY(cd_codegen_expr_write(&g->w, n->e, err));
    cd_buf_puts(g->w.out, *wrap ? ");\n" : ";\n");
    return CDMPP_OK;
}

/* ---- vectors ---- */

static const cd_ast_node *only_store(const cd_gpu *g, int32_t loop) {
    const cd_ast_node *only = NULL;
    for (int32_t k = loop + 1; k < g->t->node[loop].end; k++) {
        const cd_ast_node *n = &g->t->node[k];
        if (n->dead || n->kind == CD_AST_ATTR) continue;
        if (n->kind != CD_AST_STORE || only) return NULL;
        only = n;
    }
    return only;
}

/* CUDA's vectors must lie at multiples of their size; OpenCL's may lie anywhere. */
static bool vector_fits(const cd_gpu *g, const cd_gpu_sum *s, const cd_expr *var, int64_t width) {
    int64_t by = 0;
    if (!cd_gpu_sum_step(s, var, width, &by) || by != 1) return false;
    return g->dialect == CD_DIALECT_OPENCL || cd_gpu_sum_divisor(s, var) % width == 0;
}

static bool copies_whole(const cd_gpu *g, uint32_t tensor) {
    return cd_gpu_is_shared(g, tensor) && g->plan.slot[tensor].dtype == CD_F32 &&
           !g->vt_mask[tensor];
}

static cdmpp_status write_copy_of(cd_gpu *g, const cd_ast_node *n, int64_t width,
                                  const cd_gpu_sum *to, const cd_gpu_sum *from, cdmpp_err *err) {
    const uint32_t a = g->plan.slot[n->tensor].order, b = g->plan.slot[n->e->u.i].order;
    const bool cl = g->dialect == CD_DIALECT_OPENCL;
    cd_gpu_indent(g);
    write_lone(g, (int32_t)(n - g->t->node));
    if (cl)
        cd_buf_putf(g->w.out, "vstore%lld(vload%lld(0, t%u + (", (long long)width, (long long)width,
                    b);
    else cd_buf_putf(g->w.out, "*(float%lld *)(t%u + (", (long long)width, a);
    CD_TRY(gpu_write_sum(g, cl ? from : to, err));
    if (cl) cd_buf_putf(g->w.out, ")), 0, t%u + (", a);
    else cd_buf_putf(g->w.out, ")) = *(const float%lld *)(t%u + (", (long long)width, b);
    CD_TRY(gpu_write_sum(g, cl ? to : from, err));
    cd_buf_puts(g->w.out, "));\n");
    return CDMPP_OK;
}

/* Widths that the dialect has, both sides in a row, and for CUDA aligned. */
cdmpp_status cd_gpu_write_vector(cd_gpu *g, int32_t k, bool *done, cdmpp_err *err) {
    const cd_ast_node *loop = &g->t->node[k], *n = only_store(g, k);
    const int64_t width = loop->extent;
    const bool legal = width == 2 || width == 4 ||
                       (g->dialect == CD_DIALECT_OPENCL && (width == 8 || width == 16));
    cd_gpu_sum to, from;
    *done = false;
    if (!legal || !n || n->e->op != CD_LOAD) return CDMPP_OK;
    if (!copies_whole(g, n->tensor) || !copies_whole(g, (uint32_t)n->e->u.i)) return CDMPP_OK;
    CD_TRY(cd_gpu_address(g, n->tensor, n->x, n->n, &to, err));
    CD_TRY(cd_gpu_address(g, (uint32_t)n->e->u.i, n->e->a, n->e->n, &from, err));
    if (!vector_fits(g, &to, loop->var, width) || !vector_fits(g, &from, loop->var, width))
        return CDMPP_OK;
    *done = true;
    g->zero = loop->var;
    const cdmpp_status st = write_copy_of(g, n, width, &to, &from, err);
    g->zero = NULL;
    return st;
}

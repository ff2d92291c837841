/* The GPU generator's entry: buffers, and one kernel after the other, each with its head,
 * declarations and body. OpenCL and CUDA differ only in words: qualifiers, barriers, vector
 * types. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "profiler/codegen/gpu/codegen_gpu_internal.h"

/* Studies one kernel: its thread axes and virtual threads, which tensors it loads and stores, which
 * of them need a copy for each virtual thread. It also refuses what TVM's own checks refuse. */

bool cd_gpu_is_shared(const cd_gpu *g, uint32_t tensor) {
    return g->plan.slot[tensor].is_arg || g->plan.slot[tensor].rank < 3;
}

/* ---- axes ---- */

static cdmpp_status add_vthread(cd_gpu *g, const cd_ast_node *n, cdmpp_err *err) {
    uint8_t *number = &g->vt[n->var->u.i];
    if (!cd_expr_is_int(n->extent_e))
        return CD_FAIL(err, EUNSUPPORTED, "virtual threads without a constant number");
    if (*number || n->extent <= 1) return CDMPP_OK;
    if (g->n_vt == CD_GPU_MAX_VTHREAD)
        return CD_FAIL(err, EUNSUPPORTED, "more than %d virtual thread axes", CD_GPU_MAX_VTHREAD);
    g->vt_extent[g->n_vt] = n->extent;
    *number = (uint8_t)++g->n_vt;
    return CDMPP_OK;
}

static cdmpp_status add_axis(cd_gpu *g, const cd_ast_node *n, cdmpp_err *err) {
    g->tag[n->var->u.i] = (uint8_t)(n->tag + 1);
    if (n->tag == CD_AST_TAG_VTHREAD) return add_vthread(g, n, err);
    if (!cd_expr_is_int(n->extent_e) || n->extent < 1)
        return CD_FAIL(err, EUNSUPPORTED, "%s without a constant length",
                       cd_ast_tag_name((cd_ast_tag)n->tag));
    if (g->extent[n->tag] && g->extent[n->tag] != n->extent)
        return CD_FAIL(err, EREJECTED, "%s has extents %lld and %lld in one kernel",
                       cd_ast_tag_name((cd_ast_tag)n->tag), (long long)g->extent[n->tag],
                       (long long)n->extent);
    g->extent[n->tag] = n->extent;
    return CDMPP_OK;
}

/* ---- virtual threads ---- */

static uint32_t vt_of(const cd_gpu *g, const cd_expr *e) {
    uint32_t m = 0;
    if (e->op == CD_VAR)
        return e->u.i < (int64_t)g->plan.nest->n_var && g->vt[e->u.i] ? 1U << (g->vt[e->u.i] - 1)
                                                                      : 0;
    if (e->op == CD_LOAD) m = g->vt_mask[e->u.i];
    if (!(e->flags & (CD_EXPR_HAS_VAR | CD_EXPR_HAS_LOAD))) return 0;
    for (uint32_t k = 0; k < e->n; k++) m |= vt_of(g, e->a[k]);
    return m;
}

uint32_t cd_gpu_vt_around(const cd_gpu *g, int32_t k) {
    uint32_t m = 0;
    for (int32_t p = g->t->node[k].parent; p >= 0; p = g->t->node[p].parent) {
        const cd_ast_node *n = &g->t->node[p];
        if (n->kind == CD_AST_THREAD && n->tag == CD_AST_TAG_VTHREAD && g->vt[n->var->u.i])
            m |= 1U << (g->vt[n->var->u.i] - 1);
    }
    return m;
}

uint32_t cd_gpu_vt_of_node(const cd_gpu *g, int32_t k) {
    const cd_ast_node *n = &g->t->node[k];
    uint32_t m = n->e ? vt_of(g, n->e) : 0;
    if (n->kind == CD_AST_STORE) m |= g->vt_mask[n->tensor];
    for (uint32_t i = 0; i < n->n; i++) m |= vt_of(g, n->x[i]);
    return m;
}

static cdmpp_status gpu_allreduce(const cd_gpu *g, int32_t k, uint32_t *result,
                                  const cd_te_reducer **r, cdmpp_err *err);

/* A fixed point: copies of one tensor may make another one depend on the virtual thread. */
static void spread(cd_gpu *g) {
    for (bool more = true; more;) {
        more = false;
        for (int32_t k = g->begin; k < g->end; k++) {
            const cd_ast_node *n = &g->t->node[k];
            uint32_t result = 0;
            const cd_te_reducer *r = NULL;
            const bool call = n->kind == CD_AST_EVAL && !gpu_allreduce(g, k, &result, &r, NULL);
            if (n->dead || (n->kind != CD_AST_STORE && !call)) continue;
            for (uint32_t o = 0; o < (call ? r->n : 1); o++) {
                const uint32_t tensor = call ? result + o : n->tensor,
                               m = cd_gpu_vt_of_node(g, k) & g->around[tensor];
                more |= (m & ~g->vt_mask[tensor]) != 0;
                g->vt_mask[tensor] |= m;
            }
        }
    }
}

/* ---- tensors ---- */

static bool note_load(void *ctx, const cd_expr *e) {
    cd_gpu *g = ctx;
    if (e->op == CD_LOAD) g->use[e->u.i] |= CD_GPU_LOADED;
    return true;
}

static void note_uses(cd_gpu *g, int32_t k) {
    const cd_ast_node *n = &g->t->node[k];
    if (n->kind != CD_AST_STORE && n->kind != CD_AST_IF && n->kind != CD_AST_EVAL) return;
    if (n->kind == CD_AST_STORE) g->use[n->tensor] |= CD_GPU_STORED;
    for (uint32_t i = 0; i < n->n; i++) cd_expr_visit(n->x[i], note_load, g);
    if (n->kind != CD_AST_EVAL) cd_expr_visit(n->e, note_load, g);
}

/* The store of the reduced values comes right behind. */
static const cd_ast_node *store_behind(const cd_gpu *g, int32_t k) {
    do k++;
    while (k < g->t->n && (g->t->node[k].dead || g->t->node[k].kind != CD_AST_STORE));
    return k < g->t->n ? &g->t->node[k] : NULL;
}

/* The result tensor and the reducer of an EVAL node. Errors: EUNSUPPORTED. */
static cdmpp_status gpu_allreduce(const cd_gpu *g, int32_t k, uint32_t *result,
                                  const cd_te_reducer **r, cdmpp_err *err) {
    const cd_ast_node *n = &g->t->node[k], *store = store_behind(g, k);
    *r = store ? g->plan.nest->tensor[store->tensor].reducer : NULL;
    if (!*r || !n->e->n || n->e->a[0]->op != CD_LOAD || n->n < (*r)->n)
        return CD_FAIL(err, EUNSUPPORTED, "an evaluation that is no reduction over threads");
    *result = (uint32_t)n->e->a[0]->u.i;
    return CDMPP_OK;
}

/* A thread axis that is reduced must not index the result. */
static cdmpp_status note_result(cd_gpu *g, int32_t k, cdmpp_err *err) {
    uint32_t result = 0;
    const cd_te_reducer *r = NULL;
    CD_TRY(gpu_allreduce(g, k, &result, &r, err));
    const cd_ast_node *n = &g->t->node[k], *store = store_behind(g, k);
    for (uint32_t i = r->n; i < n->n; i++)
        for (uint32_t d = 0; d < store->n; d++)
            if (n->x[i]->op == CD_VAR && cd_expr_uses(store->x[d], n->x[i]))
                return CD_FAIL(err, EREJECTED, "a thread axis that is reduced and kept");
    for (uint32_t o = 0; o < r->n; o++) g->use[result + o] |= CD_GPU_STORED;
    return CDMPP_OK;
}

/* Memory that a kernel cannot have. */
static cdmpp_status check_places(const cd_gpu *g, cdmpp_err *err) {
    for (uint32_t t = 0; t < g->plan.n_slot; t++) {
        const cd_codegen_slot *s = &g->plan.slot[t];
        if (!g->use[t] || s->is_arg) continue;
        if (s->node >= g->begin && s->node < g->end && s->rank == 0)
            return CD_FAIL(err, EUNSUPPORTED, "global memory for \"%.60s\" inside a kernel",
                           g->plan.nest->tensor[t].name);
        if ((s->node < g->begin || s->node >= g->end) && s->rank > 0)
            return CD_FAIL(err, EREJECTED, "memory of a block for \"%.60s\" outside of all blocks",
                           g->plan.nest->tensor[t].name);
    }
    return CDMPP_OK;
}

/* ---- axes that are bound twice ---- */

typedef struct {
    const cd_gpu *g;
    const cd_expr *bound[CD_AST_TAG_COUNT]; /* what the innermost node above binds */
    bool clash;
} clash_ctx;

static bool find_clash(void *ctx, const cd_expr *e) {
    clash_ctx *c = ctx;
    const uint8_t tag =
        e->op == CD_VAR && e->u.i < (int64_t)c->g->plan.nest->n_var ? c->g->tag[e->u.i] : 0;
    if (tag && tag != CD_AST_TAG_VTHREAD + 1 && c->bound[tag - 1] != e) c->clash = true;
    return !c->clash;
}

/* Registers of which every thread would fill a part, for all to read. */
static bool shares_out_registers(const cd_gpu *g, int32_t k) {
    const cd_ast_node *n = &g->t->node[k];
    const cd_codegen_slot *s = &g->plan.slot[n->tensor];
    if (n->kind != CD_AST_STORE || s->is_arg || s->rank != 3) return false;
    for (int32_t p = n->parent; p > s->node; p = g->t->node[p].parent)
        for (uint32_t d = 0; d < n->n && g->t->node[p].kind == CD_AST_THREAD &&
                             g->t->node[p].tag != CD_AST_TAG_VTHREAD;
             d++)
            if (cd_expr_uses(n->x[d], g->t->node[p].var)) return true;
    return false;
}

/* Memory that threads fill for each other without sharing it, and statements in two turns of one
 * axis, have no meaning. */
static cdmpp_status check_axes(const cd_gpu *g, cdmpp_err *err) {
    for (int32_t k = g->begin; k < g->end; k++) {
        const cd_ast_node *n = &g->t->node[k];
        clash_ctx c = {.g = g};
        if (n->dead || (n->kind != CD_AST_STORE && n->kind != CD_AST_IF)) continue;
        for (int32_t p = n->parent; p >= 0; p = g->t->node[p].parent)
            if (g->t->node[p].kind == CD_AST_THREAD && !c.bound[g->t->node[p].tag])
                c.bound[g->t->node[p].tag] = g->t->node[p].var;
        for (uint32_t i = 0; i < n->n; i++) cd_expr_visit(n->x[i], find_clash, &c);
        cd_expr_visit(n->e, find_clash, &c);
        if (c.clash)
            return CD_FAIL(err, EREJECTED, "a statement below two loops over the same thread axis");
        if (shares_out_registers(g, k))
            return CD_FAIL(err, EREJECTED, "local memory that threads fill for each other");
    }
    return CDMPP_OK;
}

/* codegen_gpu.c: finds axes, virtual threads and tensors of the kernel begin .. end-1.
 * Errors: EUNSUPPORTED, EREJECTED.
 *
 * The nodes once, then tensors, then the checks. */
static cdmpp_status gpu_kernel_study(cd_gpu *g, cdmpp_err *err) {
    const uint32_t n_slot = g->plan.n_slot;
    memset(g->extent, 0, sizeof g->extent);
    memset(g->vt, 0, g->plan.nest->n_var);
    memset(g->vt_mask, 0, n_slot * sizeof *g->vt_mask);
    memset(g->use, 0, n_slot);
    g->n_vt = 0;
    g->active = 0;
    for (int32_t k = g->begin; k < g->end; k++) {
        const cd_ast_node *n = &g->t->node[k];
        if (n->dead) continue;
        if (n->kind == CD_AST_THREAD) CD_TRY(add_axis(g, n, err));
        note_uses(g, k);
        if (n->kind == CD_AST_EVAL) CD_TRY(note_result(g, k, err));
    }
    for (uint32_t t = 0; t < n_slot; t++) {
        const cd_codegen_slot *s = &g->plan.slot[t];
        g->around[t] = s->node >= 0 && !s->is_arg ? cd_gpu_vt_around(g, s->node) : 0;
    }
    if (g->n_vt) spread(g);
    CD_TRY(check_axes(g, err));
    return check_places(g, err);
}

static const cd_ast_tag block_tag[3] = {CD_AST_TAG_BX, CD_AST_TAG_BY, CD_AST_TAG_BZ};
static const cd_ast_tag thread_tag[3] = {CD_AST_TAG_TX, CD_AST_TAG_TY, CD_AST_TAG_TZ};

const char *cd_gpu_tag_text(cd_ast_tag t) {
    static const char *const text[CD_AST_TAG_COUNT] = {
        [CD_AST_TAG_VTHREAD] = "v", [CD_AST_TAG_BX] = "bx", [CD_AST_TAG_TX] = "tx",
        [CD_AST_TAG_BY] = "by",     [CD_AST_TAG_TY] = "ty", [CD_AST_TAG_BZ] = "bz",
        [CD_AST_TAG_TZ] = "tz"};
    return text[t];
}

void cd_gpu_indent(cd_gpu *g) {
    for (int k = 0; k < g->indent; k++) cd_buf_puts(g->w.out, "    ");
}

void cd_gpu_line(cd_gpu *g, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap); /* the longest line is of an allreduce over three axes */
    va_end(ap);
    cd_gpu_indent(g);
    cd_buf_puts(g->w.out, text);
    cd_buf_puts(g->w.out, "\n");
}

/* Results that threads of a block hand to each other are in shared memory or in buffers. */
void cd_gpu_write_barrier(cd_gpu *g) {
    cd_gpu_line(g, g->dialect == CD_DIALECT_OPENCL
                       ? "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"
                       : "__syncthreads();");
}

/* ---- names in expressions ---- */

static bool write_reducer_var(cd_gpu *g, const cd_expr *e) {
    for (uint32_t k = 0; g->reducer && k < g->reducer->n; k++) {
        const bool left = g->reducer->lhs[k] == e;
        if (!left && g->reducer->rhs[k] != e) continue;
        cd_buf_putf(g->w.out, "%c%u", left ? 'a' : 'b', k);
        return true;
    }
    return false;
}

/* Thread axes by name, virtual threads as v0 ..., loop variables as i0 ...; a variable outside its
 * loop means a broken nest. */
static cdmpp_status write_var(cd_codegen_expr *w, const cd_expr *e, cdmpp_err *err) {
    cd_gpu *g = w->ctx;
    if (write_reducer_var(g, e)) return CDMPP_OK;
    if (e->u.i >= (int64_t)g->plan.nest->n_var)
        return CD_FAIL(err, EUNSUPPORTED, "a variable that nothing binds");
    const uint8_t tag = g->tag[e->u.i], vt = g->vt[e->u.i];
    if (e == g->zero || (tag == CD_AST_TAG_VTHREAD + 1 && !vt)) cd_buf_puts(w->out, "0");
    else if (vt) cd_buf_putf(w->out, "v%u", vt - 1U);
    else if (tag) cd_buf_puts(w->out, cd_gpu_tag_text((cd_ast_tag)(tag - 1)));
    else if (g->open[e->u.i]) cd_buf_putf(w->out, "i%u", g->plan.var[e->u.i]);
    else return CD_FAIL(err, EREJECTED, "a loop's variable outside of its loop");
    return CDMPP_OK;
}

/* ---- one kernel ---- */

static bool in_kernel(const cd_gpu *g, uint32_t t) { return g->use[t] && g->buffer[t] >= 0; }

/* In the order of the code's buffers, which launch.buffer repeats. */
static cdmpp_status write_parameters(cd_gpu *g, cd_codegen_launch *l, cdmpp_err *err) {
    uint32_t *list = CD_NEWN(g->a, uint32_t, g->code->n_buffer + 1);
    const bool cl = g->dialect == CD_DIALECT_OPENCL;
    if (!list) return CD_FAIL(err, ENOMEM, "kernel");
    for (uint32_t b = 0; b < g->code->n_buffer; b++)
        for (uint32_t t = 0; t < g->plan.n_slot; t++) {
            if (!in_kernel(g, t) || (uint32_t)g->buffer[t] != b) continue;
            const char *type = cd_codegen_storage_type(g->dialect, g->plan.slot[t].dtype);
            char name[32];
            if (!type)
                return CD_FAIL(err, EUNSUPPORTED, "values of type %s",
                               cd_expr_dtype_format(g->plan.slot[t].dtype, name, sizeof name));
            cd_buf_putf(g->w.out, "%s%s%s%s *%s t%u", l->n_buffer ? ", " : "",
                        cl ? "__global " : "", g->use[t] & CD_GPU_STORED ? "" : "const ", type,
                        cl ? "restrict" : "__restrict__", g->plan.slot[t].order);
            list[l->n_buffer++] = b;
        }
    l->buffer = list;
    return CDMPP_OK;
}

static void write_head(cd_gpu *g, const cd_codegen_launch *l) {
    const long long b[3] = {l->block[0], l->block[1], l->block[2]};
    if (g->dialect == CD_DIALECT_OPENCL)
        cd_buf_putf(g->w.out,
                    "__kernel __attribute__((reqd_work_group_size(%lld, %lld, %lld)))\nvoid %s(",
                    b[0], b[1], b[2], l->entry);
    else
        cd_buf_putf(g->w.out, "extern \"C\" __global__ void __launch_bounds__(%lld) %s(",
                    b[0] * b[1] * b[2], l->entry);
}

static void declare_axes(cd_gpu *g) {
    for (int x = 0; x < 3; x++) {
        if (g->extent[block_tag[x]])
            cd_gpu_line(g, "const int b%c = CD_BLOCK_%c;", "xyz"[x], "XYZ"[x]);
        if (g->extent[thread_tag[x]])
            cd_gpu_line(g, "const int t%c = CD_THREAD_%c;", "xyz"[x], "XYZ"[x]);
    }
}

/* Shared or local memory of a tensor, with a copy for each virtual thread that it depends on. */
static cdmpp_status declare_memory(cd_gpu *g, uint32_t t, int64_t *shared_bytes, cdmpp_err *err) {
    const cd_codegen_slot *s = &g->plan.slot[t];
    const bool cl = g->dialect == CD_DIALECT_OPENCL, shared = cd_gpu_is_shared(g, t);
    const char *type = cd_codegen_storage_type(g->dialect, s->dtype);
    int64_t n = s->elements;
    char name[40];
    if (!type)
        return CD_FAIL(err, EUNSUPPORTED, "values of type %s",
                       cd_expr_dtype_format(s->dtype, name, sizeof name));
    for (uint32_t v = 0; v < g->n_vt; v++)
        if (g->vt_mask[t] >> v & 1 && __builtin_mul_overflow(n, g->vt_extent[v], &n)) n = INT32_MAX;
    if (n >= INT32_MAX)
        return CD_FAIL(err, EREJECTED, "more than 2^31 elements in a block's own memory");
    cd_codegen_clean_name(g->plan.nest->tensor[t].name, name, sizeof name);
    cd_gpu_line(g, "%s%s t%u[%lld]; /* %s */",
                !shared ? ""
                : cl    ? "__local __attribute__((aligned(16))) "
                        : "__shared__ __align__(16) ",
                type, s->order, (long long)(n ? n : 1), name);
    if (shared) *shared_bytes += n * (int64_t)cd_expr_dtype_bytes(s->dtype);
    return CDMPP_OK;
}

static cdmpp_status gpu_declare_allreduce(cd_gpu *g, int32_t k, int64_t *bytes, cdmpp_err *err);

/* In the order of their names, so that equal nests have equal texts. */
static cdmpp_status declare_all(cd_gpu *g, int64_t *shared_bytes, cdmpp_err *err) {
    for (uint32_t order = 0; order < g->plan.n_slot; order++)
        for (uint32_t t = 0; t < g->plan.n_slot; t++)
            if (g->use[t] && g->buffer[t] < 0 && g->plan.slot[t].order == order &&
                g->plan.slot[t].used)
                CD_TRY(declare_memory(g, t, shared_bytes, err));
    for (int32_t k = g->begin; k < g->end; k++)
        if (!g->t->node[k].dead && g->t->node[k].kind == CD_AST_EVAL)
            CD_TRY(gpu_declare_allreduce(g, k, shared_bytes, err));
    return CDMPP_OK;
}

/* Studies the nodes of the kernel first: barriers and copies depend on all of them. */
static cdmpp_status write_kernel(cd_gpu *g, cd_codegen_launch *l, cdmpp_err *err) {
    char entry[160];
    CD_TRY(gpu_kernel_study(g, err));
    CD_TRY(cd_gpu_sync(g, err));
    cd_gpu_unroll(g);
    snprintf(entry, sizeof entry, "%.100s_k%u", g->name, g->number);
    *l = (cd_codegen_launch){.entry = cd_arena_text(g->a, entry)};
    if (!l->entry) return CD_FAIL(err, ENOMEM, "kernel");
    for (int x = 0; x < 3; x++) {
        l->grid[x] = g->extent[block_tag[x]] ? g->extent[block_tag[x]] : 1;
        l->block[x] = g->extent[thread_tag[x]] ? g->extent[thread_tag[x]] : 1;
    }
    write_head(g, l);
    CD_TRY(write_parameters(g, l, err));
    cd_buf_puts(g->w.out, ")\n{\n");
    g->indent = 1;
    declare_axes(g);
    CD_TRY(declare_all(g, &l->shared_bytes, err));
    CD_TRY(cd_gpu_write_range(g, g->begin, g->end, err));
    cd_buf_puts(g->w.out, "}\n\n");
    return CDMPP_OK;
}

/* ---- the program ---- */

static cdmpp_status add_buffer(cd_gpu *g, uint32_t t, bool is_arg, cdmpp_err *err) {
    const cd_codegen_slot *s = &g->plan.slot[t];
    const char *name = g->plan.nest->tensor[t].name;
    int64_t bytes = 0;
    /* the nest's is gone with its program's next one */
    char *own = cd_str_dup(g->a, (cd_str){name, strlen(name)});
    if (!own) return CD_FAIL(err, ENOMEM, "a buffer's name");
    if (__builtin_mul_overflow(s->elements, (int64_t)cd_expr_dtype_bytes(s->dtype), &bytes))
        return CD_FAIL(err, ERANGE, "a buffer too large");
    g->buffer[t] = (int32_t)g->code->n_buffer;
    g->code->buffer[g->code->n_buffer++] =
        (cd_codegen_buffer){.name = own,
                            .dtype = s->dtype,
                            .elements = s->elements,
                            .bytes = bytes,
                            .is_arg = is_arg,
                            .written = g->plan.nest->tensor[t].written};
    return CDMPP_OK;
}

/* Parameters, then global scratch in the order of first use. */
static cdmpp_status make_buffers(cd_gpu *g, cdmpp_err *err) {
    const cd_nest *nest = g->plan.nest;
    g->code->buffer = CD_NEWN(g->a, cd_codegen_buffer, nest->n_tensor + nest->n_arg + 1);
    if (!g->code->buffer) return CD_FAIL(err, ENOMEM, "buffers");
    for (uint32_t t = 0; t < g->plan.n_slot; t++) g->buffer[t] = -1;
    for (uint32_t k = 0; k < nest->n_arg; k++) CD_TRY(add_buffer(g, nest->arg[k], true, err));
    g->code->n_arg = nest->n_arg;
    for (uint32_t order = 0; order < g->plan.n_slot; order++)
        for (uint32_t t = 0; t < g->plan.n_slot; t++)
            if (g->plan.slot[t].used && g->plan.slot[t].order == order && !g->plan.slot[t].is_arg &&
                g->plan.slot[t].rank == 0)
                CD_TRY(add_buffer(g, t, false, err));
    return CDMPP_OK;
}

/* Kernels are the outermost thread axes; nothing else may run outside of them. */
static cdmpp_status write_kernels(cd_gpu *g, cdmpp_err *err) {
    uint32_t cap = 0;
    for (int32_t k = 0; k < g->t->n; k++) cap += g->t->node[k].kind == CD_AST_THREAD;
    if (!cap) return CD_FAIL(err, EREJECTED, "a GPU program without thread axes");
    g->code->launch = CD_NEWN(g->a, cd_codegen_launch, cap);
    if (!g->code->launch) return CD_FAIL(err, ENOMEM, "kernels");
    for (int32_t k = 0; k < g->t->n;) {
        const cd_ast_node *n = &g->t->node[k];
        if (n->dead || n->kind == CD_AST_REALIZE || n->kind == CD_AST_ATTR ||
            n->kind == CD_AST_ALLOC) {
            k++;
            continue;
        }
        if (n->kind != CD_AST_THREAD)
            return CD_FAIL(err, EREJECTED, "a statement or loop outside of all thread axes");
        g->begin = k;
        g->end = k = n->end;
        g->number = g->code->n_launch;
        CD_TRY(write_kernel(g, &g->code->launch[g->code->n_launch++], err));
    }
    return g->code->text.oom ? CD_FAIL(err, ENOMEM, "code") : CDMPP_OK;
}

/* Arrays by variable, tensor and node are shared by all kernels; gpu_kernel_study resets
 * them. */
static cdmpp_status generate(cd_gpu *g, const cd_nest *nest, cdmpp_err *err) {
    g->tag = CD_NEWN(g->a, uint8_t, nest->n_var + 1);
    g->vt = CD_NEWN(g->a, uint8_t, nest->n_var + 1);
    g->open = CD_NEWN(g->a, bool, nest->n_var + 1);
    g->buffer = CD_NEWN(g->a, int32_t, nest->n_tensor + 1);
    g->unroll = CD_NEWN(g->a, bool, (size_t)nest->ast->n + 1);
    g->barrier = CD_NEWN(g->a, bool, (size_t)nest->ast->n + 1);
    g->vt_mask = CD_NEWN(g->a, uint32_t, nest->n_tensor + 1);
    g->around = CD_NEWN(g->a, uint32_t, nest->n_tensor + 1);
    g->use = CD_NEWN(g->a, uint8_t, nest->n_tensor + 1);
    if (!g->tag || !g->vt || !g->open || !g->buffer || !g->unroll || !g->barrier || !g->vt_mask ||
        !g->around || !g->use)
        return CD_FAIL(err, ENOMEM, "code");
    CD_TRY(cd_codegen_plan_make(g->a, nest, &g->plan, err));
    CD_TRY(make_buffers(g, err));
    g->w = (cd_codegen_expr){.dialect = g->dialect,
                             .out = &g->code->text,
                             .ranges = &g->plan.ranges,
                             .var = write_var,
                             .load = cd_gpu_write_load,
                             .ctx = g};
    return write_kernels(g, err);
}

cdmpp_status cd_codegen_gpu(const cd_nest *nest, cd_dialect dialect, const char *name,
                            cd_codegen_code *out, cdmpp_err *err) {
    *out = (cd_codegen_code){.dialect = dialect};
    cd_gpu g = {.code = out, .dialect = dialect, .name = name, .a = &out->arena, .t = nest->ast};
    const cdmpp_status st = generate(&g, nest, err);
    if (st) cd_codegen_code_free(out);
    return st;
}

/* tvm_thread_allreduce: every thread of a group puts its part into shared memory,
 * a tree folds them, every thread reads the result (TVM's LowerThreadAllreduce). */

typedef struct {
    int64_t length, threads; /* of the group; of the block */
    /* number of a thread in its group; of it in the block, groups apart */
    cd_buf rank, thread;
} group;

/* Linear numbers: the axes that are reduced vary fastest. */
static void add_axis_reduce(cd_buf *out, int64_t *stride, const cd_gpu *g, cd_ast_tag tag) {
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
        if (reduced[t]) add_axis_reduce(&r->rank, &stride, g, (cd_ast_tag)t);
    r->length = stride;
    if (r->rank.n) cd_buf_put(&r->thread, r->rank.p, r->rank.n);
    for (int t = 0; t < CD_AST_TAG_COUNT; t++)
        if (!reduced[t] && t != CD_AST_TAG_VTHREAD && cd_ast_tag_rank((cd_ast_tag)t))
            add_axis_reduce(&r->thread, &stride, g, (cd_ast_tag)t);
    r->threads = stride;
    return r->rank.oom || r->thread.oom ? CD_FAIL(err, ENOMEM, "code") : CDMPP_OK;
}

static void free_group(group *r) {
    cd_buf_free(&r->rank);
    cd_buf_free(&r->thread);
}

/* One array for each component of the reduction, an element a thread; groups of length 1 need
 * none. */
static cdmpp_status gpu_declare_allreduce(cd_gpu *g, int32_t k, int64_t *bytes, cdmpp_err *err) {
    uint32_t result = 0;
    const cd_te_reducer *red = NULL;
    group r = {0};
    CD_TRY(gpu_allreduce(g, k, &result, &red, err));
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
    CD_TRY(gpu_allreduce(g, k, &result, &red, err));
    cdmpp_status st = make_group(g, k, red->n, &r, err);
    if (!st) st = write_all(g, k, result, red, &r, err);
    free_group(&r);
    return st;
}

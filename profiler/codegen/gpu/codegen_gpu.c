/* The GPU generator's entry: buffers, and one kernel after the other, each with its head,
 * declarations and body. OpenCL and CUDA differ only in words: qualifiers, barriers, vector
 * types. */
#include "profiler/codegen/gpu/codegen_gpu_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

/* In the order of their names, so that equal nests have equal texts. */
static cdmpp_status declare_all(cd_gpu *g, int64_t *shared_bytes, cdmpp_err *err) {
    for (uint32_t order = 0; order < g->plan.n_slot; order++)
        for (uint32_t t = 0; t < g->plan.n_slot; t++)
            if (g->use[t] && g->buffer[t] < 0 && g->plan.slot[t].order == order &&
                g->plan.slot[t].used)
                CD_TRY(declare_memory(g, t, shared_bytes, err));
    for (int32_t k = g->begin; k < g->end; k++)
        if (!g->t->node[k].dead && g->t->node[k].kind == CD_AST_EVAL)
            CD_TRY(cd_gpu_declare_allreduce(g, k, shared_bytes, err));
    return CDMPP_OK;
}

/* Studies the nodes of the kernel first: barriers and copies depend on all of them. */
static cdmpp_status write_kernel(cd_gpu *g, cd_codegen_launch *l, cdmpp_err *err) {
    char entry[160];
    CD_TRY(cd_gpu_kernel_study(g, err));
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

/* Arrays by variable, tensor and node are shared by all kernels; cd_gpu_kernel_study resets
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

/* The C generator's entry: places tensors, finds packed parameters, decides which loops are
 * unrolled and vectorised, lists buffers, and has the text written. Tensors that fit go to the
 * stack, others to scratch buffers of the caller. */
#include "profiler/codegen/c/c.h"

#include <string.h>

#include "profiler/codegen/c/codegen_c_internal.h"

#define STACK_BYTES 32768 /* longer tensors go to scratch memory */

static int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

static cdmpp_status check_types(const cd_c_writer *g, cdmpp_err *err) {
    char name[32];
    for (uint32_t t = 0; t < g->plan.n_slot; t++)
        if (g->plan.slot[t].used && !cd_codegen_value_type(CD_DIALECT_C, g->plan.slot[t].dtype))
            return CD_FAIL(err, EUNSUPPORTED, "tensors of type %s",
                           cd_expr_dtype_format(g->plan.slot[t].dtype, name, sizeof name));
    return CDMPP_OK;
}

static cdmpp_status pack(cd_c_writer *g, cdmpp_err *err) {
    if (!g->nest->pack) return CDMPP_OK;
    for (uint32_t t = 0; t < g->plan.n_slot; t++)
        if (g->plan.slot[t].is_arg && g->nest->tensor[t].layout_free && !g->nest->tensor[t].written)
            CD_TRY(cd_codegen_pack_plan(&g->out->arena, &g->env, g->nest, t, &g->digit[t],
                                        &g->n_digit[t], err));
    return CDMPP_OK;
}

/* A packed parameter has as many elements as its digits make places; per-thread scratch is rounded
 * up to 64, so that threads do not share cache lines. */
static cd_codegen_buffer describe(const cd_c_writer *g, uint32_t t) {
    const cd_codegen_slot *s = &g->plan.slot[t];
    cd_codegen_buffer b = {.name = cd_arena_text(&g->out->arena, g->nest->tensor[t].name),
                           .dtype = s->dtype,
                           .elements = s->elements,
                           .is_arg = s->is_arg,
                           .written = s->stored,
                           .n_digit = g->n_digit[t],
                           .digit = g->digit[t]};
    const int64_t size = cd_expr_dtype_bytes(s->dtype);
    if (b.n_digit) {
        b.elements = 1;
        for (uint32_t k = 0; k < b.n_digit; k++) b.elements *= b.digit[k].extent;
    }
    b.per_thread = !s->is_arg && (s->under & CD_UNDER_PARALLEL);
    if (b.per_thread) b.elements = round_up(b.elements, 64);
    b.bytes = b.elements * size;
    return b;
}

/* Parameters, then what is too big for the stack or lives across parallel loops. */
static cdmpp_status buffers(cd_c_writer *g, cdmpp_err *err) {
    cd_codegen_code *c = g->out;
    const uint32_t n = g->plan.n_slot;
    uint32_t *scratch = CD_NEWN(&c->arena, uint32_t, n + 1);
    c->buffer = CD_NEWN(&c->arena, cd_codegen_buffer, n + 1);
    if (!scratch || !c->buffer) return CD_FAIL(err, ENOMEM, "code");
    for (uint32_t k = 0; k < g->nest->n_arg; k++) c->buffer[k] = describe(g, g->nest->arg[k]);
    c->n_arg = c->n_buffer = g->nest->n_arg;
    for (uint32_t t = 0; t < n; t++) {
        const cd_codegen_slot *s = &g->plan.slot[t];
        scratch[t] = UINT32_MAX;
        if (!s->used || s->is_arg) continue;
        const bool shared = g->plan.has_parallel && !(s->under & CD_UNDER_PARALLEL);
        if (!shared && s->elements * (int64_t)cd_expr_dtype_bytes(s->dtype) <= STACK_BYTES)
            continue;
        scratch[t] = c->n_buffer;
        c->buffer[c->n_buffer++] = describe(g, t);
    }
    g->scratch = scratch;
    return CDMPP_OK;
}

static cdmpp_status launch(cd_c_writer *g, cdmpp_err *err) {
    cd_codegen_code *c = g->out;
    uint32_t *list = CD_NEWN(&c->arena, uint32_t, c->n_buffer + 1);
    c->launch = CD_NEW(&c->arena, cd_codegen_launch);
    if (!c->launch || !list) return CD_FAIL(err, ENOMEM, "code");
    for (uint32_t k = 0; k < c->n_buffer; k++) list[k] = k;
    *c->launch = (cd_codegen_launch){.entry = cd_arena_text(&c->arena, g->name),
                                     .grid = {1, 1, 1},
                                     .block = {1, 1, 1},
                                     .n_buffer = c->n_buffer,
                                     .buffer = list};
    c->n_launch = 1;
    return c->launch->entry ? CDMPP_OK : CD_FAIL(err, ENOMEM, "code");
}

/* The order matters: vectorisation reads which loops TVM unrolls, and LLVM's unrolling reads which
 * loops are vectors. */
static cdmpp_status prepare(cd_c_writer *g, cdmpp_err *err) {
    cd_arena *a = &g->out->arena;
    const uint32_t n = g->nest->n_tensor + 1;
    CD_TRY(cd_codegen_plan_make(a, g->nest, &g->plan, err));
    g->instance = CD_NEWN(a, uint32_t, n);
    g->n_digit = CD_NEWN(a, uint32_t, n);
    g->digit = CD_NEWN(a, const cd_codegen_digit *, n);
    g->home = CD_NEWN(a, int, n);
    g->copy = CD_NEWN(a, bool, (size_t)g->t->n + 1);
    g->vec = CD_NEWN(a, bool, (size_t)g->t->n + 1);
    if (!g->copy || !g->vec || !g->instance || !g->n_digit || !g->digit || !g->home)
        return CD_FAIL(err, ENOMEM, "code");
    g->max_lanes = g->nest->vector_bytes >= 64 ? 16 : g->nest->vector_bytes >= 32 ? 8 : 4;
    CD_TRY(check_types(g, err));
    CD_TRY(pack(g, err));
    CD_TRY(buffers(g, err));
    cd_codegen_unroll_tvm(g->t, g->copy);
    cd_c_vectorize(g);
    cd_codegen_unroll_llvm(g->t, g->vec, g->max_lanes, g->copy);
    return CDMPP_OK;
}

static cdmpp_status generate(cd_c_writer *g, cdmpp_err *err) {
    CD_TRY(prepare(g, err));
    if (g->plan.has_thread) return CD_FAIL(err, EUNSUPPORTED, "thread axes in a program for a CPU");
    CD_TRY(launch(g, err));
    CD_TRY(cd_c_write_program(g, err));
    CD_TRY(cd_codegen_env_check(&g->env, err));
    if (g->stray) return CD_FAIL(err, EUNSUPPORTED, "a lane outside a vector");
    return g->oom || g->out->text.oom ? CD_FAIL(err, ENOMEM, "code") : CDMPP_OK;
}

cdmpp_status cd_codegen_c(const cd_nest *nest, const char *name, cd_codegen_code *out,
                          cdmpp_err *err) {
    cd_c_writer g = {.nest = nest, .t = nest->ast, .name = name, .out = out, .fn = {.depth = -1}};
    *out = (cd_codegen_code){.dialect = CD_DIALECT_C};
    cdmpp_status st = cd_codegen_env_init(&g.env, nest->ast, nest->n_var, err);
    if (!st) {
        st = generate(&g, err);
        cd_codegen_env_free(&g.env);
    }
    cd_mem_free(g.token);
    if (st) cd_codegen_code_free(out);
    return st;
}

/* The C generator's entry: places tensors, finds packed parameters, decides which loops are
 * unrolled and vectorised, lists buffers, and has the text written. Tensors that fit go to the
 * stack, others to scratch buffers of the caller. */
#include <string.h>

#include "profiler/codegen/c/c.h"
#include "profiler/codegen/c/codegen_c_internal.h"

/* Decides which loops become vectors: those that the schedule vectorised, and serial ones that
 * LLVM's vectorisers would take. In these every turn writes elements of its own, in a row, from
 * elements that are in a row or the same for all. */

#define LEAST 4 /* turns of a serial loop that are worth it */
/* statements that must share lanes loaded one by one; GCC's own vectors are better with fewer */
#define SHARED 4

typedef struct {
    cd_c_writer *g;
    const cd_ast_node *loop;
    const cd_ast_node *store; /* whose value is looked at */
    bool strict;              /* not asked for by the schedule: only where it surely pays */
} candidate;

static bool types_fit(void *ctx, const cd_expr *e) {
    (void)ctx;
    return e->op == CD_STR || e->type == CD_BOOL || cd_c_has_vector(e->type);
}

/* Factor of the lane; 0 where it occurs in no linear way or not at all, *linear false in the first
 * case. */
static int64_t factor(const cd_c_writer *g, const cd_codegen_affine *flat, bool *linear) {
    int64_t k = 0;
    *linear = true;
    for (uint32_t i = 0; i < flat->n; i++) {
        if (cd_codegen_env_is_lane(&g->env, flat->t[i].atom)) k = flat->t[i].k;
        else if (cd_codegen_env_has_lane(&g->env, flat->t[i].atom)) *linear = false;
    }
    return *linear ? k : 0;
}

static bool flat_of(cd_c_writer *g, uint32_t tensor, const cd_expr *const *x, uint32_t n,
                    cd_codegen_affine *out) {
    const cd_expr *y[CD_CODEGEN_MAX_AFFINE];
    if (n > CD_CODEGEN_MAX_AFFINE) return false;
    for (uint32_t k = 0; k < n; k++) y[k] = cd_codegen_env_apply(&g->env, x[k]);
    cd_c_flat_index(g, tensor, y, n, out);
    for (uint32_t k = 0; k < out->n; k++)
        if (out->t[k].atom->flags & CD_EXPR_HAS_LOAD) return false;
    return true;
}

/* The store of this tensor in the loop; NULL: none. */
static const cd_ast_node *store_of(const candidate *j, uint32_t tensor) {
    const cd_ast *t = j->g->t;
    for (int32_t k = (int32_t)(j->loop - t->node) + 1; k < j->loop->end; k++)
        if (!t->node[k].dead && t->node[k].kind == CD_AST_STORE && t->node[k].tensor == tensor)
            return &t->node[k];
    return NULL;
}

static bool same_place(const cd_ast_node *n, const cd_expr *load) {
    if (n->n != load->n) return false;
    for (uint32_t k = 0; k < n->n; k++)
        if (n->x[k] != load->a[k]) return false;
    return true;
}

/* How many statements, once loops are written out, take the same lanes of e. */
static int64_t reuse(const candidate *j, const cd_expr *e) {
    const cd_ast *t = j->g->t;
    int64_t n = 1;
    for (int32_t k = j->store->parent; &t->node[k] != j->loop; k = t->node[k].parent)
        if (t->node[k].kind == CD_AST_FOR && !t->node[k].dead && !cd_expr_uses(e, t->node[k].var))
            n *= t->node[k].extent;
    return n;
}

static bool clean(candidate *j, const cd_expr *e);

static bool clean_load(candidate *j, const cd_expr *e) {
    const cd_ast_node *made = store_of(j, (uint32_t)e->u.i);
    cd_codegen_affine flat;
    bool linear;
    if (made && !same_place(made, e)) return false;
    if (!flat_of(j->g, (uint32_t)e->u.i, e->a, e->n, &flat)) return false;
    const int64_t k = factor(j->g, &flat, &linear);
    if (!linear) return false;
    return k == 0 || k == 1 || k == -1 || reuse(j, e) >= SHARED;
}

static bool clean_call(candidate *j, const cd_expr *e) {
    if (!strcmp(e->u.name, "if_then_else") && e->n == 3)
        return !cd_expr_uses(e->a[0], j->loop->var) && clean(j, e->a[0]) && clean(j, e->a[1]) &&
               clean(j, e->a[2]);
    if (cd_expr_is_dot4(e)) return clean(j, e->a[0]) && clean(j, e->a[1]);
    return e->n == 1 && e->type == CD_F32 &&
           (!strcmp(e->u.name, "nearbyint") || !strcmp(e->u.name, "sqrt") ||
            !strcmp(e->u.name, "rsqrt")) &&
           clean(j, e->a[0]);
}

/* Can e be computed as a vector, without lanes that must be handled one by one? */
static bool clean(candidate *j, const cd_expr *e) {
    if (!cd_expr_uses(e, j->loop->var) && !(e->flags & CD_EXPR_HAS_LOAD)) return true;
    switch ((cd_expr_op)e->op) {
    case CD_LOAD: return clean_load(j, e);
    case CD_CALL: return clean_call(j, e);
    case CD_SELECT:
        return !cd_expr_uses(e->a[0], j->loop->var) && clean(j, e->a[0]) && clean(j, e->a[1]) &&
               clean(j, e->a[2]);
    case CD_ADD:
    case CD_SUB:
    case CD_MUL:
    case CD_MIN:
    case CD_MAX: break;
    case CD_DIV:
        if (e->type != CD_F32) return false;
        break;
    case CD_CAST:
        if (!cd_c_has_vector(e->type) || !cd_c_has_vector(e->a[0]->type)) return false;
        break;
    default:
        if (cd_expr_uses(e, j->loop->var)) return false;
    }
    for (uint32_t k = 0; k < e->n; k++)
        if (!clean(j, e->a[k])) return false;
    return true;
}

static bool reads_other(void *ctx, const cd_expr *e) {
    const candidate *j = ctx;
    return e->op != CD_LOAD || (uint32_t)e->u.i != j->store->tensor;
}

/* The places of the lanes must differ; a reduction whose lanes may write one element is not
 * allowed. */
static bool store_fits(candidate *j, const cd_ast_node *n, int32_t k) {
    cd_c_writer *g = j->g;
    cd_codegen_affine flat;
    bool linear, own = false;
    j->store = n;
    for (uint32_t d = 0; d < n->n; d++) own |= cd_expr_uses(n->x[d], j->loop->var);
    if (!own || !cd_c_has_vector(n->e->type) || n->e->type != g->plan.slot[n->tensor].dtype ||
        !cd_expr_visit(n->e, types_fit, NULL))
        return false;
    if (cd_c_tuple_end(g->nest, k, j->loop->end) > k + 1) return false;
    const bool known = flat_of(g, n->tensor, n->x, n->n, &flat);
    const int64_t at = known ? factor(g, &flat, &linear) : 0;
    if (j->strict) return at == 1 && store_of(j, n->tensor) == n && clean(j, n->e);
    /* a reduction whose lanes may meet is none */
    return at != 0 || cd_expr_visit(n->e, reads_other, j);
}

/* All statements of the loop must fit. In strict mode (not asked for by the schedule) inner loops
 * must be unrolled. */
static bool body_fits(candidate *j, int32_t from, int32_t to) {
    const cd_ast *t = j->g->t;
    uint32_t stores = 0;
    for (int32_t k = from; k < to; k++) {
        const cd_ast_node *n = &t->node[k];
        if (n->dead || n->kind == CD_AST_ATTR) continue;
        if (n->kind == CD_AST_STORE) {
            stores++;
            if (!store_fits(j, n, k)) return false;
        } else if (n->kind == CD_AST_FOR) {
            if (n->loop == CD_LOOP_PARALLEL || cd_expr_uses(n->extent_e, j->loop->var))
                return false;
            if (j->strict && !j->g->copy[k]) return false;
        } else if (n->kind != CD_AST_IF || cd_expr_uses(n->e, j->loop->var)) {
            return false;
        }
    }
    return stores > 0;
}

static bool fits(cd_c_writer *g, int32_t k) {
    const cd_ast_node *n = &g->t->node[k];
    candidate j = {.g = g, .loop = n, .strict = n->loop != CD_LOOP_VECTORIZED};
    if (n->extent_e->op != CD_INT || n->extent < (j.strict ? LEAST : 1) || n->var->type != CD_I32)
        return false;
    if (n->loop == CD_LOOP_PARALLEL || n->loop == CD_LOOP_THREAD) return false;
    struct cd_codegen_env_var *v = &g->env.var[n->var->u.i];
    *v = (struct cd_codegen_env_var){.lane = true};
    cd_codegen_env_set_lanes(&g->env, n->extent);
    const bool yes = body_fits(&j, k + 1, n->end);
    *v = (struct cd_codegen_env_var){0};
    return yes;
}

static void c_vectorize(cd_c_writer *g) {
    for (int32_t k = g->t->n; k-- > 0;) {
        const cd_ast_node *n = &g->t->node[k];
        if (n->dead || n->kind != CD_AST_FOR) continue;
        g->vec[k] = fits(g, k);
    }
}

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
    c_vectorize(g);
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

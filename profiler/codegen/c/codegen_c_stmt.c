/* Statements of a C program: stores (of scalars, vectors, tuples), loops (unrolled, plain, in
 * vectors), conditions and declarations. */
#include <stdio.h>
#include <string.h>

#include "profiler/codegen/c/codegen_c_internal.h"

/* Values as text of C: scalars, and vectors of g->lanes elements. */

/* ---- indices ---- */

/* Packed parameters: the digits of the indices, in the order of the loops. */
static void packed(cd_c_writer *g, uint32_t tensor, const cd_expr *const *x,
                   cd_codegen_affine *out) {
    int64_t stride = 1;
    for (uint32_t k = g->n_digit[tensor]; k-- > 0;) {
        const cd_codegen_digit *d = &g->digit[tensor][k];
        cd_codegen_affine a;
        cd_codegen_env_affine_applied(&g->env, x[d->dim], &a);
        cd_codegen_affine_divide(&g->env, x[d->dim]->type, &a, d->div);
        cd_codegen_affine_modulo(&g->env, x[d->dim]->type, &a, d->extent);
        cd_codegen_affine_add(&g->env, out, &a, stride);
        stride *= d->extent;
    }
}

void cd_c_flat_index(cd_c_writer *g, uint32_t tensor, const cd_expr *const *x, uint32_t n,
                     cd_codegen_affine *out) {
    const cd_codegen_slot *s = &g->plan.slot[tensor];
    cd_codegen_affine a;
    *out = (cd_codegen_affine){0};
    if (g->n_digit[tensor]) {
        packed(g, tensor, x, out);
        return;
    }
    for (uint32_t d = 0; d < n && d < s->n_dim; d++) {
        /* a region of one: its index is its minimum */
        if (s->extent[d] == 1 && !s->is_arg) continue;
        cd_codegen_env_affine_applied(&g->env, x[d], &a);
        cd_codegen_affine_add(&g->env, out, &a, s->stride[d]);
        if (!s->min) continue;
        cd_codegen_env_affine(&g->env, s->min[d], &a);
        cd_codegen_affine_add(&g->env, out, &a, -s->stride[d]);
    }
}

/* ---- scalars ---- */

static cdmpp_status put_var(cd_codegen_expr *w, const cd_expr *v, cdmpp_err *err) {
    const cd_c_writer *g = w->ctx;
    if (v->u.i >= (int64_t)g->nest->n_var)
        return CD_FAIL(err, EUNSUPPORTED, "a lane outside a vector");
    cd_buf_putf(w->out, "v%u", g->plan.var[v->u.i]);
    return CDMPP_OK;
}

static cdmpp_status put_load(cd_codegen_expr *w, const cd_expr *e, cdmpp_err *err) {
    cd_c_writer *g = w->ctx;
    const char *wrap = cd_codegen_expr_load_wrap(e->type);
    const uint32_t lanes = g->lanes;
    cd_codegen_affine flat;
    (void)err;
    g->lanes = 0;
    cd_c_flat_index(g, (uint32_t)e->u.i, e->a, e->n, &flat);
    if (*wrap) cd_buf_putf(w->out, "%s(", wrap);
    cd_c_write_access(g, w->out, (uint32_t)e->u.i, &flat, 0, false);
    if (*wrap) cd_buf_puts(w->out, ")");
    g->lanes = lanes;
    return CDMPP_OK;
}

cdmpp_status cd_c_write_value(cd_c_writer *g, cd_buf *out, const cd_expr *e, cdmpp_err *err) {
    cd_codegen_expr w = {.dialect = CD_DIALECT_C,
                         .out = out,
                         .ranges = &g->env.ranges,
                         .var = put_var,
                         .load = put_load,
                         .ctx = g};
    return cd_codegen_expr_write(&w, e, err);
}

/* ---- vectors ---- */

/* Every lane on its own: {a, b, c, d}. */
static cdmpp_status lane_by_lane(cd_c_writer *g, cd_buf *out, const cd_expr *e, cdmpp_err *err) {
    const uint32_t lanes = g->lanes;
    cdmpp_status st = CDMPP_OK;
    cd_buf_putf(out, "((cd_%s%u){", cd_c_vector(e->type), lanes);
    g->lanes = 0;
    for (uint32_t k = 0; k < lanes && !st; k++) {
        if (k) cd_buf_puts(out, ", ");
        st = cd_c_write_value(g, out, cd_codegen_env_at_lane(&g->env, e, k), err);
    }
    g->lanes = lanes;
    cd_buf_puts(out, "})");
    return st;
}

static cdmpp_status splat(cd_c_writer *g, cd_buf *out, const cd_expr *e, cdmpp_err *err) {
    const uint32_t lanes = g->lanes;
    cd_buf_putf(out, "cd_splat_%s%u(", cd_c_vector(e->type), lanes);
    g->lanes = 0;
    CD_TRY(cd_c_write_value(g, out, e, err));
    g->lanes = lanes;
    cd_buf_puts(out, ")");
    return CDMPP_OK;
}

/* Factor of the lane in a flat index; 0 where other terms depend on it too. */
static int64_t lane_factor(const cd_c_writer *g, cd_codegen_affine *flat) {
    int64_t k = 0;
    for (uint32_t i = 0; i < flat->n; i++) {
        if (cd_codegen_env_is_lane(&g->env, flat->t[i].atom)) k = flat->t[i].k;
        else if (cd_codegen_env_has_lane(&g->env, flat->t[i].atom)) return 0;
    }
    return k;
}

static void drop_lane(const cd_c_writer *g, cd_codegen_affine *flat) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < flat->n; i++)
        if (!cd_codegen_env_is_lane(&g->env, flat->t[i].atom)) flat->t[n++] = flat->t[i];
    flat->n = n;
}

static bool reads_index(const cd_codegen_affine *flat) {
    for (uint32_t i = 0; i < flat->n; i++)
        if (flat->t[i].atom->flags & CD_EXPR_HAS_LOAD) return true;
    return false;
}

/* In a row forwards: a vector load; backwards: a reversed one; otherwise lane by lane. */
static cdmpp_status load(cd_c_writer *g, cd_buf *out, const cd_expr *e, cdmpp_err *err) {
    cd_codegen_affine flat;
    cd_c_flat_index(g, (uint32_t)e->u.i, e->a, e->n, &flat);
    const int64_t k = lane_factor(g, &flat);
    if ((k != 1 && k != -1) || reads_index(&flat)) return lane_by_lane(g, out, e, err);
    drop_lane(g, &flat);
    if (k < 0) {
        flat.c -= g->lanes - 1;
        cd_buf_putf(out, "cd_reverse_%s%u(", cd_c_vector(e->type), g->lanes);
    }
    cd_c_write_access(g, out, (uint32_t)e->u.i, &flat, g->lanes, false);
    if (k < 0) cd_buf_puts(out, ")");
    return CDMPP_OK;
}

static cdmpp_status c_write_vector(cd_c_writer *g, cd_buf *out, const cd_expr *e, cdmpp_err *err);

static cdmpp_status choice(cd_c_writer *g, cd_buf *out, const cd_expr *e, cdmpp_err *err) {
    if (cd_codegen_env_has_lane(&g->env, e->a[0])) return lane_by_lane(g, out, e, err);
    const uint32_t lanes = g->lanes;
    cd_buf_puts(out, "(");
    g->lanes = 0;
    CD_TRY(cd_c_write_value(g, out, e->a[0], err));
    g->lanes = lanes;
    cd_buf_putf(out, " ? (cd_%s%u)", cd_c_vector(e->type), lanes);
    CD_TRY(c_write_vector(g, out, e->a[1], err));
    cd_buf_putf(out, " : (cd_%s%u)", cd_c_vector(e->type), lanes);
    CD_TRY(c_write_vector(g, out, e->a[2], err));
    cd_buf_puts(out, ")");
    return CDMPP_OK;
}

static cdmpp_status around(cd_c_writer *g, cd_buf *out, const char *before, const cd_expr *a,
                           const char *after, cdmpp_err *err) {
    cd_buf_puts(out, before);
    CD_TRY(c_write_vector(g, out, a, err));
    cd_buf_puts(out, after);
    return CDMPP_OK;
}

/* acc + dot4(x, y); acc NULL: 0. */
static cdmpp_status dot4(cd_c_writer *g, cd_buf *out, const cd_expr *acc, const cd_expr *e,
                         cdmpp_err *err) {
    cd_buf_putf(out, "cd_dot4_i32x%u(", g->lanes);
    if (acc) CD_TRY(c_write_vector(g, out, acc, err));
    else cd_buf_putf(out, "(cd_i32x%u){0}", g->lanes);
    CD_TRY(around(g, out, ", ", e->a[0], ", ", err));
    return around(g, out, "", e->a[1], ")", err);
}

static cdmpp_status call(cd_c_writer *g, cd_buf *out, const cd_expr *e, cdmpp_err *err) {
    if (!strcmp(e->u.name, "if_then_else") && e->n == 3) return choice(g, out, e, err);
    if (cd_expr_is_dot4(e)) return dot4(g, out, NULL, e, err);
    if (e->type != CD_F32 || e->n != 1) return lane_by_lane(g, out, e, err);
    const char *f = cd_codegen_expr_function(CD_DIALECT_C, e->u.name, CD_F32);
    if (!f) return lane_by_lane(g, out, e, err);
    if (!strcmp(e->u.name, "sigmoid")) {
        cd_buf_putf(out, "(1.0f / (1.0f + cd_map_f32x%u(expf, -", g->lanes);
        return around(g, out, "", e->a[0], ")))", err);
    }
    if (!strcmp(e->u.name, "sqrt")) cd_buf_putf(out, "cd_sqrt_f32x%u(", g->lanes);
    else if (!strcmp(e->u.name, "rsqrt")) cd_buf_putf(out, "(1.0f / cd_sqrt_f32x%u(", g->lanes);
    else if (!strcmp(e->u.name, "nearbyint")) cd_buf_putf(out, "cd_round_f32x%u(", g->lanes);
    else cd_buf_putf(out, "cd_map_f32x%u(%s, ", g->lanes, f);
    return around(g, out, "", e->a[0], strcmp(e->u.name, "rsqrt") ? ")" : "))", err);
}

static cdmpp_status binary(cd_c_writer *g, cd_buf *out, const cd_expr *e, cdmpp_err *err) {
    if (e->op == CD_ADD && cd_expr_is_dot4(e->a[1])) return dot4(g, out, e->a[0], e->a[1], err);
    const bool order = e->op == CD_MIN || e->op == CD_MAX;
    const char *text = e->op == CD_ADD   ? " + "
                       : e->op == CD_SUB ? " - "
                       : e->op == CD_MUL ? " * "
                       : e->op == CD_DIV ? " / "
                                         : NULL;
    if (!order && (!text || (e->op == CD_DIV && e->type != CD_F32)))
        return lane_by_lane(g, out, e, err);
    if (order)
        cd_buf_putf(out, "cd_%s_%s%u", e->op == CD_MIN ? "min" : "max", cd_c_vector(e->type),
                    g->lanes);
    CD_TRY(around(g, out, "(", e->a[0], order ? ", " : text, err));
    return around(g, out, "", e->a[1], ")", err);
}

static bool is_byte(cd_dtype t) { return cd_expr_dtype_bits(t) == 8; }

/* Bytes by way of 32 bits: for that the compilers have instructions. */
static cdmpp_status cast(cd_c_writer *g, cd_buf *out, const cd_expr *e, cdmpp_err *err) {
    const cd_dtype from = e->a[0]->type;
    if (!cd_c_has_vector(from) || !cd_c_has_vector(e->type)) return lane_by_lane(g, out, e, err);
    if (is_byte(e->type)) cd_buf_putf(out, "cd_narrow_%s%u(", cd_c_vector(e->type), g->lanes);
    cd_buf_puts(out, "__builtin_convertvector(");
    if (is_byte(from)) cd_buf_putf(out, "cd_wide_%s%u(", cd_c_vector(from), g->lanes);
    CD_TRY(c_write_vector(g, out, e->a[0], err));
    cd_buf_putf(out, "%s, cd_%s%u)%s", is_byte(from) ? ")" : "",
                is_byte(e->type) ? "i32x" : cd_c_vector(e->type), g->lanes,
                is_byte(e->type) ? ")" : "");
    return CDMPP_OK;
}

/* A value that does not depend on the lane is a scalar, spread. An operator without a vector form
 * is computed lane by lane. */
static cdmpp_status c_write_vector(cd_c_writer *g, cd_buf *out, const cd_expr *e, cdmpp_err *err) {
    if (!cd_codegen_env_has_lane(&g->env, e)) return splat(g, out, e, err);
    switch ((cd_expr_op)e->op) {
    case CD_LOAD: return load(g, out, e, err);
    case CD_SELECT: return choice(g, out, e, err);
    case CD_CALL: return call(g, out, e, err);
    case CD_CAST: return cast(g, out, e, err);
    default:
        return cd_expr_op_is_arith((cd_expr_op)e->op) && !is_byte(e->type)
                   ? binary(g, out, e, err)
                   : lane_by_lane(g, out, e, err);
    }
}

#define MOST_CHUNKS 8 /* vector statements for one vectorised loop; longer ones stay loops */

/* ---- stores ---- */

static const cd_expr **apply_all(cd_c_writer *g, const cd_expr *const *x, uint32_t n) {
    const cd_expr **y = cd_arena_alloc(&g->env.pool.arena, n + 1, sizeof *y);
    if (!y) {
        g->oom = true;
        return NULL;
    }
    for (uint32_t k = 0; k < n; k++) y[k] = cd_codegen_env_apply(&g->env, x[k]);
    return y;
}

static cdmpp_status flat_of(cd_c_writer *g, const cd_ast_node *n, cd_codegen_affine *flat,
                            cdmpp_err *err) {
    const cd_expr **x = apply_all(g, n->x, n->n);
    if (!x) return CD_FAIL(err, ENOMEM, "code");
    cd_c_flat_index(g, n->tensor, x, n->n, flat);
    return CDMPP_OK;
}

/* What stores need around the value, whose text is given. */
static void assign(cd_c_writer *g, const cd_ast_node *n, const cd_codegen_affine *flat,
                   const cd_buf *value) {
    const char *wrap = cd_codegen_expr_store_wrap(g->plan.slot[n->tensor].dtype);
    cd_buf *out = cd_c_body(g);
    cd_c_write_access(g, out, n->tensor, flat, 0, true);
    out = cd_c_body(g);
    cd_buf_putf(out, "%s%s", wrap, *wrap ? "(" : "");
    cd_buf_put(out, value->p, value->n);
    cd_buf_puts(out, *wrap ? "));\n" : ");\n");
}

/* The lanes of a value go to places that are not in a row. */
static cdmpp_status scatter(cd_c_writer *g, const cd_ast_node *n, const cd_codegen_affine *flat,
                            const cd_buf *value) {
    const uint32_t lanes = g->lanes;
    const unsigned x = ++g->n_name;
    cd_buf_putf(cd_c_body(g), "{ const cd_%s%u x%u = ", cd_c_vector(n->e->type), lanes, x);
    cd_buf_put(cd_c_body(g), value->p, value->n);
    cd_buf_puts(cd_c_body(g), ";\n");
    g->lanes = 0;
    for (uint32_t k = 0; k < lanes; k++) {
        cd_codegen_affine at = {.c = flat->c};
        for (uint32_t i = 0; i < flat->n; i++) {
            cd_codegen_affine a;
            cd_codegen_env_affine_applied(&g->env,
                                          cd_codegen_env_at_lane(&g->env, flat->t[i].atom, k), &a);
            cd_codegen_affine_add(&g->env, &at, &a, flat->t[i].k);
        }
        cd_c_write_access(g, cd_c_body(g), n->tensor, &at, 0, true);
        cd_buf_putf(cd_c_body(g), "x%u[%u]);\n", x, k);
    }
    g->lanes = lanes;
    cd_buf_puts(cd_c_body(g), "}\n");
    return CDMPP_OK;
}

/* The pair gets a variable, so that later loads can take it from there: see codegen_c_scope.c. */
static void pair_store(cd_c_writer *g, const cd_ast_node *n, const cd_codegen_affine *flat,
                       const cd_buf *value) {
    const uint32_t reg = ++g->n_reg;
    cd_buf *out = cd_c_body(g);
    cd_buf_putf(out, "const cd_%s2 r%u = ", cd_c_vector(n->e->type), reg);
    cd_buf_put(out, value->p, value->n);
    cd_buf_puts(out, ";\n");
    cd_c_write_access(g, out, n->tensor, flat, 2, true);
    cd_buf_putf(out, "r%u);\n", reg);
    if (g->n_token) cd_c_pair_add(g, &g->token[g->n_token - 1], reg);
}

/* In a row (the lane's factor is 1): one vector store. Otherwise lane by lane. */
static cdmpp_status vector_store(cd_c_writer *g, const cd_ast_node *n,
                                 const cd_codegen_affine *flat, const cd_buf *value) {
    cd_codegen_affine base = {.c = flat->c};
    int64_t factor = 0;
    for (uint32_t k = 0; k < flat->n; k++) {
        if (cd_codegen_env_is_lane(&g->env, flat->t[k].atom)) factor = flat->t[k].k;
        else if (cd_codegen_env_has_lane(&g->env, flat->t[k].atom))
            return scatter(g, n, flat, value);
        else base.t[base.n++] = flat->t[k];
    }
    if (factor != 1) return scatter(g, n, flat, value);
    if (g->lanes == 2) {
        pair_store(g, n, &base, value);
        return CDMPP_OK;
    }
    cd_c_write_access(g, cd_c_body(g), n->tensor, &base, g->lanes, true);
    cd_buf_put(cd_c_body(g), value->p, value->n);
    cd_buf_puts(cd_c_body(g), ");\n");
    return CDMPP_OK;
}

/* The index is found before the value: both are under the same environment. */
static cdmpp_status store(cd_c_writer *g, const cd_ast_node *n, cdmpp_err *err) {
    cd_buf value = {0};
    cd_codegen_affine flat;
    CD_TRY(flat_of(g, n, &flat, err));
    const cd_expr *e = cd_codegen_env_apply(&g->env, n->e);
    cdmpp_status st =
        g->lanes ? c_write_vector(g, &value, e, err) : cd_c_write_value(g, &value, e, err);
    if (value.oom) g->oom = true;
    if (!st && value.p) {
        if (g->lanes) st = vector_store(g, n, &flat, &value);
        else assign(g, n, &flat, &value);
    }
    cd_buf_free(&value);
    return st;
}

/* ---- several results of one reduction ---- */

typedef struct {
    uint32_t first, last;
} tensors;

static bool reads_none(void *ctx, const cd_expr *e) {
    const tensors *t = ctx;
    return e->op != CD_LOAD || (uint32_t)e->u.i < t->first || (uint32_t)e->u.i > t->last;
}

/* Nodes from..: stores to the results of one operator at one place, of which a later one reads an
 * earlier. */
int32_t cd_c_tuple_end(const cd_nest *nest, int32_t from, int32_t to) {
    const cd_ast *t = nest->ast;
    int32_t k = from + 1;
    bool reads = false;
    const tensors all = {t->node[from].tensor, t->node[from].tensor + (uint32_t)(to - from)};
    for (; k < to; k++) {
        const cd_ast_node *n = &t->node[k], *o = &t->node[from];
        if (n->dead || n->kind != CD_AST_STORE || n->tensor != o->tensor + (uint32_t)(k - from) ||
            n->n != o->n)
            break;
        /* the next operator's */
        if (nest->tensor[n->tensor].output != nest->tensor[o->tensor].output + (uint32_t)(k - from))
            break;
        bool same = true;
        for (uint32_t d = 0; d < n->n; d++) same &= n->x[d] == o->x[d];
        if (!same) break;
        reads |= !cd_expr_visit(n->e, reads_none, (void *)(uintptr_t)&all);
    }
    return reads ? k : from + 1;
}

/* All values first, then all stores. */
static cdmpp_status tuple(cd_c_writer *g, int32_t from, int32_t to, cdmpp_err *err) {
    const unsigned x = g->n_name + 1;
    g->n_name += (uint32_t)(to - from);
    cd_buf_puts(cd_c_body(g), "{\n");
    for (int32_t k = from; k < to; k++) {
        const cd_expr *e = cd_codegen_env_apply(&g->env, g->t->node[k].e);
        cd_buf value = {0};
        const cdmpp_status st = cd_c_write_value(g, &value, e, err);
        cd_buf_putf(cd_c_body(g), "const %s x%u = ", cd_codegen_value_type(CD_DIALECT_C, e->type),
                    x + (unsigned)(k - from));
        if (value.p) cd_buf_put(cd_c_body(g), value.p, value.n);
        cd_buf_puts(cd_c_body(g), ";\n");
        if (value.oom) g->oom = true;
        cd_buf_free(&value);
        if (st) return st;
    }
    for (int32_t k = from; k < to; k++) {
        const cd_ast_node *n = &g->t->node[k];
        cd_codegen_affine flat;
        cd_buf name = {0};
        CD_TRY(flat_of(g, n, &flat, err));
        cd_buf_putf(&name, "x%u", x + (unsigned)(k - from));
        if (name.p) assign(g, n, &flat, &name);
        cd_buf_free(&name);
    }
    cd_buf_puts(cd_c_body(g), "}\n");
    return CDMPP_OK;
}

/* ---- loops ---- */

static cdmpp_status copies(cd_c_writer *g, int32_t k, cdmpp_err *err) {
    const cd_ast_node *n = &g->t->node[k];
    struct cd_codegen_env_var *v = &g->env.var[n->var->u.i];
    cdmpp_status st = CDMPP_OK;
    for (int64_t i = 0; i < n->extent && !st; i++) {
        *v = (struct cd_codegen_env_var){.fixed = true, .value = i};
        st = cd_c_write_range(g, k + 1, n->end, err);
    }
    *v = (struct cd_codegen_env_var){0};
    return st;
}

/* The body is written into a scope of its own, with the head kept for its end. */
static cdmpp_status plain_loop(cd_c_writer *g, int32_t k, cdmpp_err *err) {
    const cd_ast_node *n = &g->t->node[k];
    const uint32_t var = (uint32_t)n->var->u.i, v = g->plan.var[var];
    cd_buf head = {0};
    cd_buf_putf(&head, "for (%s v%u = 0; v%u < ", cd_codegen_value_type(CD_DIALECT_C, n->var->type),
                v, v);
    cdmpp_status st = cd_c_write_value(g, &head, cd_codegen_env_apply(&g->env, n->extent_e), err);
    cd_buf_putf(&head, "; v%u++)", v);
    if (!st && (head.oom || !cd_c_scope_open(g, var))) st = CD_FAIL(err, ENOMEM, "code");
    if (!st) {
        st = cd_c_write_range(g, k + 1, n->end, err);
        cd_c_scope_close_loop(g, head.p);
    }
    cd_buf_free(&head);
    return st;
}

/* Elements from..: one statement for as many as a register has. */
static cdmpp_status chunks(cd_c_writer *g, int32_t k, int64_t from, cdmpp_err *err) {
    const cd_ast_node *n = &g->t->node[k];
    struct cd_codegen_env_var *v = &g->env.var[n->var->u.i];
    cdmpp_status st = CDMPP_OK;
    for (int64_t at = from; at < n->extent && !st;) {
        uint32_t lanes = g->max_lanes;
        while (lanes > 1 && at + lanes > n->extent) lanes /= 2;
        *v = (struct cd_codegen_env_var){.fixed = lanes == 1, .lane = lanes > 1, .value = at};
        cd_codegen_env_set_lanes(&g->env, lanes);
        g->lanes = lanes > 1 ? lanes : 0;
        st = cd_c_write_range(g, k + 1, n->end, err);
        at += lanes;
    }
    *v = (struct cd_codegen_env_var){0};
    g->lanes = 0;
    return st;
}

/* Long ones: a loop over full registers, then the rest. */
static cdmpp_status strips(cd_c_writer *g, int32_t k, cdmpp_err *err) {
    const cd_ast_node *n = &g->t->node[k];
    const uint32_t var = (uint32_t)n->var->u.i, v = g->plan.var[var], lanes = g->max_lanes;
    const int64_t whole = n->extent / lanes * lanes;
    const cd_bound all = g->env.bound[var];
    char head[96];
    cdmpp_status st = CDMPP_OK;
    snprintf(head, sizeof head, "for (int v%u = 0; v%u < %lld; v%u += %u)", v, v, (long long)whole,
             v, lanes);
    if (!cd_c_scope_open(g, var)) return CD_FAIL(err, ENOMEM, "code");
    g->env.var[var] = (struct cd_codegen_env_var){.lane = true, .both = true};
    g->env.bound[var] = (cd_bound){0, whole - lanes};
    cd_codegen_env_set_lanes(&g->env, lanes);
    g->lanes = lanes;
    st = cd_c_write_range(g, k + 1, n->end, err);
    g->lanes = 0;
    g->env.var[var] = (struct cd_codegen_env_var){0};
    g->env.bound[var] = all;
    cd_c_scope_close_loop(g, head);
    return st || whole == n->extent ? st : chunks(g, k, whole, err);
}

static cdmpp_status loop(cd_c_writer *g, int32_t k, cdmpp_err *err) {
    const cd_ast_node *n = &g->t->node[k];
    const bool known = n->extent_e->op == CD_INT;
    if (n->loop == CD_LOOP_PARALLEL && !g->in_function && !g->lanes)
        return cd_c_write_parallel(g, k, err);
    if (g->vec[k] && !g->lanes)
        return n->extent <= (int64_t)MOST_CHUNKS * g->max_lanes ? chunks(g, k, 0, err)
                                                                : strips(g, k, err);
    if (g->copy[k] || (known && n->extent == 1)) return copies(g, k, err);
    return plain_loop(g, k, err);
}

/* ---- others ---- */

/* A condition that the ranges decide is not written. Pairs in variables do not survive a
 * condition. */
static cdmpp_status branch(cd_c_writer *g, int32_t k, cdmpp_err *err) {
    const cd_ast_node *n = &g->t->node[k];
    const cd_expr *c = cd_codegen_env_apply(&g->env, n->e);
    const int d = cd_codegen_range_decide(&g->env.ranges, c);
    const uint32_t lanes = g->lanes;
    if (d >= 0) return d ? cd_c_write_range(g, k + 1, n->end, err) : CDMPP_OK;
    cd_buf cond = {0};
    g->lanes = 0;
    cdmpp_status st = cd_c_write_value(g, &cond, c, err);
    g->lanes = lanes;
    cd_buf_puts(cd_c_body(g), "if (");
    if (cond.p) cd_buf_put(cd_c_body(g), cond.p, cond.n);
    cd_buf_free(&cond);
    cd_buf_puts(cd_c_body(g), ") {\n");
    g->fn.if_depth++;
    cd_c_pair_clear(g);
    if (!st) st = cd_c_write_range(g, k + 1, n->end, err);
    cd_c_pair_clear(g);
    g->fn.if_depth--;
    cd_buf_puts(cd_c_body(g), "}\n");
    return st;
}

static void declare(cd_c_writer *g, uint32_t tensor) {
    const cd_codegen_slot *s = &g->plan.slot[tensor];
    if (!s->used || s->is_arg || g->scratch[tensor] != UINT32_MAX) return;
    g->instance[tensor]++;
    g->home[tensor] = g->fn.depth;
    cd_buf *d = &cd_c_top(g)->defs;
    cd_buf_putf(d, "%s ", cd_codegen_storage_type(CD_DIALECT_C, s->dtype));
    cd_c_write_tensor_name(g, d, tensor, g->instance[tensor]);
    cd_buf_putf(d, "[%lld] __attribute__((aligned(64)));\n",
                (long long)(s->elements ? s->elements : 1));
}

/* By kind of node; thread axes have no meaning in C. */
static cdmpp_status one(cd_c_writer *g, int32_t k, cdmpp_err *err) {
    const cd_ast_node *n = &g->t->node[k];
    switch ((cd_ast_kind)n->kind) {
    case CD_AST_FOR: return loop(g, k, err);
    case CD_AST_IF: return branch(g, k, err);
    case CD_AST_ATTR: return cd_c_write_range(g, k + 1, n->end, err);
    case CD_AST_REALIZE:
    case CD_AST_ALLOC: declare(g, n->tensor); return cd_c_write_range(g, k + 1, n->end, err);
    case CD_AST_LET: return CDMPP_OK;
    case CD_AST_STORE: return store(g, n, err);
    default: return CD_FAIL(err, EUNSUPPORTED, "thread axes in a program for a CPU");
    }
}

/* Stores of one tuple are written together. */
cdmpp_status cd_c_write_range(cd_c_writer *g, int32_t from, int32_t to, cdmpp_err *err) {
    for (int32_t k = from; k < to;) {
        if (g->t->node[k].dead) {
            k++;
            continue;
        }
        g->rest |= g->t->node[k].kind == CD_AST_STORE && !g->in_function;
        const bool is_store = g->t->node[k].kind == CD_AST_STORE && !g->lanes;
        const int32_t end = is_store ? cd_c_tuple_end(g->nest, k, to) : k + 1;
        if (end > k + 1) {
            CD_TRY(tuple(g, k, end, err));
            k = end;
            continue;
        }
        CD_TRY(one(g, k, err));
        if (g->oom) return CD_FAIL(err, ENOMEM, "code");
        k = g->t->node[k].end;
    }
    return CDMPP_OK;
}

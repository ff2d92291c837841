/* Values as text of C: scalars, and vectors of g->lanes elements. */
#include <string.h>

#include "profiler/codegen/c/codegen_c_internal.h"

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

static cdmpp_status choice(cd_c_writer *g, cd_buf *out, const cd_expr *e, cdmpp_err *err) {
    if (cd_codegen_env_has_lane(&g->env, e->a[0])) return lane_by_lane(g, out, e, err);
    const uint32_t lanes = g->lanes;
    cd_buf_puts(out, "(");
    g->lanes = 0;
    CD_TRY(cd_c_write_value(g, out, e->a[0], err));
    g->lanes = lanes;
    cd_buf_putf(out, " ? (cd_%s%u)", cd_c_vector(e->type), lanes);
    CD_TRY(cd_c_write_vector(g, out, e->a[1], err));
    cd_buf_putf(out, " : (cd_%s%u)", cd_c_vector(e->type), lanes);
    CD_TRY(cd_c_write_vector(g, out, e->a[2], err));
    cd_buf_puts(out, ")");
    return CDMPP_OK;
}

static cdmpp_status around(cd_c_writer *g, cd_buf *out, const char *before, const cd_expr *a,
                           const char *after, cdmpp_err *err) {
    cd_buf_puts(out, before);
    CD_TRY(cd_c_write_vector(g, out, a, err));
    cd_buf_puts(out, after);
    return CDMPP_OK;
}

/* acc + dot4(x, y); acc NULL: 0. */
static cdmpp_status dot4(cd_c_writer *g, cd_buf *out, const cd_expr *acc, const cd_expr *e,
                         cdmpp_err *err) {
    cd_buf_putf(out, "cd_dot4_i32x%u(", g->lanes);
    if (acc) CD_TRY(cd_c_write_vector(g, out, acc, err));
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
    CD_TRY(cd_c_write_vector(g, out, e->a[0], err));
    cd_buf_putf(out, "%s, cd_%s%u)%s", is_byte(from) ? ")" : "",
                is_byte(e->type) ? "i32x" : cd_c_vector(e->type), g->lanes,
                is_byte(e->type) ? ")" : "");
    return CDMPP_OK;
}

/* A value that does not depend on the lane is a scalar, spread. An operator without a vector form
 * is computed lane by lane. */
cdmpp_status cd_c_write_vector(cd_c_writer *g, cd_buf *out, const cd_expr *e, cdmpp_err *err) {
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

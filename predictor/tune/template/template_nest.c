/* Recognises sums of products in a task's definition: its one sum, the two elements that are
 * multiplied, and the factor of each axis in their indices. */
#include <string.h>

#include "predictor/tune/template/template_internal.h"

bool cd_template_touches(const cd_template_operand *o, uint32_t axis) {
    for (uint32_t d = 0; d < o->rank; d++)
        if (o->factor[d][axis]) return true;
    return false;
}

/* ---- the sum ---- */
static bool is_zero(const cd_expr *e) {
    return e->op == CD_FLOAT ? e->u.f == 0 : e->op == CD_INT && e->u.i == 0;
}

static bool is_sum(const cd_te_reducer *r) {
    const cd_expr *e = r->result[0];
    if (r->n != 1 || e->op != CD_ADD || !is_zero(r->identity[0])) return false;
    return (e->a[0] == r->lhs[0] && e->a[1] == r->rhs[0]) ||
           (e->a[0] == r->rhs[0] && e->a[1] == r->lhs[0]);
}

/* The task's only reduction. */
static cdmpp_status find_sum(const cd_te_dag *dag, uint32_t *at, cdmpp_err *err) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < dag->n_op; k++)
        if (!dag->op[k].is_placeholder && dag->op[k].red) {
            n++;
            *at = k;
        }
    if (n != 1) return CD_FAIL(err, EUNSUPPORTED, "it has %u reductions, a template has one", n);
    const cd_te_op *op = &dag->op[*at];
    if (!is_sum(op->red) || op->cond || op->init)
        return CD_FAIL(err, EUNSUPPORTED, "its reduction is no plain sum");
    const cd_expr *e = op->body[0];
    if (((e->op != CD_MUL || e->type != CD_F32) && !cd_expr_is_dot4(e)) || e->a[0]->op != CD_LOAD ||
        e->a[1]->op != CD_LOAD)
        return CD_FAIL(err, EUNSUPPORTED, "what it sums is no product of two float32 elements");
    return CDMPP_OK;
}

/* ---- axes and indices ---- */
static cdmpp_status read_axes(const cd_te_op *op, cd_template_nest *n, cdmpp_err *err) {
    n->n_space = op->n_axis;
    n->n_axis = op->n_axis + op->n_raxis;
    if (n->n_axis > CD_TEMPLATE_AXES || !op->n_axis || !op->n_raxis)
        return CD_FAIL(err, EUNSUPPORTED, "its nest has %u loops, templates are for 2 to %d",
                       n->n_axis, CD_TEMPLATE_AXES);
    for (uint32_t k = 0; k < n->n_axis; k++) {
        const cd_te_iter *it = k < op->n_axis ? &op->axis[k] : &op->raxis[k - op->n_axis];
        if (it->extent->op != CD_INT || it->extent->u.i < 1 || it->extent->u.i > INT32_MAX)
            return CD_FAIL(err, EUNSUPPORTED,
                           "the length of its loop %s is no fixed number of 32 bits", it->name);
        n->extent[k] = it->extent->u.i;
    }
    return CDMPP_OK;
}

static const cd_expr *axis_of(const cd_te_op *op, uint32_t k) {
    return k < op->n_axis ? op->axis[k].var : op->raxis[k - op->n_axis].var;
}

static bool add_linear(const cd_te_op *op, const cd_expr *e, int64_t times, int64_t *factor);

/* Factors beyond 32 bits are those of no tensor. */
static bool add_product(const cd_te_op *op, const cd_expr *e, int64_t times, int64_t by,
                        int64_t *factor) {
    int64_t k;
    return !__builtin_mul_overflow(times, by, &k) && llabs(k) <= INT32_MAX &&
           add_linear(op, e, k, factor);
}

/* factor[a] += times * that of axis a in e. False: e is not linear. */
static bool add_linear(const cd_te_op *op, const cd_expr *e, int64_t times, int64_t *factor) {
    const uint32_t n = op->n_axis + op->n_raxis;
    switch ((cd_expr_op)e->op) {
    case CD_INT: return true;
    case CD_CAST: return add_linear(op, e->a[0], times, factor);
    case CD_VAR:
        for (uint32_t k = 0; k < n; k++)
            if (axis_of(op, k) == e) factor[k] += times;
        return true;
    case CD_ADD:
        return add_linear(op, e->a[0], times, factor) && add_linear(op, e->a[1], times, factor);
    case CD_SUB:
        return add_linear(op, e->a[0], times, factor) && add_linear(op, e->a[1], -times, factor);
    case CD_MUL:
        if (e->a[1]->op == CD_INT) return add_product(op, e->a[0], times, e->a[1]->u.i, factor);
        return e->a[0]->op == CD_INT && add_product(op, e->a[1], times, e->a[0]->u.i, factor);
    default: return false;
    }
}

static bool is_condition(void *ctx, const cd_expr *e) {
    bool *found = ctx;
    if (e->op == CD_SELECT || (e->op == CD_CALL && !strcmp(e->u.name, "if_then_else")))
        *found = true;
    return !*found;
}

static cdmpp_status read_operand(const cd_te_dag *dag, const cd_te_op *op, const cd_expr *load,
                                 cd_template_operand *o, cdmpp_err *err) {
    o->op = dag->tensor_op[load->u.i];
    const cd_te_op *from = &dag->op[o->op];
    o->rank = load->n;
    o->packed = from->is_placeholder && from->layout_free;
    if (!from->is_placeholder) cd_expr_visit(from->body[0], is_condition, &o->guarded);
    if (load->n > CD_TEMPLATE_RANK || load->type != op->body[0]->type)
        return CD_FAIL(err, EUNSUPPORTED,
                       "it multiplies no float32 tensor of at most %d dimensions",
                       CD_TEMPLATE_RANK);
    for (uint32_t d = 0; d < load->n; d++) {
        o->extent[d] = from->shape[d];
        if (!add_linear(op, load->a[d], 1, o->factor[d]))
            return CD_FAIL(err, EUNSUPPORTED, "an index of %s is not linear in the loops",
                           from->name);
    }
    return CDMPP_OK;
}

static void read_result(const cd_te_op *op, cd_template_operand *o) {
    o->rank = op->n_axis;
    for (uint32_t d = 0; d < op->n_axis; d++) {
        o->extent[d] = op->shape[d];
        o->factor[d][d] = 1;
    }
}

/* ---- what makes tiles worth it ---- */
/* An element is used again by every axis that its operand does not have. */
static cdmpp_status check_reuse(const cd_template_nest *n, cdmpp_err *err) {
    bool own[2] = {false, false};
    for (uint32_t k = 0; k < n->n_axis; k++) {
        const bool x = cd_template_touches(&n->in[0], k), y = cd_template_touches(&n->in[1], k);
        if (k >= n->n_space && !(x && y))
            return CD_FAIL(err, EUNSUPPORTED, "a loop of the sum is in one operand only");
        if (k < n->n_space && !x && !y)
            return CD_FAIL(err, EUNSUPPORTED, "a loop of the result is in no operand");
        own[0] |= x && !y;
        own[1] |= y && !x;
    }
    if (own[0] && own[1]) return CDMPP_OK;
    return CD_FAIL(err, EUNSUPPORTED,
                   "each loop of an operand is in the other one too (as of a depthwise "
                   "convolution): no element is used twice for tiles to keep");
}

cdmpp_status cd_template_nest_read(const cd_task *t, bool gpu, cd_template_nest *out,
                                   cdmpp_err *err) {
    *out = (cd_template_nest){0};
    if (!t->dag) return CD_FAIL(err, ENOTASK, "the task's definition could not be read");
    if (gpu) return CD_FAIL(err, EUNSUPPORTED, "templates are for CPUs");
    CD_TRY(find_sum(t->dag, &out->op, err));
    const cd_te_op *op = &t->dag->op[out->op];
    CD_TRY(read_axes(op, out, err));
    for (int k = 0; k < 2; k++)
        CD_TRY(read_operand(t->dag, op, op->body[0]->a[k], &out->in[k], err));
    read_result(op, &out->out);
    return check_reuse(out, err);
}

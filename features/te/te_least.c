/* The least that a definition asks of any device: a bound below every schedule's time. It counts
 * only what is plain to see, because a bound that is too high would correct right answers. */
#include "features/te/te.h"

#include <math.h>
#include <string.h>

typedef struct {
    const cd_te_dag *dag;
    const cd_te_op *op;
    /* of each operator before this one: part of its elements that may be other than zero */
    const double *share;
    bool condition; /* found in the body */
    /* product of shares of the tensors read; elements of the largest one */
    double read, source;
    /* narrowest that is read; CD_TE_N_LEAST: none, or one of which no peak is described */
    int type;
} looking;

static double elements(const cd_te_op *op) {
    double n = 1;
    for (uint32_t k = 0; k < op->rank; k++) n *= (double)op->shape[k];
    return n;
}

static int type_of(cd_dtype t) {
    const unsigned bits = cd_expr_dtype_bits(t);
    if (cd_expr_dtype_kind(t) == CD_T_BFLOAT && bits == 16) return CD_TE_LEAST_BF16;
    if (cd_expr_dtype_kind(t) != CD_T_FLOAT) return CD_TE_N_LEAST;
    return bits == 16   ? CD_TE_LEAST_F16
           : bits == 32 ? CD_TE_LEAST_F32
           : bits == 64 ? CD_TE_LEAST_F64
                        : CD_TE_N_LEAST;
}

static const cd_te_op *source_of(const looking *l, const cd_expr *load, uint32_t *at) {
    *at = l->dag->tensor_op[load->u.i];
    return &l->dag->op[*at];
}

/* Integers and unknown types stay what was found: their units are not described. */
static void look(looking *l, const cd_expr *e) {
    uint32_t at;
    if (e->op == CD_SELECT || (e->op == CD_CALL && !strcmp(e->u.name, "if_then_else")))
        l->condition = true;
    if (e->op == CD_LOAD) {
        const cd_te_op *from = source_of(l, e, &at);
        const int t = type_of(e->type);
        l->read *= l->share[at];
        l->source = fmax(l->source, elements(from));
        if (t == CD_TE_N_LEAST || l->type == -1) l->type = t;
        else if (l->type < CD_TE_N_LEAST && t < l->type) l->type = t;
        return;
    }
    for (uint32_t k = 0; k < e->n; k++) look(l, e->a[k]);
}

static looking look_at(const cd_te_dag *d, const cd_te_op *op, const double *share) {
    looking l = {.dag = d, .op = op, .share = share, .read = 1, .type = -1};
    for (uint32_t k = 0; k < op->n_out; k++) look(&l, op->body[k]);
    return l;
}

/* Steps of a reduction that read no zero, two operations each where it multiplies. */
static void count(const cd_te_op *op, const looking *l, cd_te_least *out) {
    double n = elements(op);
    if (!op->red || op->n_out != 1 || op->cond || l->condition || l->type < 0 ||
        l->type == CD_TE_N_LEAST)
        return;
    for (uint32_t k = 0; k < op->n_raxis; k++)
        n *= cd_expr_is_int(op->raxis[k].extent) ? (double)op->raxis[k].extent->u.i : 0;
    out->flop[l->type] += n * l->read * (op->body[0]->op == CD_MUL ? 2 : 1);
}

/* ---- bytes ---- */
static bool covers(const cd_te_iter *it, uint32_t n, const cd_expr *var, int64_t extent) {
    for (uint32_t k = 0; k < n; k++)
        if (it[k].var == var)
            return cd_expr_is_int(it[k].min) && !it[k].min->u.i && cd_expr_is_int(it[k].extent) &&
                   it[k].extent->u.i == extent;
    return false;
}

/* Every index a variable of its own that runs over the whole dimension. */
static bool reads_all(const cd_te_op *op, const cd_te_op *from, const cd_expr *load) {
    for (uint32_t k = 0; k < load->n; k++) {
        const cd_expr *x = load->a[k];
        if (x->op != CD_VAR || (!covers(op->axis, op->n_axis, x, from->shape[k]) &&
                                !covers(op->raxis, op->n_raxis, x, from->shape[k])))
            return false;
        for (uint32_t j = 0; j < k; j++)
            if (load->a[j] == x) return false;
    }
    return true;
}

/* What stands under a condition may never be read. */
static bool finds(const cd_te_dag *d, const cd_te_op *op, const cd_expr *e, uint32_t want) {
    if (e->op == CD_SELECT || e->op == CD_CALL) return false;
    if (e->op == CD_LOAD) return d->tensor_op[e->u.i] == want && reads_all(op, &d->op[want], e);
    for (uint32_t k = 0; k < e->n; k++)
        if (finds(d, op, e->a[k], want)) return true;
    return false;
}

static bool is_read(const cd_te_dag *d, uint32_t want) {
    for (uint32_t i = want + 1; i < d->n_op; i++)
        for (uint32_t k = 0; !d->op[i].is_placeholder && k < d->op[i].n_out; k++)
            if (finds(d, &d->op[i], d->op[i].body[k], want)) return true;
    return false;
}

static double bytes_of(const cd_te_op *op) {
    double n = 0;
    for (uint32_t k = 0; k < op->n_out; k++) n += elements(op) * cd_expr_dtype_bytes(op->dtype[k]);
    return n;
}

void cd_te_least_of(const cd_te_dag *d, double *share, cd_te_least *out) {
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < d->n_op; i++) {
        const cd_te_op *op = &d->op[i];
        share[i] = 1;
        if (op->is_placeholder ? is_read(d, i) : op->is_output) out->bytes += bytes_of(op);
        if (op->is_placeholder) continue;
        const looking l = look_at(d, op, share);
        const double n = elements(op);
        count(op, &l, out);
        if (op->const_matrix || op->simplify_const) share[i] = 0;
        else if (!op->red && l.condition) share[i] = n > 0 ? fmin(1, l.source / n) * l.read : 0;
        else if (!op->red) share[i] = l.read;
    }
}

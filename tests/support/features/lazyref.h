/* lazyref.h -- single elements of a task by its own definition, in double: what a
 * program must compute, also where the whole tensor would take hours. */
#ifndef LAZYREF_H
#define LAZYREF_H
#include <math.h>
#include <string.h>

#include "arith.h"
#include "features/te/te.h"

typedef struct {
    const cd_te_dag *dag;
    double *var; /* (dag->pool.n_var) */
    double (*input)(const void *ctx, uint32_t tensor, int64_t element);
    const void *ctx;
    const char *why; /* what could not be evaluated; NULL */
} lazyref;

static inline double lr_value(lazyref *r, const cd_expr *e);
static inline double lr_element(lazyref *r, uint32_t tensor, const int64_t *ix);

static inline double lr_call(lazyref *r, const cd_expr *e) {
    static const struct {
        const char *name;
        double (*f)(double);
    } known[] = {{"exp", exp},   {"log", log},     {"sqrt", sqrt}, {"tanh", tanh},  {"erf", erf},
                 {"fabs", fabs}, {"floor", floor}, {"ceil", ceil}, {"round", round}};
    if (!strcmp(e->u.name, "likely")) return lr_value(r, e->a[0]);
    if (!strcmp(e->u.name, "if_then_else"))
        return lr_value(r, lr_value(r, e->a[0]) != 0 ? e->a[1] : e->a[2]);
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (!strcmp(e->u.name, known[k].name)) return known[k].f(lr_value(r, e->a[0]));
    if (!strcmp(e->u.name, "sigmoid")) return 1 / (1 + exp(-lr_value(r, e->a[0])));
    if (!strcmp(e->u.name, "rsqrt")) return 1 / sqrt(lr_value(r, e->a[0]));
    if (!strcmp(e->u.name, "pow")) return pow(lr_value(r, e->a[0]), lr_value(r, e->a[1]));
    if (!r->why) r->why = e->u.name;
    return 0;
}

static inline double lr_binary(lazyref *r, const cd_expr *e) {
    double x = 0;
    const double a = lr_value(r, e->a[0]), b = lr_value(r, e->a[1]);
    if (!ar_binary(e, a, b, &x) && !r->why) r->why = "an operator";
    return x;
}

static inline double lr_value(lazyref *r, const cd_expr *e) {
    switch ((cd_expr_op)e->op) {
    case CD_INT: return (double)e->u.i;
    case CD_FLOAT: return e->u.f;
    case CD_VAR: return r->var[e->u.i];
    case CD_AND: return lr_value(r, e->a[0]) != 0 && lr_value(r, e->a[1]) != 0;
    case CD_OR: return lr_value(r, e->a[0]) != 0 || lr_value(r, e->a[1]) != 0;
    case CD_NOT: return lr_value(r, e->a[0]) == 0;
    case CD_SELECT: return lr_value(r, lr_value(r, e->a[0]) != 0 ? e->a[1] : e->a[2]);
    case CD_CAST:
        return cd_expr_dtype_is_float(e->type) ? lr_value(r, e->a[0]) : trunc(lr_value(r, e->a[0]));
    case CD_CALL: return lr_call(r, e);
    case CD_LOAD: {
        int64_t ix[8];
        for (uint32_t d = 0; d < e->n && d < 8; d++) ix[d] = (int64_t)lr_value(r, e->a[d]);
        return lr_element(r, (uint32_t)e->u.i, ix);
    }
    default: return lr_binary(r, e);
    }
}

static inline void lr_reduce(lazyref *r, const cd_te_op *o, uint32_t level, double *acc) {
    if (level < o->n_raxis) {
        const cd_te_iter *it = &o->raxis[level];
        const int64_t min = (int64_t)lr_value(r, it->min), n = (int64_t)lr_value(r, it->extent);
        for (int64_t x = min; x < min + n; x++) {
            r->var[it->var->u.i] = (double)x;
            lr_reduce(r, o, level + 1, acc);
        }
        return;
    }
    double src[CD_TE_MAX_OUT], next[CD_TE_MAX_OUT];
    if (o->cond && lr_value(r, o->cond) == 0) return;
    for (uint32_t k = 0; k < o->n_out; k++) src[k] = lr_value(r, o->body[k]);
    for (uint32_t k = 0; k < o->n_out; k++) {
        r->var[o->red->lhs[k]->u.i] = acc[k];
        r->var[o->red->rhs[k]->u.i] = src[k];
    }
    for (uint32_t k = 0; k < o->n_out; k++) next[k] = lr_value(r, o->red->result[k]);
    memcpy(acc, next, o->n_out * sizeof *acc);
}

static inline int64_t lr_linear(const cd_te_op *o, const int64_t *ix) {
    int64_t at = 0;
    for (uint32_t d = 0; d < o->rank; d++) at = at * o->shape[d] + ix[d];
    return at;
}

static inline double lr_element(lazyref *r, uint32_t tensor, const int64_t *ix) {
    const cd_te_op *o = &r->dag->op[r->dag->tensor_op[tensor]];
    double acc[CD_TE_MAX_OUT], old[8];
    if (o->is_placeholder) return r->input(r->ctx, tensor, lr_linear(o, ix));
    for (uint32_t d = 0; d < o->rank && d < 8; d++) {
        old[d] = r->var[o->axis[d].var->u.i];
        r->var[o->axis[d].var->u.i] = (double)ix[d];
    }
    for (uint32_t k = 0; k < o->n_out; k++)
        acc[k] = lr_value(r, !o->red ? o->body[k] : o->init ? o->init[k] : o->red->identity[k]);
    if (o->red) lr_reduce(r, o, 0, acc);
    for (uint32_t d = 0; d < o->rank && d < 8; d++) r->var[o->axis[d].var->u.i] = old[d];
    return acc[tensor - o->first_tensor];
}
#endif

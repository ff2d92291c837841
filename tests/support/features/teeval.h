/* teeval.h -- the slow truth about definitions: a task's DAG, and a whole workload, computed
 * element by element. */
#ifndef TEEVAL_H
#define TEEVAL_H
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "arith.h"
#include "features/te/te.h"
#include "profiler/network/workload/workload.h"

typedef struct te_eval {
    const cd_te_dag *dag;
    double **mem; /* by tensor */
    double *var;  /* by variable */
    /* (n_tensor) least and largest index read of each dimension; NULL: not wanted */
    int64_t (*seen)[2][8];
    const char *why; /* first thing that went wrong */
} te_eval;

static inline double te_value(te_eval *t, const cd_expr *e);

static inline double te_load(te_eval *t, const cd_expr *e) {
    const uint32_t k = (uint32_t)e->u.i;
    const cd_te_op *op = &t->dag->op[t->dag->tensor_op[k]];
    int64_t at = 0;
    for (uint32_t d = 0; d < e->n; d++) {
        const int64_t i = (int64_t)te_value(t, e->a[d]);
        if (i < 0 || i >= op->shape[d]) {
            t->why = "an index outside of a tensor";
            return 0;
        }
        if (t->seen && d < 8) {
            int64_t *const low = &t->seen[k][0][d], *const high = &t->seen[k][1][d];
            if (i < *low) *low = i;
            if (i > *high) *high = i;
        }
        at = at * op->shape[d] + i;
    }
    return t->mem[k][at];
}

/* Which branch is taken by content says nothing about what may be read. */
static inline double te_branch(te_eval *t, const cd_expr *e) {
    const bool truth = te_value(t, e->a[0]) != 0;
    if (t->seen && (e->a[0]->flags & CD_EXPR_HAS_LOAD)) (void)te_value(t, e->a[truth ? 2 : 1]);
    return te_value(t, e->a[truth ? 1 : 2]);
}

static inline double te_call(te_eval *t, const cd_expr *e) {
    static const struct {
        const char *name;
        double (*fn)(double);
    } one[] = {
        {"exp", exp},     {"log", log},   {"sqrt", sqrt}, {"tanh", tanh},           {"erf", erf},
        {"floor", floor}, {"ceil", ceil}, {"fabs", fabs}, {"nearbyint", nearbyint}, {"sin", sin},
        {"cos", cos},     {"tan", tan},   {"asin", asin}, {"acos", acos},           {"atan", atan},
        {"sinh", sinh},   {"cosh", cosh}};
    if (!strcmp(e->u.name, "if_then_else")) return te_branch(t, e);
    const double x = te_value(t, e->a[0]);
    for (size_t i = 0; i < sizeof one / sizeof *one; i++)
        if (!strcmp(one[i].name, e->u.name)) return one[i].fn(x);
    if (!strcmp(e->u.name, "sigmoid")) return 1 / (1 + exp(-x));
    if (!strcmp(e->u.name, "isnan")) return isnan(x);
    if (!strcmp(e->u.name, "pow")) return pow(x, te_value(t, e->a[1]));
    if (!strcmp(e->u.name, "fmod")) return fmod(x, te_value(t, e->a[1]));
    t->why = e->u.name;
    return 0;
}

static inline double te_binary(te_eval *t, const cd_expr *e) {
    double x = 0;
    const double a = te_value(t, e->a[0]), b = te_value(t, e->a[1]);
    if (!ar_binary(e, a, b, &x)) t->why = "an operator";
    return x;
}

static inline double te_value(te_eval *t, const cd_expr *e) {
    switch ((cd_expr_op)e->op) {
    case CD_INT: return (double)e->u.i;
    case CD_FLOAT: return e->u.f;
    case CD_VAR: return t->var[e->u.i];
    case CD_AND: return te_value(t, e->a[0]) != 0 && te_value(t, e->a[1]) != 0;
    case CD_OR: return te_value(t, e->a[0]) != 0 || te_value(t, e->a[1]) != 0;
    case CD_NOT: return te_value(t, e->a[0]) == 0;
    case CD_SELECT: return te_branch(t, e);
    case CD_CAST:
        return cd_expr_dtype_is_float(e->type) ? te_value(t, e->a[0]) : trunc(te_value(t, e->a[0]));
    case CD_CALL: return te_call(t, e);
    case CD_LOAD: return te_load(t, e);
    default: return te_binary(t, e);
    }
}

static inline void te_reduce(te_eval *t, const cd_te_op *o, uint32_t level, double *acc) {
    double src[CD_TE_MAX_OUT], next[CD_TE_MAX_OUT];
    if (level < o->n_raxis) {
        const cd_te_iter *it = &o->raxis[level];
        const int64_t from = (int64_t)te_value(t, it->min), n = (int64_t)te_value(t, it->extent);
        for (int64_t x = from; x < from + n; x++) {
            t->var[it->var->u.i] = (double)x;
            te_reduce(t, o, level + 1, acc);
        }
        return;
    }
    if (o->cond && te_value(t, o->cond) == 0) return;
    for (uint32_t k = 0; k < o->n_out; k++) src[k] = te_value(t, o->body[k]);
    for (uint32_t k = 0; k < o->n_out; k++) {
        t->var[o->red->lhs[k]->u.i] = acc[k];
        t->var[o->red->rhs[k]->u.i] = src[k];
    }
    for (uint32_t k = 0; k < o->n_out; k++) next[k] = te_value(t, o->red->result[k]);
    memcpy(acc, next, o->n_out * sizeof *acc);
}

static inline int64_t te_count(const cd_te_op *o) {
    int64_t n = 1;
    for (uint32_t d = 0; d < o->rank; d++) n *= o->shape[d];
    return n;
}

static inline void te_op(te_eval *t, const cd_te_op *o) {
    const int64_t n = te_count(o);
    for (int64_t e = 0; e < n && !t->why; e++) {
        double acc[CD_TE_MAX_OUT];
        int64_t rest = e;
        for (uint32_t d = o->rank; d-- > 0; rest /= o->shape[d])
            t->var[o->axis[d].var->u.i] = (double)(rest % o->shape[d]);
        for (uint32_t k = 0; k < o->n_out; k++)
            acc[k] = te_value(t, !o->red ? o->body[k] : o->init ? o->init[k] : o->red->identity[k]);
        if (o->red) te_reduce(t, o, 0, acc);
        for (uint32_t k = 0; k < o->n_out; k++) t->mem[o->first_tensor + k][e] = acc[k];
    }
}

/* arg: the task's arguments in order; the last one is written. NULL: fine, else what is wrong. */
static inline const char *te_run_seen(const cd_te_dag *dag, double *const *arg,
                                      int64_t (*seen)[2][8]) {
    te_eval t = {.dag = dag, .seen = seen};
    t.mem = calloc(dag->n_tensor, sizeof *t.mem);
    t.var = calloc(dag->pool.n_var + 1U, sizeof *t.var);
    for (uint32_t i = 0; i < dag->n_arg; i++) t.mem[dag->arg[i]] = arg[i];
    for (uint32_t i = 0; i < dag->n_op; i++) {
        const cd_te_op *o = &dag->op[i];
        bool mine[CD_TE_MAX_OUT];
        for (uint32_t k = 0; k < o->n_out; k++) {
            double **m = &t.mem[o->first_tensor + k];
            mine[k] = !*m;
            if (mine[k]) *m = calloc((size_t)te_count(o) + 1, sizeof **m);
        }
        if (!o->is_placeholder) te_op(&t, o);
    }
    for (uint32_t k = 0; k < dag->n_tensor; k++) {
        bool given = false;
        for (uint32_t i = 0; i < dag->n_arg; i++) given = given || dag->arg[i] == k;
        if (!given) free(t.mem[k]);
    }
    free(t.mem);
    free(t.var);
    return t.why;
}

static inline const char *te_run(const cd_te_dag *dag, double *const *arg) {
    return te_run_seen(dag, arg, NULL);
}

/* ---- a workload ---- */

typedef double (*we_fill)(const cd_graph *g, uint32_t tensor, int64_t i);

static inline double *we_leaf(const cd_workload *w, const cd_workload_buffer *b, we_fill fill) {
    const int64_t n = cd_graph_shape_elements(&b->shape);
    double *p = calloc((size_t)n + 1, sizeof *p);
    const cd_graph_tensor *t = b->tensor == CD_GRAPH_NONE ? NULL : &w->graph->tensor[b->tensor];
    for (int64_t i = 0; i < n; i++) {
        if (!t) p[i] = b->value;
        else
            p[i] = t->value    ? (double)t->value[i]
                   : t->fvalue ? t->fvalue[i]
                               : fill(w->graph, b->tensor, i);
    }
    return p;
}

/* Results of the whole network, built with .weights: out[k] is the caller's to free. */
static inline const char *we_run(const cd_workload *w, we_fill fill, double **out) {
    double **mem = calloc(w->n_buffer + 1, sizeof *mem);
    const char *why = NULL;
    for (uint32_t i = 0; i < w->n_buffer; i++)
        mem[i] =
            w->buffer[i].group == CD_GRAPH_NONE
                ? we_leaf(w, &w->buffer[i], fill)
                : calloc((size_t)cd_graph_shape_elements(&w->buffer[i].shape) + 1, sizeof **mem);
    for (uint32_t k = 0; k < w->n_group && !why; k++) {
        const cd_workload_group *g = &w->group[k];
        double *arg[300];
        if (g->task == CD_GRAPH_NONE) {
            why = "an unsupported operator";
            break;
        }
        for (uint32_t i = 0; i < g->n_read; i++) arg[i] = mem[g->read[i]];
        arg[g->n_read] = mem[g->write];
        why = te_run(cd_task_registry_at(w->tasks, w->task[g->task].task)->dag, arg);
    }
    for (uint32_t k = 0; k < w->graph->n_output; k++) {
        const int64_t n = cd_graph_shape_elements(&w->buffer[w->output[k]].shape);
        out[k] = malloc((size_t)(n + 1) * sizeof **out);
        memcpy(out[k], mem[w->output[k]], (size_t)n * sizeof **out);
    }
    for (uint32_t i = 0; i < w->n_buffer; i++) free(mem[i]);
    free(mem);
    return why;
}
#endif

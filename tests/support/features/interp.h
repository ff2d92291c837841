/* interp.h -- the slow truth about programs: run a loop nest on real tensors, and
 * the task's own definition beside it.
 *
 *   REALIZE T[min : +extent]   memory for that region, all of it unset
 *   STORE, LOAD                must hit the region; what is loaded must be set
 *   THREAD                     a loop
 *   EVAL allreduce             T = combine(what T holds, this thread's part)
 *
 * Values are doubles; exp, tanh, sqrt and their like are replaced by a function
 * that is exact on small integers, so that sums in any order are equal. Under an
 * if_then_else or select only the branch that is taken is looked at. */
#ifndef INTERP_H
#define INTERP_H
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "arith.h"
#include "features/nest/nest.h"
#include "features/schedule/schedule.h"

#define IN_RANK 8

typedef struct {
    uint32_t rank;
    int64_t min[IN_RANK], ext[IN_RANK];
    double *v; /* NaN: unset */
} in_mem;

typedef struct interp interp;
struct interp {
    const cd_schedule *s; /* NULL: running a definition */
    const cd_ast *t;
    double *var; /* by variable number; NaN: not bound */
    uint32_t n_var;
    in_mem *mem; /* by tensor */
    uint32_t n_mem;
    double **out;    /* by tensor: where finished outputs go, full shape */
    const char *why; /* first thing that went wrong */
    long budget;     /* stores, loads and turns of loops left */
    /* Called for every load and store when set. */
    void (*seen)(void *ctx, int32_t node, uint32_t tensor, const int64_t *ix, uint32_t n);
    void *ctx;
    int32_t node; /* the store at work */
};

static inline void in_fail(interp *in, const char *why) {
    if (!in->why) in->why = why;
}

static inline double *in_at(interp *in, uint32_t tensor, const int64_t *ix, uint32_t n) {
    static double nowhere;
    in_mem *m = tensor < in->n_mem ? &in->mem[tensor] : NULL;
    int64_t at = 0;
    if (in->seen) in->seen(in->ctx, in->node, tensor, ix, n);
    if (--in->budget < 0) in_fail(in, "too much work");
    else if (!m || !m->v) in_fail(in, "a tensor outside its realize");
    else if (m->rank != n) in_fail(in, "wrong rank");
    if (in->why) return &nowhere;
    for (uint32_t d = 0; d < n; d++) {
        if (ix[d] < m->min[d] || ix[d] >= m->min[d] + m->ext[d]) {
            in_fail(in, "an index outside the realized region");
            return &nowhere;
        }
        at = at * m->ext[d] + ix[d] - m->min[d];
    }
    return &m->v[at];
}

static inline double in_value(interp *in, const cd_expr *e);

static inline double in_load(interp *in, const cd_expr *e) {
    int64_t ix[IN_RANK];
    for (uint32_t d = 0; d < e->n && d < IN_RANK; d++) ix[d] = (int64_t)in_value(in, e->a[d]);
    const double x = *in_at(in, (uint32_t)e->u.i, ix, e->n);
    if (isnan(x)) in_fail(in, "an element that was never set");
    return x;
}

static inline double in_call(interp *in, const cd_expr *e) {
    if (!strcmp(e->u.name, "likely")) return in_value(in, e->a[0]);
    if (!strcmp(e->u.name, "if_then_else"))
        return in_value(in, in_value(in, e->a[0]) != 0 ? e->a[1] : e->a[2]);
    const double x = in_value(in, e->a[0]);
    return x * x + 1;
}

static inline double in_binary(interp *in, const cd_expr *e, double a, double b) {
    double r = 0;
    if (b == 0 && ar_divides(e) && !cd_expr_dtype_is_float(e->type))
        return in_fail(in, "division by zero"), 0;
    if (!ar_binary(e, a, b, &r)) in_fail(in, "an operator");
    return r;
}

static inline double in_value(interp *in, const cd_expr *e) {
    if (in->why) return 0;
    switch ((cd_expr_op)e->op) {
    case CD_INT: return (double)e->u.i;
    case CD_FLOAT: return e->u.f;
    case CD_VAR:
        if ((uint64_t)e->u.i >= in->n_var || isnan(in->var[e->u.i]))
            in_fail(in, "a variable outside its loop");
        return in->why ? 0 : in->var[e->u.i];
    case CD_AND: return in_value(in, e->a[0]) != 0 && in_value(in, e->a[1]) != 0;
    case CD_OR: return in_value(in, e->a[0]) != 0 || in_value(in, e->a[1]) != 0;
    case CD_NOT: return in_value(in, e->a[0]) == 0;
    case CD_SELECT: return in_value(in, in_value(in, e->a[0]) != 0 ? e->a[1] : e->a[2]);
    case CD_CAST:
        return cd_expr_dtype_is_float(e->type) ? in_value(in, e->a[0])
                                               : trunc(in_value(in, e->a[0]));
    case CD_CALL: return in_call(in, e);
    case CD_LOAD: return in_load(in, e);
    default: {
        const double a = in_value(in, e->a[0]), b = in_value(in, e->a[1]);
        return in_binary(in, e, a, b);
    }
    }
}

/* ---- a reducer ---- */

/* acc[k] = result[k](acc, src) */
static inline void in_combine(interp *in, const cd_te_reducer *r, double *acc, const double *src) {
    double next[CD_TE_MAX_OUT];
    for (uint32_t k = 0; k < r->n; k++) {
        in->var[r->lhs[k]->u.i] = acc[k];
        in->var[r->rhs[k]->u.i] = src[k];
    }
    for (uint32_t k = 0; k < r->n; k++) next[k] = in_value(in, r->result[k]);
    memcpy(acc, next, r->n * sizeof *acc);
}

/* ---- a definition ---- */

static inline int64_t in_count(uint32_t rank, const int64_t *shape) {
    int64_t n = 1;
    for (uint32_t d = 0; d < rank; d++) n *= shape[d];
    return n;
}

static inline void in_reduce(interp *in, const cd_te_op *o, uint32_t level, double *acc) {
    if (level == o->n_raxis) {
        double src[CD_TE_MAX_OUT];
        if (o->cond && in_value(in, o->cond) == 0) return;
        for (uint32_t k = 0; k < o->n_out; k++) src[k] = in_value(in, o->body[k]);
        in_combine(in, o->red, acc, src);
        return;
    }
    const cd_te_iter *it = &o->raxis[level];
    const int64_t min = (int64_t)in_value(in, it->min), ext = (int64_t)in_value(in, it->extent);
    for (int64_t x = min; x < min + ext; x++) {
        in->var[it->var->u.i] = (double)x;
        in_reduce(in, o, level + 1, acc);
    }
}

static inline void in_element(interp *in, const cd_te_op *o, double *acc) {
    for (uint32_t k = 0; k < o->n_out; k++)
        acc[k] = in_value(in, !o->red ? o->body[k] : o->init ? o->init[k] : o->red->identity[k]);
    if (o->red) in_reduce(in, o, 0, acc);
}

/* All tensors of the task, computed as the definition says. Inputs must be there. */
static inline void in_define(interp *in, const cd_te_dag *dag) {
    for (uint32_t i = 0; i < dag->n_op; i++) {
        const cd_te_op *o = &dag->op[i];
        const int64_t n = in_count(o->rank, o->shape);
        for (int64_t e = 0; e < n && !o->is_placeholder; e++) {
            double acc[CD_TE_MAX_OUT];
            int64_t rest = e;
            for (uint32_t d = o->rank; d-- > 0; rest /= o->shape[d])
                in->var[o->axis[d].var->u.i] = (double)(rest % o->shape[d]);
            in_element(in, o, acc);
            for (uint32_t k = 0; k < o->n_out; k++) in->mem[o->first_tensor + k].v[e] = acc[k];
        }
    }
}

/* ---- a nest ---- */

static inline void in_run(interp *in, int32_t from, int32_t to);

static inline void in_loop(interp *in, int32_t k) {
    const cd_ast_node *n = &in->t->node[k];
    const int64_t ext = (int64_t)in_value(in, n->extent_e);
    double *v = &in->var[n->var->u.i];
    for (int64_t x = 0; x < ext && !in->why; x++) {
        if (--in->budget < 0) in_fail(in, "too much work");
        *v = (double)x;
        in_run(in, k + 1, n->end);
    }
    *v = NAN;
}

static inline void in_realize(interp *in, int32_t k) {
    const cd_ast_node *n = &in->t->node[k];
    in_mem *m = &in->mem[n->tensor];
    const in_mem old = *m;
    *m = (in_mem){.rank = n->n / 2};
    for (uint32_t d = 0; d < m->rank; d++) {
        m->min[d] = (int64_t)in_value(in, n->x[2 * d]);
        m->ext[d] = (int64_t)in_value(in, n->x[2 * d + 1]);
        if (m->ext[d] < 0 || m->ext[d] > 1000) in_fail(in, "a region of strange size");
    }
    const int64_t size = in->why ? 0 : in_count(m->rank, m->ext);
    m->v = malloc((size_t)(size > 0 ? size : 1) * sizeof *m->v);
    for (int64_t i = 0; i < size; i++) m->v[i] = NAN;
    in_run(in, k + 1, n->end);
    if (in->out[n->tensor]) memcpy(in->out[n->tensor], m->v, (size_t)size * sizeof *m->v);
    free(m->v);
    *m = old;
}

static inline void in_store(interp *in, int32_t k) {
    const cd_ast_node *n = &in->t->node[k];
    int64_t ix[IN_RANK];
    in->node = k;
    for (uint32_t d = 0; d < n->n && d < IN_RANK; d++) ix[d] = (int64_t)in_value(in, n->x[d]);
    const double v = in_value(in, n->e);
    *in_at(in, n->tensor, ix, n->n) = v;
}

/* k: the call. Temporaries of its outputs, normal and result, innermost last. */
static inline bool in_temps(interp *in, int32_t k, uint32_t n_out, uint32_t *normal,
                            uint32_t *result) {
    uint32_t found[2 * CD_TE_MAX_OUT], n = 0;
    for (int32_t p = in->t->node[k].parent; p >= 0 && n < 2 * n_out; p = in->t->node[p].parent)
        if (in->t->node[p].kind == CD_AST_ALLOC) found[n++] = in->t->node[p].tensor;
    for (uint32_t o = 0; n == 2 * n_out && o < n_out; o++) {
        result[n_out - 1 - o] = found[2 * o];
        normal[n_out - 1 - o] = found[2 * o + 1];
    }
    return n == 2 * n_out;
}

static inline const cd_schedule_stage *in_stage(const interp *in, const cd_schedule_op *op) {
    for (int32_t i = 0; i < in->s->n_stage; i++)
        if (&in->s->op[in->s->stage[i].op] == op) return &in->s->stage[i];
    return NULL;
}

/* Do the threads that reduce stand at their first turn? */
static inline bool in_first_thread(const interp *in, const cd_schedule_stage *stage) {
    for (uint32_t i = 0; i < stage->leaf.n; i++) {
        const cd_schedule_iv *iv = &in->s->iv[stage->leaf.p[i]];
        if (iv->type == CD_SCHEDULE_IV_REDUCE && iv->thread >= 0 &&
            in->var[in->s->iv[iv->thread].var->u.i] != 0)
            return false;
    }
    return true;
}

/* The threads' parts meet in the element that the next store writes: the first
 * thread starts it anew. */
static inline void in_allreduce(interp *in, int32_t k) {
    int32_t st = k;
    while (in->t->node[st].kind != CD_AST_STORE) st++;
    const cd_ast_node *n = &in->t->node[st];
    const cd_schedule_op *op = &in->s->op[in->s->tensor_op.p[n->tensor]];
    const bool first = in_first_thread(in, in_stage(in, op));
    uint32_t normal[CD_TE_MAX_OUT], result[CD_TE_MAX_OUT];
    double acc[CD_TE_MAX_OUT], part[CD_TE_MAX_OUT];
    int64_t ix[IN_RANK];
    if (!in_temps(in, k, op->n_out, normal, result))
        in_fail(in, "threads without a part of their own");
    for (uint32_t d = 0; d < n->n; d++) ix[d] = (int64_t)in_value(in, n->x[d]);
    for (uint32_t o = 0; o < op->n_out && !in->why; o++) {
        part[o] = *in->mem[normal[o]].v;
        acc[o] = first ? in_value(in, op->init ? op->init[o] : op->red->identity[o])
                       : *in_at(in, op->first_tensor + o, ix, n->n);
    }
    if (!in->why) in_combine(in, op->red, acc, part);
    for (uint32_t o = 0; o < op->n_out && !in->why; o++)
        *in->mem[result[o]].v = *in_at(in, op->first_tensor + o, ix, n->n) = acc[o];
}

static inline void in_one(interp *in, int32_t k) {
    const cd_ast_node *n = &in->t->node[k];
    switch ((cd_ast_kind)n->kind) {
    case CD_AST_FOR:
    case CD_AST_THREAD: in_loop(in, k); break;
    case CD_AST_REALIZE:
    case CD_AST_ALLOC: in_realize(in, k); break;
    case CD_AST_ATTR: in_run(in, k + 1, n->end); break;
    case CD_AST_IF:
        if (in_value(in, n->e) != 0) in_run(in, k + 1, n->end);
        break;
    case CD_AST_STORE: in_store(in, k); break;
    case CD_AST_EVAL: in_allreduce(in, k); break;
    case CD_AST_LET: in->var[n->var->u.i] = in_value(in, n->e); break;
    }
}

static inline void in_run(interp *in, int32_t from, int32_t to) {
    for (int32_t k = from; k < to && !in->why;) {
        if (in->t->node[k].dead) { /* children, unless dead too, take its place */
            k++;
            continue;
        }
        in_one(in, k);
        k = in->t->node[k].end;
    }
}
#endif

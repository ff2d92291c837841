/* Checks a definition once, so that no later code has to: types, ranks, variables and sizes of
 * every expression. The same walk counts the flops (docs/internals/ansor.md, Tasks). */
#include "features/te/te.h"

#include <math.h>
#include <string.h>

#define NO_FLOP (-1.0)

cdmpp_status cd_te_dag_new(cd_te_dag **out, cdmpp_err *err) {
    cd_te_dag *d = cd_mem_zalloc(1, sizeof *d);
    if (!d) return CD_FAIL(err, ENOMEM, "compute DAG");
    const cdmpp_status st = cd_expr_pool_init(&d->pool, NULL, err);
    if (st) cd_mem_free(d);
    else *out = d;
    return st;
}

void cd_te_dag_free(cd_te_dag *d) {
    if (!d) return;
    cd_expr_pool_free(&d->pool);
    cd_arena_free(&d->arena);
    cd_mem_free(d);
}

/* One operator at a time; per expression id what its walk found, valid where
 * stamp is the operator's. Memoised, so sharing costs nothing. */
typedef struct {
    cd_te_dag *dag;
    const cd_te_op *op;
    uint32_t *stamp, *tree; /* (pool.n) tree: nodes when unfolded */
    /* (pool.n) additions, multiplications ... per evaluation; NAN: cannot be counted */
    double *flop;
    uint32_t *owner; /* (pool.n_var) stamp of the walk that may use the variable */
    uint32_t epoch;
    uint64_t budget; /* nodes that may still be visited */
    cdmpp_err *err;
} checker;

static cdmpp_status check_load(checker *c, const cd_expr *e) {
    const cd_te_dag *d = c->dag;
    if ((uint64_t)e->u.i >= c->op->first_tensor)
        return CD_FAIL(c->err, ESCHEMA, "reads tensor %lld, which is not computed before it",
                       (long long)e->u.i);
    cd_te_op *src = &d->op[d->tensor_op[e->u.i]];
    src->is_output = false;
    if (e->n != src->rank)
        return CD_FAIL(c->err, ESCHEMA, "%u indices for \"%s\" of rank %u", e->n, src->name,
                       src->rank);
    if (e->type != src->dtype[(uint32_t)e->u.i - src->first_tensor])
        return CD_FAIL(c->err, ESCHEMA, "\"%s\" is read as another type than it has", src->name);
    for (uint32_t i = 0; i < e->n; i++)
        if (cd_expr_dtype_kind(e->a[i]->type) > CD_T_UINT)
            return CD_FAIL(c->err, ESCHEMA, "an index is not an integer");
    return CDMPP_OK;
}

static cdmpp_status check_node(checker *c, const cd_expr *e) {
    if (e->op == CD_LOAD) return check_load(c, e);
    if (e->op == CD_VAR && c->owner[e->u.i] != c->epoch)
        return CD_FAIL(c->err, ESCHEMA, "uses a variable that is none of its axes");
    if ((cd_expr_op_is_arith((cd_expr_op)e->op) || cd_expr_op_is_cmp((cd_expr_op)e->op)) &&
        e->a[0]->type != e->a[1]->type)
        return CD_FAIL(c->err, ESCHEMA, "operands of %s differ in type",
                       cd_expr_op_name((cd_expr_op)e->op));
    if (e->op == CD_AND || e->op == CD_OR || e->op == CD_NOT || e->op == CD_SELECT)
        for (uint32_t i = 0; i < (e->op == CD_SELECT ? 1 : e->n); i++)
            if (e->a[i]->type != CD_BOOL)
                return CD_FAIL(c->err, ESCHEMA, "operand of %s is not a bool",
                               cd_expr_op_name((cd_expr_op)e->op));
    if (e->op == CD_SELECT && e->a[1]->type != e->a[2]->type)
        return CD_FAIL(c->err, ESCHEMA, "the two values of select differ in type");
    return CDMPP_OK;
}

/* Flops of one evaluation, those of the operands given. NAN: cannot be counted. */
static double node_flop(const checker *c, const cd_expr *e) {
    const unsigned t = c->op->n_out ? cd_expr_dtype_kind(c->op->dtype[0]) : CD_T_FLOAT;
    const double *f = c->flop;
    double sum = 0;
    switch ((cd_expr_op)e->op) {
    case CD_INT:
    case CD_FLOAT:
    case CD_VAR:
    case CD_LOAD: return 0;
    case CD_STR: return (double)NAN; /* TVM's estimator gives up on them */
    case CD_CAST: return f[e->a[0]->id];
    case CD_SELECT: {
        const double x = f[e->a[1]->id], y = f[e->a[2]->id];
        return f[e->a[0]->id] + (x > y || isnan(x) ? x : y);
    }
    case CD_CALL:
        for (uint32_t i = 0; i < e->n; i++) sum += f[e->a[i]->id];
        return sum + (cd_expr_is_dot4(e) ? 7 : 0);
    case CD_NOT: return f[e->a[0]->id] + (cd_expr_dtype_kind(e->type) == t);
    default:
        return f[e->a[0]->id] + f[e->a[1]->id] +
               (cd_expr_dtype_kind(e->a[0]->type) == t || cd_expr_dtype_kind(e->a[1]->type) == t);
    }
}

/* Memoised per operator: an expression that occurs many times is visited once. The budget bounds
 * definitions whose operators share expressions. */
static cdmpp_status walk(checker *c, const cd_expr *e, uint32_t depth) {
    if (c->stamp[e->id] == c->epoch) return CDMPP_OK;
    if (depth > CD_TE_MAX_DEPTH)
        return CD_FAIL(c->err, EUNSUPPORTED, "an expression is nested deeper than %d",
                       CD_TE_MAX_DEPTH);
    if (c->budget-- == 0)
        return CD_FAIL(c->err, EUNSUPPORTED, "operators share too many expressions");
    uint64_t tree = 1;
    for (uint32_t i = 0; i < e->n; i++) {
        CD_TRY(walk(c, e->a[i], depth + 1));
        tree += c->tree[e->a[i]->id];
    }
    if (tree > CD_TE_MAX_TREE)
        return CD_FAIL(c->err, EUNSUPPORTED, "an expression unfolds to more than %d nodes",
                       CD_TE_MAX_TREE);
    CD_TRY(check_node(c, e));
    c->tree[e->id] = (uint32_t)tree;
    c->flop[e->id] = node_flop(c, e);
    c->stamp[e->id] = c->epoch;
    return CDMPP_OK;
}

static cdmpp_status walk_all(checker *c, const cd_expr *const *e, uint32_t n, double *flop) {
    for (uint32_t k = 0; k < n; k++) {
        CD_TRY(walk(c, e[k], 1));
        *flop += c->flop[e[k]->id];
    }
    return CDMPP_OK;
}

static cdmpp_status check_iter(checker *c, const cd_te_iter *it, double *product) {
    double ignored = 0;
    CD_TRY(walk_all(c, &it->min, 1, &ignored));
    CD_TRY(walk_all(c, &it->extent, 1, &ignored));
    if (cd_expr_dtype_kind(it->min->type) > CD_T_UINT ||
        cd_expr_dtype_kind(it->extent->type) > CD_T_UINT)
        return CD_FAIL(c->err, ESCHEMA, "the range of axis \"%s\" is not of integers", it->name);
    if ((it->min->flags | it->extent->flags) & CD_EXPR_HAS_LOAD)
        return CD_FAIL(c->err, EUNSUPPORTED, "the range of axis \"%s\" reads a tensor", it->name);
    if (cd_expr_is_int(it->extent) && it->extent->u.i < 0)
        return CD_FAIL(c->err, ERANGE, "axis \"%s\" has extent %lld", it->name,
                       (long long)it->extent->u.i);
    *product *= cd_expr_is_int(it->extent) ? (double)it->extent->u.i : (double)NAN;
    return CDMPP_OK;
}

static cdmpp_status check_reducer(checker *c, double *flop) {
    const cd_te_op *op = c->op;
    const cd_te_reducer *r = op->red;
    if (r->n != op->n_out)
        return CD_FAIL(c->err, ESCHEMA, "a reducer of %u values for %u outputs", r->n, op->n_out);
    double ignored = 0;
    CD_TRY(walk_all(c, &op->cond, op->cond ? 1 : 0, &ignored));
    CD_TRY(walk_all(c, op->init, op->init ? r->n : 0, &ignored));
    if (op->cond && op->cond->type != CD_BOOL)
        return CD_FAIL(c->err, ESCHEMA, "the condition of a reduction is not a bool");
    c->epoch++; /* the combiner sees its own variables only */
    for (uint32_t k = 0; k < r->n; k++) {
        c->owner[r->lhs[k]->u.i] = c->owner[r->rhs[k]->u.i] = c->epoch;
        const cd_dtype t = op->dtype[k];
        if (r->result[k]->flags & CD_EXPR_HAS_LOAD)
            return CD_FAIL(c->err, ESCHEMA, "the combiner of a reduction reads a tensor");
        if (r->lhs[k]->type != t || r->rhs[k]->type != t || r->result[k]->type != t ||
            r->identity[k]->type != t || (op->init && op->init[k]->type != t))
            return CD_FAIL(c->err, ESCHEMA, "the reducer's types are not those of the operator");
    }
    CD_TRY(walk_all(c, r->result, r->n, flop));
    return walk_all(c, r->identity, r->n, &ignored);
}

/* Variables are owned by the operator's axes while it is checked; the combiner of a reduction sees
 * its own variables only. */
static cdmpp_status check_compute(checker *c, double *flop) {
    const cd_te_op *op = c->op;
    double space = 1, reduce = 1, body = 0;
    c->epoch++;
    for (uint32_t i = 0; i < op->n_axis; i++) c->owner[op->axis[i].var->u.i] = c->epoch;
    for (uint32_t i = 0; i < op->n_raxis; i++) c->owner[op->raxis[i].var->u.i] = c->epoch;
    for (uint32_t i = 0; i < op->n_axis; i++) {
        CD_TRY(check_iter(c, &op->axis[i], &space));
        if (!cd_expr_is_int(op->axis[i].extent) || !cd_expr_is_int(op->axis[i].min))
            return CD_FAIL(c->err, EUNSUPPORTED, "axis \"%s\" has no fixed extent",
                           op->axis[i].name);
        if (op->axis[i].extent->u.i != op->shape[i])
            return CD_FAIL(c->err, ESCHEMA, "shape and axes differ");
    }
    for (uint32_t i = 0; i < op->n_raxis; i++) CD_TRY(check_iter(c, &op->raxis[i], &reduce));
    CD_TRY(walk_all(c, op->body, op->n_out, &body));
    for (uint32_t k = 0; k < op->n_out; k++)
        if (op->body[k]->type != op->dtype[k])
            return CD_FAIL(c->err, ESCHEMA, "body %u has another type than its output", k);
    if (op->red) CD_TRY(check_reducer(c, &body));
    *flop += op->flop_attr >= 0 ? op->flop_attr : space * reduce * body;
    return CDMPP_OK;
}

static cdmpp_status check_op(checker *c, uint32_t i, uint32_t *next_tensor) {
    cd_te_op *op = &c->dag->op[i];
    c->op = op;
    op->is_output = true; /* until somebody reads it */
    if (op->first_tensor != *next_tensor || op->n_out == 0 || op->n_out > CD_TE_MAX_OUT)
        return CD_FAIL(c->err, ESCHEMA, "wrong tensor numbers");
    if (op->n_axis > CD_TE_MAX_AXIS || op->n_raxis > CD_TE_MAX_AXIS)
        return CD_FAIL(c->err, EUNSUPPORTED, "more than %d axes", CD_TE_MAX_AXIS);
    if (!op->is_placeholder && op->rank != op->n_axis)
        return CD_FAIL(c->err, ESCHEMA, "rank and axes differ");
    for (uint32_t k = 0; k < op->rank; k++)
        if (op->shape[k] < 0)
            return CD_FAIL(c->err, ERANGE, "dimension %u is %lld", k, (long long)op->shape[k]);
    for (uint32_t k = 0; k < op->n_out; k++) c->dag->tensor_op[(*next_tensor)++] = i;
    return op->is_placeholder ? CDMPP_OK : check_compute(c, &c->dag->flop);
}

static cdmpp_status check_all(checker *c, cd_te_dag *d) {
    uint32_t next = 0;
    d->flop = 0;
    for (uint32_t i = 0; i < d->n_op; i++) {
        const cdmpp_status st = check_op(c, i, &next);
        if (st) return cd_err_key(c->err, st, d->op[i].name[0] ? d->op[i].name : "operator");
    }
    if (next != d->n_tensor) return CD_FAIL(c->err, ESCHEMA, "wrong number of tensors");
    for (uint32_t i = 0; i < d->n_arg; i++)
        if (d->arg[i] >= d->n_tensor)
            return CD_FAIL(c->err, ESCHEMA, "argument %u is no tensor of the task", i);
    if (isnan(d->flop)) d->flop = NO_FLOP;
    return CDMPP_OK;
}

/* The pool is frozen after an error too: then the dag can only be freed, from any thread. */
cdmpp_status cd_te_dag_finish(cd_te_dag *d, cdmpp_err *err) {
    cd_arena scratch = {0};
    const uint32_t n = d->pool.n;
    double *share;
    checker c = {.dag = d, .err = err, .budget = 64ULL * n + 1000000};
    c.stamp = CD_NEWN(&scratch, uint32_t, n);
    c.tree = CD_NEWN(&scratch, uint32_t, n);
    c.flop = CD_NEWN(&scratch, double, n);
    c.owner = CD_NEWN(&scratch, uint32_t, d->pool.n_var);
    d->tensor_op = CD_NEWN(&d->arena, uint32_t, d->n_tensor);
    cdmpp_status st;
    if (d->pool.oom || !c.stamp || !c.tree || !c.flop || !c.owner || !d->tensor_op)
        st = CD_FAIL(err, ENOMEM, "compute DAG");
    else if (d->pool.big)
        st = CD_FAIL(err, EUNSUPPORTED, "an expression unfolds to more than %d nodes",
                     CD_TE_MAX_TREE);
    else st = check_all(&c, d);
    if (!st && !(share = CD_NEWN(&scratch, double, d->n_op + 1u)))
        st = CD_FAIL(err, ENOMEM, "compute DAG");
    if (!st) cd_te_least_of(d, share, &d->least);
    cd_arena_free(&scratch);
    cd_expr_pool_freeze(&d->pool);
    return st;
}

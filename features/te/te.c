/* Checks a definition once, so that no later code has to: types, ranks, variables and sizes of
 * every expression. The same walk counts the flops (docs/internals/ansor.md, Tasks). */
#include "features/te/te.h"

#include <math.h>
#include <string.h>

/* The least that a definition asks of any device: a bound below every schedule's time. It counts
 * only what is plain to see, because a bound that is too high would correct right answers. */

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

/* cd_te_least of a checked definition; `share`: (n_op) scratch. */
static void te_least_of(const cd_te_dag *d, double *share, cd_te_least *out) {
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
    if (!st) te_least_of(d, share, &d->least);
    cd_arena_free(&scratch);
    cd_expr_pool_freeze(&d->pool);
    return st;
}

/* A copy of a definition that shares nothing with the original: operators by value, expressions
 * made anew in a pool of its own. A registry needs one when the caller keeps the original. */

typedef struct {
    const cd_te_dag *from;
    cd_te_dag *to;
    const cd_expr **made; /* (from's pool) by id, NULL: not yet */
    bool oom;
} copier;

static const cd_expr *leaf(cd_expr_pool *p, const cd_expr *e) {
    switch ((cd_expr_op)e->op) {
    case CD_INT: return cd_expr_new_int(p, e->type, e->u.i);
    case CD_FLOAT: return cd_expr_new_float(p, e->type, e->u.f);
    case CD_STR: return cd_expr_new_str(p, e->u.name);
    case CD_VAR: return cd_expr_new_var(p, e->type, (uint32_t)e->u.i);
    case CD_CALL: return cd_expr_new_call(p, e->type, e->u.name, NULL, 0);
    default: return cd_expr_new_load(p, e->type, (uint32_t)e->u.i, NULL, 0);
    }
}

/* Depth is bounded, te.h (6). */
static const cd_expr *copied(copier *c, const cd_expr *e) {
    if (c->made[e->id]) return c->made[e->id];
    const cd_expr *small[8], **a = small;
    if (e->n > 8 && !(a = cd_arena_alloc(&c->to->arena, e->n, sizeof *a))) {
        c->oom = true;
        return e;
    }
    for (uint32_t i = 0; i < e->n; i++) a[i] = copied(c, e->a[i]);
    return c->made[e->id] = e->n ? cd_expr_new_like(&c->to->pool, e, a) : leaf(&c->to->pool, e);
}

static void *block(copier *c, const void *p, size_t n, size_t size) {
    if (!p) return NULL;
    void *q = cd_arena_alloc(&c->to->arena, n ? n : 1, size);
    if (!q) c->oom = true;
    else if (n) memcpy(q, p, n * size);
    return q;
}

static const char *text(copier *c, const char *s) { return block(c, s, strlen(s) + 1, 1); }

static const cd_expr *const *list(copier *c, const cd_expr *const *e, uint32_t n) {
    const cd_expr **out = block(c, e, n, sizeof *out);
    for (uint32_t k = 0; out && k < n; k++) out[k] = copied(c, e[k]);
    return out;
}

static const cd_te_iter *iters(copier *c, const cd_te_iter *it, uint32_t n) {
    cd_te_iter *out = block(c, it, n, sizeof *out);
    for (uint32_t k = 0; out && k < n; k++)
        out[k] = (cd_te_iter){copied(c, it[k].var), copied(c, it[k].min), copied(c, it[k].extent),
                              text(c, it[k].name)};
    return out;
}

static const cd_te_reducer *reducer(copier *c, const cd_te_reducer *r) {
    cd_te_reducer *out = block(c, r, 1, sizeof *out);
    if (!out) return NULL;
    out->lhs = list(c, r->lhs, r->n);
    out->rhs = list(c, r->rhs, r->n);
    out->result = list(c, r->result, r->n);
    out->identity = list(c, r->identity, r->n);
    return out;
}

static void copy_op(copier *c, const cd_te_op *op, cd_te_op *out) {
    *out = *op;
    out->name = text(c, op->name);
    out->tag = text(c, op->tag);
    out->axis = iters(c, op->axis, op->n_axis);
    out->raxis = iters(c, op->raxis, op->n_raxis);
    out->shape = block(c, op->shape, op->rank, sizeof *op->shape);
    out->dtype = block(c, op->dtype, op->n_out, sizeof *op->dtype);
    out->body = list(c, op->body, op->n_out);
    out->red = reducer(c, op->red);
    out->cond = op->cond ? copied(c, op->cond) : NULL;
    out->init = list(c, op->init, op->n_out);
}

static void copy_all(copier *c) {
    const cd_te_dag *d = c->from;
    cd_te_dag *o = c->to;
    o->n_op = d->n_op;
    o->n_tensor = d->n_tensor;
    o->n_arg = d->n_arg;
    o->flop = d->flop;
    o->least = d->least;
    o->op = block(c, d->op, d->n_op, sizeof *d->op);
    o->tensor_op = block(c, d->tensor_op, d->n_tensor, sizeof *d->tensor_op);
    o->arg = block(c, d->arg, d->n_arg, sizeof *d->arg);
    for (uint32_t i = 0; !c->oom && i < d->n_op; i++) copy_op(c, &d->op[i], &o->op[i]);
    o->pool.n_var = d->pool.n_var;
}

/* Nothing is checked again: the original was. */
cdmpp_status cd_te_dag_copy(const cd_te_dag *dag, cd_te_dag **out, cdmpp_err *err) {
    copier c = {.from = dag};
    CD_TRY(cd_te_dag_new(&c.to, err));
    c.made = cd_mem_zalloc((size_t)dag->pool.n + 1, sizeof *c.made);
    if (c.made) copy_all(&c);
    const bool oom = !c.made || c.oom || c.to->pool.oom;
    cd_mem_free(c.made);
    if (oom) {
        cd_te_dag_free(c.to);
        return CD_FAIL(err, ENOMEM, "compute DAG");
    }
    cd_expr_pool_freeze(&c.to->pool);
    *out = c.to;
    return CDMPP_OK;
}

/* Shards of a definition, and the join of partial sums. Each is planned backward, from the piece of
 * the result to the boxes that it needs, and then built forward, operator by operator. */
#include <string.h>

#include "features/te_shard/te_shard_internal.h"

/* From a piece of the result backward: the box of every operator and argument that it needs. Ranges
 * of indices come from te_shard_range.c. */

static cdmpp_status no_memory(cdmpp_err *err) {
    return CD_FAIL(err, ENOMEM, "parts of an operator");
}

uint32_t cd_te_shard_result(const cd_te_dag *d) {
    uint32_t result = UINT32_MAX;
    if (!d->n_arg) return UINT32_MAX;
    for (uint32_t i = 0; i < d->n_op; i++) {
        if (d->op[i].is_placeholder || !d->op[i].is_output) continue;
        if (result != UINT32_MAX) return UINT32_MAX;
        result = i;
    }
    if (result == UINT32_MAX || d->op[result].n_out != 1 ||
        d->arg[d->n_arg - 1] != d->op[result].first_tensor)
        return UINT32_MAX;
    for (uint32_t k = 0; k + 1 < d->n_arg; k++)
        if (!d->op[d->tensor_op[d->arg[k]]].is_placeholder) return UINT32_MAX;
    return result;
}

/* ---- one expression ---- */

typedef struct {
    cd_te_shard_footprint *n;
    uint32_t op;
    bool oom;
} walker;

static void note_read(walker *w, uint32_t tensor) {
    cd_te_shard_footprint *n = w->n;
    if (n->seen[tensor] == w->op + 1) return;
    n->seen[tensor] = w->op + 1;
    const uint32_t at = n->n_in[w->op];
    if (!(at & (at - 1))) { /* room for the next power of two */
        uint32_t *in = CD_NEWN(n->a, uint32_t, at ? 2 * (size_t)at : 1);
        if (!in) {
            w->oom = true;
            return;
        }
        if (at) memcpy(in, n->in[w->op], at * sizeof *in);
        n->in[w->op] = in;
    }
    n->in[w->op][n->n_in[w->op]++] = n->dag->tensor_op[tensor];
}

static void note_load(walker *w, const cd_te_shard_env *env, const cd_expr *e) {
    const uint32_t src = w->n->dag->tensor_op[e->u.i];
    const cd_te_op *op = &w->n->dag->op[src];
    w->n->live[src] = true;
    note_read(w, (uint32_t)e->u.i);
    for (uint32_t d = 0; d < e->n; d++) {
        cd_te_shard_span *all = &w->n->read[(size_t)src * CD_BOX_RANK + d];
        cd_te_shard_span s = cd_te_shard_range(env, e->a[d]);
        if (s.lo < 0) s.lo = 0;
        if (s.hi >= op->shape[d]) s.hi = op->shape[d] - 1;
        /* out of bounds: no valid definition reads there */
        if (s.lo > s.hi) s = (cd_te_shard_span){0, op->shape[d] - 1};
        const bool first = all->lo > all->hi;
        if (first || s.lo < all->lo) all->lo = s.lo;
        if (first || s.hi > all->hi) all->hi = s.hi;
    }
}

/* In TVM's order of first occurrence: operands before the load itself. */
static void walk(walker *w, const cd_te_shard_env *env, const cd_expr *e) {
    cd_te_shard_fork f;
    if (!(e->flags & CD_EXPR_HAS_LOAD) || w->oom) return;
    if (cd_te_shard_is_fork(e)) {
        if (!cd_te_shard_fork_make(env, e, w->n->a, &f)) {
            w->oom = true;
            return;
        }
        if (f.takes_then && f.takes_else) walk(w, env, e->a[0]);
        if (f.takes_then) walk(w, &f.then_env, e->a[1]);
        if (f.takes_else) walk(w, &f.else_env, e->a[2]);
        return;
    }
    for (uint32_t i = 0; i < e->n; i++) walk(w, env, e->a[i]);
    if (e->op == CD_LOAD) note_load(w, env, e);
}

void cd_te_shard_visit_loads(const cd_expr *e, cd_te_shard_load_fn *fn, void *ctx) {
    if (!(e->flags & CD_EXPR_HAS_LOAD)) return;
    if (e->op == CD_LOAD) fn(ctx, e);
    for (uint32_t i = 0; i < e->n; i++) cd_te_shard_visit_loads(e->a[i], fn, ctx);
}

/* ---- one operator ---- */

/* An extent may depend on the axes: adaptive pooling. */
static cdmpp_status raxis_span(const cd_te_shard_footprint *n, uint32_t i, uint32_t r,
                               cd_te_shard_env *env) {
    const cd_te_op *op = &n->dag->op[i];
    const cd_te_iter *it = &op->raxis[r];
    const cd_te_shard_span min = cd_te_shard_range(env, it->min),
                           ext = cd_te_shard_range(env, it->extent);
    cd_te_shard_var *v = &env->v[op->n_axis + r];
    *v = (cd_te_shard_var){.number = (uint32_t)it->var->u.i, .s = {min.lo, min.hi + ext.hi - 1}};
    if (i == n->cut_op && r == n->cut_raxis) {
        v->s = (cd_te_shard_span){n->lo, n->hi - 1};
        v->shift = n->lo;
    }
    return CDMPP_OK;
}

/* Spatial axes have the range of the operator's box, reduction axes their own, or the shard's if
 * this sum is split. */
cdmpp_status cd_te_shard_env_of(const cd_te_shard_footprint *n, uint32_t i, cd_te_shard_env *env) {
    const cd_te_op *op = &n->dag->op[i];
    *env = (cd_te_shard_env){.v = CD_NEWN(n->a, cd_te_shard_var, op->n_axis + op->n_raxis + 1)};
    if (!env->v) return no_memory(n->err);
    for (uint32_t d = 0; d < op->n_axis; d++) {
        const cd_box *b = &n->box[i];
        if (!cd_expr_is_int_value(op->axis[d].min, 0))
            return CD_FAIL(n->err, EUNSUPPORTED, "axis \"%s\" of \"%s\" does not begin at 0",
                           op->axis[d].name, op->name);
        env->v[d] = (cd_te_shard_var){
            (uint32_t)op->axis[d].var->u.i, b->lo[d], {b->lo[d], b->lo[d] + b->n[d] - 1}};
    }
    env->n = op->n_axis;
    for (uint32_t r = 0; r < op->n_raxis; r++) {
        CD_TRY(raxis_span(n, i, r, env));
        env->n++;
    }
    return CDMPP_OK;
}

static cdmpp_status walk_op(cd_te_shard_footprint *n, uint32_t i) {
    const cd_te_op *op = &n->dag->op[i];
    walker w = {n, i, false};
    cd_te_shard_env env;
    CD_TRY(cd_te_shard_env_of(n, i, &env));
    for (uint32_t k = 0; op->init && k < op->n_out; k++) walk(&w, &env, op->init[k]);
    if (op->cond) walk(&w, &env, op->cond);
    for (uint32_t k = 0; k < op->n_out; k++) walk(&w, &env, op->body[k]);
    return w.oom ? no_memory(n->err) : CDMPP_OK;
}

/* What is read of operator i, but dimensions of which the whole reads no more stay whole. */
static void settle(cd_te_shard_footprint *n, uint32_t i) {
    const cd_te_op *op = &n->dag->op[i];
    n->box[i] = cd_box_whole(op->rank, op->shape);
    for (uint32_t d = 0; n->whole && d < op->rank; d++) {
        const cd_te_shard_span *s = &n->read[(size_t)i * CD_BOX_RANK + d],
                               *all = &n->whole->read[(size_t)i * CD_BOX_RANK + d];
        if (s->lo == all->lo && s->hi == all->hi) continue;
        n->box[i].lo[d] = s->lo;
        n->box[i].n[d] = s->hi - s->lo + 1;
    }
}

/* Empty tensors are refused here, so every box has an element. */
static cdmpp_status prepare(cd_te_shard_footprint *n) {
    const cd_te_dag *d = n->dag;
    for (uint32_t i = 0; i < d->n_op; i++) {
        if (d->op[i].rank > CD_BOX_RANK)
            return CD_FAIL(n->err, EUNSUPPORTED, "\"%s\" has %u dimensions, %d are the most",
                           d->op[i].name, d->op[i].rank, CD_BOX_RANK);
        for (uint32_t k = 0; k < d->op[i].rank; k++)
            if (!d->op[i].shape[k])
                return CD_FAIL(n->err, EUNSUPPORTED, "\"%s\" is empty", d->op[i].name);
    }
    n->read = CD_NEWN(n->a, cd_te_shard_span, (size_t)d->n_op * CD_BOX_RANK);
    n->live = CD_NEWN(n->a, bool, d->n_op);
    n->box = CD_NEWN(n->a, cd_box, d->n_op);
    n->in = CD_NEWN(n->a, uint32_t *, d->n_op);
    n->n_in = CD_NEWN(n->a, uint32_t, d->n_op);
    n->seen = CD_NEWN(n->a, uint32_t, d->n_tensor);
    if (!n->read || !n->live || !n->box || !n->in || !n->n_in || !n->seen) return no_memory(n->err);
    for (size_t k = 0; k < (size_t)d->n_op * CD_BOX_RANK; k++)
        n->read[k] = (cd_te_shard_span){0, -1};
    return CDMPP_OK;
}

cdmpp_status cd_te_shard_footprint_grow(cd_te_shard_footprint *n, uint32_t result,
                                        const cd_box *box) {
    CD_TRY(prepare(n));
    n->result = result;
    n->live[result] = true;
    for (uint32_t i = result + 1; i-- > 0;) {
        if (!n->live[i]) continue;
        if (i == result) n->box[i] = *box;
        else settle(n, i);
        if (n->dag->op[i].is_placeholder || i == n->given) continue;
        CD_TRY(walk_op(n, i));
    }
    return CDMPP_OK;
}

cdmpp_status cd_te_shard_footprint_whole(const cd_te_dag *dag, cd_arena *a, uint32_t result,
                                         uint32_t given, cd_te_shard_footprint *out,
                                         cdmpp_err *err) {
    *out = (cd_te_shard_footprint){.dag = dag,
                                   .a = a,
                                   .given = given,
                                   .cut_op = UINT32_MAX,
                                   .cut_raxis = UINT32_MAX,
                                   .err = err};
    if (dag->op[result].rank > CD_BOX_RANK)
        return CD_FAIL(err, EUNSUPPORTED, "\"%s\" has %u dimensions, %d are the most",
                       dag->op[result].name, dag->op[result].rank, CD_BOX_RANK);
    const cd_box box = cd_box_whole(dag->op[result].rank, dag->op[result].shape);
    return cd_te_shard_footprint_grow(out, result, &box);
}

/* Builds the definition of a shard, operator by operator, from its boxes.
 * Its key must tell it from other definitions and still be equal for equal ones of other networks:
 * a tuned schedule is found by it. */

typedef struct {
    cd_te_shard_plan *p;
    cd_te_shard *part;
    cd_te_dag *to;
    cd_te_shard_move m;
    uint32_t *tensor;  /* (whole n_tensor) */
    uint32_t *partial; /* (n_partial) tensor */
    /* the extent of some sum does not follow from the arguments' shapes */
    bool hidden_range;
} builder;

/* ---- order ---- */

static uint32_t n_reads(const cd_te_shard_plan *p, uint32_t i) {
    if (i == p->need.given) return p->n_partial;
    return i < p->whole->n_op && p->need.live[i] ? p->need.n_in[i] : 0;
}

/* The shard's arguments decide TVM's order of its operators, not their order in the whole. */
static cdmpp_status order(cd_te_shard_plan *p) {
    const uint32_t n = p->whole->n_op + p->n_partial;
    uint32_t *ptr = CD_NEWN(p->a, uint32_t, n + 1), total = 0, *in,
             *arg = CD_NEWN(p->a, uint32_t, n + 1), n_arg = 0;
    for (uint32_t i = 0; i < n; i++) total += n_reads(p, i);
    in = CD_NEWN(p->a, uint32_t, total + 1);
    p->order = CD_NEWN(p->a, uint32_t, n + 1);
    if (!ptr || !in || !arg || !p->order) return no_memory(p->err);
    for (uint32_t i = 0; i < n; i++) {
        ptr[i + 1] = ptr[i] + n_reads(p, i);
        for (uint32_t k = 0; k < n_reads(p, i); k++)
            in[ptr[i] + k] = i == p->need.given ? p->whole->n_op + k : p->need.in[i][k];
    }
    for (uint32_t k = 0; k < p->n_partial; k++) arg[n_arg++] = p->whole->n_op + k;
    for (uint32_t k = 0; k < p->whole->n_arg; k++) {
        const uint32_t op = p->whole->tensor_op[p->whole->arg[k]];
        if (op != p->need.result && p->whole->op[op].is_placeholder && p->need.live[op])
            arg[n_arg++] = op;
    }
    arg[n_arg++] = p->need.result;
    const cd_te_reads r = {n, n_arg, ptr, in, arg};
    return cd_te_stage_order(p->a, &r, p->order, &p->n_order, p->err);
}

/* ---- one operator ---- */

static const char *dup_name(builder *b, const char *s) {
    return cd_str_dup(&b->to->arena, (cd_str){s, strlen(s)});
}

static cdmpp_status shape_of(builder *b, cd_te_op *to, const cd_box *box, const cd_te_op *from) {
    int64_t *shape = CD_NEWN(&b->to->arena, int64_t, box->rank + 1);
    cd_dtype *t = CD_NEWN(&b->to->arena, cd_dtype, from->n_out);
    if (!shape || !t || !to->name || !to->tag) return no_memory(b->p->err);
    memcpy(shape, box->n, box->rank * sizeof *shape);
    memcpy(t, from->dtype, from->n_out * sizeof *t);
    to->rank = box->rank;
    to->shape = shape;
    to->dtype = t;
    to->n_out = from->n_out;
    to->first_tensor = b->to->n_tensor;
    b->to->n_tensor += from->n_out;
    return CDMPP_OK;
}

static cdmpp_status axes(builder *b, cd_te_op *to, const cd_te_op *from, const cd_box *box) {
    cd_te_iter *it = CD_NEWN(&b->to->arena, cd_te_iter, from->n_axis + 1);
    if (!it) return no_memory(b->p->err);
    for (uint32_t d = 0; d < from->n_axis; d++) {
        const cd_dtype t = from->axis[d].var->type;
        it[d] = (cd_te_iter){b->m.var[d], cd_expr_new_int(&b->to->pool, t, 0),
                             cd_expr_new_int(&b->to->pool, t, box->n[d]),
                             dup_name(b, from->axis[d].name)};
        if (!it[d].name) return no_memory(b->p->err);
    }
    to->axis = it;
    to->n_axis = from->n_axis;
    return CDMPP_OK;
}

typedef struct {
    const cd_te_dag *dag;
    const cd_te_iter *it;
    bool found;
} range_seen;

/* Is it a whole dimension of an argument? Then its extent follows from the shapes in a key. */
static void look_for_range(void *ctx, const cd_expr *load) {
    range_seen *r = ctx;
    const cd_te_op *op = &r->dag->op[r->dag->tensor_op[load->u.i]];
    for (uint32_t d = 0; op->is_placeholder && d < load->n; d++)
        if (load->a[d] == r->it->var && cd_expr_is_int_value(r->it->extent, op->shape[d]))
            r->found = true;
}

/* Ranges may be expressions of axes: they are moved like any other. */
static cdmpp_status raxes(builder *b, uint32_t i, cd_te_op *to, const cd_te_op *from,
                          const cd_te_shard_env *env) {
    cd_te_iter *it = CD_NEWN(&b->to->arena, cd_te_iter, from->n_raxis + 1);
    const cd_te_shard_footprint *n = &b->p->need;
    if (!it) return no_memory(b->p->err);
    for (uint32_t r = 0; r < from->n_raxis; r++) {
        const cd_te_iter *f = &from->raxis[r];
        range_seen seen = {b->p->whole, f, false};
        it[r] = (cd_te_iter){.var = b->m.var[from->n_axis + r], .name = dup_name(b, f->name)};
        it[r].min = cd_te_shard_move_expr(&b->m, env, f->min);
        it[r].extent = i == n->cut_op && r == n->cut_raxis
                           ? cd_expr_new_int(&b->to->pool, f->extent->type, n->hi - n->lo)
                           : cd_te_shard_move_expr(&b->m, env, f->extent);
        if (!it[r].name) return no_memory(b->p->err);
        cd_te_shard_visit_loads(from->body[0], look_for_range, &seen);
        if (!seen.found) b->hidden_range = true;
    }
    to->raxis = it;
    to->n_raxis = from->n_raxis;
    return CDMPP_OK;
}

static cdmpp_status expressions(builder *b, const cd_te_shard_env *env, const cd_expr *const *from,
                                uint32_t n, const cd_expr *const **out) {
    const cd_expr **e = CD_NEWN(&b->to->arena, const cd_expr *, n + 1);
    if (!e) return no_memory(b->p->err);
    for (uint32_t k = 0; k < n; k++) e[k] = cd_te_shard_move_expr(&b->m, env, from[k]);
    *out = e;
    return CDMPP_OK;
}

static cdmpp_status variables(builder *b, const cd_expr *const *from, uint32_t n,
                              const cd_expr *const **out, cd_te_shard_var *v, const cd_expr **var) {
    const cd_expr **e = CD_NEWN(&b->to->arena, const cd_expr *, n);
    if (!e) return no_memory(b->p->err);
    for (uint32_t k = 0; k < n; k++) {
        var[k] = e[k] =
            cd_expr_new_var(&b->to->pool, from[k]->type, cd_expr_pool_var_number(&b->to->pool));
        v[k] = (cd_te_shard_var){.number = (uint32_t)from[k]->u.i};
    }
    *out = e;
    return CDMPP_OK;
}

/* Its expressions use fresh variables and read nothing, so they are moved with an environment of
 * their own. */
static cdmpp_status reducer(builder *b, cd_te_op *to, const cd_te_reducer *from) {
    const uint32_t n = from->n;
    cd_te_reducer *r = CD_NEW(&b->to->arena, cd_te_reducer);
    cd_te_shard_env env = {2 * n, CD_NEWN(b->p->a, cd_te_shard_var, 2 * n)};
    const cd_expr **var = CD_NEWN(b->p->a, const cd_expr *, 2 * n), **const outer = b->m.var;
    const uint32_t op = b->m.op;
    if (!r || !env.v || !var) return no_memory(b->p->err);
    r->n = n;
    CD_TRY(variables(b, from->lhs, n, &r->lhs, env.v, var));
    CD_TRY(variables(b, from->rhs, n, &r->rhs, env.v + n, var + n));
    b->m.var = var;
    b->m.op = UINT32_MAX;
    cdmpp_status st = expressions(b, &env, from->result, n, &r->result);
    if (!st) st = expressions(b, &env, from->identity, n, &r->identity);
    b->m.var = outer;
    b->m.op = op;
    to->red = r;
    return st;
}

/* A given count of operations is divided by elements. */
static double flop_of(const cd_te_shard_footprint *n, uint32_t i) {
    const cd_te_op *op = &n->dag->op[i];
    double f = op->flop_attr;
    if (f < 0) return f;
    for (uint32_t d = 0; d < op->rank; d++) f *= (double)n->box[i].n[d] / (double)op->shape[d];
    if (i == n->cut_op) f *= (double)(n->hi - n->lo) / (double)op->raxis[n->cut_raxis].extent->u.i;
    return f;
}

/* Fresh variables for all axes, then everything that is made of them. */
static cdmpp_status compute(builder *b, uint32_t i, cd_te_op *to) {
    const cd_te_op *from = &b->p->whole->op[i];
    const cd_te_shard_footprint *n = &b->p->need;
    cd_te_shard_env env;
    CD_TRY(cd_te_shard_env_of(n, i, &env));
    b->m.at = &env;
    b->m.op = i;
    b->m.var = CD_NEWN(b->p->a, const cd_expr *, env.n + 1);
    if (!b->m.var) return no_memory(b->p->err);
    for (uint32_t k = 0; k < env.n; k++) {
        const cd_te_iter *it = k < from->n_axis ? &from->axis[k] : &from->raxis[k - from->n_axis];
        b->m.var[k] =
            cd_expr_new_var(&b->to->pool, it->var->type, cd_expr_pool_var_number(&b->to->pool));
    }
    CD_TRY(axes(b, to, from, &n->box[i]));
    CD_TRY(raxes(b, i, to, from, &env));
    CD_TRY(expressions(b, &env, from->body, from->n_out, &to->body));
    if (from->init) CD_TRY(expressions(b, &env, from->init, from->n_out, &to->init));
    if (from->cond) to->cond = cd_te_shard_move_expr(&b->m, &env, from->cond);
    return from->red ? reducer(b, to, from->red) : CDMPP_OK;
}

static cdmpp_status operator_of(builder *b, uint32_t i, cd_te_op *to) {
    const cd_te_op *from = &b->p->whole->op[i];
    *to = (cd_te_op){.name = dup_name(b, from->name),
                     .tag = dup_name(b, from->tag),
                     .is_placeholder = from->is_placeholder,
                     .const_matrix = from->const_matrix,
                     .simplify_const = from->simplify_const,
                     .layout_free = from->layout_free,
                     .flop_attr = flop_of(&b->p->need, i)};
    CD_TRY(shape_of(b, to, &b->p->need.box[i], from));
    for (uint32_t k = 0; k < from->n_out; k++)
        b->tensor[from->first_tensor + k] = to->first_tensor + k;
    return from->is_placeholder ? CDMPP_OK : compute(b, i, to);
}

/* ---- joins ---- */

static cdmpp_status partial_of(builder *b, uint32_t k, cd_te_op *to) {
    const cd_te_op *sum = &b->p->whole->op[b->p->need.given];
    *to = (cd_te_op){.name = dup_name(b, "partial"),
                     .tag = dup_name(b, ""),
                     .is_placeholder = true,
                     .flop_attr = -1};
    b->partial[k] = b->to->n_tensor;
    const cd_box box = cd_box_whole(sum->rank, sum->shape);
    return shape_of(b, to, &box, sum);
}

/* In a join the split sum becomes the sum of the partial ones. */
static cdmpp_status sum_of(builder *b, cd_te_op *to) {
    const uint32_t i = b->p->need.given;
    const cd_te_op *from = &b->p->whole->op[i];
    cd_expr_pool *pool = &b->to->pool;
    *to = (cd_te_op){
        .name = dup_name(b, from->name), .tag = dup_name(b, "elemwise"), .flop_attr = -1};
    const cd_box box = cd_box_whole(from->rank, from->shape);
    CD_TRY(shape_of(b, to, &box, from));
    b->tensor[from->first_tensor] = to->first_tensor;
    b->m.var = CD_NEWN(b->p->a, const cd_expr *, from->n_axis + 1);
    const cd_expr **body = CD_NEWN(&b->to->arena, const cd_expr *, 1);
    if (!b->m.var || !body) return no_memory(b->p->err);
    for (uint32_t d = 0; d < from->n_axis; d++)
        b->m.var[d] = cd_expr_new_var(pool, from->axis[d].var->type, cd_expr_pool_var_number(pool));
    CD_TRY(axes(b, to, from, &box));
    for (uint32_t k = 0; k < b->p->n_partial; k++) {
        const cd_expr *e =
            cd_expr_new_load(pool, from->dtype[0], b->partial[k], b->m.var, from->n_axis);
        body[0] = k ? cd_expr_new_bin(pool, CD_ADD, body[0], e) : e;
    }
    to->body = body;
    return CDMPP_OK;
}

/* ---- the shard ---- */

/* Operators in the new order; numbers beyond the whole's are partial sums. */
static cdmpp_status operators(builder *b) {
    const cd_te_shard_plan *p = b->p;
    b->to->op = CD_NEWN(&b->to->arena, cd_te_op, p->n_order);
    b->tensor = CD_NEWN(p->a, uint32_t, p->whole->n_tensor);
    b->partial = CD_NEWN(p->a, uint32_t, p->n_partial + 1);
    if (!b->to->op || !b->tensor || !b->partial) return no_memory(p->err);
    b->m = (cd_te_shard_move){.need = &p->need, .to = b->to, .tensor = b->tensor, .a = p->a};
    for (uint32_t k = 0; k < p->n_order; k++) {
        const uint32_t i = p->order[k];
        cd_te_op *to = &b->to->op[k];
        if (i >= p->whole->n_op) CD_TRY(partial_of(b, i - p->whole->n_op, to));
        else if (i == p->need.given) CD_TRY(sum_of(b, to));
        else CD_TRY(cd_err_key(p->err, operator_of(b, i, to), p->whole->op[i].name));
        b->to->n_op++;
    }
    return b->m.oom ? no_memory(p->err) : CDMPP_OK;
}

/* Partial sums first, then the whole's arguments that are needed, the result last. */
static cdmpp_status arguments(builder *b) {
    const cd_te_dag *w = b->p->whole;
    const cd_te_shard_footprint *n = &b->p->need;
    cd_te_shard *part = b->part;
    const uint32_t most = w->n_arg + b->p->n_partial + 1;
    const bool partial = n->cut_op != UINT32_MAX;
    b->to->arg = CD_NEWN(&b->to->arena, uint32_t, most);
    part->of = CD_NEWN(&part->arena, uint32_t, most);
    part->box = CD_NEWN(&part->arena, cd_box, most);
    if (!b->to->arg || !part->of || !part->box) return no_memory(b->p->err);
    for (uint32_t k = 0; k < b->p->n_partial; k++) {
        b->to->arg[part->n_arg] = b->partial[k];
        part->of[part->n_arg] = CD_TE_SHARD_PARTIAL + k;
        part->box[part->n_arg++] = cd_box_whole(w->op[n->given].rank, w->op[n->given].shape);
    }
    for (uint32_t k = 0; k + 1 < w->n_arg; k++) {
        const uint32_t op = w->tensor_op[w->arg[k]];
        if (!n->live[op]) continue;
        b->to->arg[part->n_arg] = b->tensor[w->arg[k]];
        part->of[part->n_arg] = k;
        part->box[part->n_arg++] = n->box[op];
    }
    b->to->arg[part->n_arg] = b->tensor[w->op[n->result].first_tensor];
    part->of[part->n_arg] = partial ? CD_TE_SHARD_PARTIAL : w->n_arg - 1;
    part->box[part->n_arg++] = n->box[n->result];
    b->to->n_arg = part->n_arg;
    return CDMPP_OK;
}

/* TVM's hash is enough if the text is the whole's and every range follows from the shapes; else a
 * hash of everything. */
static cdmpp_status name(builder *b) {
    cd_buf text = {0};
    if (b->m.changed || b->hidden_range) CD_TRY(cd_te_dag_hash_all(b->to, b->part->key, b->p->err));
    else CD_TRY(cd_te_dag_hash(b->to, b->part->key, b->p->err));
    cd_te_workload_key(&text, b->to, b->part->key);
    b->part->workload_key = text.oom ? NULL : cd_str_dup(&b->part->arena, (cd_str){text.p, text.n});
    cd_buf_free(&text);
    return b->part->workload_key ? CDMPP_OK : no_memory(b->p->err);
}

static cdmpp_status build(builder *b) {
    CD_TRY(order(b->p));
    CD_TRY(cd_te_dag_new(&b->part->dag, b->p->err));
    b->to = b->part->dag;
    CD_TRY(operators(b));
    CD_TRY(arguments(b));
    CD_TRY(cd_te_dag_finish(b->to, b->p->err));
    return name(b);
}

/* The shard of a plan. Errors: EUNSUPPORTED, ENOMEM. */
static cdmpp_status te_shard_build(cd_te_shard_plan *p, cd_te_shard **out) {
    builder b = {.p = p, .part = cd_mem_zalloc(1, sizeof(cd_te_shard))};
    if (!b.part) return no_memory(p->err);
    const cdmpp_status st = build(&b);
    if (st) cd_te_shard_free(b.part);
    else *out = b.part;
    return st;
}

void cd_te_shard_free(cd_te_shard *p) {
    if (!p) return;
    cd_te_dag_free(p->dag);
    cd_arena_free(&p->arena);
    cd_mem_free(p);
}

static cdmpp_status find_result(const cd_te_dag *whole, uint32_t *result, cdmpp_err *err) {
    *result = cd_te_shard_result(whole);
    if (*result == UINT32_MAX)
        return CD_FAIL(err, EUNSUPPORTED, "a definition of several results has no parts");
    return CDMPP_OK;
}

static cdmpp_status check_range(int64_t extent, int64_t lo, int64_t hi, cdmpp_err *err) {
    if (lo >= 0 && lo < hi && hi <= extent) return CDMPP_OK;
    return CD_FAIL(err, ERANGE, "expected a part of 0 .. %lld, found %lld .. %lld",
                   (long long)extent, (long long)lo, (long long)hi);
}

/* A piece of the result. */
static cdmpp_status plan_axis(cd_te_shard_plan *p, const cd_te_shard_axis *way, int64_t lo,
                              int64_t hi) {
    uint32_t result;
    cd_te_shard_footprint *all = CD_NEW(p->a, cd_te_shard_footprint);
    if (!all) return CD_FAIL(p->err, ENOMEM, "parts of an operator");
    CD_TRY(find_result(p->whole, &result, p->err));
    const cd_te_op *op = &p->whole->op[result];
    if (way->op != result || way->axis >= op->rank || op->rank > CD_BOX_RANK)
        return CD_FAIL(p->err, EUNSUPPORTED, "no axis %u of \"%s\"", way->axis, op->name);
    CD_TRY(check_range(op->shape[way->axis], lo, hi, p->err));
    CD_TRY(cd_te_shard_footprint_whole(p->whole, p->a, result, UINT32_MAX, all, p->err));
    cd_box box = cd_box_whole(op->rank, op->shape);
    box.lo[way->axis] = lo;
    box.n[way->axis] = hi - lo;
    p->need = (cd_te_shard_footprint){.dag = p->whole,
                                      .a = p->a,
                                      .whole = all,
                                      .given = UINT32_MAX,
                                      .cut_op = UINT32_MAX,
                                      .cut_raxis = UINT32_MAX,
                                      .err = p->err};
    return cd_te_shard_footprint_grow(&p->need, result, &box);
}

static cdmpp_status check_sum(const cd_te_shard_plan *p, const cd_te_shard_axis *way,
                              uint32_t *result) {
    CD_TRY(find_result(p->whole, result, p->err));
    if (!way->reduce || !cd_te_shard_is_sum(p->whole, *result, way->op, way->axis))
        return CD_FAIL(p->err, EINVALID, "not a sum that can be cut");
    return CDMPP_OK;
}

/* A piece of the sum: all that is read and made up to it. */
static cdmpp_status plan_sum(cd_te_shard_plan *p, const cd_te_shard_axis *way, int64_t lo,
                             int64_t hi) {
    uint32_t result;
    cd_te_shard_footprint *all = CD_NEW(p->a, cd_te_shard_footprint);
    if (!all) return CD_FAIL(p->err, ENOMEM, "parts of an operator");
    CD_TRY(check_sum(p, way, &result));
    const cd_te_op *op = &p->whole->op[way->op];
    CD_TRY(check_range(op->raxis[way->axis].extent->u.i, lo, hi, p->err));
    CD_TRY(cd_te_shard_footprint_whole(p->whole, p->a, way->op, UINT32_MAX, all, p->err));
    p->need = (cd_te_shard_footprint){.dag = p->whole,
                                      .a = p->a,
                                      .whole = all,
                                      .given = UINT32_MAX,
                                      .cut_op = way->op,
                                      .cut_raxis = way->axis,
                                      .lo = lo,
                                      .hi = hi,
                                      .err = p->err};
    const cd_box box = cd_box_whole(op->rank, op->shape);
    return cd_te_shard_footprint_grow(&p->need, way->op, &box);
}

static cdmpp_status plan_join(cd_te_shard_plan *p, const cd_te_shard_axis *way) {
    uint32_t result;
    CD_TRY(check_sum(p, way, &result));
    return cd_te_shard_footprint_whole(p->whole, p->a, result, way->op, &p->need, p->err);
}

cdmpp_status cd_te_shard_make(const cd_te_dag *whole, const cd_te_shard_axis *way, int64_t lo,
                              int64_t hi, cd_te_shard **out, cdmpp_err *err) {
    cd_arena a = {0};
    cd_te_shard_plan p = {.whole = whole, .a = &a, .err = err};
    cdmpp_status st = way->reduce ? plan_sum(&p, way, lo, hi) : plan_axis(&p, way, lo, hi);
    if (!st) st = te_shard_build(&p, out);
    cd_arena_free(&a);
    return cd_err_key(err, st, way->name ? way->name : "part");
}

cdmpp_status cd_te_shard_join(const cd_te_dag *whole, const cd_te_shard_axis *way, uint32_t n,
                              cd_te_shard **out, cdmpp_err *err) {
    cd_arena a = {0};
    cd_te_shard_plan p = {.whole = whole, .n_partial = n, .a = &a, .err = err};
    if (n < 2) return CD_FAIL(err, EINVALID, "%u partial sums are nothing to join", n);
    cdmpp_status st = plan_join(&p, way);
    if (!st) st = te_shard_build(&p, out);
    cd_arena_free(&a);
    return cd_err_key(err, st, way->name ? way->name : "join");
}

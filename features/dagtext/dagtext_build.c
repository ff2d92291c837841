/* Lines to a definition whose extents are not known yet. TVM prints in stage order, so the order is
 * a proof of what reads what. */
#include <stdio.h>
#include <string.h>

#include "features/dagtext/dagtext_internal.h"

typedef struct {
    cd_dagtext *t;
    cd_te_dag *dag;
    const cd_dagtext_line *line; /* being built */
    uint32_t site;
    cd_buf text;
} builder;

static const cd_expr *find_iter(const cd_te_iter *it, uint32_t n, cd_str name) {
    for (uint32_t i = 0; i < n; i++)
        if (cd_str_is(name, it[i].name)) return it[i].var;
    return NULL;
}

static const cd_expr *find_axis(const void *ctx, cd_str name) {
    const builder *b = ctx;
    const cd_te_op *op = &b->dag->op[b->dag->n_op];
    const cd_expr *v = find_iter(op->axis, op->n_axis, name);
    return v ? v : find_iter(op->raxis, op->n_raxis, name);
}

/* "t12": the tensor of line 12. */
static bool find_tensor(const void *ctx, cd_str name, uint32_t *number, cd_dtype *type) {
    const builder *b = ctx;
    uint32_t k = 0;
    for (size_t i = 1; i < name.n && k < CD_DAGTEXT_MAX_OP; i++)
        k = k * 10 + (uint32_t)(name.p[i] - '0');
    *number = k;
    if (k >= b->dag->n_op) return false;
    *type = b->dag->op[k].dtype[0];
    return true;
}

static cdmpp_status make_axes(builder *b, const cd_str *name, uint32_t n, const cd_te_iter **out) {
    cd_te_iter *it = CD_NEWN(&b->dag->arena, cd_te_iter, n);
    cd_expr_pool *p = &b->dag->pool;
    if (!it) return CD_FAIL(b->t->err, ENOMEM, "axes");
    for (uint32_t i = 0; i < n; i++) {
        it[i].name = cd_str_dup(&b->dag->arena, name[i]);
        if (!it[i].name) return CD_FAIL(b->t->err, ENOMEM, "axes");
        it[i].var = cd_expr_new_var(p, CD_I32, cd_expr_pool_var_number(p));
        it[i].min = it[i].extent = cd_expr_new_int(p, CD_I32, 0);
    }
    *out = it;
    return CDMPP_OK;
}

static cdmpp_status make_body(builder *b, uint32_t i, cd_te_op *op, cd_dtype *type) {
    const cd_te_scope scope = {find_axis, find_tensor, b};
    const cd_expr **body = CD_NEW(&b->dag->arena, const cd_expr *);
    cd_te_reducer *red = b->line->reduce ? CD_NEW(&b->dag->arena, cd_te_reducer) : NULL;
    if (!body || (b->line->reduce && !red)) return CD_FAIL(b->t->err, ENOMEM, "an expression");
    cd_buf_clear(&b->text);
    CD_TRY(cd_dagtext_notation(b->t, i, &b->site, &b->text));
    const cd_str text = {b->text.p ? b->text.p : "", b->text.n};
    cdmpp_err why = {0};
    const cdmpp_status st = cd_te_parse(&b->dag->pool, b->t->a, text, CD_F32, &scope, body, &why);
    if (b->dag->pool.oom || st == CDMPP_ENOMEM) return CD_FAIL(b->t->err, ENOMEM, "an expression");
    if (st)
        return CD_FAIL(b->t->err, EUNSUPPORTED, "an expression that this reader does not know: %s",
                       why.msg);
    op->body = body;
    *type = body[0]->type;
    op->red = red;
    return red ? cd_te_reducer_usual(b->dag, b->line->reduce, *type, red, b->t->err) : CDMPP_OK;
}

static cdmpp_status make_op(builder *b, uint32_t i) {
    cd_te_op *op = &b->dag->op[i];
    const cd_dagtext_line *l = b->line = &b->t->line[i];
    *op = (cd_te_op){.tag = "",
                     .first_tensor = i,
                     .n_out = 1,
                     .flop_attr = -1,
                     .is_placeholder = !l->body.n,
                     .rank = l->body.n ? l->n_axis : l->rank};
    int64_t *shape = CD_NEWN(&b->dag->arena, int64_t, op->rank);
    cd_dtype *type = CD_NEW(&b->dag->arena, cd_dtype);
    op->name = cd_str_dup(&b->dag->arena, l->name);
    if (!shape || !type || !op->name) return CD_FAIL(b->t->err, ENOMEM, "operators");
    op->shape = shape;
    op->dtype = type;
    *type = CD_F32;
    if (op->is_placeholder) {
        if (op->rank) memcpy(shape, l->shape, op->rank * sizeof *shape);
    } else {
        CD_TRY(make_axes(b, l->axis, l->n_axis, &op->axis));
        op->n_axis = l->n_axis;
        CD_TRY(make_axes(b, l->raxis, l->n_raxis, &op->raxis));
        op->n_raxis = l->n_raxis;
        CD_TRY(make_body(b, i, op, type));
    }
    b->dag->n_op = b->dag->n_tensor = i + 1;
    return CDMPP_OK;
}

/* ---- order ---- */

typedef struct {
    uint32_t *in, n, first; /* operators that are read, each once per operator */
    bool *is_read;
    const cd_te_dag *dag;
    bool misfit; /* a load has more or fewer indices than its tensor has dimensions */
} reads;

static void add_reads(reads *r, const cd_expr *e) {
    if (!(e->flags & CD_EXPR_HAS_LOAD)) return;
    for (uint32_t i = 0; i < e->n; i++) add_reads(r, e->a[i]);
    if (e->op != CD_LOAD) return;
    r->is_read[e->u.i] = true;
    r->misfit = r->misfit || e->n != r->dag->op[e->u.i].rank;
    for (uint32_t k = r->first; k < r->n; k++)
        if (r->in[k] == (uint32_t)e->u.i) return;
    r->in[r->n++] = (uint32_t)e->u.i;
}

/* Arguments: all placeholders, then what no operator reads, as in a key of an operator or a
 * network. */
static cdmpp_status check_order(builder *b) {
    cd_te_dag *d = b->dag;
    const uint32_t n = d->n_op;
    uint32_t *ptr = CD_NEWN(b->t->a, uint32_t, n + 1), *order = CD_NEWN(b->t->a, uint32_t, n + 1),
             n_order = 0;
    reads r = {CD_NEWN(b->t->a, uint32_t, (size_t)n * n + 1),
               0,
               0,
               CD_NEWN(b->t->a, bool, n + 1),
               d,
               false};
    d->arg = CD_NEWN(&d->arena, uint32_t, n);
    if (!ptr || !order || !r.in || !r.is_read || !d->arg)
        return CD_FAIL(b->t->err, ENOMEM, "operators");
    for (uint32_t i = 0; i < n; i++) {
        ptr[i] = r.first = r.n;
        if (d->op[i].body) add_reads(&r, d->op[i].body[0]);
    }
    ptr[n] = r.n;
    if (r.misfit)
        return CD_FAIL(b->t->err, ESCHEMA,
                       "a load has more or fewer indices than its tensor has dimensions");
    for (unsigned pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < n; i++)
            if (pass == 0 ? d->op[i].is_placeholder : !d->op[i].is_placeholder && !r.is_read[i])
                d->arg[d->n_arg++] = i;
    const cd_te_reads all = {n, d->n_arg, ptr, r.in, d->arg};
    CD_TRY(cd_te_stage_order(b->t->a, &all, order, &n_order, b->t->err));
    bool same = n_order == n;
    for (uint32_t i = 0; same && i < n; i++) same = order[i] == i;
    return same ? CDMPP_OK : CD_FAIL(b->t->err, ESCHEMA, "its lines are not in TVM's order");
}

/* Placeholders that TVM's operators of these names read second are weights, whose layout a tuner
 * may change (attrs["layout_free_placeholders"], which is not printed). */
static bool marks_weights(const char *name) {
    static const char *const whole[] = {"conv2d_nhwc", "bgemm"};
    static const char *const begin[] = {"T_matmul_", "T_batch_matmul_"};
    for (size_t k = 0; k < 2; k++)
        if (!strcmp(name, whole[k]) || !strncmp(name, begin[k], strlen(begin[k]))) return true;
    return false;
}

static void mark_weights(cd_te_dag *d) {
    for (uint32_t i = 0; i < d->n_op; i++) {
        const cd_expr *e = d->op[i].body ? d->op[i].body[0] : NULL;
        if (!e || !d->op[i].red || !marks_weights(d->op[i].name) || e->op != CD_MUL ||
            e->a[1]->op != CD_LOAD)
            continue;
        cd_te_op *w = &d->op[e->a[1]->u.i];
        w->layout_free = w->is_placeholder;
    }
}

static cdmpp_status build(builder *b) {
    for (uint32_t i = 0; i < b->t->n_line; i++) {
        const cdmpp_status st = make_op(b, i);
        if (st)
            return cd_err_key(b->t->err, st, b->dag->op[i].name ? b->dag->op[i].name : "operator");
    }
    mark_weights(b->dag);
    return check_order(b);
}

cdmpp_status cd_dagtext_build(cd_dagtext *t, cd_te_dag **out) {
    builder b = {.t = t};
    CD_TRY(cd_te_dag_new(&b.dag, t->err));
    b.dag->op = CD_NEWN(&b.dag->arena, cd_te_op, t->n_line);
    cdmpp_status st = CDMPP_OK;
    if (b.dag->op) st = build(&b);
    else st = CD_FAIL(t->err, ENOMEM, "operators");
    cd_buf_free(&b.text);
    if (b.dag->pool.oom && !st) st = CD_FAIL(t->err, ENOMEM, "operators");
    if (st) cd_te_dag_free(b.dag);
    else *out = b.dag;
    return st;
}

/* Reductions whose loops are bound to threads. Each thread accumulates over its own loops, then one
 * tvm_thread_allreduce combines the threads (docs/internals/ansor.md, Lowering). */
#include "features/schedule/lower.h"

/* One-element local buffers "<name>0..". Their operators only carry the name. */
static int32_t new_temps(cd_lowerer *l, const cd_schedule_op *like, const char *name) {
    static const int64_t one[1] = {1};
    cd_schedule_op op = {.name = name,
                         .suffix = like->n_out > 1 ? "" : "0",
                         .n_out = like->n_out,
                         .rank = 1,
                         .shape = one,
                         .dtype = like->dtype,
                         .first_tensor = l->s->tensor_op.n,
                         .is_placeholder = true};
    return cd_schedule_op_new(l->s, &op);
}

static void emit_alloc(cd_lowerer *l, uint32_t tensor) {
    const cd_expr **x = cd_lower_get(l, 2, sizeof *x);
    if (!x) return;
    x[0] = cd_expr_int(&l->s->pool, 0);
    x[1] = cd_expr_int(&l->s->pool, 1);
    cd_ast_node *n = cd_ast_open(l->t, CD_AST_ALLOC);
    n->tensor = tensor;
    n->n = 2;
    n->x = x;
    n->loop = 3;
}

static void emit_temp_stores(cd_lowerer *l, const cd_schedule_op *temp,
                             const cd_expr *const *value) {
    cd_stores w = {.n = temp->n_out,
                   .value = cd_lower_get(l, temp->n_out, sizeof *w.value),
                   .index = cd_lower_get(l, 1, sizeof *w.index)};
    if (l->s->oom) return;
    for (uint32_t k = 0; k < w.n; k++) w.value[k] = value[k];
    w.index[0] = cd_expr_int(&l->s->pool, 0);
    cd_lower_stores(l, temp, &w);
}

typedef struct {
    int32_t stage;
    cd_schedule_op op, normal, result; /* normal: partial results of the loops inside one thread */
    bool has_loops;                    /* some reduction loop is not bound to a thread */
    const cd_expr *const *init, *const *partial;
    const cd_expr **given; /* (n_out + thread axes) of the allreduce */
    uint32_t n_given;
    cd_stores w;
    const cd_expr *cond;
} cross;

static bool is_inner_reduce(const cd_schedule_iv *iv) {
    return iv->type == CD_SCHEDULE_IV_REDUCE && iv->thread < 0;
}

static const cd_expr *const *temp_loads(cd_lowerer *l, const cd_schedule_op *temp) {
    const cd_expr *zero = cd_expr_int(&l->s->pool, 0),
                  **out = cd_lower_get(l, temp->n_out, sizeof *out);
    for (uint32_t k = 0; k < temp->n_out && out; k++)
        out[k] = cd_expr_new_load(&l->s->pool, temp->dtype[k], temp->first_tensor + k, &zero, 1);
    return out;
}

/* A thread without loops of its own gives the element itself, or where a guard says no, nothing. */
static const cd_expr *lone_part(cd_lowerer *l, const cross *c, const cd_expr *body,
                                const cd_expr *identity) {
    for (uint32_t i = 0; i < c->w.preds.n; i++) {
        const cd_expr *arg[] = {c->w.preds.p[i], body, identity};
        body = cd_expr_new_call(&l->s->pool, body->type, "if_then_else", arg, 3);
    }
    if (!c->cond) return body;
    const cd_expr *arg[] = {c->cond, body, identity};
    return cd_expr_new_call(&l->s->pool, body->type, "if_then_else", arg, 3);
}

/* After the substitution. */
static void collect_given(cd_lowerer *l, const cd_schedule_stage *st, cross *c,
                          const cd_expr *const *normal) {
    cd_schedule *s = l->s;
    c->given = cd_lower_get(l, c->op.n_out + st->leaf.n, sizeof *c->given);
    if (!c->given) return;
    for (uint32_t k = 0; k < c->op.n_out; k++)
        c->given[c->n_given++] =
            c->has_loops ? normal[k]
                         : lone_part(l, c, cd_subst_apply(&s->subst, c->op.body[k]), c->init[k]);
    for (uint32_t i = 0; i < st->leaf.n; i++) {
        const cd_schedule_iv *iv = &s->iv[st->leaf.p[i]];
        if (iv->type == CD_SCHEDULE_IV_REDUCE && iv->thread >= 0)
            c->given[c->n_given++] = s->iv[iv->thread].var;
    }
}

/* All expressions, before any node: emitting loops moves the iterators' array. */
static cdmpp_status prepare_cross(cd_lowerer *l, cd_schedule_stage *st, cross *c) {
    cd_schedule *s = l->s;
    CD_TRY(cd_lower_main_values(l, st));
    if (!cd_lower_new_stores(l, &c->op, &c->w)) return CD_FAIL(l->err, ENOMEM, "lower");
    for (uint32_t i = 0; i < st->leaf.n; i++)
        c->has_loops |= is_inner_reduce(&s->iv[st->leaf.p[i]]);
    c->normal = s->op[new_temps(l, &c->op, "normal_reduce_temp")];
    c->result = s->op[new_temps(l, &c->op, "reduce_temp")];
    const cd_expr **partial = cd_lower_get(l, c->op.n_out, sizeof *partial);
    const cd_expr *const *lhs = temp_loads(l, &c->normal), *const *fin = temp_loads(l, &c->result);
    if (s->oom) return CD_FAIL(l->err, ENOMEM, "lower");
    cd_lower_combine(l, &c->op, lhs, c->op.body, partial);
    cd_schedule_bound_check(s, st, false, &c->w.preds);
    cd_lower_main_subst(s, st, &s->subst);
    cd_lower_subst_all(&s->subst, partial, c->op.n_out);
    for (uint32_t k = 0; k < c->op.n_out; k++) c->w.value[k] = fin[k];
    cd_lower_finish_stores(&s->subst, &c->op, &c->w);
    c->init = c->op.init ? c->op.init : c->op.red->identity;
    c->partial = partial;
    c->cond = c->op.cond ? cd_subst_apply(&s->subst, c->op.cond) : NULL;
    collect_given(l, st, c, lhs);
    return s->oom ? CD_FAIL(l->err, ENOMEM, "lower") : CDMPP_OK;
}

/* Loops over all leaves but (inner ? the bound and spatial ones : the unbound reduction ones). */
static cdmpp_status emit_cross_loops(cd_lowerer *l, const cross *c, bool inner) {
    const cd_schedule_stage *st = &l->s->stage[c->stage];
    for (uint32_t i = 0; i < st->leaf.n; i++) {
        const int32_t k = l->s->stage[c->stage].leaf.p[i];
        if (is_inner_reduce(&l->s->iv[k]) != inner) continue;
        cd_lower_loop(l, &l->s->iv[k], l->s->iv[k].var);
        CD_TRY(cd_lower_attached(l, c->stage, k));
    }
    return CDMPP_OK;
}

static cdmpp_status emit_partial(cd_lowerer *l, const cross *c) {
    emit_temp_stores(l, &c->normal, c->init);
    const int32_t open = l->t->open;
    CD_TRY(emit_cross_loops(l, c, true));
    for (uint32_t i = 0; i < c->w.preds.n; i++) cd_lower_if(l, c->w.preds.p[i]);
    if (c->cond) cd_lower_if(l, c->cond);
    emit_temp_stores(l, &c->normal, c->partial);
    cd_ast_close(l->t, open);
    return CDMPP_OK;
}

static void emit_allreduce(cd_lowerer *l, const cross *c) {
    const int32_t open = l->t->open;
    cd_ast_open(l->t, CD_AST_ATTR)->attr = CD_ATTR_REDUCE_SCOPE;
    const cd_expr *arg = c->w.value[0];
    cd_ast_node *n = cd_ast_open(l->t, CD_AST_EVAL);
    n->e =
        cd_expr_new_call(&l->s->pool, CD_DTYPE(CD_T_HANDLE, 64), "tvm_thread_allreduce", &arg, 1);
    n->n = c->n_given;
    n->x = c->given;
    cd_ast_close(l->t, open);
}

cdmpp_status cd_lower_cross(cd_lowerer *l, int32_t stage) {
    cross c = {.stage = stage, .op = *cd_schedule_stage_op(l->s, &l->s->stage[stage])};
    CD_TRY(prepare_cross(l, &l->s->stage[stage], &c));
    CD_TRY(emit_cross_loops(l, &c, false));
    for (uint32_t k = 0; k < c.op.n_out; k++) {
        if (c.has_loops) emit_alloc(l, c.normal.first_tensor + k);
        emit_alloc(l, c.result.first_tensor + k);
    }
    if (c.has_loops) CD_TRY(emit_partial(l, &c));
    emit_allreduce(l, &c);
    if (c.cond) cd_lower_if(l, c.cond);
    cd_lower_stores(l, &c.op, &c.w);
    return CDMPP_OK;
}

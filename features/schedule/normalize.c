/* What happens to a schedule before bounds are inferred: inlined stages disappear, every root loop
 * starts at 0, attach points are moved to loops that still exist (docs/internals/ansor.md,
 * Normalization). */
#include "features/schedule/schedule.h"

/* ---- inlining ---- */

/* Features see a constant matrix as the number one. */
static const cd_expr *inlined_body(cd_schedule *s, const cd_schedule_op *op) {
    if (!op->const_matrix || s->real_const) return op->body[0];
    return cd_expr_dtype_is_float(op->dtype[0]) ? cd_expr_new_float(&s->pool, op->dtype[0], 1.0)
                                                : cd_expr_new_int(&s->pool, op->dtype[0], 1);
}

/* The body over the load's indices. What it reads may be inlined too: the outer substitution goes
 * on in it, and knows by its memo what it has pasted before, so that each load is pasted once
 * however many read it. */
static const cd_expr *paste(void *ctx, const cd_expr *e) {
    cd_schedule *s = ctx;
    const int32_t k = (uint64_t)e->u.i < s->tensor_op.n ? s->tensor_op.p[e->u.i] : -1;
    if (k < 0 || !s->op[k].inlined) return e;
    const cd_schedule_op *op = &s->op[k];
    /* what is inlined so often into each other is deeper than an expression may be */
    if (s->n_paste == CD_EXPR_MAX_DEPTH) {
        s->pool.big = true;
        return e;
    }
    s->n_paste++;
    cd_subst_begin(&s->subst2);
    for (uint32_t d = 0; d < op->n_axis; d++) {
        const cd_expr *var = s->iv[op->axis[d]].var;
        cd_subst_set(&s->subst2, var, cd_expr_cast(&s->pool, var->type, e->a[d]));
    }
    const cd_expr *pasted =
        cd_subst_apply(&s->subst, cd_subst_apply(&s->subst2, inlined_body(s, op)));
    s->n_paste--;
    return pasted;
}

/* Into every stage that remains. */
static void inline_stages(cd_schedule *s) {
    bool any = false;
    for (uint32_t id = 0; id < s->order.n; id++) {
        cd_schedule_stage *st = cd_schedule_stage_at(s, id);
        if (st->attach != CD_SCHEDULE_AT_INLINE) continue;
        st->attach = CD_SCHEDULE_AT_INLINED;
        any = s->op[st->op].inlined = true;
    }
    cd_subst_begin(&s->subst);
    s->subst.load = paste;
    s->subst.load_ctx = s;
    for (uint32_t id = 0; any && id < s->order.n; id++) {
        const cd_schedule_stage *st = cd_schedule_stage_at(s, id);
        cd_schedule_op *op = cd_schedule_stage_op(s, st);
        if (st->attach == CD_SCHEDULE_AT_INLINED || op->is_placeholder) continue;
        for (uint32_t k = 0; k < op->n_out; k++)
            op->body[k] = cd_subst_apply(&s->subst, op->body[k]);
        if (op->cond) op->cond = cd_subst_apply(&s->subst, op->cond);
    }
}

/* ---- rebasing ---- */

/* A root iterator that is still a loop gets a twin that starts at zero. */
static void rebase(cd_schedule *s, cd_schedule_stage *st, int32_t root) {
    const int32_t at = cd_schedule_ivec_find(&st->leaf, root);
    if (at < 0 || s->iv[root].thread >= 0) return;
    const int32_t twin = cd_schedule_iv_new(s, s->iv[root].type, CD_SCHEDULE_NAME_SAME, root, -1);
    s->iv[twin].loop = s->iv[root].loop;
    s->iv[twin].pragma = s->iv[root].pragma;
    cd_schedule_rel *r = cd_schedule_rel_push(s, st);
    r->kind = CD_SCHEDULE_REL_REBASE;
    r->parent = root;
    r->made = twin;
    st->leaf.p[at] = twin;
}

static void rebase_stage(cd_schedule *s, cd_schedule_stage *st) {
    const cd_schedule_op op = *cd_schedule_stage_op(s, st);
    for (uint32_t i = 0; i < op.n_axis; i++) rebase(s, st, op.axis[i]);
    for (uint32_t i = 0; i < op.n_raxis; i++) rebase(s, st, op.raxis[i]);
}

/* ---- attach points ---- */

/* The loop that took over from `iv`, or iv itself. */
static int32_t successor(const cd_schedule_stage *st, int32_t iv) {
    for (uint32_t i = 0; i < st->n_rel; i++) {
        const cd_schedule_rel *r = &st->rel[i];
        if (r->kind == CD_SCHEDULE_REL_FUSE && r->inner == iv) return r->made;
        if (r->kind == CD_SCHEDULE_REL_SPLIT && r->parent == iv) return r->inner;
        if (r->kind == CD_SCHEDULE_REL_REBASE && r->parent == iv) return r->made;
    }
    return iv;
}

static void legalize_attach(cd_schedule *s, cd_schedule_stage *st) {
    if (st->attach != CD_SCHEDULE_AT_SCOPE) return;
    const cd_schedule_stage *t = &s->stage[st->at_stage];
    while (cd_schedule_ivec_find(&t->leaf, st->at_iv) < 0) {
        const int32_t next = successor(t, st->at_iv);
        if (next == st->at_iv) return; /* not found: check_attach says so */
        st->at_iv = next;
    }
}

/* Every stage hangs, through others, at loops that are there. */
static cdmpp_status check_attach(const cd_schedule *s, const cd_schedule_stage *st,
                                 cdmpp_err *err) {
    const char *name = s->op[st->op].name;
    for (int32_t n = 0; st->attach == CD_SCHEDULE_AT_SCOPE; n++) {
        const cd_schedule_stage *t = &s->stage[st->at_stage];
        if (n > s->n_stage)
            return CD_FAIL(err, EINVALID, "%s is attached to itself through others", name);
        if (cd_schedule_ivec_find(&t->leaf, st->at_iv) < 0)
            return CD_FAIL(err, EINVALID, "the loop that %s is attached to is gone", name);
        st = t;
    }
    return CDMPP_OK;
}

cdmpp_status cd_schedule_normalize(cd_schedule *s, cdmpp_err *err) {
    inline_stages(s);
    for (uint32_t id = 0; id < s->order.n; id++) {
        cd_schedule_stage *st = cd_schedule_stage_at(s, id);
        if (st->attach == CD_SCHEDULE_AT_INLINED) continue;
        /* Iterators may move when the array grows: no pointer is kept across. */
        rebase_stage(s, st);
        if (s->oom) break;
    }
    for (uint32_t id = 0; id < s->order.n; id++) legalize_attach(s, cd_schedule_stage_at(s, id));
    for (uint32_t id = 0; id < s->order.n; id++)
        CD_TRY(check_attach(s, cd_schedule_stage_at(s, id), err));
    return s->oom || s->pool.oom || s->subst.oom || s->subst2.oom
               ? CD_FAIL(err, ENOMEM, "normalise")
               : CDMPP_OK;
}

/* Loop nests of stages, put into each other at their attach points. A stage opens its realize
 * nodes, emits its own nest and leaves the realize nodes open: what follows is its consumer
 * (docs/internals/ansor.md, Lowering). */
#include "features/schedule/lower.h"

#include <string.h>

static cdmpp_status emit_stage(cd_lowerer *l, int32_t stage);

/* Zeroed memory of the program; NULL sets s->oom. */
static void *lower_get(cd_lowerer *l, size_t n, size_t size) {
    void *p = cd_arena_zalloc(&l->s->arena, n, size);
    if (!p) l->s->oom = true;
    return p;
}

/* ---- values of loops ---- */

/* Value of a leaf inside its own loop; no loop is made for extent 1. */
static const cd_expr *leaf_value(cd_schedule *s, const cd_schedule_stage *st,
                                 const cd_schedule_iv *iv) {
    if (iv->thread < 0) return cd_expr_is_int_value(iv->r_ext, 1) ? iv->r_min : iv->var;
    const cd_schedule_iv *t = &s->iv[iv->thread];
    if (t->tag == CD_AST_TAG_VTHREAD) return t->var;
    if (cd_expr_is_int_value(iv->r_ext, 1)) return iv->r_min;
    if (!st->scope[0] || cd_schedule_scope_rank(st->scope) <= cd_ast_tag_rank((cd_ast_tag)t->tag))
        return t->var;
    return iv->r_min;
}

static bool is_loop(const cd_schedule_iv *iv) {
    return iv->thread < 0 && !cd_expr_is_int_value(iv->r_ext, 1);
}

/* TVM's demands on a loop that is bound to a thread axis. */
static cdmpp_status check_thread(const cd_lowerer *l, const cd_schedule_iv *iv) {
    if (!cd_expr_is_int_value(iv->r_min, 0))
        return CD_FAIL(l->err, EINVALID, "a thread axis that does not start at zero");
    if (l->s->iv[iv->thread].tag == CD_AST_TAG_VTHREAD &&
        (!cd_expr_is_int(iv->r_ext) || iv->r_ext->u.i < 1))
        return CD_FAIL(l->err, EINVALID, "virtual threads without a constant number");
    return CDMPP_OK;
}

/* iv.val of all iterators of a stage, from its loops. */
static cdmpp_status lower_main_values(cd_lowerer *l, cd_schedule_stage *st) {
    cd_schedule *s = l->s;
    for (uint32_t i = 0; i < st->all.n; i++) s->iv[st->all.p[i]].val = NULL;
    for (uint32_t i = 0; i < st->leaf.n; i++) {
        cd_schedule_iv *iv = &s->iv[st->leaf.p[i]];
        if (!iv->r_ext) return CD_FAIL(l->err, EINVALID, "loop without a range");
        if (iv->thread >= 0) CD_TRY(check_thread(l, iv));
        if (is_loop(iv) && !cd_expr_is_int_value(iv->r_min, 0))
            return CD_FAIL(l->err, EUNSUPPORTED, "loop that does not start at zero");
        iv->val = leaf_value(s, st, iv);
    }
    cd_schedule_pass_up_index(s, st);
    return CDMPP_OK;
}

/* The length of a reduction may depend on an axis of its own stage. */
static void loop_extents(cd_schedule *s, const cd_schedule_stage *st, cd_subst *sub) {
    for (uint32_t i = 0; i < st->leaf.n; i++) {
        cd_schedule_iv *iv = &s->iv[st->leaf.p[i]];
        iv->loop_ext = cd_expr_is_int(iv->r_ext) ? iv->r_ext : cd_subst_apply(sub, iv->r_ext);
    }
}

/* Substitution: iterator variables -> their values, thread-bound leaves -> threads. */
static void lower_start_subst(cd_schedule *s, const cd_schedule_stage *st, cd_subst *sub) {
    cd_subst_begin(sub);
    for (uint32_t i = 0; i < st->all.n; i++)
        if (s->iv[st->all.p[i]].val)
            cd_subst_set(sub, s->iv[st->all.p[i]].var, s->iv[st->all.p[i]].val);
    for (uint32_t i = 0; i < st->leaf.n; i++)
        if (s->iv[st->leaf.p[i]].val)
            cd_subst_set(sub, s->iv[st->leaf.p[i]].var, s->iv[st->leaf.p[i]].val);
}

/* The same for the main nest, whose loop lengths go through it too. */
static void lower_main_subst(cd_schedule *s, const cd_schedule_stage *st, cd_subst *sub) {
    lower_start_subst(s, st, sub);
    loop_extents(s, st, sub);
}

static const cd_expr *likely(cd_schedule *s, const cd_expr *p) {
    return cd_expr_is_int(p) ? p : cd_expr_new_call(&s->pool, CD_BOOL, "likely", &p, 1);
}

static void wrap_likely(cd_schedule *s, cd_schedule_preds *p) {
    for (uint32_t i = 0; i < p->n; i++) p->p[i] = likely(s, p->p[i]);
}

/* Each of (n) expressions through the substitution, in place. */
static void lower_subst_all(cd_subst *sub, const cd_expr **e, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) e[i] = cd_subst_apply(sub, e[i]);
}

/* ---- emitting ---- */

static void emit_pragmas(cd_lowerer *l, const cd_schedule_iv *iv) {
    for (const cd_schedule_pragma *p = iv->pragma; p; p = p->next) {
        cd_ast_node *n = cd_ast_open(l->t, CD_AST_ATTR);
        n->attr = CD_ATTR_UNROLL_STEP;
        n->extent = p->value;
        n = cd_ast_open(l->t, CD_AST_ATTR);
        n->attr = CD_ATTR_UNROLL_EXPLICIT;
        n->extent = 1;
    }
}

/* Nodes of the nest; loops, pragmas and guards stay open. */
static void lower_loop(cd_lowerer *l, const cd_schedule_iv *iv, const cd_expr *var) {
    cd_schedule *s = l->s;
    if (iv->thread >= 0) {
        cd_ast_node *n = cd_ast_open(l->t, CD_AST_THREAD);
        n->var = s->iv[iv->thread].var;
        n->tag = s->iv[iv->thread].tag;
        n->loop = CD_LOOP_THREAD;
        n->extent_e = iv->loop_ext;
        return;
    }
    emit_pragmas(l, iv);
    const bool once = !is_loop(iv);
    if (once && !s->every_loop) return;
    cd_ast_node *n = cd_ast_open(l->t, CD_AST_FOR);
    n->var = var;
    n->loop = iv->loop;
    n->extent_e = iv->loop_ext;
    if (!once) return;
    n->extent_e = cd_expr_new_int(&s->pool, iv->var->type, 1);
    /* Expressions have the value in place of such a loop: its variable is a new one, which moves
     * s->iv. */
    const int32_t twin =
        cd_schedule_iv_new(s, iv->type, CD_SCHEDULE_NAME_SAME, (int32_t)(iv - s->iv), -1);
    n->var = s->iv[twin].var;
}

static void lower_if(cd_lowerer *l, const cd_expr *cond) { cd_ast_open(l->t, CD_AST_IF)->e = cond; }

static void lower_stores(cd_lowerer *l, const cd_schedule_op *op, const cd_stores *w) {
    for (uint32_t k = 0; k < w->n; k++) {
        const cd_expr **x = lower_get(l, op->rank, sizeof *x);
        if (!x) return;
        if (op->rank) memcpy(x, w->index, op->rank * sizeof *x);
        cd_ast_node *n = cd_ast_open(l->t, CD_AST_STORE);
        n->tensor = op->first_tensor + k;
        n->n = op->rank;
        n->x = x;
        n->e = w->value[k];
    }
}

/* Everything attached at this loop, earlier stages outermost. Their realize
 * nodes stay open: what follows in the nest is their consumer. */
static cdmpp_status lower_attached(cd_lowerer *l, int32_t stage, int32_t iv) {
    for (int32_t k = l->attached.first[stage]; k >= 0; k = l->attached.next[k]) {
        const cd_schedule_stage *st = &l->s->stage[k];
        if (cd_schedule_stage_op(l->s, st)->is_placeholder) continue; /* wherever it was attached */
        if (st->at_iv == iv) CD_TRY(emit_stage(l, k));
    }
    return CDMPP_OK;
}

/* Ranges of attached stages may mention a loop that turned out to have extent 1. */
static void emit_let(cd_lowerer *l, const cd_schedule_iv *iv) {
    if (is_loop(iv) || iv->thread >= 0) return;
    cd_ast_node *n = cd_ast_open(l->t, CD_AST_LET);
    n->var = iv->var;
    n->e = iv->r_min;
}

static cdmpp_status emit_leaves(cd_lowerer *l, int32_t stage, uint32_t from, uint32_t to) {
    const bool attached = l->attached.first[stage] >= 0;
    for (uint32_t i = from; i < to; i++) {
        const int32_t k = l->s->stage[stage].leaf.p[i];
        lower_loop(l, &l->s->iv[k], l->s->iv[k].var);
        if (!attached) continue;
        emit_let(l, &l->s->iv[k]);
        CD_TRY(lower_attached(l, stage, k));
    }
    return CDMPP_OK;
}

/* ---- the stores of a stage ---- */

/* Indices of the stage's axes, room for the values. False: out of memory. */
static bool lower_new_stores(cd_lowerer *l, const cd_schedule_op *op, cd_stores *w) {
    w->n = op->n_out;
    w->value = lower_get(l, op->n_out, sizeof *w->value);
    w->index = lower_get(l, op->rank, sizeof *w->index);
    if (l->s->oom) return false;
    for (uint32_t d = 0; d < op->rank; d++) w->index[d] = l->s->iv[op->axis[d]].var;
    return true;
}

/* Values, indices and predicates through a substitution. */
static void lower_finish_stores(cd_subst *sub, const cd_schedule_op *op, cd_stores *w) {
    lower_subst_all(sub, w->value, w->n);
    lower_subst_all(sub, w->index, op->rank);
    lower_subst_all(sub, w->preds.p, w->preds.n);
}

/* out[k] = result[k] of the reducer over (lhs[], rhs[]). */
static void lower_combine(cd_lowerer *l, const cd_schedule_op *op, const cd_expr *const *lhs,
                          const cd_expr *const *rhs, const cd_expr **out) {
    cd_subst *sub = &l->s->subst2;
    cd_subst_begin(sub);
    for (uint32_t k = 0; k < op->red->n; k++) {
        cd_subst_set(sub, op->red->lhs[k], lhs[k]);
        cd_subst_set(sub, op->red->rhs[k], rhs[k]);
    }
    for (uint32_t k = 0; k < op->red->n; k++) out[k] = cd_subst_apply(sub, op->red->result[k]);
}

/* The element itself, as the left operand of the reducer. */
static const cd_expr *const *self_loads(cd_lowerer *l, const cd_schedule_op *op,
                                        const cd_expr *const *index) {
    const cd_expr **lhs = lower_get(l, op->n_out, sizeof *lhs);
    for (uint32_t k = 0; k < op->n_out && lhs; k++)
        lhs[k] = cd_expr_new_load(&l->s->pool, op->dtype[k], op->first_tensor + k, index, op->rank);
    return lhs;
}

/* ---- plain and serial reductions ---- */

/* Values and guards first, while iterators have their values; then the loops, guards and stores. */
static cdmpp_status emit_plain(cd_lowerer *l, int32_t stage) {
    cd_schedule *s = l->s;
    cd_schedule_stage *st = &s->stage[stage];
    const cd_schedule_op op = *cd_schedule_stage_op(s, st);
    cd_stores w = {0};
    CD_TRY(lower_main_values(l, st));
    if (!lower_new_stores(l, &op, &w)) return CD_FAIL(l->err, ENOMEM, "lower");
    for (uint32_t k = 0; k < op.n_out; k++) w.value[k] = op.body[k];
    cd_schedule_bound_check(s, st, false, &w.preds);
    wrap_likely(s, &w.preds);
    lower_main_subst(s, st, &s->subst);
    lower_finish_stores(&s->subst, &op, &w);
    CD_TRY(emit_leaves(l, stage, 0, st->leaf.n));
    for (uint32_t i = 0; i < w.preds.n; i++) lower_if(l, w.preds.p[i]);
    lower_stores(l, &op, &w);
    return CDMPP_OK;
}

/* iv.mask: 1 derives from a spatial axis, 2 from a reduction axis. */
static void mark_axes(cd_schedule *s, const cd_schedule_stage *st) {
    const cd_schedule_op *op = cd_schedule_stage_op(s, st);
    for (uint32_t i = 0; i < st->all.n; i++) s->iv[st->all.p[i]].mask = 0;
    for (uint32_t i = 0; i < op->n_axis; i++) s->iv[op->axis[i]].mask = 1;
    for (uint32_t i = 0; i < op->n_raxis; i++) s->iv[op->raxis[i]].mask = 2;
    for (uint32_t i = 0; i < st->n_rel; i++) {
        const cd_schedule_rel *r = &st->rel[i];
        if (r->kind == CD_SCHEDULE_REL_SPLIT) {
            s->iv[r->outer].mask |= s->iv[r->parent].mask;
            s->iv[r->inner].mask |= s->iv[r->parent].mask;
        }
        if (r->kind == CD_SCHEDULE_REL_FUSE)
            s->iv[r->made].mask = s->iv[r->outer].mask | s->iv[r->inner].mask;
        if (r->kind == CD_SCHEDULE_REL_REBASE) s->iv[r->made].mask = s->iv[r->parent].mask;
    }
}

/* Sets iv.dead for the iterators that the init nest does not have. */
static void mark_reduce_only(cd_schedule *s, const cd_schedule_stage *st, bool on) {
    for (uint32_t i = 0; i < st->all.n; i++)
        s->iv[st->all.p[i]].dead = on && s->iv[st->all.p[i]].mask == 2;
    for (uint32_t i = 0; i < st->leaf.n; i++)
        s->iv[st->leaf.p[i]].dead = on && s->iv[st->leaf.p[i]].mask == 2;
}

/* Loops of the init nest, from leaf `begin` on: fresh variables, no attach points. */
typedef struct {
    uint32_t begin;
    const cd_expr **var; /* (leaf.n) */
    cd_stores w;
} init_nest;

static void init_values(cd_lowerer *l, cd_schedule_stage *st, init_nest *in) {
    cd_schedule *s = l->s;
    for (uint32_t i = in->begin; i < st->leaf.n; i++) {
        const int32_t k = st->leaf.p[i];
        if (s->iv[k].dead) {
            s->iv[k].val = s->iv[k].var;
        } else if (is_loop(&s->iv[k])) {
            const int32_t twin = cd_schedule_iv_new(s, s->iv[k].type, CD_SCHEDULE_NAME_INIT, k, -1);
            in->var[i] = s->iv[k].val = s->iv[twin].var;
        }
    }
    cd_schedule_pass_up_index(s, st);
}

static cdmpp_status prepare_init(cd_lowerer *l, cd_schedule_stage *st, const cd_schedule_op *op,
                                 init_nest *in) {
    cd_schedule *s = l->s;
    in->var = lower_get(l, st->leaf.n, sizeof *in->var);
    if (!in->var || !lower_new_stores(l, op, &in->w)) return CD_FAIL(l->err, ENOMEM, "lower");
    mark_reduce_only(s, st, true);
    init_values(l, st, in);
    for (uint32_t k = 0; k < op->n_out; k++)
        in->w.value[k] = op->init ? op->init[k] : op->red->identity[k];
    cd_schedule_bound_check(s, st, true, &in->w.preds);
    wrap_likely(s, &in->w.preds);
    lower_start_subst(s, st, &s->subst);
    lower_finish_stores(&s->subst, op, &in->w);
    return CDMPP_OK;
}

static void emit_init(cd_lowerer *l, const cd_schedule_stage *st, const cd_schedule_op *op,
                      const init_nest *in) {
    const int32_t open = l->t->open;
    for (uint32_t i = in->begin; i < st->leaf.n; i++) {
        const cd_schedule_iv *iv = &l->s->iv[st->leaf.p[i]];
        if (iv->mask != 2) lower_loop(l, iv, in->var[i]);
    }
    for (uint32_t i = 0; i < in->w.preds.n; i++) lower_if(l, in->w.preds.p[i]);
    lower_stores(l, op, &in->w);
    cd_ast_close(l->t, open);
}

static cdmpp_status prepare_update(cd_lowerer *l, cd_schedule_stage *st, const cd_schedule_op *op,
                                   cd_stores *w, const cd_expr **cond) {
    cd_schedule *s = l->s;
    CD_TRY(lower_main_values(l, st));
    if (!lower_new_stores(l, op, w)) return CD_FAIL(l->err, ENOMEM, "lower");
    const cd_expr *const *lhs = self_loads(l, op, w->index);
    if (!lhs) return CD_FAIL(l->err, ENOMEM, "lower");
    lower_combine(l, op, lhs, op->body, w->value);
    cd_schedule_bound_check(s, st, false, &w->preds);
    wrap_likely(s, &w->preds);
    lower_main_subst(s, st, &s->subst);
    lower_finish_stores(&s->subst, op, w);
    *cond = op->cond ? cd_subst_apply(&s->subst, op->cond) : NULL;
    return CDMPP_OK;
}

static cdmpp_status emit_reduction(cd_lowerer *l, int32_t stage) {
    cd_schedule *s = l->s;
    cd_schedule_stage *st = &s->stage[stage];
    const cd_schedule_op op = *cd_schedule_stage_op(s, st);
    cd_stores w = {0};
    init_nest in = {0};
    const cd_expr *cond;
    CD_TRY(prepare_update(l, st, &op, &w, &cond));
    mark_axes(s, st);
    while (in.begin < st->leaf.n && !(s->iv[st->leaf.p[in.begin]].mask & 2)) in.begin++;
    CD_TRY(prepare_init(l, st, &op, &in));
    mark_axes(s, st); /* the bound check used the marks */
    mark_reduce_only(s, st, false);
    CD_TRY(emit_leaves(l, stage, 0, in.begin));
    emit_init(l, st, &op, &in);
    CD_TRY(emit_leaves(l, stage, in.begin, st->leaf.n));
    for (uint32_t i = 0; i < w.preds.n; i++) lower_if(l, w.preds.p[i]);
    if (cond) lower_if(l, cond);
    lower_stores(l, &op, &w);
    return CDMPP_OK;
}

/* ---- stages ---- */

/* One per output. The region is that of the bounds; the buffer's shape is the whole tensor's. */
static void emit_realize(cd_lowerer *l, const cd_schedule_stage *st, const cd_schedule_op *op) {
    for (uint32_t k = 0; k < op->n_out; k++) {
        const cd_expr **x = lower_get(l, 2 * op->n_axis, sizeof *x);
        if (!x) return;
        for (uint32_t d = 0; d < op->n_axis; d++) {
            x[2 * d] = l->s->iv[op->axis[d]].r_min;
            x[2 * d + 1] = l->s->iv[op->axis[d]].r_ext;
        }
        cd_ast_node *n = cd_ast_open(l->t, CD_AST_REALIZE);
        n->tensor = op->first_tensor + k;
        n->n = 2 * op->n_axis;
        n->x = x;
        n->loop = (uint8_t)(st->scope[0] ? cd_schedule_scope_rank(st->scope) : 0);
    }
}

static cdmpp_status lower_cross(cd_lowerer *l, int32_t stage);

/* Realize nodes (left open) and the producing nest (closed). */
static cdmpp_status emit_stage(cd_lowerer *l, int32_t stage) {
    cd_schedule *s = l->s;
    cd_schedule_stage *st = &s->stage[stage];
    const cd_schedule_op op = *cd_schedule_stage_op(s, st);
    emit_realize(l, st, &op);
    const int32_t open = l->t->open;
    bool threads = false;
    for (uint32_t i = 0; i < st->leaf.n; i++)
        threads |=
            s->iv[st->leaf.p[i]].type == CD_SCHEDULE_IV_REDUCE && s->iv[st->leaf.p[i]].thread >= 0;
    CD_TRY(!op.red   ? emit_plain(l, stage)
           : threads ? lower_cross(l, stage)
                     : emit_reduction(l, stage));
    cd_ast_close(l->t, open);
    return s->oom || l->t->oom ? CD_FAIL(l->err, ENOMEM, "lower") : CDMPP_OK;
}

cdmpp_status cd_schedule_lower(cd_schedule *s, cd_ast *out, cdmpp_err *err) {
    cd_lowerer l = {.s = s, .t = out, .err = err};
    cd_ast_clear(out);
    CD_TRY(cd_schedule_attached_find(s, &l.attached, err));
    for (uint32_t id = 0; id < s->order.n; id++) {
        const cd_schedule_stage *st = cd_schedule_stage_at(s, id);
        if (st->attach == CD_SCHEDULE_AT_ROOT && !cd_schedule_stage_op(s, st)->is_placeholder)
            CD_TRY(emit_stage(&l, s->order.p[id]));
    }
    cd_ast_close(out, -1);
    return s->oom || s->pool.oom || s->subst.oom ? CD_FAIL(err, ENOMEM, "lower") : CDMPP_OK;
}

/* Reductions whose loops are bound to threads. Each thread accumulates over its own loops, then one
 * tvm_thread_allreduce combines the threads (docs/internals/ansor.md, Lowering). */

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
    const cd_expr **x = lower_get(l, 2, sizeof *x);
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
                   .value = lower_get(l, temp->n_out, sizeof *w.value),
                   .index = lower_get(l, 1, sizeof *w.index)};
    if (l->s->oom) return;
    for (uint32_t k = 0; k < w.n; k++) w.value[k] = value[k];
    w.index[0] = cd_expr_int(&l->s->pool, 0);
    lower_stores(l, temp, &w);
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
                  **out = lower_get(l, temp->n_out, sizeof *out);
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
    c->given = lower_get(l, c->op.n_out + st->leaf.n, sizeof *c->given);
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
    CD_TRY(lower_main_values(l, st));
    if (!lower_new_stores(l, &c->op, &c->w)) return CD_FAIL(l->err, ENOMEM, "lower");
    for (uint32_t i = 0; i < st->leaf.n; i++)
        c->has_loops |= is_inner_reduce(&s->iv[st->leaf.p[i]]);
    c->normal = s->op[new_temps(l, &c->op, "normal_reduce_temp")];
    c->result = s->op[new_temps(l, &c->op, "reduce_temp")];
    const cd_expr **partial = lower_get(l, c->op.n_out, sizeof *partial);
    const cd_expr *const *lhs = temp_loads(l, &c->normal), *const *fin = temp_loads(l, &c->result);
    if (s->oom) return CD_FAIL(l->err, ENOMEM, "lower");
    lower_combine(l, &c->op, lhs, c->op.body, partial);
    cd_schedule_bound_check(s, st, false, &c->w.preds);
    lower_main_subst(s, st, &s->subst);
    lower_subst_all(&s->subst, partial, c->op.n_out);
    for (uint32_t k = 0; k < c->op.n_out; k++) c->w.value[k] = fin[k];
    lower_finish_stores(&s->subst, &c->op, &c->w);
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
        lower_loop(l, &l->s->iv[k], l->s->iv[k].var);
        CD_TRY(lower_attached(l, c->stage, k));
    }
    return CDMPP_OK;
}

static cdmpp_status emit_partial(cd_lowerer *l, const cross *c) {
    emit_temp_stores(l, &c->normal, c->init);
    const int32_t open = l->t->open;
    CD_TRY(emit_cross_loops(l, c, true));
    for (uint32_t i = 0; i < c->w.preds.n; i++) lower_if(l, c->w.preds.p[i]);
    if (c->cond) lower_if(l, c->cond);
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

/* The nest of a stage that reduces across threads. Errors: EINVALID, EUNSUPPORTED, ENOMEM. */
static cdmpp_status lower_cross(cd_lowerer *l, int32_t stage) {
    cross c = {.stage = stage, .op = *cd_schedule_stage_op(l->s, &l->s->stage[stage])};
    CD_TRY(prepare_cross(l, &l->s->stage[stage], &c));
    CD_TRY(emit_cross_loops(l, &c, false));
    for (uint32_t k = 0; k < c.op.n_out; k++) {
        if (c.has_loops) emit_alloc(l, c.normal.first_tensor + k);
        emit_alloc(l, c.result.first_tensor + k);
    }
    if (c.has_loops) CD_TRY(emit_partial(l, &c));
    emit_allreduce(l, &c);
    if (c.cond) lower_if(l, c.cond);
    lower_stores(l, &c.op, &c.w);
    return CDMPP_OK;
}

/* What holds inside a branch or a loop: bounds, remainders and conditions that are known to be
 * true. Entering a constraint moves the analyzer to another numbered state, leaving moves it back;
 * memo entries are valid for one number, so nothing has to be cleared. */
#include "features/simplify/simplify_internal.h"

enum { TAG_BIND = 1, TAG_BOUND, TAG_LITERAL };

/* The state reached from `from` by one event; the same event gives the same number. */
uint32_t cd_simplify_transition(cd_simplifier *s, uint32_t from, uint32_t tag, uint32_t i,
                                uint32_t j, uint32_t k) {
    uint32_t h =
        (from * 0x9E3779B1U) ^ (i * 0x85EBCA6BU) ^ (j * 0xC2B2AE35U) ^ (k * 0x27D4EB2FU) ^ tag;
    cd_transition *t = &s->trans[(h ^ h >> 15) % CD_TRANSITIONS];
    if (t->from != from || t->tag != tag || t->key[0] != i || t->key[1] != j || t->key[2] != k ||
        from == 0)
        *t = (cd_transition){from, tag, {i, j, k}, ++s->next_ctx};
    return t->to;
}

/* ---- bounds ---- */

static void add_bound(cd_analyzer *a, const cd_expr *cond, const cd_expr *e, int64_t lo,
                      int64_t hi) {
    if (e->op == CD_INT) return;
    const cd_bound b = {lo == CD_INF ? lo - 1 : lo, hi == CD_NEG_INF ? hi + 1 : hi};
    const cd_bound known = cd_const_int_bound(a, e);
    if (b.lo <= known.lo && b.hi >= known.hi) return; /* says nothing new */
    if (!cd_simplify_reserve(a->s, &a->extra, a->n_extra, &a->cap_extra, sizeof *a->extra)) return;
    a->extra[a->n_extra++] = (cd_extra){e, b};
    a->extra_mask |= (uint64_t)1 << (e->id % 64);
    a->ctx = cd_simplify_transition(a->s, a->ctx, TAG_BOUND, cond->id, 0, 0);
}

/* Bounds that a condition gives: c <= x, c < x, x <= c, x < c, x == c and their conjunctions. */
static void add_bounds(cd_analyzer *a, const cd_expr *c) {
    if (c->op == CD_AND) {
        add_bounds(a, c->a[0]);
        add_bounds(a, c->a[1]);
        return;
    }
    if (c->op != CD_LE && c->op != CD_LT && c->op != CD_EQ) return;
    const cd_expr *x = c->a[0], *y = c->a[1];
    const bool strict = c->op == CD_LT;
    if (c->op == CD_EQ) {
        if (y->op == CD_INT) add_bound(a, c, x, y->u.i, y->u.i);
        else if (x->op == CD_INT) add_bound(a, c, y, x->u.i, x->u.i);
    } else if (x->op == CD_INT) {
        add_bound(a, c, y, cd_const_int_bound_add(x->u.i, strict), CD_INF);
    } else if (y->op == CD_INT) {
        add_bound(a, c, x, CD_NEG_INF, cd_const_int_bound_add(y->u.i, -(int64_t)strict));
    }
}

/* var % c == b narrows the variable's modular set while the constraint holds. */
static void add_modular(cd_analyzer *a, const cd_expr *c) {
    if (c->op != CD_EQ || (c->a[0]->op != CD_FMOD && c->a[0]->op != CD_MOD) ||
        c->a[1]->op != CD_INT)
        return;
    const cd_expr *v = c->a[0]->a[0], *m = c->a[0]->a[1];
    if (v->op != CD_VAR || m->op != CD_INT || m->u.i <= 0) return;
    if (!cd_simplify_reserve(a->s, &a->mod, a->n_mod, &a->cap_mod, sizeof *a->mod)) return;
    cd_simplify_var(a, v); /* ask before narrowing */
    cd_var_info *info = cd_simplify_var_entry(a, v);
    if (!info) return;
    cd_modular *now = &info->mod;
    a->mod[a->n_mod++] = (cd_mod_save){(uint32_t)(info - a->var), *now};
    *now = cd_modular_set_intersect(*now,
                                    (cd_modular){m->u.i, cd_expr_floormod(c->a[1]->u.i, m->u.i)});
    a->ctx = cd_simplify_transition(a->s, a->ctx, TAG_BOUND, c->id, 0, 1);
}

/* ---- literal constraints ---- */

static void push(cd_analyzer *a, cd_expr_list *l, const cd_expr *e) {
    if (cd_simplify_reserve(a->s, &l->p, l->n, &l->cap, sizeof *l->p)) l->p[l->n++] = e;
}

static void add_literal(cd_analyzer *a, const cd_expr *e) {
    /* Literals, and their negations, are never asked for. */
    if (e->op == CD_INT || (e->op == CD_NOT && e->a[0]->op == CD_INT)) return;
    push(a, &a->literal, e);
    a->ctx = cd_simplify_transition(a->s, a->ctx, TAG_LITERAL, e->id, 0, 0);
}

static const cd_expr *negate(cd_analyzer *a, const cd_expr *e) {
    return cd_expr_new_not(a->s->pool, e);
}

/* e and its conjuncts; !(x || y) counts as !x && !y, each simplified by an analyzer that knows
 *   nothing. */
static void collect(cd_analyzer *a, const cd_expr *e) {
    push(a, &a->pending, e);
    if (e->op == CD_AND) {
        collect(a, e->a[0]);
        collect(a, e->a[1]);
    } else if (e->op == CD_NOT && e->a[0]->op == CD_OR) {
        /* not the fresh one: that may be in the middle of this */
        cd_analyzer *blank = cd_simplify_analyzer_new(a->s);
        for (int i = 0; i < 2; i++)
            collect(a, cd_simplify_rewrite(blank, negate(a, e->a[0]->a[i])));
    }
}

static void add_literals(cd_analyzer *a, const cd_expr *cond) {
    cd_simplifier *s = a->s;
    const cd_expr *k = cd_rewrite_visit(&a->rw, cond);
    if (k->op == CD_INT) return;
    const uint32_t start = a->pending.n; /* the list is a stack: visits below may get here again */
    collect(a, k);
    const uint32_t end = a->pending.n;
    for (uint32_t i = start; i < end; i++) {
        const cd_expr *e = a->pending.p[i], *no;
        if (!cd_simplify_is_pure(e, false)) continue;
        add_literal(a, e);
        if (e->type == CD_BOOL) no = negate(a, e);
        else no = cd_expr_bin(s->pool, CD_EQ, e, cd_expr_new_int(s->pool, e->type, 0));
        add_literal(a, negate(a, cd_rewrite_visit(&a->rw, no)));
    }
    a->pending.n = start;
}

/* v < c and v <= c of an unsubstituted variable become true under their own bound. */
static bool only_bounds(cd_analyzer *a, const cd_expr *c) {
    if (c->op != CD_LT && c->op != CD_LE) return false;
    const cd_expr *v = c->a[0];
    if (v->op != CD_VAR || c->a[1]->op != CD_INT || !cd_expr_dtype_is_index(v->type)) return false;
    const cd_var_info *info = cd_simplify_var(a, v);
    return !info || !info->value;
}

cd_constraint cd_constraint_enter(cd_analyzer *a, const cd_expr *cond) {
    const cd_constraint c = {a->n_extra, a->literal.n, a->n_mod, a->n_bind, a->ctx};
    if (cond->op == CD_INT) return c;
    add_bounds(a, cond);
    add_modular(a, cond);
    if (!only_bounds(a, cond)) add_literals(a, cond);
    return c;
}

void cd_constraint_leave(cd_analyzer *a, cd_constraint c) {
    while (a->n_mod > c.n_mod) {
        a->n_mod--;
        a->var[a->mod[a->n_mod].var].mod = a->mod[a->n_mod].old;
    }
    if (a->n_extra != c.n_bound) {
        a->n_extra = c.n_bound;
        a->extra_mask = 0;
        for (uint32_t i = 0; i < a->n_extra; i++)
            a->extra_mask |= (uint64_t)1 << (a->extra[i].e->id % 64);
    }
    a->literal.n = c.n_literal;
    /* A binding made inside stays, so the state is neither this one nor the old one. */
    a->ctx = a->n_bind == c.n_bind ? c.ctx : ++a->s->next_ctx;
}

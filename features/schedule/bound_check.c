/* Which iterators may leave their range, and the guards against it. Proofs are the expensive part,
 * so cheap tests come first: equal literals, and stages where no split runs over at all
 * (docs/internals/ansor.md, Bounds, Guards). */
#include "features/schedule/schedule.h"

#define BIN(op, a, b) cd_expr_bin(&s->pool, CD_##op, (a), (b))

typedef struct {
    cd_schedule *s;
    cd_schedule_stage *st;
    cd_analyzer *a;
    cd_intset_env env;
    cd_schedule_preds *out;
} checker;

static void emit(checker *c, const cd_expr *p) {
    cd_schedule_preds *o = c->out;
    if (CD_GROW_IN(&c->s->arena, o->p, o->n, o->cap)) c->s->oom = true;
    else o->p[o->n++] = p;
}

static bool provably_equal(cd_schedule *s, cd_analyzer *a, const cd_expr *x, const cd_expr *y) {
    if (cd_expr_is_int(x) && cd_expr_is_int(y)) return x->u.i == y->u.i;
    return x == y || cd_simplify_prove(a, BIN(EQ, x, y));
}

static bool product_is(cd_schedule *s, cd_analyzer *a, const cd_expr *whole, const cd_expr *x,
                       const cd_expr *y) {
    /* 32 bits each */
    if (cd_expr_is_int(whole) && cd_expr_is_int(x) && cd_expr_is_int(y))
        return whole->u.i == x->u.i * y->u.i;
    return provably_equal(s, a, whole, BIN(MUL, x, y));
}

/* iv.mask: the iterator may run past its extent. */
static void mark_needs(checker *c) {
    cd_schedule *s = c->s;
    for (uint32_t i = 0; i < c->st->leaf.n; i++) s->iv[c->st->leaf.p[i]].mask = 0;
    for (uint32_t k = c->st->n_rel; k-- > 0;) {
        const cd_schedule_rel *r = &c->st->rel[k];
        if (r->kind == CD_SCHEDULE_REL_SPLIT) {
            const cd_schedule_iv *o = &s->iv[r->outer], *i = &s->iv[r->inner];
            cd_schedule_iv *p = &s->iv[r->parent];
            if (!o->r_ext || !i->r_ext) p->mask = 1;
            else p->mask = o->mask || i->mask || !product_is(s, c->a, p->r_ext, i->r_ext, o->r_ext);
        }
        if (r->kind == CD_SCHEDULE_REL_FUSE)
            s->iv[r->outer].mask = s->iv[r->inner].mask = s->iv[r->made].mask;
        if (r->kind == CD_SCHEDULE_REL_REBASE) s->iv[r->parent].mask = s->iv[r->made].mask;
    }
}

/* v < limit, unless it is provable for every value of the loops. */
static void check_below(checker *c, const cd_expr *v, const cd_expr *limit) {
    cd_schedule *s = c->s;
    c->env.depth = 0;
    const cd_intset x = cd_intset_eval(&c->env, v);
    if (x.hi == CD_INTSET_INF || !cd_simplify_prove(c->a, BIN(LT, x.hi, limit)))
        emit(c, BIN(LT, v, limit));
}

static void check_root(checker *c, const cd_schedule_iv *iv) {
    cd_schedule *s = c->s;
    cd_analyzer *fresh = cd_simplify_fresh_analyzer(s->simp);
    /* Extents first: they are literals, and differ where anything does. */
    if (provably_equal(s, fresh, iv->extent, iv->r_ext) &&
        provably_equal(s, fresh, iv->min, iv->r_min))
        return;
    const cd_expr *v = BIN(SUB, iv->val, iv->min);
    c->env.depth = 0;
    const cd_intset x = cd_intset_eval(&c->env, v);
    const cd_expr *zero = cd_expr_new_int(&s->pool, v->type, 0);
    if (x.lo == CD_INTSET_INF || !cd_simplify_prove(c->a, BIN(GE, x.lo, zero)))
        emit(c, BIN(GE, v, zero));
    if (x.hi == CD_INTSET_INF || !cd_simplify_prove(c->a, BIN(LT, x.hi, iv->extent)))
        emit(c, BIN(LT, v, iv->extent));
}

/* Every range, for an analyzer and as intervals by variable number. */
struct cd_known {
    cd_analyzer *a;
    cd_intset_env env;
};

/* Built once a program: all stages are checked against the same final ranges. */
static struct cd_known *known_ranges(cd_schedule *s) {
    struct cd_known *k = CD_NEW(&s->arena, struct cd_known);
    cd_intset *set = CD_NEWN(&s->arena, cd_intset, s->pool.n_var);
    if (!k || !set) return NULL;
    k->a = cd_simplify_analyzer_new(s->simp);
    cd_simplify_set_query(k->a, cd_schedule_query_range, s);
    k->env = (cd_intset_env){.by_var = set,
                             .n_var = s->pool.n_var,
                             .ana = k->a,
                             .fresh = cd_simplify_fresh_analyzer(s->simp),
                             .pool = &s->pool};
    for (int32_t i = 0; i < s->n_iv; i++) {
        const cd_schedule_iv *iv = &s->iv[i];
        if (!iv->r_ext) continue;
        k->env.n++;
        set[iv->var->u.i] = cd_intset_range(&s->pool, iv->r_min, iv->r_ext);
    }
    return k;
}

/* Nothing to check: no split runs over and every root keeps its declared domain. */
static bool trivially_inside(const checker *c, bool skip_domain) {
    const cd_schedule *s = c->s;
    for (uint32_t i = 0; i < c->st->all.n; i++)
        if (s->iv[c->st->all.p[i]].mask) return false;
    const cd_schedule_op *op = cd_schedule_stage_op(c->s, c->st);
    for (uint32_t i = 0; i < op->n_axis + op->n_raxis && !skip_domain; i++) {
        const cd_schedule_iv *iv = &s->iv[i < op->n_axis ? op->axis[i] : op->raxis[i - op->n_axis]];
        if (!iv->dead && iv->r_ext && (iv->min != iv->r_min || iv->extent != iv->r_ext))
            return false;
    }
    return true;
}

void cd_schedule_bound_check(cd_schedule *s, cd_schedule_stage *st, bool skip_domain,
                             cd_schedule_preds *out) {
    checker c = {.s = s, .st = st, .a = cd_simplify_fresh_analyzer(s->simp), .out = out};
    out->n = 0;
    mark_needs(&c);
    if (trivially_inside(&c, skip_domain)) return;
    /* The final ranges serve all stages; rfactor's are of the moment. */
    struct cd_known *k = s->known ? s->known : known_ranges(s);
    if (!k) {
        s->oom = true;
        return;
    }
    if (s->inferred) s->known = k;
    c.a = k->a;
    c.env = k->env;
    for (uint32_t i = 0; i < st->all.n; i++) {
        const cd_schedule_iv *iv = &s->iv[st->all.p[i]];
        if (!iv->dead && iv->mask && iv->val && iv->r_ext)
            check_below(&c, BIN(SUB, iv->val, iv->r_min), iv->r_ext);
    }
    if (skip_domain) return;
    const cd_schedule_op *op = cd_schedule_stage_op(s, st);
    for (uint32_t i = 0; i < op->n_axis + op->n_raxis; i++) {
        const cd_schedule_iv *iv = &s->iv[i < op->n_axis ? op->axis[i] : op->raxis[i - op->n_axis]];
        if (!iv->dead && iv->val && iv->r_ext) check_root(&c, iv);
    }
}

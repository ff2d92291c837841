/* Which values an index can have. Sums of multiples of variables are exact; quotients and
 * remainders of them are as tight as TOPI's index expressions need. Conditions narrow the variables
 * inside a branch. */
#include <string.h>

#include "features/te_shard/te_shard_internal.h"

static int64_t clamp(int64_t x) {
    return x > CD_TE_SHARD_FAR ? CD_TE_SHARD_FAR : x < -CD_TE_SHARD_FAR ? -CD_TE_SHARD_FAR : x;
}

static int64_t plus(int64_t a, int64_t b) {
    int64_t r;
    if (__builtin_add_overflow(a, b, &r)) return a > 0 ? CD_TE_SHARD_FAR : -CD_TE_SHARD_FAR;
    return clamp(r);
}

static int64_t times(int64_t a, int64_t b) {
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return (a > 0) == (b > 0) ? CD_TE_SHARD_FAR : -CD_TE_SHARD_FAR;
    return clamp(r);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static cd_te_shard_span term_span(const cd_te_shard_term *t) {
    const int64_t a = times(t->k, t->s.lo), b = times(t->k, t->s.hi);
    return (cd_te_shard_span){least(a, b), most(a, b)};
}

static cd_te_shard_span span_of(const cd_te_shard_affine *l) {
    cd_te_shard_span s = {l->c, l->c};
    for (uint32_t i = 0; i < l->n; i++) {
        const cd_te_shard_span t = term_span(&l->t[i]);
        s.lo = plus(s.lo, t.lo);
        s.hi = plus(s.hi, t.hi);
    }
    return s;
}

static cd_te_shard_affine number(int64_t c) { return (cd_te_shard_affine){.c = c}; }
static cd_te_shard_affine atom(const cd_expr *e, cd_te_shard_span s) {
    if (s.lo == s.hi) return number(s.lo);
    return (cd_te_shard_affine){.n = 1, .t = {{e, 1, s}}};
}

/* Too many terms: they become one term with their common range, which cancels with no other. */
static void squeeze(cd_te_shard_affine *l) {
    const cd_te_shard_span s = span_of(l);
    *l = atom(NULL, s);
}

static void add_term(cd_te_shard_affine *l, const cd_te_shard_term *t) {
    for (uint32_t i = 0; t->atom && i < l->n; i++) {
        if (l->t[i].atom != t->atom) continue;
        l->t[i].k = plus(l->t[i].k, t->k);
        if (!l->t[i].k) l->t[i] = l->t[--l->n];
        return;
    }
    if (l->n == CD_TE_SHARD_TERMS) squeeze(l);
    l->t[l->n++] = *t;
}

static cd_te_shard_affine sum(const cd_te_shard_affine *a, const cd_te_shard_affine *b, int64_t k) {
    cd_te_shard_affine r = *a;
    r.c = plus(r.c, times(b->c, k));
    for (uint32_t i = 0; i < b->n; i++) {
        cd_te_shard_term t = b->t[i];
        t.k = times(t.k, k);
        if (t.k) add_term(&r, &t);
    }
    return r;
}

static cd_te_shard_affine product(const cd_expr *e, const cd_te_shard_affine *a,
                                  const cd_te_shard_affine *b) {
    const cd_te_shard_affine none = number(0);
    if (!b->n) return sum(&none, a, b->c);
    if (!a->n) return sum(&none, b, a->c);
    const cd_te_shard_span x = span_of(a), y = span_of(b);
    const int64_t p[4] = {times(x.lo, y.lo), times(x.lo, y.hi), times(x.hi, y.lo),
                          times(x.hi, y.hi)};
    cd_te_shard_span s = {p[0], p[0]};
    for (int i = 1; i < 4; i++) s = (cd_te_shard_span){least(s.lo, p[i]), most(s.hi, p[i])};
    return atom(e, s);
}

/* l = k * q + r: the terms that k divides, and the rest. */
static void divide(const cd_te_shard_affine *l, int64_t k, cd_te_shard_affine *q,
                   cd_te_shard_affine *r) {
    *q = number(cd_expr_floordiv(l->c, k));
    *r = number(cd_expr_floormod(l->c, k));
    for (uint32_t i = 0; i < l->n; i++) {
        cd_te_shard_term t = l->t[i];
        if (t.k % k) {
            add_term(r, &t);
            continue;
        }
        t.k /= k;
        add_term(q, &t);
    }
}

static cd_te_shard_affine quotient(const cd_expr *e, const cd_te_shard_affine *l, int64_t k) {
    cd_te_shard_affine q, r;
    divide(l, k, &q, &r);
    const cd_te_shard_span s = span_of(&r);
    const cd_te_shard_affine rest =
        atom(e, (cd_te_shard_span){cd_expr_floordiv(s.lo, k), cd_expr_floordiv(s.hi, k)});
    return sum(&q, &rest, 1);
}

/* Of a rest that passes a multiple of k: all residues that its terms can have. */
static cd_te_shard_span residues(const cd_te_shard_affine *r, int64_t k) {
    int64_t g = k;
    for (uint32_t i = 0; i < r->n; i++) g = cd_expr_gcd(g, r->t[i].k);
    const int64_t first = cd_expr_floormod(r->c, g);
    return (cd_te_shard_span){first, k - g + first};
}

static cd_te_shard_affine remainder_of(const cd_expr *e, const cd_te_shard_affine *l, int64_t k) {
    cd_te_shard_affine q, r;
    divide(l, k, &q, &r);
    const cd_te_shard_span s = span_of(&r);
    const int64_t turn = cd_expr_floordiv(s.lo, k);
    if (s.lo > -CD_TE_SHARD_FAR && s.hi < CD_TE_SHARD_FAR && turn == cd_expr_floordiv(s.hi, k)) {
        r.c -= turn * k;
        return r;
    }
    return atom(e, residues(&r, k));
}

static cd_te_shard_affine variable(const cd_te_shard_env *env, const cd_expr *e) {
    for (uint32_t i = 0; i < env->n; i++)
        if (env->v[i].number == (uint32_t)e->u.i) return atom(e, env->v[i].s);
    return atom(e, (cd_te_shard_span){-CD_TE_SHARD_FAR, CD_TE_SHARD_FAR});
}

static cd_te_shard_affine te_shard_to_affine(const cd_te_shard_env *env, const cd_expr *e);

static cd_te_shard_affine division(const cd_te_shard_env *env, const cd_expr *e) {
    const cd_te_shard_affine a = te_shard_to_affine(env, e->a[0]);
    const cd_te_shard_span all = {-CD_TE_SHARD_FAR, CD_TE_SHARD_FAR};
    const bool down = e->op == CD_FDIV || e->op == CD_FMOD;
    if (!cd_expr_is_int(e->a[1]) || e->a[1]->u.i <= 0 || (!down && span_of(&a).lo < 0))
        return atom(e, all);
    const int64_t k = e->a[1]->u.i;
    return e->op == CD_FDIV || e->op == CD_DIV ? quotient(e, &a, k) : remainder_of(e, &a, k);
}

static cd_te_shard_affine either(const cd_expr *e, cd_te_shard_span x, cd_te_shard_span y) {
    if (e->op == CD_MIN) return atom(e, (cd_te_shard_span){least(x.lo, y.lo), least(x.hi, y.hi)});
    if (e->op == CD_MAX) return atom(e, (cd_te_shard_span){most(x.lo, y.lo), most(x.hi, y.hi)});
    return atom(e, (cd_te_shard_span){least(x.lo, y.lo), most(x.hi, y.hi)});
}

/* e as a constant and a sum of multiples; what is no such sum is one term.
 *
 * Whatever is not understood is one term with an unlimited range. */
static cd_te_shard_affine te_shard_to_affine(const cd_te_shard_env *env, const cd_expr *e) {
    const cd_te_shard_span all = {-CD_TE_SHARD_FAR, CD_TE_SHARD_FAR};
    if (cd_expr_dtype_kind(e->type) > CD_T_UINT) return atom(e, all);
    switch ((cd_expr_op)e->op) {
    case CD_INT: return number(clamp(e->u.i));
    case CD_VAR: return variable(env, e);
    case CD_ADD:
    case CD_SUB:
    case CD_MUL: {
        const cd_te_shard_affine a = te_shard_to_affine(env, e->a[0]),
                                 b = te_shard_to_affine(env, e->a[1]);
        return e->op == CD_MUL ? product(e, &a, &b) : sum(&a, &b, e->op == CD_ADD ? 1 : -1);
    }
    case CD_FDIV:
    case CD_DIV:
    case CD_FMOD:
    case CD_MOD: return division(env, e);
    case CD_MIN:
    case CD_MAX: return either(e, cd_te_shard_range(env, e->a[0]), cd_te_shard_range(env, e->a[1]));
    case CD_SELECT:
        return either(e, cd_te_shard_range(env, e->a[1]), cd_te_shard_range(env, e->a[2]));
    case CD_CALL:
        if (!strcmp(e->u.name, "if_then_else"))
            return either(e, cd_te_shard_range(env, e->a[1]), cd_te_shard_range(env, e->a[2]));
        return atom(e, all);
    case CD_CAST:
        return cd_expr_dtype_is_index(e->type) && cd_expr_dtype_kind(e->a[0]->type) <= CD_T_UINT
                   ? te_shard_to_affine(env, e->a[0])
                   : atom(e, all);
    default: return atom(e, all);
    }
}

cd_te_shard_span cd_te_shard_range(const cd_te_shard_env *env, const cd_expr *e) {
    const cd_te_shard_affine l = te_shard_to_affine(env, e);
    return span_of(&l);
}

/* ---- conditions ---- */

static cd_te_shard_var *slot(cd_te_shard_env *env, const cd_expr *var) {
    for (uint32_t i = 0; var && var->op == CD_VAR && i < env->n; i++)
        if (env->v[i].number == (uint32_t)var->u.i) return &env->v[i];
    return NULL;
}

/* l >= 0: each variable as far as the others allow. */
static bool not_negative(cd_te_shard_env *env, const cd_te_shard_affine *l) {
    const cd_te_shard_span all = span_of(l);
    if (all.hi < 0) return false;
    for (uint32_t i = 0; i < l->n; i++) {
        cd_te_shard_var *v = slot(env, l->t[i].atom);
        if (!v || all.hi >= CD_TE_SHARD_FAR) continue;
        /* k * v >= -others */
        const int64_t k = l->t[i].k, others = all.hi - term_span(&l->t[i]).hi;
        if (k > 0) v->s.lo = most(v->s.lo, -cd_expr_floordiv(others, k));
        else v->s.hi = least(v->s.hi, cd_expr_floordiv(others, -k));
        if (v->s.lo > v->s.hi) return false;
    }
    return true;
}

/* i % k == m: the first and the last of them. */
static bool aligned(cd_te_shard_env *env, const cd_expr *e) {
    const cd_expr *x = e->a[0];
    if ((x->op != CD_FMOD && x->op != CD_MOD) || !cd_expr_is_int(e->a[1]) ||
        !cd_expr_is_int(x->a[1]) || x->a[1]->u.i <= 0)
        return true;
    const cd_te_shard_affine l = te_shard_to_affine(env, x->a[0]);
    cd_te_shard_var *v = l.n == 1 && l.t[0].k == 1 ? slot(env, l.t[0].atom) : NULL;
    const int64_t k = x->a[1]->u.i, m = e->a[1]->u.i;
    if (!v || m < 0 || m >= k || v->s.lo <= -CD_TE_SHARD_FAR || v->s.hi >= CD_TE_SHARD_FAR ||
        (x->op == CD_MOD && span_of(&l).lo < 0))
        return true;
    v->s.lo += cd_expr_floormod(m - v->s.lo - l.c, k);
    v->s.hi -= cd_expr_floormod(v->s.hi + l.c - m, k);
    return v->s.lo <= v->s.hi;
}

static cd_expr_op negated(cd_expr_op op) {
    switch (op) {
    case CD_EQ: return CD_NE;
    case CD_NE: return CD_EQ;
    case CD_LT: return CD_GE;
    case CD_GE: return CD_LT;
    case CD_LE: return CD_GT;
    default: return CD_LE;
    }
}

static bool compared(cd_te_shard_env *env, const cd_expr *e, cd_expr_op op) {
    if (cd_expr_dtype_kind(e->a[0]->type) > CD_T_UINT) return true;
    const cd_te_shard_affine a = te_shard_to_affine(env, e->a[0]),
                             b = te_shard_to_affine(env, e->a[1]);
    cd_te_shard_affine up = sum(&a, &b, -1), down = sum(&b, &a, -1);
    switch (op) {
    case CD_GE: return not_negative(env, &up);
    case CD_LE: return not_negative(env, &down);
    case CD_GT: up.c = plus(up.c, -1); return not_negative(env, &up);
    case CD_LT: down.c = plus(down.c, -1); return not_negative(env, &down);
    case CD_EQ: return not_negative(env, &up) && not_negative(env, &down) && aligned(env, e);
    default: return up.n || up.c; /* not equal */
    }
}

bool cd_te_shard_assume(cd_te_shard_env *env, const cd_expr *c, bool truth) {
    switch ((cd_expr_op)c->op) {
    case CD_INT: return (c->u.i != 0) == truth;
    case CD_NOT: return cd_te_shard_assume(env, c->a[0], !truth);
    case CD_AND:
        return !truth ||
               (cd_te_shard_assume(env, c->a[0], true) && cd_te_shard_assume(env, c->a[1], true));
    case CD_OR:
        return truth ||
               (cd_te_shard_assume(env, c->a[0], false) && cd_te_shard_assume(env, c->a[1], false));
    case CD_EQ:
    case CD_NE:
    case CD_LT:
    case CD_LE:
    case CD_GT:
    case CD_GE: return compared(env, c, truth ? (cd_expr_op)c->op : negated((cd_expr_op)c->op));
    default: return true;
    }
}

/* Could an AND be false, an OR be true? Each side is judged alone. */
static bool possible(const cd_te_shard_env *env, const cd_expr *c, bool truth, cd_arena *a,
                     bool *oom) {
    if (c->op == CD_NOT) return possible(env, c->a[0], !truth, a, oom);
    if ((c->op == CD_AND && !truth) || (c->op == CD_OR && truth))
        return possible(env, c->a[0], truth, a, oom) || possible(env, c->a[1], truth, a, oom);
    cd_te_shard_env copy = {env->n, CD_NEWN(a, cd_te_shard_var, env->n)};
    if (!copy.v) {
        *oom = true;
        return true;
    }
    if (env->n) memcpy(copy.v, env->v, env->n * sizeof *copy.v);
    return cd_te_shard_assume(&copy, c, truth);
}

bool cd_te_shard_is_fork(const cd_expr *e) {
    return e->op == CD_CALL && e->n == 3 && (e->flags & CD_EXPR_HAS_LOAD) &&
           !strcmp(e->u.name, "if_then_else");
}

static bool branch(const cd_te_shard_env *env, const cd_expr *e, bool truth, cd_arena *a,
                   cd_te_shard_env *out, bool *taken) {
    bool oom = false;
    out->n = env->n;
    out->v = CD_NEWN(a, cd_te_shard_var, env->n);
    if (!out->v) return false;
    if (env->n) memcpy(out->v, env->v, env->n * sizeof *out->v);
    *taken = possible(env, e->a[0], truth, a, &oom) && cd_te_shard_assume(out, e->a[0], truth);
    return !oom;
}

bool cd_te_shard_fork_make(const cd_te_shard_env *env, const cd_expr *e, cd_arena *a,
                           cd_te_shard_fork *o) {
    if (!branch(env, e, true, a, &o->then_env, &o->takes_then) ||
        !branch(env, e, false, a, &o->else_env, &o->takes_else))
        return false;
    /* A branch without reads stays: the operator keeps its form, and so do schedules of it. */
    if (!o->takes_then && (!o->takes_else || !(e->a[1]->flags & CD_EXPR_HAS_LOAD)))
        o->takes_then = true;
    if (!o->takes_else && !(e->a[2]->flags & CD_EXPR_HAS_LOAD)) o->takes_else = true;
    return true;
}

/* The canonical simplifier: integer sums, products, quotients and remainders in the normal form of
 * canonsum.h; every other node by the rewriting rules. It is the second half of simplify(e) =
 * canonical(rewrite(e)). */
#include "features/simplify/simplify_internal.h"

/* Arithmetic on the normal form of integer sums, as TVM's canonical simplifier does it. The order
 * of the terms in the result decides the form of every index, so merging and sorting follow TVM
 * step by step. */

/* ---- back to expressions ---- */

/* Back to expressions: k times a split; a sum with its terms merged and sorted; whatever v is
 * (remembered in v.c->norm). */
static const cd_expr *canonsum_split_to_expr(const cd_walker *w, const cd_iter_split *s,
                                             int64_t k) {
    const cd_expr *r = s->index;
    if (s->scale == 0) return cd_canonsum_int(w, s->type, 0);
    if (s->upper != CD_INF)
        r = cd_canonsum_bin_literal(w, s->floor ? CD_FMOD : CD_MOD, r, s->type, s->upper);
    if (s->lower != 1)
        r = cd_canonsum_bin_literal(w, s->floor ? CD_FDIV : CD_DIV, r, s->type, s->lower);
    k = cd_wrap_mul(k, s->scale);
    return k == 1 ? r : cd_canonsum_bin_literal(w, CD_MUL, r, s->type, k);
}

static bool compatible(const cd_iter_split *s, bool floor) {
    return s->floor == floor || (s->lower == 1 && s->upper == CD_INF);
}

/* Splits of one index that together are a coarser one become it. */
static void merge(cd_iter_split *s, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        cd_iter_split *l = &s[i];
        if (l->scale == 0) continue;
        for (uint32_t j = i + 1; j < n; j++) {
            cd_iter_split *r = &s[j];
            if (l->index != r->index || l->upper < r->lower) break;
            if (l->upper == r->upper && l->lower == r->lower && compatible(l, r->floor)) {
                r->scale = cd_wrap_add(r->scale, l->scale);
                l->scale = 0;
            } else if (l->lower == r->upper && r->scale != 0 &&
                       cd_trunc_mod(l->scale, r->scale) == 0 &&
                       l->lower == cd_wrap_mul(cd_trunc_div(l->scale, r->scale), r->lower) &&
                       compatible(l, r->floor)) {
                r->upper = l->upper;
                l->scale = 0;
                break;
            }
        }
    }
}

static bool before(const cd_iter_split *a, const cd_iter_split *b) {
    if (a->scale != b->scale) return a->scale > b->scale;
    if (a->lower != b->lower) return a->lower > b->lower;
    if (a->upper != b->upper) return a->upper > b->upper;
    return a->floor && !b->floor;
}

static void sort(cd_iter_split *s, uint32_t n) { /* stable; sums are short */
    for (uint32_t i = 1; i < n; i++) {
        const cd_iter_split x = s[i];
        uint32_t j = i;
        for (; j > 0 && before(&x, &s[j - 1]); j--) s[j] = s[j - 1];
        s[j] = x;
    }
}

static const cd_expr *canonsum_sum_to_expr(const cd_walker *w, const cd_canonsum *c) {
    if (c->n == 0) return cd_canonsum_int(w, c->type, c->base);
    cd_iter_split small[8], *s = small;
    if (c->n > 8 && !(s = cd_arena_alloc(&cd_canonsum_simp(w)->arena, c->n, sizeof *s)))
        return cd_simplify_give_up(cd_canonsum_simp(w), c->s[0].index);
    memcpy(s, c->s, c->n * sizeof *s);
    merge(s, c->n);
    sort(s, c->n);
    const cd_expr *r = NULL; /* 0 + x is x */
    for (uint32_t i = 0; i < c->n; i++) {
        if (s[i].scale <= 0) continue;
        const cd_expr *x = canonsum_split_to_expr(w, &s[i], 1);
        r = r ? cd_canonsum_bin(w, CD_ADD, r, x) : x;
    }
    if (!r) r = cd_canonsum_int(w, c->type, 0);
    if (c->base > 0) r = cd_canonsum_bin_literal(w, CD_ADD, r, c->type, c->base);
    for (uint32_t i = 0; i < c->n; i++)
        if (s[i].scale < 0) r = cd_canonsum_bin(w, CD_SUB, r, canonsum_split_to_expr(w, &s[i], -1));
    if (c->base < 0) r = cd_canonsum_bin_literal(w, CD_SUB, r, c->type, cd_wrap_sub(0, c->base));
    return r;
}

static const cd_expr *canonsum_to_expr(const cd_walker *w, cd_cval v) {
    if (!v.c) return v.e;
    if (!v.c->norm)
        v.c->norm =
            v.c->is_sum ? canonsum_sum_to_expr(w, v.c) : canonsum_split_to_expr(w, &v.c->s[0], 1);
    return v.c->norm;
}

/* ---- into normal form; v.e stays the expression to fall back on ---- */

/* An empty sum with room for that many splits. NULL: out of memory, and s->oom is set. */
static cd_canonsum *canonsum_new(const cd_walker *w, cd_dtype t, uint32_t room) {
    cd_canonsum *c =
        cd_arena_alloc(&cd_canonsum_simp(w)->arena, 1, sizeof *c + room * sizeof *c->s);
    if (!c) return cd_canonsum_simp(w)->oom = true, NULL;
    *c = (cd_canonsum){.type = t, .is_sum = true};
    return c;
}

/* v as one split (a sum becomes an opaque index), a split as a value (e: what to fall back on), v
 * as a new sum with room for `more` further splits (NULL: out of memory). */
static cd_iter_split canonsum_to_split(const cd_walker *w, cd_cval v) {
    if (v.c && v.c->n == 1 && v.c->base == 0) return v.c->s[0];
    return cd_canonsum_expr_split(canonsum_to_expr(w, v));
}

static cd_cval canonsum_from_split(const cd_walker *w, cd_iter_split s, const cd_expr *e) {
    cd_canonsum *c = canonsum_new(w, s.type, 1);
    if (!c) return cd_canonsum_plain(e);
    c->is_sum = false;
    c->n = 1;
    c->s[0] = s;
    return (cd_cval){e, c};
}

/* A fresh sum equal to v with room for `more` further splits; NULL: out of memory. */
static cd_canonsum *canonsum_to_sum(const cd_walker *w, cd_cval v, uint32_t more) {
    cd_canonsum *c = canonsum_new(w, v.c ? v.c->type : v.e->type, (v.c ? v.c->n : 1) + more);
    if (!c) return NULL;
    if (v.c) {
        c->n = v.c->n;
        c->base = v.c->base;
        memcpy(c->s, v.c->s, c->n * sizeof *c->s);
    } else if (v.e->op == CD_INT) {
        c->base = v.e->u.i;
    } else {
        c->s[c->n++] = cd_canonsum_expr_split(v.e);
    }
    return c;
}

/* In place: c += k * o (there must be room), c *= k, c /= v where v divides every term.
 *
 * Adds to an equal split, else inserts in front of the first smaller `lower` of the same index,
 * else at the end. */
static void canonsum_add_split(cd_canonsum *c, cd_iter_split o, int64_t k) {
    if (o.scale == 0) return;
    uint32_t j = 0;
    while (j < c->n && c->s[j].index != o.index) j++;
    for (; j < c->n; j++) {
        cd_iter_split *a = &c->s[j];
        if (a->index != o.index || o.lower > a->lower) break;
        if (o.lower == a->lower && o.upper == a->upper && compatible(&o, a->floor)) {
            a->scale = cd_wrap_add(a->scale, cd_wrap_mul(o.scale, k));
            return;
        }
    }
    o.scale = cd_wrap_mul(o.scale, k);
    memmove(&c->s[j + 1], &c->s[j], (c->n - j) * sizeof *c->s);
    c->s[j] = o;
    c->n++;
}

static void canonsum_scale(cd_canonsum *c, int64_t k) {
    c->base = cd_wrap_mul(c->base, k);
    for (uint32_t i = 0; i < c->n; i++) c->s[i].scale = cd_wrap_mul(c->s[i].scale, k);
}

static void canonsum_divide_exactly(cd_canonsum *c, int64_t v) {
    c->base /= v;
    for (uint32_t i = 0; i < c->n; i++) c->s[i].scale /= v;
}

static cd_iter_split convert(const cd_walker *w, cd_iter_split s, bool floor) {
    if (!compatible(&s, floor)) s = cd_canonsum_expr_split(canonsum_split_to_expr(w, &s, 1));
    s.floor = floor;
    return s;
}

/* s / v and s % v for v > 0, rounding down or toward zero.
 *
 * s / v for v > 0 */
static cd_iter_split canonsum_split_div(const cd_walker *w, cd_iter_split s, int64_t v,
                                        bool floor) {
    s = convert(w, s, floor);
    if (s.scale % v == 0) {
        s.scale /= v;
        return s;
    }
    if (cd_trunc_mod(v, s.scale) == 0) {
        const int64_t low = cd_wrap_mul(s.lower, cd_trunc_div(v, s.scale));
        if (s.upper != CD_INF && low != 0 && cd_trunc_mod(s.upper, low) != 0) {
            if (s.upper <= low) return cd_canonsum_expr_split(cd_canonsum_int(w, s.type, 0));
            s.index =
                cd_canonsum_bin_literal(w, floor ? CD_FMOD : CD_MOD, s.index, s.type, s.upper);
            s.upper = CD_INF;
        }
        s.scale = 1;
        s.lower = low;
        return s;
    }
    s = cd_canonsum_expr_split(canonsum_split_to_expr(w, &s, 1));
    s.lower = v;
    s.floor = floor;
    return s;
}

/* s % v for v > 0 */
static cd_iter_split canonsum_split_mod(cd_walker *w, cd_iter_split s, int64_t v, bool floor) {
    s = convert(w, s, floor);
    if (s.scale % v == 0) {
        s.scale = 0;
        return s;
    }
    if (cd_trunc_mod(v, s.scale) == 0) {
        const int64_t up = cd_wrap_mul(s.lower, cd_trunc_div(v, s.scale));
        if (up != 0 && (s.upper == CD_INF || cd_trunc_mod(s.upper, up) == 0)) {
            if (up >= s.upper || s.upper == CD_INF) {
                s.upper = up;
                return s;
            }
            const cd_expr *m =
                cd_canonsum_bin_literal(w, floor ? CD_FMOD : CD_MOD, s.index, s.type, up);
            cd_iter_split u = cd_canonsum_expr_split(cd_canonical_visit(w, m));
            if (s.lower != 1) u = canonsum_split_div(w, u, s.lower, floor);
            u.scale = cd_wrap_mul(u.scale, s.scale);
            return u;
        }
        if (cd_trunc_mod(up, s.upper) == 0) return s;
    }
    s = cd_canonsum_expr_split(canonsum_split_to_expr(w, &s, 1));
    s.floor = floor;
    s.upper = v;
    return s;
}

/* ---- nodes ---- */

static cd_cval mutate(cd_walker *w, const cd_expr *e);

/* Folding sees literals only: a sum that happens to be constant is no literal yet. */
static bool fold(const cd_walker *w, cd_expr_op op, cd_cval a, cd_cval b, cd_cval *out) {
    if (!cd_canonsum_is_literal(a) && !cd_canonsum_is_literal(b)) return false;
    if (cd_canonsum_is_literal(a) && cd_canonsum_is_literal(b)) {
        const cd_expr *r = cd_fold_bin(cd_canonsum_simp(w)->pool, op, a.e, b.e);
        return r ? *out = cd_canonsum_plain(r), true : false;
    }
    const int64_t x = cd_canonsum_is_literal(a) ? a.e->u.i : -1,
                  y = cd_canonsum_is_literal(b) ? b.e->u.i : -1;
    switch (op) {
    case CD_ADD: return x == 0 ? *out = b, true : y == 0 ? *out = a, true : false;
    case CD_SUB: return y == 0 ? *out = a, true : false;
    case CD_MUL:
        return x == 1 || y == 0 ? *out = b, true : x == 0 || y == 1 ? *out = a, true : false;
    case CD_DIV:
    case CD_FDIV: return x == 0 || y == 1 ? *out = a, true : false;
    default:
        if (x == 0) return *out = a, true;
        return y == 1 ? *out = cd_canonsum_plain(cd_canonsum_int(w, b.e->type, 0)), true : false;
    }
}

static cd_cval add_sub(const cd_walker *w, cd_cval a, cd_cval b, int64_t sign, const cd_expr *e) {
    cd_canonsum *c = canonsum_to_sum(w, a, b.c ? b.c->n : 1);
    if (!c) return cd_canonsum_plain(e);
    if (cd_canonsum_is_literal(b)) {
        c->base = cd_wrap_add(c->base, cd_wrap_mul(sign, b.e->u.i));
    } else if (b.c) {
        for (uint32_t i = 0; i < b.c->n; i++) canonsum_add_split(c, b.c->s[i], sign);
        c->base = cd_wrap_add(c->base, cd_wrap_mul(sign, b.c->base));
    } else {
        canonsum_add_split(c, cd_canonsum_expr_split(b.e), sign);
    }
    return (cd_cval){e, c};
}

static cd_cval opaque(const cd_walker *w, const cd_expr *e, cd_cval a, cd_cval b) {
    return cd_canonsum_plain(cd_expr_new_bin(cd_canonsum_simp(w)->pool, (cd_expr_op)e->op,
                                             canonsum_to_expr(w, a), canonsum_to_expr(w, b)));
}

/* Only a literal factor keeps the normal form; any other product is an opaque index. */
static cd_cval product(const cd_walker *w, const cd_expr *e, cd_cval a, cd_cval b) {
    if (cd_canonsum_is_literal(a)) {
        const cd_cval t = a;
        a = b;
        b = t;
    }
    if (!cd_canonsum_is_literal(b)) return opaque(w, e, a, b);
    if (a.c && a.c->is_sum) {
        cd_canonsum *c = canonsum_to_sum(w, a, 0);
        if (!c) return cd_canonsum_plain(e);
        canonsum_scale(c, b.e->u.i);
        return (cd_cval){e, c};
    }
    cd_iter_split s = canonsum_to_split(w, a);
    s.scale = cd_wrap_mul(s.scale, b.e->u.i);
    return canonsum_from_split(w, s, e);
}

/* The terms that v divides, and the others. */
static bool separate(const cd_walker *w, const cd_canonsum *c, int64_t v, cd_canonsum **whole,
                     cd_canonsum **rest) {
    *whole = canonsum_new(w, c->type, c->n + 1); /* one more: the quotient of the rest */
    *rest = canonsum_new(w, c->type, c->n);
    if (!*whole || !*rest) return false;
    (c->base % v == 0 ? *whole : *rest)->base = c->base;
    for (uint32_t i = 0; i < c->n; i++) {
        cd_canonsum *to = c->s[i].scale % v == 0 ? *whole : *rest;
        to->s[to->n++] = c->s[i];
    }
    return true;
}

static bool not_negative(const cd_walker *w, const cd_canonsum *c) {
    const cd_expr *e = canonsum_sum_to_expr(w, c);
    return cd_simplify_ge(w->ana, e, 0);
}

static bool within(const cd_walker *w, cd_cval a, int64_t v) {
    const cd_bound b = cd_const_int_bound(w->ana, canonsum_to_expr(w, a));
    return b.lo >= 0 && b.hi < v;
}

/* The terms that v divides leave the quotient at once; what is left is dropped when it lies in [0,
 * v), else divided as one split. */
static cd_cval quotient(cd_walker *w, const cd_expr *e, cd_cval a, int64_t v, bool floor) {
    if (!a.c || !a.c->is_sum) {
        if (within(w, a, v)) return cd_canonsum_plain(cd_canonsum_int(w, e->type, 0));
        return canonsum_from_split(w, canonsum_split_div(w, canonsum_to_split(w, a), v, floor), e);
    }
    cd_canonsum *whole, *rest;
    if (!separate(w, a.c, v, &whole, &rest)) return cd_canonsum_plain(e);
    const bool exact = rest->n == 0 && rest->base == 0;
    if (!exact && !floor && !(not_negative(w, whole) && not_negative(w, rest)))
        return canonsum_from_split(w, canonsum_split_div(w, canonsum_to_split(w, a), v, floor), e);
    canonsum_divide_exactly(whole, v);
    if (exact) return (cd_cval){e, whole};
    const cd_expr *t = canonsum_sum_to_expr(w, rest);
    if (t->op == CD_INT) {
        whole->base = cd_wrap_add(whole->base, floor ? cd_expr_floordiv(t->u.i, v) : t->u.i / v);
    } else {
        const bool less = cd_rewrite_compare(w, t, v) == CD_COMPARE_LT;
        if (!less || (floor && !cd_simplify_ge(w->ana, t, 0)))
            canonsum_add_split(whole, canonsum_split_div(w, cd_canonsum_expr_split(t), v, floor),
                               1);
    }
    return (cd_cval){e, whole};
}

static cd_cval floor_mod(cd_walker *w, const cd_expr *e, const cd_canonsum *c, int64_t v) {
    cd_canonsum *whole, *rest;
    if (!separate(w, c, v, &whole, &rest)) return cd_canonsum_plain(e);
    const cd_expr *t = canonsum_sum_to_expr(w, rest);
    if (t->op == CD_INT)
        return cd_canonsum_plain(cd_canonsum_bin_literal(w, CD_FMOD, t, t->type, v));
    if (cd_rewrite_compare(w, t, v) == CD_COMPARE_LT && cd_simplify_ge(w->ana, t, 0))
        return cd_canonsum_plain(t);
    rest->base = cd_expr_floormod(rest->base, v);
    return canonsum_from_split(
        w, canonsum_split_mod(w, canonsum_to_split(w, (cd_cval){e, rest}), v, true), e);
}

/* As floor_mod, but terms may be dropped only if both halves are provably not negative: C's
 * remainder has the sign of the dividend. */
static cd_cval trunc_mod(cd_walker *w, const cd_expr *e, cd_cval a, int64_t v) {
    cd_canonsum *whole, *rest;
    if (!separate(w, a.c, v, &whole, &rest)) return cd_canonsum_plain(e);
    if (rest->n == 0 && rest->base == 0) return cd_canonsum_plain(cd_canonsum_int(w, e->type, 0));
    if (not_negative(w, whole) && not_negative(w, rest)) {
        const cd_expr *t = canonsum_sum_to_expr(w, rest);
        if (t->op == CD_INT)
            return cd_canonsum_plain(cd_canonsum_bin_literal(w, CD_MOD, t, t->type, v));
        if (cd_rewrite_compare(w, t, v) == CD_COMPARE_LT) return cd_canonsum_plain(t);
        a.c = rest;
    }
    const int64_t lo = cd_const_int_bound(w->ana, canonsum_to_expr(w, a)).lo, base = a.c->base % v;
    if (lo >= 0 && cd_wrap_add(cd_wrap_sub(lo, a.c->base), base) >= 0) {
        cd_canonsum *c = canonsum_to_sum(w, a, 0);
        if (!c) return cd_canonsum_plain(e);
        c->base = base;
        a.c = c;
    }
    return canonsum_from_split(w, canonsum_split_mod(w, canonsum_to_split(w, a), v, false), e);
}

/* Folding comes first, on the values as they are: TVM folds before it brings operands into normal
 * form. */
static cd_cval arithmetic(cd_walker *w, const cd_expr *e) {
    const cd_cval a = mutate(w, e->a[0]), b = mutate(w, e->a[1]);
    const cd_expr_op op = (cd_expr_op)e->op;
    cd_cval r;
    if (fold(w, op, a, b, &r)) return r;
    if (op == CD_ADD || op == CD_SUB) return add_sub(w, a, b, op == CD_ADD ? 1 : -1, e);
    if (op == CD_MUL) return product(w, e, a, b);
    if (!cd_canonsum_is_literal(b) || b.e->u.i <= 0) return opaque(w, e, a, b);
    const int64_t v = b.e->u.i;
    const bool floor = op == CD_FDIV || op == CD_FMOD;
    if (op == CD_DIV || op == CD_FDIV) return quotient(w, e, a, v, floor);
    if (a.c && a.c->is_sum) return floor ? floor_mod(w, e, a.c, v) : trunc_mod(w, e, a, v);
    if (within(w, a, v)) return a;
    return canonsum_from_split(w, canonsum_split_mod(w, canonsum_to_split(w, a), v, floor), e);
}

/* ---- casts between index types ---- */

static bool cast_is_safe(const cd_walker *w, cd_dtype t, const cd_expr *e) {
    const cd_bound b = cd_const_int_bound(w->ana, e), all = cd_const_int_bound_type(t);
    return cd_expr_dtype_bits(e->type) <= cd_expr_dtype_bits(t) ||
           (b.hi <= all.hi && b.lo >= all.lo);
}

static bool split_fits(const cd_walker *w, const cd_iter_split *s, cd_dtype t) {
    if (s->scale == 0) return true;
    cd_iter_split part = *s;
    part.scale = 1;
    const cd_iter_split index = cd_canonsum_expr_split(s->index);
    cd_iter_split mod = part;
    mod.lower = 1;
    return cast_is_safe(w, t, index.index) &&
           cast_is_safe(w, t, canonsum_split_to_expr(w, &mod, 1)) &&
           cast_is_safe(w, t, canonsum_split_to_expr(w, &part, 1)) &&
           cast_is_safe(w, t, canonsum_split_to_expr(w, s, 1));
}

/* Every partial sum, in the order of printing but unsorted, must fit. */
static bool sum_fits(const cd_walker *w, const cd_canonsum *c, cd_dtype t) {
    const cd_expr *r = cd_canonsum_int(w, t, 0);
    for (int sign = 1; sign >= -1; sign -= 2) {
        for (uint32_t i = 0; i < c->n; i++) {
            if (sign > 0 ? c->s[i].scale <= 0 : c->s[i].scale >= 0) continue;
            r = cd_canonsum_bin(w, sign > 0 ? CD_ADD : CD_SUB, r,
                                canonsum_split_to_expr(w, &c->s[i], sign));
            if (!cast_is_safe(w, t, r)) return false;
        }
        if (sign > 0 ? c->base > 0 : c->base < 0) {
            r = cd_canonsum_bin_literal(w, sign > 0 ? CD_ADD : CD_SUB, r, t,
                                        cd_wrap_mul(sign, c->base));
            if (!cast_is_safe(w, t, r)) return false;
        }
    }
    for (uint32_t i = 0; i < c->n; i++)
        if (!split_fits(w, &c->s[i], t)) return false;
    return true;
}

/* A cast goes into the sum if the type is wider, or if every partial value provably fits. */
static cd_cval cast(cd_walker *w, const cd_expr *e) {
    const cd_cval v = mutate(w, e->a[0]);
    const cd_dtype t = e->type;
    if (!v.c || (cd_expr_dtype_bits(t) < cd_expr_dtype_bits(v.c->type) &&
                 !(v.c->is_sum ? sum_fits(w, v.c, t) : split_fits(w, &v.c->s[0], t))))
        return cd_canonsum_plain(cd_rewrite_node(w, e));
    cd_canonsum *c = canonsum_to_sum(w, v, 0);
    if (!c) return cd_canonsum_plain(e);
    c->is_sum = v.c->is_sum;
    c->type = t;
    for (uint32_t i = 0; i < c->n; i++) {
        c->s[i].index = cd_expr_cast(cd_canonsum_simp(w)->pool, t, c->s[i].index);
        c->s[i].type = t;
    }
    return (cd_cval){e, c};
}

/* ---- the walk ---- */

static cd_cval compute(cd_walker *w, const cd_expr *e) {
    if (e->op >= CD_ADD && e->op <= CD_FMOD && cd_expr_dtype_is_index(e->type))
        return arithmetic(w, e);
    if (e->op == CD_CAST && cd_expr_dtype_is_index(e->type)) return cast(w, e);
    return cd_canonsum_plain(cd_rewrite_node(w, e));
}

/* Memoised by (expression, context). The frame notes how many recursive rules the result took
 * (simplify_internal.h). */
static cd_cval mutate(cd_walker *w, const cd_expr *e) {
    if (e->op == CD_VAR) return cd_canonsum_plain(cd_rewrite_var(w, e));
    if (e->op <= CD_STR) return cd_canonsum_plain(e);
    cd_simplifier *s = cd_canonsum_simp(w);
    cd_memo *m = cd_simplify_memo(s, e);
    const uint32_t ctx = w->ana->ctx;
    if (m && m->cn_ctx == ctx && cd_walker_reuse(w, m->cn_need)) return m->cn;
    if (s->oom || s->pool->oom || s->nest >= CD_SIMPLIFY_MAX_NEST)
        return cd_canonsum_plain(cd_simplify_give_up(s, e));
    s->nest++;
    const cd_walker_frame f = cd_walker_begin(w);
    const cd_cval r = compute(w, e);
    const uint8_t took = cd_walker_end(w, f);
    s->nest--;
    if ((m = cd_simplify_memo(s, e))) {
        m->cn_ctx = ctx;
        m->cn_need = took;
        m->cn = r;
    }
    return r;
}

const cd_expr *cd_canonical_visit(cd_walker *w, const cd_expr *e) {
    return canonsum_to_expr(w, mutate(w, e));
}

/* Arithmetic on the normal form of integer sums, as TVM's canonical simplifier does it. The order
 * of the terms in the result decides the form of every index, so merging and sorting follow TVM
 * step by step. */
#include "features/simplify/simplify_internal.h"

/* ---- back to expressions ---- */

const cd_expr *cd_canonsum_split_to_expr(const cd_walker *w, const cd_iter_split *s, int64_t k) {
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

const cd_expr *cd_canonsum_sum_to_expr(const cd_walker *w, const cd_canonsum *c) {
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
        const cd_expr *x = cd_canonsum_split_to_expr(w, &s[i], 1);
        r = r ? cd_canonsum_bin(w, CD_ADD, r, x) : x;
    }
    if (!r) r = cd_canonsum_int(w, c->type, 0);
    if (c->base > 0) r = cd_canonsum_bin_literal(w, CD_ADD, r, c->type, c->base);
    for (uint32_t i = 0; i < c->n; i++)
        if (s[i].scale < 0)
            r = cd_canonsum_bin(w, CD_SUB, r, cd_canonsum_split_to_expr(w, &s[i], -1));
    if (c->base < 0) r = cd_canonsum_bin_literal(w, CD_SUB, r, c->type, cd_wrap_sub(0, c->base));
    return r;
}

const cd_expr *cd_canonsum_to_expr(const cd_walker *w, cd_cval v) {
    if (!v.c) return v.e;
    if (!v.c->norm)
        v.c->norm = v.c->is_sum ? cd_canonsum_sum_to_expr(w, v.c)
                                : cd_canonsum_split_to_expr(w, &v.c->s[0], 1);
    return v.c->norm;
}

/* ---- into normal form; v.e stays the expression to fall back on ---- */

cd_canonsum *cd_canonsum_new(const cd_walker *w, cd_dtype t, uint32_t room) {
    cd_canonsum *c =
        cd_arena_alloc(&cd_canonsum_simp(w)->arena, 1, sizeof *c + room * sizeof *c->s);
    if (!c) return cd_canonsum_simp(w)->oom = true, NULL;
    *c = (cd_canonsum){.type = t, .is_sum = true};
    return c;
}

cd_iter_split cd_canonsum_to_split(const cd_walker *w, cd_cval v) {
    if (v.c && v.c->n == 1 && v.c->base == 0) return v.c->s[0];
    return cd_canonsum_expr_split(cd_canonsum_to_expr(w, v));
}

cd_cval cd_canonsum_from_split(const cd_walker *w, cd_iter_split s, const cd_expr *e) {
    cd_canonsum *c = cd_canonsum_new(w, s.type, 1);
    if (!c) return cd_canonsum_plain(e);
    c->is_sum = false;
    c->n = 1;
    c->s[0] = s;
    return (cd_cval){e, c};
}

/* A fresh sum equal to v with room for `more` further splits; NULL: out of memory. */
cd_canonsum *cd_canonsum_to_sum(const cd_walker *w, cd_cval v, uint32_t more) {
    cd_canonsum *c = cd_canonsum_new(w, v.c ? v.c->type : v.e->type, (v.c ? v.c->n : 1) + more);
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

/* Adds to an equal split, else inserts in front of the first smaller `lower` of the same index,
 * else at the end. */
void cd_canonsum_add_split(cd_canonsum *c, cd_iter_split o, int64_t k) {
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

void cd_canonsum_scale(cd_canonsum *c, int64_t k) {
    c->base = cd_wrap_mul(c->base, k);
    for (uint32_t i = 0; i < c->n; i++) c->s[i].scale = cd_wrap_mul(c->s[i].scale, k);
}

void cd_canonsum_divide_exactly(cd_canonsum *c, int64_t v) {
    c->base /= v;
    for (uint32_t i = 0; i < c->n; i++) c->s[i].scale /= v;
}

static cd_iter_split convert(const cd_walker *w, cd_iter_split s, bool floor) {
    if (!compatible(&s, floor)) s = cd_canonsum_expr_split(cd_canonsum_split_to_expr(w, &s, 1));
    s.floor = floor;
    return s;
}

/* s / v for v > 0 */
cd_iter_split cd_canonsum_split_div(const cd_walker *w, cd_iter_split s, int64_t v, bool floor) {
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
    s = cd_canonsum_expr_split(cd_canonsum_split_to_expr(w, &s, 1));
    s.lower = v;
    s.floor = floor;
    return s;
}

/* s % v for v > 0 */
cd_iter_split cd_canonsum_split_mod(cd_walker *w, cd_iter_split s, int64_t v, bool floor) {
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
            if (s.lower != 1) u = cd_canonsum_split_div(w, u, s.lower, floor);
            u.scale = cd_wrap_mul(u.scale, s.scale);
            return u;
        }
        if (cd_trunc_mod(up, s.upper) == 0) return s;
    }
    s = cd_canonsum_expr_split(cd_canonsum_split_to_expr(w, &s, 1));
    s.floor = floor;
    s.upper = v;
    return s;
}

/* The values that an index takes: interval arithmetic. A longer axis never makes the interval
 * smaller. */
#include "features/dagtext/dagtext_internal.h"

typedef cd_dagtext_range range;

typedef struct {
    const cd_dagtext_index *x;
    const cd_dagtext_extent *extent;
    const cd_expr *set;
    int64_t to;
    bool most;
} place;

static int64_t max2(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t min2(int64_t a, int64_t b) { return a < b ? a : b; }

/* Far away is far enough. */
static int64_t far(int64_t v) { return max2(min2(v, CD_DAGTEXT_FAR), -CD_DAGTEXT_FAR); }

static range axis(const place *p, const cd_expr *v) {
    const cd_dagtext_extent *e = &p->extent[v->u.i];
    range r = {0, (v == p->set ? p->to : p->most ? e->hi : e->lo) - 1, 1, false, false};
    for (const cd_dagtext_guard *g = p->x->guard; g; g = g->next)
        if (g->var == v) r.lo = max2(r.lo, g->lo), r.hi = min2(r.hi, g->hi);
    r.empty = r.lo > r.hi;
    r.gap = r.lo < r.hi;
    return r;
}

static range sum(range a, range b) {
    range r = {far(a.lo + b.lo), far(a.hi + b.hi), 0, a.empty || b.empty, a.loose || b.loose};
    const range *wide = a.gap > b.gap ? &a : &b, *fine = a.gap > b.gap ? &b : &a;
    r.gap = fine->gap ? max2(fine->gap, wide->gap - (fine->hi - fine->lo)) : wide->gap;
    return r;
}

static int64_t times(int64_t a, int64_t b) {
    int64_t v;
    return __builtin_mul_overflow(a, b, &v)
               ? ((a < 0) == (b < 0) ? CD_DAGTEXT_FAR : -CD_DAGTEXT_FAR)
               : far(v);
}

/* b is a number. */
static range product(range a, range b) {
    const int64_t c = b.lo < 0 ? -b.lo : b.lo;
    range r = {times(a.lo, b.lo), times(a.hi, b.lo), times(a.gap, c), a.empty || b.empty,
               a.loose || b.loose};
    if (b.lo < 0) r.lo = times(a.hi, b.lo), r.hi = times(a.lo, b.lo);
    return r;
}

static range quotient(range a, int64_t c) {
    return (range){cd_expr_floordiv(a.lo, c), cd_expr_floordiv(a.hi, c),
                   a.gap / c + (a.gap % c != 0), a.empty, a.loose};
}

/* All remainders, where the values have no gaps; else it is not known which. */
static range remainder_of(range a, int64_t c) {
    const int64_t lo = cd_expr_floordiv(a.lo, c), hi = cd_expr_floordiv(a.hi, c);
    if (lo == hi)
        return (range){cd_expr_floormod(a.lo, c), cd_expr_floormod(a.hi, c), a.gap, a.empty,
                       a.loose};
    return (range){0, c - 1, 1, a.empty, a.loose || a.gap > 1};
}

static range of(const place *p, const cd_expr *e) {
    if (e->op == CD_VAR) return axis(p, e);
    if (e->op == CD_INT) return (range){e->u.i, e->u.i, 0, false, false};
    range a = of(p, e->a[0]), b;
    if (e->op == CD_CAST) return a;
    b = of(p, e->a[1]);
    switch ((cd_expr_op)e->op) {
    case CD_ADD: return sum(a, b);
    case CD_SUB: return sum(a, (range){-b.hi, -b.lo, b.gap, b.empty, b.loose});
    case CD_MUL: return e->a[0]->op == CD_INT ? product(b, a) : product(a, b);
    case CD_FDIV: return quotient(a, b.lo);
    case CD_FMOD: return remainder_of(a, b.lo);
    case CD_MIN:
        return (range){min2(a.lo, b.lo), min2(a.hi, b.hi), max2(a.gap, b.gap), a.empty || b.empty,
                       true};
    default:
        return (range){max2(a.lo, b.lo), max2(a.hi, b.hi), max2(a.gap, b.gap), a.empty || b.empty,
                       true};
    }
}

cd_dagtext_range cd_dagtext_range_of(const cd_dagtext_index *x, const cd_expr *e,
                                     const cd_dagtext_extent *extent, bool most, const cd_expr *set,
                                     int64_t to) {
    const place p = {x, extent, set, to, most};
    return of(&p, e);
}

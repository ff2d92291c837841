/* The extents that the text does not print, from the shapes that are known: bounds of each extent,
 * made narrower by the laws (dagtext.h) until nothing moves. Only where both bounds meet there is
 * an answer. */
#include <stdio.h>

#include "features/dagtext/dagtext_internal.h"

/* The values that an index takes: interval arithmetic. A longer axis never makes the interval
 * smaller. */

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

static range of_range(const place *p, const cd_expr *e) {
    if (e->op == CD_VAR) return axis(p, e);
    if (e->op == CD_INT) return (range){e->u.i, e->u.i, 0, false, false};
    range a = of_range(p, e->a[0]), b;
    if (e->op == CD_CAST) return a;
    b = of_range(p, e->a[1]);
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

/* With extents at their least (most false) or greatest; axis `set` (NULL: none) has extent `to`. */
static cd_dagtext_range dagtext_range_of(const cd_dagtext_index *x, const cd_expr *e,
                                         const cd_dagtext_extent *extent, bool most,
                                         const cd_expr *set, int64_t to) {
    const place p = {x, extent, set, to, most};
    return of_range(&p, e);
}

#define MAX_ROUNDS 200

typedef cd_dagtext_index index_of;
typedef struct {
    cd_dagtext *t;
    const cd_te_dag *dag;
    cd_dagtext_indices all;
    cd_dagtext_extent *extent; /* (variables) */
    bool moved, failed;        /* failed: no solution */
    uint32_t at;               /* operator where it failed */
} solver;

static range of(const solver *s, const index_of *x, const cd_expr *e, bool most) {
    return dagtext_range_of(x, e, s->extent, most, NULL, 0);
}

/* The extent of a dimension; that of a placeholder is fixed. */
static cd_dagtext_extent dimension(const solver *s, uint32_t tensor, uint32_t dim) {
    const cd_te_op *op = &s->dag->op[tensor];
    if (op->is_placeholder) return (cd_dagtext_extent){op->shape[dim], op->shape[dim]};
    return s->extent[op->axis[dim].var->u.i];
}

static void narrow(solver *s, const cd_expr *var, int64_t lo, int64_t hi, uint32_t at) {
    cd_dagtext_extent *e = &s->extent[var->u.i];
    if (lo > e->lo) e->lo = lo, s->moved = true;
    if (hi < e->hi) e->hi = hi, s->moved = true;
    if (e->lo > e->hi && !s->failed) s->failed = true, s->at = at;
}

static void narrow_dimension(solver *s, const index_of *x, int64_t lo, int64_t hi) {
    const cd_te_op *op = &s->dag->op[x->tensor];
    if (!op->is_placeholder) narrow(s, op->axis[x->dim].var, lo, hi, x->op);
    else if (lo > op->shape[x->dim] && !s->failed) s->failed = true, s->at = x->op;
}

/* ---- law 1: inside ---- */

static bool inside(const solver *s, const index_of *x, const cd_expr *var, int64_t to,
                   int64_t size) {
    const range r = dagtext_range_of(x, x->e, s->extent, false, var, to);
    return r.empty || r.loose || (r.lo >= 0 && r.hi < size);
}

static void keep_inside(solver *s, const index_of *x) {
    const range r = of(s, x, x->e, false);
    if (r.empty || r.loose) return;
    if (r.lo < 0 && !s->failed) s->failed = true, s->at = x->op;
    narrow_dimension(s, x, r.hi + 1, CD_DAGTEXT_FAR);
    const int64_t size = dimension(s, x->tensor, x->dim).hi;
    for (uint32_t i = 0; i < x->n_var && !s->failed; i++) {
        const cd_dagtext_extent e = s->extent[x->var[i]->u.i];
        int64_t good = e.lo, bad = e.hi + 1; /* the greatest extent that is inside */
        if (inside(s, x, x->var[i], e.hi, size)) continue;
        while (bad - good > 1) {
            const int64_t mid = good + (bad - good) / 2;
            if (inside(s, x, x->var[i], mid, size)) good = mid;
            else bad = mid;
        }
        narrow(s, x->var[i], 1, good, x->op);
    }
}

/* ---- laws 2 and 3: all is read ---- */

/* Does the index reach both ends of the dimension, but for a rest? Of a pair, floordiv(x, c) and
 * floormod(x, c): all of both. */
static bool covers(const solver *s, const index_of *x, const cd_expr *var, int64_t to) {
    const range r = dagtext_range_of(x, x->e, s->extent, true, var, to);
    const int64_t size = dimension(s, x->tensor, x->dim).lo;
    if (r.empty || r.hi + x->step < size || r.lo >= x->step) return false;
    if (!x->pair) return true;
    const int64_t c = x->e->a[1]->u.i, low = dimension(s, x->tensor, x->pair_dim).lo;
    return dagtext_range_of(x, x->e->a[0], s->extent, true, var, to).hi + 1 >=
           (size - 1) * c + (low < c ? low : c);
}

static void keep_covering(solver *s, const index_of *x) {
    if (!covers(s, x, NULL, 0)) return; /* it takes a part, whatever its extents are */
    for (uint32_t i = 0; i < x->n_var; i++) {
        const cd_dagtext_extent e = s->extent[x->var[i]->u.i];
        int64_t bad = e.lo - 1, good = e.hi;
        if (covers(s, x, x->var[i], e.lo)) continue;
        while (good - bad > 1) {
            const int64_t mid = bad + (good - bad) / 2;
            if (covers(s, x, x->var[i], mid)) good = mid;
            else bad = mid;
        }
        narrow(s, x->var[i], good, CD_DAGTEXT_FAR, x->op);
    }
}

/* All readers of one dimension: it is no greater than they reach, and the only one that can reach
 * the end does. */
static void keep_dimension(solver *s, uint32_t tensor, uint32_t dim) {
    const index_of *only = NULL, *any = NULL;
    int64_t most = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->all.n; i++) {
        const index_of *x = &s->all.v[i];
        if (x->tensor != tensor || x->dim != dim) continue;
        if (x->vague || x->part) return;
        const range r = of(s, x, x->e, true);
        any = x;
        if (!r.empty && r.hi + x->step > most) most = r.hi + x->step;
        if (covers(s, x, NULL, 0)) n++, only = x;
    }
    if (!any) return;
    narrow_dimension(s, any, 0, most);
    if (n == 1) keep_covering(s, only);
}

static void round_of(solver *s) {
    for (uint32_t i = 0; i < s->all.n && !s->failed; i++) {
        const index_of *x = &s->all.v[i];
        if (!x->vague) keep_inside(s, x);
        if (!x->vague && !x->part && x->reduces && !s->failed) keep_covering(s, x);
    }
    for (uint32_t t = 0; t < s->dag->n_op && !s->failed; t++)
        for (uint32_t d = 0; d < s->dag->op[t].rank && !s->failed; d++) keep_dimension(s, t, d);
}

static void propagate(solver *s) {
    s->moved = true;
    for (int i = 0; i < MAX_ROUNDS && s->moved && !s->failed; i++) {
        s->moved = false;
        round_of(s);
    }
}

/* ---- assumptions ---- */

/* Padding: where the condition is lo <= i < hi and the element at i - lo is read, the padded stage
 * has lo + hi elements. */
static void assume_symmetric(solver *s) {
    for (uint32_t i = 0; i < s->all.n && !s->failed; i++) {
        const index_of *x = &s->all.v[i];
        int64_t lo = 0, hi = -1;
        const cd_expr *v = x->n_var == 1 ? x->var[0] : NULL;
        for (const cd_dagtext_guard *g = x->guard; v && g; g = g->next) {
            if (g->var == v && g->lo > lo) lo = g->lo;
            if (g->var == v && g->hi < CD_DAGTEXT_FAR) hi = g->hi + 1;
        }
        if (x->vague || !v || lo <= 0 || hi <= lo || x->e->op != CD_SUB || x->e->a[0] != v ||
            !cd_expr_is_int_value(x->e->a[1], lo))
            continue;
        const cd_dagtext_extent e = s->extent[v->u.i];
        if (e.lo == e.hi || lo + hi < e.lo || lo + hi > e.hi) continue;
        s->t->rests |= CD_DAGTEXT_SYMMETRIC_PADDING;
        narrow(s, v, lo + hi, lo + hi, x->op);
        propagate(s);
    }
}

/* ---- the answer ---- */

static cdmpp_status tell_open(const solver *s, const cd_te_op *op, const cd_te_iter *it) {
    const cd_dagtext_extent e = s->extent[it->var->u.i];
    char size[80];
    if (e.hi >= CD_DAGTEXT_FAR / 2) snprintf(size, sizeof size, "%lld or more", (long long)e.lo);
    else
        snprintf(size, sizeof size, "%lld %s %lld", (long long)e.lo, e.hi == e.lo + 1 ? "or" : "to",
                 (long long)e.hi);
    return CD_FAIL(s->t->err, ENOTASK, "axis %s of %s is open: its extent may be %s", it->name,
                   op->name, size);
}

static cdmpp_status each(const solver *s, const cd_te_op *op, const cd_te_iter *it, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const cd_dagtext_extent e = s->extent[it[i].var->u.i];
        if (cd_expr_is_int(it[i].extent) && e.lo != e.hi) return tell_open(s, op, &it[i]);
    }
    return CDMPP_OK;
}

static cdmpp_status set_extents(const solver *s, cd_te_dag *dag, const cd_te_iter **list,
                                uint32_t n, const int64_t **shape) {
    cd_te_iter *it = CD_NEWN(&dag->arena, cd_te_iter, n);
    int64_t *size = CD_NEWN(&dag->arena, int64_t, n);
    if (!it || !size) return CD_FAIL(s->t->err, ENOMEM, "axes");
    for (uint32_t i = 0; i < n; i++) {
        it[i] = (*list)[i];
        size[i] = s->extent[it[i].var->u.i].lo;
        if (cd_expr_is_int(it[i].extent))
            it[i].extent = cd_expr_new_int(&dag->pool, CD_I32, size[i]);
    }
    *list = it;
    if (shape) *shape = size;
    return CDMPP_OK;
}

static cdmpp_status answer(const solver *s, cd_te_dag *dag) {
    if (s->failed)
        return CD_FAIL(s->t->err, ESCHEMA, "its shapes do not fit at %s", dag->op[s->at].name);
    for (uint32_t i = 0; i < dag->n_op; i++) {
        CD_TRY(each(s, &dag->op[i], dag->op[i].axis, dag->op[i].n_axis));
        CD_TRY(each(s, &dag->op[i], dag->op[i].raxis, dag->op[i].n_raxis));
    }
    for (uint32_t i = 0; i < dag->n_op; i++) {
        cd_te_op *op = &dag->op[i];
        if (op->is_placeholder) continue;
        CD_TRY(set_extents(s, dag, &op->axis, op->n_axis, &op->shape));
        CD_TRY(set_extents(s, dag, &op->raxis, op->n_raxis, NULL));
    }
    return CDMPP_OK;
}

/* ---- the key ---- */

/* Its shapes are those of the arguments: placeholders, which the text prints, and outputs. */
static cdmpp_status know(solver *s) {
    const cd_dagtext *t = s->t;
    const char *const differ = "the key's shapes are not those of the text";
    uint32_t at = 0;
    if (t->n_shape && t->n_shape != s->dag->n_arg) return CD_FAIL(t->err, ESCHEMA, "%s", differ);
    for (uint32_t k = 0; k < s->dag->n_arg; k++) {
        const cd_te_op *op = &s->dag->op[s->dag->arg[k]];
        if ((t->n_shape && t->rank[k] != op->rank) || op->rank > t->n_dim - at)
            return CD_FAIL(t->err, ESCHEMA, "%s", differ);
        for (uint32_t d = 0; d < op->rank; d++, at++) {
            if (op->is_placeholder && op->shape[d] != t->dim[at])
                return CD_FAIL(t->err, ESCHEMA, "%s", differ);
            if (!op->is_placeholder)
                narrow(s, op->axis[d].var, t->dim[at], t->dim[at], s->dag->arg[k]);
        }
    }
    return at == t->n_dim ? CDMPP_OK : CD_FAIL(t->err, ESCHEMA, "%s", differ);
}

cdmpp_status cd_dagtext_solve(cd_dagtext *t, cd_te_dag *dag) {
    solver s = {.t = t, .dag = dag};
    const uint32_t n = dag->pool.n_var;
    s.extent = CD_NEWN(t->a, cd_dagtext_extent, n + 1u);
    if (!s.extent) return CD_FAIL(t->err, ENOMEM, "extents");
    for (uint32_t i = 0; i < n; i++) s.extent[i] = (cd_dagtext_extent){1, CD_DAGTEXT_FAR};
    CD_TRY(cd_dagtext_find(t->a, dag, &s.all, t->err));
    CD_TRY(know(&s));
    propagate(&s);
    if (t->allowed & CD_DAGTEXT_SYMMETRIC_PADDING) assume_symmetric(&s);
    return answer(&s, dag);
}

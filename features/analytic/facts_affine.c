/* Index expressions as sums of digits of loop variables. What schedules write is nearly always such
 * a sum: fusing and splitting divide a variable by extents that divide each other. What is none is
 * approximated and counted. */
#include <stdlib.h>
#include <string.h>

#include "features/analytic/analytic_internal.h"

static void add_slice(cd_an_form *f, cd_an_slice s) {
    if (!s.k || s.n <= 1) return;
    for (uint32_t i = 0; i < f->n; i++)
        if (f->t[i].var == s.var && f->t[i].lo == s.lo && f->t[i].n == s.n &&
            f->t[i].dim == s.dim) {
            f->t[i].k += s.k;
            if (!f->t[i].k) f->t[i] = f->t[--f->n];
            return;
        }
    if (f->n == CD_AN_TERMS) f->inexact = true;
    else f->t[f->n++] = s;
}

void cd_facts_affine_add(cd_an_form *form, const cd_an_form *add, int64_t times, int32_t dim) {
    form->c += cd_an_mul(times, add->c);
    form->inexact |= add->inexact;
    form->gather |= add->gather;
    for (uint32_t i = 0; i < add->n; i++)
        add_slice(form, (cd_an_slice){cd_an_mul(times, add->t[i].k), add->t[i].lo, add->t[i].n,
                                      add->t[i].var, dim});
}

cd_bound cd_facts_affine_range(const cd_an_form *f) {
    cd_bound r = {f->c, f->c};
    for (uint32_t i = 0; i < f->n; i++) {
        const int64_t x = cd_an_mul(f->t[i].k, f->t[i].n - 1);
        if (x < 0) r.lo += x;
        else r.hi += x;
    }
    return r;
}

/* The variable is divided here. Cuts that do not divide each other are sorted out when the tree is
 * made. */
static void cut(cd_an_var *v, int64_t at) {
    uint32_t i = 0;
    if (at <= 1 || at >= v->extent) return;
    while (i < v->n_cut && v->cut[i] < at) i++;
    if ((i < v->n_cut && v->cut[i] == at) || v->n_cut == CD_AN_DIGITS) return;
    for (uint32_t k = v->n_cut++; k > i; k--) v->cut[k] = v->cut[k - 1];
    v->cut[i] = at;
}

/* One slice over d: multiples of d are whole, the rest stays; a slice that steps over a multiple is
 * split there. */
static void divide_slice(cd_an *w, cd_an_slice s, int64_t d, cd_an_form *whole, cd_an_form *rest) {
    if (s.k % d == 0) {
        s.k /= d;
        add_slice(whole, s);
    } else if (s.k > 0 && d % s.k == 0 && d / s.k < s.n) {
        const int64_t part = d / s.k;
        cd_an_var *v = &w->var[s.var];
        cut(v, s.lo * part);
        if (s.n % part && s.lo * s.n < v->extent) rest->inexact = true;
        add_slice(whole, (cd_an_slice){1, s.lo * part, (s.n + part - 1) / part, s.var, 0});
        s.n = part;
        add_slice(rest, s);
    } else {
        add_slice(rest, s);
    }
}

/* floor(f / d) and what is left. Where that is not within [0, d), the quotient of its largest term
 * stands for its quotient. */
static void divide(cd_an *w, const cd_an_form *f, int64_t d, cd_an_form *whole, cd_an_form *rest) {
    whole->n = rest->n = 0;
    whole->gather = rest->gather = f->gather;
    whole->inexact = rest->inexact = f->inexact;
    whole->c = cd_expr_floordiv(f->c, d);
    rest->c = cd_expr_floormod(f->c, d);
    for (uint32_t i = 0; i < f->n; i++) divide_slice(w, f->t[i], d, whole, rest);
    const cd_bound r = cd_facts_affine_range(rest);
    if (r.lo >= 0 && r.hi < d) {
        whole->inexact |= rest->inexact;
        return;
    }
    whole->inexact = rest->inexact = true;
    const cd_an_slice *big = NULL;
    for (uint32_t i = 0; i < rest->n; i++)
        if (!big || llabs(rest->t[i].k) * rest->t[i].n > llabs(big->k) * big->n) big = &rest->t[i];
    if (big)
        add_slice(whole,
                  (cd_an_slice){big->k < 0 ? -1 : 1, big->lo, (r.hi - r.lo) / d + 1, big->var, 0});
}

static void add_expr(cd_an *w, const cd_expr *e, int64_t times, cd_an_form *out);

/* What e was in this store: most divisions stand in several of its addresses. NULL: it is new. */
static const cd_an_form *noted(const cd_an *w, const cd_expr *e) {
    for (uint32_t i = w->n_division; i-- > 0 && w->division[i].store == w->store;)
        if (w->division[i].e == e) return w->division[i].value;
    return NULL;
}

/* Divisions are done once for each store and each turn of the innermost loop that they depend
 * on. */
static void note(cd_an *w, const cd_expr *e, const cd_an_form *of, const cd_an_form *value) {
    int32_t var = -1;
    const size_t bytes = offsetof(cd_an_form, t) + value->n * sizeof *value->t;
    for (uint32_t i = 0; i < of->n; i++)
        if (of->t[i].var > var) var = of->t[i].var;
    if (var < 0) return;
    cd_an_form *kept = cd_arena_alloc(&w->arena, 1, bytes);
    if (!kept || CD_GROW_IN(&w->arena, w->division, w->n_division, w->cap_division)) {
        w->oom = true;
        return;
    }
    memcpy(kept, value, bytes);
    w->division[w->n_division++] = (cd_an_division){e, w->store, var, kept};
}

static void add_divided(cd_an *w, const cd_expr *e, int64_t times, cd_an_form *out) {
    cd_an_form f, whole, rest;
    const int64_t d = e->a[1]->op == CD_INT ? e->a[1]->u.i : 0;
    const cd_an_form *value = noted(w, e);
    if (!value) {
        cd_facts_affine_of(w, e->a[0], &f);
        if (d <= 0) {
            out->inexact = true;
            return;
        }
        divide(w, &f, d, &whole, &rest);
        value = e->op == CD_FDIV || e->op == CD_DIV ? &whole : &rest;
        note(w, e, &f, value);
    }
    cd_facts_affine_add(out, value, times, 0);
}

static void add_var(cd_an *w, const cd_expr *e, int64_t times, cd_an_form *out) {
    const int32_t v = w->var_of[e->u.i];
    if (v >= 0) add_slice(out, (cd_an_slice){times, 1, w->var[v].extent, v, 0});
}

static const cd_expr *first_moving(const cd_expr *e) {
    return e->a[0]->flags & CD_EXPR_HAS_VAR ? e->a[0] : e->a[1];
}

static void add_expr(cd_an *w, const cd_expr *e, int64_t times, cd_an_form *out) {
    switch ((cd_expr_op)e->op) {
    case CD_INT: out->c += cd_an_mul(times, e->u.i); return;
    case CD_VAR: add_var(w, e, times, out); return;
    case CD_ADD:
        add_expr(w, e->a[0], times, out);
        add_expr(w, e->a[1], times, out);
        return;
    case CD_SUB:
        add_expr(w, e->a[0], times, out);
        add_expr(w, e->a[1], -times, out);
        return;
    case CD_MUL:
        if (e->a[1]->op == CD_INT) add_expr(w, e->a[0], cd_an_mul(times, e->a[1]->u.i), out);
        else if (e->a[0]->op == CD_INT) add_expr(w, e->a[1], cd_an_mul(times, e->a[0]->u.i), out);
        else out->inexact = true;
        return;
    case CD_FDIV:
    case CD_FMOD:
    case CD_DIV:
    case CD_MOD: add_divided(w, e, times, out); return;
    case CD_MIN:
    case CD_MAX: /* of a clamp the side that moves */
        out->inexact = true;
        add_expr(w, first_moving(e), times, out);
        return;
    case CD_SELECT:
        out->inexact = true;
        add_expr(w, e->a[1], times, out);
        return;
    case CD_CAST: add_expr(w, e->a[0], times, out); return;
    /* where it leads is not known: somewhere else for each place that it is read from */
    case CD_LOAD:
        out->gather = true;
        if (e->n) add_expr(w, e->a[e->n - 1], times, out);
        return;
    default: out->inexact = true;
    }
}

void cd_facts_affine_of(cd_an *w, const cd_expr *e, cd_an_form *out) {
    out->c = 0;
    out->n = 0;
    out->inexact = out->gather = false;
    add_expr(w, e, 1, out);
}

/* ---- conditions ---- */

static double below(cd_an *w, const cd_expr *a, const cd_expr *b, int64_t least) {
    cd_an_form f, g;
    cd_facts_affine_of(w, a, &f);
    cd_facts_affine_of(w, b, &g);
    cd_facts_affine_add(&f, &g, -1, 0);
    const cd_bound r = cd_facts_affine_range(&f); /* holds where f < least */
    if (r.hi < least) return 1;
    if (r.lo >= least) return 0;
    return (double)(least - r.lo) / ((double)(r.hi - r.lo) + 1);
}

static double equal(cd_an *w, const cd_expr *a, const cd_expr *b) {
    return below(w, a, b, 1) - below(w, a, b, 0);
}

double cd_facts_affine_chance(cd_an *w, const cd_expr *e) {
    switch ((cd_expr_op)e->op) {
    case CD_INT: return e->u.i != 0;
    case CD_AND: return cd_facts_affine_chance(w, e->a[0]) * cd_facts_affine_chance(w, e->a[1]);
    case CD_OR:
        return 1 -
               (1 - cd_facts_affine_chance(w, e->a[0])) * (1 - cd_facts_affine_chance(w, e->a[1]));
    case CD_NOT: return 1 - cd_facts_affine_chance(w, e->a[0]);
    case CD_CALL: return e->n == 1 ? cd_facts_affine_chance(w, e->a[0]) : 0.5; /* likely */
    default: break;
    }
    if (!cd_expr_op_is_cmp((cd_expr_op)e->op) || !cd_expr_dtype_is_index(e->a[0]->type) ||
        (e->flags & CD_EXPR_HAS_LOAD))
        return 0.5;
    switch ((cd_expr_op)e->op) {
    case CD_LT: return below(w, e->a[0], e->a[1], 0);
    case CD_LE: return below(w, e->a[0], e->a[1], 1);
    case CD_GT: return below(w, e->a[1], e->a[0], 0);
    case CD_GE: return below(w, e->a[1], e->a[0], 1);
    case CD_EQ: return equal(w, e->a[0], e->a[1]);
    default: return 1 - equal(w, e->a[0], e->a[1]);
    }
}

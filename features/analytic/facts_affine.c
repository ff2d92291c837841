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

/* form += times * add, as dimension `dim`. */
static void facts_affine_add(cd_an_form *form, const cd_an_form *add, int64_t times, int32_t dim) {
    form->c += cd_an_mul(times, add->c);
    form->inexact |= add->inexact;
    form->gather |= add->gather;
    for (uint32_t i = 0; i < add->n; i++)
        add_slice(form, (cd_an_slice){cd_an_mul(times, add->t[i].k), add->t[i].lo, add->t[i].n,
                                      add->t[i].var, dim});
}

/* Least and greatest value. */
static cd_bound facts_affine_range(const cd_an_form *f) {
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
    const cd_bound r = facts_affine_range(rest);
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

static void facts_affine_of(cd_an *w, const cd_expr *e, cd_an_form *out);

static void add_divided(cd_an *w, const cd_expr *e, int64_t times, cd_an_form *out) {
    cd_an_form f, whole, rest;
    const int64_t d = e->a[1]->op == CD_INT ? e->a[1]->u.i : 0;
    const cd_an_form *value = noted(w, e);
    if (!value) {
        facts_affine_of(w, e->a[0], &f);
        if (d <= 0) {
            out->inexact = true;
            return;
        }
        divide(w, &f, d, &whole, &rest);
        value = e->op == CD_FDIV || e->op == CD_DIV ? &whole : &rest;
        note(w, e, &f, value);
    }
    facts_affine_add(out, value, times, 0);
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

/* e as a sum of slices. */
static void facts_affine_of(cd_an *w, const cd_expr *e, cd_an_form *out) {
    out->c = 0;
    out->n = 0;
    out->inexact = out->gather = false;
    add_expr(w, e, 1, out);
}

/* ---- conditions ---- */

static double below(cd_an *w, const cd_expr *a, const cd_expr *b, int64_t least) {
    cd_an_form f, g;
    facts_affine_of(w, a, &f);
    facts_affine_of(w, b, &g);
    facts_affine_add(&f, &g, -1, 0);
    const cd_bound r = facts_affine_range(&f); /* holds where f < least */
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

/* From the AST: loops with their variables, tensors with their storage, the accesses of every
 * store. Where variables are divided is known only after the last address, so the tree is made
 * later. */

/* ---- loops and tensors ---- */

static cdmpp_status read_loop(cd_an *w, const cd_ast_node *n, cdmpp_err *err) {
    if (n->extent_e->op != CD_INT)
        return CD_FAIL(err, EUNSUPPORTED, "facts: a loop whose extent is no constant");
    if (n->extent > CD_AN_MOST)
        return CD_FAIL(err, EUNSUPPORTED, "facts: a loop of %lld iterations", (long long)n->extent);
    if (n->extent == 1) return CDMPP_OK; /* its variable is 0 */
    if (CD_GROW_IN(&w->arena, w->var, w->n_var, w->cap_var)) return CD_FAIL(err, ENOMEM, "facts");
    w->var_of[n->var->u.i] = (int32_t)w->n_var;
    w->var[w->n_var++] = (cd_an_var){.extent = n->extent < 0 ? 0 : n->extent,
                                     .e = n->var,
                                     .node = -1,
                                     .axis = (uint8_t)(n->kind == CD_AST_THREAD ? n->tag + 1 : 0)};
    return CDMPP_OK;
}

static bool strides(cd_an *w, cd_an_tensor *t, const int64_t *extent) {
    int64_t *stride = cd_arena_alloc(&w->arena, t->rank + 1, sizeof *stride);
    if (!stride) return false;
    stride[t->rank] = t->elem;
    for (uint32_t d = t->rank; d-- > 0;) stride[d] = cd_an_mul(stride[d + 1], extent[d]);
    t->bytes = (double)stride[0];
    t->stride = stride + 1;
    t->extent = extent;
    return true;
}

static bool add_tensor(cd_an *w, uint32_t nest, int32_t home, const cd_expr *const *x,
                       const int64_t *extent) {
    const cd_nest_tensor *from = &w->nest->tensor[nest];
    cd_an_tensor *t = &w->tensor[w->n_tensor];
    *t = (cd_an_tensor){.nest = nest,
                        .rank = from->rank,
                        .elem = (uint8_t)cd_expr_dtype_bytes(from->dtype),
                        .arg = from->arg >= 0,
                        .home = home,
                        .x = x};
    if (!t->elem) t->elem = 1;
    w->tensor_of[nest] = w->n_tensor++;
    return strides(w, t, extent);
}

/* Parameters are whole whatever is realized of them. */
static cdmpp_status read_storage(cd_an *w, int32_t k, cdmpp_err *err) {
    const cd_ast_node *n = &w->ast->node[k];
    const cd_nest_tensor *t = &w->nest->tensor[n->tensor];
    if (t->arg >= 0 || w->tensor_of[n->tensor] != UINT32_MAX) return CDMPP_OK;
    int64_t *extent = cd_arena_alloc(&w->arena, t->rank + 1, sizeof *extent);
    if (!extent) return CD_FAIL(err, ENOMEM, "facts");
    for (uint32_t d = 0; d < t->rank; d++) {
        if (n->x[2 * d + 1]->op != CD_INT)
            return CD_FAIL(err, EUNSUPPORTED, "facts: a buffer whose extent is no constant");
        extent[d] = n->x[2 * d + 1]->u.i;
    }
    return add_tensor(w, n->tensor, k, n->x, extent) ? CDMPP_OK : CD_FAIL(err, ENOMEM, "facts");
}

static cd_an_tensor *tensor_at(cd_an *w, uint32_t nest) {
    if (w->tensor_of[nest] == UINT32_MAX &&
        !add_tensor(w, nest, -1, NULL, w->nest->tensor[nest].shape)) {
        w->oom = true;
        return NULL;
    }
    return &w->tensor[w->tensor_of[nest]];
}

/* ---- accesses ---- */

/* Address in bytes after the beginning of the storage. */
static void address(cd_an *w, const cd_an_tensor *t, const cd_expr *const *x, cd_an_form *out) {
    cd_an_form f;
    out->c = 0;
    out->n = 0;
    out->inexact = out->gather = false;
    for (uint32_t d = 0; d < t->rank; d++) {
        facts_affine_of(w, x[d], &f);
        facts_affine_add(out, &f, t->stride[d], (int32_t)d);
        if (!t->x) continue;
        facts_affine_of(w, t->x[2 * d], &f);
        facts_affine_add(out, &f, -t->stride[d], (int32_t)d);
    }
}

typedef struct {
    cd_an *w;
    uint32_t first; /* raw: of this store */
    int32_t store;
} reader;

static const cd_an_raw *same_access(const reader *r, uint32_t tensor, const cd_expr *const *x,
                                    uint32_t n) {
    for (uint32_t k = r->first; k < r->w->n_raw; k++)
        if (r->w->raw[k].tensor == tensor && !memcmp(r->w->raw[k].x, x, n * sizeof *x))
            return &r->w->raw[k];
    return NULL;
}

typedef struct {
    double chance;
    const cd_expr *cond; /* NULL: none */
    bool cond_else;
} when;

static void add_access(reader *r, uint32_t nest, const cd_expr *const *x, uint32_t n, bool write,
                       const when *c) {
    cd_an *w = r->w;
    cd_an_tensor *t = tensor_at(w, nest);
    if (!t || n != t->rank) return;
    const uint32_t k = w->tensor_of[nest];
    const cd_an_raw *same = same_access(r, k, x, n);
    if (!t->written && !t->read) t->first_written = write;
    if (write) t->written = true;
    else t->read = true;
    if (same && !(same->write && !same->copy && !write)) return; /* loaded already */
    const bool copy = same != NULL;
    if (CD_GROW_IN(&w->arena, w->raw, w->n_raw, w->cap_raw)) {
        w->oom = true;
        return;
    }
    cd_an_raw *a = &w->raw[w->n_raw++];
    a->tensor = k;
    a->write = write;
    a->copy = copy;
    a->store = r->store;
    a->chance = (float)c->chance;
    a->cond = c->cond;
    a->cond_else = c->cond_else;
    a->x = x;
    a->first = r->first;
    a->gather = a->inexact = false;
    a->n = 0;
    if (copy) return;
    cd_an_form f;
    address(w, t, x, &f);
    w->inexact += f.inexact;
    a->gather = f.gather;
    a->inexact = f.inexact;
    a->c = f.c;
    a->n = f.n;
    a->t = cd_arena_alloc(&w->arena, f.n, sizeof *a->t);
    if (a->t) memcpy(a->t, f.t, f.n * sizeof *a->t);
    else w->oom = true;
}

/* Loads in the order in which they are read. */
static void collect(reader *r, const cd_expr *e, when c) {
    if (!(e->flags & CD_EXPR_HAS_LOAD)) return;
    const bool branch = e->op == CD_CALL && e->n == 3 && !strcmp(e->u.name, "if_then_else");
    const double first = branch ? cd_facts_affine_chance(r->w, e->a[0]) : 1;
    for (uint32_t i = 0; i < e->n; i++)
        collect(r, e->a[i],
                !branch || !i ? c
                              : (when){c.chance * (i == 1 ? first : 1 - first), e->a[0], i == 2});
    if (e->op == CD_LOAD) add_access(r, (uint32_t)e->u.i, e->a, e->n, false, &c);
}

static cdmpp_status read_store(cd_an *w, int32_t k, cdmpp_err *err) {
    const cd_ast_node *n = &w->ast->node[k];
    reader r = {w, w->n_raw, k};
    w->store = k;
    const when always = {.chance = 1};
    add_access(&r, n->tensor, n->x, n->n, true, &always);
    collect(&r, n->e, always);
    return w->oom ? CD_FAIL(err, ENOMEM, "facts") : CDMPP_OK;
}

/* A weight with one load in the program may be stored in the order of its loops. */
static void find_packed(cd_an *w) {
    for (uint32_t t = 0; t < w->n_tensor && w->nest->pack; t++)
        w->tensor[t].pack = w->nest->tensor[w->tensor[t].nest].layout_free && !w->tensor[t].written;
    for (uint32_t k = 0; k < w->n_raw; k++)
        for (uint32_t j = k + 1; w->tensor[w->raw[k].tensor].pack && j < w->n_raw; j++)
            if (w->raw[j].tensor == w->raw[k].tensor) w->tensor[w->raw[k].tensor].pack = false;
}

cdmpp_status cd_facts_read_nest(cd_an *w, cdmpp_err *err) {
    w->var_of = cd_arena_alloc(&w->arena, w->nest->n_var + 1, sizeof *w->var_of);
    w->tensor_of = cd_arena_alloc(&w->arena, w->nest->n_tensor + 1, sizeof *w->tensor_of);
    w->tensor = cd_arena_alloc(&w->arena, w->nest->n_tensor + 1, sizeof *w->tensor);
    w->cap_raw = 32;
    w->raw = cd_arena_alloc(&w->arena, w->cap_raw, sizeof *w->raw);
    w->cap_var = (uint32_t)w->ast->n;
    w->var = cd_arena_alloc(&w->arena, w->cap_var, sizeof *w->var);
    w->cap_division = 32;
    w->division = cd_arena_alloc(&w->arena, w->cap_division, sizeof *w->division);
    if (!w->var_of || !w->tensor_of || !w->tensor || !w->raw || !w->var || !w->division)
        return CD_FAIL(err, ENOMEM, "facts");
    memset(w->var_of, 0xff, (w->nest->n_var + 1) * sizeof *w->var_of);
    memset(w->tensor_of, 0xff, (w->nest->n_tensor + 1) * sizeof *w->tensor_of);
    for (int32_t k = 0; k < w->ast->n; k++) {
        const cd_ast_node *n = &w->ast->node[k];
        if (n->dead) continue;
        if (!w->gpu && (n->kind == CD_AST_THREAD || n->kind == CD_AST_EVAL))
            return CD_FAIL(err, EUNSUPPORTED, "facts: thread axes, which a CPU program has not");
        if (n->kind == CD_AST_FOR || n->kind == CD_AST_THREAD) CD_TRY(read_loop(w, n, err));
        else if (n->kind == CD_AST_REALIZE || n->kind == CD_AST_ALLOC)
            CD_TRY(read_storage(w, k, err));
        else if (n->kind == CD_AST_STORE) CD_TRY(read_store(w, k, err));
    }
    find_packed(w);
    return CDMPP_OK;
}

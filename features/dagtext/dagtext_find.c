/* All indices of a definition, with what conditions around them say. */
#include <string.h>

#include "features/dagtext/dagtext_internal.h"

/* Which types the text fixes. Nothing prints the type of a placeholder, but a literal has one, and
 * both sides of a sum have the same. All tensors were taken as float32 so far; here those are found
 * for which every other type would do as well. */

typedef struct {
    /* (tensors + expressions) union-find; a tensor is its number, an expression n_tensor + its
     * id */
    uint32_t *up;
    uint32_t n_tensor, fixed; /* fixed: the class of all that has a type of its own */
} classes;

static uint32_t root(classes *c, uint32_t i) {
    while (c->up[i] != i) i = c->up[i] = c->up[c->up[i]];
    return i;
}

static void join(classes *c, uint32_t a, uint32_t b) { c->up[root(c, a)] = root(c, b); }

static uint32_t node(const classes *c, const cd_expr *e) { return c->n_tensor + e->id; }

/* Joins what must have one type. Types of conditions, axes, literals and casts are their own. */
static void walk_types(classes *c, const cd_expr *e) {
    const uint32_t me = node(c, e);
    for (uint32_t i = 0; i < e->n; i++) walk_types(c, e->a[i]);
    if (e->op == CD_LOAD) {
        join(c, me, (uint32_t)e->u.i);
    } else if (cd_expr_op_is_arith((cd_expr_op)e->op) || cd_expr_op_is_cmp((cd_expr_op)e->op)) {
        join(c, node(c, e->a[0]), node(c, e->a[1]));
        join(c, me, cd_expr_op_is_cmp((cd_expr_op)e->op) ? c->fixed : node(c, e->a[0]));
    } else if (e->op == CD_SELECT || (e->op == CD_CALL && e->n == 3)) {
        join(c, node(c, e->a[1]), node(c, e->a[2]));
        join(c, me, node(c, e->a[1]));
    } else if (e->op == CD_CALL && e->n) {
        join(c, me, node(c, e->a[0]));
    } else {
        join(c, me, c->fixed);
    }
}

cdmpp_status cd_dagtext_types(cd_dagtext *t, const cd_te_dag *dag) {
    const uint32_t n = dag->n_tensor + dag->pool.n;
    classes c = {CD_NEWN(t->a, uint32_t, n + 1u), dag->n_tensor, n};
    if (!c.up) return CD_FAIL(t->err, ENOMEM, "types");
    for (uint32_t i = 0; i <= n; i++) c.up[i] = i;
    for (uint32_t i = 0; i < dag->n_op; i++) {
        if (dag->op[i].is_placeholder) continue;
        walk_types(&c, dag->op[i].body[0]);
        join(&c, node(&c, dag->op[i].body[0]), i);
    }
    for (uint32_t i = 0; i < dag->n_op; i++) {
        if (root(&c, i) == root(&c, n)) continue;
        if (!(t->allowed & CD_DAGTEXT_FLOAT32))
            return CD_FAIL(t->err, ENOTASK,
                           "the type of %s is open: no literal and no cast fixes it",
                           dag->op[i].name);
        t->rests |= CD_DAGTEXT_FLOAT32;
    }
    return CDMPP_OK;
}

typedef struct {
    cd_arena *a;
    const cd_te_dag *dag;
    const cd_te_op *op;
    uint32_t i_op;
    bool part;
    cd_dagtext_indices *out;
    bool oom;
} finder;

/* A place in an expression: what holds there, and whether that is known. */
typedef struct {
    const cd_dagtext_guard *guard;
    bool vague;
} where;

static bool is_spatial(const finder *f, const cd_expr *var) {
    for (uint32_t i = 0; i < f->op->n_axis; i++)
        if (f->op->axis[i].var == var) return true;
    return false;
}

/* ---- conditions ---- */

static void add_guard(finder *f, where *w, const cd_expr *var, int64_t lo, int64_t hi) {
    cd_dagtext_guard *g = CD_NEW(f->a, cd_dagtext_guard);
    f->oom = f->oom || !g;
    if (!g) return;
    *g = (cd_dagtext_guard){var, lo, hi, w->guard};
    w->guard = g;
}

/* i < 5 and the like; `holds` false: the opposite. */
static void compare(finder *f, where *w, const cd_expr *c, bool holds) {
    const bool known =
        cd_expr_op_is_cmp((cd_expr_op)c->op) && c->a[0]->op == CD_VAR && c->a[1]->op == CD_INT;
    const int64_t v = known ? c->a[1]->u.i : 0;
    cd_expr_op op = (cd_expr_op)c->op;
    if (!holds)
        op = op == CD_LT   ? CD_GE
             : op == CD_GE ? CD_LT
             : op == CD_LE ? CD_GT
             : op == CD_GT ? CD_LE
             : op == CD_NE ? CD_EQ
                           : CD_NE;
    if (!known || op == CD_NE || v > CD_DAGTEXT_FAR || v < -CD_DAGTEXT_FAR) w->vague = true;
    else if (op == CD_EQ) add_guard(f, w, c->a[0], v, v);
    else if (op == CD_LT || op == CD_LE)
        add_guard(f, w, c->a[0], -CD_DAGTEXT_FAR, op == CD_LT ? v - 1 : v);
    else add_guard(f, w, c->a[0], op == CD_GT ? v + 1 : v, CD_DAGTEXT_FAR);
}

static void condition(finder *f, where *w, const cd_expr *c, bool holds) {
    if (c->op == CD_NOT) {
        condition(f, w, c->a[0], !holds);
    } else if ((c->op == CD_AND && holds) || (c->op == CD_OR && !holds)) {
        condition(f, w, c->a[0], holds);
        condition(f, w, c->a[1], holds);
    } else if (!cd_expr_is_int_value(c, holds)) {
        compare(f, w, c, holds);
    }
}

/* ---- one index ---- */

/* Names of TVM's operators that take a part of what they read. */
static bool takes_part(const char *name) {
    static const char *const word[] = {"slice", "split", "take", "crop", "gather"};
    for (size_t k = 0; k < sizeof word / sizeof *word; k++)
        if (strstr(name, word[k])) return true;
    return false;
}

/* Of an adaptive pool: an axis whose extent is known, as an expression. */
static bool has_expression(const cd_te_op *op, const cd_expr *var) {
    for (uint32_t i = 0; i < op->n_raxis; i++)
        if (op->raxis[i].var == var) return !cd_expr_is_int(op->raxis[i].extent);
    return false;
}

/* Sums, products with a number, quotients and remainders by a number, minima and maxima of axes,
 * each of them once. */
static bool understood(const finder *f, cd_dagtext_index *x, const cd_expr *e) {
    if (e->op == CD_INT) return e->u.i > -CD_DAGTEXT_FAR && e->u.i < CD_DAGTEXT_FAR;
    if (e->op == CD_VAR) {
        for (uint32_t i = 0; i < x->n_var; i++)
            if (x->var[i] == e) return false;
        if (x->n_var == CD_DAGTEXT_MAX_VAR || has_expression(f->op, e)) return false;
        x->var[x->n_var++] = e;
        x->reduces = x->reduces || !is_spatial(f, e);
        return true;
    }
    if (e->op == CD_CAST) return cd_expr_dtype_is_index(e->type) && understood(f, x, e->a[0]);
    if (e->op == CD_MUL && e->a[0]->op != CD_INT && e->a[1]->op != CD_INT) return false;
    if ((e->op == CD_FDIV || e->op == CD_FMOD) && (e->a[1]->op != CD_INT || e->a[1]->u.i <= 0))
        return false;
    if (e->op != CD_ADD && e->op != CD_SUB && e->op != CD_MUL && e->op != CD_FDIV &&
        e->op != CD_FMOD && e->op != CD_MIN && e->op != CD_MAX)
        return false;
    return understood(f, x, e->a[0]) && understood(f, x, e->a[1]);
}

/* How far the index moves with one spatial axis (spatial false: reduction axis): the least; 0: it
 * does not move. */
static int64_t step_of(const finder *f, const cd_expr *e, bool spatial) {
    if (e->op == CD_VAR) return is_spatial(f, e) == spatial;
    if (e->op == CD_INT) return 0;
    const int64_t a = step_of(f, e->a[0], spatial), b = e->n > 1 ? step_of(f, e->a[1], spatial) : 0;
    if (e->op == CD_MUL) {
        const int64_t c = e->a[0]->op == CD_INT ? e->a[0]->u.i : e->a[1]->u.i;
        const int64_t s = a > b ? a : b, m = c < 0 ? -c : c;
        return s && m > CD_DAGTEXT_FAR / s ? CD_DAGTEXT_FAR : s * m;
    }
    if (e->op == CD_FDIV) return a ? a / e->a[1]->u.i + (a % e->a[1]->u.i != 0) : 0;
    return a && b ? (a < b ? a : b) : a + b;
}

/* floordiv(i*8, 3) + r: an adaptive pool, whose windows differ. */
static bool is_window(const cd_expr *e) {
    return e->op == CD_ADD && e->a[0]->op == CD_FDIV && e->a[0]->flags & CD_EXPR_HAS_VAR &&
           e->a[1]->op == CD_VAR;
}

static void add_index(finder *f, const cd_expr *load, uint32_t d, where w) {
    cd_dagtext_index x = {.op = f->i_op,
                          .tensor = (uint32_t)load->u.i,
                          .dim = d,
                          .e = load->a[d],
                          .guard = w.guard,
                          .part = f->part};
    const bool known = understood(f, &x, x.e);
    x.vague = w.vague || !known || (x.reduces && is_window(x.e));
    if (known) x.step = step_of(f, x.e, true);
    if (known && !x.step) x.step = step_of(f, x.e, false);
    if (!x.step) x.step = 1;
    for (uint32_t k = 0; x.e->op == CD_FDIV && k < load->n; k++)
        if (load->a[k]->op == CD_FMOD && load->a[k]->a[0] == x.e->a[0] &&
            load->a[k]->a[1] == x.e->a[1])
            x.pair = load->a[k], x.pair_dim = k;
    if (CD_GROW_IN(f->a, f->out->v, f->out->n, f->out->cap)) f->oom = true;
    else f->out->v[f->out->n++] = x;
}

/* ---- expressions ---- */

static void walk(finder *f, const cd_expr *e, where w) {
    if (!(e->flags & CD_EXPR_HAS_LOAD)) return;
    if (e->op == CD_SELECT ||
        (e->op == CD_CALL && e->n == 3 && !strcmp(e->u.name, "if_then_else"))) {
        where yes = w, no = w;
        condition(f, &yes, e->a[0], true);
        condition(f, &no, e->a[0], false);
        walk(f, e->a[0], w);
        walk(f, e->a[1], yes);
        walk(f, e->a[2], no);
        return;
    }
    for (uint32_t d = 0; e->op == CD_LOAD && d < e->n; d++) add_index(f, e, d, w);
    for (uint32_t i = 0; i < e->n; i++) walk(f, e->a[i], w);
}

cdmpp_status cd_dagtext_find(cd_arena *a, const cd_te_dag *dag, cd_dagtext_indices *out,
                             cdmpp_err *err) {
    finder f = {.a = a, .dag = dag, .out = out};
    *out = (cd_dagtext_indices){0};
    for (f.i_op = 0; f.i_op < dag->n_op; f.i_op++) {
        f.op = &dag->op[f.i_op];
        if (f.op->is_placeholder) continue;
        f.part = takes_part(f.op->name);
        walk(&f, f.op->body[0], (where){0});
    }
    return f.oom ? CD_FAIL(err, ENOMEM, "indices") : CDMPP_OK;
}

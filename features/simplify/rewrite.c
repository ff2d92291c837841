/* The rewriting simplifier: children first, then folding, then the first rule
 * of rewrite_rules.def that matches. Also the node visitor of the canonical
 * simplifier for everything that is no integer sum. */
#include <math.h>

#include "features/simplify/simplify_internal.h"

static cd_expr_pool *pool(const cd_walker *w) { return w->ana->s->pool; }
static const cd_expr *mk(const cd_walker *w, cd_expr_op op, const cd_expr *a, const cd_expr *b) {
    return cd_expr_bin(pool(w), op, a, b);
}
static const cd_expr *mk_int(const cd_walker *w, cd_dtype t, int64_t v) {
    return cd_expr_dtype_is_float(t) ? cd_expr_new_float(pool(w), t, (double)v)
                                     : cd_expr_new_int(pool(w), t, v);
}
static const cd_expr *mk_bool(const cd_walker *w, bool v) {
    return cd_expr_new_int(pool(w), CD_BOOL, v);
}
static const cd_expr *new_not(const cd_walker *w, const cd_expr *e) {
    return cd_expr_new_not(pool(w), e);
}

/* ---- proofs ---- */

cd_compare cd_rewrite_compare(cd_walker *w, const cd_expr *e, int64_t v) {
    const cd_expr *d = cd_walk(w, e);
    if (d->op == CD_INT)
        return d->u.i == v ? CD_COMPARE_EQ : d->u.i > v ? CD_COMPARE_GT : CD_COMPARE_LT;
    const cd_bound b = cd_const_int_bound(w->ana, d);
    if (b.lo == v && b.hi == v) return CD_COMPARE_EQ;
    if (b.lo > v) return CD_COMPARE_GT;
    if (b.hi < v) return CD_COMPARE_LT;
    if (b.lo >= v) return CD_COMPARE_GE;
    if (b.hi <= v) return CD_COMPARE_LE;
    return v == 0 && cd_modular_set(w->ana, d).base != 0 ? CD_COMPARE_NE : CD_COMPARE_UNKNOWN;
}

/* TVM gives the constraints to its rewriting simplifier only. */
static const cd_expr *by_constraint(const cd_walker *w, const cd_expr *e) {
    if (w->canonical) return NULL;
    const cd_expr_list *l = &w->ana->literal;
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->p[i] == e) return mk_int(w, e->type, 1);
        if (l->p[i]->op == CD_NOT && l->p[i]->a[0] == e) return mk_int(w, e->type, 0);
    }
    return NULL;
}

/* ---- running a rule ---- */

typedef struct {
    cd_walker *w;
    const cd_expr *e; /* the node being rewritten */
    const cd_expr *r[CD_RULE_REGS], *stack[CD_RULE_STACK];
    int64_t num[CD_RULE_STACK];
    unsigned n, n_num;
} machine;

static inline bool match(const cd_rule_ins *i, const cd_rule_ins *end, const cd_expr **r) {
    for (; i < end; i++) {
        const cd_expr *x = r[i->a];
        switch ((cd_rule_op)i->k) {
        case CD_I_OP:
            if (x->op != i->b) return false;
            /* fall through */
        case CD_I_LOAD:
            for (uint32_t k = 0; k < x->n; k++) r[(unsigned)i->v + k] = x->a[k];
            break;
        case CD_I_INT:
            if (x->op != CD_INT) return false;
            break;
        case CD_I_LIT:
            if (x->op != CD_INT || x->u.i != i->v) return false;
            break;
        case CD_I_SAME:
            if (x != r[i->b]) return false;
            break;
        default:
            if (x->op != CD_INT || x->u.i != r[i->b]->u.i) return false;
            break;
        }
    }
    return true;
}

static const cd_expr *fold_or_new(const machine *m, cd_expr_op op, const cd_expr *a,
                                  const cd_expr *b) {
    const cd_expr *r = cd_fold_bin(pool(m->w), op, a, b);
    return r ? r : cd_expr_new_bin(pool(m->w), op, a, b);
}

static bool calc(machine *m, cd_expr_op op) {
    const int64_t y = m->num[--m->n_num], x = m->num[m->n_num - 1];
    int64_t *r = &m->num[m->n_num - 1];
    switch (op) {
    case CD_ADD: *r = cd_wrap_add(x, y); break;
    case CD_SUB: *r = cd_wrap_sub(x, y); break;
    case CD_MUL: *r = cd_wrap_mul(x, y); break;
    case CD_FMOD:
        if (y == 0) return false;
        *r = cd_trunc_mod(x, y); /* only ever compared with 0 */
        break;
    case CD_EQ: *r = x == y; break;
    case CD_NE: *r = x != y; break;
    case CD_LT: *r = x < y; break;
    case CD_LE: *r = x <= y; break;
    case CD_GT: *r = x > y; break;
    default: *r = x >= y; break;
    }
    return true;
}

/* Conditions and results; false when a condition fails. */
static bool run(machine *m, const cd_rule_ins *i, const cd_rule_ins *end) {
    cd_walker *w = m->w;
    for (; i < end; i++) {
        const cd_expr **top = m->stack + m->n;
        switch ((cd_rule_op)i->k) {
        case CD_I_REG: m->stack[m->n++] = m->r[i->a]; break;
        case CD_I_CONST:
            m->stack[m->n++] = mk_int(w, (i->a == 255 ? m->e : m->r[i->a])->type, i->v);
            break;
        case CD_I_BIN:
            top[-2] = fold_or_new(m, (cd_expr_op)i->a, top[-2], top[-1]);
            m->n--;
            break;
        case CD_I_NOT: top[-1] = new_not(w, top[-1]); break;
        case CD_I_SELECT:
            top[-3] = cd_expr_new_select(pool(w), top[-3], top[-2], top[-1]);
            m->n -= 2;
            break;
        case CD_I_VAL: m->num[m->n_num++] = m->r[i->a]->u.i; break;
        case CD_I_NUM: m->num[m->n_num++] = i->v; break;
        case CD_I_CALC:
            if (!calc(m, (cd_expr_op)i->a)) return false;
            break;
        case CD_I_TRUE:
            if (!m->num[--m->n_num]) return false;
            break;
        case CD_I_GE:
            if (!cd_simplify_ge(w->ana, m->stack[--m->n], m->num[--m->n_num])) return false;
            break;
        case CD_I_EQ0:
            if (cd_rewrite_compare(w, m->stack[--m->n], 0) != CD_COMPARE_EQ) return false;
            break;
        default:
            if (!cd_simplify_is_pure(m->stack[--m->n], true)) return false;
            break;
        }
    }
    return true;
}

/* (x*c1 + y) // c2, also y + x*c1 or y = 0: drop what stays below one divisor. */
static const cd_expr *residue(cd_walker *w, const cd_expr *e) {
    const cd_expr *s = e->a[0], *c2 = e->a[1], *xc = s, *y = NULL;
    if (s->op == CD_ADD) {
        const bool first = s->a[0]->op == CD_MUL && s->a[0]->a[1]->op == CD_INT;
        xc = s->a[first ? 0 : 1];
        y = s->a[first ? 1 : 0];
    }
    if (xc->op != CD_MUL || xc->a[1]->op != CD_INT) return NULL;
    if (c2->u.i == 0) return e;
    if (!y) y = mk_int(w, CD_I32, 0);
    const cd_expr *x = xc->a[0], *c1 = xc->a[1];
    const cd_expr *n = mk_int(w, y->type, c2->u.i), *y_mod = mk(w, CD_FMOD, y, n);
    const cd_expr *x_mod = mk(w, CD_MUL, x, mk(w, CD_FMOD, c1, c2));
    const cd_bound b = cd_const_int_bound(w->ana, mk(w, CD_FDIV, mk(w, CD_ADD, x_mod, y_mod), c2));
    const bool one = b.lo == b.hi;
    const int64_t k1 = c1->u.i, k2 = c2->u.i;
    if (!one && !(k1 > 0 && k2 > 0 && k2 % k1 == 0 && cd_simplify_lt(w->ana, y_mod, k1)))
        return NULL;
    const cd_expr *y_div = mk(w, CD_FDIV, y, n);
    if (cd_rewrite_compare(w, y_div, 0) == CD_COMPARE_EQ) y_div = mk_int(w, CD_I32, 0);
    if (one) {
        const cd_expr *q = mk(w, CD_MUL, x, mk_int(w, c2->type, cd_expr_floordiv(k1, k2)));
        return mk(w, CD_ADD, q, mk(w, CD_ADD, y_div, mk_int(w, CD_I32, b.hi)));
    }
    return mk(w, CD_ADD, mk(w, CD_FDIV, x, mk_int(w, x->type, k2 / k1)), y_div);
}

/* The result of the first rule that applies; NULL: none. */
static const cd_expr *apply(cd_walker *w, const cd_expr *e, unsigned domain) {
    const cd_rewrite_rules *b = w->ana->s->book;
    const uint16_t *list = cd_rewrite_rules_find(b, e, domain);
    if (!*list) return NULL;
    machine m;
    m.w = w;
    m.e = e;
    for (; *list; list++) {
        const cd_rule *r = &b->rule[*list];
        for (uint32_t k = 0; k < e->n; k++) m.r[k] = e->a[k];
        if (!match(b->code + r->match, b->code + r->cond, m.r)) continue;
        m.n = m.n_num = 0;
        if (r->flags & CD_RULE_RESIDUE) {
            const cd_expr *x = residue(w, e);
            if (x) return x;
            continue;
        }
        if (!run(&m, b->code + r->cond, b->code + r->end)) continue;
        if (!(r->flags & CD_RULE_RECURSIVE)) return m.stack[0];
        if (w->depth >= CD_REWRITE_DEPTH) {
            w->cut = true;
            return m.stack[0];
        }
        if (++w->depth > w->deepest) w->deepest = w->depth;
        const cd_expr *x = cd_walk(w, m.stack[0]);
        w->depth--;
        return x;
    }
    return NULL;
}

/* ---- what comes before and after the table ---- */

static const cd_expr *by_bounds(cd_walker *w, const cd_expr *e) { /* index min, max */
    const cd_expr *x = e->a[0], *y = e->a[1];
    const cd_bound a = cd_const_int_bound(w->ana, x), b = cd_const_int_bound(w->ana, y);
    if (e->op == CD_MIN) return a.hi <= b.lo ? x : b.hi <= a.lo ? y : NULL;
    return a.lo >= b.hi ? x : b.lo >= a.hi ? y : NULL;
}

static const cd_expr *by_difference(cd_walker *w, const cd_expr *e) { /* index ==, < */
    const cd_compare c = cd_rewrite_compare(w, mk(w, CD_SUB, e->a[0], e->a[1]), 0);
    if (e->op == CD_EQ) {
        if (c == CD_COMPARE_EQ) return mk_bool(w, true);
        return c == CD_COMPARE_NE || c == CD_COMPARE_GT || c == CD_COMPARE_LT ? mk_bool(w, false)
                                                                              : NULL;
    }
    if (c == CD_COMPARE_LT) return mk_bool(w, true);
    return c == CD_COMPARE_EQ || c == CD_COMPARE_GT || c == CD_COMPARE_GE ? mk_bool(w, false)
                                                                          : NULL;
}

static const cd_expr *by_modulus(cd_walker *w, const cd_expr *e) { /* index %, tmod by a literal */
    const int64_t c = e->a[1]->op == CD_INT ? e->a[1]->u.i : 0;
    if (c <= 0) return NULL;
    const cd_modular m = cd_modular_set(w->ana, e->a[0]);
    if (m.coeff % c != 0 || (e->op == CD_MOD && !cd_simplify_ge(w->ana, e->a[0], 0))) return NULL;
    return mk(w, (cd_expr_op)e->op, mk_int(w, e->a[1]->type, m.base), e->a[1]);
}

static const cd_expr *binary(cd_walker *w, const cd_expr *e) {
    const cd_expr_op op = (cd_expr_op)e->op;
    const cd_expr *a = cd_walk(w, e->a[0]), *b = cd_walk(w, e->a[1]),
                  *r = cd_fold_bin(pool(w), op, a, b);
    if (r) return r;
    if (a != e->a[0] || b != e->a[1]) e = cd_expr_new_bin(pool(w), op, a, b);
    if (pool(w)->oom) return e; /* maybe no such node */
    const bool index = cd_expr_dtype_is_index(a->type), logic = op == CD_AND || op == CD_OR;
    if ((logic || op == CD_EQ || op == CD_LT) && (r = by_constraint(w, e))) return r;
    if (op == CD_DIV && b->op == CD_FLOAT)
        return mk(w, CD_MUL, a, cd_expr_new_float(pool(w), b->type, 1.0 / b->u.f));
    if (index) {
        if ((op == CD_MIN || op == CD_MAX) && (r = by_bounds(w, e))) return r;
        if ((op == CD_EQ || op == CD_LT) && (r = by_difference(w, e))) return r;
    }
    const unsigned domain = index                                       ? CD_DOM_INDEX
                            : cd_expr_dtype_kind(a->type) == CD_T_FLOAT ? CD_DOM_FLOAT
                                                                        : CD_DOM_OTHER;
    if ((r = apply(w, e, domain))) return r;
    if (index && (op == CD_FMOD || op == CD_MOD) && (r = by_modulus(w, e))) return r;
    return e;
}

static const cd_expr *negation(cd_walker *w, const cd_expr *e) {
    const cd_expr *a = cd_walk(w, e->a[0]), *r;
    if (a->op == CD_INT) return mk_bool(w, !a->u.i);
    if (a != e->a[0]) e = new_not(w, a);
    if (pool(w)->oom) return e;
    if ((r = by_constraint(w, e))) return r;
    return (r = apply(w, e, CD_DOM_OTHER)) ? r : e;
}

/* ---- the other kinds of node ---- */

static const cd_expr *children(cd_walker *w, const cd_expr *e) {
    const cd_expr *small[8], **a = small;
    if (e->n > 8) a = cd_arena_alloc(&w->ana->s->arena, e->n, sizeof *a);
    if (!a) return cd_simplify_give_up(w->ana->s, e);
    for (uint32_t i = 0; i < e->n; i++) a[i] = cd_walk(w, e->a[i]);
    return cd_expr_new_like(pool(w), e, a);
}

static const cd_expr *under(cd_walker *w, const cd_expr *cond, const cd_expr *e) {
    const cd_constraint c = cd_constraint_enter(w->ana, cond);
    const cd_expr *r = cd_walk(w, e);
    cd_constraint_leave(w->ana, c);
    return r;
}

/* Select and if_then_else: each branch under what the condition says. */
static const cd_expr *branches(cd_walker *w, const cd_expr *e) {
    const cd_expr *c = cd_walk(w, e->a[0]);
    if (c->op == CD_INT && c->u.i == 1) return cd_walk(w, e->a[1]);
    if (c->op == CD_INT && c->u.i == 0) return cd_walk(w, e->a[2]);
    /* A branch without operands, mostly the zero of a padding, is the same under any condition. */
    const cd_expr *t = e->a[1]->op <= CD_STR ? e->a[1] : under(w, c, e->a[1]);
    const cd_expr *f = e->a[2]->op <= CD_STR
                           ? e->a[2]
                           : under(w, cd_simplify_rewrite(w->ana, new_not(w, c)), e->a[2]);
    if (e->op == CD_SELECT && t == f) return t;
    return cd_expr_new_like(pool(w), e, (const cd_expr *const[]){c, t, f});
}

static const cd_expr *fold_ceil(cd_walker *w, const cd_expr *e) {
    const cd_expr *x = e->a[0], *v = NULL;
    if (x->op == CD_INT) v = x;
    else if (x->op == CD_FLOAT) v = cd_expr_new_float(pool(w), x->type, ceil(x->u.f));
    else if (cd_call_is(x, "log2") && x->a[0]->op == CD_FLOAT)
        v = cd_expr_new_float(pool(w), e->type, ceil(log2(x->a[0]->u.f)));
    else return e;
    return cd_expr_cast(pool(w), e->type, v);
}

static const cd_expr *fold_shift(cd_walker *w, const cd_expr *e, bool left) {
    const cd_expr *x = e->a[0], *y = e->a[1];
    if (x->op != CD_INT || y->op != CD_INT || y->u.i < 0 || y->u.i > 63) return e;
    return mk_int(w, x->type, left ? (int64_t)((uint64_t)x->u.i << y->u.i) : x->u.i >> y->u.i);
}

static const cd_expr *call(cd_walker *w, const cd_expr *e) {
    if (e->n == 3 && cd_call_is(e, "if_then_else")) return branches(w, e);
    e = children(w, e);
    if (e->n == 1 && cd_call_is(e, "likely")) {
        const cd_expr *r = e->a[0]->op == CD_INT ? e->a[0] : by_constraint(w, e->a[0]);
        return r ? r : e;
    }
    if (e->n == 1 && cd_call_is(e, "ceil")) return fold_ceil(w, e);
    if (e->n == 2 && cd_call_is(e, "shift_right")) return fold_shift(w, e, false);
    if (e->n == 2 && cd_call_is(e, "shift_left")) return fold_shift(w, e, true);
    return e;
}

const cd_expr *cd_rewrite_var(cd_walker *w, const cd_expr *e) {
    cd_analyzer *a = w->ana;
    const cd_expr *r = e->type == CD_BOOL && a->literal.n ? by_constraint(w, e) : NULL;
    if (r) return r;
    const cd_var_info *v = cd_simplify_var(a, e);
    return v && v->value ? v->value : e;
}

/* Comparisons are brought to == and <; everything binary goes on to binary(). */
const cd_expr *cd_rewrite_node(cd_walker *w, const cd_expr *e) {
    switch ((cd_expr_op)e->op) {
    case CD_INT:
    case CD_FLOAT:
    case CD_STR: return e;
    case CD_VAR: return cd_rewrite_var(w, e);
    case CD_NE: return cd_walk(w, new_not(w, mk(w, CD_EQ, e->a[0], e->a[1])));
    case CD_LE: return cd_walk(w, new_not(w, mk(w, CD_LT, e->a[1], e->a[0])));
    case CD_GE: return cd_walk(w, new_not(w, mk(w, CD_LT, e->a[0], e->a[1])));
    case CD_GT: return cd_walk(w, mk(w, CD_LT, e->a[1], e->a[0]));
    case CD_NOT: return negation(w, e);
    case CD_SELECT: return branches(w, e);
    case CD_CALL: return call(w, e);
    case CD_CAST: return cd_expr_cast(pool(w), e->type, cd_walk(w, e->a[0]));
    case CD_LOAD: return children(w, e);
    default: return binary(w, e);
    }
}

/* Memoised by (expression, context), as mutate() of canonical.c. */
const cd_expr *cd_rewrite_visit(cd_walker *w, const cd_expr *e) {
    if (e->op == CD_VAR) return cd_rewrite_var(w, e);
    if (e->op <= CD_STR) return e;
    cd_simplifier *s = w->ana->s;
    cd_memo *m = cd_simplify_memo(s, e);
    const uint32_t ctx = w->ana->ctx;
    if (m && m->rw_ctx == ctx && cd_walker_reuse(w, m->rw_need)) return m->rw;
    if (s->oom || s->pool->oom || s->nest >= CD_SIMPLIFY_MAX_NEST)
        return cd_simplify_give_up(w->ana->s, e);
    s->nest++;
    const cd_walker_frame f = cd_walker_begin(w);
    const cd_expr *r = cd_rewrite_node(w, e);
    const uint8_t took = cd_walker_end(w, f);
    s->nest--;
    if ((m = cd_simplify_memo(s, e))) {
        m->rw_ctx = ctx;
        m->rw_need = took;
        m->rw = r;
    }
    return r;
}

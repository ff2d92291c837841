/* What a stored value takes: float operations, those that fuse, selections, functions. Addresses
 * inside loads are not looked at. */
#include <string.h>

#include "features/analytic/analytic_internal.h"

/* Distinct cache lines, or pages, of an affine access, in closed form.
 *
 *   strides 4 (16), 448 (14), 6272 (3): runs of 64 bytes, 448 apart, in three planes
 *
 * Terms in rising order: one whose step leaves no whole granule between two copies of what is there
 * lengthens the run; the others multiply it. Of a run that may begin anywhere the mean over its
 * beginnings is taken; these are spread evenly over the multiples of the lowest bit of the strides,
 * for which a sum of floors has a closed form (Hermite). */

typedef struct {
    int64_t run;             /* bytes without a whole free granule */
    int64_t stride, n, span; /* of the outermost level of copies; span: bytes of all */
    double copies;           /* of the levels within that one */
    uint64_t bits;           /* of everything that moves a run's beginning */
} set;

static void flush(set *s) {
    s->copies *= (double)s->n;
    s->n = 1;
    s->stride = 0;
}

static inline void add(set *s, int64_t stride, int64_t reach, int64_t granule) {
    if (reach < 0) reach = 0;
    s->span += reach;
    if (s->copies * (double)s->n <= 1 && stride < s->run + granule) {
        s->run += reach;
        return;
    }
    s->bits |= (uint64_t)stride;
    if (s->n > 1 && stride % s->stride == 0 && stride / s->stride <= s->n) {
        s->n += reach / s->stride;
        return;
    }
    flush(s);
    s->stride = stride;
    s->n = 1 + reach / stride;
}

/* Bytes that the terms of i's dimension reach beyond the tensor, if i is the widest of them. */
static int64_t outside_lines(const cd_an_access *a, int32_t node, uint32_t i) {
    for (uint32_t k = 0; k < a->n_dim; k++) {
        int64_t reach = 0;
        if (a->out_dim[k].dim != a->t[i].dim) continue;
        for (uint32_t j = 0; j < a->n; j++) {
            if (a->t[j].dim != a->t[i].dim || a->t[j].node < node) continue;
            if (j > i) return 0;
            reach += a->t[j].reach;
        }
        const int64_t over = reach - cd_an_mul(a->out_dim[k].stride, a->out_dim[k].extent - 1);
        return over > 0 ? over : 0;
    }
    return 0;
}

double cd_facts_lines_count(const cd_an_access *a, int32_t node, int64_t granule, double *width) {
    set s = {.run = a->elem, .n = 1, .span = a->elem, .copies = 1, .bits = (uint64_t)granule};
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->t[i].node >= node)
            add(&s, a->t[i].stride, a->t[i].reach - (a->n_dim ? outside_lines(a, node, i) : 0),
                granule);
        else s.bits |= (uint64_t)a->t[i].stride;
    }
    flush(&s);
    *width = (double)s.span;
    /* grid and granule are powers of two */
    const int64_t grid = (int64_t)(s.bits & (0 - s.bits)),
                  begin = a->n_dim && a->c < 0 ? 0 : a->c & (grid - 1);
    const double each = (double)((s.run - 1 + begin) & ~(grid - 1)) / (double)granule + 1;
    /* copies that lie within each other */
    const double lines = each * s.copies, most = (double)(s.span - 1) / (double)granule + 1;
    return lines < most ? lines : most;
}

static bool one_of(const char *name, const char *const *list) {
    for (; *list; list++)
        if (!strcmp(name, *list)) return true;
    return false;
}

typedef struct {
    cd_an *w;
    const cd_expr *inner;
    cd_an_value *v;
} counter;

/* Not moved by the innermost loop: done once outside of it. */
static bool outside(const counter *c, const cd_expr *e) {
    return c->inner && !cd_expr_uses(e, c->inner);
}

static void call(const counter *c, const cd_expr *e, double part) {
    cd_an_value *v = c->v;
    static const char *const exps[] = {"exp",  "exp2",  "exp10", "sigmoid", "log",
                                       "log2", "log10", "log1p", NULL};
    static const char *const tanhs[] = {"tanh", "erf", NULL};
    static const char *const roots[] = {"sqrt", "rsqrt", NULL};
    static const char *const cheap[] = {
        "likely",      "floor",      "ceil",        "trunc",       "round",      "nearbyint",
        "fabs",        "isnan",      "isfinite",    "bitwise_and", "bitwise_or", "bitwise_xor",
        "bitwise_not", "shift_left", "shift_right", "reinterpret", NULL};
    const char *name = e->u.name;
    if (outside(c, e)) return;
    if (one_of(name, exps)) v->exps += part;
    else if (one_of(name, tanhs)) v->tanhs += part;
    else if (one_of(name, roots)) v->divides += part;
    else if (one_of(name, cheap)) v->others += part;
    else v->calls += part;
}

static bool is_mul(const cd_expr *e) { return e->op == CD_MUL && cd_expr_dtype_is_float(e->type); }

static void arithmetic(const counter *c, const cd_expr *e, double part) {
    cd_an_value *v = c->v;
    if (e->op == CD_ADD && (cd_expr_is_dot4(e->a[0]) || cd_expr_is_dot4(e->a[1]))) {
        v->adds += part, v->fused += part;
        return;
    }
    if (!cd_expr_dtype_is_float(e->type)) {
        v->ints += part;
        return;
    }
    switch ((cd_expr_op)e->op) {
    case CD_ADD:
    case CD_SUB:
        v->adds += part;
        if (is_mul(e->a[0]) || is_mul(e->a[1])) v->fused += part;
        return;
    case CD_MUL: v->muls += part; return;
    case CD_MIN:
    case CD_MAX: v->others += part; return;
    default:
        if (!outside(c, e)) v->divides += part;
    }
}

static void visit(const counter *c, const cd_expr *e, double part);

/* One of two values is computed; the condition is counted, not looked into. */
static void branch(const counter *c, const cd_expr *e, double part) {
    const double chance = e->flags & CD_EXPR_HAS_VAR ? cd_facts_affine_chance(c->w, e->a[0]) : 1;
    c->v->conditions += part;
    visit(c, e->a[1], part * chance);
    visit(c, e->a[2], part * (1 - chance));
}

static void visit(const counter *c, const cd_expr *e, double part) {
    cd_an_value *v = c->v;
    switch ((cd_expr_op)e->op) {
    case CD_LOAD: v->loads = true; return;
    case CD_CALL:
        if (e->n == 3 && !strcmp(e->u.name, "if_then_else")) {
            branch(c, e, part);
            return;
        }
        if (cd_expr_is_dot4(e)) v->muls += part;
        else call(c, e, part);
        break;
    case CD_SELECT: v->selects += part; break;
    case CD_CAST: v->casts += part; break;
    default:
        if (cd_expr_op_is_arith((cd_expr_op)e->op)) arithmetic(c, e, part);
        else if (cd_expr_op_is_cmp((cd_expr_op)e->op)) v->selects += part;
    }
    const bool address = e->op == CD_SELECT && !(e->a[0]->flags & CD_EXPR_HAS_LOAD);
    for (uint32_t i = address; i < e->n; i++) visit(c, e->a[i], part);
}

static bool plain(const cd_expr *e) {
    if (e->op == CD_LOAD) return true;
    if (e->op != CD_CALL || e->n != 3 || strcmp(e->u.name, "if_then_else")) return false;
    for (uint32_t i = 1; i < 3; i++)
        if ((e->a[i]->flags & CD_EXPR_HAS_LOAD) && !plain(e->a[i])) return false;
    return true;
}

void cd_facts_value_of(cd_an *w, const cd_expr *e, const cd_expr *inner, cd_an_value *out) {
    const counter c = {w, inner, out};
    *out = (cd_an_value){.plain = (e->flags & CD_EXPR_HAS_LOAD) && plain(e)};
    visit(&c, e, 1);
}

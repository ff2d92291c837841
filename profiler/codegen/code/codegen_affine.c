/* Affine forms of index expressions. Simplifying here, with the values of unrolled copies known,
 * makes the text of vectorised and unrolled bodies short, and lets accesses share pointers. */
#include <string.h>

#include "profiler/codegen/code/code.h"

/* Interval arithmetic on expressions, saturating at the two infinities. Unknown variables and
 * operators give everything, so that an answer is always safe. */

static const cd_bound everything = {CD_NEG_INF, CD_INF};

static bool inf(int64_t x) { return x == CD_INF || x == CD_NEG_INF; }
static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

/* b > 0 */
static int64_t floordiv(int64_t a, int64_t b) { return inf(a) ? a : cd_expr_floordiv(a, b); }
static int64_t truncdiv(int64_t a, int64_t b) { return inf(a) ? a : a / b; }

static cd_bound corners(cd_bound a, cd_bound b) {
    const int64_t p = cd_const_int_bound_mul(a.lo, b.lo), q = cd_const_int_bound_mul(a.lo, b.hi),
                  r = cd_const_int_bound_mul(a.hi, b.lo), s = cd_const_int_bound_mul(a.hi, b.hi);
    return (cd_bound){lesser(lesser(p, q), lesser(r, s)), greater(greater(p, q), greater(r, s))};
}

/* Remainder of a division by one positive number; `floor`: never negative. Within one period it is
 * exact. */
static cd_bound remainder_of(cd_bound a, int64_t by, bool floor) {
    if (a.lo >= 0 && a.hi < by) return a;
    if (floor && !inf(a.lo) && !inf(a.hi) &&
        cd_expr_floordiv(a.lo, by) == cd_expr_floordiv(a.hi, by))
        return (cd_bound){cd_expr_floormod(a.lo, by), cd_expr_floormod(a.hi, by)};
    return (cd_bound){floor || a.lo >= 0 ? 0 : -(by - 1), a.hi <= 0 && !floor ? 0 : by - 1};
}

static cd_bound quotient_range(const cd_expr *e, cd_bound a, cd_bound b) {
    if (b.lo != b.hi || b.lo <= 0) return everything;
    switch ((cd_expr_op)e->op) {
    case CD_FDIV: return (cd_bound){floordiv(a.lo, b.lo), floordiv(a.hi, b.lo)};
    case CD_DIV: return (cd_bound){truncdiv(a.lo, b.lo), truncdiv(a.hi, b.lo)};
    default: return remainder_of(a, b.lo, e->op == CD_FMOD);
    }
}

static cd_bound binary(const cd_codegen_ranges *r, const cd_expr *e) {
    const cd_bound a = cd_codegen_range_of(r, e->a[0]), b = cd_codegen_range_of(r, e->a[1]);
    switch ((cd_expr_op)e->op) {
    case CD_ADD:
        return (cd_bound){cd_const_int_bound_add(a.lo, b.lo), cd_const_int_bound_add(a.hi, b.hi)};
    case CD_SUB:
        return (cd_bound){cd_const_int_bound_add(a.lo, -b.hi), cd_const_int_bound_add(a.hi, -b.lo)};
    case CD_MUL: return corners(a, b);
    case CD_MIN: return (cd_bound){lesser(a.lo, b.lo), lesser(a.hi, b.hi)};
    case CD_MAX: return (cd_bound){greater(a.lo, b.lo), greater(a.hi, b.hi)};
    default: return quotient_range(e, a, b);
    }
}

static cd_bound call(const cd_codegen_ranges *r, const cd_expr *e) {
    if (!strcmp(e->u.name, "likely") && e->n == 1) return cd_codegen_range_of(r, e->a[0]);
    if (!strcmp(e->u.name, "if_then_else") && e->n == 3)
        return cd_const_int_bound_unite(cd_codegen_range_of(r, e->a[1]),
                                        cd_codegen_range_of(r, e->a[2]));
    return everything;
}

cd_bound cd_codegen_range_of(const cd_codegen_ranges *r, const cd_expr *e) {
    if (cd_expr_dtype_is_float(e->type)) return everything;
    switch ((cd_expr_op)e->op) {
    case CD_INT: return (cd_bound){e->u.i, e->u.i};
    case CD_VAR:
        if (!r || e->u.i >= (int64_t)r->n || r->var[e->u.i].lo > r->var[e->u.i].hi)
            return everything;
        return r->var[e->u.i];
    case CD_SELECT:
        return cd_const_int_bound_unite(cd_codegen_range_of(r, e->a[1]),
                                        cd_codegen_range_of(r, e->a[2]));
    case CD_CAST:
        return cd_expr_dtype_is_index(e->type) && cd_expr_dtype_is_index(e->a[0]->type)
                   ? cd_codegen_range_of(r, e->a[0])
                   : everything;
    case CD_CALL: return call(r, e);
    default: return cd_expr_op_is_arith((cd_expr_op)e->op) ? binary(r, e) : everything;
    }
}

/* a < b or a <= b over ranges. */
static int less(cd_bound a, cd_bound b, bool equal) {
    if (equal ? a.hi <= b.lo : a.hi < b.lo) return 1;
    if (equal ? a.lo > b.hi : a.lo >= b.hi) return 0;
    return -1;
}

static int same(cd_bound a, cd_bound b) {
    if (a.lo == a.hi && b.lo == b.hi && a.lo == b.lo) return 1;
    return a.hi < b.lo || b.hi < a.lo ? 0 : -1;
}

static int compare(const cd_codegen_ranges *r, const cd_expr *e) {
    const cd_bound a = cd_codegen_range_of(r, e->a[0]), b = cd_codegen_range_of(r, e->a[1]);
    switch ((cd_expr_op)e->op) {
    case CD_LT: return less(a, b, false);
    case CD_LE: return less(a, b, true);
    case CD_GT: return less(b, a, false);
    case CD_GE: return less(b, a, true);
    case CD_EQ: return same(a, b);
    default: return same(a, b) < 0 ? -1 : !same(a, b);
    }
}

static int logic(const cd_codegen_ranges *r, const cd_expr *e) {
    const int a = cd_codegen_range_decide(r, e->a[0]), b = cd_codegen_range_decide(r, e->a[1]);
    const int strong = e->op == CD_OR; /* what either operand decides alone */
    if (a == strong || b == strong) return strong;
    return a < 0 || b < 0 ? -1 : !strong;
}

int cd_codegen_range_decide(const cd_codegen_ranges *r, const cd_expr *cond) {
    if (cond->op == CD_INT) return cond->u.i != 0;
    if (cond->op == CD_CALL && !strcmp(cond->u.name, "likely") && cond->n == 1)
        return cd_codegen_range_decide(r, cond->a[0]);
    if (cond->op == CD_NOT) {
        const int a = cd_codegen_range_decide(r, cond->a[0]);
        return a < 0 ? -1 : !a;
    }
    if (cond->op == CD_AND || cond->op == CD_OR) return logic(r, cond);
    if (!cd_expr_op_is_cmp((cd_expr_op)cond->op) || cd_expr_dtype_is_float(cond->a[0]->type))
        return -1;
    return compare(r, cond);
}

/* Range of every variable that a FOR or THREAD node of the nest binds: var (n_var). */
static void codegen_ranges_of_nest(const cd_ast *ast, cd_bound *var, uint32_t n_var) {
    for (uint32_t v = 0; v < n_var; v++) var[v] = (cd_bound){1, 0};
    for (int32_t k = 0; k < ast->n; k++) {
        const cd_ast_node *n = &ast->node[k];
        if (n->dead || (n->kind != CD_AST_FOR && n->kind != CD_AST_THREAD) ||
            n->var->u.i >= (int64_t)n_var)
            continue;
        cd_bound *b = &var[n->var->u.i];
        const int64_t hi = n->extent > 0 ? n->extent - 1 : 0;
        if (b->lo > b->hi) *b = (cd_bound){0, hi};
        else if (hi > b->hi) b->hi = hi; /* a thread axis that several nodes name */
    }
}

/* Places the tensors of a nest: one walk over the nodes numbers variables and tensors in the order
 * of their appearance, marks what is loaded and stored, and lays out the regions of REALIZE and
 * ALLOC nodes. */

#define MOST_ELEMENTS ((int64_t)1 << 40)

typedef struct {
    cd_arena *a;
    cd_codegen_plan *p;
    uint32_t n_order;
    bool oom;
} planner;

void cd_codegen_clean_name(const char *name, char *out, size_t n) {
    size_t k = 0;
    for (; *name && k + 1 < n; name++) {
        const char c = *name;
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        out[k] = letter || (c >= '0' && c <= '9' && k) ? c : '_';
        k++;
    }
    if (n) out[k] = 0;
}

/* Which parallel, block and thread loops are around node k. */
static unsigned under(const cd_ast *t, int32_t k) {
    unsigned u = 0;
    for (int32_t p = t->node[k].parent; p >= 0; p = t->node[p].parent) {
        const cd_ast_node *n = &t->node[p];
        if (n->kind == CD_AST_THREAD)
            u |= cd_ast_tag_rank((cd_ast_tag)n->tag) ? CD_UNDER_THREAD : CD_UNDER_BLOCK;
        if (n->kind == CD_AST_FOR && n->loop == CD_LOOP_PARALLEL && !n->dead)
            u |= CD_UNDER_PARALLEL;
    }
    return u;
}

/* Memory by scope name, else by the loops around, as TVM's StorageRank. */
static int rank_of(const char *scope, unsigned u) {
    if (!strncmp(scope, "shared", 6)) return 1;
    if (!strncmp(scope, "warp", 4)) return 2;
    if (!strncmp(scope, "local", 5)) return 3;
    if (*scope) return 0;
    return u & CD_UNDER_THREAD ? 3 : u & CD_UNDER_BLOCK ? 1 : 0;
}

/* stride and elements from extent. */
static cdmpp_status lay_out(planner *pl, cd_codegen_slot *s, int64_t *extent, cdmpp_err *err) {
    int64_t *stride = CD_NEWN(pl->a, int64_t, s->n_dim + 1), n = 1;
    if (!stride) return CD_FAIL(err, ENOMEM, "storage plan");
    for (uint32_t d = s->n_dim; d-- > 0;) {
        stride[d] = n;
        if (extent[d] < 0 || (extent[d] && n > MOST_ELEMENTS / extent[d]))
            return CD_FAIL(err, EUNSUPPORTED, "a tensor of more than 2^40 elements");
        n *= extent[d];
    }
    s->extent = extent;
    s->stride = stride;
    s->elements = n;
    return CDMPP_OK;
}

static cdmpp_status whole(planner *pl, cd_codegen_slot *s, const cd_nest_tensor *t,
                          cdmpp_err *err) {
    int64_t *extent = CD_NEWN(pl->a, int64_t, t->rank + 1);
    if (!extent) return CD_FAIL(err, ENOMEM, "storage plan");
    s->n_dim = t->rank;
    if (t->rank) memcpy(extent, t->shape, t->rank * sizeof *extent);
    return lay_out(pl, s, extent, err);
}

/* Lengths are literals in all that TVM makes; a symbolic one is replaced by the most it can be. */
static cdmpp_status realized(planner *pl, cd_codegen_slot *s, const cd_ast_node *n,
                             cdmpp_err *err) {
    s->n_dim = n->n / 2;
    int64_t *extent = CD_NEWN(pl->a, int64_t, s->n_dim + 1);
    const cd_expr **min = CD_NEWN(pl->a, const cd_expr *, s->n_dim + 1);
    if (!extent || !min) return CD_FAIL(err, ENOMEM, "storage plan");
    for (uint32_t d = 0; d < s->n_dim; d++) {
        min[d] = n->x[2 * d];
        extent[d] = cd_codegen_range_of(&pl->p->ranges, n->x[2 * d + 1]).hi;
        if (extent[d] == CD_INF) return CD_FAIL(err, EUNSUPPORTED, "a region of unknown size");
    }
    s->min = min;
    return lay_out(pl, s, extent, err);
}

static void meet(planner *pl, uint32_t tensor) {
    cd_codegen_slot *s = &pl->p->slot[tensor];
    if (!s->used) s->order = pl->n_order++;
    s->used = true;
}

static bool meet_load(void *ctx, const cd_expr *e) {
    planner *pl = ctx;
    if (e->op == CD_LOAD) {
        meet(pl, (uint32_t)e->u.i);
        pl->p->slot[e->u.i].loaded = true;
    }
    return true;
}

static void meet_all(planner *pl, const cd_ast_node *n) {
    for (uint32_t k = 0; k < n->n; k++) cd_expr_visit(n->x[k], meet_load, pl);
    if (n->e) cd_expr_visit(n->e, meet_load, pl);
}

static void bind(planner *pl, const cd_ast_node *n, uint32_t *n_var) {
    uint32_t *number = &pl->p->var[n->var->u.i];
    if (*number == UINT32_MAX) *number = (*n_var)++;
    if (n->kind == CD_AST_THREAD) pl->p->has_thread = true;
    if (n->kind == CD_AST_FOR && n->loop == CD_LOOP_PARALLEL) pl->p->has_parallel = true;
}

/* Parameters keep the layout of their whole shape, even where the nest realizes them. */
static cdmpp_status walk(planner *pl, cdmpp_err *err) {
    const cd_ast *t = pl->p->nest->ast;
    uint32_t n_var = 0;
    for (int32_t k = 0; k < t->n; k++) {
        const cd_ast_node *n = &t->node[k];
        if (n->dead) continue;
        if (n->kind == CD_AST_FOR || n->kind == CD_AST_THREAD) bind(pl, n, &n_var);
        if (n->kind == CD_AST_STORE) {
            meet(pl, n->tensor);
            pl->p->slot[n->tensor].stored = true;
        }
        if (n->kind == CD_AST_STORE || n->kind == CD_AST_IF || n->kind == CD_AST_EVAL)
            meet_all(pl, n);
        if (n->kind != CD_AST_REALIZE && n->kind != CD_AST_ALLOC) continue;
        cd_codegen_slot *s = &pl->p->slot[n->tensor];
        s->node = k;
        s->under = under(t, k);
        if (s->is_arg) continue;
        s->rank =
            n->kind == CD_AST_ALLOC ? 3 : rank_of(pl->p->nest->tensor[n->tensor].scope, s->under);
        CD_TRY(realized(pl, s, n, err));
    }
    return CDMPP_OK;
}

/* A tensor that is used but has no region is an error of the nest. */
cdmpp_status cd_codegen_plan_make(cd_arena *a, const cd_nest *nest, cd_codegen_plan *out,
                                  cdmpp_err *err) {
    planner pl = {.a = a, .p = out};
    cd_bound *var = CD_NEWN(a, cd_bound, nest->n_var + 1);
    *out = (cd_codegen_plan){.nest = nest,
                             .n_slot = nest->n_tensor,
                             .slot = CD_NEWN(a, cd_codegen_slot, nest->n_tensor + 1),
                             .var = CD_NEWN(a, uint32_t, nest->n_var + 1)};
    if (!var || !out->slot || !out->var) return CD_FAIL(err, ENOMEM, "storage plan");
    memset(out->var, 0xff, (nest->n_var + 1) * sizeof *out->var);
    codegen_ranges_of_nest(nest->ast, var, nest->n_var);
    out->ranges = (cd_codegen_ranges){nest->n_var, var};
    for (uint32_t t = 0; t < nest->n_tensor; t++) {
        cd_codegen_slot *s = &out->slot[t];
        *s = (cd_codegen_slot){.node = -1,
                               .arg = nest->tensor[t].arg,
                               .is_arg = nest->tensor[t].arg >= 0,
                               .dtype = nest->tensor[t].dtype};
        if (s->is_arg) CD_TRY(whole(&pl, s, &nest->tensor[t], err));
    }
    CD_TRY(walk(&pl, err));
    for (uint32_t t = 0; t < nest->n_tensor; t++)
        if (out->slot[t].used && !out->slot[t].is_arg && out->slot[t].node < 0)
            return CD_FAIL(err, EUNSUPPORTED, "tensor \"%.60s\" is used but stored nowhere",
                           nest->tensor[t].name);
    return CDMPP_OK;
}

cdmpp_status cd_codegen_env_init(cd_codegen_env *v, const cd_ast *ast, uint32_t n_var,
                                 cdmpp_err *err) {
    *v = (cd_codegen_env){.n_var = n_var,
                          .var = cd_mem_zalloc(n_var + 1, sizeof *v->var),
                          .plain = cd_mem_zalloc(n_var + 1, sizeof *v->plain),
                          .bound = cd_mem_zalloc(n_var + 1, sizeof *v->bound)};
    if (!v->var || !v->plain || !v->bound) {
        cd_codegen_env_free(v);
        return CD_FAIL(err, ENOMEM, "variables");
    }
    codegen_ranges_of_nest(ast, v->bound, n_var);
    v->bound[n_var] = (cd_bound){0, 0};
    v->ranges = (cd_codegen_ranges){n_var + 1, v->bound};
    const cdmpp_status st = cd_expr_pool_init(&v->pool, NULL, err);
    if (st) cd_codegen_env_free(v);
    return st;
}

void cd_codegen_env_free(cd_codegen_env *v) {
    cd_mem_free(v->var);
    cd_mem_free(v->plain);
    cd_mem_free(v->bound);
    cd_expr_pool_free(&v->pool);
    *v = (cd_codegen_env){0};
}

cdmpp_status cd_codegen_env_check(const cd_codegen_env *v, cdmpp_err *err) {
    if (v->pool.oom) return CD_FAIL(err, ENOMEM, "expressions");
    if (v->many || v->pool.big)
        return CD_FAIL(err, EUNSUPPORTED, "an index of more than %d terms", CD_CODEGEN_MAX_AFFINE);
    return CDMPP_OK;
}

static bool not_lane(void *ctx, const cd_expr *e) { return !cd_codegen_env_is_lane(ctx, e); }
bool cd_codegen_env_has_lane(const cd_codegen_env *v, const cd_expr *e) {
    return (e->flags & CD_EXPR_HAS_VAR) && !cd_expr_visit(e, not_lane, (void *)(uintptr_t)v);
}

void cd_codegen_env_set_lanes(cd_codegen_env *v, int64_t n) {
    v->bound[v->n_var] = (cd_bound){0, n - 1};
}

/* ---- sums ---- */

/* Terms are kept in order of their atoms' ids, so that equal sums have equal forms. A term that
 * becomes 0 goes. */
static void add_term(cd_codegen_env *v, cd_codegen_affine *a, int64_t k, const cd_expr *atom) {
    uint32_t at = 0;
    while (at < a->n && a->t[at].atom->id < atom->id) at++;
    if (at < a->n && a->t[at].atom == atom) {
        a->t[at].k += k;
        if (a->t[at].k) return;
        memmove(&a->t[at], &a->t[at + 1], (a->n - at - 1) * sizeof *a->t);
        a->n--;
        return;
    }
    if (!k) return;
    if (a->n == CD_CODEGEN_MAX_AFFINE) {
        v->many = true;
        return;
    }
    memmove(&a->t[at + 1], &a->t[at], (a->n - at) * sizeof *a->t);
    a->t[at] = (cd_codegen_affine_term){k, atom};
    a->n++;
}

void cd_codegen_affine_add(cd_codegen_env *v, cd_codegen_affine *to, const cd_codegen_affine *from,
                           int64_t times) {
    to->c += times * from->c;
    for (uint32_t k = 0; k < from->n; k++) add_term(v, to, times * from->t[k].k, from->t[k].atom);
}

cd_bound cd_codegen_affine_range(const cd_codegen_env *v, const cd_codegen_affine *a) {
    cd_bound r = {a->c, a->c};
    for (uint32_t k = 0; k < a->n; k++) {
        const cd_bound b = cd_codegen_range_of(&v->ranges, a->t[k].atom);
        if (b.lo == CD_NEG_INF || b.hi == CD_INF) return (cd_bound){CD_NEG_INF, CD_INF};
        const int64_t x = a->t[k].k * b.lo, y = a->t[k].k * b.hi;
        r.lo += x < y ? x : y;
        r.hi += x < y ? y : x;
    }
    return r;
}

static const cd_expr *as_type(cd_codegen_env *v, cd_dtype t, const cd_expr *e) {
    return e->type == t ? e : cd_expr_cast(&v->pool, t, e);
}

static const cd_expr *expr_of(cd_codegen_env *v, cd_dtype t, const cd_codegen_affine *a) {
    const cd_expr *sum = NULL;
    for (uint32_t k = 0; k < a->n; k++) {
        const cd_expr *x = as_type(v, t, a->t[k].atom);
        if (a->t[k].k != 1)
            x = cd_expr_bin(&v->pool, CD_MUL, x, cd_expr_new_int(&v->pool, t, a->t[k].k));
        sum = sum ? cd_expr_bin(&v->pool, CD_ADD, sum, x) : x;
    }
    if (!sum) return cd_expr_new_int(&v->pool, t, a->c);
    return a->c ? cd_expr_bin(&v->pool, CD_ADD, sum, cd_expr_new_int(&v->pool, t, a->c)) : sum;
}

/* ---- quotients ---- */

/* a = whole * d + rest; what is a multiple of d goes to whole. */
static void split(const cd_codegen_affine *a, int64_t d, cd_codegen_affine *whole,
                  cd_codegen_affine *rest) {
    *whole = (cd_codegen_affine){.c = cd_expr_floordiv(a->c, d)};
    *rest = (cd_codegen_affine){.c = cd_expr_floormod(a->c, d)};
    for (uint32_t k = 0; k < a->n; k++) {
        const bool even = a->t[k].k % d == 0;
        cd_codegen_affine *to = even ? whole : rest;
        to->t[to->n++] = (cd_codegen_affine_term){even ? a->t[k].k / d : a->t[k].k, a->t[k].atom};
    }
}

static bool within(const cd_codegen_env *v, const cd_codegen_affine *a, int64_t d) {
    const cd_bound b = cd_codegen_affine_range(v, a);
    return b.lo >= 0 && b.hi < d;
}

/* Common divisor of all that multiplies an atom, and d. */
static int64_t common(const cd_codegen_affine *a, int64_t d) {
    for (uint32_t k = 0; k < a->n; k++) d = cd_expr_gcd(a->t[k].k, d);
    return d;
}

/* a / g where g divides all but the number; returns that one's remainder. */
static int64_t shrink(cd_codegen_affine *a, int64_t g) {
    const int64_t r = cd_expr_floormod(a->c, g);
    a->c = cd_expr_floordiv(a->c, g);
    for (uint32_t k = 0; k < a->n; k++) a->t[k].k /= g;
    return r;
}

static bool is_atom(const cd_codegen_affine *a, cd_expr_op op) {
    return a->n == 1 && a->t[0].k == 1 && a->c == 0 && a->t[0].atom->op == op &&
           a->t[0].atom->a[1]->op == CD_INT && a->t[0].atom->a[1]->u.i > 0;
}

/* Multiples of d leave the quotient. What is left is 0 if it lies within [0, d); else a common
 * divisor is taken out, and only then a quotient remains as an atom. */
void cd_codegen_affine_divide(cd_codegen_env *v, cd_dtype t, cd_codegen_affine *a, int64_t d) {
    cd_codegen_affine whole, rest;
    if (d == 1) return;
    split(a, d, &whole, &rest);
    if (!within(v, &rest, d)) {
        const int64_t g = common(&rest, d);
        shrink(&rest, g);
        d /= g;
        if (d == 1) {
            cd_codegen_affine_add(v, &whole, &rest, 1);
        } else if (!within(v, &rest, d)) {
            const cd_expr *x = expr_of(v, t, &rest);
            if (is_atom(&rest, CD_FDIV)) { /* (y // e) // d */
                d *= rest.t[0].atom->a[1]->u.i;
                x = as_type(v, t, rest.t[0].atom->a[0]);
            }
            add_term(v, &whole, 1,
                     cd_expr_bin(&v->pool, CD_FDIV, x, cd_expr_new_int(&v->pool, t, d)));
        }
    }
    *a = whole;
}

/* Multiples of d vanish; a common divisor g of the factors and d is taken out: (g*x + r) mod d =
 * g*(x mod (d/g)) + r. */
void cd_codegen_affine_modulo(cd_codegen_env *v, cd_dtype t, cd_codegen_affine *a, int64_t d) {
    cd_codegen_affine whole, rest;
    split(a, d, &whole, &rest);
    *a = rest;
    if (within(v, &rest, d)) return;
    const int64_t g = common(&rest, d), r = shrink(&rest, g);
    *a = (cd_codegen_affine){.c = r};
    d /= g;
    if (d == 1) return;
    if (within(v, &rest, d)) {
        cd_codegen_affine_add(v, a, &rest, g);
        return;
    }
    const cd_expr *x = expr_of(v, t, &rest);
    if (is_atom(&rest, CD_FMOD) && rest.t[0].atom->a[1]->u.i % d == 0)
        x = as_type(v, t, rest.t[0].atom->a[0]);
    add_term(v, a, g, cd_expr_bin(&v->pool, CD_FMOD, x, cd_expr_new_int(&v->pool, t, d)));
}

/* ---- expressions ---- */

/* The four states of a variable: see the header. */
static void variable(cd_codegen_env *v, const cd_expr *e, cd_codegen_affine *out) {
    const struct cd_codegen_env_var *x = e->u.i <= (int64_t)v->n_var ? &v->var[e->u.i] : NULL;
    *out = (cd_codegen_affine){0};
    if (x && (x->fixed || x->lane)) out->c = x->value;
    if (x && x->fixed) return;
    if (x && x->lane) add_term(v, out, 1, cd_expr_new_var(&v->pool, e->type, v->n_var));
    if (!x || !x->lane || x->both)
        add_term(v, out, 1, cd_expr_new_var(&v->pool, e->type, (uint32_t)e->u.i));
}

/* An expression that is not linear is rebuilt on applied operands and becomes one atom, or a number
 * if it folds. */
static void opaque(cd_codegen_env *v, const cd_expr *e, cd_codegen_affine *out) {
    const cd_expr *small[4], **a = small;
    if (e->n > 4 && !(a = cd_arena_alloc(&v->pool.arena, e->n, sizeof *a))) {
        v->pool.oom = true;
        *out = (cd_codegen_affine){0};
        return;
    }
    for (uint32_t k = 0; k < e->n; k++) a[k] = cd_codegen_env_apply(v, e->a[k]);
    const cd_expr *r;
    if (cd_expr_op_is_binary((cd_expr_op)e->op))
        r = cd_expr_bin(&v->pool, (cd_expr_op)e->op, a[0], a[1]);
    else if (e->op == CD_LOAD) r = cd_expr_new_load(&v->pool, e->type, (uint32_t)e->u.i, a, e->n);
    else if (e->op == CD_CALL) r = cd_expr_new_call(&v->pool, e->type, e->u.name, a, e->n);
    else if (e->op == CD_CAST) r = cd_expr_cast(&v->pool, e->type, a[0]);
    else
        r = e->op == CD_NOT ? cd_expr_new_not(&v->pool, a[0])
                            : cd_expr_new_select(&v->pool, a[0], a[1], a[2]);
    *out = (cd_codegen_affine){0};
    if (r->op == CD_INT) out->c = r->u.i;
    else add_term(v, out, 1, r);
}

static bool plain_division(const cd_codegen_env *v, const cd_expr *e, const cd_codegen_affine *a) {
    (void)v;
    if (e->a[1]->op != CD_INT || e->a[1]->u.i <= 0) return false;
    return e->op == CD_FDIV || e->op == CD_FMOD || cd_codegen_affine_range(v, a).lo >= 0;
}

static void quotient(cd_codegen_env *v, const cd_expr *e, cd_codegen_affine *out) {
    cd_codegen_env_affine(v, e->a[0], out);
    if (!plain_division(v, e, out)) opaque(v, e, out);
    else if (e->op == CD_FDIV || e->op == CD_DIV)
        cd_codegen_affine_divide(v, e->type, out, e->a[1]->u.i);
    else cd_codegen_affine_modulo(v, e->type, out, e->a[1]->u.i);
}

static void product(cd_codegen_env *v, const cd_expr *e, cd_codegen_affine *out) {
    cd_codegen_affine a, b;
    cd_codegen_env_affine(v, e->a[0], &a);
    cd_codegen_env_affine(v, e->a[1], &b);
    *out = (cd_codegen_affine){0};
    if (!a.n) cd_codegen_affine_add(v, out, &b, a.c);
    else if (!b.n) cd_codegen_affine_add(v, out, &a, b.c);
    else opaque(v, e, out);
}

static bool decided(cd_codegen_env *v, const cd_expr *e, const cd_expr **out);

/* The form of what cd_codegen_env_apply made: its variables stand for themselves. */
static void applied(cd_codegen_env *v, const cd_expr *e, cd_codegen_affine *out) {
    cd_codegen_affine b;
    *out = (cd_codegen_affine){0};
    if (e->op == CD_INT) {
        out->c = e->u.i;
    } else if (e->op == CD_ADD) {
        applied(v, e->a[0], out);
        applied(v, e->a[1], &b);
        cd_codegen_affine_add(v, out, &b, 1);
    } else if (e->op == CD_MUL && e->a[1]->op == CD_INT) {
        applied(v, e->a[0], &b);
        cd_codegen_affine_add(v, out, &b, e->a[1]->u.i);
    } else {
        add_term(v, out, 1, e);
    }
}
void cd_codegen_env_affine_applied(cd_codegen_env *v, const cd_expr *e, cd_codegen_affine *out) {
    applied(v, e, out);
}

/* The form of e; e itself may still hold variables with known values. */
void cd_codegen_env_affine(cd_codegen_env *v, const cd_expr *e, cd_codegen_affine *out) {
    const cd_expr *r;
    cd_codegen_affine b;
    switch ((cd_expr_op)e->op) {
    case CD_INT: *out = (cd_codegen_affine){.c = e->u.i}; return;
    case CD_VAR: variable(v, e, out); return;
    case CD_ADD:
    case CD_SUB:
        cd_codegen_env_affine(v, e->a[0], out);
        cd_codegen_env_affine(v, e->a[1], &b);
        cd_codegen_affine_add(v, out, &b, e->op == CD_ADD ? 1 : -1);
        return;
    case CD_MUL: product(v, e, out); return;
    case CD_DIV:
    case CD_MOD:
    case CD_FDIV:
    case CD_FMOD: quotient(v, e, out); return;
    default: break;
    }
    if (decided(v, e, &r)) applied(v, r, out);
    else opaque(v, e, out);
}

/* A selection whose condition is decided by the ranges is the chosen side. */
static bool decided(cd_codegen_env *v, const cd_expr *e, const cd_expr **out) {
    const bool ite = e->op == CD_CALL && !strcmp(e->u.name, "if_then_else") && e->n == 3;
    if (e->op != CD_SELECT && !ite) return false;
    const int d = cd_codegen_range_decide(&v->ranges, cd_codegen_env_apply(v, e->a[0]));
    if (d < 0) return false;
    *out = cd_codegen_env_apply(v, e->a[d ? 1 : 2]);
    return true;
}

/* Index types go through their affine form; other types are rebuilt operand by operand. */
const cd_expr *cd_codegen_env_apply(cd_codegen_env *v, const cd_expr *e) {
    cd_codegen_affine a;
    const cd_expr *r;
    switch ((cd_expr_op)e->op) {
    case CD_INT: return cd_expr_new_int(&v->pool, e->type, e->u.i);
    case CD_FLOAT: return cd_expr_new_float(&v->pool, e->type, e->u.f);
    case CD_STR: return cd_expr_new_str(&v->pool, e->u.name);
    default: break;
    }
    if (decided(v, e, &r)) return r;
    if (cd_expr_dtype_is_index(e->type)) {
        cd_codegen_env_affine(v, e, &a);
        return expr_of(v, e->type, &a);
    }
    if (e->op == CD_VAR) return cd_expr_new_var(&v->pool, e->type, (uint32_t)e->u.i);
    opaque(v, e, &a);
    if (!a.n) return cd_expr_new_int(&v->pool, e->type, a.c);
    r = a.t[0].atom;
    const int d = e->type == CD_BOOL ? cd_codegen_range_decide(&v->ranges, r) : -1;
    return d < 0 ? r : cd_expr_new_int(&v->pool, CD_BOOL, d);
}

const cd_expr *cd_codegen_env_at_lane(cd_codegen_env *v, const cd_expr *e, int64_t k) {
    struct cd_codegen_env_var *now = v->var;
    v->var = v->plain;
    v->var[v->n_var] = (struct cd_codegen_env_var){.fixed = true, .value = k};
    const cd_expr *r = cd_codegen_env_apply(v, e);
    v->var = now;
    return r;
}

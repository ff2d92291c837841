/* The simplifier's workspace, its analyzers and their bindings, and the functions that other rooms
 * call. An analyzer is a small value; what is expensive, the memo, belongs to the workspace and is
 * shared by all analyzers through their context numbers. */
#include "features/simplify/simplify.h"

#include <math.h>

#include "features/simplify/simplify_internal.h"

/* Constant bounds of integer expressions: TVM's const_int_bound. The two
 * infinities absorb; sums and products that would pass them stop at them. */

static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }
static bool inf(int64_t x) { return x == CD_INF || x == CD_NEG_INF; }

int64_t cd_const_int_bound_add(int64_t x, int64_t y) {
    if (inf(x)) return x;
    if (inf(y)) return y;
    int64_t r;
    if (__builtin_add_overflow(x, y, &r) || r < CD_NEG_INF) return x > 0 ? CD_INF : CD_NEG_INF;
    return r;
}

int64_t cd_const_int_bound_mul(int64_t x, int64_t y) {
    int64_t r;
    if (!__builtin_mul_overflow(x, y, &r) && r >= CD_NEG_INF) return r;
    return (x > 0) == (y > 0) ? CD_INF : CD_NEG_INF;
}

static int64_t trunc_div(int64_t x, int64_t y) {
    return inf(x) ? (y > 0 ? x : -x) : cd_trunc_div(x, y);
}
static int64_t floor_div(int64_t x, int64_t y) {
    return inf(x) ? (y > 0 ? x : -x) : cd_expr_floordiv(x, y);
}
static int64_t shift_right(int64_t x, int64_t y) { return inf(x) ? x : x >> y; }

static int64_t shift_left(int64_t x, int64_t y) { /* x, y >= 0 */
    if (inf(x)) return x;
    const int bits = x ? 64 - __builtin_clzll((unsigned long long)x) : 0;
    return bits + y < 64 ? (int64_t)((uint64_t)x << y) : CD_INF;
}

cd_bound cd_const_int_bound_type(cd_dtype t) {
    const unsigned kind = cd_expr_dtype_kind(t), bits = cd_expr_dtype_bits(t);
    if (kind != CD_T_INT && kind != CD_T_UINT) return (cd_bound){CD_NEG_INF, CD_INF};
    const unsigned v = bits - (kind == CD_T_INT);
    const int64_t hi = v >= 63 ? CD_INF : ((int64_t)1 << v) - 1;
    if (kind == CD_T_UINT) return (cd_bound){0, hi};
    return (cd_bound){v >= 63 ? CD_NEG_INF : -hi - 1, hi};
}

cd_bound cd_const_int_bound_unite(cd_bound a, cd_bound b) {
    return (cd_bound){lesser(a.lo, b.lo), greater(a.hi, b.hi)};
}
static cd_bound meet(cd_bound a, cd_bound b) {
    return (cd_bound){greater(a.lo, b.lo), lesser(a.hi, b.hi)};
}

/* Extremes over the four corners, for an op monotonic in each operand. */
static cd_bound corners(cd_bound a, cd_bound b, int64_t (*op)(int64_t, int64_t)) {
    if (b.lo == b.hi) { /* a literal, mostly: two corners */
        const int64_t x = op(a.lo, b.lo), y = op(a.hi, b.lo);
        return (cd_bound){lesser(x, y), greater(x, y)};
    }
    const int64_t p = op(a.lo, b.lo), q = op(a.hi, b.hi), r = op(a.lo, b.hi), s = op(a.hi, b.lo);
    return (cd_bound){lesser(lesser(p, q), lesser(r, s)), greater(greater(p, q), greater(r, s))};
}

static cd_bound divide(cd_bound a, cd_bound b, cd_dtype t, int64_t (*op)(int64_t, int64_t)) {
    if (b.lo > 0 || b.hi < 0) return corners(a, b, op);
    const cd_bound all = cd_const_int_bound_type(t);
    if (b.lo == 0 && b.hi == 0) return all; /* division by zero */
    if (cd_expr_dtype_kind(t) == CD_T_UINT) return corners(a, (cd_bound){1, b.hi}, op);
    /* The divisor range holds zero: its two sides apart, a missing one by the type's range. */
    const cd_bound neg = {b.lo < 0 ? b.lo : all.lo, b.lo < 0 ? -1 : all.hi};
    const cd_bound pos = {b.hi > 0 ? 1 : all.lo, b.hi > 0 ? b.hi : all.hi};
    return cd_const_int_bound_unite(corners(a, neg, op), corners(a, pos, op));
}

static cd_bound modulo(cd_bound a, cd_bound b, const cd_expr *e) {
    const int64_t cap = cd_const_int_bound_add(b.hi, -1);
    if (b.lo > 0) {
        if (a.lo >= 0) return a.hi < b.lo ? a : (cd_bound){0, lesser(a.hi, cap)};
        if (e->op == CD_FMOD) return (cd_bound){0, cap};
        return (cd_bound){greater(a.lo, -cap), lesser(greater(a.hi, 0), cap)};
    }
    const cd_bound all = cd_const_int_bound_type(e->type);
    if (e->op == CD_MOD) return all;
    return meet((cd_bound){lesser(0, cd_const_int_bound_add(b.lo, 1)), greater(0, cap)}, all);
}

static cd_bound binary(cd_analyzer *a, const cd_expr *e) {
    const cd_bound x = cd_const_int_bound(a, e->a[0]), y = cd_const_int_bound(a, e->a[1]);
    switch ((cd_expr_op)e->op) {
    case CD_ADD:
        return (cd_bound){cd_const_int_bound_add(x.lo, y.lo), cd_const_int_bound_add(x.hi, y.hi)};
    case CD_SUB:
        return (cd_bound){cd_const_int_bound_add(x.lo, cd_wrap_sub(0, y.hi)),
                          cd_const_int_bound_add(x.hi, cd_wrap_sub(0, y.lo))};
    case CD_MUL: return corners(x, y, cd_const_int_bound_mul);
    case CD_DIV: return divide(x, y, e->type, trunc_div);
    case CD_FDIV: return divide(x, y, e->type, floor_div);
    case CD_MIN: return (cd_bound){lesser(x.lo, y.lo), lesser(x.hi, y.hi)};
    case CD_MAX: return (cd_bound){greater(x.lo, y.lo), greater(x.hi, y.hi)};
    default: return modulo(x, y, e);
    }
}

static cd_bound call(cd_analyzer *a, const cd_expr *e) {
    const cd_bound all = cd_const_int_bound_type(e->type);
    if (e->n != 2) return all;
    const bool left = cd_call_is(e, "shift_left"), right = cd_call_is(e, "shift_right");
    if (!left && !right && !cd_call_is(e, "bitwise_and")) return all;
    const cd_bound x = cd_const_int_bound(a, e->a[0]), y = cd_const_int_bound(a, e->a[1]);
    if (left) return x.lo < 0 || y.lo < 0 ? all : corners(x, y, shift_left);
    if (right) return y.lo < 0 || y.hi > 63 ? all : corners(x, y, shift_right);
    if (x.lo >= 0 && y.lo >= 0) return (cd_bound){0, lesser(x.hi, y.hi)};
    if (y.lo >= 0) return (cd_bound){0, y.hi};
    return x.lo >= 0 ? (cd_bound){0, x.hi} : all;
}

static int64_t ceil_log2(double v) {
    const double r = ceil(log2(v));
    return r >= -4e18 && r <= 4e18 ? (int64_t)r : v > 0 ? CD_INF : CD_NEG_INF;
}

/* int(ceil(log2(n))), TOPI's ceil_log2, is looked through. */
static cd_bound cast(cd_analyzer *a, const cd_expr *e) {
    const cd_bound all = cd_const_int_bound_type(e->type);
    const cd_expr *v = e->a[0];
    if (cd_expr_dtype_kind(e->type) != CD_T_INT || !cd_call_is(v, "ceil") ||
        !cd_call_is(v->a[0], "log2"))
        return meet(cd_const_int_bound(a, v), all);
    v = v->a[0]->a[0];
    if (v->op == CD_FLOAT) return meet((cd_bound){ceil_log2(v->u.f), ceil_log2(v->u.f)}, all);
    const cd_bound b = cd_const_int_bound(a, v);
    return meet((cd_bound){ceil_log2((double)b.lo), ceil_log2((double)b.hi)}, all);
}

static cd_bound node(cd_analyzer *a, const cd_expr *e) {
    switch ((cd_expr_op)e->op) {
    case CD_VAR: {
        const cd_var_info *v = cd_simplify_var(a, e);
        return v && v->known ? v->bound : cd_const_int_bound_type(e->type);
    }
    case CD_SELECT:
        return cd_const_int_bound_unite(cd_const_int_bound(a, e->a[1]),
                                        cd_const_int_bound(a, e->a[2]));
    case CD_CAST: return cast(a, e);
    case CD_CALL: return call(a, e);
    default:
        return cd_expr_op_is_arith((cd_expr_op)e->op) ? binary(a, e)
                                                      : cd_const_int_bound_type(e->type);
    }
}

static cd_bound with_extras(const cd_analyzer *a, const cd_expr *e, cd_bound r) {
    if (!(a->extra_mask >> (e->id % 64) & 1)) return r;
    for (uint32_t i = 0; i < a->n_extra; i++)
        if (a->extra[i].e == e) r = meet(r, a->extra[i].b);
    return r;
}

cd_bound cd_const_int_bound(cd_analyzer *a, const cd_expr *e) {
    if (e->op == CD_INT) return (cd_bound){e->u.i, e->u.i};
    if (e->op == CD_VAR) return with_extras(a, e, node(a, e));
    cd_simplifier *s = a->s;
    if (a->plain && s->nest < CD_SIMPLIFY_MAX_NEST) { /* expressions of a plain one are small */
        s->nest++;
        const cd_bound r = node(a, e);
        s->nest--;
        return r;
    }
    cd_memo *m = cd_simplify_memo(s, e);
    if (m && m->bd_ctx == a->ctx) return m->bd;
    if (!m || s->nest >= CD_SIMPLIFY_MAX_NEST) {
        s->oom = true;
        return cd_const_int_bound_type(e->type);
    }
    s->nest++;
    const cd_bound r = with_extras(a, e, node(a, e));
    s->nest--;
    if ((m = cd_simplify_memo(s, e))) {
        m->bd_ctx = a->ctx;
        m->bd = r;
    }
    return r;
}

/* ---- workspace ---- */

static void ana_init(cd_simplifier *s, cd_analyzer *a) {
    /* all analyzers without bindings are in the same state */
    *a = (cd_analyzer){.s = s, .ctx = s->root};
    a->rw.ana = a->cn.ana = a;
    a->cn.canonical = true;
}

cdmpp_status cd_simplify_new(cd_expr_pool *pool, cd_simplifier **out, cdmpp_err *err) {
    const cd_rewrite_rules *book = cd_rewrite_rules_get();
    cd_simplifier *s = cd_mem_zalloc(1, sizeof *s);
    if (!s || !book) {
        cd_mem_free(s);
        return CD_FAIL(err, ENOMEM, "simplifier");
    }
    s->pool = pool;
    s->book = book;
    cd_simplify_reset(s);
    *out = s;
    return CDMPP_OK;
}

void cd_simplify_free(cd_simplifier *s) {
    if (!s) return;
    cd_arena_free(&s->arena);
    cd_mem_free(s->memo);
    cd_mem_free(s);
}

void cd_simplify_reset(cd_simplifier *s) {
    cd_arena_reset(&s->arena);
    if (s->next_ctx > UINT32_MAX / 2) { /* long before numbers repeat, forget all of them */
        if (s->memo) memset(s->memo, 0, s->n_memo * sizeof *s->memo);
        memset(s->trans, 0, sizeof s->trans);
        s->next_ctx = 0;
    }
    s->root = ++s->next_ctx;
    s->nest = 0;
    s->oom = false;
    ana_init(s, &s->fresh);
}

bool cd_simplify_oom(const cd_simplifier *s) { return s->oom || s->pool->oom; }

cd_memo *cd_simplify_memo_grow(cd_simplifier *s, const cd_expr *e) {
    uint32_t n = s->n_memo ? s->n_memo : 1024;
    while (n <= e->id) {
        if (n > UINT32_MAX / 2) return s->oom = true, NULL;
        n *= 2;
    }
    cd_memo *m = cd_mem_realloc(s->memo, s->n_memo * sizeof *m, n * sizeof *m);
    if (!m) return s->oom = true, NULL;
    memset(m + s->n_memo, 0, (n - s->n_memo) * sizeof *m);
    s->memo = m;
    s->n_memo = n;
    return &m[e->id];
}

/* One more element of `size` bytes for an arena vector; false: out of memory. */
static bool simplify_reserve(cd_simplifier *s, void *vec, uint32_t n, uint32_t *cap, size_t size) {
    if (n < *cap) return true;
    const uint32_t grown = *cap ? *cap * 2 : 8;
    void *old, *p = cd_arena_alloc(&s->arena, grown, size);
    if (!p) return s->oom = true, false;
    memcpy(&old, vec, sizeof old); /* vec points at some T * */
    if (n) memcpy(p, old, n * size);
    memcpy(vec, &p, sizeof p);
    *cap = grown;
    return true;
}

/* ---- analyzers ---- */

cd_analyzer *cd_simplify_analyzer_new(cd_simplifier *s) {
    cd_analyzer *a = cd_arena_alloc(&s->arena, 1, sizeof *a);
    if (!a) return s->oom = true, &s->fresh;
    ana_init(s, a);
    return a;
}

cd_analyzer *cd_simplify_fresh_analyzer(cd_simplifier *s) { return &s->fresh; }

const cd_expr *cd_simplify_rewrite(cd_analyzer *a, const cd_expr *e) {
    for (int i = 0; i < 2; i++) {
        const cd_expr *r = cd_rewrite_visit(&a->rw, e);
        if (r == e) break;
        e = r;
    }
    return e;
}

bool cd_simplify_ge(cd_analyzer *a, const cd_expr *e, int64_t k) {
    if (e->op == CD_INT) return e->u.i >= k;
    return cd_const_int_bound(a, cd_simplify_rewrite(a, e)).lo >= k;
}

bool cd_simplify_lt(cd_analyzer *a, const cd_expr *e, int64_t k) {
    if (e->op == CD_INT) return e->u.i < k;
    return cd_const_int_bound(a, cd_simplify_rewrite(a, e)).hi < k;
}

bool cd_simplify_is_pure(const cd_expr *e, bool loads_too) {
    if (e->op == CD_LOAD && !loads_too) return false;
    if (e->op == CD_CALL && !(e->flags & CD_EXPR_PURE)) return false;
    for (uint32_t i = 0; i < e->n; i++)
        if (!cd_simplify_is_pure(e->a[i], loads_too)) return false;
    return true;
}

/* ---- doors ---- */

const cd_expr *cd_simplify_expr(cd_analyzer *a, const cd_expr *e) {
    if (e->op == CD_INT) return e;
    e = cd_simplify_rewrite(a, e);
    return e->op == CD_INT ? e : cd_canonical_visit(&a->cn, e);
}

cd_bound cd_simplify_bound(cd_analyzer *a, const cd_expr *e) { return cd_const_int_bound(a, e); }

bool cd_simplify_prove(cd_analyzer *a, const cd_expr *cond) {
    const cd_expr *r = cd_simplify_expr(a, cond);
    return r->op == CD_INT && r->u.i != 0;
}

bool cd_simplify_prove_ge(cd_analyzer *a, const cd_expr *e, int64_t k) {
    return cd_simplify_ge(a, e, k);
}

/* ---- bindings ---- */

static bool slot_room(cd_analyzer *a, uint32_t k) {
    if (k < a->n_slot) return true;
    uint32_t n = a->n_slot ? a->n_slot : 32;
    while (n <= k) n *= 2;
    if (n < a->s->pool->n_var) n = a->s->pool->n_var;
    uint16_t *p = CD_NEWN(&a->s->arena, uint16_t, n);
    if (!p) return a->s->oom = true, false;
    if (a->n_slot) memcpy(p, a->slot, a->n_slot * sizeof *p);
    a->slot = p;
    a->n_slot = n;
    return true;
}

/* The variable's entry, made when there is none (unknown then). NULL: out of memory. */
static cd_var_info *simplify_var_entry(cd_analyzer *a, const cd_expr *var) {
    const uint32_t k = (uint32_t)var->u.i;
    if (!slot_room(a, k)) return NULL;
    if (a->slot[k]) return &a->var[a->slot[k] - 1];
    if (a->n_var >= UINT16_MAX - 1U) return a->s->oom = true, NULL;
    if (!simplify_reserve(a->s, &a->var, a->n_var, &a->cap_var, sizeof *a->var)) return NULL;
    a->var[a->n_var] = (cd_var_info){.bound = cd_const_int_bound_type(var->type), .mod = {1, 0}};
    a->slot[k] = (uint16_t)++a->n_var;
    return &a->var[a->n_var - 1];
}

static cd_var_info range_info(cd_analyzer *a, const cd_expr *min, const cd_expr *extent) {
    cd_var_info v = {.known = true, .mod = {1, 0}};
    if (extent->op == CD_INT && extent->u.i == 1) {
        v.value = min->op == CD_INT ? min : cd_simplify_rewrite(a, cd_canonical_visit(&a->cn, min));
        v.bound = cd_const_int_bound(a, v.value);
        v.mod = cd_modular_set(a, v.value);
    } else {
        const cd_bound lo = cd_const_int_bound(a, min), n = cd_const_int_bound(a, extent);
        v.bound =
            (cd_bound){lo.lo, cd_const_int_bound_add(lo.hi, cd_const_int_bound_add(n.hi, -1))};
    }
    return v;
}

static bool same_info(const cd_var_info *x, const cd_var_info *y) {
    return x->known && x->value == y->value && x->bound.lo == y->bound.lo &&
           x->bound.hi == y->bound.hi && x->mod.coeff == y->mod.coeff && x->mod.base == y->mod.base;
}

void cd_simplify_set_query(cd_analyzer *a, cd_simplify_query_fn ask, void *ctx) {
    a->ask = ask;
    a->ask_ctx = ctx;
    a->ctx = ++a->s->next_ctx; /* its answers are this analyzer's alone */
    a->n_bind = 1;
}

const cd_var_info *cd_simplify_var_query(cd_analyzer *a, const cd_expr *e) {
    const cd_expr *min, *extent;
    /* Before its first binding an analyzer shares its state with others that know nothing. */
    if (!a->n_bind) return NULL;
    /* Before asking: a range may not mention its own variable. */
    cd_var_info *v = simplify_var_entry(a, e);
    if (!v || !a->ask || !a->ask(a->ask_ctx, e, &min, &extent)) return v;
    const cd_var_info info = range_info(a, min, extent);
    v = simplify_var_entry(a, e); /* may have moved */
    *v = info;
    return v;
}

static uint32_t simplify_transition(cd_simplifier *s, uint32_t from, uint32_t tag, uint32_t i,
                                    uint32_t j, uint32_t k);

/* The first binding makes the analyzer's state its own. A variable that was
 * never met invalidates nothing; any other binding moves to another state. */
void cd_simplify_bind(cd_analyzer *a, const cd_expr *var, const cd_expr *min,
                      const cd_expr *extent) {
    if (var->op != CD_VAR) return;
    const cd_var_info v = range_info(a, min, extent);
    const uint32_t met = a->n_var;
    cd_var_info *old = simplify_var_entry(a, var);
    if (!old || same_info(old, &v)) return;
    if (!a->n_bind++) a->ctx = ++a->s->next_ctx;
    else if (a->n_var == met)
        a->ctx = simplify_transition(a->s, a->ctx, 1, var->id, min->id, extent->id);
    *old = v;
}

cd_analyzer *cd_simplify_analyzer_new_plain(cd_simplifier *s) {
    cd_analyzer *a = cd_simplify_analyzer_new(s);
    if (a != &s->fresh) {
        a->plain = true;
        a->n_bind = 1;
        a->ctx = ++s->next_ctx;
    }
    return a;
}

void cd_simplify_set_bound(cd_analyzer *a, const cd_expr *var, int64_t lo, int64_t hi) {
    cd_var_info *v = simplify_var_entry(a, var);
    if (!v) return;
    v->known = true;
    v->bound = (cd_bound){lo, hi};
}

/* Modular sets: value == coeff * k + base. TVM's modular_set. */

static const cd_modular everything = {1, 0};

static cd_modular make(int64_t coeff, int64_t base) {
    if (coeff < 0) return everything;
    return (cd_modular){coeff, coeff ? cd_expr_floormod(base, coeff) : base};
}

static int64_t magnitude(int64_t a) { return a < 0 ? cd_wrap_sub(0, a) : a; }

/* Greatest common divisor; 0 is neutral. */
static int64_t gcd(int64_t a, int64_t b) {
    a = magnitude(a);
    b = magnitude(b);
    while (b) {
        const int64_t r = cd_trunc_mod(a, b);
        a = b;
        b = r;
    }
    return a;
}

static cd_modular unite(cd_modular a, cd_modular b) {
    const int64_t c = gcd(a.coeff, b.coeff);
    if (c == 0) return a.base == b.base ? a : everything;
    const int64_t p = cd_trunc_mod(a.base, c), q = cd_trunc_mod(b.base, c);
    return p == q ? make(c, p) : make(gcd(gcd(p, q), c), p);
}

/* a*x + b*y == gcd(a, b) for a >= 0; returns the gcd, sets x and y as TVM does. */
static int64_t euclid(int64_t a, int64_t b, int64_t *x, int64_t *y) {
    int64_t s = 0, old_s = 1, r = b, old_r = a;
    while (r != 0) {
        const int64_t q = cd_trunc_div(old_r, r), t = old_r, u = old_s;
        old_r = r;
        r = cd_wrap_sub(t, cd_wrap_mul(q, r));
        old_s = s;
        s = cd_wrap_sub(u, cd_wrap_mul(q, s));
    }
    *x = old_s;
    *y = b ? cd_trunc_div(cd_wrap_sub(old_r, cd_wrap_mul(old_s, a)), b) : 1;
    return old_r;
}

/* what is in both */
static cd_modular modular_set_intersect(cd_modular a, cd_modular b) {
    int64_t x, y;
    const int64_t g = euclid(a.coeff, b.coeff, &x, &y), v = cd_wrap_sub(b.base, a.base);
    if (g == 0) return a;
    if (cd_trunc_mod(v, g) != 0) return (cd_modular){0, 1}; /* TVM's "nothing" */
    x = cd_wrap_mul(cd_trunc_div(v, g), x);
    return make(cd_wrap_mul(cd_trunc_div(a.coeff, g), b.coeff),
                cd_wrap_add(cd_wrap_mul(x, a.coeff), a.base));
}

static cd_modular divide_set(cd_analyzer *a, const cd_expr *e, int64_t v, bool round_down) {
    const cd_modular m = cd_modular_set(a, e);
    if (v == 0 || cd_trunc_mod(m.coeff, v) != 0) return everything;
    if (m.base == 0) return make(magnitude(cd_trunc_div(m.coeff, v)), 0);
    if (m.base > 0 && v > 0 && (round_down || cd_simplify_ge(a, e, 0)))
        return make(m.coeff / v, m.base / v);
    return everything;
}

static cd_modular modulo_set(cd_analyzer *a, const cd_expr *e, int64_t v, bool round_down) {
    if (v == 0) return everything;
    const cd_modular m = cd_modular_set(a, e);
    const int64_t c = gcd(m.coeff, v), r = cd_trunc_mod(m.base, c);
    if (r == 0 || (m.base > 0 && (round_down || cd_simplify_ge(a, e, 0)))) return make(c, r);
    return everything;
}

static cd_modular divmod(cd_analyzer *a, const cd_expr *e) {
    const cd_modular b = cd_modular_set(a, e->a[1]);
    if (b.coeff != 0) return everything;
    if (e->op == CD_DIV || e->op == CD_FDIV)
        return divide_set(a, e->a[0], b.base, e->op == CD_FDIV);
    return modulo_set(a, e->a[0], b.base, e->op == CD_FMOD);
}

static cd_modular product(cd_modular x, cd_modular y) {
    const int64_t p = cd_wrap_mul(x.coeff, y.coeff), q = cd_wrap_mul(x.coeff, y.base),
                  r = cd_wrap_mul(x.base, y.coeff);
    return make(gcd(p, gcd(q, r)), cd_wrap_mul(x.base, y.base));
}

/* What is not a sum, product, quotient, remainder or choice can be anything: coeff 1, base 0. */
static cd_modular node_set(cd_analyzer *a, const cd_expr *e) {
    switch ((cd_expr_op)e->op) {
    case CD_INT: return (cd_modular){0, e->u.i};
    case CD_VAR: {
        const cd_var_info *v = cd_simplify_var(a, e);
        return v ? v->mod : everything;
    }
    case CD_CAST: return cd_modular_set(a, e->a[0]);
    case CD_SELECT: return unite(cd_modular_set(a, e->a[1]), cd_modular_set(a, e->a[2]));
    case CD_CALL:
        if (e->n == 2 && cd_call_is(e, "shift_right")) {
            const cd_modular b = cd_modular_set(a, e->a[1]);
            if (b.coeff == 0 && b.base >= 0 && b.base < 63)
                return divide_set(a, e->a[0], (int64_t)1 << b.base, true);
        }
        return everything;
    case CD_DIV:
    case CD_FDIV:
    case CD_MOD:
    case CD_FMOD: return divmod(a, e);
    default: break;
    }
    if (!cd_expr_op_is_arith((cd_expr_op)e->op)) return everything;
    const cd_modular x = cd_modular_set(a, e->a[0]), y = cd_modular_set(a, e->a[1]);
    if (e->op == CD_ADD) return make(gcd(x.coeff, y.coeff), cd_wrap_add(x.base, y.base));
    if (e->op == CD_SUB) return make(gcd(x.coeff, y.coeff), cd_wrap_sub(x.base, y.base));
    return e->op == CD_MUL ? product(x, y) : unite(x, y);
}

cd_modular cd_modular_set(cd_analyzer *a, const cd_expr *e) {
    if (a->s->nest >= CD_SIMPLIFY_MAX_NEST) {
        a->s->oom = true;
        return everything;
    }
    a->s->nest++;
    const cd_modular r = node_set(a, e);
    a->s->nest--;
    return r;
}

/* What holds inside a branch or a loop: bounds, remainders and conditions that are known to be
 * true. Entering a constraint moves the analyzer to another numbered state, leaving moves it back;
 * memo entries are valid for one number, so nothing has to be cleared. */

enum { TAG_BIND = 1, TAG_BOUND, TAG_LITERAL };

/* The number of the state that is reached from `from` by the event (tag, i, j, k); equal events
 * give equal numbers.
 *
 * The state reached from `from` by one event; the same event gives the same number. */
static uint32_t simplify_transition(cd_simplifier *s, uint32_t from, uint32_t tag, uint32_t i,
                                    uint32_t j, uint32_t k) {
    uint32_t h =
        (from * 0x9E3779B1U) ^ (i * 0x85EBCA6BU) ^ (j * 0xC2B2AE35U) ^ (k * 0x27D4EB2FU) ^ tag;
    cd_transition *t = &s->trans[(h ^ h >> 15) % CD_TRANSITIONS];
    if (t->from != from || t->tag != tag || t->key[0] != i || t->key[1] != j || t->key[2] != k ||
        from == 0)
        *t = (cd_transition){from, tag, {i, j, k}, ++s->next_ctx};
    return t->to;
}

/* ---- bounds ---- */

static void add_bound(cd_analyzer *a, const cd_expr *cond, const cd_expr *e, int64_t lo,
                      int64_t hi) {
    if (e->op == CD_INT) return;
    const cd_bound b = {lo == CD_INF ? lo - 1 : lo, hi == CD_NEG_INF ? hi + 1 : hi};
    const cd_bound known = cd_const_int_bound(a, e);
    if (b.lo <= known.lo && b.hi >= known.hi) return; /* says nothing new */
    if (!simplify_reserve(a->s, &a->extra, a->n_extra, &a->cap_extra, sizeof *a->extra)) return;
    a->extra[a->n_extra++] = (cd_extra){e, b};
    a->extra_mask |= (uint64_t)1 << (e->id % 64);
    a->ctx = simplify_transition(a->s, a->ctx, TAG_BOUND, cond->id, 0, 0);
}

/* Bounds that a condition gives: c <= x, c < x, x <= c, x < c, x == c and their conjunctions. */
static void add_bounds(cd_analyzer *a, const cd_expr *c) {
    if (c->op == CD_AND) {
        add_bounds(a, c->a[0]);
        add_bounds(a, c->a[1]);
        return;
    }
    if (c->op != CD_LE && c->op != CD_LT && c->op != CD_EQ) return;
    const cd_expr *x = c->a[0], *y = c->a[1];
    const bool strict = c->op == CD_LT;
    if (c->op == CD_EQ) {
        if (y->op == CD_INT) add_bound(a, c, x, y->u.i, y->u.i);
        else if (x->op == CD_INT) add_bound(a, c, y, x->u.i, x->u.i);
    } else if (x->op == CD_INT) {
        add_bound(a, c, y, cd_const_int_bound_add(x->u.i, strict), CD_INF);
    } else if (y->op == CD_INT) {
        add_bound(a, c, x, CD_NEG_INF, cd_const_int_bound_add(y->u.i, -(int64_t)strict));
    }
}

/* var % c == b narrows the variable's modular set while the constraint holds. */
static void add_modular(cd_analyzer *a, const cd_expr *c) {
    if (c->op != CD_EQ || (c->a[0]->op != CD_FMOD && c->a[0]->op != CD_MOD) ||
        c->a[1]->op != CD_INT)
        return;
    const cd_expr *v = c->a[0]->a[0], *m = c->a[0]->a[1];
    if (v->op != CD_VAR || m->op != CD_INT || m->u.i <= 0) return;
    if (!simplify_reserve(a->s, &a->mod, a->n_mod, &a->cap_mod, sizeof *a->mod)) return;
    cd_simplify_var(a, v); /* ask before narrowing */
    cd_var_info *info = simplify_var_entry(a, v);
    if (!info) return;
    cd_modular *now = &info->mod;
    a->mod[a->n_mod++] = (cd_mod_save){(uint32_t)(info - a->var), *now};
    *now =
        modular_set_intersect(*now, (cd_modular){m->u.i, cd_expr_floormod(c->a[1]->u.i, m->u.i)});
    a->ctx = simplify_transition(a->s, a->ctx, TAG_BOUND, c->id, 0, 1);
}

/* ---- literal constraints ---- */

static void push(cd_analyzer *a, cd_expr_list *l, const cd_expr *e) {
    if (simplify_reserve(a->s, &l->p, l->n, &l->cap, sizeof *l->p)) l->p[l->n++] = e;
}

static void add_literal(cd_analyzer *a, const cd_expr *e) {
    /* Literals, and their negations, are never asked for. */
    if (e->op == CD_INT || (e->op == CD_NOT && e->a[0]->op == CD_INT)) return;
    push(a, &a->literal, e);
    a->ctx = simplify_transition(a->s, a->ctx, TAG_LITERAL, e->id, 0, 0);
}

static const cd_expr *negate(cd_analyzer *a, const cd_expr *e) {
    return cd_expr_new_not(a->s->pool, e);
}

/* e and its conjuncts; !(x || y) counts as !x && !y, each simplified by an analyzer that knows
 *   nothing. */
static void collect(cd_analyzer *a, const cd_expr *e) {
    push(a, &a->pending, e);
    if (e->op == CD_AND) {
        collect(a, e->a[0]);
        collect(a, e->a[1]);
    } else if (e->op == CD_NOT && e->a[0]->op == CD_OR) {
        /* not the fresh one: that may be in the middle of this */
        cd_analyzer *blank = cd_simplify_analyzer_new(a->s);
        for (int i = 0; i < 2; i++)
            collect(a, cd_simplify_rewrite(blank, negate(a, e->a[0]->a[i])));
    }
}

static void add_literals(cd_analyzer *a, const cd_expr *cond) {
    cd_simplifier *s = a->s;
    const cd_expr *k = cd_rewrite_visit(&a->rw, cond);
    if (k->op == CD_INT) return;
    const uint32_t start = a->pending.n; /* the list is a stack: visits below may get here again */
    collect(a, k);
    const uint32_t end = a->pending.n;
    for (uint32_t i = start; i < end; i++) {
        const cd_expr *e = a->pending.p[i], *no;
        if (!cd_simplify_is_pure(e, false)) continue;
        add_literal(a, e);
        if (e->type == CD_BOOL) no = negate(a, e);
        else no = cd_expr_bin(s->pool, CD_EQ, e, cd_expr_new_int(s->pool, e->type, 0));
        add_literal(a, negate(a, cd_rewrite_visit(&a->rw, no)));
    }
    a->pending.n = start;
}

/* v < c and v <= c of an unsubstituted variable become true under their own bound. */
static bool only_bounds(cd_analyzer *a, const cd_expr *c) {
    if (c->op != CD_LT && c->op != CD_LE) return false;
    const cd_expr *v = c->a[0];
    if (v->op != CD_VAR || c->a[1]->op != CD_INT || !cd_expr_dtype_is_index(v->type)) return false;
    const cd_var_info *info = cd_simplify_var(a, v);
    return !info || !info->value;
}

cd_constraint cd_constraint_enter(cd_analyzer *a, const cd_expr *cond) {
    const cd_constraint c = {a->n_extra, a->literal.n, a->n_mod, a->n_bind, a->ctx};
    if (cond->op == CD_INT) return c;
    add_bounds(a, cond);
    add_modular(a, cond);
    if (!only_bounds(a, cond)) add_literals(a, cond);
    return c;
}

void cd_constraint_leave(cd_analyzer *a, cd_constraint c) {
    while (a->n_mod > c.n_mod) {
        a->n_mod--;
        a->var[a->mod[a->n_mod].var].mod = a->mod[a->n_mod].old;
    }
    if (a->n_extra != c.n_bound) {
        a->n_extra = c.n_bound;
        a->extra_mask = 0;
        for (uint32_t i = 0; i < a->n_extra; i++)
            a->extra_mask |= (uint64_t)1 << (a->extra[i].e->id % 64);
    }
    a->literal.n = c.n_literal;
    /* A binding made inside stays, so the state is neither this one nor the old one. */
    a->ctx = a->n_bind == c.n_bind ? c.ctx : ++a->s->next_ctx;
}

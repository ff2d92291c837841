/* The pool of expressions. Equal nodes are one node (hash-consing), so equality is a pointer
 * comparison and results can be memoised by id. A program's pool stands on the frozen pool of its
 * task: bodies of operators are read by all threads and copied by none. */
#include "features/expr/expr.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define SLOT_MIN 1024U

static const struct {
    const char *text;
    int arity;
} op_tab[CD_EXPR_OP_COUNT] = {
#define CD_X(name, text, arity) [CD_##name] = {text, arity},
    CD_EXPR_OP_MAP(CD_X)
#undef CD_X
};

const char *cd_expr_op_name(cd_expr_op o) { return o < CD_EXPR_OP_COUNT ? op_tab[o].text : "?"; }

int64_t cd_expr_floordiv(int64_t a, int64_t b) {
    if (b == -1) return a == INT64_MIN ? INT64_MAX : -a;
    const int64_t q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t cd_expr_floormod(int64_t a, int64_t b) {
    if (b == -1) return 0;
    const int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

int64_t cd_expr_gcd(int64_t a, int64_t b) {
    while (b) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

/* ---- the pool ---- */

cdmpp_status cd_expr_pool_init(cd_expr_pool *p, const cd_expr_pool *base, cdmpp_err *err) {
    *p = (cd_expr_pool){0};
    p->cap = SLOT_MIN;
    p->slot = cd_mem_zalloc(p->cap, sizeof *p->slot);
    if (!p->slot) return CD_FAIL(err, ENOMEM, "expression pool");
    cd_expr_pool_reset(p, base);
    return CDMPP_OK;
}

cdmpp_status cd_expr_pool_cache_ints(cd_expr_pool *p, cdmpp_err *err) {
    p->small = cd_mem_zalloc(CD_EXPR_POOL_SMALL, sizeof *p->small);
    return p->small ? CDMPP_OK : CD_FAIL(err, ENOMEM, "expression pool");
}

void cd_expr_pool_reset(cd_expr_pool *p, const cd_expr_pool *base) {
    cd_arena_reset(&p->arena);
    p->base = base;
    p->used = 0;
    p->oom = p->big = false;
    p->n = base ? base->n : 0;
    p->n_var = base ? base->n_var : 0;
    if (++p->epoch == 0) { /* wrapped: old stamps would look fresh */
        memset(p->slot, 0, p->cap * sizeof *p->slot);
        if (p->small) memset(p->small, 0, CD_EXPR_POOL_SMALL * sizeof *p->small);
        p->epoch = 1;
    }
}

void cd_expr_pool_free(cd_expr_pool *p) {
    cd_mem_free(p->slot);
    cd_mem_free(p->small);
    cd_arena_free(&p->arena);
    *p = (cd_expr_pool){0};
}

static uint64_t mix(uint64_t h, uint64_t v) { return (h ^ v) * 0x9E3779B97F4A7C15U; }

static uint64_t double_bits(double f) {
    uint64_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static uint64_t str_hash(const char *s) {
    uint64_t h = 5381;
    for (; *s; s++) h = mix(h, (unsigned char)*s) ^ h >> 29;
    return h;
}

static bool has_name(uint8_t op) { return op == CD_CALL || op == CD_STR; }

/* Hash of everything but id and hash itself. */
static inline uint32_t hash_of(const cd_expr *e, const cd_expr *const *a) {
    uint64_t h = (uint64_t)e->n << 32 | (uint64_t)e->type << 8 | e->op;
    if (has_name(e->op)) h = mix(h, str_hash(e->u.name));
    else if (e->op == CD_FLOAT) h = mix(h, double_bits(e->u.f));
    else if (e->u.i) h = mix(h, (uint64_t)e->u.i);
    for (uint32_t i = 0; i < e->n; i++) h = mix(h, (uint64_t)a[i]->id << 24) ^ h >> 31;
    h *= 0xD6E8FEB86659FD93U;
    return (uint32_t)(h >> 32);
}

static bool same_value(const cd_expr *x, const cd_expr *e) {
    if (has_name(e->op)) return strcmp(x->u.name, e->u.name) == 0;
    if (e->op == CD_FLOAT) return double_bits(x->u.f) == double_bits(e->u.f);
    return x->u.i == e->u.i;
}

static inline bool same(const cd_expr *x, const cd_expr *e, const cd_expr *const *a) {
    if (x->op != e->op || x->type != e->type || x->n != e->n || !same_value(x, e)) return false;
    for (uint32_t i = 0; i < e->n; i++)
        if (x->a[i] != a[i]) return false;
    return true;
}

/* The node equal to (e, a), or NULL and the free slot for it. */
static inline const cd_expr *lookup(const cd_expr_pool *p, const cd_expr *e,
                                    const cd_expr *const *a, uint32_t *at) {
    uint32_t i = e->hash & (p->cap - 1);
    for (; p->slot[i].stamp == p->epoch; i = (i + 1) & (p->cap - 1))
        if (p->slot[i].hash == e->hash && same(p->slot[i].e, e, a)) return p->slot[i].e;
    *at = i;
    return NULL;
}

/* Only the nodes of this epoch move: the others are left over from programs before the last
 * reset. */
static bool resize(cd_expr_pool *p, uint32_t cap) {
    cd_expr_pool_slot *slot = cd_mem_zalloc(cap, sizeof *slot);
    if (!slot) return false;
    for (uint32_t i = 0; i < p->cap; i++) {
        if (p->slot[i].stamp != p->epoch) continue;
        uint32_t k = p->slot[i].hash & (cap - 1);
        while (slot[k].stamp) k = (k + 1) & (cap - 1);
        slot[k] = p->slot[i];
        slot[k].stamp = p->epoch;
    }
    cd_mem_free(p->slot);
    p->slot = slot;
    p->cap = cap;
    return true;
}

/* A task file holds thousands of small pools: give back what only building needs. */
void cd_expr_pool_freeze(cd_expr_pool *p) {
    uint32_t cap = 16;
    while (cap <= 2 * p->used) cap *= 2;
    if (cap < p->cap) resize(p, cap); /* no harm when there is no memory for it */
    cd_mem_free(p->small);
    p->small = NULL;
    p->frozen = true;
}

static uint8_t flags_of(const cd_expr *e, const cd_expr *const *a) {
    unsigned f = e->flags;
    if (e->op == CD_LOAD) f |= CD_EXPR_HAS_LOAD;
    if (e->op == CD_VAR) f |= CD_EXPR_HAS_VAR;
    for (uint32_t i = 0; i < e->n; i++) f |= a[i]->flags & (CD_EXPR_HAS_LOAD | CD_EXPR_HAS_VAR);
    return (uint8_t)f;
}

/* What constructors return when memory is gone or a node is too big. */
static const cd_expr zero = {.op = CD_INT, .type = CD_I32, .size = 1, .depth = 1};

static const cd_expr *no_memory(cd_expr_pool *p) {
    p->oom = true;
    return &zero;
}

static bool measure(cd_expr *e, const cd_expr *const *a) {
    uint64_t size = 1;
    uint32_t depth = 0;
    for (uint32_t i = 0; i < e->n; i++) {
        size += a[i]->size;
        if (a[i]->depth > depth) depth = a[i]->depth;
    }
    e->size = (uint32_t)size;
    e->depth = depth + 1;
    return size <= CD_EXPR_MAX_SIZE && depth < CD_EXPR_MAX_DEPTH;
}

/* The interned node equal to (*e, a). `e` is a header without operands. */
static const cd_expr *intern(cd_expr_pool *p, cd_expr *e, const cd_expr *const *a) {
    bool in_base = p->base != NULL;
    for (uint32_t i = 0; i < e->n; i++) in_base = in_base && a[i]->id < p->base->n;
    e->hash = hash_of(e, a);
    uint32_t at;
    const cd_expr *x = in_base ? lookup(p->base, e, a, &at) : NULL;
    if (!x) x = lookup(p, e, a, &at);
    if (x) return x;
    if (p->frozen) return no_memory(p);
    if (!measure(e, a)) {
        p->big = true;
        return &zero;
    }
    if (p->used * 2 >= p->cap) {
        if (!resize(p, p->cap * 2)) return no_memory(p);
        lookup(p, e, a, &at);
    }
    cd_expr *n = cd_arena_alloc(&p->arena, 1, sizeof *n + e->n * sizeof *a);
    if (!n) return no_memory(p);
    *n = *e;
    for (uint32_t i = 0; i < e->n; i++) n->a[i] = a[i];
    if (has_name(n->op) && !(n->u.name = cd_arena_text(&p->arena, e->u.name))) return no_memory(p);
    n->flags = flags_of(e, a);
    n->id = p->n++;
    p->slot[at] = (cd_expr_pool_slot){n, n->hash, p->epoch};
    p->used++;
    return n;
}

/* ---- constructors ---- */

static int64_t wrap(cd_dtype t, int64_t v) {
    const unsigned bits = cd_expr_dtype_bits(t);
    if (bits >= 64) return v;
    const uint64_t mask = ((uint64_t)1 << bits) - 1, u = (uint64_t)v & mask;
    if (cd_expr_dtype_kind(t) == CD_T_INT && u >> (bits - 1)) return (int64_t)(u | ~mask);
    return (int64_t)u;
}

static const cd_expr *intern_int(cd_expr_pool *p, cd_dtype t, int64_t v) {
    cd_expr e = {.op = CD_INT, .type = t, .u.i = wrap(t, v)};
    return intern(p, &e, NULL);
}

const cd_expr *cd_expr_new_int(cd_expr_pool *p, cd_dtype t, int64_t v) {
    const uint64_t k = (uint64_t)v - (uint64_t)CD_EXPR_POOL_MIN;
    if (t != CD_I32 || k >= CD_EXPR_POOL_SMALL || !p->small) return intern_int(p, t, v);
    cd_expr_pool_slot *s = &p->small[k];
    if (s->stamp != p->epoch) *s = (cd_expr_pool_slot){intern_int(p, t, v), 0, p->epoch};
    return s->e;
}

const cd_expr *cd_expr_new_float(cd_expr_pool *p, cd_dtype t, double v) {
    cd_expr e = {.op = CD_FLOAT, .type = t, .u.f = v};
    return intern(p, &e, NULL);
}

const cd_expr *cd_expr_new_str(cd_expr_pool *p, const char *s) {
    cd_expr e = {.op = CD_STR, .type = CD_DTYPE(CD_T_HANDLE, 64), .u.name = s};
    return intern(p, &e, NULL);
}

const cd_expr *cd_expr_new_var(cd_expr_pool *p, cd_dtype t, uint32_t number) {
    cd_expr e = {.op = CD_VAR, .type = t, .u.i = number};
    return intern(p, &e, NULL);
}

const cd_expr *cd_expr_fresh_var(cd_expr_pool *p, cd_dtype t) {
    cd_expr *e = p->frozen ? NULL : cd_arena_alloc(&p->arena, 1, sizeof *e);
    if (!e) return no_memory(p);
    *e = (cd_expr){
        .op = CD_VAR, .type = t, .flags = CD_EXPR_HAS_VAR, .id = p->n++, .u.i = p->n_var++};
    return e;
}

const cd_expr *cd_expr_new_bin(cd_expr_pool *p, cd_expr_op op, const cd_expr *a, const cd_expr *b) {
    cd_expr e = {.op = (uint8_t)op, .type = cd_expr_op_is_arith(op) ? a->type : CD_BOOL, .n = 2};
    return intern(p, &e, (const cd_expr *const[]){a, b});
}

const cd_expr *cd_expr_new_not(cd_expr_pool *p, const cd_expr *a) {
    cd_expr e = {.op = CD_NOT, .type = CD_BOOL, .n = 1};
    return intern(p, &e, &a);
}

const cd_expr *cd_expr_new_select(cd_expr_pool *p, const cd_expr *c, const cd_expr *t,
                                  const cd_expr *f) {
    cd_expr e = {.op = CD_SELECT, .type = t->type, .n = 3};
    return intern(p, &e, (const cd_expr *const[]){c, t, f});
}

const cd_expr *cd_expr_new_cast(cd_expr_pool *p, cd_dtype t, const cd_expr *a) {
    cd_expr e = {.op = CD_CAST, .type = t, .n = 1};
    return intern(p, &e, &a);
}

/* Operators that TVM registers with an effect beyond a pure value; every other
 * operator of a DAG is pure or an annotation (src/tir/op). */
static bool call_is_pure(const char *name) {
    static const char *const effect[] = {"call_extern",
                                         "call_cpacked",
                                         "call_packed",
                                         "tvm_call_packed",
                                         "tvm_call_cpacked",
                                         "tvm_thread_allreduce",
                                         "atomic_add",
                                         "tvm_storage_sync",
                                         "call_llvm_intrin",
                                         "call_spirv_intrin",
                                         "tvm_throw_last_error",
                                         "tvm_context_id",
                                         "tvm_warp_shuffle",
                                         "prefetch",
                                         "ret",
                                         "thread_return",
                                         "assume",
                                         "TVMBackendAllocWorkspace",
                                         "TVMBackendFreeWorkspace"};
    for (size_t i = 0; i < sizeof effect / sizeof *effect; i++)
        if (!strcmp(name, effect[i])) return false;
    return true;
}

const cd_expr *cd_expr_new_call(cd_expr_pool *p, cd_dtype t, const char *name,
                                const cd_expr *const *a, uint32_t n) {
    cd_expr e = {.op = CD_CALL,
                 .type = t,
                 .n = n,
                 .u.name = name,
                 .flags = call_is_pure(name) ? CD_EXPR_PURE : 0};
    return intern(p, &e, a);
}

bool cd_expr_is_dot4(const cd_expr *e) {
    return e->op == CD_CALL && e->n == 2 && e->type == CD_I32 && !strcmp(e->u.name, "dot4");
}

const cd_expr *cd_expr_new_load(cd_expr_pool *p, cd_dtype t, uint32_t tensor,
                                const cd_expr *const *a, uint32_t n) {
    cd_expr e = {.op = CD_LOAD, .type = t, .n = n, .u.i = tensor};
    return intern(p, &e, a);
}

const cd_expr *cd_expr_new_like(cd_expr_pool *p, const cd_expr *e, const cd_expr *const *a) {
    bool equal = true;
    for (uint32_t i = 0; i < e->n; i++) equal = equal && a[i] == e->a[i];
    if (equal) return e;
    cd_expr h = *e;
    h.flags &= CD_EXPR_PURE;
    if (cd_expr_op_is_arith((cd_expr_op)e->op)) h.type = a[0]->type;
    if (e->op == CD_SELECT) h.type = a[1]->type;
    return intern(p, &h, a);
}

/* ---- walks ---- */

typedef struct {
    cd_expr_pool *pool;
    cd_subst_fn fn;
    void *ctx;
    const cd_expr **memo; /* direct-mapped: key and value side by side */
} mapper;
enum { MEMO = 256 };

/* The memo has 256 entries and forgets: it only has to catch the sharing inside one expression. */
static const cd_expr *map(mapper *m, const cd_expr *e) {
    if (e->op == CD_VAR) return m->fn(m->ctx, e);
    if (e->n == 0) return e->op == CD_LOAD ? m->fn(m->ctx, e) : e;
    if (!(e->flags & (CD_EXPR_HAS_VAR | CD_EXPR_HAS_LOAD))) return e;
    const cd_expr **slot = m->memo + 2 * (e->id % MEMO);
    if (slot[0] == e) return slot[1];
    const cd_expr *small[8], **a = small;
    if (e->n > 8 && !(a = cd_arena_alloc(&m->pool->arena, e->n, sizeof *a)))
        return no_memory(m->pool);
    for (uint32_t i = 0; i < e->n; i++) a[i] = map(m, e->a[i]);
    const cd_expr *r = cd_expr_new_like(m->pool, e, a);
    if (e->op == CD_LOAD) r = m->fn(m->ctx, r);
    slot[0] = e;
    slot[1] = r;
    return r;
}

const cd_expr *cd_expr_map(cd_expr_pool *p, cd_arena *scratch, const cd_expr *e, cd_subst_fn fn,
                           void *ctx) {
    if (!(e->flags & (CD_EXPR_HAS_VAR | CD_EXPR_HAS_LOAD))) return e;
    mapper m = {p, fn, ctx, CD_NEWN(scratch, const cd_expr *, 2 * MEMO)};
    return m.memo ? map(&m, e) : no_memory(p);
}

bool cd_expr_visit(const cd_expr *e, cd_visit_fn fn, void *ctx) {
    if (!fn(ctx, e)) return false;
    for (uint32_t i = 0; i < e->n; i++)
        if (!cd_expr_visit(e->a[i], fn, ctx)) return false;
    return true;
}

bool cd_expr_uses(const cd_expr *e, const cd_expr *var) {
    if (e == var) return true;
    if (!(e->flags & CD_EXPR_HAS_VAR) || e->id < var->id) return false; /* users have greater ids */
    for (uint32_t i = 0; i < e->n; i++)
        if (cd_expr_uses(e->a[i], var)) return true;
    return false;
}

/* TVM's folding operators: what becomes of `a + b` the moment it is built. Schedules, bounds and
 * the simplifier all build through them, so the form of every index depends on them
 * (docs/internals/ansor.md, Simplifier). */

static bool lit(const cd_expr *e) { return e->op == CD_INT || e->op == CD_FLOAT; }
static double val(const cd_expr *e) { return e->op == CD_FLOAT ? e->u.f : (double)e->u.i; }
/* exact: v is 0 or 1 */
static bool is(const cd_expr *e, double v) { return lit(e) && val(e) == v; }

/* Two literals. A division by zero stays as it is; arithmetic wraps as C++ does in practice. */
static const cd_expr *fold_int(cd_expr_pool *p, cd_expr_op op, const cd_expr *a, const cd_expr *b) {
    const int64_t x = a->u.i, y = b->u.i;
    int64_t r;
    if ((op == CD_MOD || op == CD_FMOD) && !cd_expr_dtype_is_index(a->type)) return NULL;
    switch (op) {
    case CD_ADD: r = (int64_t)((uint64_t)x + (uint64_t)y); break;
    case CD_SUB: r = (int64_t)((uint64_t)x - (uint64_t)y); break;
    case CD_MUL: r = (int64_t)((uint64_t)x * (uint64_t)y); break;
    case CD_DIV:
        if (y == 0) return NULL;
        r = y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
        break;
    case CD_MOD:
        if (y == 0) return NULL;
        r = y == -1 ? 0 : x % y;
        break;
    case CD_FDIV:
        if (y == 0) return NULL;
        r = cd_expr_floordiv(x, y);
        break;
    case CD_FMOD:
        if (y == 0) return NULL;
        r = cd_expr_floormod(x, y);
        break;
    case CD_MIN: r = x < y ? x : y; break;
    case CD_MAX: r = x > y ? x : y; break;
    case CD_EQ: return cd_expr_new_int(p, CD_BOOL, x == y);
    case CD_NE: return cd_expr_new_int(p, CD_BOOL, x != y);
    case CD_LT: return cd_expr_new_int(p, CD_BOOL, x < y);
    case CD_LE: return cd_expr_new_int(p, CD_BOOL, x <= y);
    case CD_GT: return cd_expr_new_int(p, CD_BOOL, x > y);
    case CD_GE: return cd_expr_new_int(p, CD_BOOL, x >= y);
    default: return NULL;
    }
    return cd_expr_new_int(p, a->type, r);
}

/* In double whatever the type: v0.9 does not round its literals. */
static const cd_expr *fold_float(cd_expr_pool *p, cd_expr_op op, const cd_expr *a,
                                 const cd_expr *b) {
    const double x = val(a), y = val(b);
    switch (op) {
    case CD_ADD: return cd_expr_new_float(p, a->type, x + y);
    case CD_SUB: return cd_expr_new_float(p, a->type, x - y);
    case CD_MUL: return cd_expr_new_float(p, a->type, x * y);
    case CD_DIV: return y != 0.0 ? cd_expr_new_float(p, a->type, x / y) : NULL;
    case CD_FDIV: return y != 0.0 ? cd_expr_new_float(p, a->type, floor(x / y)) : NULL;
    case CD_MIN: return cd_expr_new_float(p, a->type, y < x ? y : x);
    case CD_MAX: return cd_expr_new_float(p, a->type, x < y ? y : x);
    case CD_EQ: return cd_expr_new_int(p, CD_BOOL, x == y);
    case CD_NE: return cd_expr_new_int(p, CD_BOOL, x != y);
    case CD_LT: return cd_expr_new_int(p, CD_BOOL, x < y);
    case CD_LE: return cd_expr_new_int(p, CD_BOOL, x <= y);
    case CD_GT: return cd_expr_new_int(p, CD_BOOL, x > y);
    case CD_GE: return cd_expr_new_int(p, CD_BOOL, x >= y);
    default: return NULL;
    }
}

static const cd_expr *fold_identity(cd_expr_op op, const cd_expr *a, const cd_expr *b,
                                    cd_expr_pool *p) {
    switch (op) {
    case CD_ADD: return is(a, 0) ? b : is(b, 0) ? a : NULL;
    case CD_SUB: return is(b, 0) ? a : NULL;
    case CD_MUL: return is(a, 1) || is(b, 0) ? b : is(b, 1) || is(a, 0) ? a : NULL;
    case CD_DIV:
    case CD_FDIV: return is(a, 0) || is(b, 1) ? a : NULL;
    case CD_MOD:
    case CD_FMOD:
        if (!cd_expr_dtype_is_index(a->type) || !cd_expr_dtype_is_index(b->type)) return NULL;
        return cd_expr_is_int_value(a, 0)   ? a
               : cd_expr_is_int_value(b, 1) ? cd_expr_new_int(p, a->type, 0)
                                            : NULL;
    case CD_MIN:
    case CD_MAX: /* TVM: the same object; two equal loads are two objects */
        return a == b && cd_expr_dtype_is_index(a->type) ? a : NULL;
    case CD_AND:
        return a->op == CD_INT ? (a->u.i ? b : a) : b->op == CD_INT ? (b->u.i ? a : b) : NULL;
    case CD_OR:
        return a->op == CD_INT ? (a->u.i ? a : b) : b->op == CD_INT ? (b->u.i ? b : a) : NULL;
    default: return NULL;
    }
}

const cd_expr *cd_fold_bin(cd_expr_pool *p, cd_expr_op op, const cd_expr *a, const cd_expr *b) {
    if (op != CD_AND && op != CD_OR) {
        if (a->op == CD_INT && b->op == CD_INT) {
            const cd_expr *r = fold_int(p, op, a, b);
            if (r) return r;
        } else if (a->op == CD_FLOAT && b->op == CD_FLOAT) {
            const cd_expr *r = fold_float(p, op, a, b);
            if (r) return r;
        }
    }
    return fold_identity(op, a, b, p);
}

/* TVM promotes the narrower operand before it builds a binary node. */
static void match_types(cd_expr_pool *p, const cd_expr **a, const cd_expr **b) {
    const cd_dtype s = (*a)->type, t = (*b)->type;
    if (s == t) return;
    const bool fs = cd_expr_dtype_is_float(s), ft = cd_expr_dtype_is_float(t);
    if (fs != ft) {
        if (fs) *b = cd_expr_cast(p, s, *b);
        else *a = cd_expr_cast(p, t, *a);
    } else if (cd_expr_dtype_bits(s) < cd_expr_dtype_bits(t) ||
               /* signed meets unsigned */
               (cd_expr_dtype_bits(s) == cd_expr_dtype_bits(t) &&
                cd_expr_dtype_kind(s) == CD_T_INT)) {
        *a = cd_expr_cast(p, t, *a);
    } else {
        *b = cd_expr_cast(p, s, *b);
    }
}

const cd_expr *cd_expr_bin(cd_expr_pool *p, cd_expr_op op, const cd_expr *a, const cd_expr *b) {
    match_types(p, &a, &b);
    const cd_expr *r = cd_fold_bin(p, op, a, b);
    return r ? r : cd_expr_new_bin(p, op, a, b);
}

const cd_expr *cd_expr_cast(cd_expr_pool *p, cd_dtype t, const cd_expr *a) {
    if (a->type == t) return a;
    if (a->op == CD_INT && !cd_expr_dtype_is_float(t))
        return cd_expr_new_int(p, t, t == CD_BOOL ? a->u.i != 0 : a->u.i);
    if (a->op == CD_INT) return cd_expr_new_float(p, t, (double)a->u.i);
    if (a->op == CD_FLOAT && cd_expr_dtype_is_float(t)) return cd_expr_new_float(p, t, a->u.f);
    if (a->op == CD_FLOAT && fabs(a->u.f) < 9e18) return cd_expr_new_int(p, t, (int64_t)a->u.f);
    return cd_expr_new_cast(p, t, a);
}

/* Counts the operations of a value, by kind and by float or integer: the first columns of a feature
 * row. Index expressions inside loads count too, as in TVM (docs/internals/ansor.md, Feature
 * rows). */

static int binary_slot(cd_expr_op op) {
    switch (op) {
    case CD_ADD:
    case CD_SUB: return CD_CNT_F_ADDSUB;
    case CD_MUL: return CD_CNT_F_MUL;
    case CD_DIV:
    case CD_MOD:
    case CD_FDIV:
    case CD_FMOD: return CD_CNT_F_DIVMOD;
    default: return CD_CNT_F_CMP;
    }
}

static int slot_of(const cd_expr *e) {
    const cd_expr_op op = (cd_expr_op)e->op;
    if (op == CD_AND || op == CD_OR || op == CD_NOT) return CD_CNT_BOOL;
    if (op == CD_SELECT) return CD_CNT_SELECT;
    if (op == CD_CALL) {
        const int k = e->flags & CD_EXPR_PURE ? CD_CNT_F_MATH : CD_CNT_F_OTHER;
        return cd_expr_dtype_is_float(e->type) ? k : k + (CD_CNT_I_ADDSUB - CD_CNT_F_ADDSUB);
    }
    if (!cd_expr_op_is_arith(op) && !cd_expr_op_is_cmp(op)) return -1;
    return binary_slot(op) +
           (cd_expr_dtype_is_float(e->a[0]->type) ? 0 : CD_CNT_I_ADDSUB - CD_CNT_F_ADDSUB);
}

bool cd_opcount_add(cd_opcount *c, const cd_expr *e) {
    if (++c->nodes > CD_OPCOUNT_MAX) return false;
    const int k = slot_of(e);
    if (cd_expr_is_dot4(e)) c->n[CD_CNT_I_MUL] += 4, c->n[CD_CNT_I_ADDSUB] += 3;
    else if (k >= 0) c->n[k]++;
    for (uint32_t i = 0; i < e->n; i++)
        if (e->a[i]->n && !cd_opcount_add(c, e->a[i])) return false;
    return true;
}

/* Substitution of variables and redirection of loads. Memo and replacements are arrays by id and by
 * variable number with a stamp, so starting a new substitution clears nothing. */

void cd_subst_init(cd_subst *s, cd_expr_pool *pool) { *s = (cd_subst){.pool = pool}; }

void cd_subst_free(cd_subst *s) {
    cd_mem_free(s->memo);
    cd_mem_free(s->var);
    *s = (cd_subst){0};
}

void cd_subst_begin(cd_subst *s) {
    if (++s->epoch == 0) {
        if (s->memo) memset(s->memo, 0, s->cap_memo * sizeof *s->memo);
        if (s->var) memset(s->var, 0, s->cap_var * sizeof *s->var);
        s->epoch = 1;
    }
    s->n_set = 0;
    s->load = NULL;
}

static bool reserve(cd_subst_slot **p, uint32_t *cap, uint32_t need) {
    if (need < *cap) return true;
    uint32_t n = *cap ? *cap : 256;
    while (n <= need) n *= 2;
    cd_subst_slot *q = cd_mem_realloc(*p, *cap * sizeof **p, n * sizeof **p);
    if (!q) return false;
    memset(q + *cap, 0, (n - *cap) * sizeof *q);
    *p = q;
    *cap = n;
    return true;
}

void cd_subst_set(cd_subst *s, const cd_expr *var, const cd_expr *to) {
    const uint32_t k = (uint32_t)var->u.i;
    if (var == to) return;
    if (!reserve(&s->var, &s->cap_var, k)) {
        s->oom = true;
        return;
    }
    s->var[k] = (cd_subst_slot){to, s->epoch};
    s->n_set++;
}

/* Subtrees without variables (and, if loads are redirected, without loads) are returned as they
 * are. */
static const cd_expr *apply(cd_subst *s, const cd_expr *e) {
    if (e->op == CD_VAR) {
        const uint32_t k = (uint32_t)e->u.i;
        return k < s->cap_var && s->var[k].stamp == s->epoch ? s->var[k].val : e;
    }
    const unsigned want = CD_EXPR_HAS_VAR | (s->load ? CD_EXPR_HAS_LOAD : 0);
    if (!(e->flags & want)) return e;
    if (!reserve(&s->memo, &s->cap_memo, e->id)) {
        s->oom = true;
        return e;
    }
    if (s->memo[e->id].stamp == s->epoch) return s->memo[e->id].val;
    const cd_expr *small[8], **a = small;
    if (e->n > 8 && !(a = cd_arena_alloc(&s->pool->arena, e->n, sizeof *a))) {
        s->oom = true;
        return e;
    }
    for (uint32_t i = 0; i < e->n; i++) a[i] = apply(s, e->a[i]);
    const cd_expr *r = cd_expr_new_like(s->pool, e, a);
    if (e->op == CD_LOAD && s->load) r = s->load(s->load_ctx, r);
    s->memo[e->id] = (cd_subst_slot){r, s->epoch};
    return r;
}

const cd_expr *cd_subst_apply(cd_subst *s, const cd_expr *e) {
    return s->n_set || s->load ? apply(s, e) : e;
}

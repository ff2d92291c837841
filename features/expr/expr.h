/* The door of features/expr: scalar expressions of tensor programs, hash-consed. Definitions of
 * tasks, indices, bounds and guards are made of them; every later room builds, compares and
 * rewrites them. Also here: their types, variables replaced, operations counted.
 *
 *   (i*8 + j) // 2      FDIV(ADD(MUL(i, 8), j), 2)
 *
 * A pool interns every node it makes, so inside one pool
 *   (1) structurally equal expressions are the same pointer;
 *   (2) ids are dense: base->n <= id < n for own nodes, operands have smaller
 *       ids than the node that uses them;
 *   (3) nodes never change.
 * A pool may stand on a frozen base pool (the task's) whose nodes it reuses;
 * the base may be shared by many threads, a pool belongs to one.
 * cd_expr_pool_reset drops the own nodes and keeps the memory for the next program.
 *
 * cd_expr_new_* builds a node as it is. cd_expr_* builds it through TVM's folding operators
 * (docs/internals/ansor.md, Simplifier): literals fold, x+0, x*1, x//1 ... vanish, operand types
 * are matched.
 *
 * Out of memory is sticky: constructors never return NULL; when memory runs out
 * they set pool->oom and return a harmless literal, so a chain of calls needs
 * one check of pool->oom at its end. */
#ifndef CD_EXPR_H
#define CD_EXPR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/core.h"

/* Scalar types as TVM has them: a kind and a number of bits in 16 bits. Vectors do not occur: loops
 * are vectorized, not types. No state, any thread. */

/* Scalar type: kind in the high byte, bits in the low one. */
typedef uint16_t cd_dtype;
/* TVM's type codes */
enum { CD_T_INT = 0, CD_T_UINT = 1, CD_T_FLOAT = 2, CD_T_HANDLE = 3, CD_T_BFLOAT = 4 };
#define CD_DTYPE(kind, bits) ((cd_dtype)((kind) << 8 | (bits)))
#define CD_I32               CD_DTYPE(CD_T_INT, 32)
#define CD_I64               CD_DTYPE(CD_T_INT, 64)
#define CD_F32               CD_DTYPE(CD_T_FLOAT, 32)
#define CD_BOOL              CD_DTYPE(CD_T_UINT, 1)
static inline unsigned cd_expr_dtype_kind(cd_dtype t) { return t >> 8; }
static inline unsigned cd_expr_dtype_bits(cd_dtype t) { return t & 255U; }
static inline unsigned cd_expr_dtype_bytes(cd_dtype t) { return (cd_expr_dtype_bits(t) + 7) / 8; }
static inline bool cd_expr_dtype_is_float(cd_dtype t) {
    return cd_expr_dtype_kind(t) == CD_T_FLOAT || cd_expr_dtype_kind(t) == CD_T_BFLOAT;
}
/* TVM's index types: signed 32 or 64 bit. Most simplifier rules apply only to them. */
static inline bool cd_expr_dtype_is_index(cd_dtype t) { return t == CD_I32 || t == CD_I64; }
/* "float32", "int32", "bool", "uint1", "handle" -> type. False: unknown, or a vector. */
bool cd_expr_dtype_parse(const char *s, size_t n, cd_dtype *out);
/* The name that cd_expr_dtype_parse reads; 16 letters are enough. Returns buf. */
const char *cd_expr_dtype_format(cd_dtype t, char *buf, size_t n);

/* X(name, printed as, operands; -1 = any number). Order matters: cd_expr_op_is_*. */
#define CD_EXPR_OP_MAP(X)                                                                          \
    X(INT, "int", 0)                                                                               \
    X(FLOAT, "float", 0)                                                                           \
    X(STR, "str", 0)                                                                               \
    X(VAR, "var", 0)                                                                               \
    X(ADD, "+", 2)                                                                                 \
    X(SUB, "-", 2)                                                                                 \
    X(MUL, "*", 2)                                                                                 \
    X(DIV, "/", 2)                                                                                 \
    X(MOD, "%", 2)                                                                                 \
    X(FDIV, "floordiv", 2)                                                                         \
    X(FMOD, "floormod", 2)                                                                         \
    X(MIN, "min", 2)                                                                               \
    X(MAX, "max", 2)                                                                               \
    X(EQ, "==", 2)                                                                                 \
    X(NE, "!=", 2)                                                                                 \
    X(LT, "<", 2)                                                                                  \
    X(LE, "<=", 2)                                                                                 \
    X(GT, ">", 2)                                                                                  \
    X(GE, ">=", 2)                                                                                 \
    X(AND, "&&", 2)                                                                                \
    X(OR, "||", 2)                                                                                 \
    X(NOT, "!", 1)                                                                                 \
    X(SELECT, "select", 3)                                                                         \
    X(CAST, "cast", 1)                                                                             \
    X(CALL, "call", -1)                                                                            \
    X(LOAD, "load", -1)

typedef enum cd_expr_op {
#define CD_X(name, text, arity) CD_##name,
    CD_EXPR_OP_MAP(CD_X)
#undef CD_X
        CD_EXPR_OP_COUNT
} cd_expr_op;

/* DIV and MOD truncate towards zero (C), FDIV and FMOD round down; DIV on floats divides. */
static inline bool cd_expr_op_is_arith(cd_expr_op o) { return o >= CD_ADD && o <= CD_MAX; }
static inline bool cd_expr_op_is_cmp(cd_expr_op o) { return o >= CD_EQ && o <= CD_GE; }
static inline bool cd_expr_op_is_binary(cd_expr_op o) { return o >= CD_ADD && o <= CD_OR; }
const char *cd_expr_op_name(cd_expr_op o); /* "+", "floordiv" ...; "?" for none */

typedef struct cd_expr {
    uint8_t op;    /* cd_expr_op                                                       */
    uint8_t flags; /* CD_EXPR_*                                                   */
    cd_dtype type;
    uint32_t n; /* operands                                                    */
    uint32_t id, hash;
    uint32_t size, depth; /* nodes when unfolded to a tree; levels                   */
    union {
        int64_t i;        /* INT: value (sign-extended; bool 0/1). VAR: variable number.
                         LOAD: tensor number. STR: content is in `name`.             */
        double f;         /* FLOAT                                                       */
        const char *name; /* CALL: operator without "tir.", interned; STR: text      */
    } u;
    const struct cd_expr *a[]; /* (n) operands                                      */
} cd_expr;
/* CALL: TVM effect kind pure or annotation (math_func, not other_func) */
#define CD_EXPR_PURE     1U
#define CD_EXPR_HAS_LOAD 2U /* a LOAD somewhere below or here */
#define CD_EXPR_HAS_VAR  4U /* a VAR somewhere below or here */

/* Walks over expressions may recurse and need no memo: a pool refuses nodes that
 * are deeper or unfold to more. The reference sets need 39 levels, 781 nodes. */
#define CD_EXPR_MAX_DEPTH 1000
#define CD_EXPR_MAX_SIZE  200000

typedef struct cd_expr_pool_slot {
    const cd_expr *e;
    uint32_t hash, stamp; /* taken where stamp == the pool's epoch */
} cd_expr_pool_slot;

#define CD_EXPR_POOL_SMALL 4096
#define CD_EXPR_POOL_MIN   (-128)

typedef struct cd_expr_pool {
    const struct cd_expr_pool *base; /* frozen; NULL for none */
    cd_arena arena;
    cd_expr_pool_slot *slot; /* (cap) open addressing */
    /* (CD_EXPR_POOL_SMALL) int32 literals from CD_EXPR_POOL_MIN on; NULL: not cached */
    cd_expr_pool_slot *small;
    uint32_t cap, used, epoch;
    uint32_t n;     /* next id: base->n + own nodes */
    uint32_t n_var; /* next variable number, starts at base->n_var */
    bool frozen, oom;
    bool big; /* a node was refused: as oom, sticky and harmless */
} cd_expr_pool;

/* An empty pool on `base` (NULL: none). Errors: ENOMEM. */
cdmpp_status cd_expr_pool_init(cd_expr_pool *p, CD_KEEP const cd_expr_pool *base, cdmpp_err *err);
/* Drop all own nodes, keep the memory; `base` replaces the base pool. */
void cd_expr_pool_reset(cd_expr_pool *p, CD_KEEP const cd_expr_pool *base);
/* Find small literals without hashing from now on: for pools that make many. Errors: ENOMEM. */
cdmpp_status cd_expr_pool_cache_ints(cd_expr_pool *p, cdmpp_err *err);
/* From now on read-only and shareable; can only be freed. Shrinks the tables. */
void cd_expr_pool_freeze(cd_expr_pool *p);
void cd_expr_pool_free(cd_expr_pool *p);

/* Nodes as they are, without folding. Literals: an integer wrapped to its type, a real number, a
 * text (copied). */
const cd_expr *cd_expr_new_int(cd_expr_pool *p, cd_dtype t, int64_t v);
const cd_expr *cd_expr_new_float(cd_expr_pool *p, cd_dtype t, double v);
const cd_expr *cd_expr_new_str(cd_expr_pool *p, const char *s);
/* A variable with the given number (from cd_expr_pool_var_number or your own table). */
const cd_expr *cd_expr_new_var(cd_expr_pool *p, cd_dtype t, uint32_t number);
/* A variable of a new number. It is not interned: cd_expr_new_var would make another one. */
const cd_expr *cd_expr_fresh_var(cd_expr_pool *p, cd_dtype t);
static inline uint32_t cd_expr_pool_var_number(cd_expr_pool *p) { return p->n_var++; }
/* Type of arithmetic = type of a; comparisons and logic = bool. */
const cd_expr *cd_expr_new_bin(cd_expr_pool *p, cd_expr_op op, const cd_expr *a, const cd_expr *b);
const cd_expr *cd_expr_new_not(cd_expr_pool *p, const cd_expr *a);
const cd_expr *cd_expr_new_select(cd_expr_pool *p, const cd_expr *c, const cd_expr *t,
                                  const cd_expr *f);
const cd_expr *cd_expr_new_cast(cd_expr_pool *p, cd_dtype t, const cd_expr *a);
/* `name` without "tir."; purity comes from a table of TVM's operators; call_extern,
 * tvm_thread_allreduce ... are not. */
const cd_expr *cd_expr_new_call(cd_expr_pool *p, cd_dtype t, const char *name,
                                const cd_expr *const *a, uint32_t n);
/* Is it "dot4"(x, y)? Both are words of four numbers of 8 bits, of x without and of y with a sign;
 * the value, int32, is the sum of the four products. This intrinsic is ours; it counts as four
 * products and three sums. */
bool cd_expr_is_dot4(const cd_expr *e);
const cd_expr *cd_expr_new_load(cd_expr_pool *p, cd_dtype t, uint32_t tensor,
                                const cd_expr *const *a, uint32_t n);
/* The node `e` with other operands (same count). Returns `e` when they are equal. */
const cd_expr *cd_expr_new_like(cd_expr_pool *p, const cd_expr *e, const cd_expr *const *a);

/* a op b through the folding operators: types are matched first. */
const cd_expr *cd_expr_bin(cd_expr_pool *p, cd_expr_op op, const cd_expr *a, const cd_expr *b);
/* Only the literal cases of cd_expr_bin on operands of equal type; NULL when nothing folds. */
const cd_expr *cd_fold_bin(cd_expr_pool *p, cd_expr_op op, const cd_expr *a, const cd_expr *b);
/* `a` as type t: itself if it has it, a literal at once. */
const cd_expr *cd_expr_cast(cd_expr_pool *p, cd_dtype t, const cd_expr *a);
static inline const cd_expr *cd_expr_int(cd_expr_pool *p, int64_t v) {
    return cd_expr_new_int(p, CD_I32, v);
}

static inline bool cd_expr_is_int(const cd_expr *e) { return e->op == CD_INT; }
static inline bool cd_expr_is_int_value(const cd_expr *e, int64_t v) {
    return e->op == CD_INT && e->u.i == v;
}

/* Floor division and modulo of C integers, b != 0. */
int64_t cd_expr_floordiv(int64_t a, int64_t b);
int64_t cd_expr_floormod(int64_t a, int64_t b);
int64_t cd_expr_gcd(int64_t a, int64_t b); /* not negative; 0 is neutral */

/* Replace variables and loads while rebuilding; memoised over one call chain.
 * `fn` gets each VAR and each LOAD (its operands already rewritten, in e) and
 * returns a replacement or `e` itself; plain rebuild (cd_expr_new_like) elsewhere. */
typedef const cd_expr *(*cd_subst_fn)(void *ctx, const cd_expr *e);
const cd_expr *cd_expr_map(cd_expr_pool *p, cd_arena *scratch, const cd_expr *e, cd_subst_fn fn,
                           void *ctx);

/* Pre-order visit (operands left to right); stops early when fn returns false. */
typedef bool (*cd_visit_fn)(void *ctx, const cd_expr *e);
bool cd_expr_visit(const cd_expr *e, cd_visit_fn fn, void *ctx);

/* Does the variable (a VAR node) occur in e? */
bool cd_expr_uses(const cd_expr *e, const cd_expr *var);

/* Text in TVM's notation, e.g. "((i*8) + j)". Names come from the callback
 * (kind CD_VAR or CD_LOAD, number); appends to `out`. */
typedef struct cd_names {
    const char *(*name)(const void *ctx, cd_expr_op kind, uint32_t number);
    const void *ctx;
} cd_names;
struct cd_buf;
/* The form for people: "True", "exp(x)". */
void cd_expr_print(struct cd_buf *out, const cd_expr *e, const cd_names *names);
/* The same as TVM's repr has it in a printed DAG: "tir.exp(x)", "(bool)1". */
void cd_expr_repr(struct cd_buf *out, const cd_expr *e, const cd_names *names);

/* Operations of one value expression, by kind: docs/internals/ansor.md, Feature rows. */

/* In the order of columns 1..6, 8..13, 14, 15 of a row. */
enum {
    CD_CNT_F_ADDSUB,
    CD_CNT_F_MUL,
    CD_CNT_F_DIVMOD,
    CD_CNT_F_CMP,
    CD_CNT_F_MATH,
    CD_CNT_F_OTHER,
    CD_CNT_I_ADDSUB,
    CD_CNT_I_MUL,
    CD_CNT_I_DIVMOD,
    CD_CNT_I_CMP,
    CD_CNT_I_MATH,
    CD_CNT_I_OTHER,
    CD_CNT_BOOL,
    CD_CNT_SELECT,
    CD_CNT_COUNT
};
/* nodes of one value; more is EUNSUPPORTED, not an hour of counting */
#define CD_OPCOUNT_MAX 10000000U

typedef struct cd_opcount {
    uint32_t n[CD_CNT_COUNT];
    uint32_t nodes;
} cd_opcount;

/* Adds the nodes of `e`, index expressions inside loads included. False: too many. */
bool cd_opcount_add(cd_opcount *c, const cd_expr *e);

/* Replace variables (and redirect loads) in expressions, memoised.
 *
 * A substitution is started, given its replacements, then applied to any number
 * of expressions; starting the next one costs nothing (stamps). Replacements
 * are not substituted again. Nodes are rebuilt as they are, without folding,
 * as TVM's Substitute does. */

typedef struct cd_subst_slot {
    const cd_expr *val;
    uint32_t stamp;
} cd_subst_slot;

typedef struct cd_subst {
    cd_expr_pool *pool;
    cd_subst_slot *memo, *var; /* by expression id; by variable number */
    uint32_t cap_memo, cap_var, epoch, n_set;
    bool oom;
    /* Called for each LOAD after its operands were rewritten; NULL: keep. */
    const cd_expr *(*load)(void *ctx, const cd_expr *e);
    void *load_ctx;
} cd_subst;

/* results are made in `pool`, which is borrowed */
void cd_subst_init(cd_subst *s, cd_expr_pool *pool);
void cd_subst_free(cd_subst *s);
void cd_subst_begin(cd_subst *s); /* a new substitution without replacements */
/* `to` == the variable itself is fine (no change). */
void cd_subst_set(cd_subst *s, const cd_expr *var, const cd_expr *to);
/* `e` with all replacements made. Out of memory: sets oom and returns some valid expression. */
const cd_expr *cd_subst_apply(cd_subst *s, const cd_expr *e);
#endif

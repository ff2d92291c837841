/* The inside of the simplifier, shared by its files.
 *
 *   cd_simplifier (workspace) -> memo[expression id]: what is known in one context
 *   cd_analyzer  (analyzer)  -> var[number], extra bounds, literal constraints
 *                          rw: rewriting walker, cn: canonical walker
 *
 * (1) A context number names one analyzer state: equal numbers, equal states.
 *     Entering a constraint or binding moves to another number; leaving moves
 *     back. A memo entry holds only for the number it was made under.
 * (2) Nothing here frees memory before cd_simplify_reset.
 * (3) No function returns NULL for an expression: when memory (or nesting) runs
 *     out, `oom` is set and some valid expression goes on. */
#ifndef CD_SIMPLIFY_PRIV_H
#define CD_SIMPLIFY_PRIV_H
#include <string.h>

#include "features/simplify/simplify.h"

/* rewrite_rules.def, compiled once per process into flat code.
 *
 *   "x*y+x -> x*(y+1)"   match: r0 = a, r1 = b of the node
 *                               LOAD r0 -> r2 r3; SAME r2 r1
 *                        build: REG r2, REG r3, LIT 1 like r3, BIN +, BIN *
 *
 * Rules are looked up by (operator, domain, operators of the first two
 * operands): `first` points at a 0-terminated run of rule numbers in `list`,
 * in the order of the file. Read-only after cd_rewrite_rules_get. */

enum { CD_DOM_INDEX, CD_DOM_FLOAT, CD_DOM_OTHER, CD_DOM_COUNT };
enum {
    CD_RULE_REGS = 24,  /* registers of one match         */
    CD_RULE_STACK = 16, /* stack of one build             */
    CD_RULE_RECURSIVE = 1,
    CD_RULE_RESIDUE = 2 /* flags    */
};

typedef enum {
    /* match: stop at the first that fails */
    CD_I_OP,    /* r[a] has operator b; its operands go to r[v]...            */
    CD_I_LOAD,  /* the same, operator already known from the lookup           */
    CD_I_INT,   /* r[a] is an integer literal                                 */
    CD_I_LIT,   /* r[a] is the integer literal v                              */
    CD_I_SAME,  /* r[a] == r[b]                                               */
    CD_I_SAMEC, /* literals r[a] and r[b] have equal values                   */
    /* build: an expression stack */
    CD_I_REG,   /* push r[a]                                                  */
    CD_I_CONST, /* push literal v of the type of r[a] (a == 255: of the node) */
    CD_I_BIN,   /* pop two, push folded a                                     */
    CD_I_NOT,
    CD_I_SELECT,
    /* condition: integer stack; proofs take their expression from the other */
    CD_I_VAL,  /* push value of literal r[a] */
    CD_I_NUM,  /* push v */
    CD_I_CALC, /* pop two, push x op y (a: arithmetic or comparison); fails on x % 0 */
    CD_I_TRUE, /* pop, fail if 0 */
    CD_I_GE,   /* pop k, pop expression e: fail unless e >= k is provable */
    CD_I_EQ0,  /* pop expression, fail unless provably 0 */
    CD_I_PURE  /* pop expression, fail unless it only reads */
} cd_rule_op;

typedef struct cd_rule_ins {
    uint8_t k, a, b;
    int8_t v;
} cd_rule_ins;

typedef struct cd_rule {
    uint16_t match, cond, build, end; /* [match, cond) [cond, build) [build, end) in code */
    uint8_t flags;
} cd_rule;

typedef struct cd_rewrite_rules {
    cd_rule *rule; /* rule 0 is unused */
    cd_rule_ins *code;
    uint16_t *list;
    uint32_t *first; /* [op][domain][class of operand 0][class of operand 1] */
    uint32_t n_rule, n_code, n_list;
} cd_rewrite_rules;

/* NULL: out of memory. A malformed table is a bug and aborts. */
const cd_rewrite_rules *cd_rewrite_rules_get(void);

#define CD_RULE_CLASSES (CD_EXPR_OP_COUNT + 1) /* operators + "no such operand" */
static inline const uint16_t *cd_rewrite_rules_find(const cd_rewrite_rules *b, const cd_expr *e,
                                                    unsigned domain) {
    const unsigned k0 = e->a[0]->op, k1 = e->n > 1 ? e->a[1]->op : CD_RULE_CLASSES - 1;
    return b->list +
           b->first[((e->op * CD_DOM_COUNT + domain) * CD_RULE_CLASSES + k0) * CD_RULE_CLASSES +
                    k1];
}

#define CD_SIMPLIFY_MAX_NEST 2000 /* visits inside visits; deeper sets oom, not a stack overflow */
#define CD_REWRITE_DEPTH     5    /* TVM: recursive rules inside recursive rules */

/* ((index % upper) / lower) * scale, truncating or floor division. */
typedef struct cd_iter_split {
    const cd_expr *index;
    int64_t lower, upper, scale; /* upper == CD_INF: no modulo */
    cd_dtype type;
    bool floor;
} cd_iter_split;

/* A sum of splits plus base, or a lone split (is_sum false, n == 1, base 0).
 * Splits of one index stand together, larger `lower` first. */
typedef struct cd_canonsum {
    const cd_expr *norm; /* as an expression, once asked for */
    int64_t base;
    cd_dtype type;
    bool is_sum;
    uint32_t n;
    cd_iter_split s[];
} cd_canonsum;

/* Result of a canonical visit: c, or the plain expression e when c is NULL. */
typedef struct cd_cval {
    const cd_expr *e;
    cd_canonsum *c;
} cd_cval;

/* *_need: recursive-rule levels the result took, or CD_NEED_EXACT | depth when
 * the limit cut it short, so that it holds at that depth only. */
#define CD_NEED_EXACT 0x80U
typedef struct cd_memo {
    uint32_t rw_ctx, cn_ctx, bd_ctx;
    uint8_t rw_need, cn_need;
    const cd_expr *rw;
    cd_cval cn;
    cd_bound bd;
} cd_memo;

/* One of TVM's two simplifier objects. */
typedef struct cd_walker {
    struct cd_analyzer *ana;
    bool canonical, cut; /* cut: the depth limit stopped a recursive rule */
    uint8_t depth, deepest;
} cd_walker;

/* value == coeff * k + base for some k; coeff 0: exactly base. */
typedef struct cd_modular {
    int64_t coeff, base;
} cd_modular;

typedef struct cd_var_info {
    const cd_expr *value; /* stands for the variable; NULL when bound to a range */
    cd_bound bound;
    cd_modular mod;
    bool known; /* else only met: memo entries may rest on not knowing */
} cd_var_info;

typedef struct cd_extra { /* from a constraint: further bounds of one expression */
    const cd_expr *e;
    cd_bound b;
} cd_extra;

typedef struct cd_mod_save { /* modular set of a variable before a constraint */
    uint32_t var;            /* place in cd_analyzer.var */
    cd_modular old;
} cd_mod_save;

typedef struct cd_expr_list {
    const cd_expr **p;
    uint32_t n, cap;
} cd_expr_list;

struct cd_analyzer {
    cd_simplifier *s;
    uint32_t ctx, n_bind;
    bool plain;       /* bounds only, nothing memoised: bindings are free to change */
    cd_var_info *var; /* (n_var) those bound or met, in that order */
    uint16_t *slot;   /* (n_slot) variable number -> its place in var + 1, 0: never met */
    uint32_t n_var, cap_var, n_slot;
    cd_simplify_query_fn ask; /* NULL: only explicit bindings */
    void *ask_ctx;
    cd_extra *extra;
    uint32_t n_extra, cap_extra;
    uint64_t extra_mask; /* bit id % 64 of every expression in extra */
    cd_mod_save *mod;
    uint32_t n_mod, cap_mod;
    cd_expr_list literal, pending;
    cd_walker rw, cn;
};

#define CD_TRANSITIONS 256
typedef struct cd_transition {
    uint32_t from, tag, key[3], to;
} cd_transition;

struct cd_simplifier {
    cd_expr_pool *pool;
    const cd_rewrite_rules *book;
    cd_arena arena;
    cd_memo *memo;
    uint32_t n_memo, root, next_ctx, nest;
    cd_analyzer fresh;
    bool oom;
    cd_transition trans[CD_TRANSITIONS];
};

/* ---- simplify.c ---- */

/* Entry of e, grown on demand; NULL when out of memory. Valid until the next call of anything. */
cd_memo *cd_simplify_memo_grow(cd_simplifier *s, const cd_expr *e);
static inline cd_memo *cd_simplify_memo(cd_simplifier *s, const cd_expr *e) {
    return e->id < s->n_memo ? &s->memo[e->id] : cd_simplify_memo_grow(s, e);
}
/* For "there is no memory (or no stack) for more than e". */
static inline const cd_expr *cd_simplify_give_up(cd_simplifier *s, const cd_expr *e) {
    s->oom = true;
    if (s->nest >= CD_SIMPLIFY_MAX_NEST) s->pool->big = true;
    return e;
}
const cd_expr *cd_simplify_rewrite(cd_analyzer *a, const cd_expr *e); /* at most two visits */
/* A variable that is met for the first time: ask the source, remember. */
const cd_var_info *cd_simplify_var_query(cd_analyzer *a, const cd_expr *e);
/* What is known of a variable; NULL: nothing. */
static inline const cd_var_info *cd_simplify_var(cd_analyzer *a, const cd_expr *e) {
    const uint64_t k = (uint64_t)e->u.i;
    return k < a->n_slot && a->slot[k] ? &a->var[a->slot[k] - 1] : cd_simplify_var_query(a, e);
}
/* Does e >= k, e < k follow from the bounds of e? */
bool cd_simplify_ge(cd_analyzer *a, const cd_expr *e, int64_t k);
bool cd_simplify_lt(cd_analyzer *a, const cd_expr *e, int64_t k);
/* no effect; loads_too: loads count as none */
bool cd_simplify_is_pure(const cd_expr *e, bool loads_too);
static inline bool cd_call_is(const cd_expr *e, const char *name) {
    return e->op == CD_CALL && strcmp(e->u.name, name) == 0;
}

cd_bound cd_const_int_bound(cd_analyzer *a, const cd_expr *e); /* TVM's const_int_bound of e */
cd_bound cd_const_int_bound_type(cd_dtype t);                  /* all values of a type */
cd_modular cd_modular_set(cd_analyzer *a, const cd_expr *e);   /* TVM's modular_set of e */

/* ---- rewrite.c, canonical.c ---- */

typedef enum {
    CD_COMPARE_UNKNOWN,
    CD_COMPARE_EQ,
    CD_COMPARE_GT,
    CD_COMPARE_GE,
    CD_COMPARE_LT,
    CD_COMPARE_LE,
    CD_COMPARE_NE
} cd_compare;
/* `e` rewritten, with memo; a variable by what it is bound to. */
const cd_expr *cd_rewrite_visit(cd_walker *w, const cd_expr *e);
const cd_expr *cd_rewrite_var(cd_walker *w, const cd_expr *e);
/* Visit one node by the rewriting rules, children by `w`; no memo. */
const cd_expr *cd_rewrite_node(cd_walker *w, const cd_expr *e);
/* How e compares with v, as far as literals, bounds and modular sets say. */
cd_compare cd_rewrite_compare(cd_walker *w, const cd_expr *e, int64_t v);
/* `e` in canonical form, and by whichever of the two simplifiers w is. */
const cd_expr *cd_canonical_visit(cd_walker *w, const cd_expr *e);
static inline const cd_expr *cd_walk(cd_walker *w, const cd_expr *e) {
    return w->canonical ? cd_canonical_visit(w, e) : cd_rewrite_visit(w, e);
}

/* May a memo entry be used at the walker's present depth? Notes what it took. */
static inline bool cd_walker_reuse(cd_walker *w, uint8_t need) {
    if (need & CD_NEED_EXACT) {
        if ((need & ~CD_NEED_EXACT) != w->depth) return false;
        w->cut = true;
        return true;
    }
    if (w->depth + need > CD_REWRITE_DEPTH) return false;
    if (w->depth + need > w->deepest) w->deepest = (uint8_t)(w->depth + need);
    return true;
}
typedef struct {
    uint8_t deepest;
    bool cut;
} cd_walker_frame;
static inline cd_walker_frame cd_walker_begin(cd_walker *w) {
    const cd_walker_frame f = {w->deepest, w->cut};
    w->deepest = w->depth;
    w->cut = false;
    return f;
}
static inline uint8_t cd_walker_end(cd_walker *w, cd_walker_frame f) {
    const uint8_t need =
        (uint8_t)(w->cut ? CD_NEED_EXACT | w->depth : (unsigned)(w->deepest - w->depth));
    if (f.deepest > w->deepest) w->deepest = f.deepest;
    w->cut = w->cut || f.cut;
    return need;
}

/* Two's complement arithmetic, as TVM's C++ does in practice. */
static inline int64_t cd_wrap_add(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static inline int64_t cd_wrap_sub(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a - (uint64_t)b);
}
static inline int64_t cd_wrap_mul(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a * (uint64_t)b);
}
/* C's / and % without the trap of INT64_MIN / -1; b != 0. */
static inline int64_t cd_trunc_div(int64_t a, int64_t b) {
    return b == -1 ? cd_wrap_sub(0, a) : a / b;
}
static inline int64_t cd_trunc_mod(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }

/* Sums of ((index % upper) // lower) * scale plus a constant: the normal form of the canonical
 * simplifier.
 *
 *   i*8 + (i%8) + j//4 + 3     splits (i, 1, inf, 8)  (i, 1, 8, 1)  (j, 4, inf, 1)     base 3
 *
 * Splits of one index stand together, larger `lower` first. Private to canonical.c and
 * canonical.c. */

static inline cd_simplifier *cd_canonsum_simp(const cd_walker *w) { return w->ana->s; }

static inline const cd_expr *cd_canonsum_bin(const cd_walker *w, cd_expr_op op, const cd_expr *a,
                                             const cd_expr *b) {
    return cd_expr_bin(cd_canonsum_simp(w)->pool, op, a, b);
}

/* a op literal v, the literal of type t. */
static inline const cd_expr *cd_canonsum_bin_literal(const cd_walker *w, cd_expr_op op,
                                                     const cd_expr *a, cd_dtype t, int64_t v) {
    return cd_canonsum_bin(w, op, a, cd_expr_new_int(cd_canonsum_simp(w)->pool, t, v));
}

static inline const cd_expr *cd_canonsum_int(const cd_walker *w, cd_dtype t, int64_t v) {
    return cd_expr_new_int(cd_canonsum_simp(w)->pool, t, v);
}
static inline cd_cval cd_canonsum_plain(const cd_expr *e) { return (cd_cval){e, NULL}; }
static inline bool cd_canonsum_is_literal(cd_cval v) { return !v.c && v.e->op == CD_INT; }
static inline cd_iter_split cd_canonsum_expr_split(const cd_expr *e) {
    return (cd_iter_split){e, 1, CD_INF, 1, e->type, false};
}
#endif

/* The door of features/simplify: TVM v0.9's arithmetic analyzer and simplifier
 * (docs/internals/ansor.md, Simplifier). Bounds of stages, guards and the final indices of a nest
 * go through it. Further header of the room: intset.h (intervals of expressions).
 *
 *   simplify(e) = canonical(rewrite(e))
 *
 * The exact form of its results decides integer operation counts, regions and
 * strides, so it follows TVM rule by rule.
 *
 * A workspace holds the memory and the memo tables of one thread; analyzers
 * are cheap values on top of it: variable bindings plus active constraints.
 * Results are memoised by (expression, analyzer context). Out of memory is
 * sticky, as in expr.h: the answer is then useless but safe, and cd_simplify_oom
 * returns true. */
#ifndef CD_SIMPLIFY_H
#define CD_SIMPLIFY_H
#include "features/expr/expr.h"

#define CD_INF     INT64_MAX
#define CD_NEG_INF (-INT64_MAX)

typedef struct cd_bound {
    int64_t lo, hi; /* inclusive; CD_NEG_INF / CD_INF when unknown */
} cd_bound;
/* Sum and product that stop at the infinities; the least range that holds both. */
int64_t cd_const_int_bound_add(int64_t x, int64_t y);
int64_t cd_const_int_bound_mul(int64_t x, int64_t y);
cd_bound cd_const_int_bound_unite(cd_bound a, cd_bound b);

typedef struct cd_simplifier cd_simplifier; /* workspace */
typedef struct cd_analyzer cd_analyzer;     /* analyzer */

/* A workspace whose results are made in `pool`. Errors: ENOMEM. */
cdmpp_status cd_simplify_new(CD_KEEP cd_expr_pool *pool, CD_GIVE cd_simplifier **out,
                             cdmpp_err *err);
void cd_simplify_free(CD_TAKE cd_simplifier *s); /* NULL is fine */
/* Call after cd_expr_pool_reset: forget memos, drop all analyzers. */
void cd_simplify_reset(cd_simplifier *s);
bool cd_simplify_oom(const cd_simplifier *s);

/* An analyzer without bindings, valid until cd_simplify_reset. Wherever TVM makes a new analyzer
 * that it binds nothing to, this one serves: all analyzers without bindings are equal. */
cd_analyzer *cd_simplify_fresh_analyzer(cd_simplifier *s);
/* A new analyzer of one's own, valid until cd_simplify_reset. */
cd_analyzer *cd_simplify_analyzer_new(cd_simplifier *s);

/* An analyzer for cd_simplify_bound alone, whose bindings may change at any time: it
 * remembers no results. */
cd_analyzer *cd_simplify_analyzer_new_plain(cd_simplifier *s);
/* plain analyzers */
void cd_simplify_set_bound(cd_analyzer *a, const cd_expr *var, int64_t lo, int64_t hi);

/* var in [min, min+extent); extent literally 1 binds var := min. A later
 * binding of the same variable replaces the earlier one. */
void cd_simplify_bind(cd_analyzer *a, const cd_expr *var, const cd_expr *min,
                      const cd_expr *extent);

/* Let the analyzer ask for a variable the first time that it meets it: `ask`
 * returns false (nothing is known, and the answer is final) or gives the range.
 * For a new analyzer; explicit bindings go on working. */
typedef bool (*cd_simplify_query_fn)(void *ctx, const cd_expr *var, const cd_expr **min,
                                     const cd_expr **extent);
void cd_simplify_set_query(cd_analyzer *a, cd_simplify_query_fn ask, void *ctx);

/* TVM's Simplify: rewrite, then canonical form. */
const cd_expr *cd_simplify_expr(cd_analyzer *a, const cd_expr *e);
/* Constant bounds of e over the bound variables and active constraints. */
cd_bound cd_simplify_bound(cd_analyzer *a, const cd_expr *e);
/* Is `cond` a literal that is not zero, or simplified to one? */
bool cd_simplify_prove(cd_analyzer *a, const cd_expr *cond);
/* Does e >= k follow from the bounds of e after rewriting? Weaker and cheaper than
 * cd_simplify_prove. */
bool cd_simplify_prove_ge(cd_analyzer *a, const cd_expr *e, int64_t k);

/* Enter a constraint (a bool expression); returns the token for leave. Strictly nested. */
typedef struct cd_constraint {
    uint32_t n_bound, n_literal, n_mod, n_bind, ctx;
} cd_constraint;
/* While entered, `cond` is known to hold: its bounds narrow, and it simplifies to true itself. */
cd_constraint cd_constraint_enter(cd_analyzer *a, const cd_expr *cond);
void cd_constraint_leave(cd_analyzer *a, cd_constraint c);

/* Intervals of expressions (docs/internals/ansor.md, Bounds).
 *
 * [lo, hi] with symbolic ends; an end that is CD_INTSET_INF is infinite (lo: minus,
 * hi: plus). A set is a point when both ends are equal or provably so. */

typedef struct cd_intset {
    const cd_expr *lo, *hi;
} cd_intset;
extern const cd_expr cd_intset_inf_node;
#define CD_INTSET_INF (&cd_intset_inf_node)

/* The sets of variables while evaluating; a dozen entries, searched linearly. */
typedef struct cd_intset_var {
    const cd_expr *var;
    cd_intset set;
} cd_intset_var;

typedef struct cd_intset_env {
    const cd_intset_var *dom; /* (n); or NULL and: */
    const cd_intset *by_var;  /* (n_var) by variable number, lo NULL: not in the domain */
    uint32_t n, n_var;        /* n also bounds the recursion, as in TVM */
    cd_analyzer *ana;         /* for proofs about signs */
    cd_analyzer *fresh;       /* analyzer without bindings */
    cd_expr_pool *pool;
    uint32_t depth; /* scratch, start at 0 */
} cd_intset_env;

static inline cd_intset cd_intset_point(const cd_expr *e) { return (cd_intset){e, e}; }
static inline cd_intset cd_intset_all(void) { return (cd_intset){CD_INTSET_INF, CD_INTSET_INF}; }
static inline bool cd_intset_finite(cd_intset s) {
    return s.lo != CD_INTSET_INF && s.hi != CD_INTSET_INF;
}

/* All values of e while the variables run over their sets. */
cd_intset cd_intset_eval(cd_intset_env *env, const cd_expr *e);
/* [min, min + extent - 1]; a point if the extent is literally 1. */
cd_intset cd_intset_range(cd_expr_pool *p, const cd_expr *min, const cd_expr *extent);
/* Are both ends the same object, or provably equal? */
bool cd_intset_is_point(cd_expr_pool *p, cd_analyzer *fresh, cd_intset s);
/* Union of several sets: start with {0}, add, get. The ends are simplified, unless there was just
 * one set. */
typedef struct cd_intset_union {
    cd_intset s;
    uint32_t n;
} cd_intset_union;
/* One more set; the result. */
void cd_intset_union_add(cd_expr_pool *p, cd_intset_union *u, cd_intset s);
cd_intset cd_intset_union_get(cd_analyzer *fresh, const cd_intset_union *u);
/* [min, extent) around the set; false: infinite, use the declared domain. */
bool cd_intset_cover(cd_expr_pool *p, cd_analyzer *fresh, cd_intset s, const cd_expr **min,
                     const cd_expr **extent);
/* Provably the whole range? */
bool cd_intset_matches(cd_expr_pool *p, cd_analyzer *fresh, cd_intset s, const cd_expr *min,
                       const cd_expr *extent);
#endif

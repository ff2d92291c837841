/* The door of features/simplify: TVM v0.9's arithmetic analyzer and simplifier (docs/internals/ansor.md, Simplifier). Bounds of
 * stages, guards and the final indices of a nest go through it. Further header of the room: intset.h (intervals of expressions).
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

#define CD_INF INT64_MAX
#define CD_NEG_INF (-INT64_MAX)

typedef struct cd_bound {
    int64_t lo, hi; /* inclusive; CD_NEG_INF / CD_INF when unknown */
} cd_bound;

typedef struct cd_simplifier cd_simplifier; /* workspace */
typedef struct cd_analyzer cd_analyzer;   /* analyzer */

/* A workspace whose results are made in `pool`. Errors: ENOMEM. */
cdmpp_status cd_simplify_new(CD_KEEP cd_expr_pool *pool, CD_GIVE cd_simplifier **out, cdmpp_err *err);
void cd_simplify_free(CD_TAKE cd_simplifier *s); /* NULL is fine */
/* Call after cd_expr_pool_reset: forget memos, drop all analyzers. */
void cd_simplify_reset(cd_simplifier *s);
bool cd_simplify_oom(const cd_simplifier *s);

/* An analyzer without bindings, valid until cd_simplify_reset. Wherever TVM makes a new analyzer that it
 * binds nothing to, this one serves: all analyzers without bindings are equal. */
cd_analyzer *cd_simplify_fresh_analyzer(cd_simplifier *s);
/* A new analyzer of one's own, valid until cd_simplify_reset. */
cd_analyzer *cd_simplify_analyzer_new(cd_simplifier *s);

/* An analyzer for cd_simplify_bound alone, whose bindings may change at any time: it
 * remembers no results. */
cd_analyzer *cd_simplify_analyzer_new_plain(cd_simplifier *s);
void cd_simplify_set_bound(cd_analyzer *a, const cd_expr *var, int64_t lo, int64_t hi); /* plain analyzers */

/* var in [min, min+extent); extent literally 1 binds var := min. A later
 * binding of the same variable replaces the earlier one. */
void cd_simplify_bind(cd_analyzer *a, const cd_expr *var, const cd_expr *min, const cd_expr *extent);

/* Let the analyzer ask for a variable the first time that it meets it: `ask`
 * returns false (nothing is known, and the answer is final) or gives the range.
 * For a new analyzer; explicit bindings go on working. */
typedef bool (*cd_simplify_query_fn)(void *ctx, const cd_expr *var, const cd_expr **min, const cd_expr **extent);
void cd_simplify_set_query(cd_analyzer *a, cd_simplify_query_fn ask, void *ctx);

/* TVM's Simplify: rewrite, then canonical form. */
const cd_expr *cd_simplify_expr(cd_analyzer *a, const cd_expr *e);
/* Constant bounds of e over the bound variables and active constraints. */
cd_bound cd_simplify_bound(cd_analyzer *a, const cd_expr *e);
/* Is `cond` a literal that is not zero, or simplified to one? */
bool cd_simplify_prove(cd_analyzer *a, const cd_expr *cond);
/* Does e >= k follow from the bounds of e after rewriting? Weaker and cheaper than cd_simplify_prove. */
bool cd_simplify_prove_ge(cd_analyzer *a, const cd_expr *e, int64_t k);

/* Enter a constraint (a bool expression); returns the token for leave. Strictly nested. */
typedef struct cd_constraint {
    uint32_t n_bound, n_literal, n_mod, n_bind, ctx;
} cd_constraint;
/* While entered, `cond` is known to hold: its bounds narrow, and it simplifies to true itself. */
cd_constraint cd_constraint_enter(cd_analyzer *a, const cd_expr *cond);
void cd_constraint_leave(cd_analyzer *a, cd_constraint c);

/* The other headers of the room that are open to other rooms. */
#include "features/simplify/intset.h"
#endif

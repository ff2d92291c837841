/* Intervals of expressions (docs/internals/ansor.md, Bounds).
 *
 * [lo, hi] with symbolic ends; an end that is CD_INTSET_INF is infinite (lo: minus,
 * hi: plus). A set is a point when both ends are equal or provably so. */
#ifndef CD_INTSET_H
#define CD_INTSET_H
#include "features/simplify/simplify.h"

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
    uint32_t n, n_var;     /* n also bounds the recursion, as in TVM */
    cd_analyzer *ana;           /* for proofs about signs */
    cd_analyzer *fresh;         /* analyzer without bindings */
    cd_expr_pool *pool;
    uint32_t depth;        /* scratch, start at 0 */
} cd_intset_env;

static inline cd_intset cd_intset_point(const cd_expr *e) { return (cd_intset){e, e}; }
static inline cd_intset cd_intset_all(void) { return (cd_intset){CD_INTSET_INF, CD_INTSET_INF}; }
static inline bool cd_intset_finite(cd_intset s) { return s.lo != CD_INTSET_INF && s.hi != CD_INTSET_INF; }

/* All values of e while the variables run over their sets. */
cd_intset cd_intset_eval(cd_intset_env *env, const cd_expr *e);
/* [min, min + extent - 1]; a point if the extent is literally 1. */
cd_intset cd_intset_range(cd_expr_pool *p, const cd_expr *min, const cd_expr *extent);
/* Are both ends the same object, or provably equal? */
bool cd_intset_is_point(cd_expr_pool *p, cd_analyzer *fresh, cd_intset s);
/* Union of several sets: start with {0}, add, get. The ends are simplified, unless there was just one set. */
typedef struct cd_intset_union {
    cd_intset s;
    uint32_t n;
} cd_intset_union;
/* One more set; the result. */
void cd_intset_union_add(cd_expr_pool *p, cd_intset_union *u, cd_intset s);
cd_intset cd_intset_union_get(cd_analyzer *fresh, const cd_intset_union *u);
/* [min, extent) around the set; false: infinite, use the declared domain. */
bool cd_intset_cover(cd_expr_pool *p, cd_analyzer *fresh, cd_intset s, const cd_expr **min, const cd_expr **extent);
/* Provably the whole range? */
bool cd_intset_matches(cd_expr_pool *p, cd_analyzer *fresh, cd_intset s, const cd_expr *min, const cd_expr *extent);
#endif

/* intset -- intervals of expressions (spec 5.3).
 *
 * [lo, hi] with symbolic ends; an end that is CD_SET_INF is infinite (lo: minus,
 * hi: plus). A set is a point when both ends are equal or provably so. */
#ifndef CD_INTSET_H
#define CD_INTSET_H
#include "features/simplify/simplify.h"

typedef struct cd_set {
    const cd_expr *lo, *hi;
} cd_set;
extern const cd_expr cd_set_inf_node;
#define CD_SET_INF (&cd_set_inf_node)

/* The sets of variables while evaluating; a dozen entries, searched linearly. */
typedef struct cd_set_var {
    const cd_expr *var;
    cd_set set;
} cd_set_var;

typedef struct cd_set_env {
    const cd_set_var *dom; /* (n); or NULL and: */
    const cd_set *by_var;  /* (n_var) by variable number, lo NULL: not in the domain */
    uint32_t n, n_var;     /* n also bounds the recursion, as in TVM */
    cd_ana *ana;           /* for proofs about signs */
    cd_ana *fresh;         /* analyzer without bindings */
    cd_pool *pool;
    uint32_t depth;        /* scratch, start at 0 */
} cd_set_env;

static inline cd_set cd_set_point(const cd_expr *e) { return (cd_set){e, e}; }
static inline cd_set cd_set_all(void) { return (cd_set){CD_SET_INF, CD_SET_INF}; }
static inline bool cd_set_finite(cd_set s) { return s.lo != CD_SET_INF && s.hi != CD_SET_INF; }

cd_set cd_set_eval(cd_set_env *env, const cd_expr *e);
cd_set cd_set_range(cd_pool *p, const cd_expr *min, const cd_expr *extent);
bool cd_set_is_point(cd_pool *p, cd_ana *fresh, cd_set s);
/* Union of several sets: bounds simplified, unless there is just one. */
typedef struct cd_set_union {
    cd_set s;
    uint32_t n;
} cd_set_union;
void cd_set_unite(cd_pool *p, cd_set_union *u, cd_set s);
cd_set cd_set_united(cd_ana *fresh, const cd_set_union *u);
/* [min, extent) around the set; false: infinite, use the declared domain. */
bool cd_set_cover(cd_pool *p, cd_ana *fresh, cd_set s, const cd_expr **min, const cd_expr **extent);
/* Provably the whole range? */
bool cd_set_matches(cd_pool *p, cd_ana *fresh, cd_set s, const cd_expr *min, const cd_expr *extent);
#endif

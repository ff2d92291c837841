/* Sums of ((index % upper) // lower) * scale plus a constant: the normal form of the canonical simplifier.
 *
 *   i*8 + (i%8) + j//4 + 3     splits (i, 1, inf, 8)  (i, 1, 8, 1)  (j, 4, inf, 1)     base 3
 *
 * Splits of one index stand together, larger `lower` first. Private to canonical.c and canonsum.c. */
#ifndef CD_CANONSUM_H
#define CD_CANONSUM_H
#include "features/simplify/simplify_internal.h"

static inline cd_simplifier *cd_canonsum_simp(const cd_walker *w) { return w->ana->s; }

static inline const cd_expr *cd_canonsum_bin(const cd_walker *w, cd_expr_op op, const cd_expr *a, const cd_expr *b) {
    return cd_expr_bin(cd_canonsum_simp(w)->pool, op, a, b);
}

/* a op literal v, the literal of type t. */
static inline const cd_expr *cd_canonsum_bin_literal(const cd_walker *w, cd_expr_op op, const cd_expr *a, cd_dtype t, int64_t v) {
    return cd_canonsum_bin(w, op, a, cd_expr_new_int(cd_canonsum_simp(w)->pool, t, v));
}

static inline const cd_expr *cd_canonsum_int(const cd_walker *w, cd_dtype t, int64_t v) { return cd_expr_new_int(cd_canonsum_simp(w)->pool, t, v); }
static inline cd_cval cd_canonsum_plain(const cd_expr *e) { return (cd_cval){e, NULL}; }
static inline bool cd_canonsum_is_literal(cd_cval v) { return !v.c && v.e->op == CD_INT; }
static inline cd_iter_split cd_canonsum_expr_split(const cd_expr *e) { return (cd_iter_split){e, 1, CD_INF, 1, e->type, false}; }

/* Back to expressions: k times a split; a sum with its terms merged and sorted; whatever v is (remembered in v.c->norm). */
const cd_expr *cd_canonsum_split_to_expr(const cd_walker *w, const cd_iter_split *s, int64_t k);
const cd_expr *cd_canonsum_sum_to_expr(const cd_walker *w, const cd_canonsum *c);
const cd_expr *cd_canonsum_to_expr(const cd_walker *w, cd_cval v);
/* An empty sum with room for that many splits. NULL: out of memory, and s->oom is set. */
cd_canonsum *cd_canonsum_new(const cd_walker *w, cd_dtype t, uint32_t room);
/* v as one split (a sum becomes an opaque index), a split as a value (e: what to fall back on), v as a new sum with room for
 * `more` further splits (NULL: out of memory). */
cd_iter_split cd_canonsum_to_split(const cd_walker *w, cd_cval v);
cd_cval cd_canonsum_from_split(const cd_walker *w, cd_iter_split s, const cd_expr *e);
cd_canonsum *cd_canonsum_to_sum(const cd_walker *w, cd_cval v, uint32_t more);
/* In place: c += k * o (there must be room), c *= k, c /= v where v divides every term. */
void cd_canonsum_add_split(cd_canonsum *c, cd_iter_split o, int64_t k);
void cd_canonsum_scale(cd_canonsum *c, int64_t k);
void cd_canonsum_divide_exactly(cd_canonsum *c, int64_t v);
/* s / v and s % v for v > 0, rounding down or toward zero. */
cd_iter_split cd_canonsum_split_div(const cd_walker *w, cd_iter_split s, int64_t v, bool floor);
cd_iter_split cd_canonsum_split_mod(cd_walker *w, cd_iter_split s, int64_t v, bool floor);
#endif

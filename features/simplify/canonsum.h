/* canonsum -- sums of ((index % upper) / lower) * scale, the normal form of the
 * canonical simplifier, and back to expressions (spec 5.9.5). Private to
 * canonical.c and canonsum.c. */
#ifndef CD_CANONSUM_H
#define CD_CANONSUM_H
#include "features/simplify/simplify_internal.h"

static inline cd_simp *cd_cn_simp(const cd_walker *w) { return w->ana->s; }

static inline const cd_expr *cd_cn_mk(const cd_walker *w, cd_op op, const cd_expr *a, const cd_expr *b) {
    return cd_mk_bin(cd_cn_simp(w)->pool, op, a, b);
}

/* a op literal v, the literal of type t. */
static inline const cd_expr *cd_cn_mk_lit(const cd_walker *w, cd_op op, const cd_expr *a, cd_dtype t, int64_t v) {
    return cd_cn_mk(w, op, a, cd_new_int(cd_cn_simp(w)->pool, t, v));
}

static inline const cd_expr *cd_cn_mk_int(const cd_walker *w, cd_dtype t, int64_t v) { return cd_new_int(cd_cn_simp(w)->pool, t, v); }
static inline cd_cval cd_cn_plain(const cd_expr *e) { return (cd_cval){e, NULL}; }
static inline bool cd_cn_literal(cd_cval v) { return !v.c && v.e->op == CD_INT; }
static inline cd_iter_split cd_cn_expr_split(const cd_expr *e) { return (cd_iter_split){e, 1, CD_INF, 1, e->type, false}; }

const cd_expr *cd_cn_split_norm(const cd_walker *w, const cd_iter_split *s, int64_t k);
const cd_expr *cd_cn_sum_norm(const cd_walker *w, const cd_canon *c);
const cd_expr *cd_cn_norm(const cd_walker *w, cd_cval v);
cd_canon *cd_cn_new(const cd_walker *w, cd_dtype t, uint32_t room);
cd_iter_split cd_cn_to_split(const cd_walker *w, cd_cval v);
cd_cval cd_cn_from_split(const cd_walker *w, cd_iter_split s, const cd_expr *e);
cd_canon *cd_cn_to_sum(const cd_walker *w, cd_cval v, uint32_t more);
void cd_cn_add_split(cd_canon *c, cd_iter_split o, int64_t k);
void cd_cn_scale(cd_canon *c, int64_t k);
void cd_cn_divide_exactly(cd_canon *c, int64_t v);
cd_iter_split cd_cn_split_div(const cd_walker *w, cd_iter_split s, int64_t v, bool floor);
cd_iter_split cd_cn_split_mod(cd_walker *w, cd_iter_split s, int64_t v, bool floor);
#endif

/* codegen_affine -- index expressions as sums, with what is known of the loop variables put in.
 *
 *   (i*28 + j) // 14,  j = 15 (unrolled)   ──>   2*i + 1
 *
 *   a variable is  itself            a loop of the text
 *                  a number          this copy of an unrolled loop
 *                  number + lane     a run of elements handled as one vector
 *                  itself + lane     the same in a loop over such runs
 *
 *   (1) an affine form is c + sum of k*atom; an atom is a variable or an expression that is
 *       not linear (a quotient, a load, a selection), rebuilt under the same knowledge;
 *   (2) atoms of one form differ, no k is 0, atoms are in order of their ids.
 * Expressions made live in the environment's own pool. One thread. */
#ifndef CD_CODEGEN_AFFINE_H
#define CD_CODEGEN_AFFINE_H
#include "profiler/codegen/code/codegen_range.h"

#define CD_CODEGEN_MAX_AFFINE 40

typedef struct cd_codegen_affine_term {
    int64_t k;
    const cd_expr *atom;
} cd_codegen_affine_term;

typedef struct cd_codegen_affine {
    int64_t c;
    uint32_t n;
    cd_codegen_affine_term t[CD_CODEGEN_MAX_AFFINE];
} cd_codegen_affine;

typedef struct cd_codegen_env {
    cd_expr_pool pool;
    uint32_t n_var;             /* of the nest; number n_var is the lane */
    struct cd_codegen_env_var { bool fixed, lane, both; int64_t value; } *var; /* both: the variable plus the lane */
    cd_bound *bound;            /* (n_var + 1) */
    cd_codegen_ranges ranges;
    bool many;                  /* a form had too many terms: EUNSUPPORTED, sticky */
} cd_codegen_env;

/* All variables stand for themselves, with the ranges of their loops. Errors: ENOMEM. */
cdmpp_status cd_codegen_env_init(cd_codegen_env *v, const cd_ast *ast, uint32_t n_var, cdmpp_err *err);
void cd_codegen_env_free(cd_codegen_env *v); /* zeroes it */
/* EUNSUPPORTED or ENOMEM if anything went wrong since init. */
cdmpp_status cd_codegen_env_check(const cd_codegen_env *v, cdmpp_err *err);

static inline bool cd_codegen_env_is_lane(const cd_codegen_env *v, const cd_expr *e) { return e->op == CD_VAR && e->u.i == (int64_t)v->n_var; }
/* Does the lane occur in e (made by cd_codegen_env_apply)? */
bool cd_codegen_env_has_lane(const cd_codegen_env *v, const cd_expr *e);
void cd_codegen_env_set_lanes(cd_codegen_env *v, int64_t n); /* range of the lane: [0, n-1] */

/* e with the known values put in and index arithmetic simplified; as an expression, and as an affine form. */
const cd_expr *cd_codegen_env_apply(cd_codegen_env *v, const cd_expr *e);
void cd_codegen_env_affine(cd_codegen_env *v, const cd_expr *e, cd_codegen_affine *out);
/* The same of an expression that cd_codegen_env_apply made. */
void cd_codegen_env_affine_applied(cd_codegen_env *v, const cd_expr *e, cd_codegen_affine *out);
/* The form as an expression of type t; to += times * from; the range of its values. */
void cd_codegen_affine_add(cd_codegen_env *v, cd_codegen_affine *to, const cd_codegen_affine *from, int64_t times);
cd_bound cd_codegen_affine_range(const cd_codegen_env *v, const cd_codegen_affine *a);
/* *a = a floordiv d, a floormod d; d > 0. */
void cd_codegen_affine_divide(cd_codegen_env *v, cd_dtype t, cd_codegen_affine *a, int64_t d);
void cd_codegen_affine_modulo(cd_codegen_env *v, cd_dtype t, cd_codegen_affine *a, int64_t d);
#endif

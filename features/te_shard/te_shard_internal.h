/* What a shard needs of each operator, and how expressions are moved. Private to the room.
 *
 *   backward: boxes, in the whole's coordinates
 *     y[0:20] ──need──> pad_temp[0:22] ──need──> x[0:21]
 *   forward: the part's expressions
 *     x, pad_temp, y  ──move──>  axis := axis + lo, index := index - lo of what is read
 *
 * Spans are inclusive and in the whole's coordinates; expressions are the whole's until they are
 * moved. */
#ifndef CD_TE_SHARD_INTERNAL_H
#define CD_TE_SHARD_INTERNAL_H
#include "features/te_shard/te_shard.h"

#define CD_TE_SHARD_FAR ((int64_t)1 << 60)
enum { CD_TE_SHARD_TERMS = 10 };

typedef struct cd_te_shard_span {
    int64_t lo, hi;
} cd_te_shard_span;

typedef struct cd_te_shard_var {
    uint32_t number;
    int64_t shift; /* the whole's variable = the shard's + shift */
    cd_te_shard_span s;
} cd_te_shard_var;

/* What is known of the variables where an expression stands. */
typedef struct cd_te_shard_env {
    uint32_t n;
    cd_te_shard_var *v; /* (n) axes, then raxes */
} cd_te_shard_env;

/* c + sum of k * atom: a variable, or what is no sum of those. */
typedef struct cd_te_shard_term {
    const cd_expr *atom; /* NULL: equal to no other */
    int64_t k;
    cd_te_shard_span s;
} cd_te_shard_term;
typedef struct cd_te_shard_affine {
    int64_t c;
    uint32_t n;
    cd_te_shard_term t[CD_TE_SHARD_TERMS];
} cd_te_shard_affine;

/* ---- te_shard_range.c ---- */
/* All values that e can have lie in it; for sums of multiples, quotients and remainders as TOPI
 * writes them it is the smallest. */
cd_te_shard_span cd_te_shard_range(const cd_te_shard_env *env, const cd_expr *e);
/* Narrow the variables to where `cond` is `truth`, as far as that can be derived; false: it never
 * is. */
bool cd_te_shard_assume(cd_te_shard_env *env, const cd_expr *cond, bool truth);
/* Of an if_then_else: which branches are ever taken; then_env, else_env (copies in `a`) are what
 * holds there. False: no memory. */
typedef struct cd_te_shard_fork {
    cd_te_shard_env then_env, else_env;
    bool takes_then, takes_else; /* false only of a branch that reads something */
} cd_te_shard_fork;
bool cd_te_shard_is_fork(const cd_expr *e); /* an if_then_else that reads something */
bool cd_te_shard_fork_make(const cd_te_shard_env *env, const cd_expr *e, cd_arena *a,
                           cd_te_shard_fork *out);

/* ---- te_shard.c ---- */
typedef struct cd_te_shard_footprint {
    const cd_te_dag *dag;
    cd_arena *a;                               /* scratch */
    const struct cd_te_shard_footprint *whole; /* NULL: this is what the whole reads */
    uint32_t result;                           /* operator */
    /* its value is given, so what it reads is not needed; UINT32_MAX: none */
    uint32_t given;
    uint32_t cut_op, cut_raxis; /* of a sum; UINT32_MAX: none */
    int64_t lo, hi;
    cd_te_shard_span *read; /* (n_op, CD_BOX_RANK) what is read; lo > hi: nothing */
    bool *live;             /* (n_op) */
    cd_box *box;            /* (n_op) of the live ones */
    /* (n_op) operators read, one for each tensor in the order of first occurrence */
    uint32_t **in, *n_in;
    uint32_t *seen; /* (n_tensor) reader + 1 */
    cdmpp_err *err;
} cd_te_shard_footprint;

/* Boxes of all operators that `box` of the result needs; dag, a, whole, given, cut_* and err are
 * set. Errors: EUNSUPPORTED, ENOMEM. */
cdmpp_status cd_te_shard_footprint_grow(cd_te_shard_footprint *n, uint32_t result,
                                        const cd_box *box);
/* What the whole reads. */
cdmpp_status cd_te_shard_footprint_whole(const cd_te_dag *dag, cd_arena *a, uint32_t result,
                                         uint32_t given, cd_te_shard_footprint *out,
                                         cdmpp_err *err);
/* The variables of operator i where its expressions are evaluated. */
cdmpp_status cd_te_shard_env_of(const cd_te_shard_footprint *n, uint32_t i, cd_te_shard_env *out);
/* The only result's operator; UINT32_MAX: none or several. */
uint32_t cd_te_shard_result(const cd_te_dag *dag);
/* Can raxis `r` of operator `op` be cut? */
bool cd_te_shard_is_sum(const cd_te_dag *dag, uint32_t result, uint32_t op, uint32_t r);
typedef void cd_te_shard_load_fn(void *ctx, const cd_expr *load);
/* Every load in e, pre-order. */
void cd_te_shard_visit_loads(const cd_expr *e, cd_te_shard_load_fn *fn, void *ctx);
typedef struct cd_te_shard_plan {
    const cd_te_dag *whole;
    cd_te_shard_footprint need;
    uint32_t n_partial;       /* join: placeholders n_op .. n_op + n_partial */
    uint32_t n_order, *order; /* operators of the shard; >= n_op: partial sums */
    cd_arena *a;
    cdmpp_err *err;
} cd_te_shard_plan;

/* ---- te_shard_move.c ---- */
typedef struct cd_te_shard_move {
    const cd_te_shard_footprint *need;
    cd_te_dag *to;
    const uint32_t *tensor;    /* (from n_tensor) number in `to` */
    cd_arena *a;               /* scratch */
    const cd_te_shard_env *at; /* of the operator */
    const cd_expr **var;       /* (at->n) the shard's */
    /* of the whole, whose expressions are moved; UINT32_MAX: a combiner's */
    uint32_t op;
    bool changed; /* constants in the text changed */
    bool oom;
} cd_te_shard_move;
/* `e` in the shard's variables and coordinates; env: what is known where it stands. */
const cd_expr *cd_te_shard_move_expr(cd_te_shard_move *m, const cd_te_shard_env *env,
                                     const cd_expr *e);
#endif

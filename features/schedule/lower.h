/* Building blocks of loop nests, shared by lower.c and lower_cross.c (docs/internals/ansor.md,
 * Lowering). */
#ifndef CD_LOWER_H
#define CD_LOWER_H
#include "features/schedule/readers.h"

typedef struct cd_lowerer {
    cd_schedule *s;
    cd_ast *t;
    cdmpp_err *err;
    cd_schedule_attached attached;
} cd_lowerer;

/* A stage's stores, ready to be emitted. */
typedef struct cd_stores {
    uint32_t n;
    const cd_expr **value; /* (n) */
    const cd_expr **index; /* (rank) shared by all outputs */
    cd_schedule_preds preds;
} cd_stores;

/* Zeroed memory of the program; NULL sets s->oom. */
void *cd_lower_get(cd_lowerer *l, size_t n, size_t size);
/* iv.val of all iterators of a stage, from its loops. */
cdmpp_status cd_lower_main_values(cd_lowerer *l, cd_schedule_stage *st);
/* Substitution: iterator variables -> their values, thread-bound leaves -> threads. */
void cd_lower_start_subst(cd_schedule *s, const cd_schedule_stage *st, cd_subst *sub);
/* The same for the main nest, whose loop lengths go through it too. */
void cd_lower_main_subst(cd_schedule *s, const cd_schedule_stage *st, cd_subst *sub);
/* Each of (n) expressions through the substitution, in place. */
void cd_lower_subst_all(cd_subst *sub, const cd_expr **e, uint32_t n);

/* Indices of the stage's axes, room for the values. False: out of memory. */
bool cd_lower_new_stores(cd_lowerer *l, const cd_schedule_op *op, cd_stores *w);
/* Values, indices and predicates through a substitution. */
void cd_lower_finish_stores(cd_subst *sub, const cd_schedule_op *op, cd_stores *w);
/* out[k] = result[k] of the reducer over (lhs[], rhs[]). */
void cd_lower_combine(cd_lowerer *l, const cd_schedule_op *op, const cd_expr *const *lhs,
                      const cd_expr *const *rhs, const cd_expr **out);

/* Nodes of the nest; loops, pragmas and guards stay open. */
void cd_lower_loop(cd_lowerer *l, const cd_schedule_iv *iv, const cd_expr *var);
void cd_lower_if(cd_lowerer *l, const cd_expr *cond);
void cd_lower_stores(cd_lowerer *l, const cd_schedule_op *op, const cd_stores *w);
/* Everything attached at this loop, earlier stages outermost. Their realize
 * nodes stay open: what follows in the nest is their consumer. */
cdmpp_status cd_lower_attached(cd_lowerer *l, int32_t stage, int32_t iv);

/* The nest of a stage that reduces across threads. Errors: EINVALID, EUNSUPPORTED, ENOMEM. */
cdmpp_status cd_lower_cross(cd_lowerer *l, int32_t stage);
#endif

/* attribution_internal -- the shares of one member, where they are not plain terms of a sum. */
#ifndef CD_ATTRIBUTION_INTERNAL_H
#define CD_ATTRIBUTION_INTERNAL_H
#include "learner/model/model_build.h"
#include "learner/model/attribution.h"

typedef struct cd_attribution_of {
    const cd_model *m;
    const cd_member *e;
    const cd_program_view *v;      /* one program */
    cd_member_scratch *s;
    bool leaf;             /* players are leaves, else rows */
    size_t n;              /* players */
} cd_attribution_of;

/* Shapley values of the member's seconds over the players, below 0 cut; the scale is arbitrary. */
cdmpp_status cd_attribution_shapley(const cd_attribution_of *o, double *value, cdmpp_err *err);
/* Of player counts in general: value (2^n) by set of players -> phi (n). */
void cd_attribution_exact(const double *value, size_t n, double *phi);
#endif

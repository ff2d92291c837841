/* member_plan -- what a configuration wants trained: kinds of members, and what they need. */
#ifndef CD_MEMBER_PLAN_H
#define CD_MEMBER_PLAN_H
#include "learner/config/config.h"
#include "learner/model/model.h"

typedef struct cd_member_plan {
    size_t n_kind;
    cd_member_kind kind[CD_N_MEMBER_KIND];
    bool leaves;  /* a kind reads leaves */
    bool devices; /* a network has a device branch */
} cd_member_plan;

/* Errors: ESCHEMA (an unknown kind, one twice, none; with the key). */
cdmpp_status cd_member_plan_of(const cd_config *c, cd_member_plan *out, cdmpp_err *err);
#endif

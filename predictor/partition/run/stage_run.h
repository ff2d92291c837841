/* stage_run -- stages of a block of a network, run and measured on processors of this machine. The
 * stages come from stage_schedule.
 *
 *   workload, programs ── groups of a block ──> cd_stage_graph ──> cd_stage_search ──> stages
 *   stages ──> the multi-device executor:  core 0  a ──┐ c ──┐ ...
 *                                          core 1  b ──┘ d ──┘
 *
 * The groups of a stage go to the processors, the longest first, each to the one that is free
 * first; there is a barrier behind each stage.
 *
 *   (1) a stage's operators begin when all of the stage before have ended; a group runs in its
 *       order on one processor;
 *   (2) an operator that is split (cd_stage_step.split) runs in pieces of its parallel loop, one on
 *       each of the first processors;
 *   (3) values are those of the operators one after the other, to the bit: the programs are the
 *       same, whole and on one thread each.
 * Programs run in this process. One thread calls. Seconds. */
#ifndef CD_STAGE_RUN_H
#define CD_STAGE_RUN_H
#include "predictor/partition/stages/stages.h"
#include "profiler/runtime/multi/multi.h"
#include "profiler/runtime/single/single.h"

typedef struct cd_stage_run cd_stage_run;
typedef struct cd_stage_run_options {
    const cd_workload *work;
    const cd_program_select *pick; /* programs of its tasks */
    uint32_t n_op;                 /* at most CD_STAGE_OPS */
    const uint32_t *group;         /* (n_op) of the workload, ascending; all have programs */
    /* (n_op) orders the groups of a stage; NULL: as measured alone when the programs were picked */
    const double *solo_s;
    uint32_t n_core;
    const int *core; /* (n_core); -1: anywhere */
} cd_stage_run_options;

/* The options are copied, what they point to is borrowed. Errors: ERANGE (operators, processors),
 * EBACKEND (a group without a program), ENOMEM. */
cdmpp_status cd_stage_run_open(const cd_stage_run_options *a, CD_GIVE cd_stage_run **out,
                               cdmpp_err *err);
void cd_stage_run_close(CD_TAKE cd_stage_run *r);
/* Stages as one run. n_stage 0: all operators one after the other on the first processor. */
typedef struct cd_stage_exec cd_stage_exec;
/* Errors: those of cd_multi_executor_open. */
cdmpp_status cd_stage_exec_open(cd_stage_run *r, const cd_stage_step *stage, uint32_t n_stage,
                                CD_GIVE cd_stage_exec **out, cdmpp_err *err);
void cd_stage_exec_close(CD_TAKE cd_stage_exec *s); /* NULL is fine */
/* ran (n_op) or NULL. Errors: those of cd_multi_executor_pass. */
cdmpp_status cd_stage_exec_pass(cd_stage_exec *s, cd_multi_action_time *ran, double *total_s,
                                cdmpp_err *err);
/* An operator's result. Errors: ERANGE. */
cdmpp_status cd_stage_exec_result(cd_stage_exec *s, uint32_t op, void *to, cdmpp_err *err);
/* Several measured in turns, a pass of each, so that a disturbance hits all alike: medians. At
 * least 9 passes of each, then until budget_s. */
cdmpp_status cd_stage_exec_compare(cd_stage_exec *const *s, uint32_t n, double budget_s,
                                   double *seconds, cdmpp_err *err);
#endif

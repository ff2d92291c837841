/* Private to the room: what the parts of op_profile share.
 *
 *   cd_op_profile_net     workload + programs ──> net of those groups that have one
 *   cd_op_profile_child   in the child: passes, in place, alone, values ──> cd_op_profile_report */
#ifndef CD_OP_PROFILE_INTERNAL_H
#define CD_OP_PROFILE_INTERNAL_H
#include "profiler/runtime/single/executor_opencl.h"
#include "profiler/runtime/single/op_profile.h"

typedef struct cd_op_profile_net {
    cd_arena arena;
    cd_executor_net net;
    cd_executor_net_tensor *tensor;
    cd_executor_net_step *step;
    const cd_build **plain;     /* (n_step) the reference's; NULL: none */
    uint32_t *group, *task;     /* (n_step) */
    double *seconds;            /* (n_step) alone, as it was chosen by */
    double *scalar;             /* (n_tensor) NaN: none */
} cd_op_profile_net;

/* All groups that have a program become steps; the rest of the tensors become inputs. Errors: EBACKEND (no group has a program), ENOMEM. */
cdmpp_status cd_op_profile_net_make(cd_op_profile_net *m, const cd_workload *w, const cd_program_select *p, cdmpp_err *err);
/* Bytes of a buffer of the workload. */
int64_t cd_op_profile_buffer_bytes(const cd_workload_buffer *b);

/* Of a step, as the child measured it. */
typedef struct cd_op_profile_step {
    double place_s, warm_s, cool_s, start_s, end_s;
    uint32_t worker;
} cd_op_profile_step;

typedef struct cd_op_profile_report {
    cdmpp_status status;
    cdmpp_err err;
    cd_timing pass;
    double wall_s, cold_s, clocked_s, max_error;
    unsigned passes;
    cd_executor_bytes_used memory;
    int64_t rss_peak;
} cd_op_profile_report;

/* Everything into *t and step (n_step). */
void cd_op_profile_measure(const cd_op_profile_net *m, const cd_op_profile_options *o, cd_op_profile_report *t, cd_op_profile_step *step);
/* Who runs a network: this processor or a device. */
typedef struct cd_op_profile_runner {
    void *run;
    cdmpp_status (*write)(void *run, uint32_t tensor, const void *from, cdmpp_err *err);
    cdmpp_status (*read)(void *run, uint32_t tensor, void *to, cdmpp_err *err);
    cdmpp_status (*pass)(void *run, cd_executor_ran *ran, double *total_s, cdmpp_err *err); /* ran: NULL or (n_step) */
} cd_op_profile_runner;
/* This processor as a runner, and an OpenCL device. */
cd_op_profile_runner cd_op_profile_runner_cpu(cd_executor *r);
cd_op_profile_runner cd_op_profile_runner_opencl(cd_executor_opencl *r);
/* Writes the scalars whose values the network knows (cd_workload_buffer: value). Errors: those of the runner. */
cdmpp_status cd_op_profile_write_scalars(const cd_op_profile_net *m, const cd_op_profile_runner *r, cdmpp_err *err);
/* Runs the network on r, and on this processor the same network of programs without schedules, on the same content: t->max_error says how far the
 * results are apart. Errors: EUSAGE (a step without a reference), ENUMERIC (a result that is no number), those of the runner. */
cdmpp_status cd_op_profile_check_with(const cd_op_profile_net *m, const cd_op_profile_runner *r, cd_op_profile_report *t, cdmpp_err *err);
/* The same with the network run on this processor. */
cdmpp_status cd_op_profile_check(const cd_op_profile_net *m, const cd_op_profile_options *o, cd_op_profile_report *t, cdmpp_err *err);
#endif

/* network_programs -- a network by its name, its tasks, and a measured program for each of them.
 *
 *   source ── graph ── workload ── program_select ──> what op_profile runs and op_curve puts into a table
 *
 * One thread. */
#ifndef CD_NETWORK_PROGRAMS_H
#define CD_NETWORK_PROGRAMS_H
#include "profiler/network/source/source.h"
#include "profiler/runtime/single/single.h"

typedef struct cd_network_programs {
    cd_graph *graph;
    cd_workload *workload;
    cd_program_select *select;
    size_t bad;                 /* tasks without a program */
} cd_network_programs;

/* `o` is of measuring: logs, trials, target, hardware, the measurer. `l` gets a note about each operator that is left out
 * and each task without a program. Free *out, after an error too. Errors: those of cd_network_source_read, cd_workload_build and
 * cd_program_select_run. */
cdmpp_status cd_network_programs_make(const cd_network_source *s, const cd_program_select_options *o, const cd_record_listener *l,
                                      cd_network_programs *out, cdmpp_err *err);
void cd_network_programs_free(cd_network_programs *x); /* zeroed is fine */
/* The chosen programs with their times, one record line each. Errors: those of cd_record_write, ENOMEM. */
cdmpp_status cd_network_programs_put_records(cd_buf *b, cd_network_programs *x, cdmpp_err *err);
#endif

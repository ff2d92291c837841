/* network_values -- what a network computes from contents that belong to names: two forms of one network can be compared by their results.
 *
 *   weights by name ── operators on weights, run once ──> weights as programs read them ── one pass ──> results
 *
 *   (1) contents depend on a tensor's name and shape alone; weights that merging stacked are made of those of their parts (merge.h);
 *   (2) programs are those of the records that the caller gives, where a task has one; they run in this process.
 * One thread. */
#ifndef CD_NETWORK_VALUES_H
#define CD_NETWORK_VALUES_H
#include "profiler/network/merge/merge.h"
#include "profiler/runtime/single/single.h"

typedef struct cd_network_values_options {
    const cd_graph *graph;
    cd_workload_layout layout;
    const char *target;
    cd_hardware hardware;
    const char *const *line;    /* (n_line) records */
    size_t n_line;
    CD_KEEP cd_measure *measure;
    const volatile sig_atomic_t *stop;
} cd_network_values_options;

/* All results behind one another, (n) floats, the caller's to free (cd_mem_free). Errors: EUNSUPPORTED (an operator without a definition; a result that is not
 * float32), EBACKEND (a task without a program), those of cd_workload_build, cd_program_select_run and cd_executor_open. */
cdmpp_status cd_network_values(const cd_network_values_options *o, CD_GIVE float **out, size_t *n, cdmpp_err *err);
#endif

/* network_values -- what a network computes from contents that belong to names: two forms of one
 * network can be compared by their results.
 *
 *   weights by name ─ operators on weights, run once ─> weights as programs read them ─ one pass ─>
 *                                                       results
 *
 *   (1) contents depend on a tensor's name and shape alone; weights that merging stacked are made
 *       of those of their parts (merge.h);
 *   (2) programs are those of the records that the caller gives, where a task has one; they run in
 *       this process.
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
    const char *const *line; /* (n_line) records */
    size_t n_line;
    const char *const *log; /* (n_log) files or folders of records, behind the lines */
    size_t n_log;
    int threads;     /* of a program; 0: 1 */
    uint32_t trials; /* sampled schedules of a task without a record; 0: 1 */
    uint64_t seed;
    CD_KEEP cd_measure *measure;
    const volatile sig_atomic_t *stop;
    const cd_quantize *quantize; /* as of cd_workload_options */
    void *ctx;                   /* of the functions */
    /* Records for the tasks of a workload, in place of `line`; NULL: those are taken. */
    cdmpp_status (*schedule)(void *ctx, const cd_workload *w, cd_arena *a, const char *const **line,
                             size_t *n_line, cdmpp_err *err);
    /* Data: the elements of input t of draw 1, 2 ...; NULL: as the names say. */
    cdmpp_status (*input)(void *ctx, const cd_graph_tensor *t, uint32_t draw, void *to,
                          cdmpp_err *err);
} cd_network_values_options;

/* A network whose weights are written and whose programs wait: passes over other inputs compile
 * nothing. The options live as long as it. Errors: as of cd_network_values. */
typedef struct cd_network_live cd_network_live;
cdmpp_status cd_network_live_open(CD_KEEP const cd_network_values_options *o,
                                  CD_GIVE cd_network_live **out, cdmpp_err *err);
void cd_network_live_close(CD_TAKE cd_network_live *v); /* NULL is fine */
const cd_workload *cd_network_live_workload(const cd_network_live *v);
/* Writes the inputs of a draw (0: as at open). Errors: those of options.input, ENOMEM. */
cdmpp_status cd_network_live_input(cd_network_live *v, uint32_t draw, cdmpp_err *err);
void cd_network_live_pass(cd_network_live *v, double *seconds);
/* Inputs that are data, as the graph numbers them: their tensor in the graph, and their whole
 * content written. Errors: ERANGE (no such input). */
uint32_t cd_network_live_inputs(const cd_network_live *v);
const cd_graph_tensor *cd_network_live_input_tensor(const cd_network_live *v, uint32_t k);
cdmpp_status cd_network_live_write(cd_network_live *v, uint32_t k, const void *from,
                                   cdmpp_err *err);
/* What it holds in memory, weights among it. */
cd_executor_bytes_used cd_network_live_bytes(const cd_network_live *v);
/* Result k of the network; behind the results, the observed tensors. */
const cd_workload_buffer *cd_network_live_result(const cd_network_live *v, uint32_t k);
/* Its content after the last pass. */
cdmpp_status cd_network_live_read(const cd_network_live *v, uint32_t k, void *to, cdmpp_err *err);

/* All results behind one another, (n) floats, the caller's to free (cd_mem_free). Errors:
 * EUNSUPPORTED (an operator without a definition; a result that is not float32), EBACKEND (a task
 * without a program), those of cd_workload_build, cd_program_select_run and cd_executor_open. */
cdmpp_status cd_network_values(const cd_network_values_options *o, CD_GIVE float **out, size_t *n,
                               cdmpp_err *err);
#endif

/* The door of predictor/overview: what cdmpp says of this machine without being given anything.
 *
 *   /proc, the default model ──> machine ──> the device that answers for it, known or a stand-in
 *   five networks of the zoo ──> predictor/network_estimate ──> latency, interval ──> how far off
 * at most
 *
 * For the command cdmpp. One thread; the search for schedules starts threads of its own. It prints
 * into a buffer alone. */
#ifndef CD_OVERVIEW_H
#define CD_OVERVIEW_H
#include "predictor/network_estimate/network_estimate.h"
#include "profiler/host/host.h"

enum { CD_OVERVIEW_NETWORKS = 5, CD_OVERVIEW_GPUS = 16 };

typedef struct cd_overview_machine {
    cd_host_info host;                 /* cpu, n_cpu, n_allowed, memory_bytes */
    const char *vectors;               /* "AVX-512" */
    cd_host_gpu gpu[CD_OVERVIEW_GPUS]; /* (n_gpu) that a driver reports */
    size_t n_gpu;
} cd_overview_machine;
/* Never fails: what cannot be read is unknown. `root` as of cd_host_info_read. */
void cd_overview_machine_read(const char *root, cd_overview_machine *out);

typedef struct cd_overview {
    cd_overview_machine machine;
    cd_network_estimate_options ask;
    cd_network_estimate e; /* its items are the networks */
    const char *model,
        *what; /* file; "the default one", "corrected by 120 programs measured on this machine" */
    const char *device;     /* of the model, that answers */
    bool known, calibrated; /* it is this machine; the model is corrected for it */
    double off;     /* nine of ten times are off by this factor at most: the widest interval of the
                       networks; NaN: none has one */
    double seconds; /* that all took */
    cd_arena arena;
} cd_overview;
/* log, stop as of cd_network_estimate_options; `progress`: a bar on this log, where it takes long,
 * NULL: none. *o is zeroed by the caller and freed even after an error; machine is filled in any
 * case. Errors: EUSAGE (there is no default model), those of cd_network_estimate_open and
 * cd_network_estimate_run. */
cdmpp_status cd_overview_ask(cd_log *log, cd_log *progress, const volatile sig_atomic_t *stop,
                             cd_overview *o, cdmpp_err *err);
void cd_overview_free(cd_overview *o); /* zeroed is fine */

/* For people, and as one JSON object (docs/reference/commands.md). Out of memory stays in b->oom.
 */
void cd_overview_text(const cd_overview *o, cd_buf *b);
void cd_overview_json(const cd_overview *o, cd_buf *b);
/* The machine alone, where no model answers. */
void cd_overview_machine_text(const cd_overview_machine *m, cd_buf *b);
#endif

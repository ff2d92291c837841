/* record_best -- the fastest record of each workload in a set of logs.
 *
 *   logs ──> workload A: its fastest line │ workload B: its fastest line │ ...
 *            in the order in which workloads first appear
 *
 * A record that failed counts as slower than any that did not. One thread. */
#ifndef CD_RECORD_BEST_H
#define CD_RECORD_BEST_H
#include <signal.h>

#include "profiler/records/record_listener.h"
#include "profiler/records/record_reader.h"

typedef struct cd_record_best {
    cd_str key;       /* workload key */
    const char *text; /* the record's line (len), NUL-terminated */
    size_t len;
    double cost_s;    /* what the record says */
    const char *path; /* where the line was */
    long number;
} cd_record_best;

typedef struct cd_record_best_options {
    const char *const *path; /* (n_path) files and folders, as for cd_record_reader_open */
    size_t n_path;
    const char *workload;               /* only of this key; NULL: any */
    size_t max;                         /* the first so many workloads; later ones are ignored */
    const cd_record_listener *listener; /* lines that are no records */
    const volatile sig_atomic_t *stop;  /* not 0: what was read until then is the result */
} cd_record_best_options;

/* out (o->max): *n of them are set; their texts live in `a`. Errors: EIO, ENOMEM. */
cdmpp_status cd_record_best_read(cd_arena *a, const cd_record_best_options *o,
                                 CD_KEEP cd_record_best *out, size_t *n, cdmpp_err *err);
#endif

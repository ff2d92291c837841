/* filter -- which programs are fit to learn from, and how many were not and why.
 *
 * Reasons are tried in the order of CD_FILTER_MAP; a program is counted once. */
#ifndef CD_FILTER_H
#define CD_FILTER_H
#include "dataset/dataset.h"

#define CD_FILTER_MAP(X)                                                 \
    X(ERROR, "not measured, or rejected by its target")                  \
    X(LATENCY, "latency is not a finite number above 0, or is 1e9 s or more") \
    X(NO_ROWS, "no feature rows (the program was rejected)")             \
    X(NOISY, "std/mean of the repeats above the limit")                  \
    X(RARE, "fewer programs of its task and device than the minimum")

typedef enum {
#define CD_X(name, text) CD_DROP_##name,
    CD_FILTER_MAP(CD_X)
#undef CD_X
    CD_N_DROP
} cd_drop;

typedef struct cd_filter_spec {
    double max_std_ratio;   /* std/mean over 2 repeats or more; <= 0: no limit */
    int64_t min_per_task;   /* of one device; <= 1: no minimum */
} cd_filter_spec;

typedef struct cd_filter_count {
    size_t in, kept, drop[CD_N_DROP];
} cd_filter_count;

const char *cd_drop_text(cd_drop d);

/* keep[i] = 1 for programs to use, (d->n), caller's. Errors: ENOMEM. */
cdmpp_status cd_filter(const cd_dataset *d, const cd_filter_spec *spec, uint8_t *keep, cd_filter_count *count,
                       cdmpp_err *err);
#endif

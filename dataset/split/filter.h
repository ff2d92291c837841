/* filter -- which programs are fit to learn from, and how many were not and why.
 *
 *   program by program:  ASKED ERROR LATENCY NO_ROWS | NOISY LEAVES FLOP
 *   all together:                  percentiles of the programs left of the bar -> RANGE
 *   by task and device:            RARE, then SURPLUS of what is left
 *
 * (1) reasons are tried in the order of CD_FILTER_MAP, a program is counted once:
 *     in = kept + sum of drop;
 * (2) the percentiles are those of all measured programs that were asked for, before
 *     other limits, of all devices together (as CDMPP's third filter); linear between
 *     the two nearest, as numpy.percentile;
 * (3) SURPLUS is drawn by seed and program (key.h): the order of programs is nothing,
 *     and a smaller limit keeps a subset. */
#ifndef CD_FILTER_H
#define CD_FILTER_H
#include "dataset/file/file.h"

#define CD_FILTER_MAP(X)                                                 \
    X(ASKED, "of a device or task that was not asked for")               \
    X(ERROR, "not measured, or rejected by its target")                  \
    X(LATENCY, "latency is not a finite number above 0, or is 1e9 s or more") \
    X(NO_ROWS, "no feature rows (the program was rejected)")             \
    X(NOISY, "std/mean of the repeats above the limit")                  \
    X(LEAVES, "another number of leaves")                                \
    X(FLOP, "operations of the task unknown or outside the limits")      \
    X(RANGE, "latency outside the percentiles")                          \
    X(RARE, "fewer programs of its task and device than the minimum")    \
    X(SURPLUS, "more programs of its task and device than the maximum")

typedef enum {
#define CD_X(name, text) CD_FILTER_DROP_##name,
    CD_FILTER_MAP(CD_X)
#undef CD_X
    CD_FILTER_N_DROP
} cd_filter_drop;

typedef struct cd_filter_spec {
    const uint8_t *asked;   /* (d->n) 1: use it; NULL: all */
    double max_std_ratio;   /* std/mean over 2 repeats or more; <= 0: no limit */
    double low_percentile, high_percentile; /* of latency, both kept; <= 0, and <= 0 or >= 100: no limit */
    const uint32_t *leaves; /* (n_leaves) numbers of leaves to keep */
    size_t n_leaves;        /* 0: any */
    double min_flop, max_flop; /* of the task, both kept; <= 0: no limit */
    int64_t min_per_task;   /* of one device; <= 1: no minimum */
    int64_t max_per_task;   /* of one device; <= 0: no maximum */
    uint64_t seed;          /* of the draw of max_per_task */
} cd_filter_spec;

typedef struct cd_filter_count {
    size_t in, kept, drop[CD_FILTER_N_DROP];
} cd_filter_count;

/* The reason in words, for reports. */
const char *cd_filter_drop_text(cd_filter_drop d);

/* keep[i] = 1 for programs to use, (d->n), caller's. Errors: ENOMEM. */
cdmpp_status cd_filter(const cd_dataset *d, const cd_filter_spec *spec, uint8_t *keep, cd_filter_count *count,
                       cdmpp_err *err);
#endif

/* wrap -- time and memory of any program, and of its parts. The door of profiler/wrap.
 * cdmpp-profile uses it; process_profile.c has the calls of cdmpp.h that mark parts
 * (cdmpp_span_begin, cdmpp_span_end).
 *
 *   cdmpp-profile wrap -- cmd args
 *     └─ spawn, LD_PRELOAD=libcdmpp-wrap.so ──> cmd ──> its children
 *                     shared counters (process_profile_map.h) <──┘
 *
 *   (1) without the library, or for a program that does not load it (static, setuid), there are
 *       times but no heap;
 *   (2) heap figures are per process image: the program's own are those of its last image, children
 *       stand for themselves;
 *   (3) max_rss_kb is the program's own high-water mark where the library could read it at its end,
 *       else the kernel's ru_maxrss of it and all children, which is never below what this process
 *       used when it started the program. */
#ifndef CD_WRAP_H
#define CD_WRAP_H

#include "base/core/core.h"

typedef struct cd_process_profile_heap {
    int32_t pid, parent;
    char name[32];
    uint64_t n_malloc, n_calloc, n_realloc, n_aligned, n_free, total_bytes, high_water_kb;
    int64_t live_bytes, peak_bytes;
} cd_process_profile_heap;

/* Spans of one name in one process (cdmpp.h: cdmpp_span_begin). */
typedef struct cd_process_profile_spans {
    int32_t pid;
    char name[48];
    uint64_t n, total_bytes;
    double seconds;                        /* of all n together */
    int64_t peak_bytes, device_peak_bytes; /* of the largest, above what was live at its begin */
    int64_t live_bytes, device_live_bytes; /* what all n together left */
} cd_process_profile_spans;

typedef struct cd_process_profile_report {
    int32_t pid;
    bool signaled;
    int code; /* exit status, or the signal */
    double wall_s, user_s, sys_s;
    /* of the processors' packages while it ran, other programs included; 0, NaN: not known */
    double energy_j;
    uint64_t max_rss_kb;
    bool rss_own; /* see (3) */
    /* context switches: it waited; it was interrupted */
    uint64_t minor_faults, major_faults, waited, preempted;
    bool has_heap;
    const char *why_no_heap; /* static text; "" when there is one */
    cd_process_profile_heap own;
    uint64_t n_image, n_lost; /* process images seen; those without a slot */
    /* (n_image - n_lost) in the order of their starts, in the arena */
    const cd_process_profile_heap *image;
    uint64_t n_span, n_span_lost; /* names of spans; those without a place */
    /* (n_span - n_span_lost) in the order of their first ends, in the arena */
    const cd_process_profile_spans *span;
} cd_process_profile_report;

/* Run argv (NULL ends; searched in PATH) to its end. `library`: NULL: cd_process_profile_library's,
 * "": none. Errors: EIO (not found, or it cannot be started), ENOMEM. */
cdmpp_status cd_process_profile_run(cd_arena *a, char *const *argv, const char *library,
                                    cd_process_profile_report *out, cdmpp_err *err);
/* Lines for people. */
void cd_process_profile_put_text(cd_buf *out, const cd_process_profile_report *r);
/* A JSON object. */
void cd_process_profile_put_json(cd_buf *out, const cd_process_profile_report *r);
#endif

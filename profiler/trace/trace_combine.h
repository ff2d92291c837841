/* trace_combine -- what the files of the combination share. */
#ifndef CD_TRACE_COMBINE_H
#define CD_TRACE_COMBINE_H
#include "profiler/trace/trace_internal.h"

static inline const cd_trace_event *cd_trace_launch(const cd_trace_run *w, size_t i) {
    return &w->trace->event[w->launch[i]];
}
static inline const char *cd_trace_launch_name(const cd_trace_run *w, size_t i) {
    return cd_trace_text(w->trace, cd_trace_launch(w, i)->name);
}

/* The operator of a kernel and the sizes of its inputs (trace_map.c); false: the map does not know
 * it. */
bool cd_trace_map_find(const cd_trace_map *m, const char *kernel, const char **op,
                       const char **inputs);
/* Steps and operators; kernels and copies by name (trace_groups.c). */
cdmpp_status cd_trace_runs_groups(cd_trace_runs *r, cdmpp_err *err);
#endif

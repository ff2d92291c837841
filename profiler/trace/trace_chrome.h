/* trace_chrome -- what the two files of the Chrome form share. */
#ifndef CD_TRACE_CHROME_H
#define CD_TRACE_CHROME_H
#include "profiler/trace/trace_internal.h"
#include "profiler/trace/trace_scan.h"

typedef struct cd_trace_gpu {
    int64_t id;
    uint32_t name;
} cd_trace_gpu;

/* A process of the trace that is an engine of an NPU. */
typedef struct cd_trace_engine {
    uint64_t pid;
    char name[24];              /* "MME", "TPC", "DMA" */
    bool copies;
} cd_trace_engine;

/* An event that began ("B") and has not ended yet. */
typedef struct cd_trace_open {
    uint64_t thread;
    uint32_t name, op;          /* op: 0 where it does not tell */
    size_t engine;
    double ts_us;
    long line;
} cd_trace_open;

typedef struct cd_trace_chrome {
    cd_trace_reader *r;
    cd_trace_scan scan;
    cd_trace_gpu *gpu;
    cd_trace_engine *engine;
    cd_trace_open *open;
    size_t n_gpu, cap_gpu, n_engine, cap_engine, n_open, cap_open;
    bool found, ended;          /* a list of events; its text ended in it */
    bool kineto, habana;        /* events of which program were there */
} cd_trace_chrome;

/* One event; others than launches, operators, ranges and calls are passed over. Errors carry the place. */
cdmpp_status cd_trace_chrome_event(cd_trace_chrome *c, cd_str text, long line, cdmpp_err *err);
/* Behind the last event: those that never ended are reported. */
cdmpp_status cd_trace_chrome_open_events(cd_trace_chrome *c, cdmpp_err *err);
#endif

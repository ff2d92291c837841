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
    char name[24]; /* "MME", "TPC", "DMA" */
    bool copies;
} cd_trace_engine;

/* An event that began ("B") and has not ended yet. */
typedef struct cd_trace_open {
    uint64_t thread;
    uint32_t name, op; /* op: 0 where it does not tell */
    size_t engine;
    double ts_us;
    long line;
} cd_trace_open;

/* What was seen of ONNX Runtime: nodes on GPUs have their own kernels in some traces, and only the
 * time of their launch in others. */
typedef struct cd_trace_ort_nodes {
    uint64_t device;   /* nodes of a provider that launches on a device */
    uint64_t kernels;  /* kernels of a device */
    char provider[40]; /* of the first such node */
} cd_trace_ort_nodes;

typedef struct cd_trace_chrome {
    cd_trace_reader *r;
    cd_trace_scan scan;
    cd_trace_gpu *gpu;
    cd_trace_engine *engine;
    cd_trace_open *open;
    size_t n_gpu, cap_gpu, n_engine, cap_engine, n_open, cap_open;
    bool found, ended;             /* a list of events; its text ended in it */
    bool layers;                   /* a member "Layers": what trtexec --exportLayerInfo writes */
    bool kineto, habana, ort, trt; /* events of which program were there */
    uint64_t seen;                 /* events of any kind */
    char stranger[80];             /* what the first event says that belongs to none of them */
    cd_trace_ort_nodes nodes;
    double runs;  /* of trtexec: inferences; 0: not told */
    bool times;   /* of trtexec: --exportTimes */
    size_t twice; /* events with a key given twice */
} cd_trace_chrome;

/* trace.c: an event of ONNX Runtime's profile; *mine false: it is none. */
cdmpp_status cd_trace_ort_event(cd_trace_chrome *c, const cd_json *v, long line, bool *mine,
                                cdmpp_err *err);
/* Behind the last event: on what the nodes of other providers than the CPU's ran. */
cdmpp_status cd_trace_ort_end(cd_trace_chrome *c, cdmpp_err *err);
/* trace.c: a row of trtexec's profile or times; *mine false: it is none. */
cdmpp_status cd_trace_trt_row(cd_trace_chrome *c, const cd_json *v, long line, bool *mine,
                              cdmpp_err *err);
/* Behind the last row: counts of an inference. */
void cd_trace_trt_end(cd_trace_chrome *c);

#endif

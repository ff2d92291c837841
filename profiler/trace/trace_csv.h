/* trace_csv -- what the files of the CSV forms share: which table a header begins, its columns and
 * their units. */
#ifndef CD_TRACE_CSV_H
#define CD_TRACE_CSV_H
#include "profiler/trace/trace_internal.h"

/* X(ID, names): a column by its names in all tools, without case and without its unit in
 * parentheses. */
#define CD_TRACE_COLUMNS(X)                                                                        \
    X(NAME, "name|kernel name|operation")                                                          \
    X(START, "start")                                                                              \
    X(DURATION, "duration")                                                                        \
    X(DEVICE, "device")                                                                            \
    X(STREAM, "stream|strm")                                                                       \
    X(LINK, "corrid|correlation_id|correlation id")                                                \
    X(GRID_X, "grid x|grdx")                                                                       \
    X(GRID_Y, "grid y|grdy")                                                                       \
    X(GRID_Z, "grid z|grdz")                                                                       \
    X(BLOCK_X, "block x|blkx")                                                                     \
    X(BLOCK_Y, "block y|blky")                                                                     \
    X(BLOCK_Z, "block z|blkz")                                                                     \
    X(BYTES, "size|bytes")                                                                         \
    X(TYPE, "type")                                                                                \
    X(TOTAL, "time|total time")                                                                    \
    X(CALLS, "calls|instances|count")                                                              \
    X(AVG, "avg")                                                                                  \
    X(MED, "med")                                                                                  \
    X(MIN, "min")                                                                                  \
    X(MAX, "max")                                                                                  \
    X(ID, "id")                                                                                    \
    X(METRIC, "metric name")                                                                       \
    X(UNIT, "metric unit")                                                                         \
    X(VALUE, "metric value")                                                                       \
    X(GRID, "grid size")                                                                           \
    X(BLOCK, "block size")                                                                         \
    X(GPU_TIME, "gpu__time_duration.sum")                                                          \
    X(STATUS, "status")                                                                            \
    X(DISPOSITION, "disposition")                                                                  \
    X(OP_KIND, "operationkind")                                                                    \
    X(RUNTIME, "runtime")                                                                          \
    X(FLOPS, "flops")                                                                              \
    X(GFLOPS, "gflops")                                                                            \
    X(M, "m")                                                                                      \
    X(N, "n")                                                                                      \
    X(K, "k")                                                                                      \
    X(BATCH, "batch_count")                                                                        \
    X(A, "a|activation")                                                                           \
    X(B, "b|filter")                                                                               \
    X(OP_CLASS, "op_class")                                                                        \
    X(CONV_KIND, "conv_kind")                                                                      \
    X(H, "h")                                                                                      \
    X(W, "w")                                                                                      \
    X(C, "c")                                                                                      \
    X(R, "r")                                                                                      \
    X(S, "s")                                                                                      \
    X(PAD_H, "pad_h")                                                                              \
    X(PAD_W, "pad_w")                                                                              \
    X(STRIDE_H, "stride_h")                                                                        \
    X(STRIDE_W, "stride_w")                                                                        \
    X(DILATION_H, "dilation_h")                                                                    \
    X(DILATION_W, "dilation_w")                                                                    \
    X(GROUPS, "groups")

typedef enum cd_trace_column {
#define CD_X(id, names) CD_TRACE_COL_##id,
    CD_TRACE_COLUMNS(CD_X)
#undef CD_X
        CD_N_TRACE_COLUMN
} cd_trace_column;

typedef enum cd_trace_table {
    CD_TRACE_TABLE_NONE,     /* no header yet, or a table that holds no times of devices */
    CD_TRACE_TABLE_LAUNCHES, /* nvprof --print-gpu-trace, nsys stats cuda_gpu_trace */
    CD_TRACE_TABLE_SUMMARY,  /* nvprof --csv, nsys stats cuda_gpu_kern_sum */
    CD_TRACE_TABLE_METRICS,  /* ncu --csv: a row a metric */
    CD_TRACE_TABLE_KERNELS,  /* ncu --csv --page raw: a row a kernel */
    CD_TRACE_TABLE_CUTLASS
} cd_trace_table;

enum { CD_TRACE_MOST_FIELDS = 4096, CD_TRACE_WORD = 48 };

typedef struct cd_trace_csv {
    cd_trace_reader *r;
    cd_trace_table table;
    int of[CD_N_TRACE_COLUMN];                   /* field of each column; -1: none */
    char unit[CD_N_TRACE_COLUMN][CD_TRACE_WORD]; /* as the header or the line of units says */
    bool units_next;                             /* the next line is the line of units */
    bool binary; /* sizes: KB is 1024 bytes (nvprof), else 1000 (nsys) */
    bool any;    /* a table was found */
    long line;
    size_t n;
    cd_str field[CD_TRACE_MOST_FIELDS];
    /* ncu, a row a metric: the launch that the rows are of */
    char id[CD_TRACE_WORD];
    bool timed;
} cd_trace_csv;

#endif

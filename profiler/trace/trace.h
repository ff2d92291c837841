/* The door of profiler/trace: other rooms include this header and no other of the room.
 *
 * What profilers of GPUs and NPUs wrote: read, combined over repeats, summed up, and written as a
 * network and as a table of operators.
 *
 *   file ── cd_trace_read ──> events ── cd_trace_link ──> who launched what ──┐
 *   file ── cd_trace_read ──> events ── ... ──────────────────────────────────┤
 *     ┌───────────────────────────────────────────────────────────────────────┘
 *     └─ cd_trace_combine ──> cd_trace_runs ──> text, JSON, netgraph, table
 *
 *   (1) the form of a file is found by its content, never by its name;
 *   (2) units of times are those that the file names;
 *   (3) a bad line or event is reported with its place, counted and skipped.
 * Nothing here was tried on a device: the forms are read as their vendors document them. */
#ifndef CD_TRACE_H
#define CD_TRACE_H
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "features/operators/operators.h"
#include "base/io/io.h"

/* ---- events ---- */
typedef enum cd_trace_kind {
    CD_TRACE_KERNEL, /* a computation on a device */
    CD_TRACE_COPY,   /* a copy from, to or on a device */
    CD_TRACE_SET,    /* a fill of device memory */
    /* an operator of a framework, on the host; its time holds what it calls */
    CD_TRACE_OP,
    CD_TRACE_RANGE, /* a range that the program named: NVTX, user annotations */
    CD_TRACE_CALL   /* a call of the runtime that launched something */
} cd_trace_kind;

#define CD_TRACE_NONE    UINT32_MAX
#define CD_TRACE_UNTIMED INT64_MIN

/* Some launches of one kernel in one row of a summary. Seconds; NaN: the file does not say. */
typedef struct cd_trace_sum {
    double n, min_s, median_s, max_s;
} cd_trace_sum;

typedef struct cd_trace_event {
    cd_trace_kind kind;
    /* numbers in cd_trace.text; number 0 is "", not known. shape: of a KERNEL [[grid],[block]], of
     * an OP, or where there is a dtype, its inputs; JSON */
    uint32_t name, device, shape, dtype;
    /* of a KERNEL: operator, where the event itself tells; number of cd_trace.text */
    uint32_t op;
    uint32_t question; /* of cd_trace.question: what library operator this is; NONE */
    /* of cd_trace.sum: the event is a row of a summary, time_s its mean; NONE: one launch */
    uint32_t sum;
    uint32_t owner; /* event that launched it (cd_trace_link): OP or RANGE; NONE */
    int32_t unit;   /* which device of that name: the number that the driver gave it */
    long line;      /* of the file, from 1 */
    int64_t thread; /* of a KERNEL, COPY, SET: its stream; else of the host */
    /* correlation of a launch with its call; id of the operator; -1: none */
    int64_t link, external;
    int64_t start_ns; /* on the clock of the file; CD_TRACE_UNTIMED */
    /* of a launch: start of its call (cd_trace_link); CD_TRACE_UNTIMED */
    int64_t called_ns;
    double time_s;
    double bytes; /* of a COPY or SET; NaN: not known */
} cd_trace_event;

#define CD_TRACE_FORMS "auto|chrome|nsys|csv"
typedef enum cd_trace_form {
    CD_TRACE_AUTO,
    CD_TRACE_CHROME,
    CD_TRACE_NSYS,
    CD_TRACE_CSV
} cd_trace_form;

typedef struct cd_trace {
    cd_dict text;
    /* (n) in the order of the file; after cd_trace_link sorted by start */
    cd_trace_event *event;
    size_t n, cap;
    cd_library_op_record *question; /* (n_question) */
    size_t n_question, cap_question;
    cd_trace_sum *sum; /* (n_sum) */
    size_t n_sum, cap_sum;
    /* "kineto", "habana", "onnxruntime", "trtexec profile", "nsys", "nvprof", "nvprof summary",
     * ... */
    const char *form;
    /* times and counts are means of so many runs of the network; 0: they are not */
    double inferences;
    /* what the figures would not tell by themselves, a line each: for people */
    cd_buf said;
    long last_line;
    uint64_t lines; /* events and rows of the kinds above, good or not */
    uint64_t bad;
    /* of 0 s: too short for the clock of the trace; not among the events */
    uint64_t empty;
} cd_trace;

typedef struct cd_trace_reading {
    cd_trace_form form;
    unsigned skip; /* bits 1 << cd_trace_kind: events of these kinds are not read */
    /* what was measured; NULL: the file says, else "cuda:0" and the like, else "" */
    const char *device;
    /* Called with each bad line, path and line in it. An error of it ends the reading. NULL:
     * counted only. */
    cdmpp_status (*bad)(void *ctx, cdmpp_status st, const cdmpp_err *e, cdmpp_err *err);
    void *ctx;
    const volatile sig_atomic_t *stop; /* NULL: never; EINTERRUPTED once it is not 0 */
} cd_trace_reading;

/* Read a file:
 *   chrome  JSON, plain or packed: a list of events of the Chrome trace form by PyTorch's profiler
 *           (Kineto, or the older autograd profiler), ONNX Runtime or Habana's profiler; what
 *           trtexec --exportProfile and --exportTimes write
 *   nsys    a SQLite export of Nsight Systems
 *   csv     nvprof --csv (GPU trace or summary), nsys stats --format csv (cuda_gpu_trace,
 *           cuda_gpu_kern_sum), ncu --csv, cutlass_profiler
 * Kernels of one stream run one after another. An event that lies inside another one of its stream,
 * and that no launch is known of, is a part of it and left out; launches of one stream that overlap
 * are kept. Both are said. Memory: about 130 bytes an event and each text once; of a packed or
 * plain file never more than one event is held as text. Errors carry the path: EIO, EPARSE, ESCHEMA
 * (no known form: says what to run), EINTERRUPTED, ENOMEM. *out is the caller's to free. */
cdmpp_status cd_trace_read(const char *path, const cd_trace_reading *how, CD_GIVE cd_trace **out,
                           cdmpp_err *err);
void cd_trace_free(CD_TAKE cd_trace *t); /* NULL is fine */
CD_KEEP const char *cd_trace_text(const cd_trace *t, uint32_t number);

/* Sort the events by start and set `owner`: of a launch the operator with its External id, else the
 * innermost operator or range around its call. O(n log n). Errors: ENOMEM. */
cdmpp_status cd_trace_link(cd_trace *t, cdmpp_err *err);

/* ---- repeats ---- */

/* One repeat: a file, or a range of it. Seconds. */
typedef struct cd_trace_run {
    const char *path, *range; /* range: its name; NULL: the whole file */
    const cd_trace *trace;
    /* (n) events of the devices: by device and stream in the order of their first launch, then by
     *     start */
    uint32_t *launch;
    size_t n;
    uint64_t like;   /* equal for repeats that launch the same, stream by stream */
    const char *why; /* why it is left out; NULL: it is not */
} cd_trace_run;

/* Launches of one name, or operators of one name and shape. Of the repeats that are kept; per
 * repeat, of a launch, or over repeats. */
typedef struct cd_trace_group {
    cd_trace_kind kind;
    const char *name, *shape; /* shape "": not known, or several */
    bool inputs;              /* shape: of its inputs, else grid and block */
    uint32_t question;        /* of the first trace; CD_TRACE_NONE */
    double n, total_s;        /* launches (of an operator its runs), time: of a repeat */
    double mean_s, median_s, min_s, max_s; /* of a launch; NaN: the file's summary does not say */
    /* standard deviation of the repeats' totals over their mean; NaN: one repeat */
    double spread;
    double share; /* of the time of all kernels; of a copy, of all copies and fills */
    double bytes; /* of a repeat; NaN: not known */
} cd_trace_group;

/* What a device did, mean over repeats. NaN: the file has no times of day. */
typedef struct cd_trace_device {
    const char *name;
    int32_t unit;
    uint32_t stream;    /* streams */
    double n;           /* kernels */
    double span_s;      /* first start to last end */
    double busy_s;      /* union of its kernels: what overlaps counts once */
    double kernel_s;    /* their sum */
    double copy_s;      /* union of copies and fills */
    double idle_s;      /* of the span, neither */
    double gaps, gap_s; /* between kernels and copies: how many, their median */
} cd_trace_device;

typedef struct cd_trace_stream {
    uint32_t device; /* of cd_trace_runs.device */
    int64_t id;
    double n, busy_s;
} cd_trace_stream;

/* One launch or, where operators are known, one run of an operator: the launches of it that follow
 * one another in a stream. */
typedef struct cd_trace_step {
    const char *name, *op; /* of its first launch; of its operator, "" not known */
    const char *key;       /* workload key; NULL: not known */
    /* launch: grid and block of its longest kernel, JSON; "" not known */
    const char *device, *launch;
    uint32_t stream;    /* in the order of their first launch */
    const char *inputs; /* of its operator: their sizes, JSON; "" not known */
    uint32_t question;  /* number of the first repeat's trace; CD_TRACE_NONE: not known */
    cd_trace_kind kind;
    double time_s; /* mean over the repeats */
    size_t n;      /* launches */
} cd_trace_step;

typedef struct cd_trace_runs {
    cd_arena arena;
    cd_trace_run *run;           /* (n_run) */
    size_t n_run, n_kept, first; /* first: the first one that is kept */
    /* (n_kernel), (n_op) longest total first. kernel: copies and fills too */
    cd_trace_group *kernel, *op;
    size_t n_kernel, n_op;
    cd_trace_device *device; /* (n_device) */
    cd_trace_stream *stream; /* (n_stream) */
    size_t n_device, n_stream;
    cd_trace_step *step; /* (n_step) in the order of their start */
    size_t n_step;
    /* launches of kernels without an operator, their time, of a repeat */
    double unmatched, unmatched_s;
    double wall_s; /* mean of the repeats' spans over all devices; NaN */
} cd_trace_runs;

/* What operators the kernels are, where the trace does not tell or shall not be asked. */
typedef struct cd_trace_map_node {
    const char *op, *inputs; /* inputs: their sizes, JSON; "" not known */
} cd_trace_map_node;

#define CD_TRACE_MAP_MAX ((size_t)1 << 30)
typedef struct cd_trace_map {
    /* columns kernel (a pattern, * for any letters) and operator; "-" is no operator of the
     * network */
    cd_csv_table table;
    size_t kernel, op;
    cd_dict name;            /* or the nodes of Habana's graph, by their names */
    cd_trace_map_node *node; /* (name.n) */
    size_t cap;
    cd_arena arena;
} cd_trace_map;

/* A CSV table, Habana's graph (*.recipe-PostGraph-symbol.json) or the layers of a TensorRT engine
 * (trtexec --exportLayerInfo), by the content. Borrows path. Free after an error too; zeroed is
 * fine. Errors: those of cd_csv_table_read, EPARSE, ESCHEMA, ERANGE (more than CD_TRACE_MAP_MAX
 * bytes). */
cdmpp_status cd_trace_map_read(cd_trace_map *m, const char *path, cdmpp_err *err);
void cd_trace_map_free(cd_trace_map *m);

/* An operator of a network, which is one kernel. */
typedef struct cd_trace_operator {
    const char *name; /* "Conv+Relu" */
    const char *key;  /* of its tensor program; NULL: none is known */
} cd_trace_operator;

typedef struct cd_trace_combining {
    /* each range of such a name (a pattern) is a repeat of its own; NULL: each file is one */
    const char *range;
    const cd_trace_map *map; /* NULL: none */
    /* (n_network) in order: the k-th kernel is the k-th operator; NULL: none */
    const cd_trace_operator *network;
    size_t n_network;
} cd_trace_combining;

/* Combine linked traces. The repeats that most agree (same launches in the same order in each
 * stream) are kept, of equally many those of the first one; the others are left out with the
 * reason. Traces and paths are borrowed. Errors: ENODATA (no launch; no such range), ESCHEMA (the
 * network has another number of operators than a repeat has kernels), ENOMEM. Free *out, after an
 * error too. */
cdmpp_status cd_trace_combine(CD_KEEP const cd_trace *const *t, CD_KEEP const char *const *path,
                              size_t n, const cd_trace_combining *o, cd_trace_runs *out,
                              cdmpp_err *err);
void cd_trace_runs_free(cd_trace_runs *r); /* zeroed is fine */

/* ---- sqlite_bound.c: a SQLite file of somebody else ---- */
struct sqlite3;
/* of its virtual machine, which takes 10 to 100 million a second */
#define CD_SQLITE_STEPS_BASE ((int64_t)1 << 27)
/* of the file, beside those: a row of our queries takes 20 to 200 */
#define CD_SQLITE_STEPS_PER_BYTE ((int64_t)64)
#define CD_SQLITE_TEXT_MAX       (64 << 20) /* bytes of a text or a row */
typedef struct cd_sqlite_bound {
    int64_t most, used; /* steps of a statement */
    const volatile sig_atomic_t *stop;
    bool over;
} cd_sqlite_bound;
/* From now on: no views, no triggers, no functions with effects in its schema, no text beyond
 * CD_SQLITE_TEXT_MAX, and a statement that takes too many steps, or once *stop is not 0 (NULL:
 * never), ends with SQLITE_INTERRUPT. *b lives as long as the database. */
void cd_sqlite_bound_set(cd_sqlite_bound *b, struct sqlite3 *db, const char *path,
                         const volatile sig_atomic_t *stop);
/* The error of SQLITE_INTERRUPT: ERANGE or EINTERRUPTED. */
cdmpp_status cd_sqlite_bound_fail(const cd_sqlite_bound *b, cdmpp_err *err);

/* ---- what is written ---- */
/* at most `limit` rows of a table; 0: all */
void cd_trace_put_text(cd_buf *b, const cd_trace_runs *r, size_t limit);
void cd_trace_put_json(cd_buf *b, const cd_trace_runs *r);
/* A network in the own form of docs/reference/netgraph.md: a node a step, one after the other in
 * each stream. `name` of the network; `device` NULL: the trace's. Errors: ENOMEM. */
cdmpp_status cd_trace_put_graph(cd_buf *b, const cd_trace_runs *r, const char *name,
                                const char *device, cdmpp_err *err);
/* Steps whose operator the tables know, as a table that cdmpp-train reads
 * (docs/reference/operators.md): of equal ones the fastest, *n rows. `device` as above. Errors:
 * ENOMEM. */
cdmpp_status cd_trace_put_table(cd_buf *b, const cd_trace_runs *r, const char *device, size_t *n,
                                cdmpp_err *err);
#endif

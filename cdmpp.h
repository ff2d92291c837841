/* cdmpp -- predict the latency of a tensor program on a device, from C.
 *
 * The whole public surface. Everything declared here starts with cdmpp_ or
 * CDMPP_; nothing else in this repository is meant to be linked against.
 *
 *   set up once                                     use, a batch at a time
 *   cdmpp_model    (file) ---------+
 *   cdmpp_tasks    (definitions) --+-> cdmpp_context -- cdmpp_score --> score, seconds,
 *   cdmpp_observer (may be NULL) --+        |           cdmpp_observe   interval, flags
 *   cdmpp_task     (one task, its target) --+-- with each batch
 *
 *   cdmpp_network   (ONNX file, zoo, graph)  -- cdmpp_estimate_network --> cdmpp_estimate:
 *                                                                          latency, interval, nodes
 *   cdmpp_operators (model, measured tables) -- cdmpp_operators_ask -----> seconds, interval, how,
 *                                                                          what is new
 *
 * Threads: model, tasks, task, network, estimate and operators are immutable once made: any number
 * of threads. A context is one thread's at a time; make one for each. An observer changes in
 * cdmpp_observe only: no other context that has it may score meanwhile. Units: every latency is in
 * seconds, every size in bytes, every work count in operations. A name says otherwise when it is
 * otherwise. The library never prints, never exits, has no state of its own that a caller could
 * see, and starts threads only for a context or an estimate that asks for more than one. After fork
 * a context may be used in the child; it then works with one thread. Structs that the caller fills
 * begin with `size`, their sizeof: fields are only ever added behind the last one, 0 in a field
 * always means its default. Examples: docs/reference/api.md.
 */
#ifndef CDMPP_H
#define CDMPP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CDMPP_VERSION "0.1.0"

#if defined(__GNUC__)
#define CDMPP_API __attribute__((visibility("default")))
#else
#define CDMPP_API
#endif

/* One row per failure kind: X(name, exit code of the command, default text).
 * The enum, the names, the texts and the exit codes all come from here.
 * Exit code 3 ("done, some items failed") is not an error of one call: the
 * commands use it when lines were skipped. */
#define CDMPP_STATUS_MAP(X)                                                                        \
    X(OK, 0, "ok")                                                                                 \
    X(EUSAGE, 2, "bad command line")                                                               \
    X(EPARSE, 4, "malformed input")                                                                \
    X(ESCHEMA, 4, "well-formed input with a wrong or missing key")                                 \
    X(ERANGE, 4, "value outside its allowed range")                                                \
    X(EUNSUPPORTED, 4, "valid input that this version does not know")                              \
    X(ENOTASK, 4, "record of a task that no task file defines")                                    \
    X(EINVALID, 4, "schedule that does not fit its task")                                          \
    X(EREJECTED, 4, "program breaks a limit of its target")                                        \
    X(EMODEL, 5, "model and input do not fit each other")                                          \
    X(EIO, 1, "cannot read or write a file")                                                       \
    X(ENOMEM, 1, "out of memory")                                                                  \
    X(ENUMERIC, 1, "not a finite number")                                                          \
    X(EBACKEND, 6, "a library or device that is needed is missing")                                \
    X(EINTERRUPTED, 130, "interrupted")                                                            \
    X(ENODATA, 4, "a data set that is asked for is not there")

typedef enum cdmpp_status {
#define CDMPP_X(name, exitcode, text) CDMPP_##name,
    CDMPP_STATUS_MAP(CDMPP_X)
#undef CDMPP_X
        CDMPP_STATUS_COUNT
} cdmpp_status;

/* Where and why something failed. Owned by the caller, never allocated:
 * declare one on the stack and pass its address. NULL means "I don't care". */
typedef struct cdmpp_err {
    cdmpp_status code;
    long line;       /* 1-based line of the input; 0 if not about a line   */
    char path[192];  /* input file, its middle left out when too long; "" if none */
    char key[96];    /* dotted path inside the line: "i[1][1][4]"          */
    char msg[224];   /* what was expected and what was found               */
    const char *src; /* our own source location, for bug reports           */
    int src_line;
} cdmpp_err;

/* Render "path:line: key: msg [NAME]" into buf (n bytes), always
 * NUL-terminated; where it does not fit, the path loses its middle. Returns buf. */
CDMPP_API char *cdmpp_err_format(const cdmpp_err *err, char *buf, size_t n);
/* "EPARSE" for CDMPP_EPARSE; never NULL. */
CDMPP_API const char *cdmpp_status_name(cdmpp_status st);
/* The exit code that a command gives for `st`. */
CDMPP_API int cdmpp_exit_code(cdmpp_status st);
CDMPP_API const char *cdmpp_version(void);

/* Of this interface, not of the program: grows when something is added. */
#define CDMPP_ABI 6
CDMPP_API int cdmpp_abi_version(void);

typedef struct cdmpp_tasks cdmpp_tasks;
typedef struct cdmpp_task cdmpp_task;
typedef struct cdmpp_model cdmpp_model;
typedef struct cdmpp_observer cdmpp_observer;
typedef struct cdmpp_context cdmpp_context;
typedef struct cdmpp_network cdmpp_network;
typedef struct cdmpp_estimate cdmpp_estimate;

/* ---- tasks: what records and schedules refer to ---- */
/* An empty registry; fill it, then share it. Errors: ENOMEM. */
CDMPP_API cdmpp_status cdmpp_tasks_new(cdmpp_tasks **out, cdmpp_err *err);
/* Add every task of all_tasks.pkl, a *.task.pkl, our own text form, a text that TVM printed
 * (*.out), or of all such files in a folder. A key keeps the first definition that came, a network
 * its first tasks: see cdmpp_tasks_warning. Errors: EIO, EPARSE, ESCHEMA, EUNSUPPORTED, ENOMEM. */
CDMPP_API cdmpp_status cdmpp_tasks_load(cdmpp_tasks *t, const char *path, cdmpp_err *err);
/* The same from `len` bytes in memory; `name` stands for the path in messages. */
CDMPP_API cdmpp_status cdmpp_tasks_add(cdmpp_tasks *t, const char *name, const void *bytes,
                                       size_t len, cdmpp_err *err);
CDMPP_API size_t cdmpp_tasks_count(const cdmpp_tasks *t);
/* i < count. */
CDMPP_API const char *cdmpp_tasks_key(const cdmpp_tasks *t, size_t i);
/* Definitions and networks that differ from an earlier one of the same key or name, which goes
 * first: number i, with its file and its key or name, for cdmpp_err_format; NULL: no such i. Valid
 * until the next cdmpp_tasks_load or cdmpp_tasks_add. */
CDMPP_API const cdmpp_err *cdmpp_tasks_warning(const cdmpp_tasks *t, size_t i);
CDMPP_API void cdmpp_tasks_free(cdmpp_tasks *t); /* NULL is fine; after its contexts and tasks */

typedef struct cdmpp_task_info {
    size_t size;              /* sizeof(cdmpp_task_info) */
    const char *workload_key; /* as in records */
    const char *target;       /* "cuda -model=t4", "llvm -mcpu=..."; NULL: the task file's */
    /* (8) TVM's HardwareParams in a record's order; NULL: the task file's */
    const int64_t *hardware;
    /* operations; 0: counted from the definition; unknown where there is none */
    double flop;
} cdmpp_task_info;

/* One task for batches of rows, packed features or steps; copies what `info` points at.
 * tasks NULL: no definition, good for rows and packed features only.
 * Errors: EUSAGE (size, no key), ENOTASK (not in tasks), ENOMEM. */
CDMPP_API cdmpp_status cdmpp_task_new(const cdmpp_tasks *tasks, const cdmpp_task_info *info,
                                      cdmpp_task **out, cdmpp_err *err);
CDMPP_API double cdmpp_task_flop(const cdmpp_task *t); /* -1: unknown */
CDMPP_API void cdmpp_task_free(cdmpp_task *t);         /* NULL is fine */

/* ---- model ---- */
/* Load a model file of cdmpp-train; NULL: the one that commands take where none is named (the
 * user's of this processor, else the shipped one; $CDMPP_DEFAULT_MODEL). Errors: EUSAGE (NULL, and
 * there is none), EIO, EPARSE (damaged), EUNSUPPORTED (newer), EMODEL (made for other features),
 * ENOMEM, EBACKEND. */
CDMPP_API cdmpp_status cdmpp_model_load(const char *path, cdmpp_model **out, cdmpp_err *err);
/* The same from `len` bytes in memory, which may go afterwards. */
CDMPP_API cdmpp_status cdmpp_model_read(const void *bytes, size_t len, cdmpp_model **out,
                                        cdmpp_err *err);
/* Where the model comes from and how good it is: one JSON object (docs/reference/model.md), owned
 * by the model. */
CDMPP_API const char *cdmpp_model_info(const cdmpp_model *m);
CDMPP_API size_t cdmpp_model_n_device(const cdmpp_model *m);
CDMPP_API const char *cdmpp_model_device(const cdmpp_model *m, size_t i); /* NULL: no such i */
CDMPP_API size_t cdmpp_model_n_profile(const cdmpp_model *m);
/* "full" first; NULL: no such i */
CDMPP_API const char *cdmpp_model_profile(const cdmpp_model *m, size_t i);
CDMPP_API size_t cdmpp_model_n_col(const cdmpp_model *m); /* columns of a feature row: 164 */
/* 0: it reads loop nests: records or steps only */
CDMPP_API int cdmpp_model_takes_rows(const cdmpp_model *m);
/* NULL is fine; after its contexts and observers */
CDMPP_API void cdmpp_model_free(cdmpp_model *m);

/* ---- context ---- */
typedef struct cdmpp_options {
    size_t size;        /* sizeof(cdmpp_options) */
    const char *device; /* of every candidate; NULL: its own, -model= of its target; a model
                                 of a single device needs neither */
    /* NULL: "full"; "tuner", "two-stage" where the model has them (docs/reference/model.md) */
    const char *profile;
    int nearest_device; /* not 0: a device that the model does not know is taken for the most
                                 similar one that it does, and flagged; 0: EMODEL */
    /* descriptions for that, and peaks below which no time is (docs/reference/devices.md), before
     * the installed ones; NULL: these alone, if any */
    const char *devices_file;
    int nthreads;             /* 0: 1. The results have the same bits for any number */
    size_t max_rows;          /* of a candidate; 0: 16384. Longer ones get ERANGE */
    cdmpp_observer *observer; /* measured results that correct the predictions; NULL: none */
    /* candidates whose answer is kept, so that a search that comes back to them gets it at once,
     * 0.2 kB each; 0: none. Since ABI 2 */
    size_t cache;
} cdmpp_options;

/* Borrows model, tasks (NULL: neither records nor steps) and observer; copies the rest.
 * options NULL: all defaults. Errors: EUSAGE (size, nthreads), EMODEL (device, profile),
 * EIO, EPARSE, ESCHEMA, ERANGE (devices_file), EBACKEND (no thread to be had), ENOMEM. */
CDMPP_API cdmpp_status cdmpp_context_new(const cdmpp_model *m, const cdmpp_tasks *tasks,
                                         const cdmpp_options *options, cdmpp_context **out,
                                         cdmpp_err *err);
/* The model's device that answers for options.device; NULL when none was given. */
CDMPP_API const char *cdmpp_context_device(const cdmpp_context *c);
/* Candidates looked for in options.cache, and found there, since the context was made; 0 without a
 * cache. */
CDMPP_API void cdmpp_context_cache(const cdmpp_context *c, uint64_t *asked, uint64_t *found);
CDMPP_API void cdmpp_context_free(cdmpp_context *c); /* NULL is fine */

/* ---- candidates ---- */
typedef struct cdmpp_text {
    const char *p;
    size_t n; /* bytes; no NUL needed */
} cdmpp_text;

typedef enum cdmpp_form {
    CDMPP_RECORDS = 1, /* text[i]: a line of a measure log; its costs are not looked at */
    CDMPP_STEPS,       /* text[i]: the steps alone, [["SP",2,0,512,[64],1], ...], of `task` */
    /* data: float (row_ptr[n], n_col), rows of candidate i: row_ptr[i] .. row_ptr[i+1] */
    CDMPP_ROWS_F32,
    CDMPP_ROWS_F64, /* the same of double */
    CDMPP_PACKED    /* data: the bytes of TVM's GetPerStoreFeaturesFromStates, little-endian:
                          int32 n, int32 size[n+2], then of each candidate size[i] floats:
                          their number of rows, the rows; size[i] 0: TVM could not lower it */
} cdmpp_form;

/* n candidates, borrowed for the call. Fields that a form does not name are 0. */
typedef struct cdmpp_batch {
    size_t size; /* sizeof(cdmpp_batch) */
    cdmpp_form form;
    size_t n; /* candidates; 0 is fine */
    /* STEPS: needed. ROWS, PACKED: its operations, target and key; NULL: unknown */
    const cdmpp_task *task;
    const cdmpp_text *text; /* RECORDS, STEPS: (n) */
    const void *data;       /* ROWS, PACKED; aligned in any way */
    size_t len;             /* PACKED: bytes of data */
    size_t n_col;           /* ROWS: 164, TVM's per-store features with max_n_bufs 5 */
    const int64_t *row_ptr; /* ROWS: (n+1), not falling */
} cdmpp_batch;

/* the schedule makes no program; status EREJECTED or EINVALID */
#define CDMPP_FLAG_LOWERING_FAILED 1u
#define CDMPP_FLAG_OUT_OF_RANGE    2u  /* unlike what the model was trained on */
#define CDMPP_FLAG_UNKNOWN_DEVICE  4u  /* another device answered, options.nearest_device */
#define CDMPP_FLAG_TRUNCATED       8u  /* more leaves than the model tells apart */
#define CDMPP_FLAG_OBSERVED        16u /* corrected by measured results */

/* Why CDMPP_FLAG_OUT_OF_RANGE: what the programs lacked that the model was trained on
 * (docs/reference/model.md, Unlike programs). Of rows without a task only the first is known. */
#define CDMPP_REASON_RANGE     1u  /* columns of features outside their range of training */
#define CDMPP_REASON_DTYPE     2u  /* a type of numbers, or this operator with it */
#define CDMPP_REASON_OPERATOR  4u  /* a kind of reduction or of access */
#define CDMPP_REASON_INTRINSIC 8u  /* exp, erf, a cast ... */
#define CDMPP_REASON_THREADS   16u /* number of threads, on this device */
#define CDMPP_REASON_FEATURE   32u /* width of vectors, features of the target, on this device */
#define CDMPP_REASON_DEVICE    64u /* another device answered */
/* the model answered less than the device can: what it can at best stands there */
#define CDMPP_REASON_PEAK 128u

/* Arrays of the caller, each (n) or NULL: not wanted.
 *
 *   of a candidate    scored                                    failed
 *   status            OK                                        why (no other array says it)
 *   score, score_f32  1 / the model's median, seconds, or       0
 *                     1 / order of one with model.order
 *   seconds           finite, > 0, least mean |error|           +infinity
 *   low, high         interval around it (model: predict.level) +infinity
 *   rel_std           expected size of ln(measured/predicted)   NaN
 *
 * Scores are finite and >= 0, higher is better, and comparable between all calls for one device and
 * observer state: what both of TVM's tuners ask for. They also want one > 0: where every candidate
 * of a call failed, all scores are CDMPP_SCORE_NONE. Models of version 1 know no interval: low,
 * high and rel_std are NaN. So they are for a program that is unlike in a way of which nothing
 * tells how far off it is.
 *
 * Where the task of a candidate is known and its device described (cdmpp_options.devices_file),
 * seconds, low and high are no less than what the device needs for it at best: CDMPP_REASON_PEAK
 * says that seconds were. Scores stay the model's, so the order does too. */
#define CDMPP_SCORE_NONE 1e-30
typedef struct cdmpp_result {
    size_t size; /* sizeof(cdmpp_result) */
    double *score;
    float *score_f32;
    double *seconds, *low, *high, *rel_std;
    uint32_t *flags;      /* CDMPP_FLAG_* */
    cdmpp_status *status; /* of each candidate */
    cdmpp_err *error;     /* of each candidate: code, key, message; code OK where it was scored */
    /* CDMPP_REASON_*; 0: in range, or failed. Behind the fields of ABI 3: a shorter struct lacks
     * it */
    uint32_t *reason;
} cdmpp_result;

/* Score a batch. A candidate that cannot be scored costs only itself; its status is one of EPARSE,
 * ESCHEMA, ERANGE (max_rows, text), EUNSUPPORTED, ENOTASK, EINVALID (steps do not fit; no rows),
 * EREJECTED (limits of the target; size 0 in a packed batch), EMODEL (device), ENUMERIC (NaN or Inf
 * in its rows). With one thread and what has been seen in size before, nothing asks the heap.
 * Errors of the whole call, outputs then undefined: EUSAGE (sizes, form, missing arrays), EMODEL
 * (rows of another length: says both; a model that reads loop nests was given rows; no device
 * known), EPARSE (a packed batch that is damaged or of another n; row_ptr falls), ENOMEM, EBACKEND,
 * ENUMERIC. */
CDMPP_API cdmpp_status cdmpp_score(cdmpp_context *c, const cdmpp_batch *b, const cdmpp_result *out,
                                   cdmpp_err *err);

/* ---- measured results ---- Kept as they come, for each device and task; predictions are corrected
 * at once, nothing is trained: programs of the task by a Gaussian process whose prior is the
 * model's own uncertainty, other tasks of the device by a shared shift (learner/model/model.h). The
 * result depends on what was observed, not on the order, up to rounding; of a task the last 128
 * programs count. */
CDMPP_API cdmpp_status cdmpp_observer_new(const cdmpp_model *m, cdmpp_observer **out,
                                          cdmpp_err *err);
/* Enter candidates with their measured seconds (n); c has an observer (options). NaN, infinity and
 * what is not above 0 are failed measurements: not entered, status ERANGE; a candidate that cannot
 * be scored is not entered either. status (n) or NULL. Allocates. Errors: those of cdmpp_score,
 * with nothing entered; ENOMEM, with some of them entered. */
CDMPP_API cdmpp_status cdmpp_observe(cdmpp_context *c, const cdmpp_batch *b, const double *seconds,
                                     cdmpp_status *status, cdmpp_err *err);
CDMPP_API size_t cdmpp_observer_count(const cdmpp_observer *o); /* measured programs kept */
/* As one JSON object of *len bytes and a NUL into text (cap); text NULL: *len only.
 * Errors: ERANGE (cap), ENOMEM. */
CDMPP_API cdmpp_status cdmpp_observer_write(const cdmpp_observer *o, char *text, size_t cap,
                                            size_t *len, cdmpp_err *err);
/* The reverse, to the same predictions up to rounding. Errors: EPARSE, ESCHEMA, ERANGE,
 * EUNSUPPORTED, EMODEL (of another model), ENOMEM. */
CDMPP_API cdmpp_status cdmpp_observer_read(const cdmpp_model *m, const char *text, size_t len,
                                           cdmpp_observer **out, cdmpp_err *err);
CDMPP_API void cdmpp_observer_free(cdmpp_observer *o); /* NULL is fine; after its contexts */

/* ---- networks ---- Since ABI 3 How long whole networks take on devices that need not be here.
 * Every operator gets a time, from a cost model and a schedule that is fixed before, and the queues
 * of the device are simulated: docs/reference/replay.md. The answers are those of cdmpp-replay. */
typedef struct cdmpp_network_options {
    size_t size;   /* sizeof(cdmpp_network_options) */
    int64_t batch; /* 0: as the file says; of the zoo 1. Not of graph files */
    /* of the zoo: edge of the image, length of the sequence; 0: as published */
    int input_size;
    int training;           /* not 0: an iteration of training: forward, backward and update */
    const char *layout;     /* "auto", "nchw", "nhwc" of images; NULL: auto, nhwc for CPUs */
    const char *const *dim; /* (n_dim) "NAME=N", values of symbolic dimensions of an ONNX file */
    size_t n_dim;
    /* (n_input) inputs of an ONNX file that are data, the others are weights; n_input 0: as the
     * file says */
    const char *const *input;
    size_t n_input;
    /* (n_tasks) files of task definitions, which tasks of a graph file refer to */
    const char *const *tasks;
    size_t n_tasks;
} cdmpp_network_options;

/* `from`: an ONNX file, else a name of the zoo ("resnet-50"), else a network that options.tasks
 * name. It is read to find errors now, and read again by each estimate: layout and programs depend
 * on the device. Copies what options (NULL: all defaults) point at. Errors: EUSAGE (size, numbers,
 * layout), ESCHEMA (no such network), EIO, EPARSE, EUNSUPPORTED, ERANGE, ENOMEM. */
CDMPP_API cdmpp_status cdmpp_network_load(const char *from, const cdmpp_network_options *options,
                                          cdmpp_network **out, cdmpp_err *err);
/* The same of a graph file: our own form (docs/reference/netgraph.md), measured runs of TVM, a
 * graph executor's JSON, a table of library operators. It may hold many networks; of the options
 * only tasks is for it. */
CDMPP_API cdmpp_status cdmpp_network_load_graph(const char *path,
                                                const cdmpp_network_options *options,
                                                cdmpp_network **out, cdmpp_err *err);
CDMPP_API size_t cdmpp_network_count(const cdmpp_network *n); /* networks in it */
/* owned by the network; NULL: no such i */
CDMPP_API const char *cdmpp_network_name(const cdmpp_network *n, size_t i);
CDMPP_API void cdmpp_network_free(cdmpp_network *n); /* NULL is fine */

typedef struct cdmpp_estimate_options {
    size_t size; /* sizeof(cdmpp_estimate_options) */
    /* (n_model) model files, of tasks or of library operators: the first that knows a device serves
     * it. Behind them come those in the folders of $CDMPP_MODELS. None at all: those that commands
     * take then */
    const char *const *model;
    size_t n_model;
    /* "v100" or "v100,k80"; NULL: what the graph says, or the only one that the models know; of
     * models that commands take by themselves the one that stands for this machine */
    const char *device;
    /* descriptions of devices (docs/reference/devices.md), before the installed ones; NULL: these
     * alone */
    const char *devices_file;
    const char *target; /* of the devices' programs; NULL: from their descriptions */
    /* a described device that no model knows is taken for its nearest, marked; not 0: one that
     * nobody describes for a model's only one; 0: EMODEL */
    int nearest_device;
    /* (n_records) measure logs, their folders: the best record of a task on the device is its
     * schedule */
    const char *const *records;
    size_t n_records;
    /* (n_schedules) files of cdmpp-replay --save-schedules; they come before records */
    const char *const *schedules;
    size_t n_schedules;
    /* candidates of a task without a schedule, of which the best predicted is taken; 0: 160, and
     * none where records or schedules are given */
    int trials;
    int seed; /* of candidates and interval */
    /* folder in which chosen candidates are kept; NULL: nowhere. The answers do not depend on it */
    const char *cache;
    int nthreads; /* 0: 1. The answers do not depend on it */
    /* not 0: operators take the times in the graph; no model is needed where all have one */
    int given_times;
    /* not 0: a total without the operators that have no estimate; 0: ESCHEMA of that row */
    int allow_missing;
    int workers;  /* operators that a device runs at a time; 0: 1 */
    double level; /* of the interval, 0.01 to 0.999; 0: 0.9 */
} cdmpp_estimate_options;

/* One row for each network and device, networks first. A row that fails costs only itself. Copies
 * nothing of `n` that must stay: network and estimate are freed in any order. Errors: EUSAGE (size,
 * numbers, no device), EMODEL (no model knows a device), those of reading models, records and
 * networks, ENOMEM; where every row fails, the error of the first. */
CDMPP_API cdmpp_status cdmpp_estimate_network(const cdmpp_network *n,
                                              const cdmpp_estimate_options *options,
                                              cdmpp_estimate **out, cdmpp_err *err);
CDMPP_API size_t cdmpp_estimate_count(const cdmpp_estimate *e); /* rows */
CDMPP_API void cdmpp_estimate_free(cdmpp_estimate *e);          /* NULL is fine */

/* Texts are owned by the estimate. Numbers that are unknown are NaN, or -1 where they are
 * integers. */
typedef struct cdmpp_estimate_total {
    size_t size; /* sizeof(cdmpp_estimate_total), set by the caller */
    const char *network, *device;
    int64_t batch;
    cdmpp_status status; /* not OK: nothing below is known but `error` */
    const char *error;   /* "": none */
    double seconds;      /* latency of a pass */
    /* interval of options.level; NaN: there is none, as where all times were given or measured, or
     * nothing tells how far off some are */
    double low, high;
    /* 0..1: part of the operations without an estimate; where those are not known, of the
     * operators. No part of the time */
    double missing_share;
    /* 0..1: part of the time of programs unlike those that the model was trained on */
    double unlike_share;
    int64_t peak_bytes; /* of memory on the fullest device */
    size_t n_node;      /* operators that run */
} cdmpp_estimate_total;
/* Fills *out for row i. Errors: EUSAGE (size), ERANGE (i). */
CDMPP_API cdmpp_status cdmpp_estimate_row(const cdmpp_estimate *e, size_t i,
                                          cdmpp_estimate_total *out, cdmpp_err *err);

typedef struct cdmpp_estimate_op {
    size_t size;             /* sizeof(cdmpp_estimate_op), set by the caller */
    const char *name, *type; /* of the operator, "" where the graph names no type */
    const char *device;      /* where it runs */
    /* of its time: "model", "library", "given", "record", "free", "scaled", "missing" */
    const char *source;
    const char *schedule; /* where its schedule comes from; NULL: it has none */
    int64_t repeat;       /* runs in a pass, one behind the other */
    double start, end;    /* seconds after the start of the pass, of all runs */
    double seconds;       /* of one run */
    /* interval of the model's level around it; NaN: nothing tells how far off it is */
    double low, high;
    int critical;   /* not 0: on the critical path */
    uint32_t flags; /* CDMPP_FLAG_OUT_OF_RANGE, CDMPP_FLAG_UNKNOWN_DEVICE */
    /* CDMPP_REASON_*. Behind the fields of ABI 3: not written into a shorter struct, nor the next
     * one */
    uint32_t reason;
    /* these reasons as a text, "dtype float16, operator kind sum 4+3"; "": none */
    const char *unlike;
} cdmpp_estimate_op;
/* Fills *out for operator k < n_node of row i, in the order of the graph. Errors: EUSAGE (size),
 * ERANGE (i, k). */
CDMPP_API cdmpp_status cdmpp_estimate_node(const cdmpp_estimate *e, size_t i, size_t k,
                                           cdmpp_estimate_op *out, cdmpp_err *err);
/* All rows as cdmpp-replay --json prints them (docs/reference/replay.md), `nodes` not 0: with
 * --ops; *len bytes and a NUL into text (cap); text NULL: *len only. Errors: ERANGE (cap),
 * ENOMEM. */
CDMPP_API cdmpp_status cdmpp_estimate_json(const cdmpp_estimate *e, int nodes, char *text,
                                           size_t cap, size_t *len, cdmpp_err *err);

/* ---- partitions ---- Since ABI 3 Which device of a machine runs which part of a network: every
 * operator on one device, or split along a dimension over several, by the predicted seconds of each
 * on each device and of the copies between them. Nothing is run. The answers are those of
 * cdmpp-partition (docs/reference/partition.md). */
typedef struct cdmpp_partition cdmpp_partition;
typedef struct cdmpp_partition_options {
    size_t size; /* sizeof(cdmpp_partition_options) */
    /* (n_model) model files: the first that knows the devices serves them; behind them come those
     * in the folders of $CDMPP_MODELS */
    const char *const *model;
    size_t n_model;
    /* "cpu0,ocl0", the first holds inputs and results; NULL: all of machine, else cpu0,ocl0 */
    const char *devices;
    /* devices and links, a file of cdmpp-partition link measure; NULL: usual values of cpuN and
     * oclN */
    const char *machine;
    /* descriptions of the models' devices (docs/reference/devices.md), before the installed ones;
     * NULL: these alone */
    const char *devices_file;
    /* (n_as) "granite-rapids": the models' device that all are; "ocl0=granite-rapids": that one is;
     * n_as 0: as machine says, else the only device that the models know */
    const char *const *as;
    size_t n_as;
    int64_t batch; /* 0: as the file says; of the zoo 1 */
    /* of the zoo: edge of the image, length of the sequence; 0: as published */
    int input_size;
    /* "auto", "nchw", "nhwc" of images; NULL: auto, by the first device */
    const char *layout;
    /* (n_schedules) files of cdmpp-replay --save-schedules; they come before records */
    const char *const *schedules;
    size_t n_schedules;
    /* (n_records) measure logs, their folders: the best record of a task on the device is its
     * schedule */
    const char *const *records;
    size_t n_records;
    /* candidates of a shard beside the whole operator's schedule; 0: none, but 64 where there is no
     * schedule */
    int trials;
    int seed;     /* of candidates */
    int nthreads; /* 0: 1. The answers do not depend on it */
    int whole;    /* not 0: no operator is split */
    /* "H,N": dimensions that may be split (docs/reference/partition.md); NULL: all that are
     * legal */
    const char *dims;
    int granules; /* shares are multiples of one n-th; 0: 8 */
    /* file of rules which device may run what (docs/reference/offload.md); NULL: none */
    const char *rules;
} cdmpp_partition_options;

/* `from`: an ONNX file, else a name of the zoo ("resnet-50"). Copies what it keeps: nothing of
 * options (NULL: all defaults) must stay. Errors: EUSAGE (size, numbers, no such network or device,
 * dims that no operator has, no model), EMODEL (no model knows a device), ESCHEMA (no link between
 * two memories), those of reading models, machines, networks, records and rules; EBACKEND (no
 * thread to be had), ENOMEM. */
CDMPP_API cdmpp_status cdmpp_partition_network(const char *from,
                                               const cdmpp_partition_options *options,
                                               cdmpp_partition **out, cdmpp_err *err);
CDMPP_API void cdmpp_partition_free(cdmpp_partition *p); /* NULL is fine */

/* Texts are owned by the partition. Numbers that are unknown are NaN. */
typedef struct cdmpp_partition_total {
    size_t size;          /* sizeof(cdmpp_partition_total), set by the caller */
    const char *network;  /* its name */
    const char *verdict;  /* one sentence: what the plan gains, or why it splits nothing */
    double seconds;       /* predicted, of a pass by the plan */
    double alone;         /* predicted, of a pass on the best device alone */
    double gain, ceiling; /* alone / seconds; the most that all devices together could give */
    double bound;         /* seconds that no plan of this kind is below */
    int split;            /* not 0: at least one operator is split */
    size_t n_device, n_op;
} cdmpp_partition_total;
/* Fills *out. Errors: EUSAGE (size). */
CDMPP_API cdmpp_status cdmpp_partition_summary(const cdmpp_partition *p, cdmpp_partition_total *out,
                                               cdmpp_err *err);
/* "cpu0"; NULL: no such d */
CDMPP_API const char *cdmpp_partition_device(const cdmpp_partition *p, size_t d);
/* Seconds of a pass on device d alone; NaN: it cannot run all operators, or no such d. */
CDMPP_API double cdmpp_partition_alone(const cdmpp_partition *p, size_t d);

typedef struct cdmpp_partition_op {
    size_t size;             /* sizeof(cdmpp_partition_op), set by the caller */
    const char *name, *type; /* of the operator, with what is fused into it: "Conv+Relu" */
    const char *dim;         /* dimension that is split; "": it is whole */
    const char *why;         /* one sentence */
    size_t n_shard;          /* 1: whole */
    double seconds;          /* of the operator as planned */
    double exchange;         /* of copies and waits before it */
    double alone;            /* on the device that is fastest for it alone */
} cdmpp_partition_op;
/* Fills *out for operator i < n_op, in an order to run in. Errors: EUSAGE (size), ERANGE (i). */
CDMPP_API cdmpp_status cdmpp_partition_operator(const cdmpp_partition *p, size_t i,
                                                cdmpp_partition_op *out, cdmpp_err *err);

typedef struct cdmpp_partition_piece {
    size_t size;    /* sizeof(cdmpp_partition_piece), set by the caller */
    size_t device;  /* < n_device */
    int64_t lo, hi; /* lo .. hi - 1 of the dimension; of a whole operator 0, 0 */
    double seconds; /* predicted, launch and contention included */
} cdmpp_partition_piece;
/* Fills *out for shard k < n_shard of operator i. Errors: EUSAGE (size), ERANGE (i, k). */
CDMPP_API cdmpp_status cdmpp_partition_shard(const cdmpp_partition *p, size_t i, size_t k,
                                             cdmpp_partition_piece *out, cdmpp_err *err);
/* All of it, with baselines and the plan: the `result` of cdmpp-partition --json
 * (docs/reference/plan.md). *len bytes and a NUL into text (cap); text NULL: *len only. Errors:
 * ERANGE (cap), ENOMEM. */
CDMPP_API cdmpp_status cdmpp_partition_json(const cdmpp_partition *p, char *text, size_t cap,
                                            size_t *len, cdmpp_err *err);

/* ---- operators of language models ---- Since ABI 6 Latencies of products, attention, experts and
 * collectives on GPUs, from kind, sizes, number types, library and GPU: the answers of
 * cdmpp-predict --operators (docs/reference/llm-operators.md has kinds, parameters, types and what
 * an answer means). */
typedef struct cdmpp_operators cdmpp_operators;
typedef struct cdmpp_operators_options {
    size_t size; /* sizeof(cdmpp_operators_options) */
    /* "h100": of questions that name none; NULL: then such a question is ESCHEMA */
    const char *device;
    /* descriptions of devices (docs/reference/devices.md), before the installed ones; NULL: these
     * alone */
    const char *devices_file;
    const char *const *measured; /* (n_measured) tables of measured times, or folders of these */
    size_t n_measured;
    double level; /* of the intervals, 0.01 to 0.999; 0: 0.9 */
} cdmpp_operators_options;

/* `model`: a file of cdmpp-train with data.kind llm_operators; NULL: the shipped one. options NULL:
 * all defaults; nothing of them must stay. Immutable: any number of threads. Errors: EIO, EPARSE,
 * ESCHEMA (damaged; an unknown device; no table), EMODEL (another kind of model, or of another
 * version), EUSAGE (size, level), ENOMEM, EBACKEND. */
CDMPP_API cdmpp_status cdmpp_operators_open(const char *model,
                                            const cdmpp_operators_options *options,
                                            cdmpp_operators **out, cdmpp_err *err);
CDMPP_API void cdmpp_operators_free(cdmpp_operators *o); /* NULL is fine */
/* Rows of `measured` that are kept, and lines that could not be used (bad, or without a time above
 * 0). */
CDMPP_API size_t cdmpp_operators_rows(const cdmpp_operators *o);
CDMPP_API size_t cdmpp_operators_skipped(const cdmpp_operators *o);

/* A value by the name of its column: {"op", "gemm"}, {"dtype", "fp8"}, {"m", NULL, 4096}. */
typedef struct cdmpp_operator_value {
    /* "op", "device", "stack", "kernel", "dtype", "kv_dtype", "distribution", or a parameter of the
     * kind, in any case */
    const char *name;
    const char *text; /* NULL: the number counts */
    double number;    /* NaN and text NULL: not given */
} cdmpp_operator_value;
typedef struct cdmpp_operator {
    /* (n), each name once; "op" is needed, and parameters without a default */
    const cdmpp_operator_value *value;
    size_t n;
} cdmpp_operator;

typedef enum cdmpp_operator_how {
    CDMPP_OPERATOR_MEASURED,     /* a row of `measured` */
    CDMPP_OPERATOR_INTERPOLATED, /* between two rows */
    CDMPP_OPERATOR_PREDICTED     /* by the model alone, or beyond the end of a curve */
} cdmpp_operator_how;
/* What the training has not seen, bits. */
#define CDMPP_OPERATOR_NEW_DEVICE 1u
#define CDMPP_OPERATOR_NEW_STACK  2u /* library and version */
#define CDMPP_OPERATOR_NEW_KERNEL 4u
/* with CDMPP_OPERATOR_ALIKE one of as many bytes on the same units is answered in its place */
#define CDMPP_OPERATOR_NEW_DTYPE 8u
#define CDMPP_OPERATOR_NEW_SIZE  16u
/* no GPU of the training has warps as wide: AMD for NVIDIA */
#define CDMPP_OPERATOR_NEW_VENDOR   32u
#define CDMPP_OPERATOR_ALIKE        64u
#define CDMPP_OPERATOR_NEW_OPERATOR 128u /* this kind of operator */

/* Room for the answers, (n) each; NULL: not wanted. */
typedef struct cdmpp_operator_result {
    size_t size;     /* sizeof(cdmpp_operator_result) */
    double *seconds; /* the answer, > 0; +infinity where status is not CDMPP_OK */
    /* interval of options.level; NaN: nobody knows it, as of what is new and no experiment of the
     * training tells of */
    double *low, *high;
    double *estimate;        /* analytic time, seconds, > 0; NaN where status is not CDMPP_OK */
    double *bound;           /* lower bound by peak and bandwidth, seconds; likewise */
    cdmpp_operator_how *how; /* where status is CDMPP_OK */
    uint32_t *news;          /* CDMPP_OPERATOR_NEW_*; 0: nothing */
    /* EUNSUPPORTED (operator, type), ESCHEMA, ERANGE (a value), EMODEL (the device has no units for
     * the type, or the model was trained on no such operator) */
    cdmpp_status *status;
    cdmpp_err *error; /* the same in words; key is the name of the value */
} cdmpp_operator_result;
/* Answers n operators; one that cannot be answered costs only itself. The same bits for any n. n 0
 * is fine. Errors, as a whole: EUSAGE (size), ENOMEM; ask again for all then. */
CDMPP_API cdmpp_status cdmpp_operators_ask(const cdmpp_operators *o, const cdmpp_operator *v,
                                           size_t n, const cdmpp_operator_result *out,
                                           cdmpp_err *err);

/* ---- spans: time and memory of a part of the calling program ----
 *
 *   cdmpp_span_begin("conv", &s, &err);
 *   ... any code ...
 *   cdmpp_span_end(s, &cost, &err);         cost.seconds, cost.heap_peak ...
 *
 * Memory is counted by libcdmpp-wrap.so, which must be loaded before the program: `cdmpp-profile
 * wrap -- PROGRAM` does it, and prints a table of all spans; LD_PRELOAD does it without the table.
 * Otherwise there are times alone, and `missing` says why. Spans may be nested, and may be open on
 * several threads at a time: each counts the whole process. */
typedef struct cdmpp_span cdmpp_span;
#define CDMPP_UNKNOWN INT64_MIN
typedef struct cdmpp_span_cost {
    size_t size;
    double seconds;     /* from begin to end */
    double cpu_seconds; /* of all threads of the process meanwhile */
    /* Bytes above what was live at the begin; CDMPP_UNKNOWN without libcdmpp-wrap.so. */
    int64_t heap_peak;   /* the most at one time: >= 0 */
    int64_t heap_live;   /* what is left at the end: below 0 where more was freed than allocated */
    int64_t heap_total;  /* asked for meanwhile, freed or not */
    int64_t device_peak; /* of OpenCL buffers, in programs that are linked with libOpenCL */
    int64_t device_live;
    const char *missing; /* why bytes are not known, static text; "" where they are */
} cdmpp_span_cost;
/* name: for the table, its first 47 bytes. Errors: EINVALID (name NULL or ""), ENOMEM. */
CDMPP_API cdmpp_status cdmpp_span_begin(const char *name, cdmpp_span **out, cdmpp_err *err);
/* Ends the span and releases it, whatever is returned. cost may be NULL. Errors: EINVALID (span
 * NULL), EUSAGE (cost->size). */
CDMPP_API cdmpp_status cdmpp_span_end(cdmpp_span *span, cdmpp_span_cost *cost, cdmpp_err *err);

#ifdef __cplusplus
}
#endif
#endif

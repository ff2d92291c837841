/* store -- measurements in one SQLite file: what was measured, where, how, and how long it took.
 * The door of profiler/store.
 *
 * For cdmpp-profile store, for the schedule database of the tuners and for times of operators in
 * replays.
 *
 *   device ──┐            operator ── workload ──┐
 *   target ──┼── measurement ────────────────────┘
 *   source ──┤        └── schedule (steps)
 *   environment
 *
 * The schema, version CD_STORE_VERSION (PRAGMA user_version; application_id 0x63646d70, "cdmp"):
 *   1. device(id, name)              "v100"; "" when nobody said
 *   2. target(id, text, kind, tail)  "cuda -keys=..."; tail: what a record has behind it, a JSON
 *                                    list
 *   3. operator(id, name)            "conv2d_nchw+add+relu", "bmm", a kernel's name, "dag:<hash>"
 *   4. workload(id, key, operator, shape, dtype, layout, flop, known)
 *                                   shape: JSON list; known 1: operator and types come from the
 *                                   task
 *   5. schedule(id, digest, steps)  steps: the list of a record, [["SP",2,0,512,[64],1], ...]
 *   6. environment(id, digest, host, cpu, os, compiler, governor, tool, extra)
 *   7. source(id, path, form, size, mtime_ns, lines, done)  lines: how many are in the store for
 *                                                           good
 *   8. measurement(id, digest, device, target, workload, schedule, environment, source, line,
 *      error_no, min_s,
 *   median_s, mean_s, std_s, cv, n, flags, costs, total_s, timestamp, version)
 *                                             costs: n doubles as they are in memory, NULL for one;
 *                                             times
 *                                             are NULL after an error; source, schedule may be NULL
 *   9. index measurement_best(workload, device, median_s) of those without error
 *
 *   (1) equal measurements are stored once: digest names all that was measured and what came out,
 *       not where it was read. Reading a file again, or half of it after a crash, adds nothing
 *       twice;
 *   (2) rows and the note how far a file was read are written in one transaction: kill -9 at any
 *       time loses at most what came after the last commit (at most CD_STORE_BATCH rows or half a
 *       second);
 *   (3) many processes may write at once (WAL; a writer waits up to CD_STORE_WAIT_S for the
 *       others);
 *   (4) a file that is not ours, or of a later version, is refused and not touched.
 * A cd_store belongs to one thread. */
#ifndef CD_STORE_H
#define CD_STORE_H
#include <signal.h>
#include <stdio.h>

#include "profiler/measure/measure.h"

#define CD_STORE_VERSION 1
#define CD_STORE_BATCH   16384
#define CD_STORE_WAIT_S  120

typedef struct cd_store cd_store;

/* Open; `create` makes a file that is not there. Errors carry the path: EIO (not there, no right,
 * disk), ESCHEMA (another program's), EUNSUPPORTED (later version), EPARSE (damaged), ENOMEM. */
cdmpp_status cd_store_open(const char *path, bool create, CD_GIVE cd_store **out, cdmpp_err *err);
/* Commits what is open. NULL is fine. */
void cd_store_close(CD_TAKE cd_store *s);

/* ---- adding ---- */
enum {
    CD_STORE_NOISY = 1,     /* coefficient of variation above 3 % (three times or more) */
    CD_STORE_COLD = 2,      /* caches were cold */
    CD_STORE_SUMMARY = 4,   /* many launches of a trace in one row */
    CD_STORE_INCLUSIVE = 8, /* holds the time of what it called */
};
#define CD_STORE_FLAGS "noisy|cold|summary|inclusive"

typedef struct cd_store_latency {
    double min_s, median_s, mean_s, std_s, cv;
    uint32_t n, flags;
} cd_store_latency;

/* All texts may be empty, and are UTF-8. */
typedef struct cd_store_env {
    cd_str host, cpu, os, compiler, governor, tool, extra; /* extra: JSON */
} cd_store_env;

typedef struct cd_store_row {
    cd_str device, target, target_tail;
    cd_str workload_key, operator_name, shape, dtype, layout;
    double flop; /* -1: not known */
    bool known;  /* operator, dtype, layout come from the task's definition */
    bool has_steps;
    cd_str steps;     /* JSON list */
    int64_t error_no; /* as in records; times count only when 0 */
    cd_store_latency latency;
    uint32_t n_cost;
    const double *cost_s; /* (n_cost) or NULL */
    double total_s;
    int64_t timestamp;
    cd_str version;          /* of the record; "" where there was none */
    const cd_store_env *env; /* NULL: nothing known */
    long line;               /* of the source; 0: none */
} cd_store_row;

/* Statistics of n times; std of a sample, 0 for one. x is sorted in place. */
void cd_store_latency_of(double *x, size_t n, cd_store_latency *out);

/* Add one measurement; *fresh (may be NULL): it was not there yet. It is durable after
 * cd_store_commit. Errors: EIO, ERANGE (a time that is not a number above 0), ESCHEMA (text),
 * ENOMEM; after them the open transaction is undone. */
cdmpp_status cd_store_add(cd_store *s, const cd_store_row *row, bool *fresh, cdmpp_err *err);
/* A measured record. `task` (NULL: not known) gives operator, types, layout; `device` "": -model of
 * the target; `latency` NULL: by the record's costs, which may be fewer than what was measured. */
cdmpp_status cd_store_add_record(cd_store *s, const cd_record *r, const cd_task *task,
                                 cd_str device, const cd_store_env *env,
                                 const cd_store_latency *latency, long line, bool *fresh,
                                 cdmpp_err *err);
/* All that was added is durable after OK. Errors: EIO; then the transaction is undone. */
cdmpp_status cd_store_commit(cd_store *s, cdmpp_err *err);

/* ---- importing ---- */
#define CD_STORE_FORMS "auto|ansor|table|curves|nsys|kineto|store|profiler|opbench|autotvm"
typedef enum cd_store_form {
    CD_STORE_AUTO,
    CD_STORE_ANSOR,
    CD_STORE_TABLE,
    CD_STORE_CURVES,
    CD_STORE_NSYS,
    CD_STORE_KINETO,
    CD_STORE_STORE,
    CD_STORE_PROFILER,
    CD_STORE_OPBENCH,
    CD_STORE_AUTOTVM
} cd_store_form;

typedef struct cd_store_tally {
    uint64_t files, lines, added, known, bad;
    uint64_t skipped_lines; /* done by an earlier run */
    uint64_t empty;         /* launches of 0 s: too short for the clock of the trace */
} cd_store_tally;

typedef struct cd_store_import {
    cd_store_form form;
    const cd_task_registry *tasks; /* NULL: none */
    const char *device;            /* NULL: by target or folder */
    const cd_store_env *env;       /* NULL: none */
    bool strict;                   /* the first bad line ends it */
    /* Called with each bad line, path and line in it; NULL: counted only. */
    void (*bad)(void *ctx, const cdmpp_err *e);
    void (*progress)(void *ctx, const cd_store_tally *t);
    /* Called with lines about a file that was read, for people; NULL: dropped. */
    void (*said)(void *ctx, const char *path, const cd_buf *lines);
    void *ctx;
    /* NULL: never; EINTERRUPTED once it is not 0, with all that was read kept */
    const volatile sig_atomic_t *stop;
} cd_store_import;

/* Read a file (plain or packed, but for Nsight's SQLite files), "-" or all files of a folder into
 * the store:
 *   ansor    logs of TVM's auto_scheduler       curves  tables of time against a size (set, host,
 *                                                       operator ...)
 *   table    NeuSight's CSV tables              nsys    Nsight Systems' SQLite export
 *   kineto   JSON of PyTorch's profilers, ONNX Runtime, Habana and trtexec
 *            (profiler/trace/trace.h): operators, kernels, layers
 *   profiler tables of nvprof, nsys stats, ncu and cutlass_profiler (profiler/trace/trace.h)
 *   opbench  CSV of EOP (op_name, op_time; a_name, forward_fw_mean_time) and of OpBench's op_costs
 *   autotvm  AutoTVM's logs
 *   store    another store; every measurement keeps its own device and environment
 * Launches of one kernel with one grid and block, and calls of one operator with one set of shapes,
 * become one row of statistics. A file that has not changed since a run that was cut off goes on
 * where that ended. Errors: EIO, ESCHEMA (form not recognized), ENOMEM, EINTERRUPTED, the bad
 * line's when strict. `t` adds up. */
cdmpp_status cd_store_import_path(cd_store *s, const char *path, const cd_store_import *how,
                                  cd_store_tally *t, cdmpp_err *err);

/* The counts as lines for people, or as a JSON object. */
void cd_store_put_tally(cd_buf *b, const cd_store_tally *t, bool json);

/* ---- querying ---- */
typedef struct cd_store_filter {
    const char *device, *target, *operator_name, *workload, *dtype, *layout; /* NULL: any */
    uint64_t limit;                                                          /* 0: all */
    bool errors;                                                             /* failed ones too */
    bool best_first; /* by latency; else in the order of adding */
} cd_store_filter;

/* One measurement. Texts live until the visitor returns. */
typedef struct cd_store_hit {
    int64_t id;
    cd_store_row row;
    cd_store_env env;
    cd_str source; /* path; "" when it was added by hand */
    /* (n_cost) doubles, not aligned; none when there was one, which is latency.mean_s */
    const void *costs;
    uint32_t n_cost;
} cd_store_hit;
typedef cdmpp_status cd_store_visit(void *ctx, const cd_store_hit *hit, cdmpp_err *err);

/* Measurements that fit the filter. Best-N of a task on a device: workload, device, best_first,
 * limit. */
cdmpp_status cd_store_query(cd_store *s, const cd_store_filter *f, cd_store_visit *visit, void *ctx,
                            cdmpp_err *err);

/* A workload by itself. */
typedef struct cd_store_work {
    cd_str key, operator_name, shape, dtype, layout;
    double flop;
    uint64_t n, n_error, n_device;
    double best_s; /* NaN: never measured without error */
} cd_store_work;
typedef cdmpp_status cd_store_work_visit(void *ctx, const cd_store_work *w, cdmpp_err *err);
/* Workloads with measurements that fit the filter, in the order of adding. Errors: EIO, EPARSE,
 * ENOMEM, those of `visit`. */
cdmpp_status cd_store_workloads(cd_store *s, const cd_store_filter *f, cd_store_work_visit *visit,
                                void *ctx, cdmpp_err *err);

/* The workloads of the same operator whose shapes are nearest, each with its `each` best
 * measurements. Nearness: Euclid's distance of log2 of all sizes; only shapes of equal structure
 * count. What is near: `shape` of filter->operator_name, or where shape is NULL those of
 * filter->workload, which need not be in the store when it is a record's key. Of the filter device,
 * target, dtype, layout count too; its limit is that of workloads (0: 5). Errors: ENODATA (no such
 * workload or operator), ESCHEMA (shape). */
typedef struct cd_store_near {
    double distance; /* in octaves; 0: the workload itself or one of equal shape */
    uint32_t rank;   /* 0: the nearest workload */
    cd_store_hit hit;
} cd_store_near;
typedef cdmpp_status cd_store_near_visit(void *ctx, const cd_store_near *n, cdmpp_err *err);
/* Visit them, nearest first. */
cdmpp_status cd_store_find_near(cd_store *s, const cd_store_filter *f, const char *shape,
                                uint32_t each, cd_store_near_visit *visit, void *ctx,
                                cdmpp_err *err);

/* ---- writing ---- */
/* A row as the record that it was made of. Errors: ENODATA (no schedule), those of
 * cd_record_write. */
cdmpp_status cd_store_put_record(cd_buf *out, cd_arena *scratch, const cd_store_hit *h,
                                 cdmpp_err *err);
void cd_store_put_csv(cd_buf *out, const cd_store_hit *h);
/* As a JSON object. */
void cd_store_put_json(cd_buf *out, const cd_store_hit *h);
/* {"version", "measurements", "errors", "workloads", "schedules", "devices": [...], "operators":
 * [...], "sources": [...]} */
cdmpp_status cd_store_put_stats(cd_buf *out, cd_store *s, cdmpp_err *err);
/* The same counts as text, without the sources. */
cdmpp_status cd_store_put_report(cd_buf *out, cd_store *s, cdmpp_err *err);

/* ---- reports: the answers as text for people, or as JSON ---- */
/* LIST: cd_store_workloads; BEST: cd_store_query, fastest first; NEAR: cd_store_find_near. */
typedef enum cd_store_report_kind {
    CD_STORE_REPORT_LIST,
    CD_STORE_REPORT_BEST,
    CD_STORE_REPORT_NEAR
} cd_store_report_kind;

typedef struct cd_store_report_options {
    cd_store_report_kind kind;
    bool json;
    bool steps;        /* text: schedules too (JSON always has them) */
    const char *shape; /* NEAR: as for cd_store_find_near */
    uint32_t each;     /* NEAR: measurements of a workload; 0: 1 */
} cd_store_report_options;

/* Text goes to `to` as it comes, JSON (one array) to *b. Free *b, after an error too. Errors: those
 * of the queries, EIO, ENOMEM. */
cdmpp_status cd_store_report(cd_store *s, const cd_store_filter *f,
                             const cd_store_report_options *o, FILE *to, cd_buf *b, cdmpp_err *err);

#define CD_STORE_EXPORT_FORMS "records|csv|json"
typedef enum cd_store_export_form {
    CD_STORE_EXPORT_RECORDS,
    CD_STORE_EXPORT_CSV,
    CD_STORE_EXPORT_JSON
} cd_store_export_form;
/* All measurements that fit the filter to a file that appears whole; path NULL or "-": to standard
 * output. JSON: an object a line. *skipped: measurements that are no records and that records
 * therefore lack. Errors: EIO, EINTERRUPTED (*stop), ENOMEM. */
cdmpp_status cd_store_export(cd_store *s, const cd_store_filter *f, cd_store_export_form form,
                             const char *path, const volatile sig_atomic_t *stop, size_t *skipped,
                             cdmpp_err *err);

/* store_tables -- which factors of which operators were measured on what: two tables that show what
 * is still missing.
 *
 *   operators x factors: how many settings of each factor  operators x devices: workloads, and the
 *                                                          best rate
 */

/* X(name, meaning). Those from tile to parallel are set by steps of schedules. */
#define CD_STORE_FACTOR_MAP(X)                                                                     \
    X(inputs, "workloads: shapes of the operator")                                                 \
    X(types, "types of its result")                                                                \
    X(tile, "lengths of tiles")                                                                    \
    X(reorder, "orders of loops")                                                                  \
    X(fuse, "loops made one")                                                                      \
    X(compute_at, "where its stages are computed")                                                 \
    X(cache_stage, "stages that hold what is read or written")                                     \
    X(rfactor, "sums in parts")                                                                    \
    X(unroll, "unrolled loops")                                                                    \
    X(vectorize, "loops in vectors")                                                               \
    X(parallel, "loops on threads")                                                                \
    X(threads, "targets: threads, instructions")                                                   \
    X(cache, "warm or cold caches")
typedef enum cd_store_factor {
#define CD_X(name, meaning) CD_STORE_FACTOR_##name,
    CD_STORE_FACTOR_MAP(CD_X)
#undef CD_X
        CD_STORE_N_FACTOR
} cd_store_factor;
CD_KEEP const char *cd_store_factor_name(cd_store_factor f);

typedef struct cd_store_table_operator {
    const char *name, *workload; /* workload: key of one of its workloads */
    /* different ones; 1 or 0: the factor did not vary */
    uint64_t measured, settings[CD_STORE_N_FACTOR];
} cd_store_table_operator;
typedef struct cd_store_table_device {
    const char *name, *host, *cpu; /* "": nobody said */
    uint64_t measured;
} cd_store_table_device;
typedef struct cd_store_table_cell {
    uint64_t n; /* workloads measured; 0: none */
    /* operations a second of the fastest measurement; 0: not known */
    double flop_s;
} cd_store_table_cell;
typedef struct cd_store_tables {
    cd_arena arena;
    cd_store_table_operator *op;   /* (n_op) most measured first */
    cd_store_table_device *device; /* (n_device) most measured first */
    cd_store_table_cell *cell;     /* (n_op, n_device) */
    size_t n_op, cap_op, n_device, cap_device;
} cd_store_tables;

/* From all measurements without error. Errors: EIO, ENOMEM. */
cdmpp_status cd_store_tables_make(cd_store *s, CD_GIVE cd_store_tables **out, cdmpp_err *err);
void cd_store_tables_free(CD_TAKE cd_store_tables *t); /* NULL is fine */
#define CD_STORE_TABLE_FORMS "markdown|html|json"
typedef enum cd_store_table_form {
    CD_STORE_TABLE_MARKDOWN,
    CD_STORE_TABLE_HTML,
    CD_STORE_TABLE_JSON
} cd_store_table_form;
/* Both tables, and for what is empty the commands that fill it; path: of the store, for these. Out
 * of memory: out->oom. */
void cd_store_tables_print(cd_buf *out, const cd_store_tables *t, cd_store_table_form form,
                           const char *path);

/* store_measured -- what this process measures goes into a store: with all its statistics, and the
 * machine that it was measured on. */

typedef struct cd_store_measured_options {
    const char *path;     /* of the store; made where it is not there */
    const char *device;   /* name of a GPU, as its back end was asked for it; NULL: "" */
    const char *compiler; /* flags of the compiler; NULL: "" */
    bool cold;            /* the times are of cold caches */
    /* the type of cores that measure (CD_CORE_TYPES): the processor's name ends in it; NULL: any */
    const char *core;
} cd_store_measured_options;

typedef struct cd_store_measured cd_store_measured;

/* `o` is borrowed until close. Errors: those of cd_store_open, ENOMEM. */
cdmpp_status cd_store_measured_open(CD_KEEP const cd_store_measured_options *o,
                                    CD_GIVE cd_store_measured **out, cdmpp_err *err);
/* A record with its result; `line`: where it stands in the record log. The device is the processor
 * by its name, or o->device where the record's target is a GPU's. Errors: those of
 * cd_store_add_record. */
cdmpp_status cd_store_measured_add(cd_store_measured *k, const cd_record *r, const cd_task *t,
                                   const cd_measure_result *m, long line, cdmpp_err *err);
/* What is added from now on was measured on that host with that processor, in place of this
 * machine. Both are borrowed until the next call. */
void cd_store_measured_host(cd_store_measured *k, CD_KEEP const char *host,
                            CD_KEEP const char *cpu);
/* Commits. Errors: EIO. NULL is fine. */
cdmpp_status cd_store_measured_close(CD_TAKE cd_store_measured *k, cdmpp_err *err);
#endif

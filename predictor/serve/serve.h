/* serve -- requests from one descriptor, answers to another, in their order: cdmpp-predict
 * --stream.
 *
 *   line, line, ... -> batch -> context (chunks of 128 on its threads) -> answers -> written -> ...
 *
 * A batch is scored when it has `batch` requests, when max_delay_ms have passed since its first, on
 * an empty line, when the room for its lines is used up (predictor/serve/serve_internal.h), and at
 * the end.
 * (1) One line of answer for each line that is not empty (CSV: for each program), in order,
 *     whatever is wrong with it.
 * (2) Nothing but answers is written. Memory is bounded by the batch and by the longest line: while
 *     a client does not read its answers, no more requests of it are read.
 * (3) A batch that the model cannot answer as a whole is asked again one by one; the bad one gets
 *     the error.
 * (4) No memory is allocated after the largest batch was seen.
 * Formats and protocol: docs/reference/stream.md. One thread calls. */
#ifndef CD_SERVE_H
#define CD_SERVE_H
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/cli/cli.h"
#include "base/core/core.h"
#include "cdmpp.h"
#include "learner/operators/operators.h"
#include "learner/report/report.h"
#include "predictor/score/score.h"
#include "predictor/serve/llm_op_stream.h"
#include "predictor/serve/step_requests.h"

/* library_op_stream -- tables of library operators in, lines of JSON out, in order.
 *
 *   rows -> batch of 2048 -> operator model -> printed -> ...
 *
 * {"file":"a.csv","line":2,"operator":"bmm","device":"t4","seen":true,"beyond":false,
 *  "latency_s":1.2e-3,"low_s":1.1e-3,"high_s":1.3e-3,"level":0.9,
 *  "out_of_range":true,"reason":"beyond"}
 *   low_s to high_s: the interval, null where the model has none; reason: device, dtype, operator,
 *   beyond, or several with + between them, only with out_of_range;
 *   seen: the operator's family was trained on the device; beyond: more work than any
 *   training row. With evaluation also "measured_s" and "error" = latency_s/measured_s - 1,
 *   both null when the row has no latency
 * {"file":"a.csv","line":3,"error":{"code":"EUNSUPPORTED","key":"OPName","message":"..."}}
 *
 * With `from` and `to` the rows of `from` are scaled (learner/operators/library_op_scale.h), those
 * of other devices are left out:
 * {"file":"a.csv","line":2,"operator":"bmm","from":"t4","to":"v100","from_s":2e-3,
 *  "latency_s":1.2e-3,"form":"model", interval as above,
 *  "predicted_from_s":2.1e-3,"closed_s":1e-3,"closed_form":"waves","gamma":0.31}
 *   form: model, or the closed form that answered; predicted_from_s only with a model;
 *   with evaluation also "measured_s", "error" and "closed_error", null where the truth has no such
 *   row of `to`
 * One thread. */

typedef struct cd_library_op_stream cd_library_op_stream;

typedef struct cd_library_op_stream_options {
    const char *device;              /* of rows that name none; NULL: then an error, or `from` */
    const char *from, *to;           /* scale; both or none */
    const cd_library_op_data *truth; /* rows of `to`; borrowed; NULL: none */
    bool eval, strict;               /* strict: the first bad row ends the run with its error */
    bool silent;                     /* nothing is printed: only the counts and errors are wanted */
    const volatile sig_atomic_t *stop; /* set: tables end before their next batch; NULL: never */
} cd_library_op_stream_options;

/* m NULL: only with `from` and `to`, closed forms. Errors: ENOMEM; ESCHEMA: no such device. */
cdmpp_status cd_library_op_stream_new(CD_KEEP const cd_library_op_model *m,
                                      CD_KEEP const cd_device_table *devices,
                                      const cd_library_op_stream_options *o, CD_KEEP FILE *out,
                                      CD_GIVE cd_library_op_stream **s, cdmpp_err *err);
void cd_library_op_stream_free(CD_TAKE cd_library_op_stream *s); /* NULL is fine */
/* All rows of a table. Errors: those of cd_library_op_reader_open, EIO, ENOMEM. */
cdmpp_status cd_library_op_stream_file(cd_library_op_stream *s, const char *path, cdmpp_err *err);
/* Rows read and rows that could not be scored. */
size_t cd_library_op_stream_rows(const cd_library_op_stream *s);
size_t cd_library_op_stream_bad(const cd_library_op_stream *s);
/* Rows of other devices than `from`, which were left out. */
size_t cd_library_op_stream_other(const cd_library_op_stream *s);
/* Errors of everything scored and measured, with evaluation on; of the closed forms beside a
 * model. */
CD_KEEP cd_library_op_score *cd_library_op_stream_score(cd_library_op_stream *s);
CD_KEEP cd_library_op_score *cd_library_op_stream_closed(cd_library_op_stream *s);
/* {"schema":"cdmpp.evaluation","command":"cdmpp-predict","lines":9,"bad":1,"evaluation":[...]};
 * without evaluation null; "closed":[..] with `from`, a model and evaluation. Errors: ENOMEM. */
cdmpp_status cd_library_op_stream_print_json(cd_library_op_stream *s, cd_buf *b, cdmpp_err *err);

/* bytes of a request: one is held at a time, and 16,384 rows of features take 25 MB */
#define CD_REQUEST_LINE_MAX ((size_t)64 << 20)
enum { CD_PROTOCOL = 1, CD_SERVE_BATCH = 256, CD_SERVE_DELAY_MS = 2 };

typedef enum { CD_SERVE_NDJSON, CD_SERVE_CSV, CD_SERVE_PACKED } cd_serve_format;
#define CD_SERVE_FORMATS "ndjson|csv|packed"

typedef struct cd_serve_options {
    int in, out; /* descriptors */
    cd_serve_format format;
    size_t batch;        /* 0: CD_SERVE_BATCH */
    int max_delay_ms;    /* below 0: CD_SERVE_DELAY_MS */
    size_t max_bytes;    /* of a line or frame; 0: CD_REQUEST_LINE_MAX */
    bool costs;          /* records: also what was measured */
    const char *profile; /* for hello */
    /* set by a signal: what was read whole is answered, then EINTERRUPTED; NULL: never */
    const volatile sig_atomic_t *stop;
} cd_serve_options;

typedef struct cd_serve_stats {
    /* requests; packed: candidates, and a bad frame as one */
    size_t asked, scored, bad, batches;
    size_t reason[CDMPP_STATUS_COUNT]; /* of the bad ones */
    uint64_t cache_asked, cache_found;
} cd_serve_stats;

/* Until the end of input. tasks NULL: none. *stats is right after an error, too. Errors: EIO,
 * ENOMEM, EINTERRUPTED; EMODEL (a model that reads loop nests has no packed form); CSV: EPARSE,
 * ESCHEMA of its first line. */
cdmpp_status cd_serve(cdmpp_context *c, const cdmpp_model *m, const cdmpp_tasks *tasks,
                      const cd_serve_options *o, cd_serve_stats *stats, cdmpp_err *err);

/* ---- serve.c: the counts at the end, as messages for people and as one JSON object ---- */
void cd_serve_print_log(const cd_serve_stats *n, cd_log *log);
void cd_serve_print_json(cd_buf *b, const cd_serve_stats *n);

/* stream -- files of records in, lines of JSON out, in order.
 *
 *   lines -> batch of 2048 -> chunks of 64 on the pool -> printed in order -> ...
 *
 * {"file":"a.json","line":1,"workload_key":"...","latency_s":1.2e-3}
 *   with a model of version 2 or later also "low_s", "high_s", "rel_std", "out_of_range"
 *   with evaluation also "measured_s" and "error" = latency_s/measured_s - 1, both
 *   null when the record's measurement failed
 * {"file":"a.json","line":2,"error":{"code":"EPARSE","key":"i[1]","message":"..."}}
 *
 * With `from` and `to` the answer is for `to`:
 *   predicted(to) * (measured / predicted(from))^CD_LIBRARY_OP_SCALE_CARRIED
 * Its interval is moved by the same factor, and closed forms (features/device/wave_scale.h) stand
 * beside it:
 *   "from","to","from_s","form":"model","predicted_from_s","closed_s","closed_form","gamma"
 * A record without a time is EINVALID.
 *
 * Empty lines and lines that start with '#' are skipped. Chunks do not depend on
 * the number of threads, so neither does the output. One thread. */

typedef struct cd_stream cd_stream;

typedef struct cd_stream_stats {
    size_t lines, scored, bad, unmeasured;
    /* of scored and measured ones: with an interval, inside of it; of scored ones */
    size_t ranged, inside, out_of_range;
    /* of scored and measured ones: of tasks that the model was trained on, on their device */
    size_t known;
    /* of scored and measured ones: also among those of cd_stream_measured, so that the answer knew
     * the time */
    size_t own;
    size_t reason[CDMPP_STATUS_COUNT]; /* of the bad ones */
    /* of scored ones, where the model is corrected for a machine: of another device */
    size_t uncorrected;
    /* of scored ones: nothing says their device, so they are taken for the model's only one */
    size_t assumed;
    char assumed_at[256]; /* FILE:LINE of the first of these */
    /* the first of the uncorrected ones; lives with the stream; NULL: none */
    const char *other;
} cd_stream_stats;

typedef struct cd_stream_options {
    const char *device; /* of all records; NULL: as each says */
    /* scale what was measured on `from`; borrowed; both or NULL; without `device` and `eval` */
    const cd_device *from, *to;
    const cd_device_table *devices; /* descriptions of the model's devices; borrowed; NULL: none */
    /* a device that the model does not know is answered by the most similar by these; else an
     * error */
    bool nearest;
    /* measured times too; the first bad line ends the run with its error */
    bool eval, strict;
    /* nothing is printed for the lines: only the counts and figures are wanted */
    bool silent;
    /* cd_stream_measured comes before the lines, and its measurements correct their answers */
    bool adapt;
    /* set by a signal's handler: files end before their next line, what was read is scored; NULL:
     * never */
    const volatile sig_atomic_t *stop;
} cd_stream_options;

/* Errors: those of cd_scorer_new. */
cdmpp_status cd_stream_new(CD_KEEP const cd_model *m, CD_KEEP const cd_task_registry *tasks,
                           const cd_stream_options *o, CD_KEEP cd_threads *pool, CD_KEEP FILE *out,
                           CD_GIVE cd_stream **s, cdmpp_err *err);
void cd_stream_free(CD_TAKE cd_stream *s); /* NULL is fine */
/* All lines of a file ("-": standard input); the last ones may stay in the batch. */
cdmpp_status cd_stream_file(cd_stream *s, const char *path, cdmpp_err *err);
/* All files of the inputs in their order: files, folders of records, "-"; then cd_stream_end.
 * Errors: also EINTERRUPTED. */
cdmpp_status cd_stream_inputs(cd_stream *s, const cd_texts *input, cdmpp_err *err);
/* With `adapt`: measured records, which are not printed and correct the answers of all later lines
 * (learner/model/model.h, online_adapt). A line that cannot be used is told to `log` and counted in
 * *bad; *used: the others. Errors: ENODATA (none of use), those of cd_stream_inputs. */
cdmpp_status cd_stream_measured(cd_stream *s, const cd_texts *input, cd_log *log, size_t *used,
                                size_t *bad, cdmpp_err *err);
/* Print what is left. */
cdmpp_status cd_stream_end(cd_stream *s, cdmpp_err *err);
CD_KEEP const cd_stream_stats *cd_stream_counts(const cd_stream *s);
/* Figures over everything scored and measured, with evaluation on. */
cdmpp_status cd_stream_metrics(const cd_stream *s, cd_metric *out, cdmpp_err *err);

/* ---- serve.c ---- */
/* Lines for people: the figures (NULL: none), and why lines could not be scored. */
void cd_stream_print_log(const cd_stream_stats *n, const cd_metric *m, cd_log *log);
/* {"schema":"cdmpp.evaluation","lines":9,...,"evaluation":{"n":8,"mape":...}}; m NULL: null. */
void cd_stream_print_json(cd_buf *b, const cd_stream_stats *n, const cd_metric *m);
#endif

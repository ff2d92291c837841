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
 * Empty lines and lines that start with '#' are skipped. Chunks do not depend on
 * the number of threads, so neither does the output. One thread. */
#ifndef CD_STREAM_H
#define CD_STREAM_H
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/cli/cli.h"
#include "base/core/core.h"
#include "learner/report/report.h"
#include "predictor/score/score.h"

typedef struct cd_stream cd_stream;

typedef struct cd_stream_stats {
    size_t lines, scored, bad, unmeasured;
    size_t inside, out_of_range; /* of scored and measured ones: inside their interval; of scored ones */
    size_t reason[CDMPP_STATUS_COUNT]; /* of the bad ones */
} cd_stream_stats;

typedef struct cd_stream_options {
    const char *device;         /* of all records; NULL: as each says */
    bool eval, strict;          /* measured times too; the first bad line ends the run with its error */
    bool silent;                /* nothing is printed for the lines: only the counts and figures are wanted */
    const volatile sig_atomic_t *stop; /* set by a signal's handler: files end before their next line, what was read is scored; NULL: never */
} cd_stream_options;

/* Errors: those of cd_scorer_new. */
cdmpp_status cd_stream_new(CD_KEEP const cd_model *m, CD_KEEP const cd_task_registry *tasks, const cd_stream_options *o,
                           CD_KEEP cd_threads *pool, CD_KEEP FILE *out, CD_GIVE cd_stream **s, cdmpp_err *err);
void cd_stream_free(CD_TAKE cd_stream *s); /* NULL is fine */
/* All lines of a file ("-": standard input); the last ones may stay in the batch. */
cdmpp_status cd_stream_file(cd_stream *s, const char *path, cdmpp_err *err);
/* All files of the inputs in their order: files, folders of records, "-"; then cd_stream_end. Errors: also EINTERRUPTED. */
cdmpp_status cd_stream_inputs(cd_stream *s, const cd_texts *input, cdmpp_err *err);
/* Print what is left. */
cdmpp_status cd_stream_end(cd_stream *s, cdmpp_err *err);
CD_KEEP const cd_stream_stats *cd_stream_counts(const cd_stream *s);
/* Figures over everything scored and measured, with evaluation on. */
cdmpp_status cd_stream_metrics(const cd_stream *s, cd_metric *out, cdmpp_err *err);

/* ---- stream_print.c ---- */
/* Lines for people: the figures (NULL: none), and why lines could not be scored. */
void cd_stream_print_log(const cd_stream_stats *n, const cd_metric *m, cd_log *log);
/* {"schema":"cdmpp.evaluation","lines":9,...,"evaluation":{"n":8,"mape":...}}; m NULL: null. */
void cd_stream_print_json(cd_buf *b, const cd_stream_stats *n, const cd_metric *m);
/* {"ENOTASK":2,"EPARSE":1}: how many of each status. */
void cd_stream_print_reasons(cd_buf *b, const size_t reason[CDMPP_STATUS_COUNT]);
#endif

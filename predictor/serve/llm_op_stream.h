/* llm_op_stream -- tables of operators of language models in, lines of JSON out, in order.
 *
 * {"file":"q.tsv","line":2,"operator":"gemm","device":"h100","how":"interpolated",
 *  "latency_s":1.2e-4,"low_s":1.1e-4,"high_s":1.3e-4,"level":0.9,
 *  "new":"stack","measured_rows":0,"estimate_s":9e-5,"bound_s":6e-5}
 *   with "stack" and "kernel" behind the device where the row left them open and measured ones
 *   answer;
 *   how: measured, interpolated or predicted; low_s to high_s: the interval, null where nobody
 *   knows it;
 *   new: what the training has not seen: device, stack, kernel, dtype, size, or several with +
 *   between them; null: nothing;
 *   estimate_s: the analytic time; bound_s: the lower bound by peak and bandwidth. With evaluation
 *   also "measured_s", "error" = latency_s/measured_s - 1, and
 *   "line_s": log-log interpolation of the neighbours; null where there is none
 * {"file":"q.tsv","line":3,"error":{"code":"EUNSUPPORTED","key":"op","message":"..."}}
 *
 * One thread. */
#ifndef CD_LLM_OP_STREAM_H
#define CD_LLM_OP_STREAM_H
#include <signal.h>
#include <stdio.h>

#include "learner/llm_op/llm_op.h"
#include "learner/operators/operators.h"
#include "predictor/serve/llm_op_requests.h"

typedef struct cd_llm_op_stream cd_llm_op_stream;

typedef struct cd_llm_op_stream_options {
    const char *device;        /* of rows that name none; NULL: then an error */
    bool eval, strict, silent; /* as in cd_library_op_stream_options */
    const volatile sig_atomic_t *stop;
    cd_op_bad_line *warn; /* told of columns that are most likely misspelt; NULL: nobody */
    void *ctx;
} cd_llm_op_stream_options;

/* An answer as further members of a JSON object, the first with a comma before it; b->oom on
 * ENOMEM. names: of stacks and kernels; those that the question left open and who answered are
 * told. */
void cd_llm_op_answer_put(cd_buf *b, const cd_dict *names, const cd_llm_op_told *q, double level);

/* measured: an indexed table, whose names grow with those of the questions; not NULL, but it may be
 * empty. Errors: ENOMEM; ESCHEMA: no such device. */
cdmpp_status cd_llm_op_stream_new(CD_KEEP const cd_llm_op_model *m,
                                  CD_KEEP cd_llm_op_table *measured,
                                  CD_KEEP const cd_device_table *devices,
                                  const cd_llm_op_stream_options *o, CD_KEEP FILE *out,
                                  CD_GIVE cd_llm_op_stream **s, cdmpp_err *err);
void cd_llm_op_stream_free(CD_TAKE cd_llm_op_stream *s); /* NULL is fine */
/* All rows of a table. Errors: those of cd_llm_op_reader_open, EIO, ENOMEM. */
cdmpp_status cd_llm_op_stream_file(cd_llm_op_stream *s, const char *path, cdmpp_err *err);
/* Rows read; rows that could not be answered; rows that were answered and have a time. */
/* A warning where answers are of what no training row has, with the share of the time of each;
 * nothing else. */
struct cd_log;
void cd_llm_op_stream_say_new(const cd_llm_op_stream *s, struct cd_log *log);
size_t cd_llm_op_stream_rows(const cd_llm_op_stream *s);
size_t cd_llm_op_stream_bad(const cd_llm_op_stream *s);
size_t cd_llm_op_stream_scored(const cd_llm_op_stream *s);
/* Of the last ones those that are rows of the measured table: how far they are off says nothing of
 * the model. */
size_t cd_llm_op_stream_own(const cd_llm_op_stream *s);
/* Answers that rows of the measured table bear on: they are measured, between such rows, or
 * corrected by them. */
size_t cd_llm_op_stream_helped(const cd_llm_op_stream *s);
/* Errors of everything answered and measured: a Markdown table, a JSON object as that of
 * cd_library_op_stream_print_json and "in_measured", cd_llm_op_stream_own. Errors: ENOMEM. */
cdmpp_status cd_llm_op_stream_print_text(const cd_llm_op_stream *s, cd_buf *b, cdmpp_err *err);
cdmpp_status cd_llm_op_stream_print_json(const cd_llm_op_stream *s, cd_buf *b, cdmpp_err *err);
#endif

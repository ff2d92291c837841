/* main_predict -- what the parts of cdmpp-predict share. Not in the library. */
#ifndef CD_MAIN_PREDICT_H
#define CD_MAIN_PREDICT_H
#include "base/cli/cli.h"
#include "predictor/serve/serve.h"
#include "predictor/score/score.h"

/* ---- main_predict_operators.c ---- */
typedef struct cd_main_operators {
    const char *model, *devices; /* model file; descriptions of devices, NULL: the installed ones */
    const char **input;          /* (n_input) tables */
    size_t n_input;
    bool info;                   /* print the header and stop */
    bool json;                   /* no lines but one object with the counts and figures */
    cd_library_op_stream_options stream;
    cd_log *log;
} cd_main_operators;

/* Predict tables; *bad: rows that could not be scored. */
cdmpp_status cd_main_predict_operators(const cd_main_operators *o, size_t *bad, cdmpp_err *err);

/* ---- main_predict_stream.c ---- */
typedef struct cd_main_stream {
    const char *model, *device, *devices, *profile; /* NULL: the defaults */
    cd_texts task;
    bool nearest, eval, verbose, json;
    int jobs, format, batch, max_delay_ms, cache;   /* below 1, below 0: the defaults */
    const volatile sig_atomic_t *stop;
    cd_log *log;
} cd_main_stream;

/* Answer standard input; *bad: requests that got an error. */
cdmpp_status cd_main_predict_stream(const cd_main_stream *o, size_t *bad, cdmpp_err *err);

/* ---- main_predict_explain.c ---- */
typedef struct cd_main_explain {
    const cd_model *m;
    const cd_task_registry *tasks;
    const char *where, *device; /* FILE[:LINE]; NULL: the record's */
    bool json;
} cd_main_explain;

/* Print where the time of a record goes. */
cdmpp_status cd_main_predict_explain(const cd_main_explain *o, cdmpp_err *err);
#endif

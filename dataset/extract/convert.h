/* convert -- one line of a log to one program of a data set, or to a reason. */
#ifndef CD_CONVERT_H
#define CD_CONVERT_H
#include "dataset/extract/extract.h"

typedef struct cd_convert_result {
    cdmpp_status st;
    cd_item *item;     /* when OK; when EREJECTED: one row of zeros, as TVM hands it over */
    cdmpp_err *err;    /* when not OK */
} cd_convert_result;

/* What a worker keeps from line to line. */
typedef struct cd_convert_state {
    const cd_feature_engine *engine;
    void *program;
    cd_arena scratch;  /* one record */
    cd_arena kinds;    /* signature of the last task and target */
    const cd_task *task;
    cd_str target;
    int64_t threads;
    const char *kind;
} cd_convert_state;

/* Opens, closes the engine of one worker. Errors: those of the engine. */
cdmpp_status cd_convert_open(cd_convert_state *c, CD_KEEP const cd_feature_engine *e, cdmpp_err *err);
void cd_convert_close(cd_convert_state *c);

/* The result lives in `a`, but for `source`, which is borrowed, and texts of the
 * task. ENOMEM is an outcome as well. */
cd_convert_result cd_convert(cd_convert_state *c, cd_arena *a, const char *line, size_t n, const char *source, long number);
#endif

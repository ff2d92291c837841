/* convert -- one line of a log to one program of a data set, or to a reason. */
#ifndef CD_CONVERT_H
#define CD_CONVERT_H
#include "dataset/extract/extract.h"

#define CD_CONVERT_REJECTED 254 /* /label/error of a program that its target rejects */

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
} cd_convert_state;

cdmpp_status cd_convert_open(cd_convert_state *c, CD_KEEP const cd_feature_engine *e, cdmpp_err *err);
void cd_convert_close(cd_convert_state *c);

/* The result lives in `a`, but for `source`, which is borrowed, and texts of the
 * task. ENOMEM is an outcome as well. */
cd_convert_result cd_convert(cd_convert_state *c, cd_arena *a, const char *line, size_t n, const char *source, long number);

/* Median, mean, deviation and minimum of the repeats, or the error that stands
 * in for them (docs/reference/dataset.md). `cost` is sorted in place. */
void cd_convert_label(double *cost_s, uint32_t n, int64_t error_no, cd_item *out);
/* "zen5" of "llvm -model=zen5", else the folder of the file, else "unknown". */
cd_str cd_convert_device_name(cd_str target, const char *source);
#endif

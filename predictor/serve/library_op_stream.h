/* library_op_stream -- tables of library operators in, lines of JSON out, in order.
 *
 *   rows -> batch of 2048 -> operator model -> printed -> ...
 *
 * {"file":"a.csv","line":2,"operator":"bmm","device":"t4","seen":true,"beyond":false,
 *  "latency_s":1.2e-3,"low_s":1.1e-3,"high_s":1.3e-3,"level":0.9,"out_of_range":true,"reason":"beyond"}
 *   low_s to high_s: the interval, null where the model has none; reason: device, dtype, operator, beyond, or several
 *   with + between them, only with out_of_range;
 *   seen: the operator's family was trained on the device; beyond: more work than any
 *   training row. With evaluation also "measured_s" and "error" = latency_s/measured_s - 1,
 *   both null when the row has no latency
 * {"file":"a.csv","line":3,"error":{"code":"EUNSUPPORTED","key":"OPName","message":"..."}}
 * One thread. */
#ifndef CD_LIBRARY_OP_STREAM_H
#define CD_LIBRARY_OP_STREAM_H
#include <signal.h>
#include <stdio.h>

#include "learner/operators/operators.h"

typedef struct cd_library_op_stream cd_library_op_stream;

typedef struct cd_library_op_stream_options {
    const char *device; /* of rows that name none; NULL: then an error */
    bool eval, strict;  /* strict: the first bad row ends the run with its error */
    bool silent;        /* nothing is printed: only the counts and errors are wanted */
    const volatile sig_atomic_t *stop; /* set: tables end before their next batch; NULL: never */
} cd_library_op_stream_options;

/* Errors: ENOMEM; ESCHEMA: no such device. */
cdmpp_status cd_library_op_stream_new(CD_KEEP const cd_library_op_model *m, CD_KEEP const cd_device_table *devices, const cd_library_op_stream_options *o,
                             CD_KEEP FILE *out, CD_GIVE cd_library_op_stream **s, cdmpp_err *err);
void cd_library_op_stream_free(CD_TAKE cd_library_op_stream *s); /* NULL is fine */
/* All rows of a table. Errors: those of cd_library_op_reader_open, EIO, ENOMEM. */
cdmpp_status cd_library_op_stream_file(cd_library_op_stream *s, const char *path, cdmpp_err *err);
/* Rows read and rows that could not be scored. */
size_t cd_library_op_stream_rows(const cd_library_op_stream *s);
size_t cd_library_op_stream_bad(const cd_library_op_stream *s);
/* Errors of everything scored and measured, with evaluation on. */
CD_KEEP cd_library_op_score *cd_library_op_stream_score(cd_library_op_stream *s);
/* {"schema":"cdmpp.evaluation","command":"cdmpp-predict","lines":9,"bad":1,"evaluation":[...]}; without evaluation null. Errors: ENOMEM. */
cdmpp_status cd_library_op_stream_print_json(cd_library_op_stream *s, cd_buf *b, cdmpp_err *err);
#endif

/* trace_internal -- what the readers of traces share. */
#ifndef CD_TRACE_INTERNAL_H
#define CD_TRACE_INTERNAL_H
#include "profiler/trace/trace.h"

typedef struct cd_trace_reader {
    const cd_trace_reading *how;
    const char *path;
    cd_trace *t;
    cd_arena arena; /* of one event */
    cd_buf text;    /* scratch */
} cd_trace_reader;

/* An event without anything known. */
cd_trace_event cd_trace_event_init(cd_trace_kind kind, long line);
/* Number of a text. Errors: ESCHEMA (not UTF-8), ENOMEM. */
cdmpp_status cd_trace_number(cd_trace_reader *r, cd_str text, uint32_t *out, cdmpp_err *err);
/* The device: what the reading says, else the text. */
cdmpp_status cd_trace_device_number(cd_trace_reader *r, cd_str text, uint32_t *out, cdmpp_err *err);
/* Add it. Errors: ENOMEM. */
cdmpp_status cd_trace_add(cd_trace_reader *r, const cd_trace_event *e, cdmpp_err *err);
cdmpp_status cd_trace_add_question(cd_trace_reader *r, const cd_library_op_record *q, uint32_t *out,
                                   cdmpp_err *err);
/* A bad event or line: counted and reported; OK unless the reading must end. */
cdmpp_status cd_trace_bad(cd_trace_reader *r, cdmpp_status st, const cdmpp_err *e, cdmpp_err *err);
/* EINTERRUPTED where somebody asked for it. */
cdmpp_status cd_trace_stopped(const cd_trace_reader *r, cdmpp_err *err);

/* For JSON of no known form: how to write one of those that are read. */
#define CD_TRACE_EXPORTS                                                                           \
    "export with PyTorch's prof.export_chrome_trace, ONNX Runtime's enable_profiling or trtexec "  \
    "--exportProfile"

/* Events inside of others, and launches that overlap in a stream (trace_groups.c). Errors:
 * ENOMEM. */
cdmpp_status cd_trace_whole_events(cd_trace *t, cdmpp_err *err);

/* One file of each form. */
cdmpp_status cd_trace_read_chrome(cd_trace_reader *r, cdmpp_err *err);
cdmpp_status cd_trace_read_csv(cd_trace_reader *r, cdmpp_err *err);

/* trace_question -- which library operator a call of PyTorch is.
 *
 *   aten::addmm  [[768],[8,512],[512,768]]  ["float", ..]  ->  linear 8 x 512 x 768 float32
 *
 * By the operator's name, the sizes and the types of its inputs and the values of its plain
 * arguments, as PyTorch's profiler writes them with record_shapes. False: none that the tables
 * know. */
bool cd_trace_question_of(cd_str name, const cd_json *dims, const cd_json *types,
                          const cd_json *values, cd_library_op_record *out);

/* trace_cutlass -- a row of cutlass_profiler by its columns: values of the names below; NULL: there
 * is no such column. */
typedef struct cd_trace_cutlass {
    const char *kind; /* gemm, conv2d */
    const char *conv_kind, *op_class, *a, *b;
    double m, n, k, batch; /* gemm */
    /* conv2d, with n and k; NaN: no such column */
    double h, w, c, r, s, pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w, groups;
} cd_trace_cutlass;
bool cd_trace_cutlass_question(const cd_trace_cutlass *c, cd_library_op_record *out);
#endif

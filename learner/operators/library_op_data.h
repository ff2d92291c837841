/* library_op_data -- the rows of operator tables that a training uses.
 *
 *   files, folders of *.csv -> rows -> device known? -> measured? -> wanted? -> seen before? -> kept
 *
 * (1) rows keep the order of the files; of rows that ask the same of the same device the
 *     first stays;
 * (2) `device` numbers the devices in order of their first row;
 * (3) what is left out is counted by reason, and bad lines are told one by one. */
#ifndef CD_LIBRARY_OP_DATA_H
#define CD_LIBRARY_OP_DATA_H
#include "base/core/core.h"
#include "base/text/text.h"
#include "features/operators/operators.h"
#include "features/device/device.h"

typedef enum {
    CD_LIBRARY_OP_DROP_BAD,       /* lines that are no record, or of an unknown device */
    CD_LIBRARY_OP_DROP_QUESTION,  /* no latency */
    CD_LIBRARY_OP_DROP_UNWANTED,  /* another device than asked for, or excluded */
    CD_LIBRARY_OP_DROP_REPEATED,
    CD_LIBRARY_OP_N_DROP
} cd_library_op_drop;
/* The reason in words, for reports. */
const char *cd_library_op_drop_text(cd_library_op_drop d);

typedef struct cd_library_op_data {
    size_t n, cap, cap_device;
    cd_library_op_record *r;             /* (n) */
    uint32_t *device;           /* (n) into `known` */
    const cd_device **known;    /* (n_known) borrowed from the list of devices */
    size_t n_known, cap_known;
    size_t n_line, drop[CD_LIBRARY_OP_N_DROP];
    uint32_t *slot;             /* (n_slot) hash table: row + 1, 0 is free */
    size_t n_slot;
} cd_library_op_data;

typedef struct cd_library_op_filter {
    cd_texts devices; /* only these; none: all */
    cd_texts exclude; /* "device/operator" or "device/class" */
} cd_library_op_filter;

/* Told of every bad line; err has file and line. */
typedef void cd_library_op_data_bad(void *ctx, const cdmpp_err *err);

/* Append what `path` (a table, or a folder) holds. Start from {0}. Errors: EIO and those
 * of cd_library_op_reader_open; ESCHEMA (a filter that names an unknown device); ENOMEM. */
cdmpp_status cd_library_op_data_add(cd_library_op_data *d, const char *path, const cd_device_table *devices, const cd_library_op_filter *f, cd_library_op_data_bad *bad,
                           void *ctx, cdmpp_err *err);
void cd_library_op_data_free(cd_library_op_data *d);
#endif

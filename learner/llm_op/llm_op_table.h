/* llm_op_table -- measured operators of language models in memory: each row once, and who is whose
 * neighbour.
 *
 *   files -> rows -> device known? -> measured? -> wanted? -> the same as before: a further time of
 *                                                             it -> kept
 *
 *   a curve: rows that differ in one size alone        m: 1 2 4 8 . 16 32
 *                                                                 ^ its neighbours are 8 and 16
 *
 * (1) every line is counted once: kept, a further time of a row, or dropped for one reason;
 * (2) `device` numbers the devices in order of their first row;
 * (3) neighbours are of one kind, device, type, type of the cache, stack, kernel and distribution.
 * (4) a row's time is the first one; from the index on the median of its times (of an even number:
 *     the mean of the logarithms of the two in the middle).
 * After cd_llm_op_table_index immutable: any thread. */
#ifndef CD_LLM_OP_TABLE_H
#define CD_LLM_OP_TABLE_H
#include "learner/operators/operators.h"

typedef enum {
    CD_LLM_OP_DROP_BAD,      /* lines that are no record, or of an unknown device */
    CD_LLM_OP_DROP_TIME,     /* a time of zero or below */
    CD_LLM_OP_DROP_QUESTION, /* no time */
    CD_LLM_OP_DROP_DEVICE,   /* another device than asked for */
    CD_LLM_OP_N_DROP
} cd_llm_op_drop;
/* The reason in words, for reports. */
const char *cd_llm_op_drop_text(cd_llm_op_drop d);

/* Rows that were measured more than once have all their times in a list beside the rows: most rows
 * have one. */
typedef struct cd_llm_op_time {
    double s;
    uint32_t row, place;
} cd_llm_op_time;

typedef struct cd_llm_op_again {
    uint32_t row, beg; /* beg: its first in `time` */
    double square;     /* sum of squares of ln(time / median) */
} cd_llm_op_again;

/* Places count the lines of all files, one behind the other. */
typedef struct cd_llm_op_file {
    char *path;
    uint32_t before; /* lines of the files before it */
} cd_llm_op_file;

typedef struct cd_llm_op_repeats {
    /* (n_time) of rows with several; from the index by row, those of a row in the order of their
     * lines */
    cd_llm_op_time *time;
    size_t n_time, cap_time;
    cd_llm_op_again *row; /* (n_row) rising; from the index, as what follows */
    /* those whose times differ by more than a fifth; the number of that which differs most */
    size_t n_row, n_wide, widest;
    /* (n_noise) |ln(second / first)| of the repeated rows of a kind, sorted */
    double *noise[CD_LLM_OP_N_KIND];
    size_t n_noise[CD_LLM_OP_N_KIND];
    cd_llm_op_file *file; /* (n_file) that were read */
    size_t n_file, cap_file;
    uint32_t last; /* the last place that was used */
} cd_llm_op_repeats;

/* Rows that differ in one size alone stand together, that size rising. */
typedef struct cd_llm_op_curve {
    uint32_t beg, end; /* in `row` of the curves; end 0: a free slot */
    uint32_t first;    /* row[beg] */
    /* the upper half of the hash of what its rows share: most other curves are told without a look
     * at their rows */
    uint32_t tag;
} cd_llm_op_curve;

typedef struct cd_llm_op_curves {
    uint32_t *row; /* curve after curve */
    /* of each its size, rounded: rows lie far apart in memory. NULL of the last curves */
    float *value;
    cd_llm_op_curve *slot; /* (mask + 1) by the lower half of the hash */
    size_t mask;
} cd_llm_op_curves;

typedef struct cd_llm_op_table {
    CD_OP_ROWS(cd_llm_op_record);
    size_t cap_count, cap_place;
    uint32_t *count, *place; /* (n) times of a row, from 1; the line of its first, 0: of no file */
    cd_llm_op_repeats again;
    cd_dict names; /* of stacks and kernels */
    size_t drop[CD_LLM_OP_N_DROP], repeated;
    /* of each size; the last one: rows of equal kind, device and sizes. From the index */
    cd_llm_op_curves curve[CD_LLM_OP_MAX_SIZE + 1];
    /* bits, by hash (met_mask), of each size that a row of the kind has. From the index; NULL:
     * there is none */
    uint64_t *met;
    size_t met_mask;
} cd_llm_op_table;

/* Append what `path` (a table, or a folder of *.tsv, *.csv and packed ones) holds, of these devices
 * (none: all). Start from {0}. Errors: EIO and those of cd_llm_op_reader_open of a file (in a
 * folder, tables that are called by no operator are counted in drop[BAD] and told); ESCHEMA (an
 * unknown device in `only`); ENOMEM. */
cdmpp_status cd_llm_op_table_add(cd_llm_op_table *t, const char *path,
                                 const cd_device_table *devices, const cd_texts *only,
                                 cd_op_bad_line *bad, void *ctx, cdmpp_err *err);
/* One row; if it is there a further time of it. Errors: ENOMEM. */
cdmpp_status cd_llm_op_table_put(cd_llm_op_table *t, const cd_llm_op_record *r,
                                 const cd_device *device, cdmpp_err *err);
/* Half the interval of a further measured time of the row around its median, as a logarithm: of a
 * row that was measured five times or more by its own spread (Student), else by what repeated rows
 * of its kind differ, a quantile of 20 of them or more. NaN: nobody knows. level: 0..1, both
 * open. */
double cd_llm_op_table_half(const cd_llm_op_table *t, size_t row, double level);
/* How many rows were measured more than once, how many of these differ by more than a fifth, and
 * where the widest stands: a warning if there are such, else a line of information; nothing if no
 * row was. Before it a warning of rows whose times are far from the analytic estimate. After the
 * index. */
struct cd_log;
void cd_llm_op_table_say(const cd_llm_op_table *t, struct cd_log *log);
/* Sorts for cd_llm_op_table_near, and takes the medians; again after rows were added. Errors:
 * ENOMEM. */
cdmpp_status cd_llm_op_table_index(cd_llm_op_table *t, cdmpp_err *err);
void cd_llm_op_table_free(cd_llm_op_table *t);

enum { CD_LLM_OP_NONE = CD_OP_ROWS_NONE };
/* The number of a device in the table; CD_LLM_OP_NONE: it has no row. */
long cd_llm_op_table_device(const cd_llm_op_table *t, const cd_device *d);
/* The row that is the record on the device; CD_LLM_OP_NONE: there is none. */
long cd_llm_op_table_find(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device);
/* The same of many, in steps (op_rows.h): the hash, the row is asked for, the row. */
uint64_t cd_llm_op_table_hash(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device);
void cd_llm_op_table_fetch(const cd_llm_op_table *t, uint64_t hash);
long cd_llm_op_table_at(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device,
                        uint64_t hash);
/* The record's curve along a size (CD_LLM_OP_MAX_SIZE: rows like it), by its hash: memory is asked
 * for it. CD_LLM_OP_NO_CURVE: it has none for sure. */
#define CD_LLM_OP_NO_CURVE UINT64_MAX
uint64_t cd_llm_op_table_curve(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device,
                               size_t size);
/* Those of all its sizes, and of rows like it; memory is asked for their rows. */
void cd_llm_op_table_curves(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device,
                            uint64_t curve[CD_LLM_OP_MAX_SIZE + 1]);
void cd_llm_op_table_curves_fetch(const cd_llm_op_table *t, const cd_llm_op_record *r,
                                  const uint64_t curve[CD_LLM_OP_MAX_SIZE + 1]);
/* The nearest rows below [0] and above [1] along a size, CD_LLM_OP_NONE where there is none. `hide`
 * (n) or NULL: rows that count as not there. The record's own row is never its neighbour. */
void cd_llm_op_table_near(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device,
                          size_t size, uint64_t curve, const uint8_t *hide, long out[2]);
/* Rows of the same kind, sizes and device, in other types, stacks or kernels: at most `most`;
 * returns how many. */
size_t cd_llm_op_table_alike(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device,
                             uint64_t curve, const uint8_t *hide, size_t most, uint32_t *out);
#endif

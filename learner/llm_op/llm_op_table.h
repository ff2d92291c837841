/* llm_op_table -- measured operators of language models in memory: without repetitions, and who is whose neighbour.
 *
 *   files -> rows -> device known? -> measured? -> wanted? -> the same as before: averaged -> kept
 *
 *   a curve: rows that differ in one size alone        m: 1 2 4 8 . 16 32
 *                                                                 ^ its neighbours are 8 and 16
 *
 * (1) every line is counted once: kept, averaged into a row, or dropped for one reason;
 * (2) `device` numbers the devices in order of their first row;
 * (3) neighbours are of one kind, device, type, type of the cache, stack, kernel and distribution.
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

/* How far the times of lines that were averaged are apart. */
typedef struct cd_llm_op_repeats {
    double mean, square;     /* of ln(time / first): mean, sum of squares around it */
    double first_s, pair;    /* the first time; ln(second / first), 0 where there is one alone */
} cd_llm_op_repeats;

/* Rows that differ in one size alone stand together, that size rising. */
typedef struct cd_llm_op_curve {
    uint32_t beg, end;       /* in `row` of the curves; end 0: a free slot */
    uint32_t first;          /* row[beg] */
    uint32_t tag;            /* the upper half of the hash of what its rows share: most other curves are told without a look at their rows */
} cd_llm_op_curve;

typedef struct cd_llm_op_curves {
    uint32_t *row;           /* curve after curve */
    float *value;            /* of each its size, rounded: rows lie far apart in memory. NULL of the last curves */
    cd_llm_op_curve *slot;   /* (mask + 1) by the lower half of the hash */
    size_t mask;
} cd_llm_op_curves;

typedef struct cd_llm_op_table {
    CD_OP_ROWS(cd_llm_op_record);
    size_t cap_count, cap_spread;
    uint32_t *count;         /* (n) lines that were averaged, from 1 */
    cd_llm_op_repeats *spread; /* (n) */
    double *noise[CD_LLM_OP_N_KIND]; /* (n_noise) |ln(second / first)| of the repeated rows of a kind, sorted; from the index */
    size_t n_noise[CD_LLM_OP_N_KIND];
    cd_dict names;           /* of stacks and kernels */
    size_t drop[CD_LLM_OP_N_DROP], repeated;
    cd_llm_op_curves curve[CD_LLM_OP_MAX_SIZE + 1]; /* of each size; the last one: rows of equal kind, device and sizes. From the index */
} cd_llm_op_table;

/* Append what `path` (a table, or a folder of *.tsv, *.csv and packed ones) holds, of these devices (none: all). Start from {0}. Errors: EIO and those of
 * cd_llm_op_reader_open of a file (in a folder, tables that are called by no operator are counted in drop[BAD] and told); ESCHEMA (an unknown device in
 * `only`); ENOMEM. */
cdmpp_status cd_llm_op_table_add(cd_llm_op_table *t, const char *path, const cd_device_table *devices, const cd_texts *only,
                                 cd_op_bad_line *bad, void *ctx, cdmpp_err *err);
/* One row; averaged if it is there. Errors: ENOMEM. */
cdmpp_status cd_llm_op_table_put(cd_llm_op_table *t, const cd_llm_op_record *r, const cd_device *device, cdmpp_err *err);
/* Half the interval of a further measured time of the row, as a logarithm: of a row that was measured five times or more by its own spread (Student), else
 * by what repeated rows of its kind differ, a quantile of 20 of them or more. NaN: nobody knows. level: 0..1, both open. */
double cd_llm_op_table_half(const cd_llm_op_table *t, size_t row, double level);
/* Sorts for cd_llm_op_table_near; again after rows were added. Errors: ENOMEM. */
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
long cd_llm_op_table_at(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device, uint64_t hash);
/* The record's curve along a size (CD_LLM_OP_MAX_SIZE: rows like it), by its hash: memory is asked for it. */
uint64_t cd_llm_op_table_curve(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device, size_t size);
/* Those of all its sizes, and of rows like it; memory is asked for their rows. */
void cd_llm_op_table_curves(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device, uint64_t curve[CD_LLM_OP_MAX_SIZE + 1]);
void cd_llm_op_table_curves_fetch(const cd_llm_op_table *t, const cd_llm_op_record *r, const uint64_t curve[CD_LLM_OP_MAX_SIZE + 1]);
/* The nearest rows below [0] and above [1] along a size, CD_LLM_OP_NONE where there is none. `hide` (n) or NULL: rows that count as not there. The record's
 * own row is never its neighbour. */
void cd_llm_op_table_near(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device, size_t size, uint64_t curve, const uint8_t *hide, long out[2]);
/* Rows of the same kind, sizes and device, in other types, stacks or kernels: at most `most`; returns how many. */
size_t cd_llm_op_table_alike(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device, uint64_t curve, const uint8_t *hide, size_t most, uint32_t *out);
#endif

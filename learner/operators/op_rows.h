/* op_rows -- the rows of tables of operators in memory, of libraries and of language models: each
 * operator of a device once, found by hash.
 *
 *   files, folders -> rows -> device known? -> bad lines told -> put_row() of the kind of table ->
 *                                                                kept
 *
 * (1) rows keep the order of the files; `device` numbers the devices in order of their first row;
 * (2) a bad line is told with file and line, and left out; an error of reading ends the file. One
 *     thread while it grows. */
#ifndef CD_OP_ROWS_H
#define CD_OP_ROWS_H
#include "features/device/device.h"
#include "features/operators/operators.h"

typedef struct cd_op_slot {
    uint32_t row; /* row + 1; 0: free */
    /* the upper half of its hash: most other rows are told without a look at them */
    uint32_t tag;
} cd_op_slot;

/* A file, whatever it is called. */
typedef struct cd_op_file {
    uint64_t device, inode;
} cd_op_file;

#define CD_OP_ROWS_MEMBERS(record)                                                                 \
    size_t n, cap, cap_device;                                                                     \
    record *r;               /* (n) */                                                             \
    uint32_t *device;        /* (n) into `known` */                                                \
    const cd_device **known; /* (n_known) borrowed from the list of devices */                     \
    size_t n_known, cap_known;                                                                     \
    cd_op_slot *slot;      /* (n_slot) hash table by the lower half */                             \
    size_t n_slot, n_line; /* n_line: lines read */                                                \
    cd_op_file *read;      /* (n_read) files that were read */                                     \
    size_t n_read, cap_read;

typedef struct cd_op_rows {
    CD_OP_ROWS_MEMBERS(void)
} cd_op_rows;
/* As members of a table of records, and as one `rows` without their type. */
#define CD_OP_ROWS(record)                                                                         \
    union {                                                                                        \
        cd_op_rows rows;                                                                           \
        struct {                                                                                   \
            CD_OP_ROWS_MEMBERS(record)                                                             \
        };                                                                                         \
    }

/* Told of bad lines; err has file and line. Of a file 8 are told, and then how many further ones
 * there are (line 0); lines of the same unknown device or operator, one after the other, count as
 * one. Told, too, of columns that are not read and whose names are near one that is: no line is
 * left out for it. */
typedef void cd_op_bad_line(void *ctx, const cdmpp_err *err);

/* A row of either kind of table, and what the kinds differ in. */
typedef union cd_op_any {
    cd_library_op_record library;
    cd_llm_op_record llm;
} cd_op_any;

typedef struct cd_op_kind_of_table {
    size_t bytes; /* of a record */
    const char *device_column;
    uint64_t (*key)(const void *r, uint32_t device);
    bool (*same)(const void *a, const void *b);
    cdmpp_status (*open)(const char *path, void *to, cd_op_reader **in, cdmpp_err *err);
    cdmpp_status (*next)(cd_op_reader *in, cd_op_any *r, const char **device, bool *more,
                         bool *no_time, cdmpp_err *err);
    cdmpp_status (*put_row)(void *to, const cd_op_any *r, const cd_device *d, cdmpp_err *err);
    void (*put_bad)(void *to, bool no_time); /* counts it */
} cd_op_kind_of_table;

typedef struct cd_op_loading {
    const cd_op_kind_of_table *kind;
    cd_op_rows *rows;
    void *to; /* of put_row and put_bad */
    const cd_device_table *devices;
    /* not told of times that are not above 0: a table may have thousands */
    cd_op_bad_line *bad;
    void *ctx;
} cd_op_loading;

/* Everything that `path` holds: a table, or a folder of *.tsv, *.csv, *.h5, also packed. A file of
 * the folder that has not the columns of such a table, or cannot be read to its end, is a bad line
 * (rows before the damage stay). A file that was read before, by this name or another (a folder and
 * a file in it, a link), is told and not read again: its rows would count as measured twice.
 * Errors: EIO, ESCHEMA (a folder without tables), those of opening a table, ENOMEM. */
cdmpp_status cd_op_rows_load(const cd_op_loading *l, const char *path, cdmpp_err *err);
/* Has the file such a name? For cd_file_list. */
bool cd_op_rows_is_table(const char *path, void *ctx);
/* Is an error of reading that of one line, behind which reading goes on? */
bool cd_op_line_is_bad(cdmpp_status st);
/* Is the device one of `only` (none: all)? Errors: ESCHEMA (data.devices names an unknown one). */
cdmpp_status cd_op_rows_wanted(const cd_device_table *devices, const cd_texts *only,
                               const cd_device *d, bool *out, cdmpp_err *err);

enum { CD_OP_ROWS_NONE = -1 };
/* The number of a device; CD_OP_ROWS_NONE: it has no row. */
long cd_op_rows_device(const cd_op_rows *t, const cd_device *d);
/* The row that is the record on the device; CD_OP_ROWS_NONE: there is none. */
long cd_op_rows_find(const cd_op_rows *t, const cd_op_kind_of_table *k, const void *r,
                     uint32_t device);
/* The same in steps, for many records that are not waited for one by one: the hash, with which
 * memory is asked for its slot; memory is asked for the row; the row. */
uint64_t cd_op_rows_hash(const cd_op_rows *t, const cd_op_kind_of_table *k, const void *r,
                         uint32_t device);
void cd_op_rows_fetch(const cd_op_rows *t, const cd_op_kind_of_table *k, uint64_t hash);
long cd_op_rows_at(const cd_op_rows *t, const cd_op_kind_of_table *k, const void *r,
                   uint32_t device, uint64_t hash);
/* Append the record, unless it is there. *at: its row. Errors: ENOMEM. */
cdmpp_status cd_op_rows_put(cd_op_rows *t, const cd_op_kind_of_table *k, const void *r,
                            const cd_device *d, size_t *at, bool *is_new, cdmpp_err *err);
void cd_op_rows_free(cd_op_rows *t);
#endif

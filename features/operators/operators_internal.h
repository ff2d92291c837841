/* What the files of this room share: rows of tables as named values, whatever the table is written
 * in. */
#ifndef CD_OPERATORS_INTERNAL_H
#define CD_OPERATORS_INTERNAL_H
#include "base/io/io.h"
#include "features/operators/operators.h"

/* op_row -- one operator as a table, a request or a caller writes it: a value for each column that
 * is known.
 *
 *   names  {OP, "OPName"}, {OP, "op"}, {M, "M"} ...  the first name of a column is the one in
 *                                                    messages
 *   value  text, or a number where text is NULL      "" or NaN: not there
 *
 * No state, any thread. */
typedef struct cd_op_column {
    int is;
    const char *name;
} cd_op_column;

typedef struct cd_op_columns {
    const cd_op_column *name;
    size_t n;
    int n_column; /* columns are 0..n_column-1 */
} cd_op_columns;

typedef struct cd_op_value {
    const char *text;
    double number;
} cd_op_value;

enum { CD_OP_MAX_COLUMN = 40, CD_OP_MAX_FIELD = 128 };
typedef struct cd_op_row {
    const cd_op_columns *columns;
    cd_op_value value[CD_OP_MAX_COLUMN];
} cd_op_row;

/* The column of a name in any case; -1: none. */
int cd_op_columns_find(const cd_op_columns *c, const char *name);
/* No value is there. */
bool cd_op_row_given(const cd_op_row *r, int column);
/* What is there, for a message: at most 40 characters. */
const char *cd_op_row_said(const cd_op_row *r, int column, char room[48]);
/* A text; "" where nothing is there. Errors, with the column as key, as of all these: ESCHEMA (a
 * number). */
cdmpp_status cd_op_row_text(const cd_op_row *r, int column, const char **out, cdmpp_err *err);
/* A finite number. Errors: ESCHEMA (none, or nothing is there). */
cdmpp_status cd_op_row_number(const cd_op_row *r, int column, double *out, cdmpp_err *err);
/* A whole number in low..2^bits. Errors: ESCHEMA, ERANGE. */
cdmpp_status cd_op_row_whole(const cd_op_row *r, int column, double low, int bits, double *out,
                             cdmpp_err *err);

/* op_h5 -- the rows of a table in HDF5 (*.h5, *.hdf5): its columns are data sets of one dimension
 * and one length in the root group, of numbers or texts. NaN and "" are not there. What is not
 * called by a column's name is ignored. One thread. */
typedef struct cd_op_h5 cd_op_h5;
/* has[column] is set for those that are there. Errors: EIO, EPARSE (no HDF5), ESCHEMA, ERANGE,
 * ENOMEM. */
cdmpp_status cd_op_h5_open(const char *path, const cd_op_columns *c, bool *has,
                           CD_GIVE cd_op_h5 **out, cdmpp_err *err);
/* Fills an empty row, whose texts stay until the next call; false in *more at the end and after
 * EPARSE. */
cdmpp_status cd_op_h5_next(cd_op_h5 *h, cd_op_row *row, bool *more, cdmpp_err *err);
long cd_op_h5_row(const cd_op_h5 *h);     /* of the last row, from 1 */
void cd_op_h5_close(CD_TAKE cd_op_h5 *h); /* NULL is fine */

/* op_lines -- the rows of a table: HDF5 by the name of the file, else TSV where the first line has
 * a tab, else CSV; plain or packed.
 *
 * Names of columns in the first line in any order and case, others are ignored; quotes, blanks
 * around fields and a mark of the byte order are taken away; empty lines are skipped. One
 * thread. */
enum { CD_OP_MAX_ODD = 4 };
typedef struct cd_op_lines {
    cd_file_lines *lines;
    cd_op_h5 *h5; /* instead of lines */
    char *path;
    bool tabs;
    int of[CD_OP_MAX_FIELD]; /* of the fields of a line; n_column: not needed */
    size_t n_field;
    bool has[CD_OP_MAX_COLUMN];
    struct {
        char name[48];
        const char *near;
        /* (n_odd) names that are not read, and are near one that could have been meant */
    } odd[CD_OP_MAX_ODD];
    size_t n_odd;
    cd_op_row row; /* of this line */
} cd_op_lines;

/* The next row; false in *more at the end. Errors have no place yet (cd_op_lines_at): after EPARSE,
 * ERANGE with *more go on, else stop. */
cdmpp_status cd_op_lines_next(cd_op_lines *l, bool *more, cdmpp_err *err);
/* The status of this line, with path and line in err. */
cdmpp_status cd_op_lines_at(const cd_op_lines *l, cdmpp_status st, cdmpp_err *err);

enum { CD_OP_MAX_NAME = 80 };
struct cd_op_reader {
    cd_op_lines in;
    /* of stacks and kernels; NULL: the table has none */
    cd_dict *names;
    char table[CD_OP_MAX_NAME], folder[CD_OP_MAX_NAME]; /* what file and folder are called */
};
/* Opens a table; the names of file and folder are filled. Errors: EIO EPARSE ESCHEMA (no names of
 * columns) ENOMEM, with path. */
cdmpp_status cd_op_reader_new(const char *path, const cd_op_columns *c, cd_dict *names,
                              CD_GIVE cd_op_reader **out, cdmpp_err *err);
#endif

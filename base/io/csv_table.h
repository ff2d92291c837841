/* csv_table -- a whole CSV file in memory, its columns found by name.
 *
 *   (1) the first line names the columns; every other line has as many fields. Empty lines and lines that begin with # are skipped;
 *   (2) blanks around names and cells are removed; no two columns have one name.
 * Any file that cd_file_lines_open reads: plain, compressed, "-" for standard input. One thread. */
#ifndef CD_CSV_TABLE_H
#define CD_CSV_TABLE_H
#include "base/core/core.h"

typedef struct cd_csv_table {
    cd_arena arena;
    const char *path;
    size_t n_col, n_row, cap, cap_line;
    const char **name;          /* (n_col) */
    const char ***cell;         /* (n_row)(n_col) */
    long *line;                 /* (n_row) line of the file */
} cd_csv_table;

/* Borrows path. Errors, with path and line: EIO, EPARSE, ESCHEMA (no line of names, two columns of one name, another number of fields), ERANGE (more than
 * 1e7 rows), ENODATA (no row), ENOMEM. Free `t` after an error too. */
cdmpp_status cd_csv_table_read(cd_csv_table *t, const char *path, cdmpp_err *err);
void cd_csv_table_free(cd_csv_table *t); /* zeroed is fine */
/* Index of a column; SIZE_MAX: there is none. */
size_t cd_csv_table_find(const cd_csv_table *t, const char *column);
/* The same of a column that must be there. Errors: ESCHEMA (names the columns that there are). */
cdmpp_status cd_csv_table_need(const cd_csv_table *t, const char *column, size_t *out, cdmpp_err *err);
/* A cell as a finite number. Errors: EPARSE, with path, line and column. */
cdmpp_status cd_csv_table_number(const cd_csv_table *t, size_t row, size_t col, double *out, cdmpp_err *err);
#endif

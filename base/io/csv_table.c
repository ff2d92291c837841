/* Tables of CSV, read as a whole. Cells stay text until someone asks for a number, so that a bad
 * number is reported with its line and column. */
#include "base/io/io.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMN = 256, MAX_ROW = 10000000 };
/* Cells, at most: so many, and so many for each byte of the file. Only packed files can have
 * more. */
#define CELLS_BASE     ((uint64_t)1 << 23)
#define CELLS_PER_BYTE ((uint64_t)4)

void cd_csv_table_free(cd_csv_table *t) {
    cd_arena_free(&t->arena);
    cd_mem_free(t->cell);
    cd_mem_free(t->line);
    *t = (cd_csv_table){0};
}

static cd_str trimmed(cd_str s) {
    while (s.n && isspace((unsigned char)s.p[0])) s.p++, s.n--;
    while (s.n && isspace((unsigned char)s.p[s.n - 1])) s.n--;
    return s;
}

static cdmpp_status read_names(cd_csv_table *t, const cd_str *field, size_t n, cdmpp_err *err) {
    t->name = cd_arena_alloc(&t->arena, n, sizeof *t->name);
    if (!t->name) return CD_FAIL(err, ENOMEM, "%zu columns", n);
    for (size_t i = 0; i < n; i++) {
        t->name[i] = cd_str_dup(&t->arena, field[i]);
        if (!t->name[i]) return CD_FAIL(err, ENOMEM, "%zu columns", n);
        if (cd_csv_table_find(t, t->name[i]) != SIZE_MAX)
            return CD_FAIL(err, ESCHEMA, "two columns are called '%.60s'", t->name[i]);
        t->n_col++;
    }
    return CDMPP_OK;
}

static cdmpp_status read_row(cd_csv_table *t, const cd_str *field, size_t n, long line,
                             cdmpp_err *err) {
    if (n != t->n_col) return CD_FAIL(err, ESCHEMA, "expected %zu fields, found %zu", t->n_col, n);
    if (t->n_row >= MAX_ROW) return CD_FAIL(err, ERANGE, "more than %d rows", MAX_ROW);
    if (CD_GROW(t->cell, t->n_row, t->cap) || CD_GROW(t->line, t->n_row, t->cap_line))
        return CD_FAIL(err, ENOMEM, "%zu rows", t->n_row);
    const char **row = cd_arena_alloc(&t->arena, n, sizeof *row);
    if (!row) return CD_FAIL(err, ENOMEM, "row");
    for (size_t i = 0; i < n; i++)
        if (!(row[i] = cd_str_dup(&t->arena, field[i]))) return CD_FAIL(err, ENOMEM, "row");
    t->cell[t->n_row] = row;
    t->line[t->n_row++] = line;
    return CDMPP_OK;
}

static cdmpp_status read_line(cd_csv_table *t, char *text, size_t len, long line, cdmpp_err *err) {
    cd_str field[MAX_COLUMN];
    size_t n;
    const cd_str all = trimmed((cd_str){text, len});
    if (!all.n || all.p[0] == '#') return CDMPP_OK;
    CD_TRY(cd_csv_fields_split(text, len, field, MAX_COLUMN, &n, err));
    for (size_t i = 0; i < n; i++) field[i] = trimmed(field[i]);
    return t->name ? read_row(t, field, n, line, err) : read_names(t, field, n, err);
}

typedef struct {
    void (*bad)(void *ctx, const cdmpp_err *err); /* NULL: a bad row is an error */
    void *ctx;
    size_t n;
} bad_rows;

static cdmpp_status read_or_tell(cd_csv_table *t, char *text, size_t len, long line, bad_rows *b,
                                 cdmpp_err *err) {
    const bool is_row = t->name != NULL;
    cdmpp_err why = {0};
    const cdmpp_status st = cd_err_at(&why, read_line(t, text, len, line, &why), t->path, line);
    /* of fields, not of rows, there are too many */
    const bool row_alone =
        st == CDMPP_ESCHEMA || st == CDMPP_EPARSE || (st == CDMPP_ERANGE && t->n_row < MAX_ROW);
    if (is_row && b->bad && row_alone) return b->bad(b->ctx, &why), b->n++, CDMPP_OK;
    if (st) cd_err_from(err, &why);
    return st;
}

static cdmpp_status cells_fit(const cd_csv_table *t, const cd_file_lines *l, cdmpp_err *err) {
    uint64_t done, total;
    cd_file_lines_progress(l, &done, &total);
    if ((uint64_t)t->n_row * t->n_col <= CELLS_BASE + CELLS_PER_BYTE * done) return CDMPP_OK;
    return cd_err_at(err,
                     CD_FAIL(err, ERANGE,
                             "%llu packed bytes have more than %llu cells: unpack the file first "
                             "where that is right",
                             (unsigned long long)done,
                             (unsigned long long)(CELLS_BASE + CELLS_PER_BYTE * done)),
                     t->path, cd_file_lines_number(l));
}

/* The first line that is neither empty nor a comment has the names; all later ones are rows. */
static cdmpp_status read_all(cd_csv_table *t, const char *path, bad_rows *b, cdmpp_err *err) {
    cd_file_lines *l;
    *t = (cd_csv_table){.path = path};
    CD_TRY(cd_file_lines_open(path, 0, &l, err));
    cdmpp_status st = CDMPP_OK;
    for (char *text = NULL; !st;) {
        size_t len;
        st = cd_file_lines_next(l, &text, &len, err);
        if (!st && !text) break;
        if (!st) st = read_or_tell(t, text, len, cd_file_lines_number(l), b, err);
        if (!st) st = cells_fit(t, l, err);
    }
    cd_file_lines_close(l);
    if (!st && !t->name)
        st = cd_err_at(err, CD_FAIL(err, ESCHEMA, "expected names of columns, found an empty file"),
                       path, 0);
    if (!st && !t->n_row)
        st = cd_err_at(err, CD_FAIL(err, ENODATA, "no row behind the names"), path, 0);
    return st;
}

cdmpp_status cd_csv_table_read(cd_csv_table *t, const char *path, cdmpp_err *err) {
    return read_all(t, path, &(bad_rows){0}, err);
}

cdmpp_status cd_csv_table_read_good(cd_csv_table *t, const char *path,
                                    void (*bad)(void *ctx, const cdmpp_err *err), void *ctx,
                                    size_t *n_bad, cdmpp_err *err) {
    bad_rows b = {bad, ctx, 0};
    const cdmpp_status st = read_all(t, path, &b, err);
    *n_bad = b.n;
    return st;
}

size_t cd_csv_table_find(const cd_csv_table *t, const char *column) {
    for (size_t i = 0; i < t->n_col; i++)
        if (!strcmp(t->name[i], column)) return i;
    return SIZE_MAX;
}

cdmpp_status cd_csv_table_need(const cd_csv_table *t, const char *column, size_t *out,
                               cdmpp_err *err) {
    *out = cd_csv_table_find(t, column);
    if (*out != SIZE_MAX) return CDMPP_OK;
    cd_buf b = {0};
    for (size_t i = 0; i < t->n_col && b.n < 100; i++)
        cd_buf_putf(&b, "%s%s", i ? ", " : "", t->name[i]);
    (void)cd_err_at(err,
                    CD_FAIL(err, ESCHEMA, "no column '%.60s'; there %s %.120s", column,
                            t->n_col == 1 ? "is" : "are", b.p ? b.p : ""),
                    t->path, 0);
    cd_buf_free(&b);
    return CDMPP_ESCHEMA;
}

cdmpp_status cd_csv_table_number(const cd_csv_table *t, size_t row, size_t col, double *out,
                                 cdmpp_err *err) {
    const char *text = t->cell[row][col];
    char *end;
    *out = strtod(text, &end);
    if (end != text && !*end && isfinite(*out)) return CDMPP_OK;
    return cd_err_at(
        err, CD_FAIL(err, EPARSE, "%.60s: expected a number, found '%.60s'", t->name[col], text),
        t->path, t->line[row]);
}

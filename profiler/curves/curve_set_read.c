/* Curves out of files. Both forms of tables end in the same points, so what a curve is called is
 * decided here. */
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "profiler/curves/curves_internal.h"

/* Reads tables of curves line by line. A bad line is reported and skipped: a table of thousands of
 * curves is useful without one of them. */

enum { MAX_COLUMN = 64 };
#define MAX_SIZE 1e15
#define MAX_MS   1e9

typedef enum { SET, HOST, OPERATOR, DEVICE, VARIED, SHAPE, POINTS, N_COLUMN } column;
static const char *const column_name[N_COLUMN] = {"set",    "host",  "operator",   "device_id",
                                                  "varied", "shape", "points_n:ms"};

struct cd_curves {
    cd_file_lines *lines;
    const char *path;      /* borrowed */
    column of[MAX_COLUMN]; /* of the fields of a line; N_COLUMN: not needed */
    size_t n_field, cap;
    const char *value[N_COLUMN];
    double *x; /* (2 cap) sizes, then times */
};

/* The field at *at ends there; *at moves behind the tab, NULL at the end. */
static char *field(char **at) {
    char *from = *at, *tab = strchr(from, '\t');
    if (tab) *tab = 0;
    *at = tab ? tab + 1 : NULL;
    return from;
}

/* Columns may come in any order; those that are not known are ignored. */
static cdmpp_status read_header(cd_curves *r, char *line, cdmpp_err *err) {
    bool have[N_COLUMN + 1] = {false};
    for (char *at = line; at; r->n_field++) {
        const char *name = field(&at);
        if (r->n_field == MAX_COLUMN)
            return CD_FAIL(err, ERANGE, "expected at most %d columns", MAX_COLUMN);
        column c = SET;
        while (c < N_COLUMN && strcmp(name, column_name[c]) != 0) c++;
        r->of[r->n_field] = c;
        have[c] = true;
    }
    static const column needed[] = {HOST, OPERATOR, POINTS};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!have[needed[i]])
            return CD_FAIL(err, ESCHEMA, "expected a column %s in the first line",
                           column_name[needed[i]]);
    return CDMPP_OK;
}

/* The header is read here, so that a file of another kind is refused before the first curve. */
cdmpp_status cd_curves_open(const char *path, cd_curves **out, cdmpp_err *err) {
    char *line = NULL;
    size_t len;
    cd_curves *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "reader");
    r->path = path;
    cdmpp_status st = cd_file_lines_open(path, 0, &r->lines, err);
    if (!st) st = cd_file_lines_next(r->lines, &line, &len, err);
    if (!st && !line) st = CD_FAIL(err, ESCHEMA, "expected names of columns, found an empty file");
    if (!st) st = read_header(r, line, err);
    if (st) {
        st = cd_err_at(err, st, path, 1);
        cd_curves_close(r);
    } else {
        *out = r;
    }
    return st;
}

void cd_curves_close(cd_curves *r) {
    if (!r) return;
    cd_file_lines_close(r->lines);
    cd_mem_free(r->x);
    cd_mem_free(r);
}

/* ---- points ---- */
static cdmpp_status make_room(cd_curves *r, size_t n, cdmpp_err *err) {
    if (n <= r->cap) return CDMPP_OK;
    cd_mem_free(r->x);
    r->cap = 0;
    r->x = cd_mem_alloc(2 * n * sizeof *r->x);
    if (!r->x) return CD_FAIL(err, ENOMEM, "%zu points", n);
    r->cap = n;
    return CDMPP_OK;
}

static cdmpp_status one_point(const char *s, const char *end, const char **after, double *x,
                              double *t, cdmpp_err *err) {
    double n = 0, ms = 0;
    const char *at = cd_json_number(s, end, &n);
    at = at && at < end && *at == ':' ? cd_json_number(at + 1, end, &ms) : NULL;
    if (!at) return CD_FAIL(err, EPARSE, "expected points n:ms, found \"%.20s\"", s);
    if (!(n > 0) || n > MAX_SIZE || !(ms > 0) || ms > MAX_MS)
        return CD_FAIL(err, ERANGE, "expected a size and milliseconds above 0, found %g:%g", n, ms);
    *x = n;
    *t = ms * 1e-3;
    *after = at;
    return CDMPP_OK;
}

/* Sorted by size, then time: of a size that stands twice the first, with the smaller time, is
 * kept. */
static cdmpp_status read_points(cd_curves *r, const char *text, cd_curve *out, cdmpp_err *err) {
    const size_t len = strlen(text);
    const char *const end = text + len;
    size_t n = 0, colons = 0;
    for (size_t i = 0; i < len; i++) colons += text[i] == ':';
    CD_TRY(make_room(r, colons + 1, err));
    for (const char *at = text; at < end && *at; n++) {
        if (n == colons) return CD_FAIL(err, EPARSE, "expected points n:ms, found \"%.20s\"", at);
        CD_TRY(one_point(at, end, &at, &r->x[n], &r->x[r->cap + n], err));
        while (at < end && *at == ' ') at++;
    }
    if (!n) return CD_FAIL(err, EPARSE, "a curve without points");
    out->n = cd_curve_set_sort(r->x, r->x + r->cap, n);
    if (!out->n) return CD_FAIL(err, ENOMEM, "%zu points", n);
    out->x = r->x;
    out->t = r->x + r->cap;
    return CDMPP_OK;
}

/* Fields of missing columns are empty texts. */
static cdmpp_status read_line(cd_curves *r, char *line, cd_curve *out, cdmpp_err *err) {
    size_t i = 0;
    for (int c = 0; c < N_COLUMN; c++) r->value[c] = "";
    for (char *at = line; at; i++) {
        const char *f = field(&at);
        if (i < r->n_field && r->of[i] != N_COLUMN) r->value[r->of[i]] = f;
    }
    if (i != r->n_field)
        return CD_FAIL(err, EPARSE, "expected %zu fields, found %zu", r->n_field, i);
    *out = (cd_curve){.set = r->value[SET],
                      .host = r->value[HOST],
                      .op = r->value[OPERATOR],
                      .varied = r->value[VARIED],
                      .shape = r->value[SHAPE]};
    if (r->value[DEVICE][0]) {
        char *end;
        out->device_id = strtol(r->value[DEVICE], &end, 10);
        if (*end)
            return CD_FAIL(err, EPARSE, "device_id: expected a whole number, found \"%.20s\"",
                           r->value[DEVICE]);
    }
    return read_points(r, r->value[POINTS], out, err);
}

cdmpp_status cd_curves_next(cd_curves *r, cd_curve *out, bool *more, cdmpp_err *err) {
    char *line = NULL;
    size_t len;
    cdmpp_status st;
    do {
        st = cd_file_lines_next(r->lines, &line, &len, err);
    } while (!st && line && !len); /* empty lines say nothing */
    *more = st ? st == CDMPP_ERANGE : line != NULL;
    if (st || !line) return st;
    st = read_line(r, line, out, err);
    if (st == CDMPP_ENOMEM) *more = false;
    return cd_err_at(err, st, r->path, cd_file_lines_number(r->lines));
}

/* ---- tables with tabs ---- */

/* A bad line is skipped, and reading goes on behind it; an error at which the reader cannot go on
 * (more is false) ends it. */
static cdmpp_status read_tsv(cd_curve_set *c, const char *path, cdmpp_err *err) {
    cd_curves *r;
    cd_curve v;
    cd_buf name = {0};
    cdmpp_status st = CDMPP_OK;
    CD_TRY(cd_curves_open(path, &r, err));
    for (bool more = true; more && !st && !cd_curve_set_full(c);) {
        cdmpp_err why = {0};
        const cdmpp_status got = cd_curves_next(r, &v, &more, &why);
        if (got && more) cd_curve_set_skip(c, &why);
        if (got && !more) st = got;
        if (st) cd_err_from(err, &why);
        if (got || !more || (c->op && strcmp(c->op, v.op) != 0)) continue;
        cd_buf_clear(&name);
        cd_buf_putf(&name, "%s%s%s, %s", v.op, v.shape[0] ? " " : "", v.shape, v.host);
        if (v.device_id >= 0) cd_buf_putf(&name, ":%ld", v.device_id);
        st = name.oom ? (cdmpp_status)CD_FAIL(err, ENOMEM, "curve")
                      : cd_curve_set_add(c, name.p, v.op, v.x, v.t, v.n, err);
    }
    cd_curves_close(r);
    cd_buf_free(&name);
    return st;
}

/* ---- CSV ---- */

/* The curve that row `first` belongs to: all rows with the same name are marked as done. x has room
 * for 2 n_row numbers. */
static cdmpp_status one_of_table(cd_curve_set *c, const cd_csv_table *t, const size_t *col,
                                 size_t first, bool *done, double *x, cdmpp_err *err) {
    const char *name = col[2] == SIZE_MAX ? "" : t->cell[first][col[2]];
    double *s = x + t->n_row;
    size_t n = 0;
    for (size_t i = first; i < t->n_row; i++) {
        if (done[i] || (col[2] != SIZE_MAX && strcmp(t->cell[i][col[2]], name) != 0)) continue;
        done[i] = true;
        CD_TRY(cd_csv_table_number(t, i, col[0], &x[n], err));
        CD_TRY(cd_csv_table_number(t, i, col[1], &s[n], err));
        if (!(x[n] > 0) || !(s[n] > 0))
            return cd_err_at(err,
                             CD_FAIL(err, ERANGE,
                                     "expected a size and seconds above 0, found %g, %g", x[n],
                                     s[n]),
                             t->path, t->line[i]);
        n++;
    }
    const size_t kept = cd_curve_set_sort(x, s, n);
    if (!kept) return CD_FAIL(err, ENOMEM, "%zu points", n);
    return cd_curve_set_add(c, name[0] ? name : t->path, name, x, s, kept, err);
}

static cdmpp_status of_table(cd_curve_set *c, const cd_csv_table *t, cdmpp_err *err) {
    size_t col[3];
    CD_TRY(cd_csv_table_need(t, "size", &col[0], err));
    CD_TRY(cd_csv_table_need(t, "seconds", &col[1], err));
    col[2] = cd_csv_table_find(t, "curve");
    bool *done = cd_mem_zalloc(t->n_row, sizeof *done);
    double *x = done ? cd_mem_zalloc(2 * t->n_row, sizeof *x) : NULL;
    cdmpp_status st = x ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu points", t->n_row);
    for (size_t i = 0; !st && i < t->n_row && !cd_curve_set_full(c); i++) {
        if (done[i] || (c->op && (col[2] == SIZE_MAX || strcmp(c->op, t->cell[i][col[2]]) != 0)))
            continue;
        st = one_of_table(c, t, col, i, done, x, err);
    }
    cd_mem_free(x);
    cd_mem_free(done);
    return st;
}

static cdmpp_status read_csv(cd_curve_set *c, const char *path, cdmpp_err *err) {
    cd_csv_table t;
    cdmpp_status st = cd_csv_table_read(&t, path, err);
    if (!st) st = of_table(c, &t, err);
    cd_csv_table_free(&t);
    return st;
}

/* Whether the first line has tabs. Standard input can be read only once, so it is CSV. */
static cdmpp_status has_tabs(const char *path, bool *yes, cdmpp_err *err) {
    cd_file_lines *l;
    char *line = NULL;
    size_t len;
    *yes = false;
    if (!strcmp(path, "-")) return CDMPP_OK;
    CD_TRY(cd_file_lines_open(path, 0, &l, err));
    const cdmpp_status st = cd_file_lines_next(l, &line, &len, err);
    if (!st && line) *yes = memchr(line, '\t', len) != NULL;
    cd_file_lines_close(l);
    return st;
}

cdmpp_status cd_curve_set_read(cd_curve_set *c, const char *path, cdmpp_err *err) {
    bool tabs;
    CD_TRY(has_tabs(path, &tabs, err));
    return tabs ? read_tsv(c, path, err) : read_csv(c, path, err);
}

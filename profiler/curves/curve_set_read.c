/* Curves out of files. Both forms of tables end in the same points, so what a curve is called is
 * decided here. */
#include <string.h>

#include "base/io/io.h"
#include "profiler/curves/curves_internal.h"

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

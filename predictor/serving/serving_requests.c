/* Requests from a CSV table: lengths of each, and when they come. */
#include <math.h>
#include <stdlib.h>

#include "predictor/serving/serving.h"

enum { ISL, OSL, AT_S, N_COLUMN };
static const struct {
    const char *name;
    double lo, hi;
} column[N_COLUMN] = {{"isl", 1, 1e7}, {"osl", 1, 1e7}, {"at_s", 0, 1e9}};

static cdmpp_status cell(const cd_csv_table *t, size_t row, size_t col, size_t k, double *out,
                         cdmpp_err *err) {
    CD_TRY(cd_csv_table_number(t, row, col, out, err));
    const bool whole = k == AT_S || !(floor(*out) < *out);
    if (whole && *out >= column[k].lo && *out <= column[k].hi) return CDMPP_OK;
    cd_err_key(err,
               CD_FAIL(err, ERANGE, "expected %s from %g to %g, found %g",
                       k == AT_S ? "a number" : "a whole number", column[k].lo, column[k].hi, *out),
               column[k].name);
    return cd_err_at(err, CDMPP_ERANGE, t->path, t->line[row]);
}

static int by_time(const void *a, const void *b) {
    const cd_serving_request *x = a, *y = b;
    return x->at_s < y->at_s   ? -1
           : x->at_s > y->at_s ? 1
           : x->line < y->line ? -1
                               : x->line > y->line;
}

static cdmpp_status columns(const cd_csv_table *t, size_t at[N_COLUMN], cdmpp_err *err) {
    CD_TRY(cd_csv_table_need(t, column[ISL].name, &at[ISL], err));
    CD_TRY(cd_csv_table_need(t, column[OSL].name, &at[OSL], err));
    at[AT_S] = cd_csv_table_find(t, column[AT_S].name);
    return CDMPP_OK;
}

static cdmpp_status row(const cd_csv_table *t, size_t i, const size_t at[N_COLUMN],
                        cd_serving_request *out, cdmpp_err *err) {
    double v[N_COLUMN] = {0};
    for (size_t k = 0; k < N_COLUMN; k++)
        if (at[k] != SIZE_MAX) CD_TRY(cell(t, i, at[k], k, &v[k], err));
    *out = (cd_serving_request){v[AT_S], (uint32_t)v[ISL], (uint32_t)v[OSL], t->line[i]};
    return CDMPP_OK;
}

static cdmpp_status rows(const cd_csv_table *t, cd_serving_bad *bad, cd_serving_requests *out,
                         cdmpp_err *err) {
    size_t at[N_COLUMN];
    CD_TRY(columns(t, at, err));
    if (!(out->v = cd_mem_zalloc(t->n_row, sizeof *out->v)))
        return CD_FAIL(err, ENOMEM, "%zu requests", t->n_row);
    for (size_t i = 0; i < t->n_row; i++) {
        cdmpp_err why = {0};
        if (row(t, i, at, &out->v[out->n], &why)) cd_serving_bad_add(bad, &why), out->n_bad++;
        else out->n++;
    }
    if (!out->n) return CD_FAIL(err, ENODATA, "none of %zu rows can be used", t->n_row);
    out->arrive = at[AT_S] != SIZE_MAX;
    qsort(out->v, out->n, sizeof *out->v, by_time);
    const double from = out->v[0].at_s; /* a part of a trace: nothing ran before it */
    for (size_t i = 0; i < out->n; i++) {
        out->v[i].at_s -= from;
        const double isl = out->v[i].isl, osl = out->v[i].osl;
        out->isl += isl / (double)out->n, out->osl += osl / (double)out->n;
        out->longest = fmax(out->longest, isl + osl);
    }
    return CDMPP_OK;
}

cdmpp_status cd_serving_requests_read(const char *path, cd_op_bad_line *bad, void *ctx,
                                      cd_serving_requests *out, cdmpp_err *err) {
    cd_csv_table t = {0};
    cd_serving_bad left = {0};
    *out = (cd_serving_requests){0};
    cdmpp_status st = cd_csv_table_read_good(&t, path, cd_serving_bad_add, &left, &out->n_bad, err);
    if (!st) st = cd_err_at(err, rows(&t, &left, out, err), path, 0);
    cd_serving_bad_tell(&left, path, bad, ctx);
    cd_csv_table_free(&t);
    return st;
}

void cd_serving_requests_free(cd_serving_requests *r) {
    cd_mem_free(r->v);
    *r = (cd_serving_requests){0};
}

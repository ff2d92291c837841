/* Measured pairs from a file become a link. The error of the fit is reported with it, so that a
 * user sees whether pieces suit these pairs. */
#include "profiler/machine/link_pairs.h"

#include <math.h>

#include "base/io/io.h"

/* One block for both: *seconds lies in it, behind *bytes. */
static cdmpp_status pairs_of(const cd_csv_table *t, double **bytes, double **seconds,
                             cdmpp_err *err) {
    size_t b, s;
    CD_TRY(cd_csv_table_need(t, "bytes", &b, err));
    CD_TRY(cd_csv_table_need(t, "seconds", &s, err));
    *bytes = cd_mem_zalloc(2 * t->n_row, sizeof **bytes);
    if (!*bytes) return CD_FAIL(err, ENOMEM, "%zu pairs", t->n_row);
    *seconds = *bytes + t->n_row;
    for (size_t i = 0; i < t->n_row; i++) {
        CD_TRY(cd_csv_table_number(t, i, b, &(*bytes)[i], err));
        CD_TRY(cd_csv_table_number(t, i, s, &(*seconds)[i], err));
    }
    return CDMPP_OK;
}

static cd_link_error errors_of(const cd_link *k, const double *bytes, const double *seconds,
                               size_t n) {
    cd_link_error e = {0};
    for (size_t i = 0; i < n; i++) {
        const double off = fabs(cd_link_cost(k, (int64_t)bytes[i]) / seconds[i] - 1);
        e.mean += off / (double)n;
        if (off >= e.worst) e.worst = off, e.worst_bytes = bytes[i];
    }
    return e;
}

cdmpp_status cd_link_pairs_fit(const char *path, const char *from, const char *to, const char *how,
                               cd_link_table *l, cd_link_error *error, cdmpp_err *err) {
    cd_csv_table t;
    double *bytes = NULL, *seconds = NULL;
    cdmpp_status st = cd_csv_table_read(&t, path, err);
    if (!st) st = pairs_of(&t, &bytes, &seconds, err);
    if (!st)
        st = cd_err_at(err, cd_link_table_fit(l, from, to, how, bytes, seconds, t.n_row, err), path,
                       0);
    if (!st) *error = errors_of(cd_link_table_find(l, from, to), bytes, seconds, t.n_row);
    cd_mem_free(bytes);
    cd_csv_table_free(&t);
    return st;
}

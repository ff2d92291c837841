/* XGBoost does not give away where it cuts a column. But it shows each value of a matrix of bins as
 * the lower end of its bin, and every bin has a value of the column at that end, but the first,
 * whose end lies below the least. So the least value, the ends and the greatest value are a short
 * column with the same cuts. */
#include "learner/trees/trees.h"

#include <math.h>
#include <string.h>

enum { PIECE = 4096 }; /* rows whose bins are looked at together */

/* One column on its way. */
typedef struct {
    float *v; /* (n) lower ends, rising */
    size_t n;
    float least, most, low; /* low: of the first bin, as XGBoost has it */
} column;

/* False: more ends than bins. */
static bool add_end(column *c, float end, size_t max_bin) {
    size_t beg = 0, to = c->n;
    while (beg < to) {
        const size_t mid = (beg + to) / 2;
        if (c->v[mid] < end) beg = mid + 1;
        else to = mid;
    }
    if (beg < c->n && c->v[beg] == end) return true;
    if (c->n == max_bin) return false;
    memmove(c->v + beg + 1, c->v + beg, (c->n - beg) * sizeof *c->v);
    c->v[beg] = end;
    c->n++;
    return true;
}

/* Ends of the bins of some rows. */
static cdmpp_status add_piece(column *c, const float *x, size_t n, size_t width, int nthread,
                              int64_t max_bin, const cd_xgb_data *bins, float *low,
                              cdmpp_err *err) {
    cd_xgb_data *d = NULL;
    CD_TRY(cd_xgb_data_binned(x, n, width, nthread, max_bin, bins, &d, err));
    const cdmpp_status st = cd_xgb_data_lower(d, width, low, err);
    cd_xgb_data_free(d);
    CD_TRY(st);
    for (size_t i = 0; i < n * width; i++) {
        column *k = &c[i % width];
        if (isnan(x[i])) continue;
        k->least = fminf(k->least, x[i]);
        k->most = fmaxf(k->most, x[i]);
        if (!add_end(k, low[i], (size_t)max_bin))
            return CD_FAIL(err, EBACKEND, "XGBoost has more than %lld bins of a column",
                           (long long)max_bin);
    }
    return CDMPP_OK;
}

/* The greatest value begins a bin unless there are max_bin without it. Repeats of the last value
 * fill the column; one without values has none. */
static bool finish(column *c, size_t max_bin) {
    if (!c->n) c->v[c->n++] = NAN;
    c->low = c->v[0];
    if (!isnan(c->v[0])) c->v[0] = c->least;
    if (c->most > c->v[c->n - 1]) {
        if (c->n < max_bin) return false;
        c->v[c->n++] = c->most;
    }
    for (size_t i = c->n; i <= max_bin; i++) c->v[i] = c->v[c->n - 1];
    return true;
}

/* Each value of the short columns has to be the lower end of its own bin, but the first and a last
 * one that only ends the last bin. */
static cdmpp_status check(const column *c, size_t n, size_t width, const float *cuts, int nthread,
                          int64_t max_bin, float *low, cdmpp_err *err) {
    cd_xgb_data *d = NULL;
    bool same = true;
    CD_TRY(cd_xgb_data_of_cuts(cuts, width, nthread, max_bin, &d, err));
    const cdmpp_status st = cd_xgb_data_lower(d, width, low, err);
    cd_xgb_data_free(d);
    CD_TRY(st);
    for (size_t i = 0; i < n * width; i++) {
        const column *k = &c[i % width];
        const size_t r = i / width;
        const float want = r == 0                              ? k->low
                           : r == (size_t)max_bin && k->n == n ? k->v[r - 1]
                                                               : k->v[r];
        same = same && (low[i] == want || (isnan(low[i]) && isnan(want)) ||
                        (k->n == 1 && low[i] == k->low));
    }
    return same
               ? CDMPP_OK
               : CD_FAIL(err, EBACKEND, "XGBoost cuts a part of a column elsewhere than all of it");
}

static cdmpp_status find(column *c, const float *x, size_t n, size_t width, int nthread,
                         int64_t max_bin, float *cuts, float *low, cdmpp_err *err) {
    const size_t rows = (size_t)max_bin + 1;
    cd_xgb_data *bins = NULL;
    for (size_t j = 0; j < width; j++)
        c[j] = (column){.v = cuts + j * rows, .least = INFINITY, .most = -INFINITY};
    CD_TRY(cd_xgb_data_binned(x, n, width, nthread, max_bin, NULL, &bins, err));
    cdmpp_status st = CDMPP_OK;
    for (size_t i = 0; !st && i < n; i += PIECE)
        st = add_piece(c, x + i * width, n - i < PIECE ? n - i : PIECE, width, nthread, max_bin,
                       bins, low, err);
    cd_xgb_data_free(bins);
    for (size_t j = 0; !st && j < width; j++)
        if (!finish(&c[j], (size_t)max_bin))
            st = CD_FAIL(err, EBACKEND,
                         "XGBoost has no bin that begins with the greatest value of a column");
    return st ? st : check(c, rows, width, cuts, nthread, max_bin, low, err);
}

cdmpp_status cd_xgb_cuts(const float *x, size_t n, size_t width, int nthread, int64_t max_bin,
                         float *cuts, cdmpp_err *err) {
    const size_t rows = (size_t)max_bin + 1 > PIECE ? (size_t)max_bin + 1 : PIECE;
    column *c = cd_mem_zalloc(width + 1, sizeof *c);
    float *low = cd_mem_zalloc(rows * width + 1, sizeof *low);
    cdmpp_status st = c && low ? CDMPP_OK : CD_FAIL(err, ENOMEM, "cuts of %zu columns", width);
    if (!st) st = find(c, x, n, width, nthread, max_bin, cuts, low, err);
    cd_mem_free(c);
    cd_mem_free(low);
    return st;
}

cdmpp_status cd_xgb_data_of_cuts(const float *cuts, size_t width, int nthread, int64_t max_bin,
                                 cd_xgb_data **out, cdmpp_err *err) {
    const size_t rows = (size_t)max_bin + 1;
    float *x = cd_mem_zalloc(rows * width + 1, sizeof *x);
    if (!x) return CD_FAIL(err, ENOMEM, "cuts of %zu columns", width);
    for (size_t i = 0; i < rows * width; i++) x[i] = cuts[i % width * rows + i / width];
    const cdmpp_status st = cd_xgb_data_binned(x, rows, width, nthread, max_bin, NULL, out, err);
    cd_mem_free(x);
    return st;
}

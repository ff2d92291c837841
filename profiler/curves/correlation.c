/* Correlations between settings and times, and where each setting stops to matter. Ranks are used
 * wherever possible: times often follow a setting without following it in a line. */
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/curves/curves.h"

/* Correlations as a table and as JSON. `+ 0.0` turns -0 into 0. */

/* A constant is what few or scattered values leave of a law: it does not say how the time rises. */
static const char *law_of(const cd_correlation_axis *a) {
    return a->strong && !a->falls && a->form != CD_PERF_CURVE_CONSTANT
               ? cd_perf_curve_form_name(a->form)
               : NULL;
}

static void put_turning(cd_buf *b, const cd_correlation_axis *a) {
    if (!a->strong) cd_buf_puts(b, "weak");
    else if (a->falls && isfinite(a->turning))
        cd_buf_putf(b, "falls, no longer from %.6g on", a->turning);
    else if (a->falls) cd_buf_puts(b, "falls");
    else if (law_of(a)) cd_buf_putf(b, "rises (%s)", law_of(a));
    else cd_buf_puts(b, "rises, by no law that these values tell");
    if (!a->strong || a->falls || !isfinite(a->turn.low)) return;
    cd_buf_puts(b, ", turns ");
    cd_perf_curve_turn_put(b, &a->turn);
}

void cd_correlation_table_print(const cd_correlation_table *t, cd_buf *b) {
    cd_buf_putf(b,
                "%s by %zu settings, %zu rows\nsetting                 Spearman  distance   "
                "partial   Pearson\n",
                t->target, t->k, t->n_row);
    for (size_t i = 0; i < t->k; i++) {
        const cd_correlation_axis *x = &t->axis[i];
        cd_buf_putf(b, "%-22s %9.3f %9.3f ", t->name[i], x->spearman + 0.0, x->distance + 0.0);
        if (isfinite(x->partial)) cd_buf_putf(b, "%9.3f", x->partial + 0.0);
        else cd_buf_puts(b, "        -");
        cd_buf_putf(b, " %9.3f  ", x->pearson + 0.0);
        put_turning(b, x);
        cd_buf_puts(b, "\n");
    }
}

void cd_correlation_table_print_json(const cd_correlation_table *t, cd_buf *out) {
    cd_json_writer w = {.out = out};
    cd_json_write_open(&w, '{');
    cd_json_write_member_str(&w, "target", t->target);
    cd_json_write_member_int(&w, "rows", (int64_t)t->n_row);
    cd_json_write_key(&w, "settings"), cd_json_write_open(&w, '[');
    for (size_t i = 0; i < t->k; i++) {
        const cd_correlation_axis *x = &t->axis[i];
        cd_json_write_open(&w, '{');
        cd_json_write_member_str(&w, "name", t->name[i]);
        cd_json_write_member_real(&w, "spearman", x->spearman);
        cd_json_write_member_real(&w, "distance", x->distance);
        cd_json_write_member_real(&w, "partial", x->partial);
        cd_json_write_member_real(&w, "pearson", x->pearson);
        cd_json_write_member_bool(&w, "strong", x->strong);
        cd_json_write_member_bool(&w, "falls", x->strong && x->falls);
        cd_json_write_member_str(&w, "form", law_of(x));
        cd_json_write_member_real(&w, "turns_at",
                                  x->falls                                  ? x->turning
                                  : isfinite(x->turn.low) && !x->turn.rough ? x->turn.at
                                                                            : (double)NAN);
        cd_json_write_member_real(&w, "turns_low", x->turn.low);
        cd_json_write_member_real(&w, "turns_high", x->turn.high);
        cd_json_write_close(&w, '}');
    }
    cd_json_write_close(&w, ']');
    cd_json_write_close(&w, '}');
}

#define STRONG 0.3
#define PAYS   0.05 /* of the last time: see correlation.h (5) */

typedef struct {
    double v;
    size_t i;
} keyed;

static int by_value(const void *a, const void *b) {
    const keyed *p = a, *q = b;
    return p->v != q->v ? (p->v > q->v) - (p->v < q->v) : (p->i > q->i) - (p->i < q->i);
}

double cd_correlation_pearson(const double *a, const double *b, size_t n) {
    double ma = 0, mb = 0, va = 0, vb = 0, c = 0;
    for (size_t i = 0; i < n; i++) ma += a[i] / (double)n, mb += b[i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        va += (a[i] - ma) * (a[i] - ma);
        vb += (b[i] - mb) * (b[i] - mb);
        c += (a[i] - ma) * (b[i] - mb);
    }
    /* what rounding leaves of values that are all the same */
    const double tiny = 1e-28 * (double)n;
    if (va <= tiny * ma * ma || vb <= tiny * mb * mb || va == 0 || vb == 0) return 0;
    return fmin(fmax(c / sqrt(va) / sqrt(vb), -1), 1);
}

/* Mean ranks from 1; k (n) is scratch. */
static void ranks(const double *v, size_t n, keyed *k, double *out) {
    for (size_t i = 0; i < n; i++) k[i] = (keyed){v[i], i};
    qsort(k, n, sizeof *k, by_value);
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i; j < n && k[j].v == k[i].v;) j++;
        for (size_t m = i; m < j; m++) out[k[m].i] = 0.5 * (double)(i + 1 + j);
    }
}

/* ---- distance ---- */

/* Mean distance of each value from all; returns the mean of those. */
static double mean_distances(const double *v, size_t n, double *mean) {
    double all = 0;
    for (size_t i = 0; i < n; i++) {
        double s = 0;
        for (size_t j = 0; j < n; j++) s += fabs(v[i] - v[j]);
        mean[i] = s / (double)n;
        all += mean[i] / (double)n;
    }
    return all;
}

cdmpp_status cd_correlation_distance(const double *a, const double *b, size_t n, double *out,
                                     cdmpp_err *err) {
    double *ma = cd_mem_zalloc(2 * n + 1, sizeof *ma), *mb = ma + n, ab = 0, aa = 0, bb = 0;
    if (!ma) return CD_FAIL(err, ENOMEM, "%zu distances", n);
    const double ga = mean_distances(a, n, ma), gb = mean_distances(b, n, mb);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            const double x = fabs(a[i] - a[j]) - ma[i] - ma[j] + ga,
                         y = fabs(b[i] - b[j]) - mb[i] - mb[j] + gb;
            ab += x * y, aa += x * x, bb += y * y;
        }
    const double whole = sqrt(aa) * sqrt(bb);
    *out = ga > 0 && gb > 0 && whole > 0 ? sqrt(fmax(ab, 0) / whole) : 0;
    cd_mem_free(ma);
    return CDMPP_OK;
}

/* ---- partial ---- */

/* Inverse in place of a matrix of correlations; false: singular, as where one axis follows from
 * others. m (k, k), symmetric. */
static bool invert(double *m, size_t k) {
    const lapack_int n = (lapack_int)k;
    if (LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'U', n, m, n)) return false;
    for (size_t i = 0; i < k; i++)
        if (m[i * k + i] * m[i * k + i] < 1e-10) return false;
    if (LAPACKE_dpotri(LAPACK_COL_MAJOR, 'U', n, m, n)) return false;
    for (size_t i = 0; i < k; i++) /* it fills one half */
        for (size_t j = 0; j < i; j++) m[j * k + i] = m[i * k + j];
    return true;
}

static bool varies(const double *v, size_t n) {
    for (size_t i = 1; i < n; i++)
        if (v[i] != v[0]) return true;
    return false;
}

/* rank (k + 1, n): of the settings, then of the seconds. Axes that do not vary are left out of the
 * matrix; m (k + 1)^2. */
static void partials(const double *rank, size_t n, size_t k, double *m, cd_correlation_axis *out) {
    size_t used = 0;
    const double *seconds = rank + k * n;
    for (size_t i = 0; i < k; i++) used += varies(rank + i * n, n);
    const size_t w = used + 1;
    for (size_t i = 0, a = 0; i <= k; i++) {
        if (!varies(rank + i * n, n) && i < k) continue;
        for (size_t j = 0, b = 0; j <= k; j++) {
            if (!varies(rank + j * n, n) && j < k) continue;
            m[a * w + b++] = i == j ? 1 : cd_correlation_pearson(rank + i * n, rank + j * n, n);
        }
        a++;
    }
    const bool known = invert(m, w);
    for (size_t i = 0, a = 0; i < k; i++) {
        const bool moves = varies(rank + i * n, n);
        out[i].partial = !moves || !varies(seconds, n) ? 0
                         : known ? -m[a * w + used] / sqrt(m[a * w + a] * m[used * w + used])
                                 : (double)NAN;
        a += moves;
    }
}

/* ---- turning points ---- */

/* Values of the axis in order, with the median time at each; how many. */
static size_t medians(const double *axis, size_t stride, const double *t, size_t n, keyed *k,
                      double *x, double *y) {
    size_t m = 0;
    for (size_t i = 0; i < n; i++) k[i] = (keyed){axis[i * stride], i};
    qsort(k, n, sizeof *k, by_value);
    for (size_t i = 0, j; i < n; i = j, m++) {
        const double at = k[i].v;
        for (j = i; j < n && k[j].v == at; j++) k[j].v = t[k[j].i];
        qsort(k + i, j - i, sizeof *k, by_value);
        const size_t c = j - i;
        x[m] = at;
        y[m] = c % 2 ? k[i + c / 2].v : 0.5 * (k[i + c / 2 - 1].v + k[i + c / 2].v);
    }
    return m;
}

/* The first value from which on the time stays within PAYS of its last: a median of three takes
 * single readings out. */
static double last_gain(const double *x, const double *y, size_t m) {
    double last = y[m - 1];
    size_t i = m;
    if (m >= 3) last = fmax(fmin(y[m - 1], y[m - 2]), fmin(fmax(y[m - 1], y[m - 2]), y[m - 3]));
    while (i > 0 && y[i - 1] <= last * (1 + PAYS)) i--;
    return i < m && i > 0 ? x[i] : (double)NAN;
}

static cdmpp_status turn(const double *x, const double *y, size_t m, cd_correlation_axis *a,
                         cdmpp_err *err) {
    cd_perf_curve p;
    if (m < 3) return CDMPP_OK;
    if (a->falls) {
        a->turning = last_gain(x, y, m);
        return CDMPP_OK;
    }
    for (size_t i = 0; i < m; i++)
        if (x[i] < 0 || x[m - 1] <= 0 || y[i] <= 0) return CDMPP_OK; /* no size, no law */
    CD_TRY(cd_perf_curve_fit(x, y, m, NULL, &p, err));
    a->form = p.form;
    a->turn = p.turn;
    cd_perf_curve_free(&p);
    return CDMPP_OK;
}

/* All matrices lie in `room`: ranks of the settings and of the seconds first, since the partial
 * correlations need all of them. */
static cdmpp_status axes(const double *setting, const double *seconds, size_t n, size_t k,
                         double strong, double *room, cd_correlation_axis *out, cdmpp_err *err) {
    double *rank = room, *column = rank + (k + 1) * n, *y = column + n, *m = y + n + 1;
    keyed *order = (keyed *)(void *)(m + (k + 1) * (k + 1));
    ranks(seconds, n, order, rank + k * n);
    for (size_t i = 0; i < k; i++) {
        for (size_t j = 0; j < n; j++) column[j] = setting[j * k + i];
        ranks(column, n, order, rank + i * n);
        out[i] = (cd_correlation_axis){.turning = (double)NAN,
                                       .turn = {.low = (double)NAN, .high = (double)NAN},
                                       .form = CD_PERF_CURVE_CONSTANT};
        out[i].pearson = cd_correlation_pearson(column, seconds, n);
        out[i].spearman = cd_correlation_pearson(rank + i * n, rank + k * n, n);
        CD_TRY(cd_correlation_distance(column, seconds, n, &out[i].distance, err));
    }
    partials(rank, n, k, m, out);
    for (size_t i = 0; i < k; i++) {
        out[i].strong = fmax(fabs(out[i].spearman), out[i].distance) >= strong;
        out[i].falls = out[i].spearman < 0;
        if (!out[i].strong) continue;
        const size_t at = medians(setting + i, k, seconds, n, order, column, y);
        CD_TRY(turn(column, y, at, &out[i], err));
    }
    return CDMPP_OK;
}

cdmpp_status cd_correlation_axes(const double *setting, const double *seconds, size_t n, size_t k,
                                 double strong, cd_correlation_axis *out, cdmpp_err *err) {
    if (n < 3 || n > 100000 || k < 1 || k > 256)
        return CD_FAIL(err, EINVALID,
                       "expected 3 .. 100000 samples of 1 .. 256 settings, found %zu of %zu", n, k);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < k; j++)
            if (!isfinite(setting[i * k + j]))
                return CD_FAIL(err, EINVALID, "row %zu, setting %zu: expected a number, found %g",
                               i, j, setting[i * k + j]);
        if (!isfinite(seconds[i]))
            return CD_FAIL(err, EINVALID, "row %zu: expected seconds, found %g", i, seconds[i]);
    }
    double *room = cd_mem_zalloc((k + 5) * n + (k + 1) * (k + 1) + 8, sizeof *room);
    if (!room) return CD_FAIL(err, ENOMEM, "%zu samples", n);
    const cdmpp_status st =
        axes(setting, seconds, n, k, strong > 0 ? strong : STRONG, room, out, err);
    cd_mem_free(room);
    return st;
}

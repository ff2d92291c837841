/* bench_perf_curve planted [SEEDS] [POINTS] [TOLERANCE] | curves FILE [TOLERANCE] | leave FILE |
 *   range FILE - what docs/reference/patterns.md says of fits.
 *
 * planted: curves of made_curve.h, sizes 1 .. POINTS (100), 5 % noise, clean and spoiled (warm-up,
 * 3 % outliers); right forms and breaks within one sample, SEEDS (1000) of each form. curves: forms
 * on each host, conv and dense apart. leave: of each curve of 100 sizes 10 are seen (evenly spread,
 * or drawn: ends not kept) and 90 predicted; mean and median relative error beside polynomials.
 * range: sizes 1, 3, 8, 23 and 64 are seen, as of cdmpp-replay --batch 1..64, and those between
 * predicted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "made_curve.h"
#include "profiler/curves/curves.h"

enum { HOSTS = 16, SEEN = 10 };

/* ---- planted ---- */
static void planted(size_t seeds, size_t points, double tolerance) {
    const cd_perf_curve_options o = {.tolerance = tolerance};
    static made_curve m;
    for (int spoiled = 0; spoiled < 2; spoiled++) {
        printf("\n%s, %zu curves of each form, %zu points\n\n| planted | right | break within 1 "
               "sample | inside of 90 %% interval |",
               spoiled ? "spoiled" : "clean", seeds, points);
        for (int f = 0; f < CD_N_PERF_CURVE; f++)
            printf(" %s |", cd_perf_curve_form_name((cd_perf_curve_form)f));
        printf("\n| --- | --- | --- | --- |%s\n", " --- | --- | --- | --- | --- | --- | --- |");
        for (int f = 0; f < CD_N_PERF_CURVE; f++) {
            size_t as[CD_N_PERF_CURVE] = {0}, near = 0, inside = 0, asked = 0;
            for (uint64_t s = 0; s < seeds; s++) {
                cd_perf_curve p;
                made_curve_draw((cd_perf_curve_form)f, s * CD_N_PERF_CURVE + (uint64_t)f, points,
                                0.05, &m);
                if (spoiled) made_curve_spoil(&m, s);
                if (cd_perf_curve_fit(m.x, m.t, m.n, &o, &p, NULL)) exit(1);
                as[p.form]++;
                near += p.form == m.law.form && made_curve_off(&m, &p) <= 1;
                made_dice d = {s, 1U << 30};
                for (int k = 0; k < 5; k++, asked++) {
                    const size_t i = (size_t)(made_unit(&d) * (double)m.n);
                    const double again = m.truth[i] * exp(0.05 * made_normal(&d));
                    double low, high;
                    cd_perf_curve_interval(&p, m.x[i], 0.9, &low, &high);
                    inside += again >= low && again <= high;
                }
                cd_perf_curve_free(&p);
            }
            printf("| %s | %.1f %% |", cd_perf_curve_form_name((cd_perf_curve_form)f),
                   100.0 * (double)as[f] / (double)seeds);
            if (f >= CD_PERF_CURVE_HINGE && f <= CD_PERF_CURVE_STAIRS)
                printf(" %.1f %% |", 100.0 * (double)near / (double)seeds);
            else printf(" - |");
            printf(" %.1f %% |", 100.0 * (double)inside / (double)asked);
            for (int g = 0; g < CD_N_PERF_CURVE; g++) printf(" %zu |", as[g]);
            printf("\n");
        }
    }
}

/* ---- real curves ---- */
typedef struct {
    char host[64];
    size_t form[2][CD_N_PERF_CURVE], class[2][4], r2[2], n[2]; /* [conv and dense, others] */
    double err[2][2][8]; /* [even, drawn][mean, ...][predictor] see leave() */
} hostrow;
static hostrow row[HOSTS];
static size_t n_row;

static hostrow *row_of(const char *host) {
    size_t i = 0;
    while (i < n_row && strcmp(row[i].host, host) != 0) i++;
    if (i == n_row) snprintf(row[n_row++].host, sizeof row->host, "%s", host);
    return &row[i];
}

static bool heavy(const cd_curve *c) {
    return !strcmp(c->op, "nn.conv2d") || !strcmp(c->op, "nn.dense");
}

static void each(const char *path, void (*visit)(const cd_curve *c, double), double arg) {
    cd_curves *r;
    cd_curve c;
    cdmpp_err err = {0};
    char text[512];
    bool more = true;
    if (cd_curves_open(path, &r, &err)) {
        fprintf(stderr, "%s\n", cdmpp_err_format(&err, text, sizeof text));
        exit(1);
    }
    while (more) {
        err = (cdmpp_err){0};
        if (cd_curves_next(r, &c, &more, &err))
            fprintf(stderr, "%s\n", cdmpp_err_format(&err, text, sizeof text));
        else if (more) visit(&c, arg);
    }
    cd_curves_close(r);
}

static double fit_s;
static size_t fit_n;

static void count(const cd_curve *c, double tolerance) {
    hostrow *h = row_of(c->host);
    const cd_perf_curve_options o = {.tolerance = tolerance};
    cd_perf_curve p;
    const int k = !heavy(c);
    const double t0 = cd_clock_process();
    if (cd_perf_curve_fit(c->x, c->t, c->n, &o, &p, NULL)) return;
    fit_s += cd_clock_process() - t0;
    fit_n++;
    h->n[k]++;
    h->form[k][p.form]++;
    h->class[k][cd_perf_curve_classify(&p)]++;
    h->r2[k] += p.r2_affine > 0.98;
    if (getenv("PATTERNS_SHOW") && k == 0)
        printf("%s %s %s %s noise %.4f local %.4f misfit %.2f r2 %.4f\n", c->host, c->op, c->shape,
               cd_perf_curve_form_name(p.form), p.noise, p.local_noise, p.misfit, p.r2_affine);
    cd_perf_curve_free(&p);
}

static void curves(const char *path, double tolerance) {
    each(path, count, tolerance);
    for (int k = 0; k < 2; k++) {
        printf("\n| %s | n | class linear | form affine | R2 > 0.98 |",
               k ? "other operators" : "conv, dense");
        for (int f = 0; f < CD_N_PERF_CURVE; f++)
            printf(" %s |", cd_perf_curve_form_name((cd_perf_curve_form)f));
        printf("\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
        for (size_t i = 0; i < n_row; i++) {
            printf("| %s | %zu | %.1f %% | %.1f %% | %.1f %% |", row[i].host, row[i].n[k],
                   100.0 * (double)row[i].class[k][CD_PERF_CURVE_LINEAR] / (double)row[i].n[k],
                   100.0 * (double)row[i].form[k][CD_PERF_CURVE_AFFINE] / (double)row[i].n[k],
                   100.0 * (double)row[i].r2[k] / (double)row[i].n[k]);
            for (int f = 0; f < CD_N_PERF_CURVE; f++) printf(" %zu |", row[i].form[k][f]);
            printf("\n");
        }
    }
    printf("\n%zu fits, %.2f ms each\n", fit_n, 1e3 * fit_s / (double)fit_n);
}

/* ---- leaving out ---- */
static double poly_at(const double *c, int degree, double x) {
    double s = 0;
    for (int k = degree; k >= 0; k--) s = s * x + c[k];
    return s;
}

/* Plain least squares on sizes scaled to -1 .. 1. */
static void poly_fit(const double *x, const double *t, int n, int degree, double scale, double *c) {
    double a[CD_PERF_CURVE_PARAM][CD_PERF_CURVE_PARAM] = {{0}};
    memset(c, 0, CD_PERF_CURVE_PARAM * sizeof *c);
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= degree; j++) {
            const double u = x[i] / scale * 2 - 1;
            c[j] += pow(u, j) * t[i];
            for (int k = 0; k <= degree; k++) a[j][k] += pow(u, j + k);
        }
    cd_perf_curve_solve_linear(a, c, (uint32_t)degree + 1);
}

enum { OURS, POLY3, POLY5, N_RIVAL };
static double sum[2][HOSTS][N_RIVAL], *all[2][HOSTS][N_RIVAL];
static size_t curves_n[HOSTS], wins[2][HOSTS][N_RIVAL];

static void leave_once(const cd_curve *c, const bool *seen, int way, size_t host) {
    double x[SEEN], t[SEEN], c3[CD_PERF_CURVE_PARAM], c5[CD_PERF_CURVE_PARAM], e[N_RIVAL] = {0};
    int n = 0, m = 0;
    cd_perf_curve p;
    for (size_t i = 0; i < c->n; i++)
        if (seen[i]) x[n] = c->x[i], t[n++] = c->t[i];
    poly_fit(x, t, n, 3, c->x[c->n - 1], c3);
    poly_fit(x, t, n, 5, c->x[c->n - 1], c5);
    if (cd_perf_curve_fit(x, t, (size_t)n, NULL, &p, NULL)) exit(1);
    for (size_t i = 0; i < c->n; i++) {
        const double u = c->x[i] / c->x[c->n - 1] * 2 - 1;
        if (seen[i]) continue;
        const double guess[N_RIVAL] = {cd_perf_curve_eval(&p, c->x[i]), poly_at(c3, 3, u),
                                       poly_at(c5, 5, u)};
        for (int k = 0; k < N_RIVAL; k++) e[k] += fabs(guess[k] - c->t[i]) / c->t[i];
        m++;
    }
    cd_perf_curve_free(&p);
    int best = 0;
    for (int k = 0; k < N_RIVAL; k++) {
        sum[way][host][k] += e[k] / m;
        all[way][host][k][curves_n[host]] = e[k] / m;
        if (e[k] < e[best]) best = k;
    }
    wins[way][host][best]++;
}

static void leave_curve(const cd_curve *c, double unused) {
    const size_t host = (size_t)(row_of(c->host) - row);
    bool seen[128] = {false};
    (void)unused;
    if (c->n != 100) return;
    for (int way = 0; way < 2; way++)
        for (int k = 0; k < N_RIVAL; k++)
            if (!all[way][host][k] && !(all[way][host][k] = calloc(4096, sizeof(double)))) exit(1);
    for (int k = 0; k < SEEN; k++) seen[k * 11] = true;
    leave_once(c, seen, 0, host);
    memset(seen, 0, sizeof seen);
    made_dice d = {curves_n[host], 0};
    for (int k = 0; k < SEEN;) {
        const size_t i = (size_t)(100 * made_unit(&d));
        k += !seen[i];
        seen[i] = true;
    }
    leave_once(c, seen, 1, host);
    curves_n[host]++;
}

static void leave(const char *path) {
    static const char *const way_name[2] = {"evenly spread", "drawn"};
    static const char *const rival[N_RIVAL] = {"pattern", "degree 3", "degree 5"};
    each(path, leave_curve, 0);
    for (int way = 0; way < 2; way++) {
        printf("\n| 10 sizes %s | curves |", way_name[way]);
        for (int k = 0; k < N_RIVAL; k++) printf(" %s: mean | median | best of three |", rival[k]);
        printf("\n| --- | --- |");
        for (int k = 0; k < N_RIVAL; k++) printf(" --- | --- | --- |");
        printf("\n");
        for (size_t i = 0; i < n_row; i++) {
            const size_t n = curves_n[i];
            if (!n) continue;
            printf("| %s | %zu |", row[i].host, n);
            for (int k = 0; k < N_RIVAL; k++) {
                cd_sort_doubles(all[way][i][k], n);
                printf(" %.2f %% | %.2f %% | %.0f %% |", 100 * sum[way][i][k] / (double)n,
                       100 * all[way][i][k][n / 2], 100.0 * (double)wins[way][i][k] / (double)n);
            }
            printf("\n");
        }
    }
}

/* ---- a range of sizes from five of them ---- */
enum { RANGE = 5 };
static double *range_mean[HOSTS];
static size_t range_n[HOSTS];

static void range_curve(const cd_curve *c, double unused) {
    static const double at[RANGE] = {1, 3, 8, 23, 64};
    const size_t host = (size_t)(row_of(c->host) - row);
    double x[RANGE], t[RANGE], sum_e = 0;
    size_t n = 0, m = 0;
    cd_perf_curve p;
    (void)unused;
    for (size_t i = 0; i < c->n && n < RANGE; i++)
        if (c->x[i] == at[n]) x[n] = at[n], t[n++] = c->t[i];
    if (n < RANGE || c->n < 64) return;
    if (!range_mean[host] && !(range_mean[host] = calloc(8192, sizeof(double)))) exit(1);
    if (cd_perf_curve_fit(x, t, n, NULL, &p, NULL)) exit(1);
    for (size_t i = 0; i < c->n && c->x[i] < 64; i++) {
        bool seen = false;
        for (int k = 0; k < RANGE; k++) seen |= c->x[i] == at[k];
        if (seen) continue;
        sum_e += fabs(cd_perf_curve_eval(&p, c->x[i]) - c->t[i]) / c->t[i];
        m++;
    }
    cd_perf_curve_free(&p);
    if (m) range_mean[host][range_n[host]++] = sum_e / (double)m;
}

static void range(const char *path) {
    each(path, range_curve, 0);
    printf("\n| 5 sizes of 1..64 | curves | mean | median | 90 of 100 below | below 10 %% |\n| --- "
           "| --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < n_row; i++) {
        double mean = 0;
        size_t good = 0;
        const size_t n = range_n[i];
        if (!n) continue;
        cd_sort_doubles(range_mean[i], n);
        for (size_t k = 0; k < n; k++)
            mean += range_mean[i][k] / (double)n, good += range_mean[i][k] < 0.1;
        printf("| %s | %zu | %.2f %% | %.2f %% | %.2f %% | %.1f %% |\n", row[i].host, n, 100 * mean,
               100 * range_mean[i][n / 2], 100 * range_mean[i][n * 9 / 10],
               100.0 * (double)good / (double)n);
    }
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "planted")) {
        planted(argc > 2 ? (size_t)atol(argv[2]) : 1000, argc > 3 ? (size_t)atol(argv[3]) : 100,
                argc > 4 ? atof(argv[4]) : 0);
    } else if (argc > 2 && !strcmp(argv[1], "curves")) {
        curves(argv[2], argc > 3 ? atof(argv[3]) : 0);
    } else if (argc > 2 && !strcmp(argv[1], "leave")) {
        leave(argv[2]);
    } else if (argc > 2 && !strcmp(argv[1], "range")) {
        range(argv[2]);
    } else {
        fprintf(stderr, "bench_perf_curve planted [SEEDS] [POINTS] [TOLERANCE] | curves FILE "
                        "[TOLERANCE] | leave FILE | range FILE\n");
        return 2;
    }
    return 0;
}

/* calib -- the plain form: weights on a grid, one width for all programs. */
#include "learner/calib.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { STEPS = 10 }; /* weights are tenths */

struct cd_calib {
    size_t n_kind, width;
    double weight[CD_CALIB_MAX_KIND], shift, sigma, q_low, q_high;
};

cd_calib_opt cd_calib_opt_default(void) { return (cd_calib_opt){0.9, CD_CALIB_MAPE, CD_LOSS_MAPE, 0, 1}; }

static double mean_log(const double *w, const double *kind_log_s, size_t n_kind, size_t n, size_t i) {
    double m = 0;
    for (size_t k = 0; k < n_kind; k++) m += w[k] * kind_log_s[k * n + i];
    return m;
}

static double loss(const cd_calib_in *in, const double *w, double shift, cd_loss l) {
    double sum = 0;
    for (size_t i = 0; i < in->n; i++) sum += cd_loss_value(l, mean_log(w, in->kind_log_s, in->n_kind, in->n, i) + shift - in->log_y[i]);
    return sum / (double)in->n;
}

/* All ways to share `left` tenths among kinds k and later. */
static void search(const cd_calib_in *in, cd_loss l, size_t k, int left, double *w, double *best, cd_calib *c) {
    if (k + 1 < in->n_kind) {
        for (int i = 0; i <= left; i++) {
            w[k] = (double)i / STEPS;
            search(in, l, k + 1, left - i, w, best, c);
        }
        return;
    }
    w[k] = (double)left / STEPS;
    const double now = loss(in, w, 0, l);
    if (now >= *best) return;
    *best = now;
    memcpy(c->weight, w, sizeof c->weight);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static cdmpp_status interval(const cd_calib_in *in, double level, cd_calib *c, cdmpp_err *err) {
    double *r = cd_calloc(in->n, sizeof *r), sq = 0;
    if (!r) return CD_FAIL(err, ENOMEM, "%zu programs", in->n);
    for (size_t i = 0; i < in->n; i++) {
        r[i] = in->log_y[i] - mean_log(c->weight, in->kind_log_s, in->n_kind, in->n, i);
        sq += r[i] * r[i];
    }
    qsort(r, in->n, sizeof *r, by_value);
    c->sigma = fmax(sqrt(sq / (double)in->n), 1e-6);
    c->q_low = r[(size_t)((double)(in->n - 1) * (1 - level) / 2)] / c->sigma;
    c->q_high = r[(size_t)ceil((double)(in->n - 1) * (1 + level) / 2)] / c->sigma;
    cd_free(r);
    return CDMPP_OK;
}

cdmpp_status cd_calib_fit(const cd_calib_in *in, const cd_calib_opt *opt, cd_calib **out, cdmpp_err *err) {
    double w[CD_CALIB_MAX_KIND] = {0}, best = INFINITY;
    if (!in->n || !in->n_kind || in->n_kind > CD_CALIB_MAX_KIND) return CD_FAIL(err, ESCHEMA, "%zu programs, %zu kinds", in->n, in->n_kind);
    cd_calib *c = cd_calloc(1, sizeof *c);
    if (!c) return CD_FAIL(err, ENOMEM, "calibration");
    c->n_kind = in->n_kind;
    c->width = in->width;
    search(in, opt->objective, 0, STEPS, w, &best, c);
    for (int i = -40; opt->point == CD_CALIB_MAPE && i <= 20; i++) {
        const double now = loss(in, c->weight, 0.02 * i, CD_LOSS_MAPE);
        if (i > -40 && now >= best) continue;
        best = now;
        c->shift = 0.02 * i;
    }
    const cdmpp_status st = interval(in, opt->level, c, err);
    if (st) cd_calib_free(c);
    else *out = c;
    return st;
}

void cd_calib_free(cd_calib *c) { cd_free(c); }
size_t cd_calib_scratch_bytes(const cd_calib *c) { return c ? 16 : 0; }

cdmpp_status cd_calib_apply(const cd_calib *c, const double *kind_log_s, const float *x, size_t n, void *scratch,
                            const cd_calib_out *o, cdmpp_err *err) {
    (void)x;
    (void)scratch;
    for (size_t i = 0; i < n; i++) {
        const double m = mean_log(c->weight, kind_log_s, c->n_kind, n, i);
        if (!isfinite(m)) return CD_FAIL(err, ENUMERIC, "program %zu", i);
        if (o->point_log) o->point_log[i] = m + c->shift;
        if (o->median_log) o->median_log[i] = m;
        if (o->sigma) o->sigma[i] = c->sigma;
        if (o->low_log) o->low_log[i] = m + c->q_low * c->sigma;
        if (o->high_log) o->high_log[i] = m + c->q_high * c->sigma;
        if (o->flags) o->flags[i] = 0;
    }
    return CDMPP_OK;
}

cdmpp_status cd_calib_write(const cd_calib *c, cd_buf *json, cd_buf *blob, cdmpp_err *err) {
    cd_buf_puts(json, "{\"weight\":[");
    for (size_t k = 0; k < c->n_kind; k++) cd_buf_putf(json, "%s%.17g", k ? "," : "", c->weight[k]);
    cd_buf_putf(json, "],\"width\":%zu,\"shift\":%.17g,\"sigma\":%.17g,\"q_low\":%.17g,\"q_high\":%.17g}", c->width, c->shift, c->sigma,
                c->q_low, c->q_high);
    return json->oom || blob->oom ? CD_FAIL(err, ENOMEM, "calibration") : CDMPP_OK;
}

static cdmpp_status read(cd_calib *c, const cd_json *v, cdmpp_err *err) {
    const cd_json *w, *x;
    int64_t width;
    CD_TRY(cd_json_need(v, "weight", &w, err));
    CD_TRY(cd_json_arr(w, 1, &x, err));
    if (w->n > CD_CALIB_MAX_KIND) return CD_FAIL(err, ERANGE, "%u weights", w->n);
    for (; x; x = x->next) CD_TRY(cd_json_real(x, &c->weight[c->n_kind++], err));
    CD_TRY(cd_json_need(v, "width", &x, err));
    CD_TRY(cd_json_int(x, 1, 1 << 20, &width, err));
    c->width = (size_t)width;
    CD_TRY(cd_json_need_real(v, "shift", 10, &c->shift, err));
    CD_TRY(cd_json_need_real(v, "sigma", 100, &c->sigma, err));
    CD_TRY(cd_json_need_real(v, "q_low", 1e3, &c->q_low, err));
    return cd_json_need_real(v, "q_high", 1e3, &c->q_high, err);
}

cdmpp_status cd_calib_read(const cd_json *v, const void *blob, size_t n, cd_calib **out, cdmpp_err *err) {
    (void)blob;
    if (n) return CD_FAIL(err, ESCHEMA, "%zu bytes behind the last member", n);
    cd_calib *c = cd_calloc(1, sizeof *c);
    cdmpp_status st = c ? CDMPP_OK : CD_FAIL(err, ENOMEM, "calibration");
    if (!st) st = read(c, v, err);
    if (st) cd_calib_free(c);
    else *out = c;
    return st;
}

size_t cd_calib_n_kind(const cd_calib *c) { return c->n_kind; }
size_t cd_calib_width(const cd_calib *c) { return c->width; }

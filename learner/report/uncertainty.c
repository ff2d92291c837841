/* How well a model knows its errors: coverage of its intervals, and how much more its least certain
 * tenth errs. */
#include "learner/report/report.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    double std, error, log;
    size_t at;
} item;

static int by_certainty(const void *a, const void *b) {
    const item *x = a, *y = b;
    if (x->std != y->std) return x->std > y->std ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static void tenths(item *v, size_t n, cd_uncertainty *u) {
    size_t k = (n + 5) / 10;
    if (!k) k = 1;
    double error[2] = {0, 0}, l[2] = {0, 0}; /* least certain, rest */
    qsort(v, n, sizeof *v, by_certainty);
    for (size_t i = 0; i < n; i++) {
        error[i >= k] += v[i].error;
        l[i >= k] += v[i].log;
    }
    u->least_certain = error[0] / (double)k;
    u->least_certain_log = l[0] / (double)k;
    u->rest = n > k ? error[1] / (double)(n - k) : (double)NAN;
    u->rest_log = n > k ? l[1] / (double)(n - k) : (double)NAN;
}

/* A model without intervals has NaN in low_s: then all figures are NaN. */
cdmpp_status cd_uncertainty_compute(const double *measured_s, const cd_train_artifacts_score *s,
                                    size_t n, cd_uncertainty *out, cdmpp_err *err) {
    const double none = (double)NAN;
    *out = (cd_uncertainty){n, none, none, none, none, none, none, none};
    if (!n || !s->low_s || isnan(s->low_s[0])) return CDMPP_OK;
    item *v = cd_mem_zalloc(n, sizeof *v);
    double *ratio = cd_mem_zalloc(n, sizeof *ratio);
    size_t inside = 0, flagged = 0;
    for (size_t i = 0; v && ratio && i < n; i++) {
        const double q = s->predicted_s[i] / measured_s[i];
        v[i] = (item){s->rel_std[i], fabs(q - 1), fabs(log(q)), i};
        ratio[i] = s->high_s[i] / s->low_s[i];
        inside += s->low_s[i] <= measured_s[i] && measured_s[i] <= s->high_s[i];
        flagged += s->out_of_range && s->out_of_range[i];
    }
    if (v && ratio) {
        tenths(v, n, out);
        cd_sort_doubles(ratio, n);
        out->width = ratio[n / 2];
        out->coverage = (double)inside / (double)n;
        out->out_of_range = (double)flagged / (double)n;
    }
    const cdmpp_status st = v && ratio ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu programs", n);
    cd_mem_free(v);
    cd_mem_free(ratio);
    return st;
}

static void number(cd_buf *b, const char *name, double x) {
    cd_buf_putf(b, ",\"%s\":", name);
    cd_buf_put_json_real(b, x);
}

void cd_uncertainty_json(cd_buf *b, const cd_uncertainty *u) {
    cd_buf_puts(b, "{\"measured_inside\":");
    cd_buf_put_json_real(b, u->coverage);
    number(b, "width", u->width);
    number(b, "least_certain_mape", u->least_certain);
    number(b, "rest_mape", u->rest);
    number(b, "least_certain_log", u->least_certain_log);
    number(b, "rest_log", u->rest_log);
    number(b, "out_of_range", u->out_of_range);
    cd_buf_putf(b, ",\"n\":%zu}", u->n);
}

void cd_uncertainty_text(cd_buf *b, const char *part, double level, const cd_uncertainty *u) {
    if (!isfinite(u->coverage)) return;
    cd_buf_putf(b,
                "    %s, n=%zu, %.0f %% interval holds %.1f %% (median high/low %.2f); MAPE %.1f "
                "%% in the least certain tenth, %.1f %% in the rest (mean |ln(predicted/measured)| "
                "%.3f, %.3f); %.1f %% out of range\n",
                part, u->n, 100 * level, 100 * u->coverage, u->width, 100 * u->least_certain,
                100 * u->rest, u->least_certain_log, u->rest_log, 100 * u->out_of_range);
}

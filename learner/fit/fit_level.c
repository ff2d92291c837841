/* Seconds of a network that was trained by the order inside groups alone: its scores have neither a
 * level nor a scale. */
#include <math.h>

#include "learner/fit/fit_internal.h"

bool cd_fit_order_alone(const cd_net_loss *p) {
    return cd_net_loss_ranks(p) && !cd_net_loss_knows_level(p);
}

/* Sums of one group. */
typedef struct {
    double n, score, log_s;
} group_sum;

/* Least squares inside groups: what a score more means in ln seconds there. Not above 0: nothing
 * that could be used. */
static double slope_within(const cd_fit_data *d, const float *out, size_t n_out, group_sum *sum) {
    double both = 0, square = 0;
    for (size_t i = 0; i < d->n_train; i++) {
        group_sum *g = &sum[d->group[d->train[i]]];
        g->n++;
        g->score += (double)out[i * n_out];
        g->log_s += log(d->latency_s[d->train[i]]);
    }
    for (size_t i = 0; i < d->n_train; i++) {
        const group_sum *g = &sum[d->group[d->train[i]]];
        const double x = (double)out[i * n_out] - g->score / g->n;
        both += x * (log(d->latency_s[d->train[i]]) - g->log_s / g->n);
        square += x * x;
    }
    return both / square;
}

static void move(const cd_fit_data *d, const float *out, size_t n_out, double slope,
                 cd_transform *t) {
    double score = 0, log_s = 0;
    for (size_t i = 0; i < d->n_train; i++) {
        score += (double)out[i * n_out];
        log_s += log(d->latency_s[d->train[i]]);
    }
    t->std = slope;
    t->mean = (log_s - slope * score) / (double)d->n_train - t->centre;
}

static size_t n_group(const cd_fit_data *d) {
    size_t n = 0;
    for (size_t i = 0; i < d->n_train; i++)
        if (d->group[d->train[i]] >= n) n = (size_t)d->group[d->train[i]] + 1;
    return n;
}

/* The log transform is a straight line, so its mean and scale take the map up, and the order stays
 * as it is. */
cdmpp_status cd_fit_level(const cd_fitting *f, cd_fit_result *r, cdmpp_err *err) {
    const cd_fit_data *d = f->data;
    if (!cd_fit_order_alone(&f->loss)) return CDMPP_OK;
    float *out = cd_mem_zalloc(d->n_train * f->n_out, sizeof *out);
    group_sum *sum = cd_mem_zalloc(n_group(d), sizeof *sum);
    cdmpp_status st =
        out && sum ? CDMPP_OK : CD_FAIL(err, ENOMEM, "scores of %zu programs", d->n_train);
    if (!st)
        st = cd_fit_outputs(r->net, &r->scalers, d->view, d->train, d->n_train, d->device,
                            d->n_device, (size_t)f->spec->batch, f->run->pool, out, err);
    if (!st) {
        const double slope = slope_within(d, out, f->n_out, sum);
        if (slope > 0 && isfinite(slope)) move(d, out, f->n_out, slope, &r->transform);
        else
            st = CD_FAIL(err, ENUMERIC,
                         "loss '%s': the network learned no order of the train programs",
                         f->spec->loss);
    }
    cd_mem_free(out);
    cd_mem_free(sum);
    return st;
}

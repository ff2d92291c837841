/* Outputs of many programs, and the validation figure. */
#include <math.h>
#include <string.h>

#include "learner/fit/fit_internal.h"
#include "learner/tensor/tensor.h"

/* What predicting needs, borrowed. */
typedef struct {
    const cd_net *net;
    const cd_scalers *scalers;
    const cd_batch_spec *spec;
    cd_batch *batch;
    cd_net_state *state;
    cd_threads *pool;
} predictor;

static cdmpp_status outputs(const predictor *p, const cd_program_view *view, const uint32_t *index,
                            size_t n, float *out, cdmpp_err *err) {
    const size_t n_out = (size_t)cd_net_config_of(p->net)->n_out;
    for (size_t i = 0; i < n; i += p->batch->dims.n) {
        const size_t m = n - i < p->batch->dims.n ? n - i : p->batch->dims.n;
        CD_TRY(cd_batch_fill(p->batch, p->spec, p->scalers, view, index + i, m, err));
        CD_TRY(cd_net_predict(p->net, p->batch, p->state, p->pool, out + i * n_out, NULL, err));
    }
    return CDMPP_OK;
}

cdmpp_status cd_fit_outputs(const cd_net *net, const cd_scalers *s, const cd_program_view *view,
                            const uint32_t *index, size_t n, const float *device, size_t n_device,
                            size_t batch, cd_threads *pool, float *out, cdmpp_err *err) {
    const cd_batch_spec spec = cd_net_batch_spec(cd_net_config_of(net), device, n_device);
    cd_batch_dims dims;
    cd_batch b = {0};
    cd_net_state *state = NULL;
    if (!n) return CDMPP_OK;
    CD_TRY(cd_batch_bound(&spec, view, index, n, batch < n ? batch : n, &dims, err));
    cdmpp_status st = cd_batch_init(&b, &spec, &dims, err);
    if (!st) st = cd_net_state_new(net, &dims, cd_threads_count(pool), false, &state, err);
    if (!st) st = outputs(&(predictor){net, s, &spec, &b, state, pool}, view, index, n, out, err);
    cd_net_state_free(state);
    cd_batch_free(&b);
    return st;
}

/* ---- the validation part ---- */
/* Every rank computes the outputs of its share of the batches, which are those of one
 * rank; the others' are zeros, so the sum is exact. */
static cdmpp_status valid_outputs(cd_fitting *f, cdmpp_err *err) {
    const cd_fit_data *d = f->data;
    const size_t n = d->n_valid, most = f->batch[0].dims.n, n_batch = (n + most - 1) / most;
    const size_t beg = cd_ops_tile_at(n_batch, f->n_rank, f->rank) * most,
                 to = cd_ops_tile_at(n_batch, f->n_rank, f->rank + 1) * most;
    const size_t end = to < n ? to : n;
    const predictor p = {f->net,       &f->scalers, &f->batch_spec,
                         &f->batch[0], f->state[0], f->run->pool};
    if (f->n_rank > 1) memset(f->valid_out, 0, n * f->n_out * sizeof *f->valid_out);
    if (beg < end)
        CD_TRY(outputs(&p, d->view, d->valid + beg, end - beg, f->valid_out + beg * f->n_out, err));
    if (f->n_rank == 1) return CDMPP_OK;
    return f->run->allreduce(f->run->allreduce_ctx, f->valid_out, 1, n * f->n_out, err);
}

/* MAPE and the log error are computed together; one of them is asked for. */
static cdmpp_status in_seconds(const cd_fitting *f, double *figure, cdmpp_err *err) {
    const cd_fit_data *d = f->data;
    double ape = 0, sq = 0;
    for (size_t i = 0; i < d->n_valid; i++) {
        const uint32_t program = d->valid[i];
        const double y = cd_transform_inverse(&f->transform, (double)f->valid_out[i * f->n_out]),
                     r = log(y) - f->log_s[program];
        if (isnan(y))
            return CD_FAIL(err, ENUMERIC,
                           "step %llu: the network gives no number for validation program %u",
                           (unsigned long long)f->step, program);
        ape += fabs(y / d->latency_s[program] - 1);
        sq += r * r;
    }
    *figure =
        f->spec->figure == CD_FIT_MAPE ? ape / (double)d->n_valid : sqrt(sq / (double)d->n_valid);
    return CDMPP_OK;
}

/* Without weights: validation programs count alike. */
static cdmpp_status loss_of(const cd_fitting *f, double *figure, cdmpp_err *err) {
    const cd_fit_data *d = f->data;
    const size_t n = d->n_valid;
    cdmpp_status st = CDMPP_OK;
    double *z = cd_mem_zalloc(n, 2 * sizeof *z);
    uint32_t *group = cd_mem_zalloc(n, sizeof *group);
    if (z && group) {
        for (size_t i = 0; i < n; i++) {
            z[i] = f->z[d->valid[i]];
            z[n + i] = f->log_s[d->valid[i]];
            group[i] = d->group ? d->group[d->valid[i]] : 0;
        }
        const cd_net_loss_batch b = {n, z, z + n, NULL, group, &f->transform};
        const cd_net_loss_norm norm = cd_net_loss_count(&f->loss, &b, f->scratch);
        *figure = cd_net_loss_eval(&f->loss, &b, &norm, f->valid_out, NULL, NULL, f->scratch);
        if (!isfinite(*figure))
            st = CD_FAIL(err, ENUMERIC, "step %llu: the validation loss is %g",
                         (unsigned long long)f->step, *figure);
    } else {
        st = CD_FAIL(err, ENOMEM, "labels of %zu programs", n);
    }
    cd_mem_free(z);
    cd_mem_free(group);
    return st;
}

/* The average of the parameters takes their place for the time of the evaluation. */
cdmpp_status cd_fit_evaluate(cd_fitting *f, double *figure, cdmpp_err *err) {
    cd_params *p = cd_net_params(f->net);
    float *value = p->value;
    if (f->average) p->value = f->average;
    const cdmpp_status st = valid_outputs(f, err);
    p->value = value;
    CD_TRY(st);
    return f->spec->figure == CD_FIT_LOSS ? loss_of(f, figure, err) : in_seconds(f, figure, err);
}

cdmpp_status cd_fit_add_point(cd_fitting *f, const cd_fit_point *p, cdmpp_err *err) {
    if (CD_GROW(f->point, f->n_point, f->cap_point))
        return CD_FAIL(err, ENOMEM, "history of %zu evaluations", f->n_point);
    f->point[f->n_point++] = *p;
    return CDMPP_OK;
}

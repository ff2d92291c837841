/* The training loop of one network: draw a batch, gradient, step, evaluate. All state that a
 * checkpoint must hold is in cd_fitting. */
#include "learner/fit/fit.h"

#include <math.h>
#include <string.h>

#include "base/core/core.h"
#include "learner/fit/fit_internal.h"
#include "learner/loss/loss.h"
#include "learner/tensor/tensor.h"

/* Which programs a step shows. All draws are functions of seed, epoch and step, so a training that
 * goes on from a checkpoint needs no state of a generator. */

enum { SHUFFLE = 1, SLICES = 2, TARGET = 3 }; /* streams of the seed */

void cd_fit_shuffle(uint32_t *v, size_t n, uint64_t key) {
    for (size_t i = n; i > 1; i--) {
        const size_t k = (size_t)(cd_rng_unit(key, i) * (double)i);
        const uint32_t t = v[i - 1];
        v[i - 1] = v[k];
        v[k] = t;
    }
}

static uint64_t key_of(const cd_fitting *f, uint64_t stream, uint64_t epoch) {
    return cd_rng_at(cd_rng_at(f->spec->seed, stream), epoch);
}

/* Slices of one group in random order: f->order is shuffled already, so a stable sort
 * by group leaves each group in random order; then whole slices are dealt. */
static void deal_slices(cd_fitting *f, uint64_t epoch) {
    const size_t n = f->data->n_train, slice = (size_t)f->spec->slice;
    size_t *by_group = f->sort, n_slice = 0, at = 0;
    uint32_t *group = (uint32_t *)(void *)(f->sort + 2 * n); /* of order[i] */
    for (size_t i = 0; i < n; i++) group[i] = f->data->group[f->order[i]];
    cd_net_loss_by_group(group, n, by_group, f->sort + n);
    uint32_t *first = f->tmp; /* where slices begin, in by_group */
    for (size_t i = 0, size; i < n; i += size) {
        size = cd_net_loss_group_size(group, by_group, i, n);
        for (size_t k = 0; k < size; k += slice) first[n_slice++] = (uint32_t)(i + k);
    }
    cd_fit_shuffle(first, n_slice, key_of(f, SLICES, epoch));
    uint32_t *out = (uint32_t *)(void *)(f->sort + n);
    for (size_t s = 0; s < n_slice; s++) {
        const uint32_t g = group[by_group[first[s]]];
        for (size_t k = first[s]; k < n && k < first[s] + slice && group[by_group[k]] == g; k++)
            out[at++] = f->order[by_group[k]];
    }
    memcpy(f->order, out, n * sizeof *out);
}

static void order_epoch(cd_fitting *f, uint64_t epoch) {
    if (f->epoch == epoch + 1) return;
    f->epoch = epoch + 1;
    memcpy(f->order, f->data->train, f->data->n_train * sizeof *f->order);
    cd_fit_shuffle(f->order, f->data->n_train, key_of(f, SHUFFLE, epoch));
    if (cd_net_loss_ranks(&f->loss)) deal_slices(f, epoch);
}

/* ---- one batch ---- */
static void put(const cd_fitting *f, cd_fit_pick *p, uint32_t program) {
    const size_t i = p->n++;
    p->program[i] = program;
    p->z[i] = f->z[program];
    p->log_s[i] = f->log_s[program];
    p->weight[i] = f->data->weight ? f->data->weight[program] : 1;
    p->group[i] = f->data->group ? f->data->group[program] : 0;
}

/* Whole groups to slices in turn. */
static void cut_by_group(cd_fitting *f, size_t slice) {
    const cd_fit_pick *w = &f->whole;
    size_t *order = f->sort, group = 0;
    cd_net_loss_by_group(w->group, w->n, order, f->sort + w->n);
    for (size_t i = 0; i < w->n; i++) {
        if (i && w->group[order[i]] != w->group[order[i - 1]]) group++;
        if (group % f->n_slice == slice) put(f, &f->own, w->program[order[i]]);
    }
}

void cd_fit_cut(cd_fitting *f, size_t slice) {
    const size_t n = f->whole.n;
    f->own.n = 0;
    if (f->n_slice > 1 && cd_net_loss_ranks(&f->loss)) {
        cut_by_group(f, slice);
        return;
    }
    for (size_t i = cd_ops_tile_at(n, f->n_slice, slice);
         i < cd_ops_tile_at(n, f->n_slice, slice + 1); i++)
        put(f, &f->own, f->whole.program[i]);
}

/* The target part is gone through in passes, each in an order of its own. */
static void draw_target(cd_fitting *f) {
    const size_t n = f->data->n_target,
                 m = n < (size_t)f->spec->target_batch ? n : (size_t)f->spec->target_batch;
    const uint64_t per_pass = n / m, pass = f->step / per_pass;
    if (f->pass != pass + 1) {
        f->pass = pass + 1;
        memcpy(f->target, f->data->target, n * sizeof *f->target);
        cd_fit_shuffle(f->target, n, key_of(f, TARGET, pass));
    }
    memcpy(f->own_target, f->target + f->step % per_pass * m, m * sizeof *f->own_target);
    f->n_own_target = m;
}

void cd_fit_draw(cd_fitting *f) {
    const size_t b = (size_t)(f->step % f->per_epoch), n = f->data->n_train,
                 tiles = (size_t)f->per_epoch;
    order_epoch(f, f->step / f->per_epoch);
    f->whole.n = 0;
    for (size_t i = cd_ops_tile_at(n, tiles, b); i < cd_ops_tile_at(n, tiles, b + 1); i++)
        put(f, &f->whole, f->order[i]);
    if (cd_net_loss_domains(&f->loss)) draw_target(f);
}

/* Outputs of many programs, and the validation figure. */

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

/* Figure of the validation part under the (averaged) parameters. Errors: ENUMERIC,
 * those of prediction and of allreduce.
 *
 * The average of the parameters takes their place for the time of the evaluation. */
static cdmpp_status fit_evaluate(cd_fitting *f, double *figure, cdmpp_err *err) {
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

/* Seconds of a network that was trained by the order inside groups alone: its scores have neither a
 * level nor a scale. */

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

/* Of such a loss: r's transform takes scores to ln seconds by least squares over the train part,
 * the slope inside groups, the level of all. Errors: ENUMERIC (scores do not rise with seconds
 * there), ENOMEM, EMODEL.
 *
 * The log transform is a straight line, so its mean and scale take the map up, and the order stays
 * as it is. */
static cdmpp_status fit_level(const cd_fitting *f, cd_fit_result *r, cdmpp_err *err) {
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

enum { INIT = 11, DROPOUT = 12, DROPOUT_TARGET = 13 }; /* streams of the seed */

/* ---- one step ---- */
static uint64_t drop_key(const cd_fitting *f, size_t slice, uint64_t stream) {
    return cd_rng_at(cd_rng_at(f->spec->seed, stream), f->step * f->n_slice + slice);
}

/* Latents of the target domain beside those of the source; adds to the loss. */
static cdmpp_status domain_terms(cd_fitting *f, double *loss, cdmpp_err *err) {
    const double cmd = f->loss.weight[CD_NET_LOSS_cmd], mmd = f->loss.weight[CD_NET_LOSS_mmd];
    const size_t n = f->own.n, m = f->n_own_target;
    cd_threads *pool = f->run->pool;
    CD_TRY(cd_batch_fill(&f->batch[1], &f->batch_spec, &f->scalers, f->data->view, f->own_target, m,
                         err));
    CD_TRY(cd_net_forward(f->net, &f->batch[1], f->state[1], pool, drop_key(f, 0, DROPOUT_TARGET),
                          f->zero, f->latent[1], err));
    memset(f->d_latent[0], 0, n * f->n_latent * sizeof(float));
    memset(f->d_latent[1], 0, m * f->n_latent * sizeof(float));
    if (cmd > 0)
        *loss += cmd * cd_domain_distance_cmd(f->domain, pool, f->latent[0], n, f->latent[1], m,
                                              cmd, f->d_latent[0], f->d_latent[1]);
    if (mmd > 0)
        *loss += mmd * cd_domain_distance_mmd(f->domain, pool, f->latent[0], n, f->latent[1], m,
                                              mmd, f->d_latent[0], f->d_latent[1]);
    return CDMPP_OK;
}

/* Gradient of one slice, which may be empty. */
static cdmpp_status slice_gradient(cd_fitting *f, size_t slice, double *loss, cdmpp_err *err) {
    const cd_fit_pick *w = &f->whole, *o = &f->own;
    const bool domains = cd_net_loss_domains(&f->loss);
    cd_threads *pool = f->run->pool;
    *loss = 0;
    cd_fit_cut(f, slice);
    cd_params_zero_grad(cd_net_params(f->net));
    if (!o->n) return CDMPP_OK;
    const cd_net_loss_batch whole = {w->n, w->z, w->log_s, w->weight, w->group, &f->transform};
    const cd_net_loss_batch own = {o->n, o->z, o->log_s, o->weight, o->group, &f->transform};
    const cd_net_loss_norm norm = cd_net_loss_count(&f->loss, &whole, f->scratch);
    CD_TRY(cd_batch_fill(&f->batch[0], &f->batch_spec, &f->scalers, f->data->view, o->program, o->n,
                         err));
    CD_TRY(cd_net_forward(f->net, &f->batch[0], f->state[0], pool, drop_key(f, slice, DROPOUT),
                          f->out, domains ? f->latent[0] : NULL, err));
    *loss = cd_net_loss_eval(&f->loss, &own, &norm, f->out, f->d_out, NULL, f->scratch);
    if (domains) CD_TRY(domain_terms(f, loss, err));
    cd_net_backward(f->net, &f->batch[0], f->state[0], pool, f->d_out,
                    domains ? f->d_latent[0] : NULL);
    if (domains) cd_net_backward(f->net, &f->batch[1], f->state[1], pool, NULL, f->d_latent[1]);
    return CDMPP_OK;
}

/* The first row becomes the sum of all rows of all ranks, in order. */
static cdmpp_status sum_rows(const cd_fitting *f, float *v, size_t n, cdmpp_err *err) {
    if (f->n_rank > 1) return f->run->allreduce(f->run->allreduce_ctx, v, f->n_own, n, err);
    for (size_t k = 1; k < f->n_own; k++)
        for (size_t i = 0; i < n; i++) v[i] += v[k * n + i];
    return CDMPP_OK;
}

/* Gradient and loss of the batch; *stop: does a rank want to? The wish to stop travels with the
 * gradients, so that all ranks stop after the same step. */
static cdmpp_status gradient(cd_fitting *f, double *loss, bool *stop, cdmpp_err *err) {
    const cd_params *p = cd_net_params(f->net);
    if (f->n_slice == 1) return slice_gradient(f, 0, loss, err);
    for (size_t k = 0; k < f->n_own; k++) {
        CD_TRY(slice_gradient(f, f->first + k, loss, err));
        memcpy(f->part + k * p->n_train, p->grad, p->n_train * sizeof *p->grad);
        f->side[2 * k] = (float)*loss;
        f->side[2 * k + 1] = *stop ? 1 : 0;
    }
    CD_TRY(sum_rows(f, f->part, p->n_train, err));
    CD_TRY(sum_rows(f, f->side, 2, err));
    memcpy(p->grad, f->part, p->n_train * sizeof *p->grad);
    *loss = (double)f->side[0];
    *stop = f->side[1] > 0;
    return CDMPP_OK;
}

static cdmpp_status wrap_numeric(const cd_fitting *f, cdmpp_status st, const char *what, double v,
                                 cdmpp_err *err) {
    if (st != CDMPP_ENUMERIC) return st;
    return CD_FAIL(err, ENUMERIC, "step %llu (epoch %llu, batch %llu): the %s is %g",
                   (unsigned long long)f->step + 1,
                   (unsigned long long)(f->step / f->per_epoch) + 1,
                   (unsigned long long)(f->step % f->per_epoch) + 1, what, v);
}

static void average(cd_fitting *f) {
    const cd_params *p = cd_net_params_of(f->net);
    /* little at the start */
    const double t = (double)f->step, keep = fmin(f->spec->ema, (1 + t) / (10 + t));
    const float a = (float)keep, b = (float)(1 - keep);
    for (size_t i = 0; f->average && i < p->n_float; i++)
        f->average[i] = a * f->average[i] + b * p->value[i];
}

/* The loss is checked before the step: parameters must not become NaN, for the checkpoint keeps
 * them. */
static cdmpp_status one_step(cd_fitting *f, cd_fit_progress *p, bool *stop, cdmpp_err *err) {
    cd_params *params = cd_net_params(f->net);
    double loss;
    cd_fit_draw(f);
    CD_TRY(gradient(f, &loss, stop, err));
    if (!isfinite(loss)) return wrap_numeric(f, CDMPP_ENUMERIC, "loss", loss, err);
    p->rate = cd_learning_rate_at(&f->lrate, f->step);
    const cdmpp_status st =
        cd_optim_step(&f->optim, f->run->pool, p->rate, params->value, params->grad, &p->norm, err);
    CD_TRY(wrap_numeric(f, st, "norm of the gradient", p->norm, err));
    f->step++;
    average(f);
    f->loss_sum += loss;
    f->loss_n++;
    return CDMPP_OK;
}

/* ---- the loop ---- */
/* A figure equal to the best counts as better: of equal ones the later is trained longer. */
static cdmpp_status evaluate(cd_fitting *f, cdmpp_err *err) {
    const cd_params *p = cd_net_params_of(f->net);
    cd_fit_point point = {(double)f->step, f->loss_sum / (double)f->loss_n, (double)NAN};
    if (f->data->n_valid) {
        CD_TRY(fit_evaluate(f, &point.valid, err));
        f->since_best++;
        if (!(point.valid >= f->best_figure)) { /* also from NaN: none yet */
            memcpy(f->best, f->average ? f->average : p->value, p->n_float * sizeof *f->best);
            f->best_figure = point.valid;
            f->best_step = f->step;
            f->since_best = 0;
        }
    }
    f->loss_sum = 0;
    f->loss_n = 0;
    return cd_fit_add_point(f, &point, err);
}

static bool done(const cd_fitting *f) {
    return f->step >= f->steps ||
           (f->spec->patience && f->since_best >= (uint64_t)f->spec->patience);
}

/* Speed counts from the start of this call, not of the training, which may have been continued. */
static bool ask_tick(const cd_fitting *f, cd_fit_progress *p) {
    if (!f->run->tick) return true;
    const double s = cd_clock_wall() - f->began_s;
    const cd_fit_point *last = f->n_point ? &f->point[f->n_point - 1] : NULL;
    p->epoch = (f->step - 1) / f->per_epoch;
    p->step = f->step;
    p->steps = f->steps;
    p->train_loss = f->loss_n ? f->loss_sum / (double)f->loss_n : last ? last->train : (double)NAN;
    p->valid = last ? last->valid : (double)NAN;
    p->best = f->best_figure;
    p->programs_per_s = s > 0 ? (double)(f->step - f->began_step) * (double)f->data->n_train /
                                    (double)f->per_epoch / s
                              : 0;
    return f->run->tick(f->run->ctx, p);
}

/* A training that goes on from a checkpoint reports the evaluations before it again. */
static bool report_history(const cd_fitting *f) {
    for (size_t i = 0; f->run->tick && i < f->n_point; i++) {
        const cd_fit_point *e = &f->point[i];
        const cd_fit_progress p = {.epoch = ((uint64_t)e->step - 1) / f->per_epoch,
                                   .step = (uint64_t)e->step,
                                   .steps = f->steps,
                                   .train_loss = e->train,
                                   .valid = e->valid,
                                   .best = f->best_figure,
                                   .evaluated = true};
        if (!f->run->tick(f->run->ctx, &p)) return false;
    }
    return true;
}

static cdmpp_status checkpoint(const cd_fitting *f, cdmpp_err *err) {
    return f->run->checkpoint && f->rank == 0 ? cd_fit_checkpoint_write(f, err) : CDMPP_OK;
}

/* A checkpoint is written every so many steps, before an interruption and at the end, but not twice
 * for one step. */
static cdmpp_status loop(cd_fitting *f, cdmpp_err *err) {
    const uint64_t every = (uint64_t)f->run->checkpoint_every;
    bool stop = false, written = f->step > 0;
    f->began_s = cd_clock_wall();
    f->began_step = f->step;
    while (!done(f)) {
        cd_fit_progress p = {0};
        bool ask = stop; /* of this rank; goes to the others with the next gradient */
        CD_TRY(one_step(f, &p, &ask, err));
        p.evaluated = f->step % f->eval_every == 0 || f->step == f->steps;
        if (p.evaluated) CD_TRY(evaluate(f, err));
        written = every && f->step % every == 0;
        if (written) CD_TRY(checkpoint(f, err));
        stop = !ask_tick(f, &p);
        if (f->n_rank == 1) ask = stop;
        if (!ask) continue;
        if (!written) CD_TRY(checkpoint(f, err));
        return CD_FAIL(err, EINTERRUPTED, "stopped after step %llu of %llu",
                       (unsigned long long)f->step, (unsigned long long)f->steps);
    }
    return written ? CDMPP_OK : checkpoint(f, err);
}

/* ---- result ---- */
/* The best parameters if there is a validation part, else the average, else the last. */
static cdmpp_status publish(cd_fitting *f, cd_fit_result *out, cdmpp_err *err) {
    cd_params *p = cd_net_params(f->net);
    const float *best = f->best && f->n_point ? f->best : f->average;
    double *v = cd_mem_zalloc(f->n_point, 3 * sizeof *v);
    if (!v) return CD_FAIL(err, ENOMEM, "history of %zu evaluations", f->n_point);
    if (best) memcpy(p->value, best, p->n_float * sizeof *best);
    *out = (cd_fit_result){.net = f->net,
                           .scalers = f->scalers,
                           .transform = f->transform,
                           .loss = f->loss,
                           .steps = f->step,
                           .best_step = f->best ? f->best_step : f->step,
                           .best = f->best_figure,
                           .n_eval = f->n_point,
                           .eval_step = v,
                           .eval_train = v + f->n_point,
                           .eval_valid = v + 2 * f->n_point};
    for (size_t i = 0; i < f->n_point; i++) {
        v[i] = f->point[i].step;
        out->eval_train[i] = f->point[i].train;
        out->eval_valid[i] = f->point[i].valid;
    }
    f->net = NULL;
    f->scalers = (cd_scalers){0};
    return CDMPP_OK;
}

void cd_fit_result_free(cd_fit_result *f) {
    cd_net_free(f->net);
    cd_scalers_free(&f->scalers);
    cd_mem_free(f->eval_step);
    *f = (cd_fit_result){0};
}

/* Ranks that do not see the same checkpoint would add up gradients of different steps. */
static cdmpp_status same_step(const cd_fitting *f, cdmpp_err *err) {
    const uint64_t mine[2] = {f->step & 0xffff, f->step >> 16 & 0xffff};
    float v[2] = {(float)mine[0], (float)mine[1]};
    if (f->n_rank == 1) return CDMPP_OK;
    CD_TRY(f->run->allreduce(f->run->allreduce_ctx, v, 1, 2, err));
    if (v[0] == (float)(mine[0] * f->n_rank) && v[1] == (float)(mine[1] * f->n_rank))
        return CDMPP_OK;
    return CD_FAIL(err, EMODEL,
                   "rank %zu would go on from step %llu, another from elsewhere: do all see the "
                   "same checkpoints?",
                   f->rank, (unsigned long long)f->step);
}

cdmpp_status cd_fit(const cd_fit_spec *spec, const cd_fit_data *data, const cd_fit_start *start,
                    const cd_fit_run *run, cd_fit_result *out, cdmpp_err *err) {
    cd_fitting f = {.spec = spec, .data = data, .run = run};
    bool found = false;
    *out = (cd_fit_result){0};
    cdmpp_status st = cd_fit_begin(&f, start, cd_rng_at(spec->seed, INIT), err);
    if (!st && run->checkpoint && run->resume) st = cd_fit_checkpoint_read(&f, &found, err);
    if (!st) st = same_step(&f, err);
    if (!st && found && !report_history(&f))
        st = CD_FAIL(err, EINTERRUPTED, "stopped after step %llu", (unsigned long long)f.step);
    if (!st) st = loop(&f, err);
    if (!st) st = publish(&f, out, err);
    if (!st && (st = fit_level(&f, out, err))) cd_fit_result_free(out);
    cd_fit_end(&f);
    return st;
}

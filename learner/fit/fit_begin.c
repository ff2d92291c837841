/* Checks, labels and memory of a training. Everything that could fail does so here and not hours
 * later. */
#include <math.h>
#include <string.h>

#include "learner/inputs/inputs.h"
#include "learner/fit/fit_internal.h"
#include "learner/tensor/tensor.h"

cd_fit_spec cd_fit_spec_small(cd_net_kind kind) {
    cd_fit_spec s = {.net = cd_net_config_small(kind),
                     .transform = CD_TRANSFORM_LOG,
                     .scale = CD_SCALE_STANDARD,
                     .loss = "1huber_log+0.3mape_s",
                     .optim = cd_optim_spec_of(CD_OPTIM_ADAMW),
                     .lrate = cd_learning_rate_of(CD_LEARNING_RATE_COSINE, 1e-3),
                     .ema = 0.999,
                     .batch = 256,
                     .slice = 16,
                     .target_batch = 256,
                     .max_epochs = 40,
                     .patience = 0};
    s.net.head = CD_HEAD_SUM;
    s.net.dropout = 0.05;
    s.optim.decay = 0.1;
    s.optim.clip = 1;
    s.lrate.warmup = 200;
    s.lrate.low = 0.01;
    return s;
}

/* ---- checks ---- */
static cdmpp_status at_least(int64_t v, int64_t lo, const char *key, cdmpp_err *err) {
    if (v >= lo && v <= INT32_MAX) return CDMPP_OK;
    return cd_err_key(err,
                      CD_FAIL(err, ERANGE, "expected %lld to %d, found %lld", (long long)lo,
                              INT32_MAX, (long long)v),
                      key);
}

static cdmpp_status check_spec(const cd_fitting *f, cdmpp_err *err) {
    const cd_fit_spec *s = f->spec;
    CD_TRY(at_least(s->batch, 1, "batch", err));
    CD_TRY(at_least(s->slice, 1, "slice", err));
    CD_TRY(at_least(s->slices, 0, "slices", err));
    CD_TRY(at_least(s->target_batch, 1, "target_batch", err));
    CD_TRY(at_least(s->max_epochs, 0, "max_epochs", err));
    CD_TRY(at_least(s->max_steps, s->max_epochs ? 0 : 1, "max_steps", err));
    CD_TRY(at_least(s->eval_every, 0, "eval_every", err));
    CD_TRY(at_least(s->patience, 0, "patience", err));
    CD_TRY(at_least(f->run->checkpoint_every, 0, "checkpoint_every", err));
    if (!(s->ema >= 0 && s->ema < 1))
        return cd_err_key(err, CD_FAIL(err, ERANGE, "expected 0 to 1, found %g", s->ema), "ema");
    return CDMPP_OK;
}

/* A score without a level cannot be judged in seconds, and only a straight line takes it to their
 * logarithm. */
static cdmpp_status check_order_alone(const cd_fitting *f, cdmpp_err *err) {
    if (!cd_fit_order_alone(&f->loss)) return CDMPP_OK;
    if (f->spec->transform != CD_TRANSFORM_LOG)
        return cd_err_key(
            err,
            CD_FAIL(err, ERANGE, "loss '%s' is about order alone and needs 'log'", f->spec->loss),
            "fit.label");
    if (f->spec->figure != CD_FIT_LOSS)
        return cd_err_key(
            err,
            CD_FAIL(
                err, ERANGE,
                "loss '%s' is about order alone, so only 'loss' can say which parameters are best",
                f->spec->loss),
            "figure");
    return CDMPP_OK;
}

/* Labels are checked for train and validation programs; the target domain has none. */
static cdmpp_status check_programs(const cd_fit_data *d, const uint32_t *index, size_t n,
                                   bool labels, const char *key, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) {
        if (index[i] >= d->view->n)
            return cd_err_key(
                err,
                CD_FAIL(err, EMODEL, "expected programs below %zu, found %u", d->view->n, index[i]),
                key);
        if (!labels) continue;
        const double y = d->latency_s[index[i]];
        if (!(y >= CD_TRANSFORM_MIN_S && y <= CD_TRANSFORM_MAX_S))
            return cd_err_key(err,
                              CD_FAIL(err, ENUMERIC,
                                      "program %u: expected a latency > 0, found %g s", index[i],
                                      y),
                              key);
        if (d->weight && !(d->weight[index[i]] > 0 && isfinite((double)d->weight[index[i]])))
            return cd_err_key(err,
                              CD_FAIL(err, ENUMERIC, "program %u: expected a weight > 0, found %g",
                                      index[i], (double)d->weight[index[i]]),
                              key);
    }
    return CDMPP_OK;
}

/* The messages name the list, for its numbers are the caller's. */
static cdmpp_status check_data(const cd_fitting *f, cdmpp_err *err) {
    const cd_fit_data *d = f->data;
    if (!d->n_train)
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected programs to train on, found none"),
                          "train");
    CD_TRY(check_programs(d, d->train, d->n_train, true, "train", err));
    CD_TRY(check_programs(d, d->valid, d->n_valid, true, "valid", err));
    CD_TRY(check_programs(d, d->target, d->n_target, false, "target", err));
    if (cd_net_loss_ranks(&f->loss) && !d->group)
        return cd_err_key(err,
                          CD_FAIL(err, ESCHEMA,
                                  "loss '%s' compares programs of a task, but no tasks were given",
                                  f->spec->loss),
                          "loss");
    if (cd_net_loss_domains(&f->loss) && !d->n_target)
        return cd_err_key(err,
                          CD_FAIL(err, ESCHEMA,
                                  "loss '%s' needs programs of a target domain, found none",
                                  f->spec->loss),
                          "loss");
    return CDMPP_OK;
}

/* Looks for what filling a batch would refuse later: a program without leaves, a device outside the
 * table. */
static cdmpp_status check_batches(const cd_fitting *f, cdmpp_err *err) {
    const cd_fit_data *d = f->data;
    const uint32_t *const list[] = {d->train, d->valid, d->target};
    const size_t n[] = {d->n_train, d->n_valid, d->n_target};
    static const char *const key[] = {"train", "valid", "target"};
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < n[k]; i++) {
            if (i % 16 == 0) cd_spool_rest(d->view->spool);
            CD_TRY(
                cd_err_key(err, cd_batch_check(&f->batch_spec, d->view, list[k][i], err), key[k]));
        }
    return CDMPP_OK;
}

static cdmpp_status check_ranks(const cd_fitting *f, const cd_net_config *net, cdmpp_err *err) {
    if (f->rank >= f->n_rank)
        return CD_FAIL(err, ERANGE, "expected a rank below %zu, found %zu", f->n_rank, f->rank);
    if (f->n_rank > f->n_slice)
        return cd_err_key(err,
                          CD_FAIL(err, ERANGE, "expected a slice for each of %zu ranks, found %zu",
                                  f->n_rank, f->n_slice),
                          "slices");
    if (f->n_slice == 1) return CDMPP_OK;
    if (f->n_rank > 1 && !f->run->allreduce)
        return CD_FAIL(err, ESCHEMA, "%zu ranks and no way to add up their gradients", f->n_rank);
    if (cd_net_loss_domains(&f->loss))
        return cd_err_key(
            err, CD_FAIL(err, EUNSUPPORTED, "cmd and mmd with more than one slice of a batch"),
            "slices");
    if (net->norm == CD_NORM_BATCH)
        return cd_err_key(
            err, CD_FAIL(err, EUNSUPPORTED, "batch norm with more than one slice of a batch"),
            "slices");
    return CDMPP_OK;
}

/* ---- transform, net, scalers ---- */
static cdmpp_status fit_transform(cd_fitting *f, cdmpp_err *err) {
    const cd_fit_data *d = f->data;
    double *y = cd_mem_zalloc(d->n_train, sizeof *y);
    if (!y) return CD_FAIL(err, ENOMEM, "%zu labels", d->n_train);
    for (size_t i = 0; i < d->n_train; i++) y[i] = d->latency_s[d->train[i]];
    const cdmpp_status st = cd_transform_fit(f->spec->transform, y, d->n_train, &f->transform, err);
    cd_mem_free(y);
    return st;
}

/* With head sum, scores are divided by the standard deviation of the log labels, so that they are
 * standardised outputs. */
static cdmpp_status fresh(cd_fitting *f, uint64_t seed, cdmpp_err *err) {
    cd_net_config s = f->spec->net;
    s.n_out = (int64_t)f->n_out;
    s.w_dev = (int64_t)f->data->w_dev;
    if ((s.kind == CD_NET_TSF && s.head == CD_HEAD_SUM) || (s.kind == CD_NET_LSTM && s.trips)) {
        if (f->spec->transform != CD_TRANSFORM_LOG)
            return cd_err_key(
                err,
                CD_FAIL(err, ERANGE, "net.head sum and net.trips are about seconds and need 'log'"),
                "fit.label");
        s.temperature = f->transform.std;
    }
    f->batch_spec = cd_net_batch_spec(&s, f->data->device, f->data->n_device);
    CD_TRY(check_batches(f, err));
    CD_TRY(cd_err_key(err, cd_net_new(&s, seed, &f->net, err), "net"));
    CD_TRY(cd_scalers_init(&f->scalers, &f->batch_spec, err));
    return cd_scalers_fit(&f->scalers, f->spec->scale, &f->batch_spec, f->data->view,
                          f->data->train, f->data->n_train, err);
}

static void copy_scaler(cd_scaler *to, const cd_scaler *from) {
    for (size_t i = 0; i < to->n; i++) {
        to->shift[i] = from->shift[i];
        to->scale[i] = from->scale[i];
    }
}

/* The description of the network comes from the start; parameters and scalers are copied, for the
 * caller keeps his own. */
static cdmpp_status continued(cd_fitting *f, const cd_fit_start *start, cdmpp_err *err) {
    const cd_net_config *s = cd_net_config_of(start->net);
    const cd_params *from = cd_net_params_of(start->net);
    if ((size_t)s->n_out != f->n_out)
        return CD_FAIL(err, EMODEL, "loss '%s' needs %zu outputs, the network to start from has %d",
                       f->spec->loss, f->n_out, (int)s->n_out);
    if (s->device && (size_t)s->w_dev != f->data->w_dev)
        return CD_FAIL(err, EMODEL,
                       "the network to start from reads %d numbers of a device, found %zu",
                       (int)s->w_dev, f->data->w_dev);
    f->batch_spec = cd_net_batch_spec(s, f->data->device, f->data->n_device);
    CD_TRY(check_batches(f, err));
    CD_TRY(cd_net_new(s, 0, &f->net, err));
    memcpy(cd_net_params(f->net)->value, from->value, from->n_float * sizeof *from->value);
    CD_TRY(cd_scalers_init(&f->scalers, &f->batch_spec, err));
    const cd_scalers *c = start->scalers;
    if (c->tok.n != f->scalers.tok.n || c->prog.n != f->scalers.prog.n ||
        c->dev.n != f->scalers.dev.n)
        return CD_FAIL(err, EMODEL, "the scalers to start from are of another network");
    copy_scaler(&f->scalers.tok, &c->tok);
    copy_scaler(&f->scalers.prog, &c->prog);
    copy_scaler(&f->scalers.dev, &c->dev);
    copy_scaler(&f->scalers.trips, &c->trips);
    return CDMPP_OK;
}

/* ---- plan ---- */
static void plan(cd_fitting *f) {
    const cd_fit_spec *s = f->spec;
    const uint64_t n = f->data->n_train, batch = (uint64_t)s->batch;
    f->per_epoch = (n + batch - 1) / batch;
    f->steps = s->max_epochs ? (uint64_t)s->max_epochs * f->per_epoch : UINT64_MAX;
    if (s->max_steps && (uint64_t)s->max_steps < f->steps) f->steps = (uint64_t)s->max_steps;
    f->eval_every = s->eval_every ? (uint64_t)s->eval_every : f->per_epoch;
    f->lrate = s->lrate;
    f->lrate.total = f->steps;
    if (!f->lrate.per) f->lrate.per = f->per_epoch;
}

static bool is_encoder(const cd_param *p) {
    return strncmp(p->name, "encoder.", 8) == 0 || strncmp(p->name, "projection.", 11) == 0;
}

/* Frozen tensors and statistics are in no span: the optimiser does not touch them. */
static cdmpp_status new_optim(cd_fitting *f, cdmpp_err *err) {
    const cd_params *p = cd_net_params_of(f->net);
    cd_optim_span *span = cd_mem_zalloc(p->n, sizeof *span);
    size_t n = 0, frozen = 0;
    if (!span) return CD_FAIL(err, ENOMEM, "list of %zu tensors", p->n);
    for (size_t i = 0; i < p->n; i++) {
        const cd_param *q = &p->param[i];
        const bool freeze = f->spec->freeze_encoder && is_encoder(q);
        frozen += freeze;
        if (!q->is_stat && !freeze)
            span[n++] = (cd_optim_span){q->off, q->off + q->n, q->decay || f->spec->decay_all};
    }
    cdmpp_status st;
    if (f->spec->freeze_encoder && !frozen)
        st = cd_err_key(err, CD_FAIL(err, ERANGE, "this network has no encoder"), "freeze_encoder");
    else
        st = cd_err_key(err, cd_optim_init(&f->optim, &f->spec->optim, p->n_train, span, n, err),
                        "optim");
    cd_mem_free(span);
    return st;
}

/* ---- memory ---- */
static void widest(cd_batch_dims *a, const cd_batch_dims *b) {
    if (b->n > a->n) a->n = b->n;
    if (b->n_tok > a->n_tok) a->n_tok = b->n_tok;
    if (b->max_leaf > a->max_leaf) a->max_leaf = b->max_leaf;
    if (b->n_node > a->n_node) a->n_node = b->n_node;
}

/* One state serves training and validation, so it is as wide as the wider of both. */
static cdmpp_status new_states(cd_fitting *f, cdmpp_err *err) {
    const cd_fit_data *d = f->data;
    const int n_worker = cd_threads_count(f->run->pool);
    cd_batch_dims dims;
    CD_TRY(cd_batch_bound(&f->batch_spec, d->view, d->train, d->n_train, (size_t)f->spec->batch,
                          &f->dims, err));
    if (d->n_valid) {
        CD_TRY(cd_batch_bound(&f->batch_spec, d->view, d->valid, d->n_valid, (size_t)f->spec->batch,
                              &dims, err));
        widest(&f->dims, &dims);
    }
    CD_TRY(cd_batch_init(&f->batch[0], &f->batch_spec, &f->dims, err));
    CD_TRY(cd_net_state_new(f->net, &f->dims, n_worker, true, &f->state[0], err));
    if (!cd_net_loss_domains(&f->loss)) return CDMPP_OK;
    const size_t m = (size_t)f->spec->target_batch;
    CD_TRY(cd_batch_bound(&f->batch_spec, d->view, d->target, d->n_target, m, &dims, err));
    CD_TRY(cd_batch_init(&f->batch[1], &f->batch_spec, &dims, err));
    CD_TRY(cd_net_state_new(f->net, &dims, n_worker, true, &f->state[1], err));
    return cd_domain_distance_new((size_t)f->spec->batch + m, f->n_latent, n_worker, &f->domain,
                                  err);
}

static void new_pick(cd_arena *a, cd_fit_pick *p, size_t n) {
    p->program = CD_NEWN(a, uint32_t, n);
    p->z = CD_NEWN(a, double, n);
    p->log_s = CD_NEWN(a, double, n);
    p->weight = CD_NEWN(a, float, n);
    p->group = CD_NEWN(a, uint32_t, n);
}

/* The arrays of ranks, slices and domains only where they are used. */
static bool new_step_arrays(cd_fitting *f) {
    const cd_fit_data *d = f->data;
    const size_t n = (size_t)f->spec->batch, m = (size_t)f->spec->target_batch, width = f->n_latent;
    cd_arena *a = &f->arena;
    f->order = CD_NEWN(a, uint32_t, d->n_train);
    f->tmp = CD_NEWN(a, uint32_t, d->n_train);
    f->out = CD_NEWN(a, float, n * f->n_out);
    f->d_out = CD_NEWN(a, float, n * f->n_out);
    f->valid_out = CD_NEWN(a, float, d->n_valid * f->n_out);
    new_pick(a, &f->whole, n);
    new_pick(a, &f->own, n);
    if (f->n_slice > 1) {
        f->part = CD_NEWN(a, float, f->n_own *cd_net_params_of(f->net)->n_train);
        f->side = CD_NEWN(a, float, 2 * f->n_own);
    }
    if (cd_net_loss_ranks(&f->loss)) f->sort = CD_NEWN(a, size_t, 3 * d->n_train);
    if (!cd_net_loss_domains(&f->loss)) return !a->oom;
    f->target = CD_NEWN(a, uint32_t, d->n_target);
    f->own_target = CD_NEWN(a, uint32_t, m);
    f->zero = CD_NEWN(a, float, m * f->n_out);
    for (int k = 0; k < 2; k++) {
        f->latent[k] = CD_NEWN(a, float, (k ? m : n) * width);
        f->d_latent[k] = CD_NEWN(a, float, (k ? m : n) * width);
    }
    return !a->oom;
}

/* The average starts at the initial parameters. */
static cdmpp_status new_arrays(cd_fitting *f, cdmpp_err *err) {
    const cd_params *p = cd_net_params_of(f->net);
    const size_t n_valid = f->spec->figure == CD_FIT_LOSS ? f->data->n_valid : 0,
                 batch = (size_t)f->spec->batch;
    if (!new_step_arrays(f)) return CD_FAIL(err, ENOMEM, "batches of %zu programs", batch);
    CD_TRY(cd_net_loss_scratch_new(&f->loss, n_valid > batch ? n_valid : batch, &f->scratch, err));
    if (f->data->n_valid) f->best = CD_NEWN(&f->arena, float, p->n_float);
    if (f->data->n_valid && !f->best)
        return CD_FAIL(err, ENOMEM, "copy of %zu parameters", p->n_float);
    if (f->spec->ema <= 0) return CDMPP_OK;
    f->average_slab.used = p->n_float * sizeof(float);
    CD_TRY(cd_slab_alloc(&f->average_slab, err));
    f->average = cd_slab_floats(&f->average_slab, p->n_float);
    memcpy(f->average, p->value, p->n_float * sizeof *f->average);
    return CDMPP_OK;
}

static cdmpp_status make_labels(cd_fitting *f, cdmpp_err *err) {
    const cd_fit_data *d = f->data;
    f->z = CD_NEWN(&f->arena, double, d->view->n);
    f->log_s = CD_NEWN(&f->arena, double, d->view->n);
    if (!f->z || !f->log_s) return CD_FAIL(err, ENOMEM, "%zu labels", d->view->n);
    for (int part = 0; part < 2; part++) {
        const uint32_t *index = part ? d->valid : d->train;
        for (size_t i = 0; i < (part ? d->n_valid : d->n_train); i++) {
            f->z[index[i]] = cd_transform_forward(&f->transform, d->latency_s[index[i]]);
            f->log_s[index[i]] = log(d->latency_s[index[i]]);
        }
    }
    return CDMPP_OK;
}

static cdmpp_status take_digest(cd_fitting *f, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = cd_net_save(f->net, &f->scalers, &b, err);
    if (!st && b.oom) st = CD_FAIL(err, ENOMEM, "description of the network");
    if (!st) cd_fit_digest(f, &b);
    cd_buf_free(&b);
    return st;
}

/* The order matters: the loss decides the outputs of the network, the transform its temperature,
 * the network the batches. */
cdmpp_status cd_fit_begin(cd_fitting *f, const cd_fit_start *start, uint64_t seed, cdmpp_err *err) {
    f->n_rank = f->run->n_rank ? f->run->n_rank : 1;
    f->rank = f->run->rank;
    f->n_slice = f->spec->slices > 1 ? (size_t)f->spec->slices : f->n_rank;
    f->first = cd_ops_tile_at(f->n_slice, f->n_rank, f->rank);
    f->n_own = cd_ops_tile_at(f->n_slice, f->n_rank, f->rank + 1) - f->first;
    f->best_figure = (double)NAN;
    CD_TRY(check_spec(f, err));
    CD_TRY(cd_err_key(
        err,
        cd_net_loss_parse(f->spec->loss, f->spec->quantile, f->spec->n_quantile, &f->loss, err),
        "loss"));
    CD_TRY(check_order_alone(f, err));
    f->n_out = cd_net_loss_width(&f->loss);
    CD_TRY(check_data(f, err));
    const bool from = start && start->net;
    if (from) f->transform = *start->transform;
    else CD_TRY(fit_transform(f, err));
    CD_TRY(from ? continued(f, start, err) : fresh(f, seed, err));
    CD_TRY(check_ranks(f, cd_net_config_of(f->net), err));
    f->n_latent = cd_net_n_latent(f->net);
    plan(f);
    CD_TRY(cd_err_key(err, cd_learning_rate_check(&f->lrate, err), "lrate"));
    CD_TRY(new_optim(f, err));
    CD_TRY(make_labels(f, err));
    CD_TRY(new_states(f, err));
    CD_TRY(new_arrays(f, err));
    return take_digest(f, err);
}

void cd_fit_end(cd_fitting *f) {
    cd_arena_free(&f->arena);
    cd_mem_free(f->point);
    for (int k = 0; k < 2; k++) {
        cd_batch_free(&f->batch[k]);
        cd_net_state_free(f->state[k]);
    }
    cd_net_loss_scratch_free(f->scratch);
    cd_domain_distance_free(f->domain);
    cd_slab_free(&f->average_slab);
    cd_optim_free(&f->optim);
    cd_net_free(f->net);
    cd_scalers_free(&f->scalers);
}

/* Checks, labels and memory of a training. Everything that could fail does so here and not hours
 * later. */
#include <math.h>
#include <string.h>

#include "learner/fit/fit_internal.h"
#include "learner/fit/learning_rate.h"
#include "learner/fit/optim.h"
#include "learner/inputs/inputs.h"
#include "learner/tensor/tensor.h"

/* The learning rate of a step: schedules as pure functions of the step's number. */

cd_learning_rate cd_learning_rate_of(cd_learning_rate_kind kind, double lr) {
    return (cd_learning_rate){.kind = kind,
                              .lr = lr,
                              .low = kind == CD_LEARNING_RATE_COSINE ? 0 : 0.1,
                              .high = 10,
                              .gamma = 0.9,
                              .up = 2000,
                              .down = 2000,
                              .per = 1,
                              .total = 1};
}

static cdmpp_status want(bool ok, const char *key, const char *what, double found, cdmpp_err *err) {
    return ok ? CDMPP_OK
              : cd_err_key(err, CD_FAIL(err, ERANGE, "expected %s, found %g", what, found), key);
}

cdmpp_status cd_learning_rate_check(const cd_learning_rate *r, cdmpp_err *err) {
    CD_TRY(want(r->lr > 0 && r->lr <= 1e3, "lr", "above 0 and at most 1000", r->lr, err));
    CD_TRY(want(r->low >= 0 && r->low <= 1, "low", "0 to 1", r->low, err));
    CD_TRY(want(r->high >= 1 && r->high <= 1e6, "high", "1 to 1e6", r->high, err));
    CD_TRY(want(r->gamma > 0 && r->gamma <= 1, "gamma", "above 0 and at most 1", r->gamma, err));
    CD_TRY(want(r->up > 0, "up", "at least 1 step", (double)r->up, err));
    CD_TRY(want(r->down > 0, "down", "at least 1 step", (double)r->down, err));
    CD_TRY(want(r->per > 0, "per", "at least 1 step", (double)r->per, err));
    const bool bounded =
        r->kind == CD_LEARNING_RATE_ONE_CYCLE || r->kind == CD_LEARNING_RATE_COSINE;
    return want(!bounded || r->total > 0, "total", "at least 1 step", (double)r->total, err);
}

/* From a to b along half a cosine, 0 <= share <= 1. */
static double swing(double a, double b, double share) {
    return b + 0.5 * (a - b) * (1 + cos(M_PI * share));
}

static double cyclic(const cd_learning_rate *r, uint64_t step) {
    const uint64_t at = step % (r->up + r->down);
    const double share =
        at <= r->up ? (double)at / (double)r->up : (double)(r->up + r->down - at) / (double)r->down;
    return r->lr * (r->low + (r->high - r->low) * share);
}

static double one_cycle(const cd_learning_rate *r, uint64_t step) {
    const double first = r->lr / 25, last = first / 1e4, end = (double)r->total - 1,
                 at = fmin((double)step, end);
    const double top = fmax(0, 0.3 * (double)r->total - 1);
    if (at < top) return swing(first, r->lr, at / top);
    return end > top ? swing(r->lr, last, (at - top) / (end - top)) : r->lr;
}

static double cosine(const cd_learning_rate *r, uint64_t step) {
    const double span = r->total > r->warmup ? (double)(r->total - r->warmup) : 1;
    const double at = step > r->warmup ? (double)(step - r->warmup) : 0;
    return r->lr * swing(1, r->low, fmin(at / span, 1));
}

double cd_learning_rate_at(const cd_learning_rate *r, uint64_t step) {
    const double rise = step < r->warmup ? ((double)step + 1) / (double)r->warmup : 1;
    switch (r->kind) {
    case CD_LEARNING_RATE_CONSTANT: break;
    case CD_LEARNING_RATE_CYCLIC: return cyclic(r, step);
    case CD_LEARNING_RATE_ONE_CYCLE: return one_cycle(r, step);
    case CD_LEARNING_RATE_COSINE: return rise * cosine(r, step);
    case CD_LEARNING_RATE_EXPONENTIAL:
        return rise * r->lr * pow(r->gamma, (double)step / (double)r->per);
    }
    return rise * r->lr;
}

/* Adam, AdamW and SGD with PyTorch's formulas. The parameters are cut into chunks of fixed size, so
 * the norm has the same bits for any number of threads. */

cd_optim_spec cd_optim_spec_of(cd_optim_kind kind) {
    return (cd_optim_spec){
        .kind = kind, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .momentum = 0.9};
}

/* ---- setting up ---- */
static cdmpp_status within(double v, double lo, double hi, const char *key, cdmpp_err *err) {
    if (v >= lo && v <= hi) return CDMPP_OK;
    return cd_err_key(err, CD_FAIL(err, ERANGE, "expected %g to %g, found %g", lo, hi, v), key);
}

static cdmpp_status check(const cd_optim_spec *s, cdmpp_err *err) {
    CD_TRY(within(s->beta1, 0, 0.9999999, "beta1", err));
    CD_TRY(within(s->beta2, 0, 0.9999999, "beta2", err));
    CD_TRY(within(s->eps, 1e-30, 1, "eps", err));
    CD_TRY(within(s->momentum, 0, 0.9999999, "momentum", err));
    CD_TRY(within(s->decay, 0, 1e3, "decay", err));
    return within(s->clip, 0, 1e30, "clip", err);
}

static size_t cut(const cd_optim_span *span, size_t n_span, cd_optim_span *out) {
    size_t n = 0;
    for (size_t k = 0; k < n_span; k++)
        for (size_t at = span[k].beg; at < span[k].end; at += CD_OPTIM_CHUNK, n++) {
            const size_t end =
                span[k].end - at < CD_OPTIM_CHUNK ? span[k].end : at + CD_OPTIM_CHUNK;
            if (out) out[n] = (cd_optim_span){at, end, span[k].decay};
        }
    return n;
}

cdmpp_status cd_optim_init(cd_optim *o, const cd_optim_spec *spec, size_t n,
                           const cd_optim_span *span, size_t n_span, cdmpp_err *err) {
    *o = (cd_optim){.spec = *spec, .n = n};
    CD_TRY(check(spec, err));
    o->n_chunk = cut(span, n_span, NULL);
    o->chunk = CD_NEWN(&o->arena, cd_optim_span, o->n_chunk);
    o->sum = CD_NEWN(&o->arena, double, o->n_chunk);
    o->m = CD_NEWN(&o->arena, float, n);
    if (spec->kind != CD_OPTIM_SGD) o->v = CD_NEWN(&o->arena, float, n);
    if (o->arena.oom) {
        cd_optim_free(o);
        return CD_FAIL(err, ENOMEM, "moments of %zu parameters", n);
    }
    cut(span, n_span, o->chunk);
    return CDMPP_OK;
}

void cd_optim_free(cd_optim *o) {
    cd_arena_free(&o->arena);
    *o = (cd_optim){0};
}

/* ---- one step ---- */
typedef struct {
    cd_optim *o;
    float *value;
    const float *grad;
    double lr, scale;
} stepping;

static cdmpp_status add_squares(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const stepping *s = ctx;
    (void)w, (void)err;
    for (size_t k = beg; k < end; k++) {
        double sum = 0;
        for (size_t i = s->o->chunk[k].beg; i < s->o->chunk[k].end; i++)
            sum += (double)s->grad[i] * (double)s->grad[i];
        s->o->sum[k] = sum;
    }
    return CDMPP_OK;
}

/* The bias corrections 1 - beta^t are scalars of the step; decay is added to the gradient (Adam) or
 * shrinks the value (AdamW). */
static void adam(const stepping *s, const cd_optim_span *c) {
    const cd_optim_spec *p = &s->o->spec;
    const double t = (double)s->o->step, decay = c->decay ? p->decay : 0;
    const float b1 = (float)p->beta1, c1 = (float)(1 - p->beta1), b2 = (float)p->beta2,
                c2 = (float)(1 - p->beta2);
    const float rate = (float)(s->lr / (1 - pow(p->beta1, t))),
                root = (float)sqrt(1 - pow(p->beta2, t)), eps = (float)p->eps;
    const float shrink = p->kind == CD_OPTIM_ADAMW ? (float)(1 - s->lr * decay) : 1;
    const float coupled = p->kind == CD_OPTIM_ADAM ? (float)decay : 0, scale = (float)s->scale;
    float *x = s->value, *m = s->o->m, *v = s->o->v;
    for (size_t i = c->beg; i < c->end; i++) {
        const float g = s->grad[i] * scale + coupled * x[i];
        m[i] = m[i] * b1 + c1 * g;
        v[i] = v[i] * b2 + c2 * g * g;
        x[i] = x[i] * shrink - rate * m[i] / (sqrtf(v[i]) / root + eps);
    }
}

static void sgd(const stepping *s, const cd_optim_span *c) {
    const float mu = (float)s->o->spec.momentum, decay = c->decay ? (float)s->o->spec.decay : 0;
    const float lr = (float)s->lr, scale = (float)s->scale;
    float *x = s->value, *m = s->o->m;
    for (size_t i = c->beg; i < c->end; i++) {
        m[i] = mu * m[i] + (s->grad[i] * scale + decay * x[i]);
        x[i] -= lr * m[i];
    }
}

static cdmpp_status move(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const stepping *s = ctx;
    (void)w, (void)err;
    for (size_t k = beg; k < end; k++) {
        if (s->o->spec.kind == CD_OPTIM_SGD) sgd(s, &s->o->chunk[k]);
        else adam(s, &s->o->chunk[k]);
    }
    return CDMPP_OK;
}

/* Norm first, over all chunks; only then does anything move. */
cdmpp_status cd_optim_step(cd_optim *o, cd_threads *pool, double lr, float *value,
                           const float *grad, double *norm, cdmpp_err *err) {
    stepping s = {o, value, grad, lr, 1};
    double sum = 0;
    CD_TRY(cd_threads_run(pool, o->n_chunk, 1, add_squares, &s, err));
    for (size_t k = 0; k < o->n_chunk; k++) sum += o->sum[k];
    sum = sqrt(sum);
    if (norm) *norm = sum;
    if (!isfinite(sum)) return CD_FAIL(err, ENUMERIC, "the norm of the gradient is %g", sum);
    /* PyTorch's 1e-6 */
    if (o->spec.clip > 0 && sum > o->spec.clip) s.scale = o->spec.clip / (sum + 1e-6);
    o->step++;
    return cd_threads_run(pool, o->n_chunk, 1, move, &s, err);
}

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

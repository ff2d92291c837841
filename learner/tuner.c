#include "learner/tuner.h"

#include <math.h>
#include <string.h>

#include "features/device.h"
#include "learner/calibrate.h"
#include "learner/judge.h"
#include "learner/netconf.h"
#include "learner/trainnet.h"

enum { WIDTH = 64, SIDE = 16, OWN_FOLD = 0 };

typedef struct {
    uint32_t *train, *valid; /* programs; valid: those of its own fold */
    size_t n_train, n_valid;
    double *label;           /* (d->n) seconds */
    double *log_s;           /* (n_valid) what the network says of valid */
} parts;

static void parts_free(parts *p) {
    cd_free(p->train);
    cd_free(p->valid);
    cd_free(p->label);
    cd_free(p->log_s);
}

static cdmpp_status parts_new(const cd_trainset *t, parts *p, cdmpp_err *err) {
    const size_t n = t->d->n + 1;
    *p = (parts){.train = cd_calloc(n, sizeof *p->train), .valid = cd_calloc(n, sizeof *p->valid), .label = cd_calloc(n, sizeof *p->label),
                 .log_s = cd_calloc(n, sizeof *p->log_s)};
    if (!p->train || !p->valid || !p->label || !p->log_s) return CD_FAIL(err, ENOMEM, "%zu programs", t->d->n);
    memcpy(p->label, t->d->latency_s, t->d->n * sizeof *p->label);
    for (size_t i = 0; i < t->d->n; i++) {
        if (t->fold[i] == CD_FOLD_NEVER) continue;
        if (t->fold[i] == OWN_FOLD) p->valid[p->n_valid++] = (uint32_t)i;
        else p->train[p->n_train++] = (uint32_t)i;
    }
    return CDMPP_OK;
}

/* Halfway, in the logarithm, from the measurement to what members said that never saw the program. Its own
 * fold keeps its measurements: they decide when to stop. */
static cdmpp_status soften(const cd_trainset *t, const cd_model *m, const double *kind_log_s, cd_threads *pool, double *label,
                           cdmpp_err *err) {
    cd_pred *pred = cd_calloc(t->n_oof + 1, sizeof *pred);
    if (!pred) return CD_FAIL(err, ENOMEM, "%zu answers", t->n_oof);
    const cdmpp_status st = cd_judge_answers(t, m, pool, kind_log_s, pred, err);
    for (size_t i = 0; !st && i < t->n_oof; i++)
        if (t->fold[t->oof[i]] != OWN_FOLD) label[t->oof[i]] = sqrt(label[t->oof[i]] * pred[i].median_s);
    cd_free(pred);
    return st;
}

/* As the configuration trains its networks, but for what makes one small and quick. */
static cd_fit_spec small(const cd_config *c) {
    cd_fit_spec s = cd_netconf_fit(c, CD_MEMBER_TSF, CD_N_DEVICE_COL);
    cd_net_spec *n = &s.net;
    n->tokens = CD_TOKENS_ROWS;
    n->position = CD_POS_NONE;
    n->context = n->program = false;
    n->layers = n->head_first = n->head_depth = 0;
    n->width = n->ff = n->head_width = n->embed = n->decoder_width = WIDTH;
    n->heads = 1;
    n->side_width = SIDE;
    n->decoder_depth = n->side_depth = 1;
    n->head = CD_HEAD_SUM;
    n->trips = true;
    n->dropout = n->dropout_mlp = 0;
    s.transform = CD_TRANSFORM_LOG;
    s.loss = "1mape_s";
    s.freeze_encoder = false;
    return s;
}

typedef struct {
    const cd_ensemble_run *run;
    size_t n_sample;
} ticking;

static bool on_step(void *ctx, const cd_fit_progress *p) {
    const ticking *t = ctx;
    if (!t->run->tick) return true;
    const cd_tick k = {.member = "tuner", .unit = "step", .step = p->step, .n_step = p->steps, .n_sample = t->n_sample,
                       .train = p->evaluated ? p->train_loss : (double)NAN, .valid = p->evaluated ? p->valid : (double)NAN,
                       .end = p->step == p->steps};
    return t->run->tick(t->run->ctx, &k);
}

static cdmpp_status train(const cd_trainset *t, const parts *p, const cd_ensemble_run *run, cd_member *e, cdmpp_err *err) {
    const cd_fit_spec spec = small(t->c);
    const cd_fit_data data = {.view = &t->view, .latency_s = p->label, .train = p->train, .n_train = p->n_train, .valid = p->valid,
                              .n_valid = p->n_valid, .device = t->device_vector, .n_device = t->n_device, .w_dev = CD_N_DEVICE_COL,
                              .group = t->group, .weight = t->weight};
    ticking tick = {run, (size_t)spec.batch};
    cd_fitted f;
    CD_TRY(cd_fit(&spec, &data, NULL, &(cd_fit_run){.pool = run->pool, .tick = on_step, .ctx = &tick}, &f, err));
    return cd_trainnet_keep(&f, e, err);
}

static cdmpp_status make(const cd_trainset *t, const double *kind_log_s, const cd_ensemble_run *run, parts *p, cd_model *m,
                         cdmpp_err *err) {
    CD_TRY(soften(t, m, kind_log_s, run->pool, p->label, err));
    cd_model *k = cd_model_new_tuner(m);
    if (!k) return CD_FAIL(err, ENOMEM, "tuner");
    k->member = cd_calloc(1, sizeof *k->member);
    if (!k->member) return CD_FAIL(err, ENOMEM, "tuner");
    k->kind[k->n_kind++] = CD_MEMBER_TSF;
    k->member[k->n_member++] = (cd_member){.kind = CD_MEMBER_TSF, .fold = OWN_FOLD};
    CD_TRY(train(t, p, run, k->member, err));
    CD_TRY(cd_judge_oof(t, k, run->pool, p->valid, p->n_valid, p->log_s, err));
    return cd_calibrate(t, p->valid, p->n_valid, OWN_FOLD, true, p->log_s, run->pool, k, err);
}

cdmpp_status cd_tuner_train(const cd_trainset *t, const double *kind_log_s, const cd_ensemble_run *run, cd_model *m, cdmpp_err *err) {
    parts p;
    cdmpp_status st = parts_new(t, &p, err);
    if (!st) st = make(t, kind_log_s, run, &p, m, err);
    parts_free(&p);
    return st;
}

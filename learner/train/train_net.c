/* One network member: options from the configuration, start and checkpoint if there are any, then
 * learner/fit. */
#include "learner/train/train_internal.h"

#include <math.h>

/* Of the small networks some 5 to 20 s on one core; a checkpoint takes about 10 ms. */
enum { CHECKPOINT_STEPS = 200 };

/* cd_fit calls after every step; the trainer wants to hear of evaluations. */
bool cd_train_net_step(void *tick, const cd_fit_progress *p) {
    const cd_train_net_tick *t = tick;
    if (!t->tick) return true;
    const cd_progress_event k = {.member = t->name,
                                 .unit = "step",
                                 .step = p->step,
                                 .n_step = p->steps,
                                 .n_sample = t->n_sample,
                                 .train = p->evaluated ? p->train_loss : (double)NAN,
                                 .valid = p->evaluated ? p->valid : (double)NAN,
                                 .end = p->step == p->steps};
    return t->tick(t->ctx, &k);
}

/* Programs whose inputs may be used, for CMD and MMD: of a held-out device those not
 * chosen; else the validation part. Never the test part. */
static cdmpp_status unlabelled(const cd_training_set *t, const cd_boost_set *valid, uint32_t **own,
                               size_t *n, const uint32_t **list, cdmpp_err *err) {
    *own = NULL;
    *list = valid->program;
    *n = valid->n;
    if (!t->split->unlabelled || !t->split->n_unlabelled) return CDMPP_OK;
    *own = cd_mem_zalloc(t->split->n_unlabelled + 1, sizeof **own);
    if (!*own) return CD_FAIL(err, ENOMEM, "unlabelled programs");
    *n = 0;
    for (size_t i = 0; i < t->d->n; i++)
        if (t->split->unlabelled[i]) (*own)[(*n)++] = (uint32_t)i;
    *list = *own;
    return CDMPP_OK;
}

/* The member to go on from: same kind, same fold if there is one. */
static cdmpp_status find_start(const cd_model *m, const cd_member *e, cd_fit_start *out,
                               cdmpp_err *err) {
    const cd_member *best = NULL;
    for (size_t i = 0; i < m->n_member; i++)
        if (m->member[i].kind == e->kind && (!best || m->member[i].fold == e->fold))
            best = &m->member[i];
    if (!best)
        return CD_FAIL(err, EMODEL, "the model to fine-tune has no %s", cd_member_name(e->kind));
    *out = (cd_fit_start){best->net, &best->scalers, best->label};
    return CDMPP_OK;
}

/* Facts that the network reads have to be those that it is asked with later. A group that
 * train.facts_without takes away is 0 here and there again in an answer; a scaler that saw nothing
 * but 0 leaves it out, one of a start or of fit.scale none does not. */
static cdmpp_status check_facts(const cd_training_set *t, const cd_net_config *own,
                                const cd_net_config *start, cdmpp_err *err) {
    const bool reads = (start ? start : own)->facts;
    if (start && own->facts && !reads)
        return CD_FAIL(err, EMODEL,
                       "net.facts: the network to fine-tune reads no facts: --set net.facts=false, "
                       "or train it anew");
    if (reads && !t->view.facts)
        return CD_FAIL(err, EMODEL,
                       "the network to fine-tune reads facts of loop nests: --set net.facts=true "
                       "--set train.facts=columns");
    if (reads && t->facts_without && (start || t->c->fit_scale == CD_SCALE_NONE))
        return CD_FAIL(err, EUNSUPPORTED,
                       "train.facts_without: networks with facts need fit.scale standard or minmax "
                       "then, and are no fine-tuning");
    return CDMPP_OK;
}

/* What was fitted becomes the member's. */
cdmpp_status cd_train_net_store(cd_fit_result *f, cd_member *e, cdmpp_err *err) {
    e->label = cd_mem_zalloc(1, sizeof *e->label);
    if (e->label) {
        *e->label = f->transform;
        e->net = f->net;
        e->facts = cd_member_net_facts(f->net);
        e->scalers = f->scalers;
        f->net = NULL;
        f->scalers = (cd_scalers){0};
    }
    cd_fit_result_free(f);
    return e->label ? CDMPP_OK : CD_FAIL(err, ENOMEM, "label of a member");
}

/* The programs of the target domain (unlabelled) are given only where a loss compares domains. */
cdmpp_status cd_train_net(const cd_training_set *t, const cd_boost_set *train,
                          const cd_boost_set *valid, const cd_ensemble_run *er,
                          const cd_boost_run *run, cd_member *e, cdmpp_err *err) {
    const cd_fit_spec spec = cd_net_options_fit(t->c, e->kind, t->w_device);
    cd_train_net_tick tick = {run->tick, run->ctx, run->name, (size_t)spec.batch};
    cd_fit_run fr = {.pool = er->alone ? er->pool : NULL, .tick = cd_train_net_step, .ctx = &tick};
    char *path = NULL;
    cd_fit_start start;
    cd_fit_result f;
    uint32_t *own;
    cd_fit_data data = {.view = &t->view,
                        .latency_s = t->d->latency_s,
                        .train = train->program,
                        .n_train = train->n,
                        .valid = valid->program,
                        .n_valid = valid->n,
                        .device = t->device_vector,
                        .n_device = t->n_device,
                        .w_dev = t->w_device,
                        .group = t->group,
                        .weight = t->weight};
    CD_TRY(unlabelled(t, valid, &own, &data.n_target, &data.target, err));
    cdmpp_status st = er->start ? find_start(er->start, e, &start, err) : CDMPP_OK;
    if (!st) st = check_facts(t, &spec.net, er->start ? cd_net_config_of(start.net) : NULL, err);
    if (!st && er->keep && er->keep->dir)
        st = cd_member_checkpoint_fit_path(er->keep, e, &path, err);
    fr.checkpoint = path;
    fr.checkpoint_every = CHECKPOINT_STEPS;
    fr.resume = true;
    if (er->together) {
        fr.allreduce = er->ranks->allreduce;
        fr.allreduce_ctx = er->ranks->ctx;
        fr.rank = er->ranks->rank;
        fr.n_rank = er->ranks->n_rank;
    }
    if (!st) st = cd_fit(&spec, &data, er->start ? &start : NULL, &fr, &f, err);
    cd_mem_free(path);
    cd_mem_free(own);
    return st ? st : cd_train_net_store(&f, e, err);
}

/* Keys of a configuration to the options of networks and of their training. */
#include "learner/config/config.h"

#include <stdio.h>

#include "features/device/device.h"

/* Field by field: keys and fields have their own names and types. */
static cd_net_config net(const cd_config *c, cd_member_kind kind, size_t w_dev) {
    return (cd_net_config){.kind = (cd_net_kind)(kind - CD_MEMBER_MLP),
                           .tokens = kind == CD_MEMBER_TSF ? (cd_net_tokens)c->net_tokens
                                                           : CD_TOKENS_LEAVES,
                           .layers = c->net_layers,
                           .width = c->net_width,
                           .heads = c->net_heads,
                           .ff = c->net_ff,
                           .pre_norm = c->net_pre_norm,
                           .skip = c->net_skip,
                           .head = (cd_net_head)c->net_head,
                           .slots = c->net_slots,
                           .values = c->net_values,
                           .log_values = c->net_log_values,
                           .temperature = 1,
                           .trips = c->net_trips,
                           .head_first = c->net_head_first,
                           .head_width = c->net_head_width,
                           .head_depth = c->net_head_depth,
                           .embed = c->net_embed,
                           .decoder_width = c->net_decoder_width,
                           .decoder_depth = c->net_decoder_depth,
                           .side_width = c->net_side_width,
                           .side_depth = c->net_side_depth,
                           .norm = (cd_net_norm)c->net_norm,
                           .act = (cd_net_act)c->net_act,
                           .dropout = c->net_dropout,
                           .dropout_mlp = c->net_dropout_mlp,
                           .position = (cd_net_position)c->net_position,
                           .context = c->net_context,
                           .derived = c->net_derived,
                           .device = c->net_device,
                           .program = c->net_program,
                           .facts = c->net_facts && c->train_facts != CD_FACTS_USE_NONE,
                           .n_out = 1,
                           .w_dev = c->net_device ? (int64_t)w_dev : 0};
}

static cd_learning_rate rate(const cd_config *c) {
    cd_learning_rate r = cd_learning_rate_of((cd_learning_rate_kind)c->fit_schedule, c->fit_rate);
    r.warmup = (uint64_t)c->fit_warmup;
    r.up = r.down = (uint64_t)c->fit_cycle;
    r.gamma = c->fit_gamma;
    r.per = 0; /* an epoch */
    return r;
}

/* What no key sets stays as cd_fit_spec_small has it. */
cd_fit_spec cd_net_options_fit(const cd_config *c, cd_member_kind kind, size_t w_dev) {
    cd_fit_spec s = cd_fit_spec_small((cd_net_kind)(kind - CD_MEMBER_MLP));
    s.net = net(c, kind, w_dev);
    s.transform = (cd_transform_kind)c->fit_label;
    s.scale = (cd_scale)c->fit_scale;
    s.loss = c->fit_loss;
    s.optim = cd_optim_spec_of((cd_optim_kind)c->fit_optimizer);
    s.optim.decay = c->fit_decay;
    s.optim.clip = c->fit_clip;
    s.decay_all = c->fit_decay_all;
    s.lrate = rate(c);
    s.ema = c->fit_ema;
    s.batch = c->fit_batch;
    s.slices = c->fit_slices;
    s.target_batch = c->fit_target_batch;
    s.max_epochs = c->fit_epochs;
    s.max_steps = c->fit_steps;
    s.eval_every = c->fit_eval_every;
    s.patience = c->fit_patience;
    s.figure = (cd_fit_metric)c->fit_figure;
    s.freeze_encoder = c->fit_freeze;
    s.seed = (uint64_t)c->fit_seed;
    return s;
}

static cdmpp_status check_net(cd_config *c, cd_member_kind kind, const char *path, cdmpp_err *err) {
    const cd_net_config s =
        net(c, kind, cd_device_features_width((cd_device_features)c->device_features));
    cdmpp_err e = {0};
    char key[128];
    const cdmpp_status st = cd_net_config_check(&s, &e);
    snprintf(key, sizeof key, "net.%s", e.key);
    if (st) cd_diag_add(&c->diag, err, st, path, NULL, false, key, "%s", e.msg);
    return st;
}

/* Errors are collected with their keys, so that a user sees all of them at once. */
void cd_net_options_check(cd_config *c, const char *path, cdmpp_err *err) {
    cd_member_plan plan;
    cd_net_loss loss;
    cdmpp_err e = {0};
    cdmpp_status st = cd_member_plan_of(c, &plan, &e);
    if (st)
        cd_diag_add(&c->diag, err, st, path, NULL, false,
                    !strcmp(e.key, "train.facts") || !strncmp(e.key, "model.order", 11)
                        ? e.key
                        : "model.members",
                    "%s", e.msg);
    for (size_t k = 0; !st && k < plan.n_kind; k++) {
        if (!cd_member_is_net(plan.kind[k])) continue;
        st = check_net(c, plan.kind[k], path, err);
        if (!st && (st = cd_net_loss_parse(c->fit_loss, NULL, 0, &loss, &e)))
            cd_diag_add(&c->diag, err, st, path, NULL, false, "fit.loss", "%s", e.msg);
    }
    const cd_config order = cd_config_of_order(c);
    if (st || !c->model_order.n || cd_member_plan_of(&order, &plan, NULL)) return;
    for (size_t k = 0; !st && k < plan.n_kind; k++)
        if (cd_member_is_net(plan.kind[k])) st = check_net(c, plan.kind[k], path, err);
}

/* What is uncertain of the times on each device of a plan, said when the plan is made and again
 * when it is read from a file.
 *
 *   a default, a stand-in, no fit of network costs, two models, programs unlike those of the
 *   training ─> p->source ─> warnings, JSON, the plan's file
 *
 * A stand-in has its own warning: none of its programs ran there. Programs that the models have not
 * seen have another, so that both may be said. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "predictor/partition/plan/partition_internal.h"
#include "predictor/score/score.h"

/* Share of the time above which there is a message, as of cdmpp-replay: less changes the total by
 * less than its error. */
static const double UNLIKE = 0.1;

/* Whether a device before this one is the same of the models: then all was said about it. A device
 * that was named is not this machine, for which it stands. */
bool cd_partition_was_there(const cd_partition *p, uint32_t k) {
    bool was = false;
    for (uint32_t i = 0; i < k; i++)
        was = was ||
              (p->source[i].as && p->source[k].as && p->source[i].guessed == p->source[k].guessed &&
               !strcmp(p->source[i].as, p->source[k].as));
    return was;
}

/* What nobody measured, of the device and of networks on it, in one sentence. */
static void say_another(const cd_partition *p, const cd_shard_plan_source *s, const char *as) {
    const cd_model_set_doubtful d = {
        .name = as,
        .stands = s->stands,
        .here = s->guessed && !p->o->plan,
        .described = true,
        .spread = hypot(s->stands_spread, isnan(s->costs_spread) ? 0 : s->costs_spread)};
    cd_model_set_say_stand_in(&p->models, &d, p->o->log);
}

void cd_partition_say_stand_in(const cd_partition *p, uint32_t k) {
    const cd_shard_plan_source *s = &p->source[k];
    char here[160];
    (void)snprintf(here, sizeof here, "the machine that the plan is for%s%s%s", s->host ? " (" : "",
                   s->host ? s->host : "", s->host ? ")" : "");
    const char *as = s->guessed ? here : s->as ? s->as : p->machine.device[k].name;
    if (!s->stands || cd_partition_was_there(p, k)) return;
    const cd_device *about = cd_model_set_device(&p->models, p->machine.device[k].as);
    if (s->scaled)
        cd_log_put(p->o->log, CD_LOG_WARNING,
                   "no model knows %s, nor another of its kind: %s of the model stands for it. Its "
                   "times are multiplied by the ratio of both rooflines%s, and may be "
                   "%g times shorter or longer",
                   as, s->stands,
                   about && about->peak_computed
                       ? " (fp32_gflops is not described: 2 * cores * lanes * clock_mhz)"
                       : "",
                   CD_MODEL_SET_BETWEEN_KINDS);
    else say_another(p, s, as);
}

const cd_network_cost_fit *cd_partition_network_cost(const cd_partition *p,
                                                     const cd_shard_plan_source *s) {
    if (!s->as) return NULL;
    const cd_device *about = cd_model_set_device(&p->models, s->as);
    const char *stands = s->scaled ? NULL : s->stands;
    const char *whose = cd_network_cost_whose(p->models.costs, s->as, about, stands);
    return cd_network_cost_find(p->models.costs, whose, about);
}

void cd_partition_say_costs(const cd_partition *p, uint32_t k) {
    const cd_shard_plan_source *s = &p->source[k];
    const cd_device *about = s->as ? cd_model_set_device(&p->models, s->as) : NULL;
    const cd_network_cost_fit *fit = cd_partition_network_cost(p, s);
    const char *lender = cd_network_cost_lender(fit, s->as, about);
    const char *as = lender       ? lender
                     : !fit       ? NULL
                     : s->guessed ? s->as
                                  : cd_model_set_stands(&p->models, s->as);
    char times[CD_MODEL_SET_TIMES_OFF];
    if (s->costs_spread == 0 || cd_partition_was_there(p, k)) return;
    if (s->stands && !s->scaled && !isnan(s->costs_spread)) return; /* say_another counts with it */
    if (isnan(s->costs_spread))
        cd_log_put(p->o->log, CD_LOG_WARNING,
                   "there is no fit of what a network costs on any device (" CD_NETWORK_COST_FILE
                   "): nothing is added for it");
    else if (as)
        cd_log_put(
            p->o->log, CD_LOG_WARNING,
            "no network was measured on %s: it is taken to add as much to its operators as on %s "
            "(cdmpp-replay --fit-network-cost). Its time may be %s times shorter or longer",
            s->as, as, cd_model_set_times_off(s->costs_spread, times));
    else
        cd_log_put(p->o->log, CD_LOG_WARNING,
                   "no network was measured on %s: it is taken to cost the sum of its operators "
                   "(cdmpp-replay --fit-network-cost). Its time may be %s times shorter or longer",
                   s->as, cd_model_set_times_off(s->costs_spread, times));
}

static bool prefers_nchw(const cd_machine_device *d) {
    return d->target && cd_target_is_gpu((cd_str){d->target, strlen(d->target)});
}

static bool has_images(const cd_partition *p) {
    for (uint32_t k = 0; k < p->net.n_op; k++)
        if (p->net.op[k].type &&
            (!strncasecmp(p->net.op[k].type, "conv", 4) || strcasestr(p->net.op[k].type, "pool")))
            return true;
    return false;
}

void cd_partition_say_layout(const cd_partition *p) {
    const cd_machine_device *first = &p->machine.device[0];
    const char *has = prefers_nchw(first) ? "nchw" : "nhwc",
               *other = prefers_nchw(first) ? "nhwc" : "nchw";
    for (uint32_t k = 1; k < p->machine.n && !p->o->layout && has_images(p); k++) {
        if (prefers_nchw(&p->machine.device[k]) == prefers_nchw(first)) continue;
        cd_log_put(p->o->log, CD_LOG_WARNING,
                   "%s: images of the plan are %s, as %s has them, the first of the devices; %s "
                   "has %s: with --layout %s or another order of --devices the plan is another "
                   "one, and may be faster",
                   p->net.name, has, first->name, p->machine.device[k].name, other, other);
        return;
    }
}

/* Times of two models are compared with each other in such a plan, which one model's errors do not
 * have in common. */
void cd_partition_say_models(const cd_partition *p) {
    for (uint32_t k = 1; k < p->machine.n; k++) {
        const char *a = p->source[0].model, *b = p->source[k].model;
        if (!a || !b || !strcmp(a, b)) continue;
        cd_log_put(p->o->log, CD_LOG_WARNING,
                   "%s and %s are predicted by two models: what one of them gets wrong, the other "
                   "need not",
                   p->machine.device[0].name, p->machine.device[k].name);
        return;
    }
}

enum { SAID = 160 };

/* The network, with its batch where that is not the usual one. */
static const char *named(const cd_partition *p, char out[SAID]) {
    if (p->o->batch > 1) (void)snprintf(out, SAID, "%.120s (batch %d)", p->net.name, p->o->batch);
    else (void)snprintf(out, SAID, "%.120s", p->net.name);
    return out;
}

static void say_unlike(const cd_partition *p, uint32_t k) {
    char why[CD_UNLIKE_SHARES], name[SAID];
    /* that its device is a new one was said when another took its place */
    double most = p->source[k].stands ? 0 : p->source[k].unlike;
    for (uint32_t b = 0; b < CD_N_UNLIKE; b++)
        if (b != CD_UNLIKE_BIT_DEVICE) most = fmax(most, p->source[k].unlike_of[b]);
    if (!(most > UNLIKE)) return;
    cd_trained_on_shares(p->source[k].unlike_of, 1, why);
    cd_log_put(p->o->log, CD_LOG_WARNING,
               "%s: %.0f %% of the time on %s is of programs unlike those that the model was "
               "trained on (%s): do not rely on it",
               named(p, name), 100 * p->source[k].unlike, p->machine.device[k].name, why);
}

/* Nobody named the model of the plan, or the device either. */
static void say_default(const cd_partition *p) {
    char what[CD_DEFAULT_MODEL_SAID];
    for (uint32_t k = 0; k < p->machine.n; k++) {
        const cd_shard_plan_source *s = &p->source[k];
        if (!s->by_default || !s->model) continue;
        cd_default_model_what(s->model, what);
        const char *is = s->guessed ? "the nearest known one to" : "recognised as",
                   *far = s->guessed ? ", which is out of range" : "";
        const cd_log_level level = strstr(what, "not used") ? CD_LOG_WARNING : CD_LOG_INFO;
        if (s->host)
            cd_log_put(p->o->log, level,
                       "cost model: %s, %s; device: %s, %s the machine that the plan is for (%s)%s",
                       s->model, what, s->as, is, s->host, far);
        else cd_log_put(p->o->log, level, "cost model: %s, %s", s->model, what);
        return;
    }
}

/* Of a model that does not say what it was trained on: once for each. */
static void say_unknown(const cd_partition *p, uint32_t k) {
    uint32_t i = 0;
    if (!isnan(p->source[k].unlike) || !p->source[k].model) return;
    while (i < k && !(p->source[i].model && !strcmp(p->source[i].model, p->source[k].model))) i++;
    if (i == k) cd_score_warn_header("", p->source[k].model, p->o->log);
}

/* Programs of a type that the model was not trained on are answered as float32. */
static cdmpp_status say_types(const cd_partition *p, uint32_t k, cdmpp_err *err) {
    double share[CD_TE_N_LEAST];
    char name[SAID];
    const cd_device *d = cd_model_set_device(&p->models, p->machine.device[k].as);
    CD_TRY(cd_shard_cost_types(p->cost, k, share, err));
    for (int t = 0; t < CD_TE_N_LEAST; t++)
        if (t != CD_TE_LEAST_F32 && share[t] > UNLIKE)
            cd_model_set_say_type(d, false, (cd_te_least_type)t, named(p, name),
                                  p->machine.device[k].name, share[t], p->o->log);
    return CDMPP_OK;
}

cdmpp_status cd_partition_unlike(cd_partition *p, cdmpp_err *err) {
    for (uint32_t k = 0; k < p->machine.n; k++) {
        cd_shard_plan_source *s = &p->source[k];
        if (!p->by[k].model) continue;
        CD_TRY(cd_shard_cost_unlike(p->cost, k, s->unlike_of, &s->unlike, err));
        if (!cd_model_trained_on(p->by[k].model)) s->unlike = (double)NAN;
        /* none of its programs ran there */
        if (s->stands) s->unlike = s->unlike_of[CD_UNLIKE_BIT_DEVICE] = 1;
        say_unlike(p, k);
        CD_TRY(say_types(p, k, err));
    }
    return CDMPP_OK;
}

/* Of a plan that was read: its times are of a machine that others used. */
static void say_load(const cd_partition *p) {
    for (uint32_t k = 0; k < p->machine.n; k++)
        if (p->source[k].left > 0 && p->source[k].left < CD_HOST_LOAD_IDLE)
            cd_log_put(p->o->log, CD_LOG_WARNING,
                       "%s was made while others used the processor of %s: %.0f %% of it was left. "
                       "Its times are not those of an idle machine",
                       p->o->plan, p->machine.device[k].name, 100 * p->source[k].left);
    if (p->plan->others > CD_HOST_LOAD_LIMIT)
        cd_log_put(p->o->log, CD_LOG_WARNING,
                   "%s was measured while others used %.0f %% of the processors: what it measured "
                   "is longer than on an idle machine",
                   p->o->plan, 100 * p->plan->others);
}

/* What the command said that made the plan. What this one has said of its own models already is not
 * said twice. */
void cd_partition_say_again(cd_partition *p) {
    const bool said = cd_partition_needs_times(p->o);
    if (!p->plan->source) {
        cd_log_put(p->o->log, CD_LOG_WARNING,
                   "%s does not say who answered for its devices: whether others stood for them is "
                   "not known",
                   p->o->plan);
        return;
    }
    memcpy(p->source, p->plan->source, p->machine.n * sizeof *p->source);
    say_load(p);
    if (!said) say_default(p);
    for (uint32_t k = 0; k < p->machine.n; k++) {
        if (said) continue;
        p->machine.device[k].as = p->source[k].as;
        cd_partition_say_stand_in(p, k);
        say_unknown(p, k);
        cd_partition_say_costs(p, k);
    }
    if (!said) cd_partition_say_models(p);
    for (uint32_t k = 0; k < p->machine.n; k++) say_unlike(p, k);
}

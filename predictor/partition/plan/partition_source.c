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

#include "learner/inputs/inputs.h"
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

/* The fit of what a network costs on that device, or on its stand-in. NULL: there is none. */
static const cd_network_cost_fit *partition_network_cost(const cd_partition *p,
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
    const cd_network_cost_fit *fit = partition_network_cost(p, s);
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

/* Who answers for the devices of a plan: the device of a cost model that each of them is, the
 * model, the target of its programs, and how far off all times of a device may be. Several models
 * make one plan: each answers for the devices that it knows. */

const char *cd_partition_of_device(const char *text, const char *name) {
    const size_t n = strlen(name);
    return !strncmp(text, name, n) && text[n] == '=' ? text + n + 1 : NULL;
}

/* ---- its name in the models ---- */
/* The one device that all models know; NULL: none or several. */
static const char *only_device(const cd_model_set *m) {
    const char *one = NULL;
    for (size_t k = 0; k < m->n; k++)
        for (size_t d = 0; !m->v[k].operators && d < m->v[k].n_device; d++) {
            if (one && strcmp(one, m->v[k].device[d]) != 0) return NULL;
            one = m->v[k].device[d];
        }
    return one;
}

/* One that runs here. */
static bool is_processor(const cd_machine_device *d) {
    return !strcmp(d->kind, "cpu") || !strcmp(d->kind, "native");
}

/* That of calibrate, or what the driver calls the device: it is described, and known or like a
 * known one. NULL: it is no GPU (*is_gpu false), or nobody describes it. */
static const char *gpu_here(cd_partition *p, const cd_machine_device *d, bool *is_gpu) {
    const char *gpu = cd_model_set_gpu(&p->models, d->kind);
    cd_describe_entry e;
    cd_describe_name is;
    if (gpu || !p->models.gpu_default || strcmp(d->kind, "opencl") != 0 ||
        cd_describe_gpu_apart(d->kind, "", &e, NULL) || !cd_describe_is_gpu(&e))
        return gpu;
    *is_gpu = true;
    cd_describe_name_entry(&e, p->models.devices, &is);
    return is.described ? cd_arena_text(&p->arena, is.name) : NULL;
}

/* Nobody named the device: it is the only one that models know, or of the default model the one
 * that stands for this machine. A processor is this machine, and whether that is the only device is
 * looked at. Said once, not for each device of the plan. */
static cdmpp_status unnamed(cd_partition *p, const cd_machine_device *d, const char **out,
                            cdmpp_err *err) {
    bool is_gpu = false;
    const char *only = only_device(&p->models),
               *gpu = only || is_processor(d) ? NULL : gpu_here(p, d, &is_gpu);
    /* no processor stands for a GPU whose name nobody knows: the user names it */
    *out = gpu || is_gpu ? gpu : only ? only : p->host;
    if (gpu || is_gpu) return CDMPP_OK;
    if (!cd_partition_needs_times(p->o) || p->host) return CDMPP_OK;
    if (!only) CD_TRY(cd_model_set_host(&p->models, p->o->log, &p->host, err));
    else if (is_processor(d)) CD_TRY(cd_model_set_is_host(&p->models, p->host = only, err));
    if (!only) *out = p->host;
    return CDMPP_OK;
}

/* Nobody answers for the device: it has a name in the models that none knows, or none. */
static cdmpp_status nobody(const cd_partition *p, const cd_machine_device *d, cdmpp_err *err) {
    cd_buf known = {0}, near = {0};
    cd_model_set_list(&p->models, &known);
    if (d->as) cd_model_set_near(&p->models, d->as, &near);
    const char *list = known.p ? known.p : "none";
    const cdmpp_status st =
        d->as ? CD_FAIL(err, EMODEL,
                        "no model knows device '%.60s', which %s is%s; --list-devices tells all, "
                        "known are %.250s",
                        d->as, d->name, near.p ? near.p : "", list)
              : CD_FAIL(err, EMODEL,
                        "which device of the cost model is %s? --as %s=NAME; known are %.300s",
                        d->name, d->name, list);
    cd_buf_free(&near);
    cd_buf_free(&known);
    return st;
}

/* A processor runs here, so it is no device of another kind, known or not. */
static cdmpp_status other(const cd_partition *p, const cd_machine_device *d, cdmpp_err *err) {
    const cd_device *about = cd_model_set_device(&p->models, d->as);
    return CD_FAIL(
        err, EUSAGE,
        "%s is a processor of this machine, so it cannot be '%.60s', which is a %s: --as %s=NAME "
        "names a processor; a device that is not here is one of a --machine FILE",
        d->name, d->as, cd_device_kind_name(about ? about->kind : CD_DEVICE_GPU), d->name);
}

/* What the device was when the plan of a file was made. NULL: no plan is read, or it does not
 * say. */
static const cd_shard_plan_source *planned(const cd_partition *p, const char *device) {
    for (uint32_t k = 0; p->plan && p->plan->source && k < p->plan->n_device; k++)
        if (!strcmp(p->plan->device[k], device)) return &p->plan->source[k];
    return NULL;
}

/* options.as, else the plan's word, else the machine's own, else the only device there is. The last
 * word for a device counts. */
static cdmpp_status as_of(cd_partition *p, cd_machine_device *d, cdmpp_err *err) {
    const cd_shard_plan_source *was = planned(p, d->name);
    if (was && was->as) d->as = was->as;
    for (size_t k = 0; k < p->o->as.n; k++) {
        const char *name = strchr(p->o->as.v[k], '=')
                               ? cd_partition_of_device(p->o->as.v[k], d->name)
                               : p->o->as.v[k];
        if (name) d->as = cd_model_set_is_here(&p->models, name) ? NULL : name;
    }
    if (!d->as) {
        CD_TRY(unnamed(p, d, &d->as, err));
        if (d->as && !is_processor(d) && cd_partition_needs_times(p->o))
            cd_log_put(p->o->log, CD_LOG_WARNING,
                       "nobody says which device %s is: %s is taken for it (--as %s=NAME)", d->name,
                       d->as, d->name);
    }
    if (d->as || !p->models.n) return CDMPP_OK;
    return nobody(p, d, err);
}

static cdmpp_status check_model(const cd_partition *p, const cd_machine_device *d, const char *name,
                                cdmpp_err *err) {
    cd_machine_device is = *d;
    if (!cd_partition_needs_times(p->o) || !p->models.n || cd_model_set_is_here(&p->models, name) ||
        cd_model_set_has(&p->models, name))
        return CDMPP_OK;
    is.as = name;
    return nobody(p, &is, err);
}

/* A name that is typed wrong is an error, not ignored, before any model is loaded. */
static cdmpp_status check_as(const cd_partition *p, cdmpp_err *err) {
    for (size_t k = 0; k < p->o->as.n; k++) {
        const char *text = p->o->as.v[k];
        bool known = !strchr(text, '=');
        for (uint32_t d = 0; d < p->all.n && !known; d++)
            known = cd_partition_of_device(text, p->all.device[d].name) != NULL;
        if (!known) return CD_FAIL(err, EUSAGE, "--as: '%.60s' is of none of the devices", text);
        for (uint32_t d = 0; d < p->machine.n; d++) {
            const char *name =
                strchr(text, '=') ? cd_partition_of_device(text, p->machine.device[d].name) : text;
            if (name) CD_TRY(check_model(p, &p->machine.device[d], name, err));
        }
    }
    return CDMPP_OK;
}

/* ---- its model ---- */
/* Descriptions of the device and of the one that stands for it, in the arena; *here NULL: one of
 * them is not described. */
static cdmpp_status vectors(cd_partition *p, uint32_t k, const float **here, const float **there,
                            cdmpp_err *err) {
    const cd_shard_cost_model *by = &p->by[k];
    const cd_device *about = cd_model_set_device(&p->models, p->machine.device[k].as);
    const int at = cd_model_find_device(by->model, by->device, strlen(by->device));
    float *v = CD_NEWN(&p->arena, float, (size_t)2 * CD_N_DEVICE_COL);
    *here = *there = NULL;
    if (!v) return CD_FAIL(err, ENOMEM, "descriptions");
    if (!about || at < 0 ||
        !cd_model_set_vector(&p->models, by->model, (size_t)at, v + CD_N_DEVICE_COL))
        return CDMPP_OK;
    cd_device_vector(about, v);
    *here = v;
    *there = v + CD_N_DEVICE_COL;
    return CDMPP_OK;
}

/* here NULL: nobody describes it. */
static void take_doubt(cd_shard_plan_source *s, const cd_shard_cost_model *by, const float *here,
                       const float *there) {
    const int at = cd_model_find_device(by->model, by->device, strlen(by->device));
    const cd_device_doubt d =
        cd_model_set_doubt(by->model, at < 0 ? 0 : (size_t)at, here, here ? there : NULL,
                           by->numbers != NULL, s->scaled);
    s->stands_spread = d.shift;
    s->stands_own = d.own;
}

/* None knows the device: the most similar described one of its kind, else of another kind, that a
 * model knows. */
static cdmpp_status stand_in(cd_partition *p, uint32_t k, cdmpp_err *err) {
    const cd_machine_device *d = &p->machine.device[k];
    cd_shard_cost_model *by = &p->by[k];
    const float *here, *there;
    bool other_kind;
    CD_TRY(cd_model_set_stand_in(&p->models, d->as, &by->model, &by->device, &other_kind, err));
    if (!by->model || (other_kind && is_processor(d))) return nobody(p, d, err);
    CD_TRY(vectors(p, k, &here, &there, err));
    p->source[k].scaled = other_kind;
    p->source[k].stands = by->device;
    by->stands = true;
    if (!other_kind)
        by->numbers = cd_model_set_numbers(by->model, cd_model_set_device(&p->models, d->as));
    take_doubt(&p->source[k], by, here, there);
    by->here = other_kind ? here : NULL;
    by->there = other_kind ? there : NULL;
    return CDMPP_OK;
}

/* The device that nobody named is this machine: where no model knows it, the nearest one stands for
 * it. */
static void guess(cd_partition *p, uint32_t k) {
    cd_shard_plan_source *s = &p->source[k];
    float there[CD_N_DEVICE_COL];
    const int at = cd_model_find_device(p->by[k].model, p->by[k].device, strlen(p->by[k].device));
    s->guessed = true;
    s->stands = p->by[k].device;
    p->by[k].stands = true;
    const bool both = at >= 0 && cd_model_set_vector(&p->models, p->by[k].model, (size_t)at, there);
    take_doubt(s, &p->by[k], both ? p->models.here : NULL, there);
}

static bool is_gpu(const cd_shard_cost_model *by, const cd_device *about) {
    const int at = by->model && by->device
                       ? cd_model_find_device(by->model, by->device, strlen(by->device))
                       : -1;
    return at >= 0 ? cd_model_device_is_gpu(by->model, (size_t)at)
                   : about && about->kind == CD_DEVICE_GPU;
}

static cdmpp_status model_of(cd_partition *p, uint32_t k, cdmpp_err *err) {
    const cd_machine_device *d = &p->machine.device[k];
    const cd_device *about = d->as ? cd_model_set_device(&p->models, d->as) : NULL;
    const char *also = d->as ? cd_model_set_also(&p->models, d->as) : NULL;
    cd_shard_cost_model *by = &p->by[k];
    *by = (cd_shard_cost_model){.device = d->as};
    p->source[k].as = d->as;
    /* a plan of a file has its times */
    if (!d->as || !p->models.n || !cd_partition_needs_times(p->o)) return CDMPP_OK;
    CD_TRY(cd_model_set_tasks(&p->models, d->as, false, &by->model, err));
    if (!by->model && about) { /* a model may know it by its described name only */
        by->device = about->name;
        CD_TRY(cd_model_set_tasks(&p->models, about->name, false, &by->model, err));
    }
    CD_TRY(cd_model_set_check_kind(&p->models, by->model, by->device, err));
    if (also && !cd_partition_was_there(p, k))
        cd_log_put(p->o->log, CD_LOG_WARNING, "%s knows %s too: a model before it answers", also,
                   d->as);
    if (is_processor(d) && (by->model ? is_gpu(by, about) : about && about->kind != CD_DEVICE_CPU))
        return other(p, d, err);
    if (d->as == p->host) p->source[k].host = p->models.host;
    if (!by->model) CD_TRY(stand_in(p, k, err));
    else if (p->models.guessed && d->as == p->host) guess(p, k);
    cd_model_set_warn(&p->models, by->model, d->as, by->device, p->o->log);
    p->source[k].model = cd_model_set_path(&p->models, by->model);
    p->source[k].by_default = p->source[k].model && (p->source[k].model == p->models.default_path ||
                                                     p->source[k].model == p->models.gpu_default);
    return CDMPP_OK;
}

/* Nothing is added for a network on a device where nobody measured one; how far off that may be is
 * what others' fits say. */
static void without_fit(cd_partition *p, uint32_t k) {
    const cd_machine_device *d = &p->machine.device[k];
    const double spread = cd_network_cost_spread(p->models.costs);
    const bool other = p->models.guessed && d->as == p->host; /* the name is that of its stand-in */
    if (!d->as || !cd_partition_needs_times(p->o)) return;
    const cd_device *about = cd_model_set_device(&p->models, d->as);
    const cd_network_cost_fit *fit = partition_network_cost(p, &p->source[k]);
    const char *as = fit ? cd_model_set_stands(&p->models, d->as) : NULL;
    const bool here = !other && fit && fit->here && cd_network_cost_names(fit, d->as);
    const bool lent = other || as || cd_network_cost_lender(fit, d->as, about);
    if (fit && !here && !lent) return;
    /* of few networks: what it leaves is part of the interval */
    if (here || (!other && as && cd_network_cost_names(fit, d->as))) {
        p->source[k].stands_spread = hypot(p->source[k].stands_spread, fit->spread);
        return;
    }
    p->source[k].costs_spread = spread;
    cd_partition_say_costs(p, k);
}

/* ---- its target ---- */
/* Programs of a processor, on one core, because a device of a plan is one. Where nobody named it
 * they are of this machine, whoever stands in for it; else they are as records of that device have
 * them, but where they run here, with instructions that are here. */
static const char *processors(cd_partition *p, const cd_machine_device *d, const cd_device *about) {
    cd_arena *a = &p->machine.arena;
    if (d->as && d->as == p->host) return cd_usual_target_here(a, d->as, 1);
    const char *target = cd_usual_target_make(a, d->as, about, false, 1),
               *runs = target && p->o->run ? cd_isa_target_runs(a, target) : target;
    if (runs != target && runs)
        cd_log_put(p->o->log, CD_LOG_WARNING,
                   "%s: this processor lacks instructions of %s: programs are planned and run with "
                   "those that it has (%s)",
                   d->name, d->as ? d->as : "its description", runs);
    return runs;
}

static cdmpp_status target_of(cd_partition *p, uint32_t at, cdmpp_err *err) {
    cd_machine_device *d = &p->machine.device[at];
    const cd_device *about = d->as ? cd_model_set_device(&p->models, d->as) : NULL;
    cd_buf b = {0};
    for (size_t k = 0; k < p->o->target.n; k++) {
        cd_str of;
        const char *target = cd_target_of_device(p->o->target.v[k], &of);
        if (!of.n || cd_str_is(of, d->name)) d->target = target;
    }
    if (d->target) return CDMPP_OK;
    const cd_shard_plan_source *was = planned(p, d->name);
    if (was && was->scaled) about = cd_model_set_device(&p->models, was->stands);
    /* programs are of the kind that the model knows */
    if (p->by[at].here) about = cd_model_set_device(&p->models, p->by[at].device);
    const bool gpu = is_gpu(&p->by[at], about);
    if (strcmp(d->kind, "opencl") != 0)
        d->target = gpu ? cd_usual_target_make(&p->machine.arena, d->as, about, true, 1)
                        : processors(p, d, about);
    else {
        cd_buf_puts(&b, "opencl");
        if (d->as) cd_buf_putf(&b, " -model=%s", d->as);
        if (!b.oom) d->target = cd_str_dup(&p->machine.arena, (cd_str){b.p, b.n});
        cd_buf_free(&b);
    }
    return d->target ? CDMPP_OK : CD_FAIL(err, ENOMEM, "targets");
}

/* The size of a device's own memory comes from its description where the machine does not say
 * it. */
static void memory_of(const cd_partition *p, cd_machine_device *d) {
    const cd_device *about = d->as ? cd_model_set_device(&p->models, d->as) : NULL;
    /* of a machine: 1e9 bytes; of a description: GiB */
    if (d->memory && about && about->mem_gb > 0 && !(d->mem_gb > 0))
        d->mem_gb = about->mem_gb * 1.073741824;
}

cdmpp_status cd_partition_answers(cd_partition *p, cdmpp_err *err) {
    cd_str of;
    CD_TRY(check_as(p, err));
    for (size_t k = 0; k < p->o->target.n; k++) {
        const char *target = cd_target_of_device(p->o->target.v[k], &of);
        CD_TRY(cd_target_check(target, p->o->log, err));
        CD_TRY(cd_backend_check_target(target, err));
    }
    for (uint32_t k = 0; k < p->machine.n; k++) {
        CD_TRY(as_of(p, &p->machine.device[k], err));
        CD_TRY(model_of(p, k, err));
        CD_TRY(target_of(p, k, err));
        memory_of(p, &p->machine.device[k]);
        without_fit(p, k);
        if (cd_partition_needs_times(p->o)) cd_partition_say_stand_in(p, k);
    }
    cd_partition_say_models(p);
    return CDMPP_OK;
}

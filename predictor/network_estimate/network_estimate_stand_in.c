/* A device that no model knows, but that is described: the most similar device of its kind that a model knows stands for it. Where models
 * know none of its kind, a device of another kind does.
 *
 *   the model's own devices, two by two ─> ln of their totals of this network, distance of their descriptions ─┐
 *   device <─ distance ─> who stands for it ──────────────────────────────────────────────────────────────────┴─> spread
 *
 * How far off that may be is what the model says of its own devices: the sum of squared logarithms over the sum of distances, times
 * this distance. A model of one device, or one that does not look at the device, cannot say it: it is at least the ratio of the two peaks
 * that differs most, of arithmetic or of memory.
 *
 * Between kinds programs differ, and with them nearly everything that a model learns. What stays is the work: each operator is taken to reach
 * as large a part of the device's roofline as it does of the other's. */
#include <math.h>
#include <string.h>

#include "learner/inputs/inputs.h"
#include "predictor/network_estimate/network_estimate_internal.h"

enum { MOST = 16 }; /* devices of a model that are compared */

cdmpp_status cd_network_estimate_stand_in(cd_network_estimate *e, cd_network_estimate_device *d, cdmpp_err *err) {
    CD_TRY(cd_model_set_stand_in(&e->models, d->name, &d->model, &d->stands, &d->scaled, err));
    if (d->model || d->about || !e->o->nearest) return CDMPP_OK;
    const cd_model *m;
    CD_TRY(cd_model_set_tasks(&e->models, d->name, true, &m, err)); /* nobody describes it: only the only one there is */
    if (!m || cd_model_n_device(m) > 1) return CDMPP_OK;
    d->model = m;
    d->scaled = false;
    d->stands = cd_model_device(m, 0);
    return CDMPP_OK;
}

/* ---- how far off ---- */
/* Seconds of the tasks on a place, would they run on device `name` of its model. */
static cdmpp_status total_on(const cd_network_estimate *e, const cd_network_estimate_case *c, uint32_t place, const char *name, double *out,
                             cdmpp_err *err) {
    const cd_network_estimate_device *d = c->place[place];
    const cd_network_graph *g = c->source->graph;
    const cd_node_cost_options a = {.model = d->model, .tasks = c->source->tasks, .schedules = d->schedules, .device = name,
                                    .devices = e->models.devices, .alone = true};
    cd_node_cost *cost;
    CD_TRY(cd_node_cost_of(g, &a, &cost, err));
    *out = 0;
    for (uint32_t k = 0; k < g->n_node; k++)
        if ((!c->where || c->where[k] == place) && cost->node[k].source == CD_COST_MODEL)
            *out += cost->node[k].seconds * (double)g->node[k].repeat;
    cd_node_cost_free(cost);
    return CDMPP_OK;
}

/* Sum of squared logarithms over sum of distances of all pairs of the model's devices of this kind; 0: there is no pair. */
static cdmpp_status of_pairs(const cd_network_estimate *e, const cd_network_estimate_case *c, uint32_t place, double *out, cdmpp_err *err) {
    const cd_network_estimate_device *d = c->place[place];
    float v[MOST][CD_N_DEVICE_COL];
    double total[MOST], squares = 0, distances = 0;
    size_t n = 0;
    for (size_t i = 0; i < cd_model_n_device(d->model) && n < MOST; i++) {
        if ((cd_model_device_is_gpu(d->model, i) != 0) != d->gpu || !cd_model_set_vector(&e->models, d->model, i, v[n])) continue;
        CD_TRY(total_on(e, c, place, cd_model_device(d->model, i), &total[n], err));
        n += total[n] > 0;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) {
            const double far = cd_device_distance(v[i], v[j]), off = log(total[i] / total[j]);
            if (!isfinite(far)) continue;
            squares += off * off;
            distances += far;
        }
    *out = distances > 0 ? squares / distances : 0;
    return CDMPP_OK;
}

/* ---- of another kind ---- */
static void times(cd_node_cost_entry *n, double ratio, const cd_device *d) {
    n->seconds *= ratio;
    n->low_s *= ratio;
    n->high_s *= ratio;
    n->memory_share = cd_node_cost_share(n->moved, n->seconds, d);
}

static double least_of(const cd_network_estimate_case *c, uint32_t node, const cd_device *d) {
    const char *key = c->source->graph->node[node].key;
    const cd_task *t = key && c->source->tasks ? cd_task_registry_find(c->source->tasks, (cd_str){key, strlen(key)}) : NULL;
    return t && t->dag ? cd_device_least_s(d, &t->dag->least) : 0;
}

/* Times of the other kind become times of the device. An operator of which nobody knows the work goes by the bandwidths. */
static void scale(const cd_network_estimate *e, cd_network_estimate_case *c, uint32_t place) {
    const cd_network_estimate_device *d = c->place[place];
    float want[CD_N_DEVICE_COL], has[CD_N_DEVICE_COL];
    const int at = cd_model_find_device(d->model, d->stands, strlen(d->stands));
    if (at < 0 || !cd_model_set_vector(&e->models, d->model, (size_t)at, has)) return;
    cd_device_vector(d->about, want);
    for (uint32_t k = 0; k < c->cost[place]->n; k++) {
        cd_node_cost_entry *n = &c->cost[place]->node[k];
        if (n->source != CD_COST_MODEL) continue;
        const double flop = c->source->graph->node[k].flop, bytes = n->moved > 0 ? (double)n->moved : 1;
        const double ratio = cd_model_set_rooflines(want, has, flop, bytes);
        if (ratio > 0) times(n, ratio, d->about);
        n->least_s = least_of(c, k, d->about);
        cd_node_cost_at_least(n);
    }
}

static void say_scaled(const cd_network_estimate *e, cd_network_estimate_device *d) {
    if (!d->said_stands)
        cd_log_put(e->o->log, CD_LOG_WARNING, "no model knows %s, nor another %s: %s of the model stands for it. Its times are multiplied by the "
                   "ratio of both rooflines%s, and may be %g times shorter or longer; the interval counts with that",
                   d->name, cd_device_kind_name(d->about->kind), d->stands, d->about->peak_computed ? " (fp32_gflops is not described: 2 * cores * lanes * clock_mhz)" : "",
                   CD_MODEL_SET_BETWEEN_KINDS);
    d->said_stands = true;
}

/* False: nobody describes it. */
static bool own_vector(const cd_network_estimate *e, const cd_network_estimate_device *d, float out[CD_N_DEVICE_COL]) {
    if (d->guessed) memcpy(out, e->models.here, sizeof e->models.here);
    else if (d->about) cd_device_vector(d->about, out);
    return d->guessed || d->about;
}

static cdmpp_status spread_of(const cd_network_estimate *e, const cd_network_estimate_case *c, uint32_t place, double *out,
                              cdmpp_err *err) {
    const cd_network_estimate_device *d = c->place[place];
    float want[CD_N_DEVICE_COL], has[CD_N_DEVICE_COL];
    const int at = cd_model_find_device(d->model, d->stands, strlen(d->stands));
    *out = 0;
    if (at < 0 || !own_vector(e, d, want) || !cd_model_set_vector(&e->models, d->model, (size_t)at, has)) return CDMPP_OK;
    CD_TRY(of_pairs(e, c, place, out, err));
    *out = fmax(sqrt(*out * cd_device_distance(want, has)), cd_model_set_peaks_apart(want, has));
    return CDMPP_OK;
}

static void mark(cd_node_cost_entry *n) {
    n->flags |= CD_MODEL_OUT_OF_RANGE;
    n->reason |= CD_UNLIKE_DEVICE;
    if (!n->unlike) n->unlike = cd_trained_on_reason(CD_UNLIKE_BIT_DEVICE);
}

/* All of its programs are unlike those of the training: none of them ran there. */
cdmpp_status cd_network_estimate_mark_stand_in(cd_network_estimate *e, cd_network_estimate_case *c, uint32_t place, double *spread,
                                               cdmpp_err *err) {
    cd_network_estimate_device *d = c->place[place];
    cd_node_cost *cost = c->cost[place];
    *spread = 0;
    if (!d->stands || !cost->n_model) return CDMPP_OK;
    if (d->scaled) {
        scale(e, c, place);
        *spread = log(CD_MODEL_SET_BETWEEN_KINDS) / cd_normal_quantile(0.95);
    } else CD_TRY(spread_of(e, c, place, spread, err));
    for (uint32_t k = 0; k < cost->n; k++)
        if (cost->node[k].source == CD_COST_MODEL) mark(&cost->node[k]);
    if (d->scaled) say_scaled(e, d);
    if (d->said_stands) return CDMPP_OK;
    const char *name = d->guessed ? "this machine" : d->name;
    char times[CD_MODEL_SET_TIMES_OFF];
    d->said_stands = true;
    if (*spread > 0.005)
        cd_log_put(e->o->log, CD_LOG_WARNING, "no model knows %s: %s of the model stands for it. Times there may be %s times shorter or longer, and the interval counts with that",
                   name, d->stands, cd_model_set_times_off(*spread, times));
    else
        cd_log_put(e->o->log, CD_LOG_WARNING, "no model knows %s: %s of the model stands for it; how far off that is, nobody knows",
                   name, d->stands);
    return CDMPP_OK;
}

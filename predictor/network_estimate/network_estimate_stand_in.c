/* A device that no model knows, but that is described: the most similar device of its kind that a
 * model knows stands for it. Where models know none of its kind, a device of another kind does.
 *
 *   device <─ distance ─> who stands for it ─> the model's law of devices that it never saw ─>
 *                                              shift of all its times, spread of each
 *
 * The law (learner/model/model.h) comes from devices that the training left out. The shift is at
 * least the ratio of the two peaks that differs most, of arithmetic or of memory. It stays in the
 * sum of a network, where what each program has of its own becomes small.
 *
 * Between kinds programs differ, and with them nearly everything that a model learns. What stays is
 * the work: each operator is taken to reach as large a part of the device's roofline as it does of
 * the other's. */
#include <math.h>
#include <string.h>

#include "learner/inputs/inputs.h"
#include "predictor/network_estimate/network_estimate_internal.h"

cdmpp_status cd_network_estimate_stand_in(cd_network_estimate *e, cd_network_estimate_device *d,
                                          cdmpp_err *err) {
    CD_TRY(cd_model_set_stand_in(&e->models, d->name, &d->model, &d->stands, &d->scaled, err));
    if (d->model || d->about || !e->o->nearest) return CDMPP_OK;
    const cd_model *m;
    /* nobody describes it: only the only one there is */
    CD_TRY(cd_model_set_tasks(&e->models, d->name, true, &m, err));
    if (!m || cd_model_n_device(m) > 1) return CDMPP_OK;
    d->model = m;
    d->scaled = false;
    d->stands = cd_model_device(m, 0);
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
    const cd_task *t = key && c->source->tasks
                           ? cd_task_registry_find(c->source->tasks, (cd_str){key, strlen(key)})
                           : NULL;
    return t && t->dag ? cd_device_least_s(d, &t->dag->least) : 0;
}

/* Times of the other kind become times of the device. An operator of which nobody knows the work
 * goes by the bandwidths. */
static void scale(const cd_network_estimate *e, cd_network_estimate_case *c, uint32_t place) {
    const cd_network_estimate_device *d = c->place[place];
    float want[CD_N_DEVICE_COL], has[CD_N_DEVICE_COL];
    const int at = cd_model_find_device(d->model, d->stands, strlen(d->stands));
    if (at < 0 || !cd_model_set_vector(&e->models, d->model, (size_t)at, has)) return;
    cd_device_vector(d->about, want);
    for (uint32_t k = 0; k < c->cost[place]->n; k++) {
        cd_node_cost_entry *n = &c->cost[place]->node[k];
        if (n->source != CD_COST_MODEL) continue;
        const double flop = c->source->graph->node[k].flop,
                     bytes = n->moved > 0 ? (double)n->moved : 1;
        const double ratio = cd_model_set_rooflines(want, has, flop, bytes);
        if (ratio > 0) times(n, ratio, d->about);
        n->least_s = least_of(c, k, d->about);
        cd_node_cost_at_least(n);
    }
}

static void say_scaled(const cd_network_estimate *e, cd_network_estimate_device *d) {
    if (!d->said_stands)
        cd_log_put(e->o->log, CD_LOG_WARNING,
                   "no model knows %s, nor another %s: %s of the model stands for it. Its times "
                   "are multiplied by the "
                   "ratio of both rooflines%s, and may be %g times shorter or longer; the interval "
                   "counts with that",
                   d->name, cd_device_kind_name(d->about->kind), d->stands,
                   d->about->peak_computed
                       ? " (fp32_gflops is not described: 2 * cores * lanes * clock_mhz)"
                       : "",
                   CD_MODEL_SET_BETWEEN_KINDS);
    d->said_stands = true;
}

/* False: nobody describes it. */
static bool own_vector(const cd_network_estimate *e, const cd_network_estimate_device *d,
                       float out[CD_N_DEVICE_COL]) {
    if (d->guessed) memcpy(out, e->models.here, sizeof e->models.here);
    else if (d->about) cd_device_vector(d->about, out);
    return d->guessed || d->about;
}

/* What that adds to all of its times alike, and to each of them. *both: somebody describes it and
 * what stands for it. */
static cd_device_doubt doubt_of(const cd_network_estimate *e, const cd_network_estimate_device *d,
                                bool *both) {
    float want[CD_N_DEVICE_COL], has[CD_N_DEVICE_COL];
    const int at = cd_model_find_device(d->model, d->stands, strlen(d->stands));
    *both = at >= 0 && own_vector(e, d, want) &&
            cd_model_set_vector(&e->models, d->model, (size_t)at, has);
    return cd_model_set_doubt(d->model, at < 0 ? 0 : (size_t)at, *both ? want : NULL,
                              *both ? has : NULL, d->numbers != NULL, d->scaled);
}

static void mark(cd_node_cost_entry *n, double own) {
    n->flags |= CD_MODEL_OUT_OF_RANGE;
    n->reason |= CD_UNLIKE_DEVICE;
    if (!n->unlike) n->unlike = cd_trained_on_reason(CD_UNLIKE_BIT_DEVICE);
    n->spread = hypot(n->spread, own);
    if (own > 0) cd_replay_widen(n->seconds, own, 0.9, &n->low_s, &n->high_s);
}

void cd_network_estimate_say_stand_in(const cd_network_estimate *e, cd_network_estimate_device *d,
                                      double spread) {
    bool both;
    if (d->scaled) say_scaled(e, d);
    if (d->said_stands) return;
    d->said_stands = true;
    (void)doubt_of(e, d, &both);
    if (e->o->says_device) return;
    const cd_model_set_doubtful said = {.name = d->name,
                                        .stands = d->stands,
                                        .here = d->guessed,
                                        .gpu = d->gpu,
                                        .described = both,
                                        .spread = spread};
    cd_model_set_say_stand_in(&e->models, &said, e->o->log);
}

/* All of its programs are unlike those of the training: none of them ran there. */
bool cd_network_estimate_mark_stand_in(cd_network_estimate *e, cd_network_estimate_case *c,
                                       uint32_t place, double *spread) {
    cd_network_estimate_device *d = c->place[place];
    cd_node_cost *cost = c->cost[place];
    bool both;
    *spread = 0;
    if (!d->stands || !cost->n_model) return false;
    const cd_device_doubt doubt = doubt_of(e, d, &both);
    if (d->scaled) scale(e, c, place);
    *spread = doubt.shift;
    for (uint32_t k = 0; k < cost->n; k++)
        if (cost->node[k].source == CD_COST_MODEL) mark(&cost->node[k], doubt.own);
    return true;
}

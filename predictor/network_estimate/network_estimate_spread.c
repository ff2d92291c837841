/* What a device adds to the uncertainty of all its operators alike: that another device stands for
 * it, and that nobody measured what networks cost there over their operators. It is drawn for no
 * operator on its own, but widens the interval of the network. */
#include <math.h>
#include <string.h>

#include "learner/inputs/inputs.h"
#include "predictor/network_estimate/network_estimate_internal.h"

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

/* The one warning that another device stands for it, once a run; spread: what that and networks
 * add. */
static void network_estimate_say_stand_in(const cd_network_estimate *e,
                                          cd_network_estimate_device *d, double spread) {
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

/* Marks the costs of a place whose device another one stands for, and widens each of them by what
 * it has of its own. *spread: standard deviation of ln(true / predicted) that comes on top for all
 * of them alike. False: nothing stands for it.
 *
 * All of its programs are unlike those of the training: none of them ran there. */
static bool network_estimate_mark_stand_in(cd_network_estimate *e, cd_network_estimate_case *c,
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

enum { PERCENT = 90 }; /* level of operators' intervals */

/* A task whose time is predicted or a record's: times of the file and of libraries are in the
 * network already. */
static bool is_task(const cd_network_estimate_case *c, uint32_t place, uint32_t node) {
    const cd_node_cost_entry *n = &c->cost[place]->node[node];
    return (!c->where || c->where[node] == place) &&
           c->source->graph->node[node].kind == CD_NODE_TASK &&
           (n->source == CD_COST_MODEL || n->source == CD_COST_RECORD ||
            (n->source == CD_COST_SCALED && n->low_s < n->high_s));
}

static double tasks_s(const cd_network_estimate_case *c, uint32_t place) {
    double sum = 0;
    for (uint32_t k = 0; k < c->source->graph->n_node; k++)
        if (is_task(c, place, k))
            sum += c->cost[place]->node[k].seconds * (double)c->source->graph->node[k].repeat;
    return sum;
}

/* Nobody measured a network there. `as`: whose law it has; NULL: none. */
static void say_costs(const cd_network_estimate *e, cd_network_estimate_device *d, const char *as,
                      double spread) {
    const char *name = d->guessed ? "this machine" : d->name;
    char times[CD_MODEL_SET_TIMES_OFF];
    if (d->said_costs) return;
    d->said_costs = true;
    if (isnan(spread))
        cd_log_put(e->o->log, CD_LOG_WARNING,
                   "there is no fit of what a network costs on any device (" CD_NETWORK_COST_FILE
                   "): nothing is added for it");
    else if (as)
        cd_log_put(e->o->log, CD_LOG_WARNING,
                   "no network was measured on %s: it is taken to add as much to its operators as "
                   "on %s (--fit-network-cost). Its time may be %s times shorter or "
                   "longer; the interval allows for that",
                   name, as, cd_model_set_times_off(spread, times));
    else
        cd_log_put(e->o->log, CD_LOG_WARNING,
                   "no network was measured on %s: it is taken to cost the sum of its operators "
                   "(--fit-network-cost). Its time may be %s times shorter or longer; the "
                   "interval allows for that",
                   name, cd_model_set_times_off(spread, times));
}

static const cd_network_cost_fit *law_of(const cd_network_estimate *e,
                                         const cd_network_estimate_device *d) {
    const char *stands = d->scaled ? NULL : d->stands;
    const char *whose = cd_network_cost_whose(e->models.costs, d->name, d->about, stands);
    return e->o->alone ? NULL : cd_network_cost_find(e->models.costs, whose, d->about);
}

/* Weights of a network come from memory by the device's law, but this graph does not say which
 * bytes they are. */
static void say_weights(const cd_network_estimate *e, const cd_network_estimate_case *c,
                        uint32_t place) {
    const cd_network_cost_fit *fit = law_of(e, c->place[place]);
    const cd_network_graph *g = c->source->graph;
    if (!fit || !(fit->refill_bytes_per_s > 0)) return;
    for (uint32_t k = 0; k < g->n_node; k++)
        if (is_task(c, place, k) && g->node[k].weight_bytes >= 0) return;
    cd_log_put(e->o->log, CD_LOG_WARNING,
               "%s on %s: the graph does not say which bytes are weights (weight_bytes). That they "
               "come from memory in a network is left out, and its time may be "
               "longer",
               c->source->name, c->place[place]->name);
}

/* Of a device whose networks nobody measured, what those of others say, in *spread; *as: whose law
 * it has. True: that is a guess. */
static bool without_fit(const cd_network_estimate *e, const cd_network_estimate_device *d,
                        double *spread, const char **as) {
    const cd_network_cost_fit *fit = law_of(e, d);
    const char *lender = cd_network_cost_lender(fit, d->name, d->about);
    const char *stands = !fit         ? NULL
                         : d->guessed ? d->name
                                      : cd_model_set_stands(&e->models, d->name);
    const bool here = fit && fit->here && cd_network_cost_names(fit, d->name);
    if (e->o->alone || (fit && !here && !stands && !lender)) return false;
    if (here || (stands && !d->guessed && cd_network_cost_names(fit, d->name))) {
        *spread = fit->spread; /* of few networks: what it leaves is part of the interval */
        return false;
    }
    *spread = cd_network_cost_spread(e->models.costs);
    *as = lender ? lender : stands;
    return true;
}

cdmpp_status cd_network_estimate_spreads(cd_network_estimate *e, cd_network_estimate_case *c,
                                         cdmpp_err *err) {
    if (!(c->spread = CD_NEWN(&e->arena, double, c->n_place)))
        return CD_FAIL(err, ENOMEM, "%u devices", c->n_place);
    for (uint32_t k = 0; k < c->n_place; k++) {
        double shift, costs = 0;
        const char *as = NULL;
        if (!(tasks_s(c, k) > 0)) continue;
        const bool stands = network_estimate_mark_stand_in(e, c, k, &shift);
        say_weights(e, c, k);
        const bool guessed = without_fit(e, c->place[k], &costs, &as);
        c->spread[k] = hypot(shift, isnan(costs) ? 0 : costs);
        if (stands) network_estimate_say_stand_in(e, c->place[k], c->spread[k]);
        if (guessed && (!stands || c->place[k]->scaled || isnan(costs)))
            say_costs(e, c->place[k], as, costs);
        for (uint32_t i = 0; c->spread[k] > 0 && i < c->source->graph->n_node; i++) {
            cd_node_cost_entry *n = &c->cost[k]->node[i];
            if (is_task(c, k, i))
                cd_replay_widen(n->seconds, c->spread[k], PERCENT / 100.0, &n->low_s, &n->high_s);
            cd_node_cost_at_least(n);
        }
    }
    return CDMPP_OK;
}

/* A device computes one operator after the other, so what each needs at best adds up. */
static double least_s(const cd_network_estimate_case *c) {
    double most = 0;
    for (uint32_t p = 0; p < c->n_place; p++) {
        double sum = 0;
        for (uint32_t k = 0; k < c->source->graph->n_node; k++) {
            const cd_node_cost_entry *n = &c->cost[p]->node[k];
            if ((!c->where || c->where[k] == p) &&
                (n->source == CD_COST_MODEL || n->source == CD_COST_LIBRARY))
                sum += fmin(n->least_s, n->seconds) * (double)c->source->graph->node[k].repeat;
        }
        most = fmax(most, sum);
    }
    return fmin(most, c->replay.makespan_s);
}

/* The latency if every operator took the low (high) end of its interval. No interval of the network
 * at their level goes beyond. */
static cdmpp_status latency_of_ends(const cd_network_estimate_case *c, bool high, double *out,
                                    cdmpp_err *err) {
    cd_replay_net net = c->net->net;
    cd_replay r = {0};
    cd_replay_op *op = cd_mem_zalloc(net.n_op + 1u, sizeof *op);
    if (!op) return CD_FAIL(err, ENOMEM, "%u operators", net.n_op);
    for (uint32_t k = 0; k < net.n_op; k++) {
        const cd_node_cost_entry *n = cd_network_estimate_case_cost(c, c->net->of[k]);
        op[k] = net.op[k];
        if (n->seconds > 0 && n->low_s > 0)
            op[k].seconds *= (high ? n->high_s : n->low_s) / n->seconds;
    }
    net.op = op;
    const cdmpp_status st = cd_replay_run(&net, &r, err);
    *out = r.makespan_s;
    cd_replay_free(&r);
    cd_mem_free(op);
    return st;
}

static cdmpp_status within_operators(const cd_network_estimate *e, cd_network_estimate_case *c,
                                     cdmpp_err *err) {
    /* nothing to draw: the ends are its own */
    const bool alone = c->net->net.n_op == 1 && 100 * e->o->level == PERCENT;
    double low, high;
    if (100 * e->o->level > PERCENT || isnan(c->interval.low_s)) return CDMPP_OK;
    CD_TRY(latency_of_ends(c, false, &low, err));
    CD_TRY(latency_of_ends(c, true, &high, err));
    low = fmin(low, c->replay.makespan_s);
    high = fmax(high, c->replay.makespan_s);
    c->interval.low_s = alone ? low : fmax(c->interval.low_s, low);
    c->interval.high_s = alone ? high : fmin(c->interval.high_s, high);
    return CDMPP_OK;
}

/* What programs that are unlike in one way are off by together: it does not become small in a sum
 * of them. */
static double unlike_together(const cd_network_estimate_case *c, uint32_t place) {
    const cd_model *m = c->place[place]->model;
    const double all = tasks_s(c, place);
    double part[CD_N_UNLIKE] = {0};
    for (uint32_t k = 0; m && k < c->source->graph->n_node; k++) {
        const cd_node_cost_entry *n = &c->cost[place]->node[k];
        for (uint32_t b = 0; is_task(c, place, k) && b < CD_N_UNLIKE; b++)
            if (n->reason >> b & 1)
                part[b] += n->seconds * (double)c->source->graph->node[k].repeat / all;
    }
    return m ? cd_trained_on_shift(cd_model_trained_on(m), part) : 0;
}

/* Each device by its part of the time. */
cdmpp_status cd_network_estimate_widen(const cd_network_estimate *e, cd_network_estimate_case *c,
                                       cdmpp_err *err) {
    double all = 0;
    c->device_spread = 0;
    for (uint32_t k = 0; k < c->net->net.n_op; k++) all += c->net->net.op[k].seconds;
    for (uint32_t k = 0; k < c->n_place; k++)
        if (all > 0 && tasks_s(c, k) > 0)
            c->device_spread +=
                hypot(c->spread[k], unlike_together(c, k)) * fmin(1, tasks_s(c, k) / all);
    cd_replay_interval_finish(c->replay.makespan_s, c->device_spread, least_s(c), e->o->level,
                              &c->interval);
    return within_operators(e, c, err);
}

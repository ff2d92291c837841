/* One estimate of cdmpp-replay: schedules, costs, replay, interval, memory. */
#include <math.h>
#include <string.h>

#include "predictor/cmd/replay/main_replay.h"

/* ---- where nodes run ---- */
static cdmpp_status place_of(cd_main_replay_plan *p, cd_main_replay_case *c, const char *name, uint32_t *at, cdmpp_err *err) {
    cd_main_replay_device *d;
    CD_TRY(cd_main_replay_device_get(p, name, &d, err));
    for (*at = 0; *at < c->n_place; ++*at)
        if (c->place[*at] == d) return CDMPP_OK;
    c->place[c->n_place++] = d;
    return CDMPP_OK;
}

/* A graph that names two devices or more is placed as it says; one device is no placement but what --device may replace. */
static bool is_placed(const cd_network_graph *g, size_t *n_name) {
    const char *one = NULL;
    bool more = false;
    *n_name = 0;
    for (uint32_t k = 0; k < g->n_node; k++) {
        const char *d = g->node[k].device;
        if (!d) continue;
        ++*n_name;
        if (one && strcmp(one, d) != 0) more = true;
        one = d;
    }
    return more;
}

static cdmpp_status place(cd_main_replay_plan *p, cd_main_replay_case *c, cdmpp_err *err) {
    const cd_network_graph *g = c->source->graph;
    size_t names;
    const bool placed = is_placed(g, &names);
    const size_t cap = placed ? (names < 256 ? names : 256) + 1 : 1;
    if (!(c->place = CD_NEWN(&p->arena, cd_main_replay_device *, cap))) return CD_FAIL(err, ENOMEM, "devices");
    c->place[c->n_place++] = c->device;
    if (!placed) return CDMPP_OK;
    if (!(c->where = cd_mem_zalloc(g->n_node, sizeof *c->where))) return CD_FAIL(err, ENOMEM, "%u nodes", g->n_node);
    for (uint32_t k = 0; k < g->n_node; k++) {
        if (!g->node[k].device) continue;
        if (c->n_place == cap) return CD_FAIL(err, ERANGE, "more than %zu devices", cap - 1);
        CD_TRY(place_of(p, c, g->node[k].device, &c->where[k], err));
    }
    return CDMPP_OK;
}

static cdmpp_status queues(cd_main_replay_plan *p, cd_main_replay_case *c, cdmpp_err *err) {
    const uint32_t n = c->n_place;
    c->lane = CD_NEWN(&p->arena, cd_replay_device, n);
    c->link = CD_NEWN(&p->arena, cd_replay_link, (size_t)n * n + 1);
    c->cost = CD_NEWN(&p->arena, cd_node_cost *, n);
    if (!c->lane || !c->link || !c->cost) return CD_FAIL(err, ENOMEM, "%u devices", n);
    for (uint32_t k = 0; k < n; k++) {
        c->lane[k] = cd_main_replay_queue(p->o, &p->models, c->place[k]->name);
        for (uint32_t j = 0; j < n; j++)
            if (j != k) c->link[c->n_link++] = (cd_replay_link){k, j, p->o->link_latency_s, p->o->link_bytes_per_s};
    }
    return CDMPP_OK;
}

/* ---- costs ---- */
/* The first place's costs become those of where each node runs, so that its counts are of the network. */
static void settle(cd_main_replay_case *c) {
    for (uint32_t k = 0; c->where && k < c->cost[0]->n; k++) c->cost[0]->node[k] = c->cost[c->where[k]]->node[k];
    if (c->where) cd_node_cost_tally(c->cost[0], c->source->graph);
}

static cdmpp_status costs(cd_main_replay_plan *p, cd_main_replay_case *c, cdmpp_err *err) {
    const cd_network_graph *g = c->source->graph;
    for (uint32_t k = 0; k < c->n_place; k++) {
        cd_main_replay_device *d = c->place[k];
        CD_TRY(cd_main_replay_schedules(p, c, d, err));
        const cd_node_cost_options a = {.model = d->model, .opmodel = d->opmodel, .tasks = c->source->tasks, .book = d->book, .device = d->name,
                                  .devices = p->models.devices, .nearest = p->o->nearest, .from_records = p->o->from_records, .from_given = p->o->replay_given,
                                  .refill_bytes_per_s = d->gpu ? 0 : p->o->refill_bytes_per_s};
        CD_TRY(cd_node_cost_of(g, &a, &c->cost[k], err));
    }
    settle(c);
    return CDMPP_OK;
}

/* A result that goes to another device must say how large it is: a copy of nothing takes no time. */
static cdmpp_status copies_known(const cd_main_replay_plan *p, const cd_main_replay_case *c, cdmpp_err *err) {
    const cd_replay_net *n = &c->net->net;
    for (uint32_t k = 0; k < n->n_op; k++)
        for (uint32_t j = 0; j < n->op[k].n_after; j++) {
            const uint32_t a = n->after[n->op[k].first + j];
            if (n->op[a].device == n->op[k].device || cd_main_replay_case_cost(c, c->net->of[a])->bytes >= 0) continue;
            if (!p->o->allow_missing)
                return CD_FAIL(err, ESCHEMA, "node %s goes to another device, and nobody knows how many bytes it has (write_bytes)", n->op[a].name);
            cd_log_put(p->o->log, CD_LOG_WARNING, "%s: nobody knows how many bytes of %s go to another device: taken for none", c->source->name, n->op[a].name);
            return CDMPP_OK;
        }
    return CDMPP_OK;
}

static cdmpp_status replay(cd_main_replay_plan *p, cd_main_replay_case *c, cdmpp_err *err) {
    const cd_node_cost_placement where = {.n_device = c->n_place, .n_link = c->n_link, .device = c->lane, .link = c->link, .where = c->where};
    cd_node_cost_net_free(c->net);
    c->net = NULL;
    cd_replay_free(&c->replay);
    memset(&c->replay, 0, sizeof c->replay);
    c->missing_share = c->cost[0]->missing_share; /* a what-if may fill a gap */
    CD_TRY(cd_node_cost_net_make(c->source->graph, (const cd_node_cost *const *)c->cost, &where, p->o->allow_missing, &c->net, err));
    if (!c->net->net.n_op && c->cost[0]->n_missing) /* never 0 s for a network of which nothing is known */
        return CD_FAIL(err, ESCHEMA, "nobody knows the time of any of its %u operators", c->cost[0]->n_missing);
    CD_TRY(copies_known(p, c, err));
    return cd_replay_run(&c->net->net, &c->replay, err);
}

static cdmpp_status what_if(cd_main_replay_plan *p, cd_main_replay_case *c, cdmpp_err *err) {
    c->before_s = c->replay.makespan_s;
    for (size_t k = 0; k < p->o->what_if.n; k++)
        for (uint32_t d = 0; d < c->n_place; d++)
            CD_TRY(cd_err_key(err, cd_node_cost_what_if(c->cost[d], c->source->graph, p->o->what_if.v[k], err), "--what-if"));
    return replay(p, c, err);
}

/* Known times need no draws. */
static cdmpp_status interval(cd_main_replay_plan *p, cd_main_replay_case *c, cdmpp_err *err) {
    const cd_replay_net *n = &c->net->net;
    const double s = c->replay.makespan_s;
    for (uint32_t k = 0; k < n->n_op; k++)
        if (n->op[k].spread > 0) return cd_replay_sample(n, p->o->level_v, p->o->shared_v, (uint64_t)p->o->seed, &c->interval, err);
    c->interval = (cd_replay_interval){.low_s = s, .high_s = s, .mean_s = s};
    return CDMPP_OK;
}

/* Part of the time that gets a warning: a tenth changes a total less than its interval allows. */
static const double UNLIKE = 0.1;

/* Times of a file beside a model's are counted; where all are the file's, nobody has predicted anything. */
static void tell_given(const cd_main_replay_plan *p, const cd_main_replay_case *c) {
    const cd_network_graph *g = c->source->graph;
    const char *why = NULL;
    uint32_t tasks = 0, given = 0;
    for (uint32_t k = 0; k < g->n_node; k++) {
        const cd_node_cost_entry *n = cd_main_replay_case_cost(c, k);
        if (g->node[k].kind != CD_NODE_TASK || !g->node[k].repeat) continue;
        tasks++;
        given += n->source == CD_COST_GIVEN;
        if (n->source == CD_COST_GIVEN && !why) why = n->why;
    }
    if (tasks && given == tasks && !p->o->replay_given)
        cd_log_put(p->o->log, CD_LOG_WARNING, "%s on %s: none of its %u tasks is predicted, the file's times stand in: %s", c->source->name, c->device->name,
                   tasks, why ? why : "nobody can score them");
}

static void sum_up(const cd_main_replay_plan *p, cd_main_replay_case *c) {
    const cd_network_graph *g = c->source->graph;
    for (uint32_t k = 0; k < c->net->net.n_op; k++) c->ops_s += c->net->net.op[k].seconds;
    for (uint32_t k = 0; k < g->n_node; k++) {
        const cd_node_cost_entry *n = cd_main_replay_case_cost(c, k);
        if (n->source == CD_COST_GIVEN) c->given_s += n->seconds * (double)g->node[k].repeat;
        if (n->source == CD_COST_MODEL && (n->flags & CD_MODEL_OUT_OF_RANGE)) c->unlike_s += n->seconds * (double)g->node[k].repeat;
    }
    if (c->unlike_s > UNLIKE * c->ops_s)
        cd_log_put(p->o->log, CD_LOG_WARNING, "%s on %s: %.0f %% of the time is of programs unlike those that the model was trained on: do not rely on it",
                   c->source->name, c->device->name, 100 * c->unlike_s / c->ops_s);
    tell_given(p, c);
    for (uint32_t k = 0; k < c->n_place; k++)
        if (cd_main_replay_use_fits(&c->use[k]) == CD_MAIN_REPLAY_NO)
            cd_log_put(p->o->log, CD_LOG_WARNING, "%s on %s: needs %s %.3g GiB of memory, the device has %.3g", c->source->name, c->place[k]->name,
                       c->use[k].peak < 0 ? "at least" : "about", (double)c->use[k].least / 1073741824.0, (double)c->use[k].memory / 1073741824.0);
}

static cdmpp_status all(cd_main_replay_plan *p, cd_main_replay_case *c, cdmpp_err *err) {
    if (c->source->st) {
        if (err) *err = c->source->err;
        return c->source->st;
    }
    CD_TRY(place(p, c, err));
    CD_TRY(queues(p, c, err));
    CD_TRY(costs(p, c, err));
    CD_TRY(replay(p, c, err));
    if (p->o->what_if.n) CD_TRY(what_if(p, c, err));
    CD_TRY(cd_main_replay_parallel(p, c, err));
    CD_TRY(interval(p, c, err));
    CD_TRY(cd_main_replay_memory(p, c, err));
    sum_up(p, c);
    if (p->o->run) cd_main_replay_run(p, c);
    return CDMPP_OK;
}

void cd_main_replay_case_run(cd_main_replay_plan *p, cd_main_replay_case *c) {
    cd_buf name = {0};
    c->st = all(p, c, &c->err);
    if (!c->st) return;
    cd_main_replay_case_name(p, c, &name);
    if (!name.oom) cd_err_add_place(&c->err, name.p, 0);
    cd_buf_free(&name);
}

void cd_main_replay_case_free(cd_main_replay_case *c) {
    for (uint32_t k = 0; c->cost && k < c->n_place; k++) cd_node_cost_free(c->cost[k]);
    cd_node_cost_net_free(c->net);
    cd_replay_free(&c->replay);
    cd_network_run_free(c->ran);
    cd_mem_free(c->where);
}

/* ---- asking ---- */
void cd_main_replay_case_name(const cd_main_replay_plan *p, const cd_main_replay_case *c, cd_buf *b) {
    cd_buf_puts(b, c->source->name);
    if (!p->graphs) cd_buf_putf(b, ", %s", c->device->name);
    if (!p->graphs && c->source->batch) cd_buf_putf(b, ", batch %lld", (long long)c->source->batch);
}

const cd_node_cost_entry *cd_main_replay_case_cost(const cd_main_replay_case *c, uint32_t node) { return &c->cost[c->where ? c->where[node] : 0]->node[node]; }
const cd_network_node *cd_main_replay_node(const cd_main_replay_case *c, uint32_t op) { return &c->source->graph->node[c->net->of[op]]; }

double cd_main_replay_throughput(const cd_main_replay_case *c) {
    return c->source->batch > 0 && c->replay.makespan_s > 0 ? (double)c->source->batch / c->replay.makespan_s : (double)NAN;
}

double cd_main_replay_price(const cd_main_replay_case *c) {
    const double items = cd_main_replay_throughput(c);
    return isnan(items) ? (double)NAN : c->device->price / 3600 / items * 1e6;
}

double cd_main_replay_error(const cd_main_replay_case *c, double measured_s) { return measured_s > 0 ? c->replay.makespan_s / measured_s - 1 : (double)NAN; }

/* One case: a network for one batch on one device, or over the devices that its graph names.
 *
 *   devices of the nodes ─> schedules ─> node costs ─> simulated queues ─> interval by sampling,
 *     memory
 *
 * The order matters: costs need the schedules, and a what-if changes costs that a first simulation
 * has already used, so that there is a latency before and after. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "predictor/network_estimate/network_estimate_internal.h"

/* Times that files of graphs have: on which device they were measured, and what is said about that.
 *
 *   the file's or the node's "device", else the folder's name where that is a described device ─>
 *   of that device alone
 *   nothing ─> taken for the asked device's, with a warning */

/* Measured networks lie in a folder of their device's name, as logs do. Only a name that is
 * described counts. */
static const char *of_folder(const cd_network_estimate *e, const char *path) {
    const char *end = strrchr(path, '/'), *name = end;
    char text[80];
    if (!end) return NULL;
    while (name > path && name[-1] != '/') name--;
    const size_t n = (size_t)(end - name);
    if (!n || n >= sizeof text) return NULL;
    memcpy(text, name, n);
    text[n] = 0;
    const cd_device *d = cd_model_set_device(&e->models, text);
    return d ? d->name : NULL;
}

static bool has_times(const cd_network_graph *g) {
    bool any = !isnan(g->measured_s);
    for (uint32_t k = 0; !any && k < g->n_node; k++) any = g->node[k].given_s > 0;
    return any;
}

void cd_network_estimate_times_of(const cd_network_estimate *e, const char *path,
                                  cd_network_graph *g) {
    if (!g->device && has_times(g)) g->device = of_folder(e, path);
}

/* Fills c->measured_s, c->measured_median_s. */
static void network_estimate_measured(const cd_network_estimate *e, cd_network_estimate_case *c) {
    const cd_network_graph *g = c->source->graph;
    const bool here = !g->device || c->device->unnamed ||
                      cd_device_table_same(e->models.devices, g->device, c->device->name);
    c->measured_s = here ? g->measured_s : (double)NAN;
    c->measured_median_s = here ? g->measured_median_s : (double)NAN;
    if (!here && !isnan(g->measured_s))
        cd_log_put(e->o->log, CD_LOG_WARNING,
                   "%s on %s: its measured time is of %s and is not compared", c->source->name,
                   c->device->name, g->device);
}

/* Whether a time was used of which the file does not say the device. */
static bool is_unsaid(const cd_network_estimate_case *c) {
    const cd_network_graph *g = c->source->graph;
    bool any = !g->device && !isnan(c->measured_s);
    for (uint32_t k = 0; !any && k < g->n_node; k++) {
        const cd_node_cost_entry *n = cd_network_estimate_case_cost(c, k);
        any = n->source == CD_COST_GIVEN && n->seconds > 0 && g->node[k].repeat &&
              !cd_node_cost_times_of(g, k);
    }
    return any;
}

/* A message where times were used of which nobody says the device.
 *
 * Once a file and device: a file may have many networks. */
static void network_estimate_warn_times(const cd_network_estimate *e, cd_network_estimate_case *c) {
    if (c->device->unnamed || !(c->unsaid = is_unsaid(c))) return;
    for (const cd_network_estimate_case *p = e->item; p < c; p++)
        if (p->unsaid && p->device == c->device && !strcmp(p->source->given, c->source->given))
            return;
    cd_log_put(e->o->log, CD_LOG_WARNING,
               "%s: %s does not say on which device its times were measured (\"device\"): "
               "they are taken for those of %s",
               c->source->given, c->source->name, c->device->name);
}

/* What is told of programs in number types that the model has not seen: how much of the time they
 * are, and how far off it may be. */

static const double TOLD = 0.1; /* share of the time */

static bool of_model(const cd_network_estimate_case *c, uint32_t place, uint32_t node) {
    const cd_node_cost_entry *n = cd_network_estimate_case_cost(c, node);
    return (!c->where || c->where[node] == place) && n->source == CD_COST_MODEL &&
           n->reason & CD_UNLIKE_DTYPE;
}

static double seconds(const cd_network_estimate_case *c, uint32_t node) {
    return cd_network_estimate_case_cost(c, node)->seconds *
           (double)c->source->graph->node[node].repeat;
}

/* Seconds on the place of programs in the type, where the model has not seen it. */
static double of_type_s(const cd_network_estimate_case *c, uint32_t place, const char *type) {
    double sum = 0;
    for (uint32_t k = 0; k < c->source->graph->n_node; k++) {
        const cd_node_cost_entry *n = cd_network_estimate_case_cost(c, k);
        const char *at = n->unlike ? strstr(n->unlike, type) : NULL;
        if (of_model(c, place, k) && at && (at == n->unlike || at[-1] == ' ')) sum += seconds(c, k);
    }
    return sum;
}

/* A sum of products of words of four numbers. */
static bool has_words(const cd_network_estimate_case *c, uint32_t node) {
    const char *key = c->source->graph->node[node].key;
    const cd_task *t = key && c->source->tasks
                           ? cd_task_registry_find(c->source->tasks, (cd_str){key, strlen(key)})
                           : NULL;
    for (uint32_t i = 0; t && t->dag && i < t->dag->n_op; i++) {
        const cd_te_op *o = &t->dag->op[i];
        const cd_expr *e = o->is_placeholder ? NULL : o->body[0];
        while (e && e->op == CD_CAST) e = e->a[0];
        if (e && cd_expr_is_dot4(e)) return true;
    }
    return false;
}

/* Their type is int32, as that of indices is. */
static double of_words_s(const cd_network_estimate_case *c, uint32_t place) {
    double sum = 0;
    for (uint32_t k = 0; k < c->source->graph->n_node; k++)
        if (of_model(c, place, k) && has_words(c, k)) sum += seconds(c, k);
    return sum;
}

static bool is_gpu(const cd_network_estimate_device *d) {
    return d->about && d->about->kind == CD_DEVICE_GPU;
}

static void say_words(const cd_network_estimate_device *d, const char *network, double share,
                      cd_log *log) {
    cd_log_put(log, CD_LOG_WARNING,
               "%s on %s: %.0f %% of the time is of sums of products in 8 bits, which the model "
               "was not trained on: it answers as for float32 with a quarter of the products; %s",
               network, d->name, 100 * share,
               is_gpu(d) ? "of matrix products a model of operators of language models knows better"
                         : "--quantize int8 --run measures both on this machine");
}

/* Operators whose type is answered as another one, which is no reason to doubt them. */
static void say_alike(const cd_network_estimate *e, const cd_network_estimate_case *c,
                      uint32_t place, const char *name) {
    const char *as = NULL;
    double sum = 0;
    for (uint32_t k = 0; k < c->source->graph->n_node; k++) {
        const cd_node_cost_entry *n = cd_network_estimate_case_cost(c, k);
        if ((c->where && c->where[k] != place) || !n->alike) continue;
        as = n->alike;
        sum += seconds(c, k);
    }
    if (sum > TOLD * c->ops_s)
        cd_log_put(e->o->log, CD_LOG_INFO,
                   "%s on %s: %.0f %% of the time is answered as in %s, whose numbers have as many "
                   "bytes and run on the same units",
                   name, c->place[place]->name, 100 * sum / c->ops_s, as);
}

/* Warnings of number types that the model has not seen; name: of the network, in messages.
 *
 * The model's answer and the roofline of a stand-in are those of float32. */
static void network_estimate_warn_types(const cd_network_estimate *e,
                                        const cd_network_estimate_case *c, const char *name) {
    for (uint32_t k = 0; k < c->n_place; k++) {
        const cd_network_estimate_device *d = c->place[k];
        const bool products = d->narrow && is_gpu(d);
        const double bytes = of_type_s(c, k, "int8") + of_type_s(c, k, "uint8"),
                     words = of_words_s(c, k);
        say_alike(e, c, k, name);
        if (words > TOLD * c->ops_s) say_words(d, name, words / c->ops_s, e->o->log);
        if (bytes > TOLD * c->ops_s)
            cd_model_set_say_int8(d->about, products, name, d->name, bytes / c->ops_s, e->o->log);
        for (int t = 0; t < CD_TE_N_LEAST; t++) {
            const double s =
                t == CD_TE_LEAST_F32 ? 0 : of_type_s(c, k, cd_model_set_type((cd_te_least_type)t));
            if (s > TOLD * c->ops_s)
                cd_model_set_say_type(d->about, products, (cd_te_least_type)t, name, d->name,
                                      s / c->ops_s, e->o->log);
        }
    }
}

/* ---- where nodes run ---- */
/* Index of the named device in c->place, to which it is added. */
static cdmpp_status place_of(cd_network_estimate *e, cd_network_estimate_case *c, const char *name,
                             uint32_t *at, cdmpp_err *err) {
    cd_network_estimate_device *d;
    CD_TRY(cd_network_estimate_device_get(e, name, &d, err));
    for (*at = 0; *at < c->n_place; ++*at)
        if (c->place[*at] == d) return CDMPP_OK;
    c->place[c->n_place++] = d;
    return CDMPP_OK;
}

/* Whether nodes name two devices or more. A graph whose nodes all name one device was recorded
 * there, and the caller may ask for it on another. *n_name: nodes that name one, which bounds how
 * many devices there are. */
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

/* Fills place and where. A graph on one device has no `where`: the case's device runs all of it. */
static cdmpp_status place(cd_network_estimate *e, cd_network_estimate_case *c, cdmpp_err *err) {
    const cd_network_graph *g = c->source->graph;
    size_t names;
    const bool placed = is_placed(g, &names);
    const size_t cap = placed ? (names < 256 ? names : 256) + 1 : 1;
    if (!(c->place = CD_NEWN(&e->arena, cd_network_estimate_device *, cap)))
        return CD_FAIL(err, ENOMEM, "devices");
    c->place[c->n_place++] = c->device;
    if (!placed) return CDMPP_OK;
    if (!(c->where = cd_mem_zalloc(g->n_node, sizeof *c->where)))
        return CD_FAIL(err, ENOMEM, "%u nodes", g->n_node);
    for (uint32_t k = 0; k < g->n_node; k++) {
        if (!g->node[k].device) continue;
        if (c->n_place == cap) return CD_FAIL(err, ERANGE, "more than %zu devices", cap - 1);
        CD_TRY(place_of(e, c, g->node[k].device, &c->where[k], err));
    }
    return CDMPP_OK;
}

/* A queue for each device and a link for each ordered pair: graphs do not say how devices are
 * connected. */
static cdmpp_status queues(cd_network_estimate *e, cd_network_estimate_case *c, cdmpp_err *err) {
    const uint32_t n = c->n_place;
    c->lane = CD_NEWN(&e->arena, cd_replay_device, n);
    c->link = CD_NEWN(&e->arena, cd_replay_link, (size_t)n * n + 1);
    c->cost = CD_NEWN(&e->arena, cd_node_cost *, n);
    if (!c->lane || !c->link || !c->cost) return CD_FAIL(err, ENOMEM, "%u devices", n);
    for (uint32_t k = 0; k < n; k++) {
        c->lane[k] = cd_network_estimate_queue(e->o, &e->models, c->place[k]->name);
        for (uint32_t j = 0; j < n; j++)
            if (j != k)
                c->link[c->n_link++] =
                    (cd_replay_link){k, j, e->o->link_latency_s, e->o->link_bytes_per_s};
    }
    return CDMPP_OK;
}

/* ---- costs ---- */
/* What costs of nodes on the device depend on, without schedules. */
static cd_node_cost_options network_estimate_cost_options(const cd_network_estimate *e,
                                                          const cd_network_estimate_device *d) {
    return (cd_node_cost_options){.model = d->model,
                                  .opmodel = d->opmodel,
                                  .narrow = d->narrow,
                                  .device = d->name,
                                  .devices = e->models.devices,
                                  .stands = d->stands,
                                  .numbers = d->numbers,
                                  .costs = e->models.costs,
                                  .alone = e->o->alone || d->scaled,
                                  .refill_bytes_per_s = d->gpu ? 0 : e->o->refill_bytes_per_s};
}

/* Costs are made of all nodes on every place. The first place then takes each node's cost from
 * where it runs, so that its tally counts the network once. */
static void settle(cd_network_estimate_case *c) {
    for (uint32_t k = 0; c->where && k < c->cost[0]->n; k++)
        c->cost[0]->node[k] = c->cost[c->where[k]]->node[k];
    if (c->where) cd_node_cost_tally(c->cost[0], c->source->graph);
}

static cdmpp_status costs(cd_network_estimate *e, cd_network_estimate_case *c, cdmpp_err *err) {
    const cd_network_graph *g = c->source->graph;
    for (uint32_t k = 0; k < c->n_place; k++) {
        cd_network_estimate_device *d = c->place[k];
        CD_TRY(cd_network_estimate_schedules(e, c, d, err));
        cd_node_cost_options a = network_estimate_cost_options(e, d);
        a.tasks = c->source->tasks;
        a.schedules = d->schedules;
        a.from_records = e->o->from_records;
        a.from_given = e->o->replay_given;
        a.tried = cd_network_estimate_draws(e->o, d);
        a.any_times = d->unnamed;
        CD_TRY(cd_node_cost_of(g, &a, &c->cost[k], err));
    }
    CD_TRY(cd_network_estimate_spreads(e, c, err));
    settle(c);
    return CDMPP_OK;
}

/* A result that goes to another device must say how large it is: a copy of nothing takes no
 * time. */
static cdmpp_status copies_known(const cd_network_estimate *e, const cd_network_estimate_case *c,
                                 cdmpp_err *err) {
    const cd_replay_net *n = &c->net->net;
    for (uint32_t k = 0; k < n->n_op; k++)
        for (uint32_t j = 0; j < n->op[k].n_after; j++) {
            const uint32_t a = n->after[n->op[k].first + j];
            if (n->op[a].device == n->op[k].device ||
                cd_network_estimate_case_cost(c, c->net->of[a])->bytes >= 0)
                continue;
            if (!e->o->allow_missing)
                return CD_FAIL(err, ESCHEMA,
                               "node %s goes to another device, and nobody knows how many bytes it "
                               "has (write_bytes)",
                               n->op[a].name);
            cd_log_put(e->o->log, CD_LOG_WARNING,
                       "%s: nobody knows how many bytes of %s go to another device: taken for none",
                       c->source->name, n->op[a].name);
            return CDMPP_OK;
        }
    return CDMPP_OK;
}

static cdmpp_status nothing_known(const cd_network_estimate_case *c, cdmpp_err *err) {
    const cd_node_cost *all = c->cost[0];
    uint32_t k = 0;
    while (k + 1 < all->n &&
           (all->node[k].source != CD_COST_MISSING || !c->source->graph->node[k].repeat))
        k++;
    return CD_FAIL(err, ESCHEMA, "nobody knows the time of any of its %u operators; of %s (%s): %s",
                   all->n_missing, c->source->graph->node[k].name, c->source->graph->node[k].op,
                   all->node[k].why ? all->node[k].why : "nobody knows it");
}

/* May be called again after a what-if: the earlier net and result go. The missing share is of now,
 * because a what-if may give a missing operator a time. */
static cdmpp_status replay(cd_network_estimate *e, cd_network_estimate_case *c, cdmpp_err *err) {
    const cd_node_cost_placement where = {.n_device = c->n_place,
                                          .n_link = c->n_link,
                                          .device = c->lane,
                                          .link = c->link,
                                          .where = c->where};
    cd_node_cost_net_free(c->net);
    c->net = NULL;
    cd_replay_free(&c->replay);
    memset(&c->replay, 0, sizeof c->replay);
    c->missing_share = c->cost[0]->missing_share;
    c->missing_of_work = c->cost[0]->missing_of_work;
    CD_TRY(cd_node_cost_net_make(c->source->graph, (const cd_node_cost *const *)c->cost, &where,
                                 e->o->allow_missing, &c->net, err));
    /* never 0 s for a network of which nothing is known */
    if (!c->net->net.n_op && c->cost[0]->n_missing) return nothing_known(c, err);
    if (!c->net->net.n_op) return cd_network_load_nothing(c->source->graph->n_node, err);
    CD_TRY(copies_known(e, c, err));
    return cd_replay_run(&c->net->net, &c->replay, err);
}

static cdmpp_status what_if(cd_network_estimate *e, cd_network_estimate_case *c, cdmpp_err *err) {
    c->before_s = c->replay.makespan_s;
    for (size_t k = 0; k < e->o->what_if.n; k++)
        for (uint32_t d = 0; d < c->n_place; d++)
            CD_TRY(cd_err_key(
                err, cd_node_cost_what_if(c->cost[d], c->source->graph, e->o->what_if.v[k], err),
                "--what-if"));
    return replay(e, c, err);
}

static cdmpp_status parallel(const cd_network_estimate *e, cd_network_estimate_case *c,
                             cdmpp_err *err) {
    if (!e->o->parallel) return CDMPP_OK;
    if (c->n_place > 1)
        return CD_FAIL(err, EUSAGE, "--parallel is of a graph on one device, this one names %u",
                       c->n_place);
    return cd_err_key(
        err, cd_parallel_training_of(c->source->graph, c->cost[0], &e->parallel, &c->cluster, err),
        "--parallel");
}

/* Operators of which nothing tells how far off they are leave the network without an interval,
 * unless they are a share of its time that no interval is as narrow as. */
static const double unsure_share = 0.01;
static bool is_unsure(const cd_network_estimate_case *c) {
    const cd_network_graph *g = c->source->graph;
    double all = 0, unsure = 0;
    for (uint32_t k = 0; k < g->n_node; k++) {
        const cd_node_cost_entry *n = cd_network_estimate_case_cost(c, k);
        if (n->source == CD_COST_MISSING || !g->node[k].repeat) continue;
        all += n->seconds * (double)g->node[k].repeat;
        if (isnan(n->low_s)) unsure += n->seconds * (double)g->node[k].repeat;
    }
    return unsure > unsure_share * all;
}

static cdmpp_status interval(cd_network_estimate *e, cd_network_estimate_case *c, cdmpp_err *err) {
    const double s = c->replay.makespan_s;
    if (!is_unsure(c))
        return cd_replay_interval_of(&c->net->net, s, e->o->level, e->o->shared,
                                     (uint64_t)e->o->seed, &c->interval, err);
    c->interval = (cd_replay_interval){.low_s = NAN, .high_s = NAN, .mean_s = s};
    return CDMPP_OK;
}

/* Share of the time above which there is a message: less changes the total by less than its
 * interval. */
static const double UNLIKE = 0.1;
enum { MOST_NAMES = 3 }; /* of operators in a message */

/* The share of the file's times is in the report; a message says so only where every task took one,
 * because then the model has not predicted anything. */
static void warn_given(const cd_network_estimate *e, const cd_network_estimate_case *c) {
    const cd_network_graph *g = c->source->graph;
    const char *why = NULL;
    uint32_t tasks = 0, given = 0;
    for (uint32_t k = 0; k < g->n_node; k++) {
        const cd_node_cost_entry *n = cd_network_estimate_case_cost(c, k);
        if (g->node[k].kind != CD_NODE_TASK || !g->node[k].repeat) continue;
        tasks++;
        given += n->source == CD_COST_GIVEN;
        if (n->source == CD_COST_GIVEN && !why) why = n->why;
    }
    if (tasks && given == tasks && !e->o->replay_given)
        cd_log_put(e->o->log, CD_LOG_WARNING,
                   "%s on %s: none of its %u tasks is predicted, the file's times stand in: %s",
                   c->source->name, c->device->name, tasks, why ? why : "nobody can score them");
}

static void add_unlike(cd_network_estimate_case *c, const cd_node_cost_entry *n, double seconds) {
    if (!(n->flags & CD_MODEL_OUT_OF_RANGE)) return;
    c->unlike_s += seconds;
    if (n->reason & ~(uint32_t)(CD_UNLIKE_DEVICE | CD_UNLIKE_FEATURE | CD_UNLIKE_THREADS))
        c->unlike_else_s += seconds;
    for (uint32_t b = 0; b < CD_N_UNLIKE; b++)
        if (n->reason >> b & 1) c->unlike_of_s[b] += seconds;
}

void cd_network_estimate_unlike(const cd_network_estimate_case *c,
                                char why[CD_NETWORK_ESTIMATE_WHY]) {
    cd_trained_on_shares(c->unlike_of_s, c->ops_s, why);
}

enum { SAID = 160 };

/* "resnet-50", and with its batch where that is not the usual one, or one of several. */
static const char *named(const cd_network_estimate *e, const cd_network_estimate_case *c,
                         char out[SAID]) {
    const long long batch = c->source->batch;
    if (batch > 1 || (batch && e->n_batch > 1))
        (void)snprintf(out, SAID, "%.120s (batch %lld)", c->source->name, batch);
    else (void)snprintf(out, SAID, "%.120s", c->source->name);
    return out;
}

/* That a device is new was said when another one took its place. */
double cd_network_estimate_unlike_s(const cd_network_estimate_case *c) {
    return c->device->stands ? c->unlike_else_s : c->unlike_s;
}

static void warn_unlike(const cd_network_estimate *e, const cd_network_estimate_case *c) {
    const double unlike_s = cd_network_estimate_unlike_s(c);
    if (!(unlike_s > UNLIKE * c->ops_s)) return;
    char why[CD_NETWORK_ESTIMATE_WHY], name[SAID];
    cd_network_estimate_unlike(c, why);
    cd_log_put(e->o->log, CD_LOG_WARNING,
               "%s on %s: %.0f %% of the time is of programs unlike those that the model was "
               "trained on (%s): do not rely on it",
               named(e, c, name), c->device->name, 100 * unlike_s / c->ops_s, why);
}

/* Neither times of files nor of records say how far off they are. Once a run. */
static void say_interval(cd_network_estimate *e, cd_network_estimate_case *c) {
    if (!isnan(c->interval.low_s)) return;
    c->no_interval = is_unsure(c)
                         ? "nothing tells how far off the estimates of some of its operators are"
                         : "all times were given or measured";
    if (is_unsure(c) || e->said_interval) return;
    e->said_interval = true;
    cd_log_put(
        e->o->log, CD_LOG_INFO,
        "no interval where all times were given or measured: nobody says how far off they are");
}

/* With --allow-missing. The first few by name; all of them are under `missing` in JSON. The share
 * is the one of the column, and says of what it is: it is none of the time. */
static void warn_missing(const cd_network_estimate *e, const cd_network_estimate_case *c) {
    const cd_network_graph *g = c->source->graph;
    char names[200] = "";
    uint32_t n = 0;
    bool quantised = false;
    double runs = 0, all = 0;
    for (uint32_t k = 0; k < g->n_node; k++) {
        const cd_cost_source from = cd_network_estimate_case_cost(c, k)->source;
        if (from != CD_COST_FREE) all += (double)g->node[k].repeat;
        if (from != CD_COST_MISSING || !g->node[k].repeat) continue;
        runs += (double)g->node[k].repeat;
        quantised |=
            !strcmp(g->node[k].op, "DequantizeLinear") || !strcmp(g->node[k].op, "QuantizeLinear");
        const size_t at = strlen(names);
        const char *op = g->node[k].op;
        if (n++ < MOST_NAMES)
            (void)snprintf(names + at, sizeof names - at, "%s%.30s%s%.20s%s", at ? ", " : "",
                           g->node[k].name, *op ? " (" : "", op, *op ? ")" : "");
    }
    if (n)
        cd_log_put(e->o->log, CD_LOG_WARNING,
                   "%s on %s: the time is without %.0f of %.0f operators (missing: %.1f %% of %s); "
                   "how long they take, nobody knows: %s%s",
                   c->source->name, c->device->name, runs, all, 100 * c->missing_share,
                   c->missing_of_work ? "the operations" : "their number", names,
                   n > MOST_NAMES ? " ..." : "");
    if (quantised)
        cd_log_put(e->o->log, CD_LOG_WARNING,
                   "%s on %s: what stands between DequantizeLinear and QuantizeLinear is priced in "
                   "float32, as the file computes it: a runtime that "
                   "joins them computes integers",
                   c->source->name, c->device->name);
}

/* Sums of times by source, then the messages that depend on them. */
static void sum_up(cd_network_estimate *e, cd_network_estimate_case *c) {
    const cd_network_graph *g = c->source->graph;
    for (uint32_t k = 0; k < c->net->net.n_op; k++) c->ops_s += c->net->net.op[k].seconds;
    for (uint32_t k = 0; k < g->n_node; k++) {
        const cd_node_cost_entry *n = cd_network_estimate_case_cost(c, k);
        if (n->source == CD_COST_GIVEN) c->given_s += n->seconds * (double)g->node[k].repeat;
        if (n->source == CD_COST_MODEL || n->source == CD_COST_LIBRARY)
            add_unlike(c, n, n->seconds * (double)g->node[k].repeat);
    }
    warn_unlike(e, c);
    char name[SAID];
    network_estimate_warn_types(e, c, named(e, c, name));
    say_interval(e, c);
    warn_missing(e, c);
    warn_given(e, c);
    network_estimate_warn_times(e, c);
    for (uint32_t k = 0; k < c->n_place; k++)
        if (cd_network_estimate_use_fits(&c->use[k]) == CD_NETWORK_FITS_NO)
            cd_log_put(
                e->o->log, CD_LOG_WARNING,
                "%s on %s: needs %s %.3g GiB of memory, the device has %.3g", c->source->name,
                c->place[k]->name, c->use[k].peak < 0 ? "at least" : "about",
                (double)c->use[k].least / 1073741824.0, (double)c->use[k].memory / 1073741824.0);
}

/* A source that could not be read fails here, so that the error is counted for each of its
 * cases. */
static cdmpp_status all(cd_network_estimate *e, cd_network_estimate_case *c, cdmpp_err *err) {
    if (c->source->st) {
        if (err) *err = c->source->err;
        return c->source->st;
    }
    network_estimate_measured(e, c);
    CD_TRY(place(e, c, err));
    CD_TRY(queues(e, c, err));
    CD_TRY(costs(e, c, err));
    CD_TRY(replay(e, c, err));
    if (e->o->what_if.n) CD_TRY(what_if(e, c, err));
    CD_TRY(parallel(e, c, err));
    CD_TRY(interval(e, c, err));
    CD_TRY(cd_network_estimate_widen(e, c, err));
    CD_TRY(cd_network_estimate_memory(e, c, err));
    sum_up(e, c);
    if (e->o->run) cd_network_estimate_measure(e, c);
    return CDMPP_OK;
}

/* The error of a case names it: errors of many cases stand in one log. */
void cd_network_estimate_case_run(cd_network_estimate *e, cd_network_estimate_case *c) {
    cd_buf name = {0};
    c->st = all(e, c, &c->err);
    if (!c->st) return;
    cd_network_estimate_case_name(e, c, &name);
    if (!name.oom) cd_err_add_place(&c->err, name.p, 0);
    cd_buf_free(&name);
}

void cd_network_estimate_case_free(cd_network_estimate_case *c) {
    for (uint32_t k = 0; c->cost && k < c->n_place; k++) cd_node_cost_free(c->cost[k]);
    cd_node_cost_net_free(c->net);
    cd_replay_free(&c->replay);
    cd_network_run_free(c->ran);
    cd_mem_free(c->where);
}

/* ---- asking ---- */
void cd_network_estimate_case_name(const cd_network_estimate *e, const cd_network_estimate_case *c,
                                   cd_buf *b) {
    cd_buf_puts(b, c->source->name);
    if (!e->graphs) cd_buf_putf(b, ", %s", c->device->label);
    if (!e->graphs && c->source->batch) cd_buf_putf(b, ", batch %lld", (long long)c->source->batch);
}

const cd_node_cost_entry *cd_network_estimate_case_cost(const cd_network_estimate_case *c,
                                                        uint32_t node) {
    return &c->cost[c->where ? c->where[node] : 0]->node[node];
}
const cd_network_node *cd_network_estimate_node(const cd_network_estimate_case *c, uint32_t op) {
    return &c->source->graph->node[c->net->of[op]];
}

double cd_network_estimate_throughput(const cd_network_estimate_case *c) {
    return c->source->batch > 0 && c->replay.makespan_s > 0
               ? (double)c->source->batch / c->replay.makespan_s
               : (double)NAN;
}

double cd_network_estimate_error(const cd_network_estimate_case *c, double measured_s) {
    return measured_s > 0 ? c->replay.makespan_s / measured_s - 1 : (double)NAN;
}

bool *cd_network_estimate_critical(const cd_network_estimate_case *c) {
    bool *critical = cd_mem_zalloc(c->net->net.n_op + 1u, sizeof *critical);
    for (uint32_t k = 0; critical && k < c->replay.n_path; k++) critical[c->replay.path[k]] = true;
    return critical;
}

/* One schedule of each task for all sizes of a range, and what it loses against the best of each
 * size.
 *
 *   schedules of size a ─ steps ─> tasks of size b ─> node costs: best at b = the least over all a
 *   of each node the a whose time, over the best, is the least in the mean of all b ─> sums of
 *     times ─> loss at b
 *
 * Inner lengths of tiles stay, the outermost loop takes what a size leaves: as TVM replays steps on
 * another shape. A library of programs that is compiled once for a range of sizes works in this
 * way. */

/* The same operators in the same order, all on one device: only then nodes of two sizes belong
 * together. */
static bool is_alike(const cd_network_estimate_case *a, const cd_network_estimate_case *b) {
    const cd_network_graph *x = a->source->graph, *y = b->source->graph;
    bool same = x->n_node == y->n_node && a->n_place == 1 && b->n_place == 1;
    for (uint32_t k = 0; same && k < x->n_node; k++)
        same = x->node[k].kind == y->node[k].kind && !strcmp(x->node[k].op, y->node[k].op);
    return same;
}

/* The record's steps as a schedule of another task. */
static cdmpp_status add_for(cd_schedule_db *to, const cd_schedule_db_entry *from, const char *key,
                            cdmpp_err *err) {
    cd_arena a = {0};
    cd_record r;
    cdmpp_status st = cd_record_read(&a, from->line, from->len, &r, err);
    r.workload_key = (cd_str){key, strlen(key)};
    if (!st) st = cd_schedule_db_add(to, &r, from->origin, (double)NAN, err);
    cd_arena_free(&a);
    return st;
}

/* Seconds of the nodes of `to` with the schedules of `from`; NaN: its steps do not fit there. */
static cdmpp_status price(cd_network_estimate *e, const cd_network_estimate_case *from,
                          const cd_network_estimate_case *to, double *seconds, cdmpp_err *err) {
    const cd_network_graph *x = from->source->graph, *y = to->source->graph;
    const cd_network_estimate_device *d = to->device;
    cd_schedule_db *db = NULL;
    cd_node_cost *cost = NULL;
    cdmpp_status st = cd_schedule_db_new(&db, err);
    for (uint32_t k = 0; !st && k < x->n_node; k++) {
        const cd_schedule_db_entry *s = x->node[k].kind == CD_NODE_TASK
                                            ? cd_schedule_db_find(d->schedules, x->node[k].key)
                                            : NULL;
        if (s && !cd_schedule_db_find(db, y->node[k].key)) st = add_for(db, s, y->node[k].key, err);
    }
    cd_node_cost_options a = network_estimate_cost_options(e, d);
    a.tasks = to->source->tasks;
    a.schedules = db;
    if (!st) st = cd_node_cost_of(y, &a, &cost, err);
    for (uint32_t k = 0; !st && k < y->n_node; k++)
        seconds[k] = y->node[k].kind != CD_NODE_TASK ? cd_network_estimate_case_cost(to, k)->seconds
                     : cost->node[k].source == CD_COST_MISSING ? (double)NAN
                                                               : cost->node[k].seconds;
    cd_node_cost_free(cost);
    cd_schedule_db_free(db);
    return st;
}

typedef struct {
    size_t n; /* sizes */
    uint32_t n_node;
    double *seconds; /* (n, n, n_node) of schedules of the first size on the second */
    const cd_network_estimate_curve *c;
} table;

static double at(const table *t, size_t from, size_t to, uint32_t node) {
    return t->seconds[(from * t->n + to) * t->n_node + node];
}

/* The best that is known at a size: of its own schedule and those of the other sizes. */
static double least_at(const table *t, size_t to, uint32_t node) {
    double least = at(t, to, to, node);
    for (size_t from = 0; from < t->n; from++) least = fmin(least, at(t, from, to, node));
    return least;
}

/* The size whose schedule of the node costs least over all sizes; n: none fits all. */
static size_t best_for(const table *t, uint32_t node) {
    size_t best = t->n;
    double least = INFINITY;
    for (size_t from = 0; from < t->n; from++) {
        double sum = 0;
        for (size_t to = 0; to < t->n; to++) sum += at(t, from, to, node) / least_at(t, to, node);
        if (sum < least) least = sum, best = from; /* NaN is not less */
    }
    return best;
}

/* Losses of all sizes from sums over the nodes. A node that nothing fits keeps the best of each
 * size, and its share is told. */
static void choose(const table *t, cd_network_estimate_curve *c) {
    for (size_t to = 0; to < t->n; to++) {
        double best_s = 0, one = 0, apart = 0;
        for (uint32_t k = 0; k < t->n_node; k++) {
            const double s = least_at(t, to, k),
                         times = (double)c->of[to]->source->graph->node[k].repeat;
            const size_t best = isfinite(s) && s > 0 ? best_for(t, k) : to;
            if (!isfinite(s)) continue; /* missing at this size: it is in neither sum */
            best_s += s * times;
            one += (best < t->n ? at(t, best, to, k) : s) * times;
            if (best == t->n) apart += s * times;
        }
        c->loss[to] = best_s > 0 ? one / best_s - 1 : (double)NAN;
        c->apart[to] = best_s > 0 ? apart / best_s : (double)NAN;
    }
    c->has_one = true;
}

static cdmpp_status price_all(cd_network_estimate *e, cd_network_estimate_curve *c, table *t,
                              cdmpp_err *err) {
    for (size_t from = 0; from < t->n; from++)
        for (size_t to = 0; to < t->n; to++) {
            double *s = t->seconds + (from * t->n + to) * t->n_node;
            if (e->o->stop && *e->o->stop)
                return CD_FAIL(err, EINTERRUPTED, "schedules of a range");
            if (from != to) CD_TRY(price(e, c->of[from], c->of[to], s, err));
            else
                for (uint32_t k = 0; k < t->n_node; k++)
                    s[k] = cd_network_estimate_case_cost(c->of[to], k)->seconds;
        }
    choose(t, c);
    return CDMPP_OK;
}

cdmpp_status cd_network_estimate_one_schedule(cd_network_estimate *e, cd_network_estimate_curve *c,
                                              cdmpp_err *err) {
    table t = {.n = c->n, .c = c};
    c->why_not = c->st                                      ? "there is no law"
                 : !c->first->device->model                 ? "no model of programs"
                 : e->o->from_records || e->o->replay_given ? "times are given"
                                                            : "";
    for (size_t k = 0; k < c->n && !*c->why_not; k++)
        if (!is_alike(c->of[0], c->of[k])) c->why_not = "the operators of its sizes differ";
    if (*c->why_not) return CDMPP_OK;
    t.n_node = c->of[0]->source->graph->n_node;
    c->loss = CD_NEWN(&e->arena, double, c->n);
    c->apart = CD_NEWN(&e->arena, double, c->n);
    t.seconds = cd_mem_zalloc(t.n * t.n * t.n_node + 1, sizeof *t.seconds);
    cdmpp_status st =
        c->loss && c->apart && t.seconds ? CDMPP_OK : CD_FAIL(err, ENOMEM, "schedules of a range");
    if (!st) st = price_all(e, c, &t, err);
    cd_mem_free(t.seconds);
    return st;
}

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
#include <math.h>
#include <string.h>

#include "predictor/network_estimate/network_estimate_internal.h"

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
    cd_node_cost_options a = cd_network_estimate_cost_options(e, d);
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

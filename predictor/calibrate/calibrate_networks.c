/* What a network adds to its operators on this machine: some networks run with the schedules that
 * the model chooses, each operator alone and the whole. Nothing is compared with what is predicted:
 * the law is of measured times alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli/cli.h"
#include "predictor/calibrate/calibrate.h"

typedef struct work {
    const cd_calibrate_networks_options *o;
    cd_threads *pool; /* looks for schedules; NULL: one thread */
    double slowest;   /* seconds that a network took */
} work;

enum { AT_ONCE = 16 }; /* tasks whose schedules are looked for between two looks at the clock */

static double left_s(const work *w) { return w->o->until_s - w->o->clock->now(w->o->clock->ctx); }

/* What was chosen without the network was chosen as if the task's parameter were a weight. */
static cdmpp_status take_chosen(const work *w, const cd_network_loaded *l, const char *key,
                                cd_arena *a, cd_schedule_db *db, cdmpp_err *err) {
    const cd_schedule_db_entry *e = w->o->best ? cd_schedule_db_find(w->o->best, key) : NULL;
    const bool plain =
        l->n_plain && bsearch(&key, l->plain, l->n_plain, sizeof *l->plain, cd_sort_by_text);
    cd_record r;
    if (!e || plain) return CDMPP_OK;
    CD_TRY(cd_record_read(a, e->line, e->len, &r, err));
    return cd_schedule_db_add(db, &r, e->origin, (double)NAN, err);
}

/* A task of which the model lowers no candidate runs with a drawn schedule. */
static cdmpp_status choose(const work *w, const cd_network_loaded *l, cd_schedule_db *db,
                           cdmpp_err *err) {
    const cd_calibrate_networks_options *o = w->o;
    cd_arena scratch = {0};
    cdmpp_status st = CDMPP_OK;
    const cd_schedule_db_pick pick = {.seed = o->seed,
                                      .target = o->target,
                                      .device = o->stands,
                                      .numbers = o->numbers,
                                      .hardware = &o->hardware,
                                      .plain = l->plain,
                                      .n_plain = l->n_plain};
    const char **key = cd_mem_zalloc((size_t)l->graph->n_node + 1, sizeof *key);
    size_t n = 0;
    if (!key) return CD_FAIL(err, ENOMEM, "%u tasks", l->graph->n_node);
    for (uint32_t i = 0; !st && i < l->graph->n_node; i++) {
        if (l->graph->node[i].kind != CD_NODE_TASK || !l->graph->node[i].repeat) continue;
        key[n++] = l->graph->node[i].key;
        st = take_chosen(w, l, key[n - 1], &scratch, db, err);
    }
    for (size_t i = 0; !st && i < n; i += AT_ONCE) {
        if (!(left_s(w) > 0)) st = CD_FAIL(err, EBACKEND, "the time is over");
        else
            st = cd_schedule_db_predict(db, o->model, l->work->tasks, key + i,
                                        n - i < AT_ONCE ? n - i : AT_ONCE, &pick, w->pool, err);
    }
    cd_arena_free(&scratch);
    cd_mem_free(key);
    return st;
}

/* Times of a run into `row` and `alone`, each the least of this run and those before. */
static cdmpp_status take(const work *w, const cd_network_loaded *l, const cd_network_run *r,
                         double *alone, cd_network_cost_row *row, cdmpp_err *err) {
    const double before = row->measured_s > 0 ? row->measured_s : (double)INFINITY;
    if (r->n_left) return CD_FAIL(err, EBACKEND, "%u of its operators have no program", r->n_left);
    for (uint32_t i = 0; i < r->n; i++)
        alone[i] =
            before < (double)INFINITY ? fmin(alone[i], r->node[i].alone_s) : r->node[i].alone_s;
    *row = cd_node_cost_row_alone(l->graph, l->work->tasks, alone, w->o->about);
    row->measured_s = fmin(before, r->pass_s);
    return row->alone_s > 0 && row->measured_s > 0
               ? CDMPP_OK
               : CD_FAIL(err, EBACKEND, "an operator has no time");
}

static double lift_of(const cd_network_cost_row *row) { return row->measured_s / row->alone_s; }

/* What a network hardly ever takes: something else ran beside its passes, or beside its
 * operators. */
static bool odd(const cd_network_cost_row *row) {
    return lift_of(row) < 0.97 || lift_of(row) > 1.25;
}

/* What none takes, in two runs: no law of the machine may be made of it. */
static const double least_lift = 0.67, most_lift = 1.75;
static cdmpp_status check_lift(const cd_network_cost_row *row, cdmpp_err *err) {
    if (lift_of(row) >= least_lift && lift_of(row) <= most_lift) return CDMPP_OK;
    return CD_FAIL(err, EBACKEND,
                   "it takes %.2f times its operators alone: something else ran beside it",
                   lift_of(row));
}

static cdmpp_status run_once(const work *w, const cd_network_loaded *l, cd_network_run_options *ro,
                             double *alone, cd_network_cost_row *row, cdmpp_err *err) {
    cd_network_run *r = NULL;
    if (!(left_s(w) > 0)) return CD_FAIL(err, EBACKEND, "the time is over");
    ro->until_s =
        cd_clock_wall() +
        left_s(w) * (w->o->wall > 0 ? w->o->wall
                                    : 1); /* the machine's own clock: the other one may be made */
    cdmpp_status st = w->o->clock->network(w->o->clock->ctx, l, ro, &r, err);
    if (!st) st = take(w, l, r, alone, row, err);
    cd_network_run_free(r);
    return st;
}

/* Once, and again where the first run is odd, and there is as much time. A second run that fails
 * leaves the first one. */
static cdmpp_status run_with(const work *w, const cd_network_loaded *l, const cd_schedule_db *db,
                             double *alone, cd_network_cost_row *row, cdmpp_err *err) {
    const cd_calibrate_networks_options *o = w->o;
    cd_network_run_options ro = {.schedules = db,
                                 .target = o->target,
                                 .hardware = &o->hardware,
                                 .seed = o->seed,
                                 .device = o->gpu,
                                 .threads = o->threads,
                                 .budget_s = 1,
                                 .limit_s = 30,
                                 .pin = true,
                                 .alone = true,
                                 .stop = o->stop};
    const double before = left_s(w);
    CD_TRY(run_once(w, l, &ro, alone, row, err));
    const cd_network_cost_row first = *row;
    if (!odd(row)) return CDMPP_OK;
    if (!(left_s(w) > before - left_s(w))) return check_lift(row, err);
    const cdmpp_status st = run_once(w, l, &ro, alone, row, err);
    if (!st) return check_lift(row, err);
    if (st == CDMPP_ENOMEM || st == CDMPP_EINTERRUPTED) return st;
    *row = first;
    *err = (cdmpp_err){0};
    return check_lift(row, err);
}

static cdmpp_status run(const work *w, const cd_network_loaded *l, cd_network_cost_row *row,
                        cdmpp_err *err) {
    cd_schedule_db *db = NULL;
    double *alone = cd_mem_zalloc((size_t)l->graph->n_node + 1, sizeof *alone);
    cdmpp_status st = CDMPP_OK;
    *row = (cd_network_cost_row){0};
    if (!alone) st = CD_FAIL(err, ENOMEM, "%u nodes", l->graph->n_node);
    if (!st) st = cd_schedule_db_new(&db, err);
    if (!st) st = choose(w, l, db, err);
    if (!st) st = run_with(w, l, db, alone, row, err);
    cd_schedule_db_free(db);
    cd_mem_free(alone);
    return st;
}

/* Before the first one, what programs took so far tells whether there is any hope: half of that,
 * because some are known and those of a network are compiled together. */
static cdmpp_status hope(const work *w, const cd_network_loaded *l, cdmpp_err *err) {
    const double needs = 0.5 * w->o->program_s * (double)l->work->n_task;
    if (w->slowest > 0 || !(needs > left_s(w))) return CDMPP_OK;
    return CD_FAIL(err, EBACKEND, "its %u programs would take %.0f s or more, and %.0f s are left",
                   l->work->n_task, needs, left_s(w));
}

static cdmpp_status one(work *w, const char *name, cd_network_cost_row *row, cdmpp_err *err) {
    const cd_network_load_options lo = {
        .network = name, .target = w->o->target, .hardware = &w->o->hardware};
    cd_network_loaded l = {0};
    const double begin = w->o->clock->now(w->o->clock->ctx);
    cdmpp_status st = cd_network_load(&lo, &l, err);
    if (!st) st = hope(w, &l, err);
    const bool begun = !st;
    if (!st) st = run(w, &l, row, err);
    cd_network_load_free(&l);
    if (begun) w->slowest = fmax(w->slowest, w->o->clock->now(w->o->clock->ctx) - begin);
    return st;
}

static bool later(const work *w) { return !(left_s(w) > w->slowest); }

/* A network that does not run is told, and the others count. */
static cdmpp_status all(work *w, cd_network_cost_row *row, size_t *n, cdmpp_err *err) {
    const cd_calibrate_networks_options *o = w->o;
    for (size_t i = 0; i < o->n_network && !later(w); i++) {
        cdmpp_err why = {0};
        if (o->stop && *o->stop) return CD_FAIL(err, EINTERRUPTED, "while networks ran");
        const cdmpp_status st = one(w, o->network[i], &row[*n], &why);
        if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "%s", why.msg);
        if (st == CDMPP_EINTERRUPTED) return CD_FAIL(err, EINTERRUPTED, "%s", why.msg);
        if (st)
            cd_log_put(o->log, CD_LOG_WARNING, "network %s was not measured: %s", o->network[i],
                       why.msg);
        else
            cd_log_put(o->log, CD_LOG_INFO, "network %s: %.3g ms, its operators alone %.3g ms",
                       o->network[i], 1e3 * row[*n].measured_s, 1e3 * row[*n].alone_s);
        *n += !st;
    }
    return CDMPP_OK;
}

static cdmpp_status fit(const cd_calibrate_networks_options *o, const cd_network_cost_row *row,
                        size_t n, cd_network_cost_fit *out, cdmpp_err *err) {
    cdmpp_err why = {0};
    const cdmpp_status st = cd_network_cost_fit_rows(row, n, out, &why);
    if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "%s", why.msg);
    if (!st) return CDMPP_OK;
    cd_log_put(o->log, CD_LOG_WARNING, "networks: %s", why.msg);
    *out = (cd_network_cost_fit){0};
    return CDMPP_OK;
}

cdmpp_status cd_calibrate_networks(const cd_calibrate_networks_options *o, cd_network_cost_fit *out,
                                   cdmpp_err *err) {
    work w = {.o = o};
    size_t n = 0;
    *out = (cd_network_cost_fit){0};
    cd_network_cost_row *row = cd_mem_zalloc(o->n_network + 1, sizeof *row);
    if (!row) return CD_FAIL(err, ENOMEM, "%zu networks", o->n_network);
    cdmpp_status st = o->jobs > 1 ? cd_threads_new(o->jobs, &w.pool, err) : CDMPP_OK;
    if (!st) st = all(&w, row, &n, err);
    cd_threads_free(w.pool);
    if (!st && n >= CD_NETWORK_COST_FEWEST) st = fit(o, row, n, out, err);
    cd_mem_free(row);
    return st;
}

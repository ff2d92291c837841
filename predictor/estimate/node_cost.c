/* Times of all nodes of a network. Nodes whose time is known or hopeless are settled first. The
 * others become questions, equal questions are sorted together and asked once, in chunks: networks
 * repeat their operators, and scoring costs most of the time. */
#include "predictor/estimate/node_cost.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/estimate/estimate.h"
#include "predictor/estimate/estimate_internal.h"

/* What an operator takes in a network over what it takes alone, by the fit of its device
 * (network_cost.h). */

static double own_cache(const cd_device *d) { return d && d->l2_kb > 0 ? d->l2_kb * 1024 : 0; }

/* More than `from` times the largest shared cache? from 0: yes. */
static bool beyond(double from, double bytes, const cd_device *d) {
    return from <= 0 || bytes > from * cd_network_cost_cache(d);
}

cd_node_cost_scaling_law cd_node_cost_law(const cd_network_cost *costs, const char *name,
                                          const cd_device *d, cd_node_cost_bytes bytes) {
    const cd_network_cost_fit *f = cd_network_cost_find(costs, name, d);
    if (!f) return (cd_node_cost_scaling_law){.lift = 1};
    const bool large = beyond(f->lift_from, bytes.traffic, d),
               cold = beyond(f->refill_from, bytes.weights, d);
    return (cd_node_cost_scaling_law){.lift = large ? f->lift : 1,
                                      .call_s = f->call_s,
                                      .refill_bytes_per_s = cold ? f->refill_bytes_per_s : 0,
                                      .stays_bytes = f->refill_to * own_cache(d)};
}

static double refilled(double stays_bytes, int64_t weight_bytes) {
    return weight_bytes > 0 && (double)weight_bytes < stays_bytes ? (double)weight_bytes : 0;
}

static double refill_s(const cd_node_cost_scaling_law *l, int64_t weight_bytes) {
    return l->refill_bytes_per_s > 0
               ? refilled(l->stays_bytes, weight_bytes) / l->refill_bytes_per_s
               : 0;
}

double cd_node_cost_law_s(const cd_node_cost_scaling_law *l, double seconds, int64_t weight_bytes) {
    return seconds * l->lift + (l->call_s + refill_s(l, weight_bytes));
}

static void change(cd_node_cost_entry *n, double lift, double call_s) {
    n->seconds = n->seconds * lift + call_s;
    n->low_s = n->low_s * lift + call_s;
    n->high_s = n->high_s * lift + call_s;
    cd_node_cost_at_least(n); /* a lift may be below 1 */
}

bool cd_node_cost_picks_rows(const char *op) {
    return op && (!strncmp(op, "Gather", 6) || !strncmp(op, "Embedding", 9));
}

double cd_node_cost_weights(const cd_network_graph *g) {
    double sum = 0;
    for (uint32_t i = 0; i < g->n_node; i++)
        if (g->node[i].weight_bytes > 0 && !cd_node_cost_picks_rows(g->node[i].op))
            sum += (double)g->node[i].weight_bytes;
    return sum;
}

/* Of a table of which rows are picked no more comes than those. */
static int64_t weights_read(const cd_network_node *n, int64_t result_bytes) {
    return cd_node_cost_picks_rows(n->op) && result_bytes >= 0 && result_bytes < n->weight_bytes
               ? result_bytes
               : n->weight_bytes;
}

static bool has_law(const cd_network_graph *g, const cd_node_cost *c, uint32_t i) {
    return g->node[i].kind == CD_NODE_TASK &&
           (c->node[i].source == CD_COST_MODEL || c->node[i].source == CD_COST_RECORD);
}

void cd_node_cost_in_place(cd_node_cost *c, const cd_network_graph *g,
                           const cd_node_cost_scaling_law *l) {
    for (uint32_t i = 0; i < c->n; i++)
        if (has_law(g, c, i))
            change(&c->node[i], l->lift,
                   l->call_s + refill_s(l, weights_read(&g->node[i], c->node[i].bytes)));
}

static void add_to_row(cd_network_cost_row *r, double own, const cd_network_node *n, double seconds,
                       int64_t result_bytes) {
    const double runs = (double)n->repeat;
    r->alone_s += seconds * runs;
    r->calls += runs;
    for (int k = 0; k < CD_NETWORK_COST_LIMITS; k++)
        r->refill_bytes[k] +=
            refilled(cd_network_cost_limit[k] * own, weights_read(n, result_bytes)) * runs;
    if (r->fetch_bytes_per_s > 0)
        r->fetch_s += refilled(r->fetch_to * own, weights_read(n, result_bytes)) * runs /
                      r->fetch_bytes_per_s;
}

/* Memory brings weights to a kernel slower than a stream, whose next line is always known: a tile
 * reads short pieces of them. Chosen on twelve networks of one processor that no table of results
 * has. */
static const double of_stream = 1 / 1.5;

/* The probe reads 128 MB: where a cache holds that, it does not tell of the memory. */
static double memory_gb_s(const cd_device *d) {
    const double probe = d->probe[CD_DEVICE_PROBE_probe_memory];
    return probe > 0 && cd_network_cost_cache(d) < 64e6 ? probe : d->bandwidth_gb_s;
}

static cd_network_cost_row new_row(const cd_device *d, double traffic) {
    const double own = own_cache(d), shared = cd_network_cost_cache(d),
                 stream = !d ? 0 : memory_gb_s(d) * 1e9;
    cd_network_cost_row r = {.moved_caches = traffic / shared};
    if (own > 0 && shared > own && stream > 0)
        r.fetch_bytes_per_s = of_stream * stream, r.fetch_to = shared / own;
    return r;
}

/* What the largest shared cache holds from one pass to the next is not fetched. */
static void close_row(cd_network_cost_row *r, const cd_network_graph *g, const cd_device *d) {
    if (!beyond(CD_NETWORK_COST_KEEPS, cd_node_cost_weights(g), d)) r->fetch_s = 0;
}

cd_network_cost_row cd_node_cost_row(const cd_node_cost *c, const cd_network_graph *g,
                                     const cd_device *d, double latency_s) {
    cd_network_cost_row r = new_row(d, c->traffic);
    for (uint32_t i = 0; i < c->n; i++)
        if (has_law(g, c, i))
            add_to_row(&r, own_cache(d), &g->node[i], c->node[i].seconds, c->node[i].bytes);
    close_row(&r, g, d);
    r.rest_s = fmax(latency_s - r.alone_s, 0);
    return r;
}

cd_network_cost_row cd_node_cost_row_alone(const cd_network_graph *g, const cd_task_registry *t,
                                           const double *alone_s, const cd_device *d) {
    cd_network_cost_row r = new_row(d, 0);
    double traffic = 0;
    for (uint32_t i = 0; i < g->n_node; i++) {
        int64_t result;
        const int64_t moved = cd_node_cost_moved(g, t, i, &result);
        if (g->node[i].kind == CD_NODE_FREE || g->node[i].repeat <= 0) continue;
        if (moved > 0) traffic += (double)moved * (double)g->node[i].repeat;
        add_to_row(&r, own_cache(d), &g->node[i], alone_s[i], result);
    }
    r.moved_caches = traffic / cd_network_cost_cache(d);
    close_row(&r, g, d);
    return r;
}

void cd_node_cost_refill(cd_node_cost *c, const cd_network_graph *g, double bytes_per_s) {
    for (uint32_t i = 0; i < c->n && bytes_per_s > 0; i++)
        if (has_law(g, c, i) && c->node[i].moved > 0)
            change(&c->node[i], 1, (double)c->node[i].moved / bytes_per_s);
}

enum { CHUNK = 256 };

/* A question that is asked once: a task with its schedule, a library operator. */
typedef struct {
    const char *key; /* NULL: a library operator */
    const cd_library_op_record *op;
    uint64_t hash;
    uint32_t node;
} question;

typedef struct {
    const cd_network_graph *g;
    const cd_node_cost_options *a;
    const cd_device *device; /* NULL: no description */
    cd_node_cost *c;
    cd_node_cost_bias best;
    question *q; /* (n_q) sorted: equal ones stand together */
    uint32_t n_q;
    /* the last device whose times were asked for; names of a graph are one text each */
    const char *of;
    bool of_here; /* whether it is this one */
} asking;

void cd_node_cost_known(cd_node_cost_entry *n, double seconds, cd_cost_source from) {
    n->seconds = n->low_s = n->high_s = seconds;
    n->spread = 0;
    n->source = from;
    n->why = NULL;
}

static bool is_time(double s) { return isfinite(s) && s >= 0; }

/* ---- times of the file ---- */
const char *cd_node_cost_times_of(const cd_network_graph *g, uint32_t node) {
    return g->node[node].device ? g->node[node].device : g->device;
}

/* Is it this device that the node's time was measured on? A file that does not say is believed. */
static bool is_of_here(asking *k, uint32_t node) {
    const char *of = cd_node_cost_times_of(k->g, node);
    if (!of || !k->a->device || k->a->any_times) return true;
    if (k->of != of) k->of_here = cd_device_table_same(k->a->devices, of, k->a->device);
    k->of = of;
    return k->of_here;
}

static bool has_time(asking *k, uint32_t node) {
    return is_time(k->g->node[node].given_s) && is_of_here(k, node);
}

/* "no schedule for its task; its time in the file is of h100, not of v100" */
static const char *of_another(asking *k, uint32_t node, const char *why) {
    cd_buf b = {0};
    if (why) cd_buf_putf(&b, "%s; ", why);
    cd_buf_putf(&b, "its time in the file is of %s, not of %s", cd_node_cost_times_of(k->g, node),
                k->a->device);
    const char *s = b.oom ? NULL : cd_str_dup(&k->c->arena, (cd_str){b.p, b.n});
    cd_buf_free(&b);
    return s ? s : why;
}

/* Nobody can score it: the file's time if it has one of this device. */
static void give_up(asking *k, uint32_t node, const char *why) {
    const cd_network_node *g = &k->g->node[node];
    cd_node_cost_entry *n = &k->c->node[node];
    if (has_time(k, node)) cd_node_cost_known(n, g->given_s, CD_COST_GIVEN);
    n->why = is_time(g->given_s) && !is_of_here(k, node) ? of_another(k, node, why) : why;
}

static const char *text(cd_arena *a, const char *p, cdmpp_err *err) {
    char *q = cd_str_dup(a, (cd_str){p, strlen(p)});
    if (!q) cd_err_raise(err, CDMPP_ENOMEM, __FILE__, __LINE__, "reason");
    return q;
}

/* ---- questions ---- */
static const cd_schedule_db_entry *schedule_of(const asking *k, const char *key) {
    return k->a->schedules && key ? cd_schedule_db_find(k->a->schedules, key) : NULL;
}

/* Equal tasks have one time; the number of the first of them tells them apart from all others. */
static bool is_narrow(asking *k, uint32_t i) {
    const cd_network_node *n = &k->g->node[i];
    if (!k->a->narrow || !k->device || n->kind != CD_NODE_TASK || k->a->from_records) return false;
    return cd_node_cost_narrow(k->a->narrow,
                               cd_task_registry_find(k->a->tasks, (cd_str){n->key, strlen(n->key)}),
                               k->device, &k->c->node[i]);
}

/* Does the node need a model? Else its time is there, or the reason why there is none. */
static bool is_question(asking *k, uint32_t i) {
    const cd_network_node *n = &k->g->node[i];
    cd_node_cost_entry *c = &k->c->node[i];
    const cd_schedule_db_entry *s = n->kind == CD_NODE_TASK ? schedule_of(k, n->key) : NULL;
    if (s) c->schedule = s->origin;
    if (n->kind == CD_NODE_FREE) cd_node_cost_known(c, 0, CD_COST_FREE);
    else if (k->a->from_given && has_time(k, i)) cd_node_cost_known(c, n->given_s, CD_COST_GIVEN);
    else if (n->kind == CD_NODE_GIVEN) give_up(k, i, NULL);
    else if (n->kind == CD_NODE_UNKNOWN) give_up(k, i, n->why ? n->why : "unknown operator");
    else if (is_narrow(k, i)) return false;
    else if (n->kind == CD_NODE_LIBRARY && !k->a->opmodel)
        give_up(k, i, "no model of library operators (cdmpp-train, data.kind: operators)");
    else if (n->kind == CD_NODE_LIBRARY && !k->device)
        give_up(k, i, "no description of the device");
    else if (n->kind == CD_NODE_LIBRARY) return true;
    else if (!k->a->model && !k->a->from_records) give_up(k, i, "no model of programs");
    else if (!s && k->a->from_given)
        give_up(k, i,
                "the graph has no time of it, and no --schedules or --records has a schedule of "
                "its task");
    else if (!s && k->a->from_records)
        give_up(k, i,
                "no record of its task (--records or --schedules names logs that have it; "
                "--from-records predicts nothing)");
    else if (!s && k->a->tried)
        give_up(k, i,
                "none of the candidates of its task is a program for the device (--trials N draws "
                "more)");
    else if (!s)
        give_up(k, i,
                "no schedule for its task (--trials N chooses one; --schedules reads what "
                "cdmpp-tune --best wrote, which has all)");
    else if (k->a->from_records && is_time(s->measured_s))
        cd_node_cost_known(c, s->measured_s, CD_COST_RECORD);
    else if (k->a->from_records) give_up(k, i, "its schedule was never measured");
    else return true;
    return false;
}

static int by_question(const void *a, const void *b) {
    const question *x = a, *y = b;
    int c = !x->key - !y->key;
    if (!c && x->key) c = strcmp(x->key, y->key);
    if (!c && !x->key) c = (x->hash > y->hash) - (x->hash < y->hash);
    return c ? c : (x->node > y->node) - (x->node < y->node);
}

static bool same(const question *x, const question *y) {
    if (!x->key != !y->key) return false;
    return x->key ? !strcmp(x->key, y->key)
                  : x->hash == y->hash && cd_library_op_record_same(x->op, y->op);
}

static cdmpp_status find_questions(asking *k, cdmpp_err *err) {
    k->q = cd_mem_zalloc((size_t)k->g->n_node + 1, sizeof *k->q);
    if (!k->q) return CD_FAIL(err, ENOMEM, "%u nodes", k->g->n_node);
    for (uint32_t i = 0; i < k->g->n_node; i++) {
        const cd_network_node *n = &k->g->node[i];
        k->c->node[i] = (cd_node_cost_entry){.seconds = NAN,
                                             .low_s = NAN,
                                             .high_s = NAN,
                                             .like = UINT32_MAX,
                                             .source = CD_COST_MISSING};
        if (!is_question(k, i)) continue;
        const bool lib = n->kind == CD_NODE_LIBRARY;
        k->q[k->n_q++] = (question){lib ? NULL : n->key, lib ? n->question : NULL,
                                    lib ? cd_library_op_record_key(n->question, 0) : 0, i};
    }
    qsort(k->q, k->n_q, sizeof *k->q, by_question);
    return CDMPP_OK;
}

/* The end of the run of equal questions from `at`. */
static uint32_t run_of(const asking *k, uint32_t at) {
    uint32_t end = at + 1;
    while (end < k->n_q && same(&k->q[at], &k->q[end])) end++;
    return end;
}

/* ---- answers ---- */
static bool knows(const asking *k, const char *key, const cd_scored *o) {
    return cd_node_cost_bias_knows(&k->best, key, cd_model_device(k->a->model, o->which.device));
}

/* Of an unlike program the network counts with an error as large as its own interval says, so that
 * both agree. */
static double as_wide(const cd_node_cost_entry *n, double rel_std) {
    const double z = 1.6448536269514722; /* of the level 0.9 */
    return n->low_s > 0
               ? fmax(rel_std, fmax(log(n->high_s / n->seconds), log(n->seconds / n->low_s)) / z)
               : rel_std;
}

/* What is added up wants no answer of least mean |error| (latency_s), which lies below the median:
 *   calib.h (4). Of a
 * schedule that was measured fastest, the median times what training found for such, and where it
 * found nothing the median: that it was chosen makes it faster than the mean, nobody knows by how
 * much. Of others the mean; of a machine that the model is corrected for, what such take over the
 * median. */
void cd_node_cost_predicted(cd_node_cost_entry *n, const cd_node_cost_fastest *f,
                            const cd_model_prediction *p, double least_s) {
    /* else nothing tells how far off it is: no interval, here and of all that it is a part of */
    const bool sure = p->rel_std >= 0;
    const double ratio = f->chosen ? f->ratio : 1, s = f->chosen          ? f->spread
                                                       : p->like_std >= 0 ? p->like_std
                                                                          : 0;
    n->seconds = !(p->median_s > 0) ? p->latency_s
                 : f->measured      ? p->median_s * ratio
                                    : p->median_s * (f->picks > 0 ? f->picks : exp(s * s / 2));
    n->low_s = sure ? fmin(p->low_s * ratio, n->seconds) : (double)NAN;
    n->high_s = sure ? fmax(p->high_s * ratio, n->seconds) : (double)NAN;
    n->flags = p->flags;
    n->reason = p->reason;
    n->source = CD_COST_MODEL;
    n->least_s = least_s;
    cd_node_cost_at_least(n);
    n->spread = sure && p->reason    ? fmax(s, as_wide(n, p->rel_std))
                : sure && !f->chosen ? fmax(s, p->rel_std)
                                     : s;
}

/* What stands for the device is of its kind: its times are taken for the device's, and so bound by
 * the device's own peaks. The stand-in's bound its own times alone: the device may be faster. One
 * of another kind is scaled first. */
static double least_here(const asking *k, const cd_scored *o) {
    const cd_device *of = NULL;
    if (!k->a->stands || !k->device || !o->task || !o->task->dag) return o->least_s;
    if (cd_device_table_find(k->a->devices, k->a->stands, &of, NULL) || of->kind != k->device->kind)
        return o->least_s;
    return cd_device_least_s(k->device, &o->task->dag->least);
}

/* Its slower ones are scored, too, where the log has them: base/core/order_stat.h. One that no
 * model scores is left out. */
static cdmpp_status among_slower(asking *k, cd_scorer *s, const cd_schedule_db_entry *x,
                                 double median_s, bool known, cd_node_cost_fastest *f,
                                 cdmpp_err *err) {
    cd_scored o[CD_SCHEDULE_DB_SLOWER];
    double log_s[CD_SCHEDULE_DB_SLOWER + 1] = {log(median_s)};
    size_t n = 1;
    cd_scorer_start(s);
    for (uint32_t i = 0; i < x->n_slower; i++)
        CD_TRY(cd_scorer_line(
            s, &(cd_predict_line){x->slower[i].line, x->slower[i].len, x->origin, 1}, &o[i], err));
    CD_TRY(cd_scorer_finish(s, err));
    for (uint32_t i = 0; i < x->n_slower; i++)
        if (!o[i].st && o[i].pred.median_s > 0) log_s[n++] = log(o[i].pred.median_s);
    if (n < 2) return CDMPP_OK;
    f->ratio = exp(cd_node_cost_bias_correct(&k->best, known, log_s, n,
                                             (double)x->of_slower / (double)(n - 1)) -
                   log_s[0]);
    f->spread = k->best.among_spread[known];
    return CDMPP_OK;
}

static cdmpp_status find_fastest(asking *k, cd_scorer *s, const char *key, const cd_scored *o,
                                 cd_node_cost_fastest *f, cdmpp_err *err) {
    const cd_schedule_db_entry *x = schedule_of(k, key);
    *f = (cd_node_cost_fastest){.ratio = 1, .picks = k->best.picks};
    if (o->st || !isfinite(x->measured_s)) return CDMPP_OK;
    const bool known = knows(k, key, o);
    *f = (cd_node_cost_fastest){true, k->best.spread[known] >= 0, k->best.ratio[known],
                                k->best.spread[known], k->best.picks};
    if (!f->chosen || !(k->best.within[known] > 0) || !x->n_slower || !(o->pred.median_s > 0))
        return CDMPP_OK;
    return among_slower(k, s, x, o->pred.median_s, known, f, err);
}

static cdmpp_status answer(asking *k, uint32_t beg, uint32_t end, const cd_scored *o,
                           const cd_node_cost_fastest *f, uint32_t like, cdmpp_err *err) {
    char why[512];
    const char *reason = NULL, *unlike = NULL;
    if (o->st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "schedule");
    if (o->st && !(reason = text(&k->c->arena, cdmpp_err_format(&o->err, why, sizeof why), err)))
        return CDMPP_ENOMEM;
    if (!o->st && o->unlike.reason && !(unlike = text(&k->c->arena, o->unlike.text, err)))
        return CDMPP_ENOMEM;
    for (uint32_t j = beg; j < end; j++) {
        cd_node_cost_entry *n = &k->c->node[k->q[j].node];
        if (o->st) give_up(k, k->q[j].node, reason);
        else cd_node_cost_predicted(n, f, &o->pred, least_here(k, o));
        n->unlike = unlike;
        cd_node_cost_at_least(n);
        n->like = o->st ? UINT32_MAX : like;
    }
    return CDMPP_OK;
}

/* The runs from `at`, at most CHUNK of them; *next: behind them. */
static cdmpp_status score_chunk(asking *k, cd_scorer *s, cd_scored *o, uint32_t at, uint32_t *next,
                                uint32_t *like, cdmpp_err *err) {
    uint32_t n = 0, end = at;
    cd_scorer_start(s);
    for (; n < CHUNK && end < k->n_q && k->q[end].key; end = run_of(k, end), n++) {
        const cd_schedule_db_entry *x = schedule_of(k, k->q[end].key);
        CD_TRY(cd_scorer_line(s, &(cd_predict_line){x->line, x->len, x->origin, 1}, &o[n], err));
    }
    CD_TRY(cd_scorer_finish(s, err));
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t stop = run_of(k, at);
        cd_node_cost_fastest f;
        CD_TRY(find_fastest(k, s, k->q[at].key, &o[i], &f, err));
        CD_TRY(answer(k, at, stop, &o[i], &f, (*like)++, err));
        at = stop;
    }
    *next = end;
    return CDMPP_OK;
}

static cdmpp_status score_tasks(asking *k, uint32_t *at, uint32_t *like, cdmpp_err *err) {
    const cd_scorer_options o = {.which = {.device = k->a->stands ? k->a->stands : k->a->device},
                                 .uncorrected = k->a->stands != NULL,
                                 .numbers = k->a->numbers,
                                 .peaks = k->a->devices};
    cd_scorer *s = NULL;
    if (!k->n_q || !k->q[0].key) return CDMPP_OK;
    cd_scored *out = cd_mem_zalloc(CHUNK, sizeof *out);
    if (!out) return CD_FAIL(err, ENOMEM, "%d schedules", CHUNK);
    cdmpp_status st = cd_scorer_new(k->a->model, k->a->tasks, &o, &s, err);
    while (!st && *at < k->n_q && k->q[*at].key) st = score_chunk(k, s, out, *at, at, like, err);
    cd_scorer_free(s);
    cd_mem_free(out);
    return st;
}

/* One call each: a family that was not trained is the reason of its own operators only. */
static cdmpp_status score_library(asking *k, uint32_t at, uint32_t like, cdmpp_err *err) {
    cd_node_cost_wait wait = {0};
    for (uint32_t end; at < k->n_q; at = end, like++) {
        cd_node_cost_entry answer = {.low_s = NAN};
        cdmpp_err why = {0};
        char line[512];
        const char *reason = NULL;
        end = run_of(k, at);
        const cdmpp_status st =
            cd_node_cost_library(k->a->opmodel, k->q[at].op, k->device, &wait, &answer, &why);
        if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "library operator");
        if (st && !(reason = text(&k->c->arena, cdmpp_err_format(&why, line, sizeof line), err)))
            return CDMPP_ENOMEM;
        for (uint32_t j = at; j < end; j++) {
            cd_node_cost_entry *n = &k->c->node[k->q[j].node];
            if (st) give_up(k, k->q[j].node, reason);
            else *n = answer;
            n->like = st ? UINT32_MAX : like;
        }
    }
    return CDMPP_OK;
}

/* ---- all ---- */
void cd_node_cost_tally(cd_node_cost *c, const cd_network_graph *g) {
    double flop = 0, lost = 0, number = 0;
    bool counted = true;
    c->n_missing = c->n_given = c->n_model = c->n_library = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        const cd_network_node *n = &g->node[i];
        const bool gone = c->node[i].source == CD_COST_MISSING;
        const double runs = (double)n->repeat;
        if (gone && n->repeat == 0) continue;
        c->n_missing += gone;
        c->n_given += c->node[i].source == CD_COST_GIVEN;
        c->n_model += c->node[i].source == CD_COST_MODEL;
        c->n_library += c->node[i].source == CD_COST_LIBRARY;
        if (c->node[i].source == CD_COST_FREE) continue;
        number += runs;
        if (!(n->flop >= 0)) counted = false;
        else flop += n->flop * runs;
        if (gone) lost += n->flop >= 0 ? n->flop * runs : 0;
    }
    c->missing_share = 0;
    c->missing_of_work = c->n_missing && counted && flop > 0 && lost > 0;
    if (!c->n_missing) return;
    if (c->missing_of_work) {
        c->missing_share = lost / flop;
        return;
    }
    for (uint32_t i = 0; i < c->n; i++)
        c->missing_share +=
            c->node[i].source == CD_COST_MISSING ? (double)g->node[i].repeat / number : 0;
}

/* A name that neither model knows is refused; where only the other kind of nodes is there, that
 * kind's model decides. */
static cdmpp_status check_device(const asking *k, cdmpp_err *err) {
    const cd_node_cost_options *a = k->a;
    char list[160];
    size_t n = 0;
    if (!a->device || !a->model || a->stands ||
        cd_model_find_device(a->model, a->device, strlen(a->device)) >= 0)
        return CDMPP_OK;
    bool tasks = false, library = false;
    for (uint32_t i = 0; i < k->n_q; i++) *(k->q[i].key ? &tasks : &library) = true;
    if (!tasks || (library && k->device)) return CDMPP_OK;
    list[0] = 0;
    for (size_t i = 0; i < cd_model_n_device(a->model) && n < sizeof list; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "",
                              cd_model_device(a->model, i));
    return CD_FAIL(err, EMODEL, "no model of device %s; known: %s", a->device, list);
}

static void add_places(const asking *k) {
    k->c->traffic = 0;
    for (uint32_t i = 0; i < k->c->n; i++) {
        const int64_t moved = cd_node_cost_moved(k->g, k->a->tasks, i, &k->c->node[i].bytes);
        if (moved > 0) k->c->traffic += (double)moved * (double)k->g->node[i].repeat;
        k->c->node[i].moved = moved;
    }
    const char *whose = cd_network_cost_whose(k->a->costs, k->a->device, k->device, k->a->stands);
    const cd_node_cost_bytes bytes = {k->c->traffic, cd_node_cost_weights(k->g)};
    const cd_node_cost_scaling_law law = cd_node_cost_law(k->a->costs, whose, k->device, bytes);
    if (!k->a->alone) cd_node_cost_in_place(k->c, k->g, &law);
    if (!k->a->alone) cd_node_cost_refill(k->c, k->g, k->a->refill_bytes_per_s);
    for (uint32_t i = 0; i < k->c->n; i++) {
        cd_node_cost_entry *n = &k->c->node[i];
        if (n->source != CD_COST_MISSING)
            n->memory_share = cd_node_cost_share(n->moved, n->seconds, k->device);
    }
}

/* The model may know the device by an alias, or the user asks by one. */
static const char *name_in_model(const asking *k) {
    const char *asked = k->a->stands ? k->a->stands : k->a->device;
    const int at = asked ? cd_model_find_device(k->a->model, asked, strlen(asked)) : -1;
    return at >= 0 ? cd_model_device(k->a->model, (size_t)at) : k->device ? k->device->name : asked;
}

const cd_device *cd_node_cost_device(const cd_device_table *devices, const cd_model *m,
                                     const char *name) {
    const cd_device *d = NULL;
    if (!devices || !name || !cd_device_table_find(devices, name, &d, NULL)) return d;
    const int at = m ? cd_model_find_device(m, name, strlen(name)) : -1;
    const uint32_t stands = at < 0 ? 0 : cd_model_stands_for(m, (uint32_t)at);
    if (at < 0 || stands == (uint32_t)at) return NULL;
    return cd_device_table_find(devices, cd_model_device(m, stands), &d, NULL) ? NULL : d;
}

/* The steps of an estimate, in the order in which each needs the one before. */
static cdmpp_status fill(asking *k, cdmpp_err *err) {
    uint32_t at = 0, like = 0;
    k->c->n = k->g->n_node;
    k->c->node = CD_NEWN(&k->c->arena, cd_node_cost_entry, (size_t)k->c->n + 1);
    if (!k->c->node) return CD_FAIL(err, ENOMEM, "%u nodes", k->c->n);
    k->device = cd_node_cost_device(k->a->devices, k->a->model, k->a->device);
    if (k->a->model) CD_TRY(cd_node_cost_bias_read(k->a->model, name_in_model(k), &k->best, err));
    if (k->a->stands) k->best.picks = 0; /* its answers are not corrected */
    CD_TRY(find_questions(k, err));
    CD_TRY(check_device(k, err));
    CD_TRY(score_tasks(k, &at, &like, err));
    CD_TRY(score_library(k, at, like, err));
    if (k->a->narrow) cd_node_cost_narrow_alike(k->c, k->g, like + k->n_q);
    add_places(k);
    cd_node_cost_tally(k->c, k->g);
    return CDMPP_OK;
}

cdmpp_status cd_node_cost_of(const cd_network_graph *g, const cd_node_cost_options *a,
                             cd_node_cost **out, cdmpp_err *err) {
    cd_node_cost *c = cd_mem_zalloc(1, sizeof *c);
    if (!c) return CD_FAIL(err, ENOMEM, "costs");
    asking k = {.g = g, .a = a, .c = c};
    const cdmpp_status st = fill(&k, err);
    cd_node_cost_bias_free(&k.best);
    cd_mem_free(k.q);
    if (st) cd_node_cost_free(c);
    else *out = c;
    return st;
}

void cd_node_cost_free(cd_node_cost *c) {
    if (!c) return;
    cd_arena_free(&c->arena);
    cd_mem_free(c);
}

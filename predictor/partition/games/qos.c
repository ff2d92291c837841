/* The queue of queries, event by event: an arrival, or the end of a query that runs. Between two
 * events the speed of every query is constant. */
#include "predictor/partition/games/qos.h"

#include <math.h>
#include <string.h>

#include "base/text/text.h"
#include "learner/inputs/inputs.h"

/* What a simulation of queries found, as a table and as JSON. */

static const char *const policy_report[] = {"fifo", "edf", "upper", "bound"};

void cd_qos_print(const cd_qos_file *f, const cd_qos_options *o, const cd_qos_result *result,
                  cd_buf *b) {
    cd_buf_puts(b,
                "query                      weight   predicted        low       high   deadline\n");
    for (uint32_t k = 0; k < f->n; k++) {
        const cd_qos_kind *q = &f->kind[k];
        const double t[] = {q->seconds, q->low_s, q->high_s, q->deadline_s};
        cd_buf_putf(b, "%-24s %8.4g", q->name, q->weight);
        for (int i = 0; i < 4; i++) {
            cd_buf_puts(b, i ? " " : "  ");
            cd_units_put_seconds_wide(b, t[i]);
        }
        cd_buf_puts(b, "\n");
    }
    cd_buf_putf(b, "\n%u runs of %u queries on %u places, ", o->runs, o->queries, o->places);
    if (o->arrival) cd_buf_puts(b, "the same arrivals in each");
    else cd_buf_putf(b, "load %g", o->load);
    cd_buf_putf(b, "%s\n\n", f->exact ? "; no intervals: times are taken as exact" : "");
    cd_buf_puts(b, "policy  admitted        late  late runs   in time/s       wait        p50      "
                   "  p95        p99   busy\n");
    for (int p = 0; p < CD_QOS_N_POLICY; p++) {
        const cd_qos_result *r = &result[p];
        const double t[] = {r->mean_wait_s, r->p50_s, r->p95_s, r->p99_s};
        cd_buf_putf(b, "%-6s  %6.2f %%  %10llu %10u  %10.4g", policy_report[p],
                    100.0 * (double)r->admitted / (double)r->arrived, (unsigned long long)r->late,
                    r->late_runs, r->goodput);
        for (int i = 0; i < 4; i++) {
            cd_buf_puts(b, " ");
            cd_units_put_seconds_wide(b, t[i]);
        }
        cd_buf_putf(b, " %4.0f %%\n", 100 * r->busy);
    }
}

static void put_kinds(const cd_qos_file *f, cd_json_writer *w) {
    cd_json_write_key(w, "queries");
    cd_json_write_open(w, '[');
    for (uint32_t k = 0; k < f->n; k++) {
        const cd_qos_kind *q = &f->kind[k];
        cd_json_write_open(w, '{');
        cd_json_write_member_str(w, "name", q->name);
        cd_json_write_member_real(w, "weight", q->weight);
        cd_json_write_member_real(w, "seconds", q->seconds);
        cd_json_write_member_real(w, "low_s", q->low_s);
        cd_json_write_member_real(w, "high_s", q->high_s);
        cd_json_write_member_real(w, "deadline_s", q->deadline_s);
        cd_json_write_close(w, '}');
    }
    cd_json_write_close(w, ']');
}

static void put_policy(const cd_qos_result *r, const char *name, cd_json_writer *w) {
    cd_json_write_open(w, '{');
    cd_json_write_member_str(w, "policy", name);
    cd_json_write_member_int(w, "arrived", (int64_t)r->arrived);
    cd_json_write_member_int(w, "admitted", (int64_t)r->admitted);
    cd_json_write_member_int(w, "late", (int64_t)r->late);
    cd_json_write_member_int(w, "late_runs", r->late_runs);
    cd_json_write_member_real(w, "in_time_per_s", r->goodput);
    cd_json_write_member_real(w, "mean_wait_s", r->mean_wait_s);
    cd_json_write_member_real(w, "p50_s", r->p50_s);
    cd_json_write_member_real(w, "p95_s", r->p95_s);
    cd_json_write_member_real(w, "p99_s", r->p99_s);
    cd_json_write_member_real(w, "busy", r->busy);
    cd_json_write_close(w, '}');
}

void cd_qos_print_json(const cd_qos_file *f, const cd_qos_options *o, const cd_qos_result *result,
                       cd_buf *out) {
    cd_json_writer w = {.out = out};
    cd_json_write_open(&w, '{');
    cd_json_write_member_int(&w, "places", o->places);
    cd_json_write_member_real(&w, "load", o->arrival ? (double)NAN : o->load);
    cd_json_write_member_int(&w, "runs", o->runs);
    cd_json_write_member_int(&w, "queries_per_run", o->queries);
    cd_json_write_member_real(&w, "level", o->level);
    cd_json_write_member_real(&w, "risk", o->risk);
    cd_json_write_member_bool(&w, "exact", f->exact);
    put_kinds(f, &w);
    cd_json_write_key(&w, "policies");
    cd_json_write_open(&w, '[');
    for (int p = 0; p < CD_QOS_N_POLICY; p++) put_policy(&result[p], policy_report[p], &w);
    cd_json_write_close(&w, ']');
    cd_json_write_close(&w, '}');
}

typedef struct {
    uint32_t kind;
    double arrived_s, deadline_s; /* on the clock of the run */
    double left_s;                /* of its time alone */
    /* it is over by then, where it takes its upper time; 0: it does not run */
    double until_s;
    double slow; /* now, beside the others that run */
} query;

typedef struct {
    const cd_qos_kind *kind;
    uint32_t n;
    const cd_qos_options *o;
    cd_qos_policy policy;
    cd_qos_result *out;
    cdmpp_err *err;
    double upper_s[CD_QOS_KINDS]; /* on the clock: beside the worst company */
    double sum_weight, rate;      /* arrivals per second */
    query *queue;                 /* (o->queries) those that wait, the next one first */
    uint32_t n_queue, n_running, run, drawn;
    query running[CD_QOS_PLACES];
    double now_s, next_s; /* next_s: of the next arrival */
    double *latency_s;    /* (admitted so far) */
    double wait_s, busy_s, length_s;
    uint64_t late_of_run;
} sim;

/* ---- a kind's time ---- */

static double sigma(double ratio, double level) {
    return log(ratio) / cd_normal_quantile((1 + level) / 2);
}
static double at_z(const cd_qos_kind *k, double level, double z) {
    if (k->low_s >= k->high_s) return k->seconds;
    return k->seconds * exp(z * (z < 0 ? sigma(k->seconds / k->low_s, level)
                                       : sigma(k->high_s / k->seconds, level)));
}

double cd_qos_quantile(const cd_qos_kind *k, double level, double p) {
    return at_z(k, level, cd_normal_quantile(p));
}

double cd_qos_mean(const cd_qos_kind *k, double level) {
    if (k->low_s >= k->high_s) return k->seconds;
    const double below = sigma(k->seconds / k->low_s, level),
                 above = sigma(k->high_s / k->seconds, level);
    return k->seconds * (exp(below * below / 2) * cd_normal_cdf(-below) +
                         exp(above * above / 2) * cd_normal_cdf(above));
}

/* ---- how they slow each other ---- */

static double share(const sim *s, uint32_t kind) {
    return cd_contention_share(s->kind[kind].bytes, s->kind[kind].seconds,
                               s->o->contention.peak_bytes_per_s);
}

/* Sets `slow` of all that run. */
static cdmpp_status factors(sim *s) {
    uint32_t op[CD_QOS_PLACES];
    double slow[CD_QOS_PLACES], sum = 0;
    for (uint32_t k = 0; k < s->n_running; k++) {
        op[k] = s->kind[s->running[k].kind].op;
        sum += share(s, s->running[k].kind);
    }
    if (s->o->pairs && s->n_running)
        CD_TRY(cd_corun_table_group(s->o->pairs, op, s->n_running, s->n_running, slow, s->err));
    for (uint32_t k = 0; k < s->n_running; k++)
        s->running[k].slow =
            s->o->pairs ? fmax(1, slow[k])
                        : cd_contention_slow(&s->o->contention, share(s, s->running[k].kind), sum,
                                             s->n_running - 1, false);
    return CDMPP_OK;
}

/* The largest factor of a kind in any company of places - 1 others. Of pairs: the company of the
 * worst one alone, times what the memory adds; by the law: that with the largest shares. */
static cdmpp_status worst(const sim *s, uint32_t kind, double *out) {
    const uint32_t others = s->o->places - 1;
    double most = 0, excess = 0, slow[2];
    if (!others) return *out = 1, CDMPP_OK;
    if (!s->o->pairs) {
        for (uint32_t j = 0; j < s->n; j++) most = fmax(most, share(s, j));
        return *out = cd_contention_slow(&s->o->contention, share(s, kind),
                                         share(s, kind) + others * most, others, false),
               CDMPP_OK;
    }
    const cd_corun_table *t = s->o->pairs;
    const double peak = t->fit.peak_bytes_per_s;
    const uint32_t me = s->kind[kind].op;
    const double mine = cd_contention_share(t->bytes[me], t->seconds[me], peak);
    for (uint32_t j = 0; j < s->n; j++) {
        const uint32_t you = s->kind[j].op;
        const double yours = cd_contention_share(t->bytes[you], t->seconds[you], peak);
        CD_TRY(cd_corun_table_group(t, (const uint32_t[]){me, you}, 2, 2, slow, s->err));
        excess =
            fmax(excess, slow[0] / cd_contention_slow(&t->fit, mine, mine + yours, 0, false) - 1);
        most = fmax(most, yours);
    }
    *out =
        (1 + others * excess) * cd_contention_slow(&t->fit, mine, mine + others * most, 0, false);
    return CDMPP_OK;
}

static cdmpp_status prepare(sim *s) {
    const cd_qos_options *o = s->o;
    const double p = s->policy == CD_QOS_BOUND ? 1 - o->risk / o->queries : (1 + o->level) / 2;
    double mean = 0, slow;
    for (uint32_t k = 0; k < s->n; k++) {
        CD_TRY(worst(s, k, &slow));
        s->upper_s[k] = cd_qos_quantile(&s->kind[k], o->level, p) * slow;
        s->sum_weight += s->kind[k].weight;
        mean += s->kind[k].weight * cd_qos_mean(&s->kind[k], o->level);
    }
    s->rate = o->load * o->places * s->sum_weight / mean;
    return CDMPP_OK;
}

/* ---- draws: each query has numbers of its own, the same for all policies ---- */

enum { GAP, KIND, TIME, STREAMS };
static double unit(const sim *s, int what) {
    return cd_rng_unit(s->o->seed,
                       ((uint64_t)s->run * s->o->queries + s->drawn) * STREAMS + (uint64_t)what);
}

static query draw(sim *s) {
    query q = {.arrived_s = s->next_s, .slow = 1};
    double w = unit(s, KIND) * s->sum_weight;
    while (q.kind + 1 < s->n && w >= s->kind[q.kind].weight) w -= s->kind[q.kind++].weight;
    if (s->o->arrival) q.kind = s->o->arrival[s->drawn].kind;
    const double u = s->o->draw == CD_QOS_DRAW_QUERY
                         ? unit(s, TIME)
                         : cd_rng_unit(cd_rng_at(s->o->seed, s->run), q.kind);
    q.left_s = cd_qos_quantile(&s->kind[q.kind], s->o->level, fmin(fmax(u, 1e-16), 1 - 1e-16));
    q.deadline_s = q.arrived_s + s->kind[q.kind].deadline_s;
    return q;
}

/* The time of the next arrival; infinite behind the last one. */
static void next_arrival(sim *s) {
    if (s->drawn >= s->o->queries) s->next_s = (double)INFINITY;
    else
        s->next_s = s->o->arrival ? s->o->arrival[s->drawn].at_s
                                  : s->next_s - log1p(-unit(s, GAP)) / s->rate;
}

/* ---- admission ---- */

static void insert(sim *s, const query *q) {
    uint32_t at = s->n_queue++;
    for (; at && s->policy != CD_QOS_FIFO && s->queue[at - 1].deadline_s > q->deadline_s; at--)
        s->queue[at] = s->queue[at - 1];
    s->queue[at] = *q;
}

static void take_out(sim *s, uint32_t at) {
    memmove(s->queue + at, s->queue + at + 1, (--s->n_queue - at) * sizeof *s->queue);
}

/* True: all that wait meet their deadlines, where each takes its upper time. One that runs and is
 * over its own is taken to begin again. */
static bool feasible(const sim *s) {
    double until[CD_QOS_PLACES];
    for (uint32_t k = 0; k < s->o->places; k++) {
        until[k] = s->now_s;
        if (k < s->n_running)
            until[k] = s->running[k].until_s > s->now_s ? s->running[k].until_s
                                                        : s->now_s + s->upper_s[s->running[k].kind];
    }
    for (uint32_t i = 0; i < s->n_queue; i++) {
        uint32_t first = 0;
        for (uint32_t k = 1; k < s->o->places; k++)
            if (until[k] < until[first]) first = k;
        until[first] += s->upper_s[s->queue[i].kind];
        if (until[first] > s->queue[i].deadline_s) return false;
    }
    return true;
}

static bool same(const query *a, const query *b) {
    return a->arrived_s == b->arrived_s && a->kind == b->kind;
}

static void arrive(sim *s) {
    const query q = draw(s);
    s->drawn++;
    s->out->arrived++;
    insert(s, &q);
    if (s->policy >= CD_QOS_UPPER && !feasible(s)) {
        uint32_t at = 0;
        while (!same(&s->queue[at], &q)) at++;
        take_out(s, at);
        return;
    }
    s->out->admitted++;
}

/* ---- the events ---- */

static void start(sim *s) {
    while (s->n_queue && s->n_running < s->o->places) {
        query q = s->queue[0];
        take_out(s, 0);
        s->wait_s += s->now_s - q.arrived_s;
        q.until_s = s->now_s + s->upper_s[q.kind];
        s->running[s->n_running++] = q;
    }
}

static void finish(sim *s, uint32_t k, uint64_t *n_done) {
    const query *q = &s->running[k];
    s->latency_s[(*n_done)++] = s->now_s - q->arrived_s;
    s->late_of_run += s->now_s > q->deadline_s * (1 + 1e-12);
    s->running[k] = s->running[--s->n_running];
}

/* Until the next event, which is done. */
static cdmpp_status step(sim *s, uint64_t *n_done) {
    uint32_t first = UINT32_MAX;
    double at = s->next_s;
    CD_TRY(factors(s));
    for (uint32_t k = 0; k < s->n_running; k++) {
        const double end = s->now_s + s->running[k].left_s * s->running[k].slow;
        if (end <= at) at = end, first = k;
    }
    for (uint32_t k = 0; k < s->n_running; k++)
        s->running[k].left_s -= (at - s->now_s) / s->running[k].slow;
    s->busy_s += s->n_running * (at - s->now_s);
    s->now_s = at;
    if (first != UINT32_MAX) finish(s, first, n_done);
    else {
        arrive(s);
        next_arrival(s);
    }
    start(s);
    return CDMPP_OK;
}

static cdmpp_status one_run(sim *s, uint64_t *n_done) {
    s->n_queue = s->n_running = s->drawn = 0;
    s->now_s = s->next_s = 0;
    s->late_of_run = 0;
    next_arrival(s);
    while (isfinite(s->next_s) || s->n_running) CD_TRY(step(s, n_done));
    s->length_s += s->now_s;
    s->out->late += s->late_of_run;
    s->out->late_runs += s->late_of_run > 0;
    return CDMPP_OK;
}

/* ---- the whole ---- */

/* The least value that a part p of them does not exceed. */
static double quantile(const double *sorted, uint64_t n, double p) {
    return n ? sorted[(uint64_t)ceil(p * (double)n) - 1] : (double)NAN;
}

static void figures(sim *s, uint64_t n) {
    cd_qos_result *r = s->out;
    cd_sort_doubles(s->latency_s, n);
    r->p50_s = quantile(s->latency_s, n, 0.5);
    r->p95_s = quantile(s->latency_s, n, 0.95);
    r->p99_s = quantile(s->latency_s, n, 0.99);
    r->mean_wait_s = n ? s->wait_s / (double)n : (double)NAN;
    r->goodput = (double)(r->admitted - r->late) / s->length_s;
    r->busy = s->busy_s / (s->length_s * s->o->places);
}

static cdmpp_status all_runs(sim *s) {
    uint64_t n = 0;
    CD_TRY(prepare(s));
    for (s->run = 0; s->run < s->o->runs; s->run++) {
        if (s->o->stop && *s->o->stop)
            return CD_FAIL(s->err, EINTERRUPTED, "in run %u of %u", s->run, s->o->runs);
        CD_TRY(one_run(s, &n));
    }
    figures(s, n);
    return CDMPP_OK;
}

static cdmpp_status check(const cd_qos_kind *kind, uint32_t n, const cd_qos_options *o,
                          cdmpp_err *err) {
    if (!n || n > CD_QOS_KINDS)
        return CD_FAIL(err, ERANGE, "%u kinds of queries: 1 to %d are possible", n, CD_QOS_KINDS);
    if (!o->places || o->places > CD_QOS_PLACES || !(o->load > 0) || !o->queries || !o->runs)
        return CD_FAIL(err, ERANGE, "%u places, load %g, %u queries, %u runs", o->places, o->load,
                       o->queries, o->runs);
    if (!(o->level > 0 && o->level < 1) || !(o->risk > 0 && o->risk < 1))
        return CD_FAIL(err, ERANGE, "level %g, risk %g: expected numbers between 0 and 1", o->level,
                       o->risk);
    for (uint32_t k = 0; k < n; k++)
        if (!(kind[k].seconds > 0 && kind[k].low_s > 0 && kind[k].low_s <= kind[k].seconds &&
              kind[k].high_s >= kind[k].seconds && kind[k].deadline_s > 0 && kind[k].weight > 0 &&
              kind[k].bytes >= 0))
            return CD_FAIL(err, ERANGE,
                           "query %.60s: %g s in %g .. %g, deadline %g, weight %g, %g bytes",
                           kind[k].name, kind[k].seconds, kind[k].low_s, kind[k].high_s,
                           kind[k].deadline_s, kind[k].weight, kind[k].bytes);
    return CDMPP_OK;
}

cdmpp_status cd_qos_run(const cd_qos_kind *kind, uint32_t n, const cd_qos_options *o,
                        cd_qos_policy policy, cd_qos_result *out, cdmpp_err *err) {
    CD_TRY(check(kind, n, o, err));
    sim *s = cd_mem_zalloc(1, sizeof *s);
    if (!s) return CD_FAIL(err, ENOMEM, "simulation");
    *out = (cd_qos_result){0};
    s->kind = kind, s->n = n, s->o = o, s->policy = policy, s->out = out, s->err = err;
    s->queue = cd_mem_zalloc(o->queries, sizeof *s->queue);
    s->latency_s = cd_mem_zalloc((size_t)o->queries * o->runs, sizeof *s->latency_s);
    const cdmpp_status st =
        s->queue && s->latency_s
            ? all_runs(s)
            : (cdmpp_status)CD_FAIL(err, ENOMEM, "%u runs of %u queries", o->runs, o->queries);
    cd_mem_free(s->queue);
    cd_mem_free(s->latency_s);
    cd_mem_free(s);
    return st;
}

/* Estimates as JSON (docs/reference/replay.md). Numbers that are unknown are null, so that every
 * case has the same keys; keys of a comparison stand there only where the comparison was asked
 * for. */
#include <math.h>
#include <stdio.h>

#include "predictor/network_report/network_report_internal.h"

static void put_size(cd_json_writer *w, const char *key, int64_t v) {
    cd_json_write_key(w, key);
    if (v >= 0) cd_json_write_int(w, v);
    else cd_json_write_null(w);
}

/* ---- operators ---- */
static void put_op(const cd_network_estimate_case *c, uint32_t op, bool critical,
                   cd_json_writer *w) {
    const uint32_t node = c->net->of[op];
    const cd_node_cost_entry *n = cd_network_estimate_case_cost(c, node);
    const cd_network_node *v = &c->source->graph->node[node];
    const cd_replay_op *r = &c->net->net.op[op];
    const cd_replay_ran *ran = &c->replay.op[op];
    const cd_str source = cd_enum_names_at(CD_COST_SOURCES, (int)n->source);
    cd_json_write_open(w, '{');
    cd_json_write_member_str(w, "name", v->name);
    cd_json_write_member_str(w, "op", v->op);
    cd_json_write_member_str(w, "device", c->lane[r->device].name);
    cd_json_write_member_int(w, "worker", ran->worker);
    cd_json_write_member_int(w, "repeat", v->repeat);
    cd_json_write_member_real(w, "start_s", ran->start_s);
    cd_json_write_member_real(w, "end_s", ran->end_s);
    cd_json_write_member_real(w, "seconds", n->seconds);
    cd_json_write_member_real(w, "low_s", n->low_s);
    cd_json_write_member_real(w, "high_s", n->high_s);
    cd_json_write_member_real(w, "share", c->ops_s > 0 ? r->seconds / c->ops_s : 0);
    cd_json_write_member_bool(w, "critical", critical);
    cd_json_write_key(w, "source");
    cd_json_write_strn(w, source.p, source.n);
    cd_json_write_member_bool(w, "out_of_range", n->flags & CD_MODEL_OUT_OF_RANGE);
    if (n->alike) cd_json_write_member_str(w, "alike", n->alike);
    if (n->unlike) cd_json_write_member_str(w, "reason", n->unlike);
    cd_json_write_member_str(w, "workload_key", v->key);
    cd_json_write_member_str(w, "schedule", n->schedule);
    cd_json_write_member_real(w, "given_s", v->given_s);
    if (c->ran) {
        cd_json_write_member_real(w, "run_s", c->ran->node[node].place_s);
        cd_json_write_member_real(w, "run_alone_s", c->ran->node[node].alone_s);
    }
    cd_json_write_close(w, '}');
}

static void put_ops(const cd_network_estimate_case *c, cd_json_writer *w) {
    bool *critical = cd_network_estimate_critical(c);
    w->out->oom |= !critical;
    cd_json_write_key(w, "operators");
    cd_json_write_open(w, '[');
    for (uint32_t k = 0; critical && k < c->net->net.n_op; k++) put_op(c, k, critical[k], w);
    cd_json_write_close(w, ']');
    cd_mem_free(critical);
}

/* ---- a case ---- */
static void put_missing(const cd_network_estimate_case *c, cd_json_writer *w) {
    const cd_network_graph *g = c->source->graph;
    cd_json_write_key(w, "missing");
    cd_json_write_open(w, '[');
    for (uint32_t k = 0; k < g->n_node; k++) {
        const cd_node_cost_entry *n = cd_network_estimate_case_cost(c, k);
        if (n->source != CD_COST_MISSING || !g->node[k].repeat) continue;
        cd_json_write_open(w, '{');
        cd_json_write_member_str(w, "name", g->node[k].name);
        cd_json_write_member_str(w, "op", g->node[k].op);
        cd_json_write_member_str(w, "why", n->why);
        cd_json_write_close(w, '}');
    }
    cd_json_write_close(w, ']');
}

/* Nodes by the source of their time. A node that never runs needs no time: it counts as free. */
static void put_counts(const cd_network_estimate_case *c, cd_json_writer *w) {
    static const cd_cost_source kind[] = {CD_COST_MODEL,  CD_COST_LIBRARY, CD_COST_GIVEN,
                                          CD_COST_RECORD, CD_COST_SCALED,  CD_COST_FREE,
                                          CD_COST_MISSING};
    static const char *const name[] = {"model",  "library", "given",  "record",
                                       "scaled", "free",    "missing"};
    int64_t n[16] = {0};
    for (uint32_t k = 0; k < c->source->graph->n_node; k++)
        n[c->source->graph->node[k].repeat ? cd_network_estimate_case_cost(c, k)->source
                                           : CD_COST_FREE]++;
    cd_json_write_key(w, "nodes");
    cd_json_write_open(w, '{');
    for (size_t k = 0; k < sizeof kind / sizeof *kind; k++)
        cd_json_write_member_int(w, name[k], n[kind[k]]);
    cd_json_write_close(w, '}');
    cd_json_write_member_int(w, "tasks", (int64_t)c->n_task);
    cd_json_write_member_int(w, "tasks_without_schedule", (int64_t)c->n_bare);
}

/* What the estimate is compared with: measured times of the graph, the run here, the latency before
 * a what-if, prices. */
static void put_compared(const cd_network_report *p, const cd_network_estimate_case *c,
                         cd_json_writer *w) {
    if (!isnan(c->measured_s)) {
        cd_json_write_member_real(w, "measured_s", c->measured_s);
        cd_json_write_member_real(w, "measured_median_s", c->measured_median_s);
        cd_json_write_member_real(w, "error", cd_network_estimate_error(c, c->measured_s));
        cd_json_write_member_real(w, "error_of_median",
                                  cd_network_estimate_error(c, c->measured_median_s));
    }
    if (p->e->o->run) {
        cd_json_write_member_real(w, "run_s", c->run_s);
        cd_json_write_member_real(w, "run_error", cd_network_estimate_error(c, c->run_s));
        cd_json_write_member_real(w, "run_left", c->run_left > 0 ? c->run_left : (double)NAN);
        cd_json_write_member_real(w, "run_cold_s", c->ran ? c->ran->cold_s : (double)NAN);
        cd_json_write_member_int(w, "run_left_out", c->ran ? c->ran->n_left : 0);
        cd_json_write_member_int(w, "run_drawn", c->ran ? c->ran->n_sampled : 0);
    }
    if (p->e->o->what_if.n) cd_json_write_member_real(w, "before_s", c->before_s);
    if (p->energy) {
        cd_json_write_member_real(w, "power_w", cd_network_report_power(p, c));
        cd_json_write_member_real(w, "energy_j", cd_network_report_energy(p, c));
    }
    if (!p->prices) return;
    cd_json_write_member_real(w, "price_per_hour", cd_network_report_hour(p, c).per_hour);
    cd_json_write_member_real(w, "price_per_million", cd_network_report_price(p, c));
    cd_json_write_member_str(w, "currency", cd_network_report_hour(p, c).currency);
}

static void put_parallel(const cd_network_report *p, const cd_network_estimate_case *c,
                         cd_json_writer *w) {
    const cd_parallel_result *r = &c->cluster;
    if (!p->e->o->parallel) return;
    cd_json_write_key(w, "parallel");
    cd_json_write_open(w, '{');
    cd_json_write_member_str(w, "plan", p->e->o->parallel);
    cd_json_write_member_real(w, "latency_s", r->replay_s);
    cd_json_write_member_real(w, "closed_form_s", r->closed_s);
    cd_json_write_member_real(w, "one_device_s", r->one_s);
    cd_json_write_member_real(w, "links_s", r->sent_s);
    cd_json_write_member_int(w, "sent_bytes", r->sent_bytes);
    cd_json_write_member_int(w, "kept_micro_batches", r->kept);
    cd_json_write_close(w, '}');
}

/* ---- memory ---- */
static void put_use(const cd_network_estimate_use *u, cd_network_fits fits, cd_json_writer *w) {
    put_size(w, "peak_bytes", u->peak);
    put_size(w, "weight_bytes", u->weights);
    put_size(w, "memory_bytes", u->memory > 0 ? u->memory : -1);
    cd_json_write_key(w, "fits");
    if (fits == CD_NETWORK_FITS_UNKNOWN) cd_json_write_null(w);
    else cd_json_write_bool(w, fits == CD_NETWORK_FITS_YES);
}

static void put_places(const cd_network_estimate_case *c, cd_json_writer *w) {
    cd_json_write_key(w, "devices");
    cd_json_write_open(w, '[');
    for (uint32_t k = 0; k < c->n_place; k++) {
        cd_json_write_open(w, '{');
        cd_json_write_member_str(w, "device", c->place[k]->name);
        cd_json_write_member_real(w, "busy_s", c->replay.busy_s[k]);
        put_use(&c->use[k], cd_network_estimate_use_fits(&c->use[k]), w);
        cd_json_write_close(w, '}');
    }
    cd_json_write_close(w, ']');
}

/* Shares of the time with each reason; they may add up to more than unlike_share. */
static void put_unlike(const cd_network_estimate_case *c, cd_json_writer *w) {
    cd_json_write_key(w, "unlike_reasons");
    cd_json_write_open(w, '{');
    for (uint32_t b = 0; b < CD_N_UNLIKE; b++)
        if (c->unlike_of_s[b] > 0)
            cd_json_write_member_real(w, cd_trained_on_reason(b), c->unlike_of_s[b] / c->ops_s);
    cd_json_write_close(w, '}');
}

/* `level` is printed with %g as the option was given: 0.9, not the nearest double in full. */
static void put_result(const cd_network_report *p, const cd_network_estimate_case *c,
                       cd_json_writer *w) {
    char level[32];
    const size_t n = (size_t)snprintf(level, sizeof level, "%g", p->e->o->level);
    put_size(w, "batch", c->source->batch > 0 ? c->source->batch : -1);
    cd_json_write_member_real(w, "latency_s", c->replay.makespan_s);
    cd_json_write_member_real(w, "low_s", c->interval.low_s);
    cd_json_write_member_real(w, "high_s", c->interval.high_s);
    cd_json_write_key(w, "level");
    cd_json_write_raw(w, level, n);
    if (c->no_interval) cd_json_write_member_str(w, "interval_reason", c->no_interval);
    if (c->device->stands) cd_json_write_member_str(w, "stand_in", c->device->stands);
    if (c->device->guessed) cd_json_write_member_bool(w, "guessed", true);
    if (c->device->scaled) cd_json_write_member_str(w, "stand_in_by", "roofline");
    if (c->device_spread > 0) cd_json_write_member_real(w, "device_spread", c->device_spread);
    cd_json_write_member_real(w, "chain_s", c->replay.chain_s);
    cd_json_write_member_real(w, "sum_s", c->replay.sum_s);
    cd_json_write_member_real(w, "items_per_s", cd_network_estimate_throughput(c));
    put_use(&c->use[c->fullest], cd_network_estimate_fits(c), w);
    if (c->n_place > 1) put_places(c, w);
    cd_json_write_member_real(w, "missing_share", c->missing_share);
    if (c->missing_share > 0)
        cd_json_write_member_str(w, "missing_share_of",
                                 c->missing_of_work ? "operations" : "operators");
    cd_json_write_member_real(w, "unlike_share", c->ops_s > 0 ? c->unlike_s / c->ops_s : 0);
    if (c->unlike_s > 0) put_unlike(c, w);
    cd_json_write_member_real(w, "given_share", c->ops_s > 0 ? c->given_s / c->ops_s : 0);
    put_counts(c, w);
    put_missing(c, w);
    put_compared(p, c, w);
    put_parallel(p, c, w);
    if (p->ops) put_ops(c, w);
}

/* The members of a case's object: its result or its error. */
static void put_case(const cd_network_report *p, const cd_network_estimate_case *c,
                     cd_json_writer *w) {
    const double cores = cd_network_estimate_cores(p->e, c->device);
    cd_json_write_member_str(w, "device", c->device->label);
    if (cores > 0) cd_json_write_member_int(w, "cores", (int64_t)cores);
    if (!c->st) {
        put_result(p, c, w);
        return;
    }
    cd_json_write_key(w, "error");
    cd_json_write_open(w, '{');
    cd_json_write_member_str(w, "code", cdmpp_status_name(c->st));
    cd_json_write_member_str(w, "key", c->err.key[0] ? c->err.key : NULL);
    cd_json_write_member_str(w, "message", c->err.msg);
    cd_json_write_close(w, '}');
}

/* ---- ranges ---- */
static void put_points(const cd_network_report *p, const cd_network_estimate_curve *c,
                       cd_json_writer *w) {
    cd_json_write_key(w, "points");
    cd_json_write_open(w, '[');
    for (int64_t size = 0; (size = cd_network_estimate_curve_next(p->e, size));) {
        double v, low, high;
        bool estimated;
        cd_network_estimate_curve_at(c, size, &v, &low, &high, &estimated);
        cd_json_write_open(w, '{');
        cd_json_write_member_int(w, "size", size);
        cd_json_write_member_real(w, "latency_s", v);
        cd_json_write_member_real(w, "low_s", low);
        cd_json_write_member_real(w, "high_s", high);
        cd_json_write_member_bool(w, "estimated", estimated);
        cd_json_write_close(w, '}');
    }
    cd_json_write_close(w, ']');
}

/* Of each estimated size; null and the reason where it is not known. */
static void put_one_schedule(const cd_network_estimate_curve *c, cd_json_writer *w) {
    cd_json_write_key(w, "one_schedule");
    cd_json_write_open(w, '{');
    cd_json_write_member_str(w, "why_not", c->has_one ? NULL : c->why_not);
    cd_json_write_key(w, "sizes");
    cd_json_write_open(w, '[');
    for (size_t k = 0; c->has_one && k < c->n; k++) {
        cd_json_write_open(w, '{');
        cd_json_write_member_int(w, "size", c->size[k]);
        cd_json_write_member_real(w, "loss", c->loss[k]);
        cd_json_write_member_real(w, "apart_share", c->apart[k]);
        cd_json_write_close(w, '}');
    }
    cd_json_write_close(w, ']');
    cd_json_write_close(w, '}');
}

static void put_curves(const cd_network_report *p, cd_json_writer *w) {
    cd_json_write_key(w, "curves");
    cd_json_write_open(w, '[');
    for (size_t k = 0; k < p->e->n_curve; k++) {
        const cd_network_estimate_curve *c = &p->e->curve[k];
        cd_json_write_open(w, '{');
        cd_json_write_member_str(w, "network", c->first->source->given);
        cd_json_write_member_str(w, "device", c->first->device->label);
        cd_json_write_member_str(w, "over", p->e->over);
        cd_json_write_member_str(w, "law", c->st ? NULL : cd_perf_curve_form_name(c->law.form));
        cd_json_write_member_str(w, "error", c->st ? c->err.msg : NULL);
        if (!c->st) put_points(p, c, w);
        if (!c->st) put_one_schedule(c, w);
        cd_json_write_close(w, '}');
    }
    cd_json_write_close(w, ']');
}

/* ---- all ---- */
/* Numbers of the estimates that are the best of their network. */
static void put_best(const cd_network_report *p, const char *key,
                     const cd_network_estimate_case *(*best)(const cd_network_report *,
                                                             const char *),
                     cd_json_writer *w) {
    cd_json_write_key(w, key);
    cd_json_write_open(w, '[');
    for (size_t k = 0; k < p->e->n_item; k++)
        if (best(p, p->e->item[k].source->name) == &p->e->item[k]) cd_json_write_int(w, (int64_t)k);
    cd_json_write_close(w, ']');
}

static void put_whose(const cd_network_report *p, cd_json_writer *w) {
    cd_buf text = {0};
    cd_network_report_whose(p->e, &text);
    cd_buf_put(&text, "", 1);
    cd_json_write_member_str(w, "latency_of", text.n > 1 ? text.p : NULL);
    w->out->oom |= text.oom;
    cd_buf_free(&text);
}

static void put_table(const cd_network_report *p, cd_buf *b) {
    cd_json_writer w = {.out = b};
    cd_json_write_open(&w, '{');
    cd_json_write_key(&w, "estimates");
    cd_json_write_open(&w, '[');
    for (size_t k = 0; k < p->e->n_item; k++) {
        cd_json_write_open(&w, '{');
        cd_json_write_member_str(&w, "network", p->e->item[k].source->name);
        put_case(p, &p->e->item[k], &w);
        cd_json_write_close(&w, '}');
    }
    cd_json_write_close(&w, ']');
    put_whose(p, &w);
    if (p->e->over) put_curves(p, &w);
    if (p->prices) put_best(p, "cheapest", cd_network_report_cheapest, &w);
    if (p->energy) put_best(p, "least_energy", cd_network_report_thriftiest, &w);
    cd_json_write_close(&w, '}');
}

/* Graph files on one device keep the older form without an envelope: an object of networks, a line
 * each. */
void cd_network_report_json(const cd_network_report *p, cd_buf *b) {
    if (!p->e->graphs) {
        cd_buf all = {0};
        put_table(p, &all);
        cd_command_json(b, "cdmpp.replay", "cdmpp-replay", p->e->o->log, &all);
        return;
    }
    cd_json_writer w = {.out = b, .sep = ",\n"};
    cd_json_write_open(&w, '{');
    for (size_t k = 0; k < p->e->n_item; k++) {
        cd_json_write_key(&w, p->e->item[k].source->name);
        cd_json_writer one = {.out = b};
        cd_json_write_open(&one, '{');
        put_case(p, &p->e->item[k], &one);
        cd_json_write_close(&one, '}');
        w.comma = true;
    }
    cd_json_write_close(&w, '}');
    cd_buf_puts(b, "\n");
}

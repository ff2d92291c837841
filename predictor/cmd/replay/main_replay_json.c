/* JSON of cdmpp-replay: docs/reference/replay.md. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "predictor/cmd/replay/main_replay.h"

static void put_real(cd_buf *b, const char *key, double v) {
    cd_buf_putf(b, ",\"%s\":", key);
    cd_buf_put_json_real(b, v);
}

static void put_text(cd_buf *b, const char *key, const char *v) {
    cd_buf_putf(b, ",\"%s\":", key);
    if (v) cd_buf_put_json_str(b, v, strlen(v));
    else cd_buf_puts(b, "null");
}

static void put_size(cd_buf *b, const char *key, int64_t v) {
    cd_buf_putf(b, ",\"%s\":", key);
    if (v >= 0) cd_buf_put_int(b, v);
    else cd_buf_puts(b, "null");
}

/* ---- operators ---- */
static void put_op(const cd_main_replay_case *c, uint32_t op, bool critical, cd_buf *b) {
    const uint32_t node = c->net->of[op];
    const cd_node_cost_entry *n = cd_main_replay_case_cost(c, node);
    const cd_network_node *v = &c->source->graph->node[node];
    const cd_replay_op *r = &c->net->net.op[op];
    const cd_replay_ran *ran = &c->replay.op[op];
    const cd_str source = cd_enum_names_at(CD_COST_SOURCES, (int)n->source);
    cd_buf_puts(b, "{\"name\":");
    cd_buf_put_json_str(b, v->name, strlen(v->name));
    put_text(b, "op", v->op);
    put_text(b, "device", c->lane[r->device].name);
    cd_buf_putf(b, ",\"worker\":%u,\"repeat\":%lld", ran->worker, (long long)v->repeat);
    put_real(b, "start_s", ran->start_s);
    put_real(b, "end_s", ran->end_s);
    put_real(b, "seconds", n->seconds);
    put_real(b, "low_s", n->low_s);
    put_real(b, "high_s", n->high_s);
    put_real(b, "share", c->ops_s > 0 ? r->seconds / c->ops_s : 0);
    cd_buf_putf(b, ",\"critical\":%s,\"source\":\"%.*s\",\"out_of_range\":%s", critical ? "true" : "false", (int)source.n, source.p,
                n->flags & CD_MODEL_OUT_OF_RANGE ? "true" : "false");
    put_text(b, "workload_key", v->key);
    put_text(b, "schedule", n->schedule);
    put_real(b, "given_s", v->given_s);
    if (c->ran) put_real(b, "run_s", c->ran->node[node].place_s);
    if (c->ran) put_real(b, "run_alone_s", c->ran->node[node].alone_s);
    cd_buf_puts(b, "}");
}

static void put_ops(const cd_main_replay_case *c, cd_buf *b) {
    const uint32_t n = c->net->net.n_op;
    bool *critical = cd_mem_zalloc(n + 1u, sizeof *critical);
    if (!critical) {
        b->oom = true;
        return;
    }
    for (uint32_t k = 0; k < c->replay.n_path; k++) critical[c->replay.path[k]] = true;
    cd_buf_puts(b, ",\"operators\":[");
    for (uint32_t k = 0; k < n; k++) {
        if (k) cd_buf_puts(b, ",");
        put_op(c, k, critical[k], b);
    }
    cd_buf_puts(b, "]");
    cd_mem_free(critical);
}

/* ---- a case ---- */
static void put_missing(const cd_main_replay_case *c, cd_buf *b) {
    const cd_network_graph *g = c->source->graph;
    const char *sep = "";
    cd_buf_puts(b, ",\"missing\":[");
    for (uint32_t k = 0; k < g->n_node; k++) {
        const cd_node_cost_entry *n = cd_main_replay_case_cost(c, k);
        if (n->source != CD_COST_MISSING || !g->node[k].repeat) continue;
        cd_buf_putf(b, "%s{\"name\":", sep);
        cd_buf_put_json_str(b, g->node[k].name, strlen(g->node[k].name));
        put_text(b, "op", g->node[k].op);
        put_text(b, "why", n->why);
        cd_buf_puts(b, "}");
        sep = ",";
    }
    cd_buf_puts(b, "]");
}

static void put_counts(const cd_main_replay_case *c, cd_buf *b) {
    static const struct {
        const char *name;
        cd_cost_source source;
    } kind[] = {{"model", CD_COST_MODEL}, {"library", CD_COST_LIBRARY}, {"given", CD_COST_GIVEN}, {"record", CD_COST_RECORD},
                {"scaled", CD_COST_SCALED}, {"free", CD_COST_FREE}, {"missing", CD_COST_MISSING}};
    size_t n[16] = {0};
    for (uint32_t k = 0; k < c->source->graph->n_node; k++) /* one that never runs is nobody's gap */
        n[c->source->graph->node[k].repeat ? cd_main_replay_case_cost(c, k)->source : CD_COST_FREE]++;
    cd_buf_puts(b, ",\"nodes\":{");
    for (size_t k = 0; k < sizeof kind / sizeof *kind; k++) cd_buf_putf(b, "%s\"%s\":%zu", k ? "," : "", kind[k].name, n[kind[k].source]);
    cd_buf_putf(b, "},\"tasks\":%zu,\"tasks_without_schedule\":%zu", c->n_task, c->n_bare);
}

static void put_compared(const cd_main_replay_plan *p, const cd_main_replay_case *c, cd_buf *b) {
    const cd_network_graph *g = c->source->graph;
    if (!isnan(g->measured_s)) {
        put_real(b, "measured_s", g->measured_s);
        put_real(b, "measured_median_s", g->measured_median_s);
        put_real(b, "error", cd_main_replay_error(c, g->measured_s));
        put_real(b, "error_of_median", cd_main_replay_error(c, g->measured_median_s));
    }
    if (p->o->run) {
        put_real(b, "run_s", c->run_s);
        put_real(b, "run_error", cd_main_replay_error(c, c->run_s));
        put_real(b, "run_cold_s", c->ran ? c->ran->cold_s : (double)NAN);
        cd_buf_putf(b, ",\"run_left_out\":%u,\"run_drawn\":%u", c->ran ? c->ran->n_left : 0, c->ran ? c->ran->n_drawn : 0);
    }
    if (p->o->what_if.n) put_real(b, "before_s", c->before_s);
    if (!p->o->prices) return;
    put_real(b, "price_per_hour", c->device->price);
    put_real(b, "price_per_million", cd_main_replay_price(c));
    put_text(b, "currency", c->device->currency);
}

/* ---- memory ---- */
static void put_use(const cd_main_replay_use *u, cd_main_replay_fit fits, cd_buf *b) {
    put_size(b, "peak_bytes", u->peak);
    put_size(b, "weight_bytes", u->weights);
    put_size(b, "memory_bytes", u->memory > 0 ? u->memory : -1);
    cd_buf_putf(b, ",\"fits\":%s", fits == CD_MAIN_REPLAY_UNKNOWN ? "null" : fits == CD_MAIN_REPLAY_YES ? "true" : "false");
}

static void put_places(const cd_main_replay_case *c, cd_buf *b) {
    cd_buf_puts(b, ",\"devices\":[");
    for (uint32_t k = 0; k < c->n_place; k++) {
        cd_buf_puts(b, k ? ",{\"device\":" : "{\"device\":");
        cd_buf_put_json_str(b, c->place[k]->name, strlen(c->place[k]->name));
        put_real(b, "busy_s", c->replay.busy_s[k]);
        put_use(&c->use[k], cd_main_replay_use_fits(&c->use[k]), b);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "]");
}

static void put_case(const cd_main_replay_plan *p, const cd_main_replay_case *c, cd_buf *b) {
    put_text(b, "device", c->device->name);
    put_size(b, "batch", c->source->batch > 0 ? c->source->batch : -1);
    put_real(b, "latency_s", c->replay.makespan_s);
    put_real(b, "low_s", c->interval.low_s);
    put_real(b, "high_s", c->interval.high_s);
    cd_buf_putf(b, ",\"level\":%g", p->o->level_v);
    put_real(b, "chain_s", c->replay.chain_s);
    put_real(b, "sum_s", c->replay.sum_s);
    put_real(b, "items_per_s", cd_main_replay_throughput(c));
    put_use(&c->use[c->fullest], cd_main_replay_fits(c), b);
    if (c->n_place > 1) put_places(c, b);
    put_real(b, "missing_share", c->missing_share);
    put_real(b, "unlike_share", c->ops_s > 0 ? c->unlike_s / c->ops_s : 0);
    put_real(b, "given_share", c->ops_s > 0 ? c->given_s / c->ops_s : 0);
    put_counts(c, b);
    put_missing(c, b);
    put_compared(p, c, b);
    cd_main_replay_parallel_json(p, c, b);
    if (p->o->ops) put_ops(c, b);
}

static void put_error(const cd_main_replay_case *c, cd_buf *b) {
    cd_buf_putf(b, ",\"error\":{\"code\":\"%s\"", cdmpp_status_name(c->st));
    put_text(b, "key", c->err.key[0] ? c->err.key : NULL);
    put_text(b, "message", c->err.msg);
    cd_buf_puts(b, "}");
}

/* Members of one object, of which the caller wrote the first. */
static void put_either(const cd_main_replay_plan *p, const cd_main_replay_case *c, cd_buf *b) {
    if (c->st) {
        put_text(b, "device", c->device->name);
        put_error(c, b);
    } else put_case(p, c, b);
}

/* ---- all ---- */
static void put_table(const cd_main_replay_plan *p, cd_buf *b) {
    cd_buf_puts(b, "{\"estimates\":[");
    for (size_t k = 0; k < p->n_item; k++) {
        cd_buf_putf(b, "%s{\"network\":", k ? "," : "");
        cd_buf_put_json_str(b, p->item[k].source->name, strlen(p->item[k].source->name));
        put_either(p, &p->item[k], b);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "]");
    if (p->o->prices) {
        const char *sep = "";
        cd_buf_puts(b, ",\"cheapest\":[");
        for (size_t k = 0; k < p->n_item; k++) {
            if (cd_main_replay_cheapest(p, p->item[k].source->name) != &p->item[k]) continue;
            cd_buf_putf(b, "%s%zu", sep, k);
            sep = ",";
        }
        cd_buf_puts(b, "]");
    }
    cd_buf_puts(b, "}");
}

void cd_main_replay_json(const cd_main_replay_plan *p, cd_buf *b) {
    cd_buf one = {0};
    if (!p->graphs) {
        put_table(p, &one);
        cd_command_json(b, "cdmpp.replay", "cdmpp-replay", &one);
        return;
    }
    cd_buf_puts(b, "{");
    for (size_t k = 0; k < p->n_item; k++) {
        cd_buf_puts(b, k ? ",\n" : "");
        cd_buf_put_json_str(b, p->item[k].source->name, strlen(p->item[k].source->name));
        cd_buf_clear(&one);
        put_either(p, &p->item[k], &one);
        cd_buf_puts(b, ":{");
        cd_buf_put(b, one.n ? one.p + 1 : "", one.n ? one.n - 1 : 0); /* without its first comma */
        cd_buf_puts(b, "}");
        b->oom |= one.oom;
    }
    cd_buf_puts(b, "}\n");
    cd_buf_free(&one);
}

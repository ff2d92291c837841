/* Prints a plan as text and as JSON. */
#include <math.h>

#include "base/text/text.h"
#include "predictor/partition/offload/offload.h"

static const char *value_name(const cd_offload_net_plan *o, const cd_offload_boundary *b) {
    const cd_network_loaded *l = o->rules->loaded;
    if (b->group != CD_GRAPH_NONE) return l->graph->node[b->group].name;
    const char *name = l->source->tensor[l->work->buffer[b->buffer].tensor].name;
    return name ? name : "input";
}

static void put_region(const cd_offload_net_plan *o, uint32_t k, cd_buf *out) {
    enum { NAMES = 3 };
    const cd_offload_region *x = &o->region[k];
    cd_buf_putf(out, "region %-3u %-8s %4u groups  %10.1f us  %s", k, o->rules->device[x->device],
                x->n, x->seconds * 1e6, x->mac ? "" : "no multiply-add  ");
    for (uint32_t i = 0; i < x->n && i < NAMES; i++)
        cd_buf_putf(out, "%s%s", i ? " " : "",
                    o->rules->loaded->graph->node[o->group[x->first + i]].name);
    if (x->n > NAMES) cd_buf_puts(out, " ...");
    cd_buf_putf(out, "\n           %s\n", x->why);
}

static void put_copy(const cd_offload_net_plan *o, const cd_offload_boundary *b, cd_buf *out) {
    cd_buf_putf(out, "copy   %s -> %s  %10lld bytes as %lld  %10.1f us  %s",
                o->rules->device[b->from], o->rules->device[b->to], (long long)b->bytes,
                (long long)b->packed, b->seconds * 1e6, value_name(o, b));
    if (b->edge->n) {
        cd_buf_putf(out, "  (%.1f us: ", b->convert_s * 1e6);
        cd_offload_edge_print(b->edge, out);
        cd_buf_puts(out, ")");
    }
    cd_buf_puts(out, "\n");
}

static void put_cost(const char *name, const cd_place_cost *c, cd_buf *out) {
    cd_buf_putf(
        out, "%-8s sum %10.1f us  makespan %10.1f us  copies %4u  %10lld bytes  %10.1f us\n", name,
        c->sum_s * 1e6, c->makespan_s * 1e6, c->n_copy, (long long)c->bytes, c->copies_s * 1e6);
}

void cd_offload_plan_text(const cd_offload_net_plan *o, cd_buf *out) {
    for (uint32_t k = 0; k < o->n_region; k++) put_region(o, k, out);
    for (uint32_t k = 0; k < o->n_boundary; k++) put_copy(o, &o->boundary[k], out);
    for (uint32_t k = 0; k < 3; k++)
        if (o->base[k].name) put_cost(o->base[k].name, &o->base[k].cost, out);
    put_cost("plan", &o->cost, out);
    cd_buf_putf(out, "%s%s", o->method, o->exact ? ", exact" : "");
    if (!o->exact && isfinite(o->bound_s))
        cd_buf_putf(out, ", nothing below %.1f us", o->bound_s * 1e6);
    if (o->n_undefined)
        cd_buf_putf(out, "; %u groups that nothing defines, counted as 0 s on %s", o->n_undefined,
                    o->rules->device[0]);
    if (o->n_pruned)
        cd_buf_putf(out, "; %u groups sent home, no multiply-add in their regions", o->n_pruned);
    cd_buf_puts(out, "\n");
}

/* ---- JSON ---- */

static void key(cd_buf *b, const char *k, bool first) {
    if (!first) cd_buf_puts(b, ", ");
    cd_buf_put_json_str(b, k, strlen(k));
    cd_buf_puts(b, ": ");
}

static void text(cd_buf *b, const char *k, const char *v, bool first) {
    key(b, k, first);
    cd_buf_put_json_str(b, v, strlen(v));
}

static void real(cd_buf *b, const char *k, double v) {
    key(b, k, false);
    cd_buf_put_json_real(b, v);
}

static void whole(cd_buf *b, const char *k, int64_t v) {
    key(b, k, false);
    cd_buf_put_int(b, v);
}

static void json_cost(cd_buf *b, const cd_place_cost *c) {
    cd_buf_puts(b, "{\"sum_s\": ");
    cd_buf_put_json_real(b, c->sum_s);
    real(b, "makespan_s", c->makespan_s);
    real(b, "copies_s", c->copies_s);
    whole(b, "copies", c->n_copy);
    whole(b, "bytes", c->bytes);
    cd_buf_puts(b, "}");
}

/* "operators" lists groups of the workload by name: a group runs as one operator. */
static void json_region(const cd_offload_net_plan *o, const cd_offload_region *x, cd_buf *b) {
    cd_buf_puts(b, "{");
    text(b, "device", o->rules->device[x->device], true);
    real(b, "seconds", x->seconds);
    key(b, "multiplies", false);
    cd_buf_puts(b, x->mac ? "true" : "false");
    text(b, "why", x->why, false);
    key(b, "operators", false);
    cd_buf_puts(b, "[");
    for (uint32_t i = 0; i < x->n; i++) {
        const char *name = o->rules->loaded->graph->node[o->group[x->first + i]].name;
        if (i) cd_buf_puts(b, ", ");
        cd_buf_put_json_str(b, name, strlen(name));
    }
    cd_buf_puts(b, "]}");
}

/* The conversions are printed to a buffer of their own first, because the text must be quoted. */
static void json_boundary(const cd_offload_net_plan *o, const cd_offload_boundary *x, cd_buf *b) {
    cd_buf steps = {0};
    cd_offload_edge_print(x->edge, &steps);
    cd_buf_puts(b, "{");
    text(b, "value", value_name(o, x), true);
    text(b, "from", o->rules->device[x->from], false);
    text(b, "to", o->rules->device[x->to], false);
    whole(b, "bytes", x->bytes);
    whole(b, "packed", x->packed);
    real(b, "seconds", x->seconds);
    real(b, "convert_s", x->convert_s);
    text(b, "convert", steps.p ? steps.p : "", false);
    cd_buf_puts(b, "}");
    b->oom = b->oom || steps.oom;
    cd_buf_free(&steps);
}

/* Baselines that were not computed (a placement that was given) are left out. */
void cd_offload_plan_json(const cd_offload_net_plan *o, cd_buf *b) {
    cd_buf_puts(b, "{\"plan\": ");
    json_cost(b, &o->cost);
    text(b, "method", o->method, false);
    key(b, "exact", false);
    cd_buf_puts(b, o->exact ? "true" : "false");
    real(b, "bound_s", o->bound_s);
    whole(b, "undefined", o->n_undefined);
    cd_buf_puts(b, ", \"regions\": [");
    for (uint32_t k = 0; k < o->n_region; k++) {
        if (k) cd_buf_puts(b, ", ");
        json_region(o, &o->region[k], b);
    }
    cd_buf_puts(b, "], \"boundary\": [");
    for (uint32_t k = 0; k < o->n_boundary; k++) {
        if (k) cd_buf_puts(b, ", ");
        json_boundary(o, &o->boundary[k], b);
    }
    cd_buf_puts(b, "], \"baselines\": {");
    for (uint32_t k = 0; k < 3 && o->base[k].name; k++) {
        key(b, o->base[k].name, k == 0);
        json_cost(b, &o->base[k].cost);
    }
    cd_buf_puts(b, "}}");
}

/* Prints a plan as text and as JSON. */
#include <math.h>
#include <string.h>

#include "base/text/text.h"
#include "predictor/partition/offload/offload.h"
#include "predictor/partition/offload/offload_plan_internal.h"

/* The report on a placement: its regions, the values on the boundary, and for each region the
 * reason why it is not on another device. */

/* ---- regions ---- */

static cdmpp_status make_regions(cd_offload_net *p, const cd_place_regions *r, cdmpp_err *err) {
    cd_offload_net_plan *o = p->out;
    const uint32_t n = p->r->n_group;
    uint32_t *head = CD_NEWN(&p->own, uint32_t, (size_t)o->part.n_op + 1),
             *next = CD_NEWN(&p->own, uint32_t, (size_t)n + 1);
    o->region = CD_NEWN(&o->arena, cd_offload_region, (size_t)r->n_region + 1);
    o->group = CD_NEWN(&o->arena, uint32_t, (size_t)n + 1),
    o->of = CD_NEWN(&o->arena, uint32_t, (size_t)n + 1);
    if (!head || !next || !o->region || !o->group || !o->of)
        return CD_FAIL(err, ENOMEM, "%u regions", r->n_region);
    for (uint32_t g = n; g-- > 0;) next[g] = head[o->at[g]], head[o->at[g]] = g + 1;
    uint32_t at = 0;
    for (uint32_t k = 0; k < r->n_region; k++) {
        cd_offload_region *x = &o->region[o->n_region];
        *x = (cd_offload_region){.device = r->region[k].device, .first = at};
        for (uint32_t i = 0; i < r->region[k].n_op; i++)
            for (uint32_t g = head[r->member[r->region[k].first + i]]; g; g = next[g - 1]) {
                o->group[at++] = g - 1;
                o->of[g - 1] = o->n_region;
                x->mac = x->mac || p->r->ops.mac[g - 1];
                x->seconds += p->seconds[(size_t)(p->base + g - 1) * p->n_device + x->device];
            }
        x->n = at - x->first;
        o->n_region += x->n > 0; /* inputs and results alone are none */
    }
    return CDMPP_OK;
}

/* ---- the boundary ---- */

static const cd_place_link *link_of(const cd_offload_net *p, uint32_t a, uint32_t b) {
    for (uint32_t i = 0; i < p->a->n_link; i++)
        if (p->link[i].from == a && p->link[i].to == b) return &p->link[i];
    return NULL;
}

static void put_boundary(cd_offload_net *p, uint32_t node, uint32_t from, uint32_t to,
                         cd_offload_boundary *out) {
    const cd_offload_edge *e = &p->out->edge[from * p->n_device + to];
    const cd_place_link *l = link_of(p, from, to);
    const double bytes = (double)p->bytes[node];
    *out = (cd_offload_boundary){.group = node < p->base ? CD_GRAPH_NONE : node - p->base,
                                 .buffer = p->buffer[node],
                                 .from = from,
                                 .to = to,
                                 .bytes = p->bytes[node],
                                 .packed = (int64_t)ceil(bytes * e->packed),
                                 .edge = e,
                                 .seconds = (double)INFINITY,
                                 .convert_s = (double)INFINITY};
    if (!l) return;
    out->convert_s = l->convert_s + bytes * l->convert_s_per_byte;
    out->seconds = l->latency_s + bytes * e->packed / l->bytes_per_s + out->convert_s;
}

/* A value that several readers on one device need is copied there once: `there` has a bit for each
 * device. First they are counted, then listed. */
static cdmpp_status make_boundary(cd_offload_net *p, cdmpp_err *err) {
    cd_offload_net_plan *o = p->out;
    const uint32_t n_group = p->r->n_group;
    uint32_t *there = CD_NEWN(&p->own, uint32_t, (size_t)p->n + 1), n = 0;
    if (!there) return CD_FAIL(err, ENOMEM, "boundary");
    for (uint32_t k = 0; k < p->n; k++) {
        const uint32_t at = k >= p->base && k - p->base < n_group ? o->where[k - p->base] : 0;
        for (uint32_t i = 0; i < p->op[k].n_in; i++) {
            const uint32_t x = p->in[p->op[k].first + i],
                           from = x < p->base ? 0 : o->where[x - p->base];
            if (from != at && !(there[x] >> at & 1)) there[x] |= 1u << at, n++;
        }
    }
    o->boundary = CD_NEWN(&o->arena, cd_offload_boundary, (size_t)n + 1);
    if (!o->boundary) return CD_FAIL(err, ENOMEM, "boundary");
    for (uint32_t x = 0; x < p->n; x++)
        for (uint32_t d = 0; d < p->n_device; d++)
            if (there[x] >> d & 1)
                put_boundary(p, x, x < p->base ? 0 : o->where[x - p->base], d,
                             &o->boundary[o->n_boundary++]);
    return CDMPP_OK;
}

/* ---- reasons ---- */

typedef struct {
    uint32_t may, not_may, first_not; /* groups of the region that device d may run, and not */
    /* difference to the plan if the groups that may run there move: compute, copies */
    double seconds, copies;
} other;

/* May this group go to d, alone or with its joint match? */
static bool may_go(const cd_offload_net *p, uint32_t g, uint32_t d) {
    const cd_offload_group *x = &p->r->group[g];
    return (x->pin == CD_PLACE_FREE || x->pin == d) && p->out->joint[g] == UINT32_MAX &&
           cd_offload_net_allows(p, g, d);
}

/* What changes if the groups of region x that may run on d moved there and all else stayed. */
static cdmpp_status look_at(cd_offload_net *p, const cd_offload_region *x, uint32_t d,
                            uint32_t *where, other *o, cdmpp_err *err) {
    const cd_offload_net_plan *out = p->out;
    cd_place_cost cost;
    *o = (other){.first_not = UINT32_MAX};
    memcpy(where, out->at_where, out->part.n_op * sizeof *where);
    for (uint32_t i = 0; i < x->n; i++) {
        const uint32_t g = out->group[x->first + i];
        if (!may_go(p, g, d)) {
            o->first_not = o->not_may++ ? o->first_not : g;
            continue;
        }
        o->may++;
        where[out->at[g]] = d;
    }
    if (!o->may) return CDMPP_OK;
    CD_TRY(cd_place_evaluate(&out->part, where, &cost, err));
    o->copies = cost.copies_s - out->cost.copies_s;
    o->seconds = cost.sum_s - cost.copies_s - (out->cost.sum_s - out->cost.copies_s);
    return CDMPP_OK;
}

static void put_more(cd_buf *b, const char *verb, double s) {
    cd_buf_putf(b, "%s %.1f us %s", verb, fabs(s) * 1e6, s >= 0 ? "more" : "less");
}

static const char *reason_of(const cd_offload_net *p, uint32_t g, uint32_t d) {
    const cd_offload_group *x = &p->r->group[g];
    if (x->pin_why) return x->pin_why;
    if (p->out->joint[g] != UINT32_MAX) return "it runs with a match of several groups";
    if (p->home[g]) return "no multiply-add in its region";
    return x->why[d] ? x->why[d] : "";
}

static void say(const cd_offload_net *p, const cd_offload_region *x, uint32_t d, const other *o,
                cd_buf *b) {
    cd_buf_putf(b, "%s: ", p->r->device[x->device]);
    if (o->not_may) {
        cd_buf_putf(b, "%u of %u groups cannot be on %s (%s)", o->not_may, x->n, p->r->device[d],
                    reason_of(p, o->first_not, d));
        if (!o->may) return;
        cd_buf_puts(b, "; the others there would ");
    } else cd_buf_putf(b, "%s would ", p->r->device[d]);
    if (!isfinite(o->copies) || !isfinite(o->seconds)) {
        cd_buf_puts(b, "need a link that is not there");
        return;
    }
    put_more(b, "compute", o->seconds);
    put_more(b, " and copy", o->copies);
}

/* The reason compares with the best alternative: the device that could take most groups of the
 * region, and of those the one with the least extra time. */
static cdmpp_status offload_net_explain(cd_offload_net *p, uint32_t region, cdmpp_err *err) {
    cd_offload_region *x = &p->out->region[region];
    uint32_t *where = CD_NEWN(&p->own, uint32_t, (size_t)p->out->part.n_op + 1), best = UINT32_MAX;
    other o, least = {0};
    cd_buf b = {0};
    if (!where) return CD_FAIL(err, ENOMEM, "reasons");
    for (uint32_t d = 0; d < p->n_device; d++) {
        if (d == x->device) continue;
        CD_TRY(look_at(p, x, d, where, &o, err));
        const bool better = o.not_may == least.not_may
                                ? o.seconds + o.copies < least.seconds + least.copies
                                : o.not_may < least.not_may;
        if (best == UINT32_MAX || better) best = d, least = o;
    }
    if (best == UINT32_MAX)
        cd_buf_putf(&b, "%s: there is no other device", p->r->device[x->device]);
    else say(p, x, best, &least, &b);
    if (!b.oom) x->why = cd_str_dup(&p->out->arena, (cd_str){b.p, b.n});
    cd_buf_free(&b);
    return x->why ? CDMPP_OK : CD_FAIL(err, ENOMEM, "reasons");
}

cdmpp_status cd_offload_net_report(cd_offload_net *p, cdmpp_err *err) {
    cd_place_regions r = {0};
    cdmpp_status st = cd_place_merge_regions(&p->out->part, p->out->at_where, &r, err);
    if (!st) st = make_regions(p, &r, err);
    cd_place_regions_free(&r);
    if (!st) st = make_boundary(p, err);
    for (uint32_t k = 0; k < p->out->n_region && !st; k++) st = offload_net_explain(p, k, err);
    return st;
}

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

/* The report on a placement: its regions, the values on the boundary, and for each region the
 * reason why it is not on another device. */
#include <math.h>
#include <string.h>

#include "predictor/partition/offload/offload_plan_internal.h"

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

/* Plans the placement of groups under rules. Three covers by joint matches are tried: none, TVM's
 * greedy one and the cheapest by sum. Each is placed by cost, and the best plan is kept; it is
 * compared with the host alone and with TVM's greedy placement. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "predictor/partition/offload/offload.h"
#include "predictor/partition/offload/offload_boundary.h"
#include "predictor/partition/offload/offload_plan_internal.h"
#include "predictor/partition/offload/offload_rules_internal.h"

/* Conversions on an edge between two devices: both sides' conversions to the host's format are
 * listed, what undoes each other is cancelled, the rest is costed. */

static const int width[] = {[CD_OFFLOAD_EDGE_INT8] = 1,
                            [CD_OFFLOAD_EDGE_FLOAT16] = 2,
                            [CD_OFFLOAD_EDGE_BFLOAT16] = 2,
                            [CD_OFFLOAD_EDGE_FLOAT32] = 4};
static const char *const dtype_name[] = {"int8", "float16", "bfloat16", "float32"};
static const char *const layout_name[] = {"nchw", "nhwc"};

/* The format of a device by its format line (rule: the rules' device, UINT32_MAX: none); what the
 * line does not give is as on the host. */
static cd_offload_edge_format offload_edge_format_of(const cd_offload_rules *r, uint32_t rule,
                                                     const cd_offload_edge_format *host) {
    cd_offload_edge_format f = *host;
    if (rule == UINT32_MAX || rule == 0) return f;
    const char *dtype = cd_offload_format(r, rule, "dtype"),
               *layout = cd_offload_format(r, rule, "layout"),
               *rate = cd_offload_format(r, rule, "rate");
    const int d =
        dtype ? cd_enum_names_find(CD_OFFLOAD_EDGE_DTYPES, (cd_str){dtype, strlen(dtype)}) : -1;
    const int l =
        layout ? cd_enum_names_find(CD_OFFLOAD_EDGE_LAYOUTS, (cd_str){layout, strlen(layout)}) : -1;
    if (d >= 0) f.dtype = (cd_offload_edge_dtype)d;
    if (l >= 0) f.layout = (cd_offload_edge_layout)l;
    if (rate) f.rate = strtod(rate, NULL);
    return f;
}

/* ---- steps ---- */

static void put(cd_offload_edge_step *to, uint32_t *n, bool layout, int a, int b, int w) {
    if (a != b) to[(*n)++] = (cd_offload_edge_step){layout, a, b, w};
}

/* Steps of type and of layout are independent. Within one kind a -> b, b -> c is a -> c, so only
 * the last format matters. */
static int end_of(const cd_offload_edge *e, bool layout, int begin) {
    int at = begin;
    for (uint32_t i = 0; i < e->n_all; i++)
        if (e->all[i].layout == layout) at = e->all[i].to;
    return at;
}

/* The steps that remain go directly from one format to the other, at most one of each kind. A step
 * that narrows the type comes before the change of layout, one that widens it behind, so that the
 * layout is always changed on the narrower type. */
void cd_offload_edge_make(const cd_offload_edge_format *from, const cd_offload_edge_format *to,
                          const cd_offload_edge_format *host, cd_offload_edge *out) {
    *out = (cd_offload_edge){0};
    put(out->all, &out->n_all, false, (int)from->dtype, (int)host->dtype, 0);
    put(out->all, &out->n_all, true, (int)from->layout, (int)host->layout, width[host->dtype]);
    put(out->all, &out->n_all, true, (int)host->layout, (int)to->layout, width[host->dtype]);
    put(out->all, &out->n_all, false, (int)host->dtype, (int)to->dtype, 0);
    const int dtype = end_of(out, false, (int)from->dtype),
              layout = end_of(out, true, (int)from->layout);
    const int narrow = width[from->dtype] < width[dtype] ? width[from->dtype] : width[dtype];
    const bool dtype_first = width[dtype] < width[from->dtype];
    if (dtype_first) put(out->step, &out->n, false, (int)from->dtype, dtype, 0);
    put(out->step, &out->n, true, (int)from->layout, layout, narrow);
    if (!dtype_first) put(out->step, &out->n, false, (int)from->dtype, dtype, 0);
    out->packed = narrow / 4.0;
    const double rate = to->rate < from->rate ? to->rate : from->rate;
    for (uint32_t i = 0; i < out->n; i++) {
        const cd_offload_edge_step *s = &out->step[i];
        const int both = s->layout ? 2 * s->width : width[s->from] + width[s->to];
        out->s_per_byte += both / 8.0 / rate;
    }
}

cd_place_link cd_offload_edge_link(const cd_place_link *plain, const cd_offload_edge *e,
                                   double start_s) {
    cd_place_link l = *plain;
    l.packed = e->packed;
    l.convert_s += e->n * start_s;
    l.convert_s_per_byte += e->s_per_byte;
    return l;
}

void cd_offload_edge_print(const cd_offload_edge *e, cd_buf *out) {
    for (uint32_t i = 0; i < e->n; i++) {
        const cd_offload_edge_step *s = &e->step[i];
        const char *const *name = s->layout ? layout_name : dtype_name;
        const char *what = s->layout                         ? "layout"
                           : s->to == CD_OFFLOAD_EDGE_INT8   ? "quantise"
                           : s->from == CD_OFFLOAD_EDGE_INT8 ? "dequantise"
                                                             : "cast";
        cd_buf_putf(out, "%s%s %s -> %s", i ? ", " : "", what, name[s->from], name[s->to]);
    }
}

/* Builds the placement problem (placement.h): inputs, groups and results as operators, conversions
 * as part of links, and joint matches as one operator each. */

static int64_t bytes_of(const cd_workload_buffer *b) {
    return cd_graph_shape_elements(&b->shape) * (int64_t)cd_expr_dtype_bytes(b->dtype);
}

static bool is_input(const cd_network_loaded *l, const cd_workload_buffer *b) {
    return b->group == CD_GRAPH_NONE && !b->is_const && b->tensor != CD_GRAPH_NONE &&
           l->source->tensor[b->tensor].is_input;
}

/* ---- nodes ---- */

/* Devices, links and edges live as long as the result, which points to them; the rest belongs to
 * this call. */
static cdmpp_status make_room(cd_offload_net *p, cdmpp_err *err) {
    const cd_workload *w = p->r->loaded->work;
    const uint32_t n_out = w->graph->n_output;
    size_t edges = (size_t)n_out + 1;
    p->base = 0;
    for (uint32_t b = 0; b < w->n_buffer; b++) p->base += is_input(p->r->loaded, &w->buffer[b]);
    for (uint32_t g = 0; g < w->n_group; g++) edges += w->group[g].n_read;
    p->n = p->base + w->n_group + n_out;
    p->op = CD_NEWN(&p->own, cd_offload_op, (size_t)p->n + 1),
    p->in = CD_NEWN(&p->own, uint32_t, edges);
    p->buffer = CD_NEWN(&p->own, uint32_t, (size_t)p->n + 1),
    p->bytes = CD_NEWN(&p->own, int64_t, (size_t)p->n + 1);
    p->seconds = CD_NEWN(&p->own, double, ((size_t)p->n + 1) * p->n_device),
    p->home = CD_NEWN(&p->own, bool, (size_t)w->n_group + 1);
    p->device = CD_NEWN(&p->out->arena, cd_place_device, p->n_device),
    p->link = CD_NEWN(&p->out->arena, cd_place_link, (size_t)p->a->n_link + 1);
    p->out->edge = CD_NEWN(&p->out->arena, cd_offload_edge, (size_t)p->n_device * p->n_device);
    const bool ok = p->op && p->in && p->buffer && p->bytes && p->seconds && p->home && p->device &&
                    p->link && p->out->edge;
    return ok ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%u groups", w->n_group);
}

/* Inputs cost nothing and are on the host: 0 s there (zeroed memory), infinity elsewhere. */
static cdmpp_status add_inputs(cd_offload_net *p, uint32_t *node_of, cdmpp_err *err) {
    const cd_workload *w = p->r->loaded->work;
    uint32_t k = 0;
    for (uint32_t b = 0; b < w->n_buffer; b++) {
        node_of[b] = CD_GRAPH_NONE;
        if (!is_input(p->r->loaded, &w->buffer[b])) continue;
        const char *name = w->graph->tensor[w->buffer[b].tensor].name;
        p->op[k] = (cd_offload_op){.name = name ? name : "input", .type = "input"};
        p->buffer[k] = b;
        p->bytes[k] = bytes_of(&w->buffer[b]);
        node_of[b] = k;
        for (uint32_t d = 1; d < p->n_device; d++)
            p->seconds[(size_t)k * p->n_device + d] = (double)INFINITY;
        k++;
    }
    return k == p->base ? CDMPP_OK : CD_FAIL(err, ESCHEMA, "inputs");
}

/* Buffers without a node are weights and constants: they are on every device before the network
 * runs and make no edge. Times are checked only for devices where the group may run. */
static cdmpp_status add_group(cd_offload_net *p, uint32_t g, uint32_t *node_of, cdmpp_err *err) {
    const cd_workload *w = p->r->loaded->work;
    const cd_workload_group *x = &w->group[g];
    const uint32_t k = p->base + g;
    cd_offload_op *o = &p->op[k];
    *o = (cd_offload_op){.name = p->r->loaded->graph->node[g].name,
                         .type = p->r->loaded->graph->node[g].op,
                         .first = p->n_in};
    for (uint32_t i = 0; i < x->n_read; i++)
        if (node_of[x->read[i]] != CD_GRAPH_NONE) p->in[p->n_in++] = node_of[x->read[i]];
    o->n_in = p->n_in - o->first;
    p->buffer[k] = x->write;
    p->bytes[k] = bytes_of(&w->buffer[x->write]);
    node_of[x->write] = k;
    p->out->n_undefined += x->task == CD_GRAPH_NONE;
    for (uint32_t d = 0; d < p->n_device; d++) {
        const double s = x->task == CD_GRAPH_NONE ? 0 : p->a->seconds[(size_t)g * p->n_device + d];
        p->seconds[(size_t)k * p->n_device + d] = s;
        const bool asked = (p->r->group[g].allowed | p->r->group[g].together) >> d & 1;
        if (asked && !(s >= 0))
            return CD_FAIL(err, ERANGE, "group %u (%s) on %s: %g s", g, o->name, p->r->device[d],
                           s);
    }
    return CDMPP_OK;
}

static void add_results(cd_offload_net *p, const uint32_t *node_of) {
    const cd_workload *w = p->r->loaded->work;
    for (uint32_t i = 0; i < w->graph->n_output; i++) {
        const uint32_t k = p->base + w->n_group + i, from = node_of[w->output[i]];
        const char *name = w->graph->tensor[w->graph->output[i]].name;
        p->op[k] =
            (cd_offload_op){.name = name ? name : "result", .type = "result", .first = p->n_in};
        p->buffer[k] = CD_GRAPH_NONE;
        if (from != CD_GRAPH_NONE) p->in[p->n_in++] = from;
        p->op[k].n_in = p->n_in - p->op[k].first;
        for (uint32_t d = 1; d < p->n_device; d++)
            p->seconds[(size_t)k * p->n_device + d] = (double)INFINITY;
    }
}

/* ---- links ---- */

/* The conversions of a pair of devices become part of the cost of its links, so that the placement
 * takes them into account. */
static cdmpp_status make_links(cd_offload_net *p, cdmpp_err *err) {
    const cd_offload_edge_format host = {CD_OFFLOAD_EDGE_FLOAT32, p->a->layout,
                                         p->a->rate > 0 ? p->a->rate : 5e9};
    cd_offload_edge_format f[CD_PLACE_MAX_DEVICE];
    for (uint32_t d = 0; d < p->n_device; d++) {
        f[d] = offload_edge_format_of(p->r->rules, p->r->rule_of[d], &host);
        p->device[d] = (cd_place_device){p->r->device[d], 0};
    }
    for (uint32_t i = 0; i < p->n_device; i++)
        for (uint32_t k = 0; k < p->n_device; k++)
            cd_offload_edge_make(&f[i], &f[k], &host, &p->out->edge[i * p->n_device + k]);
    for (uint32_t i = 0; i < p->a->n_link; i++) {
        const cd_place_link *l = &p->a->link[i];
        if (l->from >= p->n_device || l->to >= p->n_device)
            return CD_FAIL(err, EINVALID, "link %u: device %u or %u of %u", i, l->from, l->to,
                           p->n_device);
        p->link[i] =
            cd_offload_edge_link(l, &p->out->edge[l->from * p->n_device + l->to], p->a->start_s);
    }
    return CDMPP_OK;
}

/* Fills nodes, times, links and edges from p->a and p->r. Errors: ERANGE (a time that is NaN or
 * negative), EINVALID (a link), ESCHEMA, ENOMEM. */
static cdmpp_status offload_net_make(cd_offload_net *p, cdmpp_err *err) {
    const cd_workload *w = p->r->loaded->work;
    p->n_device = p->r->n_device;
    CD_TRY(make_room(p, err));
    uint32_t *node_of = CD_NEWN(&p->own, uint32_t, (size_t)w->n_buffer + 1);
    if (!node_of) return CD_FAIL(err, ENOMEM, "buffers");
    CD_TRY(add_inputs(p, node_of, err));
    for (uint32_t g = 0; g < w->n_group; g++) CD_TRY(add_group(p, g, node_of, err));
    add_results(p, node_of);
    return make_links(p, err);
}

/* ---- one cover ---- */

bool cd_offload_net_allows(const cd_offload_net *p, uint32_t g, uint32_t d) {
    return (p->r->group[g].allowed >> d & 1) && (d == 0 || !p->home[g]);
}

/* May all groups of this joint match run on its device? Not if one of them was sent home or placed
 * elsewhere. */
static bool offload_net_joint_is_open(const cd_offload_net *p, uint32_t joint) {
    const cd_offload_match *m = &p->r->joint[joint];
    for (uint32_t i = 0; i < m->n_op; i++) {
        const uint32_t g = p->r->member[m->first + i];
        if (p->home[g] || !((p->r->group[g].allowed | p->r->group[g].together) >> m->device & 1))
            return false;
    }
    return true;
}

/* Inputs and results are pinned to the host. A joint match can run only on its device, for the sum
 * of its groups' times there. A group by itself takes infinity where the rules do not allow it. */
static void fill_op(const cd_offload_net *p, uint32_t node, const uint32_t *joint,
                    cd_place_problem *part, cd_place_op *op, double *seconds) {
    const uint32_t D = p->n_device, g = node - p->base, n_group = p->r->n_group;
    const bool is_group = node >= p->base && g < n_group;
    *op = (cd_place_op){p->op[node].name, CD_PLACE_FREE, NULL};
    for (uint32_t d = 0; d < D; d++) seconds[d] = p->seconds[(size_t)node * D + d];
    if (!is_group) op->pin = 0, op->pin_why = p->op[node].type;
    else if (joint[g] != UINT32_MAX) {
        const cd_offload_match *m = &p->r->joint[joint[g]];
        for (uint32_t d = 0; d < D; d++) seconds[d] = d == m->device ? 0 : (double)INFINITY;
        for (uint32_t i = 0; i < m->n_op; i++)
            seconds[m->device] +=
                p->seconds[(size_t)(p->base + p->r->member[m->first + i]) * D + m->device];
        op->name = m->pattern;
    } else {
        for (uint32_t d = 0; d < D; d++)
            if (!cd_offload_net_allows(p, g, d)) seconds[d] = (double)INFINITY;
        op->pin = p->r->group[g].pin;
        op->pin_why = p->r->group[g].pin_why;
    }
    part->n_op++;
}

/* The placement problem where joint[g] (UINT32_MAX: none) says which groups are one; at (n):
 * operator of each node. In arena `to`.
 *
 * Groups of a joint match share the operator of the first one, which has the smallest number and so
 * exists already. What they pass to each other is not copied: such reads are left out. The lists of
 * readers are filled by counting, prefix sums and a second walk. */
static cdmpp_status offload_net_problem(const cd_offload_net *p, const uint32_t *joint,
                                        cd_arena *to, cd_place_problem *part, uint32_t *at,
                                        cdmpp_err *err) {
    const uint32_t D = p->n_device;
    cd_place_op *op = CD_NEWN(to, cd_place_op, (size_t)p->n + 1);
    cd_place_value *value = CD_NEWN(to, cd_place_value, (size_t)p->n + 1);
    uint32_t *reader = CD_NEWN(to, uint32_t, (size_t)p->n_in + 1);
    double *seconds = CD_NEWN(to, double, ((size_t)p->n + 1) * D);
    if (!op || !value || !reader || !seconds) return CD_FAIL(err, ENOMEM, "%u operators", p->n);
    *part = (cd_place_problem){.n_value = p->n,
                               .n_device = D,
                               .n_link = p->a->n_link,
                               .op = op,
                               .value = value,
                               .to = reader,
                               .device = p->device,
                               .link = p->link,
                               .seconds = seconds};
    for (uint32_t k = 0; k < p->n; k++) {
        const uint32_t g = k - p->base;
        const bool joined = k >= p->base && g < p->r->n_group && joint[g] != UINT32_MAX;
        const uint32_t first = joined ? p->r->member[p->r->joint[joint[g]].first] : g;
        if (joined && first != g) at[k] = at[p->base + first];
        else
            at[k] = part->n_op,
            fill_op(p, k, joint, part, &op[part->n_op], &seconds[(size_t)part->n_op * D]);
    }
    for (uint32_t k = 0; k < p->n; k++)
        value[k] = (cd_place_value){.from = at[k], .bytes = p->bytes[k]};
    for (uint32_t k = 0; k < p->n; k++)
        for (uint32_t i = 0; i < p->op[k].n_in; i++)
            value[p->in[p->op[k].first + i]].n_to += at[p->in[p->op[k].first + i]] != at[k];
    for (uint32_t k = 0; k < p->n; k++)
        value[k].first = part->n_to, part->n_to += value[k].n_to, value[k].n_to = 0;
    for (uint32_t k = 0; k < p->n; k++)
        for (uint32_t i = 0; i < p->op[k].n_in; i++) {
            cd_place_value *v = &value[p->in[p->op[k].first + i]];
            if (v->from != at[k]) reader[v->first + v->n_to++] = at[k];
        }
    return CDMPP_OK;
}

typedef struct {
    cd_offload_net p;
    cd_arena once;
    uint32_t *joint, *where; /* (n_group) of this try */
    uint32_t *at, *at_where; /* (n) */
    double best;             /* of out->where, by the goal */
    cdmpp_err why;           /* of the last cover that cannot be placed */
    bool exact_covers;
} planner;

void cd_offload_net_plan_free(cd_offload_net_plan *o) {
    cd_arena_free(&o->arena);
    *o = (cd_offload_net_plan){0};
}

static double goal_of(const planner *t, const cd_place_cost *c) {
    return t->p.a->goal == CD_PLACE_SUM ? c->sum_s : c->makespan_s;
}

/* ---- placements of groups ---- */

static void to_problem(planner *t, const uint32_t *where) {
    for (uint32_t k = 0; k < t->p.n; k++) {
        const uint32_t g = k - t->p.base;
        t->at_where[t->at[k]] = k >= t->p.base && g < t->p.r->n_group ? where[g] : 0;
    }
}

/* The cost of a placement under the cover in t->joint. */
static cdmpp_status cost_of(planner *t, const uint32_t *where, cd_place_cost *cost,
                            cdmpp_err *err) {
    cd_place_problem part;
    cd_arena_reset(&t->once);
    CD_TRY(offload_net_problem(&t->p, t->joint, &t->once, &part, t->at, err));
    to_problem(t, where);
    return cd_place_evaluate(&part, t->at_where, cost, err);
}

static void keep(planner *t, const uint32_t *where, double goal, double bound, bool exact,
                 const char *method) {
    cd_offload_net_plan *o = t->p.out;
    if (!(goal < t->best)) return;
    t->best = goal;
    memcpy(o->where, where, t->p.r->n_group * sizeof *where);
    memcpy(o->joint, t->joint, t->p.r->n_group * sizeof *o->joint);
    o->bound_s = bound, o->exact = exact, o->method = method;
}

/* A cover for which no placement is possible is no error: its reason is kept. */
static cdmpp_status tried(planner *t, cdmpp_status st, const cdmpp_err *why, cdmpp_err *err) {
    if (st == CDMPP_EINVALID || st == CDMPP_ESCHEMA) {
        t->why = *why;
        return CDMPP_OK;
    }
    if (st && err) *err = *why;
    return st;
}

/* The best placement under the cover in t->joint; a cover for which no placement is possible is
 * skipped, its reason kept in t->why. */
static cdmpp_status solve(planner *t, cdmpp_err *err) {
    cd_place_problem part;
    cd_place_plan plan = {0};
    cdmpp_err why = {0};
    cd_arena_reset(&t->once);
    CD_TRY(offload_net_problem(&t->p, t->joint, &t->once, &part, t->at, err));
    const cdmpp_status st = cd_place_solve(&part, t->p.a->goal, 0, &plan, &why);
    for (uint32_t g = 0; g < t->p.r->n_group && !st; g++)
        t->where[g] = plan.where[t->at[t->p.base + g]];
    if (!st) keep(t, t->where, goal_of(t, &plan.cost), plan.bound_s, plan.exact, plan.method);
    cd_place_plan_free(&plan);
    return tried(t, st, &why, err);
}

/* ---- covers by joint matches ---- */

static void no_cover(planner *t) {
    memset(t->joint, 0xff, ((size_t)t->p.r->n_group + 1) * sizeof *t->joint);
}

static void taken_cover(planner *t) {
    no_cover(t);
    for (uint32_t i = 0; i < t->p.r->n_joint; i++) {
        const cd_offload_match *m = &t->p.r->joint[i];
        bool is_free = m->taken && offload_net_joint_is_open(&t->p, i);
        for (uint32_t k = 0; k < m->n_op; k++)
            is_free = is_free && t->joint[t->p.r->member[m->first + k]] == UINT32_MAX;
        for (uint32_t k = 0; k < m->n_op && is_free; k++)
            t->joint[t->p.r->member[m->first + k]] = i;
    }
}

static double seconds_of(const cd_offload_match *m, const uint32_t *op, uint32_t n, uint32_t device,
                         void *ctx) {
    const cd_offload_net *p = ctx;
    double s = 0;
    (void)m;
    for (uint32_t i = 0; i < n; i++) s += p->seconds[(size_t)op[i] * p->n_device + device];
    return s;
}

/* Rules and matches as cd_offload_choose wants them: operators are the problem's nodes, devices
 * ours. from: joint of each match. */
static cdmpp_status as_rules(planner *t, cd_offload_rules *r, cd_offload *o, uint32_t *from,
                             cdmpp_err *err) {
    const cd_offload_net *p = &t->p;
    const char **name = CD_NEWN(&t->once, const char *, p->n_device);
    uint32_t n_member = 0;
    o->able = CD_NEWN(&t->once, bool, ((size_t)p->n + 1) * p->n_device),
    o->place = CD_NEWN(&t->once, uint32_t, (size_t)p->n + 1);
    o->place_line = CD_NEWN(&t->once, long, (size_t)p->n + 1),
    o->match = CD_NEWN(&t->once, cd_offload_match, (size_t)p->r->n_joint + 1);
    for (uint32_t i = 0; i < p->r->n_joint; i++) n_member += p->r->joint[i].n_op;
    o->member = CD_NEWN(&t->once, uint32_t, (size_t)n_member + 1);
    if (!name || !o->able || !o->place || !o->place_line || !o->match || !o->member)
        return CD_FAIL(err, ENOMEM, "matches");
    for (uint32_t d = 0; d < p->n_device; d++) name[d] = p->r->device[d];
    *r = (cd_offload_rules){.path = p->r->rules->path, .n_device = p->n_device, .device = name};
    o->n_device = p->n_device;
    for (uint32_t k = 0; k < p->n; k++) {
        const uint32_t g = k - p->base;
        const bool is_group = k >= p->base && g < p->r->n_group;
        o->place[k] = is_group ? p->r->group[g].pin : 0;
        for (uint32_t d = 0; d < p->n_device; d++)
            o->able[(size_t)k * p->n_device + d] =
                is_group ? cd_offload_net_allows(p, g, d) : d == 0;
    }
    n_member = 0;
    for (uint32_t i = 0; i < p->r->n_joint; i++) {
        if (!offload_net_joint_is_open(p, i)) continue;
        cd_offload_match m = p->r->joint[i];
        for (uint32_t k = 0; k < m.n_op; k++)
            o->member[n_member + k] = p->base + p->r->member[m.first + k];
        m.first = n_member;
        n_member += m.n_op;
        from[o->n_match] = i;
        o->match[o->n_match++] = m;
    }
    return CDMPP_OK;
}

/* The cover of the least sum. */
static cdmpp_status best_cover(planner *t, cdmpp_err *err) {
    cd_offload_rules rules;
    cd_offload o = {0};
    cd_offload_plan plan = {0};
    cdmpp_err why = {0};
    const cd_offload_options ask = {seconds_of, &t->p, t->p.bytes, t->p.link, t->p.a->n_link};
    const cd_offload_graph g = {t->p.n, t->p.n_in, t->p.op, t->p.in};
    no_cover(t);
    cd_arena_reset(&t->once);
    uint32_t *from = CD_NEWN(&t->once, uint32_t, (size_t)t->p.r->n_joint + 1);
    if (!from) return CD_FAIL(err, ENOMEM, "matches");
    CD_TRY(as_rules(t, &rules, &o, from, err));
    const cdmpp_status st = cd_offload_choose(&rules, &g, &o, &ask, &plan, &why);
    for (uint32_t k = 0; k < t->p.r->n_group && !st; k++) {
        const uint32_t m = plan.match[t->p.base + k];
        t->joint[k] = m == UINT32_MAX ? m : from[m];
    }
    if (!st) t->exact_covers = plan.exact && t->p.a->goal == CD_PLACE_SUM;
    cd_offload_plan_free(&plan);
    return tried(t, st, &why, err);
}

static cdmpp_status best_of_covers(planner *t, cdmpp_err *err) {
    t->best = (double)INFINITY;
    t->exact_covers = !t->p.r->n_joint;
    no_cover(t);
    CD_TRY(solve(t, err));
    if (!t->p.r->n_joint) return CDMPP_OK;
    taken_cover(t);
    CD_TRY(solve(t, err));
    CD_TRY(best_cover(t, err));
    return solve(t, err);
}

/* ---- what it is compared with ---- */

/* TVM's placement: each group on the first device other than the host that may run it. host: each
 * group on the host if it may run there. */
static void rule_of_thumb(const planner *t, bool host, uint32_t *where) {
    for (uint32_t g = 0; g < t->p.r->n_group; g++) {
        const cd_offload_group *x = &t->p.r->group[g];
        uint32_t first = 0;
        where[g] = 0;
        while (first < t->p.n_device && !cd_offload_net_allows(&t->p, g, first)) first++;
        if (first < t->p.n_device) where[g] = first;
        for (uint32_t d = t->p.n_device; d-- > 1 && !host;)
            if (cd_offload_net_allows(&t->p, g, d)) where[g] = d;
        if (t->joint[g] != UINT32_MAX) where[g] = t->p.r->joint[t->joint[g]].device;
        else if (x->pin != CD_PLACE_FREE) where[g] = x->pin;
    }
}

/* Marks groups to go back to the host: those in regions on another device without a multiply-add.
 * *n: how many. */
static cdmpp_status send_home(planner *t, uint32_t *where, uint32_t *n, cdmpp_err *err) {
    cd_place_problem part;
    cd_place_regions regions = {0};
    const uint32_t base = t->p.base, n_group = t->p.r->n_group;
    *n = 0;
    cd_arena_reset(&t->once);
    CD_TRY(offload_net_problem(&t->p, t->joint, &t->once, &part, t->at, err));
    to_problem(t, where);
    bool *mac = CD_NEWN(&t->once, bool, (size_t)part.n_op + 1);
    if (!mac) return CD_FAIL(err, ENOMEM, "regions");
    const cdmpp_status st = cd_place_merge_regions(&part, t->at_where, &regions, err);
    for (uint32_t g = 0; g < n_group && !st; g++)
        if (t->p.r->ops.mac[g] || t->p.r->group[g].pin != CD_PLACE_FREE)
            mac[regions.of[t->at[base + g]]] = true;
    for (uint32_t g = 0; g < n_group && !st; g++) {
        if (!where[g] || mac[regions.of[t->at[base + g]]] || !(t->p.r->group[g].allowed & 1))
            continue;
        t->p.home[g] = true;
        ++*n;
    }
    cd_place_regions_free(&regions);
    return st;
}

static cdmpp_status baseline(planner *t, uint32_t k, const char *name, cdmpp_err *err) {
    cd_offload_baseline *b = &t->p.out->base[k];
    uint32_t *where = CD_NEWN(&t->p.out->arena, uint32_t, (size_t)t->p.r->n_group + 1);
    if (!where) return CD_FAIL(err, ENOMEM, "placement");
    uint32_t n = 0;
    if (k == 0) no_cover(t);
    else taken_cover(t);
    rule_of_thumb(t, k == 0, where);
    if (k == 2) { /* groups that came home stay there for this baseline alone */
        CD_TRY(send_home(t, where, &n, err));
        taken_cover(t);
        rule_of_thumb(t, false, where);
    }
    *b = (cd_offload_baseline){.name = name, .where = where};
    cdmpp_err why = {0};
    const cdmpp_status st = cost_of(t, where, &b->cost, &why);
    if (st == CDMPP_EINVALID || st == CDMPP_ESCHEMA)
        b->cost.sum_s = b->cost.makespan_s = (double)INFINITY;
    else if (st && err) *err = why;
    if (st && isfinite(b->cost.sum_s)) return st;
    if (!t->p.a->mac || k != 1)
        keep(t, where, goal_of(t, &b->cost), t->p.out->bound_s, false, name);
    if (k == 2) memset(t->p.home, 0, t->p.r->n_group * sizeof *t->p.home);
    return CDMPP_OK;
}

/* ---- all of it ---- */

static cdmpp_status start(planner *t, cdmpp_err *err) {
    cd_offload_net_plan *o = t->p.out;
    const size_t n = (size_t)t->p.r->n_group + 1;
    CD_TRY(offload_net_make(&t->p, err));
    o->where = CD_NEWN(&o->arena, uint32_t, n), o->joint = CD_NEWN(&o->arena, uint32_t, n),
    o->at = CD_NEWN(&o->arena, uint32_t, n);
    t->joint = CD_NEWN(&t->p.own, uint32_t, n), t->where = CD_NEWN(&t->p.own, uint32_t, n);
    t->at = CD_NEWN(&t->p.own, uint32_t, (size_t)t->p.n + 1),
    t->at_where = CD_NEWN(&t->p.own, uint32_t, (size_t)t->p.n + 1);
    o->at_where = CD_NEWN(&o->arena, uint32_t, (size_t)t->p.n + 1);
    if (!o->where || !o->joint || !o->at || !t->joint || !t->where || !t->at || !t->at_where ||
        !o->at_where)
        return CD_FAIL(err, ENOMEM, "%u groups", t->p.r->n_group);
    o->bound_s = -(double)INFINITY;
    t->best = (double)INFINITY;
    return CDMPP_OK;
}

/* The problem, cost, regions and boundary of out->where. */
static cdmpp_status finish(planner *t, cdmpp_err *err) {
    cd_offload_net_plan *o = t->p.out;
    memcpy(t->joint, o->joint, t->p.r->n_group * sizeof *t->joint);
    CD_TRY(offload_net_problem(&t->p, t->joint, &o->arena, &o->part, t->at, err));
    to_problem(t, o->where);
    memcpy(o->at_where, t->at_where, o->part.n_op * sizeof *o->at_where);
    for (uint32_t g = 0; g < t->p.r->n_group; g++) o->at[g] = t->at[t->p.base + g];
    CD_TRY(cd_place_evaluate(&o->part, o->at_where, &o->cost, err));
    return cd_offload_net_report(&t->p, err);
}

/* With `mac`, regions without a multiply-add come home and the rest is planned again until there is
 * none; each round sends at least one group home, so this ends. Baselines are computed without
 * these marks, which are put back for the reasons. */
static cdmpp_status plan_all(planner *t, cdmpp_err *err) {
    uint32_t n = 0;
    CD_TRY(start(t, err));
    for (bool again = true; again;) {
        CD_TRY(best_of_covers(t, err));
        if (!isfinite(t->best)) {
            if (err) *err = t->why;
            if (t->why.code) return t->why.code;
            return CD_FAIL(err, EINVALID, "no placement is possible");
        }
        memcpy(t->joint, t->p.out->joint, t->p.r->n_group * sizeof *t->joint);
        if (t->p.a->mac) CD_TRY(send_home(t, t->p.out->where, &n, err));
        t->p.out->n_pruned += n;
        again = n > 0;
    }
    t->p.out->exact = t->p.out->exact && t->exact_covers;
    if (!t->exact_covers) t->p.out->bound_s = -(double)INFINITY;
    bool *home = t->p.home;
    t->p.home = CD_NEWN(&t->p.own, bool, (size_t)t->p.r->n_group + 1);
    if (!t->p.home) return CD_FAIL(err, ENOMEM, "groups");
    static const char *const name[] = {"host", "greedy", "pruned"};
    for (uint32_t k = 0; k < 3; k++) CD_TRY(baseline(t, k, name[k], err));
    t->p.home = home;
    return finish(t, err);
}

static cdmpp_status place_all(planner *t, const uint32_t *where, cdmpp_err *err) {
    CD_TRY(start(t, err));
    no_cover(t);
    for (uint32_t g = 0; g < t->p.r->n_group; g++) {
        const uint32_t d = where[g];
        if (d >= t->p.n_device)
            return CD_FAIL(err, EINVALID, "group %s: device %u of %u",
                           t->p.r->loaded->graph->node[g].name, d, t->p.n_device);
        if (!cd_offload_net_allows(&t->p, g, d))
            return CD_FAIL(err, EINVALID, "group %s cannot be on %s: %s",
                           t->p.r->loaded->graph->node[g].name, t->p.r->device[d],
                           t->p.r->group[g].why[d] ? t->p.r->group[g].why[d]
                                                   : t->p.r->group[g].pin_why);
    }
    keep(t, where, 0, -(double)INFINITY, false, "given");
    return finish(t, err);
}

cdmpp_status cd_offload_plan_make(const cd_offload_plan_options *a, const uint32_t *where,
                                  cd_offload_net_plan *out, cdmpp_err *err) {
    planner t = {.p = {.a = a, .r = a->rules, .out = out}};
    *out = (cd_offload_net_plan){.rules = a->rules};
    const cdmpp_status st = where ? place_all(&t, where, err) : plan_all(&t, err);
    cd_arena_free(&t.once);
    cd_arena_free(&t.p.own);
    return st;
}

/* Builds the placement problem (placement.h): inputs, groups and results as operators, conversions
 * as part of links, and joint matches as one operator each. */
#include <math.h>

#include "predictor/partition/offload/offload_plan_internal.h"

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
        f[d] = cd_offload_edge_format_of(p->r->rules, p->r->rule_of[d], &host);
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

cdmpp_status cd_offload_net_make(cd_offload_net *p, cdmpp_err *err) {
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

bool cd_offload_net_joint_is_open(const cd_offload_net *p, uint32_t joint) {
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

/* Groups of a joint match share the operator of the first one, which has the smallest number and so
 * exists already. What they pass to each other is not copied: such reads are left out. The lists of
 * readers are filled by counting, prefix sums and a second walk. */
cdmpp_status cd_offload_net_problem(const cd_offload_net *p, const uint32_t *joint, cd_arena *to,
                                    cd_place_problem *part, uint32_t *at, cdmpp_err *err) {
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

/* Applies rules to groups of a network. Rules speak of operators, but times are known of groups
 * only: so a group may run where each of its operators is supported or covered by a match. In
 * order: groups by themselves, matches over several groups, place lines. */
#include "predictor/partition/offload/offload_match.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "predictor/partition/offload/offload_rules_internal.h"

typedef struct {
    cd_offload_net_match *r;
    uint32_t *mark; /* (n_op) stamp of the match that covers it, in one try */
    uint32_t stamp;
    uint32_t cap_joint, n_member, cap_member, cap_cut;
} ruler;

void cd_offload_match_done(cd_offload_net_match *r) {
    cd_offload_done(&r->found);
    cd_arena_free(&r->arena);
    *r = (cd_offload_net_match){0};
}

/* ---- devices ---- */

/* 2: the same name, 1: the name and a number, 0: another device. */
static int is_called(const char *rule, const char *device) {
    const size_t n = strlen(rule);
    if (strncmp(rule, device, n)) return 0;
    if (!device[n]) return 2;
    for (const char *p = device + n; *p; p++)
        if (!isdigit((unsigned char)*p)) return 0;
    return 1;
}

/* An exact name beats a name with a number: a rule of "npu1" is meant for npu1 even if the rules
 * also have "npu". */
static cdmpp_status bind(cd_offload_net_match *r, const cd_offload_match_options *a,
                         cdmpp_err *err) {
    const char *const *name;
    const uint32_t n = cd_offload_devices(a->rules, &name);
    r->n_device = a->n_device ? a->n_device : n;
    r->device = a->n_device ? a->device : name;
    if (r->n_device > CD_PLACE_MAX_DEVICE)
        return CD_FAIL(err, ERANGE, "%u devices: expected at most %d", r->n_device,
                       CD_PLACE_MAX_DEVICE);
    r->rule_of = CD_NEWN(&r->arena, uint32_t, (size_t)r->n_device + 1);
    if (!r->rule_of) return CD_FAIL(err, ENOMEM, "devices");
    for (uint32_t d = 0; d < r->n_device; d++) {
        int best = 0;
        r->rule_of[d] = UINT32_MAX;
        for (uint32_t q = 0; q < n; q++) {
            const int is = is_called(name[q], r->device[d]);
            if (is > best) best = is, r->rule_of[d] = q;
        }
    }
    if (r->rule_of[0] != 0)
        return cd_err_at(err,
                         CD_FAIL(err, EINVALID,
                                 "the first device is %s: expected the rules' host, %s",
                                 r->device[0], name[0]),
                         a->rules->path, 1);
    return CDMPP_OK;
}

/* ---- groups by themselves ---- */

static const uint32_t *members(const cd_offload_net_match *r, uint32_t match, uint32_t *n) {
    *n = r->found.match[match].n_op;
    return r->found.member + r->found.match[match].first;
}

/* All members in this group and in no other? */
static bool is_within(const cd_offload_net_match *r, uint32_t match, uint32_t group) {
    uint32_t n;
    const uint32_t *op = members(r, match, &n);
    for (uint32_t i = 0; i < n; i++)
        if (r->ops.of_n[op[i]] != 1 || r->ops.of[r->ops.of_first[op[i]]] != group) return false;
    return true;
}

static bool able(const cd_offload_net_match *r, uint32_t op, uint32_t rule) {
    return r->found.able[(size_t)op * r->found.n_device + rule];
}

/* First operator of a group that the device cannot run alone and no match of this try covers;
 * UINT32_MAX: none. */
static uint32_t lacking(const ruler *t, uint32_t group, uint32_t rule) {
    const cd_offload_ops *o = &t->r->ops;
    for (uint32_t i = 0; i < o->in_n[group]; i++) {
        const uint32_t k = o->in[o->in_first[group] + i];
        if (t->mark[k] != t->stamp && !able(t->r, k, rule)) return k;
    }
    return UINT32_MAX;
}

static bool cover(ruler *t, uint32_t match, bool on) {
    uint32_t n;
    const uint32_t *op = members(t->r, match, &n);
    for (uint32_t i = 0; i < n && on; i++)
        if (t->mark[op[i]] == t->stamp) return false;
    for (uint32_t i = 0; i < n; i++) t->mark[op[i]] = on ? t->stamp : 0;
    return true;
}

static bool has(const cd_offload_net_match *r, uint32_t match, uint32_t op) {
    uint32_t n;
    const uint32_t *at = members(r, match, &n);
    for (uint32_t i = 0; i < n; i++)
        if (at[i] == op) return true;
    return false;
}

/* Can matches within the group, which do not overlap, cover all operators that the device cannot
 * run alone? Tried by backtracking; leaves the matches marked. */
static bool can_cover(ruler *t, uint32_t group, uint32_t rule) {
    const uint32_t op = lacking(t, group, rule);
    if (op == UINT32_MAX) return true;
    for (uint32_t i = 0; i < t->r->found.n_match; i++) {
        if (t->r->found.match[i].device != rule || !has(t->r, i, op) ||
            !is_within(t->r, i, group) || !cover(t, i, true))
            continue;
        if (can_cover(t, group, rule)) return true;
        cover(t, i, false);
    }
    return false;
}

/* The operator that keeps a group from the device, for the reason: rather one that is in no match
 * than one that a match could cover. */
static uint32_t culprit(const ruler *t, uint32_t group, uint32_t rule) {
    const cd_offload_net_match *r = t->r;
    const uint32_t first = lacking(t, group, rule);
    for (uint32_t i = 0; i < r->ops.in_n[group]; i++) {
        const uint32_t k = r->ops.in[r->ops.in_first[group] + i];
        bool reached = able(r, k, rule);
        for (uint32_t m = 0; m < r->found.n_match && !reached; m++)
            reached = r->found.match[m].device == rule && has(r, m, k);
        if (!reached) return k;
    }
    return first;
}

static cdmpp_status say_why(cd_offload_net_match *r, uint32_t op, uint32_t rule, const char **out,
                            cdmpp_err *err) {
    char text[1024];
    const char *why = r->found.why[(size_t)op * r->found.n_device + rule];
    snprintf(text, sizeof text, "%.400s (%.60s): %.500s", r->ops.graph.op[op].name,
             r->ops.graph.op[op].type, why ? why : "");
    *out = cd_str_dup(&r->arena, (cd_str){text, strlen(text)});
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "reason");
}

/* The host may run everything, and alone runs groups without a definition. A new stamp makes the
 * marks of all earlier tries invalid, so they need no clearing. */
static cdmpp_status judge(ruler *t, uint32_t group, cdmpp_err *err) {
    cd_offload_net_match *r = t->r;
    const char **why = CD_NEWN(&r->arena, const char *, (size_t)r->n_device + 1);
    cd_offload_group *g = &r->group[group];
    if (!why) return CD_FAIL(err, ENOMEM, "reasons");
    g->pin = CD_PLACE_FREE;
    g->why = why;
    for (uint32_t d = 0; d < r->n_device; d++) {
        const bool known = r->loaded->work->group[group].task != CD_GRAPH_NONE;
        t->stamp++;
        if (d == 0 ||
            (known && (r->rule_of[d] == UINT32_MAX || can_cover(t, group, r->rule_of[d]))))
            g->allowed |= 1u << d;
        else if (!known) why[d] = "nothing defines it, so it stays on the host";
        else CD_TRY(say_why(r, culprit(t, group, r->rule_of[d]), r->rule_of[d], &why[d], err));
    }
    return CDMPP_OK;
}

/* ---- matches over several groups ---- */

/* The groups of a match, each once, ascending, to `to`; how many. */
static uint32_t groups_of(const cd_offload_net_match *r, uint32_t match, uint32_t *to) {
    uint32_t n, k = 0;
    const uint32_t *op = members(r, match, &n);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < r->ops.of_n[op[i]]; j++) {
            const uint32_t g = r->ops.of[r->ops.of_first[op[i]] + j];
            uint32_t at = k;
            while (at && to[at - 1] >= g) at--;
            if (at < k && to[at] == g) continue;
            memmove(to + at + 1, to + at, (k - at) * sizeof *to);
            to[at] = g;
            k++;
        }
    return k;
}

/* Two lists grow: the joint matches, and one list of the members of all of them. */
static cdmpp_status joint_room(ruler *t, uint32_t n, cdmpp_err *err) {
    cd_offload_net_match *r = t->r;
    if (CD_GROW_IN(&r->arena, r->joint, r->n_joint, t->cap_joint))
        return CD_FAIL(err, ENOMEM, "matches");
    if (t->n_member + n > t->cap_member) {
        uint32_t *more = CD_NEWN(&r->arena, uint32_t, t->cap_member = 2 * t->cap_member + n + 64);
        if (!more) return CD_FAIL(err, ENOMEM, "matches");
        if (t->n_member) memcpy(more, r->member, t->n_member * sizeof *more);
        r->member = more;
    }
    return CDMPP_OK;
}

static bool is_there(const cd_offload_net_match *r, uint32_t device, const uint32_t *group,
                     uint32_t n) {
    for (uint32_t i = 0; i < r->n_joint; i++)
        if (r->joint[i].device == device && r->joint[i].n_op == n &&
            !memcmp(r->member + r->joint[i].first, group, n * sizeof *group))
            return true;
    return false;
}

/* A match over several groups is useful only where it brings a group to a device on which the group
 * cannot run by itself, and possible only if other matches or support lines cover what it leaves
 * out in each group. */
static cdmpp_status join(ruler *t, uint32_t match, uint32_t d, const uint32_t *group, uint32_t n,
                         cdmpp_err *err) {
    cd_offload_net_match *r = t->r;
    const cd_offload_match *m = &r->found.match[match];
    bool adds = false;
    for (uint32_t i = 0; i < n; i++) {
        adds = adds || !(r->group[group[i]].allowed >> d & 1);
        if (r->loaded->work->group[group[i]].task == CD_GRAPH_NONE) return CDMPP_OK;
    }
    t->stamp++;
    cover(t, match, true);
    for (uint32_t i = 0; i < n && adds; i++) adds = can_cover(t, group[i], m->device);
    if (!adds || is_there(r, d, group, n)) return CDMPP_OK;
    CD_TRY(joint_room(t, n, err));
    memcpy(r->member + t->n_member, group, n * sizeof *group);
    r->joint[r->n_joint++] = (cd_offload_match){m->pattern, d, m->line, t->n_member, n, m->taken};
    t->n_member += n;
    for (uint32_t i = 0; i < n; i++)
        if (!(r->group[group[i]].allowed >> d & 1)) r->group[group[i]].together |= 1u << d;
    return CDMPP_OK;
}

/* The group cannot follow the match (stops) if an operator that the match leaves out cannot run on
 * that device, not even by another match. */
static cdmpp_status note_cut(ruler *t, uint32_t match, uint32_t group, cdmpp_err *err) {
    cd_offload_net_match *r = t->r;
    const cd_offload_ops *o = &r->ops;
    uint32_t left = UINT32_MAX;
    for (uint32_t i = 0; i < o->in_n[group] && left == UINT32_MAX; i++)
        if (!has(r, match, o->in[o->in_first[group] + i])) left = o->in[o->in_first[group] + i];
    if (left == UINT32_MAX) return CDMPP_OK;
    if (CD_GROW_IN(&r->arena, r->cut, r->n_cut, t->cap_cut)) return CD_FAIL(err, ENOMEM, "cuts");
    t->stamp++;
    cover(t, match, true);
    const bool stops = !can_cover(t, group, r->found.match[match].device);
    r->cut[r->n_cut++] = (cd_offload_cut){
        match, group, stops ? lacking(t, group, r->found.match[match].device) : left, stops};
    return CDMPP_OK;
}

static cdmpp_status look_at_match(ruler *t, uint32_t match, cdmpp_err *err) {
    cd_offload_net_match *r = t->r;
    uint32_t n_op, room = 1;
    const uint32_t *op = members(r, match, &n_op);
    for (uint32_t i = 0; i < n_op; i++) room += r->ops.of_n[op[i]];
    uint32_t *group = CD_NEWN(&r->arena, uint32_t, (size_t)room + 1);
    if (!group) return CD_FAIL(err, ENOMEM, "match");
    const uint32_t n = groups_of(r, match, group);
    for (uint32_t i = 0; i < n; i++) CD_TRY(note_cut(t, match, group[i], err));
    for (uint32_t d = 1; d < r->n_device && n > 1; d++)
        if (r->rule_of[d] == r->found.match[match].device) CD_TRY(join(t, match, d, group, n, err));
    return CDMPP_OK;
}

/* ---- places ---- */

static cdmpp_status refuse(const cd_offload_net_match *r, uint32_t group, uint32_t op,
                           cdmpp_err *err) {
    const uint32_t q = r->found.place[op];
    const char *why = NULL;
    for (uint32_t d = 0; d < r->n_device && !why; d++)
        if (r->rule_of[d] == q) why = r->group[group].why[d];
    const cdmpp_status st =
        why ? CD_FAIL(err, EINVALID,
                      "place: %s cannot be on %s with group %s, which runs as one: %s",
                      r->ops.graph.op[op].name, r->rules->device[q],
                      r->loaded->graph->node[group].name, why)
            : CD_FAIL(err, EINVALID, "place: %s is to be on %s, which is none of the devices",
                      r->ops.graph.op[op].name, r->rules->device[q]);
    return cd_err_at(err, st, r->rules->path, r->found.place_line[op]);
}

/* A group runs as one, so a place line of any of its operators moves the whole group. The rules'
 * device may stand for several devices (cpu: cpu0, cpu1): then the group is limited to those and
 * not pinned. */
static cdmpp_status place(cd_offload_net_match *r, uint32_t group, cdmpp_err *err) {
    cd_offload_group *g = &r->group[group];
    uint32_t first = UINT32_MAX, mask = 0, n = 0;
    for (uint32_t i = 0; i < r->ops.in_n[group]; i++) {
        const uint32_t k = r->ops.in[r->ops.in_first[group] + i], q = r->found.place[k];
        if (q == UINT32_MAX) continue;
        if (first != UINT32_MAX && r->found.place[first] != q)
            return cd_err_at(err,
                             CD_FAIL(err, EINVALID,
                                     "place: %s is to be on %s, but line %ld places %s on %s, and "
                                     "both are in group %s, which runs as one",
                                     r->ops.graph.op[k].name, r->rules->device[q],
                                     r->found.place_line[first], r->ops.graph.op[first].name,
                                     r->rules->device[r->found.place[first]],
                                     r->loaded->graph->node[group].name),
                             r->rules->path, r->found.place_line[k]);
        if (first == UINT32_MAX) first = k;
    }
    if (first == UINT32_MAX) return CDMPP_OK;
    for (uint32_t d = 0; d < r->n_device; d++)
        if (r->rule_of[d] == r->found.place[first] && ((g->allowed | g->together) >> d & 1))
            mask |= 1u << d, g->pin = d, n++;
    if (!mask) return refuse(r, group, first, err);
    if (n > 1) g->pin = CD_PLACE_FREE;
    g->allowed &= mask;
    g->together &= mask;
    char text[600];
    snprintf(text, sizeof text, "%.500s:%ld", r->rules->path, r->found.place_line[first]);
    g->pin_why = cd_str_dup(&r->arena, (cd_str){text, strlen(text)});
    return g->pin_why ? CDMPP_OK : CD_FAIL(err, ENOMEM, "reason");
}

/* ---- all of it ---- */

static cdmpp_status apply(const cd_offload_match_options *a, ruler *t, cdmpp_err *err) {
    cd_offload_net_match *r = t->r;
    CD_TRY(bind(r, a, err));
    CD_TRY(cd_offload_ops_list(a->loaded, &r->arena, &r->ops, err));
    CD_TRY(cd_offload_apply(a->rules, &r->ops.graph, &r->found, err));
    r->n_group = a->loaded->work->n_group;
    r->group = CD_NEWN(&r->arena, cd_offload_group, (size_t)r->n_group + 1);
    t->mark = cd_mem_zalloc((size_t)r->ops.graph.n_op + 1, sizeof *t->mark);
    if (!r->group || !t->mark) return CD_FAIL(err, ENOMEM, "%u groups", r->n_group);
    for (uint32_t g = 0; g < r->n_group; g++) CD_TRY(judge(t, g, err));
    for (uint32_t m = 0; m < r->found.n_match; m++) CD_TRY(look_at_match(t, m, err));
    for (uint32_t g = 0; g < r->n_group; g++) CD_TRY(place(r, g, err));
    return CDMPP_OK;
}

cdmpp_status cd_offload_match_apply(const cd_offload_match_options *a, cd_offload_net_match *out,
                                    cdmpp_err *err) {
    ruler t = {.r = out};
    *out = (cd_offload_net_match){.loaded = a->loaded, .rules = a->rules};
    const cdmpp_status st = apply(a, &t, err);
    cd_mem_free(t.mark);
    return st;
}

void cd_offload_match_print_cut(const cd_offload_net_match *r, uint32_t cut, cd_buf *out) {
    const cd_offload_cut *c = &r->cut[cut];
    const cd_offload_match *m = &r->found.match[c->match];
    const cd_offload_op *o = &r->ops.graph.op[c->op];
    cd_buf_putf(out, "pattern %s (%s:%ld) cuts through group %s: %s (%s) is not in it, ",
                m->pattern, r->rules->path, m->line, r->loaded->graph->node[c->group].name, o->name,
                o->type);
    if (c->stops)
        cd_buf_putf(out, "and %s cannot run it: the group stays where it was",
                    r->rules->device[m->device]);
    else cd_buf_putf(out, "but %s can run that as well", r->rules->device[m->device]);
}

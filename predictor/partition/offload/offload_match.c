/* Applies rules to groups of a network. Rules speak of operators, but times are known of groups
 * only: so a group may run where each of its operators is supported or covered by a match. In
 * order: groups by themselves, matches over several groups, place lines. */
#include "predictor/partition/offload/offload_match.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "predictor/partition/offload/offload_rules_internal.h"

/* Applies rules to a graph: finds the devices that can run each operator, then the chains that
 * patterns match. Patterns come last, because refuse and place lines limit them. */

void cd_offload_done(cd_offload *o) {
    cd_arena_free(&o->arena);
    *o = (cd_offload){0};
}

/* "a|b" has the word */
static bool offload_among(const char *list, const char *word) {
    return cd_enum_names_find(list, (cd_str){word, strlen(word)}) >= 0;
}

/* ---- conditions ---- */

static bool equal(const char *want, size_t n, const char *is) {
    char text[64], *end_a, *end_b;
    if (strlen(is) == n && !memcmp(want, is, n)) return true;
    if (n >= sizeof text || !n) return false;
    memcpy(text, want, n);
    text[n] = 0;
    const double a = strtod(text, &end_a), b = strtod(is, &end_b);
    return !*end_a && !*end_b && *is && a == b; /* 1 and 1.0 */
}

static bool one_of(const char *list, const char *is) {
    for (const char *p = list;; p++) {
        const size_t n = strcspn(p, "|");
        if (equal(p, n, is)) return true;
        if (!*(p += n)) return false;
    }
}

/* = and != compare with each alternative, as texts or numbers; the other signs compare numbers, and
 * a text does not meet them. */
static bool compare(const cd_offload_cond *c, const char *is) {
    if (c->cmp == CD_RULE_CMP_EQ) return one_of(c->value, is);
    if (c->cmp == CD_RULE_CMP_NE) return !one_of(c->value, is);
    char *end;
    const double a = strtod(is, &end), b = strtod(c->value, NULL);
    if (!*is || *end) return false;
    switch (c->cmp) {
    case CD_RULE_CMP_LE: return a <= b;
    case CD_RULE_CMP_GE: return a >= b;
    case CD_RULE_CMP_LT: return a < b;
    case CD_RULE_CMP_GT: return a > b;
    case CD_CMP_DIV: return a == (double)(int64_t)(a / b) * b;
    case CD_RULE_CMP_EQ:
    case CD_RULE_CMP_NE: break;
    }
    return false;
}

/* its conditions on link (1 ..); 0: a single operator */
static bool offload_meets(const cd_offload_rule *r, const cd_offload_op *o, uint32_t link) {
    for (uint32_t i = 0; i < r->n_cond; i++) {
        const cd_offload_cond *c = &r->cond[i];
        if (c->link && link && c->link != link) continue;
        bool ok = false;
        for (uint32_t k = 0; k < o->n_attr && !ok; k++)
            ok = !strcmp(o->attr[k].key, c->key) && compare(c, o->attr[k].value);
        if (!ok) return false;
    }
    return true;
}

/* ---- one operator and one device ---- */

typedef struct {
    const cd_offload_rules *r;
    const cd_offload_graph *g;
    cd_offload *out;
    uint32_t *n_reader, *reader; /* (n_op) how many, and the last of them */
    bool *refused;               /* (n_op, n_device) */
    bool *used;                  /* (n_op) by a match that is taken */
    size_t cap_match, cap_member, n_member;
} matcher;

static bool names(const cd_offload_rule *q, const char *type) {
    for (uint32_t i = 0; i < q->n_link; i++)
        if (offload_among(q->link[i].type, type)) return true;
    return false;
}

static const char *say(matcher *m, long line, const char *what, const char *who) {
    char text[512];
    const int n = line ? snprintf(text, sizeof text, "%s:%ld: %s", m->r->path, line, what)
                       : snprintf(text, sizeof text, "%s %s", what, who);
    return cd_str_dup(&m->out->arena,
                      (cd_str){text, n < (int)sizeof text ? (size_t)n : sizeof text - 1});
}

/* A refuse line wins over any support line. The reason names the line that decides: refuse, else a
 * support line whose conditions are not met. */
static cdmpp_status judge_rules(matcher *m, uint32_t k, uint32_t d, cdmpp_err *err) {
    const size_t at = (size_t)k * m->r->n_device + d;
    const cd_offload_op *o = &m->g->op[k];
    long refuse = 0, almost = 0;
    bool able = d == 0;
    for (uint32_t i = 0; i < m->r->n_rule; i++) {
        const cd_offload_rule *q = &m->r->rule[i];
        if (q->device != d || (q->kind != CD_OFFLOAD_SUPPORT && q->kind != CD_OFFLOAD_REFUSE) ||
            !names(q, o->type))
            continue;
        const bool meets = offload_meets(q, o, 0);
        if (q->kind == CD_OFFLOAD_REFUSE && meets && !refuse) refuse = q->line;
        if (q->kind == CD_OFFLOAD_SUPPORT && meets) able = true;
        if (q->kind == CD_OFFLOAD_SUPPORT && !meets && !almost) almost = q->line;
    }
    m->refused[at] = refuse != 0;
    m->out->able[at] = able && !refuse;
    if (m->out->able[at]) return CDMPP_OK;
    m->out->why[at] = refuse   ? say(m, refuse, "refuse", NULL)
                      : almost ? say(m, almost, "conditions are not met", NULL)
                               : say(m, 0, "no support line for", o->type);
    return m->out->why[at] ? CDMPP_OK : CD_FAIL(err, ENOMEM, "reason");
}

static cdmpp_status place_rules(matcher *m, const cd_offload_rule *q, cdmpp_err *err) {
    bool some = false;
    for (uint32_t k = 0; k < m->g->n_op; k++) {
        if (!cd_str_fits(q->name, m->g->op[k].name)) continue;
        some = true;
        if (m->out->place[k] != UINT32_MAX && m->out->place[k] != q->device)
            return cd_err_at(err,
                             CD_FAIL(err, EINVALID, "place %s %s: line %ld places %s on %s",
                                     q->name, m->r->device[q->device], m->out->place_line[k],
                                     m->g->op[k].name, m->r->device[m->out->place[k]]),
                             m->r->path, q->line);
        if (m->out->place[k] == UINT32_MAX)
            m->out->place[k] = q->device, m->out->place_line[k] = q->line;
    }
    return some ? CDMPP_OK
                : cd_err_at(err,
                            CD_FAIL(err, ESCHEMA, "place %s: no operator of that name", q->name),
                            m->r->path, q->line);
}

/* ---- chains ---- */

static bool link_fits(const matcher *m, const cd_offload_rule *q, uint32_t i, uint32_t k) {
    return offload_among(q->link[i].type, m->g->op[k].type) &&
           offload_meets(q, &m->g->op[k], i + 1) &&
           !m->refused[(size_t)k * m->r->n_device + q->device] &&
           (m->out->place[k] == UINT32_MAX || m->out->place[k] == q->device);
}

/* Matches the chain from operator k as link i on; its members go to `to`. The number of them; 0: no
 * match. An operator inside the chain must have one reader only. */
static uint32_t follow(const matcher *m, const cd_offload_rule *q, uint32_t i, uint32_t k,
                       uint32_t *to) {
    if (!link_fits(m, q, i, k)) return 0;
    *to = k;
    for (uint32_t j = i + 1; j < q->n_link; j++) {
        const uint32_t n = m->n_reader[k] == 1 ? follow(m, q, j, m->reader[k], to + 1) : 0;
        if (n) return n + 1;
        if (!q->link[j].maybe) return 0;
    }
    return 1;
}

/* Room for one more of either. */
static cdmpp_status make_room(matcher *m, cdmpp_err *err) {
    cd_offload *o = m->out;
    if (CD_GROW_IN(&o->arena, o->match, o->n_match, m->cap_match))
        return CD_FAIL(err, ENOMEM, "matches");
    if (m->n_member + CD_OFFLOAD_LINKS > m->cap_member) {
        uint32_t *more =
            CD_NEWN(&o->arena, uint32_t, m->cap_member = m->cap_member ? 2 * m->cap_member : 256);
        if (!more) return CD_FAIL(err, ENOMEM, "%zu members", m->cap_member);
        if (m->n_member) memcpy(more, o->member, m->n_member * sizeof *more);
        o->member = more;
    }
    return CDMPP_OK;
}

static cdmpp_status try_pattern(matcher *m, const cd_offload_rule *q, cdmpp_err *err) {
    for (uint32_t k = 0; k < m->g->n_op; k++) {
        CD_TRY(make_room(m, err));
        uint32_t *to = m->out->member + m->n_member;
        const uint32_t n = follow(m, q, 0, k, to);
        if (!n) continue;
        bool taken = true;
        for (uint32_t i = 0; i < n; i++) taken = taken && !m->used[to[i]];
        for (uint32_t i = 0; i < n && taken; i++) m->used[to[i]] = true;
        m->out->match[m->out->n_match++] =
            (cd_offload_match){q->name, q->device, q->line, (uint32_t)m->n_member, n, taken};
        m->n_member += n;
    }
    return CDMPP_OK;
}

/* ---- all of it ---- */

static cdmpp_status prepare(matcher *m, cd_arena *own, cdmpp_err *err) {
    const cd_offload_graph *g = m->g;
    const size_t n = (size_t)g->n_op + 1, D = m->r->n_device;
    m->out->n_device = m->r->n_device;
    m->out->able = CD_NEWN(&m->out->arena, bool, n *D),
    m->out->why = CD_NEWN(&m->out->arena, const char *, n *D);
    m->out->place = CD_NEWN(&m->out->arena, uint32_t, n),
    m->out->place_line = CD_NEWN(&m->out->arena, long, n);
    m->n_reader = CD_NEWN(own, uint32_t, n), m->reader = CD_NEWN(own, uint32_t, n),
    m->refused = CD_NEWN(own, bool, n *D), m->used = CD_NEWN(own, bool, n);
    if (!m->out->able || !m->out->why || !m->out->place || !m->out->place_line || !m->n_reader ||
        !m->reader || !m->refused || !m->used)
        return CD_FAIL(err, ENOMEM, "%u operators", g->n_op);
    memset(m->out->place, 0xff, n * sizeof *m->out->place);
    for (uint32_t k = 0; k < g->n_op; k++) {
        const cd_offload_op *o = &g->op[k];
        if (o->first > g->n_in || o->n_in > g->n_in - o->first)
            return CD_FAIL(err, EINVALID, "operator %u (%s): inputs %u to %u of %u", k, o->name,
                           o->first, o->first + o->n_in, g->n_in);
        for (uint32_t j = 0; j < o->n_in; j++) {
            const uint32_t from = g->in[o->first + j];
            if (from >= k)
                return CD_FAIL(err, EINVALID,
                               "operator %u (%s) reads operator %u, which is not before it", k,
                               o->name, from);
            if (m->n_reader[from] && m->reader[from] == k) continue; /* reads it twice */
            m->n_reader[from]++, m->reader[from] = k;
        }
    }
    return CDMPP_OK;
}

/* An error for a place line on a device that cannot run the operator, alone or in a match. */
static cdmpp_status check_places(const matcher *m, cdmpp_err *err) {
    for (uint32_t k = 0; k < m->g->n_op; k++) {
        const uint32_t d = m->out->place[k];
        if (d == UINT32_MAX || m->out->able[(size_t)k * m->r->n_device + d]) continue;
        bool some = false;
        for (uint32_t i = 0; i < m->out->n_match && !some; i++)
            for (uint32_t j = 0; j < m->out->match[i].n_op; j++)
                some = some || (m->out->match[i].device == d &&
                                m->out->member[m->out->match[i].first + j] == k);
        if (!some)
            return cd_err_at(err,
                             CD_FAIL(err, EINVALID, "place: %s (%s) cannot be on %s: %s",
                                     m->g->op[k].name, m->g->op[k].type, m->r->device[d],
                                     m->out->why[(size_t)k * m->r->n_device + d]),
                             m->r->path, m->out->place_line[k]);
    }
    return CDMPP_OK;
}

static cdmpp_status apply_rules(matcher *m, cd_arena *own, cdmpp_err *err) {
    CD_TRY(prepare(m, own, err));
    for (uint32_t k = 0; k < m->g->n_op; k++)
        for (uint32_t d = 0; d < m->r->n_device; d++) CD_TRY(judge_rules(m, k, d, err));
    for (uint32_t i = 0; i < m->r->n_rule; i++)
        if (m->r->rule[i].kind == CD_OFFLOAD_PLACE) CD_TRY(place_rules(m, &m->r->rule[i], err));
    for (uint32_t i = 0; i < m->r->n_rule; i++)
        if (m->r->rule[i].kind == CD_OFFLOAD_PATTERN) CD_TRY(try_pattern(m, &m->r->rule[i], err));
    return check_places(m, err);
}

cdmpp_status cd_offload_apply(const cd_offload_rules *r, const cd_offload_graph *g, cd_offload *out,
                              cdmpp_err *err) {
    cd_arena own = {0};
    matcher m = {.r = r, .g = g, .out = out};
    *out = (cd_offload){0};
    const cdmpp_status st = apply_rules(&m, &own, err);
    cd_arena_free(&own);
    return st;
}

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

/* Applies rules to a graph: finds the devices that can run each operator, then the chains that
 * patterns match. Patterns come last, because refuse and place lines limit them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "predictor/partition/offload/offload_rules_internal.h"

void cd_offload_done(cd_offload *o) {
    cd_arena_free(&o->arena);
    *o = (cd_offload){0};
}

bool cd_offload_among(const char *list, const char *word) {
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

bool cd_offload_meets(const cd_offload_rule *r, const cd_offload_op *o, uint32_t link) {
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
        if (cd_offload_among(q->link[i].type, type)) return true;
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
static cdmpp_status judge(matcher *m, uint32_t k, uint32_t d, cdmpp_err *err) {
    const size_t at = (size_t)k * m->r->n_device + d;
    const cd_offload_op *o = &m->g->op[k];
    long refuse = 0, almost = 0;
    bool able = d == 0;
    for (uint32_t i = 0; i < m->r->n_rule; i++) {
        const cd_offload_rule *q = &m->r->rule[i];
        if (q->device != d || (q->kind != CD_OFFLOAD_SUPPORT && q->kind != CD_OFFLOAD_REFUSE) ||
            !names(q, o->type))
            continue;
        const bool meets = cd_offload_meets(q, o, 0);
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

static cdmpp_status place(matcher *m, const cd_offload_rule *q, cdmpp_err *err) {
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
    return cd_offload_among(q->link[i].type, m->g->op[k].type) &&
           cd_offload_meets(q, &m->g->op[k], i + 1) &&
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

static cdmpp_status apply(matcher *m, cd_arena *own, cdmpp_err *err) {
    CD_TRY(prepare(m, own, err));
    for (uint32_t k = 0; k < m->g->n_op; k++)
        for (uint32_t d = 0; d < m->r->n_device; d++) CD_TRY(judge(m, k, d, err));
    for (uint32_t i = 0; i < m->r->n_rule; i++)
        if (m->r->rule[i].kind == CD_OFFLOAD_PLACE) CD_TRY(place(m, &m->r->rule[i], err));
    for (uint32_t i = 0; i < m->r->n_rule; i++)
        if (m->r->rule[i].kind == CD_OFFLOAD_PATTERN) CD_TRY(try_pattern(m, &m->r->rule[i], err));
    return check_places(m, err);
}

cdmpp_status cd_offload_apply(const cd_offload_rules *r, const cd_offload_graph *g, cd_offload *out,
                              cdmpp_err *err) {
    cd_arena own = {0};
    matcher m = {.r = r, .g = g, .out = out};
    *out = (cd_offload){0};
    const cdmpp_status st = apply(&m, &own, err);
    cd_arena_free(&own);
    return st;
}

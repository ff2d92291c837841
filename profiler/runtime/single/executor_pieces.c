/* From a plan to what each of its calls waits for, and whether the plan can be run at all: every
 * iteration once, and no units that wait for each other. */
#include "profiler/runtime/single/single_internal.h"

#define NONE UINT32_MAX

typedef struct {
    const cd_executor_net *n;
    const cd_executor_plan *plan;
    const cd_executor_deps *d;
    cd_executor_pieces *out;
    uint32_t *unit;                  /* (n_call) */
    uint32_t *node_of;               /* (n_step + 1) first node of each step */
    uint32_t *before_first, *before; /* steps that a step needs */
    uint32_t *own;                   /* (n_node) the unit of all pieces; NONE: several */
    uint64_t *done;                  /* (n_node) iterations that calls have so far */
} maker;

static uint32_t parts_of(const maker *m, uint32_t step) {
    const uint32_t n = m->n->step[step].build->code->n_part;
    return n ? n : 1;
}

static cdmpp_status allocate(maker *m, cd_arena *a, cdmpp_err *err) {
    cd_executor_pieces *o = m->out;
    const uint32_t n_step = m->n->n_step;
    uint32_t n_edge = 0;
    o->n_unit = m->plan->n_unit;
    o->n_call = m->plan->first[o->n_unit];
    m->node_of = CD_NEWN(a, uint32_t, n_step + 1);
    if (!m->node_of) return CD_FAIL(err, ENOMEM, "plan of %u calls", o->n_call);
    for (uint32_t k = 0; k < n_step; k++)
        m->node_of[k + 1] = m->node_of[k] + parts_of(m, k), n_edge += m->d->n_after[k];
    o->n_node = m->node_of[n_step];
    uint32_t *first = CD_NEWN(a, uint32_t, o->n_unit + 1);
    cd_executor_call *call = CD_NEWN(a, cd_executor_call, o->n_call + 1);
    m->before_first = CD_NEWN(a, uint32_t, n_step + 2),
    m->before = CD_NEWN(a, uint32_t, n_edge + 1);
    m->own = CD_NEWN(a, uint32_t, o->n_node + 1), m->done = CD_NEWN(a, uint64_t, o->n_node + 1);
    m->unit = CD_NEWN(a, uint32_t, o->n_call + 1), o->node = CD_NEWN(a, uint32_t, o->n_call + 1);
    o->n_piece = CD_NEWN(a, uint32_t, o->n_node + 1),
    o->wait_first = CD_NEWN(a, uint32_t, o->n_call + 2);
    if (!first || !call || !m->before_first || !m->before || !m->own || !m->done || !m->unit ||
        !o->node || !o->n_piece || !o->wait_first)
        return CD_FAIL(err, ENOMEM, "plan of %u calls", o->n_call);
    memcpy(first, m->plan->first, (o->n_unit + 1) * sizeof *first);
    if (o->n_call) memcpy(call, m->plan->call, o->n_call * sizeof *call);
    o->first = first, o->call = call;
    return CDMPP_OK;
}

/* The lists of who waits for a step, turned around: filled from their ends, which are then their
 * beginnings. */
static void turn(maker *m) {
    const cd_executor_deps *d = m->d;
    for (uint32_t k = 0; k < d->n; k++) m->before_first[k + 1] = m->before_first[k] + d->n_after[k];
    for (uint32_t k = d->n; k-- > 0;)
        for (uint32_t e = d->first[k]; e < d->first[k + 1]; e++)
            m->before[--m->before_first[d->next[e] + 1]] = k;
    for (uint32_t k = 0; k < d->n; k++) m->before_first[k] = m->before_first[k + 1];
}

/* ---- every iteration once ---- */

/* A whole program and its parts exclude each other: the whole is all iterations of all of its
 * nodes. */
static cdmpp_status take(maker *m, uint32_t k, cdmpp_err *err) {
    const cd_executor_call *c = &m->out->call[k];
    if (c->step >= m->n->n_step)
        return CD_FAIL(err, EINVALID, "call %u: there is no step %u", k, c->step);
    const cd_codegen_code *code = m->n->step[c->step].build->code;
    const bool whole = c->part == CD_EXECUTOR_WHOLE;
    if (!whole && c->part >= code->n_part)
        return CD_FAIL(err, EINVALID, "call %u: step %u has no part %u", k, c->step, c->part);
    const int64_t most = whole ? 1 : code->part[c->part].iterations;
    if (c->begin >= c->end || c->end > most)
        return CD_FAIL(err, EINVALID, "call %u: iterations %u to %u of %lld", k, c->begin, c->end,
                       (long long)most);
    const uint32_t from = m->node_of[c->step] + (whole ? 0 : c->part),
                   to = whole ? m->node_of[c->step + 1] : from + 1;
    m->out->node[k] = to - 1; /* others wait for the last one */
    for (uint32_t i = from; i < to; i++) {
        m->done[i] +=
            whole && code->n_part ? (uint64_t)code->part[i - from].iterations : c->end - c->begin;
        m->own[i] = m->out->n_piece[i] && m->own[i] != m->unit[k] ? NONE : m->unit[k];
        m->out->n_piece[i]++;
    }
    return CDMPP_OK;
}

/* With the right number of iterations a plan can still be wrong: some twice, some never. */
static cdmpp_status check_pieces(const maker *m, cdmpp_err *err) {
    const cd_executor_pieces *o = m->out;
    for (uint32_t s = 0; s < m->n->n_step; s++)
        for (uint32_t i = m->node_of[s]; i < m->node_of[s + 1]; i++) {
            const cd_codegen_code *c = m->n->step[s].build->code;
            const uint64_t want = c->n_part ? (uint64_t)c->part[i - m->node_of[s]].iterations : 1;
            if (m->done[i] != want)
                return CD_FAIL(
                    err, EINVALID, "step %u (%.60s): the plan runs %llu iterations of %llu", s,
                    m->n->step[s].name, (unsigned long long)m->done[i], (unsigned long long)want);
        }
    for (uint32_t a = 0; a < o->n_call; a++)
        for (uint32_t b = 0; b < a && o->n_piece[o->node[a]] > 1; b++)
            if (o->node[a] == o->node[b] && o->call[a].begin < o->call[b].end &&
                o->call[b].begin < o->call[a].end)
                return CD_FAIL(err, EINVALID,
                               "step %u (%.60s): calls %u and %u run the same iterations",
                               o->call[a].step, m->n->step[o->call[a].step].name, b, a);
    return CDMPP_OK;
}

/* ---- who waits for whom ---- */

/* The nodes before a call, whichever unit has them: to (as many as there are); how many. */
static uint32_t nodes_before(const maker *m, uint32_t k, uint32_t *to) {
    const cd_executor_call *c = &m->out->call[k];
    const uint32_t from = m->before_first[c->step], n = m->d->n_after[c->step];
    if (c->part != CD_EXECUTOR_WHOLE && c->part) {
        to[0] = m->node_of[c->step] + c->part - 1;
        return 1;
    }
    for (uint32_t e = 0; e < n; e++) to[e] = m->node_of[m->before[from + e] + 1] - 1;
    return n;
}

/* What a unit has waited for once in a pass, it need not wait for again: `seen` (n_node) is the
 * last unit that did. Units come one after the other. */
static cdmpp_status list_waits(maker *m, cd_arena *a, uint32_t *before, uint32_t *seen,
                               cdmpp_err *err) {
    cd_executor_pieces *o = m->out;
    size_t cap = 0;
    for (uint32_t i = 0; i < o->n_node; i++) seen[i] = NONE;
    for (uint32_t k = 0, n_wait = 0; k < o->n_call; k++) {
        const uint32_t n = nodes_before(m, k, before), u = m->unit[k];
        for (uint32_t e = 0; e < n; e++) {
            const uint32_t i = before[e];
            if (m->own[i] == u || seen[i] == u) continue;
            if (CD_GROW_IN(a, o->wait, n_wait, cap))
                return CD_FAIL(err, ENOMEM, "plan of %u calls", o->n_call);
            o->wait[n_wait++] = i;
            seen[i] = u;
        }
        o->wait_first[k + 1] = n_wait;
        o->n_wait += n_wait > o->wait_first[k];
    }
    return CDMPP_OK;
}

/* The plan played through: every unit goes as far as it can, again and again. left (n_node): pieces
 * that have not ended. */
static cdmpp_status play(const maker *m, uint32_t *at, uint32_t *left, uint32_t *before,
                         cdmpp_err *err) {
    const cd_executor_pieces *o = m->out;
    uint32_t ended = 0, last = NONE;
    memcpy(left, o->n_piece, o->n_node * sizeof *left);
    for (uint32_t u = 0; u < o->n_unit; u++) at[u] = o->first[u];
    while (ended < o->n_call && ended != last) {
        last = ended;
        for (uint32_t u = 0; u < o->n_unit; u++)
            for (bool go = true; go && at[u] < o->first[u + 1];) {
                const uint32_t n = nodes_before(m, at[u], before);
                for (uint32_t e = 0; e < n; e++) go = go && !left[before[e]];
                if (go) left[o->node[at[u]++]]--, ended++;
            }
    }
    for (uint32_t u = 0; u < o->n_unit; u++)
        if (at[u] < o->first[u + 1])
            return CD_FAIL(err, EINVALID, "unit %u waits for ever at step %u (%.60s)", u,
                           o->call[at[u]].step, m->n->step[o->call[at[u]].step].name);
    return CDMPP_OK;
}

cdmpp_status cd_executor_pieces_make(const cd_executor_net *n, const cd_executor_plan *p,
                                     const cd_executor_deps *d, cd_arena *a,
                                     cd_executor_pieces *out, cdmpp_err *err) {
    maker m = {.n = n, .plan = p, .d = d, .out = out};
    *out = (cd_executor_pieces){0};
    if (!p->n_unit || p->n_unit > CD_EXECUTOR_POOL_MAX)
        return CD_FAIL(err, ERANGE, "%u units; from 1 to %d", p->n_unit, CD_EXECUTOR_POOL_MAX);
    CD_TRY(allocate(&m, a, err));
    turn(&m);
    for (uint32_t u = 0; u < out->n_unit; u++)
        for (uint32_t k = out->first[u]; k < out->first[u + 1]; k++) {
            m.unit[k] = u;
            CD_TRY(take(&m, k, err));
        }
    CD_TRY(check_pieces(&m, err));
    uint32_t *before = CD_NEWN(a, uint32_t, n->n_step + 1),
             *node = CD_NEWN(a, uint32_t, out->n_node + 1), *at = CD_NEWN(a, uint32_t, out->n_unit);
    if (!before || !node || !at) return CD_FAIL(err, ENOMEM, "plan of %u calls", out->n_call);
    CD_TRY(list_waits(&m, a, before, node, err));
    return play(&m, at, node, before, err);
}

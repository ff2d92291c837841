/* Regions of a placement: neighbours of one device are joined while no path leaves a region and
 * comes back. Then what each region costs on its device and would cost on another one, as the
 * reason for its place. */
#include <stdlib.h>
#include <string.h>

#include "predictor/partition/placement/place_internal.h"

typedef struct {
    const cd_place_net *g;
    const uint32_t *where;
    uint32_t *head, *next, *last; /* members of the region that operator k leads, a list */
    uint32_t *of;                 /* (n_op) leader */
    uint32_t *seen, *stack, stamp;
} merger;

void cd_place_regions_free(cd_place_regions *r) {
    cd_arena_free(&r->arena);
    *r = (cd_place_regions){0};
}

/* All that region `at` reads from goes on the stack but `skip`; true when `goal` is among them. */
static bool push_before(merger *m, uint32_t at, uint32_t goal, uint32_t skip, uint32_t *n) {
    for (uint32_t k = m->head[at]; k != CD_PLACE_NONE; k = m->next[k])
        for (uint32_t j = m->g->first_in[k]; j < m->g->first_in[k + 1]; j++) {
            const uint32_t x = m->of[m->g->in[j]];
            if (x == skip || x == at || m->seen[x] == m->stamp) continue;
            if (x == goal) return true;
            m->seen[x] = m->stamp;
            /* its first member may be early, its last one late: the order of operators prunes
             * nothing */
            m->stack[(*n)++] = x;
        }
    return false;
}

/* Is there a path from region a to region b that leads through a third one? */
static bool around(merger *m, uint32_t a, uint32_t b) {
    uint32_t n = 0;
    m->stamp++;
    push_before(m, b, a, a, &n);
    while (n)
        if (push_before(m, m->stack[--n], a, CD_PLACE_NONE, &n)) return true;
    return false;
}

static void join(merger *m, uint32_t a, uint32_t b) {
    for (uint32_t k = m->head[b]; k != CD_PLACE_NONE; k = m->next[k]) m->of[k] = a;
    m->next[m->last[a]] = m->head[b];
    m->last[a] = m->last[b];
}

static cdmpp_status merge_all(merger *m, cd_arena *a, cdmpp_err *err) {
    const cd_place_net *g = m->g;
    const size_t n = (size_t)g->p->n_op + 1;
    uint32_t **part[] = {&m->head, &m->next, &m->last, &m->of, &m->seen, &m->stack};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (!(*part[i] = CD_NEWN(a, uint32_t, n)))
            return CD_FAIL(err, ENOMEM, "%u operators", g->p->n_op);
    for (uint32_t k = 0; k < g->p->n_op; k++)
        m->head[k] = m->last[k] = m->of[k] = k, m->next[k] = CD_PLACE_NONE;
    /* One pass is enough: a path that forbids a join leads over another device, and operators of
     * that device never join either region. */
    for (uint32_t i = 0; i < g->p->n_op; i++)
        for (uint32_t k = g->order[i], j = g->first_in[k]; j < g->first_in[k + 1]; j++) {
            const uint32_t x = m->of[g->in[j]], y = m->of[k];
            if (x != y && m->where[x] == m->where[y] && !around(m, x, y)) join(m, x, y);
        }
    return CDMPP_OK;
}

/* ---- numbered, each behind those that it reads from ---- */

static cdmpp_status count(merger *m, cd_place_regions *out, uint32_t **left, cdmpp_err *err) {
    const uint32_t n = m->g->p->n_op;
    for (uint32_t k = 0; k < n; k++) out->n_region += m->of[k] == k;
    out->region = CD_NEWN(&out->arena, cd_place_region, (size_t)out->n_region + 1);
    out->member = CD_NEWN(&out->arena, uint32_t, (size_t)n + 1);
    out->of = CD_NEWN(&out->arena, uint32_t, (size_t)n + 1);
    *left = CD_NEWN(m->g->a, uint32_t, (size_t)n + 1);
    if (!out->region || !out->member || !out->of || !*left)
        return CD_FAIL(err, ENOMEM, "%u regions", out->n_region);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t j = m->g->first_in[k]; j < m->g->first_in[k + 1]; j++)
            (*left)[m->of[k]] += m->of[m->g->in[j]] != m->of[k];
    return CDMPP_OK;
}

/* Members by their place in the order. */
static void fill(merger *m, cd_place_regions *out, uint32_t leader, uint32_t id, uint32_t *at) {
    const uint32_t first = *at;
    for (uint32_t k = m->head[leader]; k != CD_PLACE_NONE; k = m->next[k])
        out->member[(*at)++] = m->g->pos[k], out->of[k] = id;
    qsort(out->member + first, *at - first, sizeof *out->member, cd_sort_by_u32);
    for (uint32_t i = first; i < *at; i++) out->member[i] = m->g->order[out->member[i]];
    out->region[id] = (cd_place_region){
        .device = m->where[leader], .first = first, .n_op = *at - first, .other = CD_PLACE_FREE};
}

static cdmpp_status number(merger *m, cd_place_regions *out, cdmpp_err *err) {
    uint32_t *left, n_stack = 0, id = 0, at = 0;
    CD_TRY(count(m, out, &left, err));
    for (uint32_t i = m->g->p->n_op; i-- > 0;) /* the first of the order on top */
        if (m->of[m->g->order[i]] == m->g->order[i] && !left[m->g->order[i]])
            m->stack[n_stack++] = m->g->order[i];
    while (n_stack) {
        const uint32_t leader = m->stack[--n_stack];
        fill(m, out, leader, id++, &at);
        for (uint32_t k = m->head[leader]; k != CD_PLACE_NONE; k = m->next[k])
            for (uint32_t j = m->g->first_out[k]; j < m->g->first_out[k + 1]; j++) {
                const uint32_t x = m->of[m->g->out[j]];
                if (x != leader && !--left[x]) m->stack[n_stack++] = x;
            }
    }
    return CDMPP_OK;
}

/* ---- costs: as it is, and all of it elsewhere ---- */

static double copies_at(const cd_place_net *g, const uint32_t *where, uint32_t v) {
    const uint32_t a = where[g->p->value[v].from];
    uint32_t had = 1u << a;
    double sum = 0;
    for (uint32_t j = g->first_reader[v]; j < g->first_reader[v + 1]; j++) {
        const uint32_t b = where[g->reader[j]];
        if (had >> b & 1) continue;
        had |= 1u << b;
        sum += cd_place_copy_s(g, g->p->value[v].bytes, a, b);
    }
    return sum;
}

/* Values that touch region id: of[first[id] .. first[id + 1]). */
static cdmpp_status touching(const cd_place_net *g, const cd_place_regions *r, uint32_t **first,
                             uint32_t **value, cdmpp_err *err) {
    const cd_place_problem *p = g->p;
    const size_t all = (size_t)p->n_value + g->first_reader[p->n_value];
    uint32_t *f = CD_NEWN(g->a, uint32_t, (size_t)r->n_region + 3),
             *of = CD_NEWN(g->a, uint32_t, all + 1),
             *seen = CD_NEWN(g->a, uint32_t, (size_t)r->n_region + 1);
    if (!f || !of || !seen) return CD_FAIL(err, ENOMEM, "%u regions", r->n_region);
    for (int fill_now = 0; fill_now < 2; fill_now++) {
        for (uint32_t v = 0; v < p->n_value; v++)
            for (uint32_t j = g->first_reader[v]; j <= g->first_reader[v + 1]; j++) {
                const uint32_t
                    id = r->of[j < g->first_reader[v + 1] ? g->reader[j] : p->value[v].from],
                    mark = 2 * v + 1 + (uint32_t)fill_now;
                if (seen[id] == mark) continue;
                seen[id] = mark;
                if (fill_now) of[f[id + 1]++] = v;
                else f[id + 2]++;
            }
        for (uint32_t k = 0; k < r->n_region && !fill_now; k++) f[k + 2] += f[k + 1];
    }
    *first = f, *value = of;
    return CDMPP_OK;
}

/* The whole region is put on each device in turn, all else held. Only values that touch it can
 * change their copies. `where` is restored at the end. */
static void cost_region(const cd_place_net *g, cd_place_regions *r, uint32_t id,
                        const uint32_t *value, uint32_t n, uint32_t *where) {
    cd_place_region *q = &r->region[id];
    double best = (double)INFINITY;
    const uint32_t home = q->device;
    for (uint32_t d = 0; d < g->p->n_device; d++) {
        double seconds = 0, copies = 0;
        for (uint32_t i = 0; i < q->n_op; i++) {
            where[r->member[q->first + i]] = d;
            seconds += cd_place_seconds(g->p, r->member[q->first + i], d);
        }
        for (uint32_t i = 0; i < n; i++) copies += copies_at(g, where, value[i]);
        if (d == home) q->seconds = seconds, q->copies_s = copies;
        else if (seconds + copies < best)
            best = seconds + copies, q->other = d, q->other_seconds = seconds,
            q->other_copies_s = copies;
    }
    for (uint32_t i = 0; i < q->n_op; i++) where[r->member[q->first + i]] = home;
}

static cdmpp_status cost_all(const cd_place_net *g, const uint32_t *where, cd_place_regions *r,
                             cdmpp_err *err) {
    uint32_t *first, *value, *own = CD_NEWN(g->a, uint32_t, (size_t)g->p->n_op + 1);
    if (!own) return CD_FAIL(err, ENOMEM, "%u operators", g->p->n_op);
    memcpy(own, where, g->p->n_op * sizeof *own);
    CD_TRY(touching(g, r, &first, &value, err));
    for (uint32_t id = 0; id < r->n_region; id++)
        cost_region(g, r, id, &value[first[id]], first[id + 1] - first[id], own);
    return CDMPP_OK;
}

cdmpp_status cd_place_merge_regions(const cd_place_problem *p, const uint32_t *where,
                                    cd_place_regions *out, cdmpp_err *err) {
    cd_arena own = {0};
    cd_place_net g;
    merger m = {.g = &g, .where = where};
    *out = (cd_place_regions){0};
    cdmpp_status st = cd_place_prepare(p, &own, &g, err);
    for (uint32_t k = 0; k < p->n_op && !st; k++)
        if (where[k] >= p->n_device)
            st = CD_FAIL(err, EINVALID, "operator %u (%s): device %u of %u", k, p->op[k].name,
                         where[k], p->n_device);
    if (!st) st = merge_all(&m, &own, err);
    if (!st) st = number(&m, out, err);
    if (!st) st = cost_all(&g, where, out, err);
    cd_arena_free(&own);
    return st;
}

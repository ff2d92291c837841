/* The least makespan: branch and bound for small graphs, list scheduling and search for the others.
 * Every placement is replayed. */
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "predictor/partition/placement/place_internal.h"

/* ---- branch and bound ---- Operators in their order, one device after the other. Lower bounds of
 * all placements that begin like the current one:
 *   chain  the end of an operator if nothing ever waited, and behind it the fastest of all that
 *          follow
 *   load   what a device has already, over its workers; all that is placed and the fastest of the
 *          rest, over all workers */

typedef struct {
    cd_place_net *g;
    /* (n_op) fastest anywhere; longest chain of those from k on, k left out; of order[i..], summed
     * (n_op + 1) */
    double *fast, *tail, *rest;
    double *end; /* (n_op) of what is placed */
    uint32_t *now, *best, *try_at;
    double load[CD_PLACE_MAX_DEVICE + 1], span;
    double *chain; /* (n_op + 1) bound by chains before depth i */
    uint32_t workers[CD_PLACE_MAX_DEVICE], all_workers;
} branch;

static double after(const branch *b, uint32_t k, uint32_t d) {
    double start = 0;
    for (uint32_t j = b->g->first_in[k]; j < b->g->first_in[k + 1]; j++) {
        const uint32_t from = b->g->in[j];
        start =
            fmax(start, b->end[from] + cd_place_copy_s(b->g, b->g->bytes[from], b->now[from], d));
    }
    return start + cd_place_seconds(b->g->p, k, d);
}

/* From the last operator to the first, because the tail of an operator needs the tails of its
 * readers. */
static cdmpp_status branch_start(branch *b, cdmpp_err *err) {
    const cd_place_net *g = b->g;
    const size_t n = (size_t)g->p->n_op + 2;
    b->fast = CD_NEWN(g->a, double, n), b->tail = CD_NEWN(g->a, double, n),
    b->rest = CD_NEWN(g->a, double, n), b->end = CD_NEWN(g->a, double, n);
    b->chain = CD_NEWN(g->a, double, n), b->now = CD_NEWN(g->a, uint32_t, n),
    b->try_at = CD_NEWN(g->a, uint32_t, n);
    if (!b->fast || !b->tail || !b->rest || !b->end || !b->chain || !b->now || !b->try_at)
        return CD_FAIL(err, ENOMEM, "%u operators", g->p->n_op);
    for (uint32_t i = g->p->n_op; i-- > 0;) {
        const uint32_t k = g->order[i];
        b->fast[k] = (double)INFINITY;
        for (uint32_t d = 0; d < g->p->n_device; d++)
            b->fast[k] = fmin(b->fast[k], cd_place_seconds(g->p, k, d));
        for (uint32_t j = g->first_out[k]; j < g->first_out[k + 1]; j++)
            b->tail[k] = fmax(b->tail[k], b->fast[g->out[j]] + b->tail[g->out[j]]);
        b->rest[i] = b->rest[i + 1] + b->fast[k];
        b->chain[0] = fmax(b->chain[0], b->fast[k] + b->tail[k]);
    }
    for (uint32_t d = 0; d < g->p->n_device; d++)
        b->workers[d] = g->p->device[d].workers ? g->p->device[d].workers : 1,
        b->all_workers += b->workers[d];
    return CDMPP_OK;
}

/* Below all placements that begin with order[0..i) as they are now. */
static double below(const branch *b, uint32_t i) {
    double most = b->chain[i], sum = b->rest[i];
    for (uint32_t d = 0; d < b->g->p->n_device; d++)
        most = fmax(most, b->load[d] / b->workers[d]), sum += b->load[d];
    return fmax(most, sum / b->all_workers);
}

static cdmpp_status leaf(branch *b, cdmpp_err *err) {
    double span;
    CD_TRY(cd_place_makespan(b->g, b->now, &span, NULL, err));
    if (!(span < b->span)) return CDMPP_OK;
    b->span = span;
    memcpy(b->best, b->now, b->g->p->n_op * sizeof *b->best);
    return CDMPP_OK;
}

/* One step: operator order[i] on the next device, or back. Returns the depth to go on at;
 * UINT32_MAX: all is seen. */
static uint32_t advance(branch *b, uint32_t i) {
    const cd_place_problem *p = b->g->p;
    const uint32_t k = b->g->order[i], d = b->try_at[i]++;
    if (d > 0)
        b->load[d - 1] -=
            cd_place_seconds(p, k, d - 1) < (double)INFINITY ? cd_place_seconds(p, k, d - 1) : 0;
    if (d == p->n_device) return b->try_at[i] = 0, i ? i - 1 : UINT32_MAX;
    const double s = cd_place_seconds(p, k, d);
    if (isinf(s)) return i;
    b->now[k] = d, b->load[d] += s;
    b->end[k] = after(b, k, d);
    b->chain[i + 1] = fmax(b->chain[i], b->end[k] + b->tail[k]);
    return isinf(b->end[k]) || below(b, i + 1) >= b->span * (1 - 1e-12) ? i : i + 1;
}

cdmpp_status cd_place_bound(cd_place_net *g, uint64_t effort, uint32_t *where, double *span,
                            double *bound, bool *exact, cdmpp_err *err) {
    branch b = {.g = g, .best = where, .span = *span};
    CD_TRY(branch_start(&b, err));
    *bound = below(&b, 0) * (1 - 1e-12); /* sums in another order */
    *exact = false;
    const uint64_t end = g->looked + effort;
    for (uint32_t i = 0; i != UINT32_MAX;) {
        if (g->looked >= end) return *span = b.span, CDMPP_OK;
        if (i == g->p->n_op) {
            CD_TRY(leaf(&b, err));
            if (!i--) break;
            continue;
        }
        i = advance(&b, i);
        g->looked++;
    }
    *exact = true;
    *span = b.span;
    if (isfinite(b.span)) *bound = b.span;
    return CDMPP_OK;
}

/* ---- list scheduling ---- */

typedef struct {
    uint32_t op;
    double rank;
} ranked;

static int by_rank(const void *pa, const void *pb) {
    const ranked *a = pa, *b = pb;
    return a->rank != b->rank ? (a->rank < b->rank) - (a->rank > b->rank)
                              : (a->op > b->op) - (a->op < b->op);
}

static double mean_seconds(const cd_place_problem *p, uint32_t k) {
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t d = 0; d < p->n_device; d++)
        if (isfinite(cd_place_seconds(p, k, d))) sum += cd_place_seconds(p, k, d), n++;
    return n ? sum / n : 0;
}

static double mean_copy(const cd_place_net *g, int64_t bytes) {
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t a = 0; a < g->p->n_device; a++)
        for (uint32_t b = 0; b < g->p->n_device; b++)
            if (isfinite(cd_place_copy_s(g, bytes, a, b)))
                sum += cd_place_copy_s(g, bytes, a, b), n++;
    return n ? sum / n : 0;
}

/* When k would end on d: its device's first free worker, its inputs there, copies one after the
 * other on their links. */
static double would_end(const cd_place_net *g, const uint32_t *where, const double *end,
                        double link_free[][CD_PLACE_MAX_DEVICE], double free_at, uint32_t k,
                        uint32_t d, bool book) {
    double start = free_at;
    for (uint32_t j = g->first_in[k]; j < g->first_in[k + 1]; j++) {
        const uint32_t from = g->in[j], a = where[from];
        double there = end[from];
        if (a != d) {
            there = fmax(there, link_free[a][d]) + cd_place_copy_s(g, g->bytes[from], a, d);
            if (book) link_free[a][d] = there;
        }
        start = fmax(start, there);
    }
    return start + cd_place_seconds(g->p, k, d);
}

cdmpp_status cd_place_list_schedule(cd_place_net *g, uint32_t *where, cdmpp_err *err) {
    const cd_place_problem *p = g->p;
    ranked *r = CD_NEWN(g->a, ranked, (size_t)p->n_op + 1);
    double *rank = CD_NEWN(g->a, double, (size_t)p->n_op + 1),
           *end = CD_NEWN(g->a, double, (size_t)p->n_op + 1);
    if (!r || !rank || !end) return CD_FAIL(err, ENOMEM, "%u operators", p->n_op);
    for (uint32_t i = p->n_op; i-- > 0;) {
        const uint32_t k = g->order[i];
        const double copy = mean_copy(g, g->bytes[k]);
        for (uint32_t j = g->first_out[k]; j < g->first_out[k + 1]; j++)
            rank[k] = fmax(rank[k], copy + rank[g->out[j]]);
        rank[k] += mean_seconds(p, k);
        r[k] = (ranked){k, rank[k]};
    }
    /* of equal ranks (operators of 0 s) the one that is read must come first */
    for (uint32_t i = 0; i < p->n_op; i++) r[i].op = g->pos[r[i].op];
    qsort(r, p->n_op, sizeof *r, by_rank);
    double free_at[CD_PLACE_MAX_DEVICE] = {0};
    double link_free[CD_PLACE_MAX_DEVICE][CD_PLACE_MAX_DEVICE] = {{0}};
    for (uint32_t i = 0; i < p->n_op; i++) {
        const uint32_t k = g->order[r[i].op];
        double least = (double)INFINITY;
        uint32_t at = CD_PLACE_NONE;
        for (uint32_t d = 0; d < p->n_device; d++) {
            const double t = would_end(g, where, end, link_free, free_at[d], k, d, false);
            if (at == CD_PLACE_NONE ? isfinite(cd_place_seconds(p, k, d)) : t < least)
                at = d, least = t;
        }
        where[k] = at == CD_PLACE_NONE ? 0 : at;
        end[k] = would_end(g, where, end, link_free, free_at[where[k]], k, where[k], true);
        free_at[where[k]] += (end[k] - free_at[where[k]]) /
                             (p->device[where[k]].workers ? p->device[where[k]].workers : 1);
    }
    return CDMPP_OK;
}

/* ---- search: what decided the makespan goes elsewhere ---- */

typedef struct {
    cd_place_net *g;
    uint32_t *where;
    double *span;
} searcher;

/* Operators of `path` from i to j, all of one device, on device d: keep it if that is better. */
static cdmpp_status try_move(searcher *s, const uint32_t *path, uint32_t i, uint32_t j, uint32_t d,
                             bool *better, cdmpp_err *err) {
    double span = (double)INFINITY;
    const uint32_t back = s->where[path[i]];
    bool can = true;
    for (uint32_t k = i; k < j && can; k++) can = isfinite(cd_place_seconds(s->g->p, path[k], d));
    *better = false;
    if (!can) return CDMPP_OK;
    for (uint32_t k = i; k < j; k++) s->where[path[k]] = d;
    CD_TRY(cd_place_makespan(s->g, s->where, &span, NULL, err));
    *better = span < *s->span * (1 - 1e-12);
    if (*better) *s->span = span;
    for (uint32_t k = i; k < j && !*better; k++) s->where[path[k]] = back;
    return CDMPP_OK;
}

/* One pass over a path: starting points in a random order, and from each runs of 1, 2, 4 ..
 * operators of one device. */
static cdmpp_status one_pass(searcher *s, const uint32_t *path, uint32_t n, uint64_t seed,
                             uint64_t end, bool *any, cdmpp_err *err) {
    for (uint32_t c = 0; c < n && s->g->looked < end; c++) {
        const uint32_t i = (uint32_t)((cd_rng_at(seed, 0) + (uint64_t)c * 2654435761u) % n);
        for (uint32_t len = 1; len <= n - i && s->g->looked < end; len *= 2) {
            uint32_t j = i;
            while (j < i + len && s->where[path[j]] == s->where[path[i]]) j++;
            if (j < i + len) break;
            for (uint32_t d = 0; d < s->g->p->n_device; d++) {
                bool better = false;
                if (d == s->where[path[i]]) continue;
                CD_TRY(try_move(s, path, i, j, d, &better, err));
                if (better) return *any = true, CDMPP_OK;
            }
        }
    }
    return CDMPP_OK;
}

/* Only operators on the critical path of the replay are moved: no other move can shorten the
 * makespan. A better placement has another path, so the round ends there and the next one begins
 * with a new replay. The search stops after a round without a better placement. */
cdmpp_status cd_place_local_search(cd_place_net *g, uint64_t effort, uint32_t *where, double *span,
                                   cdmpp_err *err) {
    searcher s = {.g = g, .where = where, .span = span};
    const uint64_t end = g->looked + effort;
    bool any = isfinite(*span);
    for (uint64_t round = 0; any && g->looked < end; round++) {
        cd_replay r;
        double again;
        any = false;
        cdmpp_status st = cd_place_makespan(g, where, &again, &r, err);
        if (!st) st = one_pass(&s, r.path, r.n_path, round, end, &any, err);
        cd_replay_free(&r);
        if (st) return st;
    }
    return CDMPP_OK;
}

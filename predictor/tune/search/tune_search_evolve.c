/* Ansor's evolutionary search.
 *
 *   population: all of the pool ─parents by score─> changed | crossed | as they are ─> ranked ─>
 *     next population ...
 *
 * Ansor selects by throughput, as shares of the best: exp(score - best) where scores are -ln s,
 * max(score, 0) of other rankers. Ours: programs are ranked once in a round, however often they
 * come up; some children have two parents; and a round, which here is for ten trials and not 64,
 * has half the people and more generations. */
#include <math.h>

#include "predictor/tune/search/search.h"
#include "predictor/tune/search/search_internal.h"

enum { POPULATION = 1024, GENERATIONS = 6 };
static const double changed = 0.85, crossed = 0.1; /* of the children; the rest is as its parent */

typedef struct {
    size_t n, *at; /* (n) places in the pool */
    double *up_to; /* (n) sums of the weights */
} people;

static double weight(const cd_tune_guide *g, double score, double top) {
    if (g->b.ranker->kind->seconds) return exp(score - top);
    return score > 0 ? score : 0;
}

/* false: nobody has any weight. */
static bool weigh(const cd_tune_guide *g, people *p) {
    double top = -INFINITY, sum = 0;
    for (size_t i = 0; i < p->n; i++) top = fmax(top, g->pool.score[p->at[i]]);
    if (!isfinite(top)) return false;
    for (size_t i = 0; i < p->n; i++) p->up_to[i] = sum += weight(g, g->pool.score[p->at[i]], top);
    if (sum > 0) return true;
    for (size_t i = 0; i < p->n; i++) p->up_to[i] = (double)(i + 1);
    return true;
}

static size_t select_one(cd_tune_guide *g, const people *p) {
    const double x = cd_tune_tried_unit(&g->b) * p->up_to[p->n - 1];
    size_t low = 0, high = p->n - 1;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (p->up_to[mid] > x) high = mid;
        else low = mid + 1;
    }
    return p->at[low];
}

static cdmpp_status child(cd_tune_guide *g, const people *p, size_t *at, cdmpp_err *err) {
    const size_t parent = select_one(g, p);
    const double lot = cd_tune_tried_unit(&g->b);
    const cd_tune_cand from = g->pool.cand[parent];
    *at = parent;
    if (lot < changed) return cd_tune_guide_child(g, &from, NULL, at, err);
    if (lot >= changed + crossed) return CDMPP_OK;
    const cd_tune_cand mate = g->pool.cand[select_one(g, p)];
    return cd_tune_guide_child(g, &from, &mate, at, err);
}

static cdmpp_status generation(cd_tune_guide *g, people *p, size_t *next, cdmpp_err *err) {
    size_t n = 0;
    for (size_t tries = 0; n < g->crowd && tries < 2 * (size_t)g->crowd; tries++) {
        CD_TRY(child(g, p, &next[n], err));
        n += next[n] != SIZE_MAX;
    }
    for (size_t i = 0; i < n; i++) p->at[i] = next[i];
    if (n) p->n = n;
    return cd_tune_pool_rank(&g->pool, g->b.ranker, &g->b.space->of, err);
}

cdmpp_status cd_tune_guide_evolve(cd_tune_guide *g, cdmpp_err *err) {
    const size_t cap = g->pool.n > g->crowd ? g->pool.n : g->crowd;
    people p = {g->pool.n, cd_mem_zalloc(2 * cap + 1, sizeof *p.at),
                cd_mem_zalloc(cap + 1, sizeof *p.up_to)};
    cdmpp_status st = p.at && p.up_to ? CDMPP_OK : CD_FAIL(err, ENOMEM, "population of %zu", cap);
    for (size_t i = 0; !st && i < p.n; i++) p.at[i] = i;
    for (uint32_t k = 0; !st && k < g->generations && p.n && weigh(g, &p); k++)
        st = generation(g, &p, p.at + cap, err);
    cd_mem_free(p.at);
    cd_mem_free(p.up_to);
    return st;
}

static cdmpp_status open_search(const cd_tune_search_setup *s, cd_tune_search **out,
                                cdmpp_err *err) {
    return cd_tune_guide_open(
        &cd_tune_search_evolve, s,
        &(cd_tune_guide_own){POPULATION, GENERATIONS, 0.05, cd_tune_guide_evolve}, out, err);
}

const cd_tune_search_kind cd_tune_search_evolve = {.name = "evolve",
                                                   .open = open_search,
                                                   .ask = cd_tune_guide_ask,
                                                   .tell = cd_tune_guide_tell,
                                                   .free = cd_tune_guide_free};

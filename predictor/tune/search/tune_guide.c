/* What the searches `best` and `evolve` share: the pool of a round is filled, ranked and picked
 * from, with a share of random candidates. Until the ranker has something to rank by, all are
 * random. */
#include "predictor/tune/search/search_internal.h"

#include <math.h>

/* Of the pool, what the next ask begins with; draws that a candidate may cost; the share of the
 * population that is drawn again once there is a pool. */
enum { KEEP = 256, DRAWS = 4, AGAIN = 4 };
/* So many trials of a round have all of the population, fewer their share, down to a quarter: a
 * trial takes about 0.1 s, and looking for it may not take a tenth of that. */
enum { FULL_ROUND = 32, LEAST = 4 };

cdmpp_status cd_tune_guide_open(const cd_tune_search_kind *kind, const cd_tune_search_setup *s,
                                const cd_tune_guide_own *own, cd_tune_search **out,
                                cdmpp_err *err) {
    cd_tune_guide *g = cd_mem_zalloc(1, sizeof *g);
    if (!g) return CD_FAIL(err, ENOMEM, "search");
    g->population = s->population ? s->population : own->population;
    g->scaled = !s->population;
    g->generations = s->generations ? s->generations : own->generations;
    g->epsilon = s->epsilon >= 0 ? fmin(s->epsilon, 1) : own->epsilon;
    g->widen = own->widen;
    const cdmpp_status st = cd_tune_tried_open(&g->b, kind, s, err);
    if (st) cd_tune_guide_free(&g->b.search);
    else *out = &g->b.search;
    return st;
}

void cd_tune_guide_free(cd_tune_search *s) {
    cd_tune_guide *g = (cd_tune_guide *)s;
    cd_tune_pool_free(&g->pool);
    cd_tune_tried_close(&g->b);
    cd_mem_free(g);
}

cdmpp_status cd_tune_guide_tell(cd_tune_search *s, const cd_tune_cand *c, const double *seconds,
                                size_t n, cdmpp_err *err) {
    return cd_tune_tried_tell(&((cd_tune_guide *)s)->b, c, seconds, n, err);
}

cdmpp_status cd_tune_guide_child(cd_tune_guide *g, const cd_tune_cand *from,
                                 const cd_tune_cand *mate, size_t *at, cdmpp_err *err) {
    cd_tune_space *space = g->b.space;
    const uint64_t i = cd_tune_tried_number(&g->b);
    cd_tune_cand c;
    *at = SIZE_MAX;
    const cdmpp_status st = mate ? space->kind->cross(space, from, mate, i, &c, err)
                                 : space->kind->change(space, from, i, &c, err);
    if (st == CDMPP_EREJECTED || st == CDMPP_ENODATA) return CDMPP_OK;
    CD_TRY(st);
    return cd_tune_pool_add(&g->pool, &c, false, at, NULL, err);
}

/* ---- what a round begins with ---- */
static cdmpp_status add_list(cd_tune_guide *g, cdmpp_err *err) {
    size_t at;
    for (size_t i = 0; i < g->b.n_list; i++)
        if (!cd_tune_tried_knows(&g->b, &g->b.list[i]))
            CD_TRY(cd_tune_pool_add(&g->pool, &g->b.list[i], true, &at, NULL, err));
    return CDMPP_OK;
}

static cdmpp_status add_good(cd_tune_guide *g, cdmpp_err *err) {
    const size_t most = g->crowd / 5;
    size_t at;
    for (size_t i = 0; i < g->b.n_good && i < most; i++)
        CD_TRY(cd_tune_pool_add(&g->pool, &g->b.good[i].cand, false, &at, NULL, err));
    return CDMPP_OK;
}

static cdmpp_status add_draws(cd_tune_guide *g, cdmpp_err *err) {
    const size_t first = g->pool.n, want = first ? g->crowd / AGAIN : g->crowd;
    cd_tune_cand c;
    size_t at;
    for (size_t tries = 0; g->pool.n < first + want && tries < DRAWS * want; tries++) {
        const cdmpp_status st = cd_tune_tried_draw(&g->b, &c, err);
        if (st == CDMPP_ENODATA) break;
        if (st == CDMPP_EREJECTED) continue;
        CD_TRY(st);
        CD_TRY(cd_tune_pool_add(&g->pool, &c, false, &at, NULL, err));
    }
    return CDMPP_OK;
}

static cdmpp_status fill(cd_tune_guide *g, cdmpp_err *err) {
    cd_tune_tried *b = &g->b;
    if (b->list) {
        CD_TRY(add_list(g, err));
        return cd_tune_pool_rank(&g->pool, b->ranker, &b->space->of, err);
    }
    CD_TRY(add_good(g, err));
    CD_TRY(add_draws(g, err));
    CD_TRY(cd_tune_pool_rank(&g->pool, b->ranker, &b->space->of, err));
    return g->widen ? g->widen(g, err) : CDMPP_OK;
}

/* ---- an ask ---- */
/* Of n more candidates, how many are random: the share holds over all asks, not of each. */
static size_t n_random(const cd_tune_guide *g, size_t n) {
    const double due = g->epsilon * (double)(g->n_asked + n) - (double)g->n_random;
    return due >= 1 ? due < (double)n ? (size_t)due : n : 0;
}

/* The first round, in which nothing is known, looks at all. */
static uint32_t crowd_of(const cd_tune_guide *g, size_t n) {
    if (!g->scaled || !g->n_asked || n >= FULL_ROUND) return g->population;
    const size_t share = g->population * n / FULL_ROUND, least = g->population / LEAST;
    return (uint32_t)(share > least ? share : least);
}

static cdmpp_status guided(cd_tune_guide *g, size_t n, cdmpp_err *err) {
    const size_t by_chance = n_random(g, n);
    g->crowd = crowd_of(g, n);
    CD_TRY(fill(g, err));
    CD_TRY(cd_tune_pool_pick(&g->pool, &g->b, n - by_chance, err));
    g->n_asked += n;
    g->n_random += by_chance;
    if (!g->b.list) return cd_tune_pool_keep(&g->pool, &g->b, KEEP, err);
    cd_tune_pool_free(&g->pool);
    return CDMPP_OK;
}

cdmpp_status cd_tune_guide_ask(cd_tune_search *s, size_t n, const cd_tune_cand **out, size_t *got,
                               cdmpp_err *err) {
    cd_tune_guide *g = (cd_tune_guide *)s;
    CD_TRY(cd_tune_tried_begin(&g->b, n, err));
    if (n && cd_tune_tried_guided(&g->b)) CD_TRY(guided(g, n, err));
    CD_TRY(cd_tune_tried_random(&g->b, n, err));
    cd_tune_tried_end(&g->b, out, got);
    return CDMPP_OK;
}

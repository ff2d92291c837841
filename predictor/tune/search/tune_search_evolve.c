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
#include <stdlib.h>
#include <string.h>

#include "predictor/tune/search/search.h"
#include "predictor/tune/search/search_internal.h"

/* The candidates of one round, each once, with their scores; picks the best that are unlike each
 * other. */

/* A twin of a picked candidate must promise that much more, in ln s: of 0, 0.1, 0.3, 0.6 the last
 * two find most in 10 trials on logs of held-out tasks (mean share of the best 0.90, 0.92, 0.92,
 * 0.93). LOOK: per candidate wanted, how many are compared. */
static const double twin = 0.4;
enum { LOOK = 24 };

void cd_tune_pool_free(cd_tune_pool *p) {
    cd_arena_free(&p->mem);
    cd_tune_key_set_free(&p->place);
    cd_mem_free(p->cand);
    cd_mem_free(p->score);
    cd_mem_free(p->order);
    *p = (cd_tune_pool){0};
}

static cdmpp_status room(cd_tune_pool *p, cdmpp_err *err) {
    if (p->n < p->cap) return CDMPP_OK;
    const size_t cap = p->cap ? 2 * p->cap : 1024;
    cd_tune_cand *cand = cd_mem_realloc(p->cand, p->n * sizeof *cand, cap * sizeof *cand);
    if (cand) p->cand = cand;
    double *score = cd_mem_realloc(p->score, p->n * sizeof *score, cap * sizeof *score);
    if (score) p->score = score;
    uint32_t *order = cd_mem_realloc(p->order, p->n * sizeof *order, cap * sizeof *order);
    if (order) p->order = order;
    if (!cand || !score || !order) return CD_FAIL(err, ENOMEM, "%zu candidates", cap);
    p->cap = cap;
    return CDMPP_OK;
}

cdmpp_status cd_tune_pool_add(cd_tune_pool *p, const cd_tune_cand *c, bool borrow, size_t *at,
                              bool *is_new, cdmpp_err *err) {
    double place = (double)p->n;
    const bool found = cd_tune_key_set_find(&p->place, c->key, &place);
    if (is_new) *is_new = !found;
    *at = (size_t)place;
    if (found) return CDMPP_OK;
    CD_TRY(room(p, err));
    if (borrow) p->cand[p->n] = *c;
    else CD_TRY(cd_tune_cand_copy(&p->mem, c, &p->cand[p->n], err));
    CD_TRY(cd_tune_key_set_put(&p->place, c->key, place, err));
    p->n++;
    return CDMPP_OK;
}

cdmpp_status cd_tune_pool_rank(cd_tune_pool *p, cd_tune_ranker *r, const cd_tune_task *t,
                               cdmpp_err *err) {
    const size_t from = p->n_scored;
    if (from < p->n) CD_TRY(r->kind->rank(r, t, p->cand + from, p->n - from, p->score + from, err));
    p->n_scored = p->n;
    return CDMPP_OK;
}

/* ---- the best first; of equal ones the smaller key, whatever the order they came in ---- */
static int by_score(const void *x, const void *y, void *arg) {
    const cd_tune_pool *p = arg;
    const uint32_t i = *(const uint32_t *)x, j = *(const uint32_t *)y;
    if (p->score[i] != p->score[j]) return p->score[i] < p->score[j] ? 1 : -1;
    return (p->cand[i].key > p->cand[j].key) - (p->cand[i].key < p->cand[j].key);
}

/* Those that are programs and not known, sorted; how many. */
static size_t sort_new(cd_tune_pool *p, const cd_tune_tried *b) {
    size_t n = 0;
    for (size_t i = 0; i < p->n_scored; i++)
        if (p->score[i] > (double)-INFINITY && !cd_tune_tried_knows(b, &p->cand[i]))
            p->order[n++] = (uint32_t)i;
    if (n) qsort_r(p->order, n, sizeof *p->order, by_score, p);
    return n;
}

/* ---- picking ---- */
/* How many choices tell two candidates apart. */
static size_t tune_pool_distance(const cd_tune_cand *a, const cd_tune_cand *b) {
    const uint32_t n = a->n_choice < b->n_choice ? a->n_choice : b->n_choice;
    size_t far = a->n_choice + b->n_choice - 2 * n;
    for (uint32_t k = 0; k < n; k++) {
        const cd_sketch_choice *x = &a->choice[k], *y = &b->choice[k];
        far += x->kind != y->kind || x->at != y->at || x->pick != y->pick;
    }
    return far;
}

/* What a step in score is worth: 1 where scores are ln s, else the spread of those looked at. */
static double unit(const cd_tune_pool *p, size_t n, const cd_tune_tried *b) {
    if (b->ranker->kind->seconds || n < 2) return 1;
    return fabs(p->score[p->order[0]] - p->score[p->order[n - 1]]);
}

/* Take the best of order[0 .. n) by score less loss, both moved along so that the rest stays in
 * order. */
static cdmpp_status take_best(cd_tune_pool *p, cd_tune_tried *b, double *loss, size_t n,
                              double cost, cdmpp_err *err) {
    size_t best = 0;
    for (size_t k = 1; k < n; k++)
        if (p->score[p->order[k]] - loss[k] > p->score[p->order[best]] - loss[best]) best = k;
    const cd_tune_cand *c = &p->cand[p->order[best]];
    CD_TRY(cd_tune_tried_take(b, c, err));
    memmove(p->order + best, p->order + best + 1, (n - 1 - best) * sizeof *p->order);
    memmove(loss + best, loss + best + 1, (n - 1 - best) * sizeof *loss);
    for (size_t k = 0; k + 1 < n; k++) {
        const double near =
            cost * exp(0.5 * (1 - (double)tune_pool_distance(c, &p->cand[p->order[k]])));
        loss[k] = fmax(loss[k], near);
    }
    return CDMPP_OK;
}

cdmpp_status cd_tune_pool_pick(cd_tune_pool *p, cd_tune_tried *b, size_t n, cdmpp_err *err) {
    size_t left = sort_new(p, b);
    const size_t want = n > b->n_out ? n - b->n_out : 0;
    if (left > LOOK * want) left = LOOK * want;
    if (!left) return CDMPP_OK;
    double *loss = cd_mem_zalloc(left, sizeof *loss);
    if (!loss) return CD_FAIL(err, ENOMEM, "%zu candidates", left);
    const double cost = twin * unit(p, left, b);
    cdmpp_status st = CDMPP_OK;
    for (; !st && left && b->n_out < n; left--) st = take_best(p, b, loss, left, cost, err);
    cd_mem_free(loss);
    return st;
}

cdmpp_status cd_tune_pool_keep(cd_tune_pool *p, const cd_tune_tried *b, size_t most,
                               cdmpp_err *err) {
    cd_tune_pool kept = {0};
    cdmpp_status st = CDMPP_OK;
    size_t n = sort_new(p, b), at;
    if (n > most) n = most;
    for (size_t k = 0; !st && k < n; k++)
        st = cd_tune_pool_add(&kept, &p->cand[p->order[k]], false, &at, NULL, err);
    cd_tune_pool_free(p);
    if (st) cd_tune_pool_free(&kept);
    *p = kept;
    return st;
}

/* What the searches `best` and `evolve` share: the pool of a round is filled, ranked and picked
 * from, with a share of random candidates. Until the ranker has something to rank by, all are
 * random. */

/* Of the pool, what the next ask begins with; draws that a candidate may cost; the share of the
 * population that is drawn again once there is a pool. */
enum { KEEP = 256, DRAWS = 4, AGAIN = 4 };
/* So many trials of a round have all of the population, fewer their share, down to a quarter: a
 * trial takes about 0.1 s, and looking for it may not take a tenth of that. */
enum { FULL_ROUND = 32, LEAST = 4 };

static void tune_guide_free(cd_tune_search *s);

/* cd_tune_search_kind.open of both. Errors: ENOMEM. */
static cdmpp_status tune_guide_open(const cd_tune_search_kind *kind, const cd_tune_search_setup *s,
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
    if (st) tune_guide_free(&g->b.search);
    else *out = &g->b.search;
    return st;
}

static void tune_guide_free(cd_tune_search *s) {
    cd_tune_guide *g = (cd_tune_guide *)s;
    cd_tune_pool_free(&g->pool);
    cd_tune_tried_close(&g->b);
    cd_mem_free(g);
}

static cdmpp_status tune_guide_tell(cd_tune_search *s, const cd_tune_cand *c, const double *seconds,
                                    size_t n, cdmpp_err *err) {
    return cd_tune_tried_tell(&((cd_tune_guide *)s)->b, c, seconds, n, err);
}

/* Try to add what change (of `from`) or, with a mate, cross gives. *at: its place, SIZE_MAX: none.
 * Errors: ENOMEM. */
static cdmpp_status tune_guide_child(cd_tune_guide *g, const cd_tune_cand *from,
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

/* As in cd_tune_search_kind. */
static cdmpp_status tune_guide_ask(cd_tune_search *s, size_t n, const cd_tune_cand **out,
                                   size_t *got, cdmpp_err *err) {
    cd_tune_guide *g = (cd_tune_guide *)s;
    CD_TRY(cd_tune_tried_begin(&g->b, n, err));
    if (n && cd_tune_tried_guided(&g->b)) CD_TRY(guided(g, n, err));
    CD_TRY(cd_tune_tried_random(&g->b, n, err));
    cd_tune_tried_end(&g->b, out, got);
    return CDMPP_OK;
}

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
    if (lot < changed) return tune_guide_child(g, &from, NULL, at, err);
    if (lot >= changed + crossed) return CDMPP_OK;
    const cd_tune_cand mate = g->pool.cand[select_one(g, p)];
    return tune_guide_child(g, &from, &mate, at, err);
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

/* tune_search_evolve.c: `generations` of Ansor's evolution from all that is in the pool. */
static cdmpp_status tune_guide_evolve(cd_tune_guide *g, cdmpp_err *err) {
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
    return tune_guide_open(&cd_tune_search_evolve, s,
                           &(cd_tune_guide_own){POPULATION, GENERATIONS, 0.05, tune_guide_evolve},
                           out, err);
}

const cd_tune_search_kind cd_tune_search_evolve = {.name = "evolve",
                                                   .open = open_search,
                                                   .ask = tune_guide_ask,
                                                   .tell = tune_guide_tell,
                                                   .free = tune_guide_free};

/* best -- the ranker's best of many draws, of what lies around the best that were measured, and of
 * a short evolution.
 *
 * Half the generations of evolve and no random candidates: it trusts its ranker. */

enum { POPULATION_BEST = 1024, GENERATIONS_BEST = 3, CENTRES = 16, AROUND = 16 };

static cdmpp_status widen(cd_tune_guide *g, cdmpp_err *err) {
    size_t at;
    for (size_t i = 0; i < g->b.n_good && i < CENTRES; i++)
        for (int k = 0; k < AROUND; k++)
            CD_TRY(tune_guide_child(g, &g->b.good[i].cand, NULL, &at, err));
    CD_TRY(cd_tune_pool_rank(&g->pool, g->b.ranker, &g->b.space->of, err));
    return tune_guide_evolve(g, err);
}

static cdmpp_status open_search_best(const cd_tune_search_setup *s, cd_tune_search **out,
                                     cdmpp_err *err) {
    return tune_guide_open(&cd_tune_search_best, s,
                           &(cd_tune_guide_own){POPULATION_BEST, GENERATIONS_BEST, 0, widen}, out,
                           err);
}

const cd_tune_search_kind cd_tune_search_best = {.name = "best",
                                                 .open = open_search_best,
                                                 .ask = tune_guide_ask,
                                                 .tell = tune_guide_tell,
                                                 .free = tune_guide_free};

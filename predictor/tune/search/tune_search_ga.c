/* AutoTVM's genetic algorithm.
 *
 *   told (a generation) + elite ──parents by score──> cross, change ──> queue ──> asks ──> told ...
 *
 * Score: 1/seconds, 0 of what failed. A generation is made when the queue runs empty; its parents
 * are all that were told since the last one, so a log of before is one too. While nothing that runs
 * is known, the generation is random. Genes are choices: the space says what crossing and changing
 * them means. */
#include <stdlib.h>
#include <string.h>

#include "predictor/tune/search/search.h"
#include "predictor/tune/search/search_internal.h"

enum { POPULATION = 100, ELITE = 3, TRIES = 32 };
static const double mutation = 0.1; /* of each choice */

typedef struct {
    cd_tune_cand cand;
    double score;
} gene;

typedef struct {
    cd_tune_tried b;
    uint32_t population;
    cd_arena queue_mem, told_mem;
    cd_tune_cand *queue; /* (population) children, from at on */
    size_t n_queue, at;
    gene *told; /* (cap) with the elite in front */
    size_t n_told, cap;
} ga;

/* ---- what was measured ---- */
static cdmpp_status keep(ga *g, const cd_tune_cand *c, double score, cdmpp_err *err) {
    if (CD_GROW(g->told, g->n_told, g->cap)) return CD_FAIL(err, ENOMEM, "measured candidates");
    CD_TRY(cd_tune_cand_copy(&g->told_mem, c, &g->told[g->n_told].cand, err));
    g->told[g->n_told++].score = score;
    return CDMPP_OK;
}

static cdmpp_status tell(cd_tune_search *s, const cd_tune_cand *c, const double *seconds, size_t n,
                         cdmpp_err *err) {
    ga *g = (ga *)s;
    for (size_t i = 0; i < n; i++)
        CD_TRY(keep(g, &c[i], seconds[i] > 0 && seconds[i] < CD_TUNE_FAILED_S ? 1 / seconds[i] : 0,
                    err));
    return cd_tune_tried_tell(&g->b, c, seconds, n, err);
}

static int by_score(const void *x, const void *y) {
    const gene *a = x, *b = y;
    if (a->score != b->score) return a->score < b->score ? 1 : -1;
    return (a->cand.key > b->cand.key) - (a->cand.key < b->cand.key);
}

/* Only the elite stays, its candidates in memory of their own. */
static cdmpp_status forget(ga *g, cdmpp_err *err) {
    cd_arena fresh = {0};
    cdmpp_status st = CDMPP_OK;
    gene elite[ELITE];
    const size_t n = g->n_told < ELITE ? g->n_told : ELITE;
    for (size_t i = 0; !st && i < n; i++) {
        elite[i].score = g->told[i].score;
        st = cd_tune_cand_copy(&fresh, &g->told[i].cand, &elite[i].cand, err);
    }
    if (st) {
        cd_arena_free(&fresh);
        return st;
    }
    cd_arena_free(&g->told_mem);
    g->told_mem = fresh;
    if (n) memcpy(g->told, elite, n * sizeof *elite);
    g->n_told = n;
    return CDMPP_OK;
}

/* ---- the next generation ---- */
static const gene *parent(ga *g, double sum, const gene * not ) {
    double left = (sum - (not ? not ->score : 0)) * cd_tune_tried_unit(&g->b);
    const gene *last = NULL;
    for (size_t i = 0; i < g->n_told && g->told[i].score > 0; i++) {
        if (&g->told[i] == not ) continue;
        last = &g->told[i];
        left -= last->score;
        if (left < 0) break;
    }
    return last ? last : not ;
}

/* One child in *out, whose memory is the space's or g's. */
static cdmpp_status child(ga *g, double sum, cd_tune_cand *out, cdmpp_err *err) {
    cd_tune_space *space = g->b.space;
    const gene *a = parent(g, sum, NULL), *b = parent(g, sum, a);
    cd_arena mem = {0};
    cd_tune_cand own;
    cdmpp_status st = CDMPP_OK;
    *out = a->cand;
    if (a != b)
        st = space->kind->cross(space, &a->cand, &b->cand, cd_tune_tried_number(&g->b), out, err);
    for (uint32_t k = 0, n = st ? 0 : out->n_choice; !st && k < n; k++) {
        if (cd_tune_tried_unit(&g->b) >= mutation) continue;
        /* the next call may write where `out` points */
        st = cd_tune_cand_copy(&mem, out, &own, err);
        if (!st) st = space->kind->change(space, &own, cd_tune_tried_number(&g->b), out, err);
    }
    cd_arena_free(&mem);
    return st;
}

static bool is_queued(const ga *g, const cd_tune_cand *c) {
    for (size_t i = 0; i < g->n_queue; i++)
        if (g->queue[i].key == c->key) return true;
    return false;
}

/* Children that are new; those that cannot be had are left to chance. */
static cdmpp_status breed(ga *g, double sum, cdmpp_err *err) {
    cd_tune_cand c;
    for (size_t tries = 0; g->n_queue < g->population && tries < (size_t)TRIES * g->population;
         tries++) {
        const cdmpp_status st = child(g, sum, &c, err);
        if (st == CDMPP_EREJECTED || st == CDMPP_ENODATA) continue;
        CD_TRY(st);
        if (cd_tune_tried_knows(&g->b, &c) || is_queued(g, &c)) continue;
        CD_TRY(cd_tune_cand_copy(&g->queue_mem, &c, &g->queue[g->n_queue], err));
        g->n_queue++;
    }
    return CDMPP_OK;
}

static cdmpp_status generation(ga *g, cdmpp_err *err) {
    double sum = 0;
    g->n_queue = g->at = 0;
    cd_arena_reset(&g->queue_mem);
    for (size_t i = 0; i < g->n_told; i++) sum += g->told[i].score;
    if (g->n_told) qsort(g->told, g->n_told, sizeof *g->told, by_score);
    if (sum > 0) CD_TRY(breed(g, sum, err));
    return forget(g, err);
}

/* Has the last generation been told, but for what an ask of n may still have open? */
static bool is_due(const ga *g, size_t n) {
    return g->n_told > ELITE && g->n_told + n > g->population;
}

static cdmpp_status ask(cd_tune_search *s, size_t n, const cd_tune_cand **out, size_t *got,
                        cdmpp_err *err) {
    ga *g = (ga *)s;
    CD_TRY(cd_tune_tried_begin(&g->b, n, err));
    while (g->b.n_out < n) {
        if (g->at == g->n_queue && is_due(g, n)) CD_TRY(generation(g, err));
        if (g->at == g->n_queue) break;
        CD_TRY(cd_tune_tried_take(&g->b, &g->queue[g->at], err));
        g->at++;
    }
    /* the first generation, and where children are missing */
    CD_TRY(cd_tune_tried_random(&g->b, n, err));
    cd_tune_tried_end(&g->b, out, got);
    return CDMPP_OK;
}

static void free_search(cd_tune_search *s) {
    ga *g = (ga *)s;
    cd_tune_tried_close(&g->b);
    cd_arena_free(&g->queue_mem);
    cd_arena_free(&g->told_mem);
    cd_mem_free(g->queue);
    cd_mem_free(g->told);
    cd_mem_free(g);
}

static cdmpp_status open_search(const cd_tune_search_setup *s, cd_tune_search **out,
                                cdmpp_err *err) {
    ga *g = cd_mem_zalloc(1, sizeof *g);
    if (!g) return CD_FAIL(err, ENOMEM, "search");
    g->population = s->population ? s->population : POPULATION;
    g->queue = cd_mem_zalloc(g->population, sizeof *g->queue);
    cdmpp_status st = g->queue ? CDMPP_OK : CD_FAIL(err, ENOMEM, "population of %u", g->population);
    if (!st) st = cd_tune_tried_open(&g->b, &cd_tune_search_ga, s, err);
    if (st) free_search(&g->b.search);
    else *out = &g->b.search;
    return st;
}

const cd_tune_search_kind cd_tune_search_ga = {
    .name = "ga", .open = open_search, .ask = ask, .tell = tell, .free = free_search};

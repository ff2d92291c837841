/* best -- the ranker's best of many draws, of what lies around the best that were measured, and of
 * a short evolution.
 *
 * Half the generations of evolve and no random candidates: it trusts its ranker. */
#include "predictor/tune/search/search.h"
#include "predictor/tune/search/search_internal.h"

enum { POPULATION = 1024, GENERATIONS = 3, CENTRES = 16, AROUND = 16 };

static cdmpp_status widen(cd_tune_guide *g, cdmpp_err *err) {
    size_t at;
    for (size_t i = 0; i < g->b.n_good && i < CENTRES; i++)
        for (int k = 0; k < AROUND; k++)
            CD_TRY(cd_tune_guide_child(g, &g->b.good[i].cand, NULL, &at, err));
    CD_TRY(cd_tune_pool_rank(&g->pool, g->b.ranker, &g->b.space->of, err));
    return cd_tune_guide_evolve(g, err);
}

static cdmpp_status open_search(const cd_tune_search_setup *s, cd_tune_search **out,
                                cdmpp_err *err) {
    return cd_tune_guide_open(&cd_tune_search_best, s,
                              &(cd_tune_guide_own){POPULATION, GENERATIONS, 0, widen}, out, err);
}

const cd_tune_search_kind cd_tune_search_best = {.name = "best",
                                                 .open = open_search,
                                                 .ask = cd_tune_guide_ask,
                                                 .tell = cd_tune_guide_tell,
                                                 .free = cd_tune_guide_free};

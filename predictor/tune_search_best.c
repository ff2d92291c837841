/* best -- the ranker's best of many draws and of what lies around the best that were measured. */
#include "predictor/tune_guide.h"

enum { DRAWN = 2048, CENTRES = 16, AROUND = 64 };

static cdmpp_status widen(cd_tune_guide *g, cdmpp_err *err) {
    const size_t n = g->b.n_good < CENTRES ? g->b.n_good : CENTRES;
    size_t at;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < AROUND; k++) CD_TRY(cd_tune_guide_child(g, &g->b.good[i].cand, NULL, &at, err));
    return cd_tune_pool_rank(&g->pool, g->b.ranker, &g->b.space->of, err);
}

static cdmpp_status open_search(const cd_tune_search_setup *s, cd_tune_search **out, cdmpp_err *err) {
    return cd_tune_guide_open(&cd_tune_search_best, s, &(cd_tune_guide_own){DRAWN, 0, 0, widen}, out, err);
}

const cd_tune_search_kind cd_tune_search_best = {
    .name = "best", .open = open_search, .ask = cd_tune_guide_ask, .tell = cd_tune_guide_tell, .free = cd_tune_guide_free};

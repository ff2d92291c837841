/* The table of searches with their rankers. A new tuner is a row here and a name in CD_TUNERS. */
#include "predictor/tune/session/tune_tuner.h"

#include <string.h>

#include "predictor/tune/rank/rank.h"
#include "predictor/tune/search/search.h"

static const cd_tune_tuner tuner[] = {
    {"cdmpp", "best of many by a trained model, its small profile and then the whole, corrected by what is measured", &cd_tune_search_best,
     &cd_tune_rank_twostage},
    {"cdmpp-evo", "Ansor's evolution on the small profile of that model", &cd_tune_search_evolve, &cd_tune_rank_model},
    {"two-stage", "that evolution, its best ranked again by the whole model", &cd_tune_search_evolve, &cd_tune_rank_twostage},
    {"ansor", "Ansor's evolution on its own XGBoost, trained on what is measured", &cd_tune_search_evolve, &cd_tune_rank_ansor},
    {"xgb", "autotvm's XGBoost by loops and pairwise rank, annealed plans; the same as xgb-rank and xgb_itervar",
     &cd_tune_search_anneal, &cd_tune_rank_itervar},
    {"xgb-rank", "the same as xgb", &cd_tune_search_anneal, &cd_tune_rank_itervar},
    {"xgb_knob", "the same by the numbers in the steps", &cd_tune_search_anneal, &cd_tune_rank_knob},
    {"xgb_itervar", "the same as xgb", &cd_tune_search_anneal, &cd_tune_rank_itervar},
    {"xgb_curve", "the same by curves of touch and reuse", &cd_tune_search_anneal, &cd_tune_rank_curve},
    {"ga", "autotvm's genetic algorithm", &cd_tune_search_ga, NULL},
    {"random", "without repetition", &cd_tune_search_random, NULL},
    {"gridsearch", "one after another", &cd_tune_search_grid, NULL},
};

const cd_tune_tuner *cd_tune_tuner_at(size_t i) { return i < sizeof tuner / sizeof *tuner ? &tuner[i] : NULL; }

const cd_tune_tuner *cd_tune_tuner_find(const char *name) {
    const cd_tune_tuner *t = NULL;
    for (size_t i = 0; (t = cd_tune_tuner_at(i)) && strcmp(t->name, name) != 0; i++) {}
    return t;
}

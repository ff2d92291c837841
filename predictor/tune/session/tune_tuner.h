/* tune_tuner -- the tuners by name: each is a search with the ranker that it uses, and the space
 * that it searches. */
#ifndef CD_TUNE_TUNER_H
#define CD_TUNE_TUNER_H
#include "predictor/tune/core/core.h"

typedef struct cd_tune_tuner {
    const char *name, *brief;
    const cd_tune_search_kind *search;
    const cd_tune_ranker_kind *ranker; /* NULL: needs none */
    bool templates; /* the space of templates; false: all programs of Ansor's rules */
} cd_tune_tuner;

/* Trials of a task of tuners of templates, where nothing is said: their point is that these do. */
enum { CD_TUNE_TEMPLATE_TRIALS = 10 };

/* X(name, what it does, search, ranker or NULL, of templates), F for the first: a new tuner is a
 * row here. */
#define CD_TUNER_MAP(F, X)                                                                         \
    F("cdmpp",                                                                                     \
      "best of many by a trained model, its small profile and then the whole, corrected by what "  \
      "is measured",                                                                               \
      &cd_tune_search_best, &cd_tune_rank_twostage, false)                                         \
    X("cdmpp-evo", "Ansor's evolution on the small profile of that model", &cd_tune_search_evolve, \
      &cd_tune_rank_model, false)                                                                  \
    X("two-stage", "that evolution, its best ranked again by the whole model",                     \
      &cd_tune_search_evolve, &cd_tune_rank_twostage, false)                                       \
    X("ansor", "Ansor's evolution on its own XGBoost, trained on what is measured",                \
      &cd_tune_search_evolve, &cd_tune_rank_ansor, false)                                          \
    X("xgb",                                                                                       \
      "autotvm's XGBoost by loops and pairwise rank, annealed plans; the same as xgb-rank and "    \
      "xgb_itervar",                                                                               \
      &cd_tune_search_anneal, &cd_tune_rank_itervar, false)                                        \
    X("xgb-rank", "the same as xgb", &cd_tune_search_anneal, &cd_tune_rank_itervar, false)         \
    X("xgb_knob", "the same by the numbers in the steps", &cd_tune_search_anneal,                  \
      &cd_tune_rank_knob, false)                                                                   \
    X("xgb_itervar", "the same as xgb", &cd_tune_search_anneal, &cd_tune_rank_itervar, false)      \
    X("xgb_curve", "the same by curves of touch and reuse", &cd_tune_search_anneal,                \
      &cd_tune_rank_curve, false)                                                                  \
    X("ga", "autotvm's genetic algorithm", &cd_tune_search_ga, NULL, false)                        \
    X("random", "without repetition", &cd_tune_search_random, NULL, false)                         \
    X("gridsearch", "one after another", &cd_tune_search_grid, NULL, false)                        \
    X("template",                                                                                  \
      "matrix products and convolutions: the tiles that suit registers and caches, by an "         \
      "analytic cost",                                                                             \
      &cd_tune_search_grid, NULL, true)                                                            \
    X("bolt", "the same as template", &cd_tune_search_grid, NULL, true)                            \
    X("template-model", "the same tiles, ranked by a trained model", &cd_tune_search_best,         \
      &cd_tune_rank_twostage, true)

/* "cdmpp|cdmpp-evo|..." */
#define CD_TUNER_FIRST(name, brief, search, ranker, templates) name
#define CD_TUNER_NEXT(name, brief, search, ranker, templates)  "|" name

#define CD_TUNERS CD_TUNER_MAP(CD_TUNER_FIRST, CD_TUNER_NEXT)

const cd_tune_tuner *cd_tune_tuner_find(const char *name); /* NULL: unknown */
const cd_tune_tuner *cd_tune_tuner_at(size_t i);           /* NULL: no such i */
/* Whether it works only with a trained cost model. */
static inline bool cd_tune_tuner_needs_model(const cd_tune_tuner *t) {
    return t->ranker && t->ranker->needs_model;
}
#endif

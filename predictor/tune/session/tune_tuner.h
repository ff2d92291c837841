/* tune_tuner -- the tuners by name: each is a search with the ranker that it uses. */
#ifndef CD_TUNE_TUNER_H
#define CD_TUNE_TUNER_H
#include "predictor/tune/core/core.h"

typedef struct cd_tune_tuner {
    const char *name, *brief;
    const cd_tune_search_kind *search;
    const cd_tune_ranker_kind *ranker; /* NULL: needs none */
} cd_tune_tuner;

/* The names of the table, in its order. */
#define CD_TUNERS "cdmpp|cdmpp-evo|two-stage|ansor|xgb|xgb-rank|xgb_knob|xgb_itervar|xgb_curve|ga|random|gridsearch"

const cd_tune_tuner *cd_tune_tuner_find(const char *name); /* NULL: unknown */
const cd_tune_tuner *cd_tune_tuner_at(size_t i);           /* NULL: no such i */
/* Whether it works only with a trained cost model. */
static inline bool cd_tune_tuner_needs_model(const cd_tune_tuner *t) { return t->ranker && t->ranker->needs_model; }
#endif

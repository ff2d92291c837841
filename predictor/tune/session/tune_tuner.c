/* The table of searches with their rankers, from CD_TUNER_MAP. */
#include "predictor/tune/session/tune_tuner.h"

#include <string.h>

#include "predictor/tune/rank/rank.h"
#include "predictor/tune/search/search.h"

static const cd_tune_tuner tuner[] = {
#define CD_X(name, brief, search, ranker, templates) {name, brief, search, ranker, templates},
    CD_TUNER_MAP(CD_X, CD_X)
#undef CD_X
};

const cd_tune_tuner *cd_tune_tuner_at(size_t i) {
    return i < sizeof tuner / sizeof *tuner ? &tuner[i] : NULL;
}

const cd_tune_tuner *cd_tune_tuner_find(const char *name) {
    const cd_tune_tuner *t = NULL;
    for (size_t i = 0; (t = cd_tune_tuner_at(i)) && strcmp(t->name, name) != 0; i++) {
    }
    return t;
}

/* Tests of graphs in whole numbers: who runs their programs, and numbers drawn from a range. */
#ifndef MADE_INTEGERS_H
#define MADE_INTEGERS_H
#include "predictor/quantize/quantize.h"
#include "tests/support/base/check.h"
#include "tests/support/profiler/made_graph.h"

#define U8 CD_DTYPE(CD_T_UINT, 8)
#define I8 CD_DTYPE(CD_T_INT, 8)

static cd_measure *measure;
static cdmpp_err err;

static inline int up(void **state) {
    (void)state;
    return cd_measure_open(
               &(cd_measure_options){
                   .threads = 1, .jobs = 1, .cache = "", .timing = {.budget_s = 0.001}},
               &measure, NULL) != CDMPP_OK;
}

static inline int down(void **state) {
    (void)state;
    cd_measure_close(measure);
    return 0;
}

/* From lo to hi, both of them, too. */
static inline int drawn_in(uint64_t seed, uint64_t i, int lo, int hi) {
    return lo + (int)(cd_rng_at(seed, i) % (uint64_t)(hi - lo + 1));
}
#endif

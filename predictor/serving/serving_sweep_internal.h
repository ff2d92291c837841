/* What the files of a sweep share. */
#ifndef CD_SERVING_SWEEP_INTERNAL_H
#define CD_SERVING_SWEEP_INTERNAL_H
#include "predictor/serving/serving.h"

/* What became of each configuration: OPEN where the sweep was stopped before, REFUSED + the number
 * of the error's key. */
enum { CD_SERVING_OPEN, CD_SERVING_ANSWERED, CD_SERVING_REFUSED };
typedef struct cd_serving_outcomes {
    cd_serving_point *v; /* (n) of those that are answered, without price and targets */
    uint8_t *of;         /* (n) */
    char key[CD_SERVING_REASONS][96];
    size_t n_key;
} cd_serving_outcomes;

#endif

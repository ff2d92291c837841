/* Any bytes as a booster: what is read as a forest is walked. */
#include <math.h>

#include "learner/trees/trees.h"

enum { WIDTH = 6, ROWS = 9 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    float x[ROWS * WIDTH], y[ROWS];
    cd_tree_inference *f = NULL;
    cdmpp_err err = {0};
    for (int i = 0; i < ROWS * WIDTH; i++) x[i] = i % 7 ? (float)(i * 13 % 11) - 5 : NAN;
    if (cd_tree_inference_read(data, size, WIDTH, &f, &err)) return 0;
    cd_tree_inference_score(f, x, ROWS, WIDTH, y);
    cd_tree_inference_score(f, x, 1, WIDTH, y);
    cd_tree_inference_free(f);
    return 0;
}

/* autotvm's features of loops: every loop in the order of the nest, every access in it in the order
 * of names. */
#include <math.h>

#include "predictor/tune/rank/rank_internal.h"

/* log2 of one more, mirrored below zero. */
static double log2p(double x) { return x < 0 ? -log2(1 - x) : log2(1 + x); }

static void loop(const cd_tune_loop *l, cd_tune_row *out) {
    cd_tune_row_put(out, log2p(l->length));
    cd_tune_row_put(out, l->level);
    cd_tune_row_put(out, log2p(l->topdown));
    cd_tune_row_put(out, log2p(l->bottomup));
    for (int k = 0; k < CD_TUNE_LOOP_KINDS; k++) cd_tune_row_put(out, k == (int)l->kind);
    cd_tune_row_put(out, log2p(l->n_add));
    cd_tune_row_put(out, log2p(l->n_mul));
    cd_tune_row_put(out, log2p(l->n_div));
}

static void touch(const cd_tune_feat_access *t, cd_tune_row *out) {
    cd_tune_row_put(out, log2p(t->stride));
    cd_tune_row_put(out, log2p(-1)); /* autotvm's `mod`, which it never sets */
    cd_tune_row_put(out, log2p(t->count));
    cd_tune_row_put(out, log2p(t->reuse));
    cd_tune_row_put(out, log2p(t->thread_count));
    cd_tune_row_put(out, log2p(t->thread_reuse));
}

void cd_tune_feat_itervar(const cd_tune_touches *t, cd_tune_row *out) {
    for (uint32_t k = 0; k < t->n_loop; k++) {
        loop(&t->loop[k], out);
        for (const cd_tune_feat_access *to = t->loop[k].touch; to; to = to->next) touch(to, out);
    }
}

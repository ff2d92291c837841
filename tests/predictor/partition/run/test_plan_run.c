/* Plans run here: parts, copies and joins give what the unsplit network gives, whatever is cut how
 * and wherever it runs. */
#include "check.h"
#include "made_plan.h"

/* Windows, halos, a sum, a residual sum, a concatenation, a view, rows. */
static mp convolutions(void) {
    mg m = mg_new("made", 13);
    const uint32_t x = mg_in(&m, 4, 1, 4, 10, 9);
    const uint32_t a =
        mg_op(&m, "Relu", "", 1,
              mg_op(&m, "Conv", "pads:1,1,1,1", 3, x, mg_w(&m, 4, 6, 4, 3, 3), mg_w(&m, 1, 6)));
    const uint32_t b = mg_op(&m, "Conv", "pads:1,1,1,1", 2, a, mg_w(&m, 4, 6, 6, 3, 3));
    const uint32_t s = mg_op(&m, "Relu", "", 1, mg_op(&m, "Add", "", 2, a, b));
    const uint32_t p = mg_op(&m, "MaxPool", "kernel_shape:3,3 strides:2,2 pads:1,1,1,1", 1, s);
    const uint32_t c = mg_op(&m, "Conv", "", 2, p, mg_w(&m, 4, 4, 6, 1, 1));
    const uint32_t g =
        mg_op(&m, "GlobalAveragePool", "", 1, mg_op(&m, "Concat", "axis=1", 2, p, c));
    const uint32_t d = mg_op(&m, "Gemm", "transB=1", 3, mg_op(&m, "Flatten", "axis=1", 1, g),
                             mg_w(&m, 2, 7, 10), mg_w(&m, 1, 7));
    mg_end(&m, mg_op(&m, "Softmax", "axis=1", 1, d));
    mg_end(&m, s);
    return mp_new(&m);
}

static void test_every_way(void **state) {
    (void)state;
    mp p = convolutions();
    mp_device(&p, "cpu0", "cpu", 0);
    mp_device(&p, "cpu1", "cpu", 0);
    for (uint32_t turn = 0; turn < 3; turn++) {
        cd_shard_plan *q = mp_plan(&p);
        const uint32_t cut = mp_cut_all(&p, q, turn, (const double[]){0.5, 0.2, 0.9}[turn], 2);
        assert_true(cut >= 8);
        const double e = mp_try(&p, q);
        assert_true(e >= 0 && e < 1e-5);
        cd_shard_plan_free(q);
    }
    mp_free(&p);
}

TESTS(up, down, test_every_way)

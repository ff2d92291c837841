/* What the check of a network writes before it runs it, and how it compares: a runner that keeps
 * what it gets. */
#include <string.h>

#include "check.h"
#include "profiler/runtime/single/single_internal.h"

enum { TENSORS = 7 };
static const cd_executor_net_tensor tensor[TENSORS] = {
    {.bytes = 4, .dtype = CD_F32, .role = CD_TENSOR_INPUT},
    {.bytes = 4, .dtype = CD_F32, .role = CD_TENSOR_WEIGHT},
    {.bytes = 8, .dtype = CD_F32, .role = CD_TENSOR_INPUT},
    {.bytes = 4, .dtype = CD_I32, .role = CD_TENSOR_INPUT},
    {.bytes = 4, .dtype = CD_F32, .role = CD_TENSOR_INNER},
    {.bytes = 4, .dtype = CD_F32, .role = CD_TENSOR_INPUT},
    {.bytes = 4, .dtype = CD_F32, .role = CD_TENSOR_RESULT},
};

typedef struct {
    int n[TENSORS]; /* writes */
    float value[TENSORS];
    int fails; /* at this tensor; -1: never */
} kept;

static cdmpp_status keep(void *run, uint32_t t, const void *from, cdmpp_err *err) {
    kept *k = run;
    k->n[t]++;
    memcpy(&k->value[t], from, sizeof k->value[t]);
    return (int)t == k->fails ? CD_FAIL(err, EIO, "tensor %u", t) : CDMPP_OK;
}

/* Only those whose value is known, that are one float and that no program makes; and contents that
 * are known as a whole. */
static void test_scalars_are_written(void **state) {
    static double scalar[TENSORS] = {2.5, -0.125, 3, 4, 5, NAN, 7};
    static const float two[] = {8, 9}, inner[] = {10};
    static const void *known[TENSORS] = {NULL, NULL, two, NULL, inner};
    static const bool written[TENSORS] = {true, true, true, false, false, false, true};
    cdmpp_err err = {0};
    kept k = {.fails = -1};
    (void)state;
    const cd_op_profile_net m = {.net = {.n_tensor = TENSORS, .tensor = tensor},
                                 .tensor = (cd_executor_net_tensor *)(uintptr_t)tensor,
                                 .scalar = scalar,
                                 .known = known};
    const cd_op_profile_runner r = {.run = &k, .write = keep};
    assert_ok(cd_op_profile_write_scalars(&m, &r, &err));
    for (int t = 0; t < TENSORS; t++) {
        assert_int_equal(k.n[t], written[t]);
        if (written[t]) assert_close((double)k.value[t], t == 2 ? 8 : scalar[t], 0, 0);
    }
    k = (kept){.fails = 1};
    assert_status(cd_op_profile_write_scalars(&m, &r, &err), CDMPP_EIO);
    assert_int_equal(k.n[6], 0);
}

/* Values of matrices and of what has more axes are those of trained weights; vectors stay as the
 * executor fills them. */
static void test_weights_are_written(void **state) {
    static const int64_t shape[] = {1, 2, 2, 3};
    static const cd_executor_net_tensor w[] = {
        {.bytes = 48, .dtype = CD_F32, .role = CD_TENSOR_WEIGHT, .rank = 4, .shape = shape},
        {.bytes = 24, .dtype = CD_F32, .role = CD_TENSOR_WEIGHT, .rank = 2, .shape = shape + 2},
        {.bytes = 12, .dtype = CD_F32, .role = CD_TENSOR_WEIGHT, .rank = 1, .shape = shape + 3},
        {.bytes = 4, .dtype = CD_F32, .role = CD_TENSOR_WEIGHT},
        {.bytes = 24, .dtype = CD_I32, .role = CD_TENSOR_WEIGHT, .rank = 2, .shape = shape + 2},
        {.bytes = 24, .dtype = CD_F32, .role = CD_TENSOR_INPUT, .rank = 2, .shape = shape + 2}};
    cdmpp_err err = {0};
    kept k = {.fails = -1};
    (void)state;
    const cd_executor_net n = {.n_tensor = sizeof w / sizeof *w, .tensor = w};
    const cd_op_profile_runner r = {.run = &k, .write = keep};
    assert_ok(cd_op_profile_write_weights(&n, &r, &err));
    for (uint32_t t = 0; t < n.n_tensor; t++) {
        float want[12];
        assert_int_equal(k.n[t], t < 2);
        if (t > 1) continue;
        assert_true(cd_tensor_fill_weight(CD_F32, t, w[t].rank, w[t].shape, want));
        assert_close((double)k.value[t], (double)want[0], 0, 0);
    }
    k = (kept){.fails = 0};
    assert_status(cd_op_profile_write_weights(&n, &r, &err), CDMPP_EIO);
    assert_int_equal(k.n[1], 0);
}

TESTS(NULL, NULL, test_scalars_are_written, test_weights_are_written)

/* Operators on known content against ONNX's text, element by element; and shapes and types of
 * operators that few networks have. */
#include "check.h"
#include "made_graph.h"

#include "profiler/network/graph/graph_call_internal.h"

static int set_up(void **state) {
    gm *m = calloc(1, sizeof *m);
    *state = m;
    return !m || cd_graph_new("net", &m->g, &m->err);
}

static int tear_down(void **state) {
    gm *m = *state;
    cd_graph_free(m->g);
    free(m);
    return 0;
}

/* The result of gm_add, which must not fail. */
static const cd_graph_tensor *made(const gm *m, uint32_t t) {
    if (m->st) check_status(m->st, CDMPP_OK, &m->err, "gm_add", __FILE__, __LINE__);
    return &m->g->tensor[t];
}

/* ---- two operands ---- */
enum { A = 9, B = 8 };
static const int64_t ints_a[A] = {0, 1, -1, 7, -7, 6, 1000003, INT64_MAX, INT64_MIN};
static const int64_t ints_b[B] = {1, 2, -3, 7, -7, 63, 3, -1};
static const double reals_a[A] = {0, 1, -1, 2.5, -7.5, 0.1f, 1e30f, -3, 8};
static const double reals_b[B] = {1, 2, -3, 7.5, -7.5, 0.5, 3, -0.25};

/* Wraps at 64 bits. */
__extension__ typedef __int128 wide;
static int64_t wrap(wide v) { return (int64_t)(uint64_t)v; }

static bool int_truth(const char *op, wide a, wide b, int64_t *out) {
    wide r = 1;
    if (!strcmp(op, "Add") || !strcmp(op, "Sum")) r = a + b;
    else if (!strcmp(op, "Sub")) r = a - b;
    else if (!strcmp(op, "Mul")) r = a * b;
    else if (!strcmp(op, "Div")) r = a / b;
    else if (!strcmp(op, "Mod")) r = ((a % b) + b) % b;
    else if (!strcmp(op, "fmod")) r = a % b;
    else if (!strcmp(op, "Min")) r = a < b ? a : b;
    else if (!strcmp(op, "Max")) r = a > b ? a : b;
    else if (!strcmp(op, "And") || !strcmp(op, "BitwiseAnd")) r = (int64_t)a & (int64_t)b;
    else if (!strcmp(op, "Or") || !strcmp(op, "BitwiseOr")) r = (int64_t)a | (int64_t)b;
    else if (!strcmp(op, "Xor") || !strcmp(op, "BitwiseXor")) r = (int64_t)a ^ (int64_t)b;
    else if (!strcmp(op, "Equal")) r = a == b;
    else if (!strcmp(op, "Less")) r = a < b;
    else if (!strcmp(op, "LessOrEqual")) r = a <= b;
    else if (!strcmp(op, "Greater")) r = a > b;
    else if (!strcmp(op, "GreaterOrEqual")) r = a >= b;
    else if (!strcmp(op, "Pow")) {
        if (b < 0) return false;
        for (wide k = 0; k < b; k++) r = wrap(r * a);
    }
    *out = wrap(r);
    return true;
}

static double real_truth(const char *op, double a, double b) {
    if (!strcmp(op, "Add") || !strcmp(op, "Sum")) return a + b;
    if (!strcmp(op, "Sub")) return a - b;
    if (!strcmp(op, "Mul")) return a * b;
    if (!strcmp(op, "Div")) return a / b;
    if (!strcmp(op, "Pow")) return pow(a, b);
    if (!strcmp(op, "Min")) return a < b ? a : b;
    if (!strcmp(op, "Max")) return a > b ? a : b;
    if (!strcmp(op, "Equal")) return a == b;
    if (!strcmp(op, "Less")) return a < b;
    if (!strcmp(op, "LessOrEqual")) return a <= b;
    if (!strcmp(op, "Greater")) return a > b;
    return a >= b;
}

static const char *const both[] = {"Add",         "Sub",     "Mul",           "Div",   "Pow",
                                   "Min",         "Max",     "Sum",           "Equal", "Less",
                                   "LessOrEqual", "Greater", "GreaterOrEqual"};
static const char *const integers[] = {"Mod", "fmod",       "And",       "Or",
                                       "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor"};

static void check_ints(gm *m, const char *op) {
    const bool f = !strcmp(op, "fmod");
    for (int i = 0; i < A; i++)
        for (int j = 0; j < B; j++) {
            int64_t want = 0;
            /* of truth values */
            if (strstr("And Or Xor", op) && ints_a[i] != 0 && ints_a[i] != 1) continue;
            if (strstr("And Or Xor", op) && ints_b[j] != 1) continue;
            /* not defined */
            if (ints_a[i] == INT64_MIN && ints_b[j] == -1 && (f || strstr("Div Mod", op))) continue;
            const bool defined = int_truth(op, ints_a[i], ints_b[j], &want);
            const cd_graph_tensor *t =
                made(m, gm_add(m, f ? "Mod" : op, f ? "fmod=1" : "",
                               gm_const_ints(m, 1, &ints_a[i]), gm_const_ints(m, 1, &ints_b[j])));
            if ((t->value != NULL) != defined)
                fail_msg("%s %lld %lld", op, (long long)ints_a[i], (long long)ints_b[j]);
            if (defined && t->value[0] != want)
                fail_msg("%s(%lld, %lld) is %lld", op, (long long)ints_a[i], (long long)ints_b[j],
                         (long long)t->value[0]);
        }
}

static void check_reals(gm *m, const char *op) {
    for (int i = 0; i < A; i++)
        for (int j = 0; j < B; j++) {
            const double want = (double)(float)real_truth(op, reals_a[i], reals_b[j]); /* float32 */
            const cd_graph_tensor *t = made(m, gm_add(m, op, "", gm_const_reals(m, 1, &reals_a[i]),
                                                      gm_const_reals(m, 1, &reals_b[j])));
            const double got = t->dtype == CD_BOOL ? (double)t->value[0] : t->fvalue[0];
            if (isnan(want) ? !isnan(got) : got != want)
                fail_msg("%s(%g, %g) is %g, not %g", op, reals_a[i], reals_b[j], got, want);
        }
}

static void two_operands(void **state) {
    gm *m = *state;
    m->g->opset = 18;
    for (size_t k = 0; k < sizeof both / sizeof *both; k++) {
        check_ints(m, both[k]);
        check_reals(m, both[k]);
    }
    for (size_t k = 0; k < sizeof integers / sizeof *integers; k++) check_ints(m, integers[k]);
    static const char *const zero[] = {"Div", "Mod"}; /* left to the run time */
    for (int k = 0; k < 2; k++)
        assert_null(made(m, gm_add(m, zero[k], "", gm_ints(m, 1, 2), gm_ints(m, 1, 0)))->value);
    static const char *const logic[] = {"And", "Or", "Xor"};
    for (int k = 0; k < 3; k++) { /* of 0 and 0, 0 and 1, 1 and 1 */
        const cd_graph_tensor *b =
            made(m, gm_add(m, logic[k], "", gm_ints(m, 0, 0, 1), gm_ints(m, 0, 1, 1)));
        assert_true(b->value[0] == 0 && b->value[1] == (k > 0) && b->value[2] == (k < 2));
    }
    /* several, broadcast */
    const cd_graph_tensor *t =
        made(m, gm_add(m, "Min", "", gm_ints(m, 5, 2, 9), gm_ints(m, 4), gm_ints(m, 3, 8, 7)));
    assert_true(t->value[0] == 3 && t->value[1] == 2 && t->value[2] == 4);
}

/* ---- one operand ---- */
static double one_truth(const char *op, double x) {
    if (!strcmp(op, "Floor")) return floor(x);
    if (!strcmp(op, "Ceil")) return ceil(x);
    if (!strcmp(op, "Round")) return x - remainder(x, 1); /* halves to the even one */
    if (!strcmp(op, "Sqrt")) return sqrt(x);
    if (!strcmp(op, "Exp")) return exp(x);
    if (!strcmp(op, "Log")) return log(x);
    if (!strcmp(op, "Abs")) return x < 0 ? -x : x;
    if (!strcmp(op, "Neg")) return -x;
    if (!strcmp(op, "Sign")) return x < 0 ? -1 : x > 0;
    if (!strcmp(op, "Reciprocal")) return 1 / x;
    if (!strcmp(op, "Sin")) return sin(x);
    return strcmp(op, "Cos") ? tanh(x) : cos(x);
}

static void one_operand(void **state) {
    gm *m = *state;
    static const char *const real[] = {"Floor", "Ceil", "Round",      "Sqrt", "Exp", "Log", "Abs",
                                       "Neg",   "Sign", "Reciprocal", "Sin",  "Cos", "Tanh"};
    static const char *const integer[] = {"Neg", "Abs", "Sign", "BitwiseNot"};
    static const double x[] = {0, 1, 2.5, -2.5, 3.5, 0.25, -0.25, 9};
    static const int64_t n[] = {0, 1, -1, 12, -12, INT64_MIN},
                         want[][6] = {{0, -1, 1, -12, 12, INT64_MIN},
                                      {0, 1, 1, 12, 12, INT64_MIN},
                                      {0, 1, -1, 1, -1, -1},
                                      {-1, -2, 0, -13, 11, INT64_MAX}};
    m->g->opset = 18;
    for (size_t k = 0; k < sizeof real / sizeof *real; k++) {
        const cd_graph_tensor *t = made(m, gm_add(m, real[k], "", gm_const_reals(m, 8, x)));
        for (int i = 0; i < 8; i++) {
            const double y = (double)(float)one_truth(real[k], x[i]);
            if (isnan(y) ? !isnan(t->fvalue[i]) : t->fvalue[i] != y)
                fail_msg("%s(%g) is %g, not %g", real[k], x[i], t->fvalue[i], y);
        }
    }
    for (int k = 0; k < 4; k++) {
        const cd_graph_tensor *t = made(m, gm_add(m, integer[k], "", gm_const_ints(m, 6, n)));
        assert_memory_equal(t->value, want[k], sizeof want[k]);
    }
    assert_null(made(m, gm_add(m, "Exp", "", gm_x(m, 2)))->fvalue);
}

/* ---- reductions: 2 x 3 by rows, by columns, all ---- */
static void reductions(void **state) {
    gm *m = *state;
    static const char *const op[] = {"ReduceSum", "ReduceMean", "ReduceProd", "ReduceMin",
                                     "ReduceMax"};
    static const double rows[5][2] = {{6, -1}, {2, -1.0 / 3}, {6, 45}, {1, -3}, {3, 5}},
                        columns[5][3] = {{-2, 7, 0},
                                         {-1, 3.5, 0},
                                         {-3, 10, -9},
                                         {-3, 2, -3},
                                         {1, 5, 3}},
                        all[5] = {5, 5.0 / 6, 270, -3, 5};
    static const int64_t whole[5][2] = {{6, -1}, {2, 0}, {6, 45}, {1, -3}, {3, 5}};
    m->g->opset = 13;
    const uint32_t x = gm_add(m, "Reshape", "", gm_reals(m, 1, 2, 3, -3, 5, -3), gm_ints(m, 2, 3));
    const uint32_t n = gm_add(m, "Reshape", "", gm_ints(m, 1, 2, 3, -3, -3, 5), gm_ints(m, 2, 3));
    for (int k = 0; k < 5; k++) {
        const uint32_t axis[] = {gm_ints(m, 1), gm_ints(m, 0)};
        const char *attr[] = {"axes=[1]", "axes=[0]"};
        const bool operand = k == 0; /* ReduceSum alone has an operand in version 13 */
        const cd_graph_tensor *t =
            made(m, operand ? gm_add(m, op[k], "", x, axis[0]) : gm_add(m, op[k], attr[0], x));
        assert_close(t->fvalue[0], rows[k][0], 1e-6, 0);
        assert_close(t->fvalue[1], rows[k][1], 1e-6, 0);
        t = made(m, operand ? gm_add(m, op[k], "keepdims=0", x, axis[1])
                            : gm_add(m, op[k], "axes=[0] keepdims=0", x));
        for (int i = 0; i < 3; i++) assert_close(t->fvalue[i], columns[k][i], 1e-6, 0);
        assert_int_equal(t->shape.rank, 1);
        t = made(m, gm_add(m, op[k], "keepdims=0", x));
        assert_close(t->fvalue[0], all[k], 1e-6, 0);
        t = made(m, operand ? gm_add(m, op[k], "", n, axis[0]) : gm_add(m, op[k], attr[0], n));
        assert_true(t->value[0] == whole[k][0] && t->value[1] == whole[k][1]);
    }
}

/* ---- types and shapes of rarer operators ---- */
static void is(gm *m, uint32_t t, cd_dtype type, cd_graph_shape want, int line) {
    const cd_graph_tensor *x = made(m, t);
    bool same = x->shape.rank == want.rank && x->dtype == type;
    for (uint32_t d = 0; same && d < want.rank; d++) same = x->shape.dim[d] == want.dim[d];
    if (!same) fail_msg("line %d: rank %u, type %u", line, x->shape.rank, (unsigned)x->dtype);
}
#define IS(t, type, ...)                                                                           \
    do {                                                                                           \
        const uint32_t t_ = (t);                                                                   \
        is(m, t_, (type), GM_SHAPE(__VA_ARGS__), __LINE__);                                        \
    } while (0)
#define REFUSED(t, want)                                                                           \
    do {                                                                                           \
        (void)(t);                                                                                 \
        if (m->st != CDMPP_##want)                                                                 \
            fail_msg("line %d: %s: %s", __LINE__, cdmpp_status_name(m->st), m->err.msg);           \
    } while (0)
#define U8 CD_DTYPE(CD_T_UINT, 8)

static void rarer_operators(void **state) {
    gm *m = *state;
    m->g->opset = 19;
    const uint32_t x = gm_x(m, 1, 6, 9, 9), v = gm_x(m, 2, 3), n = gm_ints(m, 4, 5, 6),
                   s = gm_scalar(m, 1);
    IS(gm_add(m, "BitwiseAnd", "", n, gm_ints(m, 3)), CD_I64, 3);
    REFUSED(gm_add(m, "BitwiseOr", "", v, v), ESCHEMA);
    IS(gm_add(m, "CastLike", "", v, n), CD_I64, 2, 3);
    IS(gm_add(m, "DequantizeLinear", "", n, gm_reals(m, 0.5)), CD_F32, 3);
    m->n_out = 3;
    IS(gm_add(m, "DynamicQuantizeLinear", "", v), U8, 2, 3);
    assert_true(m->g->tensor[m->out[1]].dtype == CD_F32 && m->g->tensor[m->out[1]].shape.rank == 0);
    assert_true(m->g->tensor[m->out[2]].dtype == U8 && m->g->tensor[m->out[2]].shape.rank == 0);
    IS(gm_add(m, "GatherElements", "axis=1", v, gm_add(m, "Reshape", "", n, gm_ints(m, 1, 3))),
       CD_F32, 1, 3);
    REFUSED(gm_add(m, "GatherElements", "axis=1", v, n), ESCHEMA);
    IS(gm_add(m, "Trilu", "", v, s), CD_F32, 2, 3);
    assert_int_equal(cd_graph_node_int(&m->g->node[m->g->n_node - 1], "k", 0), 1);
    IS(gm_add(m, "ReverseSequence", "", v, gm_ints(m, 1, 2, 3)), CD_F32, 2, 3);
    assert_int_equal(cd_graph_node_int(&m->g->node[m->g->n_node - 1], "batch_axis", 9), 1);
    assert_int_equal(cd_graph_node_int(&m->g->node[m->g->n_node - 1], "time_axis", 9), 0);
    REFUSED(gm_add(m, "ReverseSequence", "", n, n), ESCHEMA);
    IS(gm_add(m, "DeformConv", "", x, gm_w(m, 4, 6, 3, 3), gm_x(m, 1, 18, 7, 7)), CD_F32, 1, 4, 7,
       7);
    IS(gm_add(m, "LpPool", "kernel_shape=3,3 strides=2,2", x), CD_F32, 1, 6, 4, 4);
    assert_int_equal(cd_graph_node_int(&m->g->node[m->g->n_node - 1], "p", 9), 2);
    IS(gm_add(m, "Det", "", gm_x(m, 5, 4, 4)), CD_F32, 5);
    REFUSED(gm_add(m, "Det", "", gm_x(m, 5, 4, 3)), ESCHEMA);
    IS(gm_add(m, "CenterCropPad", "", x, gm_ints(m, 1, 6, 4, 20)), CD_F32, 1, 6, 4, 20);
    IS(gm_add(m, "CenterCropPad", "axes=3,1", x, gm_ints(m, 4, 20)), CD_F32, 1, 20, 9, 4);
    IS(gm_add(m, "EyeLike", "dtype=7", v), CD_I64, 2, 3);
    IS(gm_add(m, "EyeLike", "", v), CD_F32, 2, 3);
    REFUSED(gm_add(m, "EyeLike", "", x), ESCHEMA);
    IS(gm_addv(m, "RandomNormal", "shape=4,5", NULL, 0), CD_F32, 4, 5);
    IS(gm_add(m, "LpNormalization", "axis=0", v), CD_F32, 2, 3);
    REFUSED(gm_add(m, "LpNormalization", "axis=2", v), ESCHEMA);
    IS(gm_add(m, "MeanVarianceNormalization", "", x), CD_F32, 1, 6, 9, 9);
    const cd_graph_attr *a = cd_graph_node_attr(&m->g->node[m->g->n_node - 1], "axes");
    assert_true(a->n == 3 && a->ints[0] == 0 && a->ints[1] == 2 && a->ints[2] == 3);
    REFUSED(gm_add(m, "MeanVarianceNormalization", "", v), ESCHEMA);
    IS(gm_add(m, "MeanVarianceNormalization", "axes=[1]", v), CD_F32, 2, 3);
    const uint32_t labels = gm_ints(m, 0, 1);
    IS(gm_add(m, "NegativeLogLikelihoodLoss", "reduction=none", v, labels), CD_F32, 2);
    assert_int_equal(made(m, gm_add(m, "NegativeLogLikelihoodLoss", "", v, labels))->shape.rank, 0);
    m->n_out = 2;
    assert_int_equal(
        made(m, gm_add(m, "SoftmaxCrossEntropyLoss", "reduction=sum", v, labels))->shape.rank, 0);
    is(m, m->out[1], CD_F32, GM_SHAPE(2, 3), __LINE__);
}

/* An error names its node where that has a name; what was published for it is taken back. */
static void names_in_errors(void **state) {
    gm *m = *state;
    static const struct {
        const char *name, *key;
    } tab[] = {{"conv1", "conv1"}, {"", ""}, {NULL, ""}};
    const uint32_t x = gm_x(m, 2, 3), y = gm_x(m, 4, 5), in[] = {x, y};
    const uint32_t n_tensor = m->g->n_tensor, n_node = m->g->n_node;
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++) {
        uint32_t out;
        cdmpp_err err = {0};
        assert_status(cd_graph_add(m->g, tab[k].name, "MatMul", in, 2, NULL, 0, &out, 1, &err),
                      CDMPP_ESCHEMA);
        assert_string_equal(err.key, tab[k].key);
        assert_true(err.msg[0]);
        /* nobody asks why */
        assert_int_equal(cd_graph_add(m->g, tab[k].name, "MatMul", in, 2, NULL, 0, &out, 1, NULL),
                         CDMPP_ESCHEMA);
        assert_true(m->g->n_tensor == n_tensor && m->g->n_node == n_node);
    }
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++) {
        uint32_t out;
        cdmpp_err err = {0};
        assert_ok(cd_graph_add(m->g, tab[k].name, "Relu", &x, 1, NULL, 0, &out, 1, &err));
        assert_string_equal(m->g->node[m->g->n_node - 1].name, tab[k].name ? tab[k].name : "");
        assert_string_equal(err.key, "");
        assert_true(m->g->n_tensor == n_tensor + k + 1 && out == n_tensor + k);
    }
}

static int run_suite(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_operands, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_operand, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reductions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rarer_operators, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_in_errors, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("graph_fold", tests, NULL, NULL);
}

SUITE(.run = run_suite)

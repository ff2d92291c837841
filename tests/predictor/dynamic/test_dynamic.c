/* A network whose size is known when it is called: which programs serve it, what padding gives, and
 * what is refused. */
#include <math.h>
#include <string.h>

#include "predictor/dynamic/dynamic.h"
#include "predictor/dynamic/dynamic_internal.h"
#include "tests/support/base/fault.h"
#include "tests/support/base/tmp.h"

static cdmpp_err err;
static tmp_dir folder;
static cd_arena arena;
static cd_network_sizes sizes;

static int up(void **state) {
    (void)state;
    folder = tmp_make();
    return 0;
}

static int down(void **state) {
    (void)state;
    cd_arena_free(&arena);
    tmp_remove(&folder);
    return 0;
}

static const char *end(cd_onnx_writer *f, const char *name) {
    char as[64];
    cd_buf b = {0};
    assert_ok(cd_onnx_writer_end(f, name, &b, &err));
    cd_onnx_writer_free(f);
    snprintf(as, sizeof as, "%s.onnx", name);
    const char *path = tmp_put(&folder, as, b.p, b.n);
    cd_buf_free(&b);
    return path;
}

static float weight[8][3];

/* Rows of eight numbers times a matrix, then relu; `mean`: less the mean over rows. */
static const char *rows(const char *name, bool mean) {
    cd_onnx_writer f = {0};
    for (int i = 0; i < 24; i++) weight[i / 3][i % 3] = (float)(i % 7) - 3;
    const char *x = cd_onnx_writer_input(&f, "x", CD_ONNX_F32, (int64_t[]){-1, 8}, 2);
    const char *y = CD_ONNX_WRITER_NODE(
        &f, "MatMul", x,
        cd_onnx_writer_constant(&f, "w", CD_ONNX_F32, (int64_t[]){8, 3}, 2, weight));
    if (mean) {
        cd_onnx_writer_attr_ints(&f, "axes", (int64_t[]){0}, 1);
        cd_onnx_writer_attr_int(&f, "keepdims", 1);
        y = CD_ONNX_WRITER_NODE(&f, "Sub", y, CD_ONNX_WRITER_NODE(&f, "ReduceMean", y));
    }
    cd_onnx_writer_output(&f, "y", CD_ONNX_WRITER_NODE(&f, "Relu", y), CD_ONNX_F32,
                          (int64_t[]){-1, 3}, 2);
    return end(&f, name);
}

static cd_dynamic_options options(const char *path, const char *dim) {
    const char **v = CD_NEWN(&arena, const char *, 1);
    v[0] = dim;
    const cd_texts texts = {1, v};
    assert_ok(cd_network_sizes_read(&arena, NULL, &texts, &sizes, &err));
    return (cd_dynamic_options){
        .network = {.kind = CD_NETWORK_SOURCE_ONNX, .name = path, .dim = v, .n_dim = 1},
        .sizes = &sizes,
        .trials = 1,
        .jobs = 1,
        .budget_s = 0.01};
}

static void check_rows(const float *x, const float *y, int64_t n) {
    for (int64_t r = 0; r < n; r++)
        for (int j = 0; j < 3; j++) {
            float sum = 0;
            for (int i = 0; i < 8; i++) sum += x[8 * r + i] * weight[i][j];
            assert_float_equal(y[3 * r + j], fmaxf(sum, 0), 1e-3F);
        }
}

/* A call of 2 runs in the programs of 3; what stood there before does not show. */
TEST(test_calls) {
    const cd_dynamic_options o = options(rows("rows", false), "n_row=1..8:3");
    cd_dynamic *d;
    cd_dynamic_times t;
    cd_graph_shape s;
    cd_dtype type;
    size_t k;
    float x[64], y[25];
    assert_ok(cd_dynamic_open(&o, &d, &err));
    assert_true(cd_dynamic_points(d) == 3 && cd_dynamic_inputs(d) == 1 &&
                cd_dynamic_results(d) == 1 && !cd_dynamic_only_points(d) &&
                cd_dynamic_bytes(d) > 0);
    static const struct {
        int64_t size;
        size_t point;
    } want[] = {{1, 0}, {2, 1}, {3, 1}, {4, 2}, {8, 2}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        assert_ok(cd_dynamic_choose(d, want[i].size, &k, &err));
        assert_int_equal(k, want[i].point);
    }
    assert_status(cd_dynamic_choose(d, 9, &k, &err), CDMPP_ERANGE);
    assert_status(cd_dynamic_choose(d, 0, &k, &err), CDMPP_ERANGE);
    cd_dynamic_result_shape(d, 0, 5, &s, &type);
    assert_true(s.rank == 2 && s.dim[0] == 5 && s.dim[1] == 3 && type == CD_F32);
    cd_dynamic_input_shape(d, 0, 5, &s, &type);
    assert_true(s.rank == 2 && s.dim[0] == 5 && s.dim[1] == 8);
    for (int64_t n = 8; n > 0; n--) {
        for (int64_t i = 0; i < 8 * n; i++) x[i] = (float)((i * 7 + n) % 11) - 5;
        for (int i = 0; i < 25; i++) y[i] = 77;
        assert_ok(cd_dynamic_call(d, n, (const void *[]){x}, (void *[]){y}, &t, &err));
        check_rows(x, y, n);
        /* nothing behind the result is written */
        assert_true(y[3 * n] == 77 && t.pass_s > 0 && t.choose_s >= 0 && t.copy_s >= 0);
    }
    assert_status(cd_dynamic_call(d, 9, (const void *[]){x}, (void *[]){y}, NULL, &err),
                  CDMPP_ERANGE);
    cd_dynamic_close(d);
}

TEST(test_measured) {
    const cd_dynamic_options o = options(rows("measured", false), "n_row=1..8:3");
    static cd_dynamic_result r;
    cd_dynamic *d;
    cd_buf b = {0};
    assert_ok(cd_dynamic_open(&o, &d, &err));
    assert_ok(cd_dynamic_measure(d, (int64_t[]){3, 5, 12}, 3, &r, &err));
    assert_true(r.n == 3 && r.row[0].point == 3 && r.row[0].loss == 0 && r.row[0].call_s > 0);
    /* where no size is padded both are one call: copies count in both */
    assert_close(r.row[0].exact_s, r.row[0].call_s - r.row[0].time.choose_s, 1e-9, 0);
    assert_true(r.row[1].point == 8 && r.row[1].exact_s > 0 && r.row[1].difference < 1e-5 &&
                !r.row[1].st && r.row[1].low <= r.row[1].loss && r.row[1].loss <= r.row[1].high);
    assert_true(r.row[2].point == 0 && r.row[2].st == CDMPP_ERANGE);
    cd_dynamic_text(&b, d, &r);
    assert_non_null(strstr(b.p, "measured over n_row: programs at 1 3 8, "));
    assert_non_null(strstr(b.p, "       5        8 padded  "));
    assert_non_null(strstr(b.p, "      12     none n_row=12: programs are there for 1 to 8\n"));
    cd_buf_clear(&b);
    cd_dynamic_json(&b, d, &r);
    assert_non_null(strstr(
        b.p, "{\"network\":\"measured\",\"over\":\"n_row\",\"programs\":[1,3,8],\"bytes\":"));
    assert_non_null(
        strstr(b.p, "{\"size\":12,\"error\":\"n_row=12: programs are there for 1 to 8\"}"));
    cd_buf_free(&b);
    assert_status(cd_dynamic_measure(d, NULL, CD_DYNAMIC_MOST_ASKED + 1, &r, &err), CDMPP_EUSAGE);
    cd_dynamic_close(d);
}

/* Zeros behind the rows do not change their sum: only these may stand there, not rows of the call
 * before. */
TEST(test_padding_is_zero_in_each_call) {
    cd_onnx_writer f = {0};
    const char *x = cd_onnx_writer_input(&f, "x", CD_ONNX_F32, (int64_t[]){-1, 4}, 2),
               *axes = cd_onnx_writer_constant(&f, "axes", CD_ONNX_I64, (int64_t[]){1}, 1,
                                               (int64_t[]){0});
    cd_onnx_writer_attr_int(&f, "keepdims", 1);
    cd_onnx_writer_output(&f, "y", CD_ONNX_WRITER_NODE(&f, "ReduceSum", x, axes), CD_ONNX_F32,
                          (int64_t[]){1, 4}, 2);
    const cd_dynamic_options o = options(end(&f, "sum"), "n_row=2..8:3");
    static const int64_t size[] = {7, 5, 6, 3, 7, 2, 5};
    float in[32], out[4];
    cd_dynamic *d;
    assert_ok(cd_dynamic_open(&o, &d, &err));
    assert_null(cd_dynamic_only_points(d));
    for (size_t k = 0; k < sizeof size / sizeof *size; k++) {
        float want[4] = {0};
        for (int64_t i = 0; i < 4 * size[k]; i++)
            in[i] = (float)(i + 3 * (int64_t)k + 1), want[i % 4] += in[i];
        assert_ok(cd_dynamic_call(d, size[k], (const void *[]){in}, (void *[]){out}, NULL, &err));
        for (int j = 0; j < 4; j++) assert_float_equal(out[j], want[j], 0);
    }
    cd_dynamic_close(d);
}

/* Zeros behind the rows change their mean. */
TEST(test_padding_that_changes_results) {
    const cd_dynamic_options o = options(rows("mean", true), "n_row=2..8:3");
    static cd_dynamic_result r;
    cd_dynamic *d;
    cd_buf b = {0};
    size_t k;
    assert_ok(cd_dynamic_open(&o, &d, &err));
    assert_non_null(cd_dynamic_only_points(d));
    assert_non_null(strstr(cd_dynamic_only_points(d),
                           "padding changes results: data of n_row=2 in programs of 4, by "));
    assert_ok(cd_dynamic_choose(d, 4, &k, &err));
    assert_status(cd_dynamic_choose(d, 3, &k, &err), CDMPP_EUNSUPPORTED);
    assert_ok(cd_dynamic_measure(d, (int64_t[]){4, 5}, 2, &r, &err));
    assert_true(!r.row[0].st && r.row[0].point == 4 && r.row[1].st == CDMPP_EUNSUPPORTED &&
                !r.row[1].point);
    cd_dynamic_text(&b, d, &r);
    assert_non_null(strstr(b.p, "only these sizes are served: padding changes results"));
    cd_buf_clear(&b);
    cd_dynamic_json(&b, d, &r);
    assert_non_null(strstr(b.p, "\"only_programs\":\"padding changes results"));
    cd_buf_free(&b);
    cd_dynamic_close(d);
}

/* A dimension in the middle of the input, and at the front of the result. */
TEST(test_middle_dimension) {
    cd_onnx_writer f = {0};
    const char *x = cd_onnx_writer_input(&f, "x", CD_ONNX_F32, (int64_t[]){2, -1, 3}, 3);
    cd_onnx_writer_attr_ints(&f, "perm", (int64_t[]){1, 0, 2}, 3);
    cd_onnx_writer_output(&f, "y",
                          CD_ONNX_WRITER_NODE(&f, "Relu", CD_ONNX_WRITER_NODE(&f, "Transpose", x)),
                          CD_ONNX_F32, (int64_t[]){-1, 2, 3}, 3);
    const cd_dynamic_options o = options(end(&f, "middle"), "n_row=2..8:3");
    cd_dynamic *d;
    float in[2][5][3], out[5][2][3];
    assert_ok(cd_dynamic_open(&o, &d, &err));
    for (int i = 0; i < 30; i++) in[i / 15][i / 3 % 5][i % 3] = (float)i - 9;
    assert_ok(cd_dynamic_call(d, 5, (const void *[]){in}, (void *[]){out}, NULL, &err));
    for (int i = 0; i < 30; i++)
        assert_float_equal(out[i / 6][i / 3 % 2][i % 3], fmaxf(in[i / 3 % 2][i / 6][i % 3], 0), 0);
    cd_dynamic_close(d);
}

/* Halves are rounded: 1 2 4 of 1 3 8. */
TEST(test_results_that_are_no_line) {
    cd_onnx_writer f = {0};
    const char *x = cd_onnx_writer_input(&f, "x", CD_ONNX_F32, (int64_t[]){1, 1, -1}, 3);
    cd_onnx_writer_attr_ints(&f, "kernel_shape", (int64_t[]){1}, 1);
    cd_onnx_writer_attr_ints(&f, "strides", (int64_t[]){2}, 1);
    cd_onnx_writer_output(&f, "y", CD_ONNX_WRITER_NODE(&f, "MaxPool", x), CD_ONNX_F32,
                          (int64_t[]){1, 1, -1}, 3);
    const cd_dynamic_options o = options(end(&f, "half"), "n_row=1..8:3");
    static cd_dynamic_result r;
    static const int64_t point[] = {1, 3, 8}, want[] = {1, 2, 4};
    const float in[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    cd_dynamic *d;
    cd_graph_shape s;
    cd_dtype type;
    size_t k;
    assert_ok(cd_dynamic_open(&o, &d, &err));
    assert_non_null(cd_dynamic_only_points(d));
    assert_non_null(strstr(cd_dynamic_only_points(d), "is no multiple of the size plus a number"));
    assert_status(cd_dynamic_choose(d, 2, &k, &err), CDMPP_EUNSUPPORTED);
    cd_dynamic_result_shape(d, 0, 2, &s, &type);
    assert_int_equal(cd_graph_shape_elements(&s), 0);
    for (size_t i = 0; i < 3; i++) {
        float out[5] = {77, 77, 77, 77, 77};
        cd_dynamic_result_shape(d, 0, point[i], &s, &type);
        assert_true(s.rank == 3 && s.dim[2] == want[i]);
        assert_ok(cd_dynamic_call(d, point[i], (const void *[]){in}, (void *[]){out}, NULL, &err));
        for (int64_t j = 0; j < 5; j++)
            assert_float_equal(out[j], j < want[i] ? (float)(2 * j) : 77, 0);
    }
    /* room for results is as large as what is written */
    assert_ok(cd_dynamic_measure(d, point, 3, &r, &err));
    assert_true(r.n == 3 && !r.row[2].st && r.row[2].call_s > 0);
    cd_dynamic_close(d);
}

TEST(test_boxes) {
    const cd_graph_shape box = {3, {2, 1, 2}};
    const cd_graph_shape from = {3, {2, 1, 2}};
    const cd_graph_shape to = {3, {3, 2, 2}};
    const cd_graph_shape one = {0, {0}};
    const int16_t src[4] = {1, 2, 3, 4}, want[12] = {1, 2, 0, 0, 3, 4};
    int16_t dst[12] = {0}, back[4] = {0}, x = 5, y = 0;
    cd_dynamic_copy_box(&box, 2, &from, src, &to, dst);
    assert_memory_equal(dst, want, sizeof want);
    cd_dynamic_copy_box(&box, 2, &to, dst, &from, back);
    assert_memory_equal(back, src, sizeof src);
    cd_dynamic_copy_box(&one, 2, &one, &x, &one, &y);
    assert_int_equal(y, 5);
}

TEST(test_no_memory) {
    const cd_dynamic_options o = options(rows("memory", false), "n_row=1..4:3");
    FAULT_SWEEP(f, 1) {
        static cd_dynamic_result r;
        cd_dynamic *d = NULL;
        f.step = 41;
        f.st = cd_dynamic_open(&o, &d, &f.err);
        if (!f.st) f.st = cd_dynamic_measure(d, (int64_t[]){2, 3}, 2, &r, &f.err);
        cd_dynamic_close(d);
    }
}

TESTS(up, down, test_calls, test_measured, test_padding_is_zero_in_each_call,
      test_padding_that_changes_results, test_middle_dimension, test_results_that_are_no_line,
      test_boxes, test_no_memory)

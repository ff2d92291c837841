/* A network in 8 bits against float, as a command asks for it: a file that is quantised already,
 * one that is not, and what is refused. */
#include <math.h>
#include <string.h>

#include "predictor/quantize/quantize.h"
#include "predictor/quantize/quantize_internal.h"
#include "tests/support/base/fault.h"
#include "tests/support/base/tmp.h"

static cdmpp_err err;
static tmp_dir folder;

static int up(void **state) {
    (void)state;
    folder = tmp_make();
    return 0;
}

static int down(void **state) {
    (void)state;
    tmp_remove(&folder);
    return 0;
}

static float drawn(uint64_t seed, uint64_t i, double size) {
    return (float)((2 * cd_rng_unit(seed, i) - 1) * size);
}

/* ---- a file ---- */

static const char *pair(cd_onnx_writer *f, const char *x, float scale, uint8_t zero) {
    const char *s = cd_onnx_writer_float(f, scale),
               *z = cd_onnx_writer_constant(f, NULL, CD_ONNX_U8, NULL, 0, &zero);
    return CD_ONNX_WRITER_NODE(f, "DequantizeLinear",
                               CD_ONNX_WRITER_NODE(f, "QuantizeLinear", x, s, z), s, z);
}

/* A weight of random numbers, in float or quantised to int8 with a scale for each of its first
 * dimension. */
static const char *weight(cd_onnx_writer *f, uint64_t seed, const int64_t *dim, size_t n_dim,
                          double size, bool quantised) {
    static float real[4096], scale[64];
    static int8_t small[4096];
    int64_t n = 1;
    for (size_t d = 0; d < n_dim; d++) n *= dim[d];
    for (int64_t i = 0; i < n; i++) real[i] = drawn(seed, (uint64_t)i, size);
    if (!quantised) return cd_onnx_writer_constant(f, NULL, CD_ONNX_F32, dim, n_dim, real);
    for (int64_t o = 0; o < dim[0]; o++) scale[o] = (float)(size / 127);
    for (int64_t i = 0; i < n; i++) small[i] = (int8_t)nearbyintf(real[i] / scale[0]);
    const char *q = cd_onnx_writer_constant(f, NULL, CD_ONNX_I8, dim, n_dim, small),
               *s = cd_onnx_writer_constant(f, NULL, CD_ONNX_F32, dim, 1, scale);
    cd_onnx_writer_attr_int(f, "axis", 0);
    return CD_ONNX_WRITER_NODE(f, "DequantizeLinear", q, s);
}

static const char *conv(cd_onnx_writer *f, const char *x, uint64_t seed, int64_t o, int64_t i,
                        int64_t k, bool quantised) {
    const char *w =
        weight(f, seed, (int64_t[]){o, i, k, k}, 4, 1.7 / sqrt((double)(i * k * k)), quantised);
    cd_onnx_writer_attr_ints(f, "pads", (int64_t[]){k / 2, k / 2, k / 2, k / 2}, 4);
    return CD_ONNX_WRITER_NODE(f, "Conv", x, w);
}

/* Two convolutions, a pooling, a product; `quantised`: between QuantizeLinear and DequantizeLinear,
 * with scales for what is near. */
static const char *file(const char *name, bool quantised) {
    char as[64];
    cd_onnx_writer f = {0};
    cd_buf b = {0};
    const char *x = cd_onnx_writer_input(&f, "x", CD_ONNX_F32, (int64_t[]){1, 3, 12, 12}, 4);
    if (quantised) x = pair(&f, x, 7.0F / 255, 128);
    x = CD_ONNX_WRITER_NODE(&f, "Relu", conv(&f, x, 1, 16, 3, 3, quantised));
    if (quantised) x = pair(&f, x, 4.5F / 255, 0);
    x = conv(&f, x, 2, 24, 16, 1, quantised);
    x = CD_ONNX_WRITER_NODE(&f, "Flatten", CD_ONNX_WRITER_NODE(&f, "GlobalMaxPool", x));
    if (quantised) x = pair(&f, x, 5.0F / 255, 60);
    x = CD_ONNX_WRITER_NODE(&f, "MatMul", x, weight(&f, 3, (int64_t[]){24, 10}, 2, 0.4, false));
    cd_onnx_writer_output(&f, "y", x, CD_ONNX_F32, (int64_t[]){1, 10}, 2);
    assert_ok(cd_onnx_writer_end(&f, name, &b, &err));
    cd_onnx_writer_free(&f);
    snprintf(as, sizeof as, "%s.onnx", name);
    const char *path = tmp_put(&folder, as, b.p, b.n);
    cd_buf_free(&b);
    return path;
}

static cd_quantize_options options(const char *path) {
    return (cd_quantize_options){.network = {.kind = CD_NETWORK_SOURCE_ONNX, .name = path},
                                 .calibrate = 8,
                                 .inputs = 20,
                                 .jobs = 1};
}

static void check_form(const cd_quantize_result *r, const cd_quantize_form *f, uint32_t n_int8) {
    assert_int_equal(f->n_layer, 3);
    assert_int_equal(f->n_int8, n_int8);
    assert_true(f->agree >= r->rows * 9 / 10 && f->agree <= r->rows);
    assert_true(f->agree_centred >= r->rows * 7 / 10 && f->agree_centred <= r->rows);
    assert_true(f->error_rms < 0.05 && f->error_rms > 1e-4); /* some rounding there is */
    assert_true(f->error_most < 0.1 && f->error_most > 1e-4);
}

/* The file's product has a weight in float: in its form that layer is left. Both are timed. */
TEST(test_file) {
    cd_quantize_result *r;
    cd_quantize_options o = options(file("quantised", true));
    cd_buf b = {0};
    o.run = true;
    o.trials = 1;
    o.budget_s = 0.05;
    assert_ok(cd_quantize_compare(&o, &r, &err));
    assert_int_equal(r->n_form, 2);
    assert_int_equal(r->rows, 20);
    assert_int_equal(r->observed, 3);
    assert_true(r->classes >= 1 && r->classes <= r->classes_centred && r->classes_centred <= 10);
    assert_string_equal(r->form[0].name, "calibrated");
    assert_string_equal(r->form[1].name, "file");
    check_form(r, &r->form[0], 3);
    check_form(r, &r->form[1], 2);
    assert_string_equal(r->form[1].layer[2].why, "its weight is not quantised");
    assert_true(r->float_s > 0 && r->form[0].pass_s > 0 && r->form[1].pass_s > 0 &&
                r->form[0].low <= r->form[0].ratio && r->form[0].ratio <= r->form[0].high);
    cd_quantize_text(&b, r);
    assert_non_null(strstr(b.p, "in float (file): 1 layers, "));
    assert_non_null(strstr(b.p, "its weight is not quantised ("));
    cd_buf_clear(&b);
    cd_quantize_json(&b, r);
    assert_non_null(strstr(b.p, "\"form\":\"file\",\"layers\":3,\"int8_layers\":2"));
    cd_buf_free(&b);
    cd_quantize_result_free(r);
}

/* The same network in float: one form, of the same weights. */
TEST(test_float) {
    cd_quantize_result *r;
    const cd_quantize_options o = options(file("real", false));
    assert_ok(cd_quantize_compare(&o, &r, &err));
    assert_int_equal(r->n_form, 1);
    check_form(r, &r->form[0], 3);
    assert_true(isnan(r->float_s) && isnan(r->form[0].ratio));
    cd_quantize_result_free(r);
}

TEST(test_refused) {
    cd_quantize_result *r;
    cd_onnx_writer f = {0};
    cd_buf b = {0};
    const char *x = cd_onnx_writer_input(&f, "x", CD_ONNX_F32, (int64_t[]){2, 8}, 2);
    cd_onnx_writer_output(&f, "y", CD_ONNX_WRITER_NODE(&f, "Relu", x), CD_ONNX_F32,
                          (int64_t[]){2, 8}, 2);
    assert_ok(cd_onnx_writer_end(&f, "none", &b, &err));
    cd_onnx_writer_free(&f);
    const cd_quantize_options o = options(tmp_put(&folder, "none.onnx", b.p, b.n));
    cd_buf_free(&b);
    assert_int_equal(cd_quantize_compare(&o, &r, &err), CDMPP_EUNSUPPORTED);
    assert_non_null(strstr(err.msg, "no convolution and no matrix product"));
}

/* Its products are of whole numbers in the file: nothing is in float. */
TEST(test_whole_numbers) {
    cd_quantize_result *r;
    cd_onnx_writer f = {0};
    cd_buf b = {0};
    const int8_t w[32] = {1};
    const char *x = cd_onnx_writer_input(&f, "x", CD_ONNX_F32, (int64_t[]){2, 8}, 2),
               *k = cd_onnx_writer_constant(&f, NULL, CD_ONNX_I8, (int64_t[]){8, 4}, 2, w);
    cd_onnx_writer_attr_int(&f, "to", CD_ONNX_U8);
    const char *y = CD_ONNX_WRITER_NODE(&f, "MatMulInteger", CD_ONNX_WRITER_NODE(&f, "Cast", x), k);
    cd_onnx_writer_attr_int(&f, "to", CD_ONNX_F32);
    y = CD_ONNX_WRITER_NODE(&f, "Cast", y);
    cd_onnx_writer_output(&f, "y", y, CD_ONNX_F32, (int64_t[]){2, 4}, 2);
    assert_ok(cd_onnx_writer_end(&f, "whole", &b, &err));
    cd_onnx_writer_free(&f);
    const cd_quantize_options o = options(tmp_put(&folder, "whole.onnx", b.p, b.n));
    cd_buf_free(&b);
    assert_int_equal(cd_quantize_compare(&o, &r, &err), CDMPP_EUNSUPPORTED);
    assert_non_null(strstr(err.msg, "MatMulInteger"));
    assert_non_null(strstr(err.msg, "no float one"));
}

/* ---- parts ---- */

/* Data are near normal, of deviation 1, and another draw is other data. */
TEST(test_input) {
    static float v[2][10000];
    const cd_graph_tensor t = {.name = "x", .dtype = CD_F32, .shape = {1, {10000}}};
    double sum = 0, square = 0;
    for (uint32_t k = 0; k < 2; k++) assert_ok(cd_quantize_input(NULL, &t, k + 1, v[k], &err));
    for (int i = 0; i < 10000; i++)
        sum += (double)v[0][i], square += (double)v[0][i] * (double)v[0][i];
    assert_true(fabs(sum / 10000) < 0.05);
    assert_true(fabs(square / 10000 - 1) < 0.05);
    assert_memory_not_equal(v[0], v[1], sizeof v[0]);
}

TEST(test_no_memory) {
    const char *path = file("memory", true);
    FAULT_SWEEP(f, 1) {
        const cd_network_source s = {
            .kind = CD_NETWORK_SOURCE_ONNX, .name = path, .contents = true};
        const cd_network_values_options o = {.target = "llvm",
                                             .hardware = cd_target_hardware(false, 1, 64)};
        const cd_onnx_miss *miss;
        const char *const *line;
        size_t n_line;
        uint32_t n;
        cd_arena a = {0};
        cd_graph *g = NULL;
        cd_workload *w = NULL;
        f.step = 11;
        f.st = cd_network_source_read(&s, &g, &miss, &n, &f.err);
        if (!f.st) f.st = cd_workload_build(g, &(cd_workload_options){.weights = true}, &w, &f.err);
        if (!f.st)
            f.st = cd_quantize_schedules((void *)(uintptr_t)&o, w, &a, &line, &n_line, &f.err);
        cd_workload_free(w);
        cd_graph_free(g);
        cd_arena_free(&a);
    }
}

/* What corrects a bias is the mean of each channel of an image, over all calibration inputs. */
TEST(means_of_channels) {
    enum { CHANNELS = 3, EACH = 144 };
    const cd_quantize_options o = options(file("means", false));
    cd_quantize_result *r;
    const cd_graph_tensor *x = NULL, *mean = NULL;
    float v[CHANNELS * EACH];
    double want[CHANNELS] = {0};
    assert_ok(cd_quantize_compare(&o, &r, &err));
    for (uint32_t i = 0; i < r->graph->n_tensor; i++) {
        const cd_graph_tensor *t = &r->graph->tensor[i];
        if (!strcmp(t->name, "x")) x = t;
        if (!strncmp(t->name, "mean", 4) && t->fvalue &&
            cd_graph_shape_elements(&t->shape) == CHANNELS)
            mean = t;
    }
    assert_true(x && mean);
    for (uint32_t d = 1; d <= r->calibrate; d++) {
        assert_ok(cd_quantize_input(NULL, x, d, v, &err));
        for (int i = 0; i < CHANNELS * EACH; i++)
            want[i / EACH] += (double)v[i] / (EACH * r->calibrate);
    }
    for (int c = 0; c < CHANNELS; c++) assert_close(mean->fvalue[c], want[c], 1e-6, 1e-9);
    cd_quantize_result_free(r);
}

/* Of each turn float's time over the form's, above 1 where 8 bits are faster, whatever the machine
 * does from turn to turn. */
TEST(figures_of_turns) {
    /* sorted: 0.5 1 1.25 1.5 2 2.5 3 3.5 4 */
    static const double ratio[] = {2, 1.5, 4, 1, 3, 2.5, 0.5, 3.5, 1.25};
    enum { N = sizeof ratio / sizeof *ratio };
    double of_float[N], s[N];
    cd_quantize_form f = {0};
    for (int i = 0; i < N; i++) of_float[i] = ratio[i] * (s[i] = 1e-3 * (1 + i));
    cd_quantize_settle(&f, of_float, s, N);
    assert_close(f.ratio, 2, 1e-12, 0);
    assert_close(f.low, 1.25, 1e-12, 0);
    assert_close(f.high, 3, 1e-12, 0);
    assert_close(f.pass_s, 5e-3, 1e-12, 0);
}

TESTS(up, down, figures_of_turns, means_of_channels, test_file, test_float, test_refused,
      test_whole_numbers, test_input, test_no_memory)

/* Operators that are combinations of others: their results have the right shapes, and the values
 * that their definitions say, computed here in plain loops. */
#include <math.h>

#include "profiler/network/workload/workload.h"
#include "read_onnx.h"
#include "teeval.h"

/* Made-up contents: every tensor has its own. */
static double content_of(const char *name, int64_t i) {
    unsigned h = 7;
    for (; *name; name++) h = h * 31 + (unsigned char)*name;
    return ((double)((i * 7 + h) % 13) - 6) / 8;
}

static double fill(const cd_graph *g, uint32_t tensor, int64_t i) {
    return content_of(g->tensor[tensor].name, i);
}

static uint32_t number(const cd_graph *g, const char *name) {
    return (uint32_t)(tensor(g, name) - g->tensor);
}

/* Values of the results `names` of a file, which are the caller's to free. */
static void values_of(const char *file, const char *const *names, uint32_t n, double **out) {
    onnx r = must(file, NULL);
    cd_workload *w;
    cdmpp_err err = {0};
    const cd_workload_options o = {.layout = CD_WORKLOAD_LAYOUT_NCHW, .weights = true};
    r.g->n_output = 0;
    for (uint32_t k = 0; k < n; k++) assert_ok(cd_graph_result(r.g, number(r.g, names[k]), &err));
    assert_ok(cd_workload_build(r.g, &o, &w, &err));
    const char *why = we_run(w, fill, out);
    if (why) fail_msg("%s: %s", file, why);
    cd_workload_free(w);
    cd_graph_free(r.g);
}

static void close_to(const char *what, int64_t i, double got, double want) {
    if (!(fabs(got - want) <= 2e-5 * (1 + fabs(want))))
        fail_msg("%s[%lld]: %g, not %g", what, (long long)i, got, want);
}

TEST(fused) {
    static const char *const want[][2] = {
        {"sl", "1,8,16"},   {"sr", "1,8,16"},   {"sum", "1,8,16"}, {"rn", "1,8,16"},
        {"bg", "1,8,16"},   {"fg", "1,8,16"},   {"qg", "1,8,16"},  {"fm", "1,8,12"},
        {"fc", "1,4,4,4"},  {"mh", "1,8,16"},   {"at", "1,8,16"},  {"gq", "1,8,16"},
        {"pk", "1,2,12,4"}, {"pv", "1,2,12,4"}, {"ro", "1,8,16"},  {"qa", "5"},
        {"dq", "1,8,4"},    {"em", "1,8,16"},   {"mi", "1"}};
    onnx r = must("fused", NULL);
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) has_shape(r.g, want[k][0], want[k][1]);
    missed(&r, 0, "left", "another domain");
    assert_int_equal(r.n_miss, 1);
    assert_int_equal(r.g->n_note, 0);
    assert_true(tensor(r.g, "qa")->dtype == CD_DTYPE(CD_T_UINT, 8) &&
                tensor(r.g, "mi")->dtype == CD_I32);
    /* SkipLayerNormalization is two standard operators */
    assert_string_equal(r.g->node[0].op, "Add");
    assert_string_equal(r.g->node[1].op, "LayerNormalization");
    assert_close(cd_graph_node_float(&r.g->node[1], "epsilon", 0), 1e-5, 1e-6, 0);
    cd_graph_free(r.g);
}

TEST(fused_values) {
    enum { ROWS = 8, H = 16 };
    static const char *const names[] = {"sl", "sr", "qg", "fm"};
    double *out[8];
    values_of("fused", names, 4, out);
    for (int64_t i = 0; i < ROWS; i++) {
        double mean = 0, var = 0, square = 0;
        for (int64_t d = 0; d < H; d++) {
            const double v = content_of("x", i * H + d) + content_of("s", i * H + d);
            mean += v / H, square += v * v / H;
        }
        var = square - mean * mean;
        for (int64_t d = 0; d < H; d++) {
            const int64_t at = i * H + d;
            const double x = content_of("x", at), v = x + content_of("s", at),
                         g = content_of("g", d), b = content_of("b", d);
            close_to("SkipLayerNormalization", at, out[0][at],
                     (v - mean) / sqrt(var + 1e-5) * g + b);
            close_to("SkipSimplifiedLayerNormalization", at, out[1][at],
                     v / sqrt(square + 1e-12) * g);
            close_to("QuickGelu", at, out[2][at], x / (1 + exp(-(double)1.702f * x)));
        }
        for (int64_t c = 0; c < 12; c++) {
            double sum = 0;
            for (int64_t d = 0; d < H; d++)
                sum += content_of("x", i * H + d) * content_of("w", c * H + d);
            close_to("FusedMatMul", i * 12 + c, out[3][i * 12 + c], 0.5 * sum);
        }
    }
    for (int k = 0; k < 4; k++) free(out[k]);
}

/* What counts where a file does not say it is the operator's own default, not that of the standard
 * operator which stands for it. */
TEST(fused_few) {
    static const int w[3][4] = {{1, -2, 3, 4}, {5, 6, -7, 8}, {-9, 10, 11, 12}};
    static const int c[3] = {8, -16, 100};
    static const char *const names[] = {"qm", "qg"};
    double *out[8];
    values_of("fused_few", names, 2, out);
    for (int i = 0; i < 6; i++) {
        double sum = c[i % 3];
        for (int k = 0; k < 4; k++) sum += (content_of("u", i / 3 * 4 + k) - 3) * (w[i % 3][k] + 2);
        close_to("QGemm", i, out[0][i], 0.5 * 0.5 * 0.25 * sum);
    }
    for (int i = 0; i < 8; i++)
        close_to("QuickGelu", i, out[1][i],
                 content_of("x", i) / (1 + exp(-(double)1.702f * content_of("x", i))));
    free(out[0]), free(out[1]);
    onnx r = must("fused_few", NULL);
    uint32_t norms = 0;
    for (uint32_t i = 0; i < r.g->n_node; i++) {
        if (strcmp(r.g->node[i].op, "LayerNormalization")) continue;
        assert_close(cd_graph_node_float(&r.g->node[i], "epsilon", 1), 1e-12, 1e-6, 0);
        norms++;
    }
    assert_int_equal(norms, 2);
    cd_graph_free(r.g);
}

TEST(combined) {
    onnx r = must("combined", NULL);
    static const char *const want[][2] = {{"at", "2,3,24"},  {"npk", "2,2,8,4"}, {"npv", "2,2,8,6"},
                                          {"qk", "2,4,3,8"}, {"a4", "2,4,3,6"},  {"rms", "2,3,16"},
                                          {"ro", "2,3,16"},  {"r4", "2,4,3,6"},  {"sw", "2,3,16"}};
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) has_shape(r.g, want[k][0], want[k][1]);
    assert_int_equal(r.n_miss, 0);
    cd_graph_free(r.g);
}

/* Four heads of queries, two of keys and values, five steps of a past; causal, with a mask and a
 * soft cap. */
enum { B = 2, S = 3, N = 4, KV = 2, D = 4, E = 6, P = 5, T = P + S };
static double key(int b, int h, int t, int d) {
    return t < P ? content_of("pk", ((b * KV + h) * P + t) * D + d)
                 : content_of("k", (b * S + t - P) * KV * D + h * D + d);
}
static double value(int b, int h, int t, int e) {
    return t < P ? content_of("pv", ((b * KV + h) * P + t) * E + e)
                 : content_of("v", (b * S + t - P) * KV * E + h * E + e);
}

static void attend(int b, int n, int s, double *p) {
    double most = -INFINITY, sum = 0;
    for (int t = 0; t < T; t++) {
        p[t] = 0;
        for (int d = 0; d < D; d++)
            p[t] += content_of("q", (b * S + s) * N * D + n * D + d) * key(b, n / (N / KV), t, d) /
                    sqrt(D);
        p[t] = 2 * tanh(p[t] / 2) + content_of("mask", s * T + t);
        if (t > s + P) p[t] = -INFINITY;
        most = fmax(most, p[t]);
    }
    for (int t = 0; t < T; t++) sum += p[t] = exp(p[t] - most);
    for (int t = 0; t < T; t++) p[t] /= sum;
}

TEST(attention_values) {
    static const char *const names[] = {"at", "qk"};
    double *out[8], p[T];
    values_of("combined", names, 2, out);
    for (int i = 0; i < B * N * S; i++) {
        const int b = i / (N * S), n = i / S % N, s = i % S;
        attend(b, n, s, p);
        for (int t = 0; t < T; t++) close_to("softmax", i * T + t, out[1][i * T + t], p[t]);
        for (int e = 0; e < E; e++) {
            const int at = (b * S + s) * N * E + n * E + e;
            double want = 0;
            for (int t = 0; t < T; t++) want += p[t] * value(b, n / (N / KV), t, e);
            close_to("Attention", at, out[0][at], want);
        }
    }
    free(out[0]), free(out[1]);
}

/* Halves of each head are turned, or neighbours, by the angles of their positions. */
TEST(rotation_values) {
    static const char *const names[] = {"ro", "r4", "rms", "sw", "th"};
    double *out[8];
    values_of("combined", names, 5, out);
    for (int i = 0; i < B * S * N * D; i++) {
        const int b = i / (S * N * D), s = i / (N * D) % S, d = i % D, half = d % 2,
                  pair = i - d + half;
        const double c = content_of("cos", (b * S + s) * 2 + half),
                     n = content_of("sin", (b * S + s) * 2 + half), lo = content_of("q", pair),
                     hi = content_of("q", pair + 2);
        close_to("RotaryEmbedding", i, out[0][i], d < 2 ? c * lo - n * hi : n * lo + c * hi);
    }
    for (int i = 0; i < B * 4 * S * 6; i++) {
        const int b = i / (4 * S * 6), s = i / 6 % S, d = i % 6, at = b * S + s;
        const double c = content_of("cos4", at * 3 + d / 2), n = content_of("sin4", at * 3 + d / 2),
                     even = content_of("q4", i - d % 2), odd = content_of("q4", i - d % 2 + 1);
        close_to("interleaved", i, out[1][i], d % 2 ? n * even + c * odd : c * even - n * odd);
    }
    for (int i = 0; i < B * S * 16; i++) {
        double square = 0;
        for (int d = 0; d < 16; d++) square += pow(content_of("q", i - i % 16 + d), 2) / 16;
        const double x = content_of("q", i);
        close_to("RMSNormalization", i, out[2][i],
                 x / sqrt(square + 1e-5) * content_of("g", i % 16));
        close_to("Swish", i, out[3][i], x / (1 + exp(-1.5 * x)));
        close_to("ThresholdedRelu", i, out[4][i], x > 1 ? x : 0);
    }
    for (int k = 0; k < 5; k++) free(out[k]);
}

/* Half pixels: position (i + 0.5) / scale - 0.5, between the neighbours, the nearest one
 * outside. */
static double between(const char *axis, int64_t n, double at, double (*get)(int64_t)) {
    const double low = floor(at), part = at - low;
    const int64_t a = low < 0 ? 0 : (int64_t)low,
                  b = low + 1 >= (double)n ? n - 1 : (int64_t)low + 1;
    (void)axis;
    return get(a >= n ? n - 1 : a) * (1 - part) + get(b < 0 ? 0 : b) * part;
}

static int64_t row;
static double column_at;
static double cell(int64_t c) { return content_of("x", row * 4 + c); }
static double along_row(int64_t r) {
    row = r;
    return between("column", 4, column_at, cell);
}

TEST(resize_values) {
    static const char *const names[] = {"a"};
    double *out[8];
    values_of("resized", names, 1, out);
    for (int64_t i = 0; i < 6; i++) {
        column_at = ((double)(i % 2) + 0.5) / 0.6 - 0.5;
        close_to("Resize", i, out[0][i],
                 between("row", 3, ((double)(i / 2) + 0.5) / 1.2 - 0.5, along_row));
    }
    free(out[0]);
    onnx r = must("resized", NULL);
    cd_workload *w;
    cdmpp_err err = {0};
    has_shape(r.g, "b", "1,1,4,5"); /* 4/3 is less than 6/4: all sides by 4/3 */
    cd_graph_free(r.g);
    r = must("smooth", NULL);
    assert_ok(cd_workload_build(r.g, NULL, &w, &err));
    assert_int_equal(w->n_unsupported, 1);
    assert_string_equal(w->unsupported[0].node, "smooth");
    assert_non_null(strstr(w->unsupported[0].reason, "antialias"));
    cd_workload_free(w);
    cd_graph_free(r.g);
}

TEST(clip_values) {
    static const char *const names[] = {"a", "b", "c"};
    double *out[8];
    onnx r = must("clipped", NULL);
    cd_graph_free(r.g);
    values_of("clipped", names, 3, out);
    for (int64_t i = 0; i < 5; i++) {
        const double x = content_of("x", i);
        close_to("no limits", i, out[0][i], x);
        close_to("a lower one", i, out[1][i], x > -3 ? x : -3);
        close_to("the upper one wins", i, out[2][i], 1);
    }
    for (int k = 0; k < 3; k++) free(out[k]);
}

TESTS(NULL, NULL, fused, fused_values, fused_few, combined, attention_values, rotation_values,
      resize_values, clip_values)

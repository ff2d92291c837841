/* Operators that are combinations of others, one a network: each with all that it may have, then
 * without one operand or attribute, and with an odd one. Whatever they have, the operator has
 * results of the right shapes, is missing with a reason, or is refused with one. */
#include <ctype.h>
#include <onnx/onnx.pb-c.h>

#include "fault.h"
#include "made_onnx.h"
#include "read_onnx.h"
#include "tests/fuzz/graph_check.h"

#define MS "com.microsoft."

/* Operands: a letter for the type, then the dimensions; - is none. Attributes: NAME=NUMBER, a
 * number with a point, numbers with commas, or a word. Result k is called yk. want: the shapes of
 * the results that are wanted ("-": not looked at), "missing WORDS" or "refused WORDS". */
typedef struct row {
    const char *op, *in, *attrs, *want;
} row;

static void put_operand(cd_buf *g, cd_buf *node, const char *s, size_t n, uint32_t k) {
    static const char types[] = "\1f\2u\3s\6i\7l\11b\12h";
    char name[16];
    cd_buf shape = {0}, tensor = {0}, type = {0}, v = {0};
    snprintf(name, sizeof name, *s == '-' ? "" : "x%u", k);
    mo_text(node, 1, name);
    if (*s == '-') return;
    const char *t = strchr(types, *s);
    assert_non_null(t);
    for (const char *p = s + 1; p < s + n; p += strcspn(p, ", "), p += *p == ',') {
        cd_buf d = {0};
        mo_int(&d, 1, (uint64_t)strtoll(p, NULL, 10));
        mo_message(&shape, 1, &d);
    }
    mo_int(&tensor, 1, (uint64_t)t[-1]);
    mo_message(&tensor, 2, &shape);
    mo_message(&type, 1, &tensor);
    mo_text(&v, 1, name);
    mo_message(&v, 2, &type);
    mo_message(g, 11, &v);
}

static void put_attribute(cd_buf *node, const char *s, size_t n) {
    const char *v = memchr(s, '=', n);
    cd_buf a = {0};
    assert_non_null(v);
    mo_bytes(&a, 1, s, (size_t)(v++ - s));
    const size_t m = (size_t)(s + n - v);
    if (isalpha((unsigned char)*v)) {
        mo_bytes(&a, 4, v, m);
        mo_int(&a, 20, 3);
    } else if (memchr(v, ',', m)) {
        const bool real = memchr(v, '.', m);
        for (const char *p = v; p < s + n; p += strcspn(p, ", "), p += *p == ',') {
            const float f = strtof(p, NULL);
            if (!real) mo_int(&a, 8, (uint64_t)strtoll(p, NULL, 10));
            else mo_varint(&a, 7 << 3 | 5), cd_buf_put(&a, (const char *)&f, sizeof f);
        }
        mo_int(&a, 20, real ? 6 : 7);
    } else if (memchr(v, '.', m)) {
        const float f = strtof(v, NULL);
        mo_varint(&a, 2 << 3 | 5), cd_buf_put(&a, (const char *)&f, sizeof f);
        mo_int(&a, 20, 1);
    } else {
        mo_int(&a, 3, (uint64_t)strtoll(v, NULL, 10));
        mo_int(&a, 20, 2);
    }
    mo_message(node, 5, &a);
}

#define WORDS(s, n) for (size_t n; n = strcspn(s, " "), n; s += n, s += *s == ' ')

static cd_buf model_of(const row *r, const char *in, const char *attrs, uint32_t n_out) {
    cd_buf model = {0}, g = {0}, node = {0}, opset = {0}, own = {0};
    const char *op = strrchr(r->op, '.');
    uint32_t k = 0;
    WORDS(in, n) put_operand(&g, &node, in, n, k++);
    for (k = 0; k < n_out; k++) {
        char name[16];
        cd_buf v = {0};
        snprintf(name, sizeof name, "y%u", k);
        mo_text(&node, 2, name);
        mo_text(&v, 1, name);
        mo_message(&g, 12, &v);
    }
    mo_text(&node, 3, "n");
    mo_text(&node, 4, op ? op + 1 : r->op);
    WORDS(attrs, n) put_attribute(&node, attrs, n);
    if (op) mo_bytes(&node, 7, r->op, (size_t)(op - r->op));
    mo_message(&g, 1, &node);
    mo_int(&model, 1, 10);
    mo_message(&model, 7, &g);
    mo_int(&opset, 2, 23);
    mo_message(&model, 8, &opset);
    mo_text(&own, 1, "com.microsoft");
    mo_int(&own, 2, 1);
    mo_message(&model, 8, &own);
    return model;
}

static cdmpp_status read_model(const cd_buf *b, onnx *r) {
    const cd_onnx_options o = {0};
    memset(r, 0, sizeof *r);
    const cdmpp_status st =
        cd_onnx_parse(b->p, b->n, "odd", NULL, &o, &r->g, &r->miss, &r->n_miss, &r->err);
    if (!st) graph_check(r->g);
    return st;
}

/* Something is odd: a graph that keeps its rules, or a status with a reason. */
static void odd(const row *r, const char *in, const char *attrs, uint32_t n_out) {
    cd_buf b = model_of(r, in, attrs, n_out);
    const long live = fault_live();
    onnx got;
    const cdmpp_status st = read_model(&b, &got);
    if ((st && (got.err.code != st || !got.err.msg[0])) || st == CDMPP_ENOMEM)
        fail_msg("%s(%s) %s: status %d, \"%s\"", r->op, in, attrs, (int)st, got.err.msg);
    for (uint32_t i = 0; i < got.n_miss; i++) assert_true(*got.miss[i].reason);
    if (!st) cd_graph_free(got.g);
    assert_int_equal(fault_live(), live);
    cd_buf_free(&b);
}

/* `list` with its word k replaced. */
static const char *replaced(const char *list, size_t k, const char *with, char *buf, size_t size) {
    size_t at = 0;
    buf[0] = 0;
    WORDS(list, n) {
        const size_t i = at++, len = strlen(buf);
        if (i != k) snprintf(buf + len, size - len, "%s%.*s", len ? " " : "", (int)n, list);
        else if (*with) snprintf(buf + len, size - len, "%s%s", len ? " " : "", with);
    }
    return buf;
}

static void odd_ones(const row *r, uint32_t n_out) {
    static const char *const operands[] = {
        "",           "-",  "f",    "f1",   "f2",     "f0",   "f2,3",   "f2,4", "f2,3,4,5",
        "f1,2,3,4,5", "l2", "i2,3", "b2,3", "h2,3,8", "u4,4", "f2,3,7", "l1,1", "f2,2,2,5,4"};
    static const char *const values[] = {"-9223372036854775808",
                                         "-1",
                                         "0",
                                         "1",
                                         "2",
                                         "3",
                                         "100",
                                         "9223372036854775807",
                                         "0.0",
                                         "-1.5",
                                         "1e30.",
                                         "x",
                                         "1,2",
                                         "9223372036854775807,9223372036854775807,4",
                                         "4,4,8",
                                         "0.5,0.5,0.5"};
    char buf[512], word[128];
    const char *s = r->in;
    size_t k = 0;
    WORDS(s, n) {
        for (size_t i = 0; i < sizeof operands / sizeof *operands; i++)
            odd(r, replaced(r->in, k, operands[i], buf, sizeof buf), r->attrs, n_out);
        /* a dimension more, one less, one of another size */
        snprintf(word, sizeof word, "%.*s,1", (int)n, s);
        odd(r, replaced(r->in, k, word, buf, sizeof buf), r->attrs, n_out);
        for (const char *p = s; *s != '-' && p < s + n; p++) {
            if (*p != ',' && p != s + 1) continue;
            const char *rest = p + 1 + strspn(p + 1, "0123456789");
            static const char *const dims[] = {"1", "7", "0", "65536"};
            for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
                snprintf(word, sizeof word, "%.*s%s%.*s", (int)(p - s) + (*p == ','), s, dims[i],
                         (int)(s + n - rest < 0 ? 0 : s + n - rest), rest);
                odd(r, replaced(r->in, k, word, buf, sizeof buf), r->attrs, n_out);
            }
            snprintf(word, sizeof word, "%.*s", (int)(p - s), s);
            odd(r, replaced(r->in, k, word, buf, sizeof buf), r->attrs, n_out);
        }
        k++;
    }
    s = r->attrs, k = 0;
    WORDS(s, n) {
        odd(r, r->in, replaced(r->attrs, k, "", buf, sizeof buf), n_out);
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            snprintf(word, sizeof word, "%.*s=%s", (int)strcspn(s, "="), s, values[i]);
            odd(r, r->in, replaced(r->attrs, k, word, buf, sizeof buf), n_out);
        }
        k++;
    }
}

static void check_row(const row *r) {
    const bool missing = !strncmp(r->want, "missing ", 8),
               refused = !strncmp(r->want, "refused ", 8);
    const char *want = r->want;
    uint32_t n_out = missing || refused;
    onnx got;
    if (!n_out) WORDS(want, n) n_out++;
    want = r->want;
    cd_buf b = model_of(r, r->in, r->attrs, n_out);
    const cdmpp_status st = read_model(&b, &got);
    if (refused) {
        if (st != CDMPP_ESCHEMA || !strstr(got.err.msg, want + 8))
            fail_msg("%s(%s) %s: status %d, \"%s\"", r->op, r->in, r->attrs, (int)st, got.err.msg);
    } else if (st || got.n_miss != missing || (missing && !strstr(got.miss[0].reason, want + 8))) {
        fail_msg("%s(%s) %s: status %d, \"%s\", %s", r->op, r->in, r->attrs, (int)st, got.err.msg,
                 got.n_miss ? got.miss[0].reason : "not missing");
    }
    if (!st && !missing) {
        uint32_t k = 0;
        WORDS(want, n) {
            char name[16], shape[64];
            snprintf(name, sizeof name, "y%u", k++);
            snprintf(shape, sizeof shape, "%.*s", (int)n, want);
            if (*want != '-') has_shape(got.g, name, shape);
        }
        FAULT_SWEEP(f, 0) {
            onnx again;
            f.st = read_model(&b, &again);
            f.err = again.err;
            if (!f.st) cd_graph_free(again.g);
        }
        odd_ones(r, n_out);
    }
    if (!st) cd_graph_free(got.g);
    cd_buf_free(&b);
}

#define ROWS(test, ...)                                                                            \
    TEST(test) {                                                                                   \
        static const row rows[] = {__VA_ARGS__};                                                   \
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) check_row(&rows[k]);               \
    }

ROWS(attention,
     {"Attention", "f2,3,16 f2,5,8 f2,5,12 b3,7 f2,2,2,4 f2,2,2,6 l2",
      "q_num_heads=4 kv_num_heads=2 scale=0.5 softcap=2.5 is_causal=1 qk_matmul_output_mode=2",
      "2,3,24 2,2,7,4 2,2,7,6 2,4,3,7"},
     {"Attention", "f2,4,3,4 f2,4,5,4 f2,4,5,6 f3,5 - - l2",
      "is_causal=0 left_window_size=2 right_window_size=1", "2,4,3,6"},
     {"Attention", "h2,4,3,4 h2,2,5,4 h2,2,5,6 b3,5", "is_causal=1", "2,4,3,6"},
     {"Attention", "f2,4,3,4 f2,3,5,4 f2,3,5,6", "", "refused do not fit"},
     {"Attention", "f2,4,3,4 f2,4,5,4 f2,4,5,6", "qk_matmul_output_mode=4",
      "refused qk_matmul_output_mode"},
     {"Attention", "f2,3,16 f2,5,8 f2,5,12", "q_num_heads=3 kv_num_heads=2",
      "refused heads do not fit"},
     {MS "MultiHeadAttention", "f2,3,16 f2,5,16 f2,5,24 f56 i2 f1,1,3,7 f2,4,2,4 f2,4,2,6",
      "num_heads=4 scale=0.5 unidirectional=1 mask_filter_value=-100.0", "2,3,24 2,4,7,4 2,4,7,6"},
     {MS "MultiHeadAttention", "f2,3,16 f2,4,5,4 f2,4,5,6 f16 i2,5", "num_heads=4", "2,3,24"},
     {MS "MultiHeadAttention", "f2,3,16 f2,5,16 f2,5,24 - i2,4", "num_heads=4",
      "missing a mask of this form"},
     {MS "MultiHeadAttention", "f2,3,4,3,4", "num_heads=4", "missing in one tensor"},
     {MS "Attention", "f2,3,10 f10,48 f48 i2,5 f2,2,4,2,4 f1,1,3,5",
      "num_heads=4 unidirectional=1 scale=0.5 qkv_hidden_sizes=16,16,16", "2,3,16 2,2,4,5,4"},
     {MS "Attention", "f2,3,10 f10,40 - i2", "num_heads=4 qkv_hidden_sizes=16,16,8", "2,3,8"},
     {MS "Attention", "f2,3,10 f10,48", "num_heads=4 do_rotary=1", "missing turns what it makes"},
     {MS "Attention", "f2,3,10 f10,48 - - f2,2,4,2", "num_heads=4", "refused five dimensions"},
     {MS "Attention", "f2,3,10 f10,48", "num_heads=4 qkv_hidden_sizes=0,16,16",
      "refused qkv_hidden_sizes"},
     {MS "QAttention", "u2,3,10 s10,48 f48 f f i2,3 u s", "num_heads=4 unidirectional=1", "2,3,16"},
     {MS "QAttention", "u2,3,10 s10,48 f48 f f", "num_heads=4", "2,3,16"})

ROWS(groups,
     {MS "GroupQueryAttention",
      "f2,3,16 f2,3,8 f2,3,8 f2,2,5,4 f2,2,5,4 i2 i f32,2 f32,2 l2,3 f1,1,3,8",
      "num_heads=4 kv_num_heads=2 scale=0.5 softcap=2.5 local_window_size=4 do_rotary=1 "
      "rotary_interleaved=1",
      "2,3,16 2,2,8,4 2,2,8,4"},
     {MS "GroupQueryAttention", "f2,3,32 - - f2,2,5,4 f2,2,5,4 i2 i f32,2 f32,2",
      "num_heads=4 kv_num_heads=2 do_rotary=1", "2,3,16 2,2,8,4 2,2,8,4"},
     {MS "GroupQueryAttention", "f2,3,16 f2,3,8 f2,3,8 - - i2 i",
      "num_heads=4 kv_num_heads=2 smooth_softmax=1", "missing a sink"},
     {MS "GroupQueryAttention", "f2,3,16 f2,3,8 f2,3,8 - - i2 i - - - - f4",
      "num_heads=4 kv_num_heads=2", "missing a sink"},
     {MS "GroupQueryAttention", "f2,3,16 f2,3,8 - - - i2 i", "num_heads=4 kv_num_heads=2",
      "refused operand 2 is missing"},
     {MS "GroupQueryAttention", "f2,3,16 f2,3,8 f2,3,8 - - i2 i", "num_heads=4",
      "refused heads do not fit"},
     {"RotaryEmbedding", "f2,4,3,8 f32,2 f32,2 l2,3",
      "rotary_embedding_dim=4 interleaved=1 num_heads=4", "2,4,3,8"},
     {"RotaryEmbedding", "f2,3,32 f2,3,4 f2,3,4", "num_heads=4", "2,3,32"},
     {MS "RotaryEmbedding", "f2,3,32 l1 f32,4 f32,4", "scale=1.0", "2,3,32"},
     {MS "RotaryEmbedding", "f2,3,32 l1 f32,4 f32,4", "is_packed_batching=1",
      "missing packed batches"},
     {MS "RotaryEmbedding", "f2,3,30 l2,3 f32,4 f32,4", "num_heads=4 rotary_embedding_dim=0",
      "refused do not fit"})

ROWS(norms, {"RMSNormalization", "f2,3,8 f8", "axis=-1 epsilon=0.00001", "2,3,8"},
     {"RMSNormalization", "h2,3,8 h3,8", "axis=1", "2,3,8"},
     {"RMSNormalization", "f2,3,8 f8", "axis=3", "refused no such axis"},
     {MS "SkipLayerNormalization", "f2,3,8 f2,3,8 f8 f8 f8", "epsilon=0.00001", "2,3,8 - - 2,3,8"},
     {MS "SkipLayerNormalization", "f2,3,8 f2,3,8 f8", "", "2,3,8 -"},
     {MS "SkipSimplifiedLayerNormalization", "f2,3,8 f2,3,8 f8 f8", "epsilon=0.00001", "2,3,8"},
     {MS "EmbedLayerNormalization", "i2,3 i2,3 f50,8 f6,8 f2,8 f8 f8 i2,3 i2,3",
      "epsilon=0.00001 mask_index_type=0", "2,3,8 2 2,3,8"},
     {MS "EmbedLayerNormalization", "i2,3 - f50,8 f6,8 - f8 f8", "", "2,3,8 2"},
     {"Swish", "f2,3", "alpha=0.5", "2,3"}, {"ThresholdedRelu", "f2,3", "alpha=0.5", "2,3"},
     {MS "BiasGelu", "f2,3 f3", "", "2,3"}, {MS "FastGelu", "f2,3 f3", "", "2,3"},
     {MS "BiasAdd", "f2,3,8 f8 f2,3,8", "", "2,3,8"},
     {MS "BiasSplitGelu", "f2,3,8 f8", "", "2,3,4"},
     {MS "FusedMatMul", "f4,2,3 f4,2,8", "alpha=0.5 transA=1 transB=0 transBatchA=0 transBatchB=0",
      "4,3,8"},
     {MS "FusedMatMul", "f3 f3,8", "transA=1", "8"},
     {MS "FusedMatMul", "f4,2,3 f4,3,8", "transBatchA=1", "missing batches that are turned"},
     {MS "FusedGemm", "f3,2 f8,3 f8",
      "alpha=0.5 beta=2.0 transA=1 transB=1 activation=LeakyRelu activation_alpha=0.1", "2,8"},
     {MS "FusedGemm", "f2,3 f3,8", "activation=Clip activation_alpha=0.1 activation_beta=6.0",
      "2,8"},
     {MS "FusedGemm", "f2,3 f3,8", "activation=Mish", "missing an activation"},
     {MS "FusedConv", "f1,2,5,5 f4,2,3,3 f4 f1,4,3,3",
      "activation=HardSigmoid activation_params=0.2,0.5 kernel_shape=3,3 group=1", "1,4,3,3"},
     {MS "FusedConv", "f1,2,5,5 f4,2,3,3", "activation=LeakyRelu activation_params=0.2,0.3,0.4",
      "1,4,3,3"},
     {MS "FusedConv", "f1,2,5,5 f4,2,3,3", "activation=Clip activation_params=0.0,6.0", "1,4,3,3"})

ROWS(quantized, {MS "QLinearAdd", "u2,3 f u u3 f u f u", "", "2,3"},
     {MS "QLinearLeakyRelu", "u2,3 f u f u", "alpha=0.5", "2,3"},
     {MS "QLinearSigmoid", "u2,3 f - f", "", "2,3"},
     {MS "QLinearSoftmax", "u2,3 f u f u", "axis=1 opset=13", "2,3"},
     {MS "QLinearAveragePool", "u1,2,5,5 f u f u", "kernel_shape=3,3 channels_last=0 strides=2,2",
      "1,2,2,2"},
     {MS "QLinearGlobalAveragePool", "u1,2,5,5 f u f u", "channels_last=0", "1,2,1,1"},
     {MS "QLinearGlobalAveragePool", "u1,5,5,2 f u f u", "channels_last=1",
      "missing channels that come last"},
     {MS "QLinearConcat", "f u u2,3 f u u2,4 f u u2,1 f u", "axis=1", "2,8"},
     {MS "QGemm", "u3,2 f u s8,3 f s i8 f u", "alpha=0.5 transA=1 transB=1", "2,8"},
     {MS "QGemm", "u2,3 f u s3,8 f s", "", "2,8"},
     {MS "MatMulIntegerToFloat", "u2,3 s3,8 f f u s f8", "", "2,8"},
     {MS "MatMulIntegerToFloat", "u2,3 s3,8 f f", "", "2,8"},
     {MS "DynamicQuantizeMatMul", "f2,3 s3,8 f s f8", "", "2,8"},
     {MS "QuantizeLinear", "f2,3 f u", "axis=1", "2,3"},
     {MS "DequantizeLinear", "u2,3 f", "axis=1", "2,3"})

TESTS(NULL, NULL, attention, groups, norms, quantized)

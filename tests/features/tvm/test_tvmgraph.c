/* Node graphs: both dialects, every kind of damage with its place, sizes that
 * must neither overflow the stack nor take quadratic time. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "base/core/core.h"
#include "base/io/io.h"
#include "features/tvm/tvm.h"

#define SEEDS "tests/fuzz/seeds/graph/"

static cdmpp_status read_dag(const char *text, size_t n, cd_te_dag **dag, cdmpp_err *err) {
    cd_arena a = {0};
    const cdmpp_status st = cd_tvm_graph_dag(&a, text, n, dag, err);
    cd_arena_free(&a);
    return st;
}

/* `text` with every `from` replaced; fails when there is none. */
static cd_buf replaced(const char *text, const char *from, const char *to) {
    cd_buf out = {0};
    const char *at;
    assert_non_null(strstr(text, from));
    for (; (at = strstr(text, from)); text = at + strlen(from)) {
        cd_buf_put(&out, text, (size_t)(at - text));
        cd_buf_puts(&out, to);
    }
    cd_buf_puts(&out, text);
    return out;
}

static char *slurp(const char *path) {
    cdmpp_err err = {0};
    char *text;
    size_t n;
    assert_ok(cd_file_read(path, 0, &text, &n, &err));
    return text;
}

TEST(prints_as_tvm) {
    char *text = slurp(SEEDS "pad_reduce.json");
    cd_te_dag *dag;
    cd_buf out = {0};
    cdmpp_err err = {0};
    assert_ok(read_dag(text, strlen(text), &dag, &err));
    cd_te_dag_print(&out, dag);
    assert_string_equal(
        out.p,
        "placeholder = PLACEHOLDER [1, 27, 27, 256]\n"
        "pad_temp(ax0, ax1, ax2, ax3) = tir.if_then_else(((ax1 < 27) && (ax2 < 27)), "
        "placeholder[ax0, ax1, ax2, ax3], -3.40282e+38f)\n"
        "tensor(ax0, ax1, ax2, ax3) max= pad_temp[ax0, ((ax1*2) + rv0), ((ax2*2) + rv1), ax3]\n");
    assert_true(dag->flop == 13.0 * 13 * 256 * 9);
    assert_true(dag->op[0].is_placeholder && !dag->op[0].is_output && !dag->op[1].is_output &&
                dag->op[2].is_output);
    assert_int_equal(dag->n_arg, 2);
    assert_int_equal(dag->arg[0], 0);
    assert_int_equal(dag->arg[1], 2);
    assert_string_equal(dag->op[2].tag, "pool_max");
    cd_te_dag_free(dag);
    cd_buf_free(&out);
    cd_mem_free(text);
}

TEST(dialects_agree) {
    char *text = slurp(SEEDS "pad_reduce.json");
    cd_buf fork = replaced(text, "\"dtype\":\"bool\"", "\"dtype\":\"uint1\""), b64, flat;
    cd_te_dag *a, *b;
    cdmpp_err err = {0};
    assert_ok(read_dag(text, strlen(text), &a, &err));
    assert_ok(read_dag(fork.p, fork.n, &b, &err));
    assert_true(cd_te_dag_equal(a, b));
    cd_te_dag_free(b);
    /* a name in base64: length 3, "rv0" */
    b64 = replaced(text, "\"repr_str\":\"rv0\"", "\"repr_b64\":\"AwAAAAAAAABydjA=\"");
    assert_ok(read_dag(b64.p, b64.n, &b, &err));
    assert_true(cd_te_dag_equal(a, b));
    cd_te_dag_free(b);
    flat = replaced(text, "\"repr_str\":\"rv0\"", "\"repr_b64\":\"BAAAAAAAAABydjA=\"");
    assert_status(read_dag(flat.p, flat.n, &b, &err), CDMPP_EPARSE);
    cd_te_dag_free(a);
    cd_buf_free(&fork);
    cd_buf_free(&b64);
    cd_buf_free(&flat);
    cd_mem_free(text);
}

TEST(attributes) {
    static const char map[] = "{\"type_key\":\"Map\"}";
    char *text = slurp(SEEDS "pad_reduce.json");
    /* node 9 is the placeholder's, 15 the pooling's, 86 the padding's map: all get the same */
    cd_buf t = replaced(
        text, map,
        "{\"type_key\":\"Map\",\"keys\":[\"FLOP\",\"const_matrix\",\"layout_free_placeholders\","
        "\"auto_scheduler_simplify_const_tensor_indices\"],\"data\":[7,4,1,1]}");
    cd_te_dag *dag;
    cdmpp_err err = {0};
    assert_ok(read_dag(t.p, t.n, &dag, &err));
    assert_true(dag->flop == 512 && dag->op[1].const_matrix && dag->op[1].simplify_const &&
                dag->op[0].layout_free);
    cd_te_dag_free(dag);
    cd_buf_free(&t);
    cd_mem_free(text);
}

#define SIX(s) s s s s s s
#define TEN(s) SIX(s) s s s s

/* What a damaged file is told. */
static const struct {
    const char *from, *to;
    cdmpp_status want;
    const char *key, *msg;
} bad[] = {
    {"{\"root\":1", "[{\"root\":1", CDMPP_EPARSE, "", ""},
    {"\"root\":1", "\"root\":100000", CDMPP_ERANGE, "root", ""},
    {"\"root\":1", "\"root\":2", CDMPP_ESCHEMA, "nodes[2]",
     "expected a node of type Array, found \"Tensor\""},
    {"\"root\":1", "\"root\":0", CDMPP_ESCHEMA, "nodes[0]",
     "expected a node of type Array, found \"\""},
    /* 60 letters of it */
    {"\"type_key\":\"Array\"", "\"type_key\":\"" TEN("letters ix") "\"", CDMPP_ESCHEMA, "nodes[1]",
     "of type Array, found \"" SIX("letters ix") "\""},
    {"\"nodes\":[", "\"knots\":[", CDMPP_ESCHEMA, "nodes", "array"},
    {"\"type_key\":\"Map\"", "\"type\":\"Map\"", CDMPP_ESCHEMA, "nodes[9].type_key", ""},
    {"\"op\":\"8\"", "\"op\":\"9999\"", CDMPP_ESCHEMA, "nodes[2].attrs.op", "refers to node 9999"},
    {"\"op\":\"8\"", "\"op\":\"x\"", CDMPP_ESCHEMA, "nodes[2].attrs.op", "expected an integer"},
    {"\"op\":\"8\"", "\"op\":8", CDMPP_ESCHEMA, "nodes[2].attrs.op", "expected a string"},
    {"\"op\":\"8\"", "\"opp\":\"8\"", CDMPP_ESCHEMA, "nodes[2].attrs.op", "found nothing"},
    {"\"op\":\"8\"", "\"op\":\"3\"", CDMPP_EUNSUPPORTED, "nodes[3]",
     "\"Array\" is not an operator"},
    {"\"op\":\"85\"", "\"op\":\"14\"", CDMPP_ESCHEMA, "", "cycle"},
    {"\"a\":\"122\"", "\"a\":\"121\"", CDMPP_ESCHEMA, "nodes[121]", "cycle"},
    {"\"a\":\"98\"", "\"a\":\"50\"", CDMPP_ESCHEMA, "nodes[50]", "no axis of its operator"},
    {"\"a\":\"27\"", "\"a\":\"98\"", CDMPP_ESCHEMA, "tensor", "none of its axes"},
    {"\"a\":\"98\"", "\"a\":\"119\"", CDMPP_EUNSUPPORTED, "nodes[119]", "\"Op\""},
    {"\"a\":\"98\"", "\"a\":\"76\"", CDMPP_ESCHEMA, "pad_temp", "differ in type"},
    {"\"a\":\"98\"", "\"a\":\"63\"", CDMPP_ESCHEMA, "", ""},
    {"\"tir.LT\"", "\"tir.Ramp\"", CDMPP_EUNSUPPORTED, "nodes[122]", "tir.Ramp"},
    {"\"tir.LT\"", "\"tir.Let\"", CDMPP_EUNSUPPORTED, "nodes[122]", "tir.Let"},
    {"\"indices\":\"129\"", "\"indices\":\"11\"", CDMPP_OK, "", ""},
    {"\"indices\":\"129\"", "\"indices\":\"45\"", CDMPP_EUNSUPPORTED, "nodes[46]", "tir.IterVar"},
    {"\"indices\":\"129\"", "\"indices\":\"62\"", CDMPP_ESCHEMA, "", "cycle"},
    {"\"indices\":\"129\"", "\"indices\":\"75\"", CDMPP_ESCHEMA, "tensor", "1 indices for"},
    {"\"result\":\"73\"", "\"result\":\"116\"", CDMPP_ESCHEMA, "nodes[64].attrs.result",
     "expected 1 items, found 0"},
    {"\"rhs\":\"69\"", "\"rhs\":\"75\"", CDMPP_ESCHEMA, "nodes[76]", "tir.Var"},
    {"\"reduce_axis\":\"45\"", "\"reduce_axis\":\"116\"", CDMPP_ESCHEMA,
     "nodes[14].attrs.reduce_axis", "differs"},
    {"\"body\":\"62\"", "\"body\":\"116\"", CDMPP_EUNSUPPORTED, "nodes[14].attrs.body",
     "0 outputs"},
    {"\"value_index\":\"0\"", "\"value_index\":\"1\"", CDMPP_ESCHEMA, "nodes[2].attrs.value_index",
     "output 1"},
    {"\"dtype\":\"float32\"", "\"dtype\":\"float32x4\"", CDMPP_EUNSUPPORTED, "attrs.dtype",
     "float32x4"},
    {"\"value\":\"13\"", "\"value\":\"-13\"", CDMPP_ERANGE, "tensor", "-13"},
    {"\"value\":\"13\"", "\"value\":\"99999999999999999999\"", CDMPP_ESCHEMA, "attrs.value",
     "integer"},
    {"\"data\":[2,10]", "\"data\":[2,\"10\"]", CDMPP_ESCHEMA, "nodes[1].data", ""},
    {"\"data\":[2,10]", "\"data\":[]", CDMPP_ESCHEMA, "nodes[1]", "without tensors"},
};

TEST(damage_has_a_place) {
    char *text = slurp(SEEDS "pad_reduce.json");
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        cd_buf t = replaced(text, bad[k].from, bad[k].to);
        cd_te_dag *dag;
        cdmpp_err err = {0};
        const cdmpp_status st = read_dag(t.p, t.n, &dag, &err);
        char line[600];
        if (st != bad[k].want || !strstr(err.key, bad[k].key) || !strstr(err.msg, bad[k].msg)) {
            print_error("%s -> %s: %s\n", bad[k].from, bad[k].to,
                        st ? cdmpp_err_format(&err, line, sizeof line) : "ok");
            fail();
        }
        if (!st) cd_te_dag_free(dag);
        cd_buf_free(&t);
    }
    cd_mem_free(text);
}

/* Texts of any bytes, behind eight bytes of their length, in base64; whatever ends early or is no
 * base64 is refused. */
/* Each attribute in turn has a name that nobody knows: so many are missed, and the error names the
 * node. The others are not read, or of nodes that are not. */
TEST(each_attribute) {
    static const char *const seed[] = {SEEDS "pad_reduce.json", SEEDS "pool.json",
                                       SEEDS "reduce.json", SEEDS "reinterpret.json"};
    static const size_t want_missed[] = {175, 226, 77, 363};
    for (size_t k = 0; k < sizeof seed / sizeof *seed; k++) {
        char *text = slurp(seed[k]);
        size_t missed = 0;
        for (char *attrs = strstr(text, "\"attrs\":{"), *end; attrs;
             attrs = strstr(end, "\"attrs\":{")) {
            end = strchr(attrs, '}');
            for (char *key = strchr(attrs, '{') + 1; key < end;) {
                const size_t n = strcspn(key + 1, "\"");
                char *next = strchr(key + n + 4, '"') + 1, line[600], want[80];
                cd_te_dag *dag = NULL;
                cdmpp_err err = {0};
                key[1] ^= 1; /* a name that no node has */
                const cdmpp_status st = read_dag(text, strlen(text), &dag, &err);
                key[1] ^= 1;
                snprintf(want, sizeof want, "attrs.%.*s", (int)n, key + 1);
                missed += st != 0;
                if (st == CDMPP_ENOMEM ||
                    (st && !strstr(err.key, want) && !strstr(err.key, "nodes[")))
                    fail_msg("%s: without %.*s of %.60s: %s", seed[k], (int)n, key + 1, attrs - 40,
                             st ? cdmpp_err_format(&err, line, sizeof line) : "ok");
                if (!st) cd_te_dag_free(dag);
                key = next + (*next == ',');
            }
        }
        cd_mem_free(text);
        assert_int_equal(missed, want_missed[k]);
    }
}

TEST(texts_in_base64) {
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t n = 0; n < 80; n++)
        /* none; one byte less than the length says; a strange letter; nothing but a part of the
         * length */
        for (int damage = 0; damage < 4; damage++) {
            unsigned char raw[96] = {0};
            char json[300] =
                "{\"root\":0,\"nodes\":[{\"type_key\":\"runtime.String\",\"repr_b64\":\"",
                 *at = json + strlen(json);
            const size_t all = damage == 3 ? 7 : 8 + n;
            cd_arena a = {0};
            cd_tvm_graph g;
            cd_str got;
            cdmpp_err err = {0};
            raw[0] = (unsigned char)(n + (damage == 1));
            for (size_t k = 0; k < n; k++) raw[8 + k] = (unsigned char)(k * 83 + n * 7);
            for (size_t k = 0; k < all; k += 3) {
                const unsigned word = (unsigned)raw[k] << 16 |
                                      (k + 1 < all ? (unsigned)raw[k + 1] << 8 : 0) |
                                      (k + 2 < all ? raw[k + 2] : 0);
                for (size_t d = 0; d < 4; d++)
                    *at++ = d <= all - k ? digit[word >> (18 - 6 * d) & 63] : '=';
            }
            if (damage == 2) at[-5] = "[`@{:,-._~"[n % 10];
            strcpy(at, "\"}]}");
            assert_ok(cd_tvm_graph_open(&a, json, strlen(json), &g, &err));
            if (damage) assert_status(cd_tvm_graph_text(&g, 0, &got), CDMPP_EPARSE);
            else {
                assert_ok(cd_tvm_graph_text(&g, 0, &got));
                assert_true(got.n == n && (!n || !memcmp(got.p, raw + 8, n)));
            }
            cd_arena_free(&a);
        }
}

/* A task with one scalar output; its body is node 8, to be appended. */
static cd_buf scalar_task(void) {
    cd_buf b = {0};
    cd_buf_puts(&b,
                "{\"root\":1,\"nodes\":[{\"type_key\":\"\"},{\"type_key\":\"Array\",\"data\":[2]},"
                "{\"type_key\":\"Tensor\",\"attrs\":{\"op\":\"3\",\"value_index\":\"0\"}},"
                "{\"type_key\":\"ComputeOp\",\"attrs\":{\"attrs\":\"0\",\"axis\":\"4\",\"body\":"
                "\"5\",\"name\":\"x\",\"reduce_axis\":\"4\",\"tag\":\"\"}},"
                "{\"type_key\":\"Array\"},{\"type_key\":\"Array\",\"data\":[8]},"
                "{\"type_key\":\"IntImm\",\"attrs\":{\"dtype\":\"int32\",\"value\":\"1\"}},{\"type_"
                "key\":\"\"}");
    return b;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static cdmpp_status timed(cd_buf *b, double limit_s, cdmpp_err *err) {
    cd_te_dag *dag;
    const double t = seconds();
    cd_buf_puts(b, "]}");
    assert_false(b->oom);
    const cdmpp_status st = read_dag(b->p, b->n, &dag, err);
    if (!st) cd_te_dag_free(dag);
    cd_buf_free(b);
    if (seconds() - t > limit_s) print_error("took %.2f s\n", seconds() - t);
    assert_true(seconds() - t <= limit_s);
    return st;
}

/* 700,000 nodes below each other, of five values each (a JSON text has at most 4 million); 60 of
 * them that unfold to 2^60; a fan that is fine. */
TEST(deep_and_wide) {
    cdmpp_err err = {0};
    cd_buf b = scalar_task();
    for (unsigned i = 8; i < 700008; i++)
        cd_buf_putf(&b, ",{\"type_key\":\"tir.Add\",\"attrs\":{\"a\":\"%u\",\"b\":\"6\"}}", i + 1);
    cd_buf_puts(&b, ",{\"type_key\":\"IntImm\",\"attrs\":{\"dtype\":\"int32\",\"value\":\"1\"}}");
    assert_status(timed(&b, 20, &err), CDMPP_EUNSUPPORTED);
    assert_non_null(strstr(err.msg, "nested deeper"));

    b = scalar_task();
    for (unsigned i = 8; i < 68; i++)
        cd_buf_putf(&b, ",{\"type_key\":\"tir.Mul\",\"attrs\":{\"a\":\"%u\",\"b\":\"%u\"}}", i + 1,
                    i + 1);
    cd_buf_puts(&b, ",{\"type_key\":\"IntImm\",\"attrs\":{\"dtype\":\"int32\",\"value\":\"1\"}}");
    assert_status(timed(&b, 1, &err), CDMPP_EUNSUPPORTED);
    assert_non_null(strstr(err.msg, "unfolds"));

    b = scalar_task();
    for (unsigned i = 8; i < 400; i++)
        cd_buf_putf(&b, ",{\"type_key\":\"tir.Add\",\"attrs\":{\"a\":\"%u\",\"b\":\"6\"}}", i + 1);
    cd_buf_puts(&b, ",{\"type_key\":\"IntImm\",\"attrs\":{\"dtype\":\"int32\",\"value\":\"1\"}}");
    assert_ok(timed(&b, 1, &err));
}

/* 10^5 operators that read each the next one. */
TEST(long_chain) {
    enum { N = 100000 };
    cdmpp_err err = {0};
    cd_buf b = {0};
    cd_buf_puts(&b, "{\"root\":1,\"nodes\":[{\"type_key\":\"\"},{\"type_key\":\"Array\",\"data\":["
                    "3]},{\"type_key\":\"Array\"}");
    for (unsigned k = 0; k < N; k++) {
        const unsigned at = 3 + 4 * k;
        cd_buf_putf(&b,
                    ",{\"type_key\":\"Tensor\",\"attrs\":{\"op\":\"%u\",\"value_index\":\"0\"}}",
                    at + 1);
        cd_buf_putf(&b,
                    ",{\"type_key\":\"ComputeOp\",\"attrs\":{\"attrs\":\"0\",\"axis\":\"2\","
                    "\"body\":\"%u\",\"name\":\"x\",\"reduce_axis\":\"2\",\"tag\":\"\"}}",
                    at + 2);
        cd_buf_putf(&b, ",{\"type_key\":\"Array\",\"data\":[%u]}", at + 3);
        if (k + 1 < N)
            cd_buf_putf(&b,
                        ",{\"type_key\":\"tir.ProducerLoad\",\"attrs\":{\"dtype\":\"int32\","
                        "\"indices\":\"2\",\"producer\":\"%u\"}}",
                        at + 4);
        else
            cd_buf_puts(
                &b, ",{\"type_key\":\"IntImm\",\"attrs\":{\"dtype\":\"int32\",\"value\":\"1\"}}");
    }
    assert_ok(timed(&b, 5, &err));
}

TESTS(NULL, NULL, prints_as_tvm, dialects_agree, attributes, texts_in_base64, damage_has_a_place,
      each_attribute, deep_and_wide, long_chain)

/* llm_op_requests: an answer for each line, in order, whatever is wrong with it. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "predictor/serve/serve.h"
#include "check.h"
#include "fault.h"
#include "made_llm_model.h"

typedef struct {
    tmp_dir dir;
    cd_llm_op_oracle of;
    char model[256], measured[256];
} fixture;

static int up(void **state) {
    static fixture f;
    cdmpp_err err = {0};
    const char *tables[] = {f.measured};
    f = (fixture){.dir = tmp_make()};
    made_llm_model(&f.dir);
    snprintf(f.model, sizeof f.model, "%s/llm.cdmpp", f.dir.path);
    snprintf(f.measured, sizeof f.measured, "%s/gemm.csv", f.dir.path);
    assert_ok(
        cd_llm_op_oracle_open(&f.of,
                              &(cd_llm_op_oracle_options){.model = f.model,
                                                          .devices_file = "configs/devices.yaml",
                                                          .measured = tables,
                                                          .n_measured = 1},
                              &err));
    assert_int_equal(cd_llm_op_oracle_bad(&f.of), 1);
    *state = &f;
    return 0;
}

static int down(void **state) {
    fixture *f = *state;
    cd_llm_op_oracle_free(&f->of);
    tmp_remove(&f->dir);
    return 0;
}

/* The answers to the text, in `out` (cap). */
static cdmpp_status ask(fixture *f, const char *text, char *out, size_t cap,
                        cd_llm_op_requests_stats *n, cdmpp_err *err) {
    const int in = open(tmp_put(&f->dir, "in", text, strlen(text)), O_RDONLY),
              to = open(tmp_path(&f->dir, "out"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(in >= 0 && to >= 0);
    const cd_llm_op_requests_options o = {.in = in, .out = to, .max_bytes = 4096};
    const cdmpp_status st = cd_llm_op_requests(&f->of, &o, n, err);
    const ssize_t got = pread(to, out, cap - 1, 0);
    out[got > 0 ? got : 0] = 0;
    (void)close(in);
    (void)close(to);
    return st;
}

TEST(one_line_each) {
    fixture *f = *state;
    cd_llm_op_requests_stats n;
    cdmpp_err err = {0};
    static char out[1 << 16], text[12000];
    const char *want[] = {
        "{\"id\":\"a\",\"operator\":\"gemm\",\"device\":\"h100\",\"how\":\"measured\",\"latency_"
        "s\":1e-05,\"low_s\":null,\"high_s\":null,\"level\":null,\"new\":null,",
        "{\"id\":2,\"operator\":\"gemm\",\"device\":\"h100\",\"how\":\"interpolated\",",
        "{\"line\":3,\"operator\":\"gemm\",\"device\":\"l40s\",\"how\":\"predicted\",",
        "{\"id\":4,\"operators\":[{\"operator\":\"gemm\",\"device\":\"h100\",\"how\":\"measured\",",
        "{\"id\":5,\"operators\":[]}",
        "{\"id\":6,\"error\":{\"code\":\"ESCHEMA\",\"message\":\"unknown member 'dtyp', did you "
        "mean 'dtype'?\"}}",
        "{\"line\":7,\"error\":{\"code\":\"EPARSE\",",
        "{\"line\":8,\"error\":{\"code\":\"ERANGE\",\"message\":\"the line is longer than 4096 "
        "bytes\"}}",
        "{\"line\":9,\"error\":{\"code\":\"ESCHEMA\",\"key\":\"id\",",
        "{\"line\":10,\"error\":{\"code\":\"ESCHEMA\",\"message\":\"\\\"operators\\\" goes with no "
        "other member but id\"}}",
        "{\"id\":11,\"error\":{\"code\":\"ESCHEMA\",\"key\":\"operators\",",
        "{\"line\":12,\"requests\":11,\"answered\":4,\"bad\":8}",
        "{\"line\":14,\"error\":{\"code\":\"ESCHEMA\",\"key\":\"device\",",
        "{\"line\":15,\"operator\":\"gemm\",\"device\":\"h100\",\"how\":\"measured\",",
        "{\"line\":16,\"operators\":[]}"};
    char longest[5000];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    snprintf(text, sizeof text, "%s%s%s%s%s%s%s%s\n%s%s%s%s\n%s",
             "{\"id\":\"a\",\"op\":\"gemm\",\"device\":\"h100\",\"stack\":\"vllm-1\",\"m\":8,\"n\":"
             "256,\"k\":512}\n",
             "{\"id\":2,\"op\":\"gemm\",\"device\":\"h100\",\"stack\":\"vllm-1\",\"m\":16,\"n\":"
             "256,\"k\":512,\"kernel\":null}\n",
             "{\"op\":\"gemm\",\"device\":\"l40s\",\"m\":16,\"n\":256,\"k\":512}\n",
             "{\"id\":4,\"operators\":[{\"op\":\"gemm\",\"device\":\"h100\",\"stack\":\"vllm-1\","
             "\"m\":8,\"n\":256,\"k\":512},{\"op\":\"gem\"},3]}\n",
             "{\"id\":5,\"operators\":[]}\r\n", "{\"id\":6,\"op\":\"gemm\",\"dtyp\":\"fp8\"}\n",
             "{\"op\":\n", longest, "{\"id\":[1],\"op\":\"gemm\"}\n",
             "{\"operators\":[],\"op\":\"gemm\"}\n", "{\"id\":11,\"operators\":7}\n",
             "{\"cmd\":\"stats\"}\n",
             "{\"op\":\"norm\",\"m\":1,\"n\":1}\n"
             "{\"id\":null,\"operators\":null,\"cmd\":null,\"op\":\"gemm\",\"device\":\"h100\","
             "\"stack\":\"vllm-1\",\"m\":8,\"n\":256,\"k\":512,\"kernel\":null,\"batches\":null,"
             "\"kv_dtype\":null,\"latency_s\":null}\n"
             "{\"operators\":[],\"cmd\":null,\"op\":null}\n");
    assert_ok(ask(f, text, out, sizeof out, &n, &err));
    char *line = strtok(out, "\n");
    for (size_t i = 0; i < sizeof want / sizeof *want; i++, line = strtok(NULL, "\n")) {
        assert_non_null(line);
        if (strncmp(line, want[i], strlen(want[i])) != 0)
            fail_msg("line %zu: %s\nexpected %s", i, line, want[i]);
        if (i == 3)
            assert_non_null(
                strstr(line, "},{\"error\":{\"code\":\"EUNSUPPORTED\",\"key\":\"op\","));
        if (i == 3)
            assert_non_null(strstr(line, "},{\"error\":{\"code\":\"ESCHEMA\",\"message\":"
                                         "\"expected an object, found integer\"}}]}"));
    }
    assert_null(line);
    assert_int_equal(n.asked, 15);
    assert_int_equal(n.answered, 5);
    assert_int_equal(n.bad, 9);
}

TEST(hello) {
    fixture *f = *state;
    cd_llm_op_requests_stats n;
    cdmpp_err err = {0};
    static char out[1 << 14];
    assert_ok(ask(f, "{\"cmd\":\"hello\"}\n", out, sizeof out, &n, &err));
    assert_non_null(strstr(out, "\"protocol\":1,"));
    assert_non_null(strstr(out, "\"norm\":[\"m\",\"n\"]"));
    assert_non_null(strstr(out, "\"stacks\":[\"vllm-1\",\"trtllm-2\"],\"devices\":[\"h100\"],"
                                "\"measured_rows\":2,\"max_line_bytes\":4096}"));
}

#define ERROR(line, rest) "{\"line\":" #line ",\"error\":{\"code\":" rest "}}\n"
TEST(lines_refused) {
    static const struct {
        const char *line, *answer;
    } v[] = {
        {"3", ERROR(1, "\"ESCHEMA\",\"message\":\"expected a JSON object, found integer\"")},
        {"{\"op\":true}", ERROR(1, "\"ESCHEMA\",\"key\":\"op\",\"message\":\"expected a number or "
                                   "a text, found boolean\"")},
        {"{\"op\":[]}", ERROR(1, "\"ESCHEMA\",\"key\":\"op\",\"message\":\"expected a number or a "
                                 "text, found array\"")},
        {"{\"op\":\"norm\",\"m\":{}}", ERROR(1, "\"ESCHEMA\",\"key\":\"m\",\"message\":\"expected "
                                                "a number or a text, found object\"")},
        {"{\"op\":\"norm\",\"m\":1.5}", ERROR(1, "\"ERANGE\",\"key\":\"m\",\"message\":\"expected "
                                                 "a whole number in 1..2^40, found 1.5\"")},
        {"{\"cmd\":\"stop\"}", ERROR(1, "\"ESCHEMA\",\"key\":\"cmd\",\"message\":\"expected hello "
                                        "or stats, found \\\"stop\\\"\"")},
        {"{\"cmd\":{}}",
         ERROR(1, "\"ESCHEMA\",\"key\":\"cmd\",\"message\":\"expected a string, found object\"")},
    };
    fixture *f = *state;
    cd_llm_op_requests_stats n;
    cdmpp_err err = {0};
    static char out[1 << 14];
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        assert_ok(ask(f, v[i].line, out, sizeof out, &n, &err));
        assert_string_equal(out, v[i].answer);
        assert_true(n.asked == 1 && n.bad == 1 && n.answered == 0);
    }
}

/* Limits of a line, where it may be long. */
TEST(many) {
    fixture *f = *state;
    cd_buf line = {0};
    cd_llm_op_requests_stats n;
    cdmpp_err err = {0};
    static char out[1 << 14];
    cd_buf_puts(&line, "{\"operators\":[1");
    for (int i = 0; i < CD_LLM_OP_REQUESTS_MOST; i++) cd_buf_puts(&line, ",1");
    cd_buf_puts(&line, "]}\n{\"op\":\"norm\"");
    for (int i = 0; i < 64; i++) cd_buf_putf(&line, ",\"m%d\":1", i);
    cd_buf_puts(&line, "}\n{\"cmd\":\"hello\"}\n");
    const cd_llm_op_requests_options o = {
        .in = open(tmp_put(&f->dir, "in", line.p, line.n), O_RDONLY),
        .out = open(tmp_path(&f->dir, "out"), O_RDWR | O_CREAT | O_TRUNC, 0600)};
    assert_ok(cd_llm_op_requests(&f->of, &o, &n, &err));
    const ssize_t got = pread(o.out, out, sizeof out - 1, 0);
    assert_true(got > 0);
    out[got] = 0;
    (void)snprintf(line.p, line.n,
                   "{\"line\":1,\"error\":{\"code\":\"ERANGE\",\"key\":\"operators\",\"message\":"
                   "\"expected at most %d, found %d\"}}",
                   CD_LLM_OP_REQUESTS_MOST, CD_LLM_OP_REQUESTS_MOST + 1);
    assert_string_equal(strtok(out, "\n"), line.p);
    assert_string_equal(
        strtok(NULL, "\n"),
        "{\"line\":2,\"error\":{\"code\":\"ERANGE\",\"message\":\"more than 64 members\"}}");
    assert_non_null(strstr(strtok(NULL, "\n"), "\"max_line_bytes\":67108864}"));
    (void)close(o.in);
    (void)close(o.out);
    cd_buf_free(&line);
}

TEST(refused) {
    fixture *f = *state;
    const char *tables[] = {f->measured};
    static char out[1 << 14];
    cd_llm_op_requests_stats n;
    cdmpp_err err = {0};
    FAULT_SWEEP(v, 3) {
        v.st = ask(f,
                   "{\"id\":1,\"op\":\"gemm\",\"device\":\"h100\",\"stack\":\"vllm-1\",\"m\":8,"
                   "\"n\":256,\"k\":512}\n{\"cmd\":\"hello\"}\n",
                   out, sizeof out, &n, &v.err);
    }
    FAULT_SWEEP(v, 10) {
        cd_llm_op_oracle o = {0};
        v.st = cd_llm_op_oracle_open(
            &o,
            &(cd_llm_op_oracle_options){.model = f->model,
                                        .devices_file = "configs/devices.yaml",
                                        .measured = tables,
                                        .n_measured = 1},
            &v.err);
        cd_llm_op_oracle_free(&o);
    }
    cd_llm_op_oracle o = {0};
    assert_status(
        cd_llm_op_oracle_open(
            &o, &(cd_llm_op_oracle_options){.model = "tests/golden/model_v1.cdmpp"}, &err),
        CDMPP_EMODEL);
    cd_llm_op_oracle_free(&o);
}

TESTS(up, down, lines_refused, many, one_line_each, hello, refused)

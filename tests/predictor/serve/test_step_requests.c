/* step_requests: steps of any prompts and sequences, an answer for each line; the same seconds as
 * the table of a configuration. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "predictor/serve/serve.h"
#include "made_serving_session.h"

static fixture f;
static cd_serving_engine *e;
static cd_serving_layout l;

static void open_engine_of(const char *table) {
    const cd_serving_config c = small();
    open_session_of(&f, table);
    assert_ok(cd_serving_engine_of(&f.s, &c, &e, &l, &err));
}

static void open_engine(void) { open_engine_of(path); }

/* The answers to the text, in `out` (cap). */
static cdmpp_status ask(const char *text, char *out, size_t cap, size_t *asked, size_t *bad,
                        cdmpp_err *why) {
    const int in = open(tmp_put(&dir, "in", text, strlen(text)), O_RDONLY),
              to = open(tmp_path(&dir, "out"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(in >= 0 && to >= 0);
    const cd_step_requests o = {.m = f.s.m,
                                .e = e,
                                .l = &l,
                                .gpu = "h100",
                                .stack = "vllm-1",
                                .about = cd_serving_session_about(&f.s, "h100"),
                                .shared = 0.3,
                                .in = in,
                                .out = to,
                                .max_bytes = 4096};
    const cdmpp_status st = cd_step_requests_run(&o, asked, bad, why);
    const ssize_t got = pread(to, out, cap - 1, 0);
    out[got > 0 ? got : 0] = 0;
    (void)close(in);
    (void)close(to);
    return st;
}

static double total(const char *line) { return strtod(strstr(line, "\"total_s\":") + 10, NULL); }

TEST(one_line_each) {
    static char out[1 << 17];
    size_t asked, bad;
    const char *want[] = {
        "{\"id\":1,\"total_s\":",
        "{\"line\":2,\"total_s\":",
        "{\"line\":3,\"total_s\":0,\"host_s\":0,\"sigma\":0,\"host_bound\":false,\"operators\":[]}",
        "{\"line\":4,\"error\":{\"code\":\"ESCHEMA\",\"message\":\"unknown member 'decod', "
        "expected prefill, decode or others\"}}",
        "{\"line\":5,\"error\":{\"code\":\"ESCHEMA\",\"key\":\"prefill[1]\",\"message\":\"expected "
        "[new tokens, tokens computed before]\"}}",
        "{\"line\":6,\"error\":{\"code\":\"ERANGE\",\"key\":\"decode[0]\",",
        "{\"line\":7,\"error\":{\"code\":\"ESCHEMA\",\"key\":\"decode\",\"message\":\"expected a "
        "list, found integer\"}}",
        "{\"line\":8,\"error\":{\"code\":\"EPARSE\",",
        "{\"line\":9,\"cdmpp\":\"",
        "{\"line\":10,\"error\":{\"code\":\"ESCHEMA\",\"key\":\"cmd\",\"message\":\"expected "
        "hello, found \\\"stats\\\"\"}}",
        "{\"line\":11,\"error\":{\"code\":\"ESCHEMA\",\"message\":\"\\\"cmd\\\" goes with no other "
        "member but id\"}}",
        "{\"line\":12,\"error\":{\"code\":\"ERANGE\",\"key\":\"others\",",
        "{\"line\":13,\"total_s\":",
        "{\"line\":14,\"cdmpp\":\""};
    open_engine();
    assert_ok(
        ask("{\"id\":1,\"prefill\":[[16,0]]}\n{\"decode\":[20],\"prefill\":null,\"others\":0}\n{}"
            "\n{\"decod\":[1]}\n{\"prefill\":[[1,0],[1]]}\n{\"decode\":[0.5]}\n{\"decode\":3}\n[\n"
            "{\"cmd\":\"hello\"}\n{\"cmd\":\"stats\"}\n{\"cmd\":\"hello\",\"decode\":[1]}\n{"
            "\"others\":-1}\n"
            "{\"id\":null,\"cmd\":null,\"prefill\":null,\"decode\":[20],\"others\":null}\n{\"cmd\":"
            "\"hello\",\"decode\":null}\n",
            out, sizeof out, &asked, &bad, &err));
    char *line = strtok(out, "\n");
    for (size_t i = 0; i < sizeof want / sizeof *want; i++, line = strtok(NULL, "\n")) {
        assert_non_null(line);
        if (strncmp(line, want[i], strlen(want[i])) != 0)
            fail_msg("line %zu: %s\nexpected %s", i, line, want[i]);
        if (i == 8)
            assert_non_null(strstr(line, "\"gpu\":\"h100\",\"new\":\"device\",\"own_rows\":true,"
                                         "\"stack\":\"vllm-1\",\"dtype\":\"bfloat16\","));
    }
    assert_null(line);
    assert_int_equal(asked, 14);
    assert_int_equal(bad, 8);
    close_session(&f);
}

/* Of one prompt, and of one sequence that decodes: the tables that --json prints. */
TEST(as_a_configuration) {
    static char out[1 << 17];
    static cd_serving_rows prompt, decode;
    cd_serving_config c = small();
    cd_serving_answer a;
    size_t asked, bad;
    open_engine();
    c.concurrency = 1;
    assert_ok(cd_serving_answer_of(&f.s, &c, &a, &prompt, &decode, &err));
    assert_ok(
        ask("{\"prefill\":[[16,0]]}\n{\"decode\":[20]}\n", out, sizeof out, &asked, &bad, &err));
    assert_true(total(out) > 0);
    assert_close(total(out), prompt.total_s, 0, 0);
    assert_close(total(strchr(out, '\n')), decode.total_s, 0, 0);
    cd_serving_rows_free(&prompt);
    cd_serving_rows_free(&decode);
    close_session(&f);
}

/* The made table with prompts whose times rise with the square of their length. again: above 0:
 * each was measured again, and took so many times as long. */
static const char *quadratic(double again) {
    cd_buf b = {0}, to = {0};
    made_rows(&b);
    for (char *line = strtok(b.p, "\n"); line; line = strtok(NULL, "\n"))
        if (strncmp(line, "attention_prefill", 17) != 0) cd_buf_putf(&to, "%s\n", line);
    for (int batch = 1; batch <= MADE_BATCH; batch++)
        for (int isl = 1; isl <= MADE_TOKENS; isl++)
            for (double s = 1e-7 * isl * isl * batch, k = 0; k <= (again > 0 ? 1 : 0);
                 k++, s *= again)
                cd_buf_putf(&to, "attention_prefill,h100,vllm-1,,,,%d,0,%d,4,2,16,,,%.17g\n", isl,
                            batch, s);
    const char *at = tmp_put(&dir, "q.csv", to.p, to.n);
    cd_buf_free(&b);
    cd_buf_free(&to);
    return at;
}

/* Prompts with the same lengths are one call; what was computed before is taken off again. A step
 * of the simulation that computes a part takes as long. */
TEST(prompts) {
    static cd_serving_rows a, b;
    const cd_serving_prompt apart[] = {{2, 16, 0}, {1, 8, 16}};
    const cd_serving_batch batch = {apart, 2, 3, 40, 0, 5};
    const cd_serving_step step = {
        .prompts = 2, .isl = 16, .part = 8, .part_past = 16, .decodes = 3, .context = 40};
    double s;
    open_engine_of(quadratic(0));
    assert_ok(cd_serving_batch_rows(e, &batch, 0.3, &a, &err));
    assert_ok(cd_serving_step_rows(e, &step, 0.3, &b, &err));
    assert_int_equal(a.n, b.n);
    assert_close(a.total_s, b.total_s, 0, 0);
    assert_ok(cd_serving_step_s(e, &step, &s, &err));
    /* lengths of caches lie between points there */
    if (fabs(s / a.total_s - 1) > 0.01) fail_msg("%.9g, of the simulation %.9g", a.total_s, s);
    double runs = 0, taken = 0, sum = 0;
    for (size_t i = 0; i < a.n; i++) {
        sum += a.v[i].hidden ? 0 : a.v[i].total_s;
        if (strcmp(a.v[i].name, "attention_prompt") != 0) continue;
        if (a.v[i].count < 0) taken -= a.v[i].count;
        else runs += a.v[i].count;
    }
    assert_close(sum + a.host_s, a.total_s, 1e-12, 0);
    /* of those alone, of all, and of one token, which is what a call takes at least */
    assert_close(runs, 3 * f.s.m->attention_layers, 0, 0);
    assert_close(taken, f.s.m->attention_layers, 0, 0);
    cd_serving_rows_free(&a);
    cd_serving_rows_free(&b);
    close_session(&f);
}

/* Attention of 8 tokens behind 80 is a difference of two long ones, which are wrong by the same
 * factor: it is wrong as they are, not by as many seconds. */
TEST(sigma_of_a_difference) {
    static cd_serving_rows r;
    const cd_serving_prompt behind = {1, 8, 80};
    const cd_serving_batch batch = {&behind, 1, 0, 0, 0, 1};
    double all = 0, sigma = 0;
    open_engine_of(quadratic(1.2));
    assert_ok(cd_serving_batch_rows(e, &batch, 0.3, &r, &err));
    for (size_t i = 0; i < r.n; i++)
        if (!strcmp(r.v[i].name, "attention_prompt"))
            all += r.v[i].total_s, sigma = fmax(sigma, r.v[i].sigma);
        else assert_close(r.v[i].sigma, 0, 0, 0);
    /* two layers; what a call of one token takes is in both. The middle of two times is that of
     * their logarithms */
    assert_close(all, 2e-7 * sqrt(1.2) * (88 * 88 - 80 * 80 + 1), 1e-9, 0);
    assert_true(sigma > 0.01);
    assert_close(r.sigma * r.total_s, sigma * all, 1e-9, 0);
    cd_serving_rows_free(&r);
    close_session(&f);
}

/* What the engine's caller asks about, and lines that are refused. */
TEST(lines_refused) {
    static const struct {
        const char *line, *answer;
    } v[] = {
        {"3", "{\"line\":1,\"error\":{\"code\":\"ESCHEMA\",\"message\":\"expected a JSON object, "
              "found integer\"}}\n"},
        {"{\"prefill\":[[\"a\",1]]}",
         "{\"line\":1,\"error\":{\"code\":\"ESCHEMA\",\"key\":\"prefill[0]\",\"message\":"
         "\"expected a number, found string\"}}\n"},
        {"{\"prefill\":[7]}", "{\"line\":1,\"error\":{\"code\":\"ESCHEMA\",\"key\":\"prefill[0]\","
                              "\"message\":\"expected [new tokens, tokens computed before]\"}}\n"},
        {"{\"prefill\":7}", "{\"line\":1,\"error\":{\"code\":\"ESCHEMA\",\"key\":\"prefill\","
                            "\"message\":\"expected a list, found integer\"}}\n"},
        {"{\"decode\":[2e9]}",
         "{\"line\":1,\"error\":{\"code\":\"ERANGE\",\"key\":\"decode[0]\",\"message\":\"expected "
         "a whole number of tokens in 1..1e9, found 2e+09\"}}\n"},
        {"{\"decode\":[2.5]}",
         "{\"line\":1,\"error\":{\"code\":\"ERANGE\",\"key\":\"decode[0]\",\"message\":\"expected "
         "a whole number of tokens in 1..1e9, found 2.5\"}}\n"},
        {"{\"cmd\":1}", "{\"line\":1,\"error\":{\"code\":\"ESCHEMA\",\"key\":\"cmd\",\"message\":"
                        "\"expected a string, found integer\"}}\n"},
        {"{\"cmd\":\"\",\"x\":1}", "{\"line\":1,\"error\":{\"code\":\"ESCHEMA\",\"message\":"
                                   "\"\\\"cmd\\\" goes with no other member but id\"}}\n"},
        {"{\"others\":1}",
         "{\"line\":1,\"error\":{\"code\":\"ERANGE\",\"key\":\"others\",\"message\":\"the model "
         "has no experts, which alone see tokens of other copies\"}}\n"},
    };
    static char out[1 << 17];
    size_t asked, bad;
    open_engine();
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        assert_ok(ask(v[i].line, out, sizeof out, &asked, &bad, &err));
        assert_string_equal(out, v[i].answer);
        assert_true(asked == 1 && bad == 1);
    }
    close_session(&f);
}

/* Prompts of one length are one, whatever their order: answers are the same, and long ones are
 * flushed before the end. A signal ends the answers. */
TEST(order_and_stop) {
    static char out[1 << 17];
    cd_buf line = {0};
    size_t asked, bad;
    volatile sig_atomic_t stop = 0;
    open_engine();
    cd_serving_layout own = l;
    f.made.m.n_note = (size_t)(snprintf(f.made.m.note[0], sizeof f.made.m.note[0], "a note") > 0);
    cd_step_requests o = {.m = f.s.m,
                          .e = e,
                          .l = &own,
                          .gpu = "h100",
                          .stack = "vllm-1",
                          .kernels = "flashinfer",
                          .about = cd_serving_session_about(&f.s, "h100"),
                          .shared = 0.3,
                          .stop = &stop};
    cd_buf_puts(&line, "{\"prefill\":[[16,0],[8,0],[16,8],[16,0],[8,0]]}\n{\"prefill\":[[8,0],[16,"
                       "8],[16,0],[8,0],[16,0]]}\n{\"cmd\":\"hello\"}\n{\"decode\":[");
    for (int i = 0; i <= CD_STEP_REQUESTS_MOST; i++) cd_buf_puts(&line, i ? ",1" : "1");
    cd_buf_puts(&line, "]}\n");
    for (int i = 0; i < 700; i++)
        cd_buf_putf(&line, "{\"id\":%d,\"cmd\":\"a command that is not there\"}\n", i);
    const char *in = tmp_put(&dir, "in", line.p, line.n);
    o.in = open(in, O_RDONLY),
    o.out = open(tmp_path(&dir, "out"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_ok(cd_step_requests_run(&o, &asked, &bad, &err));
    assert_int_equal(asked, 704);
    assert_int_equal(bad, 701);
    const ssize_t got = pread(o.out, out, sizeof out - 1, 0);
    assert_true(got > 1 << 16);
    out[got] = 0;
    char *first = strtok(out, "\n"), *second = strtok(NULL, "\n"), *hello = strtok(NULL, "\n"),
         *many = strtok(NULL, "\n");
    assert_string_equal(first + 9, second + 9); /* behind the line's number */
    assert_non_null(strstr(hello, "\"kernels\":\"flashinfer\""));
    assert_non_null(strstr(hello, "\"notes\":[\"a note\"]"));
    assert_string_equal(many, "{\"line\":4,\"error\":{\"code\":\"ERANGE\",\"key\":\"decode\","
                              "\"message\":\"expected at most 65536, found 65537\"}}");
    stop = 1;
    assert_status(cd_step_requests_run(&o, &asked, &bad, &err), CDMPP_EINTERRUPTED);
    assert_string_equal(err.msg, "after 0 requests");
    (void)close(o.in);
    (void)close(o.out);
    o.in = open(in, O_RDONLY), o.out = open("/dev/full", O_WRONLY), stop = 0;
    if (o.out >= 0) assert_status(cd_step_requests_run(&o, &asked, &bad, &err), CDMPP_EIO);
    (void)close(o.in);
    (void)close(o.out);
    cd_buf_free(&line);
    close_session(&f);
}

TEST(no_memory) {
    static char out[1 << 17];
    size_t asked, bad;
    FAULT_SWEEP(v, 5) { /* an engine of its own for each: it keeps what it was asked */
        fault_off();
        open_engine();
        fault_on(&v);
        v.st = ask("{\"prefill\":[[16,0],[7,8]],\"decode\":[20]}\n{\"cmd\":\"hello\"}\n", out,
                   sizeof out, &asked, &bad, &v.err);
        fault_off();
        close_session(&f);
    }
}

TESTS(up, down, one_line_each, lines_refused, order_and_stop, as_a_configuration, prompts,
      sigma_of_a_difference, no_memory)

/* Rules of fusion from times: of a simulated back end with noise, of commands; what our executor
 * makes of test networks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "base/text/text.h"
#include "fault.h"
#include "features/sketch/sketch.h"
#include "profiler/detect/detect.h"
#include "profiler/network/onnx/onnx.h"
#include "tmp.h"

static cdmpp_err err;

/* ---- a back end whose clock is computed: bytes and operations of each group, times noise ---- */

typedef struct sim {
    cd_fusion_rules rules;
    double noise;       /* deviation of the logarithm */
    double spike;       /* share of calls that take three times as long */
    const char *refuse; /* networks with this operator fail */
    uint64_t seed, calls;
} sim;

static cd_workload *split(const sim *s, const cd_detect_network *n) {
    cd_workload *w;
    assert_ok(cd_workload_build(
        n->graph, &(cd_workload_options){.layout = CD_WORKLOAD_LAYOUT_NCHW, .rules = &s->rules}, &w,
        &err));
    assert_int_equal(w->n_unsupported, 0);
    return w;
}

static double bytes(const cd_workload *w, uint32_t buffer) {
    return 4.0 * (double)cd_graph_shape_elements(&w->buffer[buffer].shape);
}

static cdmpp_status sim_time(void *ctx, const cd_detect_network *n, unsigned repeat,
                             double *seconds, cdmpp_err *e) {
    sim *s = ctx;
    (void)repeat;
    if (s->refuse && strstr(n->name, s->refuse))
        return CD_FAIL(e, EBACKEND, "no %s here", s->refuse);
    cd_workload *w = split(s, n);
    double t = 0;
    for (uint32_t k = 0; k < w->n_group; k++) {
        t += bytes(w, w->group[k].write) * 1e-10 + w->task[w->group[k].task].flop * 1e-12;
        for (uint32_t i = 0; i < w->group[k].n_read; i++)
            t += bytes(w, w->group[k].read[i]) * 1e-10;
    }
    cd_workload_free(w);
    const double u = cd_rng_unit(s->seed, 3 * s->calls), v = cd_rng_unit(s->seed, 3 * s->calls + 1);
    const bool spiked = cd_rng_unit(s->seed, 3 * s->calls + 2) < s->spike;
    s->calls++;
    *seconds = t * exp(s->noise * sqrt(-2 * log(1 - u)) * cos(2 * acos(-1) * v)) * (spiked ? 3 : 1);
    return CDMPP_OK;
}

static cdmpp_status sim_programs(void *ctx, const cd_detect_network *n, uint32_t *out,
                                 cdmpp_err *e) {
    (void)e;
    cd_workload *w = split(ctx, n);
    *out = w->n_group;
    cd_workload_free(w);
    return CDMPP_OK;
}

static const char *const usual[] = {
    "Conv",   "DepthwiseConv", "BatchNormalization", "Relu", "Clip", "Sigmoid", "Add", "Mul",
    "Concat", "MaxPool",       "AveragePool"};
enum { N_USUAL = sizeof usual / sizeof *usual };

/* Half of all pairs, and of the operators with several readers, drawn by the seed; of chains one in
 * three. */
static sim planted(uint64_t seed, double noise) {
    sim s = {.noise = noise, .seed = seed};
    for (uint32_t a = 0; a < N_USUAL; a++) {
        for (uint32_t b = 0; b < N_USUAL; b++)
            assert_ok(cd_fusion_rules_add(
                &s.rules, NULL, usual[a], usual[b],
                cd_rng_unit(seed, 1000 + a * N_USUAL + b) < 0.5 ? CD_FUSION_FUSED : CD_FUSION_APART,
                &err));
        assert_ok(cd_fusion_rules_add(
            &s.rules, NULL, usual[a], CD_FUSION_RULES_MANY,
            cd_rng_unit(seed, 2000 + a) < 0.5 ? CD_FUSION_FUSED : CD_FUSION_APART, &err));
    }
    assert_ok(cd_fusion_rules_add(&s.rules, "Conv", "BatchNormalization", "Relu",
                                  cd_rng_unit(seed, 3000) < 0.5 ? CD_FUSION_FUSED : CD_FUSION_APART,
                                  &err));
    return s;
}

typedef struct tally {
    uint32_t right, wrong, undecided, fused, chains, branches;
} tally;

static tally count(const cd_detect *d) {
    tally t = {0};
    for (uint32_t k = 0; k < d->n; k++) {
        const cd_detect_test *x = &d->test[k];
        assert_int_equal(x->why.code, CDMPP_OK);
        assert_int_not_equal(x->known, CD_FUSION_UNKNOWN);
        if (x->answer == CD_FUSION_UNKNOWN) t.undecided++;
        else *(x->answer == x->known ? &t.right : &t.wrong) += 1;
        t.fused += x->answer == CD_FUSION_FUSED;
        t.chains += x->before != NULL;
        t.branches += !strcmp(x->second, CD_FUSION_RULES_MANY);
    }
    return t;
}

static tally detect(sim *s, const cd_detect_options *o) {
    const cd_detect_backend b = {s, sim_time, sim_programs};
    cd_detect *d;
    assert_ok(cd_detect_run(&b, o, &d, &err));
    const tally t = count(d);
    cd_detect_free(d);
    return t;
}

/* All rules of planted sets are found at 3 % noise, which also has chains and branches in it. */
TEST(test_planted) {
    tally sum = {0};
    for (uint64_t seed = 1; seed <= 6; seed++) {
        sim s = planted(seed, 0.03);
        const tally t = detect(&s, &(cd_detect_options){0});
        assert_int_equal(t.wrong, 0);
        assert_int_equal(t.undecided, 0);
        assert_true(t.right >= N_USUAL * N_USUAL);
        assert_true(t.fused > 5);
        sum.chains += t.chains;
        sum.branches += t.branches;
        cd_fusion_rules_free(&s.rules);
    }
    assert_true(sum.chains >= 3);
    assert_true(sum.branches >= 6);
}

/* Without noise one repeat is as good as many; the confidence is that of the number of repeats. */
TEST(test_chain_against_pair) {
    sim s = {0};
    assert_ok(
        cd_fusion_rules_add(&s.rules, NULL, "Conv", "BatchNormalization", CD_FUSION_FUSED, &err));
    assert_ok(
        cd_fusion_rules_add(&s.rules, NULL, "BatchNormalization", "Relu", CD_FUSION_APART, &err));
    assert_ok(
        cd_fusion_rules_add(&s.rules, "Conv", "BatchNormalization", "Relu", CD_FUSION_FUSED, &err));
    const cd_detect_backend b = {&s, sim_time, NULL};
    cd_detect *d;
    assert_ok(cd_detect_run(&b, &(cd_detect_options){.operators = "Conv,BatchNormalization,Relu"},
                            &d, &err));
    assert_int_equal(d->n, 10);
    const cd_detect_test *t = &d->test[9];
    assert_string_equal(t->before, "Conv");
    assert_string_equal(t->first, "BatchNormalization");
    assert_string_equal(t->second, "Relu");
    assert_int_equal(t->answer, CD_FUSION_FUSED);
    assert_int_equal(d->test[5].answer, CD_FUSION_APART); /* the pair alone */
    assert_int_equal(t->known, CD_FUSION_UNKNOWN);
    assert_int_equal(t->repeats, 7);
    assert_close(t->confidence, 1 - 1.0 / 128, 1e-9, 0);
    cd_detect_free(d);
    cd_fusion_rules_free(&s.rules);
}

/* Noise as large as what is told apart: most tests stay open, and of the answers few are wrong
 * (three looks at a level of 1 %); one call in ten three times too slow does no harm. */
TEST(test_noise) {
    tally loud = {0};
    for (uint64_t seed = 1; seed <= 4; seed++) {
        sim s = planted(seed, 0.5);
        const tally t = detect(&s, &(cd_detect_options){0});
        loud.right += t.right, loud.wrong += t.wrong, loud.undecided += t.undecided;
        cd_fusion_rules_free(&s.rules);
    }
    assert_true(loud.undecided > loud.right + loud.wrong);
    assert_true(loud.wrong * 25 <= loud.right + loud.wrong);
    sim s = planted(7, 0.02);
    s.spike = 0.1;
    const tally t = detect(&s, &(cd_detect_options){0});
    assert_int_equal(t.wrong, 0);
    assert_true(t.undecided * 20 <= t.right);
    cd_fusion_rules_free(&s.rules);
}

/* A network of two operators takes 1 s where they are fused, as one of them does alone; the first
 * `above` repeats of every seven are fused. */
typedef struct {
    unsigned above[4];
} script;

static cdmpp_status scripted(void *ctx, const cd_detect_network *n, unsigned repeat,
                             double *seconds, cdmpp_err *e) {
    const script *s = ctx;
    (void)e;
    assert_true(repeat < 28);
    *seconds = n->graph->n_node < 2 || repeat % 7 < s->above[repeat / 7] ? 1 : 2;
    return CDMPP_OK;
}

/* The answer of each number of repeats, and that nobody looks in between: 17 of 21 would do, and
 * the 28 that follow do not. */
TEST(test_looks) {
    static const struct {
        script s;
        unsigned repeats;
        cd_fusion_answer answer;
    } want[] = {{{{7, 0, 0, 0}}, 7, CD_FUSION_FUSED},    {{{0, 7, 7, 7}}, 7, CD_FUSION_APART},
                {{{6, 7, 0, 0}}, 14, CD_FUSION_FUSED},   {{{1, 0, 7, 7}}, 14, CD_FUSION_APART},
                {{{5, 6, 6, 0}}, 28, CD_FUSION_UNKNOWN}, {{{2, 1, 1, 7}}, 28, CD_FUSION_UNKNOWN},
                {{{5, 5, 6, 6}}, 28, CD_FUSION_FUSED},   {{{2, 2, 1, 1}}, 28, CD_FUSION_APART}};
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        script s = want[k].s;
        const cd_detect_backend b = {&s, scripted, NULL};
        cd_detect *d;
        assert_ok(cd_detect_run(&b, &(cd_detect_options){.operators = "Relu"}, &d, &err));
        if (d->test[0].repeats != want[k].repeats || d->test[0].answer != want[k].answer)
            fail_msg("%zu: %d after %u", k, d->test[0].answer, d->test[0].repeats);
        cd_detect_free(d);
    }
}

TEST(test_confidence) {
    assert_close(cd_detect_confidence(7, 7), 1 - 1 / 128.0, 1e-12, 0);
    assert_close(cd_detect_confidence(0, 7), 1 - 1 / 128.0, 1e-12, 0);
    assert_close(cd_detect_confidence(2, 10), 1 - 56 / 1024.0, 1e-9, 0);
    assert_close(cd_detect_confidence(5, 10), 0.5, 0, 0);
    assert_close(cd_detect_confidence(200, 1000), 1, 1e-9, 0);
}

/* alpha: a saving of all of the shorter time is above 0.9, and a half of it is not. */
TEST(test_alpha) {
    sim s = {0};
    /* saves two of three tensors */
    assert_ok(cd_fusion_rules_add(&s.rules, NULL, "Add", "Add", CD_FUSION_FUSED, &err));
    const cd_detect_backend b = {&s, sim_time, sim_programs};
    static const double alpha[] = {0.6, 0.7};
    for (int k = 0; k < 2; k++) {
        cd_detect *d;
        assert_ok(cd_detect_run(&b, &(cd_detect_options){.operators = "Add", .alpha = alpha[k]}, &d,
                                &err));
        assert_int_equal(d->n, 1 + !k); /* fused: a branch of Adds is tested, too */
        assert_int_equal(d->test[0].answer, k ? CD_FUSION_APART : CD_FUSION_FUSED);
        assert_close(d->test[0].saving, 2 / 3.0, 0.01, 0);
        cd_detect_free(d);
    }
    cd_fusion_rules_free(&s.rules);
}

/* A network that cannot be run leaves its tests open, with the reason; the others are decided, and
 * all can be printed. */
TEST(test_refused) {
    sim s = {.refuse = "Sigmoid"};
    const cd_detect_backend b = {&s, sim_time, sim_programs};
    cd_buf text = {0}, json = {0};
    cd_detect *d;
    cd_fusion_rules r;
    tmp_dir dir = tmp_make();
    assert_ok(cd_fusion_rules_add(&s.rules, NULL, "Relu", "Relu", CD_FUSION_FUSED, &err));
    assert_ok(cd_detect_run(&b, &(cd_detect_options){.operators = "Relu,Sigmoid,Gemm,MaxPool"}, &d,
                            &err));
    assert_int_equal(d->apart, 2); /* matrices and images */
    assert_int_equal(d->n, 14);
    for (uint32_t k = 0; k < d->n; k++) {
        const bool refused =
            !strcmp(d->test[k].first, "Sigmoid") || !strcmp(d->test[k].second, "Sigmoid");
        assert_int_equal(d->test[k].why.code, refused ? CDMPP_EBACKEND : CDMPP_OK);
        assert_true(refused == (d->test[k].answer == CD_FUSION_UNKNOWN));
    }
    assert_ok(cd_detect_text(&text, d, &err));
    cd_buf_put(&text, "", 1);
    assert_non_null(strstr(text.p, "14 tests: 1 fused, 6 apart, 7 undecided"));
    assert_non_null(strstr(text.p, "as the back end says itself: 7 of 7"));
    assert_ok(cd_detect_json(&json, d, "simulated", &err));
    /* what was found can be used */
    assert_ok(cd_fusion_rules_read(tmp_put(&dir, "rules.json", json.p, json.n), &r, &err));
    assert_int_equal(r.n, 14);
    assert_int_equal(cd_fusion_rules_find(&r, NULL, "Relu", "Relu"), CD_FUSION_FUSED);
    assert_int_equal(cd_fusion_rules_find(&r, NULL, "Relu", "MaxPool"), CD_FUSION_APART);
    assert_int_equal(cd_fusion_rules_find(&r, NULL, "Relu", "Sigmoid"), CD_FUSION_UNKNOWN);
    cd_fusion_rules_free(&r);
    cd_buf_free(&text);
    cd_buf_free(&json);
    cd_detect_free(d);
    cd_fusion_rules_free(&s.rules);
    tmp_remove(&dir);
}

TEST(test_options) {
    sim s = {0};
    const cd_detect_backend b = {&s, sim_time, NULL};
    static const cd_detect_options bad[] = {
        {.operators = "Conv,Foo"},
        {.operators = "Relu,Relu"},
        {.operators = ""},
        {.operators = "Relu", .chains = "Relu+Relu"},
        {.operators = "Relu", .chains = "Relu+Add+Relu"},
        {.operators = "Relu", .chains = "Relu+Relu+Relu+Relu+Relu"}};
    cd_detect *d;
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        assert_status(cd_detect_run(&b, &bad[k], &d, &err), CDMPP_EUSAGE);
    for (int n = 1; n < 29; n++) { /* the name that is wrong is named, not what follows it */
        char name[32] = "", list[64], want[64];
        memset(name, 'x', (size_t)n);
        snprintf(list, sizeof list, "%s,Relu", name);
        snprintf(want, sizeof want, "'%.40s': expected ", name);
        assert_status(cd_detect_run(&b, &(cd_detect_options){.operators = list}, &d, &err),
                      CDMPP_EUSAGE);
        if (strncmp(err.msg, want, strlen(want))) fail_msg("%s", err.msg);
    }
    const volatile sig_atomic_t stop = 15;
    assert_status(cd_detect_run(&b, &(cd_detect_options){.stop = &stop}, &d, &err),
                  CDMPP_EINTERRUPTED);
}

/* ---- commands ---- */

/* Every test network becomes an ONNX file that means the same: the file's tasks are the graph's. */
static cdmpp_status read_back(void *ctx, const cd_detect_network *n, unsigned repeat,
                              double *seconds, cdmpp_err *e) {
    cd_buf b = {0}, one = {0}, two = {0};
    const cd_onnx_miss *miss;
    cd_workload *w[2];
    uint32_t n_miss;
    cd_graph *g;
    (void)repeat;
    assert_ok(cd_onnx_write(n->graph, &b, &err));
    assert_ok(cd_onnx_read(tmp_put(ctx, "n.onnx", b.p, b.n), NULL, &g, &miss, &n_miss, &err));
    assert_int_equal(n_miss, 0);
    assert_ok(cd_workload_build(n->graph, NULL, &w[0], &err));
    assert_ok(cd_workload_build(g, NULL, &w[1], &err));
    w[1]->graph = w[0]->graph; /* its name */
    assert_ok(cd_workload_json(&one, w[0], &err));
    assert_ok(cd_workload_json(&two, w[1], &err));
    cd_buf_put(&one, "", 1);
    cd_buf_put(&two, "", 1);
    assert_string_equal(one.p, two.p);
    for (int k = 0; k < 2; k++) cd_workload_free(w[k]);
    cd_graph_free(g);
    cd_buf_free(&b);
    cd_buf_free(&one);
    cd_buf_free(&two);
    *seconds = 1;
    (void)e;
    return CDMPP_OK;
}

TEST(test_onnx) {
    tmp_dir dir = tmp_make();
    char all[512];
    cd_detect *d;
    snprintf(all, sizeof all, "%s", cd_detect_operator_names());
    for (char *p = all; (p = strchr(p, ' ')) != NULL;) *p = ',';
    const cd_detect_backend b = {&dir, read_back, NULL};
    assert_ok(cd_detect_run(
        &b, &(cd_detect_options){.operators = all, .repeats = 1, .size = 8, .level = 0.5}, &d,
        &err));
    assert_true(d->n_network > 400);
    cd_detect_free(d);
    tmp_remove(&dir);
}

static cd_detect_test ask(const char *command, double limit_s) {
    cd_detect_command c = {.command = command, .limit_s = limit_s};
    const cd_detect_backend b = cd_detect_command_backend(&c);
    cd_detect *d;
    assert_ok(cd_detect_run(&b, &(cd_detect_options){.operators = "Relu", .repeats = 7}, &d, &err));
    const cd_detect_test t = d->test[0];
    cd_detect_free(d);
    return t;
}

/* Files of one operator are shorter than those of two: a clock that counts the operators' names. */
TEST(test_command) {
    assert_int_equal(
        ask("echo noise; grep -o 'Relu.\\?' <\"$1\" >/dev/null && echo 2e-3", 60).answer,
        CD_FUSION_FUSED);
    assert_int_equal(ask("test -r \"$1\" && grep -c . >/dev/null <\"$1\"; n=$(grep -ao "
                         "'\"[^\"]\\?.Relu' <\"$1\" | wc -l); echo $((n + 1))e-3 >&2; echo 1e-3",
                         60)
                         .answer,
                     CD_FUSION_FUSED);
    static const char *const bad[] = {"echo 1.5 s", "exit 3",  "true",
                                      "echo nan",   "echo -1", "echo 0"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        const cd_detect_test t = ask(bad[k], 60);
        if (t.answer != CD_FUSION_UNKNOWN || !t.why.code)
            fail_msg("%s: %d %s", bad[k], t.answer, t.why.msg);
    }
    assert_non_null(strstr(ask("echo broken; exit 3", 60).why.msg, "exit status 3: broken"));
    assert_non_null(strstr(ask("echo 'a warning'; echo broken; echo; exit 3", 60).why.msg,
                           "exit status 3: broken"));
    assert_int_equal(ask("sleep 60; echo 1", 0.1).why.code, CDMPP_EBACKEND);
}

/* ---- our executor ---- */

/* It makes one program of what the rules join, and two of what they keep apart; a network has a
 * time. */
TEST(test_executor) {
    const cd_measure_options mo = {
        .threads = 1, .jobs = 1, .cache = "", .timing = {.budget_s = 0.002}};
    cd_fusion_rules r = {0};
    cd_detect_executor *x;
    cd_detect_backend b;
    cd_detect *d;
    cd_detect_executor_options o = {.target = "llvm",
                                    .hardware = cd_target_hardware(false, 1, 64),
                                    .threads = 1,
                                    .trials = 1,
                                    .budget_s = 0.002,
                                    .planted = &r};
    assert_ok(cd_fusion_rules_add(&r, NULL, "Conv", "Relu", CD_FUSION_FUSED, &err));
    assert_ok(cd_measure_open(&mo, &o.measure, &err));
    assert_ok(cd_detect_executor_open(&o, &x, &b, &err));
    assert_ok(cd_detect_run(
        &b,
        &(cd_detect_options){.operators = "Conv,Relu", .repeats = 1, .level = 0.999, .size = 16},
        &d, &err));
    assert_int_equal(d->n, 4);
    for (uint32_t k = 0; k < 4; k++) {
        const cd_detect_test *t = &d->test[k];
        assert_int_equal(t->why.code, CDMPP_OK);
        assert_int_equal(t->known, k == 1 ? CD_FUSION_FUSED : CD_FUSION_APART);
        /* four repeats are too few for this confidence */
        assert_int_equal(t->answer, CD_FUSION_UNKNOWN);
        assert_true(t->left_s > 0 && t->right_s > 0 && t->both_s > 0);
        assert_int_equal(t->repeats, 4);
    }
    cd_detect_free(d);
    cd_detect_executor_close(x);
    cd_measure_close(o.measure);
    cd_fusion_rules_free(&r);
}

static cdmpp_status one_second(void *ctx, const cd_detect_network *n, unsigned repeat,
                               double *seconds, cdmpp_err *e) {
    cd_buf b = {0};
    (void)ctx, (void)repeat;
    const cdmpp_status st = cd_onnx_write(n->graph, &b, e);
    cd_buf_free(&b);
    *seconds = 1;
    return st;
}

TEST(test_faults) {
    FAULT_SWEEP(f, 3) {
        const cd_detect_backend b = {NULL, one_second, NULL};
        cd_buf out = {0};
        cd_detect *d = NULL;
        f.st = cd_detect_run(
            &b, &(cd_detect_options){.operators = "Conv,Add", .repeats = 1, .level = 0.5}, &d,
            &f.err);
        if (!f.st) f.st = cd_detect_json(&out, d, "x", &f.err);
        if (!f.st) f.st = cd_detect_text(&out, d, &f.err);
        cd_buf_free(&out);
        cd_detect_free(d);
    }
}

TESTS(NULL, NULL, test_faults, test_executor, test_planted, test_chain_against_pair, test_noise,
      test_looks, test_confidence, test_alpha, test_refused, test_options, test_onnx, test_command)

/* Kernel predictors by adaptive sampling, on a clock that is computed: the target is reached, a
 * kill loses nothing, networks add up. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"
#include "fault.h"
#include "learner/kernels/kernels.h"
#include "profiler/network/zoo/zoo.h"
#include "tmp.h"

static cdmpp_err err;

/* Lines of files that were left out: how many, and the last one. */
static size_t n_bad;
static cdmpp_err last_bad;
static void on_bad(void *ctx, const cdmpp_err *why) {
    (void)ctx;
    n_bad++;
    last_bad = *why;
}

/* ---- a machine: rooflines with steps (vectors that are not full), noise by the draw ---- */

typedef struct machine {
    double noise, tick; /* each call advances the clock by tick */
    double at;
    const char *wild; /* kernels of this type take anything up to twice as long */
    /* programs are of very different quality, which the analytic time knows */
    bool analytic;
    size_t calls, fail_at; /* fail_at: the call that is interrupted; 0: none */
} machine;

static double law(const cd_kernel *k) {
    /* output channels in eights */
    const double idle = k->x[5] > 0 ? 8 * ceil(k->x[5] / 8) / k->x[5] : 1;
    return 2e-6 + k->x[0] * idle / (20e9 * (k->x[9] > 1 ? 1 : 1.5)) +
           (k->x[1] + k->x[2] + k->x[3]) / 15e9;
}

/* How many times slower its program is: a number that no size tells. */
static double luck(const cd_kernel *k) {
    return exp(2 * cd_rng_unit(7, (uint64_t)(k->x[0] + 3 * k->x[3] + 7 * k->x[1])));
}

static cdmpp_status clock_time(void *ctx, const cd_workload *w, uint64_t draw, cd_kernel_time *out,
                               cdmpp_err *e) {
    machine *m = ctx;
    cd_arena a = {0};
    m->at += m->tick;
    if (++m->calls == m->fail_at) return CD_FAIL(e, EINTERRUPTED, "killed");
    for (uint32_t g = 0; g < w->n_group; g++) {
        cd_kernel k;
        assert_ok(cd_kernel_of(w, g, &a, &k, &err));
        const bool wild = m->wild && !strncmp(k.type, m->wild, strlen(m->wild));
        out[g] = (cd_kernel_time){law(&k) * exp(m->noise * (2 * cd_rng_unit(draw, g) - 1)) *
                                      (wild ? 1 + cd_rng_unit(draw, 100 + g) : 1),
                                  0};
        if (m->analytic) out[g].seconds *= luck(&k), out[g].analytic_s = 1.3 * law(&k) * luck(&k);
    }
    cd_arena_free(&a);
    return CDMPP_OK;
}

static double clock_now(void *ctx) { return ((machine *)ctx)->at; }

/* ---- a prior of networks ---- */

static const char *const names[] = {"squeezenet-1.1", "resnet-18", "mobilenet-v2"};
enum { N_NAME = sizeof names / sizeof *names };
static cd_graph *graph[N_NAME];
static cd_kernel_prior *prior;
static const cd_workload_options wo = {.target = "llvm"};

static int up(void **state) {
    (void)state;
    for (size_t k = 0; k < N_NAME; k++)
        assert_ok(cd_zoo_build(names[k], &(cd_zoo_options){0}, &graph[k], &err));
    assert_ok(cd_kernel_prior_new((const cd_graph *const *)graph, N_NAME, &wo, &prior, &err));
    return 0;
}

static int down(void **state) {
    (void)state;
    cd_kernel_prior_free(prior);
    for (size_t k = 0; k < N_NAME; k++) cd_graph_free(graph[k]);
    return 0;
}

/* ---- what is drawn ---- */

/* Most draws fit; the same numbers draw the same; sizes stay within their factors, those near a
 * root near to it. */
TEST(test_draws) {
    size_t fit = 0, near = 0, kinds = 0;
    char seen[16][80] = {0};
    assert_true(cd_kernel_prior_count(prior) > 40);
    for (uint64_t d = 0; d < 100; d++) {
        cd_graph *g[3];
        cd_workload *w[3];
        cd_arena a = {0};
        assert_ok(cd_kernel_prior_draw(prior, 1, d, d, &g[0], &w[0], &err));
        assert_ok(cd_kernel_prior_draw(prior, 1, d, d, &g[1], &w[1], &err));
        assert_ok(cd_kernel_prior_draw(prior, 1, d, 1000 + d, &g[2], &w[2], &err));
        assert_true(!w[0] == !w[1]);
        fit += w[0] != NULL;
        for (uint32_t i = 0; w[0] && i < w[0]->n_group; i++) {
            cd_kernel k, same;
            assert_ok(cd_kernel_of(w[0], i, &a, &k, &err));
            assert_ok(cd_kernel_of(w[1], i, &a, &same, &err));
            assert_string_equal(k.type, same.type);
            assert_memory_equal(k.x, same.x, sizeof k.x);
            size_t at = 0;
            while (at < 16 && *seen[at] && strcmp(seen[at], k.type)) at++;
            if (at < 16 && !*seen[at]) snprintf(seen[at], sizeof seen[at], "%s", k.type), kinds++;
            if (!w[2] || w[2]->n_group != w[0]->n_group) continue;
            assert_ok(cd_kernel_of(w[2], i, &a, &same, &err));
            assert_string_equal(k.type, same.type);
            if (same.x[5] > k.x[5] * 1.25 + 8 || same.x[5] < k.x[5] / 1.25 - 8)
                fail_msg("%s: %g channels near %g", k.type, same.x[5], k.x[5]);
            near++;
        }
        for (int k = 0; k < 3; k++) {
            cd_workload_free(w[k]);
            cd_graph_free(g[k]);
        }
        cd_arena_free(&a);
    }
    assert_true(fit >= 60);
    assert_true(near >= 60);
    assert_true(kinds >= 6);
}

/* ---- sampling ---- */

static cd_kernel_sampled run(const char *path, machine *m, cd_kernel_sampler_options o, size_t *n) {
    const cd_kernel_clock c = {m, clock_time, clock_now};
    cd_kernel_samples s;
    cd_kernel_sampled r;
    assert_ok(cd_kernel_samples_open(path, true, on_bad, NULL, &s, &err));
    assert_ok(cd_kernel_sample_run(prior, &c, &o, &s, &r, &err));
    *n = s.n;
    cd_kernel_samples_free(&s);
    return r;
}

/* It ends where the share of held out samples is reached, not before; the same file goes on. */
TEST(test_target) {
    tmp_dir d = tmp_make();
    machine m = {.noise = 0.01};
    size_t n, few;
    const cd_kernel_sampled start =
        run(tmp_path(&d, "k.jsonl"), &m, (cd_kernel_sampler_options){.limit = 150}, &few);
    assert_int_equal(start.end, CD_KERNEL_END_LIMIT);
    const cd_kernel_sampled r =
        run(tmp_path(&d, "k.jsonl"), &m,
            (cd_kernel_sampler_options){.target = 0.1, .within = 0.9, .limit = 4000}, &n);
    assert_int_equal(r.end, CD_KERNEL_END_TARGET);
    assert_true(n > few);
    assert_true((double)r.score.within >= 0.9 * (double)r.score.n);
    assert_true((double)start.score.within / (double)start.score.n < 0.9);
    tmp_remove(&d);
}

/* Interrupted anywhere, with half a line left behind: the same samples in the end as without, one
 * each. */
TEST(test_resume) {
    tmp_dir d = tmp_make();
    const cd_kernel_sampler_options o = {.limit = 60, .first = 20, .per_round = 3, .around = 2};
    machine m = {.noise = 0.01}, broken = {.noise = 0.01, .fail_at = 7};
    size_t n, again;
    (void)run(tmp_path(&d, "whole.jsonl"), &m, o, &n);
    const char *path = tmp_path(&d, "k.jsonl");
    const cd_kernel_clock c = {&broken, clock_time, clock_now};
    cd_kernel_samples s;
    cd_kernel_sampled r;
    assert_ok(cd_kernel_samples_open(path, true, on_bad, NULL, &s, &err));
    assert_status(cd_kernel_sample_run(prior, &c, &o, &s, &r, &err), CDMPP_EINTERRUPTED);
    const size_t kept = s.n;
    assert_true(kept >= 6);
    cd_kernel_samples_free(&s);
    FILE *f = fopen(path, "ab");
    assert_non_null(f);
    fputs("{\"type\":\"Co", f);
    fclose(f);
    n_bad = 0;
    /* a reader does not mend it */
    assert_ok(cd_kernel_samples_open(path, false, on_bad, NULL, &s, &err));
    assert_true(s.n == kept && n_bad == 1 && last_bad.code == CDMPP_EPARSE &&
                last_bad.line == (long)kept + 1);
    cd_kernel_samples_free(&s);
    machine rest = {.noise = 0.01};
    (void)run(path, &rest, o, &again);
    assert_true(again >= 60 && n >= 60);
    cd_kernel_samples a, b;
    assert_ok(cd_kernel_samples_open(tmp_path(&d, "whole.jsonl"), false, on_bad, NULL, &a, &err));
    assert_ok(cd_kernel_samples_open(path, false, on_bad, NULL, &b, &err));
    for (size_t i = 0; i < kept; i++)
        assert_true(a.v[i].draw == b.v[i].draw && a.v[i].seconds == b.v[i].seconds);
    for (size_t i = 0; i < b.n; i++)
        for (size_t k = 0; k < i; k++)
            assert_false(!strcmp(b.v[i].kernel.type, b.v[k].kernel.type) &&
                         !memcmp(b.v[i].kernel.x, b.v[k].kernel.x, sizeof b.v[i].kernel.x));
    cd_kernel_samples_free(&a);
    cd_kernel_samples_free(&b);
    tmp_remove(&d);
}

/* The budget of seconds; held out samples are roots alone and a fifth of them; samples of later
 * rounds are near a root that is known. */
TEST(test_budget) {
    tmp_dir d = tmp_make();
    machine m = {.noise = 0.01, .tick = 1};
    size_t n, held = 0, roots = 0, later = 0;
    const cd_kernel_sampled r = run(
        tmp_path(&d, "k.jsonl"), &m,
        (cd_kernel_sampler_options){.seconds = 240, .first = 100, .per_round = 5, .target = 0.001},
        &n);
    assert_int_equal(r.end, CD_KERNEL_END_SECONDS);
    assert_int_equal(m.calls, 240);
    cd_kernel_samples s;
    assert_ok(cd_kernel_samples_open(tmp_path(&d, "k.jsonl"), false, on_bad, NULL, &s, &err));
    for (size_t i = 0; i < s.n; i++) {
        held += s.v[i].held;
        roots += s.v[i].root == s.v[i].draw;
        later += s.v[i].round > 0;
        assert_true(!s.v[i].held || s.v[i].root == s.v[i].draw);
        bool known = s.v[i].root == s.v[i].draw;
        for (size_t k = 0; k < i && !known; k++) known = s.v[k].draw == s.v[i].root && !s.v[k].held;
        assert_true(known);
    }
    /* draws that a type lacks are roots, too, and none is held out */
    assert_true(held * 14 > roots && held * 3 < roots);
    assert_true(later > 20);
    cd_kernel_samples_free(&s);
    tmp_remove(&d);
}

/* One type has times that sizes do not explain: later rounds go there. Plain sampling does not. */
TEST(test_where) {
    tmp_dir d = tmp_make();
    double share[2][2]; /* of depthwise kernels: adaptive or plain, first or later rounds */
    for (int plain = 0; plain < 2; plain++) {
        machine m = {.noise = 0.01, .wild = "DepthwiseConv"};
        size_t n, all[2] = {0}, wild[2] = {0};
        cd_kernel_samples s;
        (void)run(tmp_path(&d, plain ? "p" : "a"), &m,
                  (cd_kernel_sampler_options){.limit = 400, .plain = plain, .within = 1}, &n);
        assert_ok(
            cd_kernel_samples_open(tmp_path(&d, plain ? "p" : "a"), false, on_bad, NULL, &s, &err));
        for (size_t i = 0; i < s.n; i++) {
            if (!strcmp(s.v[i].kernel.type, "LayoutTransform")) continue;
            all[s.v[i].round > 0]++;
            wild[s.v[i].round > 0] += !strncmp(s.v[i].kernel.type, m.wild, strlen(m.wild));
        }
        cd_kernel_samples_free(&s);
        for (int k = 0; k < 2; k++) share[plain][k] = (double)wild[k] / (double)all[k];
    }
    assert_true(share[0][1] > 1.5 * share[0][0]);
    assert_true(share[1][1] < 1.2 * share[1][0]);
    tmp_remove(&d);
}

/* ---- networks ---- */

/* The sum of its kernels' predictions is near the sum of their times; a network with a kernel of no
 * samples has no answer. */
TEST(test_networks) {
    tmp_dir d = tmp_make();
    machine m = {.noise = 0.01};
    cd_kernel_samples s;
    cd_kernel_model *model;
    size_t n, unknown = 0;
    (void)run(tmp_path(&d, "k.jsonl"), &m,
              (cd_kernel_sampler_options){.limit = 1200, .target = 0.01}, &n);
    assert_ok(cd_kernel_samples_open(tmp_path(&d, "k.jsonl"), false, on_bad, NULL, &s, &err));
    assert_ok(cd_kernel_model_train(&s, -1, &model, &err));
    for (size_t k = 0; k < N_NAME; k++) {
        cd_workload *w;
        cd_arena a = {0};
        double sum, want = 0;
        assert_ok(cd_workload_build(graph[k], &wo, &w, &err));
        double *each = calloc(w->n_group, sizeof *each);
        assert_ok(cd_kernel_model_network(model, w, NULL, each, &sum, &err));
        for (uint32_t g = 0; g < w->n_group; g++) {
            cd_kernel x;
            assert_ok(cd_kernel_of(w, g, &a, &x, &err));
            want += law(&x);
            if (isnan(each[g])) print_message("%s: no answer\n", x.type), unknown++;
        }
        if (!isnan(sum)) assert_close(sum, want, 0.1, 0);
        free(each);
        cd_arena_free(&a);
        cd_workload_free(w);
    }
    cd_kernel none = {.type = "Nothing"};
    double t;
    assert_ok(cd_kernel_model_predict(model, &none, &t, &err));
    assert_true(isnan(t));
    cd_kernel_model_free(model);
    cd_kernel_samples_free(&s);
    tmp_remove(&d);
}

/* Mean error of the held out samples of a machine whose programs differ by luck. */
static double error_of_luck(tmp_dir *d, bool analytic, cd_kernel_model **out, size_t *n) {
    machine m = {.analytic = true};
    const char *path = tmp_path(d, analytic ? "with.jsonl" : "without.jsonl");
    cd_kernel_samples s;
    cd_kernel_score score;
    (void)run(path, &m, (cd_kernel_sampler_options){.limit = 600, .target = 0.05, .plain = true},
              n);
    assert_ok(cd_kernel_samples_open(path, false, on_bad, NULL, &s, &err));
    for (size_t i = 0; i < s.n && !analytic; i++) s.v[i].kernel.analytic_s = 0;
    assert_ok(cd_kernel_model_train(&s, -1, out, &err));
    assert_ok(cd_kernel_model_score(*out, &s, 0.05, &score, &err));
    cd_kernel_samples_free(&s);
    return score.error;
}

/* What no size tells the analytic time does; it goes through the file, and answers for a type
 * without samples. */
TEST(test_analytic) {
    tmp_dir d = tmp_make();
    cd_kernel_model *with, *without;
    cd_kernel k = {.type = "Nothing", .x = {1e6, 1e5, 1e4, 1e5, 1, 64, 400, 64, 400, 1, 1, 1, 3}};
    size_t n;
    double t;
    const double know = error_of_luck(&d, true, &with, &n),
                 guess = error_of_luck(&d, false, &without, &n);
    assert_true(know < 0.08 && guess > 0.3);
    assert_false(cd_kernel_model_knows(with, "Nothing"));
    assert_ok(cd_kernel_model_predict(with, &k, &t, &err));
    assert_true(isnan(t));
    k.analytic_s = 1.3e-3;
    assert_ok(cd_kernel_model_predict(with, &k, &t, &err));
    assert_close(t, 1e-3, 0.1, 0);
    assert_ok(cd_kernel_model_predict(without, &k, &t, &err));
    assert_true(isnan(t));
    cd_kernel_model_free(with);
    cd_kernel_model_free(without);
    tmp_remove(&d);
}

/* Each type of the networks has samples before the first training, however few kernels are of
 * it. */
TEST(test_each_type) {
    tmp_dir d = tmp_make();
    machine m = {.tick = 1};
    cd_kernel_samples s;
    size_t n;
    (void)run(tmp_path(&d, "k.jsonl"), &m,
              (cd_kernel_sampler_options){.first = 5, .target = 0.9, .within = 0.01}, &n);
    assert_ok(cd_kernel_samples_open(tmp_path(&d, "k.jsonl"), false, on_bad, NULL, &s, &err));
    for (size_t i = 0; i < cd_kernel_prior_count(prior); i++) {
        const char *type = cd_kernel_prior_at(prior, i)->type;
        size_t found = 0;
        for (size_t k = 0; k < s.n; k++)
            found += !s.v[k].held && s.v[k].round == 0 && !strcmp(s.v[k].kernel.type, type);
        if (found < CD_KERNEL_LEAST) fail_msg("%s: %zu samples", type, found);
    }
    cd_kernel_samples_free(&s);
    tmp_remove(&d);
}

/* ---- files ---- */

TEST(test_bad_lines) {
    static const char *const bad[] = {
        "x\n",
        "{}\n",
        "{\"type\":\"Conv\",\"x\":[1],\"seconds\":1,\"draw\":0,\"root\":0,\"round\":0,\"held\":"
        "false}\n",
        "{\"type\":\"Conv\",\"x\":[1,1,1,1,1,1,1,1,1,1,1,1,1],\"seconds\":0,\"draw\":0,\"root\":0,"
        "\"round\":0,\"held\":false}\n",
        "{\"type\":\"Conv\",\"x\":[1,1,1,1,1,1,1,1,1,1,1,1,1],\"analytic_s\":-1,\"seconds\":1,"
        "\"draw\":0,\"root\":0,\"round\":0,\"held\":false}\n",
        "{\"type\":\"Conv\",\"x\":[1,1,1,1,1,1,1,1,1,1,1,1,1],\"seconds\":1,\"draw\":0,\"root\":0,"
        "\"round\":0,\"held\":0}\n"};
    tmp_dir d = tmp_make();
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        cd_kernel_samples s;
        char text[500];
        const char *good = "{\"type\":\"Conv\",\"x\":[1,1,1,1,1,1,1,1,1,1,1,1,1],\"seconds\":1,"
                           "\"draw\":0,\"root\":0,\"round\":0,\"held\":false}\n";
        const int n = snprintf(text, sizeof text, "%s%s%s", good, bad[k], good);
        n_bad = 0;
        assert_ok(cd_kernel_samples_open(tmp_put(&d, "k.jsonl", text, (size_t)n), k & 1, on_bad,
                                         NULL, &s, &err));
        assert_true(s.n == 2 && n_bad == 1 && last_bad.line == 2 &&
                    strstr(last_bad.path, "k.jsonl"));
        cd_kernel_samples_free(&s);
    }
    tmp_remove(&d);
}

static cdmpp_status same_time(void *ctx, const cd_workload *w, uint64_t draw, cd_kernel_time *out,
                              cdmpp_err *e) {
    (void)ctx, (void)draw, (void)e;
    for (uint32_t g = 0; g < w->n_group; g++) out[g] = (cd_kernel_time){1e-3, 2e-3};
    return CDMPP_OK;
}

/* All calls but the training of trees, for which these samples are too few. */
TEST(test_faults) {
    tmp_dir d = tmp_make();
    machine m = {0};
    const cd_kernel_clock c = {&m, same_time, clock_now};
    const char *path = tmp_path(&d, "k.jsonl");
    FAULT_SWEEP(f, 3) {
        cd_kernel_prior *p = NULL;
        cd_kernel_samples s;
        cd_kernel_sampled r;
        f.step = 11;
        unlink(path);
        f.st = cd_kernel_samples_open(path, true, on_bad, NULL, &s, &f.err);
        if (!f.st) f.st = cd_kernel_prior_new((const cd_graph *const *)graph, 1, &wo, &p, &f.err);
        if (!f.st)
            f.st = cd_kernel_sample_run(p, &c, &(cd_kernel_sampler_options){.limit = 4, .first = 2},
                                        &s, &r, &f.err);
        cd_kernel_prior_free(p);
        cd_kernel_samples_free(&s);
        if (f.st) continue;
        f.st = cd_kernel_samples_open(path, false, on_bad, NULL, &s, &f.err);
        cd_kernel_samples_free(&s);
    }
    tmp_remove(&d);
}

TESTS(up, down, test_faults, test_draws, test_target, test_resume, test_budget, test_where,
      test_networks, test_analytic, test_each_type, test_bad_lines)

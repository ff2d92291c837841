/* Searches over made-up objectives: outcome, workers, failures, kills. */
#include "learner/hpo/hpo.h"
#include "check.h"
#include "fault.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "base/core/core.h"
#include "scratch.h"

static const char space_yaml[] = "tune: {trials: 45, budget: train.rounds, min_budget: 10, "
                                 "max_budget: 270, eta: 3, in_flight: 4}\n"
                                 "space:\n"
                                 "  train.eta: {log_real: [0.001, 1]}\n"
                                 "  train.lambda: {log_real: [0.01, 100]}\n"
                                 "  train.subsample: {real: [0.2, 1]}\n"
                                 "  train.max_depth: {int: [2, 20]}\n"
                                 "  train.loss: {choice: [squared, huber, mape]}\n";

/* What a configuration is worth with an endless budget: 0 at the planted optimum. */
static double planted(const cd_config *c) {
    const double a = log(c->train_eta / 0.05), b = log(c->train_lambda / 3),
                 d = c->train_subsample - 0.7;
    const double e = ((double)c->train_max_depth - 9) / 6;
    return 0.2 * a * a + 0.05 * b * b + 4 * d * d + e * e +
           (c->train_loss == CD_TREE_LOSS_HUBER ? 0 : 0.4);
}

typedef struct {
    uint32_t n_call;
    /* (trial, rung) started; only where the number of the trial is known */
    uint32_t calls[64][8];
} counts;

typedef struct {
    uint64_t noise;
    bool jitter, failing;
    counts *count; /* shared with children; NULL: none */
    double cost;   /* sum of budgets, by the events */
    size_t n_event[3];
    bool open[512];   /* events: RUNNING without an end so far */
    uint32_t stop_at; /* calls after which it interrupts; 0: never */
} plan;

/* The name of a trial is its eta: distinct enough. */
static uint64_t key_of(const cd_config *c) {
    return (uint64_t)(c->train_eta * 1e9) * 31 + (uint64_t)c->train_max_depth;
}

static cdmpp_status objective(void *ctx, const cd_config *c, double budget, int worker,
                              double *error, cdmpp_err *err) {
    plan *p = ctx;
    const uint64_t k = key_of(c);
    (void)worker;
    assert_true((double)c->train_rounds == budget);
    if (p->jitter)
        nanosleep(&(struct timespec){0, (long)(cd_rng_at((uint64_t)(uintptr_t)&err, k) % 300000)},
                  NULL);
    if (p->count) {
        const uint32_t n = __atomic_add_fetch(&p->count->n_call, 1, __ATOMIC_SEQ_CST);
        if (p->stop_at && n >= p->stop_at) return CD_FAIL(err, EINTERRUPTED, "told to");
    }
    if (p->failing && c->train_max_depth % 2)
        return CD_FAIL(err, ENUMERIC, "loss is not finite at depth %lld",
                       (long long)c->train_max_depth);
    *error = planted(c) + 20 / budget + 0.1 * (cd_rng_unit(p->noise, k) - 0.5) * sqrt(10 / budget);
    if (p->failing && c->train_loss == CD_TREE_LOSS_SQUARED) *error = NAN;
    return CDMPP_OK;
}

static void on_event(void *ctx, const cd_hpo_event *e) {
    plan *p = ctx;
    const size_t k = e->trial * 8 + e->rung;
    p->n_event[e->state]++;
    if (e->state == CD_HPO_RUNNING) p->cost += e->budget;
    if (!e->known) assert_true(k >= 512 || p->open[k] == (e->state != CD_HPO_RUNNING));
    if (k < 512) p->open[k] = e->state == CD_HPO_RUNNING;
    if (p->count && !e->known && e->state == CD_HPO_RUNNING)
        __atomic_add_fetch(&p->count->calls[e->trial][e->rung], 1, __ATOMIC_SEQ_CST);
}

typedef struct {
    cd_hpo_space s;
    cd_config base;
} fixture;

static void start(fixture *f, const char *text, const char *const *set, size_t n_set) {
    cdmpp_err err = {0};
    const char *path = scratch("space.yaml");
    scratch_write(path, text, strlen(text));
    if (cd_hpo_space_load(&f->s, path, set, n_set, &err))
        fail_msg("%s", f->s.diag.n ? f->s.diag.text.p : err.msg);
    assert_ok(cd_config_init(&f->base, &err));
}

static void stop(fixture *f) {
    cd_config_free(&f->base);
    cd_hpo_space_free(&f->s);
}

static cdmpp_status tune(fixture *f, plan *p, int jobs, const char *journal, cd_hpo_result *out,
                         cdmpp_err *err) {
    const cd_hpo_options s = {&f->s, &f->base, journal, "data", objective, on_event, p};
    cd_threads *pool = NULL;
    assert_int_equal(cd_threads_new(jobs, &pool, err), CDMPP_OK);
    const cdmpp_status st = cd_hpo(&s, pool, out, err);
    cd_threads_free(pool);
    return st;
}

static const char *fresh(const char *name) {
    const char *p = scratch(name);
    unlink(p);
    return p;
}

static double worth(const fixture *f, const cd_hpo_result *r, size_t trial) {
    cdmpp_err err = {0};
    cd_config c;
    assert_ok(cd_hpo_space_config(&f->s, &f->base, &r->trial[trial], 270, &c, &err));
    const double w = planted(&c);
    cd_config_free(&c);
    return w;
}

/* The same sum of budgets, spent on full trainings of random configurations. */
static double random_search(fixture *f, uint64_t seed, double cost) {
    cdmpp_err err = {0};
    cd_arena a = {0};
    cd_hpo_trial *t;
    size_t n, best = 0;
    double least = INFINITY;
    const int sampler = f->s.tune.sampler;
    const int64_t trials = f->s.tune.trials;
    plan p = {.noise = seed};
    f->s.tune.sampler = CD_HPO_SAMPLER_RANDOM;
    f->s.tune.trials = (int64_t)(cost / 270);
    assert_ok(cd_hpo_space_sample(&f->s, &f->base, &a, &t, &n, &err));
    for (size_t i = 0; i < n; i++) {
        cd_config c;
        double e = 0;
        assert_ok(cd_hpo_space_config(&f->s, &f->base, &t[i], 270, &c, &err));
        assert_ok(objective(&p, &c, 270, 0, &e, &err));
        if (e < least) least = e, best = i;
        cd_config_free(&c);
    }
    const cd_hpo_result r = {.trial = t};
    const double w = worth(f, &r, best);
    f->s.tune.sampler = sampler;
    f->s.tune.trials = trials;
    cd_arena_free(&a);
    return w;
}

TEST(beats_random_search_of_equal_cost) {
    enum { SEEDS = 12 };
    double ours = 0, theirs = 0, cost = 0;
    size_t wins = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        cdmpp_err err = {0};
        fixture f;
        cd_hpo_result r;
        char set[32];
        const char *const sets[] = {set, "tune.try_base=false", "tune.trials=81"};
        plan p = {.noise = seed};
        snprintf(set, sizeof set, "tune.seed=%d", (int)seed);
        start(&f, space_yaml, sets, 3);
        assert_ok(tune(&f, &p, 1, "/dev/null", &r, &err));
        const double a = worth(&f, &r, r.best), b = random_search(&f, seed, p.cost);
        ours += a / SEEDS, theirs += b / SEEDS, cost += p.cost / SEEDS;
        wins += a < b;
        cd_hpo_result_free(&r);
        stop(&f);
    }
    print_message("excess error, mean of %d seeds: %.3f, random search %.3f (cost %.0f rounds); "
                  "better in %zu\n",
                  SEEDS, ours, theirs, cost, wins);
    assert_true(ours < 0.7 * theirs);
    assert_true(wins >= SEEDS * 2 / 3);
}

static void same_outcome(const fixture *f, const cd_hpo_result *a, const cd_hpo_result *b) {
    (void)f;
    assert_int_equal(a->n_trial, b->n_trial);
    assert_int_equal(a->n_rung, b->n_rung);
    assert_memory_equal(a->error, b->error, a->n_trial * a->n_rung * sizeof *a->error);
    assert_int_equal(a->best, b->best);
    assert_true(a->best_error == b->best_error);
}

TEST(any_number_of_workers) {
    cdmpp_err err = {0};
    fixture f;
    cd_hpo_result one, r;
    plan p = {.noise = 1};
    start(&f, space_yaml, NULL, 0);
    assert_ok(tune(&f, &p, 1, "/dev/null", &one, &err));
    assert_int_equal(p.n_event[CD_HPO_RUNNING], one.n_new);
    for (int jobs = 2; jobs <= 6; jobs += 2) {
        p = (plan){.noise = 1, .jitter = true};
        assert_ok(tune(&f, &p, jobs, "/dev/null", &r, &err));
        same_outcome(&f, &one, &r);
        assert_int_equal(r.n_new, one.n_new);
        cd_hpo_result_free(&r);
    }
    cd_hpo_result_free(&one);
    stop(&f);
}

static void failed_trials_are_the_worst(void **s) {
    (void)s;
    cdmpp_err err = {0};
    fixture f;
    cd_hpo_result r;
    cd_buf b = {0};
    size_t failed = 0;
    plan p = {.failing = true};
    start(&f, space_yaml, NULL, 0);
    assert_ok(tune(&f, &p, 2, "/dev/null", &r, &err));
    for (size_t t = 0; t < r.n_trial; t++) {
        const bool odd = strtol(strstr(r.trial[t].params, "max_depth\":") + 11, NULL, 10) % 2,
                   nan = strstr(r.trial[t].params, "\"squared\"") != NULL;
        assert_true(isinf(r.error[t * r.n_rung]) == (odd || nan));
        assert_true((r.reason[t] != NULL) == (odd || nan));
        if (odd) assert_non_null(strstr(r.reason[t], "loss is not finite at depth"));
        else if (nan)
            assert_string_equal(r.reason[t], "the validation error is not a finite number");
        if (odd || nan) assert_true(isnan(r.error[t * r.n_rung + 1]));
        failed += odd || nan;
    }
    assert_true(failed > 10 && failed < r.n_trial);
    assert_int_equal(r.n_failed, failed);
    assert_int_equal(p.n_event[CD_HPO_FAILED], failed);
    assert_null(r.reason[r.best]);
    cd_hpo_result_table(&b, &r, &f.s, 1000);
    assert_non_null(strstr(b.p, "failed  {"));
    cd_buf_free(&b);
    cd_hpo_result_free(&r);
    f.s.param[3].lo = f.s.param[3].hi = 3; /* all of them */
    f.s.tune.try_base = false;
    assert_status(tune(&f, &p, 2, "/dev/null", &r, &err), CDMPP_ENUMERIC);
    assert_non_null(
        strstr(err.msg, "trials failed, the first with: loss is not finite at depth 3"));
    cd_hpo_result_free(&r);
    stop(&f);
}

/* Three lives of a search, each stopped in a training; returns the trainings that were not in
 * vain. */
static uint32_t stopped_three_times(fixture *f, const char *journal) {
    uint32_t done = 0;
    for (uint32_t k = 0; k < 3; k++) {
        cdmpp_err err = {0};
        cd_hpo_result r;
        counts c = {0};
        plan p = {.count = &c, .stop_at = 8 + k};
        assert_status(tune(f, &p, 1, journal, &r, &err), CDMPP_EINTERRUPTED);
        assert_int_equal(r.n_known, done);
        done += c.n_call - 1; /* the last one was interrupted */
        cd_hpo_result_free(&r);
    }
    return done;
}

/* Interrupted, continued, made longer: nothing twice, nothing lost. */
TEST(goes_on) {
    cdmpp_err err = {0};
    fixture f;
    cd_hpo_result whole, r;
    counts c = {0};
    plan p = {.count = &c};
    const char *journal = fresh("goes_on.jsonl"), *const more = "tune.trials=60";
    start(&f, space_yaml, NULL, 0);
    assert_ok(tune(&f, &p, 1, "/dev/null", &whole, &err));
    const uint32_t all = c.n_call, done = stopped_three_times(&f, journal);
    c = (counts){0};
    assert_ok(tune(&f, &p, 2, journal, &r, &err));
    same_outcome(&f, &whole, &r);
    assert_int_equal(c.n_call, all - done);
    assert_int_equal(r.n_known, done);
    cd_hpo_result_free(&r);
    stop(&f);
    start(&f, space_yaml, &more, 1); /* a longer search keeps what the shorter one knows */
    c = (counts){0};
    assert_ok(tune(&f, &p, 2, journal, &r, &err));
    assert_int_equal(r.n_trial, 60);
    assert_true(r.n_known >= 45 && c.n_call < all);
    assert_true(r.best_error <= whole.best_error + 0.05);
    cd_hpo_result_free(&r);
    f.base.train_colsample = 0.25; /* another base is another search */
    assert_status(tune(&f, &p, 1, journal, &r, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.path + strlen(err.path) - 13, "goes_on.jsonl");
    cd_hpo_result_free(&r);
    cd_hpo_result_free(&whole);
    stop(&f);
}

/* A process that searches, killed after `wait_ns` (< 0: left alone). Was it through? */
static bool one_life(fixture *f, const char *journal, counts *c, long wait_ns) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        plan q = {.jitter = true, .count = c};
        cdmpp_err e = {0};
        cd_hpo_result g;
        _exit(tune(f, &q, 2, journal, &g, &e) == CDMPP_OK ? 0 : 1);
    }
    assert_true(child > 0);
    if (wait_ns >= 0) {
        nanosleep(&(struct timespec){0, wait_ns}, NULL);
        kill(child, SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) return false;
    assert_int_equal(WEXITSTATUS(status), 0);
    return true;
}

/* kill -9 at random moments until it is through: nothing that was in the journal is
 * trained again, and the outcome is that of one piece. */
TEST(survives_kills) {
    cdmpp_err err = {0};
    fixture f;
    cd_hpo_result whole, r;
    plan p = {0};
    const char *journal = fresh("kill.jsonl");
    counts *c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(c != MAP_FAILED);
    start(&f, space_yaml, NULL, 0);
    assert_ok(tune(&f, &p, 1, "/dev/null", &whole, &err));
    uint32_t kills = 0;
    for (bool through = false; !through;) {
        const uint32_t before = c->n_call;
        const size_t known = scratch_lines(journal);
        through =
            one_life(&f, journal, c, kills < 12 ? (long)(cd_rng_at(17, kills) % 6000000) : -1);
        kills += !through;
        /* what one life started is in the journal but for the two under way */
        const size_t now = scratch_lines(journal);
        assert_true(now >= known && c->n_call - before <= now - known + 2 + (known == 0));
    }
    assert_ok(tune(&f, &p, 1, journal, &r, &err));
    same_outcome(&f, &whole, &r);
    assert_int_equal(r.n_new, 0);
    assert_int_equal(r.n_known, whole.n_new);
    assert_true(c->n_call >= whole.n_new && c->n_call <= whole.n_new + 2 * kills);
    print_message("%u kills, %u trainings for %zu results\n", kills, c->n_call, whole.n_new);
    cd_hpo_result_free(&r);
    cd_hpo_result_free(&whole);
    munmap(c, sizeof *c);
    stop(&f);
}

TEST(events_and_table) {
    cd_buf b = {0};
    const cd_hpo_event run = {3, 1, 30, NAN, CD_HPO_RUNNING, false, 0, "{\"train.eta\":0.1}", ""};
    const cd_hpo_event done = {3, 1, 30, 0.25, CD_HPO_DONE, true, 1.5, "{}", ""};
    const cd_hpo_event failed = {3, 1, 30, NAN, CD_HPO_FAILED, false, 1.5, "{}", "a \"b\""};
    cd_hpo_event_json(&b, &run);
    cd_hpo_event_json(&b, &done);
    cd_hpo_event_json(&b, &failed);
    assert_string_equal(
        b.p, "{\"trial\":3,\"rung\":1,\"budget\":30,\"state\":\"running\",\"valid_error\":null,"
             "\"params\":{\"train.eta\":0.1}}\n"
             "{\"trial\":3,\"rung\":1,\"budget\":30,\"state\":\"done\",\"valid_error\":0.25,"
             "\"known\":true,\"seconds\":1.500,\"params\":{}}\n"
             "{\"trial\":3,\"rung\":1,\"budget\":30,\"state\":\"failed\",\"valid_error\":null,"
             "\"reason\":\"a \\\"b\\\"\",\"known\":false,\"seconds\":1.500,\"params\":{}}\n");
    cd_buf_free(&b);
}

/* Every allocation of reading, drawing and searching fails once: an error, nothing leaked.
 * Inside a trial it is that trial's failure, like any other. */
static void out_of_memory(void **s) {
    (void)s;
    const char *path = scratch("space.yaml");
    const char *const few = "tune.trials=4";
    scratch_write(path, space_yaml, strlen(space_yaml));
    FAULT_SWEEP(w, 1) {
        fixture f = {0};
        cd_hpo_result r = {0};
        plan p = {0};
        const cd_hpo_options in = {&f.s, &f.base, "/dev/null", "data", objective, on_event, &p};
        w.st = cd_hpo_space_load(&f.s, path, &few, 1, &w.err);
        if (!w.st) w.st = cd_config_init(&f.base, &w.err);
        if (!w.st) w.st = cd_hpo(&in, NULL, &r, &w.err);
        if (w.st == CDMPP_ENUMERIC) w.st = CDMPP_ENOMEM; /* no trial was left */
        cd_hpo_result_free(&r);
        stop(&f);
    }
}

TESTS(NULL, NULL, out_of_memory, beats_random_search_of_equal_cost, any_number_of_workers,
      failed_trials_are_the_worst, goes_on, survives_kills, events_and_table)

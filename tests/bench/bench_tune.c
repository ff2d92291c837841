/* bench_tune MODEL TASKS RECORDS [TRIALS] -- what a search costs beside measuring.
 *
 * The task, target and hardware are those of the first record of a log. Programs are not run: what
 * they take is the whole model's answer, give or take 5 % that depend on the program. Parts: how
 * many candidates a second can be made, lowered and scored; searches: batches of ten, candidates
 * looked at a second (made, lowered, scored, chosen among, and learned from) and milliseconds a
 * trial. One thread. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "base/io/io.h"
#include "predictor/score/scorer.h"
#include "predictor/tune/rank/rank.h"
#include "predictor/tune/session/session.h"
#include "predictor/tune/space/space.h"

enum { DRAWS = 4000, BATCH = 10 };

typedef struct {
    cd_tune_ranker ranker;
    const cd_tune_ranker_kind *kind;
    cd_tune_ranker *real;
    size_t ranked;
    double rank_s, learn_s;
} counter;

static cdmpp_status count_rank(cd_tune_ranker *r, const cd_tune_task *t, const cd_tune_cand *c,
                               size_t n, double *score, cdmpp_err *err) {
    counter *k = (counter *)r;
    const double from = cd_clock_process();
    const cdmpp_status st = k->real->kind->rank(k->real, t, c, n, score, err);
    k->rank_s += cd_clock_process() - from;
    k->ranked += n;
    return st;
}
static cdmpp_status count_learn(cd_tune_ranker *r, const cd_tune_task *t, const cd_tune_cand *c,
                                const double *s, size_t n, cdmpp_err *err) {
    counter *k = (counter *)r;
    const double from = cd_clock_process();
    const cdmpp_status st = k->real->kind->learn(k->real, t, c, s, n, err);
    k->learn_s += cd_clock_process() - from;
    return st;
}
static bool count_ready(const cd_tune_ranker *r, const cd_tune_task *t) {
    const counter *k = (const counter *)r;
    return k->real->kind->ready(k->real, t);
}
static cd_tune_ranker_kind counting = {
    .name = "counting", .rank = count_rank, .learn = count_learn, .ready = count_ready};

static void print_parts(cd_tune_space *space, cd_tune_ranker *r, cdmpp_err *err) {
    cd_arena mem = {0};
    cd_tune_cand *c = calloc(DRAWS, sizeof *c), d;
    double *score = calloc(DRAWS, sizeof *score);
    size_t n = 0, tries = 0, sum = 0, valid = 0;
    double from = cd_clock_process();
    for (; n < DRAWS && tries < 50 * DRAWS; tries++)
        if (!space->kind->draw(space, tries, &d, err)) cd_tune_cand_copy(&mem, &d, &c[n++], err);
    const double draw_s = cd_clock_process() - from;
    from = cd_clock_process();
    size_t made = 0;
    for (size_t i = 0; i < n; i++) {
        const cdmpp_status st = space->kind->change(space, &c[i], i, &d, err);
        made += !st;
    }
    const double change_s = cd_clock_process() - from;
    from = cd_clock_process();
    r->kind->rank(r, &space->of, c, n, score, err);
    const double rank_s = cd_clock_process() - from;
    from = cd_clock_process();
    r->kind->rank(r, &space->of, c, n, score, err);
    const double again_s = cd_clock_process() - from;
    for (size_t i = 0; i < n; i++) {
        sum += c[i].n_step;
        valid += isfinite(score[i]);
    }
    printf("draw    %8.0f /s  (%.0f %% of draws are programs, %.1f steps, %.1f choices)\n",
           (double)n / draw_s, 100.0 * (double)n / (double)tries, (double)sum / (double)n,
           n ? (double)c[0].n_choice : 0);
    printf("change  %8.0f /s  (%.0f %% are programs)\n", (double)made / change_s,
           100.0 * (double)made / (double)n);
    printf("rank    %8.0f /s  (%.0f %% can be lowered)\n", (double)n / rank_s,
           100.0 * (double)valid / (double)n);
    printf("again   %8.0f /s\n", (double)n / again_s);
    cd_arena_free(&mem);
    free(c);
    free(score);
}

static cdmpp_status run(const cd_tune_tuner *t, const cd_tune_ranker_setup *rs,
                        cd_tune_space *space, cd_tune_ranker *clock, size_t trials,
                        cdmpp_err *err) {
    counter k = {.ranker = {&counting}};
    cd_tune_search *s = NULL;
    const cd_tune_cand *c;
    double score[BATCH], seconds[BATCH], best = INFINITY, ask_s = 0;
    size_t n = 0, got = 1;
    if (t->ranker) CD_TRY(t->ranker->open(rs, &k.real, err));
    counting.seconds = t->ranker && t->ranker->seconds;
    const cd_tune_search_setup setup = {
        .space = space, .ranker = t->ranker ? &k.ranker : NULL, .seed = 1, .epsilon = -1};
    const double open = cd_clock_process();
    cdmpp_status st = t->search->open(&setup, &s, err);
    const double open_s = cd_clock_process() - open;
    while (!st && n < trials && got) {
        double from = cd_clock_process();
        st = s->kind->ask(s, BATCH, &c, &got, err);
        ask_s += cd_clock_process() - from;
        if (!st) st = clock->kind->rank(clock, &space->of, c, got, score, err);
        for (size_t i = 0; !st && i < got; i++) {
            seconds[i] = isfinite(score[i])
                             ? exp(-score[i] + 0.1 * (cd_rng_unit(1, c[i].key) - 0.5))
                             : CD_TUNE_FAILED_S;
            best = fmin(best, seconds[i]);
        }
        from = cd_clock_process();
        if (!st) st = s->kind->tell(s, c, seconds, got, err);
        ask_s += cd_clock_process() - from;
        n += got;
    }
    printf("%-10s %4zu trials  best %.3e s  open %.3f s  %7.2f ms/trial", t->name, n, best, open_s,
           1e3 * ask_s / (double)n);
    if (t->ranker)
        printf("  %7.0f candidates/s  (%.0f %% ranking, %.0f %% learning)",
               (double)k.ranked / ask_s, 100 * k.rank_s / ask_s, 100 * k.learn_s / ask_s);
    printf("\n");
    if (s) s->kind->free(s);
    if (k.real) k.real->kind->free(k.real);
    return st;
}

static cdmpp_status bench(char **arg, size_t trials, cdmpp_err *err) {
    cd_arena mem = {0};
    cd_model *m = NULL;
    cd_task_registry *tasks = NULL;
    cd_tune_ranker *clock = NULL;
    cd_tune_space *space = NULL;
    cd_record r;
    char *text, target[400];
    size_t n;
    bool naive;
    CD_TRY(cd_model_load(arg[0], &m, err));
    CD_TRY(cd_task_registry_new(&tasks, err));
    CD_TRY(cd_task_registry_load(tasks, arg[1], err));
    CD_TRY(cd_file_read(arg[2], 0, &text, &n, err));
    CD_TRY(cd_record_read(&mem, text, (size_t)(strchr(text, '\n') - text), &r, err));
    snprintf(target, sizeof target, "%.*s", (int)r.target.n, r.target.p);
    cd_tune_task t = {.task = cd_task_registry_find(tasks, r.workload_key),
                      .target = target,
                      .hardware = r.hardware,
                      .gpu = cd_target_is_gpu(r.target)};
    if (!t.task) return CD_FAIL(err, ENOTASK, "%s: no task for %s", arg[1], arg[2]);
    t.flop = cd_task_flop(t.task);
    const cd_tune_ranker_setup rs = {.model = m, .seed = 1};
    CD_TRY(cd_tune_space_sketch(&t, 1, &space, &naive, err));
    CD_TRY(cd_tune_rank_twostage.open(&rs, &clock, err));
    printf("%s: %s\n", t.task->workload_key, target);
    print_parts(space, clock, err);
    for (size_t i = 0; cd_tune_tuner_at(i); i++)
        CD_TRY(run(cd_tune_tuner_at(i), &rs, space, clock, trials, err));
    clock->kind->free(clock);
    cd_tune_space_free(space);
    cd_mem_free(text);
    cd_arena_free(&mem);
    cd_task_registry_free(tasks);
    cd_model_free(m);
    return CDMPP_OK;
}

int main(int argc, char **argv) {
    cdmpp_err err = {0};
    char line[512];
    if (argc < 4) {
        fprintf(stderr, "usage: bench_tune MODEL TASKS RECORDS [TRIALS]\n");
        return 2;
    }
    if (!bench(argv + 1, argc > 4 ? (size_t)atol(argv[4]) : 100, &err)) return 0;
    fprintf(stderr, "bench_tune: %s\n", cdmpp_err_format(&err, line, sizeof line));
    return 1;
}

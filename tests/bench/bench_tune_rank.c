/* bench_tune_rank TASKS N_TRAIN LOG... -- how well the rankers by XGBoost rank programs that they have not seen.
 *
 * Of every log (of one task), N_TRAIN random records or half of them to learn from, whichever is less, up to 400 of
 * the rest to rank. Per log and in the mean over logs: Spearman's coefficient against the measured latency, how much
 * of the best of the rest their best of 10 reaches, and the CPU time of features and of a training. One thread. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/io/file.h"
#include "base/core/rng.h"
#include "features/program/program.h"
#include "predictor/tune/core/tune.h"
#include "spearman.h"

enum { MAX_RECORDS = 8000, MAX_TEST = 400, KINDS = 4 };

static const cd_tune_ranker_kind *const kinds[KINDS] = {&cd_tune_rank_ansor, &cd_tune_rank_knob, &cd_tune_rank_itervar,
                                                        &cd_tune_rank_curve};

typedef struct {
    cd_arena a;
    cd_tune_cand *cand;
    double *seconds;
    size_t n;
    cd_tune_task task;
} set;

typedef struct {
    double rho, best, learn_s, fit_s, rank_s;
    size_t n;
} figures;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(cdmpp_status st, const cdmpp_err *err) {
    if (!st) return;
    fprintf(stderr, "bench_tune_rank: %s\n", err->msg);
    exit(1);
}

static void enter(set *s, const cd_task_registry *tasks, const char *line, size_t n) {
    cdmpp_err err = {0};
    cd_record r;
    char *copy = cd_arena_alloc(&s->a, n, 1);
    if (!copy || s->n == MAX_RECORDS) return;
    memcpy(copy, line, n);
    if (cd_record_read(&s->a, copy, n, &r, &err) || r.error_no || !r.n_cost) return;
    double sum = 0;
    for (uint32_t k = 0; k < r.n_cost; k++) sum += r.cost_s[k];
    if (sum / r.n_cost >= CD_TUNE_FAILED_S) return;
    if (!s->n) {
        char *target = cd_arena_zalloc(&s->a, r.target.n + 1, 1);
        memcpy(target, r.target.p, r.target.n);
        s->task = (cd_tune_task){.task = cd_task_registry_find(tasks, r.workload_key), .target = target, .hardware = r.hardware,
                                 .gpu = cd_target_is_gpu(r.target), .flop = -1};
    }
    s->seconds[s->n] = sum / r.n_cost;
    s->cand[s->n++] = (cd_tune_cand){.key = cd_tune_cand_key(r.step, r.n_step), .n_step = r.n_step, .step = r.step};
}

static void load(set *s, const cd_task_registry *tasks, const char *path) {
    cdmpp_err err = {0};
    cd_file_lines *l;
    char *text;
    size_t n;
    cd_arena_reset(&s->a);
    s->n = 0;
    must(cd_file_lines_open(path, 0, &l, &err), &err);
    while (!cd_file_lines_next(l, &text, &n, &err) && text)
        if (!cd_record_is_comment(text, n)) enter(s, tasks, text, n);
    cd_file_lines_close(l);
    for (size_t i = s->n; i > 1; i--) { /* shuffle */
        const size_t j = cd_rng_at(7, i) % i;
        const cd_tune_cand c = s->cand[j];
        const double t = s->seconds[j];
        s->cand[j] = s->cand[i - 1];
        s->seconds[j] = s->seconds[i - 1];
        s->cand[i - 1] = c;
        s->seconds[i - 1] = t;
    }
}

/* The best of all over the best of the 10 that score highest. */
static double best_of_10(const double *score, const double *seconds, size_t n) {
    bool used[MAX_TEST] = {false};
    double all = INFINITY, ten = INFINITY;
    for (size_t i = 0; i < n; i++) all = fmin(all, seconds[i]);
    for (int k = 0; k < 10; k++) {
        size_t top = n;
        for (size_t i = 0; i < n; i++)
            if (!used[i] && (top == n || score[i] > score[top])) top = i;
        if (top == n) break;
        used[top] = true;
        ten = fmin(ten, seconds[top]);
    }
    return all / ten;
}

static void trial(const set *s, size_t n_train, const cd_tune_ranker_kind *kind, figures *f) {
    cdmpp_err err = {0};
    const cd_tune_ranker_setup setup = {.seed = 1};
    const size_t half = s->n / 2, n = n_train < half ? n_train : half, rest = s->n - n, m = rest < MAX_TEST ? rest : MAX_TEST;
    double score[MAX_TEST], minus[MAX_TEST];
    cd_tune_ranker *r;
    must(kind->open(&setup, &r, &err), &err);
    const double t0 = now();
    must(kind->learn(r, &s->task, s->cand, s->seconds, n / 2, &err), &err); /* in two, for Ansor's waits for a second round */
    must(kind->learn(r, &s->task, s->cand + n / 2, s->seconds + n / 2, n - n / 2, &err), &err);
    const double t1 = now();
    must(kind->rank(r, &s->task, s->cand, 1, score, &err), &err);
    const double t2 = now();
    must(kind->rank(r, &s->task, s->cand + n, m, score, &err), &err);
    const double t3 = now();
    for (size_t i = 0; i < m; i++) minus[i] = -score[i];
    const double rho = spearman(minus, s->seconds + n, m), best = best_of_10(score, s->seconds + n, m);
    printf(" %6.3f %5.3f", rho, best);
    *f = (figures){f->rho + rho, f->best + best, f->learn_s + t1 - t0, f->fit_s + t2 - t1, f->rank_s + t3 - t2, f->n + 1};
    kind->free(r);
}

int main(int argc, char **argv) {
    cdmpp_err err = {0};
    cd_task_registry *tasks;
    figures f[KINDS] = {{0}};
    set s = {.cand = calloc(MAX_RECORDS, sizeof *s.cand), .seconds = calloc(MAX_RECORDS, sizeof *s.seconds)};
    if (argc < 4 || !s.cand || !s.seconds) return 2;
    const size_t n_train = (size_t)atoi(argv[2]);
    must(cd_task_registry_new(&tasks, &err), &err);
    must(cd_task_registry_load(tasks, argv[1], &err), &err);
    for (int k = 3; k < argc; k++) {
        load(&s, tasks, argv[k]);
        if (s.n < 10 || !s.task.task) continue;
        printf("%5zu", s.n);
        for (size_t j = 0; j < KINDS; j++) trial(&s, n_train, kinds[j], &f[j]);
        printf("  %.40s\n", strrchr(argv[k], '/') ? strrchr(argv[k], '/') + 1 : argv[k]);
    }
    printf("%-8s %6s %9s %9s %12s %9s %12s\n", "", "tasks", "spearman", "best@10", "learn ms", "fit ms", "rank us/cand");
    for (size_t j = 0; j < KINDS; j++) {
        const double n = (double)(f[j].n ? f[j].n : 1);
        printf("%-8s %6zu %9.3f %9.3f %12.1f %9.1f %12.1f\n", kinds[j]->name, f[j].n, f[j].rho / n, f[j].best / n,
               1e3 * f[j].learn_s / n, 1e3 * f[j].fit_s / n, 1e6 * f[j].rank_s / n / MAX_TEST);
    }
    cd_arena_free(&s.a);
    free(s.cand);
    free(s.seconds);
    cd_task_registry_free(tasks);
    return 0;
}

/* bench_observe CONFIG.yaml [SEEDS [KEY=VALUE]...] -- what measuring a few programs of a new task
 * is worth.
 *
 * Trains the configuration, which splits by task, then plays a tuner on each task of the test part
 * with at least 24 programs on a device: K programs, drawn by the seed, are observed, and the
 * programs behind the first 16 of the draw, the same for every K, are scored. Rows only, through
 * the public calls. MAPE over all scored programs; Spearman's rank correlation of a task, mean over
 * tasks; share of measurements inside the interval and the interval's mean width as a factor. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_config.h"
#include "base/core/core.h"
#include "cdmpp.h"
#include "features/rows/rows.h"
#include "learner/config/config.h"
#include "learner/train/train.h"

enum { FED = 16, LEAST = 24, N_K = 5 };
static const size_t ks[N_K] = {0, 2, 4, 8, 16};

typedef struct {
    double ape, rank, inside, width;
    size_t n, n_task, n_rank;
} sums;

typedef struct {
    const cd_dataset *d;
    const cdmpp_model *m;
    uint32_t *of; /* (n) programs of the task, drawn order */
    size_t n;
    float *row;       /* their rows, gathered */
    int64_t *row_ptr; /* (n+1) */
    double *y, *p, *low, *high;
} rig;

static uint64_t draw_seed;
static const cd_dataset *draw_of; /* qsort has no context */

static int by_draw(const void *a, const void *b) {
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const uint64_t x = cd_rng_at(draw_seed, i), y = cd_rng_at(draw_seed, j);
    return x < y ? -1 : x > y;
}

static int by_task(const void *a, const void *b) {
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const uint64_t x = (uint64_t)draw_of->task[i] << 32 | draw_of->device[i],
                   y = (uint64_t)draw_of->task[j] << 32 | draw_of->device[j];
    return x != y ? (x < y ? -1 : 1) : (i > j) - (i < j);
}

static double mean_rank(const double *v, size_t n, size_t i) {
    double r = 0;
    for (size_t k = 0; k < n; k++) r += v[k] < v[i] ? 1 : v[k] == v[i] && k != i ? 0.5 : 0;
    return r;
}

/* NaN when one of them is constant. */
static double spearman(const double *a, const double *b, size_t n) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < n; i++) {
        const double x = mean_rank(a, n, i) - 0.5 * (double)(n - 1),
                     y = mean_rank(b, n, i) - 0.5 * (double)(n - 1);
        ab += x * y;
        aa += x * x;
        bb += y * y;
    }
    return ab / sqrt(aa * bb);
}

static void gather(rig *r) {
    r->row_ptr[0] = 0;
    for (size_t i = 0; i < r->n; i++) {
        const int64_t beg = r->d->row_ptr[r->of[i]], n = r->d->row_ptr[r->of[i] + 1] - beg;
        memcpy(r->row + r->row_ptr[i] * CD_N_COL, r->d->row + beg * CD_N_COL,
               (size_t)n * CD_N_COL * sizeof *r->row);
        r->row_ptr[i + 1] = r->row_ptr[i] + n;
        r->y[i] = r->d->latency_s[r->of[i]];
    }
}

static cdmpp_status one(rig *r, size_t k, sums *s, cdmpp_err *err) {
    cdmpp_observer *o = NULL;
    cdmpp_context *c = NULL;
    cdmpp_task *task = NULL;
    const uint32_t p0 = r->of[0];
    const cdmpp_task_info info = {.size = sizeof info,
                                  .workload_key = r->d->task_name[r->d->task[p0]],
                                  .flop = r->d->flop[p0] > 0 ? r->d->flop[p0] : 0};
    cdmpp_status st = cdmpp_observer_new(r->m, &o, err);
    const cdmpp_options opt = {
        .size = sizeof opt, .device = r->d->device_name[r->d->device[p0]], .observer = o};
    if (!st) st = cdmpp_context_new(r->m, NULL, &opt, &c, err);
    if (!st) st = cdmpp_task_new(NULL, &info, &task, err);
    cdmpp_batch b = {.size = sizeof b,
                     .form = CDMPP_ROWS_F32,
                     .n = k,
                     .task = task,
                     .data = r->row,
                     .n_col = CD_N_COL,
                     .row_ptr = r->row_ptr};
    if (!st) st = cdmpp_observe(c, &b, r->y, NULL, err);
    b.row_ptr += FED;
    b.n = r->n - FED;
    const cdmpp_result out = {.size = sizeof out, .seconds = r->p, .low = r->low, .high = r->high};
    if (!st) st = cdmpp_score(c, &b, &out, err);
    const double *y = r->y + FED;
    for (size_t i = 0; !st && i < b.n; i++) {
        s->ape += fabs(r->p[i] / y[i] - 1);
        s->inside += r->low[i] <= y[i] && y[i] <= r->high[i];
        s->width += log(r->high[i] / r->low[i]);
        s->n++;
    }
    const double rho = st ? 0 : spearman(r->p, y, b.n);
    if (!st && !isnan(rho)) s->rank += rho, s->n_rank++;
    s->n_task++;
    cdmpp_task_free(task);
    cdmpp_context_free(c);
    cdmpp_observer_free(o);
    return st;
}

static cdmpp_status play(rig *r, const uint32_t *test, size_t n, uint64_t seed, sums s[N_K],
                         cdmpp_err *err) {
    cdmpp_status st = CDMPP_OK;
    for (size_t beg = 0, end; !st && beg < n; beg = end) {
        for (end = beg + 1; end < n && r->d->task[test[end]] == r->d->task[test[beg]] &&
                            r->d->device[test[end]] == r->d->device[test[beg]];)
            end++;
        if (end - beg < LEAST) continue;
        r->n = end - beg;
        memcpy(r->of, test + beg, r->n * sizeof *r->of);
        draw_seed = seed;
        qsort(r->of, r->n, sizeof *r->of, by_draw);
        gather(r);
        for (size_t k = 0; !st && k < N_K; k++) st = one(r, ks[k], &s[k], err);
    }
    return st;
}

static cdmpp_status run(const cd_config *c, char **argv, cdmpp_err *err) {
    const int seeds = argv[2] ? atoi(argv[2]) : 5;
    cd_dataset *d = NULL;
    cd_member_plan plan;
    cd_learner_result l = {0};
    cd_split *split = NULL;
    rig r = {0};
    sums s[N_K] = {{0}};
    size_t n = 0;
    CD_TRY(cd_member_plan_of(c, &plan, err));
    CD_TRY(cd_learner_load(c, &plan, &d, err));
    CD_TRY(cd_learner_run(c, d, &(cd_learner_options){0}, &l, err));
    uint8_t *keep = calloc(d->n, 1);
    uint32_t *test = calloc(d->n, sizeof *test);
    cd_filter_count count;
    CD_TRY(cd_select_programs(c, d, NULL, keep, &count, &split, err));
    for (size_t i = 0; i < d->n; i++)
        if (split->part[i] == CD_SPLIT_PART_TEST) test[n++] = (uint32_t)i;
    draw_of = d;
    qsort(test, n, sizeof *test, by_task);
    r = (rig){.d = d,
              .of = calloc(n, sizeof *r.of),
              .row = calloc(d->n_row, CD_N_COL * sizeof *r.row),
              .row_ptr = calloc(n + 1, sizeof *r.row_ptr),
              .y = calloc(4 * n, sizeof *r.y)};
    r.p = r.y + n;
    r.low = r.p + n;
    r.high = r.low + n;
    cdmpp_model *m = NULL;
    CD_TRY(cdmpp_model_read(l.file.p, l.file.n, &m, err));
    r.m = m;
    for (int seed = 1; seed <= seeds; seed++) CD_TRY(play(&r, test, n, (uint64_t)seed, s, err));
    printf("test part: %zu programs of %zu tasks; %zu tasks on a device have %d and are played "
           "with %d seeds\n",
           l.n_program[CD_SPLIT_PART_TEST], l.n_task[CD_SPLIT_PART_TEST],
           s[0].n_task / (size_t)seeds, LEAST, seeds);
    for (size_t k = 0; k < N_K; k++)
        printf("  %2zu measured: MAPE %5.2f %%  Spearman %.3f  inside interval %.1f %%  interval "
               "x%.2f  (n=%zu programs, %zu tasks)\n",
               ks[k], 100 * s[k].ape / (double)s[k].n, s[k].rank / (double)s[k].n_rank,
               100 * s[k].inside / (double)s[k].n, exp(s[k].width / (double)s[k].n), s[k].n,
               s[k].n_task);
    return CDMPP_OK;
}

int main(int argc, char **argv) {
    return argc < 2 ? 2 : bench_config_main(argv[1], 3, argc, argv, run);
}

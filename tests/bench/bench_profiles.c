/* bench_profiles MODEL CONFIG.yaml [KEY=VALUE]... -- the three profiles of a model on the test part
 * of the configuration that it was trained with: how well they order the programs of a task, and
 * what that costs.
 *
 * Every task on a device is one batch of rows, as a tuner hands them over; figures as in
 * learner/report/report.h, a task weighs as often as the networks have it. CPU time of one thread;
 * then up to 2,048 programs of the test part, as one batch, by one and by two threads that share
 * the model, least of three. */
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
#include "learner/report/report.h"

enum { SCALED = 2048 };

typedef struct {
    const cd_dataset *d;
    const cdmpp_model *m;
    uint32_t *test; /* (n) by task and device */
    size_t n;
    float *row;             /* their rows, gathered */
    int64_t *row_ptr;       /* (n+1) */
    double *y, *p, *weight; /* (n) */
    uint32_t *group;        /* (n) */
} rig;

static const cd_dataset *sort_of; /* qsort has no context */

static uint64_t group_of(uint32_t i) {
    return (uint64_t)sort_of->task[i] << 32 | sort_of->device[i];
}

static int by_group(const void *a, const void *b) {
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const uint64_t x = group_of(i), y = group_of(j);
    return x != y ? (x < y ? -1 : 1) : (i > j) - (i < j);
}

static cdmpp_status collect(rig *r, const cd_config *c, cdmpp_err *err) {
    const cd_dataset *d = r->d;
    cd_split *split = NULL;
    cd_filter_count count;
    uint8_t *keep = calloc(d->n + 1, 1);
    double *of_task = calloc(d->n_task + 1, sizeof *of_task);
    r->test = calloc(d->n + 1, sizeof *r->test);
    CD_TRY(cd_select_programs(c, d, NULL, keep, &count, &split, err));
    for (size_t i = 0; i < d->n; i++)
        if (split->part[i] == CD_SPLIT_PART_TEST) r->test[r->n++] = (uint32_t)i;
    sort_of = d;
    qsort(r->test, r->n, sizeof *r->test, by_group);
    for (size_t k = 0; k < d->n_net_task; k++) of_task[d->net_task[k]] += (double)d->net_weight[k];
    r->row = calloc(d->n_row + 1, CD_N_COL * sizeof *r->row);
    r->row_ptr = calloc(r->n + 1, sizeof *r->row_ptr);
    r->y = calloc(3 * r->n + 1, sizeof *r->y);
    r->group = calloc(r->n + 1, sizeof *r->group);
    r->p = r->y + r->n;
    r->weight = r->p + r->n;
    for (size_t k = 0; k < r->n; k++) {
        const uint32_t i = r->test[k];
        const int64_t beg = d->row_ptr[i], n = d->row_ptr[i + 1] - beg;
        memcpy(r->row + r->row_ptr[k] * CD_N_COL, d->row + beg * CD_N_COL,
               (size_t)n * CD_N_COL * sizeof *r->row);
        r->row_ptr[k + 1] = r->row_ptr[k] + n;
        r->y[k] = d->latency_s[i];
        r->weight[k] = of_task[d->task[i]] > 0 ? of_task[d->task[i]] : 1;
        r->group[k] = k && group_of(i) == group_of(r->test[k - 1]) ? r->group[k - 1] : (uint32_t)k;
    }
    return CDMPP_OK;
}

static cdmpp_status context(const rig *r, size_t k, const char *profile, int threads,
                            cdmpp_context **c, cdmpp_err *err) {
    const cdmpp_options o = {.size = sizeof o,
                             .device = r->d->device_name[r->d->device[r->test[k]]],
                             .profile = profile,
                             .nthreads = threads};
    return cdmpp_context_new(r->m, NULL, &o, c, err);
}

/* One batch: programs beg .. end. */
static cdmpp_status score(const rig *r, cdmpp_context *c, size_t beg, size_t end, cdmpp_err *err) {
    const uint32_t i = r->test[beg];
    const cdmpp_task_info info = {.size = sizeof info,
                                  .workload_key = r->d->task_name[r->d->task[i]],
                                  .flop = r->d->flop[i] > 0 ? r->d->flop[i] : 0};
    cdmpp_task *task = NULL;
    CD_TRY(cdmpp_task_new(NULL, &info, &task, err));
    const cdmpp_batch b = {.size = sizeof b,
                           .form = CDMPP_ROWS_F32,
                           .n = end - beg,
                           .task = task,
                           .data = r->row,
                           .n_col = CD_N_COL,
                           .row_ptr = r->row_ptr + beg};
    const cdmpp_result out = {.size = sizeof out, .seconds = r->p + beg};
    const cdmpp_status st = cdmpp_score(c, &b, &out, err);
    cdmpp_task_free(task);
    return st;
}

static cdmpp_status quality(rig *r, const char *profile, cdmpp_err *err) {
    cdmpp_context *c = NULL;
    cd_metric m;
    const char *device = NULL;
    double took = 0;
    for (size_t beg = 0, end; beg < r->n; beg = end) {
        const char *own = r->d->device_name[r->d->device[r->test[beg]]];
        for (end = beg + 1; end < r->n && r->group[end] == r->group[beg];) end++;
        if (!device || strcmp(device, own) != 0) {
            cdmpp_context_free(c);
            CD_TRY(context(r, beg, profile, 1, &c, err));
            CD_TRY(score(r, c, beg, end, err)); /* warm */
        }
        device = own;
        const double t0 = cd_clock_thread();
        CD_TRY(score(r, c, beg, end, err));
        took += cd_clock_thread() - t0;
    }
    cdmpp_context_free(c);
    CD_TRY(cd_metric_compute(r->y, r->p, r->group, r->weight, r->n, &m, err));
    printf("  %-9s n=%zu  MAPE %5.1f %%  Spearman %.3f (%zu)  top-1 %.3f (%zu)  top-5 %.3f (%zu)  "
           "%6.1f us of CPU a program\n",
           profile, m.n, 100 * m.mape, m.spearman, m.n_spearman, m.top1, m.n_top1, m.top5, m.n_top5,
           1e6 * took / (double)r->n);
    return CDMPP_OK;
}

static cdmpp_status scaling(rig *r, const char *profile, cdmpp_err *err) {
    const size_t n = r->n < SCALED ? r->n : SCALED;
    double least[2] = {INFINITY, INFINITY}, cpu[2] = {INFINITY, INFINITY};
    /* the first is warm-up; in turn, as others use the machine */
    for (int round = 0; round < 4; round++)
        for (int threads = 1; threads <= 2; threads++) {
            cdmpp_context *c = NULL;
            CD_TRY(context(r, 0, profile, threads, &c, err));
            CD_TRY(score(r, c, 0, n, err));
            const double t0 = cd_clock_wall(), c0 = cd_clock_process();
            CD_TRY(score(r, c, 0, n, err));
            if (round) {
                least[threads - 1] = fmin(least[threads - 1], cd_clock_wall() - t0);
                cpu[threads - 1] = fmin(cpu[threads - 1], cd_clock_process() - c0);
            }
            cdmpp_context_free(c);
        }
    printf("  %-9s one thread %.0f programs/s, two %.0f, ratio %.2f; CPU seconds of two / of one "
           "%.2f\n",
           profile, (double)n / least[0], (double)n / least[1], least[0] / least[1],
           cpu[1] / cpu[0]);
    return CDMPP_OK;
}

static cdmpp_status run(const cd_config *c, char **argv, cdmpp_err *err) {
    const char *model = argv[1];
    cd_dataset *d = NULL;
    cd_member_plan plan;
    cdmpp_model *m = NULL;
    rig r = {0};
    CD_TRY(cdmpp_model_load(model, &m, err));
    CD_TRY(cd_member_plan_of(c, &plan, err));
    CD_TRY(cd_learner_load(c, &plan, &d, err));
    r.d = d;
    r.m = m;
    CD_TRY(collect(&r, c, err));
    if (!r.n) return CD_FAIL(err, ENODATA, "no test part");
    printf("%s: test part of %zu programs\n", model, r.n);
    for (size_t k = 0; k < cdmpp_model_n_profile(m); k++)
        CD_TRY(quality(&r, cdmpp_model_profile(m, k), err));
    for (size_t k = 0; k < cdmpp_model_n_profile(m); k++)
        CD_TRY(scaling(&r, cdmpp_model_profile(m, k), err));
    return CDMPP_OK; /* the end of the program frees */
}

int main(int argc, char **argv) {
    return argc < 3 ? 2 : bench_config_main(argv[2], 3, argc, argv, run);
}

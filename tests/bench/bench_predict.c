/* bench_predict TASKS LOGS MODEL... -- how long scoring takes, through the public calls, one
 * thread.
 *
 *   one    a warm call for one candidate, over CALLS programs of many tasks: p50, p99, heap calls
 *          (all of
 *          the process, XGBoost's own too; 0 where the model has no trees)
 *          CPU time is what counts on a shared machine
 *   batch  2,048 candidates of the task with the most records, repeated as needed
 *   steps  from (task, steps as JSON); rows: features given. A model that reads loop nests: steps
 *          only
 *
 * LOGS: a log file; records of the model's first device of that kind are scored as if they were its
 * own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "bench_log.h"
#include "features/rows/rows.h"

enum { CALLS = 4000, BATCH = 2048, ROUNDS = 7 };

/* ---- the heap, counted ---- */
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
static size_t heap_calls;
#define SHOWN __attribute__((visibility("default"))) /* also for the libraries */
SHOWN void *malloc(size_t n);
SHOWN void *calloc(size_t n, size_t size);
SHOWN void *realloc(void *p, size_t n);
void *malloc(size_t n) { return heap_calls++, __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return heap_calls++, __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { return heap_calls++, __libc_realloc(p, n); }

typedef struct {
    cdmpp_task *task;
    char *steps;
    size_t n_steps, of; /* of: number of the task */
    float *row;
    int64_t row_ptr[2];
} program;

typedef struct {
    bench_tasks of;
    program *p; /* (n) */
    size_t n, cap;
} rig;

/* ---- programs ---- */
static cdmpp_status keep(void *ctx, const bench_program *in, cdmpp_err *err) {
    rig *r = ctx;
    const cd_rows *rows = in->rows;
    const cd_record *rec = in->record;
    if (r->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 1024;
        r->p = realloc(r->p, r->cap * sizeof *r->p);
        if (!r->p) abort();
    }
    program *p = &r->p[r->n++];
    const cd_hardware *h = &rec->hardware;
    const int64_t hw[8] = {h->num_cores,
                           h->vector_unit_bytes,
                           h->cache_line_bytes,
                           h->max_shared_memory_per_block,
                           h->max_local_memory_per_block,
                           h->max_threads_per_block,
                           h->max_vthread_extent,
                           h->warp_size};
    char *target = strndup(rec->target.p, rec->target.n);
    *p = (program){.n_steps = in->n_steps,
                   .of = cd_task_registry_index(r->of.tasks, in->task),
                   .row_ptr = {0, rows->n_row}};
    p->steps = strndup(in->steps, p->n_steps);
    p->row = malloc(rows->n_row * CD_N_COL * sizeof *p->row);
    memcpy(p->row, rows->row, rows->n_row * CD_N_COL * sizeof *p->row);
    const cdmpp_task_info info = {.size = sizeof info,
                                  .workload_key = in->task->workload_key,
                                  .target = target,
                                  .hardware = hw};
    const cdmpp_status st = cdmpp_task_new(r->of.api, &info, &p->task, err);
    free(target);
    return st;
}

/* ---- one at a time ---- */
static cdmpp_status one(const rig *r, cdmpp_context *c, bool steps, cdmpp_err *err) {
    static double took[CALLS], wall[CALLS];
    size_t heap = 0, bad = 0;
    for (int i = -CALLS / 2; i < CALLS; i++) {
        const program *p = &r->p[(size_t)(i + CALLS) % r->n];
        const cdmpp_text text = {p->steps, p->n_steps};
        float score;
        cdmpp_status st;
        const cdmpp_batch b = {.size = sizeof b,
                               .form = steps ? CDMPP_STEPS : CDMPP_ROWS_F32,
                               .n = 1,
                               .task = p->task,
                               .text = &text,
                               .data = p->row,
                               .n_col = CD_N_COL,
                               .row_ptr = p->row_ptr};
        const cdmpp_result out = {.size = sizeof out, .score_f32 = &score, .status = &st};
        const size_t before = heap_calls;
        const double w0 = cd_clock_wall(), t0 = cd_clock_thread();
        CD_TRY(cdmpp_score(c, &b, &out, err));
        if (i < 0) continue;
        took[i] = cd_clock_thread() - t0;
        wall[i] = cd_clock_wall() - w0;
        heap += heap_calls - before;
        bad += st != CDMPP_OK;
    }
    cd_sort_doubles(took, CALLS);
    cd_sort_doubles(wall, CALLS);
    printf("  one, %s   CPU p50 %7.1f us  p99 %7.1f us   wall p50 %7.1f us  p99 %7.1f us   %5.1f "
           "heap calls   (n=%d, %zu failed)\n",
           steps ? "steps" : "rows ", 1e6 * took[CALLS / 2], 1e6 * took[CALLS * 99 / 100],
           1e6 * wall[CALLS / 2], 1e6 * wall[CALLS * 99 / 100], (double)heap / CALLS, CALLS, bad);
    return CDMPP_OK;
}

/* ---- 2,048 of a task ---- */
static size_t busiest(const rig *r) {
    size_t best = 0, most = 0;
    for (size_t i = 0; i < r->n; i++) {
        size_t n = 0;
        for (size_t j = i; j < r->n; j++) n += r->p[j].of == r->p[i].of;
        if (n > most) most = n, best = r->p[i].of;
    }
    return best;
}

static cdmpp_status batch(const rig *r, cdmpp_context *c, bool steps, cdmpp_err *err) {
    static cdmpp_text text[BATCH];
    static int64_t row_ptr[BATCH + 1];
    static float score[BATCH];
    const size_t of = busiest(r);
    size_t n = 0, n_row = 0, distinct = 0;
    double took[ROUNDS];
    for (size_t i = 0; i < r->n; i++) distinct += r->p[i].of == of;
    const program *first = NULL;
    float *row = NULL;
    for (size_t i = 0; n < BATCH; i = (i + 1) % r->n) {
        const program *p = &r->p[i];
        if (p->of != of) continue;
        if (!first) first = p;
        text[n] = (cdmpp_text){p->steps, p->n_steps};
        row = realloc(row, (n_row + (size_t)p->row_ptr[1]) * CD_N_COL * sizeof *row);
        memcpy(row + n_row * CD_N_COL, p->row, (size_t)p->row_ptr[1] * CD_N_COL * sizeof *row);
        n_row += (size_t)p->row_ptr[1];
        row_ptr[++n] = (int64_t)n_row;
    }
    const cdmpp_batch b = {.size = sizeof b,
                           .form = steps ? CDMPP_STEPS : CDMPP_ROWS_F32,
                           .n = BATCH,
                           .task = first->task,
                           .text = text,
                           .data = row,
                           .n_col = CD_N_COL,
                           .row_ptr = row_ptr};
    const cdmpp_result out = {.size = sizeof out, .score_f32 = score};
    for (int k = 0; k < ROUNDS; k++) {
        const double t0 = cd_clock_thread();
        CD_TRY(cdmpp_score(c, &b, &out, err));
        took[k] = cd_clock_thread() - t0;
    }
    cd_sort_doubles(took, ROUNDS);
    printf("  2048, %s  CPU median %6.1f ms  least %6.1f ms  (%.0f candidates/s; %zu rows, %zu "
           "schedules repeated)\n",
           steps ? "steps" : "rows ", 1e3 * took[ROUNDS / 2], 1e3 * took[0],
           BATCH / took[ROUNDS / 2], n_row, distinct);
    free(row);
    return CDMPP_OK;
}

static cdmpp_status bench_profile(const rig *r, const cdmpp_model *m, const char *profile,
                                  int first, cdmpp_err *err) {
    const cdmpp_options o = {
        .size = sizeof o, .device = cdmpp_model_device(m, 0), .profile = profile};
    cdmpp_context *c = NULL;
    CD_TRY(cdmpp_context_new(m, r->of.api, &o, &c, err));
    printf(" profile %s\n", profile);
    for (int steps = first; steps < 2; steps++) CD_TRY(one(r, c, steps, err));
    for (int steps = first; steps < 2; steps++) CD_TRY(batch(r, c, steps, err));
    cdmpp_context_free(c);
    return CDMPP_OK;
}

static cdmpp_status bench(const rig *r, const char *path, cdmpp_err *err) {
    cdmpp_model *m = NULL;
    CD_TRY(cdmpp_model_load(path, &m, err));
    printf("%s:\n", path);
    for (size_t i = 0; i < cdmpp_model_n_profile(m); i++)
        CD_TRY(bench_profile(r, m, cdmpp_model_profile(m, i), !cdmpp_model_takes_rows(m), err));
    cdmpp_model_free(m);
    return CDMPP_OK;
}

int main(int argc, char **argv) {
    static rig r;
    cdmpp_err err = {0};
    if (argc < 4) return 2;
    cdmpp_status st = bench_each_program(&r.of, argv[1], argv[2], keep, &r, &err);
    if (!st) printf("%zu programs of %s\n", r.n, argv[2]);
    for (int i = 3; !st && i < argc; i++) st = bench(&r, argv[i], &err);
    return bench_end(st, &err);
}

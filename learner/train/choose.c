/* What to measure on a new device: programs or tasks of the training part, chosen by their
 * inputs. */
#include <stdlib.h>

#include "learner/train/train_internal.h"

/* A program that may be chosen. */
typedef struct {
    uint64_t key, rank; /* of the program; of a draw */
    size_t i;
} candidate;

typedef struct {
    const cd_config *c;
    const cd_dataset *d;
    const cd_choice_options *how;
    cd_choice *out;
    cd_split *split;
    candidate *of; /* (n) */
    size_t n;
    size_t *program; /* (n) */
} choosing;

double cd_choose_seconds(double latency_s) { return 0.1 + 3 * latency_s; }

/* ---- candidates ---- */
static int by_rank(const void *a, const void *b) {
    const candidate *p = a, *q = b;
    if (p->rank != q->rank) return p->rank < q->rank ? -1 : 1;
    return (p->key > q->key) - (p->key < q->key);
}

static int by_key(const void *a, const void *b) {
    const candidate *p = a, *q = b;
    if (p->key != q->key) return p->key < q->key ? -1 : 1;
    return (p->i > q->i) - (p->i < q->i);
}

/* Programs of the training part, in an order that is not that of the files. */
static cdmpp_status list(choosing *q, cdmpp_err *err) {
    const cd_dataset *d = q->d;
    const uint64_t seed = (uint64_t)q->c->data_seed;
    for (size_t i = 0; i < d->n; i++) {
        if (q->split->part[i] != CD_SPLIT_PART_TRAIN) continue;
        const uint64_t key = cd_stable_id_program(d, i);
        q->of[q->n++] = (candidate){key, cd_rng_at(seed, key), i};
        if (d->is_gpu[i] != d->is_gpu[q->of[0].i])
            return cd_err_key(err,
                              CD_FAIL(err, ESCHEMA,
                                      "expected programs of processors or of GPUs, found both "
                                      "('%s', '%s'): choose those of one kind",
                                      d->device_name[d->device[q->of[0].i]],
                                      d->device_name[d->device[i]]),
                              "data.devices");
    }
    q->out->n_candidate = q->n;
    if (q->n) qsort(q->of, q->n, sizeof *q->of, by_rank);
    if (q->n > CD_CHOICE_MOST) q->n = CD_CHOICE_MOST;
    if (q->n) qsort(q->of, q->n, sizeof *q->of, by_key);
    for (size_t k = 0; k < q->n; k++) q->program[k] = q->of[k].i;
    q->out->n_drawn = q->n;
    return CDMPP_OK;
}

/* ---- the two ways ---- */
static cdmpp_status by_budget(choosing *q, const float *x, size_t dim, cdmpp_err *err) {
    double *price = CD_NEWN(&q->out->arena, double, q->n);
    if (!price) return CD_FAIL(err, ENOMEM, "%zu programs", q->n);
    for (size_t k = 0; k < q->n; k++) price[k] = cd_choose_seconds(q->d->latency_s[q->program[k]]);
    return cd_select_medoids(x, q->n, dim, price, q->how->budget_s, q->how->k, q->how->pool,
                             q->out->index, &q->out->n, err);
}

/* Tasks, or programs: each is a task of its own then. */
static cdmpp_status by_kmeans(choosing *q, const float *x, size_t dim, cdmpp_err *err) {
    const cd_dataset *d = q->d;
    const bool tasks = q->how->tasks;
    const size_t n_unit = tasks ? d->n_task : q->n;
    uint32_t *unit = CD_NEWN(&q->out->arena, uint32_t, q->n);
    uint64_t *key = CD_NEWN(&q->out->arena, uint64_t, n_unit);
    if (q->out->arena.oom) return CD_FAIL(err, ENOMEM, "%zu tasks", n_unit);
    for (size_t k = 0; k < q->n; k++) unit[k] = tasks ? d->task[q->program[k]] : (uint32_t)k;
    for (size_t u = 0; u < n_unit; u++)
        key[u] = tasks ? cd_stable_id_name(d->task_name[u]) : q->of[u].key;
    const cd_select_input in = {q->n, dim, x, unit, n_unit, key};
    return cd_select_tasks(&in, CD_SELECT_KMEANS, q->how->k, (uint64_t)q->c->data_seed,
                           q->how->pool, q->out->index, &q->out->n, err);
}

/* Numbers of candidates to programs of the data set. */
static void finish(choosing *q) {
    cd_choice *out = q->out;
    for (size_t k = 0; !out->tasks && k < out->n; k++) {
        out->index[k] = (uint32_t)q->program[out->index[k]];
        out->seconds += cd_choose_seconds(q->d->latency_s[out->index[k]]);
    }
}

static cdmpp_status choose(choosing *q, cdmpp_err *err) {
    cd_choice *out = q->out;
    float *x = NULL;
    size_t dim;
    q->of = CD_NEWN(&out->arena, candidate, q->d->n);
    q->program = CD_NEWN(&out->arena, size_t, q->d->n);
    out->index = CD_NEWN(&out->arena, uint32_t, q->how->k);
    if (out->arena.oom) return CD_FAIL(err, ENOMEM, "%zu programs", q->d->n);
    CD_TRY(list(q, err));
    CD_TRY(cd_task_embedding_rows(q->d, q->program, q->n, &x, &dim, err));
    const cdmpp_status st =
        q->how->budget_s > 0 ? by_budget(q, x, dim, err) : by_kmeans(q, x, dim, err);
    cd_mem_free(x);
    if (!st) finish(q);
    return st;
}

cdmpp_status cd_choose(const cd_config *c, const cd_dataset *d, const cd_choice_options *how,
                       cd_choice *out, cdmpp_err *err) {
    cd_filter_count count;
    choosing q = {.c = c, .d = d, .how = how, .out = out};
    uint8_t *keep = cd_mem_zalloc(d->n + 1, 1);
    *out = (cd_choice){.tasks = how->tasks};
    if (!keep) return CD_FAIL(err, ENOMEM, "%zu programs", d->n);
    cdmpp_status st = cd_select_programs(c, d, how->pool, keep, &count, &q.split, err);
    if (!st) st = choose(&q, err);
    cd_split_free(q.split);
    cd_mem_free(keep);
    return st;
}

void cd_choose_free(cd_choice *out) {
    cd_arena_free(&out->arena);
    *out = (cd_choice){0};
}

/* What to measure on a new device: programs or tasks of the training part, chosen by their
 * inputs. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/io.h"
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

/* The records of chosen programs, from the logs that the data set was made from, and the choice in
 * words and as JSON. */

typedef struct {
    uint64_t line;
    uint32_t file;
    size_t nth; /* in the order of choice */
} place;

static int by_place(const void *a, const void *b) {
    const place *p = a, *q = b;
    if (p->file != q->file) return p->file < q->file ? -1 : 1;
    return (p->line > q->line) - (p->line < q->line);
}

/* A log that has changed since would give other programs. */
static cdmpp_status check_record(cd_arena *a, const char *line, size_t n, const char *task,
                                 cdmpp_err *err) {
    cd_record r;
    cd_arena_reset(a);
    CD_TRY(cd_record_read(a, line, n, &r, err));
    if (r.workload_key.n == strlen(task) && !memcmp(r.workload_key.p, task, r.workload_key.n))
        return CDMPP_OK;
    return CD_FAIL(err, ESCHEMA,
                   "expected the record that the data set was made from, of task %.120s, found one "
                   "of %.*s: the log has changed",
                   task, (int)(r.workload_key.n > 120 ? 120 : r.workload_key.n), r.workload_key.p);
}

/* Places p (n) of one file, in the order of its lines. */
static cdmpp_status read_places(const cd_dataset *d, const cd_choice *ch, const char *path,
                                const place *p, size_t n, cd_arena *a, cd_str *text,
                                cdmpp_err *err) {
    cd_file_lines *l = NULL;
    cd_arena work = {0};
    char *line = NULL;
    size_t len = 0, k = 0;
    cdmpp_status st = cd_file_lines_open(path, CD_RECORD_LINE_MAX, &l, err);
    while (!st && k < n) {
        st = cd_file_lines_next(l, &line, &len, err);
        if (st == CDMPP_ERANGE && (uint64_t)cd_file_lines_number(l) < p[k].line) st = CDMPP_OK;
        else if (!st && !line)
            st = cd_err_at(
                err,
                CD_FAIL(
                    err, ESCHEMA,
                    "expected line %llu, a record that the data set was made from, found the end",
                    (unsigned long long)p[k].line),
                path, cd_file_lines_number(l));
        else if (!st && (uint64_t)cd_file_lines_number(l) == p[k].line) {
            st = cd_err_at(
                err,
                check_record(&work, line, len, d->task_name[d->task[ch->index[p[k].nth]]], err),
                path, (long)p[k].line);
            const char *copy = cd_str_dup(a, (cd_str){line, len});
            if (!st && !copy) st = CD_FAIL(err, ENOMEM, "a record");
            text[p[k++].nth] = (cd_str){copy, len};
        }
    }
    cd_file_lines_close(l);
    cd_arena_free(&work);
    return st;
}

static cdmpp_status read_all(const cd_config *c, const cd_dataset *d, const cd_choice *ch,
                             cd_arena *a, cd_str *text, cdmpp_err *err) {
    place *p = CD_NEWN(a, place, ch->n);
    if (!p) return CD_FAIL(err, ENOMEM, "%zu records", ch->n);
    for (size_t k = 0; k < ch->n; k++)
        p[k] = (place){d->source_line[ch->index[k]], d->source_file[ch->index[k]], k};
    if (ch->n) qsort(p, ch->n, sizeof *p, by_place);
    for (size_t k = 0, end; k < ch->n; k = end) {
        for (end = k; end < ch->n && p[end].file == p[k].file; end++) {
        }
        const char *path = cd_config_beside(a, c->path ? c->path : "", d->source_name[p[k].file]);
        if (!path) return CD_FAIL(err, ENOMEM, "path");
        if (access(path, F_OK) != 0)
            return CD_FAIL(err, ENODATA,
                           "expected the log that the data set was made from, found no file '%s': "
                           "run this where cdmpp-extract ran, or choose tasks",
                           path);
        CD_TRY(read_places(d, ch, path, p + k, end - k, a, text, err));
    }
    return CDMPP_OK;
}

static cdmpp_status put_records(const cd_config *c, const cd_dataset *d, const cd_choice *ch,
                                cd_arena *a, cd_buf *out, cdmpp_err *err) {
    cd_str *text = CD_NEWN(a, cd_str, ch->n);
    if (!text) return CD_FAIL(err, ENOMEM, "%zu records", ch->n);
    CD_TRY(read_all(c, d, ch, a, text, err));
    for (size_t k = 0; k < ch->n; k++) {
        cd_buf_put(out, text[k].p, text[k].n);
        cd_buf_puts(out, "\n");
    }
    return CDMPP_OK;
}

cdmpp_status cd_choose_put(const cd_config *c, const cd_dataset *d, const cd_choice *ch,
                           cd_buf *out, cdmpp_err *err) {
    cd_arena a = {0};
    cdmpp_status st = CDMPP_OK;
    for (size_t k = 0; ch->tasks && k < ch->n; k++)
        cd_buf_putf(out, "%s\n", d->task_name[ch->index[k]]);
    if (!ch->tasks) st = put_records(c, d, ch, &a, out, err);
    cd_arena_free(&a);
    if (!st && out->oom) st = CD_FAIL(err, ENOMEM, "%zu records", ch->n);
    return st;
}

/* ---- in words ---- */
static size_t count_tasks(const cd_dataset *d, const cd_choice *ch) {
    size_t n = 0;
    for (size_t k = 0; k < ch->n; k++) {
        size_t before = 0;
        while (before < k && d->task[ch->index[before]] != d->task[ch->index[k]]) before++;
        n += before == k;
    }
    return n;
}

void cd_choose_text(cd_buf *b, const cd_dataset *d, const cd_choice *ch) {
    cd_buf_putf(b, "%zu %s", ch->n, ch->tasks ? "tasks" : "programs");
    if (!ch->tasks) cd_buf_putf(b, " of %zu tasks", count_tasks(d, ch));
    cd_buf_putf(b,
                " are chosen. By their features they stand for %zu programs of the training part",
                ch->n_drawn);
    if (ch->n_drawn < ch->n_candidate) cd_buf_putf(b, ", drawn from its %zu", ch->n_candidate);
    cd_buf_puts(b, ".\n");
    if (!ch->tasks)
        cd_buf_putf(b,
                    "None of them was run now. To measure them took about %.3g s on the device of "
                    "the data, without compiling.\n",
                    ch->seconds);
}

void cd_choose_json(cd_buf *b, const cd_dataset *d, const cd_choice *ch) {
    cd_json_writer w = {.out = b};
    cd_json_write_open(&w, '{');
    cd_json_write_member_int(&w, "candidates", (int64_t)ch->n_candidate);
    cd_json_write_member_int(&w, "drawn", (int64_t)ch->n_drawn);
    if (!ch->tasks) cd_json_write_member_real(&w, "seconds", ch->seconds);
    cd_json_write_key(&w, ch->tasks ? "tasks" : "programs");
    cd_json_write_open(&w, '[');
    for (size_t k = 0; k < ch->n; k++) {
        const uint32_t i = ch->index[k];
        cd_json_write_open(&w, '{');
        cd_json_write_member_str(&w, "workload_key", d->task_name[ch->tasks ? i : d->task[i]]);
        if (!ch->tasks) {
            cd_json_write_member_str(&w, "file", d->source_name[d->source_file[i]]);
            cd_json_write_member_int(&w, "line", (int64_t)d->source_line[i]);
            cd_json_write_member_real(&w, "seconds", cd_choose_seconds(d->latency_s[i]));
        }
        cd_json_write_close(&w, '}');
    }
    cd_json_write_close(&w, ']');
    cd_json_write_close(&w, '}');
}

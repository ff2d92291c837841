/* Descriptors of devices that are known by their measure records alone: how fast each is at what
 * all of them have run.
 *
 *   logs ──> (task, steps, device, ln seconds)
 *              ├─> programs that all devices share ──┐
 *              └─> else tasks: best record of each ──┴─> mean of ln(mean device / device) by class
 *
 * A class is whether a task has many operations for each byte that it reads or writes, and how many
 * bytes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/describe/describe.h"
#include "profiler/records/records.h"

enum { MOST = 32, ENOUGH = 16, N_CLASS = 4 }; /* devices; programs that stand for a device */
#define DENSE 16.0                            /* operations a byte */
#define SMALL 1048576.0                       /* bytes */

typedef struct {
    size_t task;
    uint64_t steps; /* 0 where tasks are compared */
    int device;
    double log_s;
} sample;

typedef struct {
    const cd_task_registry *tasks;
    cd_arena arena; /* names */
    const char *name[MOST];
    int n_device;
    sample *v; /* (n) */
    size_t n, cap;
    double sum[MOST][N_CLASS]; /* of ln(mean device / device) */
    size_t n_of[N_CLASS], n_probe;
    bool programs; /* that are shared; false: tasks */
} work;

static cdmpp_status device_of(work *w, cd_str name, int *out, cdmpp_err *err) {
    for (*out = 0; *out < w->n_device; ++*out)
        if (cd_str_is(name, w->name[*out])) return CDMPP_OK;
    if (w->n_device == MOST) return CD_FAIL(err, ERANGE, "more than %d devices", MOST);
    w->name[w->n_device] = cd_str_dup(&w->arena, name);
    return w->name[w->n_device++] ? CDMPP_OK : CD_FAIL(err, ENOMEM, "name of a device");
}

/* One line. A failed measurement says nothing and is no mistake. */
static cdmpp_status add(work *w, cd_arena *a, const cd_recline *l, cdmpp_err *err) {
    cd_record r;
    sample s = {0};
    CD_TRY(cd_record_read(a, l->text, l->len, &r, err));
    const cd_task *t = cd_task_registry_find(w->tasks, r.workload_key);
    if (!t || !t->dag)
        return cd_err_key(err,
                          CD_FAIL(err, ENOTASK, "no definition of task %.*s",
                                  cd_str_shown(r.workload_key, 60), r.workload_key.p),
                          "i[0][0]");
    double *cost = CD_NEWN(a, double, r.n_cost + 1);
    if (!cost) return CD_FAIL(err, ENOMEM, "times");
    for (uint32_t k = 0; k < r.n_cost; k++) cost[k] = r.cost_s[k];
    const cd_label label = cd_label_of(cost, r.n_cost, r.error_no);
    if (label.error || !(label.latency_s > 0)) return CDMPP_OK;
    CD_TRY(device_of(w, cd_device_name_of(r.target, l->path), &s.device, err));
    s.task = cd_task_registry_index(w->tasks, t);
    s.steps = cd_record_steps_key(r.step, r.n_step);
    s.log_s = log(label.latency_s);
    if (CD_GROW(w->v, w->n, w->cap)) return CD_FAIL(err, ENOMEM, "%zu records", w->n);
    w->v[w->n++] = s;
    return CDMPP_OK;
}

static cdmpp_status read_all(work *w, const char *const *path, size_t n,
                             const cd_record_listener *l, cdmpp_err *err) {
    cd_record_reader *file;
    cd_arena a = {0};
    cdmpp_status st = cd_record_reader_open(path, n, &file, err);
    if (st) return st;
    for (cd_recline line;;) {
        cdmpp_err why = {0};
        st = cd_record_reader_next(file, &line, &why);
        if (!st && !line.text) break;
        if (!st) st = cd_err_at(&why, add(w, &a, &line, &why), line.path, line.number);
        cd_arena_reset(&a);
        if (st == CDMPP_ERANGE && w->n_device == MOST) {
            if (err) *err = why;
            break;
        }
        if (st && (st = cd_record_listener_bad(l, &why, err))) break;
    }
    cd_arena_free(&a);
    cd_record_reader_close(file);
    return st;
}

/* ---- comparing ---- */
static int by_probe(const void *a, const void *b) {
    const sample *x = a, *y = b;
    if (x->task != y->task) return x->task < y->task ? -1 : 1;
    if (x->steps != y->steps) return x->steps < y->steps ? -1 : 1;
    return (x->log_s > y->log_s) - (x->log_s < y->log_s);
}

static int class_of(const cd_task *t) {
    double bytes = 0;
    for (uint32_t k = 0; k < t->dag->n_arg; k++) {
        const uint32_t tensor = t->dag->arg[k];
        const cd_te_op *op = &t->dag->op[t->dag->tensor_op[tensor]];
        double n = cd_expr_dtype_bytes(op->dtype[tensor - op->first_tensor]);
        for (uint32_t i = 0; i < op->rank; i++) n *= (double)op->shape[i];
        bytes += n;
    }
    return (cd_task_flop(t) < DENSE * bytes ? 2 : 0) + (bytes > SMALL);
}

/* One probe: all samples of a program or a task, the fastest first. It counts where each device has
 * one. */
static void compare(work *w, const sample *s, size_t n) {
    double fastest[MOST], mean = 0;
    int found = 0;
    for (int d = 0; d < w->n_device; d++) fastest[d] = (double)NAN;
    for (size_t i = 0; i < n; i++)
        if (isnan(fastest[s[i].device]))
            fastest[s[i].device] = s[i].log_s, mean += s[i].log_s, found++;
    if (found < w->n_device) return;
    const int c = class_of(cd_task_registry_at(w->tasks, s->task));
    for (int d = 0; d < w->n_device; d++) w->sum[d][c] += mean / found - fastest[d];
    w->n_of[c]++;
    w->n_probe++;
}

static void compare_all(work *w) {
    memset(w->sum, 0, sizeof w->sum);
    memset(w->n_of, 0, sizeof w->n_of);
    w->n_probe = 0;
    qsort(w->v, w->n, sizeof *w->v, by_probe);
    for (size_t i = 0, k; i < w->n; i = k) {
        for (k = i; k < w->n && w->v[k].task == w->v[i].task && w->v[k].steps == w->v[i].steps;)
            k++;
        compare(w, w->v + i, k - i);
    }
}

/* Programs where enough are shared: they compare devices alone. Best records compare the searches
 * too. */
static cdmpp_status choose(work *w, cdmpp_err *err) {
    if (w->n_device < 2)
        return CD_FAIL(err, ENODATA, "expected records of two devices or more, found %s",
                       w->n_device ? w->name[0] : "none");
    w->programs = true;
    compare_all(w);
    if (w->n_probe >= ENOUGH) return CDMPP_OK;
    const size_t programs = w->n_probe;
    w->programs = false;
    for (size_t i = 0; i < w->n; i++) w->v[i].steps = 0;
    compare_all(w);
    if (w->n_probe >= ENOUGH) return CDMPP_OK;
    return CD_FAIL(err, ENODATA,
                   "%d devices share %zu programs and %zu tasks, expected %d of one or the other: "
                   "%s and %s have nothing to compare them by",
                   w->n_device, programs, w->n_probe, ENOUGH, w->name[0], w->name[1]);
}

/* ---- writing ---- */
static void put(const work *w, int d, const cd_device_table *devices, cd_buf *out) {
    const cd_device *known = NULL;
    cd_describe_entry e;
    cd_describe_entry_init(&e, CD_DEVICE_CPU);
    if (devices && !cd_device_table_find(devices, w->name[d], &known, NULL)) e.device = *known;
    snprintf(e.name, sizeof e.name, "%s", w->name[d]);
    snprintf(
        e.head, sizeof e.head,
        "rank_*: from %s%zu %s that all %d devices here have run; they compare with these alone%s",
        w->programs ? "" : "the best records of ", w->n_probe, w->programs ? "programs" : "tasks",
        w->n_device, known ? "" : "\nNo description knows this device.");
    e.device.name = e.name;
    for (int c = 0; c < N_CLASS; c++)
        e.device.probe[CD_DEVICE_PROBE_rank_dense_small + c] =
            w->n_of[c] ? exp(w->sum[d][c] / (double)w->n_of[c]) : 0;
    for (int c = 0; c < N_CLASS; c++)
        if (!w->n_of[c])
            snprintf(e.probed, sizeof e.probed, "%s: not known: no program of its kind is shared",
                     cd_device_probe_name((size_t)(CD_DEVICE_PROBE_rank_dense_small + c)));
    cd_describe_entry_put_yaml(out, &e);
}

cdmpp_status cd_describe_records(const cd_task_registry *tasks, const char *const *path, size_t n,
                                 const cd_device_table *devices, const cd_record_listener *l,
                                 cd_buf *out, cdmpp_err *err) {
    work *w = cd_mem_zalloc(1, sizeof *w);
    if (!w) return CD_FAIL(err, ENOMEM, "records");
    w->tasks = tasks;
    cdmpp_status st = read_all(w, path, n, l, err);
    if (!st) st = choose(w, err);
    for (int d = 0; !st && d < w->n_device; d++) put(w, d, devices, out);
    if (!st && out->oom) st = CD_FAIL(err, ENOMEM, "descriptions");
    cd_mem_free(w->v);
    cd_arena_free(&w->arena);
    cd_mem_free(w);
    return st;
}

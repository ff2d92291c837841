/* How much better than it is a program looks that was picked as the fastest of many by measurement:
 * figures over the fastest program of each task. */
#include "learner/train/selection_bias.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The programs of all tasks, task by task: those of g at [start[g], start[g + 1]). */
typedef struct {
    size_t n_task;
    size_t *start;             /* (n_task + 1) */
    double *measured, *median; /* (n) logarithms */
    double *work;              /* (n) */
} by_task;

static void by_task_free(by_task *t) {
    cd_mem_free(t->start);
    cd_mem_free(t->measured);
}

static cdmpp_status sort_out(const double *measured_s, const double *median_s,
                             const uint32_t *group, size_t n, by_task *t, cdmpp_err *err) {
    *t = (by_task){0};
    for (size_t i = 0; i < n; i++)
        t->n_task = group[i] >= t->n_task ? (size_t)group[i] + 1 : t->n_task;
    t->start = cd_mem_zalloc(t->n_task + 2, sizeof *t->start);
    t->measured = cd_mem_zalloc(3 * n + 1, sizeof *t->measured);
    if (!t->start || !t->measured) {
        by_task_free(t);
        return CD_FAIL(err, ENOMEM, "%zu programs of %zu tasks", n, t->n_task);
    }
    t->median = t->measured + n;
    t->work = t->median + n;
    size_t *next = t->start + 1; /* one place on while they are filled */
    for (size_t i = 0; i < n; i++) next[group[i] + 1]++;
    for (size_t g = 1; g <= t->n_task; g++) next[g] += next[g - 1];
    for (size_t i = 0; i < n; i++) {
        const size_t at = next[group[i]]++;
        t->measured[at] = log(measured_s[i]);
        t->median[at] = log(median_s[i]);
    }
    return CDMPP_OK;
}

/* Is the task one that says something: enough programs, all with an answer. */
static bool counts(const by_task *t, size_t g) {
    const size_t beg = t->start[g], end = t->start[g + 1];
    for (size_t i = beg; i < end; i++)
        if (!isfinite(t->measured[i]) || !isfinite(t->median[i])) return false;
    return end - beg >= CD_SELECTION_BIAS_MIN;
}

/* What errors of programs of one task differ by. The median of absolute values: some slow programs
 * are wrong by whole factors, and it is not they that might be the fastest. 1.4826: of a normal
 * number over that median. */
static double within_of(by_task *t) {
    size_t n = 0;
    for (size_t g = 0; g < t->n_task; g++) {
        const size_t beg = t->start[g], end = t->start[g + 1];
        double mean = 0;
        if (!counts(t, g)) continue;
        for (size_t i = beg; i < end; i++)
            mean += (t->measured[i] - t->median[i]) / (double)(end - beg);
        const double lost = sqrt((double)(end - beg) / (double)(end - beg - 1)); /* to the mean */
        for (size_t i = beg; i < end; i++)
            t->work[n++] = lost * fabs(t->measured[i] - t->median[i] - mean);
    }
    if (!n) return 0;
    cd_sort_doubles(t->work, n);
    return 1.4826 * t->work[n / 2];
}

/* Mean and standard deviation of ln(measured of the fastest / what is told of it), alone or among
 * the others. */
static void ratio_of(const by_task *t, double within, size_t *n, double *ratio, double *spread) {
    double sum = 0, square = 0;
    *n = 0;
    for (size_t g = 0; g < t->n_task; g++) {
        const size_t beg = t->start[g], end = t->start[g + 1];
        size_t best = beg;
        if (!counts(t, g)) continue;
        for (size_t i = beg; i < end; i++)
            if (t->measured[i] < t->measured[best]) best = i;
        const double e = t->measured[best] -
                         cd_order_stat_mean(t->median + beg, NULL, end - beg, best - beg, within);
        sum += e;
        square += e * e;
        ++*n;
    }
    const double mean = *n ? sum / (double)*n : 0;
    *ratio = exp(mean);
    *spread = *n > 1 ? sqrt(fmax(0, (square - mean * sum) / (double)(*n - 1))) : 0;
}

cdmpp_status cd_selection_bias_of(const double *measured_s, const double *median_s,
                                  const uint32_t *group, size_t n, cd_selection_bias *out,
                                  cdmpp_err *err) {
    by_task t;
    *out = (cd_selection_bias){.ratio = 1, .among = 1};
    CD_TRY(sort_out(measured_s, median_s, group, n, &t, err));
    out->within = within_of(&t);
    ratio_of(&t, 0, &out->n, &out->ratio, &out->spread);
    ratio_of(&t, out->within, &out->n, &out->among, &out->among_spread);
    by_task_free(&t);
    return CDMPP_OK;
}

static cdmpp_status name_of(const cd_training_set *t, size_t program, cd_buf *work, uint64_t *out,
                            cdmpp_err *err) {
    cd_buf_clear(work);
    cd_buf_putf(work, "%s\n%s", t->d->task_name[t->d->task[program]],
                t->device_name[t->device[program]]);
    if (work->oom) return CD_FAIL(err, ENOMEM, "name of a task");
    *out = cd_stable_id_name(work->p);
    return CDMPP_OK;
}

/* Tasks are named by a hash of what they are, so that a later data set can be compared with the
 * list. */
cdmpp_status cd_selection_bias_tasks(const cd_training_set *t, cd_buf *json, cdmpp_err *err) {
    const size_t n = t->split->n_program[CD_SPLIT_PART_TRAIN];
    const uint32_t *program = t->program[CD_SPLIT_PART_TRAIN];
    uint64_t *name = cd_mem_zalloc(n + 1, sizeof *name);
    cd_buf work = {0};
    cdmpp_status st = CDMPP_OK;
    if (!name) return CD_FAIL(err, ENOMEM, "%zu programs", n);
    for (size_t i = 0; !st && i < n; i++) {
        const bool again = i && t->group[program[i]] == t->group[program[i - 1]];
        if (again) name[i] = name[i - 1];
        else st = name_of(t, program[i], &work, &name[i], err);
    }
    if (!st) qsort(name, n, sizeof *name, cd_sort_by_u64);
    cd_buf_puts(json, "[");
    for (size_t i = 0; !st && i < n; i++)
        if (!i || name[i] != name[i - 1])
            cd_buf_putf(json, "%s\"%016" PRIx64 "\"", i ? "," : "", name[i]);
    cd_buf_puts(json, "]");
    cd_buf_free(&work);
    cd_mem_free(name);
    if (st) return st;
    return json->oom ? CD_FAIL(err, ENOMEM, "names of tasks") : CDMPP_OK;
}

static void put_one(cd_buf *b, const char *name, const cd_selection_bias *x) {
    cd_buf_put_json_str(b, name, strlen(name));
    cd_buf_putf(b,
                ":{\"n\":%zu,\"ratio\":%.9g,\"spread\":%.9g,\"within\":%.9g,\"among\":%.9g,\"among_"
                "spread\":%.9g}",
                x->n, x->ratio, x->spread, x->within, x->among, x->among_spread);
}

/* Devices with too few tasks are left out. */
cdmpp_status cd_selection_bias_by_device(const double *measured_s, const double *median_s,
                                         const uint32_t *group, const uint32_t *device, size_t n,
                                         const char *const *name, size_t n_device, cd_buf *json,
                                         cdmpp_err *err) {
    double *v = cd_mem_zalloc(2 * n + 1, sizeof *v);
    uint32_t *g = cd_mem_zalloc(n + 1, sizeof *g);
    cdmpp_status st = v && g ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu programs", n);
    for (size_t d = 0; !st && d < n_device; d++) {
        cd_selection_bias x;
        size_t k = 0;
        for (size_t i = 0; i < n; i++)
            if (device[i] == d) v[k] = measured_s[i], v[n + k] = median_s[i], g[k++] = group[i];
        st = cd_selection_bias_of(v, v + n, g, k, &x, err);
        if (st || x.n < CD_SELECTION_BIAS_FEW) continue;
        if (json->n) cd_buf_puts(json, ",");
        put_one(json, name[d], &x);
    }
    cd_mem_free(v);
    cd_mem_free(g);
    if (st) return st;
    return json->oom ? CD_FAIL(err, ENOMEM, "figures of %zu devices", n_device) : CDMPP_OK;
}

static void put_text(cd_buf *b, const char *name, const cd_buf *text, const char *around) {
    cd_buf_putf(b, ",\"%s\":%c", name, around[0]);
    if (text->n) cd_buf_put(b, text->p, text->n);
    cd_buf_putf(b, "%c", around[1]);
}

void cd_selection_bias_json(cd_buf *b, const cd_selection_bias *train,
                            const cd_selection_bias *valid, const cd_buf *train_of,
                            const cd_buf *valid_of, const cd_buf *tasks) {
    cd_buf_puts(b, "\"best\":{");
    put_one(b, "train", train);
    cd_buf_puts(b, ",");
    put_one(b, "validation", valid);
    put_text(b, "train_of", train_of, "{}");
    put_text(b, "validation_of", valid_of, "{}");
    cd_buf_puts(b, ",\"tasks\":");
    cd_buf_put(b, tasks->p ? tasks->p : "[]", tasks->p ? tasks->n : 2);
    cd_buf_puts(b, "}");
}

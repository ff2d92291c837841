#include "learner/best.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "dataset/key.h"

typedef struct {
    size_t n;
    double least, log_ratio;
} fastest;

static cdmpp_status find(const double *measured_s, const double *median_s, const uint32_t *group, size_t n, fastest **out, size_t *n_group,
                         cdmpp_err *err) {
    *n_group = 0;
    for (size_t i = 0; i < n; i++) *n_group = group[i] >= *n_group ? (size_t)group[i] + 1 : *n_group;
    fastest *f = *out = cd_calloc(*n_group + 1, sizeof *f);
    if (!f) return CD_FAIL(err, ENOMEM, "%zu tasks", *n_group);
    for (size_t i = 0; i < n; i++) {
        fastest *g = &f[group[i]];
        if (g->n++ && !(measured_s[i] < g->least)) continue;
        g->least = measured_s[i];
        g->log_ratio = log(measured_s[i] / median_s[i]);
    }
    return CDMPP_OK;
}

cdmpp_status cd_best_of(const double *measured_s, const double *median_s, const uint32_t *group, size_t n, cd_best *out, cdmpp_err *err) {
    fastest *f;
    size_t n_group;
    double sum = 0, square = 0;
    *out = (cd_best){.ratio = 1};
    CD_TRY(find(measured_s, median_s, group, n, &f, &n_group, err));
    for (size_t g = 0; g < n_group; g++) {
        if (f[g].n < CD_BEST_LEAST || !isfinite(f[g].log_ratio)) continue;
        out->n++;
        sum += f[g].log_ratio;
        square += f[g].log_ratio * f[g].log_ratio;
    }
    cd_free(f);
    if (!out->n) return CDMPP_OK;
    const double mean = sum / (double)out->n;
    out->ratio = exp(mean);
    if (out->n > 1) out->spread = sqrt(fmax(0, (square - mean * sum) / (double)(out->n - 1)));
    return CDMPP_OK;
}

static int ascending(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static cdmpp_status name_of(const cd_trainset *t, size_t program, cd_buf *work, uint64_t *out, cdmpp_err *err) {
    cd_buf_clear(work);
    cd_buf_putf(work, "%s\n%s", t->d->task_name[t->d->task[program]], t->device_name[t->device[program]]);
    if (work->oom) return CD_FAIL(err, ENOMEM, "name of a task");
    *out = cd_key_name(work->p);
    return CDMPP_OK;
}

cdmpp_status cd_best_tasks(const cd_trainset *t, cd_buf *json, cdmpp_err *err) {
    const size_t n = t->split->n_program[CD_PART_TRAIN];
    const uint32_t *program = t->program[CD_PART_TRAIN];
    uint64_t *name = cd_calloc(n + 1, sizeof *name);
    cd_buf work = {0};
    cdmpp_status st = CDMPP_OK;
    if (!name) return CD_FAIL(err, ENOMEM, "%zu programs", n);
    for (size_t i = 0; !st && i < n; i++) {
        const bool again = i && t->group[program[i]] == t->group[program[i - 1]];
        if (again) name[i] = name[i - 1];
        else st = name_of(t, program[i], &work, &name[i], err);
    }
    if (!st) qsort(name, n, sizeof *name, ascending);
    cd_buf_puts(json, "[");
    for (size_t i = 0; !st && i < n; i++)
        if (!i || name[i] != name[i - 1]) cd_buf_putf(json, "%s\"%016" PRIx64 "\"", i ? "," : "", name[i]);
    cd_buf_puts(json, "]");
    cd_buf_free(&work);
    cd_free(name);
    if (st) return st;
    return json->oom ? CD_FAIL(err, ENOMEM, "names of tasks") : CDMPP_OK;
}

static void put_one(cd_buf *b, const char *name, const cd_best *x) {
    cd_buf_putf(b, "\"%s\":{\"n\":%zu,\"ratio\":%.9g,\"spread\":%.9g}", name, x->n, x->ratio, x->spread);
}

void cd_best_json(cd_buf *b, const cd_best *train, const cd_best *valid, const cd_buf *tasks) {
    cd_buf_puts(b, "\"best\":{");
    put_one(b, "train", train);
    cd_buf_puts(b, ",");
    put_one(b, "validation", valid);
    cd_buf_puts(b, ",\"tasks\":");
    cd_buf_put(b, tasks->p ? tasks->p : "[]", tasks->p ? tasks->n : 2);
    cd_buf_puts(b, "}");
}

/* Collects what a report needs while a training runs, and writes page, JSON and CSV at its end. */
#include "learner/report/report.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"

/* One curve while it grows: three columns. */
typedef struct {
    char name[48];
    double *step, *train, *valid;
    size_t n, cap[3];
} series;

struct cd_train_artifacts {
    cd_arena arena;
    cd_report r;          /* all but curves and title */
    pthread_mutex_t lock; /* curves */
    series *curve;
    size_t n_curve, cap_curve;
    char step_name[16];
    bool oom;
};

cdmpp_status cd_train_artifacts_new(cd_train_artifacts **out, cdmpp_err *err) {
    cd_train_artifacts *k = cd_mem_zalloc(1, sizeof *k);
    if (!k) return CD_FAIL(err, ENOMEM, "report");
    pthread_mutex_init(&k->lock, NULL);
    *out = k;
    return CDMPP_OK;
}

void cd_train_artifacts_free(cd_train_artifacts *k) {
    if (!k) return;
    for (size_t i = 0; i < k->n_curve; i++) {
        cd_mem_free(k->curve[i].step);
        cd_mem_free(k->curve[i].train);
        cd_mem_free(k->curve[i].valid);
    }
    cd_mem_free(k->curve);
    cd_arena_free(&k->arena);
    pthread_mutex_destroy(&k->lock);
    cd_mem_free(k);
}

/* ---- copies ---- */
static void *copy(cd_train_artifacts *k, const void *from, size_t n, size_t size) {
    void *p = cd_arena_alloc(&k->arena, n + 1, size);
    if (!p) k->oom = true;
    else if (n) memcpy(p, from, n * size);
    return p;
}

static const char *copy_text(cd_train_artifacts *k, const char *s) {
    return copy(k, s, strlen(s) + 1, 1);
}

static char **copy_names(cd_train_artifacts *k, char *const *name, size_t n) {
    char **v = CD_NEWN(&k->arena, char *, n + 1);
    if (!v) k->oom = true;
    for (size_t i = 0; v && i < n; i++) v[i] = copy(k, name[i], strlen(name[i]) + 1, 1);
    return v;
}

static cdmpp_status kept(const cd_train_artifacts *k, cdmpp_err *err) {
    return k->oom ? CD_FAIL(err, ENOMEM, "report") : CDMPP_OK;
}

static void copy_config(cd_train_artifacts *k, const cd_config *c, bool on_disk) {
    cd_buf yaml = {0};
    cd_config_print_identity(&yaml, c, on_disk);
    if (yaml.oom) k->oom = true;
    k->r.config = copy_text(k, yaml.p ? yaml.p : "");
    cd_buf_free(&yaml);
}

static void copy_notes(cd_train_artifacts *k, const cd_split *s) {
    cd_buf b = {0};
    cd_split_notes(&b, s);
    if (b.oom) k->oom = true;
    if (b.n) k->r.split_note = copy_text(k, b.p);
    cd_buf_free(&b);
}

static const char *word_of(cd_train_artifacts *k, const char *words, int i) {
    const char *s = cd_str_dup(&k->arena, cd_enum_names_at(words, i));
    if (!s) k->oom = true;
    return s;
}

/* Everything is copied, because data set and split are freed before the report is written. */
cdmpp_status cd_train_artifacts_data(cd_train_artifacts *k, const cd_config *c, const cd_dataset *d,
                                     const cd_split *s, const cd_filter_count *f, cdmpp_err *err) {
    if (!k) return CDMPP_OK;
    cd_report *r = &k->r;
    r->n_task = d->n_task, r->n_device = d->n_device, r->n_network = d->n_network;
    r->task_name = copy_names(k, d->task_name, d->n_task);
    r->device_name = copy_names(k, d->device_name, d->n_device);
    r->network_name = copy_names(k, d->network_name, d->n_network);
    r->n_source = d->n_source;
    r->source_name = copy_names(k, d->source_name, d->n_source);
    r->n_net_task = d->n_net_task;
    r->net_network = copy(k, d->net_network, d->n_net_task, sizeof *d->net_network);
    r->net_task = copy(k, d->net_task, d->n_net_task, sizeof *d->net_task);
    r->kind = s->kind;
    r->seed = (uint64_t)c->split_seed;
    r->split_digest = copy_text(k, s->digest);
    r->n_target_task = s->target ? s->n_chosen : 0;
    copy_notes(k, s);
    r->content_digest = copy_text(k, d->content_digest);
    memcpy(r->n_task_of, s->n_task, sizeof r->n_task_of);
    r->filter = *f;
    r->version = cdmpp_version();
    r->loss_name = c->train_objective ? word_of(k, CD_OBJECTIVES, c->train_objective)
                                      : word_of(k, CD_TREE_LOSSES, c->train_loss);
    if (c->train_objective == CD_OBJECTIVE_RANK && c->train_rank_loss)
        r->loss_name = word_of(k, CD_RANK_LOSSES, c->train_rank_loss);
    /* cd_objective_figure */
    if (c->train_objective == CD_OBJECTIVE_RANK && c->train_rank_loss == CD_RANK_LOSS_LAMBDARANK)
        r->loss_name = "1 - NDCG";
    copy_config(k, c, cd_spool_on_disk(d->spool));
    return kept(k, err);
}

/* Only of what the model gives: a model without intervals has no low_s and high_s. */
cdmpp_status cd_train_artifacts_part(cd_train_artifacts *k, cd_split_part p, const cd_dataset *d,
                                     const uint32_t *program, size_t n,
                                     const cd_train_artifacts_score *s, const cd_metric *m,
                                     cdmpp_err *err) {
    if (!k) return CDMPP_OK;
    double *y = cd_arena_alloc(&k->arena, n + 1, sizeof *y);
    uint32_t *task = cd_arena_alloc(&k->arena, n + 1, sizeof *task),
             *device = cd_arena_alloc(&k->arena, n + 1, sizeof *device);
    uint32_t *file = d->source_file ? cd_arena_alloc(&k->arena, n + 1, sizeof *file) : NULL;
    uint64_t *line = d->source_file ? cd_arena_alloc(&k->arena, n + 1, sizeof *line) : NULL;
    if (!y || !task || !device || (d->source_file && (!file || !line)))
        return CD_FAIL(err, ENOMEM, "report of %zu programs", n);
    for (size_t i = 0; i < n; i++) {
        y[i] = d->latency_s[program[i]];
        task[i] = d->task[program[i]];
        device[i] = d->device[program[i]];
        if (file) file[i] = d->source_file[program[i]], line[i] = d->source_line[program[i]];
    }
    cd_report_part *to = &k->r.part[p];
    *to = (cd_report_part){.n = n,
                           .measured_s = y,
                           .task = task,
                           .device = device,
                           .source_file = file,
                           .source_line = line,
                           .metrics = *m};
    to->predicted_s = copy(k, s->predicted_s, n, sizeof *y);
    if (s->low_s && s->high_s) {
        to->low_s = copy(k, s->low_s, n, sizeof *y);
        to->high_s = copy(k, s->high_s, n, sizeof *y);
    }
    if (s->order_s) to->order_s = copy(k, s->order_s, n, sizeof *y);
    if (s->rel_std) to->rel_std = copy(k, s->rel_std, n, sizeof *y);
    if (s->out_of_range) to->out_of_range = copy(k, s->out_of_range, n, 1);
    return kept(k, err);
}

/* ---- curves ---- */
static series *find(cd_train_artifacts *k, const char *name) {
    for (size_t i = 0; i < k->n_curve; i++)
        if (!strcmp(k->curve[i].name, name)) return &k->curve[i];
    if (CD_GROW(k->curve, k->n_curve, k->cap_curve)) return NULL;
    series *v = &k->curve[k->n_curve++];
    *v = (series){0};
    strncpy(v->name, name, sizeof v->name - 1);
    return v;
}

static bool add(series *v, double step, double train, double valid) {
    if (CD_GROW(v->step, v->n, v->cap[0]) || CD_GROW(v->train, v->n, v->cap[1]) ||
        CD_GROW(v->valid, v->n, v->cap[2]))
        return false;
    v->step[v->n] = step;
    v->train[v->n] = train;
    v->valid[v->n++] = valid;
    return true;
}

void cd_train_artifacts_loss(cd_train_artifacts *k, const cd_progress_event *t) {
    if (!k) return;
    pthread_mutex_lock(&k->lock);
    series *v = find(k, t->member);
    if (!v || !add(v, (double)t->step, t->train, t->valid)) k->oom = true;
    strncpy(k->step_name, t->unit, sizeof k->step_name - 1);
    pthread_mutex_unlock(&k->lock);
}

/* "member 2" before "member 10". */
static int by_name(const void *pa, const void *pb) {
    const char *a = ((const cd_report_curve *)pa)->name, *b = ((const cd_report_curve *)pb)->name;
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            char *ea, *eb;
            const unsigned long x = strtoul(a, &ea, 10), y = strtoul(b, &eb, 10);
            if (x != y) return x < y ? -1 : 1;
            a = ea, b = eb;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++, b++;
        }
    }
    return *a ? 1 : *b ? -1 : 0;
}

/* Curves in the order of their names: members finish in any order. */
cdmpp_status cd_train_artifacts_report(cd_train_artifacts *k, cd_report *out, cdmpp_err *err) {
    cd_report_curve *v = CD_NEWN(&k->arena, cd_report_curve, k->n_curve + 1);
    if (!v) k->oom = true;
    CD_TRY(kept(k, err));
    for (size_t i = 0; i < k->n_curve; i++) {
        const series *s = &k->curve[i];
        v[i] = (cd_report_curve){s->name, s->n, s->step, s->train, s->valid};
    }
    if (k->n_curve) qsort(v, k->n_curve, sizeof *v, by_name);
    *out = k->r;
    out->curve = v;
    out->n_curve = k->n_curve;
    out->step_name = k->step_name;
    return CDMPP_OK;
}

/* ---- files ---- */
/* "a/b.html": the length of "a/b"; of anything else, all of it. */
static size_t stem_of(const char *path) {
    const size_t n = strlen(path);
    return n > 5 && !strcmp(path + n - 5, ".html") && path[n - 6] != '/' ? n - 5 : n;
}

/* What is there and begins otherwise is not ours: measured records beside the page are more work
 * than it. */
static cdmpp_status is_ours(const char *path, size_t stem, const char *end, const char *begins,
                            cdmpp_err *err) {
    char head[64] = "";
    cd_buf name = {0};
    cd_buf_put(&name, path, stem);
    cd_buf_puts(&name, end);
    FILE *f = name.oom ? NULL : fopen(name.p, "rb");
    const size_t n = f ? fread(head, 1, strlen(begins), f) : 0;
    const cdmpp_status st =
        n && memcmp(head, begins, n) != 0
            ? CD_FAIL(err, EUSAGE,
                      "the report would overwrite %s, which is no report: name another page",
                      name.p)
            : CDMPP_OK;
    if (f) (void)fclose(f);
    cd_buf_free(&name);
    return st;
}

cdmpp_status cd_train_artifacts_check(const char *path, cdmpp_err *err) {
    if (!path[0]) return CDMPP_OK;
    CD_TRY(is_ours(path, stem_of(path), ".json", "{\"schema\":\"cdmpp.trainreport/", err));
    return is_ours(path, stem_of(path), ".csv", "part,task,device,measured_s,", err);
}

typedef cdmpp_status put_report(cd_buf *out, const cd_report *r, cdmpp_err *err);

static cdmpp_status put_file(put_report *put, const cd_report *r, const char *path, size_t stem,
                             const char *end, cdmpp_err *err) {
    cd_buf b = {0}, name = {0};
    cd_buf_put(&name, path, stem);
    cd_buf_puts(&name, end);
    cdmpp_status st = name.oom ? CD_FAIL(err, ENOMEM, "report") : CDMPP_OK;
    if (!st) st = put(&b, r, err);
    if (!st) st = cd_file_write(name.p, b.p, b.n, err);
    cd_buf_free(&b);
    cd_buf_free(&name);
    return st;
}

/* The page comes last, so that a page that is there has its data beside it. */
cdmpp_status cd_train_artifacts_write(cd_train_artifacts *k, const char *path, const char *command,
                                      cdmpp_err *err) {
    cd_report r;
    if (!k) return CDMPP_OK;
    CD_TRY(cd_train_artifacts_report(k, &r, err));
    const size_t stem = stem_of(path);
    const char *slash = memrchr(path, '/', stem), *base = slash ? slash + 1 : path;
    char *title = cd_arena_zalloc(&k->arena, strlen(path) + 1, 1);
    if (!title) return CD_FAIL(err, ENOMEM, "report");
    memcpy(title, base, stem - (size_t)(base - path));
    r.title = title;
    r.command = command;
    CD_TRY(put_file(cd_report_write_csv, &r, path, stem, ".csv", err));
    CD_TRY(put_file(cd_report_write_json, &r, path, stem, ".json", err));
    return put_file(cd_report_write_html, &r, path, stem, path + stem, err);
}

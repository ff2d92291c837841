/* The training door: data, split, members, calibration, figures, model file, in this order. The
 * test part is read when everything is decided. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learner/train/device_law_fit.h"
#include "learner/train/selection_bias.h"
#include "learner/train/train_internal.h"

/* How much better than it is a program looks that was picked as the fastest of many by measurement:
 * figures over the fastest program of each task. */

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

/* Where a model comes from, as members of its header: tools, data, split, figures,
 * configuration. */

static void text(cd_buf *b, const char *name, const char *s) {
    cd_buf_putf(b, "\"%s\":", name);
    cd_buf_put_json_str(b, s, strlen(s));
}

static void put_config(cd_buf *b, const cd_config *c, bool on_disk) {
    cd_buf yaml = {0};
    cd_config plain = *c; /* borrows; where the file was put is no part of what it is */
    plain.output_model = plain.output_report = plain.data_source = "";
    cd_config_print_identity(&yaml, &plain, on_disk);
    if (yaml.oom) b->oom = true;
    text(b, "config", yaml.p ? yaml.p : "");
    cd_buf_free(&yaml);
}

/* Names of files as given; digests tell which contents. */
static void put_data(cd_buf *b, const cd_config *c, const cd_dataset *d, const cd_filter_count *f) {
    cd_buf_puts(b, "\"data\":{\"files\":[");
    for (size_t i = 0; i < c->data_files.n; i++) {
        const char *name = c->data_files.v[i];
        if (i) cd_buf_puts(b, ",");
        cd_buf_put_json_str(b, name, strlen(name));
    }
    cd_buf_puts(b, "],");
    text(b, "content_digest", d->content_digest);
    cd_buf_putf(b, ",\"programs\":%zu,\"kept\":%zu,\"dropped\":{", f->in, f->kept);
    for (int k = 0; k < CD_FILTER_N_DROP; k++) {
        if (k) cd_buf_puts(b, ",");
        cd_buf_put_json_str(b, cd_filter_drop_text((cd_filter_drop)k),
                            strlen(cd_filter_drop_text((cd_filter_drop)k)));
        cd_buf_putf(b, ":%zu", f->drop[k]);
    }
    cd_buf_puts(b, "}}");
}

/* Which tasks of the held-out device were trained on, in the order of choice. */
static void put_target(cd_buf *b, const cd_dataset *d, const cd_split *s) {
    cd_buf_putf(b,
                ",\"target\":{\"candidates\":%zu,\"unlabelled\":%zu,\"programs\":[%zu,%zu,%zu],"
                "\"chosen\":[",
                s->n_candidate, s->n_unlabelled, s->n_target[0], s->n_target[1], s->n_target[2]);
    for (size_t k = 0; k < s->n_chosen; k++) {
        if (k) cd_buf_puts(b, ",");
        cd_buf_put_json_str(b, d->task_name[s->chosen[k]], strlen(d->task_name[s->chosen[k]]));
    }
    cd_buf_puts(b, "]}");
}

static void put_split(cd_buf *b, const cd_config *c, const cd_dataset *d, const cd_split *s) {
    cd_buf_putf(b, "\"split\":{\"kind\":\"%s\",\"seed\":%lld,", cd_split_name(s->kind),
                (long long)c->split_seed);
    text(b, "digest", s->digest);
    for (int p = 0; p < CD_SPLIT_N_PART; p++)
        cd_buf_putf(b, ",\"%s\":{\"programs\":%zu,\"tasks\":%zu,\"digest\":\"%s\"}",
                    cd_split_part_name((cd_split_part)p), s->n_program[p], s->n_task[p],
                    s->hash[p]);
    cd_buf_putf(b, ",\"unused\":%zu,\"shared_tasks\":%zu", s->n_unused, s->n_shared);
    if (s->target) put_target(b, d, s);
    cd_buf_puts(b, "}");
}

/* Appends the members of a header, without braces.
 *
 * The order of the keys is the order in the file, which must not change between equal trainings. */
static void cd_provenance(cd_buf *b, const cd_config *c, const cd_dataset *d, const cd_split *s,
                          const cd_learner_result *l) {
    char xgboost[32];
    cd_xgb_version(xgboost);
    cd_buf_putf(b, "\"tool\":{\"name\":\"cdmpp\",\"version\":\"%s\",\"xgboost\":\"%s\"},",
                cdmpp_version(), xgboost);
    put_data(b, c, d, &l->filter);
    cd_buf_puts(b, ",");
    put_split(b, c, d, s);
    cd_buf_puts(b, ",\"metrics\":{");
    for (int p = 0; p < CD_SPLIT_N_PART; p++) {
        cd_buf_putf(b, "%s\"%s\":", p ? "," : "", cd_split_part_name((cd_split_part)p));
        cd_metric_json(b, &l->metrics[p]);
    }
    cd_buf_puts(b, "},\"uncertainty\":{");
    for (int p = 0; p < CD_SPLIT_N_PART; p++) {
        cd_buf_putf(b, "%s\"%s\":", p ? "," : "", cd_split_part_name((cd_split_part)p));
        cd_uncertainty_json(b, &l->unsure[p]);
    }
    cd_buf_puts(b, "},");
    cd_selection_bias_json(b, &l->best[CD_SPLIT_PART_TRAIN], &l->best[CD_SPLIT_PART_VALID],
                           &l->best_of[CD_SPLIT_PART_TRAIN], &l->best_of[CD_SPLIT_PART_VALID],
                           &l->tasks);
    cd_buf_puts(b, ",");
    if (c->model_tuner) {
        cd_buf_puts(b, "\"tuner_metrics\":{\"test\":");
        cd_metric_json(b, &l->tuner[1]);
        cd_buf_puts(b, ",\"validation\":");
        cd_metric_json(b, &l->tuner[0]);
        cd_buf_puts(b, "},");
    }
    put_config(b, c, cd_spool_on_disk(d->spool));
}

typedef struct {
    const cd_config *c;
    const cd_dataset *d;
    cd_dataset *own; /* of several ranks: d */
    cd_learner_options how;
    cd_training_set set;
    double *kind_log_s;  /* (n_kind, n_oof) out-of-fold answers */
    double *tuner_log_s; /* (n_oof) profile tuner's, likewise */
    double *order_log_s; /* (kinds of the order, n_oof) likewise; NULL: there are none */
    cd_learner_result *out;
} trainer;

cdmpp_status cd_learner_load(const cd_config *c, const cd_member_plan *plan, cd_dataset **out,
                             cdmpp_err *err) {
    return cd_training_set_load(c, plan, NULL, out, err);
}

int cd_learner_at_once(const cd_config *c, const cd_member_plan *plan, const cd_dataset *d) {
    return cd_training_set_at_once(c, plan, d);
}

/* ---- model ---- */
static cdmpp_status new_model(trainer *t, cdmpp_err *err) {
    const cd_training_set *set = &t->set;
    cd_model *m = t->out->model = cd_mem_zalloc(1, sizeof *m);
    if (!m) return CD_FAIL(err, ENOMEM, "model");
    m->device = CD_NEWN(&m->arena, const char *, set->n_device);
    m->device_is_gpu = CD_NEWN(&m->arena, uint8_t, set->n_device);
    m->device_vector = CD_NEWN(&m->arena, float, set->n_device * set->w_device);
    if (!m->device || !m->device_is_gpu || !m->device_vector)
        return CD_FAIL(err, ENOMEM, "%zu devices", set->n_device);
    memcpy(m->device_is_gpu, set->device_is_gpu, set->n_device);
    m->w_device = set->w_device;
    memcpy(m->device_vector, set->device_vector,
           set->n_device * set->w_device * sizeof *m->device_vector);
    for (size_t k = 0; k < set->n_device; k++) {
        m->device[k] =
            cd_str_dup(&m->arena, (cd_str){set->device_name[k], strlen(set->device_name[k])});
        if (!m->device[k]) return CD_FAIL(err, ENOMEM, "device name");
    }
    m->n_device = set->n_device;
    if (!set->numbers) return CDMPP_OK;
    m->numbers = CD_NEWN(&m->arena, cd_device_numbers, set->n_device);
    if (!m->numbers) return CD_FAIL(err, ENOMEM, "%zu devices", set->n_device);
    m->facts_set = set->facts_set;
    memcpy(m->numbers, set->numbers, set->n_device * sizeof *m->numbers);
    for (size_t k = 0; k < set->n_device; k++) m->numbers[k].name = m->device[k];
    return CDMPP_OK;
}

static void log_range(const trainer *t, cd_model *m) {
    const cd_training_set *set = &t->set;
    m->log_min = INFINITY;
    m->log_max = -INFINITY;
    for (size_t i = 0; i < set->split->n_program[CD_SPLIT_PART_TRAIN]; i++) {
        const double y = set->log_s[set->program[CD_SPLIT_PART_TRAIN][i]];
        m->log_min = fmin(m->log_min, y);
        m->log_max = fmax(m->log_max, y);
    }
    m->log_min -= 1;
    m->log_max += 1;
}

static bool on_step(void *ctx, const cd_progress_event *k) {
    const trainer *t = ctx;
    cd_progress_event all = *k;
    all.n_member = t->out->model->n_member + t->set.c->model_order.n * (size_t)t->set.n_fold;
    cd_train_artifacts_loss(t->out->keep, &all);
    return !t->how.tick || t->how.tick(t->how.ctx, &all);
}

/* ---- figures ---- */
/* How often each task occurs in the networks; 1 for tasks in none. */
static double *task_weights(cd_arena *a, const cd_dataset *d) {
    double *w = CD_NEWN(a, double, d->n_task);
    for (size_t k = 0; w && k < d->n_net_task; k++) w[d->net_task[k]] += (double)d->net_weight[k];
    for (size_t i = 0; w && i < d->n_task; i++)
        if (w[i] <= 0) w[i] = 1;
    return w;
}

enum { WIDE = 8 };
/* The programs behind the figures of a part, and what a model says of them. */
typedef struct {
    cd_arena arena;
    size_t n;
    /* (n) validation: those out of fold, which with several folds are all of train and validation
     *     part */
    const uint32_t *program;
    /* (WIDE, n) one block: measured, predicted, low, high, relative, weight, median, order */
    double *v;
    uint32_t *group;
    uint8_t *out_of_range;
} figures;

static void spread_out(const trainer *t, const cd_model_prediction *pred, const double *task_weight,
                       figures *f) {
    const cd_dataset *d = t->set.d;
    for (size_t i = 0; i < f->n; i++) {
        const size_t q = f->program[i];
        const cd_model_prediction *p = &pred[i];
        const double v[WIDE] = {d->latency_s[q], p->latency_s, p->low_s,
                                p->high_s,       p->rel_std,   task_weight[d->task[q]],
                                p->median_s,     p->order_s};
        for (size_t k = 0; k < WIDE; k++) f->v[k * f->n + i] = v[k];
        f->group[i] = t->set.group[q];
        f->out_of_range[i] = (p->flags & CD_MODEL_OUT_OF_RANGE) != 0;
    }
}

/* Out-of-fold programs as members judged them that never saw them (kind_log_s); others by the whole
 * model. */
static cdmpp_status judge(const trainer *t, const cd_model *m, const double *kind_log_s,
                          cd_split_part part, figures *f, cdmpp_err *err) {
    const bool oof = part == CD_SPLIT_PART_VALID;
    const size_t n = f->n = oof ? t->set.n_oof : t->set.split->n_program[part];
    const double *task_weight = task_weights(&f->arena, t->set.d);
    cd_model_prediction *pred = CD_NEWN(&f->arena, cd_model_prediction, n);
    f->program = oof ? t->set.oof : t->set.program[part];
    f->v = CD_NEWN(&f->arena, double, WIDE *n);
    f->group = CD_NEWN(&f->arena, uint32_t, n);
    f->out_of_range = CD_NEWN(&f->arena, uint8_t, n);
    if (f->arena.oom) return CD_FAIL(err, ENOMEM, "figures of %zu programs", n);
    if (oof)
        CD_TRY(cd_evaluate_answers(&t->set, m, t->how.pool, f->program, n, kind_log_s, pred, err));
    else CD_TRY(cd_evaluate(&t->set, m, t->how.pool, f->program, n, pred, err));
    if (oof && m->order) cd_model_mix_order(m, t->order_log_s, n, pred);
    spread_out(t, pred, task_weight, f);
    return CDMPP_OK;
}

/* Profile tuner, to hold against the whole model: on the test part, or out of fold. */
static cdmpp_status evaluate_tuner(trainer *t, cd_split_part part, cd_metric *m, cdmpp_err *err) {
    figures f = {0};
    cdmpp_status st = judge(t, cd_model_tuner(t->out->model), t->tuner_log_s, part, &f, err);
    if (!st)
        st = cd_metric_compute_ranked(f.v, f.v + f.n, f.v + 7 * f.n, f.group, f.v + 5 * f.n, f.n, m,
                                      err);
    cd_arena_free(&f.arena);
    return st;
}

/* Of each task's fastest program, over all devices and of each. */
static cdmpp_status best_of(trainer *t, cd_split_part part, figures *f, cdmpp_err *err) {
    const size_t n = f->n;
    uint32_t *device = CD_NEWN(&f->arena, uint32_t, n);
    if (!device) return CD_FAIL(err, ENOMEM, "%zu programs", n);
    for (size_t i = 0; i < n; i++) device[i] = t->set.device[f->program[i]];
    CD_TRY(cd_selection_bias_of(f->v, f->v + 6 * n, f->group, n, &t->out->best[part], err));
    return cd_selection_bias_by_device(f->v, f->v + 6 * n, f->group, device, n, t->set.device_name,
                                       t->set.n_device, &t->out->best_of[part], err);
}

static cdmpp_status evaluate_with(trainer *t, cd_split_part part, figures *f, cdmpp_err *err) {
    CD_TRY(judge(t, t->out->model, t->kind_log_s, part, f, err));
    const size_t n = f->n;
    const double *v = f->v;
    const cd_train_artifacts_score s = {v + n,     v + 2 * n,       v + 3 * n,
                                        v + 4 * n, f->out_of_range, v + 7 * n};
    CD_TRY(cd_metric_compute_ranked(v, v + n, v + 7 * n, f->group, v + 5 * n, n,
                                    &t->out->metrics[part], err));
    CD_TRY(cd_uncertainty_compute(v, &s, n, &t->out->unsure[part], err));
    if (part != CD_SPLIT_PART_TEST) CD_TRY(best_of(t, part, f, err));
    return cd_train_artifacts_part(t->out->keep, part, t->set.d, f->program, n, &s,
                                   &t->out->metrics[part], err);
}

/* The figures of one part, for the model file and, where one is wanted, for the report. */
static cdmpp_status evaluate(trainer *t, cd_split_part part, cdmpp_err *err) {
    figures f = {0};
    const cdmpp_status st = evaluate_with(t, part, &f, err);
    cd_arena_free(&f.arena);
    return st;
}

/* A training that goes another way than one in memory says so. */
static void note_disk(const trainer *t) {
    const cd_training_set *set = &t->set;
    const cd_model *m = t->out->model;
    cd_buf *b = &t->out->notes;
    if (!cd_spool_on_disk(set->d->spool)) return;
    cd_buf_putf(b, "in train.memory = %lld MB: data of %zu MB were kept in %s\n",
                (long long)t->c->train_memory, cd_spool_bytes(set->d->spool) >> 20,
                cd_spool_folder(set->d->spool));
    for (size_t k = 0; k < m->n_kind; k++) {
        const double train = cd_ensemble_share(set, m->kind[k], 0, true),
                     valid = cd_ensemble_share(set, m->kind[k], 0, false);
        if (train < 1 || valid < 1)
            cd_buf_putf(b,
                        "    %s: trees of a draw of %.1f %% of the programs, stopped by %.1f %% of "
                        "those for validation\n",
                        cd_member_name(m->kind[k]), 100 * train, 100 * valid);
    }
    if (set->n_oof > CD_CALIBRATION_MAX_PROGRAM)
        cd_buf_putf(b, "    uncertainty: of a draw of %d of %zu programs\n",
                    CD_CALIBRATION_MAX_PROGRAM, set->n_oof);
}

/* What few programs do not tell is said, since a model comes of any number. */
static void note_few(const trainer *t) {
    enum { FEW = 30 };
    const cd_calibration_info i = cd_calibration_info_of(t->out->model->calib);
    const size_t n = t->set.n_fold > 1 ? t->set.n_oof : t->out->n_program[CD_SPLIT_PART_TRAIN];
    if (n < FEW)
        cd_buf_putf(&t->out->notes,
                    "only %zu programs to train on: do not rely on this model (expected at least "
                    "%d, better hundreds)\n",
                    n, FEW);
    if (cd_calibration_few(i.n_independent, t->c->predict_level))
        cd_buf_putf(&t->out->notes,
                    "the intervals are calibrated on %zu programs of %zu tasks only. That is few, "
                    "so they are wider than with more\n",
                    i.n, i.n_group);
}

/* Validation chooses how much members for the order count, and may choose nothing. */
static void note_order(const trainer *t) {
    const cd_model *m = t->out->model;
    if (!m->order) return;
    cd_buf_putf(
        &t->out->notes,
        "order: members of model.order count %.1f, the seconds %.1f, as validation chose%s\n",
        m->order_share, 1 - m->order_share,
        m->order_share > 0 ? "" : ": they change nothing here, and only make the file larger");
}

/* Said before minutes are spent. Where nobody hears warnings it is among the lines of the
 * result. */
static void say(const trainer *t, const char *text, int n) {
    if (!n || (t->how.ranks && t->how.ranks->rank)) return;
    if (t->how.log && t->how.log->level >= CD_LOG_WARNING)
        cd_log_put(t->how.log, CD_LOG_WARNING, "%.*s", n, text);
    else cd_buf_putf(&t->out->notes, "%.*s\n", n, text);
}

static void say_lines(const trainer *t, const cd_buf *lines) {
    for (const char *p = lines->n ? lines->p : ""; *p; p += strcspn(p, "\n"), p += *p == '\n')
        say(t, p, (int)strcspn(p, "\n"));
}

/* Several ranks have the data once on each machine. */
static cdmpp_status make_set(trainer *t, cdmpp_err *err) {
    const cd_process_group *ranks = t->how.ranks;
    if (!t->d && ranks && ranks->n_rank > 1) {
        cd_member_plan plan;
        const cd_dataset_share share = cd_distributed_data_share(ranks);
        CD_TRY(cd_member_plan_of(t->c, &plan, err));
        CD_TRY(cd_training_set_load(t->c, &plan, &share, &t->own, err));
        t->d = t->own;
    }
    return cd_training_set_make(&t->set, t->c, t->d, t->how.pool, err);
}

/* Everything up to a model; the test part is only listed. */
static cdmpp_status fit(trainer *t, cdmpp_err *err) {
    cd_learner_result *out = t->out;
    cd_training_set *set = &t->set;
    const cd_process_group *ranks = t->how.ranks;
    const cdmpp_status st = make_set(t, err);
    CD_TRY(ranks ? ranks->agree(ranks->ctx, st, err) : st);
    say_lines(t, &set->unusual);
    say_lines(t, &set->no_facts);
    out->filter = set->filter;
    CD_TRY(cd_train_artifacts_data(out->keep, set->c, set->d, set->split, &out->filter, err));
    memcpy(out->n_program, set->split->n_program, sizeof out->n_program);
    memcpy(out->n_task, set->split->n_task, sizeof out->n_task);
    memcpy(out->split_digest, set->split->digest, sizeof out->split_digest);
    out->kind = set->split->kind;
    cd_split_notes(&out->notes, set->split);
    CD_TRY(new_model(t, err));
    log_range(t, out->model);
    const cd_ensemble_run run = {.pool = t->how.pool,
                                 .tick = on_step,
                                 .ctx = t,
                                 .start = t->how.start,
                                 .folder = t->how.folder,
                                 .ranks = ranks,
                                 .log = t->how.log};
    CD_TRY(cd_ensemble_train(set, &run, out->model, &t->kind_log_s, err));
    if (out->model->order && t->kind_log_s)
        CD_TRY(cd_order_weigh(set, t->how.pool, t->kind_log_s, out->model, &t->order_log_s, err));
    note_disk(t);
    return CDMPP_OK;
}

static cdmpp_status train_tuner(trainer *t, cdmpp_err *err) {
    const cd_ensemble_run run = {.pool = t->how.pool, .tick = on_step, .ctx = t};
    CD_TRY(cd_ranking_profile_train(&t->set, t->kind_log_s, &run, t->out->model, &t->tuner_log_s,
                                    err));
    CD_TRY(evaluate_tuner(t, CD_SPLIT_PART_VALID, &t->out->tuner[0], err));
    return evaluate_tuner(t, CD_SPLIT_PART_TEST, &t->out->tuner[1], err);
}

/* Ranks other than 0 are done when their members are trained. */
static cdmpp_status run(trainer *t, cdmpp_err *err) {
    cd_learner_result *out = t->out;
    CD_TRY(fit(t, err));
    if (t->how.ranks && t->how.ranks->rank) return CDMPP_OK;
    note_few(t);
    note_order(t);
    CD_TRY(cd_unlike_fit(&t->set, t->how.pool, t->kind_log_s, out->model, &out->notes, err));
    CD_TRY(cd_device_law_fit(&t->set, t->how.pool, t->kind_log_s, out->model, err));
    if (t->c->model_tuner) CD_TRY(train_tuner(t, err));
    for (int p = 0; p < CD_SPLIT_N_PART; p++) CD_TRY(evaluate(t, (cd_split_part)p, err));
    CD_TRY(cd_selection_bias_tasks(&t->set, &out->tasks, err));
    cd_buf provenance = {0};
    cd_provenance(&provenance, t->set.c, t->set.d, t->set.split, out);
    cdmpp_status st;
    if (provenance.oom) st = CD_FAIL(err, ENOMEM, "model header");
    else st = cd_model_encode(out->model, provenance.p, &out->file, err);
    cd_buf_free(&provenance);
    return st;
}

cdmpp_status cd_learner_run(const cd_config *c, const cd_dataset *d, const cd_learner_options *how,
                            cd_learner_result *out, cdmpp_err *err) {
    trainer t = {.c = c, .d = d, .how = *how, .out = out};
    *out = (cd_learner_result){0};
    cdmpp_status st = c->output_report[0] ? cd_train_artifacts_new(&out->keep, err) : CDMPP_OK;
    if (!st) st = run(&t, err);
    cd_training_set_free(&t.set);
    cd_dataset_free(t.own);
    cd_mem_free(t.kind_log_s);
    cd_mem_free(t.order_log_s);
    cd_mem_free(t.tuner_log_s);
    if (st || (how->ranks && how->ranks->rank)) cd_learner_result_free(out);
    return st;
}

cdmpp_status cd_learner_try(const cd_config *c, const cd_dataset *d, cd_threads *pool,
                            cd_progress_event_fn *tick, void *ctx, cd_buf *notes, cd_metric *valid,
                            cdmpp_err *err) {
    cd_learner_result l = {0};
    trainer t = {.c = c, .d = d, .how = {.pool = pool, .tick = tick, .ctx = ctx}, .out = &l};
    cdmpp_status st = fit(&t, err);
    if (!st) st = evaluate(&t, CD_SPLIT_PART_VALID, err);
    if (!st) *valid = l.metrics[CD_SPLIT_PART_VALID];
    if (!st && l.notes.p) cd_buf_puts(notes, l.notes.p);
    cd_training_set_free(&t.set);
    cd_mem_free(t.kind_log_s);
    cd_mem_free(t.order_log_s);
    cd_learner_result_free(&l);
    return st;
}

void cd_learner_result_free(cd_learner_result *l) {
    cd_model_free(l->model);
    cd_buf_free(&l->file);
    cd_buf_free(&l->notes);
    cd_buf_free(&l->tasks);
    for (int p = 0; p < CD_SPLIT_N_PART; p++) cd_buf_free(&l->best_of[p]);
    cd_train_artifacts_free(l->keep);
    *l = (cd_learner_result){0};
}

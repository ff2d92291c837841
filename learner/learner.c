#include "learner/learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "features/cols.h"
#include "learner/choose.h"
#include "learner/provenance.h"

typedef struct {
    const cd_config *c;
    cd_threads *pool;
    cd_tick_call *tick;
    void *ctx;
    const cd_dataset *d;
    cd_dataset *own;             /* d, when loaded here */
    cd_split *split;
    uint8_t *keep;
    uint32_t *device;            /* (d->n) number of the program's device in the model */
    size_t *program[CD_N_PART];  /* (n_program[p]) */
    double *log_s[CD_N_PART];
    cd_learned *out;
} trainer;

/* ---- data ---- */
cdmpp_status cd_learner_load(const cd_config *c, cd_dataset **out, cdmpp_err *err) {
    return cd_dataset_load(c->data_files.v, c->data_files.n, out, err);
}

static cdmpp_status load(trainer *t, cdmpp_err *err) {
    const cd_config *c = t->c;
    if (!t->d) CD_TRY(cd_learner_load(c, &t->own, err));
    if (!t->d) t->d = t->own;
    t->keep = cd_calloc(t->d->n + 1, 1);
    t->device = cd_calloc(t->d->n + 1, sizeof *t->device);
    if (!t->keep || !t->device) return CD_FAIL(err, ENOMEM, "%zu programs", t->d->n);
    return cd_choose(c, t->d, t->pool, t->keep, &t->out->filter, &t->split, err);
}

static cdmpp_status list_parts(trainer *t, cdmpp_err *err) {
    size_t n[CD_N_PART] = {0};
    for (int p = 0; p < CD_N_PART; p++) {
        t->program[p] = cd_calloc(t->split->n_program[p], sizeof *t->program[p]);
        t->log_s[p] = cd_calloc(t->split->n_program[p], sizeof *t->log_s[p]);
        if (!t->program[p] || !t->log_s[p]) return CD_FAIL(err, ENOMEM, "%zu programs", t->split->n_program[p]);
    }
    for (size_t i = 0; i < t->d->n; i++) {
        const unsigned p = t->split->part[i];
        if (p >= CD_N_PART) continue;
        t->program[p][n[p]] = i;
        t->log_s[p][n[p]++] = log(t->d->latency_s[i]);
    }
    return CDMPP_OK;
}

/* ---- model ---- */
static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Devices of kept programs, by name, so that the order of files does not matter. */
static cdmpp_status number_devices(trainer *t, cd_model *m, cdmpp_err *err) {
    const cd_dataset *d = t->d;
    m->device = CD_NEWN(&m->arena, const char *, d->n_device);
    m->device_is_gpu = CD_NEWN(&m->arena, uint8_t, d->n_device);
    if (!m->device || !m->device_is_gpu) return CD_FAIL(err, ENOMEM, "%zu devices", d->n_device);
    for (uint32_t v = 0; v < d->n_device; v++) {
        size_t i = 0;
        while (i < d->n && !(t->split->part[i] < CD_N_PART && d->device[i] == v)) i++;
        if (i == d->n) continue;
        const char *name = d->device_name[v];
        m->device[m->n_device] = cd_str_dup(&m->arena, (cd_str){name, strlen(name)});
        if (!m->device[m->n_device++]) return CD_FAIL(err, ENOMEM, "device name");
    }
    qsort(m->device, m->n_device, sizeof *m->device, by_text);
    for (size_t i = 0; i < d->n; i++) {
        if (t->split->part[i] >= CD_N_PART) continue;
        const char *name = d->device_name[d->device[i]];
        t->device[i] = (uint32_t)cd_model_find_device(m, name, strlen(name));
        m->device_is_gpu[t->device[i]] = d->is_gpu[i] != 0;
    }
    return CDMPP_OK;
}

static void log_range(const trainer *t, cd_model *m) {
    m->log_min = INFINITY;
    m->log_max = -INFINITY;
    for (size_t i = 0; i < t->split->n_program[CD_PART_TRAIN]; i++) {
        m->log_min = fmin(m->log_min, t->log_s[CD_PART_TRAIN][i]);
        m->log_max = fmax(m->log_max, t->log_s[CD_PART_TRAIN][i]);
    }
    m->log_min -= 1;
    m->log_max += 1;
}

/* Programs [beg, end) of a part, scored in the given model by worker scratch. */
typedef struct {
    const trainer *t;
    const cd_model *m;
    const size_t *program;
    cd_model_scratch **scratch;
    double *latency_s;
} scoring;

static cdmpp_status score_chunk(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const scoring *s = ctx;
    const cd_dataset *d = s->t->d;
    for (size_t i = beg; i < end;) { /* one call for each run of neighbours in the data set */
        size_t n = 1;
        const size_t p = s->program[i];
        while (i + n < end && s->program[i + n] == p + n) n++;
        CD_TRY(cd_model_predict(s->m, s->scratch[w], d->row, d->row_ptr + p, s->t->device + p, n, s->latency_s + i, err));
        i += n;
    }
    return CDMPP_OK;
}

static cdmpp_status score(const trainer *t, const cd_model *m, cd_part part, double *latency_s, cdmpp_err *err) {
    const int n = cd_threads_count(t->pool);
    scoring s = {t, m, t->program[part], cd_calloc((size_t)n, sizeof *s.scratch), latency_s};
    cdmpp_status st = s.scratch ? CDMPP_OK : CD_FAIL(err, ENOMEM, "scratches");
    for (int w = 0; !st && w < n; w++) st = cd_model_scratch_new(&s.scratch[w], err);
    if (!st) st = cd_threads_run(t->pool, t->split->n_program[part], 1024, score_chunk, &s, err);
    for (int w = 0; s.scratch && w < n; w++) cd_model_scratch_free(s.scratch[w]);
    cd_free(s.scratch);
    return st;
}

/* log(latency) of the validation part under part k alone. */
static cdmpp_status part_alone(const trainer *t, const cd_model *m, size_t k, double *log_s, cdmpp_err *err) {
    cd_model one = *m; /* borrows everything */
    one.n_part = 1;
    one.part[0] = m->part[k];
    one.part[0].weight = 1;
    CD_TRY(score(t, &one, CD_PART_VALID, log_s, err));
    for (size_t i = 0; i < t->split->n_program[CD_PART_VALID]; i++) log_s[i] = log(log_s[i]);
    return CDMPP_OK;
}

/* The weight of part 0 with the least loss on the validation part. Only 0.4 to 0.8
 * are tried: a part that looks useless on a small validation part still lowers the
 * variance elsewhere (learner/README.md). */
static double best_mix(const trainer *t, const double *a, const double *b) {
    double best = INFINITY, weight = 0.6;
    for (int k = 8; k <= 16; k++) {
        double sum = 0;
        for (size_t i = 0; i < t->split->n_program[CD_PART_VALID]; i++)
            sum += cd_loss_value((cd_loss)t->c->train_loss, 0.05 * (k * a[i] + (20 - k) * b[i]) - t->log_s[CD_PART_VALID][i]);
        if (sum >= best) continue;
        best = sum;
        weight = 0.05 * k;
    }
    return weight;
}

static cdmpp_status mix(const trainer *t, cd_model *m, cdmpp_err *err) {
    const size_t n = t->split->n_program[CD_PART_VALID];
    double *log_s = cd_calloc(n, 2 * sizeof *log_s);
    if (!log_s) return CD_FAIL(err, ENOMEM, "%zu programs", n);
    cdmpp_status st = part_alone(t, m, 0, log_s, err);
    if (!st) st = part_alone(t, m, 1, log_s + n, err);
    if (!st) m->part[0].weight = best_mix(t, log_s, log_s + n);
    m->part[1].weight = 1 - m->part[0].weight;
    cd_free(log_s);
    return st;
}

static bool on_step(void *ctx, const cd_tick *k) {
    const trainer *t = ctx;
    cd_tick all = *k;
    all.n_member = t->out->model->n_part;
    cd_trainkeep_loss(t->out->keep, &all);
    return !t->tick || t->tick(t->ctx, &all);
}

typedef struct {
    trainer *t;
    cd_model *m;
    cd_boost_set train, valid;
    int nthread;
} boosting;

static cdmpp_status boost_part(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const boosting *b = ctx;
    trainer *t = b->t;
    (void)w;
    for (size_t k = beg; k < end; k++)
        CD_TRY(cd_boost(t->d, t->device, &b->train, &b->valid, t->c, b->m->part[k].form, b->nthread, on_step, t,
                        &b->m->part[k], err));
    return CDMPP_OK;
}

/* The two parts side by side, each with its share of the threads: XGBoost with one
 * thread never waits for another, and two idle OpenMP threads on a busy machine
 * were measured 6 times slower than one. */
static cdmpp_status boost(trainer *t, cd_model *m, cdmpp_err *err) {
    const cd_form form = (cd_form)t->c->model_form;
    boosting b = {.t = t, .m = m};
    b.train = (cd_boost_set){t->split->n_program[CD_PART_TRAIN], t->program[CD_PART_TRAIN], t->log_s[CD_PART_TRAIN]};
    b.valid = (cd_boost_set){t->split->n_program[CD_PART_VALID], t->program[CD_PART_VALID], t->log_s[CD_PART_VALID]};
    m->n_part = form == CD_FORM_BOTH ? 2 : 1;
    for (size_t k = 0; k < m->n_part; k++) m->part[k].form = form == CD_FORM_BOTH ? (cd_form)k : form;
    b.nthread = cd_threads_count(t->pool) / (int)m->n_part;
    if (b.nthread < 1) b.nthread = 1;
    CD_TRY(cd_threads_run(t->pool, m->n_part, 1, boost_part, &b, err));
    return m->n_part == 2 ? mix(t, m, err) : CDMPP_OK;
}

/* ---- figures ---- */
/* How often each task occurs in the networks; 1 for tasks in none. */
static double *task_weights(const cd_dataset *d) {
    double *w = cd_calloc(d->n_task + 1, sizeof *w);
    for (size_t k = 0; w && k < d->n_net_task; k++) w[d->net_task[k]] += (double)d->net_weight[k];
    for (size_t i = 0; w && i < d->n_task; i++)
        if (w[i] <= 0) w[i] = 1;
    return w;
}

static cdmpp_status evaluate(trainer *t, cd_part part, cdmpp_err *err) {
    const size_t n = t->split->n_program[part];
    double *v = cd_calloc(n, 3 * sizeof *v), *y = v, *p = v + n, *w = v + 2 * n, *weight = task_weights(t->d);
    uint32_t *group = cd_calloc(n, sizeof *group);
    cdmpp_status st = v && weight && group ? CDMPP_OK : CD_FAIL(err, ENOMEM, "figures of %zu programs", n);
    for (size_t i = 0; !st && i < n; i++) {
        const size_t q = t->program[part][i];
        y[i] = t->d->latency_s[q];
        w[i] = weight[t->d->task[q]];
        group[i] = t->d->task[q] * (uint32_t)t->d->n_device + t->d->device[q];
    }
    if (!st) st = score(t, t->out->model, part, p, err);
    if (!st) st = cd_metrics_compute(y, p, group, w, n, &t->out->metrics[part], err);
    if (!st)
        st = cd_trainkeep_part(t->out->keep, part, t->d, t->program[part], n, &(cd_trainscore){.predicted_s = p},
                               &t->out->metrics[part], err);
    cd_free(v);
    cd_free(weight);
    cd_free(group);
    return st;
}

/* Everything up to a model; the test part is only listed. */
static cdmpp_status fit(trainer *t, cdmpp_err *err) {
    cd_learned *out = t->out;
    CD_TRY(load(t, err));
    CD_TRY(cd_trainkeep_data(out->keep, t->c, t->d, t->split, &out->filter, err));
    memcpy(out->n_program, t->split->n_program, sizeof out->n_program);
    memcpy(out->n_task, t->split->n_task, sizeof out->n_task);
    memcpy(out->split_digest, t->split->digest, sizeof out->split_digest);
    out->kind = t->split->kind;
    cd_split_notes(&out->notes, t->split);
    CD_TRY(list_parts(t, err));
    out->model = cd_calloc(1, sizeof *out->model);
    if (!out->model) return CD_FAIL(err, ENOMEM, "model");
    CD_TRY(number_devices(t, out->model, err));
    log_range(t, out->model);
    return boost(t, out->model, err);
}

static cdmpp_status run(trainer *t, cdmpp_err *err) {
    cd_learned *out = t->out;
    CD_TRY(fit(t, err));
    for (int p = 0; p < CD_N_PART; p++) CD_TRY(evaluate(t, (cd_part)p, err));
    cd_buf provenance = {0};
    cd_provenance(&provenance, t->c, t->d, t->split, out);
    cdmpp_status st;
    if (provenance.oom) st = CD_FAIL(err, ENOMEM, "model header");
    else st = cd_model_encode(out->model, provenance.p, &out->file, err);
    cd_buf_free(&provenance);
    return st;
}

static void trainer_free(trainer *t) {
    cd_dataset_free(t->own);
    cd_split_free(t->split);
    cd_free(t->keep);
    cd_free(t->device);
    for (int p = 0; p < CD_N_PART; p++) {
        cd_free(t->program[p]);
        cd_free(t->log_s[p]);
    }
}

cdmpp_status cd_learner_train(const cd_config *c, const cd_dataset *d, cd_threads *pool, cd_tick_call *tick, void *ctx,
                              cd_learned *out, cdmpp_err *err) {
    trainer t = {.c = c, .pool = pool, .tick = tick, .ctx = ctx, .d = d, .out = out};
    *out = (cd_learned){0};
    cdmpp_status st = c->output_report[0] ? cd_trainkeep_new(&out->keep, err) : CDMPP_OK;
    if (!st) st = run(&t, err);
    trainer_free(&t);
    if (st) cd_learned_free(out);
    return st;
}

cdmpp_status cd_learner_try(const cd_config *c, const cd_dataset *d, cd_threads *pool, cd_tick_call *tick, void *ctx,
                            cd_metrics *valid, cdmpp_err *err) {
    cd_learned l = {0};
    trainer t = {.c = c, .pool = pool, .tick = tick, .ctx = ctx, .d = d, .out = &l};
    cdmpp_status st = fit(&t, err);
    if (!st) st = evaluate(&t, CD_PART_VALID, err);
    if (!st) *valid = l.metrics[CD_PART_VALID];
    trainer_free(&t);
    cd_learned_free(&l);
    return st;
}

void cd_learned_free(cd_learned *l) {
    cd_model_free(l->model);
    cd_buf_free(&l->file);
    cd_buf_free(&l->notes);
    cd_trainkeep_free(l->keep);
    *l = (cd_learned){0};
}

/* Answers of a model for programs of the training set: out of fold, unseen, or by the whole model,
 * in chunks over the pool. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learner/train/train_internal.h"

enum { CHUNK = 512 };

typedef struct judging judging;
typedef cdmpp_status judge_fn(const judging *j, cd_model_scratch *s, size_t beg, size_t end,
                              cdmpp_err *err);
struct judging {
    const cd_training_set *t;
    const cd_model *m;
    const uint32_t *program;
    double *kind_log_s; /* oof: written; answers: read; (n_kind, n) */
    size_t n;
    int fold; /* unseen: whose members answer */
    cd_model_prediction *out;
    judge_fn *fn;
    cd_model_scratch **scratch;
};

static cdmpp_status chunk(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const judging *j = ctx;
    cd_spool_rest(j->t->view.spool);
    return j->fn(j, j->scratch[w], beg, end, err);
}

static cdmpp_status run(judging *j, cd_threads *pool, cdmpp_err *err) {
    const int n = cd_threads_count(pool);
    j->scratch = cd_mem_zalloc((size_t)n, sizeof *j->scratch);
    cdmpp_status st = j->scratch ? CDMPP_OK : CD_FAIL(err, ENOMEM, "scratches");
    for (int w = 0; !st && w < n; w++) st = cd_model_scratch_new(&j->scratch[w], err);
    if (!st) st = cd_threads_run(pool, j->n, CHUNK, chunk, j, err);
    for (int w = 0; j->scratch && w < n; w++) cd_model_scratch_free(j->scratch[w]);
    cd_mem_free(j->scratch);
    return st;
}

/* A chunk's own (n_kind, k) in the middle of (n_kind, n). */
static double *gather(const judging *j, size_t beg, size_t k, cdmpp_err *err) {
    double *part = cd_mem_zalloc(j->m->n_kind * k, sizeof *part);
    if (!part) (void)CD_FAIL(err, ENOMEM, "%zu programs", k);
    for (size_t i = 0; part && i < j->m->n_kind; i++)
        memcpy(part + i * k, j->kind_log_s + i * j->n + beg, k * sizeof *part);
    return part;
}

/* Out-of-fold programs lie by fold: a chunk has runs of one. How many from i on are of program
 * i's. */
static size_t run_of(const judging *j, size_t i, size_t end) {
    const int fold = j->t->fold[j->program[i]];
    size_t k = 1;
    while (i + k < end && j->t->fold[j->program[i + k]] == fold) k++;
    return k;
}

static cdmpp_status oof(const judging *j, cd_model_scratch *s, size_t beg, size_t end,
                        cdmpp_err *err) {
    for (size_t i = beg; i < end;) {
        const int fold = j->t->fold[j->program[i]];
        const size_t k = run_of(j, i, end);
        double *part = gather(j, i, k, err);
        const cdmpp_status st =
            part ? cd_model_kinds(j->m, s, &j->t->view, j->program + i, k, fold, part, err)
                 : CDMPP_ENOMEM;
        for (size_t q = 0; !st && q < j->m->n_kind; q++)
            memcpy(j->kind_log_s + q * j->n + i, part + q * k, k * sizeof *part);
        cd_mem_free(part);
        if (st) return st;
        i += k;
    }
    return CDMPP_OK;
}

static cdmpp_status whole(const judging *j, cd_model_scratch *s, size_t beg, size_t end,
                          cdmpp_err *err) {
    return cd_model_predict(j->m, s, &j->t->view, j->program + beg, end - beg, j->out + beg, err);
}

static cdmpp_status answers(const judging *j, cd_model_scratch *s, size_t beg, size_t end,
                            cdmpp_err *err) {
    for (size_t i = beg; i < end;) {
        const size_t k = run_of(j, i, end);
        /* one fold: the calibration has folds of its own */
        const int fold = j->t->n_fold > 1 ? j->t->fold[j->program[i]] : -1;
        double *part = gather(j, i, k, err);
        if (!part) return CDMPP_ENOMEM;
        const cdmpp_status st =
            cd_model_answer(j->m, s, &j->t->view, j->program + i, k, fold, part, j->out + i, err);
        cd_mem_free(part);
        if (st) return st;
        i += k;
    }
    return CDMPP_OK;
}

static cdmpp_status unseen(const judging *j, cd_model_scratch *s, size_t beg, size_t end,
                           cdmpp_err *err) {
    const size_t n = end - beg;
    double *part = cd_mem_zalloc(j->m->n_kind * n, sizeof *part);
    if (!part) return CD_FAIL(err, ENOMEM, "%zu programs", n);
    cdmpp_status st = cd_model_kinds(j->m, s, &j->t->view, j->program + beg, n, j->fold, part, err);
    if (!st)
        st =
            cd_model_answer(j->m, s, &j->t->view, j->program + beg, n, -1, part, j->out + beg, err);
    cd_mem_free(part);
    return st;
}

cdmpp_status cd_evaluate_oof(const cd_training_set *t, const cd_model *m, cd_threads *pool,
                             const uint32_t *program, size_t n, double *kind_log_s,
                             cdmpp_err *err) {
    judging j = {.t = t, .m = m, .program = program, .kind_log_s = kind_log_s, .n = n, .fn = oof};
    return run(&j, pool, err);
}

cdmpp_status cd_evaluate(const cd_training_set *t, const cd_model *m, cd_threads *pool,
                         const uint32_t *program, size_t n, cd_model_prediction *out,
                         cdmpp_err *err) {
    judging j = {.t = t, .m = m, .program = program, .n = n, .out = out, .fn = whole};
    return run(&j, pool, err);
}

cdmpp_status cd_evaluate_answers(const cd_training_set *t, const cd_model *m, cd_threads *pool,
                                 const uint32_t *program, size_t n, const double *kind_log_s,
                                 cd_model_prediction *out, cdmpp_err *err) {
    judging j = {.t = t,
                 .m = m,
                 .program = program,
                 .kind_log_s = (double *)(uintptr_t)kind_log_s,
                 .n = n,
                 .out = out,
                 .fn = answers};
    return run(&j, pool, err);
}

/* out (n) of programs program[0 .. n) by the members that never saw `fold`. */
static cdmpp_status evaluate_unseen(const cd_training_set *t, const cd_model *m, cd_threads *pool,
                                    int fold, const uint32_t *program, size_t n,
                                    cd_model_prediction *out, cdmpp_err *err) {
    judging j = {
        .t = t, .m = m, .program = program, .n = n, .fold = fold, .out = out, .fn = unseen};
    return run(&j, pool, err);
}

/* The profile tuner: a small network for schedule search, taught by the whole model
 * ("distillation") and calibrated on folds that it has not seen. */

enum { WIDTH = 64, SIDE = 16, LAYERS = 1, BATCH = 64 };

typedef struct {
    const cd_training_set *t;
    const cd_ensemble_run *run;
    const cd_model *m;        /* the whole model */
    const double *kind_log_s; /* its answers out of fold */
    cd_model *checks;         /* a network for each fold, which never saw it */
    cd_member *last;          /* the tuner's, of all folds */
} job;

/* Halfway, in the logarithm, from the measurement to what the model says: members that never saw
 * the program. What they saw of other folds is in their answers, so a network that is to know
 * nothing of a fold learns from the members that know nothing of it. */
static cdmpp_status soften(const job *j, int fold, double *label, cdmpp_err *err) {
    const cd_training_set *t = j->t;
    cd_model_prediction *pred = cd_mem_zalloc(t->n_oof + 1, sizeof *pred);
    if (!pred) return CD_FAIL(err, ENOMEM, "%zu answers", t->n_oof);
    memcpy(label, t->d->latency_s, t->d->n * sizeof *label);
    const cdmpp_status st =
        fold < 0 ? cd_evaluate_answers(t, j->m, NULL, t->oof, t->n_oof, j->kind_log_s, pred, err)
                 : evaluate_unseen(t, j->m, NULL, fold, t->oof, t->n_oof, pred, err);
    for (size_t i = 0; !st && i < t->n_oof; i++)
        label[t->oof[i]] = sqrt(label[t->oof[i]] * pred[i].median_s);
    cd_mem_free(pred);
    return st;
}

/* As the configuration trains its networks, but for what makes one small and quick. */
static cd_fit_spec small(const cd_config *c) {
    cd_fit_spec s = cd_net_options_fit(
        c, CD_MEMBER_TSF, cd_device_features_width((cd_device_features)c->device_features));
    cd_net_config *n = &s.net;
    n->tokens = CD_TOKENS_ROWS;
    n->position = CD_POS_NONE;
    n->context = n->program = n->facts = false;
    n->layers = LAYERS;
    n->head_first = n->head_depth = 0;
    n->width = n->ff = n->head_width = n->embed = n->decoder_width = WIDTH;
    n->heads = 1;
    n->side_width = SIDE;
    n->decoder_depth = n->side_depth = 1;
    n->head = CD_HEAD_SUM;
    n->trips = true;
    n->dropout = n->dropout_mlp = 0;
    s.transform = CD_TRANSFORM_LOG;
    s.loss = "1mape_s";
    s.freeze_encoder = false;
    s.batch = BATCH;
    return s;
}

/* To the last step: a fold of a few tasks is no judge of when to stop. */
static cdmpp_status fit(const job *j, cd_member *e, const double *label, uint32_t *program,
                        cdmpp_err *err) {
    const cd_training_set *t = j->t;
    const cd_fit_spec spec = small(t->c);
    char name[48] = "tuner";
    cd_fit_data data = {.view = &t->view,
                        .latency_s = label,
                        .train = program,
                        .device = t->device_vector,
                        .n_device = t->n_device,
                        .w_dev = t->w_device,
                        .group = t->group,
                        .weight = t->weight};
    for (size_t i = 0; i < t->d->n; i++)
        if (t->fold[i] != CD_FOLD_NEVER && t->fold[i] != e->fold)
            program[data.n_train++] = (uint32_t)i;
    if (e->fold >= 0) snprintf(name, sizeof name, "tuner %d/%d", e->fold + 1, t->n_fold);
    cd_train_net_tick tick = {j->run->tick, j->run->ctx, name, (size_t)spec.batch};
    cd_fit_result f;
    CD_TRY(cd_fit(&spec, &data, NULL, &(cd_fit_run){.tick = cd_train_net_step, .ctx = &tick}, &f,
                  err));
    return cd_train_net_store(&f, e, err);
}

static cdmpp_status train(const job *j, cd_member *e, cdmpp_err *err) {
    const size_t n = j->t->d->n + 1;
    double *label = cd_mem_zalloc(n, sizeof *label);
    uint32_t *program = cd_mem_zalloc(n, sizeof *program);
    cdmpp_status st = label && program ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu programs", n - 1);
    if (!st) st = soften(j, e->fold, label, err);
    if (!st) st = fit(j, e, label, program, err);
    cd_mem_free(label);
    cd_mem_free(program);
    return st;
}

static cdmpp_status train_chunk(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const job *j = ctx;
    (void)w;
    for (size_t k = beg; k < end; k++)
        CD_TRY(train(j, k < j->checks->n_member ? &j->checks->member[k] : j->last, err));
    return CDMPP_OK;
}

static cdmpp_status members(cd_model *m, size_t n, cdmpp_err *err) {
    m->kind[m->n_kind++] = CD_MEMBER_TSF;
    m->member = cd_mem_zalloc(n, sizeof *m->member);
    if (!m->member) return CD_FAIL(err, ENOMEM, "networks of the tuner");
    for (; m->n_member < n; m->n_member++)
        m->member[m->n_member] = (cd_member){.kind = CD_MEMBER_TSF, .fold = (int)m->n_member};
    return CDMPP_OK;
}

/* One network for each fold, only to measure errors, and one of all folds, which is kept. */
static cdmpp_status make(job *j, cd_model *m, double *log_s, cdmpp_err *err) {
    const cd_training_set *t = j->t;
    cd_threads *pool = j->run->pool;
    cd_model *k = cd_model_new_tuner(m);
    if (!k) return CD_FAIL(err, ENOMEM, "tuner");
    *j->checks = (cd_model){.log_min = k->log_min,
                            .log_max = k->log_max,
                            .n_device = k->n_device,
                            .w_device = k->w_device,
                            .device_vector = k->device_vector};
    CD_TRY(members(j->checks, (size_t)t->n_fold, err));
    CD_TRY(members(k, 1, err));
    j->last = &k->member[0];
    j->last->fold = -1;
    CD_TRY(cd_threads_run(pool, j->checks->n_member + 1, 1, train_chunk, j, err));
    CD_TRY(cd_evaluate_oof(t, j->checks, pool, t->oof, t->n_oof, log_s, err));
    return cd_calibrate_model(t, t->oof, t->n_oof, -1, true, log_s, pool, k, err);
}

cdmpp_status cd_ranking_profile_train(const cd_training_set *t, const double *kind_log_s,
                                      const cd_ensemble_run *run, cd_model *m, double **log_s,
                                      cdmpp_err *err) {
    job j = {.t = t,
             .run = run,
             .m = m,
             .kind_log_s = kind_log_s,
             .checks = cd_mem_zalloc(1, sizeof *j.checks)};
    *log_s = cd_mem_zalloc(t->n_oof + 1, sizeof **log_s);
    cdmpp_status st =
        j.checks && *log_s ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu programs", t->n_oof);
    if (!st) st = make(&j, m, *log_s, err);
    cd_model_free(j.checks);
    if (st) cd_mem_free(*log_s);
    if (st) *log_s = NULL;
    return st;
}

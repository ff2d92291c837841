/* Answers of a model for programs of the training set: out of fold, unseen, or by the whole model,
 * in chunks over the pool. */
#include "learner/train/train_internal.h"

#include <string.h>

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

cdmpp_status cd_evaluate_unseen(const cd_training_set *t, const cd_model *m, cd_threads *pool,
                                int fold, const uint32_t *program, size_t n,
                                cd_model_prediction *out, cdmpp_err *err) {
    judging j = {
        .t = t, .m = m, .program = program, .n = n, .fold = fold, .out = out, .fn = unseen};
    return run(&j, pool, err);
}

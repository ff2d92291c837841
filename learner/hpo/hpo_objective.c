/* Trains a configuration of a search with a budget and gives its validation error. */
#include "learner/hpo/hpo.h"

#include <pthread.h>
#include <string.h>

typedef struct {
    const cd_hpo_objective *t;
    cd_threads *outer, **inner; /* inner[w]: of the training that worker w runs */
    int n_inner;
    pthread_mutex_t lock;
    cd_buf said; /* notes so far */
} runner;

/* Trials of a search have much the same to say. */
static void note(runner *r, const cd_buf *lines) {
    if (!lines->n || lines->oom || !r->t->note) return;
    pthread_mutex_lock(&r->lock);
    if (!r->said.n || !strstr(r->said.p, lines->p)) {
        cd_buf_puts(&r->said, lines->p);
        r->t->note(r->t->ctx, lines->p);
    }
    pthread_mutex_unlock(&r->lock);
}

/* What is made small of the figures of a part: smaller is better, NaN where there is none. */
static double hpo_metric_value(cd_hpo_metric e, const cd_metric *m) {
    switch (e) {
    case CD_HPO_METRIC_MAPE: return m->mape;
    case CD_HPO_METRIC_MEDIAN: return m->median_ape;
    case CD_HPO_METRIC_RMSE_LOG: return m->rmse_log;
    case CD_HPO_METRIC_RANK: return 1 - m->spearman;
    }
    return m->mape;
}

static cdmpp_status objective(void *ctx, const cd_config *c, double budget, int worker,
                              double *valid_error, cdmpp_err *err) {
    runner *r = ctx;
    const cd_hpo_objective *t = r->t;
    cd_buf notes = {0};
    cd_config plain = *c; /* borrows; a trial leaves nothing on the disk */
    cd_metric m;
    (void)budget;
    plain.output_report = "";
    plain.diag = (cd_diag){0};
    cd_net_options_check(&plain, "", err); /* keys that are fine alone and not together */
    const bool contradicts = plain.diag.n > 0;
    cd_diag_free(&plain.diag);
    if (contradicts) return CDMPP_ESCHEMA;
    const cdmpp_status st = cd_learner_try(&plain, t->data, r->inner ? r->inner[worker] : NULL,
                                           t->tick, t->ctx, &notes, &m, err);
    if (!st) note(r, &notes);
    cd_buf_free(&notes);
    CD_TRY(st);
    *valid_error = hpo_metric_value((cd_hpo_metric)t->space->tune.error, &m);
    return CDMPP_OK;
}

static void tell(void *ctx, const cd_hpo_event *e) {
    const runner *r = ctx;
    if (r->t->tell) r->t->tell(r->t->ctx, e);
}

static void runner_free(runner *r) {
    for (int w = 0; r->inner && w < r->n_inner; w++) cd_threads_free(r->inner[w]);
    cd_mem_free(r->inner);
    cd_threads_free(r->outer);
    cd_buf_free(&r->said);
    pthread_mutex_destroy(&r->lock);
}

/* Fewer trainings side by side than there are threads for. */
static void note_room(runner *r, int wanted) {
    cd_buf b = {0};
    const char *one = r->t->at_once == 1 ? "training" : "trainings";
    cd_buf_putf(&b, "train.memory = %lld MB has room for %d %s at a time, in place of %d\n",
                (long long)r->t->base->train_memory, r->t->at_once, one, wanted);
    note(r, &b);
    cd_buf_free(&b);
}

/* Workers, and the threads of each. */
static cdmpp_status share(runner *r, cdmpp_err *err) {
    CD_TRY(cd_threads_new(r->t->jobs, &r->outer, err));
    const int all = cd_threads_count(r->outer), asked = (int)r->t->space->tune.in_flight,
              most = asked < r->t->at_once ? asked : r->t->at_once;
    if (all <= most) return CDMPP_OK;
    if (most < asked) note_room(r, all < asked ? all : asked);
    cd_threads_free(r->outer);
    r->outer = NULL;
    CD_TRY(cd_threads_new(most, &r->outer, err));
    r->inner = cd_mem_zalloc((size_t)most, sizeof *r->inner);
    if (!r->inner) return CD_FAIL(err, ENOMEM, "threads");
    for (; r->n_inner < most; r->n_inner++)
        CD_TRY(cd_threads_new(all / most, &r->inner[r->n_inner], err));
    return CDMPP_OK;
}

cdmpp_status cd_hpo_objective_run(const cd_hpo_objective *t, cd_hpo_result *out, cdmpp_err *err) {
    runner r = {.t = t};
    const cd_hpo_options s = {t->space,  t->base, t->journal, t->data->content_digest,
                              objective, tell,    &r};
    *out = (cd_hpo_result){0};
    pthread_mutex_init(&r.lock, NULL);
    cdmpp_status st = share(&r, err);
    if (!st) st = cd_hpo(&s, r.outer, out, err);
    runner_free(&r);
    return st;
}

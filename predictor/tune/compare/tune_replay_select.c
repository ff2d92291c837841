/* Which tasks a replay uses, and the replay itself. */
#include "predictor/tune/compare/compare.h"

enum { TRIALS = 300, BATCH = 10, SEEDS = 5, MIN_PROGRAMS = 32 };

bool cd_tune_replay_ranks(const cd_tune_compare_plan *p) {
    for (size_t k = 0; k < p->n_tuner; k++)
        if (p->tuner[k]->ranker) return true;
    return false;
}

/* ---- which tasks ---- */
static bool keep(const cd_tune_replay_log *l, const void *arg) {
    cd_tune_replay_set *s = (cd_tune_replay_set *)(uintptr_t)arg;
    const bool undefined = cd_tune_replay_ranks(s->o->plan) && !l->of.task, small = l->n < s->min,
               seen = s->held && cd_heldout_seen(s->held, l->key);
    s->n_seen += seen;
    s->n_small += !seen && small;
    s->n_undefined += !seen && !small && undefined;
    return !seen && !small && !undefined;
}

static void report_logs(const cd_tune_replay_set *s) {
    const cd_tune_replay_logs *l = &s->logs;
    if (l->bad) {
        char first[640];
        cd_log_put(s->o->log, CD_LOG_WARNING, "%zu of %zu lines are no records; the first: %s",
                   l->bad, l->lines, cdmpp_err_format(&l->first, first, sizeof first));
    }
    if (l->unmeasured)
        cd_log_put(s->o->log, CD_LOG_WARNING, "%zu records have no result and are left out",
                   l->unmeasured);
    if (s->n_undefined)
        cd_log_put(s->o->log, CD_LOG_WARNING, "%zu tasks that --tasks does not define are left out",
                   s->n_undefined);
    if (s->model && !s->held)
        cd_log_put(s->o->log, CD_LOG_WARNING,
                   "--held-out=false: the model may have been trained on these tasks");
}

static cdmpp_status none_left(const cd_tune_replay_set *s, cdmpp_err *err) {
    return CD_FAIL(err, ENODATA,
                   "no task is left of %zu: %zu were seen by the model in training, %zu have too "
                   "few programs, %zu no definition",
                   s->n_all, s->n_seen, s->n_small, s->n_undefined);
}

/* The model comes first: whether its split can be made again is known before hours of logs are
 * read. */
static cdmpp_status read_all(cd_tune_replay_set *s, cdmpp_err *err) {
    const cd_tune_replay_options *o = s->o;
    if (o->model) CD_TRY(cd_model_load(o->model, &s->model, err));
    if (o->model && o->held_out) {
        const cdmpp_status st =
            cd_heldout_new(cd_model_header(s->model), o->data.v, o->data.n, &s->held, err);
        if (st)
            cd_log_put(o->log, CD_LOG_INFO,
                       "to leave out what the model was trained on, its data set is needed "
                       "(--data); --held-out=false goes on without");
        CD_TRY(st);
    }
    CD_TRY(cd_task_registry_new(&s->tasks, err));
    CD_TRY(cd_task_registry_load_all(s->tasks, o->tasks.v, o->tasks.n, o->log, err));
    CD_TRY(cd_tune_replay_logs_read(s->tasks, o->input.v, o->input.n, &s->logs, err));
    s->n_all = s->logs.n;
    cd_tune_replay_logs_keep(&s->logs, keep, s);
    report_logs(s);
    return s->logs.n ? CDMPP_OK : none_left(s, err);
}

/* ---- the replay ---- */
static cd_tune_replay_spec spec_of(const cd_tune_replay_set *s) {
    const cd_tune_replay_options *o = s->o;
    return (cd_tune_replay_spec){.tuner = o->plan->tuner,
                                 .n_tuner = o->plan->n_tuner,
                                 .n_seed = o->seeds ? (size_t)o->seeds : SEEDS,
                                 .seed = (uint64_t)o->seed,
                                 .batch = o->per_round ? (size_t)o->per_round : BATCH,
                                 .trials = o->trials ? (size_t)o->trials : TRIALS,
                                 .ranker = {.model = s->model,
                                            .device = o->device,
                                            .nearest = o->nearest,
                                            .frozen = o->frozen},
                                 .population = (uint32_t)o->population,
                                 .generations = (uint32_t)o->generations,
                                 .epsilon = o->epsilon,
                                 .pool = s->pool};
}

cdmpp_status cd_tune_replay_set_run(const cd_tune_replay_options *o, cd_tune_replay_set *out,
                                    cdmpp_err *err) {
    *out = (cd_tune_replay_set){.o = o, .min = o->min ? (size_t)o->min : MIN_PROGRAMS};
    CD_TRY(read_all(out, err));
    CD_TRY(cd_threads_new(o->jobs, &out->pool, err));
    out->spec = spec_of(out);
    return cd_tune_replay_play(&out->logs, &out->spec, &out->replay, err);
}

void cd_tune_replay_set_free(cd_tune_replay_set *s) {
    cd_tune_replay_free(s->replay);
    cd_tune_replay_logs_free(&s->logs);
    cd_threads_free(s->pool);
    cd_task_registry_free(s->tasks);
    cd_heldout_free(s->held);
    cd_model_free(s->model);
}

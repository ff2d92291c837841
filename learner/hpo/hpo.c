/* A search over configurations: successive halving (hpo_asha.c) decides what to train next, workers
 * train side by side, a journal keeps every result. */
#include "learner/hpo/hpo.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "learner/hpo/hpo_internal.h"

/* One decision. A decision for nothing is finished at once. */
typedef struct {
    size_t trial;
    unsigned rung;
    bool work, finished;
    double error;
} job;

typedef struct {
    const cd_hpo_options *s;
    cd_hpo_result *out;
    cd_hpo_asha *asha;
    cd_hpo_journal log;
    pthread_mutex_t lock;
    pthread_cond_t moved; /* a result, the end, or a failure */
    job *job;             /* (n) decisions so far */
    size_t n, cap;
    size_t first_open; /* all jobs before are finished */
    size_t n_told;     /* to asha */
    bool over;
    cdmpp_status st; /* what ended it early */
    cdmpp_err err;
} search;

/* ---- what is searched, as one number ---- */
static void put_space(cd_buf *b, const cd_hpo_space *s) {
    const cd_hpo_spec *t = &s->tune;
    cd_buf_putf(b, "cdmpp.search 1\n%d %lld %d %s %.17g %.17g %lld %d\n", t->sampler,
                (long long)t->seed, t->try_base, s->budget->name, t->min_budget, t->max_budget,
                (long long)t->eta, t->error);
    for (size_t k = 0; k < s->n_param; k++) {
        const cd_hpo_space_param *p = &s->param[k];
        cd_buf_putf(b, "%s %d %.17g %.17g", p->key->name, (int)p->kind, p->lo, p->hi);
        for (size_t i = 0; i < p->value.n; i++) cd_buf_putf(b, " %s", p->value.v[i]);
        for (size_t i = 0; i < p->n_when; i++) {
            cd_buf_putf(b, " when %s", p->when[i].key->name);
            for (size_t j = 0; j < p->when[i].value.n; j++)
                cd_buf_putf(b, " %s", p->when[i].value.v[j]);
        }
        cd_buf_puts(b, "\n");
    }
}

/* Trials and in_flight are left out: results stay good when a search is made longer. So
 * are paths: the data are named by their digest. */
static cdmpp_status digest(const cd_hpo_options *s, char hex[65], cdmpp_err *err) {
    cd_buf b = {0};
    cd_sha256 h;
    cd_config plain = *s->base; /* borrows */
    plain.output_model = plain.output_report = plain.data_source = "";
    plain.data_files.n = 0;
    put_space(&b, s->space);
    /* whether the data will be on disk is not known yet */
    cd_config_print_identity(&b, &plain, true);
    cd_buf_puts(&b, s->identity);
    cd_sha256_init(&h);
    if (!b.oom) cd_sha256_add(&h, b.p, b.n);
    cd_sha256_hex(&h, hex);
    const cdmpp_status st = b.oom ? CD_FAIL(err, ENOMEM, "search") : CDMPP_OK;
    cd_buf_free(&b);
    return st;
}

/* ---- decisions; the lock is held ---- */
static cdmpp_status add_job(search *s, job j, cdmpp_err *err) {
    if (CD_GROW(s->job, s->n, s->cap)) return CD_FAIL(err, ENOMEM, "search");
    s->job[s->n++] = j;
    return CDMPP_OK;
}

/* The next decision, made with the results it may know. */
static cdmpp_status decide(search *s, cdmpp_err *err) {
    const size_t lag = (size_t)s->s->space->tune.in_flight;
    job j = {0};
    for (; s->n_told + lag < s->n + 1; s->n_told++) {
        const job *f = &s->job[s->n_told];
        if (f->work) cd_hpo_asha_tell(s->asha, f->trial, f->rung, f->error);
    }
    j.work = cd_hpo_asha_ask(s->asha, &j.trial, &j.rung);
    j.finished = !j.work;
    if (!j.work && cd_hpo_asha_open(s->asha) == 0) s->over = true;
    return add_job(s, j, err);
}

static void tell(search *s, const cd_hpo_journal_entry *e, cd_hpo_state state, bool known) {
    const bool failed = state == CD_HPO_FAILED;
    const cd_hpo_event v = {e->trial,
                            e->rung,
                            e->budget,
                            state == CD_HPO_DONE ? e->error : (double)NAN,
                            state,
                            known,
                            e->seconds,
                            e->params,
                            failed ? e->reason : ""};
    if (s->s->tell) s->s->tell(s->s->ctx, &v);
}

static cdmpp_status finish(search *s, size_t k, const cd_hpo_journal_entry *e, bool known,
                           cdmpp_err *err) {
    cd_hpo_result *f = s->out;
    const bool failed = !isfinite(e->error);
    s->job[k].error = f->error[e->trial * f->n_rung + e->rung] =
        failed ? (double)INFINITY : e->error;
    s->job[k].finished = true;
    if (failed) {
        f->reason[e->trial] = cd_str_dup(&f->arena, (cd_str){e->reason, strlen(e->reason)});
        if (!f->reason[e->trial]) return CD_FAIL(err, ENOMEM, "search");
    }
    f->n_failed += failed;
    known ? f->n_known++ : f->n_new++;
    tell(s, e, failed ? CD_HPO_FAILED : CD_HPO_DONE, known);
    return CDMPP_OK;
}

/* ---- work; the lock is released while the objective runs ---- */
static cdmpp_status evaluate(search *s, cd_hpo_journal_entry *e, int worker, char *reason, size_t n,
                             cdmpp_err *err) {
    cdmpp_err why = {0};
    cd_config c;
    const cd_hpo_trial *t = &s->out->trial[e->trial];
    const double begin = cd_clock_wall();
    cdmpp_status st = cd_hpo_space_config(s->s->space, s->s->base, t, e->budget, &c, &why);
    if (!st) st = s->s->objective(s->s->ctx, &c, e->budget, worker, &e->error, &why);
    cd_config_free(&c);
    e->seconds = cd_clock_wall() - begin;
    e->reason = reason;
    if (st == CDMPP_EINTERRUPTED) {
        if (err) *err = why;
        return st;
    }
    if (st) cdmpp_err_format(&why, reason, n);
    else if (!isfinite(e->error))
        snprintf(reason, n, "the validation error is not a finite number");
    if (st) e->error = INFINITY;
    return CDMPP_OK;
}

/* A result that the journal has is not trained again; its parameters must be those that this search
 * draws. */
static cdmpp_status do_job(search *s, size_t k, int worker, cdmpp_err *err) {
    const job j = s->job[k];
    char reason[512] = "";
    cd_hpo_journal_entry e = {.trial = j.trial,
                              .rung = j.rung,
                              .budget = cd_hpo_space_budget(s->s->space, j.rung),
                              .params = s->out->trial[j.trial].params,
                              .reason = reason};
    const cd_hpo_journal_entry *known = cd_hpo_journal_find(&s->log, j.trial, j.rung);
    if (known) {
        if (!strcmp(known->params, e.params)) return finish(s, k, known, true, err);
        return cd_err_at(
            err,
            CD_FAIL(err, ESCHEMA, "trial %zu has other parameters than this search draws", j.trial),
            s->log.path, 0);
    }
    tell(s, &e, CD_HPO_RUNNING, false);
    pthread_mutex_unlock(&s->lock);
    const cdmpp_status st = evaluate(s, &e, worker, reason, sizeof reason, err);
    pthread_mutex_lock(&s->lock);
    CD_TRY(st);
    CD_TRY(cd_hpo_journal_append(&s->log, &e, err));
    return finish(s, k, &e, false, err);
}

/* Until everything is over: make the next decision as soon as its results are there. */
static void work(search *s, int worker) {
    const size_t lag = (size_t)s->s->space->tune.in_flight;
    pthread_mutex_lock(&s->lock);
    while (!s->over && !s->st) {
        if (s->n >= s->first_open + lag) {
            pthread_cond_wait(&s->moved, &s->lock);
            continue;
        }
        cdmpp_err err = {0};
        cdmpp_status st = decide(s, &err);
        if (!st && s->job[s->n - 1].work) st = do_job(s, s->n - 1, worker, &err);
        if (st && !s->st) s->st = st, s->err = err;
        while (s->first_open < s->n && s->job[s->first_open].finished) s->first_open++;
        pthread_cond_broadcast(&s->moved);
    }
    pthread_mutex_unlock(&s->lock);
}

static cdmpp_status work_loop(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    (void)beg, (void)end, (void)err; /* failures are in the search */
    work(ctx, w);
    return CDMPP_OK;
}

/* ---- the whole ---- */
static cdmpp_status prepare(search *s, cdmpp_err *err) {
    const cd_hpo_options *in = s->s;
    cd_hpo_result *f = s->out;
    char hex[65];
    cd_hpo_trial *trial;
    CD_TRY(cd_hpo_space_sample(in->space, in->base, &f->arena, &trial, &f->n_trial, err));
    f->trial = trial;
    f->n_rung = cd_hpo_space_rungs(in->space);
    f->error = CD_NEWN(&f->arena, double, f->n_trial * f->n_rung);
    f->reason = CD_NEWN(&f->arena, const char *, f->n_trial);
    if (!f->error || !f->reason) return CD_FAIL(err, ENOMEM, "search of %zu trials", f->n_trial);
    for (size_t i = 0; i < f->n_trial * f->n_rung; i++) f->error[i] = NAN;
    CD_TRY(cd_hpo_asha_new(f->n_trial, (unsigned)in->space->tune.eta, f->n_rung, &s->asha, err));
    CD_TRY(digest(in, hex, err));
    return cd_hpo_journal_open(&s->log, in->journal, hex, err);
}

static cdmpp_status conclude(search *s, cdmpp_err *err) {
    cd_hpo_result *f = s->out;
    if (s->st) {
        if (err) *err = s->err;
        return s->st;
    }
    if (cd_hpo_asha_best(s->asha, &f->best, &f->best_error)) return CDMPP_OK;
    const char *first = "none was tried";
    for (size_t i = f->n_trial; i-- > 0;)
        if (f->reason[i]) first = f->reason[i];
    return CD_FAIL(err, ENUMERIC, "all %zu trials failed, the first with: %s", f->n_trial, first);
}

/* Workers share one lock; it is released while a configuration trains. */
cdmpp_status cd_hpo(const cd_hpo_options *in, cd_threads *pool, cd_hpo_result *out,
                    cdmpp_err *err) {
    search s = {.s = in, .out = out, .log = {.fd = -1}};
    *out = (cd_hpo_result){0};
    pthread_mutex_init(&s.lock, NULL);
    pthread_cond_init(&s.moved, NULL);
    cdmpp_status st = prepare(&s, err);
    if (!st) out->torn = s.log.torn;
    if (!st) st = cd_threads_run(pool, (size_t)cd_threads_count(pool), 1, work_loop, &s, err);
    if (!st) st = conclude(&s, err);
    cd_hpo_journal_close(&s.log);
    cd_hpo_asha_free(s.asha);
    cd_mem_free(s.job);
    pthread_cond_destroy(&s.moved);
    pthread_mutex_destroy(&s.lock);
    return st;
}

void cd_hpo_result_free(cd_hpo_result *f) { cd_arena_free(&f->arena); }

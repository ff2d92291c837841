#include "learner/ensemble.h"

#include <stdio.h>
#include <string.h>

#include "learner/boost.h"
#include "learner/judge.h"
#include "learner/plan.h"
#include "learner/trainnet.h"

typedef struct {
    const cd_trainset *t;
    cd_ensemble_run run;
    cd_model *m;
    int nthread;             /* of XGBoost */
} job;

/* Programs of all folds but `fold`, or of that one, with ln of their labels. */
static cdmpp_status list(const cd_trainset *t, int fold, bool in, cd_boost_set *out, cdmpp_err *err) {
    uint32_t *program = cd_calloc(t->d->n + 1, sizeof *program);
    double *log_s = cd_calloc(t->d->n + 1, sizeof *log_s);
    *out = (cd_boost_set){0, program, log_s};
    if (!program || !log_s) return CD_FAIL(err, ENOMEM, "%zu programs", t->d->n);
    for (size_t i = 0; i < t->d->n; i++) {
        if (t->fold[i] == CD_FOLD_NEVER || (t->fold[i] == fold) != in) continue;
        program[out->n] = (uint32_t)i;
        log_s[out->n++] = t->log_s[i];
    }
    return CDMPP_OK;
}

static void list_free(cd_boost_set *s) {
    cd_free((void *)(uintptr_t)s->program);
    cd_free((void *)(uintptr_t)s->log_s);
}

static cdmpp_status train_anew(const job *b, const cd_boost_run *run, cd_member *e, cdmpp_err *err) {
    cd_boost_set train = {0}, valid = {0};
    cdmpp_status st = list(b->t, e->fold, false, &train, err);
    if (!st) st = list(b->t, e->fold, true, &valid, err);
    if (!st && cd_member_is_net(e->kind)) st = cd_trainnet(b->t, &train, &valid, &b->run, run, e, err);
    else if (!st) st = cd_boost(&b->t->view, &train, &valid, b->t->c, run, e, err);
    list_free(&train);
    list_free(&valid);
    return st;
}

static cdmpp_status train_member(const job *b, cd_member *e, cdmpp_err *err) {
    char name[48];
    bool found = false;
    const bool kept = b->run.keep && b->run.keep->dir;
    cd_keepmember_told told = {.tick = b->run.tick, .ctx = b->run.ctx};
    const cd_boost_run run = {name, b->nthread, cd_keepmember_tick, &told};
    if (b->t->n_fold > 1) snprintf(name, sizeof name, "%s %d/%d", cd_member_name(e->kind), e->fold + 1, b->t->n_fold);
    else snprintf(name, sizeof name, "%s", cd_member_name(e->kind));
    cdmpp_status st = kept ? cd_keepmember_read(b->run.keep, name, &told, e, &found, err) : CDMPP_OK;
    if (!st && !found) st = train_anew(b, &run, e, err);
    if (!st && !found && kept) st = cd_keepmember_write(b->run.keep, e, &told, err);
    cd_buf_free(&told.curve);
    return st;
}

static cdmpp_status train_chunk(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const job *b = ctx;
    (void)w;
    for (size_t k = beg; k < end; k++) CD_TRY(train_member(b, &b->m->member[k], err));
    return CDMPP_OK;
}

/* Members side by side, each with its share of the threads: XGBoost with one thread
 * never waits for another, and two idle OpenMP threads on a busy machine were measured
 * 6 times slower than one. The slow kinds, last in the table, begin first. */
static cdmpp_status train_all(const cd_trainset *t, const cd_ensemble_run *run, cd_model *m, cdmpp_err *err) {
    cd_plan plan;
    job b = {t, *run, m, 1};
    CD_TRY(cd_plan_of(t->c, &plan, err));
    m->n_kind = plan.n_kind;
    memcpy(m->kind, plan.kind, sizeof plan.kind);
    m->member = cd_calloc(plan.n_kind * (size_t)t->n_fold, sizeof *m->member);
    if (!m->member) return CD_FAIL(err, ENOMEM, "members");
    for (int kind = CD_N_MEMBER_KIND; kind-- > 0;)
        for (size_t k = 0; k < plan.n_kind; k++)
            for (int f = 0; plan.kind[k] == (cd_member_kind)kind && f < t->n_fold; f++)
                m->member[m->n_member++] = (cd_member){.kind = plan.kind[k], .fold = f};
    b.nthread = cd_threads_count(run->pool) / (int)m->n_member;
    if (b.nthread < 1) b.nthread = 1;
    b.run.alone = m->n_member == 1;
    if (b.run.alone) return train_chunk(&b, 0, 1, 0, err);
    return cd_threads_run(run->pool, m->n_member, 1, train_chunk, &b, err);
}

/* ---- uncertainty ---- */
static cdmpp_status calibrate(const cd_trainset *t, cd_model *m, const double *kind_log_s, cdmpp_err *err) {
    const size_t n = t->n_oof, width = cd_input_width(CD_FORM_PROGRAM);
    float *x = cd_calloc(n + 1, width * sizeof *x);
    double *log_y = cd_calloc(n + 1, sizeof *log_y);
    uint32_t *fold = cd_calloc(n + 1, sizeof *fold), *group = cd_calloc(n + 1, sizeof *group);
    cdmpp_status st = x && log_y && fold && group ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu programs to calibrate", n);
    for (size_t i = 0; !st && i < n; i++) {
        const uint32_t p = t->oof[i];
        const cd_view *v = &t->view;
        cd_input_fill(CD_FORM_PROGRAM, v->row + v->row_ptr[p] * (int64_t)t->d->n_col, (size_t)(v->row_ptr[p + 1] - v->row_ptr[p]),
                      v->device[p], x + i * width);
        log_y[i] = t->log_s[p];
        fold[i] = t->fold[p];
        group[i] = t->d->task[p];
    }
    cd_calib_opt opt = cd_calib_opt_default();
    opt.level = t->c->predict_level;
    opt.point = (cd_calib_point)t->c->predict_point;
    opt.objective = opt.point == CD_CALIB_MAPE ? CD_LOSS_MAPE : CD_LOSS_HUBER;
    opt.seed = (uint64_t)t->c->split_seed;
    const cd_calib_in in = {.n = n, .n_kind = m->n_kind, .width = width, .n_fold = (size_t)t->n_fold, .kind_log_s = kind_log_s,
                            .log_y = log_y, .x = x, .fold = fold, .group = group};
    if (!st) st = cd_calib_fit(&in, &opt, &m->calib, err);
    cd_free(x);
    cd_free(log_y);
    cd_free(fold);
    cd_free(group);
    return st;
}

static cdmpp_status train_or_read(const cd_trainset *t, const cd_ensemble_run *run, cd_model *m, cdmpp_err *err) {
    cd_ensemble_run with = *run;
    cd_keep keep;
    cdmpp_status st = cd_keep_open(&keep, run->folder, t, run->start, err);
    with.keep = &keep;
    if (!st) st = train_all(t, &with, m, err);
    cd_keep_free(&keep);
    return st;
}

cdmpp_status cd_ensemble_train(const cd_trainset *t, const cd_ensemble_run *run, cd_model *m, double **kind_log_s,
                               cdmpp_err *err) {
    CD_TRY(train_or_read(t, run, m, err));
    double *k = cd_calloc(m->n_kind * t->n_oof + 1, sizeof *k);
    cdmpp_status st = k ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu programs", t->n_oof);
    if (!st) st = cd_judge_oof(t, m, run->pool, k, err);
    if (!st) st = calibrate(t, m, k, err);
    if (st) cd_free(k);
    else *kind_log_s = k;
    return st;
}

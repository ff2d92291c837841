/* Trains all members of an ensemble, side by side or dealt out over ranks, then its calibration. */
#include "learner/train/train_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const cd_training_set *t;
    cd_ensemble_run run;
    cd_model *m;
    size_t *todo, n_todo; /* members of this rank; room for all */
    /* (n_member) of trained members for rank 0 of a process group, else empty */
    cd_buf *bytes;
    int nthread;          /* of XGBoost */
    _Atomic size_t *rows; /* that this process gave to XGBoost to train on */
} job;

static bool listed(const cd_training_set *t, size_t i, int fold, bool in) {
    return t->fold[i] != CD_FOLD_NEVER && (t->fold[i] == fold) == in;
}

/* apart from the draws of the split and of the filter, whose seeds may be the same */
static const uint64_t draw_stream = 0x64726177;

/* A matrix to train on has each value as a bin, by row and by column; one to stop by is as XGBoost
 * keeps it, and ours before. A row has some 80 bytes of scores, gradients and places in the
 * tree. */
double cd_ensemble_share(const cd_training_set *t, cd_member_kind kind, int fold, bool train) {
    /* parts of the memory; bytes */
    enum { OF_TRAIN = 6, OF_VALID = 16, ROW = 80, BIN = 2, WIDE_BIN = 4, VALUE = 12 };
    if (!cd_spool_on_disk(t->view.spool) || cd_member_is_net(kind)) return 1;
    const cd_tree_input_form form = cd_member_form(kind);
    const cd_facts_use facts =
        cd_member_reads_facts(kind) ? (cd_facts_use)t->c->train_facts : CD_FACTS_USE_NONE;
    const double room = (double)t->c->train_memory * 1048576 / (train ? OF_TRAIN : OF_VALID);
    const int value = !train ? VALUE : t->c->train_max_bin > 256 ? WIDE_BIN : BIN;
    double rows = 0;
    for (size_t i = 0; i < t->d->n; i++)
        if (listed(t, i, fold, !train))
            rows += (double)cd_tree_input_height(
                form, (size_t)(t->view.row_ptr[i + 1] - t->view.row_ptr[i]));
    return fmin(1, room / (rows * (double)(cd_member_width(kind, facts) * (size_t)value + ROW)));
}

/* Programs of all folds but `fold`, or of that one, with ln of their labels and their tasks; a
 * share of them. */
static cdmpp_status list(const cd_training_set *t, int fold, bool in, double share, cd_arena *a,
                         cd_boost_set *out, cdmpp_err *err) {
    uint32_t *program = CD_NEWN(a, uint32_t, t->d->n), *group = CD_NEWN(a, uint32_t, t->d->n);
    double *log_s = CD_NEWN(a, double, t->d->n);
    *out = (cd_boost_set){0, program, log_s, group};
    if (a->oom) return CD_FAIL(err, ENOMEM, "%zu programs", t->d->n);
    for (size_t i = 0; i < t->d->n; i++) {
        if (!listed(t, i, fold, in)) continue;
        if (share < 1 && cd_rng_unit((uint64_t)t->c->train_seed ^ draw_stream,
                                     cd_stable_id_program(t->d, i)) >= share)
            continue;
        program[out->n] = (uint32_t)i;
        group[out->n] = t->group[i];
        log_s[out->n++] = t->log_s[i];
    }
    return CDMPP_OK;
}

static cdmpp_status train_anew(const job *b, const cd_boost_run *run, cd_member *e,
                               cdmpp_err *err) {
    cd_arena a = {0};
    cd_boost_set train, valid;
    cdmpp_status st = list(b->t, e->fold, false, cd_ensemble_share(b->t, e->kind, e->fold, true),
                           &a, &train, err);
    if (!st)
        st = list(b->t, e->fold, true, cd_ensemble_share(b->t, e->kind, e->fold, false), &a, &valid,
                  err);
    if (!st && cd_member_is_net(e->kind))
        st = cd_train_net(b->t, &train, &valid, &b->run, run, e, err);
    else if (!st) st = cd_boost(&b->t->view, &train, &valid, b->t->c, run, e, err);
    cd_arena_free(&a);
    return st;
}

static void name_of(const job *b, const cd_member *e, char out[48]) {
    const char *before = b->run.before ? b->run.before : "";
    if (b->t->n_fold > 1)
        snprintf(out, 48, "%s%s %d/%d", before, cd_member_name(e->kind), e->fold + 1, b->t->n_fold);
    else snprintf(out, 48, "%s%s", before, cd_member_name(e->kind));
}

/* From the folder, or trained and put there. */
static cdmpp_status train_member(const job *b, size_t k, cdmpp_err *err) {
    char name[48];
    bool found = false;
    cd_member *e = &b->m->member[k];
    const cd_process_group *ranks = b->run.ranks;
    const bool kept = b->run.keep->dir != NULL, first = !b->run.together || ranks->rank == 0;
    cd_member_checkpoint_log told = {.tick = b->run.tick, .ctx = b->run.ctx};
    const cd_boost_run run = {
        name,   b->nthread, cd_member_checkpoint_tick, &told, b->run.together ? ranks : NULL,
        b->rows};
    name_of(b, e, name);
    cdmpp_status st =
        kept ? cd_member_checkpoint_read(b->run.keep, name, &told, e, &found, err) : CDMPP_OK;
    if (!st && kept && b->run.together) st = cd_process_group_agree(ranks, found, err);
    if (!st && !found) st = train_anew(b, &run, e, err);
    if (!st && !found && kept && first) st = cd_member_checkpoint_write(b->run.keep, e, &told, err);
    if (!st && ranks && ranks->rank && first)
        st = cd_member_checkpoint_encode(b->run.keep, e, &told, &b->bytes[k], err);
    cd_buf_free(&told.curve);
    return st;
}

static cdmpp_status train_chunk(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const job *b = ctx;
    (void)w;
    for (size_t k = beg; k < end; k++) CD_TRY(train_member(b, b->todo[k], err));
    return CDMPP_OK;
}

/* The slow kinds, last in the table, first. */
static cdmpp_status list_members(const cd_training_set *t, cd_model *m, cdmpp_err *err) {
    cd_member_plan plan;
    CD_TRY(cd_member_plan_of(t->c, &plan, err));
    m->n_kind = plan.n_kind;
    memcpy(m->kind, plan.kind, sizeof plan.kind);
    m->member = cd_mem_zalloc(plan.n_kind * (size_t)t->n_fold, sizeof *m->member);
    if (!m->member) return CD_FAIL(err, ENOMEM, "members");
    for (int kind = CD_N_MEMBER_KIND; kind-- > 0;)
        for (size_t k = 0; k < plan.n_kind; k++)
            for (int f = 0; plan.kind[k] == (cd_member_kind)kind && f < t->n_fold; f++)
                m->member[m->n_member++] = (cd_member){.kind = plan.kind[k], .fold = f};
    return CDMPP_OK;
}

/* Members side by side, each with its share of the threads: XGBoost with one thread never waits for
 * another, and two idle OpenMP threads on a busy machine were measured 6 times slower than one.
 * Data on disk: one after another, so that one matrix is in use at a time. */
static cdmpp_status train_own(job *b, cdmpp_err *err) {
    const bool in_turn = b->n_todo == 1 || cd_spool_on_disk(b->t->view.spool);
    if (!b->n_todo) return CDMPP_OK;
    b->nthread = cd_threads_count(b->run.pool) / (in_turn ? 1 : (int)b->n_todo);
    if (b->nthread < 1) b->nthread = 1;
    b->run.alone = in_turn;
    if (in_turn) return train_chunk(b, 0, b->n_todo, 0, err);
    return cd_threads_run(b->run.pool, b->n_todo, 1, train_chunk, b, err);
}

/* Members that all ranks train, one after another. */
static cdmpp_status train_together(job *b, const size_t *owner, cdmpp_err *err) {
    b->run.alone = b->run.together = true;
    b->nthread = cd_threads_count(b->run.pool);
    cdmpp_status st = CDMPP_OK;
    for (size_t k = 0; !st && k < b->m->n_member; k++)
        if (owner[k] == CD_PROCESS_GROUP_ALL) st = train_member(b, k, err);
    b->run.together = false;
    return st;
}

/* Rank 0 gets all members; what they told is told there. */
static cdmpp_status gather(const job *b, cdmpp_err *err) {
    CD_TRY(cd_process_group_gather(b->run.ranks, b->bytes, b->m->n_member, err));
    for (size_t k = 0; k < b->m->n_member && b->run.ranks->rank == 0; k++) {
        char name[48];
        cd_member_checkpoint_log told = {.tick = b->run.tick, .ctx = b->run.ctx};
        if (!b->bytes[k].n) continue;
        name_of(b, &b->m->member[k], name);
        const cdmpp_status st = cd_member_checkpoint_decode(
            b->run.keep, b->bytes[k].p, b->bytes[k].n, name, &told, &b->m->member[k], err);
        cd_buf_free(&told.curve);
        CD_TRY(st);
    }
    return CDMPP_OK;
}

/* The data are divided between the ranks; who wants to see it asks for --verbose. */
static cdmpp_status tell_shares(const job *b, cdmpp_err *err) {
    const cd_process_group *ranks = b->run.ranks;
    const cd_dataset *d = b->t->d;
    cd_buf own = {0}, *all = ranks->rank ? NULL : cd_mem_zalloc(ranks->n_rank, sizeof *all);
    cd_buf_putf(
        &own, "rank %zu: %s%zu matrix rows of trees, %llu of %llu bytes of the data set read to %s",
        ranks->rank, b->run.before ? b->run.before : "", (size_t)*b->rows,
        d->borrowed ? 0ULL : (unsigned long long)d->bytes, (unsigned long long)d->bytes,
        cd_spool_on_disk(d->spool) ? "disk" : "memory");
    cdmpp_status st = own.oom || (!all && !ranks->rank)
                          ? CD_FAIL(err, ENOMEM, "shares of %zu ranks", ranks->n_rank)
                          : CDMPP_OK;
    if (!st) st = ranks->gather(ranks->ctx, &own, all, err);
    for (size_t r = 0; all && r < ranks->n_rank; r++) {
        if (!st && b->run.log)
            cd_log_put(b->run.log, CD_LOG_DEBUG, "%.*s", (int)all[r].n, all[r].p);
        cd_buf_free(&all[r]);
    }
    cd_mem_free(all);
    cd_buf_free(&own);
    return st;
}

static cdmpp_status train_by_ranks(job *b, cdmpp_err *err) {
    const cd_process_group *ranks = b->run.ranks;
    const size_t n = b->m->n_member;
    size_t *owner = cd_mem_zalloc(n, sizeof *owner);
    if (!owner) return CD_FAIL(err, ENOMEM, "%zu members", n);
    cd_process_group_deal(b->m->member, n, ranks->n_rank, b->t->c->fit_slices,
                          b->t->c->train_together, owner);
    for (size_t k = 0; k < n; k++)
        if (owner[k] == ranks->rank) b->todo[b->n_todo++] = k;
    cdmpp_status st = train_together(b, owner, err);
    cd_mem_free(owner);
    if (!st) st = train_own(b, err);
    if (!st || st == CDMPP_EINTERRUPTED) st = ranks->agree(ranks->ctx, st, err);
    if (!st) st = gather(b, err);
    return st ? st : tell_shares(b, err);
}

/* Bytes of members exist only with several ranks, where trained members are sent to rank 0. */
static cdmpp_status train_all(const cd_training_set *t, const cd_ensemble_run *run, cd_model *m,
                              cdmpp_err *err) {
    _Atomic size_t rows = 0;
    job b = {.t = t, .run = *run, .m = m, .nthread = 1, .rows = &rows};
    CD_TRY(list_members(t, m, err));
    b.todo = cd_mem_zalloc(m->n_member, sizeof *b.todo);
    b.bytes = cd_mem_zalloc(m->n_member, sizeof *b.bytes);
    cdmpp_status st =
        b.todo && b.bytes ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu members", m->n_member);
    if (!st && run->ranks) {
        st = train_by_ranks(&b, err);
    } else if (!st) {
        for (; b.n_todo < m->n_member; b.n_todo++) b.todo[b.n_todo] = b.n_todo;
        st = train_own(&b, err);
    }
    for (size_t k = 0; b.bytes && k < m->n_member; k++) cd_buf_free(&b.bytes[k]);
    cd_mem_free(b.bytes);
    cd_mem_free(b.todo);
    return st;
}

cdmpp_status cd_ensemble_members(const cd_training_set *t, const cd_ensemble_run *run, cd_model *m,
                                 cdmpp_err *err) {
    cd_ensemble_run with = *run;
    cd_member_checkpoint keep;
    cdmpp_status st = cd_member_checkpoint_open(&keep, run->folder, t, run->start, err);
    with.keep = &keep;
    if (!st) st = train_all(t, &with, m, err);
    cd_member_checkpoint_free(&keep);
    return st;
}

cdmpp_status cd_ensemble_train(const cd_training_set *t, const cd_ensemble_run *run, cd_model *m,
                               double **kind_log_s, cdmpp_err *err) {
    *kind_log_s = NULL;
    CD_TRY(cd_ensemble_members(t, run, m, err));
    if (t->c->model_order.n) CD_TRY(cd_order_train(t, run, m, err));
    if (run->ranks && run->ranks->rank) return CDMPP_OK;
    double *k = cd_mem_zalloc(m->n_kind * t->n_oof + 1, sizeof *k);
    cdmpp_status st = k ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu programs", t->n_oof);
    if (!st) st = cd_evaluate_oof(t, m, run->pool, t->oof, t->n_oof, k, err);
    if (!st)
        st = cd_calibrate_model(t, t->oof, t->n_oof, t->n_fold == 1 ? 0 : -1, false, k, run->pool,
                                m, err);
    if (st) cd_mem_free(k);
    else *kind_log_s = k;
    return st;
}

/* Gives earlier measurements to a run: those of its own log as known trials, those of other logs
 * and stores as first candidates. */
#include "predictor/tune/session/tune_resume.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profiler/records/records.h"
#include "profiler/store/store.h"

enum { NEAR = 4, EACH = 4 }; /* workloads, and of the task itself so many */

static bool equal(cd_str s, const char *z) { return s.n == strlen(z) && !memcmp(s.p, z, s.n); }

/* ---- resume ---- */
/* A record's target is the task's, with the name of the device that measured it behind
 * (cd_record_maker.device) or, in older logs, without. */
static bool same_target(cd_str s, const char *target) {
    static const char model[] = " -model=";
    const size_t n = strlen(target), m = sizeof model - 1;
    if (equal(s, target)) return true;
    return s.n > n + m && !memcmp(s.p, target, n) && !memcmp(s.p + n, model, m) &&
           !memchr(s.p + n + m, ' ', s.n - n - m) && !strstr(target, model);
}

static bool is_of(const cd_record *r, const cd_tune_task *t) {
    const cd_str key = {t->task->workload_key, strlen(t->task->workload_key)};
    return cd_task_same_key(r->workload_key, key) && same_target(r->target, t->target) &&
           r->has_hardware && !memcmp(&r->hardware, &t->hardware, sizeof r->hardware);
}

static cdmpp_status take(cd_tune_run *run, const cd_tune_unit *unit, uint32_t n, const cd_record *r,
                         cd_tune_resume_tally *t, cdmpp_err *err) {
    for (uint32_t i = 0; i < n; i++) {
        if (!is_of(r, &unit[i].of)) continue;
        t->known++;
        return cd_tune_run_known(run, i, r, cd_record_program_cost_s(r), err);
    }
    t->other++;
    return CDMPP_OK;
}

static cdmpp_status take_line(cd_tune_run *run, const cd_tune_unit *unit, uint32_t n, cd_arena *a,
                              const cd_recline *l, cd_tune_resume_tally *t, cdmpp_err *err) {
    cd_record r;
    t->lines++;
    if (cd_record_read(a, l->text, l->len, &r, NULL)) {
        t->bad++;
        return CDMPP_OK;
    }
    return take(run, unit, n, &r, t, err);
}

/* A broken line costs only itself: a run that was killed may leave half a line at the end of its
 * log. */
cdmpp_status cd_tune_resume_resume(cd_tune_run *run, const cd_tune_unit *unit, uint32_t n,
                                   const char *log, cd_tune_resume_tally *t, cdmpp_err *err) {
    cd_record_reader *f = NULL;
    cd_arena a = {0};
    if (access(log, R_OK)) return CDMPP_OK;
    CD_TRY(cd_record_reader_open(&log, 1, &f, err));
    cdmpp_status st = CDMPP_OK;
    for (cd_recline l; !st; cd_arena_reset(&a)) {
        cdmpp_err why = {0};
        st = cd_record_reader_next(f, &l, &why);
        const bool line_only = st == CDMPP_ERANGE || st == CDMPP_EPARSE;
        if (st && !line_only && err) *err = why;
        if (line_only) {
            t->bad++;
            st = CDMPP_OK;
        } else if (!st && !l.text) break;
        else if (!st) st = take_line(run, unit, n, &a, &l, t, err);
    }
    cd_arena_free(&a);
    cd_record_reader_close(f);
    return st;
}

/* ---- warm start ---- */
typedef struct {
    cd_tune_run *run;
    uint32_t task;
    size_t taken;
    bool same; /* the task itself is in the store */
    cd_arena arena;
    cd_tune_resume_tally *tally;
} taker;

/* Hits come nearest first. As soon as one is the task itself (distance 0), hits of other shapes are
 * not taken any more. */
static cdmpp_status take_near(void *ctx, const cd_store_near *near, cdmpp_err *err) {
    taker *k = ctx;
    cd_buf line = {0};
    cd_record r;
    bool taken = false;
    const bool itself = near->distance <= 0;
    k->same |= itself && near->hit.row.has_steps;
    if (k->taken >= CD_TUNE_WARM_BEST || (k->same && !itself) || !near->hit.row.has_steps)
        return CDMPP_OK;
    cd_arena_reset(&k->arena);
    cdmpp_status st = cd_store_put_record(&line, &k->arena, &near->hit, err);
    if (!st && !cd_record_read(&k->arena, line.p, line.n, &r, NULL))
        st = cd_tune_run_first(k->run, k->task, &r, &taken, err);
    cd_buf_free(&line);
    k->taken += taken;
    k->tally->first += taken;
    k->tally->near += taken && !itself;
    return st;
}

static cdmpp_status near_of(cd_tune_run *run, const cd_tune_unit *u, uint32_t i, cd_store *s,
                            cd_tune_resume_tally *t, cdmpp_err *err) {
    char kind[24];
    cdmpp_err why = {0};
    taker k = {.run = run, .task = i, .tally = t};
    snprintf(kind, sizeof kind, "%.*s", (int)strcspn(u->of.target, " "), u->of.target);
    const cd_store_filter f = {.workload = u->of.task->workload_key, .target = kind, .limit = NEAR};
    const cdmpp_status st = cd_store_find_near(s, &f, NULL, EACH, take_near, &k, &why);
    cd_arena_free(&k.arena);
    /* nothing like it there */
    if (!st || st == CDMPP_ENODATA || st == CDMPP_ESCHEMA) return CDMPP_OK;
    if (err) *err = why;
    return st;
}

static bool is_store(const char *path) {
    static const char magic[] = "SQLite format 3";
    char head[sizeof magic] = "";
    FILE *f = fopen(path, "rb");
    const bool yes =
        f && fread(head, 1, sizeof head, f) == sizeof head && !memcmp(head, magic, sizeof magic);
    if (f) (void)fclose(f);
    return yes;
}

/* Logs go into a store of their own that is nowhere but in memory. */
static cdmpp_status start_from(cd_tune_run *run, const cd_tune_unit *unit, uint32_t n,
                               const char *path, cd_tune_resume_tally *t, cdmpp_err *err) {
    const bool store = is_store(path);
    const cd_store_import how = {.form = CD_STORE_ANSOR};
    cd_store_tally tally = {0};
    cd_store *s = NULL;
    cdmpp_status st = cd_store_open(store ? path : ":memory:", !store, &s, err);
    if (!st && !store) st = cd_store_import_path(s, path, &how, &tally, err);
    t->bad += tally.bad;
    for (uint32_t i = 0; !st && i < n; i++) st = near_of(run, &unit[i], i, s, t, err);
    cd_store_close(s);
    return cd_err_at(err, st, path, 0);
}

cdmpp_status cd_tune_resume_start(cd_tune_run *run, const cd_tune_unit *unit, uint32_t n,
                                  const char *const *path, size_t n_path, cd_tune_resume_tally *t,
                                  cdmpp_err *err) {
    for (size_t k = 0; k < n_path; k++) CD_TRY(start_from(run, unit, n, path[k], t, err));
    return CDMPP_OK;
}

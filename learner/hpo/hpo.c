/* A search over configurations: successive halving (hpo.c) decides what to train next, workers
 * train side by side, a journal keeps every result. */
#include "learner/hpo/hpo.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/text.h"
#include "learner/hpo/hpo_internal.h"

/* Asynchronous successive halving (Li et al. 2020): the best third or so of each rung goes on with
 * a larger budget, without waiting for the rung to be full. */

typedef struct {
    size_t trial;
    double error;
    bool up; /* has gone up */
} entry;

typedef struct {
    entry *e; /* (n) best first */
    size_t n;
} rung_list;

struct cd_hpo_asha {
    size_t n_trial, started, open;
    unsigned eta, n_rung;
    rung_list rung[CD_HPO_ASHA_RUNGS];
};

cdmpp_status cd_hpo_asha_new(size_t n_trial, unsigned eta, unsigned n_rung, cd_hpo_asha **out,
                             cdmpp_err *err) {
    cd_hpo_asha *a = cd_mem_zalloc(1, sizeof *a);
    bool ok = a != NULL;
    for (unsigned r = 0; ok && r < n_rung; r++)
        ok = (a->rung[r].e = cd_mem_zalloc(n_trial + 1, sizeof(entry))) != NULL;
    if (!ok) {
        cd_hpo_asha_free(a);
        return CD_FAIL(err, ENOMEM, "search of %zu trials", n_trial);
    }
    a->n_trial = n_trial;
    a->eta = eta;
    a->n_rung = n_rung;
    *out = a;
    return CDMPP_OK;
}

void cd_hpo_asha_free(cd_hpo_asha *a) {
    if (!a) return;
    for (unsigned r = 0; r < CD_HPO_ASHA_RUNGS; r++) cd_mem_free(a->rung[r].e);
    cd_mem_free(a);
}

/* The first of the best `quota` entries that stays and is finite; NULL: none. */
static entry *candidate(rung_list *l, size_t quota) {
    for (size_t i = 0; i < quota && i < l->n && isfinite(l->e[i].error); i++)
        if (!l->e[i].up) return &l->e[i];
    return NULL;
}

static bool has_result(const rung_list *l) { return l->n && isfinite(l->e[0].error); }

static entry *promotion(cd_hpo_asha *a, unsigned *from) {
    for (unsigned r = a->n_rung - 1; r-- > 0;) {
        entry *e = candidate(&a->rung[r], a->rung[r].n / a->eta);
        *from = r;
        if (e) return e;
    }
    if (a->open || a->started < a->n_trial || has_result(&a->rung[a->n_rung - 1])) return NULL;
    /* (4): from the highest rung that has somebody left */
    for (unsigned r = a->n_rung - 1; r-- > 0;) {
        entry *e = candidate(&a->rung[r], a->rung[r].n);
        *from = r;
        if (e) return e;
    }
    return NULL;
}

/* Promotions come before new trials. */
bool cd_hpo_asha_ask(cd_hpo_asha *a, size_t *trial, unsigned *rung) {
    unsigned from = 0;
    entry *e = promotion(a, &from);
    if (e) {
        e->up = true;
        *trial = e->trial;
        *rung = from + 1;
    } else if (a->started < a->n_trial) {
        *trial = a->started++;
        *rung = 0;
    } else {
        return false;
    }
    a->open++;
    return true;
}

void cd_hpo_asha_tell(cd_hpo_asha *a, size_t trial, unsigned rung, double error) {
    rung_list *l = &a->rung[rung];
    size_t at = l->n++;
    if (!isfinite(error)) error = INFINITY;
    for (; at > 0; at--) {
        const entry *o = &l->e[at - 1];
        if (o->error < error || (!(o->error > error) && o->trial < trial)) break;
    }
    memmove(l->e + at + 1, l->e + at, (l->n - 1 - at) * sizeof *l->e);
    l->e[at] = (entry){trial, error, false};
    a->open--;
}

size_t cd_hpo_asha_open(const cd_hpo_asha *a) { return a->open; }

bool cd_hpo_asha_best(const cd_hpo_asha *a, size_t *trial, double *error) {
    const rung_list *top = &a->rung[a->n_rung - 1];
    if (!has_result(top)) return false;
    *trial = top->e[0].trial;
    *error = top->e[0].error;
    return true;
}

/* The journal of a search: one JSON line for each result, appended and synced, so that a search
 * that was stopped goes on. */

static cdmpp_status fail_io(const cd_hpo_journal *l, const char *what, cdmpp_err *err) {
    const cdmpp_status st = CD_FAIL(err, EIO, "cannot %s: %s", what, strerror(errno));
    return cd_err_at(err, st, l->path, 0);
}

/* ---- reading ---- */
/* The raw text of "params", which is the last member of our lines. */
static cdmpp_status raw_params(cd_hpo_journal *l, const char *line, size_t n, const char **out,
                               cdmpp_err *err) {
    static const char mark[] = ",\"params\":";
    const char *p = memmem(line, n, mark, sizeof mark - 1);
    if (!p || line[n - 1] != '}') return CD_FAIL(err, ESCHEMA, "expected params at the end");
    p += sizeof mark - 1;
    *out = cd_str_dup(&l->arena, (cd_str){p, (size_t)(line + n - 1 - p)});
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "journal");
}

/* "reason" marks a failed training; its error counts as infinite. */
static cdmpp_status read_entry(cd_hpo_journal *l, const char *line, size_t n,
                               cd_hpo_journal_entry *e, cdmpp_err *err) {
    const cd_json *v, *reason;
    int64_t trial, rung;
    cd_str why = {"", 0};
    CD_TRY(cd_json_parse(&l->arena, line, n, &v, err));
    CD_TRY(
        cd_err_key(err, cd_json_int(cd_json_get(v, "trial"), 0, INT32_MAX, &trial, err), "trial"));
    CD_TRY(cd_err_key(err, cd_json_int(cd_json_get(v, "rung"), 0, 1000, &rung, err), "rung"));
    CD_TRY(cd_err_key(err, cd_json_real(cd_json_get(v, "budget"), &e->budget, err), "budget"));
    CD_TRY(cd_err_key(err, cd_json_real(cd_json_get(v, "seconds"), &e->seconds, err), "seconds"));
    e->trial = (size_t)trial;
    e->rung = (unsigned)rung;
    reason = cd_json_get(v, "reason");
    if (reason) CD_TRY(cd_err_key(err, cd_json_str(reason, &why, err), "reason"));
    if (reason) e->error = INFINITY;
    else
        CD_TRY(cd_err_key(err, cd_json_real(cd_json_get(v, "valid_error"), &e->error, err),
                          "valid_error"));
    e->reason = cd_str_dup(&l->arena, why);
    if (!e->reason) return CD_FAIL(err, ENOMEM, "journal");
    return raw_params(l, line, n, &e->params, err);
}

static cdmpp_status check_head(cd_hpo_journal *l, const char *line, size_t n, const char *digest,
                               cdmpp_err *err) {
    const cd_json *v;
    cd_str found;
    int64_t version;
    CD_TRY(cd_json_parse(&l->arena, line, n, &v, err));
    CD_TRY(cd_err_key(err, cd_json_int(cd_json_get(v, "schema_version"), 1, 1, &version, err),
                      "schema_version"));
    CD_TRY(cd_err_key(err, cd_json_str(cd_json_get(v, "digest"), &found, err), "digest"));
    if (cd_str_is(found, digest)) return CDMPP_OK;
    return CD_FAIL(
        err, ESCHEMA,
        "this is the journal of another search (space, base configuration or data differ): "
        "remove it or name another one");
}

/* Whether a first line that is cut can be ours: nothing else is to be overwritten. */
static bool may_be_head(const char *text, size_t n) {
    static const char head[] = "{\"schema\":\"cdmpp.search\"";
    return memcmp(text, head, n < sizeof head - 1 ? n : sizeof head - 1) == 0;
}

static int by_trial(const void *a, const void *b) {
    const cd_hpo_journal_entry *x = a, *y = b;
    if (x->trial != y->trial) return x->trial < y->trial ? -1 : 1;
    return x->rung != y->rung ? x->rung < y->rung ? -1 : 1 : 0;
}

/* Lines of text[0 .. n); *good becomes the length of what is whole. */
static cdmpp_status read_lines(cd_hpo_journal *l, const char *text, size_t n, const char *digest,
                               size_t *good, cdmpp_err *err) {
    size_t lines = 0;
    for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
    l->entry = CD_NEWN(&l->arena, cd_hpo_journal_entry, lines + 1);
    if (!l->entry) return CD_FAIL(err, ENOMEM, "journal of %zu lines", lines);
    *good = 0;
    if (!may_be_head(text, n))
        return cd_err_at(err, CD_FAIL(err, ESCHEMA, "expected the journal of a search"), l->path,
                         1);
    for (long k = 1; *good < n; k++) {
        const char *line = text + *good, *end = memchr(line, '\n', n - *good);
        cdmpp_err why = {0};
        cdmpp_status st;
        if (!end) break;
        const size_t len = (size_t)(end - line);
        if (k == 1) st = check_head(l, line, len, digest, &why);
        else st = read_entry(l, line, len, &l->entry[l->n], &why);
        /* a line end may reach the disk before its line */
        const bool torn = end + 1 == text + n && st == CDMPP_EPARSE;
        if (torn) break;
        if (st && err) *err = why;
        CD_TRY(cd_err_at(err, st, l->path, k));
        if (k > 1) l->n++;
        *good += len + 1;
    }
    qsort(l->entry, l->n, sizeof *l->entry, by_trial);
    return CDMPP_OK;
}

/* A last line that was cut short is not an error: *good is where to go on writing. */
static cdmpp_status read_all(cd_hpo_journal *l, const char *digest, size_t *good, cdmpp_err *err) {
    struct stat s;
    if (fstat(l->fd, &s) != 0) return fail_io(l, "read the size", err);
    const size_t n = (size_t)s.st_size;
    char *text = cd_mem_alloc(n + 1);
    if (!text) return CD_FAIL(err, ENOMEM, "journal of %zu bytes", n);
    size_t have = 0;
    while (have < n) {
        const ssize_t m = pread(l->fd, text + have, n - have, (off_t)have);
        if (m < 0 && errno == EINTR) continue;
        if (m <= 0) break;
        have += (size_t)m;
    }
    cdmpp_status st;
    if (have < n) st = fail_io(l, "read", err);
    else st = read_lines(l, text, n, digest, good, err);
    l->torn = n - *good;
    cd_mem_free(text);
    return st;
}

/* ---- writing ---- */
static cdmpp_status put(cd_hpo_journal *l, const cd_buf *b, cdmpp_err *err) {
    if (b->oom) return CD_FAIL(err, ENOMEM, "journal");
    for (size_t at = 0; at < b->n;) {
        const ssize_t m = write(l->fd, b->p + at, b->n - at);
        if (m < 0 && errno == EINTR) continue;
        if (m <= 0) return fail_io(l, "write", err);
        at += (size_t)m;
    }
    return fdatasync(l->fd) == 0 || errno == EINVAL || errno == EROFS ? CDMPP_OK
                                                                      : fail_io(l, "write", err);
}

/* The name of a new file must be on the disk, too. */
static void sync_folder(const char *path) {
    char dir[4096];
    snprintf(dir, sizeof dir, "%s", path);
    char *slash = strrchr(dir, '/');
    if (slash) slash[slash == dir] = '\0';
    const int fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

static cdmpp_status start(cd_hpo_journal *l, const char *digest, cdmpp_err *err) {
    cd_buf b = {0};
    cd_buf_putf(&b, "{\"schema\":\"cdmpp.search\",\"schema_version\":1,\"digest\":\"%s\"}\n",
                digest);
    const cdmpp_status st = put(l, &b, err);
    cd_buf_free(&b);
    sync_folder(l->path);
    return st;
}

cdmpp_status cd_hpo_journal_append(cd_hpo_journal *l, const cd_hpo_journal_entry *e,
                                   cdmpp_err *err) {
    cd_buf b = {0};
    cd_buf_putf(&b, "{\"trial\":%zu,\"rung\":%u,\"budget\":%.15g,\"state\":", e->trial, e->rung,
                e->budget);
    if (isfinite(e->error)) {
        cd_buf_putf(&b, "\"done\",\"valid_error\":%.17g", e->error);
    } else {
        cd_buf_puts(&b, "\"failed\",\"valid_error\":null,\"reason\":");
        cd_buf_put_json_str(&b, e->reason, strlen(e->reason));
    }
    cd_buf_putf(&b, ",\"seconds\":%.3f,\"params\":%s}\n", e->seconds, e->params);
    const cdmpp_status st = put(l, &b, err);
    cd_buf_free(&b);
    return st;
}

/* ---- the whole ---- */
static cdmpp_status open_locked(cd_hpo_journal *l, const char *digest, cdmpp_err *err) {
    size_t good = 0;
    l->fd = open(l->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (l->fd < 0) return fail_io(l, "open the file", err);
    if (flock(l->fd, LOCK_EX | LOCK_NB) != 0)
        return cd_err_at(err, CD_FAIL(err, EIO, "another process is searching with this journal"),
                         l->path, 0);
    CD_TRY(read_all(l, digest, &good, err));
    if (l->torn && ftruncate(l->fd, (off_t)good) != 0) return fail_io(l, "cut the file", err);
    return good ? CDMPP_OK : start(l, digest, err);
}

cdmpp_status cd_hpo_journal_open(cd_hpo_journal *l, const char *path, const char *digest,
                                 cdmpp_err *err) {
    memset(l, 0, sizeof *l);
    snprintf(l->path, sizeof l->path, "%s", path);
    const cdmpp_status st = open_locked(l, digest, err);
    if (st) cd_hpo_journal_close(l);
    return st;
}

const cd_hpo_journal_entry *cd_hpo_journal_find(const cd_hpo_journal *l, size_t trial,
                                                unsigned rung) {
    const cd_hpo_journal_entry key = {.trial = trial, .rung = rung};
    return l->n ? bsearch(&key, l->entry, l->n, sizeof key, by_trial) : NULL;
}

void cd_hpo_journal_close(cd_hpo_journal *l) {
    if (l->fd >= 0) close(l->fd);
    cd_arena_free(&l->arena);
    l->fd = -1;
    l->entry = NULL;
    l->n = 0;
}

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

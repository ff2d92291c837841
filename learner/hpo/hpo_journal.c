/* The journal of a search: one JSON line for each result, appended and synced, so that a search
 * that was stopped goes on. */
#include "learner/hpo/hpo_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/text.h"

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

/* Emitted files written to a folder, and what an earlier emission left there taken away.
 *
 *   emitted.txt   "DIGEST  NAME", a line for each file, as sha256sum has it
 *
 * The list is written before the files, with old and new ones, and after them, with the new ones:
 * an emission that is stopped between leaves no file unlisted. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/io.h"
#include "base/core/core.h"
#include "predictor/partition/emit/emit.h"

enum { PATH = 1024, MOST_DIR = 900, DIGEST = 64, MOST_LIST = 64 << 20 };

typedef struct {
    char digest[DIGEST + 1], name[sizeof((cd_emit_file *)0)->name];
} entry;

typedef struct {
    uint32_t n;
    entry *e; /* (n) a file may be listed with two contents */
} list;

static void path_of(const char *dir, const char *name, char *to) {
    snprintf(to, PATH, "%.*s/%.64s", MOST_DIR, dir, name);
}

static void digest_of(const cd_buf *b, char *hex) {
    cd_sha256 s;
    cd_sha256_init(&s);
    if (b->n) cd_sha256_add(&s, b->p, b->n);
    cd_sha256_hex(&s, hex);
}

static bool is_new(const cd_emit_files *f, const char *name) {
    for (uint32_t k = 0; k < f->n; k++)
        if (!strcmp(f->file[k].name, name)) return true;
    return false;
}

/* ---- the list ---- */

/* A file of this folder alone. */
static bool is_plain(const char *name, size_t n) {
    return n && n < sizeof((entry *)0)->name && name[0] != '.' && !memchr(name, '/', n) &&
           !memchr(name, 0, n);
}

static cdmpp_status read_line(const char *line, size_t n, entry *out, cdmpp_err *err) {
    if (n <= DIGEST + 2 || strspn(line, "0123456789abcdef") != DIGEST ||
        strncmp(line + DIGEST, "  ", 2) != 0 || !is_plain(line + DIGEST + 2, n - DIGEST - 2))
        return CD_FAIL(err, ESCHEMA, "expected a digest and a file's name");
    snprintf(out->digest, sizeof out->digest, "%.*s", DIGEST, line);
    snprintf(out->name, sizeof out->name, "%.*s", (int)(n - DIGEST - 2), line + DIGEST + 2);
    return CDMPP_OK;
}

static cdmpp_status parse(const char *text, size_t n, list *out, cdmpp_err *err) {
    uint32_t lines = 0;
    for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
    if (!(out->e = cd_mem_zalloc((size_t)lines + 1, sizeof *out->e)))
        return CD_FAIL(err, ENOMEM, "%u files", lines);
    for (const char *at = text, *end; at < text + n; at = end + 1) {
        end = memchr(at, '\n', (size_t)(text + n - at));
        if (!end)
            return cd_err_at(err, CD_FAIL(err, ESCHEMA, "the last line does not end"), NULL,
                             (long)out->n + 1);
        CD_TRY(cd_err_at(err, read_line(at, (size_t)(end - at), &out->e[out->n], err), NULL,
                         (long)out->n + 1));
        out->n++;
    }
    return CDMPP_OK;
}

static cdmpp_status read_list(const char *dir, list *out, cdmpp_err *err) {
    char path[PATH], *text = NULL;
    size_t n;
    path_of(dir, CD_EMIT_LIST, path);
    if (access(path, F_OK)) return CDMPP_OK;
    CD_TRY(cd_file_read(path, MOST_LIST, &text, &n, err));
    const cdmpp_status st = cd_err_at(err, parse(text, n, out, err), path, 0);
    cd_mem_free(text);
    return st;
}

/* old: the entries of the earlier emission too, for the time while files are written; NULL: the
 * final list. */
static cdmpp_status write_list(const cd_emit_files *f, const list *old, const char *dir,
                               cdmpp_err *err) {
    char path[PATH], hex[DIGEST + 1];
    cd_buf b = {0};
    for (uint32_t k = 0; old && k < old->n; k++)
        cd_buf_putf(&b, "%s  %s\n", old->e[k].digest, old->e[k].name);
    for (uint32_t k = 0; k < f->n; k++) {
        digest_of(&f->file[k].text, hex);
        cd_buf_putf(&b, "%s  %s\n", hex, f->file[k].name);
    }
    path_of(dir, CD_EMIT_LIST, path);
    cdmpp_status st;
    if (b.oom) st = CD_FAIL(err, ENOMEM, "%u files", f->n);
    else st = cd_file_write(path, b.p ? b.p : "", b.n, err);
    cd_buf_free(&b);
    return st;
}

/* ---- files that are no longer ---- */

static bool is_listed(const list *old, const char *name, const char *digest) {
    for (uint32_t k = 0; k < old->n; k++)
        if (!strcmp(old->e[k].name, name) && !strcmp(old->e[k].digest, digest)) return true;
    return false;
}

/* remove: false: is each of them as it was written? */
static cdmpp_status take_away(const cd_emit_files *f, const list *old, const char *dir, bool remove,
                              cdmpp_err *err) {
    char path[PATH], hex[DIGEST + 1];
    for (uint32_t k = 0; k < old->n; k++) {
        struct stat s;
        path_of(dir, old->e[k].name, path);
        if (is_new(f, old->e[k].name) || lstat(path, &s)) continue;
        if (!S_ISREG(s.st_mode))
            return cd_err_at(
                err,
                CD_FAIL(err, EINVALID,
                        "is no file any more, and was one of an earlier emission: move it"),
                path, 0);
        CD_TRY(cd_file_digest(path, hex, err));
        if (!is_listed(old, old->e[k].name, hex))
            return cd_err_at(
                err,
                CD_FAIL(
                    err, EINVALID,
                    "of an earlier emission, no longer one of this, and changed since: move it"),
                path, 0);
        if (remove && unlink(path) && errno != ENOENT)
            return cd_err_at(err, CD_FAIL(err, EIO, "cannot be removed: %s", strerror(errno)), path,
                             0);
    }
    return CDMPP_OK;
}

/* ---- all ---- */

static cdmpp_status write_files(const cd_emit_files *f, const char *dir, cdmpp_err *err) {
    char path[PATH];
    for (uint32_t k = 0; k < f->n; k++) {
        path_of(dir, f->file[k].name, path);
        CD_TRY(cd_file_write(path, f->file[k].text.p ? f->file[k].text.p : "", f->file[k].text.n,
                             err));
    }
    return CDMPP_OK;
}

/* All checks come before the first change. Then list (old and new), files, removal, list (new): a
 * stop between two steps leaves no file unlisted. */
cdmpp_status cd_emit_write(const cd_emit_files *f, const char *dir, cdmpp_err *err) {
    list old = {0};
    if (strlen(dir) > MOST_DIR)
        return CD_FAIL(err, EINVALID, "a folder's name of %zu characters; at most %d", strlen(dir),
                       MOST_DIR);
    for (uint32_t k = 0; k < f->n; k++)
        if (f->file[k].text.oom) return CD_FAIL(err, ENOMEM, "%s", f->file[k].name);
    if (mkdir(dir, 0777) && errno != EEXIST)
        return cd_err_at(err, CD_FAIL(err, EIO, "cannot make the folder: %s", strerror(errno)), dir,
                         0);
    cdmpp_status st = read_list(dir, &old, err);
    if (!st) st = take_away(f, &old, dir, false, err);
    if (!st) st = write_list(f, &old, dir, err);
    if (!st) st = write_files(f, dir, err);
    if (!st) st = take_away(f, &old, dir, true, err);
    if (!st) st = write_list(f, NULL, dir, err);
    cd_mem_free(old.e);
    return st;
}

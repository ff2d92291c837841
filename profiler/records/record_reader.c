/* Reads many log files as one stream of lines. A path is opened when its turn comes, so that one
 * that is missing costs only itself. */
#include "profiler/records/record_reader.h"

#include <string.h>
#include <sys/stat.h>

#include "base/io/io.h"
#include "features/task/task.h"

struct cd_record_reader {
    cd_arena arena;
    const char **path;    /* (n) */
    size_t n, at;         /* at: being read, or next */
    cd_file_lines *lines; /* NULL: path[at] is not open */
};

/* Does the name end in .json, .jsonl or .log, perhaps packed? */
static bool is_log(const char *path, void *ctx) {
    (void)ctx;
    static const char *const kind[] = {".json", ".jsonl", ".log"};
    static const char *const pack[] = {".gz", ".xz", ".zst"};
    size_t n = strlen(path);
    for (size_t k = 0; k < sizeof pack / sizeof *pack; k++) {
        const size_t m = strlen(pack[k]);
        if (n > m && !memcmp(path + n - m, pack[k], m)) {
            n -= m;
            break;
        }
    }
    for (size_t k = 0; k < sizeof kind / sizeof *kind; k++) {
        const size_t m = strlen(kind[k]);
        if (n > m && !memcmp(path + n - m, kind[k], m)) return true;
    }
    return false;
}

typedef struct {
    const char **v;
    size_t n, cap;
} list;

static cdmpp_status add(list *l, const char *path, cdmpp_err *err) {
    if (CD_GROW(l->v, l->n, l->cap)) return CD_FAIL(err, ENOMEM, "list of files");
    l->v[l->n++] = path;
    return CDMPP_OK;
}

static cdmpp_status add_path(cd_record_reader *r, list *l, const char *path, cdmpp_err *err) {
    struct stat s;
    if (!strcmp(path, "-") || (stat(path, &s) == 0 && !S_ISDIR(s.st_mode)))
        return add(l, path, err);
    const char *const *file;
    size_t n;
    CD_TRY(cd_file_list(&r->arena, path, is_log, NULL, &file, &n, err));
    if (!n)
        return cd_err_at(
            err, CD_FAIL(err, EIO, "expected *.json, *.jsonl or *.log in the folder, found none"),
            path, 0);
    for (size_t i = 0; i < n; i++) CD_TRY(add(l, file[i], err));
    return CDMPP_OK;
}

/* Copies of the paths, so that the caller's may go. */
static cdmpp_status keep(cd_record_reader *r, const list *l, cdmpp_err *err) {
    r->path = cd_arena_alloc(&r->arena, l->n + 1, sizeof *r->path);
    if (!r->path) return CD_FAIL(err, ENOMEM, "list of files");
    for (size_t i = 0; i < l->n; i++) {
        r->path[i] = cd_str_dup(&r->arena, (cd_str){l->v[i], strlen(l->v[i])});
        if (!r->path[i]) return CD_FAIL(err, ENOMEM, "list of files");
    }
    r->n = l->n;
    return CDMPP_OK;
}

cdmpp_status cd_record_reader_open(const char *const *path, size_t n, cd_record_reader **out,
                                   cdmpp_err *err) {
    cd_record_reader *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "list of files");
    list l = {0};
    cdmpp_status st = CDMPP_OK;
    for (size_t i = 0; !st && i < n; i++) st = add_path(r, &l, path[i], err);
    if (!st) st = keep(r, &l, err);
    cd_mem_free((void *)l.v);
    if (st) cd_record_reader_close(r);
    else *out = r;
    return st;
}

void cd_record_reader_close(cd_record_reader *r) {
    if (!r) return;
    cd_file_lines_close(r->lines);
    cd_arena_free(&r->arena);
    cd_mem_free(r);
}

static void end_file(cd_record_reader *r) {
    cd_file_lines_close(r->lines);
    r->lines = NULL;
    r->at++;
}

/* One line of the file that is open; *out without text: this one was left out. */
static cdmpp_status step(cd_record_reader *r, cd_recline *out, cdmpp_err *err) {
    char *p = NULL;
    size_t len = 0;
    const cdmpp_status st = cd_file_lines_next(r->lines, &p, &len, err);
    const bool over = st ? st != CDMPP_ERANGE : !p;
    *out = (cd_recline){r->path[r->at], cd_file_lines_number(r->lines), NULL, 0};
    if (over) {
        end_file(r);
    } else if (!st && !cd_record_is_comment(p, len)) {
        out->text = p;
        out->len = len;
    }
    return st;
}

/* An error of opening leaves this file and names it; the next call opens the next one. */
cdmpp_status cd_record_reader_next(cd_record_reader *r, cd_recline *out, cdmpp_err *err) {
    *out = (cd_recline){0};
    while (r->at < r->n) {
        if (!r->lines) {
            const cdmpp_status st =
                cd_file_lines_open(r->path[r->at], CD_RECORD_LINE_MAX, &r->lines, err);
            if (st) {
                r->lines = NULL;
                r->at++;
                return st;
            }
        }
        CD_TRY(step(r, out, err));
        if (out->text) return CDMPP_OK;
    }
    *out = (cd_recline){0};
    return CDMPP_OK;
}

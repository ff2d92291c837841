/* Texts of cdmpp-extract: the loop nest of one record (--print FILE:LINE), the
 * tasks in our own form (--write-tasks). */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io/io.h"
#include "dataset/extract/extract.h"

/* "a.json:12" -> "a.json", 12; line 1 when no number is given or a file has
 * this very name. `path` is cut in place. */
static long split_place(char *path) {
    struct stat s;
    char *colon = strrchr(path, ':'), *end = NULL;
    if (!colon || stat(path, &s) == 0) return 1;
    const long line = strtol(colon + 1, &end, 10);
    if (end == colon + 1 || *end || line < 1) return 1;
    *colon = 0;
    return line;
}

static cdmpp_status find_line(cd_file_lines *l, long number, char **line, size_t *n,
                              cdmpp_err *err) {
    for (;;) {
        const cdmpp_status st = cd_file_lines_next(l, line, n, err);
        if (st && (st != CDMPP_ERANGE || cd_file_lines_number(l) >= number)) return st;
        if (st == CDMPP_OK && !*line)
            return CD_FAIL(err, EUSAGE, "expected at least %ld lines, found %ld", number,
                           cd_file_lines_number(l));
        if (cd_file_lines_number(l) == number) return CDMPP_OK;
    }
}

static cdmpp_status print_record(const cd_task_registry *tasks, cd_program *p, cd_arena *a,
                                 const char *line, size_t n, cd_buf *out, cdmpp_err *err) {
    cd_record r;
    CD_TRY(cd_record_read(a, line, n, &r, err));
    const cd_task *t = cd_task_registry_find(tasks, r.workload_key);
    if (!t)
        return CD_FAIL(err, ENOTASK, "no task file defines %.*s",
                       (int)(r.workload_key.n > 150 ? 150 : r.workload_key.n), r.workload_key.p);
    CD_TRY(cd_program_lower(p, t, &r, err)); /* shows programs without features, too */
    return cd_program_print(p, out, err);
}

cdmpp_status cd_extract_line(const char *where, cd_buf *path, long *number, cd_buf *text,
                             cdmpp_err *err) {
    cd_file_lines *l = NULL;
    char *line = NULL;
    size_t n = 0;
    cd_buf_puts(path, where);
    if (path->oom) return CD_FAIL(err, ENOMEM, "a path");
    *number = split_place(path->p);
    cdmpp_status st = cd_file_lines_open(path->p, CD_RECORD_LINE_MAX, &l, err);
    if (!st) st = find_line(l, *number, &line, &n, err);
    if (!st) cd_buf_put(text, line, n);
    cd_file_lines_close(l);
    if (!st && text->oom) st = CD_FAIL(err, ENOMEM, "a line of %zu bytes", n);
    return cd_err_at(err, st, path->p, *number);
}

static cdmpp_status print_text(const cd_task_registry *tasks, const cd_buf *text, cd_buf *out,
                               cdmpp_err *err) {
    cd_program *p = NULL;
    cd_arena a = {0};
    CD_TRY(cd_program_new(&p, err));
    const cdmpp_status st = print_record(tasks, p, &a, text->p ? text->p : "", text->n, out, err);
    cd_program_free(p);
    cd_arena_free(&a);
    return st;
}

static cdmpp_status print_place(const cd_task_registry *tasks, const char *where, cd_buf *out,
                                cdmpp_err *err) {
    cd_buf path = {0}, text = {0};
    long number;
    cdmpp_status st = cd_extract_line(where, &path, &number, &text, err);
    if (!st) st = cd_err_at(err, print_text(tasks, &text, out, err), path.p, number);
    cd_buf_free(&path);
    cd_buf_free(&text);
    return st;
}

static cdmpp_status load_all(const char *const *task_file, size_t n, unsigned assume, cd_log *log,
                             CD_GIVE cd_task_registry **out, cdmpp_err *err) {
    CD_TRY(cd_task_registry_new(out, err));
    cd_task_registry_assume(*out, assume);
    return cd_task_registry_load_all(*out, task_file, n, log, err);
}

cdmpp_status cd_extract_print(const char *const *task_file, size_t n, unsigned assume,
                              const char *where, cd_log *log, cd_buf *out, cdmpp_err *err) {
    cd_task_registry *tasks = NULL;
    cdmpp_status st = load_all(task_file, n, assume, log, &tasks, err);
    if (st == CDMPP_OK) st = print_place(tasks, where, out, err);
    cd_task_registry_free(tasks);
    return st;
}

cdmpp_status cd_extract_tasks(const char *const *task_file, size_t n, unsigned assume, cd_log *log,
                              cd_buf *out, size_t *n_task, cdmpp_err *err) {
    cd_task_registry *tasks = NULL;
    *n_task = 0;
    cdmpp_status st = load_all(task_file, n, assume, log, &tasks, err);
    if (st == CDMPP_OK) st = cd_task_registry_write(out, tasks, err);
    for (size_t i = 0; st == CDMPP_OK && i < cd_task_registry_count(tasks); i++)
        *n_task += cd_task_registry_at(tasks, i)->dag != NULL;
    cd_task_registry_free(tasks);
    return st;
}

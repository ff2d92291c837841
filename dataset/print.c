/* Texts of cdmpp-extract: the loop nest of one record (--print FILE:LINE), the
 * tasks in our own form (--write-tasks). */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "dataset/extract.h"

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

static cdmpp_status find_line(cd_lines *l, long number, char **line, size_t *n, cdmpp_err *err) {
    for (;;) {
        const cdmpp_status st = cd_lines_next(l, line, n, err);
        if (st && (st != CDMPP_ERANGE || cd_lines_number(l) >= number)) return st;
        if (st == CDMPP_OK && !*line)
            return CD_FAIL(err, EUSAGE, "expected at least %ld lines, found %ld", number, cd_lines_number(l));
        if (cd_lines_number(l) == number) return CDMPP_OK;
    }
}

static cdmpp_status print_record(const cd_tasks *tasks, cd_program *p, cd_arena *a, const char *line, size_t n,
                                 cd_buf *out, cdmpp_err *err) {
    cd_record r;
    CD_TRY(cd_record_read(a, line, n, &r, err));
    const cd_task *t = cd_tasks_find(tasks, r.workload_key);
    if (!t)
        return CD_FAIL(err, ENOTASK, "no task file defines %.*s", (int)(r.workload_key.n > 150 ? 150 : r.workload_key.n),
                       r.workload_key.p);
    CD_TRY(cd_program_lower(p, t, &r, err)); /* shows programs without features, too */
    return cd_program_print(p, out, err);
}

static cdmpp_status print_line(const cd_tasks *tasks, cd_lines *l, long number, cd_buf *out, cdmpp_err *err) {
    cd_program *p = NULL;
    cd_arena a = {0};
    char *line = NULL;
    size_t n = 0;
    CD_TRY(find_line(l, number, &line, &n, err));
    CD_TRY(cd_program_new(&p, err));
    const cdmpp_status st = print_record(tasks, p, &a, line, n, out, err);
    cd_program_free(p);
    cd_arena_free(&a);
    return st;
}

static cdmpp_status print_place(const cd_tasks *tasks, char *path, cd_buf *out, cdmpp_err *err) {
    cd_lines *l = NULL;
    const long number = split_place(path);
    cdmpp_status st = cd_lines_open(path, 0, &l, err);
    if (st == CDMPP_OK) st = print_line(tasks, l, number, out, err);
    cd_lines_close(l);
    return cd_err_at(err, st, path, number);
}

static cdmpp_status load_all(const char *const *task_file, size_t n, CD_GIVE cd_tasks **out, cdmpp_err *err) {
    cdmpp_status st = cd_tasks_new(out, err);
    for (size_t i = 0; i < n && st == CDMPP_OK; i++) st = cd_tasks_load(*out, task_file[i], err);
    return st;
}

cdmpp_status cd_extract_print(const char *const *task_file, size_t n, const char *where, cd_buf *out, cdmpp_err *err) {
    cd_arena a = {0};
    cd_tasks *tasks = NULL;
    char *path = cd_str_dup(&a, (cd_str){where, strlen(where)});
    if (!path) return CD_FAIL(err, ENOMEM, "a path");
    cdmpp_status st = load_all(task_file, n, &tasks, err);
    if (st == CDMPP_OK) st = print_place(tasks, path, out, err);
    cd_tasks_free(tasks);
    cd_arena_free(&a);
    return st;
}

cdmpp_status cd_extract_tasks(const char *const *task_file, size_t n, cd_buf *out, cdmpp_err *err) {
    cd_tasks *tasks = NULL;
    cdmpp_status st = load_all(task_file, n, &tasks, err);
    if (st == CDMPP_OK) st = cd_tasks_write(out, tasks, err);
    cd_tasks_free(tasks);
    return st;
}

/* store_ansor -- logs of TVM's auto_scheduler. */

#include "base/io/io.h"
#include "profiler/store/store_internal.h"

static cdmpp_status one_line(cd_store_reading *r, const char *line, size_t len, long number,
                             cdmpp_err *err) {
    cd_record rec;
    bool fresh = false;
    cd_arena_reset(&r->arena);
    CD_TRY(cd_record_read(&r->arena, line, len, &rec, err));
    const cd_task *task =
        r->how->tasks ? cd_task_registry_find(r->how->tasks, rec.workload_key) : NULL;
    CD_TRY(cd_store_add_record(r->store, &rec, task, r->device, r->how->env, NULL, number, &fresh,
                               err));
    if (fresh) r->tally->added++;
    else r->tally->known++;
    return CDMPP_OK;
}

cdmpp_status cd_store_read_ansor(cd_store_reading *r, cdmpp_err *err) {
    cd_file_lines *l = NULL;
    char *line = NULL;
    size_t len = 0;
    uint64_t n = 0;
    CD_TRY(cd_file_lines_open(r->path, CD_RECORD_LINE_MAX, &l, err));
    cdmpp_status st = CDMPP_OK;
    while (!st) {
        cdmpp_err e = {0};
        st = cd_file_lines_next(l, &line, &len, &e);
        const bool end = !st && !line, broken = st && st != CDMPP_ERANGE;
        if (end) break;
        n++;
        if (!st && n > r->first && !cd_record_is_comment(line, len)) {
            r->tally->lines++;
            st = cd_err_at(&e, one_line(r, line, len, cd_file_lines_number(l), &e), r->path,
                           cd_file_lines_number(l));
        }
        if (st) st = cd_store_bad(r, st, &e, err);
        if (broken) break; /* the file cannot be read further; what was before it stays */
        if (!st && n > r->first) st = cd_store_mark(r, n, false, err);
    }
    if (!st) st = cd_store_mark(r, n, true, err);
    cd_file_lines_close(l);
    return st;
}

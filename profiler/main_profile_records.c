/* Mode "records" of cdmpp-profile: programs of measure records. */
#include <string.h>

#include "features/program.h"
#include "features/record.h"
#include "profiler/main_profile.h"
#include "profiler/recfile.h"

cdmpp_status cd_main_profile_records_check(const cd_main_profile *o, cdmpp_err *err) {
    if (!o->task.n) return CD_FAIL(err, EUSAGE, "--tasks is missing");
    if (!o->operand.n) return CD_FAIL(err, EUSAGE, "no records to read");
    if (!o->dry_run) return CD_FAIL(err, EUSAGE, "expected --dry-run");
    return CDMPP_OK;
}

typedef struct {
    cd_main_profile *o;
    cd_tasks *tasks;
    cd_program *program;
    cd_recfile *file;
    cd_arena arena;             /* of one record */
    size_t lines, reason[CDMPP_STATUS_COUNT];
} state;

static cdmpp_status begin(state *s, cdmpp_err *err) {
    const cd_main_profile *o = s->o;
    CD_TRY(cd_tasks_new(&s->tasks, err));
    for (size_t i = 0; i < o->task.n; i++) CD_TRY(cd_tasks_load(s->tasks, o->task.v[i], err));
    CD_TRY(cd_program_new(&s->program, err));
    return cd_recfile_open(o->operand.v, o->operand.n, &s->file, err);
}

static cdmpp_status lower(state *s, const cd_recline *l, cdmpp_err *err) {
    cd_record r;
    CD_TRY(cd_record_read(&s->arena, l->text, l->len, &r, err));
    const cd_task *t = cd_tasks_find(s->tasks, r.workload_key);
    if (!t) return CD_FAIL(err, ENOTASK, "no task file defines %.*s", (int)(r.workload_key.n < 100 ? r.workload_key.n : 100), r.workload_key.p);
    return cd_program_lower(s->program, t, &r, err);
}

/* A record that cannot be used costs only itself; the caller ends for what would hit the next one too. */
static cdmpp_status bad_line(state *s, const cdmpp_err *why, cdmpp_err *err) {
    if (why->code == CDMPP_ENOMEM || why->code == CDMPP_EIO) {
        if (err) *err = *why;
        return why->code;
    }
    s->o->bad++;
    s->reason[why->code]++;
    cd_log_err(s->o->log, CD_LOG_WARNING, why);
    return CDMPP_OK;
}

static cdmpp_status each(state *s, cdmpp_err *err) {
    for (cd_recline l; !*s->o->stop;) {
        cdmpp_err why = {0};
        cdmpp_status st = cd_recfile_next(s->file, &l, &why);
        if (!st && !l.text) return CDMPP_OK;
        s->lines++;
        if (!st) st = cd_err_at(&why, lower(s, &l, &why), l.path, l.number);
        if (st) CD_TRY(bad_line(s, &why, err));
        cd_arena_reset(&s->arena);
    }
    return CD_FAIL(err, EINTERRUPTED, "after %zu records", s->lines);
}

static cdmpp_status tell(const state *s, cdmpp_err *err) {
    cd_buf b = {0}, all = {0};
    const cd_main_profile *o = s->o;
    if (!o->json) {
        cd_buf_putf(&b, "%zu records: %zu programs, %zu cannot be used\n", s->lines, s->lines - o->bad, o->bad);
        return cd_face_print(&b, err);
    }
    cd_buf_putf(&b, "{\"records\":%zu,\"programs\":%zu,\"bad\":%zu,\"reasons\":{", s->lines, s->lines - o->bad, o->bad);
    for (int k = 1, any = 0; k < CDMPP_STATUS_COUNT; k++)
        if (s->reason[k]) cd_buf_putf(&b, "%s\"%s\":%zu", any++ ? "," : "", cdmpp_status_name((cdmpp_status)k), s->reason[k]);
    cd_buf_puts(&b, "}}");
    cd_face_json(&all, "cdmpp.profile_records", "cdmpp-profile", &b);
    return cd_face_print(&all, err);
}

cdmpp_status cd_main_profile_records(cd_main_profile *o, cdmpp_err *err) {
    state s = {.o = o};
    cdmpp_status st = begin(&s, err);
    if (!st) st = each(&s, err);
    if (!st) st = tell(&s, err);
    cd_recfile_close(s.file);
    cd_program_free(s.program);
    cd_tasks_free(s.tasks);
    cd_arena_free(&s.arena);
    return st;
}

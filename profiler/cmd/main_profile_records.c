/* Mode "records" of cdmpp-profile: programs of measure records. */
#include <string.h>

#include "base/io/io.h"
#include "features/program/program.h"
#include "features/task/task.h"
#include "profiler/host/host.h"
#include "profiler/cmd/main_profile.h"
#include "profiler/records/records.h"

cdmpp_status cd_main_profile_records_check(const cd_main_profile *o, cdmpp_err *err) {
    cd_isa_choice c;
    if (!o->task.n) return CD_FAIL(err, EUSAGE, "--tasks is missing");
    if (!o->operand.n) return CD_FAIL(err, EUSAGE, "no records to read");
    if (o->dry_run && o->emit_source) return CD_FAIL(err, EUSAGE, "--dry-run and --emit-source do not go together");
    if (o->dialect >= 0 && !o->emit_source) return CD_FAIL(err, EUSAGE, "--dialect goes with --emit-source");
    if (o->isa && o->isa[0]) CD_TRY(cd_err_key(err, cd_isa_choose(o->isa, "", &c, err), "--isa"));
    for (size_t i = 0; o->rounds > 1 && i < o->operand.n; i++)
        if (!strcmp(o->operand.v[i], "-")) return CD_FAIL(err, EUSAGE, "--rounds: standard input is read once");
    return o->out || o->dry_run || o->emit_source ? CDMPP_OK : CD_FAIL(err, EUSAGE, "--out is missing (or --dry-run, --emit-source)");
}

typedef struct {
    cd_main_profile *o;
    cd_task_registry *tasks;
    cd_program *program;
    cd_recmaker maker;
    cd_record_reader *file;
    cd_buf source;
    size_t lines, reason[CDMPP_STATUS_COUNT];
    unsigned prelude;           /* a bit for every dialect that stands in source already */
} state;

static cdmpp_status begin(state *s, cdmpp_err *err) {
    const cd_main_profile *o = s->o;
    CD_TRY(cd_task_registry_new(&s->tasks, err));
    for (size_t i = 0; i < o->task.n; i++) CD_TRY(cd_task_registry_load(s->tasks, o->task.v[i], err));
    CD_TRY(cd_program_new(&s->program, err));
    s->maker = (cd_recmaker){.tasks = s->tasks, .program = s->program, .target = o->target, .dialect = o->dialect, .isa = o->isa, .reference = o->check};
    return cd_record_reader_open(o->operand.v, o->operand.n, &s->file, err);
}

cdmpp_status cd_main_profile_bad(cd_main_profile *o, const cdmpp_err *why, size_t *reason, cdmpp_err *err) {
    if (why->code == CDMPP_ENOMEM || why->code == CDMPP_EIO) {
        if (err) *err = *why;
        return why->code;
    }
    o->bad++;
    if (reason) ++*reason;
    cd_log_err(o->log, CD_LOG_WARNING, why);
    return CDMPP_OK;
}

/* Two programs of one name are one program. */
static void put_source(state *s, const cd_record_program *j) {
    if (!(s->prelude & 1U << j->code.dialect)) cd_buf_puts(&s->source, cd_codegen_prelude(j->code.dialect));
    s->prelude |= 1U << j->code.dialect;
    cd_buf_putf(&s->source, "\n/* %s:%ld */\n", j->path, j->number);
    cd_buf_put(&s->source, j->code.text.p, j->code.text.n);
}

static cdmpp_status use(state *s, const cd_recline *l, cdmpp_err *err) {
    cd_record_program j;
    cdmpp_status st = cd_record_program_make(&s->maker, l, &j, err);
    if (!st && s->o->dry_run) {
        const cd_task *t = cd_task_registry_find(s->tasks, j.record.workload_key);
        st = cd_err_at(err, cd_program_lower(s->program, t, &j.record, err), l->path, l->number);
    } else if (!st) {
        st = cd_record_program_code(&s->maker, &j, err);
        if (!st && j.why.code) {
            if (err) *err = j.why;
            st = j.why.code;
        }
        if (!st) put_source(s, &j);
    }
    cd_record_program_free(&j);
    return st;
}

static cdmpp_status each(state *s, cdmpp_err *err) {
    for (cd_recline l; !*s->o->stop && (!s->o->limit || s->lines < (size_t)s->o->limit);) {
        cdmpp_err why = {0};
        cdmpp_status st = cd_record_reader_next(s->file, &l, &why);
        if (!st && !l.text) return CDMPP_OK;
        s->lines++;
        if (!st) st = use(s, &l, &why);
        if (st) CD_TRY(cd_main_profile_bad(s->o, &why, &s->reason[why.code], err));
    }
    return *s->o->stop ? CD_FAIL(err, EINTERRUPTED, "after %zu records", s->lines) : CDMPP_OK;
}

static cdmpp_status tell(const state *s, cdmpp_err *err) {
    cd_buf b = {0}, all = {0};
    const cd_main_profile *o = s->o;
    if (!o->json) {
        cd_buf_putf(&b, "%zu records: %zu programs, %zu cannot be used\n", s->lines, s->lines - o->bad, o->bad);
        return cd_command_print(&b, err);
    }
    cd_buf_putf(&b, "{\"records\":%zu,\"programs\":%zu,\"bad\":%zu,\"reasons\":{", s->lines, s->lines - o->bad, o->bad);
    for (int k = 1, any = 0; k < CDMPP_STATUS_COUNT; k++)
        if (s->reason[k]) cd_buf_putf(&b, "%s\"%s\":%zu", any++ ? "," : "", cdmpp_status_name((cdmpp_status)k), s->reason[k]);
    cd_buf_puts(&b, "}}");
    cd_command_json(&all, "cdmpp.profile_records", "cdmpp-profile", &b);
    return cd_command_print(&all, err);
}

static cdmpp_status emit(state *s, cdmpp_err *err) {
    if (s->source.oom) return CD_FAIL(err, ENOMEM, "source code");
    if (!s->o->out) return cd_command_print(&s->source, err);
    return cd_file_write(s->o->out, s->source.p ? s->source.p : "", s->source.n, err);
}

cdmpp_status cd_main_profile_records(cd_main_profile *o, cdmpp_err *err) {
    state s = {.o = o};
    cdmpp_status st = begin(&s, err);
    if (!st && (o->dry_run || o->emit_source)) {
        st = each(&s, err);
        if (!st) st = o->dry_run ? tell(&s, err) : emit(&s, err);
    } else if (!st) {
        st = o->host.n ? cd_main_profile_remote(o, &s.maker, s.file, err) : cd_main_profile_measure(o, &s.maker, s.file, err);
    }
    cd_record_reader_close(s.file);
    cd_program_free(s.program);
    cd_task_registry_free(s.tasks);
    cd_buf_free(&s.source);
    return st;
}

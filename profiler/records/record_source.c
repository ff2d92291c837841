/* Lowers records and collects the source code of their programs. Lowering alone is cheaper than
 * generating code, so the two are apart: a check of a large log needs no text. */
#include "base/text/text.h"
#include "profiler/records/records.h"

typedef struct {
    cd_record_maker *maker;
    cd_buf *source;   /* NULL: only lower */
    unsigned prelude; /* a bit for every dialect whose prelude is in source already */
} collector;

static void put_source(collector *c, const cd_record_program *j) {
    if (!(c->prelude & 1U << j->code.dialect))
        cd_buf_puts(c->source, cd_codegen_prelude(j->code.dialect));
    c->prelude |= 1U << j->code.dialect;
    cd_buf_puts(c->source, "\n/* ");
    cd_escape_c_comment(c->source, cd_str_of(j->path));
    cd_buf_putf(c->source, ":%ld */\n", j->number);
    cd_buf_put(c->source, j->code.text.p, j->code.text.n);
}

static cdmpp_status use(collector *c, const cd_recline *l, cdmpp_err *err) {
    cd_record_program j;
    cdmpp_status st = cd_record_program_make(c->maker, l, &j, err);
    if (!st && !c->source) {
        const cd_task *t = cd_task_registry_find(c->maker->tasks, j.record.workload_key);
        st = cd_err_at(err, cd_program_lower(c->maker->program, t, &j.record, err), l->path,
                       l->number);
    } else if (!st) {
        st = cd_record_program_code(c->maker, &j, err);
        /* cd_record_program_code keeps the program's own error apart from that of the call */
        if (!st && j.why.code) {
            if (err) *err = j.why;
            st = j.why.code;
        }
        if (!st) put_source(c, &j);
    }
    cd_record_program_free(&j);
    return st;
}

/* *stop counts only before the end of the input. */
cdmpp_status cd_record_source_collect(cd_record_maker *m, cd_record_reader *file, size_t limit,
                                      const cd_record_listener *l,
                                      const volatile sig_atomic_t *stop, cd_buf *source,
                                      cd_record_source_tally *t, cdmpp_err *err) {
    collector c = {m, source, 0};
    bool end = false;
    for (cd_recline r; !*stop && (!limit || t->lines < limit);) {
        cdmpp_err why = {0};
        cdmpp_status st = cd_record_reader_next(file, &r, &why);
        end = !st && !r.text;
        if (end) break;
        t->lines++;
        if (!st) st = use(&c, &r, &why);
        if (!st) continue;
        CD_TRY(cd_record_listener_bad(l, &why, err));
        t->bad++;
        t->reason[why.code]++;
    }
    if (!end && *stop) return CD_FAIL(err, EINTERRUPTED, "after %zu records", t->lines);
    return source && source->oom ? CD_FAIL(err, ENOMEM, "source code") : CDMPP_OK;
}

void cd_record_source_put(cd_buf *b, const cd_record_source_tally *t, bool json) {
    if (!json) {
        cd_buf_putf(b, "%zu records: %zu programs, %zu cannot be used\n", t->lines,
                    t->lines - t->bad, t->bad);
        return;
    }
    cd_buf_putf(b, "{\"records\":%zu,\"programs\":%zu,\"bad\":%zu,\"reasons\":{", t->lines,
                t->lines - t->bad, t->bad);
    for (int k = 1, any = 0; k < CDMPP_STATUS_COUNT; k++)
        if (t->reason[k])
            cd_buf_putf(b, "%s\"%s\":%zu", any++ ? "," : "", cdmpp_status_name((cdmpp_status)k),
                        t->reason[k]);
    cd_buf_puts(b, "}}");
}

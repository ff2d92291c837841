/* The fastest record of each workload. A log may hold millions of lines, so only the best line of
 * each workload is kept as text; it is parsed again by whoever needs the record. */
#include "profiler/records/record_best.h"

#include <string.h>

#include "profiler/records/record_program.h"

typedef struct {
    const cd_record_best_options *o;
    cd_arena *keep, line; /* line: of the record that is looked at */
    cd_record_best *best; /* (n) */
    size_t n;
} finder;

/* The workload's place; the next free one where it is new; NULL where there is no room for it. */
static cd_record_best *place_of(finder *f, cd_str key) {
    for (size_t i = 0; i < f->n; i++)
        if (cd_str_eq(f->best[i].key, key)) return &f->best[i];
    return f->n < f->o->max ? &f->best[f->n] : NULL;
}

/* Lines of workloads beyond the first `max`, or of another key, are skipped. */
static cdmpp_status consider(finder *f, const cd_recline *l, cdmpp_err *err) {
    cd_record r;
    CD_TRY(cd_record_read(&f->line, l->text, l->len, &r, err));
    cd_record_best *b = place_of(f, r.workload_key);
    if (!b || (f->o->workload && !cd_str_is(r.workload_key, f->o->workload))) return CDMPP_OK;
    const bool fresh = b == &f->best[f->n];
    const double cost_s = cd_record_program_cost_s(&r);
    if (!fresh && cost_s >= b->cost_s) return CDMPP_OK;
    const cd_record_best now = {.key = {cd_str_dup(f->keep, r.workload_key), r.workload_key.n},
                                .text = cd_str_dup(f->keep, (cd_str){l->text, l->len}),
                                .len = l->len,
                                .cost_s = cost_s,
                                .path = cd_str_dup(f->keep, (cd_str){l->path, strlen(l->path)}),
                                .number = l->number};
    if (!now.key.p || !now.text || !now.path) return CD_FAIL(err, ENOMEM, "record");
    *b = now;
    f->n += fresh;
    return CDMPP_OK;
}

/* The line's own memory is given back after each line. */
cdmpp_status cd_record_best_read(cd_arena *a, const cd_record_best_options *o, cd_record_best *out,
                                 size_t *n, cdmpp_err *err) {
    finder f = {.o = o, .keep = a, .best = out};
    cd_record_reader *r = NULL;
    CD_TRY(cd_record_reader_open(o->path, o->n_path, &r, err));
    cdmpp_status st = CDMPP_OK;
    while (!st && !(o->stop && *o->stop)) {
        cdmpp_err why = {0};
        cd_recline l = {0};
        cdmpp_status got = cd_record_reader_next(r, &l, &why);
        if (!got && !l.text) break;
        if (!got) got = cd_err_at(&why, consider(&f, &l, &why), l.path, l.number);
        if (got) st = cd_record_listener_bad(o->listener, &why, err);
        cd_arena_reset(&f.line);
    }
    cd_record_reader_close(r);
    cd_arena_free(&f.line);
    *n = f.n;
    return st;
}

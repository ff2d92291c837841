/* trace -- the events of one file: added, freed, and read by the reader of the file's form. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "profiler/trace/trace_internal.h"

cd_trace_event cd_trace_event_init(cd_trace_kind kind, long line) {
    return (cd_trace_event){.kind = kind,
                            .question = CD_TRACE_NONE,
                            .sum = CD_TRACE_NONE,
                            .owner = CD_TRACE_NONE,
                            .line = line,
                            .link = -1,
                            .external = -1,
                            .start_ns = CD_TRACE_UNTIMED,
                            .called_ns = CD_TRACE_UNTIMED,
                            .bytes = NAN};
}

cdmpp_status cd_trace_number(cd_trace_reader *r, cd_str text, uint32_t *out, cdmpp_err *err) {
    if (!cd_str_is_utf8(text)) return CD_FAIL(err, ESCHEMA, "expected names in UTF-8");
    return cd_dict_add(&r->t->text, text, out, err);
}

cdmpp_status cd_trace_device_number(cd_trace_reader *r, cd_str text, uint32_t *out,
                                    cdmpp_err *err) {
    const char *said = r->how->device;
    return cd_trace_number(r, said ? (cd_str){said, strlen(said)} : text, out, err);
}

cdmpp_status cd_trace_add(cd_trace_reader *r, const cd_trace_event *e, cdmpp_err *err) {
    cd_trace *t = r->t;
    if (CD_GROW(t->event, t->n, t->cap)) return CD_FAIL(err, ENOMEM, "events of a trace");
    t->event[t->n++] = *e;
    return CDMPP_OK;
}

cdmpp_status cd_trace_add_question(cd_trace_reader *r, const cd_library_op_record *q, uint32_t *out,
                                   cdmpp_err *err) {
    cd_trace *t = r->t;
    if (CD_GROW(t->question, t->n_question, t->cap_question))
        return CD_FAIL(err, ENOMEM, "operators of a trace");
    *out = (uint32_t)t->n_question;
    t->question[t->n_question++] = *q;
    return CDMPP_OK;
}

cdmpp_status cd_trace_bad(cd_trace_reader *r, cdmpp_status st, const cdmpp_err *e, cdmpp_err *err) {
    const bool line =
        st == CDMPP_EPARSE || st == CDMPP_ESCHEMA || st == CDMPP_ERANGE || st == CDMPP_EUNSUPPORTED;
    if (!line) {
        cd_err_from(err, e);
        return st;
    }
    r->t->bad++;
    return r->how->bad ? r->how->bad(r->how->ctx, st, e, err) : CDMPP_OK;
}

cdmpp_status cd_trace_stopped(const cd_trace_reader *r, cdmpp_err *err) {
    return r->how->stop && *r->how->stop
               ? CD_FAIL(err, EINTERRUPTED, "stopped: nothing of this trace was kept")
               : CDMPP_OK;
}

const char *cd_trace_text(const cd_trace *t, uint32_t number) { return t->text.text[number]; }

cd_trace_form cd_trace_form_of(const char *head, size_t n) {
    static const char sqlite[] = "SQLite format 3";
    size_t at = 0;
    if (n >= sizeof sqlite && !memcmp(head, sqlite, sizeof sqlite)) return CD_TRACE_NSYS;
    if (memchr(head, 0, n)) return CD_TRACE_AUTO;
    if (n >= 3 && !memcmp(head, "\xef\xbb\xbf", 3)) at = 3; /* a byte order mark */
    while (at < n && strchr(" \t\r\n", head[at])) at++;
    if (at < n && (head[at] == '[' || head[at] == '{')) return CD_TRACE_CHROME;
    return at < n ? CD_TRACE_CSV : CD_TRACE_AUTO;
}

enum { HEAD = 4096 };

static cdmpp_status look(const char *path, cd_trace_form *form, cdmpp_err *err) {
    cd_input_stream *s = NULL;
    char head[HEAD];
    size_t n = 0, got = 1;
    cdmpp_status st = CDMPP_OK;
    CD_TRY(cd_input_stream_open(path, &s, err));
    while (!st && got && n < HEAD) {
        st = cd_input_stream_read(s, head + n, HEAD - n, &got, err);
        n += st ? 0 : got;
    }
    cd_input_stream_close(s);
    if (st && !n) return st; /* what is there of a damaged file is read all the same */
    *form = cd_trace_form_of(head, n);
    if (*form == CD_TRACE_AUTO)
        return cd_err_at(err,
                         CD_FAIL(err, ESCHEMA,
                                 "%s; export it first: nsys export --type sqlite, ncu --csv --page "
                                 "raw, nvprof --csv --print-gpu-trace",
                                 n ? "no text and no SQLite file" : "the file is empty"),
                         path, 0);
    return CDMPP_OK;
}

cdmpp_status cd_trace_read(const char *path, const cd_trace_reading *how, cd_trace **out,
                           cdmpp_err *err) {
    cd_trace_reader r = {.how = how, .path = path, .t = cd_mem_zalloc(1, sizeof *r.t)};
    cd_trace_form form = how->form;
    uint32_t none;
    *out = NULL;
    if (!r.t) return CD_FAIL(err, ENOMEM, "trace");
    cdmpp_status st = form == CD_TRACE_AUTO ? look(path, &form, err) : CDMPP_OK;
    r.t->form = "";
    if (!st) st = cd_trace_number(&r, (cd_str){"", 0}, &none, err); /* number 0 is "" */
    if (!st && form == CD_TRACE_CHROME) st = cd_trace_read_chrome(&r, err);
    else if (!st && form == CD_TRACE_NSYS) st = cd_trace_read_nsys(&r, err);
    else if (!st) st = cd_trace_read_csv(&r, err);
    if (!st) st = cd_trace_whole_events(r.t, err);
    if (!st && r.t->said.oom) st = CD_FAIL(err, ENOMEM, "trace");
    cd_arena_free(&r.arena);
    cd_buf_free(&r.text);
    if (st) cd_trace_free(r.t);
    else *out = r.t;
    return st;
}

void cd_trace_free(cd_trace *t) {
    if (!t) return;
    cd_dict_free(&t->text);
    cd_mem_free(t->event);
    cd_mem_free(t->question);
    cd_mem_free(t->sum);
    cd_buf_free(&t->said);
    cd_mem_free(t);
}

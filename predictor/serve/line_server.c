/* A JSON object a line, an answer each: reads, calls, writes. */
#include <string.h>

#include "base/io/io.h"
#include "predictor/serve/serve_internal.h"

enum { FLUSH = 1 << 16 };

typedef struct {
    const cd_line_server *o;
    cd_line_server_stats *stats;
    cd_line_reader *in;
    cd_arena text; /* of a line */
    cd_buf out;
} state;

static size_t longest(const state *s) {
    return s->o->max_bytes ? s->o->max_bytes : CD_REQUEST_LINE_MAX;
}

static cdmpp_status read_line(state *s, cd_str line, const cd_json **root, cd_str *id,
                              cdmpp_err *err) {
    *id = (cd_str){NULL, 0};
    if (!line.p) return CD_FAIL(err, ERANGE, "the line is longer than %zu bytes", longest(s));
    CD_TRY(cd_json_parse(&s->text, line.p, line.n, root, err));
    if ((*root)->kind != CD_JSON_OBJ)
        return CD_FAIL(err, ESCHEMA, "expected a JSON object, found %s",
                       cd_json_kind_name((*root)->kind));
    return cd_err_key(err, cd_request_id(&s->text, line, id, err), "id");
}

static cdmpp_status one(state *s, cd_str line, cdmpp_err *err) {
    const cd_json *root = NULL;
    cdmpp_err why = {0};
    cd_str id;
    s->stats->asked++;
    cdmpp_status st = read_line(s, line, &root, &id, &why);
    if (id.n) {
        cd_buf_puts(&s->out, "{\"id\":");
        cd_buf_put(&s->out, id.p, id.n);
    } else {
        cd_buf_putf(&s->out, "{\"line\":%ld", cd_line_reader_number(s->in));
    }
    if (!st) st = s->o->answer(s->o->ctx, &s->text, root, &s->out, &why);
    if (st == CDMPP_ENOMEM || s->out.oom) return CD_FAIL(err, ENOMEM, "answer");
    if (st) {
        s->stats->bad++;
        cd_error_line_put(&s->out, &why);
    }
    cd_buf_puts(&s->out, "}\n");
    cd_arena_reset(&s->text);
    return s->out.oom ? CD_FAIL(err, ENOMEM, "answer") : CDMPP_OK;
}

static cdmpp_status flush(state *s, cdmpp_err *err) {
    const cdmpp_status st =
        s->out.n ? cd_line_reader_send(s->o->out, s->out.p, s->out.n, err) : CDMPP_OK;
    cd_buf_clear(&s->out);
    return st;
}

static bool stopped(const state *s) { return s->o->stop && *s->o->stop; }

static cdmpp_status serve(state *s, cdmpp_err *err) {
    cd_line_reader_kind kind = CD_INTAKE_LINE;
    while (kind != CD_INTAKE_END && !stopped(s)) {
        cd_str line = {NULL, 0};
        CD_TRY(cd_line_reader_next(s->in, s->out.n ? cd_line_reader_now() : -1, &kind, &line, err));
        if (kind == CD_INTAKE_LINE && !cd_line_reader_whole(s->in) && stopped(s)) break;
        if (kind == CD_INTAKE_LONG) line = (cd_str){NULL, 0};
        if (kind == CD_INTAKE_LONG || (kind == CD_INTAKE_LINE && line.n)) CD_TRY(one(s, line, err));
        cd_line_reader_release(s->in);
        if (kind == CD_INTAKE_LATE || kind == CD_INTAKE_FULL || s->out.n >= FLUSH)
            CD_TRY(flush(s, err));
    }
    return CDMPP_OK;
}

cdmpp_status cd_line_server_run(const cd_line_server *o, cd_line_server_stats *stats,
                                cdmpp_err *err) {
    state s = {.o = o, .stats = stats};
    *stats = (cd_line_server_stats){0};
    cdmpp_status st = cd_line_reader_new(o->in, longest(&s), &s.in, err);
    if (!st) st = serve(&s, err);
    if (!st) st = flush(&s, err);
    if (!st && stopped(&s)) st = CD_FAIL(err, EINTERRUPTED, "after %zu requests", stats->asked);
    cd_line_reader_free(s.in);
    cd_arena_free(&s.text);
    cd_buf_free(&s.out);
    return st;
}

const cd_json *cd_line_server_member(const cd_json *root, const char *key) {
    const cd_json *v = cd_json_get(root, key);
    return v && v->kind != CD_JSON_NULL ? v : NULL;
}

cdmpp_status cd_line_server_alone(const cd_json *root, const char *key, cdmpp_err *err) {
    for (const cd_json *m = root->u.child; m; m = m->next)
        if (m->kind != CD_JSON_NULL && !cd_str_is(m->key, "id") && !cd_str_is(m->key, key))
            return CD_FAIL(err, ESCHEMA, "\"%s\" goes with no other member but id", key);
    return CDMPP_OK;
}

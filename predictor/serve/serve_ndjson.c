/* serve_ndjson -- a JSON object a line; what it may ask is in request_internal.h. */
#include <string.h>

#include "predictor/serve/serve_internal.h"

static void put_name(cd_buf *b, const cd_request *r) {
    cd_buf_puts(b, "{");
    if (!r->id.n) return;
    cd_buf_puts(b, "\"id\":");
    cd_buf_put(b, r->id.p, r->id.n);
    cd_buf_puts(b, ",");
}

static void put_hello(const cd_serve_state *s, cd_buf *b) {
    cd_buf_putf(b,
                "\"cdmpp\":\"%s\",\"protocol\":%d,\"model\":\"sha256:%s\",\"feature_len\":%zu,"
                "\"takes_rows\":%s,\"units\":\"s\",\"profile\":\"%s\",\"devices\":[",
                cdmpp_version(), CD_PROTOCOL, cd_model_digest(s->m->impl), cdmpp_model_n_col(s->m),
                cd_serve_check_rows(s, NULL) ? "false" : "true",
                s->o.profile ? s->o.profile : "full");
    for (size_t i = 0; i < cdmpp_model_n_device(s->m); i++) {
        if (i) cd_buf_puts(b, ",");
        cd_buf_put_json_str(b, cdmpp_model_device(s->m, i), strlen(cdmpp_model_device(s->m, i)));
    }
    cd_buf_putf(b, "],\"batch\":%zu,\"max_delay_ms\":%d,\"max_line_bytes\":%zu}\n", s->o.batch,
                s->o.max_delay_ms, s->o.max_bytes);
}

static void put_stats(const cd_serve_state *s, cd_buf *b) {
    uint64_t asked = 0, found = 0;
    cdmpp_context_cache(s->c, &asked, &found);
    cd_buf_putf(b,
                "\"requests\":%zu,\"scored\":%zu,\"bad\":%zu,\"batches\":%zu,\"cache\":{\"asked\":%"
                "llu,\"found\":%llu}}\n",
                s->stats->asked, s->stats->scored, s->stats->bad, s->stats->batches,
                (unsigned long long)asked, (unsigned long long)found);
}

/* "hello" and "stats" are answered outside of batches, after all earlier requests; the request
 * still points into its line. */
static cdmpp_status command(cd_serve_state *s, const cd_request *r, cdmpp_err *err) {
    cd_buf *b = &s->chunk[0].out;
    CD_TRY(cd_serve_flush(s, err));
    put_name(b, r);
    if (r->kind == CD_REQUEST_HELLO) put_hello(s, b);
    else put_stats(s, b);
    if (b->oom) return CD_FAIL(err, ENOMEM, "answer");
    const cdmpp_status st = cd_line_reader_send(s->o.out, b->p, b->n, err);
    cd_buf_clear(b);
    return st;
}

/* Request n of the batch, from a line. */
static cdmpp_status add(cd_serve_state *s, cd_str line, bool *is_command, cdmpp_err *err) {
    const size_t i = s->n;
    cd_request r = {0};
    cdmpp_err why = {0};
    cdmpp_status st;
    if (line.p) st = cd_request_read(&s->text, s->tasks, line, s->o.costs, &r, &why);
    else st = CD_FAIL(&why, ERANGE, "the line is longer than %zu bytes", s->o.max_bytes);
    if (st == CDMPP_ENOMEM) {
        cd_err_from(err, &why);
        return st;
    }
    *is_command = !st && r.kind != CD_REQUEST_SCORE;
    if (*is_command) return command(s, &r, err);
    if (!st && r.ask.form == CD_CANDIDATE_ROWS_TEXT)
        st = cd_err_key(&why, cd_serve_check_rows(s, &why), "rows");
    s->id[i] = r.id;
    s->line[i] = cd_line_reader_number(s->in);
    s->aim[i] = r.aim;
    s->ask[i] = r.ask;
    s->ask[i].aim = &s->aim[i];
    if (st) cd_serve_refuse(s, i, &why);
    return CDMPP_OK;
}

static bool blank(cd_str s) {
    size_t i = 0;
    while (i < s.n && (s.p[i] == ' ' || s.p[i] == '\t')) i++;
    return i == s.n;
}

cdmpp_status cd_serve_ndjson(cd_serve_state *s, cdmpp_err *err) {
    cd_str line;
    bool more = true, is_command = false;
    for (;;) {
        CD_TRY(cd_serve_line(s, false, &line, &more, err));
        if (!more) return CDMPP_OK;
        if (line.p && blank(line)) {
            CD_TRY(cd_serve_flush(s, err));
            continue;
        }
        CD_TRY(add(s, line, &is_command, err));
        if (!is_command) CD_TRY(cd_serve_take(s, err));
    }
}

/* Batches of requests: when one is complete, how it is scored in chunks on several threads, and in
 * which order answers are written. */
#include "predictor/serve/serve.h"

#include <string.h>

#include "base/io/io.h"
#include "predictor/serve/serve_internal.h"

/* ---- a batch ---- */
void cd_serve_refuse(cd_serve_state *s, size_t i, const cdmpp_err *e) {
    s->why[i] = *e;
    s->ask[i] = (cd_candidate){.form = CD_CANDIDATE_REFUSED, .why = &s->why[i]};
}

cdmpp_status cd_serve_check_rows(const cd_serve_state *s, cdmpp_err *err) {
    return cd_score_check_rows(s->c->impl, err);
}

/* A chunk was scored: its answers, by whichever thread did it. */
static cdmpp_status answer_chunk(void *arg, cd_api_worker *w, size_t first, size_t n,
                                 cdmpp_err *err) {
    cd_serve_state *s = arg;
    cd_serve_chunk *k = &s->chunk[first / CD_CHUNK];
    for (size_t i = 0; i < n; i++) {
        const size_t at = s->base + first + i;
        const cd_scored *o = &w->scored[i];
        const cd_response a = {s->id[at], s->line[at], o,
                               o->st ? "" : cd_model_device(s->m->impl, o->which.device),
                               s->o.costs};
        k->n[o->st]++;
        if (s->o.format == CD_SERVE_CSV) cd_response_csv(&k->out, &a);
        else cd_response_json(&k->out, &a);
    }
    return k->out.oom ? CD_FAIL(err, ENOMEM, "answers") : CDMPP_OK;
}

static void clear(cd_serve_state *s) {
    for (size_t k = 0; k < s->n_chunk; k++) {
        cd_buf_clear(&s->chunk[k].out);
        memset(s->chunk[k].n, 0, sizeof s->chunk[k].n);
    }
}

/* One request alone made the model fail: it is the one that gets the error. */
static cdmpp_status one_by_one(cd_serve_state *s, cdmpp_err *err) {
    clear(s);
    for (s->base = 0; s->base < s->n; s->base++) {
        cdmpp_err why = {0};
        cdmpp_status st = cd_score_candidates(s->c, s->ask + s->base, 1, answer_chunk, s, &why);
        if (st && st != CDMPP_ENOMEM) {
            cd_serve_refuse(s, s->base, &why);
            st = cd_score_candidates(s->c, s->ask + s->base, 1, answer_chunk, s, &why);
        }
        if (st && err) *err = why;
        CD_TRY(st);
    }
    return CDMPP_OK;
}

static cdmpp_status write_out(cd_serve_state *s, cdmpp_err *err) {
    for (size_t k = 0; k < s->n_chunk; k++) {
        const cd_serve_chunk *c = &s->chunk[k];
        for (int r = 0; r < CDMPP_STATUS_COUNT; r++) {
            *(r ? &s->stats->bad : &s->stats->scored) += c->n[r];
            s->stats->reason[r] += r ? c->n[r] : 0;
        }
        if (c->out.n) CD_TRY(cd_line_reader_send(s->o.out, c->out.p, c->out.n, err));
    }
    clear(s);
    return CDMPP_OK;
}

cdmpp_status cd_serve_flush(cd_serve_state *s, cdmpp_err *err) {
    if (!s->n) return CDMPP_OK;
    s->base = 0;
    cdmpp_status st = cd_score_candidates(s->c, s->ask, s->n, answer_chunk, s, err);
    if (st && st != CDMPP_ENOMEM) st = one_by_one(s, err);
    CD_TRY(st);
    s->stats->batches++;
    s->n = 0;
    CD_TRY(write_out(s, err));
    cd_arena_reset(&s->text);
    if (s->in) cd_line_reader_release(s->in);
    return CDMPP_OK;
}

cdmpp_status cd_serve_take(cd_serve_state *s, cdmpp_err *err) {
    if (!s->n) s->first_ns = cd_line_reader_now();
    s->stats->asked++;
    return ++s->n == s->o.batch ? cd_serve_flush(s, err) : CDMPP_OK;
}

/* ---- lines ---- */
static bool stopped(const cd_serve_state *s) { return s->o.stop && *s->o.stop; }

cdmpp_status cd_serve_line(cd_serve_state *s, bool copied, cd_str *line, bool *more,
                           cdmpp_err *err) {
    cd_line_reader_kind kind = CD_INTAKE_END;
    *more = false;
    *line = (cd_str){NULL, 0};
    if (copied) cd_line_reader_release(s->in);
    while (!stopped(s)) {
        const int64_t until = s->n ? s->first_ns + (int64_t)s->o.max_delay_ms * 1000000 : -1;
        CD_TRY(cd_line_reader_next(s->in, until, &kind, line, err));
        if (kind == CD_INTAKE_END ||
            (kind == CD_INTAKE_LINE && !cd_line_reader_whole(s->in) && stopped(s)))
            return CDMPP_OK;
        *more = kind == CD_INTAKE_LINE || kind == CD_INTAKE_LONG;
        if (kind == CD_INTAKE_LONG) *line = (cd_str){NULL, 0};
        if (*more) return CDMPP_OK;
        CD_TRY(cd_serve_flush(s, err)); /* late or full */
        cd_line_reader_release(s->in);
    }
    return CDMPP_OK;
}

/* ---- all of it ---- */
static void done(cd_serve_state *s) {
    cdmpp_context_cache(s->c, &s->stats->cache_asked, &s->stats->cache_found);
    for (size_t k = 0; s->chunk && k < s->n_chunk; k++) cd_buf_free(&s->chunk[k].out);
    cd_mem_free(s->chunk);
    cd_mem_free(s->why);
    cd_mem_free(s->line);
    cd_mem_free(s->id);
    cd_mem_free(s->aim);
    cd_mem_free(s->ask);
    cd_arena_free(&s->text);
    cd_line_reader_free(s->in);
}

static cdmpp_status set_up(cd_serve_state *s, cdmpp_err *err) {
    const size_t n = s->o.batch;
    if (s->o.format == CD_SERVE_PACKED) return CDMPP_OK;
    s->n_chunk = s->o.batch / CD_CHUNK + 1;
    s->ask = cd_mem_zalloc(n, sizeof *s->ask);
    s->aim = cd_mem_zalloc(n, sizeof *s->aim);
    s->id = cd_mem_zalloc(n, sizeof *s->id);
    s->line = cd_mem_zalloc(n, sizeof *s->line);
    s->why = cd_mem_zalloc(n, sizeof *s->why);
    s->chunk = cd_mem_zalloc(s->n_chunk, sizeof *s->chunk);
    if (!s->ask || !s->aim || !s->id || !s->line || !s->why || !s->chunk)
        return CD_FAIL(err, ENOMEM, "batch of %zu", s->o.batch);
    return cd_line_reader_new(s->o.in, s->o.max_bytes, &s->in, err);
}

/* The format has the loop. What is left in the batch at the end of input is answered here, also
 * after a signal. */
cdmpp_status cd_serve(cdmpp_context *c, const cdmpp_model *m, const cdmpp_tasks *tasks,
                      const cd_serve_options *o, cd_serve_stats *stats, cdmpp_err *err) {
    static cdmpp_status (*const run[])(cd_serve_state *, cdmpp_err *) = {
        cd_serve_ndjson, cd_serve_csv, cd_serve_packed};
    cd_serve_state s = {
        .c = c, .m = m, .tasks = tasks ? tasks->impl : NULL, .o = *o, .stats = stats};
    *stats = (cd_serve_stats){0};
    if (!s.o.batch) s.o.batch = CD_SERVE_BATCH;
    if (s.o.max_delay_ms < 0) s.o.max_delay_ms = CD_SERVE_DELAY_MS;
    if (!s.o.max_bytes) s.o.max_bytes = CD_REQUEST_LINE_MAX;
    cdmpp_status st = set_up(&s, err);
    if (!st) st = run[o->format](&s, err);
    if (!st && o->format != CD_SERVE_PACKED) st = cd_serve_flush(&s, err);
    if (!st && stopped(&s)) st = CD_FAIL(err, EINTERRUPTED, "after %zu requests", stats->asked);
    done(&s);
    return st;
}

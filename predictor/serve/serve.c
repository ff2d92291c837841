/* Batches of requests: when one is complete, how it is scored in chunks on several threads, and in
 * which order answers are written. */
#include "predictor/serve/serve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/serve/serve_internal.h"

/* An error as a member of a JSON line, the same in all streams. */

void cd_error_line_put(cd_buf *b, const cdmpp_err *e) {
    cd_buf_putf(b, ",\"error\":{\"code\":\"%s\"", cdmpp_status_name(e->code));
    if (e->key[0]) {
        cd_buf_puts(b, ",\"key\":");
        cd_buf_put_json_str(b, e->key, strlen(e->key));
    }
    cd_buf_puts(b, ",\"message\":");
    cd_buf_put_json_str(b, e->msg, strlen(e->msg));
    cd_buf_puts(b, "}");
}

/* Prints answers as JSON and as CSV. */

enum { NUMBERS = 256 }; /* room for five numbers of at most 24 characters, with names */

static const struct {
    uint32_t flag;
    const char *name;
} names[] = {{CDMPP_FLAG_LOWERING_FAILED, "lowering_failed"},
             {CDMPP_FLAG_OUT_OF_RANGE, "out_of_range"},
             {CDMPP_FLAG_UNKNOWN_DEVICE, "unknown_device"},
             {CDMPP_FLAG_TRUNCATED, "truncated"}};

static void put_flags(cd_buf *b, uint32_t flags, const char *quote, const char *between) {
    bool any = false;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        if (!(flags & names[k].flag)) continue;
        if (any) cd_buf_puts(b, between);
        cd_buf_puts(b, quote);
        cd_buf_puts(b, names[k].name);
        cd_buf_puts(b, quote);
        any = true;
    }
}

static void put_text(cd_buf *b, const char *text, int n) {
    if (n > 0) cd_buf_put(b, text, (size_t)n < NUMBERS ? (size_t)n : NUMBERS - 1);
}

static void put_numbers(cd_buf *b, const cd_scored *o) {
    const cd_model_prediction *p = &o->pred;
    char text[NUMBERS];
    put_text(b, text,
             snprintf(text, sizeof text, ",\"latency_s\":%.9g,\"score\":%.9g", p->latency_s,
                      cd_score_of(p->order_s)));
    if (isnan(p->low_s) && !(p->flags & CD_MODEL_OUT_OF_RANGE)) return; /* a model of version 1 */
    if (isnan(p->low_s)) {
        cd_buf_puts(b, ",\"low_s\":null,\"high_s\":null,\"rel_std\":null");
        return;
    }
    put_text(b, text,
             snprintf(text, sizeof text, ",\"low_s\":%.9g,\"high_s\":%.9g,\"rel_std\":%.4g",
                      p->low_s, p->high_s, p->rel_std));
}

static void put_costs(cd_buf *b, const cd_scored *o) {
    if (isnan(o->measured_s)) cd_buf_puts(b, ",\"measured_s\":null,\"rel_error\":null");
    else
        cd_buf_putf(b, ",\"measured_s\":%.9g,\"rel_error\":%.6g", o->measured_s,
                    o->pred.latency_s / o->measured_s - 1);
}

/* Written by hand, piece by piece: this is the inner loop of a stream of requests. */
void cd_response_json(cd_buf *b, const cd_response *a) {
    const cd_scored *o = a->o;
    if (a->id.n) {
        cd_buf_puts(b, "{\"id\":");
        cd_buf_put(b, a->id.p, a->id.n);
    } else {
        cd_buf_puts(b, "{\"line\":");
        cd_buf_put_int(b, a->line);
    }
    if (o->st) {
        cd_error_line_put(b, &o->err);
    } else {
        put_numbers(b, o);
        if (a->costs) put_costs(b, o);
        cd_buf_puts(b, ",\"flags\":[");
        put_flags(b, cd_score_flags(o, false), "\"", ",");
        cd_buf_puts(b, "]");
        if (o->unlike.reason) {
            cd_buf_puts(b, ",\"reason\":");
            cd_buf_put_json_str(b, o->unlike.text, strlen(o->unlike.text));
        }
        if (o->which.unknown) {
            cd_buf_puts(b, ",\"device\":");
            cd_buf_put_json_str(b, a->answered, strlen(a->answered));
        }
    }
    cd_buf_puts(b, "}\n");
}

/* The columns are those of CD_ANSWER_CSV_HEAD; an error leaves the numbers empty. */
void cd_response_csv(cd_buf *b, const cd_response *a) {
    const cd_scored *o = a->o;
    const cd_model_prediction *p = &o->pred;
    char text[NUMBERS];
    if (a->id.n) cd_csv_fields_put_bare(b, a->id.p, a->id.n);
    else cd_buf_put_int(b, a->line);
    if (o->st) {
        cd_buf_puts(b, ",,,,,,,");
        cd_buf_puts(b, cdmpp_status_name(o->err.code));
        cd_buf_puts(b, ",");
        cd_csv_fields_put_bare(b, o->err.msg, strlen(o->err.msg));
        cd_buf_puts(b, ",");
    } else {
        put_text(b, text,
                 snprintf(text, sizeof text, ",%.9g,%.9g,", p->latency_s, cd_score_of(p->order_s)));
        if (isnan(p->low_s)) cd_buf_puts(b, ",,,");
        else
            put_text(
                b, text,
                snprintf(text, sizeof text, "%.9g,%.9g,%.4g,", p->low_s, p->high_s, p->rel_std));
        put_flags(b, cd_score_flags(o, false), "", " ");
        cd_buf_puts(b, ",,,");
        cd_csv_fields_put_bare(b, o->unlike.text, strlen(o->unlike.text));
    }
    cd_buf_puts(b, "\n");
}

/* The summary of a run over files of records, for people and for programs. */

void cd_stream_print_log(const cd_stream_stats *n, const cd_metric *m, cd_log *log) {
    cd_buf b = {0}, why = {0};
    if (m && m->n) cd_metric_text(&b, "evaluation", "all records", m);
    if (b.p) cd_log_put(log, CD_LOG_INFO, "%.*s", (int)b.n - 1, b.p);
    cd_buf_free(&b);
    if (m && m->n && n->unmeasured)
        cd_log_put(log, CD_LOG_INFO,
                   "%zu scored records whose measurement failed are not in these figures",
                   n->unmeasured);
    if (m && m->n && n->known)
        cd_log_put(log, CD_LOG_WARNING,
                   "the model was trained on the tasks of %zu of these %zu records: the figures do "
                   "not say how good it is on tasks that it has not seen",
                   n->known, (size_t)m->n);
    if (m && m->n && n->own)
        cd_log_put(log, CD_LOG_WARNING,
                   "%zu of these %zu records are also in --measured: the answers knew their times, "
                   "and the figures are too good by them",
                   n->own, (size_t)m->n);
    if (!n->bad) return;
    for (int k = 1; k < CDMPP_STATUS_COUNT; k++)
        if (n->reason[k])
            cd_buf_putf(&why, "%s%zu %s", why.n ? ", " : "", n->reason[k],
                        cdmpp_status_name((cdmpp_status)k));
    cd_log_put(log, CD_LOG_WARNING, "%zu of %zu lines could not be scored: %s", n->bad, n->lines,
               why.p ? why.p : "");
    cd_buf_free(&why);
}

/* {"ENOTASK":2,"EPARSE":1}: how many of each status. */
static void stream_print_reasons(cd_buf *b, const size_t reason[CDMPP_STATUS_COUNT]) {
    cd_json_writer w = {.out = b};
    cd_json_write_open(&w, '{');
    for (int k = 1; k < CDMPP_STATUS_COUNT; k++)
        if (reason[k])
            cd_json_write_member_int(&w, cdmpp_status_name((cdmpp_status)k), (int64_t)reason[k]);
    cd_json_write_close(&w, '}');
}

void cd_stream_print_json(cd_buf *b, const cd_stream_stats *n, const cd_metric *m) {
    cd_buf_putf(b,
                "{\"schema\":\"cdmpp.evaluation\",\"command\":\"cdmpp-predict\",\"lines\":%zu,"
                "\"scored\":%zu,\"unmeasured\":%zu,\"out_of_range\":%zu,\"with_interval\":%zu,"
                "\"inside_interval\":%zu,\"of_trained_tasks\":%zu,\"of_measured\":%zu,",
                n->lines, n->scored, n->unmeasured, n->out_of_range, n->ranged, n->inside, n->known,
                n->own);
    cd_buf_putf(b, "\"bad\":%zu,\"reasons\":", n->bad);
    stream_print_reasons(b, n->reason);
    cd_buf_puts(b, ",\"evaluation\":");
    if (m) cd_metric_json(b, m);
    else cd_buf_puts(b, "null");
    cd_buf_puts(b, "}\n");
}

/* The counts of cdmpp-predict --stream at its end, for people and for programs. */

void cd_serve_print_json(cd_buf *b, const cd_serve_stats *n) {
    cd_buf_putf(b,
                "{\"schema\":\"cdmpp.stream\",\"command\":\"cdmpp-predict\",\"requests\":%zu,"
                "\"scored\":%zu,\"bad\":%zu,\"batches\":%zu,"
                "\"cache\":{\"asked\":%llu,\"found\":%llu},\"reasons\":",
                n->asked, n->scored, n->bad, n->batches, (unsigned long long)n->cache_asked,
                (unsigned long long)n->cache_found);
    stream_print_reasons(b, n->reason);
    cd_buf_puts(b, "}\n");
}

void cd_serve_print_log(const cd_serve_stats *n, cd_log *log) {
    cd_log_put(log, CD_LOG_INFO,
               "%zu requests in %zu batches, %zu scored, %zu bad; cache: %llu of %llu found",
               n->asked, n->batches, n->scored, n->bad, (unsigned long long)n->cache_found,
               (unsigned long long)n->cache_asked);
    for (int k = 1; k < CDMPP_STATUS_COUNT; k++)
        if (n->reason[k])
            cd_log_put(log, CD_LOG_INFO, "%10zu  %s", n->reason[k],
                       cdmpp_status_name((cdmpp_status)k));
}

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

/* Has records measured elsewhere. All records are read before the first is sent, since the pool answers in the order of the jobs and
 * may give a job to several workers; a job keeps its record's line until it is answered. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/remote/remote.h"

enum { MAX_WORD = 16 };         /* of a worker's command line */

typedef struct {
    const cd_remote_records_options *o;
    cd_record_maker *maker;
    cd_record_output *out;
    cd_remote_records_tally *t;
    cd_arena arena;             /* hosts, lines, paths */
    cd_record_program *job;     /* (n) */
    cd_str *line;               /* (n) what is sent */
    size_t n, n_line, cap, line_cap;
    unsigned round;             /* from 1 */
    cd_buf setup;
} run;

/* ---- what is to be measured ---- */

/* The record as it is sent: complete, with the target that is asked for, without the line's end. */
static cdmpp_status keep_line(run *r, const cd_record_program *j, cdmpp_err *err) {
    cd_buf b = {0};
    if (CD_GROW(r->line, r->n_line, r->line_cap)) return CD_FAIL(err, ENOMEM, "%zu jobs", r->n);
    cdmpp_status st = cd_record_write(&b, &j->record, err);
    cd_str *to = &r->line[r->n_line];
    *to = (cd_str){NULL, b.n ? b.n - 1 : 0};
    if (!st && !(to->p = cd_str_dup(&r->arena, (cd_str){b.p, to->n}))) st = CD_FAIL(err, ENOMEM, "record");
    r->n_line += !st;
    cd_buf_free(&b);
    return st;
}

/* A record that the output has often enough is not sent. */
static cdmpp_status add(run *r, const cd_recline *l, cdmpp_err *err) {
    bool mine = false;
    if (CD_GROW(r->job, r->n, r->cap)) return CD_FAIL(err, ENOMEM, "%zu jobs", r->n);
    cd_record_program *j = &r->job[r->n];
    cdmpp_status st = cd_record_program_make(r->maker, l, j, err);
    if (!st) st = cd_record_output_claim(r->out, j->id, r->round, &mine, err);
    if (!st && mine) st = keep_line(r, j, err);
    if (st || !mine) {
        r->t->known += !st;
        cd_record_program_free(j);
        return st;
    }
    r->n++;
    return CDMPP_OK;
}

static cdmpp_status collect_round(run *r, cd_record_reader *file, cdmpp_err *err) {
    for (size_t read = 0; !*r->o->measure.stop && (!r->o->limit || read < r->o->limit); read++) {
        cdmpp_err why = {0};
        cd_recline l = {0};
        cdmpp_status st = cd_record_reader_next(file, &l, &why);
        if (!st && !l.text) break;
        r->t->read += r->round == 1;
        if (!st) st = add(r, &l, &why);
        if (st && r->round == 1) CD_TRY(cd_record_listener_bad(r->o->listener, &why, err)); /* later rounds would repeat it */
    }
    return CDMPP_OK;
}

/* All rounds, one after the other. A job's path is the reader's text: the caller's reader outlives the jobs, those of later rounds do
 * not, so their paths are copied. */
static cdmpp_status collect(run *r, cd_record_reader *file, cdmpp_err *err) {
    r->round = 1;
    CD_TRY(collect_round(r, file, err));
    while ((int)r->round < r->o->rounds) {
        cd_record_reader *again = NULL;
        const size_t before = r->n;
        r->round++;
        CD_TRY(cd_record_reader_open(r->o->path, r->o->n_path, &again, err));
        cdmpp_status st = collect_round(r, again, err);
        for (size_t i = before; !st && i < r->n; i++)
            if (!(r->job[i].path = cd_str_dup(&r->arena, (cd_str){r->job[i].path, strlen(r->job[i].path)}))) st = CD_FAIL(err, ENOMEM, "path");
        cd_record_reader_close(again);
        CD_TRY(st);
    }
    return CDMPP_OK;
}

static cdmpp_status make_setup(run *r, cdmpp_err *err) {
    cd_buf tasks = {0};
    cdmpp_status st = cd_task_registry_write(&tasks, r->maker->tasks, err);
    cd_buf_puts(&r->setup, "{\"tasks\":");
    if (!st) cd_buf_put_json_str(&r->setup, tasks.p, tasks.n);
    cd_buf_putf(&r->setup, ",\"check\":%s}", r->maker->reference ? "true" : "false");
    cd_buf_free(&tasks);
    if (!st && r->setup.oom) st = CD_FAIL(err, ENOMEM, "tasks");
    return st;
}

/* ---- what comes back ---- */

/* What a host found out, as if it had been measured here. A worker without statistics gives those of its costs. */
static void result_of(const cd_remote_times *t, cd_measure_result *m) {
    const cd_remote_stats *s = &t->stats;
    *m = (cd_measure_result){.error_no = (int)t->error_no, .at = t->timestamp, .cycles = -1, .instructions = -1, .cache_misses = -1};
    if (t->error_no) {
        m->status = CD_FAIL(&m->err, EBACKEND, "%s", t->message[0] ? t->message : cd_record_stats_error(m->error_no));
        return;
    }
    if (!t->has_stats) {
        m->time.n = t->n_cost < CD_TIMING_MAX ? t->n_cost : CD_TIMING_MAX;
        memcpy(m->time.sample_s, t->cost_s, m->time.n * sizeof *t->cost_s);
        cd_timing_figures(&m->time, NULL);
        return;
    }
    m->flags = (uint32_t)s->flags;
    m->attempts = (unsigned)s->attempts;
    m->build_s = s->build_s;
    m->run_s = s->run_s;
    m->quiet_before = s->quiet_before;
    m->quiet_after = s->quiet_after;
    m->max_error = s->max_error;
    m->cycles = s->cycles;
    m->instructions = s->instructions;
    m->cache_misses = s->cache_misses;
    m->time = (cd_timing){.n = (unsigned)s->n, .n_kept = (unsigned)s->kept, .number = (unsigned)s->number, .disturbed = (unsigned)s->disturbed,
                          .min_s = s->min_s, .median_s = s->median_s, .mean_s = s->mean_s, .std_s = s->std_s, .cv = s->cv, .ci = s->ci};
}

/* The record has the worker's costs, not ours of its statistics: they are what it would have written itself. */
static cdmpp_status take_answer(run *r, const cd_record_program *j, const cd_remote_answer *a, cdmpp_err *err) {
    static const double none = CD_MEASURE_FAILED_S;
    cd_record record = j->record;
    cd_measure_result m;
    record.cost_s = a->times->n_cost ? a->times->cost_s : &none;
    record.n_cost = a->times->n_cost ? a->times->n_cost : 1;
    record.error_no = a->times->error_no;
    record.total_s = a->times->total_s;
    record.timestamp = a->times->timestamp;
    result_of(a->times, &m);
    cd_record_measured x = {.job = j, .record = &record, .task = cd_task_registry_find(r->maker->tasks, record.workload_key), .result = &m, .host = a->host,
                            .device = a->device};
    CD_TRY(cd_record_output_put(r->out, &x, err));
    r->t->measured += !record.error_no;
    r->t->failed += record.error_no != 0;
    const char *said = a->times->message;
    if (record.error_no)
        cd_record_listener_note(r->o->listener, "%s:%ld: error %d on %s%s%s", j->path, j->number, (int)record.error_no, a->host, said[0] ? ": " : "", said);
    return CDMPP_OK;
}

/* A job that nobody answered gets no record, so that the next run measures it. */
static cdmpp_status on_answer(void *ctx, size_t i, const cd_remote_answer *a, cdmpp_err *err) {
    run *r = ctx;
    cd_record_program *j = &r->job[i];
    cdmpp_status st = CDMPP_OK;
    if (a->status) {
        cdmpp_err why = *a->err;
        r->t->lost++;
        (void)cd_err_at(&why, a->status, j->path, j->number);
        r->o->listener->bad(r->o->listener->ctx, &why);
    } else {
        st = take_answer(r, j, a, err);
    }
    cd_record_program_free(j);
    return st;
}

static void on_event(void *ctx, const char *host, const char *what) {
    const run *r = ctx;
    cd_record_listener_note(r->o->listener, "%s: %s", host, what);
}

/* The options as words of the worker's command line, in the arena. */
static cdmpp_status words_of(run *r, const char *word[MAX_WORD], size_t *n, cdmpp_err *err) {
    const cd_measure_options *m = &r->o->measure;
    const struct {
        const char *name;
        double value;
    } number[] = {{"budget-ms", m->timing.budget_s * 1e3}, {"timeout", m->run_limit_s}, {"build-timeout", m->build_limit_s},
                  {"memory-mb", (double)(m->memory_bytes >> 20)}, {"threads", r->o->threads}};
    const char *const text[][2] = {{"isa", m->isa}, {"device", m->device}, {"cflags", m->flags}};
    char w[128];
    *n = 0;
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        snprintf(w, sizeof w, "--%s=%ld", number[i].name, lround(number[i].value));
        if (number[i].value > 0) word[(*n)++] = cd_str_dup(&r->arena, (cd_str){w, strlen(w)});
    }
    if (m->timing.cold) word[(*n)++] = "--cold";
    if (m->timing.cool) word[(*n)++] = "--cool";
    if (!m->pin) word[(*n)++] = "--no-pin";
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        snprintf(w, sizeof w, "--%s=%.100s", text[i][0], text[i][1] ? text[i][1] : "");
        if (text[i][1]) word[(*n)++] = cd_str_dup(&r->arena, (cd_str){w, strlen(w)});
    }
    for (size_t i = 0; i < *n; i++)
        if (!word[i]) return CD_FAIL(err, ENOMEM, "options");
    return CDMPP_OK;
}

static cdmpp_status send_all(run *r, cdmpp_err *err) {
    const cd_remote_records_options *o = r->o;
    cd_remote_host *host = cd_arena_zalloc(&r->arena, o->n_host, sizeof *host);
    const cd_remote_watch w = {on_answer, on_event, r, o->measure.stop};
    const cd_remote_policy p = {.lease_s = o->lease_s};
    const char *word[MAX_WORD];
    size_t n_word;
    if (!host) return CD_FAIL(err, ENOMEM, "hosts");
    CD_TRY(words_of(r, word, &n_word, err));
    for (size_t i = 0; i < o->n_host; i++)
        CD_TRY(cd_remote_reach(&r->arena, o->host[i], o->port, o->transport, word, n_word, &host[i], err));
    CD_TRY(make_setup(r, err));
    return cd_remote_run(host, o->n_host, &p, r->line, r->n, r->setup.p, &w, err);
}

/* The first line of the statistics: who is asked. */
static cdmpp_status begin_output(run *r, cdmpp_err *err) {
    cd_buf b = {0};
    cd_buf_puts(&b, "{\"schema\":\"cdmpp.profile_stats\",\"hosts\":[");
    for (size_t i = 0; i < r->o->n_host; i++) {
        if (i) cd_buf_puts(&b, ",");
        cd_buf_put_json_str(&b, r->o->host[i], strlen(r->o->host[i]));
    }
    cd_buf_putf(&b, "],\"threads\":%d}\n", r->o->threads);
    const cdmpp_status st = cd_record_output_begin(r->out, &b, err);
    cd_buf_free(&b);
    return st;
}

cdmpp_status cd_remote_records_run(const cd_remote_records_options *o, cd_record_maker *maker, cd_record_reader *file,
                                   cd_record_output *out, cd_remote_records_tally *t, cdmpp_err *err) {
    run r = {.o = o, .maker = maker, .out = out, .t = t};
    cdmpp_status st = begin_output(&r, err);
    if (!st) st = collect(&r, file, err);
    if (!st && r.n) st = send_all(&r, err);
    for (size_t i = 0; i < r.n; i++) cd_record_program_free(&r.job[i]);
    cd_mem_free(r.job);
    cd_mem_free(r.line);
    cd_buf_free(&r.setup);
    cd_arena_free(&r.arena);
    return st;
}

void cd_remote_records_put(cd_buf *b, const cd_remote_records_tally *t, size_t bad, bool json) {
    if (!json)
        cd_buf_putf(b, "%zu records: %zu measured, %zu failed, %zu without an answer, %zu were there already\n", t->read, t->measured, t->failed, t->lost, t->known);
    else
        cd_buf_putf(b, "{\"records\":%zu,\"measured\":%zu,\"failed\":%zu,\"lost\":%zu,\"known\":%zu,\"bad\":%zu}", t->read, t->measured, t->failed, t->lost,
                    t->known, bad);
}

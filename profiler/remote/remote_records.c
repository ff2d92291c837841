/* Has records measured elsewhere. All records are read before the first is sent, since the pool
 * answers in the order of the jobs and may give a job to several workers; a job keeps its record's
 * line until it is answered. */
#include <string.h>

#include "profiler/remote/remote_internal.h"

typedef struct {
    const cd_remote_records_options *o;
    cd_record_maker *maker;
    cd_record_output *out;
    cd_remote_records_tally *t;
    cd_arena arena;         /* hosts, lines, paths */
    cd_record_program *job; /* (n) */
    cd_str *line;           /* (n) what is sent */
    size_t n, n_line, cap, line_cap;
    unsigned round; /* from 1 */
    cd_buf setup;
} run;

/* ---- what is to be measured ---- */

/* The record as it is sent: complete, with the target that is asked for. */
static cdmpp_status keep_line(run *r, const cd_record_program *j, cdmpp_err *err) {
    if (CD_GROW(r->line, r->n_line, r->line_cap)) return CD_FAIL(err, ENOMEM, "%zu jobs", r->n);
    CD_TRY(cd_remote_line(&r->arena, &j->record, &r->line[r->n_line], err));
    r->n_line++;
    return CDMPP_OK;
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
        /* later rounds would repeat it */
        if (st && r->round == 1) CD_TRY(cd_record_listener_bad(r->o->listener, &why, err));
    }
    return CDMPP_OK;
}

/* All rounds, one after the other. A job's path is the reader's text: the caller's reader outlives
 * the jobs, those of later rounds do not, so their paths are copied. */
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
            if (!(r->job[i].path =
                      cd_str_dup(&r->arena, (cd_str){r->job[i].path, strlen(r->job[i].path)})))
                st = CD_FAIL(err, ENOMEM, "path");
        cd_record_reader_close(again);
        CD_TRY(st);
    }
    return CDMPP_OK;
}

/* ---- what comes back ---- */

/* The record has the worker's costs, not ours of its statistics: they are what it would have
 * written itself. */
static cdmpp_status take_answer(run *r, const cd_record_program *j, const cd_remote_answer *a,
                                cdmpp_err *err) {
    static const double none = CD_MEASURE_FAILED_S;
    cd_record record = j->record;
    cd_measure_result m;
    record.cost_s = a->times->n_cost ? a->times->cost_s : &none;
    record.n_cost = a->times->n_cost ? a->times->n_cost : 1;
    record.error_no = a->times->error_no;
    record.total_s = a->times->total_s;
    record.timestamp = a->times->timestamp;
    cd_remote_result(a->times, &m);
    cd_record_measured x = {.job = j,
                            .record = &record,
                            .task = cd_task_registry_find(r->maker->tasks, record.workload_key),
                            .result = &m,
                            .host = a->host,
                            .device = a->device};
    CD_TRY(cd_record_output_put(r->out, &x, err));
    r->t->measured += !record.error_no;
    r->t->failed += record.error_no != 0;
    const char *said = a->times->message;
    if (record.error_no)
        cd_record_listener_note(r->o->listener, "%s:%ld: error %d on %s%s%s", j->path, j->number,
                                (int)record.error_no, a->host, said[0] ? ": " : "", said);
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

static cdmpp_status send_all(run *r, cdmpp_err *err) {
    const cd_remote_records_options *o = r->o;
    const cd_remote_way way = {o->host,     o->n_host,  o->port, o->transport,
                               &o->measure, o->threads, o->core};
    const cd_remote_watch w = {on_answer, on_event, r, o->measure.stop};
    const cd_remote_policy p = {.lease_s = o->lease_s, .core = o->core};
    cd_remote_host *host;
    CD_TRY(cd_remote_way_hosts(&r->arena, &way, &host, err));
    CD_TRY(cd_remote_setup_put(&r->setup, r->maker->tasks, r->maker->reference, err));
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
    cd_buf_puts(&b, "]");
    if (r->o->core) cd_buf_putf(&b, ",\"core_type\":\"%s\"", r->o->core);
    cd_buf_putf(&b, ",\"threads\":%d}\n", r->o->threads);
    const cdmpp_status st = cd_record_output_begin(r->out, &b, err);
    cd_buf_free(&b);
    return st;
}

cdmpp_status cd_remote_records_run(const cd_remote_records_options *o, cd_record_maker *maker,
                                   cd_record_reader *file, cd_record_output *out,
                                   cd_remote_records_tally *t, cdmpp_err *err) {
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
        cd_buf_putf(b,
                    "%zu records: %zu measured, %zu failed, %zu without an answer, %zu were there "
                    "already\n",
                    t->read, t->measured, t->failed, t->lost, t->known);
    else
        cd_buf_putf(b,
                    "{\"records\":%zu,\"measured\":%zu,\"failed\":%zu,\"lost\":%zu,\"known\":%zu,"
                    "\"bad\":%zu}",
                    t->read, t->measured, t->failed, t->lost, t->known, bad);
}

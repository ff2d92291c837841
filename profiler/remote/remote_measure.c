/* Programs of a search on boards. The pool's answers become results; one that is missing ends the
 * run, so that a search never goes on with times that nobody measured. */
#include <ctype.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "profiler/remote/remote.h"
#include "profiler/remote/remote_internal.h"

/* The first line of a worker, written and read; and a worker that is asked for nothing else. */

enum { GREETINGS = 64 };
#define LOOK_S 0.2 /* so long until a stop is seen */

/* ---- the line ---- */
void cd_remote_hello_put(cd_buf *b, const cd_remote_about *a) {
    cd_json_writer w = {.out = b};
    cd_json_write_open(&w, '{');
    cd_json_write_member_str(&w, "hello", "cdmpp-worker");
    cd_json_write_member_int(&w, "protocol", CD_REMOTE_PROTOCOL);
    cd_json_write_member_str(&w, "version", cdmpp_version());
    cd_json_write_member_str(&w, "device", a->device);
    if (a->model[0]) cd_json_write_member_str(&w, "model", a->model);
    if (a->isa[0]) cd_json_write_member_str(&w, "isa", a->isa);
    if (a->cpus > 0) cd_json_write_member_int(&w, "cpus", a->cpus);
    if (a->core[0]) cd_json_write_member_str(&w, "core_type", a->core);
    cd_json_write_close(&w, '}');
    cd_buf_puts(b, "\n");
}

static void take_text(const cd_json *m, const char *key, char *to, size_t cap) {
    const cd_json *v = cd_json_get(m, key);
    if (v && v->kind == CD_JSON_STR)
        snprintf(to, cap, "%.*s", (int)(v->u.s.n < cap ? v->u.s.n : cap - 1), v->u.s.p);
}

/* A name goes into the target of records, so it is one word; what else a worker calls itself is no
 * name. */
static bool is_name(const char *s) {
    for (; *s; s++)
        if (*s <= ' ' || *s == '"' || *s == '\\' || *s == 127) return false;
    return true;
}

cd_remote_greeting cd_remote_hello_read(const cd_json *m, cd_remote_about *out) {
    const cd_json *who = m ? cd_json_get(m, "hello") : NULL,
                  *protocol = m ? cd_json_get(m, "protocol") : NULL,
                  *cpus = m ? cd_json_get(m, "cpus") : NULL;
    int64_t n = 0;
    *out = (cd_remote_about){0};
    if (!who || who->kind != CD_JSON_STR || !cd_str_is(who->u.s, "cdmpp-worker"))
        return CD_REMOTE_NO_HELLO;
    if (!protocol || protocol->kind != CD_JSON_INT || protocol->u.i != CD_REMOTE_PROTOCOL)
        return CD_REMOTE_OTHER_PROTOCOL;
    take_text(m, "device", out->device, sizeof out->device);
    take_text(m, "model", out->model, sizeof out->model);
    take_text(m, "isa", out->isa, sizeof out->isa);
    take_text(m, "core_type", out->core, sizeof out->core);
    if (!is_name(out->model)) out->model[0] = 0;
    /* "native" says nothing */
    if (cd_enum_names_find(CD_ISAS, (cd_str){out->isa, strlen(out->isa)}) <= CD_ISA_NATIVE)
        out->isa[0] = 0;
    if (cpus && !cd_json_int(cpus, 1, 1 << 16, &n, NULL)) out->cpus = (int)n;
    return CD_REMOTE_HELLO;
}

bool cd_remote_hello_suits(const cd_remote_about *a, const cd_remote_policy *p) {
    return !p->core || !strcmp(a->core, p->core);
}

/* ---- asking ---- */
typedef struct {
    cd_remote_connection link;
    cd_arena arena; /* of one line */
    unsigned lines;
    cd_remote_greeting got;
    cd_remote_about *out;
} asked;

/* All whole lines that came; false: no more will. */
static bool read_lines(asked *q) {
    const bool there = cd_remote_connection_receive(&q->link);
    size_t n;
    for (char *text; q->got == CD_REMOTE_NO_HELLO && q->lines <= GREETINGS &&
                     (text = cd_remote_connection_next_line(&q->link, &n));
         q->lines++) {
        const cd_json *m = NULL;
        cd_arena_reset(&q->arena);
        const bool parsed = !cd_json_parse(&q->arena, text, n, &m, NULL) && m->kind == CD_JSON_OBJ;
        q->got = cd_remote_hello_read(parsed ? m : NULL, q->out);
    }
    return there && q->lines <= GREETINGS && q->link.in.n <= CD_REMOTE_LINE;
}

static cdmpp_status wait_for(asked *q, double start_s, const volatile sig_atomic_t *stop,
                             cdmpp_err *err) {
    const double until = cd_clock_wall() + start_s;
    const char *name = q->link.host->name;
    bool more = true;
    while (q->got == CD_REMOTE_NO_HELLO && more) {
        struct pollfd f = {.fd = q->link.fd, .events = POLLIN};
        const double left = until - cd_clock_wall();
        if (stop && *stop)
            return CD_FAIL(err, EINTERRUPTED, "while %.60s was asked what it is", name);
        if (left <= 0) break;
        (void)poll(&f, 1, (int)ceil(1000 * fmin(left, LOOK_S)));
        if (f.revents) more = read_lines(q);
        if (q->link.in.oom) return CD_FAIL(err, ENOMEM, "line");
    }
    if (q->got == CD_REMOTE_HELLO) return CDMPP_OK;
    const char *said = q->link.said;
    char late[60];
    (void)snprintf(late, sizeof late, "did not say hello within %g s", start_s);
    return CD_FAIL(err, EBACKEND, "%.60s %s%s%s", name,
                   q->got == CD_REMOTE_OTHER_PROTOCOL ? "speaks another version of the protocol"
                   : more                             ? late
                          : "is no cdmpp-profile --worker, or cannot be reached",
                   said[0] ? "; it said: " : "", said);
}

/* Begin a worker there for its hello alone. Errors: EBACKEND (none within start_s, with what it
 * said last), EIO, EINTERRUPTED, ENOMEM. */
static cdmpp_status remote_ask(const cd_remote_host *host, const cd_remote_policy *p,
                               const volatile sig_atomic_t *stop, cd_remote_about *out,
                               cdmpp_err *err) {
    asked q = {.link = {.host = host, .fd = -1, .err_fd = -1}, .out = out};
    cdmpp_status st = cd_remote_connection_start(&q.link, cd_clock_wall(), err);
    if (!st) st = wait_for(&q, p->start_s > 0 ? p->start_s : CD_REMOTE_START_S, stop, err);
    if (!st && !cd_remote_hello_suits(out, p))
        st = CD_FAIL(err, EBACKEND, "%.60s " CD_REMOTE_OTHER_CORES, host->name);
    cd_remote_connection_kill(&q.link);
    cd_buf_free(&q.link.in);
    cd_buf_free(&q.link.out);
    cd_arena_free(&q.arena);
    return st;
}

/* remote_reach -- the command line that gets to a host. */

/* Letters, digits and the given signs only: what stays one word in any shell. */
static bool is_word(const char *s, const char *signs) {
    if (!*s) return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr(signs, *s)) return false;
    return true;
}

cdmpp_status cd_remote_reach(cd_arena *a, const char *host, int port, const char *transport,
                             const char *const *arg, size_t n_arg, cd_remote_host *out,
                             cdmpp_err *err) {
    const char **argv = cd_arena_zalloc(a, n_arg + 16, sizeof *argv);
    const char *name = cd_str_dup(a, (cd_str){host, strlen(host)});
    char *number = cd_arena_zalloc(a, 16, 1);
    size_t n = 0;
    if (!argv || !name || !number) return CD_FAIL(err, ENOMEM, "name of a host");
    if (!is_word(host, "@._-:%[]") || *host == '-') /* no option of ssh */
        return CD_FAIL(err, EUSAGE, "--host: expected user@board, found '%.60s'", host);
    for (size_t i = 0; i < n_arg; i++)
        if (!is_word(arg[i], "=._-+,:/"))
            return CD_FAIL(err, EUSAGE, "'%.60s' cannot be said to another host", arg[i]);
    if (port > 0) snprintf(number, 16, "%d", port);
    const char *const by_sh[] = {"sh", "-c", transport, "cdmpp-worker", name, number};
    const char *const by_ssh[] = {
        "ssh", "-o", "BatchMode=yes", "-o",      "ServerAliveInterval=10", "-p", number,
        "--",  name, "cdmpp-profile", "--worker"};
    const size_t all = transport ? sizeof by_sh / sizeof *by_sh : sizeof by_ssh / sizeof *by_ssh;
    for (size_t i = 0; i < all; i++)
        if (transport || port > 0 || (i != 5 && i != 6))
            argv[n++] = transport ? by_sh[i] : by_ssh[i];
    for (size_t i = 0; i < n_arg; i++)
        if (!(argv[n++] = cd_str_dup(a, (cd_str){arg[i], strlen(arg[i])})))
            return CD_FAIL(err, ENOMEM, "words for a host");
    *out = (cd_remote_host){name, argv};
    return CDMPP_OK;
}

/* What goes to workers and what comes back, for records and for searches: their command line, the
 * setup, a record as a line, and a result out of an answer. */

/* The options as words of the worker's command line, in the arena. */
static cdmpp_status words_of(cd_arena *a, const cd_remote_way *way,
                             const char *word[CD_REMOTE_WORDS], size_t *n, cdmpp_err *err) {
    const cd_measure_options *m = way->measure;
    const struct {
        const char *name;
        double value;
    } number[] = {{"budget-ms", m->timing.budget_s * 1e3},
                  {"timeout", m->run_limit_s},
                  {"build-timeout", m->build_limit_s},
                  {"memory-mb", (double)(m->memory_bytes >> 20)},
                  {"threads", way->threads}};
    const char *const text[][2] = {
        {"isa", m->isa}, {"device", m->device}, {"cflags", m->flags}, {"core-type", way->core}};
    char w[128];
    *n = 0;
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        snprintf(w, sizeof w, "--%s=%ld", number[i].name, lround(number[i].value));
        if (number[i].value > 0) word[(*n)++] = cd_str_dup(a, (cd_str){w, strlen(w)});
    }
    if (m->timing.cold) word[(*n)++] = "--cold";
    if (m->timing.cool) word[(*n)++] = "--cool";
    if (!m->pin) word[(*n)++] = "--no-pin";
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        const int len = snprintf(w, sizeof w, "--%s=%s", text[i][0], text[i][1] ? text[i][1] : "");
        if (len >= (int)sizeof w)
            return CD_FAIL(err, EUSAGE, "--%s is too long for another host: %.60s...", text[i][0],
                           text[i][1]);
        if (text[i][1]) word[(*n)++] = cd_str_dup(a, (cd_str){w, strlen(w)});
    }
    for (size_t i = 0; i < *n; i++)
        if (!word[i]) return CD_FAIL(err, ENOMEM, "options");
    return CDMPP_OK;
}

static cdmpp_status remote_way_hosts(cd_arena *a, const cd_remote_way *w, cd_remote_host **out,
                                     cdmpp_err *err) {
    const char *word[CD_REMOTE_WORDS];
    size_t n_word;
    cd_remote_host *host = cd_arena_zalloc(a, w->n_host + 1, sizeof *host);
    if (!host) return CD_FAIL(err, ENOMEM, "hosts");
    CD_TRY(words_of(a, w, word, &n_word, err));
    for (size_t i = 0; i < w->n_host; i++)
        CD_TRY(cd_remote_reach(a, w->host[i], w->port, w->transport, word, n_word, &host[i], err));
    *out = host;
    return CDMPP_OK;
}

/* What workers get before the first record: {"tasks":text,"check":..}. Errors: ENOMEM. */
static cdmpp_status remote_setup_put(cd_buf *b, const cd_task_registry *tasks, bool check,
                                     cdmpp_err *err) {
    cd_buf text = {0};
    cdmpp_status st = cd_task_registry_write(&text, tasks, err);
    cd_buf_puts(b, "{\"tasks\":");
    if (!st) cd_buf_put_json_str(b, text.p, text.n);
    cd_buf_putf(b, ",\"check\":%s}", check ? "true" : "false");
    cd_buf_free(&text);
    if (!st && b->oom) st = CD_FAIL(err, ENOMEM, "tasks");
    return st;
}

/* The record as it is sent, without the line's end; in the arena. Errors: ENOMEM, those of
 * cd_record_write. */
static cdmpp_status remote_line(cd_arena *a, const cd_record *r, cd_str *out, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = cd_record_write(&b, r, err);
    *out = (cd_str){NULL, b.n ? b.n - 1 : 0};
    if (!st && !(out->p = cd_str_dup(a, (cd_str){b.p, out->n})))
        st = CD_FAIL(err, ENOMEM, "record");
    cd_buf_free(&b);
    return st;
}

/* What a host found out, as if it had been measured here. A worker without statistics gives those
 * of its costs. */
static void remote_result(const cd_remote_times *t, cd_measure_result *m) {
    const cd_remote_stats *s = &t->stats;
    *m = (cd_measure_result){.error_no = (int)t->error_no,
                             .at = t->timestamp,
                             .cycles = -1,
                             .instructions = -1,
                             .cache_misses = -1};
    if (t->error_no) {
        m->status = CD_FAIL(&m->err, EBACKEND, "%s",
                            t->message[0] ? t->message : cd_record_stats_error(m->error_no));
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
    m->time = (cd_timing){.n = (unsigned)s->n,
                          .n_kept = (unsigned)s->kept,
                          .number = (unsigned)s->number,
                          .disturbed = (unsigned)s->disturbed,
                          .min_s = s->min_s,
                          .median_s = s->median_s,
                          .mean_s = s->mean_s,
                          .std_s = s->std_s,
                          .cv = s->cv,
                          .ci = s->ci};
}

/* Has records measured elsewhere. All records are read before the first is sent, since the pool
 * answers in the order of the jobs and may give a job to several workers; a job keeps its record's
 * line until it is answered. */

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
} run_records;

/* ---- what is to be measured ---- */

/* The record as it is sent: complete, with the target that is asked for. */
static cdmpp_status keep_line(run_records *r, const cd_record_program *j, cdmpp_err *err) {
    if (CD_GROW(r->line, r->n_line, r->line_cap)) return CD_FAIL(err, ENOMEM, "%zu jobs", r->n);
    CD_TRY(remote_line(&r->arena, &j->record, &r->line[r->n_line], err));
    r->n_line++;
    return CDMPP_OK;
}

/* A record that the output has often enough is not sent. */
static cdmpp_status add(run_records *r, const cd_recline *l, cdmpp_err *err) {
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

static cdmpp_status collect_round(run_records *r, cd_record_reader *file, cdmpp_err *err) {
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
static cdmpp_status collect(run_records *r, cd_record_reader *file, cdmpp_err *err) {
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
static cdmpp_status take_answer(run_records *r, const cd_record_program *j,
                                const cd_remote_answer *a, cdmpp_err *err) {
    static const double none = CD_MEASURE_FAILED_S;
    cd_record record = j->record;
    cd_measure_result m;
    record.cost_s = a->times->n_cost ? a->times->cost_s : &none;
    record.n_cost = a->times->n_cost ? a->times->n_cost : 1;
    record.error_no = a->times->error_no;
    record.total_s = a->times->total_s;
    record.timestamp = a->times->timestamp;
    remote_result(a->times, &m);
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
static cdmpp_status on_answer_records(void *ctx, size_t i, const cd_remote_answer *a,
                                      cdmpp_err *err) {
    run_records *r = ctx;
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

static void on_event_records(void *ctx, const char *host, const char *what) {
    const run_records *r = ctx;
    cd_record_listener_note(r->o->listener, "%s: %s", host, what);
}

static cdmpp_status send_all(run_records *r, cdmpp_err *err) {
    const cd_remote_records_options *o = r->o;
    const cd_remote_way way = {o->host,     o->n_host,  o->port, o->transport,
                               &o->measure, o->threads, o->core};
    const cd_remote_watch w = {on_answer_records, on_event_records, r, o->measure.stop};
    const cd_remote_policy p = {.lease_s = o->lease_s, .core = o->core};
    cd_remote_host *host;
    CD_TRY(remote_way_hosts(&r->arena, &way, &host, err));
    CD_TRY(remote_setup_put(&r->setup, r->maker->tasks, r->maker->reference, err));
    return cd_remote_run(host, o->n_host, &p, r->line, r->n, r->setup.p, &w, err);
}

/* The first line of the statistics: who is asked. */
static cdmpp_status begin_output(run_records *r, cdmpp_err *err) {
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
    run_records r = {.o = o, .maker = maker, .out = out, .t = t};
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

enum { BROKE = 4 }; /* TVM's number of an error while running */

struct cd_remote_measure {
    cd_remote_measure_options o;
    cd_arena arena;        /* of the hosts' command lines */
    cd_remote_host *host;  /* (o.n_host) */
    cd_remote_about about; /* of the first */
};

typedef struct {
    cd_remote_measure *m;
    const cd_remote_measure_jobs *j;
    cd_arena arena; /* lines */
    cd_buf setup;
} run;

cdmpp_status cd_remote_measure_open(const cd_remote_measure_options *o, cd_remote_measure **out,
                                    cdmpp_err *err) {
    cd_remote_measure *m = cd_mem_zalloc(1, sizeof *m);
    if (!m) return CD_FAIL(err, ENOMEM, "hosts");
    m->o = *o;
    m->o.policy.core = o->core;
    const cd_remote_way way = {o->host,       o->n_host,  o->port, o->transport,
                               &m->o.measure, o->threads, o->core};
    cdmpp_status st = o->n_host ? CDMPP_OK : CD_FAIL(err, EUSAGE, "no host is named");
    if (!st) st = remote_way_hosts(&m->arena, &way, &m->host, err);
    if (!st) st = remote_ask(&m->host[0], &m->o.policy, o->measure.stop, &m->about, err);
    if (st) cd_remote_measure_close(m);
    else *out = m;
    return st;
}

void cd_remote_measure_close(cd_remote_measure *m) {
    if (!m) return;
    cd_arena_free(&m->arena);
    cd_mem_free(m);
}

const cd_remote_about *cd_remote_measure_about(const cd_remote_measure *m) { return &m->about; }
const char *cd_remote_measure_name(const cd_remote_measure *m) { return m->host[0].name; }

/* ---- answers ---- */

/* Costs are what a record of the worker has; they stand in place of its samples, which do not
 * travel. */
static void take_costs(const cd_remote_times *t, cd_measure_result *r) {
    cd_timing *x = &r->time;
    x->n = x->n_kept = t->n_cost < CD_TIMING_MAX ? t->n_cost : CD_TIMING_MAX;
    for (unsigned i = 0; i < x->n; i++) x->sample_s[i] = t->cost_s[i], x->kept[i] = true;
    if (!t->has_stats) r->run_s = t->total_s;
}

static cdmpp_status no_answer(const run *r, const cd_remote_answer *a, size_t i, cdmpp_err *err) {
    const char *host = a->host[0] ? a->host : r->m->host[0].name;
    if (a->status != CDMPP_EBACKEND) {
        cd_err_raise(err, a->status, __FILE__, __LINE__, "%.60s refuses a program: %.300s", host,
                     a->err ? a->err->msg : "");
        return a->status;
    }
    return CD_FAIL(err, EBACKEND,
                   "the connection to %.60s is lost, after %zu of %zu programs: %.300s", host, i,
                   r->j->n, a->err ? a->err->msg : "");
}

static cdmpp_status on_answer(void *ctx, size_t i, const cd_remote_answer *a, cdmpp_err *err) {
    const run *r = ctx;
    cd_measure_result out;
    if (a->status && !a->broke) return no_answer(r, a, i, err);
    if (a->status) {
        out = (cd_measure_result){0};
        cd_measure_result_fail(&out, BROKE, a->err);
    } else {
        if (strcmp(a->device, r->m->about.device) != 0)
            return CD_FAIL(
                err, EUSAGE,
                "%.60s is \"%.60s\" and %.60s is \"%.60s\": boards of one search are of one kind",
                a->host, a->device, r->m->host[0].name, r->m->about.device);
        remote_result(a->times, &out);
        if (!out.error_no) take_costs(a->times, &out);
    }
    return r->j->each(r->j->ctx, i, &out, err);
}

static void on_event(void *ctx, const char *host, const char *what) {
    cd_record_listener_note(((const run *)ctx)->m->o.listener, "%s: %s", host, what);
}

/* ---- a run ---- */
static cdmpp_status go(run *r, cdmpp_err *err) {
    const cd_remote_measure_options *o = &r->m->o;
    const cd_remote_measure_jobs *j = r->j;
    const cd_remote_watch w = {on_answer, on_event, r, o->measure.stop};
    cd_str *line = CD_NEWN(&r->arena, cd_str, j->n + 1);
    if (!line) return CD_FAIL(err, ENOMEM, "%zu jobs", j->n);
    for (size_t i = 0; i < j->n; i++)
        CD_TRY(remote_line(&r->arena, &j->job[i]->record, &line[i], err));
    CD_TRY(remote_setup_put(&r->setup, j->tasks, j->check, err));
    return cd_remote_run(r->m->host, j->one ? 1 : o->n_host, &r->m->o.policy, line, j->n,
                         r->setup.p, &w, err);
}

cdmpp_status cd_remote_measure_run(cd_remote_measure *m, const cd_remote_measure_jobs *j,
                                   cdmpp_err *err) {
    run r = {.m = m, .j = j};
    const cdmpp_status st = go(&r, err);
    cd_buf_free(&r.setup);
    cd_arena_free(&r.arena);
    return st;
}

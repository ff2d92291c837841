/* Mode "records" of cdmpp-profile with --host: the programs are measured by workers on other machines. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profiler/cmd/main_profile.h"
#include "profiler/records/records.h"
#include "profiler/remote/remote.h"

typedef struct {
    cd_main_profile *o;
    cd_recmaker *maker;
    cd_record_reader *file;
    cd_record_log *log;
    cd_arena arena;             /* hosts, lines */
    cd_record_program *job;             /* (n) */
    cd_str *line;               /* (n) what is sent */
    size_t n, cap, known, read, measured, failed, lost;
    unsigned round;             /* from 1 */
    FILE *stats;
    cd_main_profile_keep *keep; /* NULL: no --store */
    cd_buf setup;
} run;

/* ---- what is to be measured ---- */
static cdmpp_status grow(run *r, cdmpp_err *err) {
    const size_t cap = r->cap ? 2 * r->cap : 256;
    if (r->n < r->cap) return CDMPP_OK;
    cd_record_program *job = cd_mem_realloc(r->job, r->cap * sizeof *job, cap * sizeof *job);
    if (job) r->job = job;
    cd_str *line = job ? cd_mem_realloc(r->line, r->cap * sizeof *line, cap * sizeof *line) : NULL;
    if (!line) return CD_FAIL(err, ENOMEM, "%zu jobs", cap);
    r->line = line;
    r->cap = cap;
    return CDMPP_OK;
}

/* The record as it is sent: complete, with the target that is asked for. */
static cdmpp_status keep_line(run *r, const cd_record_program *j, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = cd_record_write(&b, &j->record, err);
    cd_str *to = &r->line[r->n];
    *to = (cd_str){NULL, b.n ? b.n - 1 : 0}; /* without the line's end */
    if (!st && !(to->p = cd_str_dup(&r->arena, (cd_str){b.p, to->n}))) st = CD_FAIL(err, ENOMEM, "record");
    cd_buf_free(&b);
    return st;
}

static cdmpp_status add(run *r, const cd_recline *l, cdmpp_err *err) {
    bool mine = false;
    CD_TRY(grow(r, err));
    cd_record_program *j = &r->job[r->n];
    cdmpp_status st = cd_record_program_make(r->maker, l, j, err);
    if (!st) st = cd_record_log_claim(r->log, j->id, r->round, &mine, err);
    if (!st && mine) st = keep_line(r, j, err);
    if (st || !mine) {
        r->known += !st;
        cd_record_program_free(j);
        return st;
    }
    r->n++;
    return CDMPP_OK;
}

static cdmpp_status collect_round(run *r, cd_record_reader *file, cdmpp_err *err) {
    for (size_t read = 0; !*r->o->stop && (!r->o->limit || read < (size_t)r->o->limit); read++) {
        cdmpp_err why = {0};
        cd_recline l = {0};
        cdmpp_status st = cd_record_reader_next(file, &l, &why);
        if (!st && !l.text) break;
        r->read += r->round == 1;
        if (!st) st = add(r, &l, &why);
        if (st && r->round == 1) CD_TRY(cd_main_profile_bad(r->o, &why, NULL, err));
    }
    return CDMPP_OK;
}

/* All rounds, one after the other: jobs keep their path's text of the file that they came from, which is the caller's. */
static cdmpp_status collect(run *r, cdmpp_err *err) {
    r->round = 1;
    CD_TRY(collect_round(r, r->file, err));
    while ((int)r->round < r->o->rounds) {
        cd_record_reader *again = NULL;
        const size_t before = r->n;
        r->round++;
        CD_TRY(cd_record_reader_open(r->o->operand.v, r->o->operand.n, &again, err));
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
    cd_buf_putf(&r->setup, ",\"check\":%s}", r->o->check ? "true" : "false");
    cd_buf_free(&tasks);
    if (!st && r->setup.oom) st = CD_FAIL(err, ENOMEM, "tasks");
    return st;
}

/* ---- what comes back ---- */
/* What a host found out, as if it had been measured here; without its statistics, those of the costs. */
static void measured_of(const cd_remote_times *t, cd_measure_result *m) {
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

/* To --stats and --store. */
static cdmpp_status put_more(run *r, const cd_record_program *j, const cd_record *record, const cd_remote_answer *a, long line, cdmpp_err *err) {
    cd_measure_result m;
    cd_buf b = {0};
    if (!r->stats && !r->keep) return CDMPP_OK;
    measured_of(a->times, &m);
    cd_main_profile_keep_host(r->keep, a->host, a->device);
    CD_TRY(cd_main_profile_keep_add(r->keep, record, cd_task_registry_find(r->maker->tasks, record->workload_key), &m, line, err));
    if (!r->stats) return CDMPP_OK;
    cd_record_stats_line(&b, j, line, &m, a->host);
    const bool good = !b.oom && fwrite(b.p, 1, b.n, r->stats) == b.n && fflush(r->stats) == 0;
    cd_buf_free(&b);
    return good ? CDMPP_OK : cd_err_at(err, CD_FAIL(err, EIO, "cannot write: %s", strerror(errno)), r->o->stats, 0);
}

static cdmpp_status take_answer(run *r, const cd_record_program *j, const cd_remote_answer *a, cdmpp_err *err) {
    static const double none = CD_MEASURE_FAILED_S;
    cd_record out = j->record;
    long line = 0;
    out.cost_s = a->times->n_cost ? a->times->cost_s : &none;
    out.n_cost = a->times->n_cost ? a->times->n_cost : 1;
    out.error_no = a->times->error_no;
    out.total_s = a->times->total_s;
    out.timestamp = a->times->timestamp;
    CD_TRY(cd_record_log_add(r->log, &out, &line, err));
    CD_TRY(put_more(r, j, &out, a, line, err));
    r->measured += !out.error_no;
    r->failed += out.error_no != 0;
    if (out.error_no)
        cd_log_put(r->o->log, CD_LOG_WARNING, "%s:%ld: error %lld on %s%s%s", j->path, j->number, (long long)out.error_no, a->host,
                   a->times->message[0] ? ": " : "", a->times->message);
    return CDMPP_OK;
}

static cdmpp_status on_answer(void *ctx, size_t i, const cd_remote_answer *a, cdmpp_err *err) {
    run *r = ctx;
    cd_record_program *j = &r->job[i];
    cdmpp_status st = CDMPP_OK;
    if (a->status) {
        cdmpp_err why = *a->err;
        r->lost++;
        (void)cd_err_at(&why, a->status, j->path, j->number);
        r->o->bad++;
        cd_log_err(r->o->log, CD_LOG_WARNING, &why);
    } else {
        st = take_answer(r, j, a, err);
    }
    cd_record_program_free(j);
    return st;
}

static void on_event(void *ctx, const char *host, const char *what) {
    const run *r = ctx;
    cd_log_put(r->o->log, CD_LOG_WARNING, "%s: %s", host, what);
}

/* What the options say of measuring, as words for the workers. */
enum { MAX_WORD = 16 };
static cdmpp_status words_of(run *r, const char *word[MAX_WORD], size_t *n, cdmpp_err *err) {
    const cd_main_profile *o = r->o;
    const struct {
        const char *name;
        int value;
    } number[] = {{"budget-ms", o->budget_ms}, {"timeout", o->timeout_s}, {"build-timeout", o->build_timeout_s}, {"memory-mb", o->memory_mb},
                  {"threads", o->threads}};
    char text[128];
    *n = 0;
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        snprintf(text, sizeof text, "--%s=%d", number[i].name, number[i].value);
        if (number[i].value > 0) word[(*n)++] = cd_str_dup(&r->arena, (cd_str){text, strlen(text)});
    }
    if (o->cold) word[(*n)++] = "--cold";
    if (o->cool) word[(*n)++] = "--cool";
    if (o->no_pin) word[(*n)++] = "--no-pin";
    const char *const told[][2] = {{"isa", o->isa}, {"device", o->device}, {"cflags", o->cflags}};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        snprintf(text, sizeof text, "--%s=%.100s", told[i][0], told[i][1] ? told[i][1] : "");
        if (told[i][1]) word[(*n)++] = cd_str_dup(&r->arena, (cd_str){text, strlen(text)});
    }
    for (size_t i = 0; i < *n; i++)
        if (!word[i]) return CD_FAIL(err, ENOMEM, "options");
    return CDMPP_OK;
}

static cdmpp_status send_all(run *r, cdmpp_err *err) {
    const cd_main_profile *o = r->o;
    cd_remote_host *host = cd_arena_zalloc(&r->arena, o->host.n, sizeof *host);
    const cd_remote_watch w = {on_answer, on_event, r, o->stop};
    const cd_remote_policy p = {.lease_s = o->lease_s};
    const char *word[MAX_WORD];
    size_t n_word;
    if (!host) return CD_FAIL(err, ENOMEM, "hosts");
    CD_TRY(words_of(r, word, &n_word, err));
    for (size_t i = 0; i < o->host.n; i++)
        CD_TRY(cd_remote_reach(&r->arena, o->host.v[i], o->port, o->transport, word, n_word, &host[i], err));
    CD_TRY(make_setup(r, err));
    return cd_remote_run(host, o->host.n, &p, r->line, r->n, r->setup.p, &w, err);
}

static cdmpp_status tell(const run *r, cdmpp_err *err) {
    cd_buf b = {0}, all = {0};
    if (!r->o->json) {
        cd_buf_putf(&b, "%zu records: %zu measured, %zu failed, %zu without an answer, %zu were there already\n", r->read, r->measured, r->failed, r->lost, r->known);
        return cd_command_print(&b, err);
    }
    cd_buf_putf(&b, "{\"records\":%zu,\"measured\":%zu,\"failed\":%zu,\"lost\":%zu,\"known\":%zu,\"bad\":%zu}", r->read, r->measured, r->failed, r->lost,
                r->known, r->o->bad);
    cd_command_json(&all, "cdmpp.profile_remote", "cdmpp-profile", &b);
    return cd_command_print(&all, err);
}

/* The first line of --stats: who is asked. */
static cdmpp_status open_more(run *r, cdmpp_err *err) {
    const cd_main_profile *o = r->o;
    cd_buf b = {0};
    CD_TRY(cd_main_profile_keep_open(o, &r->keep, err));
    if (!o->stats) return CDMPP_OK;
    r->stats = fopen(o->stats, "a");
    if (!r->stats) return cd_err_at(err, CD_FAIL(err, EIO, "cannot open: %s", strerror(errno)), o->stats, 0);
    cd_buf_puts(&b, "{\"schema\":\"cdmpp.profile_stats\",\"hosts\":[");
    for (size_t i = 0; i < o->host.n; i++) {
        if (i) cd_buf_puts(&b, ",");
        cd_buf_put_json_str(&b, o->host.v[i], strlen(o->host.v[i]));
    }
    cd_buf_putf(&b, "],\"threads\":%d}\n", o->threads);
    if (!b.oom) (void)fwrite(b.p, 1, b.n, r->stats); /* the next line's check sees what went wrong */
    cd_buf_free(&b);
    return CDMPP_OK;
}

static cdmpp_status close_all(run *r, cdmpp_status st, cdmpp_err *err) {
    const cdmpp_status closed = cd_record_log_close(r->log, st ? NULL : err);
    if (!st) st = closed;
    const cdmpp_status kept = cd_main_profile_keep_close(r->keep, st ? NULL : err);
    if (!st) st = kept;
    if (r->stats && fclose(r->stats) != 0 && !st) st = cd_err_at(err, CD_FAIL(err, EIO, "cannot write: %s", strerror(errno)), r->o->stats, 0);
    return st;
}

cdmpp_status cd_main_profile_remote(cd_main_profile *o, cd_recmaker *maker, cd_record_reader *file, cdmpp_err *err) {
    run r = {.o = o, .maker = maker, .file = file};
    cdmpp_status st = cd_record_log_open(o->out, o->retry, &r.log, err);
    if (!st) st = open_more(&r, err);
    if (!st) st = collect(&r, err);
    if (!st && r.n) st = send_all(&r, err);
    st = close_all(&r, st, err);
    r.o->bad += r.failed;
    if (!st) st = tell(&r, err);
    for (size_t i = 0; i < r.n; i++) cd_record_program_free(&r.job[i]);
    cd_mem_free(r.job);
    cd_mem_free(r.line);
    cd_buf_free(&r.setup);
    cd_arena_free(&r.arena);
    return st;
}

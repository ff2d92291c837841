/* The worker's side: makes a program of each record that comes in, measures it, and answers with
 * its times and statistics. Tasks come once, as text, so that a worker needs no files. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/io/io.h"
#include "profiler/describe/describe.h"
#include "profiler/remote/remote.h"
#include "profiler/remote/remote_internal.h"

/* The worker's side of the protocol: a line in, a line out. A thread of its own sends signs of life
 * while a job is measured, since the main thread waits for the program. */

#define ALIVE_S 5.0

typedef struct server {
    const cd_remote_service *s;
    int in, out;
    pthread_mutex_t lock; /* of what follows and of writing */
    pthread_cond_t change;
    int64_t lease;    /* being worked on; -1: none */
    bool end, broken; /* nobody reads any more */
    cdmpp_err unfit;  /* why the setup failed; code OK: it did not */
    cd_buf line;
    char block[65536];
    size_t at, n; /* of block */
} server;

static void put(server *v, const char *p, size_t n) {
    if (!v->broken) v->broken = !cd_fd_put(v->out, p, n);
}

/* ---- signs of life ---- */
static void *live(void *arg) {
    server *v = arg;
    const double every = v->s->alive_s > 0 ? v->s->alive_s : ALIVE_S;
    pthread_mutex_lock(&v->lock);
    while (!v->end) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        const double t = (double)until.tv_nsec * 1e-9 + every;
        until.tv_sec += (time_t)t;
        until.tv_nsec = (long)((t - floor(t)) * 1e9);
        const int64_t before = v->lease;
        const int rc = pthread_cond_timedwait(&v->change, &v->lock, &until);
        if (rc != ETIMEDOUT || v->lease < 0 || v->lease != before) continue;
        char text[64];
        const int n =
            snprintf(text, sizeof text, "{\"lease\":%lld,\"alive\":true}\n", (long long)v->lease);
        put(v, text, (size_t)n);
    }
    pthread_mutex_unlock(&v->lock);
    return NULL;
}

static void work_on(server *v, int64_t lease) {
    pthread_mutex_lock(&v->lock);
    v->lease = lease;
    pthread_cond_signal(&v->change);
    pthread_mutex_unlock(&v->lock);
}

static void answer(server *v, const cd_buf *b) {
    pthread_mutex_lock(&v->lock);
    v->lease = -1;
    put(v, b->p, b->n);
    pthread_mutex_unlock(&v->lock);
}

/* ---- one job ---- */
static cdmpp_status do_job(const server *v, const cd_json *job, cd_remote_times *t,
                           cdmpp_err *err) {
    const cd_json *record = cd_json_get(job, "record");
    if (!record || record->kind != CD_JSON_STR)
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected a record as text"), "record");
    if (v->unfit.code) {
        *err = v->unfit;
        return err->code;
    }
    return v->s->measure(v->s->ctx, record->u.s, t, err);
}

/* Message and statistics only where they are known. */
static void put_times(cd_json_writer *w, const cd_remote_times *t) {
    cd_json_write_member_int(w, "error_no", t->error_no);
    cd_json_write_key(w, "costs"),
        cd_json_write_reals(w, t->cost_s,
                            t->n_cost < CD_REMOTE_COSTS ? t->n_cost : CD_REMOTE_COSTS);
    cd_json_write_member_real(w, "total_s", t->total_s);
    cd_json_write_member_int(w, "timestamp", t->timestamp);
    if (t->message[0]) cd_json_write_member_str(w, "message", t->message);
    if (!t->has_stats) return;
    cd_json_write_key(w, "stats"), cd_json_write_open(w, '{');
#define CD_X(name) cd_json_write_member_real(w, #name, t->stats.name);
    CD_REMOTE_STATS(CD_X)
#undef CD_X
    cd_json_write_close(w, '}');
}

static void put_refusal(cd_json_writer *w, cdmpp_status st, const cdmpp_err *e) {
    char text[600];
    cdmpp_err_format(e, text, sizeof text);
    cd_json_write_member_str(w, "refused", cdmpp_status_name(st));
    cd_json_write_member_str(w, "message", text);
}

/* A setup has no answer of its own; if it fails, every job is refused with its reason. */
static cdmpp_status one_line(server *v, cd_arena *a, cd_buf *b, const char *text, size_t n,
                             cdmpp_err *err) {
    const cd_json *job = NULL;
    cd_json_writer w = {.out = b};
    int64_t lease = -1;
    cdmpp_err e = {0};
    cd_remote_times t = {0};
    cd_arena_reset(a);
    cd_buf_clear(b);
    cdmpp_status st = cd_json_parse(a, text, n, &job, &e);
    const cd_json *setup = st ? NULL : cd_json_get(job, "setup");
    if (setup) {
        v->unfit = (cdmpp_err){0};
        if (v->s->setup && v->s->setup(v->s->ctx, setup, &v->unfit) == CDMPP_OK)
            v->unfit.code = CDMPP_OK;
        return CDMPP_OK;
    }
    if (!st)
        st = cd_err_key(&e,
                        cd_json_int(cd_json_get(job, "lease") ? cd_json_get(job, "lease") : job, 0,
                                    INT64_MAX, &lease, &e),
                        "lease");
    if (!st) {
        work_on(v, lease);
        st = do_job(v, job, &t, &e);
    }
    cd_json_write_open(&w, '{');
    cd_json_write_member_int(&w, "lease", lease);
    if (st) put_refusal(&w, st, &e);
    else put_times(&w, &t);
    cd_json_write_close(&w, '}');
    cd_buf_puts(b, "\n");
    if (b->oom) return CD_FAIL(err, ENOMEM, "answer");
    answer(v, b);
    return CDMPP_OK;
}

/* ---- lines ---- */

/* The next whole line into v->line; *more false at the end of the input. What follows the last line
 * end is half a job: whoever sent it is gone. */
static cdmpp_status next_line(server *v, bool *more, cdmpp_err *err) {
    cd_buf_clear(&v->line);
    for (*more = true;;) {
        char *end = memchr(v->block + v->at, '\n', v->n - v->at);
        const size_t to = end ? (size_t)(end - v->block) : v->n;
        cd_buf_put(&v->line, v->block + v->at, to - v->at);
        v->at = end ? to + 1 : to;
        if (v->line.oom) return CD_FAIL(err, ENOMEM, "job");
        if (v->line.n > 64 * CD_REMOTE_LINE)
            return CD_FAIL(err, ERANGE, "a job of more than %zu bytes", 64 * CD_REMOTE_LINE);
        if (end) return CDMPP_OK;
        const ssize_t k = read(v->in, v->block, sizeof v->block);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return CD_FAIL(err, EIO, "cannot read jobs: %s", strerror(errno));
        v->at = 0;
        v->n = (size_t)k;
        if (!k) {
            *more = false;
            return CDMPP_OK;
        }
    }
}

/* The hello goes first, also where no job ever comes. */
static cdmpp_status serve(server *v, cdmpp_err *err) {
    cd_arena a = {0};
    cd_buf b = {0};
    bool more = true;
    static const cd_remote_about nothing = {0};
    cd_remote_hello_put(&b, v->s->about ? v->s->about : &nothing);
    cdmpp_status st = CDMPP_OK;
    if (b.oom) st = CD_FAIL(err, ENOMEM, "hello");
    else answer(v, &b);
    while (!st && !v->broken) {
        st = next_line(v, &more, err);
        if (st || !more) break;
        if (v->line.n) st = one_line(v, &a, &b, v->line.p, v->line.n, err);
    }
    cd_buf_free(&b);
    cd_arena_free(&a);
    return st;
}

/* The condition waits on the monotonic clock: a clock that is set must not stop the signs of
 * life. */
cdmpp_status cd_remote_serve(int in, int out, const cd_remote_service *s, cdmpp_err *err) {
    server *v = cd_mem_zalloc(1, sizeof *v);
    pthread_condattr_t attr;
    pthread_t thread;
    if (!v) return CD_FAIL(err, ENOMEM, "worker");
    v->s = s;
    v->in = in;
    v->out = out;
    v->lease = -1;
    pthread_mutex_init(&v->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&v->change, &attr);
    pthread_condattr_destroy(&attr);
    cdmpp_status st = CDMPP_OK;
    const int rc = pthread_create(&thread, NULL, live, v);
    if (rc) st = CD_FAIL(err, EBACKEND, "no thread for signs of life: %s", strerror(rc));
    else {
        st = serve(v, err);
        pthread_mutex_lock(&v->lock);
        v->end = true;
        pthread_cond_signal(&v->change);
        pthread_mutex_unlock(&v->lock);
        pthread_join(thread, NULL);
    }
    pthread_cond_destroy(&v->change);
    pthread_mutex_destroy(&v->lock);
    cd_buf_free(&v->line);
    cd_mem_free(v);
    return st;
}

typedef struct {
    const cd_remote_worker_options *o;
    cd_task_registry *tasks;
    cd_program *program;
    cd_record_maker maker;
    cd_measure *m;
} worker;

/* {"tasks": our text form, "check": true} */
static cdmpp_status on_setup(void *ctx, const cd_json *setup, cdmpp_err *err) {
    worker *w = ctx;
    cd_str text;
    const cd_json *check = cd_json_get(setup, "check");
    CD_TRY(cd_json_need_str(setup, "tasks", &text, err));
    CD_TRY(cd_task_registry_load_text(w->tasks, "setup", text.p, text.n, err));
    w->maker.reference = check && check->kind == CD_JSON_BOOL && check->u.i;
    return CDMPP_OK;
}

static void put_stats(const cd_measure_result *m, cd_remote_times *out) {
    const cd_timing *t = &m->time;
    snprintf(out->message, sizeof out->message, "%.199s", m->err.msg);
    out->has_stats = !m->error_no;
    out->stats = (cd_remote_stats){.n = t->n,
                                   .kept = t->n_kept,
                                   .number = t->number,
                                   .disturbed = t->disturbed,
                                   .attempts = m->attempts,
                                   .flags = m->flags,
                                   .min_s = t->min_s,
                                   .median_s = t->median_s,
                                   .mean_s = t->mean_s,
                                   .std_s = t->std_s,
                                   .cv = t->cv,
                                   .ci = t->ci,
                                   .quiet_before = m->quiet_before,
                                   .quiet_after = m->quiet_after,
                                   .build_s = m->build_s,
                                   .run_s = m->run_s,
                                   .max_error = m->max_error,
                                   .cycles = m->cycles,
                                   .instructions = m->instructions,
                                   .cache_misses = m->cache_misses};
}

static cdmpp_status measure_job(worker *w, cd_record_program *j, cd_remote_times *out,
                                cdmpp_err *err) {
    cd_record r;
    /* it makes the shapes, too: packed parameters need them */
    CD_TRY(cd_record_program_code(&w->maker, j, err));
    cd_measure_item item = {.code = &j->code,
                            .arg = j->arg,
                            .reference = w->maker.reference ? &j->reference : NULL,
                            .target = j->target,
                            .threads =
                                cd_record_program_threads(j, w->o->threads, cd_affinity_count())};
    /* an answer with an error number, not a refusal */
    if (j->why.code) cd_measure_result_fail(&item.out, 1, &j->why);
    else CD_TRY(cd_measure_one(w->m, &item, err));
    CD_TRY(cd_record_program_record(j, &item.out, &r, err));
    out->error_no = r.error_no;
    out->total_s = r.total_s;
    out->timestamp = r.timestamp;
    put_stats(&item.out, out);
    for (uint32_t i = 0; i < r.n_cost && i < CD_REMOTE_COSTS; i++)
        out->cost_s[out->n_cost++] = r.cost_s[i];
    return CDMPP_OK;
}

static cdmpp_status on_job(void *ctx, cd_str line, cd_remote_times *out, cdmpp_err *err) {
    worker *w = ctx;
    cd_record_program j;
    const cd_recline l = {.path = "job", .number = 0, .text = line.p, .len = line.n};
    cdmpp_status st = cd_record_program_make(&w->maker, &l, &j, err);
    if (!st) st = measure_job(w, &j, out, err);
    cd_record_program_free(&j);
    return st;
}

/* The name is that which records of a local run get, so that both ways of measuring make the same
 * log. */
static void describe(const char *core, cd_remote_about *a) {
    /* by cd_isa */
    static const char *const isa[] = {"", "avx512", "avx2", "sse2", "aarch64", "armv7"};
    cd_describe_namer namer = {.core = core};
    cd_host_info h;
    cd_host_info_read("", &h);
    const char *name = cd_describe_namer_ask(&namer, (cd_str){"llvm", 4});
    snprintf(a->device, sizeof a->device, "%s", h.cpu);
    snprintf(a->model, sizeof a->model, "%s", name ? name : "");
    snprintf(a->isa, sizeof a->isa, "%s", isa[cd_isa_here()]);
    snprintf(a->core, sizeof a->core, "%s", core ? core : "");
    a->cpus = cd_affinity_count();
}

cdmpp_status cd_remote_worker_run(const cd_remote_worker_options *o, cdmpp_err *err) {
    worker w = {.o = o};
    cd_remote_about about = {0};
    /* before the thread of cd_remote_serve: it forks */
    cdmpp_status st = cd_measure_open(&o->measure, &w.m, err);
    if (!st) st = cd_task_registry_new(&w.tasks, err);
    if (!st) st = cd_program_new(&w.program, err);
    if (!st) {
        w.maker = (cd_record_maker){
            .tasks = w.tasks, .program = w.program, .dialect = o->dialect, .isa = o->measure.isa};
        describe(o->core, &about);
        const cd_remote_service s = {on_setup, on_job, &w, &about, 0};
        st = cd_remote_serve(STDIN_FILENO, STDOUT_FILENO, &s, err);
    }
    cd_measure_close(w.m);
    cd_program_free(w.program);
    cd_task_registry_free(w.tasks);
    return st;
}

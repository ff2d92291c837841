/* Measures one program in a process of its own. The noise probe runs before and after the timing: a
 * measurement in between that was not quiet is made again, up to three times, and the quietest is
 * kept. */
#include "profiler/measure/measure_internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "profiler/host/host.h"

enum { ATTEMPTS = 3 };
#define LOST_SHARE  0.01 /* of a repeat's time: then it was disturbed */
#define STEADY      1.1  /* two probes within this ratio: the same load before and after */
#define NOISY_SHARE 0.3  /* of the repeats: then the measurement was */

typedef struct {
    const cd_backend_kind *kind;
    cd_loaded *program;
    cd_backend *backend;
    int threads;
    bool cool;
    size_t others_bytes;
    cd_cache_flush flushed; /* of a cool measurement */
    cd_noise_probe_mark mark;
} subject;

/* ---- what timing.h asks for ---- */
static cdmpp_status run(void *ctx, unsigned times, double *seconds, cdmpp_err *err) {
    subject *s = ctx;
    cd_noise_probe_begin(&s->mark);
    return s->kind->run(s->program, times, seconds, err);
}

static cdmpp_status flush(void *ctx, cdmpp_err *err) {
    subject *s = ctx;
    if (s->others_bytes) return cd_cache_flush_bytes(&s->flushed, s->others_bytes, err);
    if (s->cool && s->kind->dialect == CD_DIALECT_C)
        return cd_cache_flush_caches(&s->flushed, CD_WIPE_CORE, err);
    return s->kind->flush ? s->kind->flush(s->backend, err) : CDMPP_OK;
}

/* Only a program on a processor competes with other processes for it. */
static bool disturbed(void *ctx) {
    const subject *s = ctx;
    return s->kind->dialect == CD_DIALECT_C &&
           cd_noise_probe_lost(&s->mark, s->threads, LOST_SHARE);
}

/* ---- timing ---- */
static bool noisy(const cd_measure_result *m) {
    return m->quiet_before > CD_QUIET_LIMIT || m->quiet_after > CD_QUIET_LIMIT ||
           m->time.disturbed > NOISY_SHARE * m->time.n;
}

/* As slow before as after, and no repeat disturbed: the load is constant (a neighbour on the same
 * core), and another attempt would not help. */
static bool steady(const cd_measure_result *m) {
    const double low = m->quiet_before < m->quiet_after ? m->quiet_before : m->quiet_after;
    const double high = m->quiet_before < m->quiet_after ? m->quiet_after : m->quiet_before;
    return low > CD_QUIET_LIMIT && high < low * STEADY &&
           m->time.disturbed <= NOISY_SHARE * m->time.n;
}

/* How far from quiet: the lower, the better. */
static double unrest(const cd_measure_result *m) {
    const double q = m->quiet_before > m->quiet_after ? m->quiet_before : m->quiet_after;
    return q - 1 + (double)m->time.disturbed / (m->time.n ? m->time.n : 1) + m->time.ci;
}

static cdmpp_status attempt(subject *s, const cd_timing_policy *p, cd_noise_probe *q,
                            cd_measure_result *m, cdmpp_err *err) {
    const cd_timing_subject t = {s, cd_timing_clock_now, run, flush, disturbed};
    const bool ask = s->kind->on_host && s->kind->on_host(s->backend);
    m->quiet_before = ask ? cd_noise_probe_ratio(q) : 0;
    CD_TRY(cd_timing_run(p, &t, &m->time, err));
    m->quiet_after = ask ? cd_noise_probe_ratio(q) : 0;
    return CDMPP_OK;
}

/* Attempts until one is quiet, or steadily not quiet. */
static cdmpp_status measure(subject *s, const cd_job *job, cd_noise_probe *q, cd_measure_result *m,
                            cdmpp_err *err) {
    static const struct timespec pause = {0, 20 * 1000 * 1000};
    const cd_timing_policy p =
        cd_timing_defaults(job->timing, cd_timing_clock_check(cd_timing_clock_now, NULL).tick_s);
    cd_measure_result now = *m;
    for (unsigned k = 0; k < ATTEMPTS; k++) {
        if (k) nanosleep(&pause, NULL);
        CD_TRY(attempt(s, &p, q, &now, err));
        if (k == 0 || unrest(&now) < unrest(m)) *m = now;
        m->attempts = k + 1;
        if (!noisy(&now) || steady(&now)) break;
    }
    if (noisy(m)) m->flags |= CD_MEASURE_NOISY;
    if (m->time.ci > p.ci) m->flags |= CD_MEASURE_WIDE;
    return CDMPP_OK;
}

/* Run once more with hardware counters: counting during the timing would disturb it. */
static cdmpp_status count(subject *s, cd_measure_result *m, cdmpp_err *err) {
    cd_perf_counters p;
    double v[CD_PERF_COUNT], seconds;
    const unsigned times = m->time.number;
    if (s->kind->dialect != CD_DIALECT_C) return CDMPP_OK;
    cd_perf_counters_open(&p);
    cd_perf_counters_start(&p);
    const cdmpp_status st =
        p.fd[CD_PERF_CYCLES] >= 0 ? s->kind->run(s->program, times, &seconds, err) : CDMPP_OK;
    cd_perf_counters_stop(&p, v);
    cd_perf_counters_close(&p);
    m->cycles = v[CD_PERF_CYCLES] / times;
    m->instructions = v[CD_PERF_INSTRUCTIONS] / times;
    m->cache_misses = v[CD_PERF_CACHE_MISSES] / times;
    return st;
}

/* ---- one job ---- */
static cdmpp_status open_backend(cd_measure_worker *w, const cd_job *j, bool compiler,
                                 cdmpp_err *err) {
    char name[sizeof w->name];
    snprintf(name, sizeof name, "%s|%s|%s", j->backend, j->device, j->target);
    if (w->backend && !strcmp(name, w->name)) return CDMPP_OK;
    cd_worker_close(w);
    w->kind = cd_backend_find(j->backend);
    if (!w->kind)
        return CD_FAIL(err, EUSAGE, "expected a back end of %s, found '%.40s'", cd_backend_names(),
                       j->backend);
    CD_TRY((compiler && w->kind->open_compiler ? w->kind->open_compiler : w->kind->open)(
        j->device, j->target, &w->backend, err));
    memcpy(w->name, name, sizeof name);
    return CDMPP_OK;
}

/* Compile in this process, unless the cache of GPU binaries has the same program for the same
 * device; `anew`: in any case. */
static cdmpp_status build_here(cd_measure_worker *w, const cd_job *j, bool anew, cd_build *b,
                               cd_measure_result *m, cdmpp_err *err) {
    char key[CD_OBJCACHE_KEY];
    cd_buf identity = {0};
    if (w->kind->identity) w->kind->identity(w->backend, &identity);
    const bool keeps = identity.n && !identity.oom;
    if (keeps) cd_object_binary_key((cd_str){identity.p, identity.n}, &j->code, key);
    cd_buf_free(&identity);
    b->cached = keeps && !anew &&
                cd_object_binary_get(j->cache, j->cache_bytes, key, &b->object, &b->object_bytes);
    if (b->cached) return CDMPP_OK;
    const double begin = cd_clock_wall();
    CD_TRY(w->kind->build(w->backend, b, 1, 1, err));
    m->build_s += cd_clock_wall() - begin;
    if (!b->status && keeps)
        (void)cd_object_binary_put(j->cache, j->cache_bytes, key, b->object, b->object_bytes);
    if (!b->status) return CDMPP_OK;
    m->error_no = b->error_no ? b->error_no : 3;
    if (err) *err = b->err;
    return b->status;
}

/* The object as it came, or made here. */
static cdmpp_status get_object(cd_measure_worker *w, const cd_job *j, cd_build *b,
                               cd_measure_result *m, cdmpp_err *err) {
    union { /* load() does not write to it */
        const char *path;
        void *object;
    } u = {j->object};
    *b = (cd_build){.code = &j->code,
                    .object = j->object[0] ? u.object : NULL,
                    .object_bytes = strlen(j->object) + 1};
    return b->object ? CDMPP_OK : build_here(w, j, false, b, m, err);
}

static void drop_object(const cd_measure_worker *w, const cd_job *j, cd_build *b) {
    if (!j->object[0] && w->kind && w->kind->identity) cd_mem_free(b->object);
    b->object = NULL;
}

/* A device may refuse a cached binary: some drivers change without changing their identity. Then
 * compile it again. */
static cdmpp_status load_it(cd_measure_worker *w, const cd_job *j, cd_build *b,
                            const void *const *content, cd_loaded **out, cd_measure_result *m,
                            cdmpp_err *err) {
    const cdmpp_status st = w->kind->load(w->backend, b, content, out, err);
    if (st != CDMPP_EBACKEND || !b->cached) return st;
    drop_object(w, j, b);
    CD_TRY(build_here(w, j, true, b, m, err));
    m->error_no = 4;
    return w->kind->load(w->backend, b, content, out, err);
}

/* Check first, then time: a wrong program is not worth timing. error_no is set before each step
 * that may fail with it. */
static cdmpp_status do_program(cd_measure_worker *w, const cd_job *j, cd_build *b,
                               cd_noise_probe *q, cd_measure_result *m, cdmpp_err *err) {
    subject s = {.kind = w->kind,
                 .backend = w->backend,
                 .threads = j->threads,
                 .cool = j->timing.cool,
                 .others_bytes = j->others_bytes};
    cd_result_check *c = NULL;
    const void *const *content = NULL;
    cdmpp_status st = CDMPP_OK;
    m->error_no = 4;
    if (j->reference.n_launch)
        st = cd_result_check_reference(&j->reference, j->reference_object, j->target,
                                       w->kept ? *w->kept : -1, &c, err);
    if (!st && c) st = cd_result_check_content(c, &j->code, j->arg, &content, err);
    if (!st) st = load_it(w, j, b, content, &s.program, m, err);
    if (!st && c) {
        st = cd_result_check_compare(c, w->kind, s.program, &j->code, &m->max_error, err);
        if (st == CDMPP_EINVALID) m->error_no = 5;
        m->flags |= CD_MEASURE_CHECKED;
    }
    if (!st) st = measure(&s, j, q, m, err);
    if (!st) st = count(&s, m, err);
    if (s.program) w->kind->unload(s.program);
    cd_result_check_free(c);
    cd_cache_flush_free(&s.flushed);
    return st;
}

/* The memory limit is set here, not in the supervisor: only this process may be short of memory.
 * run_s is all but compiling. */
void cd_worker_do(cd_measure_worker *w, const cd_job *j, cd_worker_result *out) {
    cd_noise_probe q = {j->best_s};
    cd_build b = {0};
    cd_measure_result *m = &out->measured;
    const double begin = cd_clock_wall();
    memset(out, 0, sizeof *out);
    m->cycles = m->instructions = m->cache_misses = -1;
    m->at = (int64_t)time(NULL);
    if (j->memory_bytes)
        (void)setrlimit(RLIMIT_AS, &(struct rlimit){j->memory_bytes, j->memory_bytes});
    m->error_no = 8;
    if (j->pin) cd_affinity_last(j->threads);
    m->status = open_backend(w, j, false, &m->err);
    if (m->status) m->error_no = CD_ANSWER_NO_DEVICE;
    if (!m->status) m->status = get_object(w, j, &b, m, &m->err);
    if (!m->status) m->status = do_program(w, j, &b, &q, m, &m->err);
    if (!m->status) m->error_no = 0;
    if (b.cached) m->flags |= CD_MEASURE_CACHED;
    drop_object(w, j, &b);
    m->run_s = cd_clock_wall() - begin - m->build_s;
    out->best_s = q.best_s;
}

double cd_worker_prebuild(cd_measure_worker *w, const cd_job *j) {
    cd_build b = {0};
    cd_measure_result m = {0};
    cdmpp_err err = {0};
    if (open_backend(w, j, true, &err) || get_object(w, j, &b, &m, &err)) return 0;
    drop_object(w, j, &b);
    return m.build_s;
}

void cd_worker_close(cd_measure_worker *w) {
    if (w->backend) w->kind->close(w->backend);
    *w = (cd_measure_worker){.kept = w->kept};
}

/* Measures one program in a process of its own. The noise probe runs before and after the timing: a
 * measurement in between that was not quiet is made again, up to three times, and the quietest is
 * kept. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "profiler/host/host.h"
#include "profiler/measure/measure_internal.h"

/* Compares a program's results with a reference's. What is written is filled with 0xFF before both
 * runs (NaN as a float), so that an element that a program leaves out is found. */

struct cd_result_check {
    cd_arena arena;       /* of packed parameters */
    uint32_t n;           /* parameters */
    void **result;        /* (n) of the reference; NULL: not written */
    size_t *bytes;        /* (n) */
    void *spoilt;         /* (n_spoilt) 0xFF, as long as the largest result */
    const void **content; /* (n_content) */
    uint32_t n_content;
    size_t n_spoilt;
};

/* ---- numbers ---- */
static double half(uint16_t h) {
    const int e = h >> 10 & 31, f = h & 1023;
    const double v = e == 31 ? (f ? (double)NAN : (double)INFINITY)
                     : e     ? ldexp(1 + f / 1024.0, e - 15)
                             : ldexp(f, -24);
    return h >> 15 ? -v : v;
}

/* 16 bits: half, or bfloat16, which is the upper half of a float. */
static double value_at(cd_dtype t, const void *p, size_t i) {
    uint16_t h;
    uint32_t u;
    float f;
    double d;
    switch (cd_expr_dtype_bits(t)) {
    case 16:
        memcpy(&h, (const char *)p + 2 * i, sizeof h);
        if (cd_expr_dtype_kind(t) == CD_T_FLOAT) return half(h);
        u = (uint32_t)h << 16;
        memcpy(&f, &u, sizeof f);
        return (double)f;
    case 32: memcpy(&f, (const char *)p + 4 * i, sizeof f); return (double)f;
    case 64: memcpy(&d, (const char *)p + 8 * i, sizeof d); return d;
    default: return NAN;
    }
}

static double largest_of(cd_dtype t, const void *p, size_t n) {
    double m = 0;
    for (size_t i = 0; i < n; i++) {
        const double v = fabs(value_at(t, p, i));
        if (isfinite(v) && v > m) m = v;
    }
    return m;
}

/* Equal infinities and two NaNs are equal. */
static double error_of(double a, double b, double floor) {
    if (a == b || (isnan(a) && isnan(b))) return 0;
    if (!isfinite(a) || !isfinite(b)) return INFINITY;
    return fabs(a - b) / (fabs(b) + floor);
}

/* Errors are relative, but values near 0 are compared with a tenth of the largest: their own size
 * says nothing about rounding. */
static double largest_error(cd_dtype t, const void *a, const void *b, size_t n, size_t *at) {
    double worst = 0;
    *at = 0;
    if (!cd_expr_dtype_is_float(t)) {
        const size_t size = cd_expr_dtype_bytes(t);
        for (size_t i = 0; i < n; i++)
            if (memcmp((const char *)a + i * size, (const char *)b + i * size, size) != 0)
                return *at = i, INFINITY;
        return 0;
    }
    const double floor = 0.1 * largest_of(t, b, n);
    for (size_t i = 0; i < n; i++) {
        const double e = error_of(value_at(t, a, i), value_at(t, b, i), floor);
        if (e > worst) worst = e, *at = i;
    }
    return worst;
}

/* The largest error that another order of summing may cause. */
static double tolerance_of(cd_dtype t) {
    if (!cd_expr_dtype_is_float(t)) return 0;
    return cd_expr_dtype_bits(t) == 64           ? 1e-9
           : cd_expr_dtype_bits(t) == 32         ? 1e-4
           : cd_expr_dtype_kind(t) == CD_T_FLOAT ? 1e-2
                                                 : 5e-2;
}

/* ---- the reference ---- */
/* NULL is fine */
static void result_check_free(cd_result_check *c) {
    if (!c) return;
    for (uint32_t k = 0; c->result && k < c->n; k++) cd_mem_free(c->result[k]);
    cd_mem_free(c->result);
    cd_mem_free(c->bytes);
    cd_mem_free(c->spoilt);
    cd_mem_free((void *)c->content);
    cd_arena_free(&c->arena);
    cd_mem_free(c);
}

/* The content of buffers that are written: 0xFF. One block serves all of them, as long as the
 * largest. */
static cdmpp_status spoil(cd_result_check *c, const cd_codegen_code *code, cdmpp_err *err) {
    size_t most = 0;
    for (uint32_t k = 0; k < code->n_buffer; k++)
        if (code->buffer[k].is_arg && code->buffer[k].written &&
            (size_t)code->buffer[k].bytes > most)
            most = (size_t)code->buffer[k].bytes;
    if (most > c->n_spoilt) {
        cd_mem_free(c->spoilt);
        c->n_spoilt = 0;
        c->spoilt = cd_mem_alloc(most);
        if (!c->spoilt) return CD_FAIL(err, ENOMEM, "%zu bytes to check results", most);
        memset(c->spoilt, 0xFF, most);
        c->n_spoilt = most;
    }
    cd_mem_free((void *)c->content);
    c->content = cd_mem_zalloc(code->n_buffer + 1, sizeof *c->content);
    if (!c->content) return CD_FAIL(err, ENOMEM, "results");
    for (uint32_t k = 0; k < code->n_buffer; k++)
        if (code->buffer[k].is_arg && code->buffer[k].written) c->content[k] = c->spoilt;
    return CDMPP_OK;
}

/* ---- results of the last reference, in a file ---- */
/* | head | results of the parameters that are written, one behind the other | ; the object's path
 *   names its content */
typedef struct {
    char object[512];
    double done; /* when it ended, by cd_clock_wall; 0: it was begun */
} head;

static bool head_of(const char *object, head *h) {
    memset(h, 0, sizeof *h);
    if (!object || !*object || strlen(object) >= sizeof h->object) return false;
    memcpy(h->object, object, strlen(object));
    return true;
}

/* All results from the file or to it; false: not all of it is there, or it is full. */
static bool move(const cd_result_check *c, int file, bool in) {
    off_t at = sizeof(head);
    for (uint32_t k = 0; k < c->n; k++)
        for (size_t from = 0; c->result[k] && from < c->bytes[k];) {
            char *p = (char *)c->result[k] + from;
            const ssize_t n = in ? pread(file, p, c->bytes[k] - from, at)
                                 : pwrite(file, p, c->bytes[k] - from, at);
            if (n <= 0) return false;
            from += (size_t)n;
            at += n;
        }
    return true;
}

static cdmpp_status make_room(cd_result_check *c, const cd_codegen_code *code, cdmpp_err *err) {
    for (uint32_t k = 0; k < c->n; k++) {
        if (!code->buffer[k].written) continue;
        c->bytes[k] = (size_t)code->buffer[k].bytes;
        c->result[k] = cd_mem_alloc(c->bytes[k] + 1);
        if (!c->result[k]) return CD_FAIL(err, ENOMEM, "%zu bytes of results", c->bytes[k]);
    }
    return CDMPP_OK;
}

/* *there: the results were in the file. Otherwise it says from now on that this reference was
 * begun. */
static cdmpp_status take(const cd_result_check *c, int file, const char *object, bool *there,
                         cdmpp_err *err) {
    head mine, h;
    *there = false;
    if (file < 0) return CDMPP_OK;
    if (!head_of(object, &mine)) {
        (void)!ftruncate(file, 0);
        return CDMPP_OK;
    }
    if (pread(file, &h, sizeof h, 0) == (ssize_t)sizeof h && !strcmp(h.object, mine.object)) {
        if (h.done <= 0)
            return CD_FAIL(
                err, EBACKEND,
                "it was begun for the program before and did not end: results cannot be compared");
        *there = move(c, file, true);
        if (*there) return CDMPP_OK;
    }
    if (ftruncate(file, 0) || pwrite(file, &mine, sizeof mine, 0) != (ssize_t)sizeof mine)
        (void)!ftruncate(file, 0);
    return CDMPP_OK;
}

double cd_result_check_done(int file) {
    head h;
    return file >= 0 && pread(file, &h, sizeof h, 0) == (ssize_t)sizeof h ? h.done : 0;
}

/* A file that cannot hold them stays without a reference: the next program runs it again. */
static void put(const cd_result_check *c, int file, const char *object) {
    head h;
    if (file < 0 || !head_of(object, &h)) return;
    h.done = cd_clock_wall();
    if (!move(c, file, false) || pwrite(file, &h, sizeof h, 0) != (ssize_t)sizeof h)
        (void)!ftruncate(file, 0);
}

/* ---- its run ---- */
static cdmpp_status run_reference(cd_result_check *c, const cd_codegen_code *code,
                                  const char *object, cd_backend *b, cdmpp_err *err) {
    union { /* load() does not write to it */
        const char *path;
        void *object;
    } u = {object};
    const cd_build build = {.code = code, .object = u.object};
    cd_loaded *l = NULL;
    double seconds;
    CD_TRY(spoil(c, code, err));
    CD_TRY(cd_backend_cpu.load(b, &build, c->content, &l, err));
    cdmpp_status st = cd_backend_cpu.run(l, 1, &seconds, err);
    for (uint32_t k = 0; k < c->n && !st; k++)
        if (c->result[k]) st = cd_backend_cpu.read(l, k, c->result[k], c->bytes[k], err);
    cd_backend_cpu.unload(l);
    return st;
}

/* The back end is closed before this returns: only the results are kept. */
static cdmpp_status run_and_put(cd_result_check *c, const cd_codegen_code *code, const char *object,
                                const char *target, int kept, cdmpp_err *err) {
    cd_backend *b = NULL;
    CD_TRY(cd_backend_cpu.open("", target, &b, err));
    const cdmpp_status st = run_reference(c, code, object, b, err);
    cd_backend_cpu.close(b);
    if (!st) put(c, kept, object);
    /* it has ended: the next program may try again */
    else if (kept >= 0) (void)!ftruncate(kept, 0);
    return st;
}

/* Run the reference, or take its results from the file `kept` (-1: none), where its last run has
 * left them: schedules of one task have one reference, and it is slow. Errors: those of the cpu
 * back end; EBACKEND (the worker before began this one and did not end it: it takes too long, or
 * crashes); ENOMEM. */
static cdmpp_status result_check_reference(const cd_codegen_code *code, const char *object,
                                           const char *target, int kept, cd_result_check **out,
                                           cdmpp_err *err) {
    cd_result_check *c = cd_mem_zalloc(1, sizeof *c);
    bool there = false;
    if (!c) return CD_FAIL(err, ENOMEM, "check");
    c->n = code->n_arg;
    c->result = cd_mem_zalloc(c->n + 1, sizeof *c->result);
    c->bytes = cd_mem_zalloc(c->n + 1, sizeof *c->bytes);
    cdmpp_status st = c->result && c->bytes ? CDMPP_OK : CD_FAIL(err, ENOMEM, "check");
    if (!st) st = make_room(c, code, err);
    if (!st) st = take(c, kept, object, &there, err);
    if (!st && !there) st = run_and_put(c, code, object, target, kept, err);
    st = cd_err_key(err, st, "reference");
    if (st) result_check_free(c);
    else *out = c;
    return st;
}

/* ---- the program ---- */
/* What cd_tensor_fill makes of parameter k, in the packed order; in c's arena. */
static cdmpp_status pack(cd_result_check *c, const cd_codegen_buffer *b, uint32_t k,
                         const cd_measure_arg *arg, cdmpp_err *err) {
    uint64_t n = 1;
    if (!arg) return CD_FAIL(err, EUSAGE, "parameter %u is packed: its shape is needed", k);
    for (uint32_t d = 0; d < arg->rank; d++) n *= (uint64_t)arg->shape[d];
    const size_t size = cd_expr_dtype_bytes(b->dtype);
    void *plain = cd_arena_alloc(&c->arena, (size_t)n + 1, size),
         *packed = cd_arena_zalloc(&c->arena, (size_t)b->bytes + 1, 1);
    if (!plain || !packed) return CD_FAIL(err, ENOMEM, "parameter %u", k);
    if (!cd_tensor_fill(b->dtype, k, 0, (size_t)n, plain))
        return CD_FAIL(err, EUNSUPPORTED, "parameter %u: a type that cannot be filled", k);
    cd_codegen_pack(b, arg->rank, arg->shape, plain, packed);
    c->content[k] = packed;
    return CDMPP_OK;
}

/* (n_buffer of code) what to load the program with; NULL in it: cd_tensor_fill. Packed parameters
 * hold what row-major ones would; `arg` (n_arg) has their shapes. Borrowed until the next call.
 * Errors: EUSAGE (a packed parameter without a shape), ENOMEM. */
static cdmpp_status result_check_content(cd_result_check *c, const cd_codegen_code *code,
                                         const cd_measure_arg *arg, const void *const **out,
                                         cdmpp_err *err) {
    cd_arena_reset(&c->arena);
    CD_TRY(spoil(c, code, err));
    for (uint32_t k = 0; k < code->n_arg; k++)
        if (code->buffer[k].n_digit)
            CD_TRY(pack(c, &code->buffer[k], k, arg ? &arg[k] : NULL, err));
    *out = c->content;
    return CDMPP_OK;
}

/* The message names the element with the largest error. */
static cdmpp_status compare_one(const cd_result_check *c, const cd_codegen_buffer *b, uint32_t k,
                                const void *got, double *max_error, cdmpp_err *err) {
    size_t at;
    const size_t size = cd_expr_dtype_bytes(b->dtype);
    const double e = largest_error(b->dtype, got, c->result[k], c->bytes[k] / size, &at);
    if (e > *max_error) *max_error = e;
    if (e <= tolerance_of(b->dtype)) return CDMPP_OK;
    if (!cd_expr_dtype_is_float(b->dtype))
        return CD_FAIL(err, EINVALID, "wrong result: %.60s[%zu]", b->name, at);
    return CD_FAIL(err, EINVALID, "wrong result: %.60s[%zu] is %.7g, expected %.7g", b->name, at,
                   value_at(b->dtype, got, at), value_at(b->dtype, c->result[k], at));
}

/* Run it once and compare. Errors: EINVALID (another result: buffer, element, both values), those
 * of run and read.
 *
 * A program must write exactly what the reference writes. */
static cdmpp_status result_check_compare(cd_result_check *c, const cd_backend_kind *kind,
                                         cd_loaded *program, const cd_codegen_code *code,
                                         double *max_error, cdmpp_err *err) {
    double seconds;
    *max_error = 0;
    if (code->n_arg != c->n)
        return CD_FAIL(err, EINVALID, "%u parameters, the reference has %u", code->n_arg, c->n);
    CD_TRY(kind->run(program, 1, &seconds, err));
    for (uint32_t k = 0; k < c->n; k++) {
        const cd_codegen_buffer *b = &code->buffer[k];
        if (!b->written != !c->result[k] || (b->written && (size_t)b->bytes != c->bytes[k]))
            return CD_FAIL(err, EINVALID, "parameter %u is not the reference's", k);
        if (!b->written) continue;
        void *got = cd_mem_alloc(c->bytes[k] + 1);
        if (!got) return CD_FAIL(err, ENOMEM, "%zu bytes of results", c->bytes[k]);
        cdmpp_status st = kind->read(program, k, got, c->bytes[k], err);
        if (!st) st = compare_one(c, b, k, got, max_error, err);
        cd_mem_free(got);
        CD_TRY(st);
    }
    return CDMPP_OK;
}

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

static void worker_close(cd_measure_worker *w);

/* ---- one job ---- */
static cdmpp_status open_backend(cd_measure_worker *w, const cd_job *j, bool compiler,
                                 cdmpp_err *err) {
    char name[sizeof w->name];
    snprintf(name, sizeof name, "%s|%s|%s", j->backend, j->device, j->target);
    if (w->backend && !strcmp(name, w->name)) return CDMPP_OK;
    worker_close(w);
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
        st = result_check_reference(&j->reference, j->reference_object, j->target,
                                    w->kept ? *w->kept : -1, &c, err);
    if (!st && c) st = result_check_content(c, &j->code, j->arg, &content, err);
    if (!st) st = load_it(w, j, b, content, &s.program, m, err);
    if (!st && c) {
        st = result_check_compare(c, w->kind, s.program, &j->code, &m->max_error, err);
        if (st == CDMPP_EINVALID) m->error_no = 5;
        m->flags |= CD_MEASURE_CHECKED;
    }
    if (!st) st = measure(&s, j, q, m, err);
    if (!st) st = count(&s, m, err);
    if (s.program) w->kind->unload(s.program);
    result_check_free(c);
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

/* close its back end; zeroed is fine */
static void worker_close(cd_measure_worker *w) {
    if (w->backend) w->kind->close(w->backend);
    *w = (cd_measure_worker){.kept = w->kept};
}

/* Measures the links between the memories of a machine, and how its programs slow each other
 * down. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/host/host.h"
#include "profiler/machine/link_measure.h"
#include "profiler/machine/machine_measure.h"
#include "profiler/machine/machine_measure_internal.h"
#include "profiler/measure/measure.h"

/* Measures transfers. A pair of memories is a `wire` with one function that sends; the rest is the
 * same for all: how often a size is sent, in which order, and which of the readings count. */

#define MIN_S 20e-6 /* of one reading: a thousand ticks of the clock */
enum {
    FIRST_BYTES = 64,
    DEFAULT_MAX = 64 << 20,
    DEFAULT_REPEATS = 9,
    MOST_REPEATS = 99,
    MOST_TIMES = 4096
};

/* Two memories and how bytes get from one to the other; 0 is "done", anything else the driver's
 * error. */
typedef struct wire wire;
struct wire {
    int (*send)(wire *w, size_t n, bool back);
    const char *name; /* for messages */
    const char *(*why)(const wire *w, int code);
    unsigned char *host, *other; /* other: the host's second buffer */
    cd_opencl cl;
    cd_cl buffer;
    cd_cuda_api cuda;
    cd_cu_memory memory;
    cd_cu context;
    int number;
};

static cdmpp_status send(wire *w, size_t n, bool back, cdmpp_err *err) {
    const int code = w->send(w, n, back);
    return code ? CD_FAIL(err, EBACKEND, "%s: cannot %s %zu bytes (%s)", w->name,
                          back ? "read" : "write", n, w->why ? w->why(w, code) : "?")
                : CDMPP_OK;
}

/* ---- timing ---- */
static cdmpp_status one_reading(wire *w, size_t n, bool back, unsigned times, double *seconds,
                                cdmpp_err *err) {
    const double start = cd_clock_wall();
    for (unsigned i = 0; i < times; i++) CD_TRY(send(w, n, back, err));
    *seconds = (cd_clock_wall() - start) / times;
    return CDMPP_OK;
}

static cdmpp_status times_for(wire *w, size_t n, bool back, unsigned *times, cdmpp_err *err) {
    double s;
    CD_TRY(send(w, n, back, err)); /* pages, caches and queues are there from now on */
    for (*times = 1; *times < MOST_TIMES; *times *= 2) {
        CD_TRY(one_reading(w, n, back, *times, &s, err));
        if (s * *times >= MIN_S) break;
    }
    return CDMPP_OK;
}

static size_t sizes_up_to(size_t max, double *bytes) {
    size_t n = 0;
    for (double b = FIRST_BYTES; b <= (double)max && n < 96; b *= sqrt(2))
        bytes[n++] = floor(b + 0.5);
    return n;
}

/* One direction: rounds over all sizes, the lower quartile of each: other processes only ever add
 * time. *spread: of the middle size in this respect; a short transfer alone says little. */
static cdmpp_status measure(wire *w, const cd_link_measure_samples *s, bool back, unsigned repeats,
                            double *out, double *spread, cdmpp_err *err) {
    const double *bytes = s->bytes;
    const size_t n = s->n;
    unsigned times[96];
    double apart[96];
    double *all = cd_mem_zalloc(n * repeats, sizeof *all);
    cdmpp_status st = all ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu readings", n * repeats);
    for (size_t i = 0; i < n && !st; i++) st = times_for(w, (size_t)bytes[i], back, &times[i], err);
    for (unsigned r = 0; r < repeats && !st; r++)
        for (size_t i = 0; i < n && !st; i++)
            st = one_reading(w, (size_t)bytes[i], back, times[i], &all[i * repeats + r], err);
    for (size_t i = 0; i < n && !st; i++) {
        cd_sort_doubles(all + i * repeats, repeats);
        out[i] = all[i * repeats + repeats / 4];
        apart[i] = all[i * repeats + repeats / 2] / out[i] - 1;
    }
    if (!st) cd_sort_doubles(apart, n);
    *spread = st || !n ? 0 : apart[n / 2];
    cd_mem_free(all);
    return st;
}

static size_t max_of(const cd_link_measure_options *a) {
    return a->max_bytes ? a->max_bytes : DEFAULT_MAX;
}

static cdmpp_status both_ways(wire *w, const cd_link_measure_options *a, const char *to,
                              const char *from, cd_link_table *l, cd_link_measure_samples *pairs,
                              cdmpp_err *err) {
    cd_link_measure_samples mine, *p = pairs ? pairs : &mine;
    const unsigned repeats =
        a->repeats ? (a->repeats < MOST_REPEATS ? a->repeats : MOST_REPEATS) : DEFAULT_REPEATS;
    const char *host = a->host ? a->host : "cpu0";
    double spread[2];
    p->n = sizes_up_to(max_of(a), p->bytes);
    CD_TRY(measure(w, p, false, repeats, p->to_s, &spread[0], err));
    CD_TRY(measure(w, p, true, repeats, p->from_s, &spread[1], err));
    for (int k = 0; a->noise && k < 2; k++) cd_noise_spread(a->noise, k ? from : to, spread[k]);
    CD_TRY(cd_link_table_fit(l, host, a->device, to, p->bytes, p->to_s, p->n, err));
    return cd_link_table_fit(l, a->device, host, from, p->bytes, p->from_s, p->n, err);
}

static unsigned char *touched(size_t n, int with) {
    unsigned char *p = cd_mem_alloc(n);
    if (p) memset(p, with, n);
    return p;
}

/* ---- the host's own ---- */
static int send_host(wire *w, size_t n, bool back) {
    memcpy(back ? w->host : w->other, back ? w->other : w->host, n);
    /* the copy must not be optimised away */
    __asm__ volatile("" : : "r"(w->host), "r"(w->other) : "memory");
    return 0;
}

cdmpp_status cd_link_measure_host(cd_link_table *l, const cd_link_measure_options *a,
                                  cd_link_measure_samples *pairs, cdmpp_err *err) {
    wire w = {.send = send_host, .name = "host"};
    w.host = touched(max_of(a), 1);
    w.other = touched(max_of(a), 2);
    cdmpp_status st =
        w.host && w.other ? CDMPP_OK : CD_FAIL(err, ENOMEM, "two buffers of %zu bytes", max_of(a));
    if (!st) st = both_ways(&w, a, "copy", "copy", l, pairs, err);
    cd_mem_free(w.host);
    cd_mem_free(w.other);
    return st;
}

/* ---- OpenCL ---- */
static const char *opencl_why(const wire *w, int code) {
    (void)w;
    return cd_opencl_api_error(code);
}

static int send_opencl(wire *w, size_t n, bool back) {
    const cd_opencl_api *f = &w->cl.api;
    if (back)
        return f->clEnqueueReadBuffer(w->cl.queue, w->buffer, 1, 0, n, w->host, 0, NULL, NULL);
    return f->clEnqueueWriteBuffer(w->cl.queue, w->buffer, 1, 0, n, w->host, 0, NULL, NULL);
}

static int send_mapped(wire *w, size_t n, bool back) {
    const cd_opencl_api *f = &w->cl.api;
    int32_t st = 0;
    void *p =
        f->clEnqueueMapBuffer(w->cl.queue, w->buffer, 1, back ? CD_CL_MAP_READ : CD_CL_MAP_WRITE, 0,
                              n, 0, NULL, NULL, &st);
    if (!p || st) return st ? st : -1;
    if (back) memcpy(w->host, p, n);
    else memcpy(p, w->host, n);
    st = f->clEnqueueUnmapMemObject(w->cl.queue, w->buffer, p, 0, NULL, NULL);
    return st ? st : f->clFinish(w->cl.queue);
}

/* Blocking calls, so that a reading ends when the bytes are there. */
cdmpp_status cd_link_measure_opencl(cd_link_table *l, const cd_link_measure_options *a,
                                    const char *opencl, bool map, cd_link_measure_samples *pairs,
                                    cdmpp_err *err) {
    wire w = {.send = map ? send_mapped : send_opencl, .why = opencl_why};
    int32_t st_cl = 0;
    CD_TRY(cd_opencl_open(&w.cl, opencl, err));
    w.name = w.cl.name;
    w.host = touched(max_of(a), 1);
    cdmpp_status st = w.host ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu bytes", max_of(a));
    if (!st)
        w.buffer =
            w.cl.api.clCreateBuffer(w.cl.context, CD_CL_MEM_READ_WRITE, max_of(a), NULL, &st_cl);
    if (!st && !w.buffer)
        st = CD_FAIL(err, EBACKEND, "%s: no buffer of %zu bytes (%s)", w.name, max_of(a),
                     cd_opencl_api_error(st_cl));
    if (!st) st = both_ways(&w, a, map ? "map" : "write", map ? "map" : "read", l, pairs, err);
    if (w.buffer) w.cl.api.clReleaseMemObject(w.buffer);
    cd_opencl_close(&w.cl);
    cd_mem_free(w.host);
    return st;
}

/* ---- CUDA ---- */
static const char *cuda_why(const wire *w, int code) { return cd_cuda_api_error(&w->cuda, code); }

/* Copies of pageable memory may still be under way when the call is back. */
static int send_cuda(wire *w, size_t n, bool back) {
    const int code =
        back ? w->cuda.copy_out(w->host, w->memory, n) : w->cuda.copy_in(w->memory, w->host, n);
    return code ? code : w->cuda.synchronize();
}

static cdmpp_status open_cuda(wire *w, int number, cdmpp_err *err) {
    int n = 0;
    CD_TRY(cd_cuda_api_open(&w->cuda, err));
    int code = w->cuda.init(0);
    if (!code) code = w->cuda.device_count(&n);
    if (!code && number >= n)
        return CD_FAIL(err, EBACKEND, "no CUDA device %d: there are %d", number, n);
    if (!code) code = w->cuda.device_get(&w->number, number);
    if (!code) code = w->cuda.context_retain(&w->context, w->number);
    if (!code) code = w->cuda.context_use(w->context);
    return code ? CD_FAIL(err, EBACKEND, "CUDA device %d: %s", number, cuda_why(w, code))
                : CDMPP_OK;
}

cdmpp_status cd_link_measure_cuda(cd_link_table *l, const cd_link_measure_options *a, int number,
                                  cd_link_measure_samples *pairs, cdmpp_err *err) {
    wire w = {.send = send_cuda, .why = cuda_why, .name = "CUDA"};
    cdmpp_status st = open_cuda(&w, number, err);
    if (!st && !(w.host = touched(max_of(a), 1))) st = CD_FAIL(err, ENOMEM, "%zu bytes", max_of(a));
    const int code = st ? 0 : w.cuda.alloc(&w.memory, max_of(a));
    if (code)
        st = CD_FAIL(err, EBACKEND, "CUDA device %d: no buffer of %zu bytes (%s)", number,
                     max_of(a), cuda_why(&w, code));
    if (!st) st = both_ways(&w, a, "write", "read", l, pairs, err);
    if (w.memory) w.cuda.free(w.memory);
    if (w.context) w.cuda.context_release(w.number);
    cd_mem_free(w.host); /* the driver stays: its own threads run in it */
    return st;
}

/* ---- links ---- */
static cdmpp_status again(cd_link_table *l, const cd_link *k, const char *from, const char *to,
                          cdmpp_err *err) {
    cd_link one = *k;
    one.from = from;
    one.to = to;
    return cd_link_table_add(l, &one, err);
}

/* The other devices of the host's memory get the same links as the first one. */
static cdmpp_status for_all_hosts(cd_machine *m, uint32_t host, uint32_t d, cdmpp_err *err) {
    const char *h = m->device[host].name, *name = m->device[d].name;
    for (uint32_t k = host + 1; k < m->n; k++) {
        if (m->device[k].memory) continue;
        CD_TRY(
            again(&m->links, cd_link_table_find(&m->links, h, name), m->device[k].name, name, err));
        CD_TRY(
            again(&m->links, cd_link_table_find(&m->links, name, h), name, m->device[k].name, err));
    }
    return CDMPP_OK;
}

static double slope_at(const cd_link *k, double bytes) {
    uint32_t i = 0;
    while (i + 1 < k->n_piece && k->piece[i + 1].bytes <= bytes) i++;
    return k->piece[i].s_per_byte;
}

/* One transfer behind the other, a then b: their costs add up, so the pieces are cut at the breaks
 * of both. */
static cdmpp_status through_host(cd_link_table *l, const cd_link *a, const cd_link *b,
                                 cdmpp_err *err) {
    const uint32_t most = a->n_piece + b->n_piece;
    double *at = cd_mem_zalloc(most, sizeof *at);
    cd_link_piece *p = at ? cd_mem_zalloc(most, sizeof *p) : NULL;
    uint32_t n = 0, m = 0;
    if (!p) {
        cd_mem_free(at);
        return CD_FAIL(err, ENOMEM, "%u pieces", most);
    }
    for (uint32_t i = 0; i < a->n_piece; i++) at[n++] = a->piece[i].bytes;
    for (uint32_t i = 0; i < b->n_piece; i++) at[n++] = b->piece[i].bytes;
    cd_sort_doubles(at, n);
    for (uint32_t i = 0; i < n; i++) {
        if (i && at[i] == at[i - 1]) continue;
        p[m] = (cd_link_piece){at[i], a->piece[0].seconds + b->piece[0].seconds,
                               slope_at(a, at[i]) + slope_at(b, at[i])};
        if (m) p[m].seconds = p[m - 1].seconds + p[m - 1].s_per_byte * (at[i] - p[m - 1].bytes);
        m++;
    }
    const cdmpp_status st =
        cd_link_table_add(l,
                          &(cd_link){a->from, b->to, "read, write", m, a->n < b->n ? a->n : b->n, p,
                                     hypot(a->noise, b->noise)},
                          err);
    cd_mem_free(p);
    cd_mem_free(at);
    return st;
}

static cdmpp_status between(cd_machine *m, uint32_t host, cdmpp_err *err) {
    for (uint32_t a = 0; a < m->n; a++)
        for (uint32_t b = 0; b < m->n; b++) {
            if (!m->device[a].memory || !m->device[b].memory ||
                m->device[a].memory == m->device[b].memory)
                continue;
            const cd_link *out =
                cd_link_table_find(&m->links, m->device[a].name, m->device[host].name);
            const cd_link *in =
                cd_link_table_find(&m->links, m->device[host].name, m->device[b].name);
            if (out && in) CD_TRY(through_host(&m->links, out, in, err));
        }
    return CDMPP_OK;
}

static cdmpp_status one_device(cd_machine *m, const cd_machine_measure_options *a, uint32_t host,
                               uint32_t d, cdmpp_err *err) {
    const cd_machine_device *x = &m->device[d];
    const cd_link_measure_options lo = {.host = m->device[host].name,
                                        .device = x->name,
                                        .max_bytes = a->max_bytes,
                                        .repeats = a->repeats,
                                        .noise = &m->noise};
    if (!x->memory) return CDMPP_OK;
    if (x->opencl) CD_TRY(cd_link_measure_opencl(&m->links, &lo, x->opencl, false, NULL, err));
    else if (!strcmp(x->kind, "cuda"))
        CD_TRY(cd_link_measure_cuda(&m->links, &lo, atoi(x->name + strlen("cuda")), NULL, err));
    else return CDMPP_OK;
    return for_all_hosts(m, host, d, err);
}

static cdmpp_status all_links(cd_machine *m, const cd_machine_measure_options *a, uint32_t host,
                              cdmpp_err *err) {
    const char *h = m->device[host].name;
    const cd_link_measure_options own = {.host = h,
                                         .device = h,
                                         .max_bytes = a->max_bytes,
                                         .repeats = a->repeats,
                                         .noise = &m->noise};
    CD_TRY(cd_link_measure_host(&m->links, &own, NULL, err));
    for (uint32_t d = host + 1; d < m->n; d++)
        if (!m->device[d].memory)
            CD_TRY(again(&m->links, cd_link_table_find(&m->links, h, h), m->device[d].name,
                         m->device[d].name, err));
    for (uint32_t d = 0; d < m->n; d++)
        CD_TRY(cd_err_key(err, one_device(m, a, host, d, err), m->device[d].name));
    return between(m, host, err);
}

cdmpp_status cd_machine_measure_links(cd_machine *m, const cd_machine_measure_options *a,
                                      cdmpp_err *err) {
    uint32_t host = 0;
    cd_affinity allowed;
    while (host < m->n && m->device[host].memory) host++;
    if (host == m->n)
        return CD_FAIL(err, ESCHEMA, "expected a device that uses the host's memory, as cpu0");
    cd_affinity_get(&allowed);
    if (m->device[host].core >= 0) (void)cd_affinity_at(m->device[host].core);
    const cdmpp_status st = all_links(m, a, host, err);
    cd_affinity_set(&allowed, 0);
    return st;
}

/* ---- contention ---- */
enum { PROGRAMS = 3, ROWS = PROGRAMS * (PROGRAMS + 1) };

/* Arrays of 24 MiB, of 256 KiB; numbers in registers. */
static cdmpp_status programs(cd_machine_program *p, cdmpp_err *err) {
    static const char memory[] =
        "void cd_machine_kernel_far(void *const *arg) { const float *a = arg[1], *b = arg[2]; "
        "float *c = arg[0]; for (int i = 0; i < 6291456; i++) c[i] = a[i] + b[i]; }\n";
    static const char cache[] =
        "void cd_machine_kernel_near(void *const *arg) { const float *a = arg[1], *b = arg[2]; "
        "float *c = arg[0]; for (int k = 0; k < 16; k++) for (int i = 0; i < 65536; i++) "
        "c[i] = a[i] + b[i] * (float)k; }\n";
    static const char numbers[] =
        "void cd_machine_kernel_sums(void *const *arg) { float *c = arg[0]; float s[16] = {0}; for "
        "(int k = 0; k < 100000; k++) for (int i = 0; i < 16; i++) "
        "s[i] = s[i] * 0.999f + 1.0f; for (int i = 0; i < 16; i++) c[i] = s[i]; }\n";
    CD_TRY(cd_machine_program_init(&p[0], CD_DIALECT_C, "cd_machine_kernel_far", memory, 3, 6291456,
                                   err));
    CD_TRY(cd_machine_program_init(&p[1], CD_DIALECT_C, "cd_machine_kernel_near", cache, 3, 65536,
                                   err));
    return cd_machine_program_init(&p[2], CD_DIALECT_C, "cd_machine_kernel_sums", numbers, 1, 16,
                                   err);
}

/* Data that stay in a core's own caches take no share of the memory. */
static double bytes_of(const cd_machine_program *p, int k) {
    return k ? 0 : (double)cd_corun_bytes(&p[k].code);
}

/* Every pair on different processors and on the same one. */
static cdmpp_status pairs(const cd_machine_program *p, double window_s, cd_corun_row *row,
                          size_t *n, cdmpp_err *err) {
    for (int i = 0; i < PROGRAMS; i++)
        for (int k = i; k < PROGRAMS; k++)
            for (int how = CD_CORUN_DISJOINT; how <= CD_CORUN_SHARED; how++) {
                const cd_corun_policy policy = {.sharing = (cd_corun_sharing)how,
                                                .window_s = window_s};
                cd_corun_pair pair = {0};
                CD_TRY(cd_corun_run(&p[i].build, &p[k].build, &policy, &pair, err));
                if (pair.error_no && err) *err = pair.err;
                if (pair.error_no)
                    return pair.err.code
                               ? pair.err.code
                               : (cdmpp_status)CD_FAIL(err, EBACKEND, "error %d", pair.error_no);
                cd_corun_row *r = &row[(*n)++];
                *r = (cd_corun_row){.bytes = {bytes_of(p, i), bytes_of(p, k)},
                                    .shared = how == CD_CORUN_SHARED};
                memcpy(r->solo_s, pair.solo_s, sizeof r->solo_s);
                memcpy(r->slowdown, pair.slowdown, sizeof r->slowdown);
            }
    return CDMPP_OK;
}

cdmpp_status cd_machine_measure_contention(double window_s, cd_contention *out, cdmpp_err *err) {
    cd_machine_program p[PROGRAMS] = {0};
    cd_corun_row row[ROWS];
    cd_backend *objects = NULL;
    size_t n = 0;
    if (cd_affinity_count() < 2)
        return CD_FAIL(err, EUSAGE, "programs beside each other need two processors");
    cdmpp_status st = programs(p, err);
    if (!st) st = cd_machine_program_build(p, PROGRAMS, &objects, err);
    if (!st) st = pairs(p, window_s > 0 ? window_s : 0.05, row, &n, err);
    if (!st) st = cd_contention_fit(row, n, out, err);
    if (objects) cd_backend_cpu.close(objects);
    for (int k = 0; k < PROGRAMS; k++) cd_machine_program_free(&p[k]);
    return st;
}

/* Everything that a description of this machine holds, measured in the one order that works:
 * contention first, because it forks, and a child of a process in which OpenCL or OpenMP already
 * has threads would hang. */

static cdmpp_status contention_of(const cd_machine_measure_options *a, cd_machine *m,
                                  cdmpp_err *err) {
    cd_arena own = {0};
    cd_corun_row *row;
    size_t n;
    if (a->contention) return cd_machine_measure_contention(0, &m->contention, err);
    if (!a->corun) return CDMPP_OK;
    cdmpp_status st = cd_contention_read(a->corun, &own, &row, &n, err);
    if (!st) st = cd_err_at(err, cd_contention_fit(row, n, &m->contention, err), a->corun, 0);
    cd_arena_free(&own);
    return st;
}

cdmpp_status cd_machine_measure_all(cd_machine *m, const cd_machine_measure_options *a,
                                    cdmpp_err *err) {
    /* a lot of it is of programs that disturb each other on purpose */
    CD_TRY(contention_of(a, m, err));
    CD_TRY(cd_machine_measure_find(m, a, err));
    cd_noise_begin(&m->noise);
    CD_TRY(cd_machine_measure_time(m, err));
    CD_TRY(cd_machine_measure_links(m, a, err));
    cd_noise_end(&m->noise);
    m->measured = true;
    m->kept = cd_noise_is_much(&m->noise);
    return cd_noise_check(&m->noise, a->keep_noisy, "links", "--keep-noisy", err);
}

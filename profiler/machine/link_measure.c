/* Measures transfers. A pair of memories is a `wire` with one function that sends; the rest is the
 * same for all: how often a size is sent, in which order, and which of the readings count. */
#include "profiler/machine/link_measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/measure/measure.h"

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

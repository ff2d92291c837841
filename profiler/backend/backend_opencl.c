/* The OpenCL back end. One program is one compiler run: OpenCL front ends take milliseconds, and a
 * program that fails harms no other. Times are those of the device's profiling events. */
#include "profiler/backend/backend.h"

#include <string.h>

struct cd_backend {
    cd_opencl d;
    cd_cl scratch; /* of flush */
    size_t scratch_bytes;
};

struct cd_loaded {
    cd_backend *b;
    cd_cl program, *buffer, *kernel;
    size_t (*global)[3], (*local)[3]; /* (n_launch) */
    size_t *bytes;                    /* (n_buffer) */
    uint32_t n_buffer, n_launch;
    bool borrowed; /* the buffers are the caller's */
};

const cd_opencl *cd_backend_opencl_device(const cd_backend *b) { return &b->d; }

static cdmpp_status ocl_fail(const cd_backend *b, int32_t st, const char *what, cdmpp_err *err) {
    return st == -4 || st == -6 ? CD_FAIL(err, ENOMEM, "OpenCL device %s: %s (%s)", b->d.name, what,
                                          cd_opencl_api_error(st))
                                : CD_FAIL(err, EBACKEND, "OpenCL device %s: %s (%s)", b->d.name,
                                          what, cd_opencl_api_error(st));
}

static void ocl_close(cd_backend *b) {
    if (!b) return;
    if (b->scratch) b->d.api.clReleaseMemObject(b->scratch);
    cd_opencl_close(&b->d);
    cd_mem_free(b);
}

static cdmpp_status ocl_open(const char *device, const char *target, cd_backend **out,
                             cdmpp_err *err) {
    (void)target;
    cd_backend *b = cd_mem_zalloc(1, sizeof *b);
    if (!b) return CD_FAIL(err, ENOMEM, "OpenCL back end");
    const cdmpp_status st = cd_opencl_open(&b->d, device, err);
    if (st) return ocl_close(b), st;
    *out = b;
    return CDMPP_OK;
}

/* ---- building ---- */
static void ocl_identity(cd_backend *b, cd_buf *out) {
    cd_buf_putf(out, "opencl|%s|%s|%s|%u units", b->d.name, b->d.version, b->d.driver, b->d.units);
}

/* The compiler's own words, as far as they fit the message. */
static cdmpp_status build_failed(const cd_backend *b, cd_cl program, int32_t st, cdmpp_err *err) {
    const cd_opencl_api *a = &b->d.api;
    size_t n = 0;
    a->clGetProgramBuildInfo(program, b->d.device, CD_CL_PROGRAM_LOG, 0, NULL, &n);
    char *log = cd_mem_zalloc(n + 1, 1);
    if (log) a->clGetProgramBuildInfo(program, b->d.device, CD_CL_PROGRAM_LOG, n, log, NULL);
    const char *first = log ? strstr(log, "error:") : NULL;
    const cdmpp_status code =
        CD_FAIL(err, EBACKEND, "OpenCL compiler: %s: %s", cd_opencl_api_error(st),
                first ? first
                : log ? log
                      : "");
    cd_mem_free(log);
    return code;
}

/* The binary of the one device that the program was built for. */
static cdmpp_status take_binary(const cd_backend *b, cd_cl program, cd_build *p) {
    const cd_opencl_api *a = &b->d.api;
    size_t n = 0;
    int32_t st = a->clGetProgramInfo(program, CD_CL_PROGRAM_BINARY_SIZES, sizeof n, &n, NULL);
    if (st) return ocl_fail(b, st, "no binary", &p->err);
    unsigned char *binary = cd_mem_alloc(n ? n : 1);
    if (!binary) return CD_FAIL(&p->err, ENOMEM, "binary of %zu bytes", n);
    if ((st = a->clGetProgramInfo(program, CD_CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL))) {
        cd_mem_free(binary);
        return ocl_fail(b, st, "no binary", &p->err);
    }
    p->object = binary;
    p->object_bytes = n;
    return CDMPP_OK;
}

static cdmpp_status build_one(const cd_backend *b, cd_build *p) {
    const cd_opencl_api *a = &b->d.api;
    if (p->code->dialect != CD_DIALECT_OPENCL)
        return CD_FAIL(&p->err, EUNSUPPORTED, "not OpenCL C");
    const char *text[2] = {cd_codegen_prelude(CD_DIALECT_OPENCL), p->code->text.p};
    const size_t len[2] = {strlen(text[0]), p->code->text.n};
    int32_t st = 0;
    cd_cl program = a->clCreateProgramWithSource(b->d.context, 2, text, len, &st);
    if (st) return ocl_fail(b, st, "no program", &p->err);
    st = a->clBuildProgram(program, 1, &b->d.device, "", NULL, NULL);
    const cdmpp_status code =
        st ? build_failed(b, program, st, &p->err) : take_binary(b, program, p);
    a->clReleaseProgram(program);
    return code;
}

typedef struct {
    const cd_backend *b;
    cd_build *p;
} batch;

static cdmpp_status build_some(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const batch *t = ctx;
    (void)w, (void)err;
    for (size_t k = beg; k < end; k++) {
        t->p[k].status = build_one(t->b, &t->p[k]);
        t->p[k].error_no = t->p[k].status ? 3 : 0;
    }
    return CDMPP_OK;
}

/* One program a compiler run: its front end takes milliseconds, and a program that fails harms no
 * other. */
static cdmpp_status ocl_build(cd_backend *b, cd_build *p, size_t n, int jobs, cdmpp_err *err) {
    batch t = {b, p};
    cd_threads *pool = NULL;
    if (jobs > 1 && n > 1) CD_TRY(cd_threads_new(jobs, &pool, err));
    const cdmpp_status st = cd_threads_run(pool, n, 1, build_some, &t, err);
    cd_threads_free(pool);
    return st;
}

/* ---- loading ---- */

static void ocl_unload(cd_loaded *l) {
    if (!l) return;
    const cd_opencl_api *a = &l->b->d.api;
    for (uint32_t k = 0; l->kernel && k < l->n_launch; k++)
        if (l->kernel[k]) a->clReleaseKernel(l->kernel[k]);
    for (uint32_t k = 0; l->buffer && k < l->n_buffer; k++)
        if (l->buffer[k] && !l->borrowed) a->clReleaseMemObject(l->buffer[k]);
    if (l->program) a->clReleaseProgram(l->program);
    cd_mem_free(l->kernel), cd_mem_free(l->buffer), cd_mem_free(l->global), cd_mem_free(l->local),
        cd_mem_free(l->bytes);
    cd_mem_free(l);
}

static cdmpp_status new_loaded(cd_backend *b, const cd_codegen_code *c, cd_loaded **out,
                               cdmpp_err *err) {
    cd_loaded *l = cd_mem_zalloc(1, sizeof *l);
    if (!l) return CD_FAIL(err, ENOMEM, "program");
    *l = (cd_loaded){.b = b, .n_buffer = c->n_buffer, .n_launch = c->n_launch};
    l->buffer = cd_mem_zalloc(c->n_buffer + 1, sizeof *l->buffer);
    l->bytes = cd_mem_zalloc(c->n_buffer + 1, sizeof *l->bytes);
    l->kernel = cd_mem_zalloc(c->n_launch + 1, sizeof *l->kernel);
    l->global = cd_mem_zalloc(c->n_launch + 1, sizeof *l->global);
    l->local = cd_mem_zalloc(c->n_launch + 1, sizeof *l->local);
    *out = l;
    return l->buffer && l->bytes && l->kernel && l->global && l->local
               ? CDMPP_OK
               : CD_FAIL(err, ENOMEM, "program");
}

static cdmpp_status load_program(cd_loaded *l, const cd_build *p, cdmpp_err *err) {
    const cd_opencl_api *a = &l->b->d.api;
    const unsigned char *binary = p->object;
    int32_t st = 0, each = 0;
    l->program = a->clCreateProgramWithBinary(l->b->d.context, 1, &l->b->d.device, &p->object_bytes,
                                              &binary, &each, &st);
    if (st || each) return ocl_fail(l->b, st ? st : each, "binary refused", err);
    st = a->clBuildProgram(l->program, 1, &l->b->d.device, "", NULL, NULL);
    return st ? build_failed(l->b, l->program, st, err) : CDMPP_OK;
}

/* How large groups of a kernel may be: its own limit may be below the device's. A kernel that was
 * compiled for just these groups runs with them; for such a one NVIDIA's driver names 256 all the
 * same, seen with 392 on an H200. */
static size_t group_limit(const cd_opencl *d, cd_cl kernel, const int64_t block[3]) {
    size_t most = d->group_max, compiled[3] = {0};
    d->api.clGetKernelWorkGroupInfo(kernel, d->device, CD_CL_KERNEL_GROUP_COMPILED, sizeof compiled,
                                    compiled, NULL);
    bool same = true;
    for (int x = 0; x < 3; x++) same &= compiled[x] == (size_t)block[x];
    if (!same)
        d->api.clGetKernelWorkGroupInfo(kernel, d->device, CD_CL_KERNEL_GROUP_MAX, sizeof most,
                                        &most, NULL);
    return most;
}

/* Sizes are checked before the launch. */
static cdmpp_status load_kernel(cd_loaded *l, const cd_codegen_code *c, uint32_t k,
                                cdmpp_err *err) {
    const cd_opencl *d = &l->b->d;
    const cd_codegen_launch *at = &c->launch[k];
    int32_t st = 0;
    size_t threads = 1;
    l->kernel[k] = d->api.clCreateKernel(l->program, at->entry, &st);
    if (st) return ocl_fail(l->b, st, at->entry, err);
    const size_t most = group_limit(d, l->kernel[k], at->block);
    for (int x = 0; x < 3; x++) {
        l->local[k][x] = (size_t)at->block[x];
        l->global[k][x] = (size_t)at->block[x] * (size_t)at->grid[x];
        threads *= l->local[k][x];
        if (l->local[k][x] > d->group_size[x]) threads = SIZE_MAX / 2;
    }
    if (threads > most)
        return CD_FAIL(err, EREJECTED, "work groups of %lld x %lld x %lld, at most %zu",
                       (long long)at->block[0], (long long)at->block[1], (long long)at->block[2],
                       most);
    if (at->shared_bytes > 0 && (uint64_t)at->shared_bytes > d->local_bytes)
        return CD_FAIL(err, EREJECTED, "%lld bytes of local memory, at most %llu",
                       (long long)at->shared_bytes, (unsigned long long)d->local_bytes);
    for (uint32_t i = 0; i < at->n_buffer; i++)
        if ((st = d->api.clSetKernelArg(l->kernel[k], i, sizeof(cd_cl), &l->buffer[at->buffer[i]])))
            return ocl_fail(l->b, st, at->entry, err);
    return CDMPP_OK;
}

static cdmpp_status new_buffer(cd_loaded *l, uint32_t k, cdmpp_err *err) {
    const cd_opencl *d = &l->b->d;
    int32_t st = 0;
    if (l->bytes[k] > d->alloc_max)
        return CD_FAIL(err, EREJECTED, "a buffer of %zu bytes, at most %llu", l->bytes[k],
                       (unsigned long long)d->alloc_max);
    l->buffer[k] = d->api.clCreateBuffer(d->context, CD_CL_MEM_READ_WRITE, l->bytes[k], NULL, &st);
    return st ? ocl_fail(l->b, st, "no buffer", err) : CDMPP_OK;
}

/* The numbers of every back end, a mebibyte at a time. */
static cdmpp_status fill(cd_loaded *l, const cd_codegen_code *c, uint32_t k, cdmpp_err *err) {
    enum { PART = 1 << 20 };
    const size_t size = cd_expr_dtype_bytes(c->buffer[k].dtype);
    unsigned char *numbers = cd_mem_alloc(PART);
    cdmpp_status st = numbers ? CDMPP_OK : CD_FAIL(err, ENOMEM, "buffer's content");
    for (size_t at = 0; at < l->bytes[k] && !st; at += PART) {
        const size_t n = l->bytes[k] - at < PART ? l->bytes[k] - at : PART;
        if (!size || !cd_tensor_fill(c->buffer[k].dtype, k, at / size, n / size, numbers))
            st = CD_FAIL(err, EUNSUPPORTED, "buffer %u: a type that cannot be filled", k);
        const int32_t code = st ? 0
                                : l->b->d.api.clEnqueueWriteBuffer(l->b->d.queue, l->buffer[k], 1,
                                                                   at, n, numbers, 0, NULL, NULL);
        if (code) st = ocl_fail(l->b, code, "buffer's content", err);
    }
    cd_mem_free(numbers);
    return st;
}

/* The caller's buffers, or buffers of the program's own with this content (NULL: numbers). */
static cdmpp_status load_buffers(cd_loaded *l, const cd_codegen_code *c, const void *const *content,
                                 const cd_cl *buffer, cdmpp_err *err) {
    for (uint32_t k = 0; k < c->n_buffer; k++) {
        l->bytes[k] = c->buffer[k].bytes > 0 ? (size_t)c->buffer[k].bytes : 4;
        if (buffer) {
            l->buffer[k] = buffer[k];
            continue;
        }
        CD_TRY(new_buffer(l, k, err));
        if (!content || !content[k]) {
            CD_TRY(fill(l, c, k, err));
            continue;
        }
        const int32_t st = l->b->d.api.clEnqueueWriteBuffer(l->b->d.queue, l->buffer[k], 1, 0,
                                                            l->bytes[k], content[k], 0, NULL, NULL);
        if (st) return ocl_fail(l->b, st, "buffer's content", err);
    }
    return CDMPP_OK;
}

static cdmpp_status load(cd_backend *b, const cd_build *p, const void *const *content,
                         const cd_cl *buffer, cd_loaded **out, cdmpp_err *err) {
    cd_loaded *l = NULL;
    cdmpp_status st = new_loaded(b, p->code, &l, err);
    if (l) l->borrowed = buffer != NULL;
    if (!st) st = load_program(l, p, err);
    if (!st) st = load_buffers(l, p->code, content, buffer, err);
    for (uint32_t k = 0; k < p->code->n_launch && !st; k++) st = load_kernel(l, p->code, k, err);
    if (st) return ocl_unload(l), st;
    *out = l;
    return CDMPP_OK;
}

static cdmpp_status ocl_load(cd_backend *b, const cd_build *p, const void *const *content,
                             cd_loaded **out, cdmpp_err *err) {
    return load(b, p, content, NULL, out, err);
}

cdmpp_status cd_backend_opencl_load_on(cd_backend *b, const cd_build *p, const cd_cl *buffer,
                                       cd_loaded **out, cdmpp_err *err) {
    return load(b, p, NULL, buffer, out, err);
}

/* ---- running ---- */

static cdmpp_status hand_out(cd_loaded *l, unsigned times, cd_cl *first, cd_cl *last,
                             cdmpp_err *err) {
    const cd_opencl_api *a = &l->b->d.api;
    for (unsigned t = 0; t < times; t++)
        for (uint32_t k = 0; k < l->n_launch; k++) {
            const bool begins = t == 0 && k == 0, ends = t + 1 == times && k + 1 == l->n_launch;
            const int32_t st = a->clEnqueueNDRangeKernel(l->b->d.queue, l->kernel[k], 3, NULL,
                                                         l->global[k], l->local[k], 0, NULL,
                                                         begins ? first
                                                         : ends ? last
                                                                : NULL);
            if (st) return ocl_fail(l->b, st, "launch", err);
        }
    return CDMPP_OK;
}

cdmpp_status cd_backend_opencl_enqueue(cd_loaded *l, cd_cl *first, cd_cl *last, cdmpp_err *err) {
    return hand_out(l, 1, first, last, err);
}

static cdmpp_status launch_all(cd_loaded *l, unsigned times, cd_cl *first, cd_cl *last,
                               cdmpp_err *err) {
    CD_TRY(hand_out(l, times, first, last, err));
    const int32_t st = l->b->d.api.clFinish(l->b->d.queue);
    return st ? ocl_fail(l->b, st, "run", err) : CDMPP_OK;
}

/* From the start of the first kernel to the end of the last, by the device's clock. */
static cdmpp_status ocl_run(cd_loaded *l, unsigned times, double *seconds, cdmpp_err *err) {
    const cd_opencl_api *a = &l->b->d.api;
    cd_cl first = NULL, last = NULL;
    uint64_t start = 0, end = 0;
    int32_t st = 0;
    cdmpp_status code = launch_all(l, times, &first, &last, err);
    if (!code && first) {
        st = a->clGetEventProfilingInfo(first, CD_CL_PROFILING_START, sizeof start, &start, NULL);
        if (!st)
            st = a->clGetEventProfilingInfo(last ? last : first, CD_CL_PROFILING_END, sizeof end,
                                            &end, NULL);
        if (st) code = ocl_fail(l->b, st, "no times", err);
    }
    if (first) a->clReleaseEvent(first);
    if (last) a->clReleaseEvent(last);
    *seconds = end > start ? (double)(end - start) * 1e-9 : 0;
    return code;
}

static cdmpp_status ocl_read(cd_loaded *l, uint32_t k, void *to, size_t bytes, cdmpp_err *err) {
    if (k >= l->n_buffer || bytes > l->bytes[k])
        return CD_FAIL(err, ERANGE, "buffer %u has no %zu bytes", k, bytes);
    const int32_t st = l->b->d.api.clEnqueueReadBuffer(l->b->d.queue, l->buffer[k], 1, 0, bytes, to,
                                                       0, NULL, NULL);
    return st ? ocl_fail(l->b, st, "buffer's content", err) : CDMPP_OK;
}

/* Twice the last cache; processors often name none. */
static cdmpp_status ocl_flush(cd_backend *b, cdmpp_err *err) {
    enum { LEAST = 32 << 20 };
    int32_t st = 0;
    if (!b->scratch) {
        b->scratch_bytes = b->d.cache_bytes * 2 > LEAST ? (size_t)b->d.cache_bytes * 2 : LEAST;
        b->scratch = b->d.api.clCreateBuffer(b->d.context, CD_CL_MEM_READ_WRITE, b->scratch_bytes,
                                             NULL, &st);
        if (st) return b->scratch = NULL, ocl_fail(b, st, "no buffer to flush with", err);
    }
    const uint32_t pattern = 0x3f800000;
    st = b->d.api.clEnqueueFillBuffer(b->d.queue, b->scratch, &pattern, sizeof pattern, 0,
                                      b->scratch_bytes, 0, NULL, NULL);
    if (!st) st = b->d.api.clFinish(b->d.queue);
    return st ? ocl_fail(b, st, "flush", err) : CDMPP_OK;
}

static bool ocl_on_host(const cd_backend *b) { return (b->d.kind & CD_CL_DEVICE_CPU) != 0; }

const cd_backend_kind cd_backend_opencl = {.name = "opencl",
                                           .dialect = CD_DIALECT_OPENCL,
                                           .open = ocl_open,
                                           .close = ocl_close,
                                           .on_host = ocl_on_host,
                                           .identity = ocl_identity,
                                           .build = ocl_build,
                                           .load = ocl_load,
                                           .run = ocl_run,
                                           .read = ocl_read,
                                           .unload = ocl_unload,
                                           .flush = ocl_flush};

/* The CUDA back end, over the driver and NVRTC, both loaded at run time. Programs are compiled to
 * the device's own code where NVRTC knows its architecture, so that the driver has nothing left to
 * compile when one is loaded; else to PTX for the newest architecture that both have in common.
 * Times are those of the device's events. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/backend/backend_internal.h"
#include "profiler/backend/cuda_api.h"

/* Loads libcuda and libnvrtc with dlopen and finds their functions by name, so that one binary
 * works with and without NVIDIA's software. */

/* POSIX promises that a function's address fits a void *. */
#define FIND(handle, field, symbol)                                                                \
    *(void **)(void *)&(field) = dlsym(handle, symbol);                                            \
    if (!(field)) missing = (symbol);

cdmpp_status cd_cuda_api_open(cd_cuda_api *out, cdmpp_err *err) {
    const char *missing = NULL;
    memset(out, 0, sizeof *out);
    out->driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!out->driver) return CD_FAIL(err, EBACKEND, "no CUDA here: no libcuda.so.1");
#define CD_X(name, symbol, parameters) FIND(out->driver, out->name, symbol)
    CD_CUDA_MAP(CD_X)
#undef CD_X
    if (!missing) return CDMPP_OK;
    cd_cuda_api_close(out);
    return CD_FAIL(err, EBACKEND, "CUDA 11 or later is needed: the driver here has no %s", missing);
}

/* Newest first; installations differ in which of the names they have. */
static void *find_compiler(void) {
    char name[40];
    void *h = dlopen("libnvrtc.so", RTLD_NOW | RTLD_LOCAL);
    for (int major = 20; major >= 9 && !h; major--) {
        snprintf(name, sizeof name, "libnvrtc.so.%d", major);
        h = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        for (int minor = 9; minor >= 0 && !h; minor--) {
            snprintf(name, sizeof name, "libnvrtc.so.%d.%d", major, minor);
            h = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        }
    }
    return h;
}

/* Nothing happens on the second call. */
cdmpp_status cd_cuda_api_open_compiler(cd_cuda_api *a, cdmpp_err *err) {
    const char *missing = NULL;
    if (a->compiler) return CDMPP_OK;
    void *h = find_compiler();
    if (!h) return CD_FAIL(err, EBACKEND, "no CUDA compiler here: no libnvrtc.so of any version");
#define CD_X(name, symbol, parameters) FIND(h, a->name, symbol)
    CD_NVRTC_MAP(CD_X)
#undef CD_X
    if (missing) {
        dlclose(h);
        return CD_FAIL(err, EBACKEND, "the CUDA compiler here has no %s", missing);
    }
    *(void **)(void *)&a->cubin_size = dlsym(h, "nvrtcGetCUBINSize");
    *(void **)(void *)&a->cubin_text = dlsym(h, "nvrtcGetCUBIN");
    a->compiler = h;
    return CDMPP_OK;
}

void cd_cuda_api_close(cd_cuda_api *a) {
    if (a->compiler) dlclose(a->compiler);
    if (a->driver) dlclose(a->driver);
    memset(a, 0, sizeof *a);
}

const char *cd_cuda_api_error(const cd_cuda_api *a, int code) {
    const char *name = NULL;
    return a->error_name && !a->error_name(code, &name) && name ? name : "unknown error";
}

struct cd_backend {
    cd_cuda_api api;
    struct {
        char name[128];
        /* major.minor: compute capability; units: multiprocessors */
        int number, major, minor, units, clock_khz, driver;
        int threads_per_block, shared_per_block, l2_bytes;
        size_t bytes;
    } d;
    cd_cu context;
    cd_cu_memory scratch; /* of flush */
    size_t scratch_bytes;
};

struct cd_loaded {
    cd_backend *b;
    const cd_codegen_code *code;
    cd_cu module, *function, begin, end;
    cd_cu_memory *buffer; /* (n_buffer) */
    size_t *bytes;
    void **arg; /* scratch: pointers to a launch's buffers */
};

static cdmpp_status cuda_fail(const cd_backend *b, int code, const char *what, cdmpp_err *err) {
    const char *name = cd_cuda_api_error(&b->api, code);
    return code == CD_CU_ERROR_MEMORY
               ? CD_FAIL(err, ENOMEM, "CUDA device %s: %s (%s)", b->d.name, what, name)
               : CD_FAIL(err, EBACKEND, "CUDA device %s: %s (%s)", b->d.name, what, name);
}

/* ---- opening ---- */

cdmpp_status cd_backend_cuda_parse_name(const char *device, int *number, cdmpp_err *err) {
    char *end;
    const long k = strtol(device && *device ? device : "0", &end, 10);
    if (*end || k < 0 || k > 255 || (device && *device && (*device < '0' || *device > '9')))
        return CD_FAIL(err, ERANGE, "device \"%s\": expected the number of a CUDA device", device);
    *number = (int)k;
    return CDMPP_OK;
}

static void cuda_close(cd_backend *b) {
    if (!b) return;
    if (b->scratch) b->api.free(b->scratch);
    if (b->context) b->api.context_release(b->d.number);
    cd_mem_free(b); /* the libraries stay: the driver's own threads run in them */
}

static void describe(cd_backend *b, int device) {
    const cd_cuda_api *a = &b->api;
    a->device_name(b->d.name, (int)sizeof b->d.name - 1, device);
    a->device_bytes(&b->d.bytes, device);
    a->driver_version(&b->d.driver);
    a->device_attribute(&b->d.major, CD_CU_MAJOR, device);
    a->device_attribute(&b->d.minor, CD_CU_MINOR, device);
    a->device_attribute(&b->d.units, CD_CU_UNITS, device);
    a->device_attribute(&b->d.clock_khz, CD_CU_CLOCK_KHZ, device);
    a->device_attribute(&b->d.threads_per_block, CD_CU_THREADS_PER_BLOCK, device);
    a->device_attribute(&b->d.shared_per_block, CD_CU_SHARED_PER_BLOCK, device);
    a->device_attribute(&b->d.l2_bytes, CD_CU_L2_BYTES, device);
}

static cdmpp_status open_device(cd_backend *b, int number, cdmpp_err *err) {
    int n = 0, device = 0;
    CD_TRY(cd_cuda_api_open(&b->api, err));
    int code = b->api.init(0);
    if (!code) code = b->api.device_count(&n);
    if (code) return cuda_fail(b, code, "no driver", err);
    if (number >= n) return CD_FAIL(err, EBACKEND, "no CUDA device %d: there are %d", number, n);
    if ((code = b->api.device_get(&device, number))) return cuda_fail(b, code, "no device", err);
    describe(b, device);
    b->d.number = device;
    return CDMPP_OK;
}

/* The primary context of the device, which other users of the driver in this process share. */
static cdmpp_status open_context(cd_backend *b, cdmpp_err *err) {
    int code = b->api.context_retain(&b->context, b->d.number);
    if (code) return b->context = NULL, cuda_fail(b, code, "no context", err);
    code = b->api.context_use(b->context);
    return code ? cuda_fail(b, code, "no context", err) : CDMPP_OK;
}

static cdmpp_status open_any(const char *device, bool context, cd_backend **out, cdmpp_err *err) {
    int number = 0;
    CD_TRY(cd_backend_cuda_parse_name(device, &number, err));
    cd_backend *b = cd_mem_zalloc(1, sizeof *b);
    if (!b) return CD_FAIL(err, ENOMEM, "CUDA back end");
    cdmpp_status st = open_device(b, number, err);
    if (!st && context) st = open_context(b, err);
    if (st) return cuda_close(b), st;
    *out = b;
    return CDMPP_OK;
}

static cdmpp_status cuda_open(const char *device, const char *target, cd_backend **out,
                              cdmpp_err *err) {
    (void)target;
    return open_any(device, true, out, err);
}

static cdmpp_status cuda_open_compiler(const char *device, const char *target, cd_backend **out,
                                       cdmpp_err *err) {
    (void)target;
    return open_any(device, false, out, err);
}

/* ---- building ---- */

/* What each version of NVRTC knows at most; PTX of an older architecture runs on newer devices. */
int cd_backend_cuda_architecture(int major, int minor, int nvrtc_major, int nvrtc_minor) {
    static const int row[][2] = {{1300, 121}, {1209, 121}, {1208, 120}, {1108, 90}, {1101, 86},
                                 {1100, 80},  {1000, 75},  {902, 72},   {900, 70}};
    const int version = nvrtc_major * 100 + nvrtc_minor, device = major * 10 + minor;
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        if (version >= row[k][0]) return device < row[k][1] ? device : row[k][1];
    return device < 60 ? device : 60;
}

/* What NVRTC shall compile for; true: the device's own code, false: PTX. */
static bool architecture(const cd_backend *b, char text[40]) {
    int major = 0, minor = 0;
    b->api.compiler_version(&major, &minor);
    const int arch = cd_backend_cuda_architecture(b->d.major, b->d.minor, major, minor);
    const bool own = arch == b->d.major * 10 + b->d.minor && b->api.cubin_size && b->api.cubin_text;
    snprintf(text, 40, "--gpu-architecture=%s_%d", own ? "sm" : "compute", arch);
    return own;
}

/* A driver's version says which NVRTC may be there, not which is: both. */
static void cuda_identity(cd_backend *b, cd_buf *out) {
    int major = 0, minor = 0;
    char arch[40] = "";
    if (!cd_cuda_api_open_compiler(&b->api, NULL)) {
        b->api.compiler_version(&major, &minor);
        (void)architecture(b, arch);
    }
    cd_buf_putf(out, "cuda|%s|%d.%d|driver %d|nvrtc %d.%d|%s", b->d.name, b->d.major, b->d.minor,
                b->d.driver, major, minor, arch);
}

static cdmpp_status compile_failed(const cd_backend *b, cd_cu program, int code, cdmpp_err *err) {
    size_t n = 0;
    b->api.log_size(program, &n);
    char *log = cd_mem_zalloc(n + 1, 1);
    if (log) b->api.log_text(program, log);
    const char *first = log ? strstr(log, "error:") : NULL;
    const cdmpp_status st = CD_FAIL(err, EBACKEND, "CUDA compiler: error %d: %s", code,
                                    first ? first
                                    : log ? log
                                          : "");
    cd_mem_free(log);
    return st;
}

static cdmpp_status take_object(const cd_backend *b, cd_cu program, bool own, cd_build *p) {
    size_t n = 0;
    int code = own ? b->api.cubin_size(program, &n) : b->api.ptx_size(program, &n);
    char *object = code ? NULL : cd_mem_zalloc(n + 1, 1);
    if (!code && !object) return CD_FAIL(&p->err, ENOMEM, "object of %zu bytes", n);
    if (!code) code = own ? b->api.cubin_text(program, object) : b->api.ptx_text(program, object);
    if (code) {
        cd_mem_free(object);
        return CD_FAIL(&p->err, EBACKEND, "CUDA compiler: no object (error %d)", code);
    }
    p->object = object;
    p->object_bytes = n;
    return CDMPP_OK;
}

/* NVRTC takes the prelude and the program as one text. */
static cdmpp_status build_one(cd_backend *b, cd_build *p) {
    char arch[40];
    cd_buf text = {0};
    cd_cu program = NULL;
    if (p->code->dialect != CD_DIALECT_CUDA) return CD_FAIL(&p->err, EUNSUPPORTED, "not CUDA C");
    const bool own = architecture(b, arch);
    const char *const option[] = {arch, "--std=c++11"};
    cd_buf_puts(&text, cd_codegen_prelude(CD_DIALECT_CUDA));
    cd_buf_put(&text, p->code->text.p, p->code->text.n);
    if (text.oom) return cd_buf_free(&text), CD_FAIL(&p->err, ENOMEM, "program text");
    int code = b->api.program_new(&program, text.p, "program.cu", 0, NULL, NULL);
    cdmpp_status st =
        code ? CD_FAIL(&p->err, EBACKEND, "CUDA compiler: no program (error %d)", code) : CDMPP_OK;
    if (!st && (code = b->api.program_compile(program, 2, option)))
        st = compile_failed(b, program, code, &p->err);
    if (!st) st = take_object(b, program, own, p);
    if (program) b->api.program_free(&program);
    cd_buf_free(&text);
    return st;
}

/* NVRTC serves one call of a process at a time: more jobs would only wait
 * (profiler/measure/measure.c has processes). */
static cdmpp_status cuda_build(cd_backend *b, cd_build *p, size_t n, int jobs, cdmpp_err *err) {
    (void)jobs;
    CD_TRY(cd_cuda_api_open_compiler(&b->api, err));
    for (size_t k = 0; k < n; k++) {
        p[k].status = build_one(b, &p[k]);
        p[k].error_no = p[k].status ? 3 : 0;
    }
    return CDMPP_OK;
}

/* ---- loading ---- */

static void cuda_unload(cd_loaded *l) {
    if (!l) return;
    const cd_cuda_api *a = &l->b->api;
    for (uint32_t k = 0; l->buffer && k < l->code->n_buffer; k++)
        if (l->buffer[k]) a->free(l->buffer[k]);
    if (l->begin) a->event_free(l->begin);
    if (l->end) a->event_free(l->end);
    if (l->module) a->module_unload(l->module);
    cd_mem_free(l->function), cd_mem_free(l->buffer), cd_mem_free(l->bytes), cd_mem_free(l->arg);
    cd_mem_free(l);
}

/* The numbers of cd_tensor_fill, a mebibyte at a time. */
static cdmpp_status fill(cd_loaded *l, uint32_t k, cdmpp_err *err) {
    enum { PART = 1 << 20 };
    const cd_dtype t = l->code->buffer[k].dtype;
    const size_t size = cd_expr_dtype_bytes(t);
    unsigned char *numbers = cd_mem_alloc(PART);
    cdmpp_status st = numbers ? CDMPP_OK : CD_FAIL(err, ENOMEM, "buffer's content");
    for (size_t at = 0; at < l->bytes[k] && !st; at += PART) {
        const size_t n = l->bytes[k] - at < PART ? l->bytes[k] - at : PART;
        if (!size || !cd_tensor_fill(t, k, at / size, n / size, numbers))
            st = CD_FAIL(err, EUNSUPPORTED, "buffer %u: a type that cannot be filled", k);
        const int code = st ? 0 : l->b->api.copy_in(l->buffer[k] + at, numbers, n);
        if (code) st = cuda_fail(l->b, code, "buffer's content", err);
    }
    cd_mem_free(numbers);
    return st;
}

static cdmpp_status load_buffer(cd_loaded *l, uint32_t k, const void *content, cdmpp_err *err) {
    l->bytes[k] = l->code->buffer[k].bytes > 0 ? (size_t)l->code->buffer[k].bytes : 4;
    int code = l->b->api.alloc(&l->buffer[k], l->bytes[k]);
    if (code) return l->buffer[k] = 0, cuda_fail(l->b, code, "no buffer", err);
    if (!content) return fill(l, k, err);
    code = l->b->api.copy_in(l->buffer[k], content, l->bytes[k]);
    return code ? cuda_fail(l->b, code, "buffer's content", err) : CDMPP_OK;
}

/* Limits of the device are checked before the launch: a launch that fails would spoil the
 * context. */
static cdmpp_status load_function(cd_loaded *l, uint32_t k, cdmpp_err *err) {
    const cd_codegen_launch *at = &l->code->launch[k];
    const int64_t threads = at->block[0] * at->block[1] * at->block[2];
    if (threads > l->b->d.threads_per_block)
        return CD_FAIL(err, EREJECTED, "blocks of %lld threads, at most %d", (long long)threads,
                       l->b->d.threads_per_block);
    if (at->shared_bytes > l->b->d.shared_per_block)
        return CD_FAIL(err, EREJECTED, "%lld bytes of shared memory, at most %d",
                       (long long)at->shared_bytes, l->b->d.shared_per_block);
    if (at->grid[0] > INT32_MAX || at->grid[1] > 65535 || at->grid[2] > 65535)
        return CD_FAIL(err, EREJECTED, "a grid of %lld x %lld x %lld", (long long)at->grid[0],
                       (long long)at->grid[1], (long long)at->grid[2]);
    const int code = l->b->api.module_function(&l->function[k], l->module, at->entry);
    return code ? cuda_fail(l->b, code, at->entry, err) : CDMPP_OK;
}

static cdmpp_status load_module(cd_loaded *l, const cd_build *p, cdmpp_err *err) {
    enum { LOG = 5, LOG_BYTES = 6 }; /* CU_JIT_ERROR_LOG_BUFFER and its size */
    char log[512] = "";
    int option[] = {LOG, LOG_BYTES};
    void *value[] = {log, (void *)(uintptr_t)sizeof log};
    const int code = l->b->api.module_load(&l->module, p->object, 2, option, value);
    if (!code) return CDMPP_OK;
    l->module = NULL;
    log[sizeof log - 1] = 0;
    return CD_FAIL(err, EBACKEND, "CUDA device %s: program refused (%s) %s", l->b->d.name,
                   cd_cuda_api_error(&l->b->api, code), log);
}

/* The context is made current first: the caller may be another thread than the one that opened the
 * device. */
static cdmpp_status load_all(cd_loaded *l, const cd_build *p, const void *const *content,
                             cdmpp_err *err) {
    const cd_codegen_code *c = p->code;
    l->function = cd_mem_zalloc(c->n_launch + 1, sizeof *l->function);
    l->buffer = cd_mem_zalloc(c->n_buffer + 1, sizeof *l->buffer);
    l->bytes = cd_mem_zalloc(c->n_buffer + 1, sizeof *l->bytes);
    l->arg = cd_mem_zalloc(c->n_buffer + 1, sizeof *l->arg);
    if (!l->function || !l->buffer || !l->bytes || !l->arg) return CD_FAIL(err, ENOMEM, "program");
    int code = l->b->api.context_use(l->b->context);
    if (!code) code = l->b->api.event_new(&l->begin, 0);
    if (!code) code = l->b->api.event_new(&l->end, 0);
    if (code) return cuda_fail(l->b, code, "no clock", err);
    CD_TRY(load_module(l, p, err));
    for (uint32_t k = 0; k < c->n_launch; k++) CD_TRY(load_function(l, k, err));
    for (uint32_t k = 0; k < c->n_buffer; k++)
        CD_TRY(load_buffer(l, k, content ? content[k] : NULL, err));
    return CDMPP_OK;
}

static cdmpp_status cuda_load(cd_backend *b, const cd_build *p, const void *const *content,
                              cd_loaded **out, cdmpp_err *err) {
    if (p->code->dialect != CD_DIALECT_CUDA || !p->object)
        return CD_FAIL(err, EUSAGE, "expected a compiled CUDA program");
    cd_loaded *l = cd_mem_zalloc(1, sizeof *l);
    if (!l) return CD_FAIL(err, ENOMEM, "program");
    l->b = b;
    l->code = p->code;
    const cdmpp_status st = load_all(l, p, content, err);
    if (st) return cuda_unload(l), st;
    *out = l;
    return CDMPP_OK;
}

/* ---- running ---- */

static int launch(cd_loaded *l, uint32_t k) {
    const cd_codegen_launch *at = &l->code->launch[k];
    for (uint32_t i = 0; i < at->n_buffer; i++) l->arg[i] = &l->buffer[at->buffer[i]];
    return l->b->api.launch(l->function[k], (unsigned)at->grid[0], (unsigned)at->grid[1],
                            (unsigned)at->grid[2], (unsigned)at->block[0], (unsigned)at->block[1],
                            (unsigned)at->block[2], 0, NULL, l->arg, NULL);
}

static cdmpp_status cuda_run(cd_loaded *l, unsigned times, double *seconds, cdmpp_err *err) {
    const cd_cuda_api *a = &l->b->api;
    float ms = 0;
    int code = a->context_use(l->b->context);
    if (!code) code = a->event_record(l->begin, NULL);
    for (unsigned t = 0; t < (times ? times : 1) && !code; t++)
        for (uint32_t k = 0; k < l->code->n_launch && !code; k++) code = launch(l, k);
    if (!code) code = a->event_record(l->end, NULL);
    if (!code) code = a->event_wait(l->end);
    if (!code) code = a->event_ms(&ms, l->begin, l->end);
    *seconds = (double)ms * 1e-3;
    return code ? cuda_fail(l->b, code, "run", err) : CDMPP_OK;
}

static cdmpp_status cuda_read(cd_loaded *l, uint32_t k, void *to, size_t bytes, cdmpp_err *err) {
    if (k >= l->code->n_buffer || bytes > l->bytes[k])
        return CD_FAIL(err, ERANGE, "buffer %u has no %zu bytes", k, bytes);
    const int code = l->b->api.copy_out(to, l->buffer[k], bytes);
    return code ? cuda_fail(l->b, code, "buffer's content", err) : CDMPP_OK;
}

static cdmpp_status cuda_flush(cd_backend *b, cdmpp_err *err) {
    enum { LEAST = 16 << 20 };
    int code = b->api.context_use(b->context);
    if (!code && !b->scratch) {
        b->scratch_bytes = 2 * (size_t)b->d.l2_bytes > LEAST ? 2 * (size_t)b->d.l2_bytes : LEAST;
        if ((code = b->api.alloc(&b->scratch, b->scratch_bytes))) b->scratch = 0;
    }
    if (!code) code = b->api.fill32(b->scratch, 0x3f800000, b->scratch_bytes / 4);
    if (!code) code = b->api.synchronize();
    return code ? cuda_fail(b, code, "flush", err) : CDMPP_OK;
}

const cd_backend_kind cd_backend_cuda = {.name = "cuda",
                                         .dialect = CD_DIALECT_CUDA,
                                         .open = cuda_open,
                                         .open_compiler = cuda_open_compiler,
                                         .close = cuda_close,
                                         .identity = cuda_identity,
                                         .build = cuda_build,
                                         .load = cuda_load,
                                         .run = cuda_run,
                                         .read = cuda_read,
                                         .unload = cuda_unload,
                                         .flush = cuda_flush};

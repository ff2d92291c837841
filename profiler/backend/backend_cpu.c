/* The CPU back end: compiles with the host's compiler, loads the shared object into this process,
 * and runs it on buffers of one mapping. Guards between the buffers find programs that write
 * outside of theirs. */
#include "profiler/backend/backend.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profiler/host/host.h"

enum { LINE = 64, PAGE = 4096, GUARD = 256, HUGE_PAGE = 2 << 20, GUARD_BYTE = 0xA5 };

struct cd_backend {
    cd_compiler_options o;
    char *target; /* o's, owned where open() of the table made it */
    char *isa;
    cd_compiler *compiler; /* NULL: not asked for yet */
    int threads;
    cd_cache_flush flush;
};

struct cd_loaded {
    const cd_codegen_code *code;
    void *handle;
    cd_object_loader_entry *entry;
    int threads;        /* of OpenMP, for which per-thread buffers have room */
    unsigned char *map; /* (n_map) */
    size_t n_map;
    void **buffer; /* (n_buffer) into map */
    size_t *bytes; /* (n_buffer) */
};

/* ---- opening ---- */
int cd_backend_cpu_threads(const char *target) {
    const cd_str cores = cd_target_option(target, "-num-cores");
    cpu_set_t set;
    const long n = cores.n ? strtol(cores.p, NULL, 10) : 0;
    if (n > 0 && n <= 1024) return (int)n;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

cdmpp_status cd_backend_cpu_open(const cd_compiler_options *o, cd_backend **out, cdmpp_err *err) {
    cd_backend *b = cd_mem_zalloc(1, sizeof *b);
    if (!b) return CD_FAIL(err, ENOMEM, "cpu");
    b->o = *o;
    b->threads = cd_backend_cpu_threads(o->target);
    *out = b;
    return CDMPP_OK;
}

static void close_it(cd_backend *b) {
    if (!b) return;
    cd_compiler_close(b->compiler);
    cd_mem_free(b->target);
    cd_mem_free(b->isa);
    cd_cache_flush_free(&b->flush);
    cd_mem_free(b);
}

static cdmpp_status open_it(const char *device, const char *target, cd_backend **out,
                            cdmpp_err *err) {
    cd_backend *b = NULL;
    CD_TRY(cd_backend_cpu_open(&(cd_compiler_options){.target = target}, &b, err));
    b->target = cd_mem_text(target ? target : "");
    b->isa = cd_mem_text(device ? device : "");
    b->o.target = b->target;
    b->o.isa = b->isa;
    if (!b->target || !b->isa) {
        close_it(b);
        return CD_FAIL(err, ENOMEM, "cpu");
    }
    *out = b;
    return CDMPP_OK;
}

/* The compiler, opened when first asked for. Errors: those of cd_compiler_open. */
static cdmpp_status compiler_of(cd_backend *b, cd_compiler **out, cdmpp_err *err) {
    if (!b->compiler) CD_TRY(cd_compiler_open(&b->o, &b->compiler, err));
    *out = b->compiler;
    return CDMPP_OK;
}

static cdmpp_status build(cd_backend *b, cd_build *p, size_t n, int jobs, cdmpp_err *err) {
    cd_compiler *c;
    CD_TRY(compiler_of(b, &c, err));
    return cd_compiler_build(c, p, n, jobs, err);
}

/* ---- memory of a program ---- */
/* Where buffer k begins; *end: behind its guard. */
static bool place(size_t at, uint32_t k, size_t bytes, size_t *begin, size_t *end) {
    const size_t shift = (size_t)(k % 31) * 2 * LINE; /* within the page */
    *begin = (at + GUARD + PAGE - 1) / PAGE * PAGE + shift;
    return !__builtin_add_overflow(*begin, bytes, end) && !__builtin_add_overflow(*end, GUARD, end);
}

static cdmpp_status sizes(cd_loaded *l, int threads, cdmpp_err *err) {
    for (uint32_t k = 0; k < l->code->n_buffer; k++) {
        const cd_codegen_buffer *b = &l->code->buffer[k];
        const uint64_t times = b->per_thread ? (uint64_t)threads : 1;
        if (b->bytes < 0 || __builtin_mul_overflow((uint64_t)b->bytes, times, &l->bytes[k]))
            return CD_FAIL(err, ERANGE, "buffer %u: size", k);
    }
    return CDMPP_OK;
}

/* Sizes first, with overflow checks, then one mapping with room to begin at a huge page; the second
 * pass cannot fail. */
static cdmpp_status map_all(cd_loaded *l, cdmpp_err *err) {
    size_t at = 0, begin, end;
    for (uint32_t k = 0; k < l->code->n_buffer; k++, at = end)
        if (!place(at, k, l->bytes[k], &begin, &end))
            return CD_FAIL(err, ERANGE, "buffer %u: size", k);
    l->n_map = at + PAGE + HUGE_PAGE;
    void *p = mmap(NULL, l->n_map, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return CD_FAIL(err, ENOMEM, "%zu bytes for the buffers of a program: %s", l->n_map,
                       strerror(errno));
    l->map = p;
    if (at >= HUGE_PAGE) (void)madvise(p, l->n_map, MADV_HUGEPAGE);
    const size_t first = (HUGE_PAGE - (size_t)((uintptr_t)p % HUGE_PAGE)) % HUGE_PAGE;
    at = 0;
    for (uint32_t k = 0; k < l->code->n_buffer; k++, at = end) {
        (void)place(at, k, l->bytes[k], &begin, &end);
        l->buffer[k] = l->map + first + begin;
        memset(l->map + first + begin - GUARD, GUARD_BYTE, GUARD);
        memset(l->map + first + begin + l->bytes[k], GUARD_BYTE, GUARD);
    }
    return CDMPP_OK;
}

static cdmpp_status fill_all(cd_loaded *l, const void *const *content, cdmpp_err *err) {
    for (uint32_t k = 0; k < l->code->n_buffer; k++) {
        const cd_dtype t = l->code->buffer[k].dtype;
        const size_t size = cd_expr_dtype_bytes(t);
        if (content && content[k]) memcpy(l->buffer[k], content[k], l->bytes[k]);
        else if (!size || !cd_tensor_fill(t, k, 0, l->bytes[k] / size, l->buffer[k]))
            return CD_FAIL(err, EUNSUPPORTED, "buffer %u: a type that cannot be filled", k);
    }
    return CDMPP_OK;
}

static cdmpp_status check_guards(const cd_loaded *l, cdmpp_err *err) {
    for (uint32_t k = 0; k < l->code->n_buffer; k++) {
        const unsigned char *before = (const unsigned char *)l->buffer[k] - GUARD,
                            *behind = (const unsigned char *)l->buffer[k] + l->bytes[k];
        for (size_t i = 0; i < GUARD; i++)
            if (before[i] != GUARD_BYTE || behind[i] != GUARD_BYTE)
                return CD_FAIL(err, EINVALID, "the program wrote outside of buffer %u (%.60s)", k,
                               l->code->buffer[k].name);
    }
    return CDMPP_OK;
}

/* ---- running ---- */
static void unload(cd_loaded *l) {
    if (!l) return;
    cd_object_loader_close(l->handle);
    if (l->map) munmap(l->map, l->n_map);
    cd_mem_free(l->buffer);
    cd_mem_free(l->bytes);
    cd_mem_free(l);
}

/* Content is written before the object is loaded, so that a broken object costs no less than a good
 * one. */
static cdmpp_status load(cd_backend *b, const cd_build *p, const void *const *content,
                         cd_loaded **out, cdmpp_err *err) {
    const cd_codegen_code *code = p->code;
    if (code->dialect != CD_DIALECT_C || code->n_launch != 1 || !p->object)
        return CD_FAIL(err, EUSAGE, "expected a compiled C program");
    cd_loaded *l = cd_mem_zalloc(1, sizeof *l);
    if (!l) return CD_FAIL(err, ENOMEM, "program");
    l->code = code;
    l->threads = b->threads;
    l->buffer = cd_mem_zalloc(code->n_buffer + 1, sizeof *l->buffer);
    l->bytes = cd_mem_zalloc(code->n_buffer + 1, sizeof *l->bytes);
    cdmpp_status st = l->buffer && l->bytes ? CDMPP_OK : CD_FAIL(err, ENOMEM, "program");
    if (!st) st = sizes(l, b->threads, err);
    if (!st) st = map_all(l, err);
    if (!st) st = fill_all(l, content, err);
    if (!st) st = cd_object_loader_open(p, b->threads, &l->handle, &l->entry, err);
    if (st) unload(l);
    else *out = l;
    return st;
}

static cdmpp_status run(cd_loaded *l, unsigned times, double *seconds, cdmpp_err *err) {
    if (!times) times = 1;
    /* another program may have set it */
    if (l->code->parallel) cd_object_loader_threads(l->handle, l->threads);
    const double begin = cd_clock_wall();
    for (unsigned i = 0; i < times; i++) l->entry(l->buffer);
    *seconds = cd_clock_wall() - begin;
    return check_guards(l, err);
}

static cdmpp_status read_it(cd_loaded *l, uint32_t k, void *to, size_t bytes, cdmpp_err *err) {
    if (k >= l->code->n_buffer || bytes > l->bytes[k])
        return CD_FAIL(err, ERANGE, "buffer %u: %zu bytes", k, bytes);
    memcpy(to, l->buffer[k], bytes);
    return CDMPP_OK;
}

static cdmpp_status flush(cd_backend *b, cdmpp_err *err) {
    return cd_cache_flush_caches(&b->flush, CD_WIPE_ALL, err);
}

static bool on_host(const cd_backend *b) {
    (void)b;
    return true;
}

const cd_backend_kind cd_backend_cpu = {.name = "cpu",
                                        .dialect = CD_DIALECT_C,
                                        .open = open_it,
                                        .close = close_it,
                                        .on_host = on_host,
                                        .build = build,
                                        .load = load,
                                        .run = run,
                                        .read = read_it,
                                        .unload = unload,
                                        .flush = flush};

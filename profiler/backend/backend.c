/* The table of back ends: a new one is a row here and a name in cd_backend_names. */
#include "profiler/backend/backend.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profiler/backend/backend_internal.h"
#include "profiler/host/host.h"

/* Loads a compiled C program with dlopen. OpenMP's library is pinned, because its waiting threads
 * would crash if it were unloaded with the last program. */

static void keep_openmp(void *symbol) {
    Dl_info where;
    if (dladdr(symbol, &where) && where.dli_fname)
        (void)dlopen(where.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

cdmpp_status cd_object_loader_open(const cd_build *p, int threads, void **handle,
                                   cd_object_loader_entry **entry, cdmpp_err *err) {
    const char *name = p->code->launch[0].entry;
    void *h = *handle = dlopen(p->object, RTLD_NOW | RTLD_LOCAL);
    if (!h) return CD_FAIL(err, EBACKEND, "cannot load the object: %.180s", dlerror());
    union { /* POSIX: what dlsym gives may be a function */
        void *object;
        cd_object_loader_entry *entry;
        void (*threads)(int n);
    } u = {dlsym(h, name)};
    *entry = u.entry;
    if (!u.object) return CD_FAIL(err, EBACKEND, "the object has no function %.80s", name);
    u.object = dlsym(h, "omp_set_num_threads");
    if (!u.object) return CDMPP_OK;
    keep_openmp(u.object);
    u.threads(threads);
    return CDMPP_OK;
}

cdmpp_status cd_object_loader_parts(void *handle, const cd_codegen_code *code,
                                    cd_object_loader_part **out, cdmpp_err *err) {
    char name[256];
    const int n = snprintf(name, sizeof name, "%s_part", code->launch[0].entry);
    union {
        void *object;
        cd_object_loader_part *part;
    } u = {n > 0 && (size_t)n < sizeof name ? dlsym(handle, name) : NULL};
    *out = u.part;
    return u.object ? CDMPP_OK
                    : CD_FAIL(err, EBACKEND, "the object has no function %.80s_part",
                              code->launch[0].entry);
}

void cd_object_loader_threads(void *handle, int threads) {
    union {
        void *object;
        void (*threads)(int n);
    } u = {handle ? dlsym(handle, "omp_set_num_threads") : NULL};
    if (u.object) u.threads(threads);
}

void cd_object_loader_close(void *handle) {
    if (handle) dlclose(handle);
}

/* Fills buffers with numbers from a counter-based generator: element i of buffer k depends on k and
 * i alone, so that devices and threads can fill parts in any order. */

static uint64_t draw(uint32_t k, uint64_t i) { return cd_rng_at(0xf111ULL + k, i); }
static float real_of(uint64_t r) { return 0.25f + 0.75f * (float)(r >> 40) * 0x1p-24f; }

/* Positive normal numbers in [0.25, 1): the exponent needs no care. Rounded down. */
static uint16_t half_of(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return (uint16_t)((((u >> 23) - 112) << 10) | (u >> 13 & 0x3ff));
}

static uint16_t bfloat_of(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return (uint16_t)(u >> 16);
}

static bool fill_reals(unsigned bits, bool brain, uint32_t k, uint64_t first, size_t n, void *to) {
    uint16_t *h = to;
    float *f = to;
    double *d = to;
    for (size_t i = 0; i < n; i++) {
        const float x = real_of(draw(k, first + i));
        if (bits == 16) h[i] = brain ? bfloat_of(x) : half_of(x);
        else if (bits == 32) f[i] = x;
        else if (bits == 64) d[i] = (double)x;
        else return false;
    }
    return true;
}

static bool fill_integers(unsigned bytes, uint32_t k, uint64_t first, size_t n, unsigned char *to) {
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) return false;
    memset(to, 0, n * bytes);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const size_t low = 0;
#else
    const size_t low = bytes - 1;
#endif
    for (size_t i = 0; i < n; i++) to[i * bytes + low] = (unsigned char)(draw(k, first + i) >> 63);
    return true;
}

bool cd_tensor_fill(cd_dtype type, uint32_t k, uint64_t first, size_t n, void *to) {
    if (cd_expr_dtype_is_float(type))
        return fill_reals(cd_expr_dtype_bits(type), cd_expr_dtype_kind(type) == CD_T_BFLOAT, k,
                          first, n, to);
    return cd_expr_dtype_kind(type) <= CD_T_UINT &&
           fill_integers(cd_expr_dtype_bytes(type), k, first, n, to);
}

/* The fan-in is taken as the number of elements over the widest dimension. A uniform number within
 * 0.375 has a deviation of 0.217, hence 4.6. */
bool cd_tensor_fill_weight(cd_dtype type, uint32_t k, uint32_t rank, const int64_t *shape,
                           void *to) {
    int64_t widest = 1, n = 1;
    float *v = to;
    for (uint32_t d = 0; d < rank; d++) {
        widest = shape[d] > widest ? shape[d] : widest;
        n *= shape[d];
    }
    if (!cd_tensor_fill(type, k, 0, (size_t)n, to)) return false;
    /* uniform within 0.375 has a deviation of 0.217 */
    const float scale = 4.6f / sqrtf(fmaxf(1, (float)n / (float)widest));
    for (int64_t i = 0; type == CD_F32 && rank > 1 && i < n; i++) v[i] = (v[i] - 0.625f) * scale;
    return true;
}

/* The CPU back end: compiles with the host's compiler, loads the shared object into this process,
 * and runs it on buffers of one mapping. Guards between the buffers find programs that write
 * outside of theirs. */

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

static const struct {
    const cd_backend_kind *kind;
    const char *target; /* first words of targets, each between blanks */
} known[] = {
    {&cd_backend_cpu, " llvm c cpu "},
    {&cd_backend_opencl, " opencl "},
    {&cd_backend_cuda, " cuda "},
};

const cd_backend_kind *cd_backend_find(const char *name) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].kind->name, name)) return known[i].kind;
    return NULL;
}

/* Does the list have the word? */
static bool has_word(const char *list, const char *word, size_t n) {
    for (const char *p = list; n && (p = strchr(p, ' ')) != NULL; p++)
        if (!strncmp(p + 1, word, n) && p[1 + n] == ' ') return true;
    return false;
}

const cd_backend_kind *cd_backend_for_target(cd_str target) {
    size_t n = 0;
    while (n < target.n && target.p[n] != ' ') n++;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (has_word(known[i].target, target.p, n)) return known[i].kind;
    return NULL;
}

cdmpp_status cd_backend_check_target(const char *target, cdmpp_err *err) {
    const size_t n = strcspn(target, " ");
    if (cd_backend_for_target((cd_str){target, n}) || (n == 4 && !strncmp(target, "rocm", n)))
        return CDMPP_OK;
    return CD_FAIL(err, EUSAGE,
                   "--target: no back end runs programs of '%.*s': there are llvm, c, opencl and "
                   "cuda; rocm is known of records",
                   n > 40 ? 40 : (int)n, target);
}

const char *cd_backend_names(void) { return "cpu|opencl|cuda"; }

/* gpublocks.h -- is a GPU program right at its full shape? Some blocks of every
 * kernel run on an OpenCL device that shares the host's memory, and elements that they write
 * are compared with the task's definition.
 *
 *   inputs   whole tensors of numbers -3 .. 3: one megabyte of them, mapped over and over
 *   results  whole tensors of zero pages: only what is written takes memory
 *   scratch  what the blocks read of other kernels' results is put there by definition
 *
 *   (1) every sampled element that the nest says the blocks write has its value;
 *   (2) no element that is not on that list is other than zero (so long as the list is whole).
 * Sums of such products are exact in float as long as they stay below 2^24. */
#ifndef GPUBLOCKS_H
#define GPUBLOCKS_H
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/core/core.h"
#include "gputrace.h"
#include "lazyref.h"
#include "profiler/backend/backend.h"

enum {
    GB_PERIOD = 257 * 4096,
    GB_BLOCKS = 64,
    GB_ELEMENTS = 20000,
    GB_SAMPLE = 64,
    GB_MOST = 4000000
};

typedef struct {
    const cd_nest *nest;
    const cd_te_dag *dag;
    const cd_codegen_code *code;
    cd_codegen_plan plan;
    cd_arena arena;
    cd_backend *device;
    int numbers;   /* file of GB_PERIOD bytes */
    void **memory; /* (n_buffer) */
    size_t *bytes;
    gputrace trace;
    lazyref ref;
    bool *stored; /* (n_slot) by the kernel at work */
    uint64_t seed;
    char why[400]; /* the first thing that is wrong; empty: right */
    double run_s, build_s, worst;
    long compared, blocks;
} gpublocks;

static inline float gb_number(int64_t element) {
    return (float)(cd_rng_at(11, (uint64_t)(element % (GB_PERIOD / 4))) % 7) - 3;
}

static inline double gb_input(const void *ctx, uint32_t tensor, int64_t element) {
    (void)ctx, (void)tensor;
    return (double)gb_number(element);
}

static inline int gb_numbers_file(void) {
    static float x[GB_PERIOD / 4];
    for (int64_t k = 0; k < GB_PERIOD / 4; k++) x[k] = gb_number(k);
    const int fd = memfd_create("numbers", 0);
    return fd >= 0 && write(fd, x, sizeof x) == (ssize_t)sizeof x ? fd : -1;
}

__attribute__((format(printf, 2, 3))) static inline void gb_fail(gpublocks *b, const char *fmt,
                                                                 ...) {
    va_list ap;
    va_start(ap, fmt);
    if (!b->why[0]) vsnprintf(b->why, sizeof b->why, fmt, ap);
    va_end(ap);
}

/* ---- memory ---- */

static inline void *gb_map(const gpublocks *b, size_t bytes, bool numbers) {
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED) return NULL;
    for (size_t at = 0; numbers && at < bytes; at += GB_PERIOD) {
        const size_t n = bytes - at < GB_PERIOD ? bytes - at : GB_PERIOD;
        if (mmap(p + at, n, PROT_READ, MAP_PRIVATE | MAP_FIXED, b->numbers, 0) == MAP_FAILED)
            return NULL;
    }
    return p;
}

static inline bool gb_map_all(gpublocks *b) {
    for (uint32_t k = 0; k < b->code->n_buffer; k++) {
        b->bytes[k] = ((size_t)b->code->buffer[k].bytes + 4095) & ~(size_t)4095;
        if (b->code->buffer[k].dtype != CD_F32)
            return gb_fail(b, "not run: %s is not float32", b->code->buffer[k].name), false;
        b->memory[k] = gb_map(b, b->bytes[k], !b->code->buffer[k].written);
        if (!b->memory[k])
            return gb_fail(b, "not run: no memory for %s (%zu bytes)", b->code->buffer[k].name,
                           b->bytes[k]),
                   false;
    }
    return true;
}

static inline void gb_unmap_all(gpublocks *b) {
    for (uint32_t k = 0; k < b->code->n_buffer; k++)
        if (b->memory[k]) munmap(b->memory[k], b->bytes[k]);
}

static inline uint32_t gb_buffer_of(const gpublocks *b, uint32_t tensor) {
    if (b->plan.slot[tensor].is_arg) return (uint32_t)b->plan.slot[tensor].arg;
    uint32_t n = b->code->n_arg; /* scratch follows in the order of first use */
    for (uint32_t t = 0; t < b->plan.n_slot; t++) {
        const cd_codegen_slot *s = &b->plan.slot[t];
        n += s->used && !s->is_arg && s->rank == 0 && s->order < b->plan.slot[tensor].order;
    }
    return n;
}

/* ---- what must be there ---- */

static inline double gb_expected(gpublocks *b, gt_place p) {
    const cd_codegen_slot *s = &b->plan.slot[p.tensor];
    int64_t ix[8], rest = p.element;
    if (p.tensor >= b->dag->n_tensor) return NAN;
    for (uint32_t d = s->n_dim; d-- > 0; rest /= s->extent[d])
        ix[d] = rest % s->extent[d] + (s->min ? gt_int(&b->trace, s->min[d]) : 0);
    const cd_te_op *o = &b->dag->op[b->dag->tensor_op[p.tensor]];
    for (uint32_t d = 0; d < o->rank; d++)
        if (ix[d] >= o->shape[d]) return INFINITY; /* a rim of scratch that nobody reads */
    return lr_element(&b->ref, p.tensor, ix);
}

static inline bool gb_put_reads(gpublocks *b) {
    gputrace *t = &b->trace;
    for (size_t k = 0; k < t->n_read; k++) {
        const gt_place p = t->read[k];
        if (b->stored[p.tensor]) continue; /* the kernel's own results */
        const double x = gb_expected(b, p);
        if (isnan(x))
            return gb_fail(b, "not checked: reads %s of another kernel",
                           b->nest->tensor[p.tensor].name),
                   false;
        ((float *)b->memory[gb_buffer_of(b, p.tensor)])[p.element] = (float)x;
    }
    return true;
}

static inline void gb_compare(gpublocks *b) {
    gputrace *t = &b->trace;
    for (uint32_t k = 0; k < GB_SAMPLE && t->n_write && !b->why[0]; k++) {
        const size_t i = k == 0   ? 0
                         : k == 1 ? t->n_write - 1
                                  : cd_rng_at(b->seed + 7, k) % t->n_write;
        const gt_place p = t->write[i];
        const double want = gb_expected(b, p),
                     got = (double)((float *)b->memory[gb_buffer_of(b, p.tensor)])[p.element];
        if (isinf(want)) continue;
        if (isnan(want)) {
            gb_fail(b, "not checked: writes %s", b->nest->tensor[p.tensor].name);
            return;
        }
        const double off = fabs(got - want) / (1 + fabs(want));
        b->compared++;
        if (!(off <= b->worst)) b->worst = off;
        if (!(off <= 1e-5))
            gb_fail(b, "wrong value: %s is %g, not %g", b->nest->tensor[p.tensor].name, got, want);
    }
}

/* Pages that are there are the only ones that may hold something. */
static inline void gb_strays(gpublocks *b, uint32_t buffer, const gt_place *p, size_t n,
                             const gt_place *also, size_t n_also) {
    const float *x = b->memory[buffer];
    const size_t pages = b->bytes[buffer] / 4096;
    unsigned char *there = calloc(pages, 1);
    if (!there || mincore(b->memory[buffer], b->bytes[buffer], there))
        gb_fail(b, "not checked: which pages are there");
    size_t i = 0, j = 0;
    while (i < n && gb_buffer_of(b, p[i].tensor) != buffer) i++;
    while (j < n_also && gb_buffer_of(b, also[j].tensor) != buffer) j++;
    for (size_t g = 0; g < pages && !b->why[0]; g++) {
        if (!(there[g] & 1)) continue;
        for (int64_t e = (int64_t)g * 1024; e < (int64_t)g * 1024 + 1024; e++) {
            while (i < n && p[i].element < e && gb_buffer_of(b, p[i].tensor) == buffer) i++;
            while (j < n_also && also[j].element < e && gb_buffer_of(b, also[j].tensor) == buffer)
                j++;
            const bool known =
                (i < n && p[i].element == e && gb_buffer_of(b, p[i].tensor) == buffer) ||
                (j < n_also && also[j].element == e && gb_buffer_of(b, also[j].tensor) == buffer);
            if (!known && x[e] != 0)
                gb_fail(b, "stray write: element of %s at %lld is %g", b->code->buffer[buffer].name,
                        (long long)e, (double)x[e]);
        }
    }
    free(there);
}

/* ---- one kernel ---- */

/* Blocks: the first, the last, others at random until they write enough. */
static inline long gb_choose(gpublocks *b, const cd_codegen_launch *l, int32_t begin, int32_t end,
                             int64_t (*block)[3]) {
    const int64_t all = l->grid[0] * l->grid[1] * l->grid[2];
    gputrace *t = &b->trace;
    long n = 0;
    t->n_write = t->n_read = 0;
    t->full = false;
    for (; n < GB_BLOCKS && n < all && (n < 2 || t->n_write + t->n_read < GB_ELEMENTS) && !t->full;
         n++) {
        const int64_t at = n == 0   ? 0
                           : n == 1 ? all - 1
                                    : (int64_t)(cd_rng_at(b->seed, (uint64_t)n) % (uint64_t)all);
        block[n][0] = t->block[0] = at % l->grid[0];
        block[n][1] = t->block[1] = at / l->grid[0] % l->grid[1];
        block[n][2] = t->block[2] = at / l->grid[0] / l->grid[1];
        gt_range(t, begin, end);
    }
    t->n_write = gt_unique(t->write, t->n_write);
    t->n_read = gt_unique(t->read, t->n_read);
    return n;
}

/* The program's own text behind other block numbers; one kernel of it. */
static inline void gb_text(cd_buf *out, const cd_codegen_code *c, int64_t (*block)[3], long n) {
    for (int x = 0; x < 3; x++) {
        cd_buf_putf(out,
                    "#undef CD_BLOCK_%c\n#define CD_BLOCK_%c pick_%c[get_group_id(0)]\n__constant "
                    "int pick_%c[%ld] = {",
                    "XYZ"[x], "XYZ"[x], "xyz"[x], "xyz"[x], n);
        for (long k = 0; k < n; k++)
            cd_buf_putf(out, "%s%lld", k ? ", " : "", (long long)block[k][x]);
        cd_buf_puts(out, "};\n");
    }
    cd_buf_put(out, c->text.p, c->text.n);
}

static inline double gb_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Buffers of the device over the program's memory: nothing is copied. */
static inline void gb_share(gpublocks *b, const cd_codegen_code *c, cd_cl *buffer) {
    const cd_opencl *d = cd_backend_opencl_device(b->device);
    for (uint32_t k = 0; k < c->n_buffer; k++) {
        int32_t st = 0;
        buffer[k] = d->api.clCreateBuffer(d->context, CD_CL_MEM_READ_WRITE | CD_CL_MEM_USE_HOST_PTR,
                                          (size_t)c->buffer[k].bytes, b->memory[k], &st);
        if (st) gb_fail(b, "no buffer over %s", c->buffer[k].name);
    }
}

static inline bool gb_run(gpublocks *b, const cd_codegen_code *one) {
    cd_build build = {.code = one};
    cd_loaded *l = NULL;
    double s = 0;
    cdmpp_err err = {0};
    const double start = gb_now();
    cdmpp_status st = cd_backend_opencl.build(b->device, &build, 1, 1, &err);
    if (!st && build.status) err = build.err, st = build.status;
    if (st) return gb_fail(b, "compiler: %s", err.msg), false;
    cd_cl *buffer = calloc(one->n_buffer + 1, sizeof *buffer);
    gb_share(b, one, buffer);
    st = cd_backend_opencl_load_on(b->device, &build, buffer, &l, &err);
    b->build_s += gb_now() - start;
    if (!st) st = cd_backend_opencl.run(l, 1, &s, &err);
    cd_backend_opencl.unload(l);
    for (uint32_t k = 0; k < one->n_buffer; k++)
        if (buffer[k]) cd_backend_opencl_device(b->device)->api.clReleaseMemObject(buffer[k]);
    free(buffer);
    cd_mem_free(build.object);
    if (st) gb_fail(b, "run: %s", err.msg);
    b->run_s += s;
    return !st;
}

static inline void gb_kernel(gpublocks *b, uint32_t launch, int32_t begin, int32_t end) {
    int64_t block[GB_BLOCKS][3];
    const long n = gb_choose(b, &b->code->launch[launch], begin, end, block);
    cd_codegen_launch l = b->code->launch[launch];
    cd_codegen_code one = *b->code;
    one.text = (cd_buf){0};
    one.launch = &l;
    one.n_launch = 1;
    l.grid[0] = n;
    l.grid[1] = l.grid[2] = 1;
    gb_text(&one.text, b->code, block, n);
    b->blocks += n;
    memset(b->stored, 0, b->plan.n_slot * sizeof *b->stored);
    for (size_t k = 0; k < b->trace.n_write; k++) b->stored[b->trace.write[k].tensor] = true;
    if (gb_put_reads(b) && gb_run(b, &one)) {
        gb_compare(b);
        for (uint32_t k = 0; k < b->code->n_buffer && !b->trace.full; k++)
            if (b->code->buffer[k].written)
                gb_strays(b, k, b->trace.write, b->trace.n_write, b->trace.read, b->trace.n_read);
    }
    for (uint32_t k = 0; k < b->code->n_buffer; k++) /* zero again */
        if (b->code->buffer[k].written) madvise(b->memory[k], b->bytes[k], MADV_DONTNEED);
    cd_buf_free(&one.text);
}

/* b->nest, dag, code, device, numbers, seed are given; the rest is zero. */
static inline void gb_check(gpublocks *b) {
    cdmpp_err err = {0};
    if (cd_codegen_plan_make(&b->arena, b->nest, &b->plan, &err)) {
        gb_fail(b, "plan: %s", err.msg);
        return;
    }
    b->memory = calloc(b->code->n_buffer + 1, sizeof *b->memory);
    b->bytes = calloc(b->code->n_buffer + 1, sizeof *b->bytes);
    b->trace = (gputrace){.nest = b->nest,
                          .plan = &b->plan,
                          .most = GB_MOST,
                          .var = calloc(b->nest->n_var + 1, sizeof(int64_t)),
                          .wanted = calloc((size_t)b->nest->ast->n + 1, sizeof(bool))};
    b->ref = (lazyref){
        .dag = b->dag, .var = calloc(b->dag->pool.n_var + 1, sizeof(double)), .input = gb_input};
    b->stored = calloc(b->plan.n_slot + 1, sizeof *b->stored);
    gt_want(&b->trace);
    uint32_t launch = 0;
    if (gb_map_all(b))
        for (int32_t k = 0; k < b->nest->ast->n && !b->why[0];) {
            const cd_ast_node *n = &b->nest->ast->node[k];
            if (n->dead || n->kind != CD_AST_THREAD) {
                k++;
                continue;
            }
            gb_kernel(b, launch++, k, n->end);
            k = n->end;
        }
    if (b->ref.why) gb_fail(b, "not checked: no reference for %s", b->ref.why);
    gb_unmap_all(b);
    free(b->memory), free(b->stored), free(b->bytes), free(b->trace.var), free(b->trace.wanted),
        free(b->trace.write), free(b->trace.read), free(b->ref.var);
    cd_arena_free(&b->arena);
}
#endif

/* cudaemu.h -- CUDA C on the CPU: what stands before the text, and what runs it.
 *
 * The threads of a block are coroutines that run from barrier to barrier, one after
 * the other, first to last or last to first. So a missing barrier shows: a thread
 * reads what later ones have not written yet, or writes over what they still need.
 * Threads that do not meet at the same barrier are an error. Blocks run in order. */
#ifndef CUDAEMU_H
#define CUDAEMU_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include "profiler/codegen/code/code.h"

static const char emu_prelude[] =
    "#include <math.h>\n"
    "struct emu_dim { int x, y, z; };\n"
    "extern \"C\" { struct emu_dim emu_thread, emu_block; void (*emu_sync)(void) = 0; }\n"
    "#define threadIdx emu_thread\n#define blockIdx emu_block\n#define __syncthreads() emu_sync()\n"
    "#define __global__\n#define __device__\n#define __forceinline__ inline\n#define __shared__ "
    "static\n"
    "#define __align__(n) __attribute__((aligned(n)))\n#define __launch_bounds__(n)\n"
    "struct float2 { float x, y; } __attribute__((aligned(8)));\nstruct float4 { float x, y, z, w; "
    "} __attribute__((aligned(16)));\n"
    "static inline float __int_as_float(int a) { float r; __builtin_memcpy(&r, &a, 4); return r; "
    "}\n"
    "static inline int __float_as_int(float a) { int r; __builtin_memcpy(&r, &a, 4); return r; }\n"
    "static inline float rsqrtf(float x) { return 1 / sqrtf(x); }\nstatic inline double "
    "rsqrt(double x) { return 1 / sqrt(x); }\n";

/* NAME_call(buffers) for every kernel, behind the text. */
static inline void emu_stubs(cd_buf *out, const cd_codegen_code *c) {
    for (uint32_t k = 0; k < c->n_launch; k++) {
        const cd_codegen_launch *l = &c->launch[k];
        cd_buf_putf(out, "extern \"C\" void %s_call(void **a) { %s(", l->entry, l->entry);
        for (uint32_t i = 0; i < l->n_buffer; i++)
            cd_buf_putf(out, "%s(float *)a[%u]", i ? ", " : "", l->buffer[i]);
        cd_buf_puts(out, "); }\n");
    }
}

enum { EMU_THREADS = 1024, EMU_STACK = 64 << 10 };
typedef struct {
    int x, y, z;
} emu_dim;

typedef struct {
    ucontext_t back, thread[EMU_THREADS];
    char *stack;
    emu_dim id[EMU_THREADS], *thread_id, *block_id; /* the last two are the library's */
    bool done[EMU_THREADS];
    int n, at;
    void (*call)(void **);
    void **memory;
} emu;
static emu *emu_now;

static inline void emu_meet(void) { swapcontext(&emu_now->thread[emu_now->at], &emu_now->back); }

static inline void emu_thread_main(void) {
    emu_now->call(emu_now->memory);
    emu_now->done[emu_now->at] = true;
}

/* Apart: getcontext returns twice as far as the compiler knows. */
static __attribute__((noinline)) void emu_thread_begin(emu *e, int t) {
    getcontext(&e->thread[t]);
    e->thread[t].uc_stack.ss_sp = e->stack + (size_t)t * EMU_STACK;
    e->thread[t].uc_stack.ss_size = EMU_STACK;
    e->thread[t].uc_link = &e->back;
    makecontext(&e->thread[t], emu_thread_main, 0);
    e->done[t] = false;
}

/* From barrier to barrier until all are done; false: some wait where others have ended. */
static inline bool emu_block_run(emu *e, bool backwards) {
    for (int t = 0; t < e->n; t++) emu_thread_begin(e, t);
    for (int ended = 0; ended < e->n;) {
        ended = 0;
        for (int k = 0; k < e->n; k++) {
            e->at = backwards ? e->n - 1 - k : k;
            *e->thread_id = e->id[e->at];
            swapcontext(&e->back, &e->thread[e->at]);
            ended += e->done[e->at];
        }
        if (ended && ended < e->n) return false;
    }
    return true;
}

static inline bool emu_launch(emu *e, const cd_codegen_launch *l, bool backwards) {
    e->n = 0;
    for (int z = 0; z < l->block[2]; z++)
        for (int y = 0; y < l->block[1]; y++)
            for (int x = 0; x < l->block[0] && e->n < EMU_THREADS; x++)
                e->id[e->n++] = (emu_dim){x, y, z};
    emu_now = e;
    for (int64_t b = 0; b < l->grid[0] * l->grid[1] * l->grid[2]; b++) {
        *e->block_id = (emu_dim){(int)(b % l->grid[0]), (int)(b / l->grid[0] % l->grid[1]),
                                 (int)(b / l->grid[0] / l->grid[1])};
        if (!emu_block_run(e, backwards)) return false;
    }
    return true;
}
#endif

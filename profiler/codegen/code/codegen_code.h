/* codegen_code -- a generated program: source code in C, OpenCL C or CUDA C, with its buffers and launches.
 *
 *   cd_nest ──> cd_codegen_code { text, launch[], buffer[] } ──> backend.h
 *
 *   C        one function  void NAME(void *const *arg)
 *   GPU      one kernel per outermost thread-bound nest, run in order
 *
 *   (1) `text` is a complete translation unit but for the prelude of its dialect
 *       (cd_codegen_prelude), so that many programs fit one compiler run;
 *   (2) buffers 0 .. n_arg-1 are the task's parameters in its order, whole and
 *       row-major, or packed where n_digit says so (nest->pack: codegen_pack.h);
 *       later ones are scratch, of at least `bytes`, times the number of threads
 *       where per_thread; all begin at multiples of 64 bytes;
 *   (3) launch.buffer lists what a kernel takes, in the order of its parameters;
 *       the C function takes all buffers, n_buffer pointers;
 *   (4) equal nests give equal text, whatever was generated before: texts are
 *       keys of the compiler's cache.
 * Everything lives in the code's own arena. One thread. */
#ifndef CD_CODEGEN_CODE_H
#define CD_CODEGEN_CODE_H
#include "features/program/program.h"

typedef enum cd_dialect { CD_DIALECT_C, CD_DIALECT_OPENCL, CD_DIALECT_CUDA } cd_dialect;
#define CD_DIALECTS "c|opencl|cuda"

/* One axis of a packed parameter: index (i[dim] / div) % extent, the outermost axis first. */
typedef struct cd_codegen_digit {
    uint32_t dim;
    int64_t div, extent;
} cd_codegen_digit;

typedef struct cd_codegen_buffer {
    const char *name;
    cd_dtype dtype;
    int64_t elements, bytes;
    bool is_arg, written;
    bool per_thread;            /* scratch of a parallel loop: one for every OpenMP thread, in a row */
    uint32_t n_digit;           /* 0: row-major */
    const cd_codegen_digit *digit; /* (n_digit) */
} cd_codegen_buffer;

typedef struct cd_codegen_launch {
    const char *entry;          /* kernel's name; of C, the function's */
    int64_t grid[3], block[3];  /* x, y, z; 1 for C */
    int64_t shared_bytes;       /* of static shared memory, for checks */
    uint32_t n_buffer;
    const uint32_t *buffer;     /* (n_buffer) */
} cd_codegen_launch;

typedef struct cd_codegen_code {
    cd_arena arena;
    cd_dialect dialect;
    cd_buf text;
    uint32_t n_buffer, n_arg, n_launch;
    cd_codegen_buffer *buffer;     /* (n_buffer) */
    cd_codegen_launch *launch;     /* (n_launch) */
    bool parallel;              /* C: has OpenMP loops */
} cd_codegen_code;

/* Frees text and arena, not *c itself. NULL is fine, zeroed too. */
void cd_codegen_code_free(cd_codegen_code *c);

/* The text that comes once before all programs of a translation unit: includes, vector
 * types, min and max, floor division ... Static. */
const char *cd_codegen_prelude(cd_dialect dialect);
#endif

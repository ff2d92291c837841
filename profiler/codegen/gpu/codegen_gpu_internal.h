/* codegen_gpu_internal -- a nest with thread axes as kernels of OpenCL C or CUDA C: what the files
 * of the generator share.
 *
 *   THREAD bx, VTHREAD v, THREAD tx        void k0(...)
 *     REALIZE T.local              ──>      float t3[N * vthreads]; shared float t5[...];
 *       FOR ko                              for (ko) { sync; t5[..] = ..; sync;
 *         REALIZE A.shared                    for (ki) for (v) t3[v, ..] += t5[..] * .. }
 *
 *   (1) every outermost THREAD node is a kernel, cut as TVM's SplitHostDevice does;
 *       outside of kernels there are only REALIZE and ATTR nodes;
 *   (2) a tensor lives where its cache step says, else by the threads around its
 *       REALIZE node: global scratch, shared, local (TVM's StorageFlatten);
 *   (3) statements that depend on a virtual thread stand in a loop over it, all
 *       others run once (TVM's InjectVirtualThread); vt_mask[t] has bit v when tensor
 *       t has one copy for each turn of virtual thread v;
 *   (4) barrier[k]: all threads of a block meet before node k, which all of them
 *       reach (codegen_gpu_sync.c);
 *   (5) unroll[k]: loop k would be unrolled by TVM's UnrollLoop.
 * Private to the room. One thread; everything is in the code's arena. */
#ifndef CD_CODEGEN_GPU_INTERNAL_H
#define CD_CODEGEN_GPU_INTERNAL_H
#include "profiler/codegen/gpu/gpu.h"

#define CD_GPU_MAX_VTHREAD 32

typedef struct cd_gpu {
    cd_codegen_expr w; /* writes expressions into the code's text */
    cd_codegen_plan plan;
    cd_codegen_code *code;
    cd_dialect dialect;
    const char *name;
    cd_arena *a;
    const cd_ast *t;
    uint8_t *tag;           /* (n_var) 1 + cd_ast_tag of thread axes, 0: none */
    uint8_t *vt;            /* (n_var) 1 + number of a virtual thread, 0: none */
    bool *open;             /* (n_var) loops around the text at work */
    int32_t *buffer;        /* (n_slot) number among the code's buffers, -1 */
    bool *unroll, *barrier; /* (t->n) */
    /* the kernel at work: nodes begin .. end-1 */
    int32_t begin, end;
    uint32_t number, n_vt;
    int64_t extent[CD_AST_TAG_COUNT], vt_extent[CD_GPU_MAX_VTHREAD]; /* 0: no such axis */
    uint32_t *vt_mask, *around;   /* (n_slot) copies; virtual threads around its REALIZE */
    uint8_t *use;                 /* (n_slot) CD_GPU_* in this kernel */
    uint32_t active;              /* virtual threads whose loops are open around the text */
    const cd_te_reducer *reducer; /* its variables have names now; NULL: none */
    /* a variable that is written as 0: that of a loop which became a vector; NULL: none */
    const cd_expr *zero;
    int indent;
} cd_gpu;
enum { CD_GPU_LOADED = 1, CD_GPU_STORED = 2 };

/* Virtual threads that e depends on, through copied tensors too; those around node k. */
uint32_t cd_gpu_vt_around(const cd_gpu *g, int32_t k);
/* Those on which statement k (STORE, IF's condition, EVAL) depends. */
uint32_t cd_gpu_vt_of_node(const cd_gpu *g, int32_t k);
/* Does another thread of the block see it? */
bool cd_gpu_is_shared(const cd_gpu *g, uint32_t tensor);

/* codegen_gpu_sync.c: fills barrier[] of the kernel. */
cdmpp_status cd_gpu_sync(cd_gpu *g, cdmpp_err *err);
/* codegen_gpu_unroll.c: fills unroll[] of the kernel. */
void cd_gpu_unroll(cd_gpu *g);

/* codegen_gpu_store.c: an element's place in its memory as a sum of terms. */
#define CD_GPU_MAX_TERM 48
typedef struct cd_gpu_sum {
    uint32_t n;
    int64_t constant;
    bool wide; /* needs 64 bits */
    struct {
        const cd_expr *e;
        int64_t by;
    } term[CD_GPU_MAX_TERM];
} cd_gpu_sum;
/* The place of element x[0..n) of a tensor, relative to its memory. Errors: EUNSUPPORTED (too many
 * terms, overflow). */
cdmpp_status cd_gpu_address(const cd_gpu *g, uint32_t tensor, const cd_expr *const *x, uint32_t n,
                            cd_gpu_sum *out, cdmpp_err *err);
/* By how much the sum grows with each step of var from 0 to width-1; false: not the same for all,
 * or not known. */
bool cd_gpu_sum_step(const cd_gpu_sum *s, const cd_expr *var, int64_t width, int64_t *by);
/* A number that divides it always, where var is 0. */
int64_t cd_gpu_sum_divisor(const cd_gpu_sum *s, const cd_expr *var);

/* codegen_gpu_stmt.c: nodes from .. to-1 as statements, in loops over the virtual threads that they
 * depend on. */
cdmpp_status cd_gpu_write_range(cd_gpu *g, int32_t from, int32_t to, cdmpp_err *err);
/* codegen_gpu_store.c: a store; a vectorised loop (*done false: nothing written, write it as a
 * loop); a load and an element, for expressions. */
cdmpp_status cd_gpu_write_store(cd_gpu *g, int32_t k, cdmpp_err *err);
cdmpp_status cd_gpu_write_vector(cd_gpu *g, int32_t k, bool *done, cdmpp_err *err);
cdmpp_status cd_gpu_write_load(cd_codegen_expr *w, const cd_expr *e, cdmpp_err *err);
cdmpp_status cd_gpu_write_element(cd_gpu *g, uint32_t tensor, const cd_expr *const *x, uint32_t n,
                                  cdmpp_err *err);
/* codegen_gpu.c: the allreduce of EVAL node k, and the declaration of its shared memory,
 * whose size is added to *bytes. */
cdmpp_status cd_gpu_write_allreduce(cd_gpu *g, int32_t k, cdmpp_err *err);

/* codegen_gpu.c: the name of a thread axis ("tx"); a line of text with its indentation; the
 * indentation; a barrier. */
const char *cd_gpu_tag_text(cd_ast_tag t);
void cd_gpu_line(cd_gpu *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cd_gpu_indent(cd_gpu *g);
void cd_gpu_write_barrier(cd_gpu *g);
#endif

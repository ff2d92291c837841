/* compute -- the operators of a group as a compute definition, in the text form of docs/reference/tasks.md.
 *
 *   group {conv, add, relu} ──> pad_temp, conv2d_nhwc, T_add, T_relu + placeholders
 *
 * Stages, their order, names, axes and tags are those of TVM's TOPI (v0.9), so that
 * equal operators give TVM's workload keys: checked in tests/profiler/network/compute/test_te_compute.c.
 *   (1) stage k of a definition has the ref "t<k>"; it reads stages before it;
 *   (2) arguments: what a depth-first walk from the last stage finds first comes
 *       first, the last stage behind them.
 * Private to compute*.c and workload*.c. One thread. */
#ifndef CD_COMPUTE_H
#define CD_COMPUTE_H
#include "base/core/core.h"
#include "profiler/network/fusion/fusion.h"

#define CD_COMPUTE_INDEX_SIZE 192 /* an index expression */

typedef struct cd_te_compute_stage {
    uint32_t node;              /* of a placeholder, else CD_GRAPH_NONE */
    uint32_t rank;
    int64_t dim[CD_GRAPH_MAX_RANK];
    uint32_t first_in, n_in;    /* in reads[] */
    const char *name;
} cd_te_compute_stage;

typedef struct cd_te_compute {
    const cd_fuse_graph *f;
    uint32_t group;             /* root that f->group has for the members */
    bool single;                /* a group of this node alone (weights) */
    cd_arena arena;
    cd_buf ops, axis, raxis, body; /* JSON of the stages so far; the open stage */
    cd_te_compute_stage *stage;
    uint32_t n, cap;
    uint32_t *reads, n_read, cap_read;
    uint32_t *stage_of;         /* (f->n) stage + 1 */
    uint32_t *touched, n_touched, cap_touched; /* nodes with a stage, to be cleared */
    uint32_t *arg, n_arg;       /* (n) stages that are arguments, after cd_te_compute_group */
    uint32_t open_first;        /* reads[] of the open stage begin here */
    const char *reduce;         /* of the open stage: JSON */
    cd_graph_shape shape;             /* of the open stage */
    cdmpp_status st;
    cdmpp_err *err;
} cd_te_compute;

cdmpp_status cd_te_compute_new(const cd_fuse_graph *f, CD_GIVE cd_te_compute **out, cdmpp_err *err);
void cd_te_compute_free(CD_TAKE cd_te_compute *c); /* NULL is fine */

/* The definition of the nodes that share f->group[root], up to `last` of them;
 * or of node `last` alone when root is CD_GRAPH_NONE. Fills ops (the JSON array's
 * items), stage, arg. Errors: EUNSUPPORTED (with the reason), ENOMEM. */
cdmpp_status cd_te_compute_group(cd_te_compute *c, uint32_t root, uint32_t last, cdmpp_err *err);

/* ---- for compute_*.c: one stage ---- */
/* Begin a stage; axes follow, then the body in c->body, then the end. `dims` are read
 * by axis names PREFIX0, PREFIX1 ... when prefix is given. */
void cd_compute_begin(cd_te_compute *c);
void cd_compute_add_axis(cd_te_compute *c, const char *name, int64_t extent);
void cd_compute_add_axes(cd_te_compute *c, const char *prefix, const cd_graph_shape *s);
void cd_compute_add_reduce_axis(cd_te_compute *c, const char *name, int64_t extent);
void cd_compute_add_reduce_axis_text(cd_te_compute *c, const char *name, const char *extent);
/* Append text to the body. */
void cd_compute_put(cd_te_compute *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Append "t3[i, j]". */
void cd_compute_load(cd_te_compute *c, uint32_t stage, char (*ix)[CD_COMPUTE_INDEX_SIZE]);
/* The same of result 0 of a stage that has several. */
void cd_compute_load_first(cd_te_compute *c, uint32_t stage, char (*ix)[CD_COMPUTE_INDEX_SIZE]);
/* The element at the open stage's own position, axes PREFIX0 ..., broadcast. */
void cd_compute_load_at(cd_te_compute *c, uint32_t stage, const char *prefix, const cd_graph_shape *out);
/* The open stage reads a stage: for who writes the load himself. */
void cd_compute_mark_read(cd_te_compute *c, uint32_t stage);
/* The same of result 0 of a stage that has several. */
void cd_compute_load_first_at(cd_te_compute *c, uint32_t stage, const char *prefix, const cd_graph_shape *out);
/* A literal of a type: "3.0", "1e-05:float64". */
void cd_compute_put_literal(cd_te_compute *c, double v, cd_dtype t);
/* Ends it; reduce: NULL, "sum", "max", "min" or a JSON object. Returns its number. */
uint32_t cd_compute_end(cd_te_compute *c, const char *name, const char *tag, const char *reduce);
/* The stage of operand k of node n: made, an argument or a constant. */
uint32_t cd_compute_operand(cd_te_compute *c, const cd_fuse_node *n, uint32_t k);
void cd_compute_mark_layout_free(cd_te_compute *c, uint32_t stage); /* mark a placeholder */
/* x + k and x*k as TVM's folding writes them. */
void cd_compute_index_add(char out[CD_COMPUTE_INDEX_SIZE], const char *x, int64_t k);
void cd_compute_index_mul(char out[CD_COMPUTE_INDEX_SIZE], const char *x, int64_t k);
void cd_compute_index_format(char out[CD_COMPUTE_INDEX_SIZE], const char *fmt, ...) __attribute__((format(printf, 2, 3)));
uint32_t cd_compute_fail(cd_te_compute *c, const char *why);

/* A padding stage around `stage`: TOPI's python one (axes i0 ..., both bounds of a dimension
 * that is padded) or its C++ one (ax0 ..., only bounds that matter). */
uint32_t cd_compute_pad(cd_te_compute *c, uint32_t stage, const char *name, bool python, const int64_t *before, const int64_t *after,
                   double value, cd_dtype t);

/* One function a kind of operator: its last stage. */
uint32_t cd_te_compute_conv(cd_te_compute *c, const cd_fuse_node *n);
uint32_t cd_te_compute_conv_transpose(cd_te_compute *c, const cd_fuse_node *n);
uint32_t cd_te_compute_dense(cd_te_compute *c, const cd_fuse_node *n);
uint32_t cd_te_compute_bmm(cd_te_compute *c, const cd_fuse_node *n);
uint32_t cd_te_compute_pool(cd_te_compute *c, const cd_fuse_node *n);
uint32_t cd_te_compute_pool_grad(cd_te_compute *c, const cd_fuse_node *n);
uint32_t cd_te_compute_adaptive(cd_te_compute *c, const cd_fuse_node *n);
uint32_t cd_te_compute_lrn(cd_te_compute *c, const cd_fuse_node *n);
uint32_t cd_te_compute_softmax(cd_te_compute *c, const cd_fuse_node *n);
uint32_t cd_te_compute_reduce(cd_te_compute *c, const cd_fuse_node *n);
uint32_t cd_te_compute_arg(cd_te_compute *c, const cd_fuse_node *n);
uint32_t cd_te_compute_concat(cd_te_compute *c, const cd_fuse_node *n);
uint32_t cd_te_compute_reshape(cd_te_compute *c, const cd_fuse_node *n);
uint32_t cd_te_compute_transpose(cd_te_compute *c, const cd_fuse_node *n);
uint32_t cd_te_compute_slice(cd_te_compute *c, const cd_fuse_node *n);
uint32_t cd_te_compute_padding(cd_te_compute *c, const cd_fuse_node *n);
uint32_t cd_te_compute_expand(cd_te_compute *c, const cd_fuse_node *n);
uint32_t cd_te_compute_tile(cd_te_compute *c, const cd_fuse_node *n);
uint32_t cd_te_compute_take(cd_te_compute *c, const cd_fuse_node *n);
uint32_t cd_te_compute_gather(cd_te_compute *c, const cd_fuse_node *n);
uint32_t cd_te_compute_resize(cd_te_compute *c, const cd_fuse_node *n);
uint32_t cd_te_compute_expr(cd_te_compute *c, const cd_fuse_node *n);
#endif

/* compute_internal -- writing one stage of a definition, and one function for each kind of
 * operator.
 *
 *   cd_compute_begin ─ cd_compute_add_axes, add_reduce_axis ─ cd_compute_load, put, put_literal ─
 *   cd_compute_end ─> "t4"
 *
 * A function of the table in te_compute.c takes a fusion node, asks for its operands' stages
 * (cd_compute_operand), writes one or more stages and returns the number of the last one. Operands
 * come first: a stage must not be open while another is written. Errors are sticky in c->st: after
 * one, every call does nothing and returns 0. Private to the room. */
#ifndef CD_COMPUTE_INTERNAL_H
#define CD_COMPUTE_INTERNAL_H
#include "profiler/network/compute/compute.h"

#define CD_COMPUTE_INDEX_SIZE 192 /* an index expression */

/* Begin a stage; then its axes, its body, its end. An axis has a name and an extent; add_axes adds
 * one for each dimension of s, called PREFIX0, PREFIX1 ...; the extent of add_reduce_axis_text is
 * an expression of the other axes. */
void cd_compute_begin(cd_te_compute *c);
void cd_compute_add_axes(cd_te_compute *c, const char *prefix, const cd_graph_shape *s);
/* Both: a stage whose axes are called PREFIX0, PREFIX1 ... */
void cd_compute_begin_axes(cd_te_compute *c, const char *prefix, const cd_graph_shape *s);
void cd_compute_add_reduce_axis(cd_te_compute *c, const char *name, int64_t extent);
void cd_compute_add_reduce_axis_text(cd_te_compute *c, const char *name, const char *extent);
/* Append text to the body. */
void cd_compute_put(cd_te_compute *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Append "t3[i, j]", one index for each dimension of the stage. */
void cd_compute_load(cd_te_compute *c, uint32_t stage, char (*ix)[CD_COMPUTE_INDEX_SIZE]);
/* The same of result 0 of a stage that has several. */
void cd_compute_load_first(cd_te_compute *c, uint32_t stage, char (*ix)[CD_COMPUTE_INDEX_SIZE]);
/* The element at the open stage's own position, axes PREFIX0 ..., broadcast. */
void cd_compute_load_at(cd_te_compute *c, uint32_t stage, const char *prefix,
                        const cd_graph_shape *out);
/* Note that the open stage reads `stage`: for a caller that writes the load itself with
 * cd_compute_put. */
void cd_compute_mark_read(cd_te_compute *c, uint32_t stage);
/* As cd_compute_load_at, of result 0 of a stage that has several. */
void cd_compute_load_first_at(cd_te_compute *c, uint32_t stage, const char *prefix,
                              const cd_graph_shape *out);
/* A literal of a type: "3.0", "1e-05:float64". */
void cd_compute_put_literal(cd_te_compute *c, double v, cd_dtype t);
/* End the stage and return its number. tag: TOPI's, NULL for none; reduce: NULL, the JSON text of
 * "sum", "max" or "min" with its quotes, or a JSON object of a combiner. */
uint32_t cd_compute_end(cd_te_compute *c, const char *name, const char *tag, const char *reduce);
/* The stage of operand k of node n: written now if it is a member of the group, else a placeholder
 * or a constant. */
uint32_t cd_compute_operand(cd_te_compute *c, const cd_fuse_node *n, uint32_t k);
/* x + k and x*k as TVM's constant folding writes them; index_format is snprintf. `out` may be x. */
void cd_compute_index_add(char out[CD_COMPUTE_INDEX_SIZE], const char *x, int64_t k);
void cd_compute_index_mul(char out[CD_COMPUTE_INDEX_SIZE], const char *x, int64_t k);
void cd_compute_index_format(char out[CD_COMPUTE_INDEX_SIZE], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The operator has no definition, for this reason (EUNSUPPORTED). Returns 0. */
uint32_t cd_compute_fail(cd_te_compute *c, const char *why);

/* The first spatial dimension of a pooling's operand. */
static inline uint32_t cd_compute_spatial(const cd_fuse_node *n) { return n->a.last ? 1 : 2; }

/* A padding stage around `stage`, with `value` of type t outside: TOPI's Python form (axes i0 ...,
 * both bounds of a dimension that is padded) or its C++ form (axes ax0 ..., only the bounds that
 * matter). before, after: (rank of the stage). */
uint32_t cd_compute_pad(cd_te_compute *c, uint32_t stage, const char *name, bool python,
                        const int64_t *before, const int64_t *after, double value, cd_dtype t);

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
uint32_t cd_te_compute_pack4(cd_te_compute *c, const cd_fuse_node *n);
#endif

/* batch -- some programs of a view, packed and scaled: what a network reads.
 *
 *   program i: tokens tok_ptr[i] .. tok_ptr[i+1], one per leaf, no padding. With `rows` in the
 *   spec feature rows take the place of leaves, everywhere below; they have no context.
 *   With `steps` the steps of the schedule do, as many of each program: further ones are
 *   cut off, missing ones are zeros.
 *
 *   tok  (n_tok, w_tok)  | 164 leaf columns | 82 of context, if wanted | 15 derived, if wanted |
 *                        of a step | its kind, one of 14 | `values` numbers of the record, or their
 *                        log2 |
 *   trips (n_tok)        ln of the iterations around the leaf, less a constant (scalers)
 *                        derived: sums and ratios of the columns (tree_input.h); of steps 0
 *   pos  (n_tok)         place of the leaf in the program's tree list
 *   prog (n, w_prog)     | PROGRAM form of tree_input.h without the device, log2 operations |
 *                        columns of facts_input.h, if wanted |
 *   dev  (n, w_dev)      row of the device table
 *   flop (n)             as in the view, not scaled
 *   tree                 of all programs, program_tree.h
 *
 * Context of a leaf, from its loops and the tree:
 *   8 x 6  the loops from the innermost outwards: log2(extent), kind one-hot (5)
 *   4 x 6  the loops from the outermost inwards, likewise; missing loops are zeros
 *   5      log2 of the product of extents, per kind
 *   5      log2(1 + pos), number of the leaf, leaves of the program, depth in the
 *          tree, depth of the deepest node shared with the leaf before
 *
 * (1) A batch has room for dims.n programs and dims.n_tok tokens; filling touches
 *     no heap. (2) What the spec does not ask for has width 0 and is not computed.
 * One batch a thread. */
#ifndef CD_BATCH_H
#define CD_BATCH_H
#include "learner/inputs/tree_input.h"
#include "learner/inputs/scaler.h"
#include "learner/tensor/tensor.h"
#include "learner/inputs/program_tree.h"
#include "learner/inputs/program_view.h"

enum { CD_BATCH_INNER = 8, CD_BATCH_OUTER = 4, CD_BATCH_KINDS = 5 };
#define CD_BATCH_CONTEXT                                                                           \
    ((CD_BATCH_INNER + CD_BATCH_OUTER) * (1 + CD_BATCH_KINDS) + CD_BATCH_KINDS + 5)

/* What to compute. `device` (n_device, w_dev): the vectors of the model's devices,
 * borrowed; w_dev 0: none. */
typedef struct cd_batch_spec {
    bool tokens, rows, context, derived, program, facts, tree; /* tree: with tokens, of leaves */
    /* tokens are so many steps of a program, so many numbers of a step; steps 0: they are leaves or
     * rows */
    size_t steps, values;
    bool log_values; /* of steps: log2(1 + |v|) with the sign of v, else v */
    size_t n_device, w_dev;
    const float *device;
} cd_batch_spec;

size_t cd_batch_token_width(const cd_batch_spec *s); /* 0, 164 .. 261; of steps 14 + values */
/* of the program vector and the facts, what is wanted of them */
size_t cd_batch_program_width(const cd_batch_spec *s);

/* How large a batch can get. */
typedef struct cd_batch_dims {
    size_t n, n_tok, max_leaf; /* programs, tokens, leaves of one program */
    size_t n_node;             /* inner nodes of their trees */
} cd_batch_dims;
/* The largest batch of `batch` programs that can be drawn from index[0 .. n_index)
 * of the view (index NULL: programs 0 .. n_index). Errors: ENOMEM. */
cdmpp_status cd_batch_bound(const cd_batch_spec *spec, const cd_program_view *v,
                            const uint32_t *index, size_t n_index, size_t batch, cd_batch_dims *out,
                            cdmpp_err *err);

/* Scalers of the three inputs; part of a model. */
typedef struct cd_scalers {
    cd_scaler tok, prog, dev, trips; /* trips: shift only, see cd_scalers_fit */
} cd_scalers;
/* Identity. Errors: ENOMEM. */
cdmpp_status cd_scalers_init(cd_scalers *s, const cd_batch_spec *spec, cdmpp_err *err);
/* Fit tokens and programs to index[0 .. n) of the view, the train part. Device vectors come on a
 * common scale (features/device/device.h) and are left alone: of one device every column would be
 * constant. trips is shifted so that the mean over programs of ln(sum over leaves of e^trips) is 0.
 * s is initialised. Errors: ENOMEM, EMODEL (a program without leaves). */
cdmpp_status cd_scalers_fit(cd_scalers *s, cd_scale kind, const cd_batch_spec *spec,
                            const cd_program_view *v, const uint32_t *index, size_t n,
                            cdmpp_err *err);
void cd_scalers_free(cd_scalers *s);
/* Eight tensors "scaler.tokens.shift" ...; t has room for CD_SCALERS_TENSORS. */
enum { CD_SCALERS_TENSORS = 8 };
size_t cd_scalers_tensors(const cd_scalers *s, cd_tensor *t);
/* Into initialised scalers of the same widths. Errors: EMODEL, EPARSE. */
cdmpp_status cd_scalers_read(cd_scalers *s, const cd_safetensors *f, cdmpp_err *err);

typedef struct cd_batch {
    size_t n, n_tok, max_leaf;
    size_t w_tok, w_prog, w_dev;
    uint32_t *tok_ptr; /* (n+1) */
    float *tok, *prog, *dev, *trips;
    int32_t *pos;
    double *flop;
    bool has_tree;
    cd_program_tree tree;
    cd_batch_dims dims; /* room */
    cd_slab slab;
} cd_batch;

/* Errors: ENOMEM. */
cdmpp_status cd_batch_init(cd_batch *b, const cd_batch_spec *spec, const cd_batch_dims *dims,
                           cdmpp_err *err);
void cd_batch_free(cd_batch *b);
/* Programs index[0 .. n) of the view (index NULL: 0 .. n). `spec` is that of
 * cd_batch_init. Errors: EMODEL (a program without leaves, steps or facts where these are wanted, a
 * tree that is none, a device outside the table), ERANGE (more than there is room for). */
cdmpp_status cd_batch_fill(cd_batch *b, const cd_batch_spec *spec, const cd_scalers *s,
                           const cd_program_view *v, const uint32_t *index, size_t n,
                           cdmpp_err *err);
/* Whether the program has what `s` reads (leaves, a loop nest). Errors: EMODEL. */
cdmpp_status cd_batch_check(const cd_batch_spec *s, const cd_program_view *v, size_t program,
                            cdmpp_err *err);
#endif

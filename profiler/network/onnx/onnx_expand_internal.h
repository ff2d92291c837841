/* onnx_expand_internal -- an operator that is a combination of others becomes these: those that
 * ONNX itself defines by a function, and those that ONNX Runtime's optimizer writes in domain
 * com.microsoft.
 *
 *   SkipLayerNormalization(x, s, g, b)  ─>  Add(x, s) ── LayerNormalization(., g, b)
 *
 *   (1) an expansion reads operands with cd_onnx_expand_in, appends nodes with the calls below, and
 *       gives results with cd_onnx_expand_out;
 *   (2) failure is sticky: x->st is set, later calls append nothing and return CD_GRAPH_NONE;
 *   (3) what an expansion does not know sets x->why: the node is missing, with this reason, and
 *       what was appended is read by nobody. That is sticky, too: what would be wrong behind it is
 *       not looked at.
 * Shapes are known here, so that all of it is operators with constant parameters. To add one: a
 * function and a row in a table. Private to the room. */
#ifndef CD_ONNX_EXPAND_INTERNAL_H
#define CD_ONNX_EXPAND_INTERNAL_H
#include "profiler/network/onnx/onnx_internal.h"

typedef struct cd_expand {
    cd_onnx_reader *r;
    const cd_onnx_scope *s;
    const CdOnnx__NodeProto *n;
    const char *name;   /* of the node */
    const uint32_t *in; /* (n_in) CD_GRAPH_NONE: absent */
    uint32_t n_in, n_out;
    uint32_t *out;   /* (n_out) */
    const char *why; /* NULL: expanded; a text that stays */
    cdmpp_status st;
    cdmpp_err *err;
} cd_expand;

typedef struct cd_expansion {
    const char *domain, *op; /* "": ONNX's own */
    void (*fn)(cd_expand *x);
    const char *attrs; /* that it reads, with blanks between; others are reported */
} cd_expansion;

/* Each ends with op NULL. */
extern const cd_expansion cd_onnx_expansions_norm[], cd_onnx_expansions_attention[],
    cd_onnx_expansions_quantized[];

/* ---- reading ---- */
static inline bool cd_onnx_expand_has(const cd_expand *x, uint32_t k) {
    return k < x->n_in && x->in[k] != CD_GRAPH_NONE;
}
/* Operand k; where it is absent the node is wrong (ESCHEMA). */
uint32_t cd_onnx_expand_in(cd_expand *x, uint32_t k);
/* Shape and type of a tensor; of CD_GRAPH_NONE a scalar of float32. */
cd_graph_shape cd_onnx_expand_shape(const cd_expand *x, uint32_t t);
cd_dtype cd_onnx_expand_type(const cd_expand *x, uint32_t t);
int64_t cd_onnx_expand_int(cd_expand *x, const char *name, int64_t absent);
double cd_onnx_expand_float(cd_expand *x, const char *name, double absent);
/* Is result k asked for? */
bool cd_onnx_expand_wants(const cd_expand *x, uint32_t k);
/* Sets ESCHEMA unless the shape has this rank; false then, and where the expansion has failed
 * before. */
bool cd_onnx_expand_rank(cd_expand *x, uint32_t t, uint32_t lo, uint32_t hi);
void cd_onnx_expand_wrong(cd_expand *x, const char *what);

/* ---- appending ---- */
/* One result; operands that are CD_GRAPH_NONE at the end are left out. */
uint32_t cd_onnx_expand_add(cd_expand *x, const char *op, const uint32_t *in, uint32_t n_in,
                            const cd_graph_attr *attr, uint32_t n_attr);
/* The same with several results; CD_GRAPH_NONE each where nothing is appended. */
uint32_t cd_onnx_expand_unary(cd_expand *x, const char *op, uint32_t a);
uint32_t cd_onnx_expand_binary(cd_expand *x, const char *op, uint32_t a, uint32_t b);
/* A scalar of this real type. */
uint32_t cd_onnx_expand_real(cd_expand *x, cd_dtype t, double v);
uint32_t cd_onnx_expand_ints(cd_expand *x, const int64_t *v, uint32_t n);
/* a * v; a itself where v is 1. */
uint32_t cd_onnx_expand_times(cd_expand *x, uint32_t a, double v);
uint32_t cd_onnx_expand_reshape(cd_expand *x, uint32_t a, uint32_t rank, const int64_t *dim);
uint32_t cd_onnx_expand_transpose(cd_expand *x, uint32_t a, uint32_t rank, const int64_t *perm);
/* from .. to of one axis, in steps. */
uint32_t cd_onnx_expand_slice(cd_expand *x, uint32_t a, int64_t axis, int64_t from, int64_t to,
                              int64_t step);
uint32_t cd_onnx_expand_concat(cd_expand *x, uint32_t a, uint32_t b, int64_t axis);
uint32_t cd_onnx_expand_gather(cd_expand *x, uint32_t table, uint32_t index, int64_t axis);
uint32_t cd_onnx_expand_softmax(cd_expand *x, uint32_t a);
/* To the type; a itself where it has it. */
uint32_t cd_onnx_expand_cast(cd_expand *x, uint32_t a, cd_dtype t);
/* Gives result k; more than the node asks for are no error. */
void cd_onnx_expand_out(cd_expand *x, uint32_t k, uint32_t t);

/* Quantised products (onnx_expand.c): operands a, b with scales and zero points (absent:
 * CD_GRAPH_NONE), in float32. */
typedef struct cd_onnx_expand_product {
    uint32_t a, b, a_scale, b_scale, a_zero, b_zero, bias;
} cd_onnx_expand_product;
uint32_t cd_onnx_expand_integer_product(cd_expand *x, const cd_onnx_expand_product *p);

/* The row for a node; NULL: none. */
const cd_expansion *cd_onnx_expansion_of(const CdOnnx__NodeProto *n);
/* Appends what stands for the node: out (n_output) its results. *why not NULL: it cannot be done,
 * for this reason. Errors: those of cd_graph_add. */
cdmpp_status cd_onnx_expand(cd_onnx_reader *r, const cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                            const uint32_t *in, uint32_t *out, const char **why, cdmpp_err *err);
#endif

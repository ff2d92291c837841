/* What the files of profiler/network/onnx share among themselves. */
#ifndef CD_PROFILER_NETWORK_ONNX_INTERNAL_H
#define CD_PROFILER_NETWORK_ONNX_INTERNAL_H
#include <onnx/onnx.pb-c.h>
#include <protobuf-c/protobuf-c.h>

#include "profiler/network/onnx/onnx.h"

/* onnx_strip, onnx_metadata: a walk over the bytes of protocol buffers. */

typedef struct cd_onnx_wire {
    const unsigned char *p;
    size_t at, end;
    bool all; /* of cd_onnx_strip */
} cd_onnx_wire;

/* onnx_map_internal -- names of one scope -> numbers. Keys are borrowed, memory is an arena's. */

typedef struct cd_onnx_map {
    struct cd_onnx_slot *slot; /* (cap) open addressing, a power of two */
    uint32_t n, cap;
} cd_onnx_map;

/* Number of `name`; NULL when it is not there. Valid until the next put. */
uint32_t *cd_onnx_map_find(const cd_onnx_map *m, const char *name);
/* Set it; *old: it was there. Errors: ENOMEM. */
cdmpp_status cd_onnx_map_put(cd_onnx_map *m, cd_arena *a, CD_KEEP const char *name, uint32_t value,
                             bool *old, cdmpp_err *err);

/* onnx_quota_internal -- an allocator for protobuf-c with a limit: each message becomes a struct of
 * some 100 bytes, however short it was in the file, so a small hostile file could use up the
 * memory. Nothing is freed before the arena. */

typedef struct cd_onnx_quota {
    cd_arena *a;
    size_t n, most, used;
    bool over, oom;
} cd_onnx_quota;

/* onnx_scope_internal -- the state of a reading: names of each scope, and the functions that the
 * files of the room share.
 *
 *   main graph's names <─ names of an If's branch      a function's names: on their own
 *
 *   (1) a name stands for a tensor of the graph, or for CD_ONNX_UNKNOWN: it is
 *       defined, but its shape is not known (it is behind an unsupported node);
 *   (2) in one scope a name is defined once; a branch may not hide outer names.
 * Private to the room. */

#define CD_ONNX_UNKNOWN (UINT32_MAX - 1)

typedef struct cd_onnx_scope {
    const struct cd_onnx_scope *up; /* of the graph around a branch */
    cd_onnx_map name;
    cd_onnx_map shape; /* value_info: name -> number in info */
    /* name of unknown shape -> number in miss of the operator that is to blame */
    cd_onnx_map cause;
    CdOnnx__ValueInfoProto **info;
    const CdOnnx__NodeProto *call; /* of a function: whose attributes ref_attr_name means */
    const struct cd_onnx_scope *caller;
    /* (n_absent) the function's own values for what a call leaves out */
    const CdOnnx__AttributeProto **absent;
    size_t n_absent;
    unsigned depth;
} cd_onnx_scope;

/* The whole reading. */
typedef struct cd_onnx_reader {
    const cd_onnx_options *o;
    const CdOnnx__ModelProto *model;
    const char *folder;
    cd_graph *g;
    cd_arena *a;        /* until the graph stands */
    cd_onnx_miss *miss; /* (n_miss of cap_miss) in the graph's arena */
    /* n_expanded: of n_node, within functions, branches and bodies */
    uint32_t n_miss, cap_miss, n_node, n_expanded;
    /* the batch dimension of the first data input in the file, where a batch size replaces it; 0:
     * not replaced */
    int64_t old_batch;
    /* or the name that stands there: wherever it stands it is the batch; NULL: none */
    const char *batch_name;
    const char *batch_input; /* that has the batch size; NULL: none */
    /* tensors that unsupported nodes read: they become results of the graph */
    uint32_t *kept, n_kept, cap_kept;
    bool *used; /* (o->n_dim) this option named a dimension, an If or a Loop */
    /* tensors of a type that the graph does not have -> ONNX's number of it */
    cd_onnx_map no_type;
    cd_onnx_map function; /* name of a function -> the first of that name in the model */
    cd_onnx_map lost;     /* initializers whose external file could not be read */
    const char *lost_why;
} cd_onnx_reader;

/* "" for an absent text. */
static inline const char *cd_onnx_text(const char *s) { return s ? s : ""; }
static inline bool cd_onnx_own_domain(const char *s) {
    return !s || !*s || __builtin_strcmp(s, "ai.onnx") == 0;
}

/* ---- onnx.c ---- */
/* Errors: ESCHEMA (defined already), ENOMEM. */
cdmpp_status cd_onnx_define(cd_onnx_reader *r, cd_onnx_scope *s, const char *name, uint32_t tensor,
                            cdmpp_err *err);
/* Tensor of a name, here or around; NULL: not defined. */
const uint32_t *cd_onnx_look_up(const cd_onnx_scope *s, const char *name);
/* The value_info and results of a graph, for cd_onnx_file_shape. Errors: ENOMEM. */
cdmpp_status cd_onnx_index_shapes(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__GraphProto *g,
                                  cdmpp_err *err);
/* Append the nodes of a graph, function or branch to r->g, in an order that works; results are
 * defined in s. Errors: as cd_onnx_read, key = the node. */
cdmpp_status cd_onnx_nodes(cd_onnx_reader *r, cd_onnx_scope *s, CdOnnx__NodeProto *const *node,
                           size_t n, cdmpp_err *err);
/* Attribute by name, references to the call of the function followed; NULL: absent. */
const CdOnnx__AttributeProto *cd_onnx_attr(const cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                                           const char *name);
/* Results of an inner scope under the names that the node has for them; tensors from `first` on are
 * its own. */
cdmpp_status cd_onnx_give_back(cd_onnx_reader *r, cd_onnx_scope *s, const cd_onnx_scope *in,
                               const CdOnnx__NodeProto *n, uint32_t first,
                               const char *const *result, size_t n_result, cdmpp_err *err);

/* ---- onnx_order.c ---- */
/* Numbers of nodes so that none reads what a later one makes; file order where that is one. Errors:
 * ESCHEMA (a cycle), ENOMEM. */
cdmpp_status cd_onnx_order(cd_arena *a, CdOnnx__NodeProto *const *node, size_t n,
                           const uint32_t **order, cdmpp_err *err);

/* ---- onnx_tensor.c ---- */
/* A tensor of the file as a weight or constant. `weight`: an initializer; reals of more than a few
 * elements keep no content. */
cdmpp_status cd_onnx_tensor(cd_onnx_reader *r, const CdOnnx__TensorProto *t, const char *name,
                            bool weight, uint32_t *tensor, cdmpp_err *err);
/* Content as integers or reals, by its type; both NULL: none there, or of a type that programs do
 * not compute with. In the scratch arena. */
cdmpp_status cd_onnx_content(cd_onnx_reader *r, const CdOnnx__TensorProto *t, int64_t n,
                             const int64_t **v, const double **f, cdmpp_err *err);
/* Inputs, weights and constants that a graph starts from. */
cdmpp_status cd_onnx_inputs(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__GraphProto *g,
                            cdmpp_err *err);
/* ---- onnx_tensor.c: axis[i], the dimension of g->input[i] that is the batch. Errors: ENOMEM
 * ---- */
/* All attributes in the graph's form, in the scratch arena. Tensors, graphs and types are left out,
 * except ConstantOfShape's value. */
cdmpp_status cd_onnx_attrs(cd_onnx_reader *r, const cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                           cd_graph_attr **out, uint32_t *n_out, cdmpp_err *err);

/* ---- onnx_role.c: rules a .. e of onnx.h; data[i] of g->input[i] ---- */
cdmpp_status cd_onnx_roles(cd_onnx_reader *r, const CdOnnx__GraphProto *g, const uint32_t *order,
                           bool *data, cdmpp_err *err);

/* ---- onnx_control.c ---- */
/* Shapes and types (n_output) of results whose size depends on the data, where an option says the
 * size: then *known. *why: the reason why the node is missing, if it is another one. Errors:
 * EUSAGE, ESCHEMA, ENOMEM. */
cdmpp_status cd_onnx_sizes(cd_onnx_reader *r, const cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                           const uint32_t *in, cd_graph_shape *shape, cd_dtype *type,
                           const char **why, bool *known, cdmpp_err *err);
/* Append the branch of an If that runs, the body of a Loop as often as it runs. *why not NULL: that
 * is not known, nothing was appended. Errors: EUSAGE (an option of cd_onnx_options.dim that does
 * not fit), ERANGE (too often), those of cd_onnx_nodes. */
cdmpp_status cd_onnx_loop(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                          const char **why, cdmpp_err *err);
cdmpp_status cd_onnx_if(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                        const char **why, cdmpp_err *err);

/* onnx_strip_internal -- a model without what makes it large.
 *
 * Walks the wire format (tag, length, bytes), copies it and leaves out contents of
 * tensors that hold more than CD_GRAPH_MAX_VALUE elements for sure, the training
 * part and documentation. So a file of gigabytes needs the memory of its graph, and
 * what protobuf-c reads afterwards is neither deeper than CD_ONNX_MAX_DEPTH nor
 * larger than CD_ONNX_MAX_STRIPPED. */

/* The n bytes of a serialized ModelProto, without large contents, appended to *out. Errors: EPARSE
 * (with the byte), ERANGE, ENOMEM. */
/* all: large contents stay */
cdmpp_status cd_onnx_strip(const void *data, size_t n, bool all, cd_buf *out, cdmpp_err *err);
#endif

/* onnx_scope -- what is known while a model becomes a graph.
 *
 *   main graph's names <─ names of an If's branch      a function's names: on their own
 *
 *   (1) a name stands for a tensor of the graph or CD_ONNX_UNKNOWN: it is
 *       defined, but nobody knows its shape;
 *   (2) in one scope a name is defined once; a branch may not hide outer names. */
#ifndef CD_ONNX_SCOPE_INTERNAL_H
#define CD_ONNX_SCOPE_INTERNAL_H
#include <onnx/onnx.pb-c.h>

#include "profiler/network/onnx/onnx.h"
#include "profiler/network/onnx/onnx_map_internal.h"

#define CD_ONNX_UNKNOWN (UINT32_MAX - 1)
#define CD_ONNX_MAX_NODE (1U << 20)  /* nodes read, those of functions each time that they are called */
#define CD_ONNX_MAX_NESTED 16        /* functions and branches */

typedef struct cd_onnx_scope {
    const struct cd_onnx_scope *up; /* of the graph around a branch */
    cd_onnx_map name;
    cd_onnx_map shape;              /* value_info: name -> number in info */
    CdOnnx__ValueInfoProto **info;
    const CdOnnx__NodeProto *call;    /* of a function: whose attributes ref_attr_name means */
    const struct cd_onnx_scope *caller;
    const CdOnnx__AttributeProto **absent; /* (n_absent) the function's own values for what a call leaves out */
    size_t n_absent;
    unsigned depth;
} cd_onnx_scope;

/* The whole reading. */
typedef struct cd_onnx_reader {
    const cd_onnx_options *o;
    const CdOnnx__ModelProto *model;
    const char *folder;
    cd_graph *g;
    cd_arena *a;                    /* until the graph stands */
    cd_onnx_miss *miss;             /* (n_miss of cap_miss) in the graph's arena */
    uint32_t n_miss, cap_miss, n_node;
    int64_t old_batch;              /* dimension 0 of the first data input in the file, where a batch size replaces it; 0: not replaced */
    const char *batch_name;         /* or the name that stands there: wherever it stands it is the batch; NULL: none */
    const char *batch_input;        /* whose dimension 0 is the batch size; NULL: none */
    uint32_t *kept, n_kept, cap_kept; /* tensors that nodes read which are no part of the graph: made all the same */
    bool *used;                     /* (o->n_dim) this option named a dimension */
    cd_onnx_map lost;               /* initializers whose external file could not be read */
    const char *lost_why;
} cd_onnx_reader;

/* "" for an absent text. */
static inline const char *cd_onnx_text(const char *s) { return s ? s : ""; }
static inline bool cd_onnx_own_domain(const char *s) { return !s || !*s || __builtin_strcmp(s, "ai.onnx") == 0; }

/* ---- onnx_scope.c ---- */
/* Errors: ESCHEMA (defined already), ENOMEM. */
cdmpp_status cd_onnx_define(cd_onnx_reader *r, cd_onnx_scope *s, const char *name, uint32_t tensor, cdmpp_err *err);
/* Tensor of a name, here or around; NULL: not defined. */
const uint32_t *cd_onnx_look_up(const cd_onnx_scope *s, const char *name);
/* A line of the misses. */
cdmpp_status cd_onnx_missed(cd_onnx_reader *r, const CdOnnx__NodeProto *n, const char *reason, cdmpp_err *err);
/* The value_info and results of a graph, for cd_onnx_told. Errors: ENOMEM. */
cdmpp_status cd_onnx_index_shapes(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__GraphProto *g, cdmpp_err *err);
/* What the file says of a name's shape; false: nothing, or not all of it. */
bool cd_onnx_told(const cd_onnx_reader *r, const cd_onnx_scope *s, const char *name, cd_graph_shape *shape, cd_dtype *t);

/* ---- onnx_order.c ---- */
/* Numbers of nodes so that none reads what a later one makes; file order where that is one. Errors: ESCHEMA (a cycle), ENOMEM. */
cdmpp_status cd_onnx_order(cd_arena *a, CdOnnx__NodeProto *const *node, size_t n, const uint32_t **order, cdmpp_err *err);

/* ---- onnx_tensor.c ---- */
/* A tensor of the file as a weight or constant. `weight`: an initializer; reals of more than a few elements keep no content. */
cdmpp_status cd_onnx_tensor(cd_onnx_reader *r, const CdOnnx__TensorProto *t, const char *name, bool weight, uint32_t *tensor, cdmpp_err *err);
/* Its dimensions. */
cdmpp_status cd_onnx_dims(const CdOnnx__TensorProto *t, cd_graph_shape *s, cdmpp_err *err);
/* Content as integers or reals, by its type; both NULL: none there. In the scratch arena. */
cdmpp_status cd_onnx_content(cd_onnx_reader *r, const CdOnnx__TensorProto *t, int64_t n, const int64_t **v, const double **f, cdmpp_err *err);

/* ---- onnx_input.c ---- */
/* Inputs, weights and constants that a graph starts from. */
cdmpp_status cd_onnx_inputs(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__GraphProto *g, cdmpp_err *err);
/* ---- onnx_role.c: rules a .. e of onnx.h; data[i] of g->input[i] ---- */
cdmpp_status cd_onnx_roles(cd_onnx_reader *r, const CdOnnx__GraphProto *g, const uint32_t *order, bool *data, cdmpp_err *err);

/* ---- onnx_node.c ---- */
cdmpp_status cd_onnx_nodes(cd_onnx_reader *r, cd_onnx_scope *s, CdOnnx__NodeProto *const *node, size_t n, cdmpp_err *err);
/* Attribute by name, those of the function around by reference; NULL: absent. */
const CdOnnx__AttributeProto *cd_onnx_attr(const cd_onnx_scope *s, const CdOnnx__NodeProto *n, const char *name);
/* Follow ref_attr_name. NULL: the call does not have it. */
const CdOnnx__AttributeProto *cd_onnx_deref(const cd_onnx_scope *s, const CdOnnx__AttributeProto *a);
/* ---- onnx_attr.c: in the scratch arena; others than numbers and texts are left out ---- */
cdmpp_status cd_onnx_attrs(cd_onnx_reader *r, const cd_onnx_scope *s, const CdOnnx__NodeProto *n, cd_graph_attr **out, uint32_t *n_out, cdmpp_err *err);
/* ---- onnx_flow.c ---- */
const CdOnnx__FunctionProto *cd_onnx_function(const cd_onnx_reader *r, const CdOnnx__NodeProto *n);
cdmpp_status cd_onnx_inline(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__NodeProto *n, const CdOnnx__FunctionProto *f, cdmpp_err *err);
/* onnx_absent.c: s->absent of a function. */
cdmpp_status cd_onnx_function_defaults(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__FunctionProto *f, cdmpp_err *err);
/* The branch that is known to run; *why: none is. */
cdmpp_status cd_onnx_if(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__NodeProto *n, const char **why, cdmpp_err *err);
/* Version of a domain "" in a list; 0: none. */
int64_t cd_onnx_opset(CdOnnx__OperatorSetIdProto *const *set, size_t n);
#endif

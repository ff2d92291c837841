/* The door of features/tvm: other rooms include this header and no other of the room.
 *
 * TVM's own forms of a task. unpickle.h reads Python pickles without executing anything; tvm_node.h
 * reads the graph JSON inside them as an array of nodes; tvm_graph.h makes the definition (te) of
 * such a graph. */
#ifndef CD_FEATURES_TVM_DOOR_H
#define CD_FEATURES_TVM_DOOR_H
#include "features/te/te.h"

/* TVM's save_json node graphs -> definitions. Both dialects are read, that of TVM v0.9 and that of
 * the TenSet fork (docs/internals/ansor.md, Tasks). The graph's own reader is tvm_node.h. */

/* Build a DAG from the save_json text of Array<Tensor>. *out is owned by the
 * caller (cd_te_dag_free). Errors: EPARSE, ESCHEMA, EUNSUPPORTED, ENOMEM, with
 * the node as key ("nodes[12].attrs.a"). `scratch` holds the text's tree: reset it
 * when done; the DAG keeps nothing of it or of the text. */
cdmpp_status cd_tvm_graph_dag(cd_arena *scratch, const char *text, size_t len, cd_te_dag **out,
                              cdmpp_err *err);

/* A save_json text as an indexed array of nodes (docs/internals/ansor.md, Tasks).
 *
 *   {"root": 1, "nodes": [{"type_key": ""}, {"type_key": "Array", "data": [2]}, ...]}
 *
 * Nodes refer to each other by index, 0 is null. Every read is checked: the
 * index exists, the member is there, the text is a number. Errors carry the
 * place, "nodes[12].attrs.a". Lives in the arena that it was opened with; the
 * text must stay. */

/* X(enum, type_key): the nodes that a task file may hold. */
#define CD_TVM_MAP(X)                                                                              \
    X(NULL, "")                                                                                    \
    X(ARRAY, "Array")                                                                              \
    X(MAP, "Map")                                                                                  \
    X(STRING, "runtime.String")                                                                    \
    X(OP, "Op")                                                                                    \
    X(TENSOR, "Tensor")                                                                            \
    X(PLACEHOLDER, "PlaceholderOp")                                                                \
    X(COMPUTE, "ComputeOp")                                                                        \
    X(ITERVAR, "tir.IterVar")                                                                      \
    X(RANGE, "Range")                                                                              \
    X(VAR, "tir.Var")                                                                              \
    X(SIZEVAR, "tir.SizeVar")                                                                      \
    X(INT, "IntImm")                                                                               \
    X(FLOAT, "FloatImm")                                                                           \
    X(STR, "tir.StringImm")                                                                        \
    X(CAST, "tir.Cast")                                                                            \
    X(ADD, "tir.Add")                                                                              \
    X(SUB, "tir.Sub")                                                                              \
    X(MUL, "tir.Mul")                                                                              \
    X(DIV, "tir.Div")                                                                              \
    X(MOD, "tir.Mod")                                                                              \
    X(FDIV, "tir.FloorDiv")                                                                        \
    X(FMOD, "tir.FloorMod")                                                                        \
    X(MIN, "tir.Min")                                                                              \
    X(MAX, "tir.Max")                                                                              \
    X(EQ, "tir.EQ")                                                                                \
    X(NE, "tir.NE")                                                                                \
    X(LT, "tir.LT")                                                                                \
    X(LE, "tir.LE")                                                                                \
    X(GT, "tir.GT")                                                                                \
    X(GE, "tir.GE")                                                                                \
    X(AND, "tir.And")                                                                              \
    X(OR, "tir.Or")                                                                                \
    X(NOT, "tir.Not")                                                                              \
    X(SELECT, "tir.Select")                                                                        \
    X(LOAD, "tir.ProducerLoad")                                                                    \
    X(CALL, "tir.Call")                                                                            \
    X(REDUCE, "tir.Reduce")                                                                        \
    X(COMBINER, "tir.CommReducer")                                                                 \
    X(TARGET, "Target")                                                                            \
    X(TARGETKIND, "TargetKind")                                                                    \
    X(HARDWARE, "auto_scheduler.HardwareParams")

typedef enum cd_tvm_node_kind {
#define CD_X(name, key) CD_TVM_##name,
    CD_TVM_MAP(CD_X)
#undef CD_X
        CD_TVM_OTHER /* known to TVM or not: an error once something needs it */
} cd_tvm_node_kind;

typedef struct cd_tvm_graph {
    cd_arena *arena;
    uint32_t n, root;
    const cd_json **node; /* (n) */
    uint8_t *kind;        /* (n) cd_tvm_node_kind */
    cdmpp_err *err;
} cd_tvm_graph;

/* Parses the text and looks at the type of every node, and at the items of every list. Errors:
 * EPARSE, ESCHEMA, ENOMEM. */
cdmpp_status cd_tvm_graph_open(cd_arena *a, const char *text, size_t len, cd_tvm_graph *g,
                               cdmpp_err *err);

static inline cd_tvm_node_kind cd_tvm_graph_kind(const cd_tvm_graph *g, uint32_t i) {
    return (cd_tvm_node_kind)g->kind[i];
}
/* "tir.Add" ... as written. */
cd_str cd_tvm_graph_type_key(const cd_tvm_graph *g, uint32_t i);
/* Add "nodes[i].attrs.<attr>" (attr may be NULL) to an error; passes st on. */
cdmpp_status cd_tvm_graph_error_at(const cd_tvm_graph *g, uint32_t i, const char *attr,
                                   cdmpp_status st);
/* Node i is of this kind, else ESCHEMA. */
cdmpp_status cd_tvm_graph_expect(const cd_tvm_graph *g, uint32_t i, cd_tvm_node_kind want);

/* Attributes of node i: is it there; as text, integer, real number, number of another node. Errors:
 * ESCHEMA. */
bool cd_tvm_graph_has(const cd_tvm_graph *g, uint32_t i, const char *attr);
cdmpp_status cd_tvm_graph_str(const cd_tvm_graph *g, uint32_t i, const char *attr, cd_str *out);
cdmpp_status cd_tvm_graph_int(const cd_tvm_graph *g, uint32_t i, const char *attr, int64_t *out);
cdmpp_status cd_tvm_graph_real(const cd_tvm_graph *g, uint32_t i, const char *attr, double *out);
cdmpp_status cd_tvm_graph_ref(const cd_tvm_graph *g, uint32_t i, const char *attr, uint32_t *out);
/* Reference to an Array: its node index. */
cdmpp_status cd_tvm_graph_array(const cd_tvm_graph *g, uint32_t i, const char *attr, uint32_t *out);

/* Items of an Array node (or the flat data of a Map): the first one, NULL where there are none.
 * Walk it with cd_tvm_graph_item, which steps on; each is the index of a node (cd_tvm_graph_open
 * has checked that). */
const cd_json *cd_tvm_graph_items(const cd_tvm_graph *g, uint32_t i, uint32_t *n);
uint32_t cd_tvm_graph_item(const cd_json **item);
/* Text of a runtime.String, Op or TargetKind node. */
cdmpp_status cd_tvm_graph_text(const cd_tvm_graph *g, uint32_t i, cd_str *out);

/* One entry of a Map per call, in order. */
typedef struct cd_tvm_graph_map {
    const cd_json *key, *value;
    bool plain; /* keys are in "keys", else every other item of "data" is a key */
} cd_tvm_graph_map;
/* Start; the next entry, *more false after the last. A key that is no text is "". Errors:
 * ESCHEMA. */
cdmpp_status cd_tvm_graph_map_open(const cd_tvm_graph *g, uint32_t i, cd_tvm_graph_map *m);
cdmpp_status cd_tvm_graph_map_next(const cd_tvm_graph *g, uint32_t i, cd_tvm_graph_map *m,
                                   cd_str *key, uint32_t *value, bool *more);

/* A restricted reader of Python pickles, protocols 2 to 5.
 *
 *   list                                     LIST
 *    |- SearchTask{...}                       OBJ  name "tvm...SearchTask"
 *         args  ()                                  what it was created from
 *         state {"compute_dag": OBJ, ...}           DICT: key, value, key, value
 *
 * Executes nothing. Knows the opcodes that plain data and TVM's task files use
 * and the classes of the table in unpickle.c; any other class or function is
 * an error that names it. Memory is bounded by the size of the input (a value
 * costs at least a few bytes of file, see MAX_VALUES); nothing recurses. A
 * value may be reachable on several ways and, in a hostile file, from itself:
 * walk to a known depth only. Strings are slices of the input. */

typedef enum {
    CD_UNPICKLE_NONE,
    CD_UNPICKLE_BOOL,
    CD_UNPICKLE_INT,
    CD_UNPICKLE_REAL,
    CD_UNPICKLE_STR,
    CD_UNPICKLE_BYTES,
    CD_UNPICKLE_TUPLE,
    CD_UNPICKLE_LIST,
    CD_UNPICKLE_DICT,
    CD_UNPICKLE_CLASS,
    CD_UNPICKLE_OBJ
} cd_unpickle_kind;

typedef struct cd_unpickle_value {
    cd_unpickle_kind kind;
    uint32_t n, cap; /* items of TUPLE, LIST; 2 per entry of DICT */
    union {
        int64_t i;                       /* INT, BOOL */
        double f;                        /* REAL */
        cd_str s;                        /* STR, BYTES */
        struct cd_unpickle_value **item; /* (n) TUPLE, LIST, DICT */
        const char *name;                /* CLASS: "module.name", static */
        struct {
            const char *name;                             /* class */
            const struct cd_unpickle_value *args, *state; /* NULL when not given */
        } obj;
    } u;
} cd_unpickle_value;

/* Errors: EPARSE (with the byte offset), EUNSUPPORTED (opcode, class, call),
 * ERANGE (limits), ENOMEM. */
cdmpp_status cd_unpickle(cd_arena *a, const char *p, size_t len,
                         CD_KEEP const cd_unpickle_value **out, cdmpp_err *err);

/* An OBJ of this class? v may be NULL. */
bool cd_unpickle_is_obj(const cd_unpickle_value *v, const char *name);
/* Last value of a string key; NULL when absent or `dict` is no DICT. */
const cd_unpickle_value *cd_unpickle_get(const cd_unpickle_value *dict, const char *key);
/* Python's name of the kind, for messages. */
const char *cd_unpickle_kind_name(cd_unpickle_kind k);
#endif

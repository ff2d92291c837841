/* The door of features/nest: other rooms include this header and no other of the room.
 *
 * The loop nest of a program: its nodes in pre-order, simplification, TVM's notation, the compact
 * AST (ast.h), and unique names of its variables for printing and code (unique_names.h). Schedules
 * are lowered to it; features and code are made from it. */
#ifndef CD_FEATURES_NEST_DOOR_H
#define CD_FEATURES_NEST_DOOR_H
#include "features/simplify/simplify.h"

/* The loop nest of a program, nodes stored in pre-order.
 *
 *   realize C          node[0] REALIZE  parent -1
 *     parallel i       node[1] FOR      parent  0
 *       C[i] = 0       node[2] STORE    parent  1
 *       for k          node[3] FOR      parent  1
 *         C[i] = ...   node[4] STORE    parent  3
 *
 *   (1) a node's parent has a smaller number;
 *   (2) the subtree of node k is the run k .. end-1;
 *   (3) only FOR, THREAD, ATTR, REALIZE, ALLOC and IF have children;
 *   (4) a dead node was simplified away: its children, unless dead too, belong
 *       to its parent.
 * Expressions live in the program's pool. */

/* TVM's ForKind; CD_LOOP_THREAD for thread axes. */
typedef enum cd_loop_kind {
    CD_LOOP_SERIAL,
    CD_LOOP_PARALLEL,
    CD_LOOP_VECTORIZED,
    CD_LOOP_UNROLLED,
    CD_LOOP_THREAD
} cd_loop_kind;

/* Thread axes in the order of the annotation codes 4..10. */
typedef enum cd_ast_tag {
    CD_AST_TAG_VTHREAD,
    CD_AST_TAG_BX,
    CD_AST_TAG_TX,
    CD_AST_TAG_BY,
    CD_AST_TAG_TY,
    CD_AST_TAG_BZ,
    CD_AST_TAG_TZ,
    CD_AST_TAG_COUNT
} cd_ast_tag;
/* "vthread", "blockIdx.x" ... */
const char *cd_ast_tag_name(cd_ast_tag t);
/* 0 for block axes, 1 for threads and vthread (TVM's ThreadScope rank). */
static inline int cd_ast_tag_rank(cd_ast_tag t) {
    return t == CD_AST_TAG_BX || t == CD_AST_TAG_BY || t == CD_AST_TAG_BZ ? 0 : 1;
}

typedef enum cd_ast_kind {
    CD_AST_FOR,     /* var, extent_e, loop; min is 0                       */
    CD_AST_THREAD,  /* var, extent_e, tag: thread_extent or virtual_thread */
    CD_AST_ATTR,    /* attr, extent = value                                */
    CD_AST_REALIZE, /* tensor, x: (min, extent) per dimension; loop = memory rank */
    CD_AST_ALLOC,   /* tensor, x: as REALIZE                               */
    CD_AST_IF,      /* e: condition                                        */
    CD_AST_STORE,   /* tensor, x: indices, e: value                        */
    CD_AST_EVAL,    /* e: the thread_allreduce call; x: what a thread gives to each output, then
                        the thread axes that are reduced; never has features */
    CD_AST_LET      /* var = e, for what follows: a loop of extent 1; dead once simplified */
} cd_ast_kind;

enum { CD_ATTR_UNROLL_STEP, CD_ATTR_UNROLL_EXPLICIT, CD_ATTR_REDUCE_SCOPE };

typedef struct cd_ast_node {
    uint8_t kind, loop, tag, attr;
    bool dead;
    int32_t parent, end;
    uint32_t tensor, n; /* n: items of x */
    int64_t extent;     /* FOR, THREAD: trip count after simplification */
    const cd_expr *var, *extent_e, *e;
    const cd_expr **x;
} cd_ast_node;

typedef struct cd_ast {
    cd_ast_node *node; /* heap, kept between programs */
    int32_t n, cap;
    int32_t open; /* innermost open node while building, -1 at top level */
    bool oom;
} cd_ast;

/* Open a node below the innermost open one; leaves are closed at once. The
 * pointer is valid until the next open. */
cd_ast_node *cd_ast_open(cd_ast *t, cd_ast_kind kind);
/* Close nodes until `open` is the innermost open one again. */
void cd_ast_close(cd_ast *t, int32_t open);
void cd_ast_clear(cd_ast *t); /* no nodes; keeps the memory */
void cd_ast_free(cd_ast *t);

/* TVM's Simplify pass (docs/internals/ansor.md, Simplifier): bind loop variables, simplify every
 * expression, drop decided branches. Errors: ENOMEM. */
cdmpp_status cd_ast_simplify(cd_ast *t, cd_simplifier *simp, cd_expr_pool *pool, cdmpp_err *err);

/* CDMPP's serialisation: numbers of internal nodes and leaves in pre-order
 * (root 0), -1 after the last child of every node. Returns the length; writes
 * at most `cap` numbers. number[k] = pre-order number of node k, -1 if it has
 * none (IF, EVAL, dead nodes); position[k] = its index in the list, likewise. */
uint32_t cd_ast_serialize(const cd_ast *t, int32_t *out, uint32_t cap, int32_t *number,
                          int32_t *position);

struct cd_buf;
/* The nest in TVM's notation. */
void cd_ast_print(const cd_ast *t, struct cd_buf *out, const cd_names *names);

/* Unique names of a program's variables and tensors, for printing and for generated code.
 *
 * Iterators of different stages often share a name; as in TVM's printer the
 * second "i" becomes "i_1", the third "i_2". Made when asked for, not while
 * programs are built. */

typedef struct cd_unique_names {
    cd_arena arena;
    const char **var, **tensor; /* by number; NULL: not in the nest */
    uint32_t n_var, n_tensor;
    cd_names raw; /* names before they are made unique */
} cd_unique_names;

/* Names for every tensor and for the variables of every loop. Errors: ENOMEM. */
cdmpp_status cd_unique_names_init(cd_unique_names *t, const cd_ast *ast, const cd_names *raw,
                                  uint32_t n_var, uint32_t n_tensor, cdmpp_err *err);
void cd_unique_names_free(cd_unique_names *t);
/* cd_names callback; ctx is the table. */
const char *cd_unique_names_get(const void *table, cd_expr_op kind, uint32_t number);
#endif

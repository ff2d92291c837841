/* The door of features/te: a task's compute definition, a DAG of tensor-expression operators. It
 * comes from TVM's pickles, from task files or from a network; schedules are applied to it. Further
 * header of the room: te_text.h (expressions as text).
 *
 *   A[i,k]  B[k,j]            op 0, op 1   PLACEHOLDER
 *      \     /
 *   C(i,j) = sum_k A*B        op 2         axis i,j  raxis k  red -> combiner
 *        |
 *   D(i,j) = max(C, 0)        op 3         axis i,j  body[0]
 *
 *   (1) ops are in TVM's stage order (docs/internals/ansor.md, Tasks): an operator comes after
 *       every operator it reads, and op i is stage i of the task's initial state;
 *   (2) tensor number = first_tensor of its op + output index; LOAD nodes carry
 *       tensor numbers; tensors are numbered in op order without gaps;
 *   (3) every expression lives in the dag's own pool, frozen after building;
 *   (4) shapes of tensors are literals >= 0; reduction extents may be
 *       expressions of axis variables (adaptive pooling);
 *   (5) a variable in an operator's expressions is one of its own axes (in its
 *       combiner: of lhs, rhs); operands have matching types and ranks;
 *   (6) an expression is at most CD_TE_MAX_DEPTH deep and unfolds to at most
 *       CD_TE_MAX_TREE nodes, so walks may recurse and need no memo.
 * Read-only after building: share it between threads. */
#ifndef CD_TE_H
#define CD_TE_H
#include "base/text/text.h"
#include "features/expr/expr.h"

#define CD_TE_MAX_DEPTH 500
#define CD_TE_MAX_TREE  100000
#define CD_TE_MAX_OUT   64 /* outputs of one operator */
#define CD_TE_MAX_AXIS  64 /* axes of a kind of one operator */

typedef struct cd_te_iter {
    const cd_expr *var; /* VAR */
    const cd_expr *min, *extent;
    const char *name; /* as in the task file, e.g. "i", "rc" */
} cd_te_iter;

/* A commutative reducer: result[k] over lhs[], rhs[]; identity[k]. */
typedef struct cd_te_reducer {
    uint32_t n;                                     /* components = outputs of the op */
    const cd_expr *const *lhs, *const *rhs;         /* (n) VAR */
    const cd_expr *const *result, *const *identity; /* (n) */
} cd_te_reducer;

typedef struct cd_te_op {
    const char *name, *tag;
    bool is_placeholder;
    bool is_output; /* no other op reads it */
    /* attrs["const_matrix"]: features see the value 1.0 (ansor.md, Normalization) */
    bool const_matrix;
    bool simplify_const; /* attrs["auto_scheduler_simplify_const_tensor_indices"] present */
    double flop_attr;    /* attrs["FLOP"], -1 when absent */
    uint32_t n_axis, n_raxis, n_out, rank;
    const cd_te_iter *axis, *raxis; /* (n_axis), (n_raxis) */
    uint32_t first_tensor;
    const int64_t *shape;  /* (rank) of every output */
    const cd_dtype *dtype; /* (n_out) */
    /* Plain: body[n_out], red NULL. Reduction: body[n_out] are the sources,
     * combined by `red` where `cond` (NULL: always) holds. */
    const cd_expr *const *body;
    const cd_te_reducer *red;
    const cd_expr *cond;
    const cd_expr *const *init; /* Reduce.init (n_out) or NULL */
    bool layout_free;           /* some op lists it in attrs["layout_free_placeholders"] */
} cd_te_op;

/* The identity of sum (CD_ADD), max or min for a type, and this reducer of one value, in the dag's
 * memory. Errors: ENOMEM. */
const cd_expr *cd_te_identity(cd_expr_pool *p, cd_expr_op op, cd_dtype t);
struct cd_te_dag;
cdmpp_status cd_te_reducer_usual(struct cd_te_dag *dag, cd_expr_op op, cd_dtype t,
                                 cd_te_reducer *out, cdmpp_err *err);

/* What no schedule of a definition can leave out, as far as that is plain to see:
 *   flop   operations of reductions, by the narrowest type that they read. A source that a
 *          condition fills with zeros (padding) counts by its share
 *          of read elements; matrices of constants and conditional reductions count nothing
 *   bytes  results, and arguments of which every element is read at plain indices */
typedef enum cd_te_least_type {
    CD_TE_LEAST_F16,
    CD_TE_LEAST_BF16,
    CD_TE_LEAST_F32,
    CD_TE_LEAST_F64,
    CD_TE_N_LEAST
} cd_te_least_type;
typedef struct cd_te_least {
    double flop[CD_TE_N_LEAST], bytes;
} cd_te_least;

typedef struct cd_te_dag {
    cd_arena arena;    /* owns everything below */
    cd_expr_pool pool; /* frozen */
    uint32_t n_op, n_tensor;
    cd_te_op *op;        /* (n_op) in stage order */
    uint32_t *tensor_op; /* (n_tensor) tensor number -> op index */
    uint32_t n_arg;
    uint32_t *arg; /* (n_arg) tensor numbers of the function's arguments, in order */
    double flop;   /* ansor.md, Tasks; -1 when it cannot be counted */
    cd_te_least least;
} cd_te_dag;

void cd_te_dag_free(cd_te_dag *dag); /* NULL is fine; frees the struct too */

/* EOP's categories of what there is to optimise in a definition: bits. */
enum {
    CD_TE_BASIC = 1,     /* none of the others: element by element */
    CD_TE_REDUCE = 2,    /* axes of a reduction */
    CD_TE_CONDITION = 4, /* a select, an if, a conditional reduction: padding for one */
    /* an index that is no sum of axes and their multiples (a division, a read), an extent that
     * depends on the element */
    CD_TE_INDEX = 8,
    CD_TE_TYPES = 8
};
unsigned cd_te_constructs_of(const cd_te_dag *dag);
/* "basic", "reduce", "condition", "index" of one bit; NULL: no such bit. */
const char *cd_te_construct_name(unsigned bit);
/* Types of its tensors into type, in the order of the operators, at most CD_TE_TYPES; how many. */
unsigned cd_te_types_of(const cd_te_dag *dag, cd_dtype type[CD_TE_TYPES]);

/* An empty DAG with a pool to build in. Errors: ENOMEM. */
cdmpp_status cd_te_dag_new(CD_GIVE cd_te_dag **out, cdmpp_err *err);

/* Fill is_output, tensor_op, flop, check invariants (1)-(6) on a dag whose ops
 * are otherwise complete, and freeze its pool. Errors: ESCHEMA, EUNSUPPORTED,
 * ENOMEM, with the operator as key. */
cdmpp_status cd_te_dag_finish(cd_te_dag *dag, cdmpp_err *err);

/* TVM's stage order (docs/internals/ansor.md, Tasks). Operator i reads the outputs of operators
 * in[in_ptr[i] .. in_ptr[i+1]], one entry per tensor in the order of first
 * occurrence; `arg` lists the operators of the function's arguments.
 * order (n_op) receives the operators that the arguments reach, *n_order how
 * many. Errors: ESCHEMA for a cycle, ENOMEM. */
typedef struct cd_te_reads {
    uint32_t n_op, n_arg;
    const uint32_t *in_ptr, *in, *arg;
} cd_te_reads;
/* As above. */
cdmpp_status cd_te_stage_order(cd_arena *scratch, const cd_te_reads *r, uint32_t *order,
                               uint32_t *n_order, cdmpp_err *err);

/* Equal operators, names, shapes and expressions, up to the numbering of variables. */
bool cd_te_dag_equal(const cd_te_dag *a, const cd_te_dag *b);

/* An equal DAG with memory of its own. Errors: ENOMEM. */
cdmpp_status cd_te_dag_copy(const cd_te_dag *dag, CD_GIVE cd_te_dag **out, cdmpp_err *err);

/* The DAG as TVM prints it, one line per operator, to `out`; TVM cuts lines
 * over 256 characters in the middle, which is done here too. */
struct cd_buf;
void cd_te_dag_print(struct cd_buf *out, const cd_te_dag *dag);
/* The same, no line cut. */
void cd_te_dag_print_whole(struct cd_buf *out, const cd_te_dag *dag);

/* TVM's hash of what the DAG computes, the first part of its workload keys: MD5 of
 * the DAG printed uncut, without shapes of placeholders and arguments of a call
 * that is a whole body. 32 hex digits + NUL. Errors: ENOMEM. */
cdmpp_status cd_te_dag_hash(const cd_te_dag *dag, char out[33], cdmpp_err *err);
/* The same of all that there is: shapes, ranges and types too, so that no two definitions share
 * it. */
cdmpp_status cd_te_dag_hash_all(const cd_te_dag *dag, char out[33], cdmpp_err *err);
/* Append TVM's workload key: ["hash", [shape of an argument], ...]. */
void cd_te_workload_key(struct cd_buf *out, const cd_te_dag *dag, const char hash[33]);

/* Expressions as text that people can write, both directions.
 *
 *   A[b, i + 2*ki, k]*max(B[k], 0.0)      names are axes; name[...] reads a tensor
 *   (i*8 + j) // 4 % 3                    // and % round down, as in Python
 *   select(i < 3 && j >= 1, 1.0, 0.5:float16)
 *   float32(i), exp(x), isnan:bool(x)     casts, calls, calls of another type
 *
 * Literals are int32 and float32 unless they say ":type"; an unmarked literal
 * takes the type of what it meets. docs/reference/tasks.md has the whole grammar. What
 * is printed reads back as the same expression. */

typedef struct cd_te_scope {
    /* NULL when there is no such axis. */
    const cd_expr *(*var)(const void *ctx, cd_str name);
    /* False when there is no such tensor. */
    bool (*tensor)(const void *ctx, cd_str name, uint32_t *number, cd_dtype *type);
    const void *ctx;
} cd_te_scope;

/* Parse one expression. `want`: type that an unmarked literal takes when it
 * is the whole text. Errors: EPARSE (with the column), ESCHEMA (unknown name,
 * types that do not match), EUNSUPPORTED (too deep), ENOMEM. */
cdmpp_status cd_te_parse(cd_expr_pool *p, cd_arena *scratch, cd_str text, cd_dtype want,
                         const cd_te_scope *scope, const cd_expr **out, cdmpp_err *err);

/* The text of e; names->name gives identifiers. Errors: EUNSUPPORTED (a call
 * whose name is no identifier). */
struct cd_buf;
cdmpp_status cd_te_unparse(struct cd_buf *out, const cd_expr *e, const cd_names *names,
                           cdmpp_err *err);

/* Usable as a name in an expression? */
bool cd_te_is_identifier(const char *s, size_t n);
/* Functions of the notation that are no calls: CD_MIN for "min" ...; CD_EXPR_OP_COUNT for
 * others. */
cd_expr_op cd_te_function(const char *s, size_t n);
#endif

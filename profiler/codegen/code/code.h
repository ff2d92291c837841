/* The door of profiler/codegen/code: other rooms include this header and no other of the room.
 *
 * Generated programs (codegen_code.h), and what the generators of C and of GPU dialects share:
 * where tensors are stored (plan), the order of packed weights (pack), ranges and affine forms of
 * index expressions (range, affine), expressions as text (expr), and which loops are unrolled
 * (unroll). */
#ifndef CD_PROFILER_CODEGEN_CODE_DOOR_H
#define CD_PROFILER_CODEGEN_CODE_DOOR_H
#include "features/program/program.h"

/* codegen_range -- lower and upper bound of an integer expression.
 *
 *   i in [0,7]  ──>  (i*4 + 3) // 2  in [1,15]
 *
 * Interval arithmetic over known ranges of variables. It decides whether a floor division
 * may be a plain one, and whether a condition always holds. No state, any thread. */

typedef struct cd_codegen_ranges {
    uint32_t n;
    const cd_bound *var; /* (n) by variable number; lo > hi: nothing known */
} cd_codegen_ranges;

/* Bounds of e, both included; CD_NEG_INF and CD_INF where nothing is known. `r` NULL: no variable
 * is known. */
cd_bound cd_codegen_range_of(const cd_codegen_ranges *r, const cd_expr *e);
/* Does a condition hold? 1: always, 0: never, -1: not known. */
int cd_codegen_range_decide(const cd_codegen_ranges *r, const cd_expr *cond);

/* codegen_affine -- index expressions as sums, with what is known of the loop variables put in.
 *
 *   (i*28 + j) // 14,  j = 15 (unrolled)   ──>   2*i + 1
 *
 *   a variable is  itself            a loop of the text
 *                  a number          this copy of an unrolled loop
 *                  number + lane     a run of elements handled as one vector
 *                  itself + lane     the same in a loop over such runs
 *
 *   (1) an affine form is c + sum of k*atom; an atom is a variable or an expression that is
 *       not linear (a quotient, a load, a selection), rebuilt under the same knowledge;
 *   (2) atoms of one form differ, no k is 0, atoms are in order of their ids.
 * Expressions made live in the environment's own pool. One thread. */

#define CD_CODEGEN_MAX_AFFINE 40

typedef struct cd_codegen_affine_term {
    int64_t k;
    const cd_expr *atom;
} cd_codegen_affine_term;

typedef struct cd_codegen_affine {
    int64_t c;
    uint32_t n;
    cd_codegen_affine_term t[CD_CODEGEN_MAX_AFFINE];
} cd_codegen_affine;

typedef struct cd_codegen_env {
    cd_expr_pool pool;
    uint32_t n_var; /* of the nest; number n_var is the lane */
    /* both: the variable plus the lane */
    struct cd_codegen_env_var {
        bool fixed, lane, both;
        int64_t value;
    } * var;
    struct cd_codegen_env_var *plain; /* (n_var + 1) all themselves: see cd_codegen_env_at_lane */
    cd_bound *bound;                  /* (n_var + 1) */
    cd_codegen_ranges ranges;
    bool many; /* a form had too many terms: EUNSUPPORTED, sticky */
} cd_codegen_env;

/* All variables stand for themselves, with the ranges of their loops. Errors: ENOMEM. */
cdmpp_status cd_codegen_env_init(cd_codegen_env *v, const cd_ast *ast, uint32_t n_var,
                                 cdmpp_err *err);
void cd_codegen_env_free(cd_codegen_env *v); /* zeroes it */
/* EUNSUPPORTED or ENOMEM if anything went wrong since init. */
cdmpp_status cd_codegen_env_check(const cd_codegen_env *v, cdmpp_err *err);

static inline bool cd_codegen_env_is_lane(const cd_codegen_env *v, const cd_expr *e) {
    return e->op == CD_VAR && e->u.i == (int64_t)v->n_var;
}
/* Does the lane occur in e (made by cd_codegen_env_apply)? */
bool cd_codegen_env_has_lane(const cd_codegen_env *v, const cd_expr *e);
void cd_codegen_env_set_lanes(cd_codegen_env *v, int64_t n); /* range of the lane: [0, n-1] */

/* e with the known values put in and index arithmetic simplified; as an expression, and as an
 * affine form. */
const cd_expr *cd_codegen_env_apply(cd_codegen_env *v, const cd_expr *e);
void cd_codegen_env_affine(cd_codegen_env *v, const cd_expr *e, cd_codegen_affine *out);
/* e, which cd_codegen_env_apply made, of lane k. To apply e twice is no way to it: a variable that
 * is "itself + lane" would get a second lane. */
const cd_expr *cd_codegen_env_at_lane(cd_codegen_env *v, const cd_expr *e, int64_t k);
/* The same of an expression that cd_codegen_env_apply made. */
void cd_codegen_env_affine_applied(cd_codegen_env *v, const cd_expr *e, cd_codegen_affine *out);
/* The form as an expression of type t; to += times * from; the range of its values. */
void cd_codegen_affine_add(cd_codegen_env *v, cd_codegen_affine *to, const cd_codegen_affine *from,
                           int64_t times);
cd_bound cd_codegen_affine_range(const cd_codegen_env *v, const cd_codegen_affine *a);
/* *a = a floordiv d, a floormod d; d > 0. */
void cd_codegen_affine_divide(cd_codegen_env *v, cd_dtype t, cd_codegen_affine *a, int64_t d);
void cd_codegen_affine_modulo(cd_codegen_env *v, cd_dtype t, cd_codegen_affine *a, int64_t d);

/* codegen_code -- a generated program: source code in C, OpenCL C or CUDA C, with its buffers and
 * launches.
 *
 *   cd_nest ──> cd_codegen_code { text, launch[], buffer[] } ──> backend.h
 *
 *   C        one function  void NAME(void *const *arg); where n_part is not 0 a second one, see (5)
 *   GPU      one kernel per outermost thread-bound nest, run in order
 *
 *   (1) `text` is a complete translation unit but for the prelude of its dialect
 *       (cd_codegen_prelude), so that many programs fit one compiler run;
 *   (2) buffers 0 .. n_arg-1 are the task's parameters in its order, whole and
 *       row-major, or packed where n_digit says so (nest->pack: codegen_pack.h);
 *       later ones are scratch, of at least `bytes`, times the number of threads
 *       where per_thread; all begin at multiples of 64 bytes;
 *   (3) launch.buffer lists what a kernel takes, in the order of its parameters;
 *       the C function takes all buffers, n_buffer pointers;
 *   (4) equal nests give equal text, whatever was generated before: texts are
 *       keys of the compiler's cache;
 *   (5) a C program that is nothing but parallel loops, one behind the other, can be run in pieces:
 *       part p is its loop p, and void NAME_part(void *const *arg, int part, int unit, int begin,
 *       int end) runs iterations begin .. end-1 of it, with the scratch of thread `unit`. All
 *       iterations of a part in any pieces, in any order or at a time, then those of the next part,
 *       do what NAME does, to the bit.
 * Everything lives in the code's own arena. One thread. */

typedef enum cd_dialect { CD_DIALECT_C, CD_DIALECT_OPENCL, CD_DIALECT_CUDA } cd_dialect;
#define CD_DIALECTS "c|opencl|cuda"

/* One axis of a packed parameter: index (i[dim] / div) % extent, the outermost axis first. */
typedef struct cd_codegen_digit {
    uint32_t dim;
    int64_t div, extent;
} cd_codegen_digit;

typedef struct cd_codegen_buffer {
    const char *name;
    cd_dtype dtype;
    int64_t elements, bytes;
    bool is_arg, written;
    /* scratch of a parallel loop: one for every OpenMP thread, in a row */
    bool per_thread;
    uint32_t n_digit;              /* 0: row-major */
    const cd_codegen_digit *digit; /* (n_digit) */
} cd_codegen_buffer;

typedef struct cd_codegen_launch {
    const char *entry;         /* kernel's name; of C, the function's */
    int64_t grid[3], block[3]; /* x, y, z; 1 for C */
    int64_t shared_bytes;      /* of static shared memory, for checks */
    uint32_t n_buffer;
    const uint32_t *buffer; /* (n_buffer) */
} cd_codegen_launch;

typedef struct cd_codegen_part { /* a parallel loop of a C program */
    int64_t iterations;          /* >= 1 */
    /* executions of store statements in all of them: how the program's work is divided among its
     * parts */
    double stores;
} cd_codegen_part;

typedef struct cd_codegen_code {
    cd_arena arena;
    cd_dialect dialect;
    cd_buf text;
    uint32_t n_buffer, n_arg, n_launch;
    cd_codegen_buffer *buffer; /* (n_buffer) */
    cd_codegen_launch *launch; /* (n_launch) */
    bool parallel;             /* C: has OpenMP loops */
    uint32_t n_part;           /* 0: it runs whole only */
    cd_codegen_part *part;     /* (n_part) */
} cd_codegen_code;

/* Frees text and arena, not *c itself. NULL is fine, zeroed too. */
void cd_codegen_code_free(cd_codegen_code *c);

/* The text that comes once before all programs of a translation unit: includes, vector
 * types, min and max, floor division ... Static. */
const char *cd_codegen_prelude(cd_dialect dialect);

/* codegen_expr -- scalar expressions as text of C, OpenCL C or CUDA C.
 *
 *   floordiv(i, 4) + min(j, 3)  ──>  "((v1 / 4) + cd_min_i(v2, 3))"
 *
 *   (1) the caller writes variables and loads, by two functions;
 *   (2) a value is of C type cd_codegen_value_type(); in memory it may be another one
 *       (cd_codegen_storage_type): bfloat16 is computed in float, bool is a byte;
 *   (3) floor division and modulo are plain ones where the ranges say that the
 *       operand is never negative, shifts and masks for powers of two;
 *   (4) if_then_else and select become "? :": the side not taken is never read;
 *   (5) every helper that the text names is in cd_codegen_prelude(dialect).
 * Errors name the construct: EUNSUPPORTED. One thread. */

typedef struct cd_codegen_expr {
    cd_dialect dialect;
    cd_buf *out;
    const cd_codegen_ranges *ranges; /* NULL: nothing known */
    /* Write a VAR; write a LOAD's value as cd_codegen_value_type (cd_codegen_expr_load_wrap
     * helps). */
    cdmpp_status (*var)(struct cd_codegen_expr *w, const cd_expr *var, cdmpp_err *err);
    cdmpp_status (*load)(struct cd_codegen_expr *w, const cd_expr *load, cdmpp_err *err);
    void *ctx;
} cd_codegen_expr;

/* Value type, and type in memory; NULL where the dialect has none. */
const char *cd_codegen_value_type(cd_dialect d, cd_dtype t);
const char *cd_codegen_storage_type(cd_dialect d, cd_dtype t);

/* Append e, or a literal, to w->out. Errors: EUNSUPPORTED (type, operator, intrinsic), those of the
 * two functions. */
cdmpp_status cd_codegen_expr_write(cd_codegen_expr *w, const cd_expr *e, cdmpp_err *err);

/* Text around an element in memory of type t, to make it a value, and around a
 * value that is to be stored: "cd_bf16_to_f32(" and ")". Empty for most types. */
const char *cd_codegen_expr_load_wrap(cd_dtype t);
const char *cd_codegen_expr_store_wrap(cd_dtype t);

/* Name of the function of dialect d for TVM's intrinsic on values of type t,
 * NULL when it is none of one to three plain operands: "exp", f32 -> "expf". */
const char *cd_codegen_expr_function(cd_dialect d, const char *name, cd_dtype t);

/* codegen_plan -- where the tensors of a nest are stored, and what their elements are called.
 *
 *   REALIZE conv [0:1, i*4:4, 0:64] ─> slot{ min (0, i*4, 0), extent (1, 4, 64), stride (256, 64,
 *                                      1) }
 *
 *   address of T[x]  =  sum over d of (x[d] - min[d]) * stride[d]
 *
 *   (1) slot[t] belongs to tensor t of the nest; `used` where a store or load names it;
 *   (2) parameters are whole and row-major (or packed: codegen_pack.h), min 0;
 *   (3) every other used slot has the region of its REALIZE or ALLOC node, row-major;
 *   (4) var[v] numbers variables 0, 1, ... in the order in which nodes bind them, and
 *       so does slot.order for tensors: equal nests get equal names.
 * Everything is in the arena given. Read-only after planning. */

/* Kinds of loops around a REALIZE node. */
enum { CD_UNDER_PARALLEL = 1, CD_UNDER_BLOCK = 2, CD_UNDER_THREAD = 4 };

typedef struct cd_codegen_slot {
    bool used, loaded, stored, is_arg;
    int32_t arg;    /* position among the parameters, -1 */
    int32_t node;   /* its REALIZE or ALLOC, -1 */
    uint32_t order; /* of first appearance; its number in names */
    unsigned under; /* CD_UNDER_* */
    /* of memory: 0 global, 1 shared, 2 warp, 3 local, by scope or place as TVM has it */
    int rank;
    cd_dtype dtype;
    uint32_t n_dim;
    const cd_expr *const *min;      /* (n_dim) NULL: all 0 */
    const int64_t *extent, *stride; /* (n_dim) */
    int64_t elements;
} cd_codegen_slot;

typedef struct cd_codegen_plan {
    const cd_nest *nest;
    uint32_t n_slot;
    cd_codegen_slot *slot;    /* (n_slot) by tensor */
    uint32_t *var;            /* (nest->n_var) */
    cd_codegen_ranges ranges; /* of all loops */
    bool has_thread, has_parallel;
} cd_codegen_plan;

/* Places all tensors of the nest. Errors: EUNSUPPORTED (a region of unknown size, more than 2^40
 * elements), ENOMEM. */
cdmpp_status cd_codegen_plan_make(cd_arena *a, const cd_nest *nest, cd_codegen_plan *out,
                                  cdmpp_err *err);

/* A name with all but letters, digits and _ replaced by _, cut to n-1 characters. */
void cd_codegen_clean_name(const char *name, char *out, size_t n);

/* codegen_pack -- weights in the order in which the loops read them.
 *
 *   W[rc, ff],  rc = rc0*4 + rc1,  ff = ff0*16 + ff1,  loops ff0 rc0 rc1 ff1
 *   ──> stored as [ff0][rc0][rc1][ff1]
 *
 * TVM measures its CPU tasks with layout rewrite option 2: layout-free parameters arrive packed
 * in this order, and so they do here. Every index must be a sum of loop variables, or of quotients
 * and remainders of one, that counts through its dimension without gaps; otherwise the parameter
 * stays row-major. */

/* Digits of parameter `tensor`, outermost first; *n 0: row-major. Errors: ENOMEM. */
cdmpp_status cd_codegen_pack_plan(cd_arena *a, cd_codegen_env *env, const cd_nest *nest,
                                  uint32_t tensor, const cd_codegen_digit **digit, uint32_t *n,
                                  cdmpp_err *err);

/* Copies the row-major elements of a parameter to their places in the code's buffer b (`to`:
 * b->bytes). Places without an element (a split that does not divide) are left unchanged. */
void cd_codegen_pack(const cd_codegen_buffer *b, uint32_t rank, const int64_t *shape,
                     const void *from, void *to);

/* codegen_unroll -- which loops of a C program are unrolled in its text.
 *
 * First TVM's UnrollLoop pass (v0.9): from the inside out, a serial loop of known length is
 * unrolled if (its length) * (stores below, copies counted) is at most auto_unroll_max_step and no
 * loop below it stays. Then what LLVM does after it is imitated: short loops over few vector
 * statements are unrolled too.
 *
 *   (1) copy[k] is set for FOR nodes only; vectorised loops do not count as loops;
 *   (2) a loop of unknown length is never unrolled. */

/* copy (ast->n), all false before: sets the loops that TVM unrolls. */
void cd_codegen_unroll_tvm(const cd_ast *ast, bool *copy);
/* Sets those of the rest that LLVM unrolls. vec: loops that become vectors, of at most `lanes`
 * elements each. */
void cd_codegen_unroll_llvm(const cd_ast *ast, const bool *vec, uint32_t lanes, bool *copy);
#endif

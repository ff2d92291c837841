/* codegen_c_internal -- the C generator: text of nested loops, with pointers, quotients and kept
 * elements placed at the loop that they belong to.
 *
 *   scope 0  the function          defs: float *p1 = t1 + ...;
 *     scope 1  for (v0 ...)        defs: const float *p2 = t0 + 640L*v0;
 *       scope 2  for (v3 ...)      defs, body: "#5 = #5 + #6 * #7"
 *
 *   (1) the text of a loop's body is kept apart until the loop is closed, so that
 *       pointers and quotients that depend on its variable, but on no inner
 *       one, can be computed at its top;
 *   (2) an access to memory is a token (\1 number \2) in the text until the end:
 *       element `off` after pointer `ptr`, `lanes` of them;
 *   (3) when a loop is closed, tensors that it stores to, and only at places that
 *       stay the same from turn to turn, are kept in variables meanwhile: the
 *       loop's tokens become names, tokens for loading and storing stand around it;
 *   (4) a parallel loop's body is a function of its own with a scope 0 of its own.
 * GCC would hoist and keep less: aliasing between parameters and the length of the bodies stop it.
 * Private to the room. */
#ifndef CD_CODEGEN_C_INTERNAL_H
#define CD_CODEGEN_C_INTERNAL_H
#include "profiler/codegen/code/code.h"

#define CD_CODEGEN_C_MAX_PAIR 64

typedef struct cd_c_pointer {
    uint32_t tensor, parent; /* parent: 0 for the tensor's own name */
    uint32_t instance, id;
    int depth;               /* scope that declares it */
    cd_codegen_affine terms; /* added to parent; c is 0 */
} cd_c_pointer;

typedef struct cd_c_name { /* a quotient and the variable that holds it */
    const cd_expr *e;
    uint32_t id;
} cd_c_name;

typedef struct cd_c_scope {
    cd_buf defs, body;
    uint32_t var; /* of the loop; UINT32_MAX for a function */
    uint32_t first_token;
    int if_depth; /* open conditions when it was opened */
    cd_c_name *name;
    uint32_t n_name, cap_name;
} cd_c_scope;

typedef struct cd_c_token {
    uint32_t tensor, ptr, instance; /* instance: of a stack buffer */
    uint32_t reg;                   /* variable that took its place, 0: none */
    int ptr_depth, if_depth;
    int64_t off;
    uint8_t lanes;
    /* closed: does not count any more; safe: may be touched without its condition */
    bool store, closed, safe;
} cd_c_token;

typedef struct cd_c_pair { /* two lanes that were stored and are still in variable `reg` */
    uint32_t tensor, ptr, instance, reg;
    int64_t off;
} cd_c_pair;

typedef struct cd_c_function { /* the function that is being written */
    cd_c_scope *scope;         /* (depth + 1 used) */
    int depth, if_depth;
    uint32_t cap_scope;
    int *var_depth; /* (n_var + 1) scope of each loop variable */
    cd_c_pointer *ptr;
    uint32_t n_ptr, cap_ptr, first_token;
} cd_c_function;

typedef struct cd_c_writer {
    const cd_nest *nest;
    const cd_ast *t;
    cd_codegen_plan plan;
    cd_codegen_env env;
    const char *name;
    cd_codegen_code *out;
    bool *copy; /* (ast->n) loops to write out */
    bool *vec;  /* (ast->n) loops of vectors */
    /* (n_slot) number of the buffer in the code; UINT32_MAX: on the stack */
    const uint32_t *scratch;
    /* (n_slot) which declaration of a stack buffer is the current one */
    uint32_t *instance;
    int *home;                      /* (n_slot) scope that declares it */
    const cd_codegen_digit **digit; /* (n_slot) packed parameters */
    uint32_t *n_digit;
    cd_c_function fn;
    cd_c_token *token;
    uint32_t n_token, cap_token;
    cd_c_pair pair[CD_CODEGEN_C_MAX_PAIR];
    uint32_t n_pair;
    uint32_t n_reg, n_name, n_function;
    uint32_t max_lanes; /* of 4-byte elements */
    uint32_t lanes;     /* of the chunk being written; 0: scalars */
    bool in_function;   /* of a parallel loop */
    /* something stands outside of the outermost parallel loops: no parts */
    bool rest;
    uint32_t cap_part;
    /* stray: an index was written that depends on the lane, EUNSUPPORTED */
    bool oom, stray;
} cd_c_writer;

static inline cd_c_scope *cd_c_top(cd_c_writer *g) { return &g->fn.scope[g->fn.depth]; }
static inline cd_buf *cd_c_body(cd_c_writer *g) { return &g->fn.scope[g->fn.depth].body; }

/* ---- codegen_c_scope.c ---- */
/* Open the scope of a loop over var, or of a function (UINT32_MAX). False: out of memory. */
bool cd_c_scope_open(cd_c_writer *g, uint32_t var);
/* Close the loop whose header is `head`; its text goes to the scope outside. */
void cd_c_scope_close_loop(cd_c_writer *g, const char *head);
/* Write a token for the element of `tensor` at flat: the value where it is loaded, or
 * all that stands before the value where it is stored; ")" must follow that one. */
void cd_c_write_access(cd_c_writer *g, cd_buf *out, uint32_t tensor, const cd_codegen_affine *flat,
                       uint32_t lanes, bool store);
/* Replace the tokens of a finished text. */
void cd_c_tokens_resolve(cd_c_writer *g, const cd_buf *in, cd_buf *out);
/* The name of a tensor's memory: "t3", of a stack buffer "t3_1". */
void cd_c_write_tensor_name(const cd_c_writer *g, cd_buf *out, uint32_t tensor, uint32_t instance);
/* The text since token `first` is complete: of its tokens only which tensors they touch is kept,
 * for loops around it. */
void cd_c_tokens_close(cd_c_writer *g, uint32_t first);

/* ---- codegen_c_scope.c: pairs of lanes in variables, until a loop or a condition begins or ends
 * ---- */
/* Forget all; forget what a store overwrites; remember a stored pair that is in variable reg. */
void cd_c_pair_clear(cd_c_writer *g);
void cd_c_pair_add(cd_c_writer *g, const cd_c_token *store, uint32_t reg);

/* ---- codegen_c_stmt.c ---- */
/* Flat index, from the applied indices x of an access. */
void cd_c_flat_index(cd_c_writer *g, uint32_t tensor, const cd_expr *const *x, uint32_t n,
                     cd_codegen_affine *out);
/* An applied expression as text: a scalar, or with write_vector a vector of g->lanes elements.
 * Errors: EUNSUPPORTED. */
cdmpp_status cd_c_write_value(cd_c_writer *g, cd_buf *out, const cd_expr *e, cdmpp_err *err);

/* Has the type vectors? What its vectors are called, without the number of lanes: "f32x", "u8x". */
static inline bool cd_c_has_vector(cd_dtype t) {
    return t == CD_F32 || t == CD_I32 || t == CD_DTYPE(CD_T_UINT, 8) || t == CD_DTYPE(CD_T_INT, 8);
}
static inline const char *cd_c_vector(cd_dtype t) {
    return cd_expr_dtype_is_float(t)            ? "f32x"
           : cd_expr_dtype_bits(t) != 8         ? "i32x"
           : cd_expr_dtype_kind(t) == CD_T_UINT ? "u8x"
                                                : "i8x";
}
/* Nodes from .. end-1 are stores of one tuple whose values must all be known first; from + 1: just
 * one. */
int32_t cd_c_tuple_end(const cd_nest *nest, int32_t from, int32_t to);
/* The text of nodes from .. to-1, to the current scope. Errors: EUNSUPPORTED, ENOMEM. */
cdmpp_status cd_c_write_range(cd_c_writer *g, int32_t from, int32_t to, cdmpp_err *err);

/* ---- codegen_c_function.c ---- */
/* A parallel loop: its function, and the call in the current scope. */
cdmpp_status cd_c_write_parallel(cd_c_writer *g, int32_t k, cdmpp_err *err);
/* All functions of the program, to g->out->text. */
cdmpp_status cd_c_write_program(cd_c_writer *g, cdmpp_err *err);
#endif

/* The door of features/program: one record in; loop nest, rows and tree out. Data sets, predictors
 * and code generators come from a record to a program only through it. Further header of the room:
 * program_nest.h (the nest with its tensors, for code).
 *
 *   record + task -> schedule -> bounds -> loop nest (ast) -> rows
 *
 * One cd_program per thread; everything it returns lives until the next build
 * or free. After warm-up a build touches no heap. */
#ifndef CD_PROGRAM_H
#define CD_PROGRAM_H
#include "features/rows/rows.h"
#include "features/task/task.h"

typedef struct cd_program cd_program;

/* Memory for programs. Errors: ENOMEM. */
cdmpp_status cd_program_new(CD_GIVE cd_program **out, cdmpp_err *err);
void cd_program_free(cd_program *p); /* NULL is fine */

/* Only the loop nest. Errors: as cd_program_build. */
cdmpp_status cd_program_lower(cd_program *p, const cd_task *task, const cd_record *r,
                              cdmpp_err *err);
/* As cd_program_lower, but for running: constant matrices keep their elements,
 * where features see the number one. */
cdmpp_status cd_program_lower_code(cd_program *p, const cd_task *task, const cd_record *r,
                                   cdmpp_err *err);
/* As cd_program_lower, but loops of extent 1 stay (TVM: tir.debug_keep_trivial_loop), so that the
 * programs of one sketch have the same loops, one for one. */
cdmpp_status cd_program_lower_loops(cd_program *p, const cd_task *task, const cd_record *r,
                                    cdmpp_err *err);
/* Replay the record's steps on its task and extract. Errors: EINVALID (steps
 * do not fit the task), EREJECTED (breaks a limit of the GPU: TVM gives no
 * features either), EUNSUPPORTED, ENUMERIC (a feature beyond float), ENOMEM. */
cdmpp_status cd_program_build(cd_program *p, const cd_task *task, const cd_record *r, cd_rows *out,
                              cdmpp_err *err);

/* Which definition of the key a record is of: *task and its twins are replayed. It is the only one
 * that fits; the first of several that give equal rows and leaves; else the one whose axes have the
 * extents that the steps note. Errors: ENOTASK (several fit and give different rows), ENOMEM. Where
 * none fits *task stays, and its build says why. */
cdmpp_status cd_program_choose(cd_program *p, const cd_record *r, const cd_task **task,
                               cdmpp_err *err);

/* The loop nest of the last build, as a TVM user would recognise it. */
struct cd_buf;
cdmpp_status cd_program_print(const cd_program *p, struct cd_buf *out, cdmpp_err *err);
/* line (n_leaf): the line of that print, from 0, on which each leaf stands. */
void cd_program_leaf_lines(const cd_program *p, int32_t *line, size_t n_leaf);

/* The lowered loop nest of a program with its tensors: what code is generated from.
 *
 *   cd_program_lower() ──> cd_nest { ast, tensor[0..n), arg[0..m) }
 *
 *   (1) tensor k of the nest's LOAD, STORE and REALIZE nodes is tensor[k]; those
 *       that the schedule inlined away occur in no node;
 *   (2) tensors 0 .. dag->n_tensor-1 are those of the task, later ones were made
 *       by cache and rfactor steps;
 *   (3) a tensor with arg >= 0 is a parameter of the program, whole and row-major
 *       in its shape, whatever is realized of it; every other one is stored where
 *       its REALIZE or ALLOC node says (ast.h) and has only that part;
 *   (4) variable v of the nest's expressions is bound by the FOR, THREAD or LET
 *       node above that names it. A THREAD node's variable may be named by
 *       several nodes: they are the same thread axis.
 * Borrowed: lives until the program's next build. */

typedef struct cd_nest_tensor {
    const char *name;  /* operator's name; not unique */
    const char *scope; /* "" (by place), "shared", "local" ... as the cache step says */
    uint32_t rank;
    const int64_t *shape; /* (rank) */
    cd_dtype dtype;
    int32_t arg;                  /* position among the parameters, -1: none */
    bool written;                 /* made by the program; false: an input */
    bool layout_free;             /* TVM may store this parameter in another order (weights) */
    const cd_te_reducer *reducer; /* how its elements are reduced; NULL: they are not */
    /* which of its operator's outputs, and of the reducer's components */
    uint32_t output;
} cd_nest_tensor;

typedef struct cd_nest {
    const cd_ast *ast;
    uint32_t n_tensor, n_arg, n_var;
    const cd_nest_tensor *tensor; /* (n_tensor) */
    const uint32_t *arg;          /* (n_arg) tensor of each parameter, in the task's order */
    cd_names names;               /* of variables and tensors, not unique; text in a ring of few */
    /* the record was measured with layout-free parameters in the order of its loops (layout rewrite
     * option 2): a CPU program may do so too. The user's to change */
    bool pack;
    /* longest vector register that code is for: 16, 32, 64. From the target's -mcpu, else 32. The
     * user's to change */
    uint32_t vector_bytes;
} cd_nest;

/* The nest of the last cd_program_lower, _lower_code or _build. Errors: ENOMEM. */
cdmpp_status cd_program_nest(cd_program *p, cd_nest *out, cdmpp_err *err);
#endif

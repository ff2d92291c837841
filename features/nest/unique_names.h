/* Unique names of a program's variables and tensors, for printing and for generated code.
 *
 * Iterators of different stages often share a name; as in TVM's printer the
 * second "i" becomes "i_1", the third "i_2". Made when asked for, not while
 * programs are built. */
#ifndef CD_NAMES_H
#define CD_NAMES_H
#include "features/nest/ast.h"

typedef struct cd_unique_names {
    cd_arena arena;
    const char **var, **tensor; /* by number; NULL: not in the nest */
    uint32_t n_var, n_tensor;
    cd_names raw;               /* names before they are made unique */
} cd_unique_names;

/* Names for every tensor and for the variables of every loop. Errors: ENOMEM. */
cdmpp_status cd_unique_names_init(cd_unique_names *t, const cd_ast *ast, const cd_names *raw, uint32_t n_var,
                                uint32_t n_tensor, cdmpp_err *err);
void cd_unique_names_free(cd_unique_names *t);
/* cd_names callback; ctx is the table. */
const char *cd_unique_names_get(const void *table, cd_expr_op kind, uint32_t number);
#endif

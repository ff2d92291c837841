/* names -- unique names of a program's variables and tensors, for printing.
 *
 * Iterators of different stages often share a name; as in TVM's printer the
 * second "i" becomes "i_1", the third "i_2". Made when asked for, not while
 * programs are built. */
#ifndef CD_NAMES_H
#define CD_NAMES_H
#include "features/nest/ast.h"

typedef struct cd_name_table {
    cd_arena arena;
    const char **var, **tensor; /* by number; NULL: not in the nest */
    uint32_t n_var, n_tensor;
    cd_names raw;               /* names before they are made unique */
} cd_name_table;

cdmpp_status cd_name_table_init(cd_name_table *t, const cd_ast *ast, const cd_names *raw, uint32_t n_var,
                                uint32_t n_tensor, cdmpp_err *err);
void cd_name_table_free(cd_name_table *t);
/* cd_names callback; ctx is the table. */
const char *cd_name_table_get(const void *table, cd_op kind, uint32_t number);
#endif

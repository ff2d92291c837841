/* cols -- the columns of a feature row: names, units, groups, meaning.
 * One table, leaf_cols.def, gives the enum, the HDF5 names and the manual. */
#ifndef CD_COLS_H
#define CD_COLS_H
#include <stddef.h>

#define CD_N_COL 164

typedef struct cd_col {
    const char *name, *unit, *group, *meaning;
} cd_col;

const cd_col *cd_cols(void); /* (CD_N_COL) */
/* Hex digest of names and order; changes whenever a column changes. 64 chars + NUL. */
void cd_cols_digest(char out[65]);
#endif

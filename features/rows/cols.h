/* cols -- the columns of a feature row: names, units, groups, meaning.
 * One table, leaf_cols.def, gives the enum, the HDF5 names and the manual
 * (docs/reference/columns.md). Read-only: any thread. */
#ifndef CD_COLS_H
#define CD_COLS_H
#include <stddef.h>

/* CD_COL_FLOAT_MAD .. CD_COL_AUTO_UNROLL: index of a column in a row. The five
 * buffer blocks repeat every CD_COL_BUFFER_STRIDE columns from CD_COL_B0_READ. */
enum {
#define X(ID, name, unit, group, meaning) CD_COL_##ID,
#include "features/rows/leaf_cols.def"
    CD_COL_COUNT
};
#define CD_COL_BUFFER_STRIDE (CD_COL_B1_READ - CD_COL_B0_READ)
#define CD_N_COL 164
#define CD_COLS_VERSION 1 /* of the meaning: raise it when a value changes under the same name */

typedef struct cd_col {
    const char *name, *unit, *group, *meaning;
} cd_col;

const cd_col *cd_cols(void); /* (CD_N_COL) */
/* Hex digest of version, names and order; changes whenever a column changes. 64 chars + NUL. */
void cd_cols_digest(char out[65]);
/* The manual: docs/reference/columns.md as Markdown. */
struct cd_buf;
void cd_cols_print(struct cd_buf *out);
/* {"digest":"..","columns":[{"name":..,"unit":..,"group":..,"meaning":..},...]} */
void cd_cols_json(struct cd_buf *out);
#endif

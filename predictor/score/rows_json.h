/* rows_json -- feature rows as JSON text, read number by number without a tree.
 *
 *   [[1, 0.5, ...], [2, 0.25, ...]]   next -> first row, next -> second row, next -> no more
 *
 * Nothing but numbers is let in: what JSON cannot write, NaN and infinity, is EPARSE, and numbers
 * that are too large for a double come as infinity, which the caller refuses. No heap; one
 * thread. */
#ifndef CD_ROWS_JSON_H
#define CD_ROWS_JSON_H
#include <stdbool.h>

#include "base/core/core.h"

typedef struct cd_rows_json {
    const char *at, *end;
    size_t n; /* rows read */
    bool begun;
} cd_rows_json;

/* The next row into v (n_col); *more false: there was none, and the text ended properly. Errors,
 * key [row]: EPARSE; EMODEL (a row of another length: says both). */
cdmpp_status cd_rows_json_next(cd_rows_json *t, double *v, size_t n_col, bool *more,
                               cdmpp_err *err);
#endif

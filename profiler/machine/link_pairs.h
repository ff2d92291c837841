/* link_pairs -- a link fitted to pairs that someone measured: a CSV table with the columns bytes
 * and seconds. */
#ifndef CD_LINK_PAIRS_H
#define CD_LINK_PAIRS_H
#include "profiler/machine/link.h"

typedef struct cd_link_error {
    /* |fitted / measured - 1| of the pairs; the size at which it is worst */
    double mean, worst, worst_bytes;
} cd_link_error;

/* Reads the pairs, fits a link and adds it to l. *error: how far the fit is from the pairs. Errors,
 * with path and line: those of cd_csv_table_read and cd_link_table_fit. */
cdmpp_status cd_link_pairs_fit(const char *path, const char *from, const char *to, const char *how,
                               cd_link_table *l, cd_link_error *error, cdmpp_err *err);
#endif

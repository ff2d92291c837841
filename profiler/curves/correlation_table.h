/* correlation_table -- which settings of a table of measurements a time depends on, strongest first.
 *
 *   threads,batch,seconds          a row is a measurement, a column a setting or the time
 *   1,8,0.020 */
#ifndef CD_CORRELATION_TABLE_H
#define CD_CORRELATION_TABLE_H
#include "profiler/curves/correlation.h"

typedef struct cd_correlation_table {
    cd_arena arena;
    const char *target;         /* the column that depends on the others */
    size_t n_row, k;            /* measurements; settings */
    const char **name;          /* (k) settings, strongest first; equal ones as in the table */
    cd_correlation_axis *axis;  /* (k) in the same order */
} cd_correlation_table;

/* axes: columns "a,b" that are settings; NULL: all but the target. strong: see cd_correlation_axes. Errors, with path: those of cd_csv_table_read and
 * cd_correlation_axes; EUSAGE (axes: the target, one twice), ESCHEMA (no such column, no setting). Free `out` after an error too. */
cdmpp_status cd_correlation_table_read(const char *path, const char *target, const char *axes, double strong, cd_correlation_table *out, cdmpp_err *err);
void cd_correlation_table_free(cd_correlation_table *t); /* zeroed is fine */
/* A table; a JSON object (correlation_report.c). */
void cd_correlation_table_print(const cd_correlation_table *t, cd_buf *out);
void cd_correlation_table_print_json(const cd_correlation_table *t, cd_buf *out);
#endif

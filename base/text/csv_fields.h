/* One line of CSV (RFC 4180) into its fields.
 *
 *   a,"b ""c"", d",   ->   [a] [b "c", d] []
 *
 * A quoted field is rewritten in place without its quotes; others stay as they are. A field does not go over
 * several lines. No heap. */
#ifndef CD_CSV_FIELDS_H
#define CD_CSV_FIELDS_H
#include "base/text/json.h"

/* *n fields, at most `most` of them into field. Errors: EPARSE (quotes), ERANGE (more than `most`). */
cdmpp_status cd_csv_fields_split(char *line, size_t len, cd_str *field, size_t most, size_t *n, cdmpp_err *err);
#endif

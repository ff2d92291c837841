/* link_internal -- the array of links alone, for files that hold more than links
 * (machine_description.h). As cd_link_table_parse and cd_link_table_print. */
#ifndef CD_LINK_INTERNAL_H
#define CD_LINK_INTERNAL_H
#include "base/text/text.h"
#include "profiler/machine/link.h"

/* Add the links of a JSON array. `a` is scratch. Errors: those of cd_link_table_parse, with the
 * key. */
cdmpp_status cd_link_table_read_array(cd_link_table *l, cd_arena *a, const cd_json *links,
                                      cdmpp_err *err);
/* Append the array. */
void cd_link_table_print_array(const cd_link_table *l, cd_buf *out);
#endif

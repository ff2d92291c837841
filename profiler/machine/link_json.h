/* link_json -- the array of links alone, for files that hold more than links (machine.h). As cd_links_parse and cd_links_print. */
#ifndef CD_LINK_JSON_H
#define CD_LINK_JSON_H
#include "base/text/text.h"
#include "profiler/machine/link.h"

/* `a` is scratch. Errors: those of cd_links_parse, with the key. */
cdmpp_status cd_links_read_array(cd_links *l, cd_arena *a, const cd_json *links, cdmpp_err *err);
void cd_links_print_array(const cd_links *l, cd_buf *out);
#endif

/* link_internal -- the array of links alone, for files that hold more than links
 * (machine_description.h). As cd_link_table_parse and cd_link_table_print. */
#ifndef CD_LINK_INTERNAL_H
#define CD_LINK_INTERNAL_H
#include "base/text/text.h"
#include "profiler/machine/link.h"

#endif

/* machine_report -- a machine for people and programs: devices, links in pieces, contention. The
 * file form is machine.h's cd_machine_print. */
#ifndef CD_MACHINE_REPORT_H
#define CD_MACHINE_REPORT_H
#include "profiler/machine/machine.h"

/* A table; a JSON object. error: of a link that was just fitted; NULL: none. */
void cd_machine_report_text(const cd_machine *m, const cd_link_error *error, cd_buf *out);
void cd_machine_report_json(const cd_machine *m, const cd_link_error *error, cd_buf *out);
/* Seconds against bytes as an SVG file. Errors: ENODATA (no link), EIO, ENOMEM. */
cdmpp_status cd_link_draw(const cd_link_table *l, const char *path, cdmpp_err *err);
#endif

/* Reports to a listener. One bad line of a log must not end a run of hours, but a full disk must:
 * this file has the rule. */
#include "profiler/records/record_listener.h"

#include <stdarg.h>
#include <stdio.h>

cdmpp_status cd_record_listener_bad(const cd_record_listener *l, const cdmpp_err *why,
                                    cdmpp_err *err) {
    if (why->code == CDMPP_ENOMEM || why->code == CDMPP_EIO) {
        if (err) *err = *why;
        return why->code;
    }
    if (l && l->bad) l->bad(l->ctx, why);
    return CDMPP_OK;
}

void cd_record_listener_note(const cd_record_listener *l, const char *fmt, ...) {
    char text[1024];
    va_list ap;
    if (!l || !l->note) return;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    l->note(l->ctx, text);
}

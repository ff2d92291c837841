/* record_listener -- who hears what a run that goes on could not use: a command's log, for one. */
#ifndef CD_RECORD_LISTENER_H
#define CD_RECORD_LISTENER_H
#include "base/core/core.h"

typedef struct cd_record_listener {
    /* an item that cannot be used, with path and line; NULL: nobody hears it */
    void (*bad)(void *ctx, const cdmpp_err *why);
    void (*note)(void *ctx, const char *text); /* a line for people; NULL: nobody hears it */
    void *ctx;
} cd_record_listener;

/* OK after l->bad(why) (l may be NULL), so that the caller goes on with the next item. ENOMEM and
 * EIO would hit that one too: they are returned in *err and not reported. */
cdmpp_status cd_record_listener_bad(const cd_record_listener *l, const cdmpp_err *why,
                                    cdmpp_err *err);
/* A note of at most 1023 bytes. */
void cd_record_listener_note(const cd_record_listener *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
#endif

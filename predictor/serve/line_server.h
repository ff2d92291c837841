/* line_server -- a JSON object a line, an answer each, in their order: what the streams of
 * operators and of steps of a language model share.
 *
 *   {"id":1, ..} -> answer() -> {"id":1, ..}        without id: {"line":4, ..}
 *   anything else -> {"line":4,"error":{"code":"ESCHEMA","key":"dtyp","message":".."}}
 *
 * (1) A bad line costs only itself. (2) Answers are written as soon as no further line is there:
 *     who waits for each answer gets it at once.
 * (3) Memory is that of the longest line. docs/reference/stream.md. One thread. */
#ifndef CD_LINE_SERVER_H
#define CD_LINE_SERVER_H
#include <signal.h>

#include "base/text/text.h"

/* Appends the members of the answer, each with a comma before it; out->oom on ENOMEM. text: lives
 * as long as the line. ENOMEM ends the stream, any other status is the error of this line; what was
 * appended before it stays. */
typedef cdmpp_status cd_line_server_answer(void *ctx, cd_arena *text, const cd_json *root,
                                           cd_buf *out, cdmpp_err *why);

typedef struct cd_line_server {
    int in, out;      /* descriptors */
    size_t max_bytes; /* of a line; 0: CD_REQUEST_LINE_MAX */
    /* set: what was read whole is answered, then EINTERRUPTED; NULL: never */
    const volatile sig_atomic_t *stop;
    cd_line_server_answer *answer;
    void *ctx;
} cd_line_server;

typedef struct cd_line_server_stats {
    size_t asked, bad; /* lines, that before it and this one; lines with an error */
} cd_line_server_stats;

/* Until the end of input. *stats is right in answer() and after an error, too. Errors: EIO, ENOMEM,
 * EINTERRUPTED. */
cdmpp_status cd_line_server_run(const cd_line_server *o, cd_line_server_stats *stats,
                                cdmpp_err *err);
/* The member; NULL: it is not there, or null. */
CD_KEEP const cd_json *cd_line_server_member(const cd_json *root, const char *key);
/* Errors: ESCHEMA: the object has members beside `key` and id. Those that are null do not count. */
cdmpp_status cd_line_server_alone(const cd_json *root, const char *key, cdmpp_err *err);
#endif

/* remote_internal -- a worker's process and the lines to and from it.
 *
 *   OFF ──start_at──> GREETING ──hello──> IDLE <──answer── BUSY
 *    └──────────────── failure of any kind ────────────────┘ ... DROPPED
 *
 * One socket is the process's standard input and output, a pipe its standard error. */
#ifndef CD_REMOTE_INTERNAL_H
#define CD_REMOTE_INTERNAL_H
#include <sys/types.h>

#include "profiler/remote/remote.h"

typedef enum cd_remote_connection_state { CD_REMOTE_CONNECTION_OFF, CD_REMOTE_CONNECTION_GREETING, CD_REMOTE_CONNECTION_IDLE, CD_REMOTE_CONNECTION_BUSY, CD_REMOTE_CONNECTION_DROPPED } cd_remote_connection_state;

typedef struct cd_remote_connection {
    const cd_remote_host *host;
    cd_remote_connection_state state;
    pid_t pid;
    int fd, err_fd;             /* -1: none */
    double start_at, heard, deadline;
    unsigned failures, answers;
    int64_t lease;
    size_t job;
    uint32_t lines;             /* of this lease; before hello, of greetings */
    cd_buf in, out;
    size_t sent, scanned;       /* of out; of in, where no line end is */
    char device[128];           /* by its hello */
    char said[160];             /* the last line of its standard error */
} cd_remote_connection;

/* Begin its process. Errors: EIO; `why` for the event. */
cdmpp_status cd_remote_connection_start(cd_remote_connection *l, double now, cdmpp_err *err);
/* Kill and reap its group; in any state. */
void cd_remote_connection_kill(cd_remote_connection *l);
/* Send what is in `out`, as much as goes; false: nobody listens. */
bool cd_remote_connection_send(cd_remote_connection *l);
/* Take what there is into `in` and `said`; false: it ended. */
bool cd_remote_connection_receive(cd_remote_connection *l);
/* The next whole line of `in`, NUL-terminated and cut off it at the next call; NULL: none yet. */
char *cd_remote_connection_next_line(cd_remote_connection *l, size_t *n);
#endif

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

typedef enum cd_remote_connection_state {
    CD_REMOTE_CONNECTION_OFF,
    CD_REMOTE_CONNECTION_GREETING,
    CD_REMOTE_CONNECTION_IDLE,
    CD_REMOTE_CONNECTION_BUSY,
    CD_REMOTE_CONNECTION_DROPPED
} cd_remote_connection_state;

typedef struct cd_remote_connection {
    const cd_remote_host *host;
    cd_remote_connection_state state;
    pid_t pid;
    int fd, err_fd; /* -1: none */
    double start_at, heard, deadline;
    unsigned failures, answers;
    int64_t lease;
    size_t job;
    uint32_t lines; /* of this lease; before hello, of greetings */
    cd_buf in, out;
    size_t sent, scanned;  /* of out; of in, where no line end is */
    cd_remote_about about; /* by its hello */
    char said[160];        /* the last line of its standard error */
} cd_remote_connection;

/* Begin its process. Errors: EIO; `why` for the event. */
cdmpp_status cd_remote_connection_start(cd_remote_connection *l, double now, cdmpp_err *err);
/* Kill and reap its group; in any state. */
void cd_remote_connection_kill(cd_remote_connection *l);
/* Take what there is into `in` and `said`; false: it ended. */
bool cd_remote_connection_receive(cd_remote_connection *l);
/* The next whole line of `in`, NUL-terminated and cut off it at the next call; NULL: none yet. */
char *cd_remote_connection_next_line(cd_remote_connection *l, size_t *n);

/* ---- the hello (remote_measure.c) ---- */
typedef enum cd_remote_greeting {
    CD_REMOTE_NO_HELLO,
    CD_REMOTE_OTHER_PROTOCOL,
    CD_REMOTE_HELLO
} cd_remote_greeting;
/* A line of it, with its end. Out of memory: b->oom. */
void cd_remote_hello_put(cd_buf *b, const cd_remote_about *a);
/* What a message is (NULL: none), and what it says; what it says wrong it does not say. */
cd_remote_greeting cd_remote_hello_read(const cd_json *m, cd_remote_about *out);
/* Does it measure on the cores that were asked for? A transport may have lost the word that says
 * so. */
bool cd_remote_hello_suits(const cd_remote_about *a, const cd_remote_policy *p);
#define CD_REMOTE_OTHER_CORES                                                                      \
    "does not measure on the type of cores that was asked for: it is too old, or --transport "     \
    "does not hand its words on (shift 2; exec cdmpp-profile --worker \"$@\")"

/* ---- what both ways of sending records share (remote_measure.c) ---- */
enum { CD_REMOTE_WORDS = 16 }; /* of a worker's command line */
/* The commands that reach the hosts and tell them how to measure: (n_host) in the arena. Errors:
 * those of cd_remote_reach. */
typedef struct cd_remote_way {
    const char *const *host;
    size_t n_host;
    int port;
    const char *transport;
    const cd_measure_options *measure;
    int threads;
    const char *core; /* CD_CORE_TYPES; NULL: any */
} cd_remote_way;
#endif

/* subprocess -- runs other programs to their end: output caught, time limited, none left behind.
 *
 *   job[0] job[1] job[2] ...      at most `width` run at a time, begun in order
 *     argv, input -> stdin
 *     stdout + stderr -> text     exit code, or what ended it
 *
 *   (1) every program leads a process group of its own: ^C at the terminal does not reach it,
 *       and with it end all that it has started;
 *   (2) a program that is over its limit, or whose run is stopped, gets SIGKILL, its group too;
 *   (3) text beyond CD_SPAWN_TEXT bytes is read and dropped.
 * Callers from several threads do not disturb each other. */
#ifndef CD_SUBPROCESS_H
#define CD_SUBPROCESS_H
#include <signal.h>

#include "base/core/core.h"

#define CD_SPAWN_TEXT ((size_t)64 << 10)

typedef enum cd_subprocess_end {
    CD_SPAWN_EXITED,    /* code: exit status */
    CD_SPAWN_SIGNALED,  /* code: signal */
    CD_SPAWN_TIMED_OUT,
    CD_SPAWN_NOT_BEGUN  /* code: errno; ENOENT: no such program */
} cd_subprocess_end;

typedef struct cd_subprocess {
    const char *const *argv;    /* in: searched in PATH, NULL ends */
    const char *input;          /* in: its standard input, n_input bytes; NULL: none */
    size_t n_input;
    double limit_s;             /* in: 0: none */
    cd_subprocess_end end;           /* out */
    int code;
    double wall_s;
    cd_buf text;                /* out, freed by the caller */
} cd_subprocess;

/* Run n jobs. A job that fails is no error: see its `end`. Errors: EINTERRUPTED (*stop was set; what ran was killed), EIO (no pipe, no process), ENOMEM. */
cdmpp_status cd_subprocess_run(cd_subprocess *job, size_t n, int width, const volatile sig_atomic_t *stop, cdmpp_err *err);
/* "exit status 1", "killed by signal 9", "no such program" ... into buf; returns buf. */
const char *cd_subprocess_say(const cd_subprocess *s, char *buf, size_t n);
#endif

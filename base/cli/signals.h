/* ^C and SIGTERM end a command in order: it finishes its line, writes what it has and exits with 130. */
#ifndef CD_SIGNALS_H
#define CD_SIGNALS_H
#include <signal.h>

/* From now on the first SIGINT or SIGTERM stores its number in *cd_signals_stop() and interrupts system calls; the second one
 * kills. SIGPIPE is ignored: a closed pipe is an error of write(). One command a process. */
void cd_signals_take(void);
volatile sig_atomic_t *cd_signals_stop(void);
#endif

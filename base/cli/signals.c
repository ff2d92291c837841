/* One handler of SIGINT and SIGTERM for all commands. It only stores the number: everything else is unsafe in a handler. */
#include "base/cli/cli.h"

#include <stddef.h>

static volatile sig_atomic_t stop;
static void on_signal(int sig) { stop = sig; }

volatile sig_atomic_t *cd_signals_stop(void) { return &stop; }

void cd_signals_take(void) {
    struct sigaction act = {.sa_handler = on_signal};
    act.sa_flags = (int)SA_RESETHAND; /* without SA_RESTART: a blocking read returns */
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    signal(SIGPIPE, SIG_IGN);
}

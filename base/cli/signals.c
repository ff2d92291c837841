/* One handler of SIGINT and SIGTERM for all commands. It only stores the number: everything else is unsafe in a handler. */
#include <poll.h>
#include <unistd.h>

#include "base/cli/cli.h"

static volatile sig_atomic_t stop, seen, kill_at = 2;
static void on_signal(int sig) {
    stop = sig;
    if (!kill_at || ++seen < kill_at) return;
    signal(sig, SIG_DFL);
    raise(sig);
}

volatile sig_atomic_t *cd_signals_stop(void) { return &stop; }

void cd_signals_kill_at(int n) { kill_at = n; }

void cd_signals_take(void) {
    const struct sigaction act = {.sa_handler = on_signal}; /* without SA_RESTART: a blocking read returns */
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* poll() tells a pipe without a reader from a full disk: errno of the failed write is gone by then. */
void cd_signals_end_unread(void) {
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    sigset_t set;
    if (!ferror(stdout) || poll(&out, 1, 0) != 1 || !(out.revents & POLLERR)) return;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(SIGPIPE);
}

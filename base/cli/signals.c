/* One handler of SIGINT and SIGTERM for all commands. It stores the number, which loops look at,
 * and sets a timer for work that looks too rarely: a handler may do no more than that. */
#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cli/cli.h"
#include "base/io/io.h"

static volatile sig_atomic_t stop, seen, kill_at = 2;
/* the command itself: a process that it forked has no temporaries of its own, and must not remove
 * those */
static pid_t owner;

/* The command did not end in order in time. Files of results are renamed into place when they are
 * whole, so none is cut. */
static void on_overdue(int sig) {
    static const char text[] = "stopped: what was not written yet is lost\n";
    (void)sig;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    cd_file_remove_temps();
    _exit(cdmpp_exit_code(CDMPP_EINTERRUPTED));
}

static void on_signal(int sig) {
    const struct sigaction overdue = {.sa_handler = on_overdue};
    const struct itimerval grace = {.it_value = {.tv_sec = CD_SIGNALS_GRACE_MS / 1000,
                                                 .tv_usec = CD_SIGNALS_GRACE_MS % 1000 * 1000}};
    if (!stop && getpid() == owner) {
        sigaction(SIGALRM, &overdue, NULL);
        setitimer(ITIMER_REAL, &grace, NULL);
    }
    stop = sig;
    if (!kill_at || ++seen < kill_at) return;
    signal(sig, SIG_DFL);
    raise(sig);
}

volatile sig_atomic_t *cd_signals_stop(void) { return &stop; }

void cd_signals_kill_at(int n) { kill_at = n; }

void cd_signals_take(void) {
    owner = getpid();
    /* without SA_RESTART: a blocking read returns */
    const struct sigaction act = {.sa_handler = on_signal};
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* poll() tells a pipe without a reader from a full disk: errno of the failed write is gone by
 * then. */
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

/* Runs programs, several at a time, with their output caught. A program leads a process group of
 * its own, because a compiler starts others: with the group all of them can be killed. */
#include "profiler/host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/io.h"

extern char **environ;

enum { WIDTH_MAX = 256, TICK_MS = 100 };

typedef struct {
    cd_subprocess *job;
    pid_t pid;
    int out; /* our end */
    double begin_s;
} child;

static void close_fd(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* ---- beginning ---- */
static void actions_of(posix_spawn_file_actions_t *a, int in, int out) {
    posix_spawn_file_actions_init(a);
    posix_spawn_file_actions_adddup2(a, in, 0);
    posix_spawn_file_actions_adddup2(a, out, 1);
    posix_spawn_file_actions_adddup2(a, out, 2);
}

static void attributes_of(posix_spawnattr_t *t) {
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    sigaddset(&usual, SIGINT);
    sigaddset(&usual, SIGTERM);
    posix_spawnattr_init(t);
    posix_spawnattr_setpgroup(t, 0);
    posix_spawnattr_setsigmask(t, &none);
    posix_spawnattr_setsigdefault(t, &usual);
    posix_spawnattr_setflags(
        t, (short)(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
}

static int start(const cd_subprocess *j, int in, int out, pid_t *pid) {
    posix_spawn_file_actions_t a;
    posix_spawnattr_t t;
    actions_of(&a, in, out);
    attributes_of(&t);
    union { /* posix_spawnp does not write to what it is given */
        const char *const *given;
        char *const *wanted;
    } argv = {j->argv};
    const int e = posix_spawnp(pid, j->argv[0], &a, &t, argv.wanted, environ);
    posix_spawn_file_actions_destroy(&a);
    posix_spawnattr_destroy(&t);
    return e;
}

/* The whole input as a file in memory: nothing has to be written while the program runs. -1: see
 * errno. */
static int input_of(const cd_subprocess *j) {
    if (!j->input) return open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int fd = memfd_create("input", MFD_CLOEXEC);
    if (fd >= 0 && !cd_fd_put(fd, j->input, j->n_input)) return close(fd), -1;
    if (fd >= 0) (void)lseek(fd, 0, SEEK_SET);
    return fd;
}

/* A program that is not there is a result of the job, not an error: the others go on. */
static cdmpp_status begin(child *c, cd_subprocess *j, cdmpp_err *err) {
    int out[2] = {-1, -1};
    int in = input_of(j);
    const bool open = in >= 0 && pipe2(out, O_CLOEXEC) == 0;
    *c = (child){.job = j, .out = out[0], .begin_s = cd_clock_wall()};
    const int e = open ? start(j, in, out[1], &c->pid) : errno;
    close_fd(&in);
    close_fd(&out[1]);
    if (!e) return CDMPP_OK;
    close_fd(&c->out);
    c->job = NULL;
    j->end = CD_SPAWN_NOT_BEGUN;
    j->code = e;
    if (open && (e == ENOENT || e == EACCES || e == ENOEXEC)) return CDMPP_OK;
    return CD_FAIL(err, EIO, "cannot start %.80s: %s", j->argv[0], strerror(e));
}

/* ---- while it runs ---- */
/* False: it has closed its output. */
static bool drain(child *c) {
    char b[4096];
    const ssize_t n = read(c->out, b, sizeof b);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (n <= 0) return false;
    const size_t room = CD_SPAWN_TEXT - c->job->text.n;
    cd_buf_put(&c->job->text, b, (size_t)n < room ? (size_t)n : room);
    return true;
}

static void finish(child *c, bool timed_out) {
    int w = 0;
    cd_subprocess *j = c->job;
    if (timed_out) kill(-c->pid, SIGKILL);
    while (waitpid(c->pid, &w, 0) < 0 && errno == EINTR) {
    }
    kill(-c->pid, SIGKILL); /* what it left behind; the group is gone where it left nothing */
    close_fd(&c->out);
    j->wall_s = cd_clock_wall() - c->begin_s;
    j->end = timed_out ? CD_SPAWN_TIMED_OUT : WIFSIGNALED(w) ? CD_SPAWN_SIGNALED : CD_SPAWN_EXITED;
    j->code = WIFSIGNALED(w) ? WTERMSIG(w) : WEXITSTATUS(w);
    c->job = NULL;
}

static size_t poll_set(const child *c, size_t width, struct pollfd *f) {
    size_t n = 0;
    for (size_t i = 0; i < width; i++)
        if (c[i].job) f[n++] = (struct pollfd){c[i].out, POLLIN, 0};
    return n;
}

static void serve(child *c, size_t width, const struct pollfd *f) {
    const double t = cd_clock_wall();
    for (size_t i = 0, k = 0; i < width; i++) {
        if (!c[i].job) continue;
        const short ready = f[k++].revents;
        if (ready && !drain(&c[i])) finish(&c[i], false);
        else if (c[i].job->limit_s > 0 && t - c[i].begin_s > c[i].job->limit_s) finish(&c[i], true);
    }
}

static void kill_all(child *c, size_t width) {
    for (size_t i = 0; i < width; i++)
        if (c[i].job) finish(&c[i], true);
}

/* Begin what fits; the number that runs. */
static cdmpp_status fill(child *c, size_t width, cd_subprocess *job, size_t n, size_t *at,
                         size_t *running, cdmpp_err *err) {
    *running = 0;
    for (size_t i = 0; i < width; i++) {
        while (!c[i].job && *at < n) CD_TRY(begin(&c[i], &job[(*at)++], err));
        *running += c[i].job != NULL;
    }
    return CDMPP_OK;
}

/* poll() wakes up at least every TICK_MS, to see limits and *stop. */
cdmpp_status cd_subprocess_run(cd_subprocess *job, size_t n, int width_asked,
                               const volatile sig_atomic_t *stop, cdmpp_err *err) {
    const size_t width = width_asked < 1           ? 1
                         : width_asked > WIDTH_MAX ? WIDTH_MAX
                                                   : (size_t)width_asked;
    child *c = cd_mem_zalloc(width, sizeof *c);
    struct pollfd *f = cd_mem_zalloc(width, sizeof *f);
    cdmpp_status st = c && f ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu processes", width);
    size_t at = 0, running = 0;
    while (!st) {
        st = fill(c, width, job, n, &at, &running, err);
        if (st || !running) break;
        const size_t n_fd = poll_set(c, width, f);
        (void)poll(f, (nfds_t)n_fd, TICK_MS);
        if (stop && *stop)
            st = CD_FAIL(err, EINTERRUPTED, "%zu of %zu programs had ended", at - running, n);
        else serve(c, width, f);
    }
    if (c) kill_all(c, width);
    for (size_t i = 0; !st && i < n; i++)
        if (job[i].text.oom) st = CD_FAIL(err, ENOMEM, "output of %.80s", job[i].argv[0]);
    cd_mem_free(c);
    cd_mem_free(f);
    return st;
}

const char *cd_subprocess_say(const cd_subprocess *s, char *buf, size_t n) {
    switch (s->end) {
    case CD_SPAWN_EXITED: snprintf(buf, n, "exit status %d", s->code); break;
    case CD_SPAWN_SIGNALED:
        snprintf(buf, n, "killed by signal %d (%s)", s->code, strsignal(s->code));
        break;
    case CD_SPAWN_TIMED_OUT: snprintf(buf, n, "still running after %g s", s->limit_s); break;
    case CD_SPAWN_NOT_BEGUN: snprintf(buf, n, "%s", strerror(s->code)); break;
    }
    return buf;
}

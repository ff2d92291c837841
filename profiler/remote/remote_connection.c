/* A worker's process: started in a group of its own, spoken to by lines over a socket, killed with
 * all that it started. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "profiler/remote/remote_internal.h"

extern char **environ;

static cdmpp_status spawn(cd_remote_connection *l, int io, int err_io, cdmpp_err *err) {
    posix_spawn_file_actions_t f;
    posix_spawnattr_t a;
    sigset_t def;
    posix_spawn_file_actions_init(&f);
    posix_spawnattr_init(&a);
    sigemptyset(&def);
    sigaddset(&def, SIGPIPE); /* ignored here perhaps, not there */
    posix_spawnattr_setsigdefault(&a, &def);
    posix_spawnattr_setpgroup(&a, 0);
    posix_spawnattr_setflags(&a, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_adddup2(&f, io, 0);
    posix_spawn_file_actions_adddup2(&f, io, 1);
    posix_spawn_file_actions_adddup2(&f, err_io, 2);
    /* posix_spawn takes char *const *: it does not write there */
    const int rc = posix_spawnp(&l->pid, l->host->argv[0], &f, &a,
                                (char *const *)(uintptr_t)l->host->argv, environ);
    posix_spawn_file_actions_destroy(&f);
    posix_spawnattr_destroy(&a);
    if (!rc) return CDMPP_OK;
    l->pid = 0;
    return CD_FAIL(err, EIO, "cannot run %.60s: %s", l->host->argv[0], strerror(rc));
}

/* Our ends do not block: one worker that stops reading must not stop the others. */
cdmpp_status cd_remote_connection_start(cd_remote_connection *l, double now, cdmpp_err *err) {
    int io[2] = {-1, -1}, errs[2] = {-1, -1};
    cd_buf_clear(&l->in);
    cd_buf_clear(&l->out);
    l->sent = l->scanned = 0;
    l->said[0] = 0;
    cdmpp_status st = CDMPP_OK;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, io) || pipe2(errs, O_CLOEXEC))
        st = CD_FAIL(err, EIO, "no pipe: %s", strerror(errno));
    if (!st) st = spawn(l, io[1], errs[1], err);
    if (io[1] >= 0) close(io[1]);
    if (errs[1] >= 0) close(errs[1]);
    if (st) {
        if (io[0] >= 0) close(io[0]);
        if (errs[0] >= 0) close(errs[0]);
        return st;
    }
    fcntl(io[0], F_SETFL, O_NONBLOCK);
    fcntl(errs[0], F_SETFL, O_NONBLOCK);
    l->fd = io[0];
    l->err_fd = errs[0];
    l->state = CD_REMOTE_CONNECTION_GREETING;
    l->heard = now;
    l->lines = 0;
    return CDMPP_OK;
}

void cd_remote_connection_kill(cd_remote_connection *l) {
    if (l->fd >= 0) close(l->fd);
    if (l->err_fd >= 0) close(l->err_fd);
    l->fd = l->err_fd = -1;
    if (l->pid > 0) {
        kill(-l->pid, SIGKILL);
        while (waitpid(l->pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
    l->pid = 0;
}

bool cd_remote_connection_send(cd_remote_connection *l) {
    while (l->sent < l->out.n) {
        const ssize_t k = send(l->fd, l->out.p + l->sent, l->out.n - l->sent, MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
        l->sent += (size_t)k;
    }
    cd_buf_clear(&l->out);
    l->sent = 0;
    return true;
}

/* Keep the last line that it complained. */
static void receive_complaints(cd_remote_connection *l) {
    char b[1024];
    for (;;) {
        const ssize_t k = read(l->err_fd, b, sizeof b - 1);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return;
        b[k] = 0;
        for (char *at = b, *end; *at; at = end + strspn(end, "\r\n")) {
            end = at + strcspn(at, "\r\n");
            if (end - at >= 3) snprintf(l->said, sizeof l->said, "%.*s", (int)(end - at), at);
        }
    }
}

bool cd_remote_connection_receive(cd_remote_connection *l) {
    char b[16384];
    receive_complaints(l);
    while (l->in.n <= 2 * CD_REMOTE_LINE) { /* the rest waits in the socket: a flood is bounded */
        const ssize_t k = recv(l->fd, b, sizeof b, 0);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
        if (k == 0) {
            const struct timespec t = {0, 2000000};
            if (!l->said[0]) nanosleep(&t, NULL); /* what it said last may come behind its end */
            receive_complaints(l);
            return false;
        }
        cd_buf_put(&l->in, b, (size_t)k);
    }
    return true;
}

char *cd_remote_connection_next_line(cd_remote_connection *l, size_t *n) {
    char *from = l->in.p ? l->in.p + l->scanned : NULL;
    char *end = from ? memchr(from, '\n', l->in.n - l->scanned) : NULL;
    if (!end) {
        if (from && l->scanned) memmove(l->in.p, from, l->in.n - l->scanned);
        l->in.n -= l->scanned;
        l->scanned = 0;
        return NULL;
    }
    *end = 0;
    *n = (size_t)(end - from);
    l->scanned += *n + 1;
    return from;
}

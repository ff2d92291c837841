/* Asks a GPU's driver in a process of its own. A driver that was once started does not survive a
 * fork, and who measures forks later; a driver that crashes or hangs costs an answer, and not the
 * command. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/describe/describe.h"

enum { LIMIT_MS = 30 * 1000, MOST_GPUS = 16 };

typedef struct answer {
    cdmpp_status st;
    cdmpp_err err;
    cd_describe_entry entry; /* its name points into the other process */
} answer;

/* What drivers say on standard output and error is not the command's. */
static _Noreturn void child(const char *backend, const char *gpu, int fd, answer *a) {
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) (void)dup2(nowhere, 1), (void)dup2(nowhere, 2);
    a->st = cd_describe_gpu(backend, gpu, &a->entry, &a->err);
    for (size_t n = 0; n < sizeof *a;) {
        const ssize_t k = write(fd, (const char *)a + n, sizeof *a - n);
        if (k < 0 && errno != EINTR) break;
        if (k > 0) n += (size_t)k;
    }
    _exit(0);
}

/* All of the answer, or false: the other process is gone, or it takes too long. */
static bool receive(int fd, answer *a) {
    for (size_t n = 0; n < sizeof *a;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        const int ready = poll(&p, 1, LIMIT_MS);
        if (ready < 0 && errno == EINTR) continue;
        const ssize_t k = ready > 0 ? read(fd, (char *)a + n, sizeof *a - n) : 0;
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        n += (size_t)k;
    }
    return true;
}

static cdmpp_status ask(const char *backend, const char *gpu, answer *a, cdmpp_err *err) {
    int fd[2], status;
    if (pipe(fd)) return CD_FAIL(err, EIO, "no pipe: %s", strerror(errno));
    const pid_t pid = fork();
    if (pid == 0) {
        close(fd[0]);
        child(backend, gpu, fd[1], a);
    }
    close(fd[1]);
    const bool all = pid > 0 && receive(fd[0], a);
    close(fd[0]);
    if (pid < 0) return CD_FAIL(err, EIO, "no process: %s", strerror(errno));
    if (!all) kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return all ? CDMPP_OK : CD_FAIL(err, EBACKEND, "the driver of %s gives no answer", backend);
}

cdmpp_status cd_describe_gpu_apart(const char *backend, const char *gpu, cd_describe_entry *out,
                                   cdmpp_err *err) {
    answer *a = cd_mem_zalloc(1, sizeof *a);
    if (!a) return CD_FAIL(err, ENOMEM, "a device");
    cdmpp_status st = ask(backend, gpu, a, err);
    if (!st && (st = a->st) && err) *err = a->err;
    if (!st) {
        *out = a->entry;
        out->device.name = out->name;
    }
    cd_mem_free(a);
    return st;
}

/* Of all of them it is the first one in most cases. */
bool cd_describe_gpu_is_here(const char *backend, const char *gpu, const cd_describe_identity *file,
                             char differs[CD_DESCRIBE_DIFFERS]) {
    char name[16] = "", how[CD_DESCRIBE_DIFFERS];
    cd_describe_entry e;
    differs[0] = 0;
    for (int k = 0; k < MOST_GPUS && !cd_describe_gpu_apart(backend, gpu ? gpu : name, &e, NULL);
         k++) {
        cd_describe_identity here;
        cd_describe_identity_gpu(&e, &here);
        if (!cd_describe_identity_differs(file, &here, how)) return true;
        if (!differs[0] || !strcmp(file->says, here.says)) memcpy(differs, how, sizeof how);
        if (gpu) return false;
        (void)snprintf(name, sizeof name, "%d", k);
    }
    return false;
}

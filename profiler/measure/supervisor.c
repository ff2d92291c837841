/* The supervisor and its workers. The opener's process has libraries, memory and soon threads that
 * a measured program may damage, so it forks a supervisor early, and the supervisor forks a worker
 * for each program: a worker starts from that early, small process whatever the opener has
 * become. */
#include "profiler/measure/measure_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 100 };

struct cd_supervisor {
    pid_t pid;
    int fd; /* -1: it is gone */
};

/* ---- worker ---- */
/* When memory is short the system kills the worker first. */
static void prefer_for_oom(void) {
    const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    if (write(fd, "1000", 4) != 4) {
    } /* then the system chooses as it does */
    close(fd);
}

/* The worker's process: jobs until the supervisor closes its end; a job that is `fresh` is the only
 * one. */
static void worker_main(int fd, int kept) {
    cd_measure_worker w = {.kept = &kept};
    cd_arena arena = {0};
    void *bytes;
    size_t n;
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    prefer_for_oom();
    while (cd_worker_protocol_receive(fd, &bytes, &n)) {
        cd_job j;
        cd_worker_result a;
        cdmpp_err err = {0};
        const bool good = cd_worker_protocol_get(&arena, bytes, n, &j, &err) == CDMPP_OK;
        if (good) cd_worker_do(&w, &j, &a);
        else a = (cd_worker_result){.measured = {.status = err.code, .error_no = 8, .err = err}};
        if (!cd_worker_protocol_send(fd, &a, sizeof a) || !good || j.fresh) break;
        cd_mem_free(bytes);
        cd_buf_free(&j.code.text);
        cd_buf_free(&j.reference.text);
        cd_arena_reset(&arena);
    }
    _exit(0); /* no handlers of libraries that belong to the opener */
}

/* ---- supervisor ---- */
typedef struct {
    int up;    /* to the opener */
    int fd;    /* to the worker */
    pid_t pid; /* 0: there is none */
    /* what all workers share: results of the last reference (result_check); -1: nothing */
    int kept;
} ward; /* the supervisor's worker */

static void end_worker(ward *w, int *how) {
    int status = 0;
    if (!w->pid) return;
    kill(w->pid, SIGKILL);
    kill(-w->pid, SIGKILL); /* what the program has started */
    while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR) {
    }
    close(w->fd);
    w->pid = 0;
    if (how) *how = status;
}

/* True: there is a worker, the old one or a new one. */
static bool begin_worker(ward *w) {
    int s[2];
    if (w->pid) return true;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) != 0) return false;
    w->pid = fork();
    if (w->pid == 0) {
        close(s[0]);
        close(w->up);
        worker_main(s[1], w->kept);
    }
    close(s[1]);
    w->fd = s[0];
    if (w->pid < 0) return close(s[0]), w->pid = 0, false;
    return true;
}

/* The result of a worker that gave none. */
static void ended(cd_worker_result *a, int error_no, int how, const cd_job *j, bool of_reference) {
    cd_measure_result *m = &a->measured;
    memset(a, 0, sizeof *a);
    m->at = (int64_t)time(NULL);
    m->error_no = error_no;
    m->cycles = m->instructions = m->cache_misses = -1;
    if (error_no == 7)
        m->status =
            CD_FAIL(&m->err, EBACKEND, "%s after %g s",
                    of_reference ? "its reference is still running, results cannot be compared"
                                 : "still running",
                    of_reference ? j->check_s : j->limit_s);
    else if (WIFSIGNALED(how))
        m->status = CD_FAIL(&m->err, EBACKEND, "the program was killed by signal %d (%s)",
                            WTERMSIG(how), strsignal(WTERMSIG(how)));
    else
        m->status =
            CD_FAIL(&m->err, EBACKEND, "the program ended with exit status %d", WEXITSTATUS(how));
}

typedef enum { ANSWERED, DIED, LATE, ORPHANED } outcome;

/* When a job that began then is late. A program's time begins when its reference is done. */
static double end_of(const ward *w, const cd_job *j, double begin) {
    const double done = j->check_s > 0 ? cd_result_check_done(w->kept) : begin;
    if (j->limit_s <= 0) return (double)INFINITY;
    if (done <= 0) return begin + j->check_s + j->limit_s;
    return (done > begin ? done : begin) + j->limit_s;
}

/* Until the worker answers or dies, the limit is over, or the opener is gone. */
static outcome wait_for(const ward *w, const cd_job *j, cd_worker_result *a) {
    /* of one wait: the end moves when the reference is done */
    const double begin = cd_clock_wall(), most = j->check_s > 0 ? 1 : 60;
    for (;;) {
        struct pollfd f[2] = {{w->fd, POLLIN, 0}, {w->up, POLLIN, 0}};
        const double left = end_of(w, j, begin) - cd_clock_wall();
        if (left <= 0) return LATE;
        if (poll(f, 2, (int)((left < most ? left : most) * 1e3) + 1) < 0 && errno != EINTR)
            return DIED;
        /* the opener asks for nothing meanwhile: it has closed its end */
        if (f[1].revents) return ORPHANED;
        if (!f[0].revents) continue;
        return cd_worker_protocol_receive_into(w->fd, a, sizeof *a) ? ANSWERED : DIED;
    }
}

/* False: the opener is gone. */
static bool one_job(ward *w, const void *bytes, size_t n) {
    cd_job j; /* its numbers; the texts are the worker's business */
    cd_worker_result a;
    int how = 0;
    if (n < sizeof j) return false;
    memcpy(&j, bytes, sizeof j);
    /* The seconds beyond the limit are for compiling where the worker does that, and for
     * loading. */
    const bool given = begin_worker(w) && cd_worker_protocol_send(w->fd, bytes, n);
    const outcome o = !given ? DIED : wait_for(w, &j, &a);
    if (o == ORPHANED) return false;
    /* After a failure a device's context may be of no use any more. */
    if (o != ANSWERED || j.fresh || a.measured.error_no) end_worker(w, &how);
    if (o != ANSWERED)
        ended(&a, o == LATE ? 7 : 4, how, &j, j.check_s > 0 && cd_result_check_done(w->kept) <= 0);
    return cd_worker_protocol_send(w->up, &a, sizeof a);
}

static void supervisor_main(int up) {
    ward w = {.up = up, .kept = memfd_create("results", MFD_CLOEXEC)};
    void *bytes = NULL;
    size_t n;
    bool go = true;
    (void)setpgid(0, 0);
    for (int k = 1; k < NSIG; k++) (void)signal(k, SIG_DFL); /* the opener's handlers are its own */
    while (go && cd_worker_protocol_receive(up, &bytes, &n)) {
        go = one_job(&w, bytes, n);
        cd_mem_free(bytes);
    }
    end_worker(&w, NULL);
    _exit(0);
}

/* ---- opener ---- */
cdmpp_status cd_supervisor_fork(void (*body)(int fd), pid_t *pid, int *fd, cdmpp_err *err) {
    int s[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) != 0)
        return CD_FAIL(err, EIO, "no socket: %s", strerror(errno));
    fflush(NULL); /* nothing is printed twice */
    *pid = fork();
    if (*pid == 0) {
        close(s[0]);
        body(s[1]);
    }
    close(s[1]);
    *fd = s[0];
    if (*pid > 0) return CDMPP_OK;
    close(s[0]);
    return CD_FAIL(err, EIO, "no process: %s", strerror(errno));
}

/* The socket is the only link: its end tells the supervisor that the opener has gone, in whatever
 * way. */
cdmpp_status cd_supervisor_open(cd_supervisor **out, cdmpp_err *err) {
    cd_supervisor *k = cd_mem_zalloc(1, sizeof *k);
    if (!k) return CD_FAIL(err, ENOMEM, "supervisor");
    const cdmpp_status st = cd_supervisor_fork(supervisor_main, &k->pid, &k->fd, err);
    if (st) cd_mem_free(k);
    else *out = k;
    return st;
}

pid_t cd_supervisor_pid(const cd_supervisor *k) { return k->pid; }

void cd_supervisor_close(cd_supervisor *k) {
    if (!k) return;
    if (k->fd >= 0) close(k->fd);
    while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    cd_mem_free(k);
}

/* Waits in short turns, so that *stop is seen while a program runs. */
cdmpp_status cd_supervisor_do(cd_supervisor *k, const cd_job *job, cd_worker_result *out,
                              const volatile sig_atomic_t *stop, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = cd_worker_protocol_put(&b, job, err);
    if (!st && !cd_worker_protocol_send(k->fd, b.p, b.n))
        st = CD_FAIL(err, EIO, "the measuring process is gone");
    cd_buf_free(&b);
    while (!st) {
        struct pollfd f = {k->fd, POLLIN, 0};
        if (stop && *stop) return CD_FAIL(err, EINTERRUPTED, "while a program was measured");
        if (poll(&f, 1, TICK_MS) <= 0) continue;
        if (!cd_worker_protocol_receive_into(k->fd, out, sizeof *out))
            st = CD_FAIL(err, EIO, "the measuring process is gone");
        break;
    }
    return st;
}

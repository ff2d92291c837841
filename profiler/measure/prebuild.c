/* Compiles GPU programs ahead of their measurement. A compiler of GPU programs serves one call of a
 * process at a time (NVRTC), so that each compiler here is a process; none of them has a context of
 * the device, whose memory would be theirs. */
#include "profiler/measure/measure_internal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TICK_MS = 100, MOST = 1 << 16, PROCESSES = 64 };

struct cd_prebuild {
    pid_t pid;
    int fd;
};

/* What a batch's compilers share: who takes which job, and what each took. */
typedef struct {
    atomic_uint next;
    double seconds[]; /* (n) */
} board;

typedef struct {
    void *bytes;
    size_t n;
} frame;

static size_t board_bytes(unsigned n) { return sizeof(board) + (n + 1) * sizeof(double); }

/* ---- one compiler ---- */
/* A compiler that hangs is ended by its alarm; what it has not done is left to the worker. */
static void compile(const frame *f, unsigned n, board *b) {
    cd_measure_worker w = {0};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    for (unsigned at; (at = atomic_fetch_add(&b->next, 1)) < n;) {
        cd_arena arena = {0};
        cd_job j;
        cdmpp_err err = {0};
        if (cd_worker_protocol_get(&arena, f[at].bytes, f[at].n, &j, &err)) break;
        (void)alarm(j.limit_s > 0 ? (unsigned)j.limit_s + 1 : 0);
        b->seconds[at] = cd_worker_prebuild(&w, &j);
        cd_buf_free(&j.code.text);
        cd_buf_free(&j.reference.text);
        cd_arena_free(&arena);
    }
    _exit(0);
}

static void compile_all(const frame *f, unsigned n, unsigned jobs, board *b) {
    pid_t pid[PROCESSES];
    unsigned begun = 0;
    if (jobs > PROCESSES) jobs = PROCESSES;
    for (; begun < jobs && begun < n; begun++) {
        pid[begun] = fork();
        if (pid[begun] == 0) compile(f, n, b);
        if (pid[begun] < 0) break;
    }
    for (unsigned k = 0; k < begun; k++)
        while (waitpid(pid[k], NULL, 0) < 0 && errno == EINTR) {
        }
}

/* ---- the process ---- */
/* The opener's next batch: its two numbers, then its jobs. False: the opener is gone, or memory is
 * short. */
static bool get_batch(int up, frame **f, unsigned head[2]) {
    const bool good = cd_worker_protocol_receive_into(up, head, 2 * sizeof *head);
    *f = good && head[0] <= MOST ? cd_mem_zalloc(head[0] + 1, sizeof **f) : NULL;
    if (!*f) return false;
    for (unsigned k = 0; k < head[0]; k++)
        if (!cd_worker_protocol_receive(up, &(*f)[k].bytes, &(*f)[k].n)) return false;
    return true;
}

static void prebuild_main(int up) {
    (void)setpgid(0, 0);
    /* while it waits for its compilers it does not look at the socket */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int k = 1; k < NSIG; k++) (void)signal(k, SIG_DFL);
    for (bool go = true; go;) {
        unsigned head[2] = {0};
        frame *f = NULL;
        go = get_batch(up, &f, head);
        board *b = go ? mmap(NULL, board_bytes(head[0]), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0)
                      : MAP_FAILED;
        go = b != MAP_FAILED;
        if (!go) break;
        compile_all(f, head[0], head[1], b);
        go = cd_worker_protocol_send(up, b->seconds, head[0] * sizeof(double));
        munmap(b, board_bytes(head[0]));
        for (unsigned k = 0; k < head[0]; k++) cd_mem_free(f[k].bytes);
        cd_mem_free(f);
    }
    _exit(0);
}

/* ---- opener ---- */
cdmpp_status cd_prebuild_open(cd_prebuild **out, cdmpp_err *err) {
    cd_prebuild *k = cd_mem_zalloc(1, sizeof *k);
    if (!k) return CD_FAIL(err, ENOMEM, "compilers of GPU programs");
    const cdmpp_status st = cd_supervisor_fork(prebuild_main, &k->pid, &k->fd, err);
    if (st) cd_mem_free(k);
    else *out = k;
    return st;
}

/* Killed: it may wait for a compiler. Its compilers die with it. */
void cd_prebuild_close(cd_prebuild *k) {
    if (!k) return;
    close(k->fd);
    kill(k->pid, SIGKILL);
    while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    cd_mem_free(k);
}

static cdmpp_status send_batch(const cd_prebuild *k, const cd_job *job, size_t n, int jobs,
                               cdmpp_err *err) {
    const unsigned head[2] = {(unsigned)n, (unsigned)jobs};
    bool sent = cd_worker_protocol_send(k->fd, head, sizeof head);
    for (size_t i = 0; i < n && sent; i++) {
        cd_buf b = {0};
        const cdmpp_status st = cd_worker_protocol_put(&b, &job[i], err);
        sent = !st && cd_worker_protocol_send(k->fd, b.p, b.n);
        cd_buf_free(&b);
        CD_TRY(st);
    }
    return sent ? CDMPP_OK : CD_FAIL(err, EIO, "the compilers' process is gone");
}

cdmpp_status cd_prebuild_run(cd_prebuild *k, const cd_job *job, size_t n, int jobs, double *seconds,
                             const volatile sig_atomic_t *stop, cdmpp_err *err) {
    if (n > MOST) n = MOST;
    CD_TRY(send_batch(k, job, n, jobs, err));
    for (;;) {
        struct pollfd f = {k->fd, POLLIN, 0};
        if (stop && *stop) return CD_FAIL(err, EINTERRUPTED, "while programs were compiled");
        if (poll(&f, 1, TICK_MS) <= 0) continue;
        if (cd_worker_protocol_receive_into(k->fd, seconds, n * sizeof *seconds)) return CDMPP_OK;
        return CD_FAIL(err, EIO, "the compilers' process is gone");
    }
}

pid_t cd_prebuild_pid(const cd_prebuild *k) { return k->pid; }

/* Several programs at the same time. Each runs in a process that lives through all windows; the
 * processes share a board of atomic counters, by which all begin a window together and each goes on
 * running until the others have finished their own. */
#include "profiler/measure/measure_internal.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "profiler/host/host.h"

#define TURN_S 1e-3 /* between two readings of the clock */

/* What the processes share. */
typedef struct {
    atomic_int turn;             /* turn_of a window; -1: end */
    atomic_int arrived, counted; /* in this window */
    struct {
        atomic_int ready;    /* 1: loaded; -1: it cannot be, see err */
        atomic_int finished; /* the last window that is over */
        pid_t pid;
        double run_s; /* of that window */
        cdmpp_err err;
    } side[CD_CORUN_GROUP];
} board;

typedef struct {
    const cd_build *const *build; /* (n) */
    int n, places;
    cd_corun_policy q; /* with defaults */
    board *b;
    pid_t pid[CD_CORUN_GROUP];
} rig;

static void nap(void) { (void)usleep(200); }

/* ---- a program's process ---- */

static void take_place(const rig *r, int side) {
    cd_affinity all;
    cd_affinity_get(&all);
    cd_affinity_set(&all, side % r->places * r->q.threads);
    (void)cd_affinity_last(r->q.threads);
}

/* How many runs take TURN_S. */
static cdmpp_status warm_up(cd_loaded *l, unsigned *number, cdmpp_err *err) {
    double best = 1e9, s;
    for (unsigned k = 0, times = 1; k < 12 && best * *number < TURN_S; k++, times *= 2) {
        CD_TRY(cd_backend_cpu.run(l, times, &s, err));
        if (s / times < best) best = s / times;
        *number = best < TURN_S ? (unsigned)(TURN_S / (best > 1e-9 ? best : 1e-9)) + 1 : 1;
        if (times * best > TURN_S) break;
    }
    return CDMPP_OK;
}

/* The number of a window, from 1, and who takes part (bit k: program k) in one atomic number: a
 * process that wakes late must not see the number of one window with those of the next. */
static int turn_of(int number, int who) { return number << CD_CORUN_GROUP | who; }
static int who_of(int turn) { return turn & ((1 << CD_CORUN_GROUP) - 1); }
static int members(int who) { return __builtin_popcount((unsigned)who); }

/* Processor time of process `pid` until now. */
static double used(pid_t pid) {
    struct timespec t = {0};
    clockid_t c;
    if (clock_getcpuclockid(pid, &c) || clock_gettime(c, &t)) return 0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What the clock says of this side's place: the processor time of all programs that are on it in
 * this window, so that the time slices of somebody else's processes are no time of ours. Threads
 * wait for each other, so of several threads only the wall clock tells. */
static double place_clock(const rig *r, int side, int who) {
    double s = 0;
    if (r->q.threads > 1) return cd_clock_wall();
    for (int k = side % r->places; k < r->n; k += r->places)
        if (who >> k & 1) s += used(r->b->side[k].pid);
    return s;
}

/* One window: begin together, run for window_s, then go on until the other programs have their
 * times, too. */
static cdmpp_status window(const rig *r, int side, int who, cd_loaded *l, unsigned number,
                           cdmpp_err *err) {
    board *b = r->b;
    const int n = members(who);
    double s, runs = 0;
    atomic_fetch_add(&b->arrived, 1);
    while (atomic_load(&b->arrived) < n) (void)sched_yield();
    const double end = cd_clock_wall() + r->q.window_s, begin = place_clock(r, side, who);
    do { /* at least once */
        CD_TRY(cd_backend_cpu.run(l, number, &s, err));
        runs += number;
    } while (cd_clock_wall() < end);
    b->side[side].run_s = (place_clock(r, side, who) - begin) / runs;
    atomic_fetch_add(&b->counted, 1);
    while (atomic_load(&b->counted) < n) CD_TRY(cd_backend_cpu.run(l, 1, &s, err));
    return CDMPP_OK;
}

/* Takes part in each turn that names this side, until turn -1. */
static cdmpp_status serve(const rig *r, int side, cd_loaded *l, cdmpp_err *err) {
    board *b = r->b;
    unsigned number = 1;
    CD_TRY(warm_up(l, &number, err));
    atomic_store(&b->side[side].ready, 1);
    for (int seen = 0;;) {
        const int turn = atomic_load(&b->turn);
        if (turn < 0) return CDMPP_OK;
        if (turn == seen) {
            nap();
            continue;
        }
        seen = turn;
        if (!(who_of(turn) >> side & 1)) continue;
        CD_TRY(window(r, side, who_of(turn), l, number, err));
        atomic_store(&b->side[side].finished, seen);
    }
}

void cd_corun_child(pid_t parent) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    for (int k = 1; k < NSIG; k++) (void)signal(k, SIG_DFL);
}

/* The program's process. */
static void program_main(const rig *r, int side, pid_t parent) {
    char target[64];
    cd_backend *b = NULL;
    cd_loaded *l = NULL;
    cdmpp_err err = {0};
    cd_corun_child(parent);
    r->b->side[side].pid = getpid();
    take_place(r, side);
    snprintf(target, sizeof target, "llvm -num-cores=%d", r->q.threads);
    cdmpp_status st = cd_backend_cpu.open("", target, &b, &err);
    if (!st) st = cd_backend_cpu.load(b, r->build[side], NULL, &l, &err);
    if (!st) st = serve(r, side, l, &err);
    if (st) {
        r->b->side[side].err = err;
        atomic_store(&r->b->side[side].ready, -1);
    }
    _exit(0);
}

/* ---- the parent ---- */

void cd_corun_end(pid_t *pid, int n) {
    for (int k = 0; k < n; k++) {
        if (pid[k] <= 0) continue;
        kill(pid[k], SIGKILL);
        while (waitpid(pid[k], NULL, 0) < 0 && errno == EINTR) {
        }
        pid[k] = 0;
    }
}

static void blame(cd_corun_group *out, int side, int error_no) {
    out->error_no = error_no;
    out->at = side;
}

bool cd_corun_gone(pid_t *pid, const atomic_int *ready, const cdmpp_err *why, cdmpp_err *out) {
    int how = 0;
    const bool ended = *pid > 0 && waitpid(*pid, &how, WNOHANG) == *pid,
               said = atomic_load(ready) < 0;
    if (ended) *pid = 0;
    if (!ended && !said) return false;
    if (said) *out = *why;
    else if (WIFSIGNALED(how))
        (void)CD_FAIL(out, EBACKEND, "the program was killed by signal %d (%s)", WTERMSIG(how),
                      strsignal(WTERMSIG(how)));
    else (void)CD_FAIL(out, EBACKEND, "the program ended with exit status %d", WEXITSTATUS(how));
    return true;
}

static bool gone(rig *r, int side, cd_corun_group *out) {
    if (!cd_corun_gone(&r->pid[side], &r->b->side[side].ready, &r->b->side[side].err, &out->err))
        return false;
    return blame(out, side, 4), true;
}

/* Until those of `who` are ready (turn 0) or have finished the window. False: out->error_no, or a
 * stop. */
static bool wait_for(rig *r, int who, int turn, double limit_s, cd_corun_group *out) {
    const double end = cd_clock_wall() + limit_s;
    for (;;) {
        int late = -1;
        for (int k = 0; k < r->n; k++) {
            const bool done = turn ? atomic_load(&r->b->side[k].finished) >= turn
                                   : atomic_load(&r->b->side[k].ready) == 1;
            if (who >> k & 1 && !done) late = k;
            if (gone(r, k, out)) return false;
        }
        if (late < 0) return true;
        if (r->q.stop && *r->q.stop) return false;
        if (cd_clock_wall() > end) {
            (void)CD_FAIL(&out->err, EBACKEND, "still running after %g s", limit_s);
            return blame(out, late, 7), false;
        }
        nap();
    }
}

static double middle(double *v, unsigned n, double *spread) {
    cd_sort_doubles(v, n);
    const double m = cd_sort_median(v, n);
    if (spread && (v[n - 1] - v[0]) / m > *spread) *spread = (v[n - 1] - v[0]) / m;
    return m;
}

/* One window of those of `who`. */
static bool one_window(rig *r, int who, int number, cd_corun_group *out) {
    board *b = r->b;
    const int turn = turn_of(number, who);
    atomic_store(&b->arrived, 0);
    atomic_store(&b->counted, 0);
    atomic_store(&b->turn, turn);
    return wait_for(r, who, turn, members(who) * r->q.window_s + r->q.limit_s, out);
}

/* In each round each alone and then all together, so that slow drifts of the machine hit all
 * alike. */
static void all_rounds(rig *r, cd_corun_group *out) {
    double solo[CD_CORUN_GROUP][CD_CORUN_ROUNDS], all[CD_CORUN_GROUP][CD_CORUN_ROUNDS];
    const int everybody = (1 << r->n) - 1;
    int number = 0;
    if (!wait_for(r, everybody, 0, r->q.limit_s, out)) return;
    for (unsigned k = 0; k < r->q.rounds; k++) {
        for (int s = 0; s < r->n; s++) {
            if (!one_window(r, 1 << s, ++number, out)) return;
            solo[s][k] = r->b->side[s].run_s;
        }
        if (!one_window(r, everybody, ++number, out)) return;
        for (int s = 0; s < r->n; s++) all[s][k] = r->b->side[s].run_s;
    }
    for (int s = 0; s < r->n; s++) {
        out->solo_s[s] = middle(solo[s], r->q.rounds, &out->spread);
        out->corun_s[s] = middle(all[s], r->q.rounds, NULL);
        out->slowdown[s] = out->corun_s[s] / out->solo_s[s];
    }
}

static cdmpp_status begin(rig *r, cdmpp_err *err) {
    const pid_t me = getpid();
    for (int k = 0; k < r->n; k++) {
        r->pid[k] = fork();
        if (r->pid[k] == 0) program_main(r, k, me);
        if (r->pid[k] < 0) return CD_FAIL(err, EIO, "no process: %s", strerror(errno));
    }
    return CDMPP_OK;
}

cd_corun_policy cd_corun_defaults(cd_corun_policy q) {
    if (q.threads < 1) q.threads = 1;
    if (q.window_s <= 0) q.window_s = 0.1;
    if (!q.rounds) q.rounds = 3;
    if (q.rounds > CD_CORUN_ROUNDS) q.rounds = CD_CORUN_ROUNDS;
    if (q.limit_s <= 0) q.limit_s = 10;
    return q;
}

/* The board is shared anonymous memory: it needs no name and ends with the processes. */
cdmpp_status cd_corun_group_run(const cd_build *const *build, unsigned n, unsigned places,
                                const cd_corun_policy *p, cd_corun_group *out, cdmpp_err *err) {
    rig r = {.build = build, .n = (int)n, .places = (int)places, .q = cd_corun_defaults(*p)};
    const int need = r.places * r.q.threads;
    *out = (cd_corun_group){.n = n};
    if (!n || n > CD_CORUN_GROUP || !places || places > n)
        return CD_FAIL(err, EUSAGE, "%u programs on %u places: 1 to %d are possible", n, places,
                       CD_CORUN_GROUP);
    if (cd_affinity_count() < need)
        return CD_FAIL(err, EUSAGE,
                       "%d processors are needed for %s programs of %d threads, there are %d", need,
                       n == 2 ? "two" : "all", r.q.threads, cd_affinity_count());
    void *m = mmap(NULL, sizeof *r.b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED) return CD_FAIL(err, ENOMEM, "shared memory");
    r.b = m; /* zeroed */
    fflush(NULL);
    cdmpp_status st = begin(&r, err);
    if (!st) all_rounds(&r, out);
    atomic_store(&r.b->turn, -1);
    cd_corun_end(r.pid, r.n);
    munmap(m, sizeof *r.b);
    if (!st && r.q.stop && *r.q.stop)
        st = CD_FAIL(err, EINTERRUPTED, "while programs were measured");
    return st;
}

cdmpp_status cd_corun_run(const cd_build *first, const cd_build *second, const cd_corun_policy *p,
                          cd_corun_pair *out, cdmpp_err *err) {
    const cd_build *const both[] = {first, second};
    cd_corun_group g;
    const cdmpp_status st =
        cd_corun_group_run(both, 2, p->sharing == CD_CORUN_DISJOINT ? 2 : 1, p, &g, err);
    *out = (cd_corun_pair){.spread = g.spread, .error_no = g.error_no, .at = g.at, .err = g.err};
    for (int k = 0; k < 2; k++)
        out->solo_s[k] = g.solo_s[k], out->corun_s[k] = g.corun_s[k],
        out->slowdown[k] = g.slowdown[k];
    return st;
}

int64_t cd_corun_bytes(const cd_codegen_code *code) {
    int64_t n = 0;
    for (uint32_t k = 0; k < code->n_arg; k++) n += code->buffer[k].bytes;
    return n;
}

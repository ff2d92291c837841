/* Ways to run several programs, in turns. Each way has processes of its own, which live through all
 * turns; they share a board of atomic counters. The processes of a way wait for each other before
 * and behind each pass, and the first of them decides when a turn is over. */
#include "profiler/measure/measure_internal.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profiler/host/host.h"

enum { PROCESSES = CD_CORUN_WAYS * CD_CORUN_GROUP, PASSES = 4096 };
/* threads of OpenMP that wait for work poll for some milliseconds before they sleep */
#define PAUSE_S 0.02

typedef struct {
    atomic_int turn;    /* number of the turn, from 1, which tells whose it is; -1: end */
    atomic_int arrived; /* at the barriers of this turn */
    atomic_int over;    /* the first process has decided it */
    int n_pass;         /* of this turn: */
    double pass_s[PASSES];
    struct {
        atomic_int ready, finished; /* as on the board of corun.c */
        double begin_s, end_s;      /* of this pass */
        cdmpp_err err;
    } side[PROCESSES];
} board;

/* One process: programs [first, first + n) of its way, on processors behind the last `skip`. */
typedef struct {
    int way, first, n, skip, threads, leader; /* leader: the way's first process; members: */
    int members;
} crew;

typedef struct {
    const cd_corun_way *way;
    cd_corun_policy q;    /* with defaults */
    crew crew[PROCESSES]; /* (n) */
    pid_t pid[PROCESSES];
    int n, n_way;
    board *b;
} rig;

/* Ways take turns. One number says both: a process that wakes late must not see the number of one
 * turn with the way of the next. */
static int way_of(const rig *r, int turn) { return (turn - 1) % r->n_way; }

/* ---- a process ---- */

static void meet(board *b, int members, int *times) {
    atomic_fetch_add(&b->arrived, 1);
    ++*times;
    while (atomic_load(&b->arrived) < members * *times) (void)sched_yield();
}

/* *seconds: of the programs alone, without what the back end does around them. */
static cdmpp_status run_once(cd_loaded *const *l, int n, double *seconds, cdmpp_err *err) {
    double s;
    *seconds = 0;
    for (int k = 0; k < n; k++, *seconds += s) CD_TRY(cd_backend_cpu.run(l[k], 1, &s, err));
    return CDMPP_OK;
}

/* By the way's first process, when all have ended a pass. The first pass is not counted. */
static void count_pass(const rig *r, int self, int pass, double until) {
    board *b = r->b;
    const crew *c = &r->crew[self];
    double begin = b->side[self].begin_s, end = b->side[self].end_s;
    for (int k = self + 1; k < self + c->members; k++) {
        if (b->side[k].begin_s < begin) begin = b->side[k].begin_s;
        if (b->side[k].end_s > end) end = b->side[k].end_s;
    }
    if (pass) b->pass_s[b->n_pass++] = end - begin;
    atomic_store(&b->over, b->n_pass && (end > until || b->n_pass == PASSES));
}

static cdmpp_status one_turn(const rig *r, int self, cd_loaded *const *l, cdmpp_err *err) {
    board *b = r->b;
    const crew *c = &r->crew[self];
    const double until = cd_clock_wall() + r->q.window_s;
    double s;
    int times = 0;
    for (int pass = 0;; pass++) {
        meet(b, c->members, &times);
        b->side[self].begin_s = cd_clock_wall();
        CD_TRY(run_once(l, c->n, &s, err));
        b->side[self].end_s = b->side[self].begin_s + s;
        meet(b, c->members, &times);
        if (self == c->leader) count_pass(r, self, pass, until);
        meet(b, c->members, &times);
        if (atomic_load(&b->over)) return CDMPP_OK;
    }
}

static cdmpp_status serve(const rig *r, int self, cd_loaded *const *l, cdmpp_err *err) {
    board *b = r->b;
    double s;
    for (int k = 0; k < 2; k++) CD_TRY(run_once(l, r->crew[self].n, &s, err));
    atomic_store(&b->side[self].ready, 1);
    for (int seen = 0;;) {
        const int turn = atomic_load(&b->turn);
        if (turn < 0) return CDMPP_OK;
        if (turn == seen || way_of(r, turn) != r->crew[self].way) {
            seen = turn;
            (void)usleep(200);
            continue;
        }
        seen = turn;
        CD_TRY(one_turn(r, self, l, err));
        atomic_store(&b->side[self].finished, seen);
    }
}

static cdmpp_status load(const cd_corun_way *w, int at, cd_loaded **l, cdmpp_err *err) {
    char target[64];
    cd_backend *b = NULL;
    snprintf(target, sizeof target, "llvm -num-cores=%d", w->threads[at]);
    CD_TRY(cd_backend_cpu.open("", target, &b, err));
    return cd_backend_cpu.load(b, w->build[at], NULL, l, err);
}

static void process_main(const rig *r, int self, pid_t parent) {
    const crew *c = &r->crew[self];
    cd_loaded *l[CD_CORUN_GROUP];
    cd_affinity all;
    cdmpp_err err = {0};
    cdmpp_status st = CDMPP_OK;
    cd_corun_child(parent);
    cd_affinity_get(&all);
    cd_affinity_set(&all, c->skip);
    (void)cd_affinity_last(c->threads);
    for (int k = 0; !st && k < c->n; k++) st = load(&r->way[c->way], c->first + k, &l[k], &err);
    if (!st) st = serve(r, self, l, &err);
    if (st) {
        r->b->side[self].err = err;
        atomic_store(&r->b->side[self].ready, -1);
    }
    _exit(0);
}

/* ---- the parent ---- */

static bool blame(cd_corun_ways *out, const crew *c, int error_no) {
    out->error_no = error_no;
    out->way = c->way;
    out->at = c->first;
    return false;
}

/* Until the processes of the way (-1: all) are ready (turn 0) or have ended the turn. */
static bool wait_for(rig *r, int way, int turn, double limit_s, cd_corun_ways *out) {
    for (const double end = cd_clock_wall() + limit_s;; (void)usleep(200)) {
        int late = -1;
        for (int k = 0; k < r->n; k++) {
            const bool asked = way < 0 || r->crew[k].way == way;
            const bool done = turn ? atomic_load(&r->b->side[k].finished) >= turn
                                   : atomic_load(&r->b->side[k].ready) == 1;
            if (asked && !done) late = k;
            if (cd_corun_gone(&r->pid[k], &r->b->side[k].ready, &r->b->side[k].err, &out->err))
                return blame(out, &r->crew[k], 4);
        }
        if (late < 0) return true;
        if (r->q.stop && *r->q.stop) return false;
        if (cd_clock_wall() > end) {
            (void)CD_FAIL(&out->err, EBACKEND, "still running after %g s", limit_s);
            return blame(out, &r->crew[late], 7);
        }
    }
}

/* *median and *best of the passes of one turn. */
static bool take_turn(rig *r, int turn, double *median, double *best, cd_corun_ways *out) {
    board *b = r->b;
    b->n_pass = 0;
    atomic_store(&b->over, 0);
    atomic_store(&b->arrived, 0);
    (void)usleep((unsigned)(PAUSE_S * 1e6));
    atomic_store(&b->turn, turn);
    if (!wait_for(r, way_of(r, turn), turn, r->q.window_s + r->q.limit_s, out)) return false;
    cd_sort_doubles(b->pass_s, (size_t)b->n_pass);
    *median = cd_sort_median(b->pass_s, (size_t)b->n_pass);
    if (!*best || b->pass_s[0] < *best) *best = b->pass_s[0];
    return true;
}

static void all_rounds(rig *r, unsigned n_way, cd_corun_ways *out) {
    double v[CD_CORUN_WAYS][CD_CORUN_ROUNDS];
    const unsigned n = r->q.rounds;
    int turn = 0;
    if (!wait_for(r, -1, 0, r->q.limit_s, out)) return;
    for (unsigned k = 0; k < n; k++)
        for (unsigned w = 0; w < n_way; w++)
            if (!take_turn(r, ++turn, &v[w][k], &out->best_s[w], out)) return;
    for (unsigned w = 0; w < n_way; w++) {
        cd_sort_doubles(v[w], n);
        out->pass_s[w] = cd_sort_median(v[w], n);
        out->low_s[w] = v[w][n / 4];
        out->high_s[w] = v[w][n - 1 - n / 4];
    }
}

/* The processes of the ways; how many processors they need. */
static int plan(rig *r, unsigned n_way) {
    int need = 0;
    for (unsigned w = 0; w < n_way; w++) {
        const cd_corun_way *x = &r->way[w];
        int sum = 0, most = 0;
        for (unsigned k = 0; k < x->n; k++) {
            if (x->at_once)
                r->crew[r->n + (int)k] =
                    (crew){(int)w, (int)k, 1, sum, x->threads[k], r->n, (int)x->n};
            sum += x->threads[k];
            if (x->threads[k] > most) most = x->threads[k];
        }
        if (!x->at_once) r->crew[r->n] = (crew){(int)w, 0, (int)x->n, 0, most, r->n, 1};
        r->n += x->at_once ? (int)x->n : 1;
        if ((x->at_once ? sum : most) > need) need = x->at_once ? sum : most;
    }
    return need;
}

static cdmpp_status begin(rig *r, cdmpp_err *err) {
    const pid_t me = getpid();
    fflush(NULL);
    for (int k = 0; k < r->n; k++) {
        r->pid[k] = fork();
        if (r->pid[k] == 0) process_main(r, k, me);
        if (r->pid[k] < 0) return CD_FAIL(err, EIO, "no process: %s", strerror(errno));
    }
    return CDMPP_OK;
}

cdmpp_status cd_corun_ways_run(const cd_corun_way *way, unsigned n_way, const cd_corun_policy *p,
                               cd_corun_ways *out, cdmpp_err *err) {
    rig r = {.way = way, .q = cd_corun_defaults(*p)};
    *out = (cd_corun_ways){0};
    if (!n_way || n_way > CD_CORUN_WAYS)
        return CD_FAIL(err, EUSAGE, "%u ways: 1 to %d are possible", n_way, CD_CORUN_WAYS);
    for (unsigned w = 0; w < n_way; w++)
        if (!way[w].n || way[w].n > CD_CORUN_GROUP)
            return CD_FAIL(err, EUSAGE, "%u programs: 1 to %d are possible", way[w].n,
                           CD_CORUN_GROUP);
    r.n_way = (int)n_way;
    const int need = plan(&r, n_way);
    if (cd_affinity_count() < need)
        return CD_FAIL(err, EUSAGE, "%d processors are needed, there are %d", need,
                       cd_affinity_count());
    void *m = mmap(NULL, sizeof *r.b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED) return CD_FAIL(err, ENOMEM, "shared memory");
    r.b = m; /* zeroed */
    cdmpp_status st = begin(&r, err);
    if (!st) all_rounds(&r, n_way, out);
    atomic_store(&r.b->turn, -1);
    cd_corun_end(r.pid, r.n);
    munmap(m, sizeof *r.b);
    if (!st && r.q.stop && *r.q.stop)
        st = CD_FAIL(err, EINTERRUPTED, "while programs were measured");
    return st;
}

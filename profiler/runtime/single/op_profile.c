/* A network profiled in a child process: the child measures and sends a report and one record for
 * each step through a pipe; the parent waits, with a time limit, and works out shares and key
 * groups. */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/io.h"
#include "profiler/host/host.h"
#include "profiler/runtime/single/single_internal.h"

void cd_op_profile_free(cd_op_profile *n) {
    if (!n) return;
    cd_mem_free(n->group);
    cd_mem_free(n);
}

/* ---- the child: cd_op_profile_report, then cd_op_profile_step (n_step) ---- */

static void child(const cd_op_profile_net *m, const cd_op_profile_options *o, int fd) {
    cd_op_profile_report t;
    memset(&t, 0, sizeof t);
    struct rusage u;
    const size_t bytes = (size_t)m->net.n_step * sizeof(cd_op_profile_step);
    cd_op_profile_step *step = cd_mem_zalloc(m->net.n_step, sizeof *step);
    cd_denormals_are_zero();
    if (step) cd_op_profile_measure(m, o, &t, step);
    else t.status = CD_FAIL(&t.err, ENOMEM, "network");
    if (getrusage(RUSAGE_SELF, &u) == 0) t.rss_peak = (int64_t)u.ru_maxrss * 1024;
    const bool good = cd_fd_put(fd, &t, sizeof t) && (t.status || cd_fd_put(fd, step, bytes));
    _exit(good ? 0 : 1);
}

/* ---- the parent ---- */

static bool get_all(int fd, void *p, size_t n, double until) {
    for (char *at = p; n;) {
        const double left = until - cd_timing_clock_now(NULL);
        struct pollfd f = {fd, POLLIN, 0};
        const int ready =
            left > 0 ? poll(&f, 1, left > 1000 ? 1000000 : (int)(left * 1000) + 1) : 0;
        /* a signal such as ^C: the caller checks its stop flag */
        if (ready < 0 && errno == EINTR) return false;
        const ssize_t k = ready > 0 ? read(fd, at, n) : 0;
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        at += k;
        n -= (size_t)k;
    }
    return true;
}

/* The child's report and steps. A child that is late, dies or is interrupted is killed and waited
 * for. */
static cdmpp_status receive(int fd, pid_t pid, const cd_op_profile_net *m, double limit_s,
                            cd_op_profile_report *t, cd_op_profile_step *step, cdmpp_err *err) {
    const double until = cd_timing_clock_now(NULL) + limit_s;
    const bool good = get_all(fd, t, sizeof *t, until) &&
                      (t->status || get_all(fd, step, (size_t)m->net.n_step * sizeof *step, until));
    const bool late = !good && cd_timing_clock_now(NULL) >= until;
    int status = 0;
    if (!good) kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (good && t->status) {
        if (err) *err = t->err;
        return t->status;
    }
    if (good) return CDMPP_OK;
    if (late) return CD_FAIL(err, EBACKEND, "the network ran longer than %g s", limit_s);
    if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
        return CD_FAIL(err, EBACKEND, "the network died of signal %d", WTERMSIG(status));
    return CD_FAIL(err, EINTERRUPTED, "while the network ran");
}

/* Forks; the child measures, the parent receives. */
static cdmpp_status in_child(const cd_op_profile_net *m, const cd_op_profile_options *o,
                             cd_op_profile_report *t, cd_op_profile_step *step, cdmpp_err *err) {
    int fd[2];
    if (pipe(fd)) return CD_FAIL(err, EIO, "no pipe: %s", strerror(errno));
    const pid_t pid = fork();
    if (pid == 0) {
        close(fd[0]);
        child(m, o, fd[1]);
    }
    close(fd[1]);
    cdmpp_status st = CDMPP_OK;
    if (pid < 0) st = CD_FAIL(err, EIO, "no process: %s", strerror(errno));
    else st = receive(fd[0], pid, m, o->limit_s > 0 ? o->limit_s : 120, t, step, err);
    close(fd[0]);
    return st;
}

/* ---- shares ---- */

/* Bytes that the group reads and writes. */
static void sizes(cd_op_profile_group *g, const cd_workload *w, const cd_workload_group *x) {
    for (uint32_t k = 0; k < x->n_read; k++)
        g->read += cd_op_profile_buffer_bytes(&w->buffer[x->read[k]]);
    g->written = cd_op_profile_buffer_bytes(&w->buffer[x->write]);
}

typedef struct {
    uint32_t group;
    double share;
} rank;

static int by_share(const void *a, const void *b) {
    const rank *x = a, *y = b;
    if (x->share != y->share) return x->share < y->share ? 1 : -1;
    return x->group < y->group ? -1 : 1;
}

/* The key groups: those with at least key_share of the time, or, with cover, the largest ones that
 * together reach it. */
static cdmpp_status mark_keys(cd_op_profile *n, const cd_op_profile_options *o, cdmpp_err *err) {
    rank *r = cd_mem_zalloc(n->n + 1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "shares");
    for (uint32_t k = 0; k < n->n; k++) r[k] = (rank){k, n->group[k].share};
    qsort(r, n->n, sizeof *r, by_share);
    const double least = o->key_share > 0 ? o->key_share : 0.01;
    double sum = 0;
    for (uint32_t k = 0; k < n->n && r[k].share > 0; k++) {
        n->group[r[k].group].key = o->cover > 0 ? sum < o->cover : r[k].share >= least;
        sum += r[k].share;
    }
    cd_mem_free(r);
    return CDMPP_OK;
}

/* The child's steps become the groups of the profile, each with its share of the sum of all steps
 * in place. */
static cdmpp_status fill(cd_op_profile *n, const cd_workload *w, const cd_program_select *p,
                         const cd_op_profile_net *m, const cd_op_profile_report *t,
                         const cd_op_profile_step *step, const cd_op_profile_options *o,
                         cdmpp_err *err) {
    double sum = 0;
    n->n = w->n_group;
    n->group = cd_mem_zalloc(w->n_group + 1, sizeof *n->group);
    if (!n->group) return CD_FAIL(err, ENOMEM, "groups");
    for (uint32_t g = 0; g < w->n_group; g++) sizes(&n->group[g], w, &w->group[g]);
    for (uint32_t k = 0; k < m->net.n_step; k++) {
        cd_op_profile_group *g = &n->group[m->group[k]];
        const uint32_t task = w->group[m->group[k]].task;
        g->ran = true;
        g->place_s = step[k].place_s;
        g->warm_s = step[k].warm_s;
        g->cool_s = step[k].cool_s;
        g->start_s = step[k].start_s;
        g->end_s = step[k].end_s;
        g->worker = step[k].worker;
        g->bytes = step[k].bytes;
        g->alone_s = p->task[task].item.out.time.median_s;
        g->flop = w->task[task].flop;
        sum += step[k].place_s;
    }
    for (uint32_t g = 0; g < w->n_group; g++) n->group[g].share = n->group[g].place_s / sum;
    n->n_ran = m->net.n_step;
    n->pass = t->pass;
    n->cold_s = t->cold_s;
    n->clocked_s = t->clocked_s;
    n->max_error = t->max_error;
    n->wall_s = t->wall_s;
    n->passes = t->passes;
    n->memory = t->memory;
    n->rss_peak = t->rss_peak;
    return mark_keys(n, o, err);
}

/* Network, child, profile; whatever fails, the rest is released. */
cdmpp_status cd_op_profile_run(const cd_workload *w, const cd_program_select *p,
                               const cd_op_profile_options *o, cd_op_profile **out,
                               cdmpp_err *err) {
    cd_op_profile_net m = {.net = {0}};
    cd_op_profile_report t;
    cd_op_profile *n = cd_mem_zalloc(1, sizeof *n);
    cd_op_profile_step *step = cd_mem_zalloc(w->n_group + 1, sizeof *step);
    cdmpp_status st = n && step ? CDMPP_OK : CD_FAIL(err, ENOMEM, "network");
    if (!st) st = cd_op_profile_net_make(&m, w, p, err);
    if (!st) st = in_child(&m, o, &t, step, err);
    if (!st) st = fill(n, w, p, &m, &t, step, o, err);
    cd_mem_free(step);
    cd_arena_free(&m.arena);
    if (st) cd_op_profile_free(n);
    else *out = n;
    return st;
}

#include "profiler/netops.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PLACE_MAX = 101, PLACE_MIN = 5 };

/* The net of those groups that have a program. */
typedef struct {
    cd_arena arena;
    cd_net net;
    cd_net_tensor *tensor;
    cd_net_step *step;
    uint32_t *group;            /* (n_step) */
    double *scalar;             /* (n_tensor) NaN: none */
} made;

/* What the child tells: this, then place_s (n_step). */
typedef struct {
    cdmpp_status status;
    cdmpp_err err;
    cd_timing pass;
    double wall_s;
    unsigned passes;
    cd_netrun_memory memory;
    int64_t rss_peak;
} told;

void cd_netops_free(cd_netops *n) {
    if (!n) return;
    cd_free(n->group);
    cd_free(n);
}

/* ---- the net ---- */

static int64_t bytes_of(const cd_wbuffer *b) { return cd_shape_elements(&b->shape) * (int64_t)cd_dtype_bytes(b->dtype); }

static bool has_program(const cd_workload *w, const cd_netpick *p, uint32_t group) {
    const cd_wgroup *g = &w->group[group];
    return g->task != CD_GRAPH_NONE && !g->weights && !p->task[g->task].status;
}

static cdmpp_status make_tensors(made *m, const cd_workload *w, const cd_netpick *p, cdmpp_err *err) {
    m->tensor = CD_NEWN(&m->arena, cd_net_tensor, w->n_buffer + 1);
    m->scalar = CD_NEWN(&m->arena, double, w->n_buffer + 1);
    if (!m->tensor || !m->scalar) return CD_FAIL(err, ENOMEM, "network");
    for (uint32_t k = 0; k < w->n_buffer; k++) {
        const cd_wbuffer *b = &w->buffer[k];
        const bool is_made = b->group != CD_GRAPH_NONE && has_program(w, p, b->group);
        m->tensor[k] = (cd_net_tensor){.bytes = bytes_of(b), .dtype = b->dtype, .rank = b->shape.rank, .shape = b->shape.dim,
                                       .role = b->is_const ? CD_NET_WEIGHT : is_made ? CD_NET_INNER : CD_NET_INPUT};
        m->scalar[k] = b->value;
    }
    for (uint32_t k = 0; k < w->graph->n_output; k++)
        if (w->output[k] < w->n_buffer && m->tensor[w->output[k]].role == CD_NET_INNER) m->tensor[w->output[k]].role = CD_NET_RESULT;
    return CDMPP_OK;
}

static cdmpp_status make_steps(made *m, const cd_workload *w, const cd_netpick *p, cdmpp_err *err) {
    m->step = CD_NEWN(&m->arena, cd_net_step, w->n_group + 1);
    m->group = CD_NEWN(&m->arena, uint32_t, w->n_group + 1);
    if (!m->step || !m->group) return CD_FAIL(err, ENOMEM, "network");
    for (uint32_t g = 0; g < w->n_group; g++) {
        const cd_wgroup *x = &w->group[g];
        if (!has_program(w, p, g)) continue;
        uint32_t *arg = CD_NEWN(&m->arena, uint32_t, x->n_read + 1);
        if (!arg) return CD_FAIL(err, ENOMEM, "network");
        for (uint32_t k = 0; k < x->n_read; k++) arg[k] = x->read[k];
        arg[x->n_read] = x->write;
        m->group[m->net.n_step] = g;
        m->step[m->net.n_step++] = (cd_net_step){cd_tasks_at(w->tasks, w->task[x->task].task)->workload_key, &p->task[x->task].item.build, arg};
    }
    m->net.n_tensor = w->n_buffer;
    m->net.tensor = m->tensor;
    m->net.step = m->step;
    return m->net.n_step ? CDMPP_OK : CD_FAIL(err, EBACKEND, "no group of the network has a program");
}

/* ---- the child ---- */

static cdmpp_status one_pass(void *ctx, unsigned times, double *seconds, cdmpp_err *err) {
    double one;
    (void)err;
    *seconds = 0;
    for (unsigned i = 0; i < times; i++) {
        cd_netrun_pass(ctx, NULL, &one);
        *seconds += one;
    }
    return CDMPP_OK;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Medians of each step over some passes. */
static void in_place(cd_netrun *r, uint32_t n, unsigned passes, double *all, double *place) {
    double total;
    for (unsigned i = 0; i < passes; i++) cd_netrun_pass(r, all + (size_t)i * n, &total);
    for (uint32_t k = 0; k < n; k++) {
        double v[PLACE_MAX];
        for (unsigned i = 0; i < passes; i++) v[i] = all[(size_t)i * n + k];
        qsort(v, passes, sizeof *v, by_value);
        place[k] = v[passes / 2];
    }
}

static cdmpp_status scalars(const made *m, cd_netrun *r, cdmpp_err *err) {
    for (uint32_t k = 0; k < m->net.n_tensor; k++) {
        const float f = (float)m->scalar[k];
        if (isnan(m->scalar[k]) || m->tensor[k].dtype != CD_F32 || m->tensor[k].role == CD_NET_INNER || m->tensor[k].bytes != 4) continue;
        CD_TRY(cd_netrun_write(r, k, &f, err));
    }
    return CDMPP_OK;
}

/* As many passes as asked for, in up to 100 groups of equal size. */
static cdmpp_status exact(cd_netrun *r, unsigned n, cd_timing *t, cdmpp_err *err) {
    enum { GROUPS = 100 };
    t->n = n < GROUPS ? n : GROUPS;
    t->number = n / t->n;
    for (unsigned k = 0; k < t->n; k++) {
        double s;
        CD_TRY(one_pass(r, t->number, &s, err));
        t->sample_s[k] = s / t->number;
    }
    cd_timing_figures(t, NULL);
    return CDMPP_OK;
}

static cdmpp_status passes(const made *m, const cd_netops_options *o, told *t, double *place) {
    cd_netrun *r = NULL;
    cdmpp_err *err = &t->err;
    CD_TRY(cd_netrun_open(&m->net, o->threads, &r, err));
    cdmpp_status st = scalars(m, r, err);
    const double budget = o->budget_s > 0 ? o->budget_s : 2;
    const cd_timing_policy policy = cd_timing_defaults((cd_timing_policy){.budget_s = budget, .min_repeat_s = 0.01}, cd_clock_check(cd_clock_now, NULL).tick_s);
    const cd_timing_subject s = {.ctx = r, .now = cd_clock_now, .run = one_pass};
    const double begin = cd_clock_now(NULL);
    if (!st) st = o->passes ? exact(r, o->passes, &t->pass, err) : cd_timing_run(&policy, &s, &t->pass, err);
    t->wall_s = cd_clock_now(NULL) - begin;
    t->passes = t->pass.n * t->pass.number;
    const double fit = st || o->passes ? 0 : budget / t->pass.median_s;
    const unsigned n = fit > PLACE_MAX ? PLACE_MAX : fit < PLACE_MIN ? PLACE_MIN : (unsigned)fit;
    double *all = st ? NULL : cd_calloc((size_t)n * m->net.n_step, sizeof *all);
    if (!st && !all) st = CD_FAIL(err, ENOMEM, "passes");
    if (!st) in_place(r, m->net.n_step, n, all, place);
    t->memory = cd_netrun_bytes(r);
    cd_free(all);
    cd_netrun_close(r);
    return st;
}

static bool put_all(int fd, const void *p, size_t n) {
    for (const char *at = p; n;) {
        const ssize_t k = write(fd, at, n);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        at += k;
        n -= (size_t)k;
    }
    return true;
}

static void child(const made *m, const cd_netops_options *o, int fd) {
    told t;
    memset(&t, 0, sizeof t);
    struct rusage u;
    double *place = cd_calloc(m->net.n_step, sizeof *place);
    t.status = place ? passes(m, o, &t, place) : CDMPP_ENOMEM;
    if (getrusage(RUSAGE_SELF, &u) == 0) t.rss_peak = (int64_t)u.ru_maxrss * 1024;
    const bool good = put_all(fd, &t, sizeof t) && (t.status || put_all(fd, place, (size_t)m->net.n_step * sizeof *place));
    _exit(good ? 0 : 1);
}

/* ---- the parent ---- */

static bool get_all(int fd, void *p, size_t n, double until) {
    for (char *at = p; n;) {
        const double left = until - cd_clock_now(NULL);
        struct pollfd f = {fd, POLLIN, 0};
        const int ready = left > 0 ? poll(&f, 1, left > 1000 ? 1000000 : (int)(left * 1000) + 1) : 0;
        if (ready < 0 && errno == EINTR) return false; /* ^C: the caller looks at its flag */
        const ssize_t k = ready > 0 ? read(fd, at, n) : 0;
        if (k <= 0) return false;
        at += k;
        n -= (size_t)k;
    }
    return true;
}

static cdmpp_status hear(int fd, pid_t pid, const made *m, double limit_s, told *t, double *place, cdmpp_err *err) {
    const double until = cd_clock_now(NULL) + limit_s;
    const bool good = get_all(fd, t, sizeof *t, until) && (t->status || get_all(fd, place, (size_t)m->net.n_step * sizeof *place, until));
    const bool late = !good && cd_clock_now(NULL) >= until;
    int status = 0;
    if (!good) kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    if (good && t->status) {
        if (err) *err = t->err;
        return t->status;
    }
    if (good) return CDMPP_OK;
    if (late) return CD_FAIL(err, EBACKEND, "the network ran longer than %g s", limit_s);
    if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) return CD_FAIL(err, EBACKEND, "the network died of signal %d", WTERMSIG(status));
    return CD_FAIL(err, EINTERRUPTED, "while the network ran");
}

static cdmpp_status in_child(const made *m, const cd_netops_options *o, told *t, double *place, cdmpp_err *err) {
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
    else st = hear(fd[0], pid, m, o->limit_s > 0 ? o->limit_s : 120, t, place, err);
    close(fd[0]);
    return st;
}

/* ---- shares ---- */

static void sizes(cd_netops_group *g, const cd_workload *w, const cd_wgroup *x) {
    for (uint32_t k = 0; k < x->n_read; k++) g->read += bytes_of(&w->buffer[x->read[k]]);
    g->written = bytes_of(&w->buffer[x->write]);
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

static cdmpp_status mark_keys(cd_netops *n, const cd_netops_options *o, cdmpp_err *err) {
    rank *r = cd_calloc(n->n + 1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "shares");
    for (uint32_t k = 0; k < n->n; k++) r[k] = (rank){k, n->group[k].share};
    qsort(r, n->n, sizeof *r, by_share);
    const double least = o->key_share > 0 ? o->key_share : 0.01;
    double sum = 0;
    for (uint32_t k = 0; k < n->n && r[k].share > 0; k++) {
        n->group[r[k].group].key = o->cover > 0 ? sum < o->cover : r[k].share >= least;
        sum += r[k].share;
    }
    cd_free(r);
    return CDMPP_OK;
}

static cdmpp_status fill(cd_netops *n, const cd_workload *w, const cd_netpick *p, const made *m, const told *t, const double *place,
                         const cd_netops_options *o, cdmpp_err *err) {
    double sum = 0;
    n->n = w->n_group;
    n->group = cd_calloc(w->n_group + 1, sizeof *n->group);
    if (!n->group) return CD_FAIL(err, ENOMEM, "groups");
    for (uint32_t g = 0; g < w->n_group; g++) sizes(&n->group[g], w, &w->group[g]);
    for (uint32_t k = 0; k < m->net.n_step; k++) {
        cd_netops_group *g = &n->group[m->group[k]];
        const uint32_t task = w->group[m->group[k]].task;
        g->ran = true;
        g->place_s = place[k];
        g->alone_s = p->task[task].item.out.time.median_s;
        g->flop = w->task[task].flop;
        sum += place[k];
    }
    for (uint32_t g = 0; g < w->n_group; g++) n->group[g].share = n->group[g].place_s / sum;
    n->n_ran = m->net.n_step;
    n->pass = t->pass;
    n->wall_s = t->wall_s;
    n->passes = t->passes;
    n->memory = t->memory;
    n->rss_peak = t->rss_peak;
    return mark_keys(n, o, err);
}

cdmpp_status cd_netops_run(const cd_workload *w, const cd_netpick *p, const cd_netops_options *o, cd_netops **out, cdmpp_err *err) {
    made m = {.net = {0}};
    told t;
    cd_netops *n = cd_calloc(1, sizeof *n);
    double *place = cd_calloc(w->n_group + 1, sizeof *place);
    cdmpp_status st = n && place ? CDMPP_OK : CD_FAIL(err, ENOMEM, "network");
    if (!st) st = make_tensors(&m, w, p, err);
    if (!st) st = make_steps(&m, w, p, err);
    if (!st) st = in_child(&m, o, &t, place, err);
    if (!st) st = fill(n, w, p, &m, &t, place, o, err);
    cd_free(place);
    cd_arena_free(&m.arena);
    if (st) cd_netops_free(n);
    else *out = n;
    return st;
}

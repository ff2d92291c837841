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
#include "profiler/runtime/single/single.h"
#include "profiler/runtime/single/single_internal.h"

/* Bytes of a buffer of the workload.
 *
 * The network that a profile runs: tensors from the workload's buffers, steps from those groups
 * that have a program. */
static int64_t op_profile_buffer_bytes(const cd_workload_buffer *b) {
    return cd_graph_shape_elements(&b->shape) * (int64_t)cd_expr_dtype_bytes(b->dtype);
}

/* Groups whose work is done on weights once, before any pass, have none in the pass. */
static bool has_program(const cd_workload *w, const cd_program_select *p, uint32_t group) {
    const cd_workload_group *g = &w->group[group];
    return g->task != CD_GRAPH_NONE && !g->weights && !p->task[g->task].status;
}

static cdmpp_status no_program(const cd_program_select *p, cdmpp_err *err) {
    for (uint32_t k = 0; k < p->n; k++)
        if (p->task[k].status)
            return CD_FAIL(err, EBACKEND, "no group of the network has a program: %s",
                           p->task[k].err.msg);
    return CD_FAIL(err, EBACKEND, "no group of the network has a program");
}

/* The content of a buffer that the graph knows, in the buffer's type. */
static cdmpp_status keep_known(cd_op_profile_net *m, const cd_workload *w, uint32_t k,
                               cdmpp_err *err) {
    const cd_workload_buffer *b = &w->buffer[k];
    const cd_graph_tensor *t = b->tensor == CD_GRAPH_NONE ? NULL : &w->graph->tensor[b->tensor];
    const int64_t n = cd_graph_shape_elements(&b->shape);
    const size_t size = cd_expr_dtype_bytes(b->dtype);
    if (!t || t->dtype != b->dtype || n < 2 || n != cd_graph_shape_elements(&t->shape))
        return CDMPP_OK;
    const bool real = t->fvalue && b->dtype == CD_F32,
               whole = t->value && !cd_expr_dtype_is_float(b->dtype) && size <= sizeof *t->value;
    if (!real && !whole) return CDMPP_OK;
    unsigned char *to = cd_arena_zalloc(&m->arena, (size_t)n, size);
    if (!to) return CD_FAIL(err, ENOMEM, "known content");
    for (int64_t i = 0; i < n; i++) {
        const float f = real ? (float)t->fvalue[i] : 0;
        if (real) memcpy(to + (size_t)i * size, &f, size);
        else memcpy(to + (size_t)i * size, &t->value[i], size); /* little endian */
    }
    m->known[k] = to;
    return CDMPP_OK;
}

/* A buffer that no step makes becomes an input (or a weight); of those that are made, the graph's
 * outputs become results. */
static cdmpp_status make_tensors(cd_op_profile_net *m, const cd_workload *w,
                                 const cd_program_select *p, cdmpp_err *err) {
    m->tensor = CD_NEWN(&m->arena, cd_executor_net_tensor, w->n_buffer + 1);
    m->scalar = CD_NEWN(&m->arena, double, w->n_buffer + 1);
    m->known = CD_NEWN(&m->arena, const void *, w->n_buffer + 1);
    if (!m->tensor || !m->scalar || !m->known) return CD_FAIL(err, ENOMEM, "network");
    for (uint32_t k = 0; k < w->n_buffer; k++) {
        const cd_workload_buffer *b = &w->buffer[k];
        const bool is_made = b->group != CD_GRAPH_NONE && has_program(w, p, b->group);
        m->tensor[k] = (cd_executor_net_tensor){.bytes = op_profile_buffer_bytes(b),
                                                .dtype = b->dtype,
                                                .rank = b->shape.rank,
                                                .shape = b->shape.dim,
                                                .role = b->is_const ? CD_TENSOR_WEIGHT
                                                        : is_made   ? CD_TENSOR_INNER
                                                                    : CD_TENSOR_INPUT};
        m->scalar[k] = b->value;
        CD_TRY(keep_known(m, w, k, err));
    }
    for (uint32_t k = 0; k < w->graph->n_output; k++)
        if (w->output[k] < w->n_buffer && m->tensor[w->output[k]].role == CD_TENSOR_INNER)
            m->tensor[w->output[k]].role = CD_TENSOR_RESULT;
    return CDMPP_OK;
}

/* Arguments are the group's reads, then its write; shapes are those that the program sees (a view
 * has another shape than its buffer). */
static cdmpp_status make_steps(cd_op_profile_net *m, const cd_workload *w,
                               const cd_program_select *p, cdmpp_err *err) {
    m->step = CD_NEWN(&m->arena, cd_executor_net_step, w->n_group + 1);
    m->group = CD_NEWN(&m->arena, uint32_t, w->n_group + 1);
    m->task = CD_NEWN(&m->arena, uint32_t, w->n_group + 1);
    m->seconds = CD_NEWN(&m->arena, double, w->n_group + 1);
    m->plain = CD_NEWN(&m->arena, const cd_build *, w->n_group + 1);
    if (!m->step || !m->group || !m->task || !m->seconds || !m->plain)
        return CD_FAIL(err, ENOMEM, "network");
    for (uint32_t g = 0; g < w->n_group; g++) {
        const cd_workload_group *x = &w->group[g];
        if (!has_program(w, p, g)) continue;
        uint32_t *arg = CD_NEWN(&m->arena, uint32_t, x->n_read + 1);
        cd_executor_net_shape *shape = CD_NEWN(&m->arena, cd_executor_net_shape, x->n_read + 1);
        if (!arg || !shape) return CD_FAIL(err, ENOMEM, "network");
        for (uint32_t k = 0; k < x->n_read; k++) arg[k] = x->read[k];
        arg[x->n_read] = x->write;
        const cd_measure_item *item = &p->task[x->task].item;
        const cd_measure_arg *s = p->task[x->task].job.arg;
        for (uint32_t k = 0; k <= x->n_read; k++)
            shape[k] = (cd_executor_net_shape){s[k].rank, s[k].shape};
        m->group[m->net.n_step] = g;
        m->task[m->net.n_step] = x->task;
        m->seconds[m->net.n_step] = item->out.time.median_s;
        m->plain[m->net.n_step] = item->reference ? &item->reference_build : NULL;
        m->step[m->net.n_step++] = (cd_executor_net_step){
            cd_task_registry_at(w->tasks, w->task[x->task].task)->workload_key, &item->build, arg,
            shape};
    }
    m->net.n_tensor = w->n_buffer;
    m->net.tensor = m->tensor;
    m->net.step = m->step;
    return m->net.n_step ? CDMPP_OK : no_program(p, err);
}

cdmpp_status cd_op_profile_net_make(cd_op_profile_net *m, const cd_workload *w,
                                    const cd_program_select *p, cdmpp_err *err) {
    CD_TRY(make_tensors(m, w, p, err));
    return make_steps(m, w, p, err);
}

/* A profile as text, JSON or CSV. */

void cd_op_profile_operators(cd_buf *b, const cd_workload *w, const cd_workload_group *g,
                             char between) {
    const char *last = "";
    for (uint32_t k = 0, n = 0; k < g->n_node; k++) {
        const cd_graph_node *x = &w->graph->node[g->node[k]];
        if (x->view || !strcmp(x->op, last)) continue;
        if (n++) cd_buf_put(b, &between, 1);
        cd_buf_puts(b, x->op);
        last = x->op;
    }
    /* between two groups, none of the graph's */
    if (!g->n_node) cd_buf_puts(b, "layout_transform");
}

static const char *first_name(const cd_workload *w, const cd_workload_group *g) {
    return g->n_node ? w->graph->node[g->node[0]].name : "";
}

static cdmpp_status done(const cd_buf *b, cdmpp_err *err) {
    return b->oom ? CD_FAIL(err, ENOMEM, "report") : CDMPP_OK;
}

/* ---- text ---- */

static void put_row(cd_buf *b, const cd_workload *w, const cd_op_profile *n, uint32_t k) {
    const cd_op_profile_group *g = &n->group[k];
    cd_buf_putf(b, "%5u  %9.4f  %9.4f  %5.1f%s  %8.2f  %9.1f  %9.1f  ", k, g->alone_s * 1e3,
                g->place_s * 1e3, g->share * 100, g->key ? "*" : " ", g->flop / g->place_s * 1e-9,
                (double)(g->read + g->written) / 1024, (double)g->bytes.live / 1024);
    cd_op_profile_operators(b, w, &w->group[k], '+');
    cd_buf_puts(b, "\n");
}

/* A summary, then a table of groups in the order of the network. */
cdmpp_status cd_op_profile_text(cd_buf *b, const cd_workload *w, const cd_program_select *p,
                                const cd_op_profile *n, bool key_only, cdmpp_err *err) {
    uint32_t failed = 0;
    for (uint32_t k = 0; k < p->n; k++) failed += p->task[k].status != CDMPP_OK;
    cd_buf_putf(b,
                "%s: %.4f ms a pass (median of %u, 95 %% interval +-%.1f %%), %u of %u groups, %u "
                "tasks (%u without a program)\n",
                w->graph->name, n->pass.median_s * 1e3, n->pass.n_kept, n->pass.ci * 100, n->n_ran,
                n->n, p->n, failed);
    cd_buf_putf(b,
                "memory: weights %.1f MB, most of the rest at once %.1f MB, block %.1f MB, "
                "resident peak %.1f MB\n",
                (double)n->memory.weights * 1e-6, (double)n->memory.inner_least * 1e-6,
                (double)n->memory.all * 1e-6, (double)n->rss_peak * 1e-6);
    cd_buf_puts(b, "group   alone ms   place ms  share%   GFLOP/s   args KiB   live KiB  operators "
                   "(*: key)\n");
    for (uint32_t k = 0; k < n->n; k++)
        if (n->group[k].ran && (n->group[k].key || !key_only)) put_row(b, w, n, k);
    return done(b, err);
}

/* ---- JSON ---- */

static void put_str(cd_buf *b, const char *key, const char *s) {
    cd_buf_putf(b, "\"%s\":", key);
    cd_buf_put_json_str(b, s, strlen(s));
}

/* A group in JSON. */
static void put_group(cd_buf *b, const cd_workload *w, const cd_op_profile *n, uint32_t k) {
    const cd_op_profile_group *g = &n->group[k];
    const cd_workload_group *x = &w->group[k];
    cd_buf_putf(b, "{\"group\":%u,", k);
    put_str(b, "name", first_name(w, x));
    cd_buf_puts(b, ",\"operators\":\"");
    cd_op_profile_operators(b, w, x, '+');
    cd_buf_puts(b, "\"");
    if (x->task != CD_GRAPH_NONE) {
        cd_buf_puts(b, ",");
        put_str(b, "workload_key",
                cd_task_registry_at(w->tasks, w->task[x->task].task)->workload_key);
    }
    cd_buf_putf(b, ",\"ran\":%s", g->ran ? "true" : "false");
    if (g->ran)
        cd_buf_putf(b,
                    ",\"alone_s\":%.9g,\"in_place_s\":%.9g,\"share\":%.6g,\"key\":%s,\"live_"
                    "bytes\":%lld,\"scratch_bytes\":%lld",
                    g->alone_s, g->place_s, g->share, g->key ? "true" : "false",
                    (long long)g->bytes.live, (long long)g->bytes.scratch);
    cd_buf_putf(b, ",\"flop\":%.17g,\"read_bytes\":%lld,\"written_bytes\":%lld}", g->flop,
                (long long)g->read, (long long)g->written);
}

/* A task in JSON: its program's time or error. */
static void put_task(cd_buf *b, const cd_workload *w, const cd_program_select *p, uint32_t k) {
    const cd_program_select_task *t = &p->task[k];
    cd_buf_puts(b, "{");
    put_str(b, "workload_key", cd_task_registry_at(w->tasks, w->task[k].task)->workload_key);
    cd_buf_putf(b, ",\"weight\":%lld,\"tried\":%u,\"failed\":%u,\"from_log\":%s",
                (long long)w->task[k].weight, t->tried, t->failed, t->from_log ? "true" : "false");
    if (t->status) {
        cd_buf_puts(b, ",");
        put_str(b, "error", t->err.msg);
    } else {
        cd_buf_putf(b, ",\"median_s\":%.9g,\"cv\":%.4g", t->item.out.time.median_s,
                    t->item.out.time.cv);
    }
    cd_buf_puts(b, "}");
}

/* One object: the pass, memory, groups, tasks. Numbers have enough digits to be read back. */
cdmpp_status cd_op_profile_json(cd_buf *b, const cd_workload *w, const cd_program_select *p,
                                const cd_op_profile *n, cdmpp_err *err) {
    cd_buf_puts(b, "{");
    put_str(b, "network", w->graph->name);
    cd_buf_putf(b,
                ",\"pass\":{\"median_s\":%.9g,\"mean_s\":%.9g,\"min_s\":%.9g,\"std_s\":%.4g,\"ci\":"
                "%.4g,\"n\":%u,\"runs\":%u,\"wall_s\":%.6g}",
                n->pass.median_s, n->pass.mean_s, n->pass.min_s, n->pass.std_s, n->pass.ci,
                n->pass.n_kept, n->passes, n->wall_s);
    cd_buf_putf(b,
                ",\"memory\":{\"block_bytes\":%lld,\"weight_bytes\":%lld,\"inner_bytes\":%lld,"
                "\"rss_peak_bytes\":%lld},\"groups\":[",
                (long long)n->memory.all, (long long)n->memory.weights,
                (long long)n->memory.inner_least, (long long)n->rss_peak);
    for (uint32_t k = 0; k < n->n; k++) {
        if (k) cd_buf_puts(b, ",");
        put_group(b, w, n, k);
    }
    cd_buf_puts(b, "],\"tasks\":[");
    for (uint32_t k = 0; k < p->n; k++) {
        if (k) cd_buf_puts(b, ",");
        put_task(b, w, p, k);
    }
    cd_buf_puts(b, "]}");
    return done(b, err);
}

/* ---- CSV ---- */

static void put_csv(cd_buf *b, const cd_workload *w, const cd_op_profile *n, uint32_t k) {
    const cd_op_profile_group *g = &n->group[k];
    cd_buf_putf(b, "%u,", k);
    cd_op_profile_operators(b, w, &w->group[k], '+');
    cd_buf_putf(b, ",%.9g,%.9g,%.6g,%d,%.17g,%lld,%lld,%lld,%lld\n", g->alone_s, g->place_s,
                g->share, g->key, g->flop, (long long)g->read, (long long)g->written,
                (long long)g->bytes.live, (long long)g->bytes.scratch);
}

static bool same_ops(const cd_workload *w, cd_buf *a, cd_buf *b, uint32_t i, uint32_t k) {
    cd_buf_clear(a);
    cd_buf_clear(b);
    cd_op_profile_operators(a, w, &w->group[i], '_');
    cd_op_profile_operators(b, w, &w->group[k], '_');
    return a->n == b->n && (!a->n || !memcmp(a->p, b->p, a->n));
}

/* All groups of the same operators are one row, where the first of them stands. */
static void put_types(cd_buf *b, const cd_workload *w, const cd_op_profile *n) {
    cd_buf x = {0}, y = {0};
    for (uint32_t k = 0; k < n->n; k++) {
        double time = 0, share = 0;
        bool first = n->group[k].ran;
        for (uint32_t i = 0; i < n->n && first; i++) {
            if (!n->group[i].ran || !same_ops(w, &x, &y, i, k)) continue;
            if (i < k) first = false;
            time += n->group[i].place_s;
            share += n->group[i].share;
        }
        if (!first) continue;
        cd_op_profile_operators(b, w, &w->group[k], '_');
        cd_buf_putf(b, ",%.1f,%.6g\n", time * 1e9, share * 100);
    }
    b->oom = b->oom || x.oom || y.oom;
    cd_buf_free(&x);
    cd_buf_free(&y);
}

cdmpp_status cd_op_profile_csv(cd_buf *b, const cd_workload *w, const cd_program_select *p,
                               const cd_op_profile *n, bool eop, cdmpp_err *err) {
    (void)p;
    cd_buf_puts(b, eop ? "op_name,op_time,op_proportion\n"
                       : "group,operators,alone_s,in_place_s,share,key,flop,read_bytes,written_"
                         "bytes,live_bytes,scratch_bytes\n");
    if (eop) put_types(b, w, n);
    for (uint32_t k = 0; k < n->n && !eop; k++)
        if (n->group[k].ran) put_csv(b, w, n, k);
    return done(b, err);
}

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
        g->read += op_profile_buffer_bytes(&w->buffer[x->read[k]]);
    g->written = op_profile_buffer_bytes(&w->buffer[x->write]);
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

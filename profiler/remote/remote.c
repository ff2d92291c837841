/* The pool: leases jobs to workers, takes their answers, and replaces workers that fail. Whatever a
 * worker sends is checked, because a board that overheats may send anything; a worker that breaks
 * the protocol is killed and its job goes to another. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "profiler/remote/remote_internal.h"

/* A worker's process: started in a group of its own, spoken to by lines over a socket, killed with
 * all that it started. */

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

/* Send what is in `out`, as much as goes; false: nobody listens. */
static bool remote_connection_send(cd_remote_connection *l) {
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

enum { MAX_HOST = 64, GREETINGS = 64, FORGIVE = 20, REASON = 300 };
#define MAX_WAIT_S 0.2 /* so long until a stop is seen */
#define GRACE_S    0.3

/* A job that is not delivered yet. */
typedef struct job {
    uint64_t tried; /* bit k: by worker k */
    unsigned attempts;
    bool out, done, broke; /* leased now; answered; given up because workers failed at it */
    cdmpp_status status;
    const char *host, *device;
    cdmpp_err *err; /* of the last failure; NULL: none */
    cd_remote_times *times;
} job;

typedef struct pool {
    cd_remote_policy p;
    cd_remote_connection *link;
    size_t n_link;
    job *job;
    const cd_str *record;
    size_t n, delivered, done;
    const char *setup;
    const cd_remote_watch *w;
    int64_t lease;            /* last given */
    char reason[REASON + 64]; /* why the last failure was */
    cd_arena arena;           /* of one line */
    struct pollfd poll[2 * MAX_HOST];
} pool;

static void notify(const pool *p, const cd_remote_connection *l, const char *what) {
    if (p->w->event) p->w->event(p->w->ctx, l->host->name, what);
}

/* ---- jobs ---- */
static bool fresh_worker_for(const pool *p, const job *j) {
    for (size_t k = 0; k < p->n_link; k++)
        if (p->link[k].state != CD_REMOTE_CONNECTION_DROPPED && !(j->tried >> k & 1)) return true;
    return false;
}

/* The first job that worker k may have; n: none. */
static size_t next_job(const pool *p, size_t k) {
    for (size_t i = p->delivered; i < p->n; i++) {
        const job *j = &p->job[i];
        if (!j->done && !j->out && (!(j->tried >> k & 1) || !fresh_worker_for(p, j))) return i;
    }
    return p->n;
}

static cdmpp_status note(job *j, cdmpp_status code, const char *host, const char *why,
                         cdmpp_err *err) {
    if (!j->err) j->err = cd_mem_zalloc(1, sizeof *j->err);
    if (!j->err) return CD_FAIL(err, ENOMEM, "reason of a failure");
    cd_err_raise(j->err, code, __FILE__, __LINE__, "%s: %s", host, why);
    return CDMPP_OK;
}

static void finish(pool *p, job *j, cdmpp_status st, const char *host) {
    j->done = true;
    j->status = st;
    j->host = host;
    p->done++;
}

static bool anybody_left(const pool *p) {
    for (size_t k = 0; k < p->n_link; k++)
        if (p->link[k].state != CD_REMOTE_CONNECTION_DROPPED) return true;
    return false;
}

/* Back to the queue, or given up. `final`: what the answer is if nobody else can be asked. */
static cdmpp_status put_back(pool *p, size_t k, size_t i, cdmpp_status final, const char *why,
                             bool refused, cdmpp_err *err) {
    job *j = &p->job[i];
    j->out = false;
    j->attempts++;
    j->tried |= (uint64_t)1 << k;
    CD_TRY(note(j, final, p->link[k].host->name, why, err));
    j->broke = !refused && j->attempts >= p->p.max_attempts && anybody_left(p);
    if (j->attempts >= p->p.max_attempts || (refused && !fresh_worker_for(p, j)))
        finish(p, j, final, p->link[k].host->name);
    return CDMPP_OK;
}

/* ---- workers ---- */
static cdmpp_status fail(pool *p, size_t k, const char *why, cdmpp_err *err) {
    cd_remote_connection *l = &p->link[k];
    char what[REASON], text[REASON + 40];
    snprintf(what, sizeof what, "%s%s%s", why, l->said[0] ? "; it said: " : "", l->said);
    const bool busy = l->state == CD_REMOTE_CONNECTION_BUSY;
    cd_remote_connection_kill(l);
    l->failures++;
    const bool drop = l->failures >= p->p.max_failures;
    l->state = drop ? CD_REMOTE_CONNECTION_DROPPED : CD_REMOTE_CONNECTION_OFF;
    l->start_at =
        cd_clock_wall() + p->p.retry_s * (double)(1u << (l->failures < 7 ? l->failures - 1 : 6));
    snprintf(text, sizeof text, "%s (failure %u, %s)", what, l->failures,
             drop ? "dropped" : "begun again");
    snprintf(p->reason, sizeof p->reason, "%.40s: %s", l->host->name, what);
    notify(p, l, text);
    return busy ? put_back(p, k, l->job, CDMPP_EBACKEND, what, false, err) : CDMPP_OK;
}

/* The setup, if it waits in the buffer, goes out with the first job. */
static cdmpp_status lease_to(pool *p, size_t k, size_t i, cdmpp_err *err) {
    cd_remote_connection *l = &p->link[k];
    l->lease = ++p->lease;
    l->job = i;
    l->lines = 0;
    l->state = CD_REMOTE_CONNECTION_BUSY;
    l->heard = cd_clock_wall();
    l->deadline = l->heard + p->p.lease_s;
    p->job[i].out = true;
    cd_buf_putf(&l->out, "{\"lease\":%lld,\"record\":", (long long)l->lease);
    cd_buf_put_json_str(&l->out, p->record[i].p, p->record[i].n);
    cd_buf_puts(&l->out, "}\n");
    if (l->out.oom) return CD_FAIL(err, ENOMEM, "job");
    return remote_connection_send(l) ? CDMPP_OK : fail(p, k, "ended", err);
}

/* ---- messages ---- */

/* All of them, or what came is a lie. */
static bool read_stats(const cd_json *m, cd_remote_stats *s) {
#define CD_X(name)                                                                                 \
    if (!cd_json_get(m, #name) || cd_json_real(cd_json_get(m, #name), &s->name, NULL) ||           \
        !(fabs(s->name) < 1e18))                                                                   \
        return false;
    CD_REMOTE_STATS(CD_X)
#undef CD_X
    const double count[] = {s->n, s->kept, s->number, s->disturbed, s->attempts, s->flags};
    for (size_t i = 0; i < sizeof count / sizeof *count; i++)
        if (count[i] < 0 || count[i] > INT32_MAX || count[i] != floor(count[i])) return false;
    return true;
}

/* Times as they must be; what is wrong, else NULL. */
static const char *read_times(const cd_json *m, cd_remote_times *t) {
    const cd_json *no = cd_json_get(m, "error_no"), *costs = cd_json_get(m, "costs"),
                  *total = cd_json_get(m, "total_s"), *stamp = cd_json_get(m, "timestamp");
    if (!no || cd_json_int(no, 0, CD_ERROR_NO_MAX, &t->error_no, NULL))
        return "an answer without error_no 0..8";
    if (!costs || costs->kind != CD_JSON_ARR || costs->n > CD_REMOTE_COSTS ||
        (!costs->n && !t->error_no))
        return "an answer without costs";
    for (const cd_json *c = costs->u.child; c; c = c->next) {
        double x;
        if (cd_json_real(c, &x, NULL) || !(x > 0 && x <= 1e10))
            return "a cost that is no time above 0";
        t->cost_s[t->n_cost++] = x;
    }
    if (!total || cd_json_real(total, &t->total_s, NULL) || !(fabs(t->total_s) < 1e9))
        return "a total time that is none";
    if (!stamp || cd_json_int(stamp, 0, (int64_t)1 << 53, &t->timestamp, NULL))
        return "an answer without a timestamp";
    const cd_json *stats = cd_json_get(m, "stats"), *said = cd_json_get(m, "message");
    t->has_stats = stats != NULL;
    if (stats && !read_stats(stats, &t->stats)) return "statistics that are none";
    if (said && said->kind == CD_JSON_STR)
        snprintf(t->message, sizeof t->message, "%.*s", cd_str_shown(said->u.s, 199), said->u.s.p);
    return NULL;
}

static cdmpp_status refused(pool *p, size_t k, cd_str code, const cd_json *message,
                            cdmpp_err *err) {
    cd_remote_connection *l = &p->link[k];
    cdmpp_status st = CDMPP_EBACKEND;
    char why[REASON] = "refused";
    for (int s = 1; s < CDMPP_STATUS_COUNT; s++)
        if (cd_str_is(code, cdmpp_status_name((cdmpp_status)s))) st = (cdmpp_status)s;
    if (message && message->kind == CD_JSON_STR)
        snprintf(why, sizeof why, "%.*s", cd_str_shown(message->u.s, 250), message->u.s.p);
    l->state = CD_REMOTE_CONNECTION_IDLE;
    return put_back(p, k, l->job, st, why, true, err);
}

static cdmpp_status hello(pool *p, size_t k, const cd_json *m, cdmpp_err *err) {
    cd_remote_connection *l = &p->link[k];
    switch (cd_remote_hello_read(m, &l->about)) {
    case CD_REMOTE_NO_HELLO:
        return ++l->lines > GREETINGS ? fail(p, k, "is no cdmpp-profile --worker", err) : CDMPP_OK;
    case CD_REMOTE_OTHER_PROTOCOL:
        l->failures = p->p.max_failures; /* no use to try again */
        return fail(p, k, "speaks another version of the protocol", err);
    case CD_REMOTE_HELLO: break;
    }
    if (!cd_remote_hello_suits(&l->about, &p->p)) {
        l->failures = p->p.max_failures;
        return fail(p, k, CD_REMOTE_OTHER_CORES, err);
    }
    l->state = CD_REMOTE_CONNECTION_IDLE;
    if (!p->setup[0]) return CDMPP_OK;
    cd_buf_puts(&l->out, "{\"setup\":");
    cd_buf_puts(&l->out, p->setup);
    cd_buf_puts(&l->out, "}\n");
    return l->out.oom ? CD_FAIL(err, ENOMEM, "setup") : CDMPP_OK; /* goes with the first job */
}

/* Every FORGIVE answers make one failure good. */
static cdmpp_status answered(pool *p, size_t k, const cd_json *m, cdmpp_err *err) {
    cd_remote_connection *l = &p->link[k];
    job *j = &p->job[l->job];
    cd_remote_times *t = cd_mem_zalloc(1, sizeof *t);
    if (!t) return CD_FAIL(err, ENOMEM, "answer");
    const char *wrong = read_times(m, t);
    if (wrong) {
        cd_mem_free(t);
        return fail(p, k, wrong, err);
    }
    j->times = t;
    j->attempts++;
    j->out = false;
    finish(p, j, CDMPP_OK, l->host->name);
    j->device = l->about.device;
    l->state = CD_REMOTE_CONNECTION_IDLE;
    if (++l->answers % FORGIVE == 0 && l->failures) l->failures--;
    return CDMPP_OK;
}

/* A lease that is not the current one is a failure: the worker answered something that was not
 * asked. */
static cdmpp_status message(pool *p, size_t k, const char *text, size_t n, cdmpp_err *err) {
    cd_remote_connection *l = &p->link[k];
    const cd_json *m = NULL;
    int64_t lease = -1;
    cd_arena_reset(&p->arena);
    l->heard = cd_clock_wall();
    const bool parsed = !cd_json_parse(&p->arena, text, n, &m, NULL) && m->kind == CD_JSON_OBJ;
    if (l->state == CD_REMOTE_CONNECTION_GREETING) return hello(p, k, parsed ? m : NULL, err);
    if (!parsed) return fail(p, k, "sent a line that is no message", err);
    const cd_json *number = cd_json_get(m, "lease"), *alive = cd_json_get(m, "alive"),
                  *no = cd_json_get(m, "refused");
    if (!number || cd_json_int(number, 0, INT64_MAX, &lease, NULL) ||
        l->state != CD_REMOTE_CONNECTION_BUSY || lease != l->lease)
        return fail(p, k, "named a lease that it has not", err);
    if (++l->lines > CD_REMOTE_LINES) return fail(p, k, "sent too many lines", err);
    if (alive) return CDMPP_OK;
    if (no && no->kind == CD_JSON_STR)
        return refused(p, k, no->u.s, cd_json_get(m, "message"), err);
    return answered(p, k, m, err);
}

static bool linked(const cd_remote_connection *l) {
    return l->state == CD_REMOTE_CONNECTION_GREETING || l->state == CD_REMOTE_CONNECTION_IDLE ||
           l->state == CD_REMOTE_CONNECTION_BUSY;
}

/* What came from worker k. */
static cdmpp_status listen_to(pool *p, size_t k, cdmpp_err *err) {
    cd_remote_connection *l = &p->link[k];
    const bool there = cd_remote_connection_receive(l);
    size_t n;
    if (l->in.oom) return CD_FAIL(err, ENOMEM, "line");
    const pid_t pid = l->pid;
    for (char *text; linked(l) && l->pid == pid && (text = cd_remote_connection_next_line(l, &n));)
        CD_TRY(message(p, k, text, n, err));
    if (!linked(l) || l->pid != pid) return CDMPP_OK;
    if (l->in.n > CD_REMOTE_LINE) return fail(p, k, "sent a line without end", err);
    return there
               ? CDMPP_OK
               : fail(p, k, l->state == CD_REMOTE_CONNECTION_BUSY ? "ended at work" : "ended", err);
}

/* ---- the loop ---- */

/* What the worker did not do in time, written to `text` where a number belongs to it; NULL:
 * nothing. */
static const char *why_late(const pool *p, const cd_remote_connection *l, double now,
                            char text[REASON]) {
    if (l->state == CD_REMOTE_CONNECTION_GREETING && now >= l->deadline) {
        (void)snprintf(text, REASON, "did not say hello within %g s", p->p.start_s);
        return text;
    }
    if (l->state == CD_REMOTE_CONNECTION_BUSY && now >= l->deadline)
        return "gave no answer in time";
    return l->state == CD_REMOTE_CONNECTION_BUSY && now >= l->heard + p->p.silence_s ? "fell silent"
                                                                                     : NULL;
}

/* Begin, time out, hand out; *wait_s until one of these is due again. */
static cdmpp_status tend(pool *p, size_t k, double *wait_s, cdmpp_err *err) {
    cd_remote_connection *l = &p->link[k];
    const double now = cd_clock_wall();
    char text[REASON];
    const bool wanted = l->state == CD_REMOTE_CONNECTION_OFF && next_job(p, k) < p->n;
    if (wanted && now >= l->start_at) {
        cdmpp_err why = {0};
        l->deadline = now + p->p.start_s;
        if (cd_remote_connection_start(l, now, &why)) CD_TRY(fail(p, k, why.msg, err));
    }
    /* it may have spoken while others were heard */
    if (why_late(p, l, now, text)) CD_TRY(listen_to(p, k, err));
    const char *late = why_late(p, l, now, text);
    if (late) CD_TRY(fail(p, k, late, err));
    if (l->state == CD_REMOTE_CONNECTION_IDLE) {
        const size_t i = next_job(p, k);
        if (i < p->n) CD_TRY(lease_to(p, k, i, err));
    }
    double due = now + MAX_WAIT_S;
    if (wanted && l->state == CD_REMOTE_CONNECTION_OFF) due = fmin(due, l->start_at);
    if (l->state == CD_REMOTE_CONNECTION_BUSY) due = fmin(l->deadline, l->heard + p->p.silence_s);
    if (l->state == CD_REMOTE_CONNECTION_GREETING) due = l->deadline;
    *wait_s = fmin(*wait_s, fmax(0, due - now)); /* starts as MAX_WAIT_S */
    return CDMPP_OK;
}

/* Errors of standard error alone do not end a worker: its socket does. */
static cdmpp_status wait_and_listen(pool *p, double wait_s, cdmpp_err *err) {
    for (size_t k = 0; k < p->n_link; k++) {
        const cd_remote_connection *l = &p->link[k];
        p->poll[2 * k] =
            (struct pollfd){.fd = l->fd, .events = (short)(POLLIN | (l->out.n ? POLLOUT : 0))};
        p->poll[2 * k + 1] = (struct pollfd){.fd = l->err_fd, .events = POLLIN};
    }
    const int n = poll(p->poll, 2 * p->n_link, (int)ceil(1000 * wait_s));
    if (n < 0 && errno != EINTR) return CD_FAIL(err, EIO, "poll: %s", strerror(errno));
    for (size_t k = 0; n > 0 && k < p->n_link; k++) {
        cd_remote_connection *l = &p->link[k];
        if (p->poll[2 * k].fd < 0 || !linked(l)) continue;
        if (p->poll[2 * k].revents & POLLOUT && !remote_connection_send(l))
            CD_TRY(fail(p, k, "ended", err));
        else if (p->poll[2 * k].revents & (POLLIN | POLLHUP | POLLERR))
            CD_TRY(listen_to(p, k, err));
        else if (p->poll[2 * k + 1].revents & POLLIN) cd_remote_connection_receive(l);
        else if (p->poll[2 * k + 1].revents & (POLLHUP | POLLERR)) close(l->err_fd), l->err_fd = -1;
    }
    return CDMPP_OK;
}

static cdmpp_status deliver(pool *p, cdmpp_err *err) {
    for (; p->delivered < p->n && p->job[p->delivered].done; p->delivered++) {
        job *j = &p->job[p->delivered];
        const cd_remote_answer a = {j->status,
                                    j->err,
                                    j->host ? j->host : "",
                                    j->device ? j->device : "",
                                    j->attempts,
                                    j->status ? NULL : j->times,
                                    j->broke};
        CD_TRY(p->w->answer(p->w->ctx, p->delivered, &a, err));
        cd_mem_free(j->err);
        cd_mem_free(j->times);
        j->err = NULL;
        j->times = NULL;
    }
    return CDMPP_OK;
}

/* Nobody is left: what is open is answered so. */
static cdmpp_status give_up(pool *p, cdmpp_err *err) {
    for (size_t i = p->delivered; i < p->n; i++) {
        job *j = &p->job[i];
        if (j->done) continue;
        if (!j->err) CD_TRY(note(j, CDMPP_EBACKEND, "no worker is left", p->reason, err));
        finish(p, j, j->err->code, "");
    }
    return deliver(p, err);
}

/* Answers are delivered before and after waiting, so that a stop loses as few as possible. */
static cdmpp_status run(pool *p, cdmpp_err *err) {
    while (p->delivered < p->n) {
        double wait_s = MAX_WAIT_S;
        size_t dropped = 0;
        if (p->w->stop && *p->w->stop)
            return CD_FAIL(err, EINTERRUPTED, "after %zu of %zu programs", p->delivered, p->n);
        for (size_t k = 0; k < p->n_link; k++) {
            CD_TRY(tend(p, k, &wait_s, err));
            dropped += p->link[k].state == CD_REMOTE_CONNECTION_DROPPED;
        }
        CD_TRY(deliver(p, err));
        if (p->delivered == p->n) break;
        if (dropped == p->n_link) return give_up(p, err);
        CD_TRY(wait_and_listen(p, wait_s, err));
        CD_TRY(deliver(p, err));
    }
    return CDMPP_OK;
}

/* Their input ends; who has not gone by then is killed. */
static void close_all(pool *p) {
    for (size_t k = 0; k < p->n_link; k++) {
        cd_remote_connection *l = &p->link[k];
        if (l->fd >= 0) close(l->fd);
        l->fd = -1;
    }
    const double until = cd_clock_wall() + GRACE_S;
    for (size_t k = 0; k < p->n_link; k++) {
        cd_remote_connection *l = &p->link[k];
        struct pollfd f = {.fd = l->err_fd, .events = 0}; /* hangs up when its process ends */
        const double left = until - cd_clock_wall();
        if (l->err_fd >= 0 && l->pid > 0) poll(&f, 1, left > 0 ? (int)(1000 * left) : 0);
        cd_remote_connection_kill(l);
        cd_buf_free(&l->in);
        cd_buf_free(&l->out);
    }
}

/* Times and errors of jobs that were answered but not delivered are freed at the end. */
cdmpp_status cd_remote_run(const cd_remote_host *host, size_t n_host,
                           const cd_remote_policy *policy, const cd_str *record, size_t n,
                           const char *setup, const cd_remote_watch *w, cdmpp_err *err) {
    if (!n_host || n_host > MAX_HOST)
        return CD_FAIL(err, EUSAGE, "expected 1 to %d hosts, found %zu", MAX_HOST, n_host);
    pool *p = cd_mem_zalloc(1, sizeof *p);
    cd_remote_connection *link = cd_mem_zalloc(n_host, sizeof *link);
    job *jobs = cd_mem_zalloc(n ? n : 1, sizeof *jobs);
    cdmpp_status st = CDMPP_OK;
    if (!p || !link || !jobs) {
        st = CD_FAIL(err, ENOMEM, "%zu jobs", n);
    } else {
        const cd_remote_policy q = {policy->lease_s > 0 ? policy->lease_s : 120,
                                    policy->start_s > 0 ? policy->start_s : CD_REMOTE_START_S,
                                    policy->silence_s > 0 ? policy->silence_s : 30,
                                    policy->retry_s > 0 ? policy->retry_s : 0.5,
                                    policy->max_failures ? policy->max_failures : 4,
                                    policy->max_attempts ? policy->max_attempts : 3,
                                    policy->core};
        *p = (pool){.p = q,
                    .link = link,
                    .n_link = n_host,
                    .job = jobs,
                    .record = record,
                    .n = n,
                    .setup = setup ? setup : "",
                    .w = w};
        for (size_t k = 0; k < n_host; k++)
            link[k] = (cd_remote_connection){.host = &host[k], .fd = -1, .err_fd = -1};
        st = run(p, err);
        close_all(p);
        cd_arena_free(&p->arena);
        for (size_t i = p->delivered; i < n; i++)
            cd_mem_free(jobs[i].err), cd_mem_free(jobs[i].times);
    }
    cd_mem_free(jobs);
    cd_mem_free(link);
    cd_mem_free(p);
    return st;
}

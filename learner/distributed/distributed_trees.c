/* All ranks grow the trees of one member together: XGBoost adds up histograms, and what depends on
 * all programs (losses, gradients) is shared by all ranks. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "learner/distributed/distributed.h"

/* The tracker that XGBoost's collective (rabit, as in 1.7) asks where its neighbours are. XGBoost
 * has one in Python only; this one is a thread of rank 0. */

enum { MAGIC = 0xff99, TEXT = 24, TRIES = 4 };

/* A rank that has called, until it is linked; then where it listens. */
typedef struct {
    int fd, port; /* fd -1: not here, or linked */
    bool here, gone;
    char host[INET_ADDRSTRLEN];
} worker;

struct cd_rabit_tracker {
    pthread_t thread;
    int fd, port, wake[2]; /* wake: a byte says that cd_rabit_tracker_end was called */
    int limit_s;
    _Atomic int wait_s; /* from outside, before the byte */
    size_t n_rank;
    bool ending;     /* of the thread: the byte was seen */
    double until;    /* of the thread: when it gives up */
    cdmpp_status st; /* of the thread, for who joined it */
    cdmpp_err err;
    worker w[];
};

/* ---- bytes, never later than t->until ---- */
static bool readable(cd_rabit_tracker *t, int fd) {
    for (;;) {
        struct pollfd p[2] = {{fd, POLLIN, 0}, {t->ending ? -1 : t->wake[0], POLLIN, 0}};
        const double left = t->until - cd_clock_wall();
        if (left <= 0) return false;
        const int n = poll(p, 2, left < 1e5 ? (int)(left * 1e3) + 1 : 100000000);
        if (n < 0 && errno != EINTR) return false;
        if (n > 0 && p[1].revents) {
            t->ending = true;
            t->until = cd_clock_wall() + t->wait_s;
        }
        if (n > 0 && p[0].revents) return true;
    }
}

static bool get(cd_rabit_tracker *t, int fd, void *to, size_t n) {
    for (size_t at = 0; at < n;) {
        if (!readable(t, fd)) return false;
        const ssize_t k = recv(fd, (char *)to + at, n - at, 0);
        if (k == 0 || (k < 0 && errno != EINTR)) return false;
        if (k > 0) at += (size_t)k;
        /* it sends the next piece when told of this one */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &(int){1}, sizeof(int));
    }
    return true;
}

static bool get_int(cd_rabit_tracker *t, int fd, int *v) { return get(t, fd, v, sizeof *v); }

static bool get_text(cd_rabit_tracker *t, int fd, char out[TEXT]) {
    int n;
    if (!get_int(t, fd, &n) || n < 0 || n >= TEXT || !get(t, fd, out, (size_t)n)) return false;
    out[n] = '\0';
    return true;
}

/* A few bytes to someone who waits for them: they fit, or nobody is there. */
static bool put(int fd, const void *p, size_t n) {
    return send(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}
static bool put_int(int fd, int v) { return put(fd, &v, sizeof v); }

/* ---- who calls ---- */
/* Someone who speaks rabit's language: connection, rank, task and wish. False: sent away. */
static bool greet(cd_rabit_tracker *t, int fd, int *rank, char task[TEXT], char wish[TEXT]) {
    int magic, n_rank;
    /* a silent caller must not keep the others waiting */
    const double all = t->until, soon = cd_clock_wall() + 5;
    t->until = soon < all ? soon : all;
    const bool was = t->ending;
    const bool ok = get_int(t, fd, &magic) && magic == MAGIC && put_int(fd, MAGIC) &&
                    get_int(t, fd, rank) && get_int(t, fd, &n_rank) &&
                    (n_rank == -1 || n_rank == (int)t->n_rank) && get_text(t, fd, task) &&
                    get_text(t, fd, wish);
    if (was == t->ending) t->until = all;
    return ok;
}

static int next_call(cd_rabit_tracker *t, struct sockaddr_in *from) {
    socklen_t n = sizeof *from;
    for (int fd; readable(t, t->fd);) {
        fd = accept(t->fd, (struct sockaddr *)from, &n);
        if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) return -1;
        if (fd < 0) continue;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        return fd;
    }
    return -1;
}

/* All ranks, each waiting on its connection. */
static bool gather(cd_rabit_tracker *t) {
    for (size_t n = 0; n < t->n_rank;) {
        struct sockaddr_in from;
        char task[TEXT], wish[TEXT], *end;
        int rank, fd = next_call(t, &from);
        if (fd < 0) return false;
        const bool ok = greet(t, fd, &rank, task, wish) && rank == -1 && strcmp(wish, "start") == 0;
        const unsigned long r = ok ? strtoul(task, &end, 10) : t->n_rank;
        if (r >= t->n_rank || *end || end == task || t->w[r].here) {
            close(fd);
            continue;
        }
        t->w[r].fd = fd;
        t->w[r].here = true;
        (void)inet_ntop(AF_INET, &from.sin_addr, t->w[r].host, sizeof t->w[r].host);
        n++;
    }
    return true;
}

/* ---- who is whose neighbour ---- */
static size_t tree_of(size_t r, size_t n, int *out) {
    size_t k = 0;
    if (r) out[k++] = (int)((r + 1) / 2 - 1);
    for (size_t c = 2 * r + 1; c <= 2 * r + 2; c++)
        if (c < n) out[k++] = (int)c;
    return k;
}

static bool among(const int *v, size_t n, int x) {
    for (size_t i = 0; i < n; i++)
        if (v[i] == x) return true;
    return false;
}

/* Tells r its place; nb gets all its neighbours, of which there are at most 5. */
static bool place(const cd_rabit_tracker *t, size_t r, int nb[5], size_t *n_nb) {
    const int fd = t->w[r].fd;
    const int n = (int)t->n_rank;
    const int ring[2] = {((int)r + n - 1) % n, ((int)r + 1) % n};
    const size_t k = tree_of(r, t->n_rank, nb);
    *n_nb = k;
    bool ok =
        put_int(fd, (int)r) && put_int(fd, r ? nb[0] : -1) && put_int(fd, n) && put_int(fd, (int)k);
    for (size_t i = 0; ok && i < k; i++) ok = put_int(fd, nb[i]);
    for (int i = 0; ok && i < 2; i++) {
        ok = put_int(fd, ring[i] == (int)r ? -1 : ring[i]);
        if (ring[i] != (int)r && !among(nb, *n_nb, ring[i])) nb[(*n_nb)++] = ring[i];
    }
    return ok;
}

/* Whom r must still call, and how many will call it. */
static bool calls(cd_rabit_tracker *t, size_t r, const int *nb, size_t n_nb) {
    const int fd = t->w[r].fd;
    int n_good, good[5], n_call = 0, n_wait = 0;
    if (!get_int(t, fd, &n_good) || n_good < 0 || n_good > 5 ||
        !get(t, fd, good, (size_t)n_good * sizeof *good))
        return false;
    for (size_t i = 0; i < n_nb; i++) {
        if (among(good, (size_t)n_good, nb[i])) continue;
        if (nb[i] < (int)r) n_call++;
        else n_wait++;
    }
    bool ok = put_int(fd, n_call) && put_int(fd, n_wait);
    for (size_t i = 0; ok && i < n_nb; i++) {
        if (among(good, (size_t)n_good, nb[i]) || nb[i] > (int)r) continue;
        const worker *w = &t->w[nb[i]];
        ok = put_int(fd, (int)strlen(w->host)) && put(fd, w->host, strlen(w->host)) &&
             put_int(fd, w->port) && put_int(fd, nb[i]);
    }
    return ok;
}

static bool link_rank(cd_rabit_tracker *t, size_t r) {
    int nb[5], failed = 1;
    size_t n_nb;
    if (!place(t, r, nb, &n_nb)) return false;
    for (int k = 0; k < TRIES && failed; k++)
        if (!calls(t, r, nb, n_nb) || !get_int(t, t->w[r].fd, &failed)) return false;
    if (failed || !get_int(t, t->w[r].fd, &t->w[r].port)) return false;
    close(t->w[r].fd);
    t->w[r].fd = -1;
    return true;
}

/* ---- the rest of their lives ---- */
static bool serve(cd_rabit_tracker *t) {
    for (size_t n = 0; n < t->n_rank;) {
        struct sockaddr_in from;
        char task[TEXT], wish[TEXT];
        int rank;
        const int fd = next_call(t, &from);
        if (fd < 0) return false;
        if (greet(t, fd, &rank, task, wish) && strcmp(wish, "shutdown") == 0 && rank >= 0 &&
            rank < (int)t->n_rank) {
            n += !t->w[rank].gone;
            t->w[rank].gone = true;
        }
        close(fd);
    }
    return true;
}

static void *work(void *arg) {
    cd_rabit_tracker *t = arg;
    t->until = cd_clock_wall() + t->limit_s;
    size_t r = 0;
    if (!gather(t)) {
        while (r + 1 < t->n_rank && t->w[r].here) r++;
        t->st = CD_FAIL(&t->err, EBACKEND,
                        "rank %zu did not come to XGBoost's collective within %d s", r, t->limit_s);
    }
    for (; !t->st && r < t->n_rank; r++)
        if (!link_rank(t, r))
            t->st = CD_FAIL(&t->err, EBACKEND,
                            "rank %zu did not find its place in XGBoost's collective", r);
    for (size_t k = 0; k < t->n_rank; k++)
        if (t->w[k].fd >= 0) close(t->w[k].fd);
    if (!t->ending) t->until = 1e300;
    if (!t->st && !serve(t))
        t->st = CD_FAIL(&t->err, EBACKEND, "a rank did not take its leave of XGBoost's collective");
    close(t->fd); /* who calls now hears at once that nobody is here */
    return NULL;
}

/* ---- from outside ---- */
static bool listen_at(cd_rabit_tracker *t, const char *address) {
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t n = sizeof at;
    if (inet_pton(AF_INET, address, &at.sin_addr) != 1) return false;
    t->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (t->fd < 0 || bind(t->fd, (struct sockaddr *)&at, sizeof at) || listen(t->fd, 256))
        return false;
    if (getsockname(t->fd, (struct sockaddr *)&at, &n)) return false;
    t->port = ntohs(at.sin_port);
    return true;
}

static void release(cd_rabit_tracker *t) {
    if (t->wake[0] >= 0) close(t->wake[0]), close(t->wake[1]);
    cd_mem_free(t);
}

/* The listening socket is open before the thread starts, so its port is known and no rank can come
 * too early. */
cdmpp_status cd_rabit_tracker_start(const char *address, size_t n_rank, int limit_s,
                                    cd_rabit_tracker **out, cdmpp_err *err) {
    cd_rabit_tracker *t = cd_mem_zalloc(1, sizeof *t + n_rank * sizeof *t->w);
    if (!t) return CD_FAIL(err, ENOMEM, "tracker of %zu ranks", n_rank);
    t->n_rank = n_rank;
    t->limit_s = limit_s;
    t->fd = t->wake[0] = t->wake[1] = -1;
    for (size_t r = 0; r < n_rank; r++) t->w[r].fd = -1;
    cdmpp_status st = CDMPP_OK;
    if (pipe(t->wake)) st = CD_FAIL(err, EBACKEND, "no pipe: %s", strerror(errno));
    else if (!listen_at(t, address))
        st = CD_FAIL(err, EBACKEND, "cannot listen at %s: %s", address, strerror(errno));
    else if (pthread_create(&t->thread, NULL, work, t))
        st = CD_FAIL(err, EBACKEND, "no thread for XGBoost's tracker");
    if (!st) {
        *out = t;
        return CDMPP_OK;
    }
    if (t->fd >= 0) close(t->fd);
    release(t);
    return st;
}

int cd_rabit_tracker_port(const cd_rabit_tracker *t) { return t->port; }

cdmpp_status cd_rabit_tracker_end(cd_rabit_tracker *t, int wait_s, cdmpp_err *err) {
    if (!t) return CDMPP_OK;
    t->wait_s = wait_s;
    if (write(t->wake[1], "", 1) == 1) pthread_join(t->thread, NULL);
    const cdmpp_status st = t->st;
    if (st && err) *err = t->err;
    release(t);
    return st;
}

enum { COME_S = 60, WAIT_S = 300, LEAVE_S = 30, PIECE = 1 << 20 };

void cd_distributed_trees_own(const cd_process_group *ranks, size_t n, size_t *beg, size_t *end) {
    *beg = ranks ? cd_ops_tile_at(n, ranks->n_rank, ranks->rank) : 0;
    *end = ranks ? cd_ops_tile_at(n, ranks->n_rank, ranks->rank + 1) : n;
}

/* ---- where the tracker is ---- */
/* Of this machine: the first address that others can call. */
static bool find_address(char out[INET_ADDRSTRLEN]) {
    struct ifaddrs *all, *a;
    if (getifaddrs(&all)) return false;
    for (a = all; a; a = a->ifa_next) {
        if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET || !(a->ifa_flags & IFF_UP) ||
            (a->ifa_flags & IFF_LOOPBACK))
            continue;
        struct sockaddr_in in;
        memcpy(&in, a->ifa_addr, sizeof in);
        if (inet_ntop(AF_INET, &in.sin_addr, out, INET_ADDRSTRLEN)) break;
    }
    freeifaddrs(all);
    return a != NULL;
}

static cdmpp_status start(cd_distributed_trees *t, char address[INET_ADDRSTRLEN], cdmpp_err *err) {
    strcpy(address, "127.0.0.1");
    if (!t->ranks->one_host && !find_address(address))
        return CD_FAIL(
            err, EBACKEND,
            "ranks on several machines, and this one has no IPv4 address that they can call");
    return cd_rabit_tracker_start(address, t->ranks->n_rank, COME_S, &t->tracker, err);
}

/* Rank 0 tells: four numbers of the address, two of the port. Sums with zeros are exact. */
static cdmpp_status tell(const cd_distributed_trees *t, char address[INET_ADDRSTRLEN], int *port,
                         cdmpp_err *err) {
    float v[6] = {0};
    unsigned char ip[4] = {0};
    if (t->tracker) {
        (void)inet_pton(AF_INET, address, ip);
        for (int k = 0; k < 4; k++) v[k] = ip[k];
        v[4] = (float)(cd_rabit_tracker_port(t->tracker) / 256);
        v[5] = (float)(cd_rabit_tracker_port(t->tracker) % 256);
    }
    CD_TRY(t->ranks->allreduce(t->ranks->ctx, v, 1, 6, err));
    for (int k = 0; k < 4; k++) ip[k] = (unsigned char)v[k];
    (void)inet_ntop(AF_INET, ip, address, INET_ADDRSTRLEN);
    *port = (int)v[4] * 256 + (int)v[5];
    return CDMPP_OK;
}

cdmpp_status cd_distributed_trees_begin(cd_distributed_trees *t, const cd_process_group *ranks,
                                        cdmpp_err *err) {
    char address[INET_ADDRSTRLEN];
    *t = (cd_distributed_trees){.ranks = ranks};
    if (!ranks) return CDMPP_OK;
    cd_xgb_rendezvous m = {
        .address = address, .limit_s = WAIT_S, .rank = ranks->rank, .n_rank = ranks->n_rank};
    if (!ranks->rank) CD_TRY(start(t, address, err));
    CD_TRY(tell(t, address, &m.port, err));
    return cd_xgb_join(&m, err);
}

cdmpp_status cd_distributed_trees_end(cd_distributed_trees *t, cdmpp_status st, cdmpp_err *err) {
    if (!t->ranks) return st;
    /* else perhaps this rank alone: invariant (4) */
    const bool all = !st || st == CDMPP_EINTERRUPTED;
    cdmpp_err why = {0};
    cdmpp_status left = all ? cd_xgb_leave(&why) : CDMPP_OK;
    const cdmpp_status told =
        cd_rabit_tracker_end(t->tracker, all ? LEAVE_S : 0, left ? NULL : &why);
    t->tracker = NULL;
    if (st) return st;
    if (!left) left = told;
    if (left && err) *err = why;
    return left;
}

/* ---- between the ranks ---- */
cdmpp_status cd_distributed_trees_share(const cd_distributed_trees *t, float *v, size_t n,
                                        size_t beg, size_t end, cdmpp_err *err) {
    if (!t->ranks) return CDMPP_OK;
    for (size_t i = 0; i < n; i++)
        if (i < beg || i >= end) v[i] = 0;
    for (size_t i = 0; i < n; i += PIECE)
        CD_TRY(t->ranks->allreduce(t->ranks->ctx, v + i, 1, n - i < PIECE ? n - i : PIECE, err));
    return CDMPP_OK;
}

/* Sums of floats would lose the sign of a zero, and NaN; sums of halves of their bits do not. */
cdmpp_status cd_distributed_trees_share_bits(const cd_process_group *ranks, float *v, size_t n,
                                             size_t beg, size_t end, cdmpp_err *err) {
    const cd_distributed_trees t = {.ranks = ranks};
    if (!ranks) return CDMPP_OK;
    float *half = cd_mem_zalloc(2 * n + 1, sizeof *half);
    if (!half) return CD_FAIL(err, ENOMEM, "%zu values to share", n);
    for (size_t i = beg; i < end; i++) {
        uint32_t u;
        memcpy(&u, &v[i], sizeof u);
        half[2 * i] = (float)(u >> 16);
        half[2 * i + 1] = (float)(u & 0xffff);
    }
    const cdmpp_status st = cd_distributed_trees_share(&t, half, 2 * n, 2 * beg, 2 * end, err);
    for (size_t i = 0; !st && i < n; i++) {
        const uint32_t u = (uint32_t)half[2 * i] << 16 | (uint32_t)half[2 * i + 1];
        memcpy(&v[i], &u, sizeof u);
    }
    cd_mem_free(half);
    return st;
}

cdmpp_status cd_distributed_trees_stop(const cd_distributed_trees *t, bool *stop, cdmpp_err *err) {
    float n = *stop;
    if (!t->ranks) return CDMPP_OK;
    CD_TRY(t->ranks->allreduce(t->ranks->ctx, &n, 1, 1, err));
    *stop = n > 0;
    return CDMPP_OK;
}

/* The sum of a digest's digits over the ranks is n_rank times its own only where all agree (or
 * differ by chance in the sum). */
cdmpp_status cd_distributed_trees_same(const cd_distributed_trees *t, const cd_buf *bytes,
                                       cdmpp_err *err) {
    cd_sha256 s;
    char hex[65];
    float v[64];
    if (!t->ranks) return CDMPP_OK;
    cd_sha256_init(&s);
    cd_sha256_add(&s, bytes->p, bytes->n);
    cd_sha256_hex(&s, hex);
    for (int k = 0; k < 64; k++) v[k] = (float)hex[k];
    CD_TRY(t->ranks->allreduce(t->ranks->ctx, v, 1, 64, err));
    for (int k = 0; k < 64; k++)
        if (v[k] != (float)hex[k] * (float)t->ranks->n_rank)
            return CD_FAIL(err, EBACKEND,
                           "the ranks grew different trees: are their machines and XGBoost alike?");
    return CDMPP_OK;
}

/* The tracker against ranks that speak rabit's protocol, written here once more: who gets which
 * links, who is sent away, and that nobody waits for ever. */
#include "learner/distributed/distributed.h"
#include "check.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAGIC = 0xff99, MOST = 9 };

typedef struct {
    int at, n; /* port of the tracker; ranks */
    int task, rank, parent, size, n_tree, prev, next;
    int tree[3], linked[MOST]; /* linked[r]: connections with rank r */
    bool ok, refuse_once;      /* says once that its calls failed */
} rank_t;

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int dial(int port) {
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval limit = {20, 0};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0) return fd;
    close(fd);
    return -1;
}

static bool get(int fd, int *v) { return recv(fd, v, sizeof *v, MSG_WAITALL) == sizeof *v; }
static bool put(int fd, int v) { return send(fd, &v, sizeof v, MSG_NOSIGNAL) == sizeof v; }
static bool say(int fd, const char *s) {
    return put(fd, (int)strlen(s)) && send(fd, s, strlen(s), MSG_NOSIGNAL) == (ssize_t)strlen(s);
}

/* A connection on which the tracker knows who calls. */
static int call_as(int port, int rank, int n, int task, const char *wish) {
    char name[16];
    int magic;
    const int fd = dial(port);
    snprintf(name, sizeof name, "%d", task);
    if (fd >= 0 && put(fd, MAGIC) && get(fd, &magic) && magic == MAGIC && put(fd, rank) &&
        put(fd, n) && say(fd, name) && say(fd, wish))
        return fd;
    if (fd >= 0) close(fd);
    return -1;
}

/* Calls those below: each is told who calls, and tells who it is. */
static bool call_out(rank_t *r, int fd, int n_call) {
    for (int i = 0; i < n_call; i++) {
        char host[64] = "";
        int n, port, rank, other;
        if (!get(fd, &n) || n > 63 || recv(fd, host, (size_t)n, MSG_WAITALL) != n ||
            !get(fd, &port) || !get(fd, &rank))
            return false;
        if (strcmp(host, "127.0.0.1") != 0 || rank >= r->rank || rank < 0) return false;
        if (r->refuse_once) continue;
        const int peer = dial(port);
        const bool met = peer >= 0 && put(peer, r->rank) && get(peer, &other) && other == rank;
        if (peer >= 0) close(peer);
        if (!met) return false;
        r->linked[rank]++;
    }
    return true;
}

static bool take_in(rank_t *r, int listening, int n_wait) {
    for (int i = 0; i < n_wait; i++) {
        int other = -1;
        const int peer = accept(listening, NULL, NULL);
        const bool met =
            peer >= 0 && get(peer, &other) && put(peer, r->rank) && other > r->rank && other < r->n;
        if (peer >= 0) close(peer);
        if (!met) return false;
        r->linked[other]++;
    }
    return true;
}

static bool find_place(rank_t *r, int fd) {
    bool ok = get(fd, &r->rank) && get(fd, &r->parent) && get(fd, &r->size) &&
              get(fd, &r->n_tree) && r->n_tree <= 3;
    for (int i = 0; ok && i < r->n_tree; i++) ok = get(fd, &r->tree[i]);
    return ok && get(fd, &r->prev) && get(fd, &r->next);
}

static bool find_links(rank_t *r, int fd, int listening, int port) {
    int n_call, n_wait;
    for (int round = 0;; round++) {
        if (!put(fd, 0) || !get(fd, &n_call) || !get(fd, &n_wait) || !call_out(r, fd, n_call))
            return false;
        const int failed = r->refuse_once ? n_call : 0;
        r->refuse_once = false;
        if (!put(fd, failed)) return false;
        if (!failed) break;
    }
    return put(fd, port) && take_in(r, listening, n_wait);
}

static void *live(void *arg) {
    rank_t *r = arg;
    struct sockaddr_in me = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof me;
    const struct timeval limit = {20, 0};
    const int listening = socket(AF_INET, SOCK_STREAM, 0);
    (void)setsockopt(listening, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    r->ok = bind(listening, (struct sockaddr *)&me, n) == 0 && listen(listening, 16) == 0 &&
            getsockname(listening, (struct sockaddr *)&me, &n) == 0;
    const int fd = call_as(r->at, -1, r->n, r->task, "start");
    r->ok =
        r->ok && fd >= 0 && find_place(r, fd) && find_links(r, fd, listening, ntohs(me.sin_port));
    if (fd >= 0) close(fd);
    close(listening);
    return NULL;
}

static void start_all(rank_t *r, int n, int port, pthread_t *t, int missing) {
    for (int k = 0; k < n; k++) {
        r[k] = (rank_t){.at = port, .n = n, .task = k, .refuse_once = k == 2};
        if (k != missing) assert_int_equal(pthread_create(&t[k], NULL, live, &r[k]), 0);
    }
    for (int k = 0; k < n; k++)
        if (k != missing) pthread_join(t[k], NULL);
}

static void check_rank(const rank_t *r, const rank_t *all) {
    assert_true(r->ok);
    assert_int_equal(r->rank, r->task);
    assert_int_equal(r->size, r->n);
    assert_int_equal(r->parent, r->rank ? (r->rank - 1) / 2 : -1);
    assert_int_equal(r->next, (r->rank + 1) % r->n);
    assert_int_equal(all[r->next].prev, r->rank);
    int want[MOST] = {0};
    want[r->prev] = want[r->next] = 1;
    for (int i = 0; i < r->n_tree; i++) {
        const int o = r->tree[i];
        want[o] = 1;
        assert_true(r->parent == o || all[o].parent == r->rank);
    }
    for (int o = 0; o < r->n; o++) assert_int_equal(r->linked[o], want[o]); /* each link once */
    assert_int_equal(r->n_tree,
                     (r->rank > 0) + (2 * r->rank + 1 < r->n) + (2 * r->rank + 2 < r->n));
}

TEST(all_find_each_other) {
    for (int n = 2; n <= MOST; n++) {
        cdmpp_err err = {0};
        cd_rabit_tracker *k;
        rank_t r[MOST];
        pthread_t t[MOST];
        assert_ok(cd_rabit_tracker_start("127.0.0.1", (size_t)n, 20, &k, &err));
        start_all(r, n, cd_rabit_tracker_port(k), t, -1);
        for (int i = 0; i < n; i++) check_rank(&r[i], r);
        for (int i = 0; i < n; i++) close(call_as(cd_rabit_tracker_port(k), i, n, i, "shutdown"));
        assert_ok(cd_rabit_tracker_end(k, 20, &err));
    }
}

/* Noise, a silent caller, a rank twice, one too many, another number of ranks: the others do not
 * suffer. */
TEST(strangers_are_sent_away) {
    cdmpp_err err = {0};
    cd_rabit_tracker *k;
    rank_t r[3];
    pthread_t t[3];
    int v;
    assert_ok(cd_rabit_tracker_start("127.0.0.1", 3, 20, &k, &err));
    const int port = cd_rabit_tracker_port(k), noise = dial(port), gone = dial(port);
    assert_true(put(noise, 0x20544547) && noise >= 0);
    close(gone);
    assert_false(get(noise, &v));
    static const struct {
        int rank, n, task;
        const char *wish;
    } wrong[] = {{-1, 3, 3, "start"},
                 {-1, 3, -1, "start"},
                 {-1, 4, 0, "start"},
                 {0, 3, 0, "recover"},
                 {-1, 3, 0, "a wish that is longer than any"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const int fd = call_as(port, wrong[i].rank, wrong[i].n, wrong[i].task, wrong[i].wish);
        assert_true(fd < 0 || !get(fd, &v));
        if (fd >= 0) close(fd);
    }
    start_all(r, 3, port, t, -1);
    for (int i = 0; i < 3; i++) check_rank(&r[i], r);
    close(noise);
    for (int i = 0; i < 3; i++) close(call_as(port, i, 3, i, "shutdown"));
    assert_ok(cd_rabit_tracker_end(k, 20, &err));
}

/* One does not come: the others are let go when the limit is over, and it is named. */
TEST(limits_hold) {
    cdmpp_err err = {0};
    cd_rabit_tracker *k;
    rank_t r[3];
    pthread_t t[3];
    const double begin = seconds();
    assert_ok(cd_rabit_tracker_start("127.0.0.1", 3, 1, &k, &err));
    start_all(r, 3, cd_rabit_tracker_port(k), t, 1);
    assert_false(r[0].ok || r[2].ok);
    assert_status(cd_rabit_tracker_end(k, 20, &err), CDMPP_EBACKEND);
    assert_non_null(strstr(err.msg, "rank 1 "));
    assert_true(seconds() - begin < 5);
}

/* Ended at any time, at once. */
TEST(ends_when_told) {
    cdmpp_err err = {0};
    cd_rabit_tracker *k;
    rank_t r[3];
    pthread_t t[3];
    const double begin = seconds();
    assert_ok(cd_rabit_tracker_start("127.0.0.1", 3, 1000, &k, &err));
    assert_status(cd_rabit_tracker_end(k, 0, &err), CDMPP_EBACKEND); /* nobody came */
    err = (cdmpp_err){0};
    assert_ok(cd_rabit_tracker_start("127.0.0.1", 3, 1000, &k, &err));
    start_all(r, 3, cd_rabit_tracker_port(k), t, -1);
    close(call_as(cd_rabit_tracker_port(k), 1, 3, 1, "shutdown"));
    assert_status(cd_rabit_tracker_end(k, 0, &err), CDMPP_EBACKEND); /* two have not left */
    err = (cdmpp_err){0};
    assert_status(cd_rabit_tracker_start("no address", 3, 1, &k, &err), CDMPP_EBACKEND);
    assert_ok(cd_rabit_tracker_end(NULL, 1, &err));
    assert_true(seconds() - begin < 5);
}

TESTS(NULL, NULL, all_find_each_other, strangers_are_sent_away, limits_hold, ends_when_told)

/* All ranks grow the trees of one member together: XGBoost adds up histograms, and what depends on
 * all programs (losses, gradients) is shared by all ranks. */
#include "learner/distributed/distributed.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

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

/* Which rank trains which member, and how trained members reach rank 0. */
#include "learner/distributed/distributed.h"

#include <assert.h>
#include <string.h>

/* User seconds with the defaults on the sample of examples/zen5, one core, rounded; the
 * ratios are what matters. */
static const double cost[CD_N_MEMBER_KIND] = {
    [CD_MEMBER_ROWS] = 8, [CD_MEMBER_PROGRAM] = 14, [CD_MEMBER_SUMS] = 14, [CD_MEMBER_MLP] = 2,
    [CD_MEMBER_TSF] = 16, [CD_MEMBER_LSTM] = 140,   [CD_MEMBER_TLP] = 60,
};

static size_t count_nets(const cd_member *member, size_t n) {
    size_t k = 0;
    for (size_t i = 0; i < n; i++) k += cd_member_is_net(member[i].kind);
    return k;
}

/* The dearest member that nobody has yet, to the rank with the least work. */
static void give_dearest(const cd_member *member, size_t n, double *load, size_t n_rank,
                         size_t *owner, bool *dealt) {
    size_t best = n, rank = 0;
    for (size_t i = 0; i < n; i++)
        if (!dealt[i] && (best == n || cost[member[i].kind] > cost[member[best].kind])) best = i;
    if (best == n) return;
    for (size_t r = 1; r < n_rank; r++)
        if (load[r] < load[rank]) rank = r;
    dealt[best] = true;
    owner[best] = rank;
    load[rank] += cost[member[best].kind];
}

void cd_process_group_deal(const cd_member *member, size_t n, size_t n_rank, int64_t slices,
                           bool trees, size_t *owner) {
    /* model.folds is at most 20, and more ranks than members have nothing to do */
    enum { MOST = CD_N_MEMBER_KIND * 20 };
    double load[MOST] = {0};
    bool dealt[MOST] = {false};
    assert(n <= MOST);
    const size_t n_net = count_nets(member, n);
    const bool together = n_net && n_net < n_rank && slices > 1 && n_rank <= (size_t)slices;
    for (size_t i = 0; i < n; i++) {
        dealt[i] = cd_member_is_net(member[i].kind) ? together : trees && n_rank > 1;
        owner[i] = CD_PROCESS_GROUP_ALL;
    }
    for (size_t i = 0; i < n; i++)
        give_dearest(member, n, load, n_rank < n ? n_rank : n, owner, dealt);
}

/* ---- gather ---- */
static void put_u64(cd_buf *b, uint64_t v) { cd_buf_put(b, (const char *)&v, sizeof v); }

static cdmpp_status unpack(const cd_buf *from, cd_buf *bytes, size_t n, cdmpp_err *err) {
    for (size_t at = 0; at < from->n;) {
        uint64_t head[2];
        if (from->n - at < sizeof head)
            return CD_FAIL(err, EBACKEND, "a rank sent a piece of a member");
        memcpy(head, from->p + at, sizeof head);
        at += sizeof head;
        if (head[0] >= n || head[1] > from->n - at)
            return CD_FAIL(err, EBACKEND, "a rank sent a piece of a member");
        cd_buf_put(&bytes[head[0]], from->p + at, (size_t)head[1]);
        if (bytes[head[0]].oom)
            return CD_FAIL(err, ENOMEM, "%zu bytes of a member", (size_t)head[1]);
        at += (size_t)head[1];
    }
    return CDMPP_OK;
}

/* Members travel as number, length, bytes, one after another. */
cdmpp_status cd_process_group_gather(const cd_process_group *ranks, cd_buf *bytes, size_t n,
                                     cdmpp_err *err) {
    cd_buf own = {0};
    cd_buf *all = ranks->rank ? NULL : cd_mem_zalloc(ranks->n_rank, sizeof *all);
    for (size_t k = 0; ranks->rank && k < n; k++) {
        if (!bytes[k].n) continue;
        put_u64(&own, k);
        put_u64(&own, bytes[k].n);
        cd_buf_put(&own, bytes[k].p, bytes[k].n);
    }
    cdmpp_status st = own.oom || (!all && !ranks->rank)
                          ? CD_FAIL(err, ENOMEM, "members of %zu ranks", ranks->n_rank)
                          : CDMPP_OK;
    if (!st) st = ranks->gather(ranks->ctx, &own, all, err);
    for (size_t r = 0; all && r < ranks->n_rank; r++) {
        if (!st) st = unpack(&all[r], bytes, n, err);
        cd_buf_free(&all[r]);
    }
    cd_mem_free(all);
    cd_buf_free(&own);
    return st;
}

cdmpp_status cd_process_group_agree(const cd_process_group *ranks, bool found, cdmpp_err *err) {
    float n = found ? 1 : 0;
    CD_TRY(ranks->allreduce(ranks->ctx, &n, 1, 1, err));
    if (n == (found ? (float)ranks->n_rank : 0)) return CDMPP_OK;
    return CD_FAIL(err, EMODEL,
                   "%d of %zu ranks found a trained member: do all see the same folder?", (int)n,
                   ranks->n_rank);
}

/* A network checked and turned around: who comes after whom. */
#include <math.h>
#include <string.h>

#include "predictor/replay/replay_internal.h"

static bool is_time(double s) { return s >= 0 && isfinite(s); }

/* What is added up in a replay stays finite, also where durations are drawn many times as long;
 * bytes of all results, each on every device, can be counted. */
static const double LONGEST_S = 1e100;
/* Sums that the simulation forms must stay finite, and bytes below 2^63: checked here, so that it
 * need not check at every step. */
static cdmpp_status check_sums(const cd_replay_net *n, cdmpp_err *err) {
    double s = 0;
    int64_t bytes = 0, all;
    for (uint32_t k = 0; k < n->n_op; k++) {
        const cd_replay_device *d = &n->device[n->op[k].device];
        s += n->op[k].seconds + d->gap_s + cd_replay_runs(&n->op[k]) * d->issue_s;
        if (!(s <= LONGEST_S))
            return CD_FAIL(err, ERANGE, "more than %g s up to operator %u (%s)", LONGEST_S, k,
                           n->op[k].name);
        if (__builtin_add_overflow(bytes, n->op[k].bytes, &bytes) ||
            __builtin_mul_overflow(bytes, (int64_t)n->n_device, &all))
            return CD_FAIL(err, ERANGE, "results of more than 2^63 bytes up to operator %u (%s)", k,
                           n->op[k].name);
    }
    for (uint32_t k = 0; k < n->n_link; k++)
        if (!(n->link[k].latency_s + (double)bytes / n->link[k].bytes_per_s <= LONGEST_S))
            return CD_FAIL(err, ERANGE, "link %u: %g s, %g bytes/s for %lld bytes", k,
                           n->link[k].latency_s, n->link[k].bytes_per_s, (long long)bytes);
    return CDMPP_OK;
}

/* Numbers and edges of each operator; *n_edge: all edges. */
static cdmpp_status check_ops(const cd_replay_net *n, size_t *n_edge, cdmpp_err *err) {
    *n_edge = 0;
    for (uint32_t k = 0; k < n->n_op; k++) {
        const cd_replay_op *o = &n->op[k];
        if (!is_time(o->seconds) || !is_time(o->spread) || !(o->shared >= 0 && o->shared <= 1) ||
            !is_time(o->runs) || !(o->memory_share >= 0 && o->memory_share <= 1) || o->bytes < 0)
            return CD_FAIL(err, ERANGE,
                           "operator %u (%s): %g s, spread %g, memory share %g, %lld bytes", k,
                           o->name, o->seconds, o->spread, o->memory_share, (long long)o->bytes);
        if (o->device >= n->n_device)
            return CD_FAIL(err, EINVALID, "operator %u (%s): device %u of %u", k, o->name,
                           o->device, n->n_device);
        if (o->first > n->n_after || o->n_after > n->n_after - o->first)
            return CD_FAIL(err, EINVALID, "operator %u (%s): edges %u to %u of %u", k, o->name,
                           o->first, o->first + o->n_after, n->n_after);
        for (uint32_t j = 0; j < o->n_after; j++)
            if (n->after[o->first + j] >= n->n_op)
                return CD_FAIL(err, EINVALID, "operator %u (%s) comes after %u of %u", k, o->name,
                               n->after[o->first + j], n->n_op);
        *n_edge += o->n_after;
    }
    if (*n_edge >= UINT32_MAX) return CD_FAIL(err, ERANGE, "%zu edges", *n_edge);
    return CDMPP_OK;
}

static cdmpp_status check_devices(const cd_replay_net *n, cdmpp_err *err) {
    if (n->n_device > CD_REPLAY_MAX_DEVICE)
        return CD_FAIL(err, ERANGE, "%u devices, at most %d", n->n_device, CD_REPLAY_MAX_DEVICE);
    for (uint32_t d = 0; d < n->n_device; d++) {
        const cd_replay_device *v = &n->device[d];
        if (v->workers < 1 || v->workers > CD_REPLAY_MAX_WORKER || !is_time(v->gap_s) ||
            !is_time(v->issue_s) || v->memory < 0)
            return CD_FAIL(err, ERANGE, "device %u (%s): %u workers, gap %g s, issue %g s", d,
                           v->name, v->workers, v->gap_s, v->issue_s);
    }
    for (uint32_t k = 0; k < n->n_link; k++) {
        const cd_replay_link *l = &n->link[k];
        if (l->from >= n->n_device || l->to >= n->n_device)
            return CD_FAIL(err, EINVALID, "link %u: devices %u to %u", k, l->from, l->to);
        if (!is_time(l->latency_s) || !(l->bytes_per_s > 0))
            return CD_FAIL(err, ERANGE, "link %u: %g s, %g bytes/s", k, l->latency_s,
                           l->bytes_per_s);
    }
    return CDMPP_OK;
}

/* Edges into an operator become edges out of it: a counting sort by the operator that they come
 * from. */
static void turn_around(const cd_replay_net *n, cd_replay_sim *p) {
    for (uint32_t e = 0; e < n->n_op; e++)
        for (uint32_t j = 0; j < n->op[e].n_after; j++)
            p->first[n->after[n->op[e].first + j] + 1]++;
    for (uint32_t k = 0; k < n->n_op; k++) p->first[k + 1] += p->first[k];
    /* from the end: first[k+1] walks down to where k's begin */
    for (uint32_t e = n->n_op; e-- > 0;)
        for (uint32_t j = 0; j < n->op[e].n_after; j++)
            p->to[--p->first[n->after[n->op[e].first + j] + 1]] = e;
    memmove(p->first, p->first + 1, n->n_op * sizeof *p->first);
    uint32_t all = 0;
    for (uint32_t e = 0; e < n->n_op; e++) all += n->op[e].n_after;
    p->first[n->n_op] = all;
}

/* Every operator behind those that it comes after. */
static cdmpp_status sort(const cd_replay_net *n, cd_replay_sim *p, uint32_t *left, cdmpp_err *err) {
    uint32_t end = 0;
    for (uint32_t k = 0; k < n->n_op; k++)
        if (!(left[k] = n->op[k].n_after)) p->order[end++] = k;
    for (uint32_t at = 0; at < end; at++)
        for (uint32_t j = p->first[p->order[at]]; j < p->first[p->order[at] + 1]; j++)
            if (!--left[p->to[j]]) p->order[end++] = p->to[j];
    for (uint32_t k = 0; k < n->n_op && end < n->n_op; k++)
        if (left[k])
            return CD_FAIL(err, EINVALID,
                           "operator %u (%s) comes after itself: a cycle, or behind one", k,
                           n->op[k].name);
    return CDMPP_OK;
}

static cdmpp_status check_links(const cd_replay_sim *p, cdmpp_err *err) {
    const cd_replay_net *n = p->n;
    for (uint32_t k = 0; k < n->n_op; k++)
        for (uint32_t j = p->first[k]; j < p->first[k + 1]; j++) {
            const uint32_t from = n->op[k].device, to = n->op[p->to[j]].device;
            if (from != to && p->link[(size_t)from * n->n_device + to] == CD_REPLAY_NONE)
                return CD_FAIL(
                    err, EINVALID,
                    "operator %u (%s) comes after %u on another device: no link from %s to %s",
                    p->to[j], n->op[p->to[j]].name, k, n->device[from].name, n->device[to].name);
        }
    return CDMPP_OK;
}

/* The first link of a pair of devices counts. */
cdmpp_status cd_replay_prepare(const cd_replay_net *n, cd_arena *a, cd_replay_sim *out,
                               cdmpp_err *err) {
    size_t n_edge;
    CD_TRY(check_ops(n, &n_edge, err));
    CD_TRY(check_devices(n, err));
    CD_TRY(check_sums(n, err));
    const size_t pairs = (size_t)n->n_device * n->n_device;
    uint32_t *left = CD_NEWN(a, uint32_t, (size_t)n->n_op + 1);
    *out = (cd_replay_sim){.n = n,
                           .first = CD_NEWN(a, uint32_t, (size_t)n->n_op + 2),
                           .to = CD_NEWN(a, uint32_t, n_edge + 1),
                           .order = CD_NEWN(a, uint32_t, (size_t)n->n_op + 1),
                           .link = CD_NEWN(a, uint32_t, pairs + 1),
                           .tail = CD_NEWN(a, double, (size_t)n->n_op + 1)};
    if (!left || !out->first || !out->to || !out->order || !out->link || !out->tail)
        return CD_FAIL(err, ENOMEM, "network");
    memset(out->link, 0xff, pairs * sizeof *out->link);
    for (uint32_t k = n->n_link; k-- > 0;)
        out->link[(size_t)n->link[k].from * n->n_device + n->link[k].to] = k;
    turn_around(n, out);
    CD_TRY(sort(n, out, left, err));
    return check_links(out, err);
}

double cd_replay_copy_s(const cd_replay_sim *p, uint32_t op, uint32_t link) {
    const cd_replay_link *l = &p->n->link[link];
    return l->latency_s + (double)p->n->op[op].bytes / l->bytes_per_s;
}

double cd_replay_chains(cd_replay_sim *p, const double *seconds, double *end) {
    const cd_replay_net *n = p->n;
    double longest = 0;
    for (uint32_t i = n->n_op; i-- > 0;) {
        const uint32_t k = p->order[i];
        double behind = 0;
        for (uint32_t j = p->first[k]; j < p->first[k + 1]; j++)
            behind = fmax(behind, p->tail[p->to[j]]);
        p->tail[k] = seconds[k] + n->device[n->op[k].device].gap_s + behind;
    }
    for (uint32_t i = 0; i < n->n_op; i++) {
        const uint32_t k = p->order[i];
        const cd_replay_op *o = &n->op[k];
        double start = n->device[o->device].issue_s;
        for (uint32_t j = 0; j < o->n_after; j++) {
            const uint32_t from = n->after[o->first + j], d = n->op[from].device;
            const double copy =
                d == o->device
                    ? 0
                    : cd_replay_copy_s(p, from, p->link[(size_t)d * n->n_device + o->device]);
            start = fmax(start, end[from] + copy);
        }
        const double alone = seconds[k] + n->device[o->device].gap_s, runs = cd_replay_runs(o);
        end[k] = start + alone;
        /* the last one's turn */
        if (runs > 1) end[k] = fmax(end[k], runs * n->device[o->device].issue_s + alone / runs);
        longest = fmax(longest, end[k]);
    }
    return longest;
}

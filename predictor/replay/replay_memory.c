/* Results alive: on the device that made one from its start to the last reader's or copy's end, on
 * another from the copy's start to the last reader's end there; what nobody reads stays. */
#include <math.h>
#include <stdlib.h>

#include "predictor/replay/replay_internal.h"

typedef struct change {
    double t;
    uint32_t device;
    int64_t bytes; /* negative: set free */
} change;

static int by_time(const void *pa, const void *pb) {
    const change *a = pa, *b = pb;
    if (a->t != b->t) return a->t < b->t ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes); /* freed first */
}

/* End of the last reader of k's result on a device; negative: none there. */
static double last_reader(const cd_replay_sim *p, const cd_replay *r, uint32_t k, uint32_t device) {
    double end = -1;
    for (uint32_t j = p->first[k]; j < p->first[k + 1]; j++)
        if (p->n->op[p->to[j]].device == device) end = fmax(end, r->op[p->to[j]].end_s);
    return end;
}

/* Every result becomes two changes, at its start and at its end; sorted by time their running sum
 * is what is alive. At equal times what is freed comes first. */
cdmpp_status cd_replay_memory(const cd_replay_sim *p, cd_arena *scratch, cd_replay *out,
                              cdmpp_err *err) {
    const cd_replay_net *n = p->n;
    cd_arena_reset(scratch);
    out->peak = CD_NEWN(&out->arena, int64_t, (size_t)n->n_device + 1);
    double *until = CD_NEWN(scratch, double, (size_t)n->n_op + 1);
    change *c = CD_NEWN(scratch, change, 2 * ((size_t)n->n_op + out->n_copy) + 1);
    int64_t *now = CD_NEWN(scratch, int64_t, (size_t)n->n_device + 1);
    if (!out->peak || !until || !c || !now)
        return CD_FAIL(err, ENOMEM, "memory of %u operators", n->n_op);
    size_t m = 0;
    for (uint32_t k = 0; k < n->n_op; k++) until[k] = last_reader(p, out, k, n->op[k].device);
    for (uint32_t i = 0; i < out->n_copy; i++) {
        const cd_replay_copy *w = &out->copy[i];
        const uint32_t to = n->link[w->link].to;
        until[w->op] = fmax(until[w->op], w->end_s);
        c[m++] = (change){w->start_s, to, n->op[w->op].bytes};
        c[m++] = (change){last_reader(p, out, w->op, to), to, -n->op[w->op].bytes};
    }
    for (uint32_t k = 0; k < n->n_op; k++) {
        c[m++] = (change){out->op[k].start_s, n->op[k].device, n->op[k].bytes};
        if (until[k] >= 0) c[m++] = (change){until[k], n->op[k].device, -n->op[k].bytes};
    }
    qsort(c, m, sizeof *c, by_time);
    for (size_t i = 0; i < m; i++) {
        now[c[i].device] += c[i].bytes;
        if (now[c[i].device] > out->peak[c[i].device]) out->peak[c[i].device] = now[c[i].device];
    }
    return CDMPP_OK;
}

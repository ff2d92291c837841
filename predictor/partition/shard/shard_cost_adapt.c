/* Adapts the schedule of a whole operator to a partial sum. A partial sum ends at the reduction,
 * where the whole has more operators behind it.
 *
 *   whole  pad  conv  bias  relu  conv tiled, computed at relu; bias inlined
 *   part   pad  conv              TVM's rules tile such an operator with a cache of its own in
 *                                 front of it:
 *               conv.local  conv  conv.local takes what the whole did to conv, conv what it did to
 *                                 relu */
#include <string.h>

#include "predictor/partition/shard/shard_cost_internal.h"

enum { NONE = -1 };

typedef struct {
    const cd_record *r;
    int32_t *stage; /* (whole's n_op) stage of the part; NONE: it has none such */
    int32_t *at;    /* (r's n_step) where the step is now; NONE: left out */
    cd_record_step *step;
    uint32_t n;
    cd_arena *a;
    bool oom, lost;
} adapter;

/* The only operator of that name. */
static int32_t find(const cd_te_dag *d, const char *name) {
    int32_t at = NONE;
    for (uint32_t i = 0; i < d->n_op; i++) {
        if (strcmp(d->op[i].name, name) != 0) continue;
        if (at != NONE) return NONE;
        at = (int32_t)i;
    }
    return at;
}

/* Stages keep the numbers of operators only as long as no step adds one. */
static bool adds_stages(const cd_record *r) {
    for (uint32_t k = 0; k < r->n_step; k++)
        if (r->step[k].kind == CD_RECORD_STEP_CHW || r->step[k].kind == CD_RECORD_STEP_CHR ||
            r->step[k].kind == CD_RECORD_STEP_RF)
            return true;
    return false;
}

static int32_t stage_of(const adapter *k, int32_t stage, uint32_t n) {
    return stage >= 0 && (uint32_t)stage < n ? k->stage[stage] : NONE;
}

static int32_t source_of(adapter *k, int32_t step) {
    const int32_t to = step >= 0 && (uint32_t)step < k->r->n_step ? k->at[step] : NONE;
    k->lost |= to == NONE;
    return to;
}

static void sources(adapter *k, cd_record_step *s) {
    int32_t *list = cd_arena_alloc(k->a, s->n_list + 1, sizeof *list);
    if (!list) {
        k->oom = true;
        return;
    }
    for (uint32_t i = 0; i < s->n_list; i++) list[i] = source_of(k, s->list[i]);
    s->list = list;
}

static void take(adapter *k, uint32_t i, uint32_t n_op) {
    cd_record_step s = k->r->step[i];
    s.stage = stage_of(k, s.stage, n_op);
    if (s.kind == CD_RECORD_STEP_CA) s.i[0] = stage_of(k, s.i[0], n_op);
    k->at[i] = NONE;
    if (s.stage == NONE || (s.kind == CD_RECORD_STEP_CA && s.i[0] == NONE)) return;
    if (s.kind == CD_RECORD_STEP_FSP) s.i[1] = source_of(k, s.i[1]);
    if (s.kind == CD_RECORD_STEP_FFSP) sources(k, &s);
    k->at[i] = (int32_t)k->n;
    k->step[k->n++] = s;
}

/* Maps stages by name. False: not needed or not possible (the part's last operator must be one of
 * the whole's, and not its last). */
static bool map_stages(adapter *k, const cd_te_dag *whole, const cd_te_dag *part) {
    const int32_t last = (int32_t)part->n_op - 1, ends = find(whole, part->op[last].name),
                  end = (int32_t)whole->n_op - 1;
    if (ends == NONE || ends == end || adds_stages(k->r)) return false;
    for (int32_t i = 0; i < end; i++)
        k->stage[i] = find(whole, whole->op[i].name) == i ? find(part, whole->op[i].name) : NONE;
    k->stage[end] = last + 1;
    return true;
}

/* The new record begins with the cache write that makes conv.local; after it, the stage numbers of
 * map_stages hold. Steps of stages that the shard lacks are left out. If a kept step refers to one
 * that is left out (lost), the record cannot be adapted and stays as it is. */
cdmpp_status cd_shard_cost_adapt(const cd_te_dag *whole, const cd_te_dag *part, cd_arena *a,
                                 cd_record *r, cdmpp_err *err) {
    adapter k = {.r = r, .a = a};
    k.stage = CD_NEWN(a, int32_t, whole->n_op + 1);
    k.at = CD_NEWN(a, int32_t, r->n_step + 1);
    k.step = CD_NEWN(a, cd_record_step, r->n_step + 1);
    if (!k.stage || !k.at || !k.step) return CD_FAIL(err, ENOMEM, "schedule");
    if (!map_stages(&k, whole, part)) return CDMPP_OK;
    k.step[k.n++] = (cd_record_step){
        .kind = CD_RECORD_STEP_CHW, .stage = (int32_t)part->n_op - 1, .s = {"local", 5}};
    for (uint32_t i = 0; i < r->n_step; i++) take(&k, i, whole->n_op);
    if (k.oom) return CD_FAIL(err, ENOMEM, "schedule");
    if (k.lost) return CDMPP_OK;
    r->step = k.step;
    r->n_step = k.n;
    return CDMPP_OK;
}

/* randsched.h -- random schedules of small tasks, step by step: a step that the
 * schedule refuses is dropped. */
#ifndef RANDSCHED_H
#define RANDSCHED_H
#include "base/core/core.h"
#include "features/schedule/schedule.h"

#define RS_MAX 24

typedef struct {
    cd_schedule s;
    cd_ast t;
    const cd_te_dag *dag;
    cd_arena a; /* lists of steps */
    cd_record_step step[RS_MAX];
    uint32_t n;
    uint64_t rng;
    bool threads; /* bind thread axes too */
} randsched;

static inline uint32_t rs_below(randsched *r, uint32_t n) {
    r->rng = r->rng * 6364136223846793005u + 1442695040888963407u;
    return n ? (uint32_t)(r->rng >> 33) % n : 0;
}

static inline cd_record rs_record(const randsched *r) {
    static const double cost[1] = {0.5};
    return (cd_record){.workload_key = {"t", 1},
                       .target = {"llvm", 4},
                       .step = r->step,
                       .n_step = r->n,
                       .n_cost = 1,
                       .cost_s = cost,
                       .version = {"v0.6", 4},
                       .has_hardware = true,
                       .has_host = true,
                       .has_layout = true,
                       .has_inputs = true};
}

/* Replay the steps; up to the nest when `whole`. */
static inline cdmpp_status rs_replay(randsched *r, bool whole, cdmpp_err *err) {
    const cd_record rec = rs_record(r);
    cd_schedule_start(&r->s, r->dag);
    cdmpp_status st = cd_schedule_apply(&r->s, &rec, err);
    if (!whole || st) return st;
    if ((st = cd_schedule_normalize(&r->s, err)) || (st = cd_schedule_infer_bound(&r->s, err)))
        return st;
    return cd_schedule_lower(&r->s, &r->t, err);
}

static inline void rs_list(randsched *r, cd_record_step *t, uint32_t n, uint32_t from,
                           uint32_t below) {
    int32_t *p = cd_arena_alloc(&r->a, n, sizeof *p);
    for (uint32_t k = 0; k < n; k++) p[k] = (int32_t)(from + rs_below(r, below));
    t->list = p;
    t->n_list = n;
}

static inline void rs_shuffle(randsched *r, cd_record_step *t, uint32_t n) {
    int32_t *p = cd_arena_alloc(&r->a, n, sizeof *p);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t j = rs_below(r, k + 1);
        p[k] = p[j];
        p[j] = (int32_t)k;
    }
    t->list = p;
    t->n_list = n;
}

static inline void rs_run(randsched *r, cd_record_step *t, uint32_t from, uint32_t n) {
    int32_t *p = cd_arena_alloc(&r->a, n, sizeof *p);
    for (uint32_t k = 0; k < n; k++) p[k] = (int32_t)(from + k);
    t->list = p;
    t->n_list = n;
}

static inline cd_record_step rs_propose(randsched *r) {
    static const cd_record_step_kind mix[] = {
        CD_RECORD_STEP_SP,  CD_RECORD_STEP_SP, CD_RECORD_STEP_SP,  CD_RECORD_STEP_SP,
        CD_RECORD_STEP_RE,  CD_RECORD_STEP_RE, CD_RECORD_STEP_FU,  CD_RECORD_STEP_FU,
        CD_RECORD_STEP_AN,  CD_RECORD_STEP_AN, CD_RECORD_STEP_CA,  CD_RECORD_STEP_CA,
        CD_RECORD_STEP_CA,  CD_RECORD_STEP_CI, CD_RECORD_STEP_CR,  CD_RECORD_STEP_CHR,
        CD_RECORD_STEP_CHW, CD_RECORD_STEP_RF, CD_RECORD_STEP_FSP, CD_RECORD_STEP_FFSP,
        CD_RECORD_STEP_PR,  CD_RECORD_STEP_SA};
    const cd_schedule *s = &r->s;
    cd_record_step t = {.kind = mix[rs_below(r, sizeof mix / sizeof *mix)],
                        .stage = (int32_t)rs_below(r, s->order.n)};
    const uint32_t n = s->stage[s->order.p[t.stage]].axes.n, it = rs_below(r, n);
    t.i[0] = (int32_t)it;
    switch (t.kind) {
    case CD_RECORD_STEP_SP:
        rs_list(r, &t, 1 + rs_below(r, 2), 1, 5);
        t.i[2] = rs_below(r, 3) != 0;
        break;
    case CD_RECORD_STEP_RE: rs_shuffle(r, &t, n); break;
    case CD_RECORD_STEP_FU: rs_run(r, &t, it, n ? 1 + rs_below(r, 3) : 0); break;
    case CD_RECORD_STEP_AN: t.i[1] = (int32_t)(1 + rs_below(r, r->threads ? 10 : 3)); break;
    case CD_RECORD_STEP_CA:
        t.i[0] = (int32_t)rs_below(r, s->order.n);
        t.i[1] = (int32_t)rs_below(r, s->stage[s->order.p[t.i[0]]].axes.n);
        break;
    case CD_RECORD_STEP_CHR: rs_list(r, &t, 1 + rs_below(r, 2), 0, s->order.n); break;
    case CD_RECORD_STEP_RF: t.i[1] = (int32_t)rs_below(r, 4); break;
    case CD_RECORD_STEP_FSP:
        t.i[1] = (int32_t)rs_below(r, r->n);
        t.i[2] = (int32_t)(1 + rs_below(r, 3));
        break;
    case CD_RECORD_STEP_FFSP:
        rs_list(r, &t, 1, 0, r->n);
        t.i[1] = (int32_t)rs_below(r, 2);
        t.i[2] = (int32_t)rs_below(r, 2);
        break;
    default: break;
    }
    /* narrower ones forget the threads outside */
    const char *text = t.kind == CD_RECORD_STEP_PR ? "auto_unroll_max_step$16" : "global";
    t.s = (cd_str){text, strlen(text)};
    return t;
}

/* Up to `want` steps that are accepted, of at most 4 * want tried. The nest is in r->t. */
static inline cdmpp_status rs_make(randsched *r, const cd_te_dag *dag, uint32_t want,
                                   cdmpp_err *err) {
    r->dag = dag;
    r->n = 0;
    cd_arena_reset(&r->a);
    for (uint32_t tries = 0; tries < 4 * want && r->n < want && r->n < RS_MAX; tries++) {
        const cdmpp_status st = rs_replay(r, false, err);
        if (st) return st;
        r->step[r->n++] = rs_propose(r);
        if (rs_replay(r, true, err)) r->n--;
    }
    return rs_replay(r, true, err);
}
#endif

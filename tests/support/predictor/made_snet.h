/* made_snet.h -- drawn networks of tiny operators on drawn machines, with invented times, for plans
 * of splits.
 *
 *   tensors are (6, 4); conv: 3 rows with a halo and a relu; dense; add of two; flip of rows; flat:
 *   the same elements as (24) */
#ifndef MADE_SNET_H
#define MADE_SNET_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "features/task/task.h"
#include "predictor/partition/shard/shard_plan.h"

enum { MS_CONV, MS_DENSE, MS_ADD, MS_FLIP, MS_FLAT, MS_KINDS, MS_H = 6, MS_C = 4 };

#define MS_OPS_TEXT(H, HP, C)                                                                      \
    "{\"workload_key\": \"[\\\"conv\\\"]\", \"target\": \"llvm\", \"args\": [\"X\", \"W\", "       \
    "\"R\"], \"ops\": [{\"name\": \"X\", \"shape\": [" H ", " C "], \"dtype\": \"float32\"}, "     \
    "{\"name\": \"W\", \"shape\": [3, " C ", " C "], \"dtype\": \"float32\"}, "                    \
    "{\"name\": \"P\", \"axis\": [[\"h\", 0, " HP "], [\"c\", 0, " C                               \
    "]], \"body\": \"if_then_else(h >= 1 && h < " H " + 1, X[h - 1, c], 0.0)\"}, "                 \
    "{\"name\": \"Y\", \"axis\": [[\"h\", 0, " H "], [\"o\", 0, " C                                \
    "]], \"reduce_axis\": [[\"r\", 0, 3], [\"i\", 0, " C "]], \"reduce\": \"sum\", "               \
    "\"body\": \"P[h + r, i]*W[r, i, o]\"}, {\"name\": \"R\", \"axis\": [[\"h\", 0, " H            \
    "], [\"o\", 0, " C "]], \"body\": \"max(Y[h, o], 0.0)\"}]}, "                                  \
    "{\"workload_key\": \"[\\\"dense\\\"]\", \"target\": \"llvm\", \"args\": [\"X\", \"W\", "      \
    "\"Y\"], \"ops\": [{\"name\": \"X\", \"shape\": [" H ", " C "], \"dtype\": \"float32\"}, "     \
    "{\"name\": \"W\", \"shape\": [" C ", " C                                                      \
    "], \"dtype\": \"float32\"}, {\"name\": \"Y\", \"axis\": [[\"m\", 0, " H "], [\"n\", 0, " C    \
    "]], "                                                                                         \
    "\"reduce_axis\": [[\"k\", 0, " C                                                              \
    "]], \"reduce\": \"sum\", \"body\": \"X[m, k]*W[k, n]\"}]}, "                                  \
    "{\"workload_key\": \"[\\\"add\\\"]\", \"target\": \"llvm\", \"args\": [\"X\", \"Z\", "        \
    "\"Y\"], \"ops\": [{\"name\": \"X\", \"shape\": [" H ", " C "], \"dtype\": \"float32\"}, "     \
    "{\"name\": \"Z\", \"shape\": [" H ", " C                                                      \
    "], \"dtype\": \"float32\"}, {\"name\": \"Y\", \"axis\": [[\"m\", 0, " H "], [\"n\", 0, " C    \
    "]], "                                                                                         \
    "\"body\": \"X[m, n] + Z[m, n]\"}]}, "                                                         \
    "{\"workload_key\": \"[\\\"flip\\\"]\", \"target\": \"llvm\", \"args\": [\"X\", \"Y\"], "      \
    "\"ops\": [{\"name\": \"X\", \"shape\": [" H ", " C "], \"dtype\": \"float32\"}, "             \
    "{\"name\": \"Y\", \"axis\": [[\"m\", 0, " H "], [\"n\", 0, " C "]], \"body\": \"X[" H         \
    " - 1 - m, n]\"}]}"

typedef struct {
    cd_task_registry *tasks;
    const cd_te_dag *dag[MS_KINDS];
} ms_kinds;

typedef struct {
    /* seconds; stairs of so many operations; from there on twice as steep */
    double fixed, per_flop, step, knee;
} ms_speed;

enum { MS_OPS = 16, MS_TENSORS = 64 };
typedef struct {
    cd_shard_net net;
    cd_machine machine;
    cd_shard_net_tensor tensor[MS_TENSORS];
    cd_shard_net_op op[MS_OPS];
    uint32_t arg[MS_OPS][3];
    char name[MS_OPS][16];
    ms_speed speed[CD_MACHINE_DEVICES];
    bool nan, infinite;   /* what the callback says of operator 1 on device 1 */
    unsigned asked, told; /* told: questions that were announced */
    uint64_t seed, at;
} ms_net;

static const int64_t ms_shape[] = {MS_H, MS_C}, ms_w3[] = {3, MS_C, MS_C}, ms_w2[] = {MS_C, MS_C};

static inline cdmpp_status ms_load(ms_kinds *k, cdmpp_err *err) {
    static const char text[] =
        "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [" MS_OPS_TEXT(
            "6", "8",
            "4") ", "
                 "{\"workload_key\": \"[\\\"flat\\\"]\", \"target\": \"llvm\", \"args\": [\"X\", "
                 "\"Y\"], \"ops\": [{\"name\": \"X\", \"shape\": [24], \"dtype\": \"float32\"}, "
                 "{\"name\": \"Y\", \"axis\": [[\"i\", 0, 24]], \"body\": \"X[i]*2.0\"}]}]}";
    static const char *const key[] = {"[\"conv\"]", "[\"dense\"]", "[\"add\"]", "[\"flip\"]",
                                      "[\"flat\"]"};
    CD_TRY(cd_task_registry_new(&k->tasks, err));
    CD_TRY(cd_task_registry_load_text(k->tasks, "made", text, strlen(text), err));
    for (int i = 0; i < MS_KINDS; i++) {
        const cd_task *t = cd_task_registry_find(k->tasks, (cd_str){key[i], strlen(key[i])});
        if (!t || !t->dag)
            return CD_FAIL(err, ENOTASK, "%s: %s", key[i], t && t->why ? t->why->msg : "not there");
        k->dag[i] = t->dag;
    }
    return CDMPP_OK;
}

static inline double ms_unit(ms_net *m) { return cd_rng_unit(m->seed, m->at++); }
static inline uint32_t ms_below(ms_net *m, uint32_t n) { return (uint32_t)(ms_unit(m) * n); }

static inline double ms_seconds(const ms_speed *v, double flop) {
    const double work = v->step > 0 ? ceil(flop / v->step) * v->step : flop;
    return v->fixed + v->per_flop * (v->knee > 0 && work > v->knee ? 2 * work - v->knee : work);
}

static inline cdmpp_status ms_time(void *ctx, uint32_t op, uint32_t device, const cd_te_shard *part,
                                   cd_shard_plan_estimate *out, cdmpp_err *err) {
    ms_net *m = ctx;
    (void)err;
    m->asked++;
    const cd_te_dag *dag = part ? part->dag : m->op[op].dag;
    *out = (cd_shard_plan_estimate){ms_seconds(&m->speed[device], dag ? dag->flop : 100),
                                    0.5 + 0.1 * device};
    if (m->nan && op == 1 && device == 1) out->seconds = (double)NAN;
    if (m->infinite && device == 1) out->seconds = (double)INFINITY;
    return CDMPP_OK;
}

static inline uint32_t ms_tensor(ms_net *m, uint32_t rank, const int64_t *shape, uint32_t from,
                                 bool constant) {
    m->tensor[m->net.n_tensor] = (cd_shard_net_tensor){"t", rank, shape, 4, from, constant, false};
    return m->net.n_tensor++;
}

/* One more operator of a kind that reads tensors x and y; gives its result. */
static inline uint32_t ms_op(ms_net *m, const ms_kinds *k, int kind, uint32_t x, uint32_t y) {
    static const char *const key[] = {"[\"conv\"]", "[\"dense\"]", "[\"add\"]", "[\"flip\"]",
                                      "[\"flat\"]"};
    static const char *const type[] = {"Conv+Relu", "Gemm", "Add", "Flip", "Mul"};
    const uint32_t i = m->net.n_op++;
    uint32_t *arg = m->arg[i], n = 0;
    snprintf(m->name[i], sizeof m->name[i], "op%u", i);
    arg[n++] = x;
    if (kind == MS_CONV) arg[n++] = ms_tensor(m, 3, ms_w3, CD_SHARD_NET_OUTSIDE, true);
    if (kind == MS_DENSE) arg[n++] = ms_tensor(m, 2, ms_w2, CD_SHARD_NET_OUTSIDE, true);
    if (kind == MS_ADD) arg[n++] = y;
    arg[n] = ms_tensor(m, 2, ms_shape, i, false);
    m->op[i] = (cd_shard_net_op){m->name[i], type[kind], key[kind],  k->dag[kind], NULL,
                                 n + 1,      arg,        UINT32_MAX, NULL,         0};
    return arg[n];
}

static inline void ms_begin(ms_net *m, uint64_t seed) {
    memset(m, 0, sizeof *m);
    m->seed = seed;
    m->net = (cd_shard_net){"made", 1, 0, 0, m->tensor, m->op};
    cd_machine_init(&m->machine);
}

/* n devices; memory[d] NULL: all in one. Links between all of different memories. */
static inline cdmpp_status ms_machine(ms_net *m, uint32_t n, const uint32_t *memory,
                                      double latency_s, double s_per_byte, cdmpp_err *err) {
    for (uint32_t d = 0; d < n; d++) {
        char name[16];
        snprintf(name, sizeof name, "d%u", d);
        const cd_machine_device v = {.name = name,
                                     .kind = "model",
                                     .core = -1,
                                     .memory = memory ? memory[d] : 0,
                                     .times = 1,
                                     .scale = 1,
                                     .launch_s = 1e-6,
                                     .sync_s = 2e-6};
        CD_TRY(cd_machine_add(&m->machine, &v, err));
        m->speed[d] = (ms_speed){0, 1e-6, 0, 0};
    }
    for (uint32_t d = 0; d < n; d++)
        for (uint32_t e = 0; e < n; e++) {
            if (d == e || !memory || memory[d] == memory[e]) continue;
            const cd_link_piece p = {0, latency_s, s_per_byte};
            CD_TRY(cd_link_table_add(&m->machine.links,
                                     &(cd_link){m->machine.device[d].name,
                                                m->machine.device[e].name, "copy", 1, 3, &p, 0},
                                     err));
        }
    return CDMPP_OK;
}

/* Each operator reads some of those before it; what nobody reads is a result. */
static inline void ms_draw(ms_net *m, const ms_kinds *k, uint32_t n) {
    uint32_t made[MS_OPS + 1], read[MS_TENSORS] = {0};
    made[0] = ms_tensor(m, 2, ms_shape, CD_SHARD_NET_OUTSIDE, false);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t near = made[ms_unit(m) < 0.7 ? i : ms_below(m, i + 1)],
                       far = made[ms_below(m, i + 1)];
        made[i + 1] = ms_op(m, k, (int)ms_below(m, MS_KINDS), near, far);
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t a = 0; a + 1 < m->op[i].n_arg; a++) read[m->arg[i][a]]++;
    for (uint32_t i = 1; i <= n; i++)
        m->tensor[made[i]].result = !read[made[i]] || ms_unit(m) < 0.1;
}

static inline void ms_speeds(ms_net *m) {
    for (uint32_t d = 0; d < m->machine.n; d++)
        m->speed[d] = (ms_speed){ms_unit(m) * 5e-6, (0.3 + ms_unit(m)) * 1e-6,
                                 ms_unit(m) < 0.3 ? 40 : 0, ms_unit(m) < 0.3 ? 150 : 0};
}

static inline cdmpp_status ms_prepare(void *ctx, const cd_shard_plan_query *w, size_t n,
                                      cdmpp_err *err) {
    ms_net *m = ctx;
    for (size_t i = 0; i < n; i++)
        if (w[i].op >= m->net.n_op || w[i].device >= m->machine.n || (w[i].part && !w[i].part->dag))
            return CD_FAIL(err, EINVALID, "a question that is none");
    m->told += (unsigned)n;
    return CDMPP_OK;
}

static inline cd_shard_plan_options ms_ask(ms_net *m) {
    return (cd_shard_plan_options){.net = &m->net,
                                   .machine = &m->machine,
                                   .time = ms_time,
                                   .ctx = m,
                                   .granules = 4,
                                   .margin = 0,
                                   .least_s = 0,
                                   .cover = 1,
                                   .fixed_share = 0.5,
                                   .dims = NULL,
                                   .split = true};
}

static inline void ms_free(ms_net *m) { cd_machine_free(&m->machine); }

/* A replay of the plan, where nobody waits without need, is no longer than the plan. */
static inline void ms_check_replay(const ms_net *m, const cd_shard_plan *p) {
    cdmpp_err err;
    cd_arena a = {0};
    cd_replay_net n;
    cd_replay r;
    assert_ok(cd_shard_plan_replay(p, &m->net, &m->machine, &a, &n, &err));
    assert_ok(cd_replay_run(&n, &r, &err));
    assert_true(r.makespan_s <= p->predicted_s * (1 + 1e-12));
    assert_true(r.makespan_s >= r.chain_s * (1 - 1e-12));
    cd_replay_free(&r);
    cd_arena_free(&a);
}
#endif

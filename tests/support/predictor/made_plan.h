/* made_plan.h -- small networks and plans by hand, for tests that run them. */
#ifndef MADE_PLAN_H
#define MADE_PLAN_H
#include <math.h>
#include <unistd.h>

#include "made_net.h"
#include "predictor/partition/run/plan_run.h"
#include "profiler/host/host.h"
#include "tmp.h"

typedef struct mp {
    cd_network_loaded loaded;
    cd_arena arena;
    cd_shard_net net;
    cd_machine machine;
} mp;

/* Takes the graph. */
static inline mp mp_new(mg *m) {
    cdmpp_err err = {0};
    mp p = {0};
    const cdmpp_status st = cd_network_load(
        &(cd_network_load_options){.network = "made", .graph = m->g, .target = "llvm -num-cores=1"},
        &p.loaded, &err);
    if (st) fail_msg("%s %s", err.key, err.msg);
    assert_ok(cd_plan_run_shard_net(&p.loaded, &p.arena, &p.net, &err));
    cd_machine_init(&p.machine);
    return p;
}

static inline void mp_free(mp *p) {
    cd_machine_free(&p->machine);
    cd_arena_free(&p->arena);
    cd_network_load_free(&p->loaded);
}

/* A core of this machine; all there are, again and again. */
static inline int mp_core(uint32_t k) {
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 1 ? (int)(k % (uint32_t)n) : -1;
}

static inline void mp_device(mp *p, const char *name, const char *kind, uint32_t memory) {
    cdmpp_err err = {0};
    const bool cpu = !strcmp(kind, "cpu") || !strcmp(kind, "model");
    const cd_machine_device d = {.name = name,
                                 .kind = kind,
                                 .opencl = cpu              ? NULL
                                           : mp_core(1) < 0 ? "pocl:0"
                                                            : "pocl:0/2.1",
                                 .core = cpu ? mp_core(p->machine.n) : -1,
                                 .memory = memory,
                                 .times = 1,
                                 .scale = 1};
    assert_ok(cd_machine_add(&p->machine, &d, &err));
}

/* All on device 0. */
static inline cd_shard_plan *mp_plan(const mp *p) {
    cd_shard_plan *q = cd_mem_zalloc(1, sizeof *q);
    assert_non_null(q);
    cd_arena *a = &q->arena;
    q->network = p->net.name;
    q->n_device = p->machine.n;
    q->n_op = p->net.n_op;
    q->device = CD_NEWN(a, const char *, q->n_device);
    q->op = CD_NEWN(a, cd_shard_plan_op, q->n_op + 1);
    for (uint32_t d = 0; d < q->n_device; d++) q->device[d] = p->machine.device[d].name;
    for (uint32_t k = 0; k < q->n_op; k++) {
        cd_shard_plan_part *part = CD_NEW(a, cd_shard_plan_part);
        part->seconds = 1e-5;
        q->op[k] = (cd_shard_plan_op){.name = p->net.op[k].name,
                                      .type = p->net.op[k].type,
                                      .key = p->net.op[k].key,
                                      .dim = "",
                                      .n_part = 1,
                                      .part = part,
                                      .join = UINT32_MAX};
    }
    return q;
}

static inline void mp_place(cd_shard_plan *q, uint32_t op, uint32_t device) {
    ((cd_shard_plan_part *)(uintptr_t)q->op[op].part)->device = device;
}

static inline uint32_t mp_ways(const mp *p, uint32_t op, cd_arena *a, cd_te_shard_axis **w) {
    cdmpp_err err = {0};
    uint32_t n;
    assert_ok(cd_te_shard_axes(p->net.op[op].dag, a, w, &n, &err));
    return n;
}

/* Cut at n - 1 places, part i on device i, the join on `join`. */
static inline void mp_cut(cd_shard_plan *q, uint32_t op, const cd_te_shard_axis *w, uint32_t n,
                          const int64_t *at, uint32_t join) {
    cd_shard_plan_op *o = &q->op[op];
    cd_shard_plan_part *part = CD_NEWN(&q->arena, cd_shard_plan_part, n);
    for (uint32_t i = 0; i < n; i++)
        part[i] = (cd_shard_plan_part){.device = i,
                                       .lo = i ? at[i - 1] : 0,
                                       .hi = i + 1 < n ? at[i] : w->extent,
                                       .seconds = 1e-5};
    o->part = part;
    o->n_part = n;
    o->dim = w->name;
    o->reduce = w->reduce;
    o->way_op = w->op;
    o->axis = w->axis;
    o->join = w->reduce ? join : UINT32_MAX;
}

/* Every operator over its way number `turn` (of those it has), at about `share` of it: two or more
 * devices. */
static inline uint32_t mp_cut_all(const mp *p, cd_shard_plan *q, uint32_t turn, double share,
                                  uint32_t n) {
    cd_arena a = {0};
    uint32_t cut = 0;
    for (uint32_t k = 0; k < q->n_op; k++) {
        cd_te_shard_axis *w;
        const uint32_t ways = mp_ways(p, k, &a, &w);
        if (!ways) {
            mp_place(q, k, (k + turn) % n);
            continue;
        }
        const cd_te_shard_axis *x = &w[(turn + k) % ways];
        int64_t at[8], first = (int64_t)(share * (double)x->extent);
        uint32_t m = n;
        if (x->extent < (int64_t)m) m = (uint32_t)x->extent;
        first = first < 1                            ? 1
                : first > x->extent - (int64_t)m + 1 ? x->extent - (int64_t)m + 1
                                                     : first;
        for (uint32_t i = 0; i + 1 < m; i++)
            at[i] = first + (int64_t)i * ((x->extent - first) / (int64_t)(m - 1));
        mp_cut(
            q, k,
            &(cd_te_shard_axis){.name = cd_str_dup(&q->arena, (cd_str){x->name, strlen(x->name)}),
                                .reduce = x->reduce,
                                .op = x->op,
                                .axis = x->axis,
                                .extent = x->extent},
            m, at, turn % m);
        cut++;
    }
    cd_arena_free(&a);
    return cut;
}
/* ---- a measurer that keeps its objects ---- */
static cd_measure *measure;
static tmp_dir folder;

static inline int up(void **state) {
    (void)state;
    cdmpp_err err = {0};
    folder = tmp_make();
    const cd_measure_options o = {.threads = 1,
                                  .jobs = 2,
                                  .cache = folder.path,
                                  .flags = "-O1",
                                  .timing = {.budget_s = 0.005}};
    return cd_measure_open(&o, &measure, &err) != CDMPP_OK;
}

static inline int down(void **state) {
    (void)state;
    cd_measure_close(measure);
    tmp_remove(&folder);
    return 0;
}

/* A test that names processor 0 cannot run where the system does not allow that one. */
static inline void mp_needs_processor_0(void) {
    cd_affinity a;
    cd_affinity_get(&a);
    if (!(a.mask[0] & 1)) skip();
}

/* A plan for two processors cannot be opened where there is one. */
static inline void mp_refused(const cdmpp_err *err) {
    if (cd_affinity_count() < 2) skip();
    fail_msg("%s %s", err->key, err->msg);
}

/* Open with a check, or fail. */
static inline cd_plan_run *mp_open(const mp *p, const cd_shard_plan *q) {
    cdmpp_err err = {0};
    cd_plan_run *r = NULL;
    const cd_plan_run_options a = {.loaded = &p->loaded,
                                   .net = &p->net,
                                   .machine = &p->machine,
                                   .plan = q,
                                   .measure = measure,
                                   .check = true};
    if (cd_plan_run_open(&a, &r, &err)) mp_refused(&err);
    return r;
}

/* A few passes; the largest error. */
static inline double mp_error(cd_plan_run *r, cd_plan_run_result *out) {
    cdmpp_err err = {0};
    cd_plan_run_result mine;
    if (cd_plan_run_passes(r, 0.002, &mine, &err)) fail_msg("%s %s", err.key, err.msg);
    const double e = mine.max_error;
    if (out) *out = mine;
    else cd_plan_run_result_free(&mine);
    return e;
}

static inline double mp_try(const mp *p, const cd_shard_plan *q) {
    cd_plan_run *r = mp_open(p, q);
    const double e = mp_error(r, NULL);
    cd_plan_run_close(r);
    return e;
}
#endif

/* The steps of a partition in their order, and the rules between options. A step that was not asked
 * for is left out; nothing is measured before all is planned, so that an error in the request costs
 * no time of the machine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "base/text/text.h"
#include "features/sketch/sketch.h"
#include "predictor/partition/plan/partition_internal.h"
#include "profiler/machine/machine.h"

/* What others leave of this machine's processors before a run. Shares for devices that are alike
 * are wrong where others use one of them. */

static bool on_processor(const cd_machine_device *d) {
    return d->core >= 0 && (!strcmp(d->kind, "cpu") || !strcmp(d->kind, "native"));
}

/* A processor that two devices have is there once: two looks at it would disturb each other. */
unsigned cd_partition_cores(const cd_partition *p, int core[CD_MACHINE_DEVICES]) {
    unsigned n = 0;
    for (uint32_t d = 0; d < p->machine.n; d++) {
        const cd_machine_device *v = &p->machine.device[d];
        unsigned k = 0;
        while (k < n && core[k] != v->core) k++;
        if (on_processor(v) && k == n) core[n++] = v->core;
    }
    return n;
}

unsigned cd_partition_counted(const cd_partition *p, int core[CD_MACHINE_DEVICES]) {
    for (uint32_t d = 0; d < p->machine.n; d++)
        if (!on_processor(&p->machine.device[d])) return 0;
    return cd_partition_cores(p, core);
}

/* Programs take longer by the share that is left. What waiting takes is left as it is: a thread
 * that slept has its turn soon. */
void cd_partition_count_left(cd_partition *p) {
    const bool counts = !p->o->plan && !p->o->ignore_load;
    for (uint32_t d = 0; d < p->machine.n; d++) {
        cd_machine_device *v = &p->machine.device[d];
        p->source[d].left = p->left[d];
        if (!(p->left[d] < CD_HOST_LOAD_IDLE) || !(p->left[d] > 0)) continue;
        if (counts) v->scale /= p->left[d];
        cd_log_put(p->o->log, CD_LOG_WARNING,
                   "others use the processor of %s: %.0f %% of it is left%s", v->name,
                   100 * p->left[d], counts ? ", and the plan counts with that" : "");
    }
}

void cd_partition_look(cd_partition *p) {
    int core[CD_MACHINE_DEVICES];
    double share[CD_MACHINE_DEVICES];
    if (!p->o->run) return;
    const unsigned n = cd_partition_cores(p, core);
    (void)cd_host_load_probe(core, n, CD_HOST_LOAD_LOOK_S, share);
    for (uint32_t d = 0; d < p->machine.n; d++) {
        const cd_machine_device *v = &p->machine.device[d];
        p->left[d] = 1;
        for (unsigned k = 0; k < n && on_processor(v); k++)
            if (core[k] == v->core) p->left[d] = share[k];
    }
    cd_partition_count_left(p);
}

/* What a run says of the plan: which candidate measured best and is kept, whether others disturbed
 * the measurement, and both in the verdict. */

bool cd_partition_disturbed(const cd_partition *p) {
    return p->run.done && p->run.others > CD_HOST_LOAD_LIMIT;
}

bool cd_partition_ran_another(const cd_partition *p) {
    return p->run.done && p->run.now.replans > 0;
}

/* What is nearer than medians are known to is no difference. */
uint32_t cd_partition_best_measured(const cd_partition *p) {
    uint32_t best = UINT32_MAX;
    double least = (1 - CD_PLAN_RUN_KNOWN) * p->plan->measured_s;
    for (uint32_t k = 0; k < p->n_base; k++)
        if (p->base[k] && p->plan->base[k].measured_s < least)
            least = p->plan->base[k].measured_s, best = k;
    return best;
}

/* One more row behind the plan's baselines. Names are copied: each plan has its own memory. */
static cdmpp_status rows(const cd_shard_plan *was, cd_shard_plan *out, cdmpp_err *err) {
    cd_shard_plan_baseline *b =
        CD_NEWN(&out->arena, cd_shard_plan_baseline, (size_t)was->n_base + 1);
    if (!b) return CD_FAIL(err, ENOMEM, "baselines");
    for (uint32_t k = 0; k <= was->n_base; k++) {
        if (k < was->n_base) b[k] = was->base[k];
        else b[k] = (cd_shard_plan_baseline){"as predicted", was->predicted_s, was->measured_s};
        b[k].name = cd_str_dup(&out->arena, (cd_str){b[k].name, strlen(b[k].name)});
        if (!b[k].name) return CD_FAIL(err, ENOMEM, "baselines");
    }
    out->base = b;
    out->n_base = was->n_base + 1;
    return CDMPP_OK;
}

cdmpp_status cd_partition_keep(cd_partition *p, uint32_t k, cdmpp_err *err) {
    cd_shard_plan *was = p->plan, *best = p->base[k];
    cd_shard_plan **base =
        cd_mem_realloc(p->base, p->n_base * sizeof *base, ((size_t)p->n_base + 1) * sizeof *base);
    if (!base) return CD_FAIL(err, ENOMEM, "baselines");
    p->base = base;
    CD_TRY(rows(was, best, err));
    base[k] = NULL; /* the plan itself, from here on */
    base[p->n_base++] = was;
    p->plan = best;
    p->run.kept = best->base[k].name;
    best->measured_s = best->base[k].measured_s;
    best->measured_gain = cd_partition_alone_s(p, true) / best->measured_s;
    return CDMPP_OK;
}

static void put_kept(const cd_partition *p, const cd_shard_plan *was, cd_buf *b) {
    cd_buf_putf(b, "kept %s, which measured best: ", p->run.kept);
    cd_units_put_seconds(b, p->plan->measured_s);
    cd_buf_puts(b, " against ");
    cd_units_put_seconds(b, was->measured_s);
    cd_buf_putf(b, " of the plan as predicted (%s)", was->verdict);
}

cdmpp_status cd_partition_verdict(cd_partition *p, cdmpp_err *err) {
    cd_buf b = {0};
    p->plan->others = p->run.others;
    if (p->run.kept) put_kept(p, p->base[p->n_base - 1], &b);
    else cd_buf_puts(&b, p->plan->verdict ? p->plan->verdict : "");
    if (cd_partition_disturbed(p))
        cd_buf_putf(
            &b, "; the measurement was disturbed: others used %.0f %% of the processors meanwhile",
            100 * p->run.others);
    p->plan->verdict = b.oom ? NULL : cd_str_dup(&p->plan->arena, (cd_str){b.p ? b.p : "", b.n});
    cd_buf_free(&b);
    return p->plan->verdict ? CDMPP_OK : CD_FAIL(err, ENOMEM, "a verdict");
}

/* The plan and its baselines measured on this machine: in turns, so that a change of the machine's
 * speed meets all of them; values compared with the unsplit network's; devices slowed or broken on
 * purpose, to show that the plan is made again and the result stays right. */

enum { MAX_SLOW = 1000000 };
#define NONE UINT32_MAX

/* ---- --inject ---- */
/* "slow:ocl0=3": the device and its factor; "break:ocl0": factor 0. */
static cdmpp_status injected(const char *text, char *name, size_t n, unsigned *times,
                             cdmpp_err *err) {
    const char *at = strchr(text, ':'), *eq = strchr(text, '=');
    const bool slow = !strncmp(text, "slow:", 5), broken = !strncmp(text, "break:", 6);
    char *end = NULL;
    *times = 0;
    if ((!slow && !broken) || (slow && !eq) || (broken && eq))
        return CD_FAIL(err, EUSAGE,
                       "--inject: expected slow:DEVICE=N or break:DEVICE, found '%.60s'", text);
    const long v = slow ? strtol(eq + 1, &end, 10) : 0;
    if (slow && (end == eq + 1 || *end || v < 1 || v > MAX_SLOW))
        return CD_FAIL(err, EUSAGE, "--inject: expected a number in 1..%d, found '%.40s'", MAX_SLOW,
                       eq + 1);
    const size_t len = slow ? (size_t)(eq - at - 1) : strlen(at + 1);
    if (!len || len >= n)
        return CD_FAIL(err, EUSAGE, "--inject: expected the name of a device in '%.60s'", text);
    memcpy(name, at + 1, len);
    name[len] = 0;
    *times = (unsigned)v;
    return CDMPP_OK;
}

/* options.inject: whether each can be read; then what it asks for. */
static cdmpp_status partition_check_inject(const cd_texts *inject, cdmpp_err *err) {
    char name[64];
    unsigned times;
    for (size_t k = 0; k < inject->n; k++)
        CD_TRY(injected(inject->v[k], name, sizeof name, &times, err));
    return CDMPP_OK;
}

static cdmpp_status inject(cd_partition *p, cd_plan_run *r, cdmpp_err *err) {
    char name[64];
    unsigned times;
    for (size_t k = 0; k < p->o->inject.n; k++) {
        CD_TRY(injected(p->o->inject.v[k], name, sizeof name, &times, err));
        const uint32_t d = cd_machine_find(&p->machine, name);
        if (d == UINT32_MAX) return CD_FAIL(err, EUSAGE, "--inject: no device '%.60s'", name);
        if (times) cd_plan_run_slow(r, d, times);
        else cd_plan_run_break(r, d, 0);
    }
    return CDMPP_OK;
}

/* ---- runs ---- */
cdmpp_status cd_partition_measure_open(cd_partition *p, cdmpp_err *err) {
    const cd_measure_options m = {.jobs = p->o->jobs, .pin = true, .stop = p->o->stop};
    if (!p->o->run) return CDMPP_OK;
    cd_machine_measure_pin();
    return cd_measure_open(&m, &p->measure, err);
}

typedef struct {
    uint32_t n;
    cd_plan_run **run;          /* (n) the plan first */
    const cd_shard_plan **plan; /* (n) */
    double *seconds;            /* (n) */
    uint32_t *at;               /* (n_base) which run is a baseline's; NONE: it is not run */
    cd_host_load_mark mark;     /* when the first was ready to run */
    bool marked;
} runs;

/* Results that are expected are computed once, for the plan. */
static cdmpp_status open_one(cd_partition *p, runs *r, const cd_shard_plan *plan, cdmpp_err *err) {
    const cd_plan_run_options a = {.loaded = &p->loaded,
                                   .net = &p->net,
                                   .machine = &p->machine,
                                   .plan = plan,
                                   .cost = p->cost,
                                   .measure = p->measure,
                                   .check = !r->n,
                                   .expect = r->run[0],
                                   .stop = p->o->stop};
    CD_TRY(cd_plan_run_open(&a, &r->run[r->n], err));
    r->plan[r->n++] = plan;
    return CDMPP_OK;
}

/* What costs nothing to price is a candidate: each device alone, whole operators placed, equal and
 * greedy shares; the fixed shares are the caller's, with options.compare. */
static bool is_candidate(const cd_partition *p, uint32_t k) {
    return p->base[k] && isfinite(p->plan->base[k].predicted_s) &&
           (p->o->compare || strncmp(p->plan->base[k].name, "fixed ", 6) != 0);
}

/* A baseline that is the plan, or one before it, is not run twice. One that cannot be built is a
 * warning and left out. */
static cdmpp_status open_all(cd_partition *p, runs *r, cdmpp_err *err) {
    cdmpp_err why = {0};
    CD_TRY(open_one(p, r, p->plan, err));
    for (uint32_t k = 0; k < p->n_base; k++) {
        uint32_t i = 0;
        r->at[k] = NONE;
        if (!is_candidate(p, k)) continue;
        while (i < r->n && !cd_shard_plan_same(r->plan[i], p->base[k])) i++;
        if (cd_partition_stopped(p))
            return CD_FAIL(err, EINTERRUPTED, "while baselines were built");
        if (i < r->n || !open_one(p, r, p->base[k], &why)) {
            r->at[k] = i;
            continue;
        }
        cd_log_err(p->o->log, CD_LOG_WARNING, &why);
        p->run.left_out++;
        p->n_not_run++;
    }
    return CDMPP_OK;
}

/* Plans in turns. A plan in which a device failed has no time (NaN). */
static cdmpp_status compare(cd_partition *p, runs *r, double budget, cdmpp_err *err) {
    CD_TRY(cd_plan_run_compare(r->run, r->n, budget, r->seconds, err));
    p->plan->measured_s = r->seconds[0];
    for (uint32_t k = 0; k < p->n_base; k++)
        if (r->at[k] != NONE) p->plan->base[k].measured_s = r->seconds[r->at[k]];
    for (uint32_t i = 0; i < r->n; i++) {
        uint32_t k = 0;
        if (!isnan(r->seconds[i])) continue;
        while (i && r->at[k] != i) k++;
        p->n_not_run++;
        cd_log_put(p->o->log, CD_LOG_WARNING, "a device failed while %s was compared: not told%s",
                   i ? p->plan->base[k].name : "the plan",
                   i ? "" : ", and what is told of its run is of another plan");
    }
    p->plan->measured_gain = cd_partition_alone_s(p, true) / r->seconds[0];
    return CDMPP_OK;
}

/* The kept plan's run becomes the first one. What is injected is about the plan as it was made:
 * then none is kept. */
static cdmpp_status keep_best(cd_partition *p, runs *r, cdmpp_err *err) {
    const uint32_t k = p->o->inject.n ? UINT32_MAX : cd_partition_best_measured(p);
    if (k == UINT32_MAX) return CDMPP_OK;
    cd_plan_run *best = r->run[r->at[k]];
    r->run[r->at[k]] = r->run[0];
    r->run[0] = best;
    CD_TRY(cd_partition_keep(p, k, err));
    return cd_partition_interval(p, p->plan, err);
}

/* The plan is the only candidate: baselines that are that plan were measured with it. */
static void alone(cd_partition *p, const runs *r) {
    p->plan->measured_s = p->run.now.median_s;
    for (uint32_t k = 0; k < p->n_base; k++)
        if (r->at[k] != NONE) p->plan->base[k].measured_s = p->plan->measured_s;
    p->plan->measured_gain = cd_partition_alone_s(p, true) / p->plan->measured_s;
}

/* Values are compared before anything is slowed, and again behind it. What was injected is in no
 * time of the plan. */
static cdmpp_status measure(cd_partition *p, runs *r, cdmpp_err *err) {
    const double budget = p->o->budget_s / 2; /* 0: the default of the runs */
    int core[CD_MACHINE_DEVICES];
    CD_TRY(open_all(p, r, err));
    /* from here on: compiling is no load of others, nor rest */
    cd_host_load_begin(&r->mark, core, cd_partition_counted(p, core));
    r->marked = true;
    CD_TRY(cd_plan_run_check(r->run[0], &p->run.max_error, err));
    if (r->n > 1 || p->o->inject.n) CD_TRY(compare(p, r, budget, err));
    CD_TRY(keep_best(p, r, err));
    if (p->run.kept) CD_TRY(cd_plan_run_check(r->run[0], &p->run.max_error, err));
    CD_TRY(inject(p, r->run[0], err));
    p->run.done = true;
    if (!p->o->inject.n) CD_TRY(cd_plan_run_passes(r->run[0], budget, &p->run.now, err));
    else {
        CD_TRY(cd_plan_run_watch(r->run[0], &p->how, &(cd_plan_run_watch_options){0}, budget,
                                 &p->run.now, err));
        CD_TRY(cd_plan_run_check(r->run[0], &p->run.max_error, err));
    }
    if (r->n < 2 && !p->o->inject.n) alone(p, r);
    return CDMPP_OK;
}

/* The plan and the baselines, in turns. Where a baseline measured better than the plan, it is the
 * plan from then on, and the verdict says so; the former plan is a baseline, "as predicted".
 * Errors: those of cd_plan_run_open; a baseline that cannot be run is left out. */
static cdmpp_status partition_measure(cd_partition *p, cdmpp_err *err) {
    const size_t most = (size_t)p->n_base + 1;
    runs r = {.run = CD_NEWN(&p->arena, cd_plan_run *, most),
              .plan = CD_NEWN(&p->arena, const cd_shard_plan *, most),
              .seconds = CD_NEWN(&p->arena, double, most),
              .at = CD_NEWN(&p->arena, uint32_t, most)};
    p->run.max_error = NAN;
    if (!r.run || !r.plan || !r.seconds || !r.at)
        return CD_FAIL(err, ENOMEM, "%u plans", p->n_base);
    const cdmpp_status st = measure(p, &r, err);
    if (r.marked) p->run.others = cd_host_load_since(&r.mark);
    for (uint32_t k = 0; k < r.n; k++) cd_plan_run_close(r.run[k]);
    return st ? st : cd_partition_verdict(p, err);
}

/* Stages on this machine, block by block, in turns with one operator after the other; the results
 * of all operators are compared bit by bit. */

enum { VECTOR_BYTES = 64 };
static const double BUDGET_S = 2;

typedef struct {
    cd_partition *p;
    /* of the network as it is, with convolutions merged (NULL: nothing is) */
    cd_program_select *pick, *pick_merged;
    int core[CD_MACHINE_DEVICES];
    double budget_s;         /* of a block */
    unsigned char *value[2]; /* results of an operator, both ways */
    size_t room;
} runner;

/* Stages need units like the first device: processors of this machine, whether they are called
 * directly or through OpenCL's native kernels. */
cdmpp_status cd_partition_stage_run_check(const cd_partition *p, cdmpp_err *err) {
    for (uint32_t d = 0; d < p->machine.n; d++) {
        const cd_machine_device *v = &p->machine.device[d];
        if (strcmp(v->kind, "cpu") != 0 && strcmp(v->kind, "native") != 0)
            return CD_FAIL(
                err, EUSAGE,
                "--stages --run: stages run on processors of this machine, and %s is none",
                v->name);
    }
    return CDMPP_OK;
}

/* Programs of whole operators on the first device, by the plan's schedules. */
static cdmpp_status lines(cd_partition *p, const cd_partition_staging *s, const char ***out,
                          size_t *n, cdmpp_err *err) {
    const cd_shard_net *net = s->net;
    *out = CD_NEWN(&p->arena, const char *, (size_t)net->n_op + 1);
    *n = 0;
    if (!*out) return CD_FAIL(err, ENOMEM, "%u operators", net->n_op);
    for (uint32_t k = 0; k < net->n_op; k++) {
        if (!net->op[k].dag) continue;
        CD_TRY(cd_shard_cost_schedule(s->cost, k, 0, NULL, &(*out)[*n], err));
        *n += (*out)[*n] != NULL;
    }
    return CDMPP_OK;
}

static cdmpp_status pick(runner *r, const cd_partition_staging *s, cd_program_select **out,
                         cdmpp_err *err) {
    cd_partition *p = r->p;
    const char **line;
    size_t n_line;
    CD_TRY(lines(p, s, &line, &n_line, err));
    const cd_program_select_options o = {.line = line,
                                         .n_line = n_line,
                                         .trials = 1,
                                         .target = p->machine.device[0].target,
                                         .hardware = cd_target_hardware(false, 1, VECTOR_BYTES),
                                         .threads = 1,
                                         .measure = p->measure,
                                         .stop = p->o->stop};
    return cd_program_select_run(s->loaded->work, &o, out, err);
}

/* ---- a block ---- */

static size_t bytes_of(const cd_partition *p, uint32_t op) {
    const cd_workload_buffer *b = &p->loaded.work->buffer[p->loaded.work->group[op].write];
    return (size_t)cd_graph_shape_elements(&b->shape) * cd_expr_dtype_bytes(b->dtype);
}

static uint32_t ops_of(const cd_partition_stage *b) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < b->plan.n_stage; k++)
        n += b->plan.stage[k].first[b->plan.stage[k].n_group];
    return n;
}

static cdmpp_status compare_values(runner *r, const cd_partition_stage *b, uint32_t n,
                                   cd_stage_exec *const *s, cdmpp_err *err) {
    for (uint32_t i = 0; i < n; i++) {
        const size_t bytes = bytes_of(r->p, b->op[i]);
        for (int k = 0; k < 2; k++) CD_TRY(cd_stage_exec_result(s[k], i, r->value[k], err));
        r->p->plain.staged.differ += memcmp(r->value[0], r->value[1], bytes) != 0;
    }
    return CDMPP_OK;
}

/* of[1] NULL: nothing is merged. Values of the merged network are compared apart (check_merged). */
static cdmpp_status all_ways(runner *r, uint32_t k, cd_stage_run *const *of, cdmpp_err *err) {
    cd_partition_stage *b = &r->p->plain.stage[k], *m = of[1] ? &r->p->merged.in.stage[k] : NULL;
    cd_stage_exec *s[3] = {NULL, NULL, NULL};
    double seconds[3];
    cdmpp_status st = cd_stage_exec_open(of[0], NULL, 0, &s[0], err);
    if (!st) st = cd_stage_exec_open(of[0], b->plan.stage, b->plan.n_stage, &s[1], err);
    if (!st && m) st = cd_stage_exec_open(of[1], m->plan.stage, m->plan.n_stage, &s[2], err);
    if (!st) st = cd_stage_exec_compare(s, m ? 3 : 2, r->budget_s, seconds, err);
    if (!st) st = compare_values(r, b, ops_of(b), s, err);
    for (int i = 0; i < 3; i++) cd_stage_exec_close(s[i]);
    if (st) return st;
    b->alone_measured_s = seconds[0];
    b->measured_s = seconds[1];
    if (m) m->alone_measured_s = seconds[0], m->measured_s = seconds[2];
    return CDMPP_OK;
}

/* The first operator that has no program of its own; NULL: the block can be run. */
static const char *missing(const cd_partition_staging *s, const cd_program_select *p,
                           const cd_partition_stage *b) {
    const cd_workload *w = s->loaded->work;
    for (uint32_t i = 0; i < ops_of(b); i++) {
        const cd_workload_group *g = &w->group[b->op[i]];
        if (g->task == CD_GRAPH_NONE || g->weights || p->task[g->task].status)
            return s->net->op[b->op[i]].name;
    }
    return NULL;
}

static cdmpp_status open_block(const runner *r, const cd_partition_staging *s,
                               const cd_program_select *pick, uint32_t k, cd_stage_run **out,
                               cdmpp_err *err) {
    const cd_partition_stage *b = &s->stage[k];
    const cd_stage_run_options a = {.work = s->loaded->work,
                                    .pick = pick,
                                    .n_op = ops_of(b),
                                    .group = b->op,
                                    .solo_s = b->solo_s,
                                    .n_core = r->p->machine.n,
                                    .core = r->core};
    return cd_stage_run_open(&a, out, err);
}

static void add_up(cd_partition_staging *s, uint32_t k) {
    const cd_partition_stage *b = &s->stage[k];
    s->staged.n++;
    s->staged.predicted_s += b->plan.total_s;
    s->staged.seconds += b->measured_s;
    s->staged.alone_s += b->alone_measured_s;
}

/* A block is run alone, its inputs filled: blocks before it need not run. One without programs is a
 * warning. */
static cdmpp_status block(runner *r, uint32_t k, cdmpp_err *err) {
    cd_partition *p = r->p;
    cd_partition_staging *const way[] = {&p->plain, &p->merged.in};
    cd_stage_run *of[2] = {NULL, NULL};
    const char *who = missing(way[0], r->pick, &way[0]->stage[k]);
    if (!who && p->merged.has) who = missing(way[1], r->pick_merged, &way[1]->stage[k]);
    for (int i = 0; i < (p->merged.has ? 2 : 1); i++)
        way[i]->stage[k].measured_s = way[i]->stage[k].alone_measured_s = (double)NAN;
    if (cd_partition_stopped(p)) return CD_FAIL(err, EINTERRUPTED, "while stages were run");
    if (who) {
        p->n_not_run++;
        cd_log_put(p->o->log, CD_LOG_WARNING,
                   "block %u of the stages is not run: %.60s has no program", k, who);
        return CDMPP_OK;
    }
    cdmpp_status st = open_block(r, way[0], r->pick, k, &of[0], err);
    if (!st && p->merged.has) st = open_block(r, way[1], r->pick_merged, k, &of[1], err);
    if (!st) st = all_ways(r, k, of, err);
    for (int i = 0; i < 2; i++) cd_stage_run_close(of[i]);
    for (int i = 0; i < 2 && !st; i++)
        if (i == 0 || p->merged.has) add_up(way[i], k);
    return st;
}

/* ---- values of the merged network ---- */

static cdmpp_status values_of(cd_partition *p, const cd_partition_staging *s, float **out,
                              size_t *n, cdmpp_err *err) {
    const char **line;
    size_t n_line;
    CD_TRY(lines(p, s, &line, &n_line, err));
    cd_network_values_options o = {.graph = s->loaded->source,
                                   .target = p->machine.device[0].target,
                                   .hardware = cd_target_hardware(false, 1, VECTOR_BYTES),
                                   .line = line,
                                   .n_line = n_line,
                                   .measure = p->measure,
                                   .stop = p->o->stop};
    if (p->o->layout) (void)cd_workload_layout_parse(p->o->layout, &o.layout);
    return cd_network_values(&o, out, n, err);
}

/* Operators have no counterparts in the other network, so results of whole networks are compared,
 * of one content by names. */
static cdmpp_status check_merged(cd_partition *p, cdmpp_err *err) {
    cd_partition_merged *m = &p->merged;
    float *v[2] = {NULL, NULL};
    size_t n[2] = {0, 0};
    double far = 0, large = 0;
    cdmpp_status st = values_of(p, &p->plain, &v[0], &n[0], err);
    if (!st) st = values_of(p, &m->in, &v[1], &n[1], err);
    for (size_t i = 0; !st && i < n[0]; i++) {
        far = fmax(far, isfinite(v[0][i]) && isfinite(v[1][i])
                            ? fabs((double)v[0][i] - (double)v[1][i])
                            : (double)INFINITY);
        large = fmax(large, fabs((double)v[0][i]));
    }
    if (!st && !(large > 0)) st = CD_FAIL(err, EUNSUPPORTED, "all results are zero");
    m->max_error = st ? (double)NAN : far / large;
    for (int k = 0; k < 2; k++) cd_mem_free(v[k]);
    if (!st || (st != CDMPP_EUNSUPPORTED && st != CDMPP_EBACKEND)) return st;
    cd_log_put(p->o->log, CD_LOG_WARNING, "values of the merged network are not compared: %s",
               err->msg);
    return CDMPP_OK;
}

static cdmpp_status run_all(runner *r, cdmpp_err *err) {
    cd_partition *p = r->p;
    for (uint32_t d = 0; d < p->machine.n; d++) r->core[d] = p->machine.device[d].core;
    CD_TRY(pick(r, &p->plain, &r->pick, err));
    if (p->merged.has) CD_TRY(pick(r, &p->merged.in, &r->pick_merged, err));
    for (uint32_t k = 0; k < p->net.n_op; k++)
        if (bytes_of(p, k) > r->room) r->room = bytes_of(p, k);
    for (int k = 0; k < 2; k++)
        if (!(r->value[k] = cd_mem_alloc(r->room + 1)))
            return CD_FAIL(err, ENOMEM, "results of %zu bytes", r->room);
    for (uint32_t k = 0; k < p->plain.n_stage; k++) CD_TRY(block(r, k, err));
    p->plain.staged.done = true;
    p->merged.in.staged.done = p->merged.has;
    return p->merged.has ? check_merged(p, err) : CDMPP_OK;
}

cdmpp_status cd_partition_stage_run(cd_partition *p, cdmpp_err *err) {
    runner r = {.p = p};
    r.budget_s = (p->o->budget_s > 0 ? p->o->budget_s / 2 : BUDGET_S) /
                 (p->plain.n_stage ? p->plain.n_stage : 1);
    const cdmpp_status st = run_all(&r, err);
    for (int k = 0; k < 2; k++) cd_mem_free(r.value[k]);
    cd_program_select_free(r.pick);
    cd_program_select_free(r.pick_merged);
    return st;
}

cd_partition_options cd_partition_defaults(void) {
    const double nan = (double)NAN;
    return (cd_partition_options){.goal = -1,
                                  .stages = -1,
                                  .stage_length = 3,
                                  .stage_groups = 8,
                                  .margin = nan,
                                  .min_us = nan,
                                  .cover = nan,
                                  .fixed_share = nan};
}

bool cd_partition_stopped(const cd_partition *p) { return p->o->stop && *p->o->stop; }

/* A plan of a file has its devices and times. What would only choose others is refused, because it
 * would change nothing. Times that are asked for beside the plan need a model, programs that are
 * run need schedules, and a new plan during the run needs the rules of splitting. */
static cdmpp_status check_given(const cd_partition_options *o, cdmpp_err *err) {
    const bool times = cd_partition_needs_times(o), programs = times || o->run,
               again = o->inject.n > 0;
    const struct {
        const char *option;
        bool idle;
    } v[] = {{"--as", o->as.n && !times},
             {"--cost-model", o->cost_model.n && !times},
             {"--trials", o->trials && !times},
             {"--times", o->times.n && !programs},
             {"--seed", o->seed && !programs},
             {"--schedules", o->schedules.n && !programs},
             {"--records", o->records.n && !programs},
             {"--store", o->store.n && !programs},
             {"--granules", o->granules && !again},
             {"--margin", !isnan(o->margin) && !again},
             {"--min-us", !isnan(o->min_us) && !again},
             {"--cover", !isnan(o->cover) && !again},
             {"--fixed-share", !isnan(o->fixed_share)},
             {"--ignore-load", o->ignore_load}};
    for (size_t k = 0; k < sizeof v / sizeof *v; k++)
        if (v[k].idle)
            return CD_FAIL(err, EUSAGE,
                           "--plan makes no plan and takes this from its file: leave out %s",
                           v[k].option);
    return CDMPP_OK;
}

cdmpp_status cd_partition_check(const cd_partition_options *o, cdmpp_err *err) {
    cd_workload_layout layout;
    if (o->no_split && o->dims) return CD_FAIL(err, EUSAGE, "--no-split leaves nothing for --dims");
    if (o->plan && (o->dims || o->no_split || o->compare))
        return CD_FAIL(err, EUSAGE,
                       "--plan makes no plan: --dims, --no-split, --compare, --save-plan and "
                       "--annotate go without it");
    if (o->layout && !cd_workload_layout_parse(o->layout, &layout))
        return CD_FAIL(err, EUSAGE,
                       "--layout: expected one of " CD_WORKLOAD_LAYOUTS ", found '%.40s'",
                       o->layout);
    if (o->save_merged && o->stages != CD_PARTITION_STAGES_MERGE &&
        o->stages != CD_PARTITION_STAGES_BOTH)
        return CD_FAIL(err, EUSAGE, "--save-merged is about --stages=merge and --stages=both");
    if (!o->rules && (o->list_patterns || o->mac))
        return CD_FAIL(err, EUSAGE, "--list-patterns and --mac are about --rules");
    if (o->plan) CD_TRY(check_given(o, err));
    if (!o->run && (o->budget_s > 0 || o->inject.n || o->ignore_load))
        return CD_FAIL(err, EUSAGE, "--budget, --inject and --ignore-load are about --run");
    return partition_check_inject(&o->inject, err);
}

/* Under rules the regions that are reported become sources, else those of the plan. */
static cdmpp_status rules(cd_partition *p, cdmpp_err *err) {
    const cd_partition_options *o = p->o;
    const cd_place_goal goal = o->goal > 0 ? CD_PLACE_MAKESPAN : CD_PLACE_SUM;
    if (o->rules)
        CD_TRY(cd_partition_rules_place(&p->rules, p->how.time, p->how.ctx, goal, o->mac, err));
    const cd_shard_plan *plan = o->rules && !o->plan ? NULL : p->plan;
    return o->emit ? cd_partition_rules_emit(&p->rules, plan, p->how.time, p->how.ctx, p->cost,
                                             o->emit, o->log, err)
                   : CDMPP_OK;
}

cdmpp_status cd_partition_compute(cd_partition *p, cdmpp_err *err) {
    const cd_partition_options *o = p->o;
    if (o->run && o->stages >= 0) CD_TRY(cd_partition_stage_run_check(p, err));
    CD_TRY(cd_partition_make(p, err));
    if (cd_partition_stopped(p)) return CD_FAIL(err, EINTERRUPTED, "before anything was run");
    if (o->goal >= 0 || o->lp) CD_TRY(cd_partition_place(p, err));
    CD_TRY(rules(p, err));
    if (o->stages >= 0) CD_TRY(cd_partition_stages(p, err));
    if (o->run) CD_TRY(partition_measure(p, err));
    return o->run && o->stages >= 0 ? cd_partition_stage_run(p, err) : CDMPP_OK;
}

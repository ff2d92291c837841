/* A network as operators that can be cut: seconds by the cost model, parallel loops by the programs
 * of the schedules that were scored. */
#include "predictor/partition/plan/partition_pack.h"

#include <math.h>
#include <string.h>

#include "features/sketch/sketch.h"
#include "predictor/partition/plan/partition_internal.h"

/* A packed network on this machine: programs compiled and measured alone, the plan made once more
 * by these times, and all ways to run it in turns. */

enum { VECTOR_BYTES = 64 };
_Static_assert(CD_PACK_WHOLE == CD_EXECUTOR_WHOLE, "calls of a plan are those of the executor");

/* Programs of whole operators, by the schedules of the plan. */
static cdmpp_status pick(cd_partition_pack *p, cd_program_select **out, cdmpp_err *err) {
    const char **line = CD_NEWN(&p->arena, const char *, (size_t)p->net.n_work + 1);
    if (!line) return CD_FAIL(err, ENOMEM, "%u operators", p->net.n_work);
    cd_program_select_options o = {.line = line,
                                   .trials = 1,
                                   .target = p->of.machine.device[0].target,
                                   .hardware = cd_target_hardware(false, 1, VECTOR_BYTES),
                                   .threads = 1,
                                   .measure = p->of.measure,
                                   .stop = p->o->network.stop};
    for (uint32_t k = 0; k < p->net.n_work; k++) {
        CD_TRY(cd_shard_cost_schedule(p->of.cost, p->group[k], 0, NULL, &line[o.n_line], err));
        o.n_line += line[o.n_line] != NULL;
    }
    return cd_program_select_run(p->of.loaded.work, &o, out, err);
}

/* The same operators with the seconds that their programs took alone. */
static cdmpp_status plan_again(cd_partition_pack *p, const cd_program_select *s, cdmpp_err *err) {
    cd_pack_work *work = CD_NEWN(&p->arena, cd_pack_work, (size_t)p->net.n_work + 1);
    if (!work) return CD_FAIL(err, ENOMEM, "%u operators", p->net.n_work);
    p->measured = p->net;
    p->measured.work = work;
    for (uint32_t k = 0; k < p->net.n_work; k++) {
        const uint32_t task = p->of.loaded.work->group[p->group[k]].task;
        const double seconds = s->task[task].item.out.time.median_s;
        cd_pack_part *part = CD_NEWN(&p->arena, cd_pack_part, p->net.work[k].n_part);
        double sum = 0;
        if (!part) return CD_FAIL(err, ENOMEM, "parts");
        work[k] = p->net.work[k];
        work[k].part = part;
        for (uint32_t i = 0; i < work[k].n_part; i++) sum += p->net.work[k].part[i].seconds;
        for (uint32_t i = 0; i < work[k].n_part; i++)
            part[i] = (cd_pack_part){p->net.work[k].part[i].iterations,
                                     seconds * p->net.work[k].part[i].seconds / sum};
    }
    return cd_pack_cut(&p->measured, &p->measured_calls, err);
}

/* Operators are the executor's steps: both are all groups but those that work on weights, in their
 * order. */
static cdmpp_status to_plan(cd_partition_pack *p, const cd_pack_calls *c, cd_executor_plan *out,
                            cdmpp_err *err) {
    const uint32_t n = c->first[p->net.units];
    cd_executor_call *call = CD_NEWN(&p->arena, cd_executor_call, (size_t)n + 1);
    if (!call) return CD_FAIL(err, ENOMEM, "%u calls", n);
    for (uint32_t k = 0; k < n; k++)
        call[k] =
            (cd_executor_call){c->call[k].work, c->call[k].part, c->call[k].begin, c->call[k].end};
    *out = (cd_executor_plan){p->net.units, c->first, call};
    return CDMPP_OK;
}

/* Operators without a program are named before anything is compared. */
static cdmpp_status check(const cd_partition_pack *p, const cd_program_select *s, cdmpp_err *err) {
    for (uint32_t k = 0; k < p->net.n_work; k++) {
        const cd_program_select_task *t = &s->task[p->of.loaded.work->group[p->group[k]].task];
        if (t->status)
            return CD_FAIL(err, ESCHEMA, "operator %.60s has no program that runs: %s",
                           p->net.work[k].name, t->err.msg);
    }
    return CDMPP_OK;
}

static cdmpp_status compare(cd_partition_pack *p, const cd_program_select *s, cdmpp_err *err) {
    cd_executor_plan plan[2];
    cd_executor_way_time t[CD_PACK_WAYS];
    cd_host_load_mark mark;
    int core[CD_HOST_LOAD_CORES];
    CD_TRY(to_plan(p, &p->calls, &plan[0], err));
    CD_TRY(to_plan(p, &p->measured_calls, &plan[1], err));
    const cd_executor_way way[CD_PACK_WAYS] = {
        {.threads = 1}, {.threads = (int)p->net.units}, {.plan = &plan[0]}, {.plan = &plan[1]}};
    const bool few = p->net.units <= CD_HOST_LOAD_CORES;
    cd_host_load_begin(&mark, core, few ? cd_affinity_last_cores(p->net.units, core) : 0);
    CD_TRY(cd_executor_compare(p->of.loaded.work, s, way, CD_PACK_WAYS, p->o->network.budget_s,
                               p->o->network.stop, t, err));
    p->others = cd_host_load_since(&mark);
    for (int k = 0; k < CD_PACK_WAYS; k++) {
        p->way[k].ran = t[k];
        if (t[k].median_s < p->way[p->kept].ran.median_s) p->kept = (cd_partition_pack_how)k;
    }
    p->ran = true;
    return CDMPP_OK;
}

/* Compiles and measures the programs, plans again by what was measured, and measures all ways. */
static cdmpp_status partition_pack_run(cd_partition_pack *p, cdmpp_err *err) {
    cd_program_select *s = NULL;
    cdmpp_status st = pick(p, &s, err);
    if (!st) st = check(p, s, err);
    if (!st) st = plan_again(p, s, err);
    if (!st) p->way[CD_PACK_MEASURED_PLAN].predicted_s = p->measured_calls.makespan_s;
    if (!st) st = compare(p, s, err);
    cd_program_select_free(s);
    return st;
}

/* Usual where one processor reads what another has just written: 10 GB/s, through a shared cache.
 * Not measured here. */
static const double BYTE_S = 1e-10;

void cd_partition_pack_free(cd_partition_pack *p) {
    cd_pack_calls_free(&p->calls);
    cd_pack_calls_free(&p->measured_calls);
    cd_partition_free(&p->of);
    cd_arena_free(&p->arena);
    *p = (cd_partition_pack){0};
}

/* ---- operators ---- */

/* Operators that work on weights once are in no pass. work_of (n_op of the network): the operator's
 * number here. */
static cdmpp_status list(cd_partition_pack *p, uint32_t **work_of, cdmpp_err *err) {
    const cd_workload *w = p->of.loaded.work;
    uint32_t *group = CD_NEWN(&p->arena, uint32_t, (size_t)w->n_group + 1),
             *at = CD_NEWN(&p->arena, uint32_t, (size_t)w->n_group + 1);
    if (!group || !at) return CD_FAIL(err, ENOMEM, "%u operators", w->n_group);
    for (uint32_t g = 0; g < w->n_group; g++) {
        at[g] = UINT32_MAX;
        if (w->group[g].weights) continue;
        at[g] = p->net.n_work;
        group[p->net.n_work++] = g;
    }
    p->group = group;
    *work_of = at;
    return p->net.n_work ? CDMPP_OK : CD_FAIL(err, ESCHEMA, "%s has no operators", p->of.net.name);
}

static cdmpp_status edges(cd_partition_pack *p, const uint32_t *work_of, cd_pack_work *work,
                          cdmpp_err *err) {
    const cd_shard_net *n = &p->of.net;
    size_t reads = 1;
    for (uint32_t k = 0; k < n->n_op; k++) reads += n->op[k].n_arg;
    uint32_t *after = CD_NEWN(&p->arena, uint32_t, reads);
    if (!after) return CD_FAIL(err, ENOMEM, "%u operators", n->n_op);
    for (uint32_t k = 0; k < p->net.n_work; k++) {
        const cd_shard_net_op *o = &n->op[p->group[k]];
        const cd_shard_net_tensor *made = &n->tensor[o->arg[o->n_arg - 1]];
        work[k].name = o->name;
        work[k].bytes = made->element_bytes;
        for (uint32_t d = 0; d < made->rank; d++) work[k].bytes *= (double)made->shape[d];
        work[k].first = p->net.n_after;
        for (uint32_t j = 0; j + 1 < o->n_arg; j++) {
            const uint32_t from = n->tensor[o->arg[j]].from;
            if (from != CD_SHARD_NET_OUTSIDE && work_of[from] != UINT32_MAX)
                after[p->net.n_after++] = work_of[from];
        }
        work[k].n_after = p->net.n_after - work[k].first;
    }
    p->net.after = after;
    return CDMPP_OK;
}

/* ---- times and programs ---- */

static cdmpp_status ask_all(cd_partition_pack *p, cdmpp_err *err) {
    cd_shard_cost_want *want = CD_NEWN(&p->arena, cd_shard_cost_want, (size_t)p->net.n_work + 1);
    if (!want) return CD_FAIL(err, ENOMEM, "%u operators", p->net.n_work);
    for (uint32_t k = 0; k < p->net.n_work; k++) want[k] = (cd_shard_cost_want){.op = p->group[k]};
    return cd_shard_cost_prepare(p->of.cost, want, p->net.n_work, err);
}

static cdmpp_status no_time(cd_partition_pack *p, uint32_t op, cdmpp_err *err) {
    const cd_shard_net_op *o = &p->of.net.op[op];
    const char *why = cd_shard_cost_why(p->of.cost, op, 0, NULL);
    return CD_FAIL(err, ESCHEMA, "operator %.60s (%.60s) has no time on %s%s%s", o->name, o->type,
                   p->of.machine.device[0].name, why ? ": " : "", why ? why : "");
}

/* The seconds of an operator, divided among its parallel loops by the stores in them. A program
 * that cannot be cut is one part of one iteration. */
static cdmpp_status parts_of(cd_partition_pack *p, const cd_codegen_code *c, double seconds,
                             cd_pack_work *w, cdmpp_err *err) {
    const uint32_t n = c->n_part ? c->n_part : 1;
    double stores = 0;
    cd_pack_part *part = CD_NEWN(&p->arena, cd_pack_part, n);
    if (!part) return CD_FAIL(err, ENOMEM, "parts");
    for (uint32_t k = 0; k < c->n_part; k++) stores += c->part[k].stores;
    part[0] = (cd_pack_part){1, seconds};
    for (uint32_t k = 0; k < c->n_part; k++)
        part[k] =
            (cd_pack_part){(uint32_t)c->part[k].iterations, seconds * c->part[k].stores / stores};
    w->n_part = n;
    w->part = part;
    return CDMPP_OK;
}

static cdmpp_status one_op(cd_partition_pack *p, cd_record_maker *m, uint32_t op, cd_pack_work *w,
                           cdmpp_err *err) {
    cd_shard_plan_estimate t = {0};
    const char *line = NULL;
    cd_record_program job = {.path = NULL};
    CD_TRY(cd_shard_cost_time(p->of.cost, op, 0, NULL, &t, err));
    if (!isfinite(t.seconds)) return no_time(p, op, err);
    CD_TRY(cd_shard_cost_schedule(p->of.cost, op, 0, NULL, &line, err));
    if (!line) return no_time(p, op, err);
    const cd_recline l = {.text = line, .len = strlen(line), .path = "schedule"};
    cdmpp_status st = cd_record_program_make(m, &l, &job, err);
    if (!st) st = cd_record_program_code(m, &job, err);
    if (!st && job.why.code)
        st = CD_FAIL(err, ESCHEMA, "operator %.60s (%.60s) has no program: %s",
                     p->of.net.op[op].name, p->of.net.op[op].type, job.why.msg);
    if (!st) st = parts_of(p, &job.code, t.seconds, w, err);
    cd_record_program_free(&job);
    return st;
}

/* Equal tasks have equal programs and times: each is asked once. */
static cdmpp_status all_ops(cd_partition_pack *p, cd_pack_work *work, cdmpp_err *err) {
    const cd_workload *w = p->of.loaded.work;
    cd_record_maker m = {
        .tasks = w->tasks, .target = p->of.machine.device[0].target, .dialect = CD_DIALECT_C};
    CD_TRY(cd_program_new(&m.program, err));
    cdmpp_status st = CDMPP_OK;
    for (uint32_t k = 0; k < p->net.n_work && !st; k++) {
        const uint32_t task = w->group[p->group[k]].task;
        uint32_t same = 0;
        while (same < k && (task == CD_GRAPH_NONE || w->group[p->group[same]].task != task)) same++;
        if (cd_partition_stopped(&p->of))
            st = CD_FAIL(err, EINTERRUPTED, "while programs were made");
        else if (same < k) work[k].n_part = work[same].n_part, work[k].part = work[same].part;
        else st = one_op(p, &m, p->group[k], &work[k], err);
    }
    cd_program_free(m.program);
    return st;
}

static cdmpp_status plan(cd_partition_pack *p, cdmpp_err *err) {
    const cd_machine_device *d = &p->of.machine.device[0];
    uint32_t *work_of;
    CD_TRY(cd_partition_costs(&p->of, err));
    CD_TRY(list(p, &work_of, err));
    cd_pack_work *work = CD_NEWN(&p->arena, cd_pack_work, (size_t)p->net.n_work + 1);
    if (!work) return CD_FAIL(err, ENOMEM, "%u operators", p->net.n_work);
    CD_TRY(edges(p, work_of, work, err));
    CD_TRY(ask_all(p, err));
    CD_TRY(all_ops(p, work, err));
    p->net.work = work, p->net.units = p->o->units, p->net.launch_s = d->launch_s,
    p->net.sync_s = d->sync_s, p->net.byte_s = BYTE_S;
    return cd_pack_cut(&p->net, &p->calls, err);
}

cdmpp_status cd_partition_pack_make(const cd_partition_pack_options *o, cd_partition_pack *p,
                                    cdmpp_err *err) {
    static const char *const name[] = {"one thread", "one after the other", "packed",
                                       "packed, by measured times"};
    const int may = cd_affinity_count();
    p->o = o;
    p->others = (double)NAN;
    if (o->network.run && o->units > (uint32_t)may)
        return CD_FAIL(err, EUSAGE,
                       "--run on %u units: this process may use %d processors; without --run the "
                       "plan is printed for any number",
                       o->units, may);
    CD_TRY(cd_partition_open(&o->network, &p->of, err));
    CD_TRY(plan(p, err));
    for (int k = 0; k < CD_PACK_WAYS; k++)
        p->way[k] = (cd_partition_pack_way){.name = name[k], .predicted_s = (double)NAN};
    p->way[CD_PACK_ONE_THREAD].predicted_s = p->calls.single_s;
    p->way[CD_PACK_ONE_BEHIND_THE_OTHER].predicted_s = p->calls.serial_s;
    p->way[CD_PACK_PLAN].predicted_s = p->calls.makespan_s;
    return o->network.run ? partition_pack_run(p, err) : CDMPP_OK;
}

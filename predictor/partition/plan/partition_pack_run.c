/* A packed network on this machine: programs compiled and measured alone, the plan made once more
 * by these times, and all ways to run it in turns. */
#include <math.h>
#include <string.h>

#include "features/sketch/sketch.h"
#include "predictor/partition/plan/partition_internal.h"
#include "predictor/partition/plan/partition_pack_internal.h"

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

cdmpp_status cd_partition_pack_run(cd_partition_pack *p, cdmpp_err *err) {
    cd_program_select *s = NULL;
    cdmpp_status st = pick(p, &s, err);
    if (!st) st = check(p, s, err);
    if (!st) st = plan_again(p, s, err);
    if (!st) p->way[CD_PACK_MEASURED_PLAN].predicted_s = p->measured_calls.makespan_s;
    if (!st) st = compare(p, s, err);
    cd_program_select_free(s);
    return st;
}

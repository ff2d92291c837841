/* The steps of a partition in their order, and the rules between options. A step that was not asked
 * for is left out; nothing is measured before all is planned, so that an error in the request costs
 * no time of the machine. */
#include "predictor/partition/plan/partition_internal.h"

#include <math.h>

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
    return cd_partition_check_inject(&o->inject, err);
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
    if (o->run) CD_TRY(cd_partition_measure(p, err));
    return o->run && o->stages >= 0 ? cd_partition_stage_run(p, err) : CDMPP_OK;
}

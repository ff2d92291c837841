/* partition_internal -- the steps inside cd_partition_open and cd_partition_make. */
#ifndef CD_PARTITION_INTERNAL_H
#define CD_PARTITION_INTERNAL_H
#include "predictor/partition/plan/partition.h"

/* Fills p->all and p->machine, with a device of the model and a target for each. Needs
 * p->models. */
cdmpp_status cd_partition_machine(cd_partition *p, cdmpp_err *err);
/* Of p->machine: which device of a model each is, who answers for it, its target. Needs p->models.
 * Errors: EUSAGE, EMODEL, those of cd_model_load. */
cdmpp_status cd_partition_answers(cd_partition *p, cdmpp_err *err);
/* "ocl0=30": the text behind the name; NULL: it is of another device. */
const char *cd_partition_of_device(const char *text, const char *name);
/* Seconds of shards: schedules, threads, cost. */
cdmpp_status cd_partition_costs(cd_partition *p, cdmpp_err *err);
/* options.run: the process that measures. First of all, because it forks. */
cdmpp_status cd_partition_measure_open(cd_partition *p, cdmpp_err *err);
/* options.run: looks how much of each device's processor others use, and lets the plan count with
 * what is left. Needs p->machine. */
void cd_partition_look(cd_partition *p);
/* The second half of it: p->left to the devices' scale, with a warning for each device that others
 * use. A given plan and options.ignore_load only warn. */
void cd_partition_count_left(cd_partition *p);
/* ---- partition_source.c: p->source as warnings; of two devices that are the same of the models
 * once ---- */
bool cd_partition_was_there(const cd_partition *p, uint32_t k);
void cd_partition_say_stand_in(const cd_partition *p, uint32_t k);
void cd_partition_say_costs(const cd_partition *p, uint32_t k);
/* The fit of what a network costs on that device, or on its stand-in. NULL: there is none. */
void cd_partition_say_models(const cd_partition *p);
/* Where devices of the plan prefer two layouts of images: which one it has, and that this is a
 * matter of their order. Needs p->net. */
void cd_partition_say_layout(const cd_partition *p);
/* Fills what is unlike, with a warning for each device where it is much. Errors: those of
 * cd_shard_cost_unlike. */
cdmpp_status cd_partition_unlike(cd_partition *p, cdmpp_err *err);
/* Of a plan that was read: p->source becomes the plan's, and is said. */
void cd_partition_say_again(cd_partition *p);
/* The processors of the machine's devices, each once; gives how many. */
unsigned cd_partition_cores(const cd_partition *p, int core[CD_MACHINE_DEVICES]);
/* Those whose load is counted over a run. 0: all of this machine, because threads of a device
 * without a processor of its own may run on any. */
unsigned cd_partition_counted(const cd_partition *p, int core[CD_MACHINE_DEVICES]);
/* After a comparison: the baseline that measured best, if it is better than the plan by more than
 * medians are known to; UINT32_MAX: none. */
uint32_t cd_partition_best_measured(const cd_partition *p);
/* ---- partition_interval.c ---- */
/* Interval of a plan that was made here, and why it has none. Needs p->cost and p->source. Errors:
 * those of cd_shard_cost_doubt and cd_replay_sample. */
cdmpp_status cd_partition_interval(cd_partition *p, cd_shard_plan *plan, cdmpp_err *err);
/* Baseline k becomes the plan, the plan a baseline. Errors: ENOMEM. */
cdmpp_status cd_partition_keep(cd_partition *p, uint32_t k, cdmpp_err *err);
/* After a run: what was measured into the plan's verdict. Errors: ENOMEM. */
cdmpp_status cd_partition_verdict(cd_partition *p, cdmpp_err *err);

/* ---- stages ---- */
/* Which convolutions to merge: p->merged. Needs p->plain. Errors: those of cd_merge_apply, of
 * loading a network and of scoring; EIO (options.save_merged). */
void cd_partition_merged_free(cd_partition_merged *m);
/* Operators, layout and tasks for the target of the first device; graph NULL: options.network, else
 * it is taken. Errors: those of cd_network_load. */
cdmpp_status cd_partition_network(const cd_partition *p, cd_graph *graph, cd_network_loaded *out,
                                  cdmpp_err *err);
/* options.plan: whether nothing but that plan is needed, so that no cost model has to answer. */
bool cd_partition_needs_times(const cd_partition_options *o);
#endif

/* partition_rules -- rules about devices on a network (docs/reference/offload.md).
 *
 *   rules ──> allowed devices and pins of the plan's operators ──> (the plan, elsewhere)
 *     │
 *     └─> placement by cost under the rules, TVM's greedy one beside it ──> regions with reasons ─>
 *     sources
 *
 * Network and machine are borrowed and must outlive it. */
#ifndef CD_PARTITION_RULES_H
#define CD_PARTITION_RULES_H
#include "base/cli/cli.h"
#include "predictor/partition/emit/emit.h"
#include "predictor/partition/shard/shard.h"

typedef struct cd_partition_rules {
    const cd_network_loaded *network;
    const cd_machine *machine;
    cd_offload_rules *file;
    cd_offload_net_match rules;
    cd_offload_net_plan plan;
    const char *device[CD_MACHINE_DEVICES];
    cd_arena arena;
    bool placed, given; /* there is a placement; there is a file of rules */
} cd_partition_rules;

/* Reads the rules (path NULL: none, every device may run everything) and applies them; net (NULL:
 * not wanted) gets `allowed` and pins, a copy of its operators in o->arena. Close after an error
 * too. Errors: those of cd_offload_read, cd_offload_match_apply. */
cdmpp_status cd_partition_rules_open(cd_partition_rules *o, const char *path,
                                     const cd_network_loaded *network, const cd_machine *machine,
                                     cd_shard_net *net, cdmpp_err *err);
void cd_partition_rules_close(cd_partition_rules *o); /* zeroed is fine */
/* The placement under the rules: seconds by the plan's callback. mac: regions without a
 * multiply-add stay on the host. Errors: the callback's, those of cd_offload_plan_make. */
cdmpp_status cd_partition_rules_place(cd_partition_rules *o, cd_shard_plan_time *time, void *ctx,
                                      cd_place_goal goal, bool mac, cdmpp_err *err);
/* Writes sources into the folder `dir`: the regions of a plan (NULL: of the placement), schedules
 * of cost (NULL: simple ones). Errors: EUNSUPPORTED (an operator is split: named), those of
 * cd_offload_emit and cd_emit_write. */
cdmpp_status cd_partition_rules_emit(cd_partition_rules *o, const cd_shard_plan *plan,
                                     cd_shard_plan_time *time, void *ctx, cd_shard_cost *cost,
                                     const char *dir, cd_log *log, cdmpp_err *err);
#endif

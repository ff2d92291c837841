/* partition_pack -- the operators of a network cut into tasks, on units of this machine in one
 * launch (Rammer, OSDI 2020), and run.
 *
 *   network, models ──> seconds of operators ─┐
 *   schedules ──> programs ──> parallel loops ┴> cd_pack_cut ─> calls of each unit ─ run: threads
 *                                                               ─> times in turns, values
 *
 *   (1) a unit is a processor like the first device; an operator's seconds on one unit are those of
 *       the cost model, divided among its parallel loops by the stores that they execute, and among
 *       iterations equally;
 *   (2) with run the same is planned again with the seconds that each program was measured to take
 *       alone on one thread;
 *   (3) measured in turns (cd_executor_compare): one thread; one operator behind the other, each on
 *       all units; both plans. The fastest is kept.
 * Seconds. One thread calls. */
#ifndef CD_PARTITION_PACK_H
#define CD_PARTITION_PACK_H
#include "predictor/partition/games/games.h"
#include "predictor/partition/plan/partition.h"

typedef struct cd_partition_pack_options {
    /* network, models, schedules, machine (its first device is what a unit is), run and budget_s;
     * what plans are made for is not read */
    cd_partition_options network;
    uint32_t units; /* >= 1 */
} cd_partition_pack_options;

typedef enum cd_partition_pack_how {
    CD_PACK_ONE_THREAD,
    CD_PACK_ONE_BEHIND_THE_OTHER,
    CD_PACK_PLAN,
    CD_PACK_MEASURED_PLAN,
    CD_PACK_WAYS
} cd_partition_pack_how;
typedef struct cd_partition_pack_way {
    const char *name;
    /* of CD_PACK_MEASURED_PLAN: by measured seconds; NaN: there is none */
    double predicted_s;
    cd_executor_way_time ran; /* options.run */
} cd_partition_pack_way;

typedef struct cd_partition_pack {
    const cd_partition_pack_options *o;
    cd_partition of; /* models, network, schedules */
    cd_arena arena;
    cd_pack_network net;   /* by the cost model; work k is group group[k] of the workload */
    const uint32_t *group; /* (net.n_work) */
    cd_pack_calls calls;
    cd_pack_network measured; /* options.run: by measured seconds */
    cd_pack_calls measured_calls;
    cd_partition_pack_way way[CD_PACK_WAYS];
    bool ran;
    cd_partition_pack_how kept; /* ran: the fastest */
    /* ran: 0..1, what others used of the processors meanwhile; NaN: the system does not say */
    double others;
} cd_partition_pack;

/* Into a zeroed one; o is borrowed until free. With options.run it forks, so call it before there
 * are threads. Errors: those of cd_partition_open; EUSAGE (run on more units than this process may
 * use processors), ESCHEMA (an operator without a time or a program, named), EINTERRUPTED, those of
 * cd_pack_cut and cd_executor_compare. Free `p` after an error too. */
cdmpp_status cd_partition_pack_make(const cd_partition_pack_options *o, cd_partition_pack *p,
                                    cdmpp_err *err);
void cd_partition_pack_free(cd_partition_pack *p); /* zeroed is fine */
#endif

/* pack -- tasks of many operators packed onto the units of a device in one launch (Rammer, OSDI
 * 2020, in its simplest form).
 *
 *   An operator is n equal tasks. It is ready when all tasks of the operators before it have ended.
 *   A free unit takes a task of the ready operator with the
 *   longest chain behind it. Graham's bounds hold:
 *     max(chain, work / units) <= makespan <= work / units + (1 - 1/units) chain
 * Any thread. Seconds. */
#ifndef CD_PACK_H
#define CD_PACK_H
#include <stdint.h>

#include "base/core/core.h"

typedef struct cd_pack_op {
    const char *name;
    uint32_t tasks; /* >= 1 */
    double task_s;
    uint32_t first, n_after; /* after[first .. first + n_after) */
} cd_pack_op;
typedef struct cd_pack_run {
    uint32_t op, unit;
    double start_s;
} cd_pack_run;
typedef struct cd_pack {
    cd_arena arena;
    uint32_t n_run;
    cd_pack_run *run; /* (n_run) in the order of their start */
    double makespan_s, chain_s, work_s;
    double serial_s; /* an operator behind the other, each on all units */
} cd_pack;
/* Errors: EINVALID (cycle, edge to nowhere), ERANGE (units, tasks 0, a time; more than 1e7 tasks),
 * ENOMEM. Free `out` after an error too. */
cdmpp_status cd_pack_make(const cd_pack_op *op, uint32_t n_op, const uint32_t *after,
                          uint32_t n_after, uint32_t units, cd_pack *out, cdmpp_err *err);
void cd_pack_free(cd_pack *p);

/* ---- operators cut into tasks (pack.c) ----
 *   operator ── parts, one behind the other ── iterations that may run at the same time
 *                    part 0 [0,4) │ [4,8)     part 1 [0,3) │ [3,5)
 * A task is a few iterations of a part: at least as many as take `least_s`, at most CD_PACK_TASKS
 * tasks for each unit. A call is what a unit runs without a stop: tasks of one part in a row, or a
 * whole operator that is not cut. A call costs launch_s more than its iterations; waiting for
 * another unit costs sync_s; what another unit has made costs byte_s for each byte that is read: a
 * call reads of what is before it the same share as it has of the iterations.
 *   (1) tasks are packed as by cd_pack_make; tasks of a part that one unit runs are iterations in a
 *       row;
 *   (2) the times of the calls are those of their order played through with these costs, so
 *       makespan_s counts all of them;
 *   (3) of several least_s, from "nothing is cut" on, the best makespan counts; ties: fewer calls.
 *       Deterministic. */
#define CD_PACK_TASKS 4
#define CD_PACK_WHOLE UINT32_MAX

typedef struct cd_pack_part {
    uint32_t iterations; /* >= 1 */
    double seconds;      /* of all of them, on one unit */
} cd_pack_part;
typedef struct cd_pack_work {
    const char *name;
    uint32_t n_part;          /* >= 1 */
    const cd_pack_part *part; /* (n_part) */
    double bytes;             /* of its result; for byte_s */
    uint32_t first, n_after;  /* after[first .. first + n_after) */
} cd_pack_work;
typedef struct cd_pack_network {
    uint32_t n_work, n_after;
    const cd_pack_work *work; /* (n_work) */
    const uint32_t *after;    /* (n_after) */
    uint32_t units;
    double launch_s, sync_s, byte_s;
} cd_pack_network;
typedef struct cd_pack_call {
    uint32_t work, part; /* CD_PACK_WHOLE: all parts, then begin is 0, end 1 */
    uint32_t begin, end; /* iterations */
    double start_s, end_s;
} cd_pack_call;
typedef struct cd_pack_calls {
    cd_arena arena;
    /* (units + 1) unit u has call[first[u] .. first[u+1]), in their order */
    uint32_t *first;
    cd_pack_call *call;
    uint32_t n_wait;           /* calls that wait for another unit */
    double least_s;            /* INFINITY: nothing is cut */
    double makespan_s, work_s; /* no plan is below work_s / units */
    /* an operator behind the other, each part on all units that it has iterations for: launch_s
     * once, sync_s for each part on several, byte_s for what the others made */
    double serial_s;
    double single_s; /* all on one unit */
} cd_pack_calls;
/* The best. Errors: those of cd_pack_make; ERANGE (no part, no iterations, a cost below 0). Free
 * `out` after an error too. */
cdmpp_status cd_pack_cut(const cd_pack_network *n, cd_pack_calls *out, cdmpp_err *err);
/* With tasks of at least least_s. */
cdmpp_status cd_pack_cut_by(const cd_pack_network *n, double least_s, cd_pack_calls *out,
                            cdmpp_err *err);
void cd_pack_calls_free(cd_pack_calls *c);

/* ---- operators from a table (game_read.c) ----
 *   operator,tasks,seconds,after  seconds of a task; after (optional): operators that come before,
 *                                 blanks between
 *   conv,64,2e-5,
 *   pool,8,1e-5,conv */
typedef struct cd_pack_table {
    cd_arena arena;
    uint32_t n_op, n_after;
    cd_pack_op *op;  /* (n_op) */
    uint32_t *after; /* (n_after) */
} cd_pack_table;

/* Into a zeroed one. Errors, with path and line: those of cd_csv_table_read; ERANGE (tasks),
 * ESCHEMA (two operators of one name, `after` names none), ENOMEM. Free `t` after an error too. */
cdmpp_status cd_pack_read(const char *path, cd_pack_table *t, cdmpp_err *err);

/* ---- for people and programs (pack.c) ---- */
void cd_pack_print(const cd_pack_table *t, uint32_t units, const cd_pack *p, cd_buf *out);
/* an object */
void cd_pack_print_json(const cd_pack_table *t, uint32_t units, const cd_pack *p, cd_buf *out);
#endif

/* pack -- tasks of many operators packed onto the units of a device in one launch (Rammer, OSDI 2020, in its simplest form).
 *
 *   An operator is n equal tasks. It is ready when all tasks of the operators before it have ended. A free unit takes a task of the ready operator with the
 *   longest chain behind it. Graham's bounds hold:
 *     max(chain, work / units) <= makespan <= work / units + (1 - 1/units) chain
 * Any thread. Seconds. */
#ifndef CD_PACK_H
#define CD_PACK_H
#include <stdint.h>

#include "base/core/core.h"

typedef struct cd_pack_op {
    const char *name;
    uint32_t tasks;             /* >= 1 */
    double task_s;
    uint32_t first, n_after;    /* after[first .. first + n_after) */
} cd_pack_op;
typedef struct cd_pack_run {
    uint32_t op, unit;
    double start_s;
} cd_pack_run;
typedef struct cd_pack {
    cd_arena arena;
    uint32_t n_run;
    cd_pack_run *run;           /* (n_run) in the order of their start */
    double makespan_s, chain_s, work_s;
    double serial_s;            /* an operator behind the other, each on all units */
} cd_pack;
/* Errors: EINVALID (cycle, edge to nowhere), ERANGE (units, tasks 0, a time; more than 1e7 tasks), ENOMEM. Free `out` after an error too. */
cdmpp_status cd_pack_make(const cd_pack_op *op, uint32_t n_op, const uint32_t *after, uint32_t n_after, uint32_t units, cd_pack *out, cdmpp_err *err);
void cd_pack_free(cd_pack *p);

/* ---- operators from a table (pack_read.c) ----
 *   operator,tasks,seconds,after        seconds of a task; after (optional): operators that come before, blanks between
 *   conv,64,2e-5,
 *   pool,8,1e-5,conv */
typedef struct cd_pack_table {
    cd_arena arena;
    uint32_t n_op, n_after;
    cd_pack_op *op;             /* (n_op) */
    uint32_t *after;            /* (n_after) */
} cd_pack_table;

/* Into a zeroed one. Errors, with path and line: those of cd_csv_table_read; ERANGE (tasks), ESCHEMA (two operators of one name, `after` names none),
 * ENOMEM. Free `t` after an error too. */
cdmpp_status cd_pack_read(const char *path, cd_pack_table *t, cdmpp_err *err);

/* ---- for people and programs (pack_report.c) ---- */
void cd_pack_print(const cd_pack_table *t, uint32_t units, const cd_pack *p, cd_buf *out);
void cd_pack_print_json(const cd_pack_table *t, uint32_t units, const cd_pack *p, cd_buf *out); /* an object */
#endif

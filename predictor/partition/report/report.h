/* The door of predictor/partition/report: other rooms include this header and no other of the room.
 *
 * What a partition (predictor/partition/plan) says: text for people, JSON, a page with a timeline,
 * a trace. It only prints; every number that it prints was computed before. Buffers carry out of
 * memory as their sticky flag. */
#ifndef CD_PREDICTOR_PARTITION_REPORT_DOOR_H
#define CD_PREDICTOR_PARTITION_REPORT_DOOR_H
#include "predictor/partition/plan/plan.h"
#include "predictor/partition/run/run.h"

/* Tables: plans compared, the exchange between devices, the run, operators. explain: every operator
 * with the reason for its device. */
void cd_partition_report_text(const cd_partition *p, bool explain, cd_buf *out);
/* One JSON object on one line (docs/reference/plan.md); the plan itself is in it. */
void cd_partition_report_json(const cd_partition *p, cd_buf *out);
/* A file of its own with tables and a timeline of every plan that was made. Errors: those of
 * cd_replay_run; EIO, ENOMEM. */
cdmpp_status cd_partition_report_html(const cd_partition *p, const char *path, cdmpp_err *err);
/* The timeline of the plan for chrome://tracing and Perfetto. Errors: the same. */
cdmpp_status cd_partition_report_trace(const cd_partition *p, const char *path, cdmpp_err *err);
/* options.rules: rules as they were read, what they match here, where a pattern cuts through a
 * group, which devices each group may run on, and why not. */
void cd_partition_report_rules(const cd_partition *p, cd_buf *out);
/* ---- a packed network (predictor/partition/plan/partition_pack.h) ---- */
/* The ways to run it, the one that is kept, and all operators: when the plan runs them, and on how
 * many units. */
void cd_partition_report_pack(const cd_partition_pack *p, cd_buf *out);
/* An object, with every call of the plan. */
void cd_partition_report_pack_json(const cd_partition_pack *p, cd_buf *out);

/* ---- programs of records that share processors (predictor/partition/run/together_run.h) ---- */
/* Times alone with each number of threads, the shares that were found, and the run. */
void cd_partition_report_together(const cd_together *t, cd_buf *out);
/* An object: that of cd_cotune_print_json, and what was measured. */
void cd_partition_report_together_json(const cd_together *t, cd_buf *out);
#endif

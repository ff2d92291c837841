/* report_internal -- parts of the report that have a file of their own. */
#ifndef CD_PARTITION_REPORT_INTERNAL_H
#define CD_PARTITION_REPORT_INTERNAL_H
#include "base/text/text.h"
#include "predictor/partition/report/report.h"

/* Operators: those that matter, or all with reasons. */
void cd_partition_report_ops(const cd_partition *p, bool explain, cd_buf *b);
/* Where an operator runs: "H cpu0 0..27, ocl0 27..56". */
void cd_partition_report_shares(const cd_partition *p, const cd_shard_plan_op *op, cd_buf *b);
/* Stages: totals, then each stage with several groups; explain: every stage. */
void cd_partition_report_stages(const cd_partition *p, bool explain, cd_buf *b);
void cd_partition_report_stages_json(const cd_partition *p, cd_json_writer *w); /* a member */
#endif

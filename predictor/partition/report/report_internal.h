/* report_internal -- parts of the report that have a file of their own. */
#ifndef CD_PARTITION_REPORT_INTERNAL_H
#define CD_PARTITION_REPORT_INTERNAL_H
#include "base/text/text.h"
#include "predictor/partition/report/report.h"

/* Stages: totals, then each stage with several groups; explain: every stage. */
void cd_partition_report_stages(const cd_partition *p, bool explain, cd_buf *b);
#endif

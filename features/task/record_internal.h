/* What reading and writing of records share. Private to record.c and record_write.c. */
#ifndef CD_RECORD_INTERNAL_H
#define CD_RECORD_INTERNAL_H
#include "features/task/record.h"

#define CD_RECORD_MAX_COST_S 1e10  /* what TVM stores for a failed measurement */
#define CD_RECORD_MAX_TOTAL_S 1e18 /* no reader uses the total: it only has to be finite */
#define CD_RECORD_MAX_TIME ((int64_t)1 << 53)

/* The kinds of a step's arguments, one letter each: CD_RECORD_STEP_MAP. `k` is a known kind. */
const char *cd_record_step_args(cd_record_step_kind k);
#endif

/* partition_pack_internal -- the step inside cd_partition_pack_make. */
#ifndef CD_PARTITION_PACK_INTERNAL_H
#define CD_PARTITION_PACK_INTERNAL_H
#include "predictor/partition/plan/partition_pack.h"

/* Compiles and measures the programs, plans again by what was measured, and measures all ways. */
cdmpp_status cd_partition_pack_run(cd_partition_pack *p, cdmpp_err *err);
#endif

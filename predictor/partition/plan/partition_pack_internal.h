/* partition_pack_internal -- the step inside cd_partition_pack_make. */
#ifndef CD_PARTITION_PACK_INTERNAL_H
#define CD_PARTITION_PACK_INTERNAL_H
#include "predictor/partition/plan/partition_pack.h"

#endif

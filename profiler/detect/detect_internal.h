/* What the files of profiler/detect share: test networks by their operators. Private to the
 * room. */
#ifndef CD_DETECT_INTERNAL_H
#define CD_DETECT_INTERNAL_H
#include "profiler/detect/detect.h"

/* A part of a test network: operators in a row, or `branch`: the only one, and an Add of its result
 * and of what it read. */
typedef struct cd_detect_part {
    uint32_t n;
    uint32_t op[CD_DETECT_CHAIN]; /* positions in the table of operators */
    bool branch;
} cd_detect_part;

#endif

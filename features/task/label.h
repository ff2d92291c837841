/* label -- the latency of a measured program: one number from the repeats of a record. */
#ifndef CD_LABEL_H
#define CD_LABEL_H
#include <stdint.h>

#define CD_LABEL_REJECTED 254     /* error: the target rejects the program */
#define CD_LABEL_NOT_MEASURED 255 /* error: the record claims success without a time */

typedef struct cd_label {
    double latency_s, mean_s, std_s, min_s; /* median, mean, population deviation, fastest of the repeats; NaN where error is not 0 */
    uint32_t repeats;
    uint8_t error;                          /* 0: measured; 1..8: TVM's error number; or one of the above */
} cd_label;

/* From cost_s: (n) seconds, sorted in place, and the record's error number. A median is the label because single
 * repeats may be interrupted. */
cd_label cd_label_of(double *cost_s, uint32_t n, int64_t error_no);
#endif

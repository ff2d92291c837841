/* tune_knobs -- steps as numbers: what all steps of a class share, and what may differ.
 *
 *   SP 3 0 512 [4,8] 1, PR 2 0 "auto_unroll_max_step$64"
 *     class   hash of  SP 3 |2|   PR 2 "auto_unroll_max_step"
 *     number           0 512 1 4 8   0 . . 64
 * Steps of one class have equally many numbers, of the same meaning. Any thread. */
#ifndef CD_TUNE_KNOBS_H
#define CD_TUNE_KNOBS_H
#include "predictor/tune/core/tune.h"

/* Digest of what equal steps share but for their numbers; how many numbers they have. */
uint64_t cd_tune_class(const cd_record_step *step, uint32_t n_step);
uint32_t cd_tune_knobs_count(const cd_record_step *step, uint32_t n_step);
/* at (may be NULL): the step of each. */
void cd_tune_numbers(const cd_record_step *step, uint32_t n_step, int32_t *number, uint16_t *at);
#endif

/* A record has several measured times, or an error number, or neither: files that wait for
 * measurement hold zeros, and a failed measurement costs 1e10 s in TVM. All of these become a label
 * or the reason why there is none. */
#include "features/task/task.h"

#include <math.h>

#define COST_FAILED 1e10 /* TVM's mark for a failed measurement */

static uint8_t error_of(const double *cost, uint32_t n, int64_t error_no) {
    if (error_no != 0)
        return error_no > 0 && error_no < CD_LABEL_NOT_MEASURED ? (uint8_t)error_no : 8;
    if (n == 0) return CD_LABEL_NOT_MEASURED;
    for (uint32_t i = 0; i < n; i++) {
        if (cost[i] >= COST_FAILED) return 8;
        /* 0 in files that are still to be measured; NaN */
        if (!(cost[i] > 0)) return CD_LABEL_NOT_MEASURED;
    }
    return 0;
}

cd_label cd_label_of(double *cost_s, uint32_t n, int64_t error_no) {
    const double none = (double)NAN;
    double sum = 0, square = 0;
    cd_label out = {none, none, none, none, 0, error_of(cost_s, n, error_no)};
    if (out.error) return out;
    cd_sort_doubles(cost_s, n);
    for (uint32_t i = 0; i < n; i++) sum += cost_s[i];
    const double mean = sum / n;
    for (uint32_t i = 0; i < n; i++) square += (cost_s[i] - mean) * (cost_s[i] - mean);
    return (cd_label){cd_sort_median(cost_s, n), mean, sqrt(square / n), cost_s[0], n, 0};
}

/* predict_rows -- latencies of programs of which only feature rows are known. */
#ifndef PREDICT_ROWS_H
#define PREDICT_ROWS_H
#include "learner/model/model.h"

static inline cdmpp_status predict_rows(const cd_model *m, cd_model_scratch *s, const float *row,
                                        const int64_t *ptr, const uint32_t *dev, size_t n,
                                        double *y, cdmpp_err *err) {
    cd_model_prediction p[16];
    const cd_program_view v = {.n = n, .row = row, .row_ptr = ptr, .device = dev};
    const cdmpp_status st = cd_model_predict(m, s, &v, NULL, n, p, err);
    for (size_t i = 0; !st && i < n; i++) y[i] = p[i].latency_s;
    return st;
}
#endif

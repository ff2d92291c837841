/* Columns to a common range. Trees need none of this; a network trains badly on columns whose sizes
 * differ by powers of ten. */
#include "learner/inputs/scaler.h"

#include <math.h>

cdmpp_status cd_scaler_init(cd_scaler *s, size_t n, cdmpp_err *err) {
    *s = (cd_scaler){.n = n, .shift = cd_mem_zalloc(2 * n + 1, sizeof(float))};
    if (!s->shift) return CD_FAIL(err, ENOMEM, "scaler of %zu columns", n);
    s->scale = s->shift + n;
    for (size_t c = 0; c < n; c++) s->scale[c] = 1;
    return CDMPP_OK;
}

void cd_scaler_free(cd_scaler *s) {
    cd_mem_free(s->shift);
    *s = (cd_scaler){0};
}

void cd_scaler_apply(const cd_scaler *s, float *x, size_t n_row) {
    for (size_t i = 0; i < n_row; i++, x += s->n)
        for (size_t c = 0; c < s->n; c++) {
            const float v = (x[c] - s->shift[c]) * s->scale[c];
            x[c] = v > CD_SCALER_CLIP    ? CD_SCALER_CLIP
                   : v < -CD_SCALER_CLIP ? -CD_SCALER_CLIP
                   : v == v              ? v
                                         : 0;
        }
}

cdmpp_status cd_scaler_fit_init(cd_scaler_fit *f, size_t n, cdmpp_err *err) {
    *f = (cd_scaler_fit){.n = n, .mean = cd_mem_zalloc(4 * n + 1, sizeof(double))};
    if (!f->mean) return CD_FAIL(err, ENOMEM, "statistics of %zu columns", n);
    f->m2 = f->mean + n;
    f->lo = f->m2 + n;
    f->hi = f->lo + n;
    return CDMPP_OK;
}

/* Welford's update: no cancellation however far the mean is from 0. */
void cd_scaler_fit_add(cd_scaler_fit *f, const float *x) {
    const double w = 1 / (double)++f->n_row;
    for (size_t c = 0; c < f->n; c++) {
        const double v = (double)x[c], d = v - f->mean[c];
        f->mean[c] += d * w;
        f->m2[c] += d * (v - f->mean[c]);
        f->lo[c] = f->n_row == 1 ? v : fmin(f->lo[c], v);
        f->hi[c] = f->n_row == 1 ? v : fmax(f->hi[c], v);
    }
}

void cd_scaler_fit_end(const cd_scaler_fit *f, cd_scale kind, cd_scaler *s) {
    for (size_t c = 0; c < f->n; c++) {
        const double sd = f->n_row ? sqrt(f->m2[c] / (double)f->n_row) : 0;
        s->shift[c] = (float)(kind == CD_SCALE_STANDARD ? f->mean[c]
                              : kind == CD_SCALE_MINMAX ? f->lo[c]
                                                        : 0);
        if (kind == CD_SCALE_NONE) s->scale[c] = 1;
        else if (!(f->hi[c] > f->lo[c]) || !(sd > 0)) s->scale[c] = 0;
        else
            s->scale[c] =
                (float)(kind == CD_SCALE_STANDARD ? 1 / sd : 1 / (f->hi[c] - f->lo[c] + 1e-6));
    }
}

void cd_scaler_fit_free(cd_scaler_fit *f) {
    cd_mem_free(f->mean);
    *f = (cd_scaler_fit){0};
}

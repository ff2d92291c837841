#include "dataset/filter.h"

#include <math.h>

const char *cd_drop_text(cd_drop d) {
    static const char *const text[] = {
#define CD_X(name, t) t,
        CD_FILTER_MAP(CD_X)
#undef CD_X
    };
    return text[d];
}

/* The first reason to drop program i on its own merits; CD_N_DROP: none. */
static cd_drop reason(const cd_dataset *d, const cd_filter_spec *spec, size_t i) {
    const double y = d->latency_s[i], mean = d->latency_mean_s[i], std = d->latency_std_s[i];
    if (d->error[i]) return CD_DROP_ERROR;
    if (!isfinite(y) || y <= 0 || y >= 1e9) return CD_DROP_LATENCY;
    if (d->row_ptr[i + 1] == d->row_ptr[i]) return CD_DROP_NO_ROWS;
    /* Negated, so that a NaN is noisy. */
    if (spec->max_std_ratio > 0 && d->repeats[i] > 1 && !(std <= spec->max_std_ratio * mean)) return CD_DROP_NOISY;
    return CD_N_DROP;
}

cdmpp_status cd_filter(const cd_dataset *d, const cd_filter_spec *spec, uint8_t *keep, cd_filter_count *count,
                       cdmpp_err *err) {
    *count = (cd_filter_count){.in = d->n};
    size_t *per = cd_calloc(d->n_task * d->n_device + 1, sizeof *per);
    if (!per) return CD_FAIL(err, ENOMEM, "counts of %zu tasks", d->n_task);
    for (size_t i = 0; i < d->n; i++) {
        const cd_drop r = reason(d, spec, i);
        keep[i] = r == CD_N_DROP;
        if (keep[i]) per[d->task[i] * d->n_device + d->device[i]]++;
        else count->drop[r]++;
    }
    for (size_t i = 0; i < d->n; i++) {
        if (keep[i] && (int64_t)per[d->task[i] * d->n_device + d->device[i]] < spec->min_per_task) {
            keep[i] = 0;
            count->drop[CD_DROP_RARE]++;
        }
        count->kept += keep[i];
    }
    cd_free(per);
    return CDMPP_OK;
}

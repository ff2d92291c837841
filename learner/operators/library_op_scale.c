/* Measured operators of one GPU scaled to another, by an operator model or by closed forms. */
#include "learner/operators/library_op_scale.h"

#include <math.h>

/* Half the interval of the closed forms as a logarithm; 0: not known. */
static const double half[CD_N_LIBRARY_OP_CLASS][CD_N_WAVE_SCALE] = {
#define X(class, waves, roofline, bandwidth)                                                       \
    [CD_LIBRARY_OP_CLASS_##class] = {waves, roofline, bandwidth},
#include "learner/operators/library_op_scale_spread.def"
};

/* Operations against bytes at the peaks of the device; NaN where its description lacks a number of
 * the roofline. */
static double balance_of(const cd_library_op_record *r, const cd_device *to) {
    float x[CD_LIBRARY_OP_N_FEATURE];
    cd_library_op_base base;
    return cd_library_op_feature(r, to, false, x, &base, NULL) ? (double)NAN
                                                               : base.compute_s / base.memory_s;
}

static void interval(const cd_library_op_record *r, cd_library_op_scaled *s) {
    const double h = half[cd_library_op_kind_class(r->kind)][s->closed.form];
    s->low_s = h > 0 ? s->latency_s * exp(-h) : (double)NAN;
    s->high_s = h > 0 ? s->latency_s * exp(h) : (double)NAN;
}

/* No answer, and no end of its interval, is below what the GPU needs at best. */
static void at_least(const cd_library_op_record *r, const cd_device *to, cd_library_op_scaled *s) {
    const double least = cd_library_op_least_s(r, to);
    if (s->latency_s < least) s->high_s *= least / s->latency_s, s->latency_s = least;
    if (s->low_s < least) s->low_s = least; /* NaN stays */
}

static cdmpp_status by_closed_form(const cd_library_op_record *r, const cd_device *from,
                                   const cd_device *to, cd_library_op_scaled *s, cdmpp_err *err) {
    const cd_wave_scale_kernel k = {r->latency_s, r->launch_s, balance_of(r, to), r->blocks,
                                    r->block_threads};
    CD_TRY(cd_wave_scale(&k, from, to, &s->closed, err));
    s->latency_s = s->closed.time_s;
    s->from_s = (double)NAN;
    /* the errors were found on tables of float32 */
    s->unlike = r->dtype == CD_LIBRARY_OP_DTYPE_F32 ? 0 : CD_LIBRARY_OP_UNLIKE_DTYPE;
    interval(r, s);
    at_least(r, to, s);
    return CDMPP_OK;
}

static void by_model(const cd_library_op_model *m, const cd_library_op_record *r,
                     const cd_device *from, const cd_device *to, double from_s, double to_s,
                     cd_library_op_scaled *s) {
    s->from_s = from_s;
    s->latency_s = to_s * (cd_library_op_model_seen(m, r->kind, from)
                               ? pow(r->latency_s / from_s, CD_LIBRARY_OP_SCALE_CARRIED)
                               : 1);
    const cd_library_op_range v =
        cd_library_op_model_range(m, r, to, s->latency_s, CD_LIBRARY_OP_SCALE_LEVEL);
    s->low_s = v.low_s;
    s->high_s = v.high_s;
    s->unlike = v.unlike;
    at_least(r, to, s);
}

/* Both GPUs are asked in one call of the model: rows 0..n-1 are of `from`. */
static cdmpp_status ask(const cd_library_op_model *m, const cd_library_op_record *r, size_t n,
                        const cd_device *from, const cd_device *to, double *s,
                        const cd_device **device, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) device[i] = from, device[n + i] = to;
    CD_TRY(cd_library_op_model_predict(m, r, device, n, s, err));
    return cd_library_op_model_predict(m, r, device + n, n, s + n, err);
}

cdmpp_status cd_library_op_scale(const cd_library_op_model *m, const cd_library_op_record *r,
                                 size_t n, const cd_device *from, const cd_device *to,
                                 cd_library_op_scaled *out, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) {
        const cdmpp_status st = by_closed_form(&r[i], from, to, &out[i], err);
        if (st) return cd_err_index(err, st, i);
    }
    if (!m || !n) return CDMPP_OK;
    double *s = cd_mem_zalloc(2 * n, sizeof *s);
    const cd_device **device = cd_mem_zalloc(2 * n, sizeof *device);
    cdmpp_status st = s && device ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu operators", n);
    if (!st) st = ask(m, r, n, from, to, s, device, err);
    for (size_t i = 0; !st && i < n; i++) by_model(m, &r[i], from, to, s[i], s[n + i], &out[i]);
    cd_mem_free(s);
    cd_mem_free(device);
    return st;
}

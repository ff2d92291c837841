/* Columns to a common range. Trees need none of this; a network trains badly on columns whose sizes
 * differ by powers of ten. */
#include "learner/inputs/scaler.h"

#include <math.h>
#include <string.h>

#include "learner/inputs/batch_internal.h"

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

/* The scalers of a batch's inputs: fitted over the train part one program at a time, saved and read
 * as tensors. */

cdmpp_status cd_scalers_init(cd_scalers *s, const cd_batch_spec *spec, cdmpp_err *err) {
    memset(s, 0, sizeof *s);
    CD_TRY(cd_scaler_init(&s->tok, cd_batch_token_width(spec), err));
    CD_TRY(cd_scaler_init(&s->prog, cd_batch_program_width(spec), err));
    CD_TRY(cd_scaler_init(&s->trips, 1, err));
    return cd_scaler_init(&s->dev, spec->w_dev, err);
}

void cd_scalers_free(cd_scalers *s) {
    cd_scaler_free(&s->tok);
    cd_scaler_free(&s->prog);
    cd_scaler_free(&s->dev);
    cd_scaler_free(&s->trips);
}

typedef struct {
    cd_scaler_fit tok, prog;
    float *x;     /* one program, unscaled */
    double trips; /* sum over programs of ln(sum over leaves of trips) */
} fits;

static cdmpp_status open_fits(fits *f, const cd_batch_spec *spec, const cd_program_view *v,
                              const uint32_t *index, size_t n, cdmpp_err *err) {
    const size_t w_tok = cd_batch_token_width(spec), w_prog = cd_batch_program_width(spec);
    cd_batch_dims most;
    CD_TRY(cd_scaler_fit_init(&f->tok, w_tok, err));
    CD_TRY(cd_scaler_fit_init(&f->prog, w_prog, err));
    CD_TRY(cd_batch_bound(spec, v, index, n, 1, &most, err));
    f->x = cd_mem_zalloc(most.max_leaf * w_tok + w_prog + 1, sizeof *f->x);
    return f->x ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu leaves", most.max_leaf);
}

static double log_trips(const fits *f, size_t n_leaf) {
    double max = 0, sum = 0;
    for (size_t l = 0; l < n_leaf; l++)
        max = fmax(max, cd_tree_input_log_trips(f->x + l * f->tok.n));
    for (size_t l = 0; l < n_leaf; l++)
        sum += exp(cd_tree_input_log_trips(f->x + l * f->tok.n) - max);
    return max + log(sum);
}

/* Tokens count leaf by leaf, the program vector once a program. */
static cdmpp_status add_all(fits *f, const cd_batch_spec *spec, const cd_program_view *v,
                            const uint32_t *index, size_t n, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) {
        const size_t p = index ? index[i] : i;
        if (i % 16 == 0) cd_spool_rest(v->spool);
        CD_TRY(cd_batch_check(spec, v, p, err));
        if (f->tok.n) {
            cd_batch_raw_tokens(spec, v, p, f->x);
            for (size_t l = 0; l < cd_batch_leaves(spec, v, p); l++)
                cd_scaler_fit_add(&f->tok, f->x + l * f->tok.n);
            if (!spec->steps) f->trips += log_trips(f, cd_batch_leaves(spec, v, p));
        }
        if (f->prog.n) {
            cd_batch_raw_program(spec, v, p, f->x);
            cd_scaler_fit_add(&f->prog, f->x);
        }
    }
    return CDMPP_OK;
}

cdmpp_status cd_scalers_fit(cd_scalers *s, cd_scale kind, const cd_batch_spec *spec,
                            const cd_program_view *v, const uint32_t *index, size_t n,
                            cdmpp_err *err) {
    fits f = {0};
    cdmpp_status st = open_fits(&f, spec, v, index, n, err);
    if (!st) st = add_all(&f, spec, v, index, n, err);
    if (!st) {
        cd_scaler_fit_end(&f.tok, kind, &s->tok);
        cd_scaler_fit_end(&f.prog, kind, &s->prog);
        s->trips.shift[0] = (float)(f.trips / (double)(n ? n : 1));
    }
    cd_scaler_fit_free(&f.tok);
    cd_scaler_fit_free(&f.prog);
    cd_mem_free(f.x);
    return st;
}

/* ---- as tensors ---- */
typedef struct {
    const char *shift, *scale;
    const cd_scaler *s;
} named;

static void names(const cd_scalers *s, named out[4]) {
    out[0] = (named){"scaler.tokens.shift", "scaler.tokens.scale", &s->tok};
    out[1] = (named){"scaler.program.shift", "scaler.program.scale", &s->prog};
    out[2] = (named){"scaler.device.shift", "scaler.device.scale", &s->dev};
    out[3] = (named){"scaler.trips.shift", "scaler.trips.scale", &s->trips};
}

size_t cd_scalers_tensors(const cd_scalers *s, cd_tensor *t) {
    named n[4];
    names(s, n);
    for (size_t i = 0; i < 4; i++) {
        t[2 * i] = (cd_tensor){
            .name = n[i].shift, .n_dim = 1, .dim = {n[i].s->n, 1}, .value = n[i].s->shift};
        t[2 * i + 1] = (cd_tensor){
            .name = n[i].scale, .n_dim = 1, .dim = {n[i].s->n, 1}, .value = n[i].s->scale};
    }
    return CD_SCALERS_TENSORS;
}

cdmpp_status cd_scalers_read(cd_scalers *s, const cd_safetensors *f, cdmpp_err *err) {
    named n[4];
    names(s, n);
    for (size_t i = 0; i < 4; i++) {
        CD_TRY(cd_safetensors_get(f, n[i].shift, 1, &n[i].s->n, n[i].s->shift, err));
        CD_TRY(cd_safetensors_get(f, n[i].scale, 1, &n[i].s->n, n[i].s->scale, err));
    }
    return CDMPP_OK;
}

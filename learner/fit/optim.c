/* Adam, AdamW and SGD with PyTorch's formulas. The parameters are cut into chunks of fixed size, so
 * the norm has the same bits for any number of threads. */
#include "learner/fit/optim.h"

#include <math.h>
#include <string.h>

cd_optim_spec cd_optim_spec_of(cd_optim_kind kind) {
    return (cd_optim_spec){
        .kind = kind, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .momentum = 0.9};
}

/* ---- setting up ---- */
static cdmpp_status within(double v, double lo, double hi, const char *key, cdmpp_err *err) {
    if (v >= lo && v <= hi) return CDMPP_OK;
    return cd_err_key(err, CD_FAIL(err, ERANGE, "expected %g to %g, found %g", lo, hi, v), key);
}

static cdmpp_status check(const cd_optim_spec *s, cdmpp_err *err) {
    CD_TRY(within(s->beta1, 0, 0.9999999, "beta1", err));
    CD_TRY(within(s->beta2, 0, 0.9999999, "beta2", err));
    CD_TRY(within(s->eps, 1e-30, 1, "eps", err));
    CD_TRY(within(s->momentum, 0, 0.9999999, "momentum", err));
    CD_TRY(within(s->decay, 0, 1e3, "decay", err));
    return within(s->clip, 0, 1e30, "clip", err);
}

static size_t cut(const cd_optim_span *span, size_t n_span, cd_optim_span *out) {
    size_t n = 0;
    for (size_t k = 0; k < n_span; k++)
        for (size_t at = span[k].beg; at < span[k].end; at += CD_OPTIM_CHUNK, n++) {
            const size_t end =
                span[k].end - at < CD_OPTIM_CHUNK ? span[k].end : at + CD_OPTIM_CHUNK;
            if (out) out[n] = (cd_optim_span){at, end, span[k].decay};
        }
    return n;
}

cdmpp_status cd_optim_init(cd_optim *o, const cd_optim_spec *spec, size_t n,
                           const cd_optim_span *span, size_t n_span, cdmpp_err *err) {
    *o = (cd_optim){.spec = *spec, .n = n};
    CD_TRY(check(spec, err));
    o->n_chunk = cut(span, n_span, NULL);
    o->chunk = CD_NEWN(&o->arena, cd_optim_span, o->n_chunk);
    o->sum = CD_NEWN(&o->arena, double, o->n_chunk);
    o->m = CD_NEWN(&o->arena, float, n);
    if (spec->kind != CD_OPTIM_SGD) o->v = CD_NEWN(&o->arena, float, n);
    if (o->arena.oom) {
        cd_optim_free(o);
        return CD_FAIL(err, ENOMEM, "moments of %zu parameters", n);
    }
    cut(span, n_span, o->chunk);
    return CDMPP_OK;
}

void cd_optim_free(cd_optim *o) {
    cd_arena_free(&o->arena);
    *o = (cd_optim){0};
}

/* ---- one step ---- */
typedef struct {
    cd_optim *o;
    float *value;
    const float *grad;
    double lr, scale;
} stepping;

static cdmpp_status add_squares(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const stepping *s = ctx;
    (void)w, (void)err;
    for (size_t k = beg; k < end; k++) {
        double sum = 0;
        for (size_t i = s->o->chunk[k].beg; i < s->o->chunk[k].end; i++)
            sum += (double)s->grad[i] * (double)s->grad[i];
        s->o->sum[k] = sum;
    }
    return CDMPP_OK;
}

/* The bias corrections 1 - beta^t are scalars of the step; decay is added to the gradient (Adam) or
 * shrinks the value (AdamW). */
static void adam(const stepping *s, const cd_optim_span *c) {
    const cd_optim_spec *p = &s->o->spec;
    const double t = (double)s->o->step, decay = c->decay ? p->decay : 0;
    const float b1 = (float)p->beta1, c1 = (float)(1 - p->beta1), b2 = (float)p->beta2,
                c2 = (float)(1 - p->beta2);
    const float rate = (float)(s->lr / (1 - pow(p->beta1, t))),
                root = (float)sqrt(1 - pow(p->beta2, t)), eps = (float)p->eps;
    const float shrink = p->kind == CD_OPTIM_ADAMW ? (float)(1 - s->lr * decay) : 1;
    const float coupled = p->kind == CD_OPTIM_ADAM ? (float)decay : 0, scale = (float)s->scale;
    float *x = s->value, *m = s->o->m, *v = s->o->v;
    for (size_t i = c->beg; i < c->end; i++) {
        const float g = s->grad[i] * scale + coupled * x[i];
        m[i] = m[i] * b1 + c1 * g;
        v[i] = v[i] * b2 + c2 * g * g;
        x[i] = x[i] * shrink - rate * m[i] / (sqrtf(v[i]) / root + eps);
    }
}

static void sgd(const stepping *s, const cd_optim_span *c) {
    const float mu = (float)s->o->spec.momentum, decay = c->decay ? (float)s->o->spec.decay : 0;
    const float lr = (float)s->lr, scale = (float)s->scale;
    float *x = s->value, *m = s->o->m;
    for (size_t i = c->beg; i < c->end; i++) {
        m[i] = mu * m[i] + (s->grad[i] * scale + decay * x[i]);
        x[i] -= lr * m[i];
    }
}

static cdmpp_status move(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const stepping *s = ctx;
    (void)w, (void)err;
    for (size_t k = beg; k < end; k++) {
        if (s->o->spec.kind == CD_OPTIM_SGD) sgd(s, &s->o->chunk[k]);
        else adam(s, &s->o->chunk[k]);
    }
    return CDMPP_OK;
}

/* Norm first, over all chunks; only then does anything move. */
cdmpp_status cd_optim_step(cd_optim *o, cd_threads *pool, double lr, float *value,
                           const float *grad, double *norm, cdmpp_err *err) {
    stepping s = {o, value, grad, lr, 1};
    double sum = 0;
    CD_TRY(cd_threads_run(pool, o->n_chunk, 1, add_squares, &s, err));
    for (size_t k = 0; k < o->n_chunk; k++) sum += o->sum[k];
    sum = sqrt(sum);
    if (norm) *norm = sum;
    if (!isfinite(sum)) return CD_FAIL(err, ENUMERIC, "the norm of the gradient is %g", sum);
    /* PyTorch's 1e-6 */
    if (o->spec.clip > 0 && sum > o->spec.clip) s.scale = o->spec.clip / (sum + 1e-6);
    o->step++;
    return cd_threads_run(pool, o->n_chunk, 1, move, &s, err);
}

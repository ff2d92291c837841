/* The reference numbers are torch 1.13's after 20 steps on the same gradients. */
#include "learner/fit/optim.h"
#include "check.h"
#include "fault.h"

#include <string.h>

#include "base/core/core.h"
#include "learner/fit/learning_rate.h"

enum { FEW = 5, STEPS = 20 };
static const cd_optim_span all[] = {{0, FEW, true}};

static void start(float *x) {
    for (int i = 0; i < FEW; i++) x[i] = (float)(0.5 - 0.2 * i);
}

static void gradient(float *g, int t) {
    for (int i = 0; i < FEW; i++) g[i] = (float)(cos(1.3 * t + i) * (i + 1) * 0.3);
}

static void run(const cd_optim_spec *spec, const cd_learning_rate *rate, const double *want) {
    cdmpp_err err = {0};
    cd_optim o;
    float x[FEW], g[FEW];
    start(x);
    assert_ok(cd_optim_init(&o, spec, FEW, all, 1, &err));
    for (int t = 0; t < STEPS; t++) {
        gradient(g, t);
        assert_ok(
            cd_optim_step(&o, NULL, cd_learning_rate_at(rate, (uint64_t)t), x, g, NULL, &err));
    }
    for (int i = 0; i < FEW; i++) assert_close((double)x[i], want[i], 2e-6, 1e-7);
    cd_optim_free(&o);
}

static void as_torch(void **s) {
    (void)s;
    const cd_learning_rate constant = cd_learning_rate_of(CD_LEARNING_RATE_CONSTANT, 0.01);
    cd_learning_rate cyclic = cd_learning_rate_of(CD_LEARNING_RATE_CYCLIC, 0.01);
    cyclic.up = 7;
    cyclic.down = 4;
    cd_optim_spec o = cd_optim_spec_of(CD_OPTIM_ADAM);
    run(&o, &constant,
        (const double[]){0.477125496, 0.301597029, 0.135615155, -0.0745973065, -0.297783077});
    run(&o, &cyclic,
        (const double[]){0.466135472, 0.347667456, 0.188234806, -0.0563974492, -0.336027145});
    o.decay = 0.1;
    run(&o, &constant,
        (const double[]){0.439757198, 0.288404047, 0.132165894, -0.072964333, -0.292533129});
    o.beta1 = 0.8, o.beta2 = 0.99, o.eps = 1e-3, o.clip = 0.7;
    run(&o, &constant,
        (const double[]){0.408187389, 0.270635784, 0.119405352, -0.0770705044, -0.285577536});
    o = cd_optim_spec_of(CD_OPTIM_ADAMW);
    o.decay = 0.1;
    run(&o, &constant,
        (const double[]){0.467610478, 0.295662284, 0.133046895, -0.0730453059, -0.291908622});
    o = cd_optim_spec_of(CD_OPTIM_SGD);
    o.decay = 0.1;
    run(&o, &constant,
        (const double[]){0.430178314, 0.277146786, 0.141833887, -0.0357516706, -0.283143669});
    o = cd_optim_spec_of(CD_OPTIM_SGD);
    o.momentum = 0, o.clip = 1.5;
    run(&o, &constant,
        (const double[]){0.498125851, 0.297785401, 0.102032989, -0.0926417261, -0.293449044});
}

/* ---- many parameters ---- */
enum { N = 200000 };
static float value[2][N], grad[N];

static void fill(uint64_t seed, float *x) {
    for (uint64_t i = 0; i < N; i++) x[i] = (float)(cd_rng_unit(seed, i) - 0.5);
}

/* Any pool gives the same bits, the gradient's norm included. */
static void any_pool(void **s) {
    (void)s;
    cdmpp_err err = {0};
    const cd_optim_span span[] = {{0, 70001, true}, {70016, 70020, false}, {80000, N, true}};
    for (int kind = 0; kind <= CD_OPTIM_SGD; kind++) {
        double norm[2];
        for (int k = 0; k < 2; k++) {
            cd_threads *pool;
            cd_optim o;
            cd_optim_spec spec = cd_optim_spec_of((cd_optim_kind)kind);
            spec.clip = 1;
            spec.decay = 0.01;
            assert_ok(cd_threads_new(k ? 3 : 1, &pool, &err));
            assert_ok(cd_optim_init(&o, &spec, N, span, 3, &err));
            fill(1, value[k]);
            for (uint64_t t = 0; t < 3; t++) {
                fill(2 + t, grad);
                assert_ok(cd_optim_step(&o, pool, 0.1, value[k], grad, &norm[k], &err));
            }
            cd_optim_free(&o);
            cd_threads_free(pool);
        }
        assert_memory_equal(value[0], value[1], sizeof value[0]);
        assert_memory_equal(&norm[0], &norm[1], sizeof norm[0]);
        assert_close(norm[0], sqrt((70001 + 4 + N - 80000) / 12.0), 1e-2, 0);
    }
}

/* What no span covers stays and does not count; decay only where the span says so. */
static void spans(void **s) {
    (void)s;
    cdmpp_err err = {0};
    const cd_optim_span span[] = {{1, 2, true}, {2, 3, false}};
    for (int kind = 0; kind <= CD_OPTIM_SGD; kind++) {
        float x[4] = {1, 1, 1, 1};
        const float g[4] = {NAN, 0, 0, NAN};
        cd_optim_spec spec = cd_optim_spec_of((cd_optim_kind)kind);
        cd_optim o;
        double norm;
        spec.decay = 0.5;
        assert_ok(cd_optim_init(&o, &spec, 4, span, 2, &err));
        assert_ok(cd_optim_step(&o, NULL, 0.1, x, g, &norm, &err));
        assert_close(norm, 0, 0, 0);
        assert_true(x[0] >= 1 && x[2] >= 1 && x[3] >= 1 && x[1] < 1);
        cd_optim_free(&o);
    }
}

static void clipping_has_the_norm_asked_for(void **s) {
    (void)s;
    cdmpp_err err = {0};
    const cd_optim_span span[] = {{0, N, true}};
    cd_optim_spec spec = cd_optim_spec_of(CD_OPTIM_SGD);
    cd_optim o;
    double sum = 0, norm;
    spec.momentum = 0;
    spec.clip = 2;
    assert_ok(cd_optim_init(&o, &spec, N, span, 1, &err));
    memset(value[0], 0, sizeof value[0]);
    fill(9, grad);
    assert_ok(cd_optim_step(&o, NULL, 1, value[0], grad, &norm, &err));
    for (int i = 0; i < N; i++) sum += (double)value[0][i] * (double)value[0][i];
    assert_close(sqrt(sum), 2, 1e-6, 0);
    assert_true(norm > 100);
    cd_optim_free(&o);
}

static void not_finite(void **s) {
    (void)s;
    cdmpp_err err = {0};
    const cd_optim_spec spec = cd_optim_spec_of(CD_OPTIM_ADAM);
    cd_optim o;
    float x[FEW], y[FEW], g[FEW] = {0, 1, (float)INFINITY, 0, 0};
    start(x);
    start(y);
    assert_ok(cd_optim_init(&o, &spec, FEW, all, 1, &err));
    assert_status(cd_optim_step(&o, NULL, 0.1, x, g, NULL, &err), CDMPP_ENUMERIC);
    assert_memory_equal(x, y, sizeof x);
    assert_int_equal(o.step, 0);
    cd_optim_free(&o);
}

static void refused(void **s) {
    (void)s;
    static const char *const key[] = {"beta1", "beta2", "eps", "momentum", "decay", "clip"};
    for (size_t k = 0; k < sizeof key / sizeof key[0]; k++) {
        cdmpp_err err = {0};
        cd_optim o;
        cd_optim_spec p = cd_optim_spec_of(CD_OPTIM_ADAM);
        if (k == 0) p.beta1 = 1;
        if (k == 1) p.beta2 = -1;
        if (k == 2) p.eps = 0;
        if (k == 3) p.momentum = (double)NAN;
        if (k == 4) p.decay = -1;
        if (k == 5) p.clip = -1;
        assert_status(cd_optim_init(&o, &p, FEW, all, 1, &err), CDMPP_ERANGE);
        assert_string_equal(err.key, key[k]);
    }
    /* so many parameters that each moment needs a chunk of the arena of its own */
    const cd_optim_spec spec = cd_optim_spec_of(CD_OPTIM_ADAM);
    const cd_optim_span many = {0, 100000, true};
    FAULT_SWEEP(f, 3) {
        cd_optim o;
        f.st = cd_optim_init(&o, &spec, many.end, &many, 1, &f.err);
        if (!f.st) cd_optim_free(&o);
    }
}

TESTS(NULL, NULL, as_torch, any_pool, spans, clipping_has_the_norm_asked_for, not_finite, refused)

/* made_fit.h -- a small training on made-up programs, and how to compare two results. */
#ifndef MADE_FIT_H
#define MADE_FIT_H
#include "check.h"
#include "learner/fit/fit.h"
#include "made_view.h"

enum { N = 320, TRAIN = 240 };
static made_view made;
static uint32_t index_of[N];
static const float device[] = {0.1f, 0.9f, -0.3f, 0.5f, -0.2f, 0.4f};
static cd_fit_data parts;

static inline int made_fit(void **s) {
    (void)s;
    made_view_fill(&made, N, 1, 0);
    /* 7 and 320 have no common factor */
    for (uint32_t i = 0; i < N; i++) index_of[i] = (i * 7) % N;
    parts = (cd_fit_data){.view = &made.view,
                          .latency_s = made.latency_s,
                          .group = made.group,
                          .train = index_of,
                          .n_train = TRAIN,
                          .valid = index_of + TRAIN,
                          .n_valid = N - TRAIN,
                          .device = device,
                          .n_device = 2,
                          .w_dev = 3};
    return 0;
}

static inline cd_fit_spec made_spec(cd_net_kind kind) {
    cd_fit_spec s = cd_fit_spec_small(kind);
    s.net.layers = 1;
    s.net.width = 16;
    s.net.slots = MADE_MOST;
    s.net.heads = 2;
    s.net.ff = 24;
    s.net.head = CD_HEAD_POOL;
    s.net.head_first = 0;
    s.net.head_width = 24;
    s.net.head_depth = 1;
    s.net.embed = 16;
    s.net.decoder_width = 24;
    s.net.decoder_depth = 1;
    s.net.side_width = 8;
    s.net.side_depth = 1;
    s.net.norm = CD_NORM_LAYER;
    s.net.dropout = s.net.dropout_mlp = 0.05;
    s.net.device = s.net.program = true;
    s.batch = 32;
    s.max_epochs = 3;
    s.lrate.warmup = 4;
    s.lrate.lr = 5e-3;
    s.ema = 0.9;
    s.seed = 3;
    return s;
}

static inline cd_fit_result made_run(const cd_fit_spec *spec, const cd_fit_data *d,
                                     const cd_fit_start *start, const cd_fit_run *run) {
    cdmpp_err err = {0};
    cd_fit_result f;
    const cd_fit_run plain = {0};
    assert_ok(cd_fit(spec, d, start, run ? run : &plain, &f, &err));
    return f;
}

static inline const float *made_values(const cd_fit_result *f, size_t *n) {
    const cd_params *p = cd_net_params_of(f->net);
    *n = p->n_float * sizeof(float);
    return p->value;
}

static inline void assert_same_fit(const cd_fit_result *a, const cd_fit_result *b) {
    size_t n, m;
    const float *x = made_values(a, &n), *y = made_values(b, &m);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    assert_int_equal(a->steps, b->steps);
    assert_int_equal(a->best_step, b->best_step);
    assert_memory_equal(&a->best, &b->best, sizeof a->best);
    assert_int_equal(a->n_eval, b->n_eval);
    assert_memory_equal(a->eval_step, b->eval_step, 3 * a->n_eval * sizeof(double));
}
#endif

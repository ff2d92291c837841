/* Training on made-up programs: it learns, the same bits in every way it may be run,
 * and what the header promises about the parts of a data set. */
#include "learner/fit/fit.h"

#include "check.h"
#include "fault.h"

#include <string.h>

#include "made_fit.h"

static double mape(const cd_fit_result *f, const uint32_t *index, size_t n) {
    cdmpp_err err = {0};
    const size_t n_out = (size_t)cd_net_config_of(f->net)->n_out;
    float out[N * 3];
    double sum = 0;
    assert_ok(
        cd_fit_outputs(f->net, &f->scalers, &made.view, index, n, device, 2, 50, NULL, out, &err));
    for (size_t i = 0; i < n; i++)
        sum += fabs(cd_transform_inverse(&f->transform, (double)out[i * n_out]) /
                        made.latency_s[index[i]] -
                    1);
    return sum / (double)n;
}

/* ---- learning ---- */
static void learns(void **s) {
    (void)s;
    for (int kind = 0; kind <= CD_NET_TLP; kind++) {
        cd_fit_spec spec = made_spec((cd_net_kind)kind);
        spec.max_epochs = kind == CD_NET_MLP ? 60 : 40;
        cd_fit_result f = made_run(&spec, &parts, NULL, NULL);
        if (kind != CD_NET_MLP) assert_true(f.best < 0.25);
        else assert_true(f.best < 0.45); /* sees totals only */
        /* it is what the figure says */
        assert_close(f.best, mape(&f, parts.valid, parts.n_valid), 1e-6, 0);
        assert_true(f.eval_train[f.n_eval - 1] < 0.3 * f.eval_train[0]);
        assert_int_equal(f.steps, (uint64_t)spec.max_epochs * 8);
        assert_int_equal(f.n_eval, (size_t)spec.max_epochs);
        cd_fit_result_free(&f);
    }
}

static void seconds_add_up(void **s) { /* head sum on labels that are sums */
    (void)s;
    cd_fit_spec spec = made_spec(CD_NET_TSF);
    spec.net.head = CD_HEAD_SUM;
    spec.max_epochs = 40;
    cd_fit_result f = made_run(&spec, &parts, NULL, NULL);
    assert_close(cd_net_config_of(f.net)->temperature, f.transform.std, 0, 0);
    assert_true(f.best < 0.25);
    cd_fit_result_free(&f);
    cdmpp_err err = {0};
    const cd_fit_run run = {0};
    spec.transform = CD_TRANSFORM_BOX_COX;
    assert_status(cd_fit(&spec, &parts, NULL, &run, &f, &err), CDMPP_ERANGE);
    assert_string_equal(err.key, "fit.label");
}

/* A network that is given iterations is about seconds, whatever its head. */
static void iterations(void **s) {
    (void)s;
    cd_fit_spec spec = made_spec(CD_NET_LSTM);
    cdmpp_err err = {0};
    cd_fit_result f = made_run(&spec, &parts, NULL, NULL);
    assert_true(cd_net_config_of(f.net)->trips);
    assert_close(cd_net_config_of(f.net)->temperature, f.transform.std, 0, 0);
    cd_fit_result_free(&f);
    spec.transform = CD_TRANSFORM_BOX_COX;
    assert_status(cd_fit(&spec, &parts, NULL, &(cd_fit_run){0}, &f, &err), CDMPP_ERANGE);
    assert_string_equal(err.key, "fit.label");
    spec.net.trips = false;
    f = made_run(&spec, &parts, NULL, NULL);
    cd_fit_result_free(&f);
}

/* Every loss and transform runs and makes its own loss smaller. */
static void every_loss(void **s) {
    (void)s;
    static const char *const loss[] = {
        "1000mse+1mape",        "1mape_s",       "1nll",         "1huber_log+0.1rank",
        "1lambdarank+1mse_log", "1listnet+1mae", "1pinball+1nll"};
    const double q[] = {0.9};
    for (size_t k = 0; k < sizeof loss / sizeof loss[0]; k++) {
        cd_fit_spec spec = made_spec(CD_NET_MLP);
        spec.loss = loss[k];
        spec.quantile = q;
        spec.n_quantile = 1;
        spec.transform = (cd_transform_kind)(1 + k);
        spec.figure = (cd_fit_metric)(k % 3);
        spec.max_epochs = 12;
        spec.optim.kind = k % 2 ? CD_OPTIM_ADAM : CD_OPTIM_ADAMW;
        cd_fit_result f = made_run(&spec, &parts, NULL, NULL);
        if (!(f.eval_train[f.n_eval - 1] < f.eval_train[0]))
            fail_msg("%s: loss %g, then %g", loss[k], f.eval_train[0], f.eval_train[f.n_eval - 1]);
        assert_int_equal(cd_net_config_of(f.net)->n_out, cd_net_loss_width(&f.loss));
        cd_fit_result_free(&f);
    }
}

/* Order alone: seconds are a straight line of the scores that the train part gives, so they have
 * its level, and the order is learnt. */
static void order_alone(void **s) {
    (void)s;
    static const char *const loss[] = {"1rank", "1lambdarank", "1listnet"};
    for (size_t k = 0; k < 3; k++) {
        cd_fit_spec spec = made_spec(CD_NET_TLP);
        cdmpp_err err = {0};
        spec.loss = loss[k];
        spec.figure = CD_FIT_LOSS;
        spec.max_epochs = 20;
        cd_fit_result f = made_run(&spec, &parts, NULL, NULL);
        float out[N];
        double level = 0, pairs = 0, right = 0;
        assert_ok(cd_fit_outputs(f.net, &f.scalers, &made.view, parts.train, parts.n_train, device,
                                 2, 50, NULL, out, &err));
        for (size_t i = 0; i < parts.n_train; i++)
            level += cd_transform_log_s(&f.transform, (double)out[i], NULL) -
                     log(made.latency_s[parts.train[i]]);
        assert_close(level / (double)parts.n_train, 0, 0, 1e-4);
        assert_ok(cd_fit_outputs(f.net, &f.scalers, &made.view, parts.valid, parts.n_valid, device,
                                 2, 50, NULL, out, &err));
        for (size_t i = 0; i < parts.n_valid; i++)
            for (size_t j = 0; j < parts.n_valid; j++) {
                const uint32_t a = parts.valid[i], b = parts.valid[j];
                if (made.group[a] != made.group[b] || !(made.latency_s[a] < made.latency_s[b]))
                    continue;
                pairs++;
                right += cd_transform_log_s(&f.transform, (double)out[i], NULL) <
                         cd_transform_log_s(&f.transform, (double)out[j], NULL);
            }
        if (!(right > 0.8 * pairs)) print_error("%s: %g of %g pairs\n", loss[k], right, pairs);
        assert_true(right > 0.8 * pairs);
        cd_fit_result_free(&f);
        spec.figure = CD_FIT_MAPE;
        assert_status(cd_fit(&spec, &parts, NULL, &(cd_fit_run){0}, &f, &err), CDMPP_ERANGE);
        assert_string_equal(err.key, "figure");
        spec.figure = CD_FIT_LOSS;
        spec.transform = CD_TRANSFORM_BOX_COX;
        assert_status(cd_fit(&spec, &parts, NULL, &(cd_fit_run){0}, &f, &err), CDMPP_ERANGE);
        assert_string_equal(err.key, "fit.label");
    }
}

/* ---- the same bits ---- */
static void any_pool(void **s) {
    (void)s;
    cdmpp_err err = {0};
    for (int kind = 0; kind < 2; kind++) {
        const cd_fit_spec spec = made_spec((cd_net_kind)kind);
        cd_threads *pool;
        assert_ok(cd_threads_new(3, &pool, &err));
        const cd_fit_run run = {.pool = pool};
        cd_fit_result a = made_run(&spec, &parts, NULL, NULL),
                      b = made_run(&spec, &parts, NULL, &run);
        assert_same_fit(&a, &b);
        cd_fit_result_free(&a);
        cd_fit_result_free(&b);
        cd_threads_free(pool);
    }
}

static void seed_matters(void **s) {
    (void)s;
    cd_fit_spec spec = made_spec(CD_NET_MLP);
    cd_fit_result a = made_run(&spec, &parts, NULL, NULL);
    spec.seed++;
    cd_fit_result b = made_run(&spec, &parts, NULL, NULL);
    size_t n;
    const float *x = made_values(&a, &n), *y = made_values(&b, &n);
    assert_memory_not_equal(x, y, n);
    cd_fit_result_free(&a);
    cd_fit_result_free(&b);
}

/* ---- parts ---- */
/* What lies outside the lists cannot matter; validation decides, but teaches nothing. */
static void only_the_train_part_teaches(void **s) {
    (void)s;
    static made_view other;
    other = made;
    other.view.row = other.row;
    cd_fit_spec spec = made_spec(CD_NET_TSF);
    cd_fit_data d = parts;
    spec.ema = 0;
    d.n_valid = 40;
    cd_fit_result a = made_run(&spec, &d, NULL, NULL);
    double keep[N];
    memcpy(keep, made.latency_s, sizeof keep);
    /* the test part: never looked at */
    for (size_t i = TRAIN + 40; i < N; i++) made.latency_s[index_of[i]] = -1;
    cd_fit_result b = made_run(&spec, &d, NULL, NULL);
    assert_same_fit(&a, &b);
    for (size_t i = TRAIN; i < TRAIN + 40; i++) made.latency_s[index_of[i]] *= 3;
    cd_fit_result c = made_run(&spec, &d, NULL, NULL); /* other figures, the same train losses */
    memcpy(made.latency_s, keep, sizeof keep);
    assert_memory_equal(a.eval_train, c.eval_train, a.n_eval * sizeof(double));
    assert_true(a.best < c.best || a.best > c.best);
    cd_fit_result_free(&a);
    cd_fit_result_free(&b);
    cd_fit_result_free(&c);
}

static void without_validation(void **s) {
    (void)s;
    cd_fit_spec spec = made_spec(CD_NET_MLP);
    cd_fit_data d = parts;
    d.n_valid = 0;
    spec.max_epochs = 0;
    spec.max_steps = 13;
    cd_fit_result f = made_run(&spec, &d, NULL, NULL);
    assert_int_equal(f.steps, 13);
    assert_int_equal(f.best_step, 13);
    assert_true(isnan(f.best));
    cd_fit_result_free(&f);
}

static void early_stop(void **s) {
    (void)s;
    cd_fit_spec spec = made_spec(CD_NET_MLP);
    spec.max_epochs = 500;
    spec.patience = 5;
    spec.lrate = cd_learning_rate_of(CD_LEARNING_RATE_CONSTANT, 0.02);
    spec.ema = 0;
    cd_fit_result f = made_run(&spec, &parts, NULL, NULL);
    assert_true(f.steps < 500 * 8);
    assert_int_equal(f.steps - f.best_step, 5 * 8);
    for (size_t i = 0; i < f.n_eval; i++) {
        assert_true(f.eval_valid[i] >= f.best &&
                    (f.eval_step[i] != (double)f.best_step || f.eval_valid[i] == f.best));
        assert_true(!i ||
                    (f.eval_step[i] > f.eval_step[i - 1] && f.eval_train[i] != f.eval_valid[i]));
    }
    /* the best one, not the last */
    assert_close(mape(&f, parts.valid, parts.n_valid), f.best, 1e-6, 0);
    cd_fit_result_free(&f);
}

static void weights_matter(void **s) { /* a weight of (nearly) 0 is as good as not being there */
    (void)s;
    cd_fit_spec spec = made_spec(CD_NET_MLP);
    cd_fit_data d = parts;
    static float w[N];
    for (int i = 0; i < N; i++) w[i] = made.device[i] ? 1e-6f : 1;
    spec.max_epochs = 40;
    d.weight = w;
    cd_fit_result a = made_run(&spec, &d, NULL, NULL), b = made_run(&spec, &parts, NULL, NULL);
    uint32_t zero[N], one[N];
    size_t n0 = 0, n1 = 0;
    for (uint32_t i = 0; i < TRAIN; i++) {
        if (made.device[index_of[i]]) one[n1++] = index_of[i];
        else zero[n0++] = index_of[i];
    }
    assert_true(mape(&a, one, n1) > 2 * mape(&b, one, n1));
    assert_true(mape(&a, zero, n0) < mape(&a, one, n1));
    cd_fit_result_free(&a);
    cd_fit_result_free(&b);
}

/* ---- refused ---- */
static void not_finite(void **s) {
    (void)s;
    cdmpp_err err = {0};
    cd_fit_result f;
    const cd_fit_run run = {0};
    cd_fit_spec spec = made_spec(CD_NET_MLP);
    spec.loss = "1mse";
    spec.optim = cd_optim_spec_of(CD_OPTIM_SGD);
    spec.lrate = cd_learning_rate_of(CD_LEARNING_RATE_CONSTANT, 1000);
    spec.net.norm = CD_NORM_NONE;
    spec.max_epochs = 50;
    assert_status(cd_fit(&spec, &parts, NULL, &run, &f, &err), CDMPP_ENUMERIC);
    assert_non_null(strstr(err.msg, "step "));
    assert_non_null(strstr(err.msg, "batch "));
    assert_null(f.net);
}

static void refused(void **s) {
    (void)s;
    static const struct {
        const char *key;
        cdmpp_status st;
    } want[] = {
        {"batch", CDMPP_ERANGE},      {"max_steps", CDMPP_ERANGE},      {"ema", CDMPP_ERANGE},
        {"loss", CDMPP_ESCHEMA},      {"loss", CDMPP_ESCHEMA},          {"loss", CDMPP_ESCHEMA},
        {"train", CDMPP_ESCHEMA},     {"train", CDMPP_EMODEL},          {"valid", CDMPP_ENUMERIC},
        {"train", CDMPP_ENUMERIC},    {"freeze_encoder", CDMPP_ERANGE}, {"lrate.lr", CDMPP_ERANGE},
        {"optim.clip", CDMPP_ERANGE},
    };
    for (size_t k = 0; k < sizeof want / sizeof want[0]; k++) {
        cdmpp_err err = {0};
        cd_fit_result f;
        cd_fit_spec spec = made_spec(CD_NET_MLP);
        cd_fit_data d = parts;
        const cd_fit_run run = {0};
        const uint32_t far[] = {1, N};
        static double y[N];
        static float w[N];
        memcpy(y, made.latency_s, sizeof y);
        if (k == 0) spec.batch = 0;
        if (k == 1) spec.max_epochs = spec.max_steps = 0;
        if (k == 2) spec.ema = 1;
        if (k == 3) spec.loss = "1mes";
        if (k == 4) spec.loss = "1mse+1rank", d.group = NULL;
        if (k == 5) spec.loss = "1mse+1cmd";
        if (k == 6) d.n_train = 0;
        if (k == 7) d.train = far, d.n_train = 2;
        if (k == 8) y[parts.valid[3]] = 0, d.latency_s = y;
        if (k == 9) d.weight = w;
        if (k == 10) spec.freeze_encoder = true;
        if (k == 11) spec.lrate.lr = 0;
        if (k == 12) spec.optim.clip = -1;
        const cdmpp_status st = cd_fit(&spec, &d, NULL, &run, &f, &err);
        if (st != want[k].st || strcmp(err.key, want[k].key) != 0)
            fail_msg("case %zu: %d %s: %s", k, (int)st, err.key, err.msg);
        assert_null(f.net);
    }
}

/* Programs that batches cannot show are found before the first step. */
static void not_to_be_shown(void **s) {
    (void)s;
    cdmpp_err err = {0}, err2 = {0};
    cd_fit_result f;
    const cd_fit_run run = {0};
    const cd_fit_spec spec = made_spec(CD_NET_TSF);
    cd_program_view bare = made.view;
    cd_fit_data d = parts;
    const uint32_t far = made.device[parts.valid[5]];
    bare.leaf_ptr = NULL;
    d.view = &bare;
    assert_status(cd_fit(&spec, &d, NULL, &run, &f, &err), CDMPP_EMODEL);
    assert_string_equal(err.key, "train");
    made.device[parts.valid[5]] = 2;
    const cdmpp_status st = cd_fit(&spec, &parts, NULL, &run, &f, &err2);
    made.device[parts.valid[5]] = far;
    assert_int_equal(st, CDMPP_EMODEL);
    assert_string_equal(err2.key, "valid");
}

static void out_of_memory(void **s) {
    (void)s;
    static const char *const loss[] = {"1mse+1rank", "1mse+1cmd"};
    for (int l = 0; l < 2; l++) {
        cd_fit_spec spec = made_spec(CD_NET_TSF);
        cd_fit_data d = parts;
        const cd_fit_run run = {0};
        spec.loss = loss[l];
        spec.figure = CD_FIT_LOSS;
        spec.max_epochs = 0;
        spec.max_steps = 1;
        d.n_train = 40;
        d.n_valid = d.n_target = 10;
        d.target = parts.valid;
        FAULT_SWEEP(w, 1) {
            cd_fit_result f;
            w.st = cd_fit(&spec, &d, NULL, &run, &f, &w.err);
            if (!w.st) cd_fit_result_free(&f);
        }
    }
}

TESTS(made_fit, NULL, learns, seconds_add_up, iterations, every_loss, order_alone, any_pool,
      seed_matters, only_the_train_part_teaches, without_validation, early_stop, weights_matter,
      not_finite, refused, not_to_be_shown, out_of_memory)

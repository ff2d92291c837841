/* What is learned on one part serves another: fine-tuning, and losses that draw the latents
 * of two domains together. */
#include "learner/fit/fit.h"

#include "check.h"

#include <string.h>

#include "learner/loss/loss.h"
#include "made_fit.h"

/* ---- fine-tuning ---- */
static void fine_tuning(void **s) {
    (void)s;
    cd_fit_spec spec = made_spec(CD_NET_TSF);
    spec.max_epochs = 15;
    cd_fit_result base = made_run(&spec, &parts, NULL, NULL);
    const cd_fit_start start = {base.net, &base.scalers, &base.transform};
    /* half of the train part, on its own scalers if they were fitted again */
    cd_fit_data d = parts;
    d.n_train = TRAIN / 2;
    spec.lrate = cd_learning_rate_of(CD_LEARNING_RATE_CONSTANT, 1e-3);
    spec.freeze_encoder = true;
    spec.ema = 0;
    spec.seed = 99;
    spec.max_epochs = 0;
    spec.max_steps = 20;
    cd_fit_result f = made_run(&spec, &d, &start, NULL);
    assert_memory_equal(base.scalers.tok.shift, f.scalers.tok.shift,
                        f.scalers.tok.n * sizeof(float));
    assert_memory_equal(base.scalers.prog.scale, f.scalers.prog.scale,
                        f.scalers.prog.n * sizeof(float));
    assert_true(base.scalers.trips.shift[0] != 0 &&
                base.scalers.trips.shift[0] == f.scalers.trips.shift[0]);
    assert_memory_equal(&base.transform, &f.transform, sizeof f.transform);
    const cd_params *a = cd_net_params_of(base.net), *b = cd_net_params_of(f.net);
    size_t moved = 0;
    for (size_t i = 0; i < a->n; i++) {
        const cd_param *p = &a->param[i];
        const bool same =
            memcmp(cd_params_value(a, i), cd_params_value(b, i), p->n * sizeof(float)) == 0;
        if (!strncmp(p->name, "encoder.", 8) || !strncmp(p->name, "projection.", 11))
            assert_true(same);
        else moved += !same;
    }
    assert_true(moved > 5);
    assert_true(f.eval_train[0] < base.eval_train[0] / 2); /* it did not begin at the beginning */
    cd_fit_result_free(&f);

    cdmpp_err err = {0};
    const cd_fit_run run = {0};
    spec.loss = "1nll";
    assert_status(cd_fit(&spec, &d, &start, &run, &f, &err), CDMPP_EMODEL);
    spec.loss = "1mse";
    d.w_dev = 2;
    assert_status(cd_fit(&spec, &d, &start, &run, &f, &err), CDMPP_EMODEL);
    cd_fit_result_free(&base);
}

/* ---- target domain ---- */
typedef struct {
    made_view all;
    uint32_t source[N], target[N];
    size_t n, m;
} two_domains;

/* Inputs of device 1 are shifted; its programs are the target. */
static void two_domains_of(two_domains *t) {
    made_view_fill(&t->all, N, 1, 2);
    t->n = t->m = 0;
    for (uint32_t i = 0; i < N; i++) {
        if (t->all.device[i]) t->target[t->m++] = i;
        else t->source[t->n++] = i;
    }
}

static void latents_of(const cd_fit_result *f, const two_domains *t, const uint32_t *index,
                       size_t n, float *latent) {
    static float out[N];
    cdmpp_err err = {0};
    cd_batch_dims dims;
    cd_batch b = {0};
    cd_net_state *state;
    const cd_batch_spec bs = cd_net_batch_spec(cd_net_config_of(f->net), device, 2);
    assert_ok(cd_batch_bound(&bs, &t->all.view, NULL, N, N, &dims, &err));
    assert_ok(cd_batch_init(&b, &bs, &dims, &err));
    assert_ok(cd_net_state_new(f->net, &dims, 1, false, &state, &err));
    assert_ok(cd_batch_fill(&b, &bs, &f->scalers, &t->all.view, index, n, &err));
    assert_ok(cd_net_predict(f->net, &b, state, NULL, out, latent, &err));
    cd_net_state_free(state);
    cd_batch_free(&b);
}

/* CMD between the latents of both domains. */
static double distance(const cd_fit_result *f, const two_domains *t) {
    static float latent[2][N * 64];
    cdmpp_err err = {0};
    cd_domain_distance *dom;
    latents_of(f, t, t->source, t->n, latent[0]);
    latents_of(f, t, t->target, t->m, latent[1]);
    assert_ok(cd_domain_distance_new(N, cd_net_n_latent(f->net), 1, &dom, &err));
    const double size =
        cd_domain_distance_cmd(dom, NULL, latent[0], t->n, latent[1], t->m, 1, NULL, NULL);
    cd_domain_distance_free(dom);
    return size;
}

/* That distance after a training with this loss, which has the same bits on two threads. */
static double distance_after(const char *loss, const two_domains *t) {
    const cd_fit_data d = {.view = &t->all.view,
                           .latency_s = t->all.latency_s,
                           .train = t->source,
                           .n_train = t->n - 30,
                           .valid = t->source + t->n - 30,
                           .n_valid = 30,
                           .target = t->target,
                           .n_target = t->m,
                           .device = device,
                           .n_device = 2,
                           .w_dev = 3};
    cdmpp_err err = {0};
    cd_fit_spec spec = made_spec(CD_NET_TSF);
    spec.loss = loss;
    spec.net.device = false;
    spec.net.program = false;
    spec.target_batch = 48;
    spec.max_epochs = 15;
    cd_threads *pool;
    assert_ok(cd_threads_new(2, &pool, &err));
    const cd_fit_run run = {.pool = pool};
    cd_fit_result f = made_run(&spec, &d, NULL, NULL), g = made_run(&spec, &d, NULL, &run);
    assert_same_fit(&f, &g);
    const double after = distance(&f, t);
    cd_fit_result_free(&f);
    cd_fit_result_free(&g);
    cd_threads_free(pool);
    return after;
}

static void domains(void **s) {
    (void)s;
    static two_domains t;
    two_domains_of(&t);
    const double plain = distance_after("1huber_log", &t);
    assert_true(distance_after("1huber_log+1cmd", &t) < 0.7 * plain);
    assert_true(distance_after("1huber_log+5mmd", &t) < 0.9 * plain);
}

TESTS(made_fit, NULL, fine_tuning, domains)

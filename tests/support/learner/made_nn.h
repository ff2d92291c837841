/* made_nn.h -- a network on a random batch, with its state and outputs; and plain gradient descent
 * on it. */
#ifndef MADE_NN_H
#define MADE_NN_H
#include <stdlib.h>

#include "check.h"
#include "made_batch.h"

typedef struct {
    cd_net *net;
    cd_batch b;
    cd_net_state *st;
    float *out, *latent;
    size_t n_out, n_latent;
} made_net;

/* For a batch that is in r->b already. */
static inline void made_net_open_state(made_net *r, const cd_net_config *s, size_t n, uint64_t seed,
                                       int workers, bool train) {
    cdmpp_err err = {0};
    assert_ok(cd_net_new(s, seed, &r->net, &err));
    assert_ok(cd_net_state_new(r->net, &r->b.dims, workers, train, &r->st, &err));
    r->n_out = n * (size_t)s->n_out;
    r->n_latent = n * cd_net_n_latent(r->net);
    r->out = calloc(r->n_out, sizeof *r->out);
    r->latent = calloc(r->n_latent, sizeof *r->latent);
}

static inline void made_net_close(made_net *r) {
    cd_net_state_free(r->st);
    cd_batch_free(&r->b);
    cd_net_free(r->net);
    free(r->out);
    free(r->latent);
}

static inline void made_net_predict(made_net *r) {
    cdmpp_err err = {0};
    assert_ok(cd_net_predict(r->net, &r->b, r->st, NULL, r->out, r->latent, &err));
}

/* Squared error of n programs after `steps` steps, over that before the first. */
static inline double made_net_descend(made_net *r, const float *y, size_t n, int steps,
                                      float rate) {
    cdmpp_err err = {0};
    cd_params *p = cd_net_params(r->net);
    double first = 0, loss = 0;
    float d[256];
    assert_true(n <= 256);
    for (int k = 0; k < steps; k++) {
        assert_ok(cd_net_forward(r->net, &r->b, r->st, NULL, 0, r->out, NULL, &err));
        loss = 0;
        for (size_t i = 0; i < n; i++) {
            d[i] = 2 * (r->out[i] - y[i]) / (float)n;
            loss += (double)((r->out[i] - y[i]) * (r->out[i] - y[i])) / (double)n;
        }
        first = k ? first : loss;
        cd_params_zero_grad(p);
        cd_net_backward(r->net, &r->b, r->st, NULL, d, NULL);
        for (size_t i = 0; i < p->n_train; i++) p->value[i] -= rate * p->grad[i];
    }
    return loss / first;
}
#endif

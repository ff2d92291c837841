/* net: gradients against finite differences for every kind, head and norm. */
#include "learner/nn/nn.h"

#include "check.h"
#include "made_batch.h"

enum { N = 6, MOST = 5, MAX_OUT = 64 * 3, MAX_LATENT = 64 * 16 };

static cd_net_config tiny(cd_net_kind kind, cd_net_head head, cd_net_norm norm, bool pre) {
    cd_net_config s = cd_net_config_small(kind);
    s.layers = 2;
    s.width = 12;
    s.heads = 3;
    s.ff = 20;
    s.head = head;
    s.slots = 3; /* fewer than leaves: the last slot adds up */
    s.head_first = 11;
    s.head_width = 13;
    s.embed = 7;
    s.decoder_width = 9;
    s.side_width = 6;
    s.norm = norm;
    s.pre_norm = pre;
    s.act = CD_ACT_GELU; /* smooth, for differences */
    s.dropout = s.dropout_mlp = 0.25;
    s.temperature = 0.7;
    s.program = true;
    s.n_out = 2;
    s.w_dev = 4;
    return s;
}

/* ---- finite differences ---- */
typedef struct {
    cd_net *net;
    cd_batch b;
    cd_net_state *st;
    float c_out[MAX_OUT], c_latent[MAX_LATENT];
    double slack; /* relative */
} rig;

static double loss(rig *r) {
    float out[MAX_OUT], latent[MAX_LATENT];
    cdmpp_err err = {0};
    double sum = 0;
    assert_ok(cd_net_forward(r->net, &r->b, r->st, NULL, 77, out, latent, &err));
    for (size_t i = 0; i < N * (size_t)cd_net_config_of(r->net)->n_out; i++)
        sum += (double)out[i] * (double)r->c_out[i];
    for (size_t i = 0; i < N * cd_net_n_latent(r->net); i++)
        sum += (double)latent[i] * (double)r->c_latent[i];
    return sum;
}

/* Loss at v + step * dir. */
static double moved(rig *r, float *v, const float *keep, const float *dir, size_t n, double step) {
    for (size_t i = 0; i < n; i++) v[i] = keep[i] + (float)step * dir[i];
    const double l = loss(r);
    memcpy(v, keep, n * sizeof *v);
    return l;
}

static double length(const float *x, size_t n) {
    double s = 0;
    for (size_t i = 0; i < n; i++) s += (double)x[i] * (double)x[i];
    return sqrt(s) + 1e-12;
}

/* Half the gradient, for a clear signal, half random, for what it may lack. */
static void direction(const float *g, float *dir, size_t n, uint64_t seed) {
    made_floats(dir, n, seed);
    const double a = length(g, n), b = length(dir, n);
    for (size_t i = 0; i < n; i++) dir[i] = (float)((double)g[i] / a + (double)dir[i] / b);
}

/* Along a direction within one tensor, from two steps (Richardson). */
static void check_tensor(rig *r, size_t id) {
    cd_params *p = cd_net_params(r->net);
    const cd_param *q = &p->param[id];
    float *v = cd_params_value(p, id), keep[4096], dir[4096];
    const size_t n = q->n < 4096 ? q->n : 4096;
    double want = 0, d[2];
    if (q->is_stat) return;
    memcpy(keep, v, n * sizeof *v);
    direction(cd_params_grad(p, id), dir, n, 900 + id);
    for (size_t i = 0; i < n; i++) want += (double)cd_params_grad(p, id)[i] * (double)dir[i];
    for (int k = 0; k < 2; k++) {
        const double step = 8e-3 / (1 + fabs(want)) / (1 + k);
        d[k] = (moved(r, v, keep, dir, n, step) - moved(r, v, keep, dir, n, -step)) / (2 * step);
    }
    const double got = (4 * d[1] - d[0]) / 3, slack = r->slack * fabs(want) + 2e-3;
    if (fabs(got - want) > slack)
        print_error("%s: gradient %g, difference %g\n", q->name, want, got);
    assert_true(fabs(got - want) <= slack);
}

static void differences(const cd_net_config *s) {
    rig r;
    cdmpp_err err = {0};
    memset(&r, 0, sizeof r);
    r.slack = s->act == CD_ACT_RELU ? 0.02 : 0.004; /* a difference may cross a kink */
    assert_ok(cd_net_new(s, 5, &r.net, &err));
    assert_ok(made_batch(&r.b, s, 0, N, MOST, 11, &err));
    assert_ok(cd_net_state_new(r.net, &r.b.dims, 1, true, &r.st, &err));
    made_floats(r.c_out, MAX_OUT, 21);
    made_floats(r.c_latent, MAX_LATENT, 22);
    (void)loss(&r);
    cd_params *p = cd_net_params(r.net);
    cd_params_zero_grad(p);
    cd_net_backward(r.net, &r.b, r.st, NULL, r.c_out, r.c_latent);
    for (size_t id = 0; id < p->n; id++) check_tensor(&r, id);
    cd_net_state_free(r.st);
    cd_batch_free(&r.b);
    cd_net_free(r.net);
}

TEST(gradients_mlp) {
    for (int norm = 0; norm < 3; norm++) {
        const cd_net_config s = tiny(CD_NET_MLP, CD_HEAD_POOL, (cd_net_norm)norm, false);
        differences(&s);
    }
}

TEST(gradients_tsf) {
    for (int head = 0; head < 3; head++)
        for (int pre = 0; pre < 2; pre++) {
            cd_net_config s =
                tiny(CD_NET_TSF, (cd_net_head)head, pre ? CD_NORM_LAYER : CD_NORM_NONE, pre == 1);
            if (!pre) s.slots = 9; /* more than leaves: weights without a use */
            differences(&s);
        }
}

TEST(gradients_lstm) {
    for (int norm = 0; norm < 3; norm++)
        for (int skip = 0; skip < 2; skip++) {
            cd_net_config s = tiny(CD_NET_LSTM, CD_HEAD_POOL, (cd_net_norm)norm, false);
            s.skip = skip == 1;
            if (norm) s.act = CD_ACT_ELU;
            differences(&s);
        }
}

TEST(gradients_tlp) {
    for (int norm = 0; norm < 3; norm++) {
        cd_net_config s = tiny(CD_NET_TLP, CD_HEAD_POOL, (cd_net_norm)norm, false);
        s.layers = norm; /* residual blocks */
        s.values = 4;
        differences(&s);
    }
}

/* A hidden layer of more than one block of columns, ReLU. */
TEST(gradients_wide) {
    cd_net_config s = tiny(CD_NET_TSF, CD_HEAD_FLATTEN, CD_NORM_NONE, false);
    s.layers = 1;
    s.ff = 1100;
    s.act = CD_ACT_RELU;
    s.dropout_mlp = 0;
    differences(&s);
}

TESTS(NULL, NULL, gradients_mlp, gradients_tsf, gradients_lstm, gradients_tlp, gradients_wide)

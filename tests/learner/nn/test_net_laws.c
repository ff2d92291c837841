/* net, as a whole: order and company of programs do not matter; the same bits for any
 * pool; many threads share one net; no heap while running; what does not fit is said. */
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fault.h"
#include "made_nn.h"

enum { N_CASE = 11 };

static cd_net_config spec_of(int k) {
    cd_net_config s = cd_net_config_small(k < 2   ? CD_NET_MLP
                                          : k < 7 ? CD_NET_TSF
                                          : k < 9 ? CD_NET_LSTM
                                                  : CD_NET_TLP);
    s.width = 24;
    s.ff = 48;
    s.slots = 4;
    s.head = k < 2 ? CD_HEAD_POOL : (cd_net_head)(k % 3);
    s.norm = k % 2 ? CD_NORM_BATCH : CD_NORM_LAYER;
    s.pre_norm = k > 3;
    s.act = k == 4 ? CD_ACT_GELU : k == 6 || k == 8 ? CD_ACT_ELU : CD_ACT_RELU;
    s.skip = k == 7;
    s.program = k == 5;
    s.head_first = k == 2 ? 20 : 0;
    s.dropout = 0.1;
    s.dropout_mlp = k == 1 ? 0 : 0.2;
    s.n_out = 1 + k % 3;
    s.w_dev = 6;
    return s;
}

typedef made_net rig;

static void open_rig(rig *r, const cd_net_config *s, size_t first, size_t n, int workers,
                     bool train) {
    cdmpp_err err = {0};
    memset(r, 0, sizeof *r);
    assert_ok(made_batch(&r->b, s, first, n, 7, 4, &err));
    made_net_open_state(r, s, n, 9, workers, train);
}

/* Running statistics that are not what they start as, and let something through. */
static void stir(cd_net *net) {
    cd_params *p = cd_net_params(net);
    for (size_t id = 0; id < p->n; id++) {
        const bool var = strstr(p->param[id].name, "running_var");
        for (size_t i = 0; p->param[id].is_stat && i < p->param[id].n; i++)
            cd_params_value(p, id)[i] = (var ? 0.5f : 0) + 0.3f * made_value(3, i);
    }
}

/* Programs one by one, in any order, answer as they do together. */
TEST(company) {
    for (int k = 0; k < N_CASE; k++) {
        enum { N = 15 };
        const cd_net_config s = spec_of(k);
        rig all, one;
        open_rig(&all, &s, 0, N, 1, false);
        stir(all.net);
        made_net_predict(&all);
        for (size_t i = N; i-- > 0;) {
            open_rig(&one, &s, i, 1, 1, i % 2); /* a state for training predicts, too */
            stir(one.net);
            made_net_predict(&one);
            for (size_t c = 0; c < one.n_out; c++)
                assert_close((double)one.out[c], (double)all.out[i * one.n_out + c], 2e-5, 2e-5);
            for (size_t c = 0; c < one.n_latent; c++)
                assert_close((double)one.latent[c], (double)all.latent[i * one.n_latent + c], 2e-5,
                             2e-5);
            made_net_close(&one);
        }
        made_net_close(&all);
    }
}

/* Forward and backward with a pool of 1, 2 and 3, and eval: the same bits. */
TEST(pools) {
    enum { N = 180 };
    static float d_out[N * 3], d_eval[N * 3], d_latent[N * 128];
    cdmpp_err err = {0};
    made_floats(d_out, N * 3, 1);
    made_floats(d_latent, N * 128, 2);
    for (int k = 0; k < N_CASE; k++) {
        const cd_net_config s = spec_of(k);
        float eval[N * 3];
        rig r[3];
        for (int t = 0; t < 3; t++) {
            cd_threads *pool = NULL;
            assert_ok(cd_threads_new(t + 1, &pool, &err));
            open_rig(&r[t], &s, 0, N, t + 1, true);
            assert_ok(
                cd_net_forward(r[t].net, &r[t].b, r[t].st, pool, 5, r[t].out, r[t].latent, &err));
            cd_net_backward(r[t].net, &r[t].b, r[t].st, pool, d_out, d_latent);
            const cd_params *p = cd_net_params(r[t].net), *p0 = cd_net_params(r[0].net);
            assert_memory_equal(r[t].out, r[0].out, r[0].n_out * sizeof(float));
            assert_memory_equal(r[t].latent, r[0].latent, r[0].n_latent * sizeof(float));
            assert_memory_equal(p->grad, p0->grad, p->n_train * sizeof(float));
            assert_memory_equal(p->value, p0->value, p->n_float * sizeof(float)); /* statistics */
            float *now = t ? d_eval : eval;
            assert_ok(cd_net_predict(r[t].net, &r[t].b, r[t].st, pool, now, NULL, &err));
            assert_memory_equal(now, eval, r[0].n_out * sizeof(float));
            cd_threads_free(pool);
        }
        for (int t = 0; t < 3; t++) made_net_close(&r[t]);
    }
}

/* ---- many threads, one net ---- */
static void *predict_often(void *arg) {
    rig *r = arg;
    for (int k = 0; k < 5; k++)
        if (cd_net_predict(r->net, &r->b, r->st, NULL, r->out, r->latent, NULL)) return NULL;
    return r;
}

TEST(shared) {
    const cd_net_config s = spec_of(5);
    rig r[4];
    pthread_t thread[4];
    cd_net *own[4];
    for (int t = 0; t < 4; t++) {
        open_rig(&r[t], &s, 0, 20, 1, false);
        own[t] = r[t].net;
        r[t].net = own[0];
        assert_int_equal(pthread_create(&thread[t], NULL, predict_often, &r[t]), 0);
    }
    for (int t = 0; t < 4; t++) {
        void *ok = NULL;
        pthread_join(thread[t], &ok);
        assert_non_null(ok);
        assert_memory_equal(r[t].out, r[0].out, r[0].n_out * sizeof(float));
    }
    for (int t = 0; t < 4; t++) {
        r[t].net = own[t];
        made_net_close(&r[t]);
    }
}

/* Adding up: two gradients without zeroing in between are twice one; eval leaves no trace. */
TEST(accumulates) {
    enum { N = 30 };
    const cd_net_config s = spec_of(6);
    static float d_out[N * 3];
    cdmpp_err err = {0};
    rig a, b;
    made_floats(d_out, N * 3, 1);
    open_rig(&a, &s, 0, N, 1, true);
    open_rig(&b, &s, 0, N, 1, true);
    for (int k = 0; k < 2; k++) {
        assert_ok(cd_net_forward(b.net, &b.b, b.st, NULL, 5, b.out, NULL, &err));
        cd_net_backward(b.net, &b.b, b.st, NULL, d_out, NULL);
    }
    made_net_predict(&a);
    assert_ok(cd_net_forward(a.net, &a.b, a.st, NULL, 5, a.out, NULL, &err));
    cd_net_backward(a.net, &a.b, a.st, NULL, d_out, NULL);
    const cd_params *p = cd_net_params(a.net), *q = cd_net_params(b.net);
    double most = 0;
    for (size_t i = 0; i < p->n_train; i++) {
        assert_close((double)q->grad[i], 2 * (double)p->grad[i], 1e-4, 1e-5);
        most = fmax(most, fabs((double)p->grad[i]));
    }
    assert_true(most > 0.01);
    made_net_close(&a);
    made_net_close(&b);
}

/* One device, all programs: its vector still matters, and learns (not in front of
 * batch norm, which takes a shift of all programs away). */
TEST(one_device) {
    enum { N = 30 };
    static float d_out[N * 3];
    cdmpp_err err = {0};
    made_floats(d_out, N * 3, 1);
    for (int k = 0; k < N_CASE; k++) {
        const cd_net_config s = spec_of(k);
        rig r;
        float before[N * 3];
        double moved = 0, grad = 0;
        open_rig(&r, &s, 0, N, 1, true);
        for (size_t i = 0; i < N * 6; i++) r.b.dev[i] = 0.5f;
        made_net_predict(&r);
        memcpy(before, r.out, r.n_out * sizeof *before);
        for (size_t i = 0; i < N * 6; i++) r.b.dev[i] = (float)(i % 6) - 2;
        made_net_predict(&r);
        for (size_t i = 0; i < r.n_out; i++) moved += fabs((double)(r.out[i] - before[i]));
        assert_ok(cd_net_forward(r.net, &r.b, r.st, NULL, 5, r.out, NULL, &err));
        cd_net_backward(r.net, &r.b, r.st, NULL, d_out, NULL);
        const cd_params *p = cd_net_params(r.net);
        for (size_t id = 0; id < p->n; id++)
            if (!strcmp(p->param[id].name, "device.0.weight"))
                for (size_t i = 0; i < p->param[id].n; i++)
                    grad += fabs((double)cd_params_grad(p, id)[i]);
        const bool learns = s.norm == CD_NORM_BATCH || grad > 1e-3;
        if (!(moved > 1e-3 && learns))
            print_error("case %d: moved %g, gradient %g\n", k, moved, grad);
        assert_true(moved > 1e-3 && learns);
        made_net_close(&r);
    }
}

TEST(misfits) {
    cd_net_config s = spec_of(2), other = s, mlp = spec_of(0);
    cdmpp_err err = {0};
    rig r, m;
    float out[64];
    cd_threads *pool = NULL;
    open_rig(&r, &s, 0, 8, 1, false);
    open_rig(&m, &mlp, 0, 8, 1, false);
    assert_status(cd_net_predict(r.net, &m.b, r.st, NULL, out, NULL, &err), CDMPP_EMODEL);
    /* no room */
    assert_status(cd_net_forward(r.net, &r.b, r.st, NULL, 1, out, NULL, &err), CDMPP_ERANGE);
    r.b.n_tok = r.b.dims.n_tok + 1;
    assert_status(cd_net_predict(r.net, &r.b, r.st, NULL, out, NULL, &err), CDMPP_ERANGE);
    r.b.n_tok = r.b.tok_ptr[8];
    assert_ok(cd_threads_new(2, &pool, &err));
    assert_status(cd_net_predict(r.net, &r.b, r.st, pool, out, NULL, &err), CDMPP_ERANGE);
    cd_threads_free(pool);
    made_net_close(&r);
    made_net_close(&m);
    other.heads = 5;
    assert_status(cd_net_config_check(&other, &err), CDMPP_ERANGE);
    assert_string_equal(err.key, "heads");
    other = s;
    other.dropout = 1;
    assert_status(cd_net_config_check(&other, &err), CDMPP_ERANGE);
    other = s;
    other.n_out = 4;
    assert_status(cd_net_config_check(&other, &err), CDMPP_ERANGE);
}

/* Each number of a description has its limits, whoever wrote it. */
TEST(limits_of_descriptions) {
#define FIELD(kind, name, low, high)                                                               \
    { kind, #name, offsetof(cd_net_config, name), low, high }
    static const struct {
        cd_net_kind kind;
        const char *name;
        size_t at;
        int64_t low, high;
    } rows[] = {
        FIELD(CD_NET_TSF, layers, 0, 64),       FIELD(CD_NET_TSF, width, 2, 4096),
        FIELD(CD_NET_TSF, heads, 1, 64),        FIELD(CD_NET_TSF, ff, 1, 16384),
        FIELD(CD_NET_TSF, slots, 1, 256),       FIELD(CD_NET_LSTM, width, 2, 4096),
        FIELD(CD_NET_LSTM, ff, 1, 16384),       FIELD(CD_NET_TLP, layers, 0, 8),
        FIELD(CD_NET_TLP, width, 4, 4096),      FIELD(CD_NET_TLP, heads, 1, 64),
        FIELD(CD_NET_TLP, slots, 1, 256),       FIELD(CD_NET_TLP, values, 1, 256),
        FIELD(CD_NET_MLP, head_first, 0, 8192), FIELD(CD_NET_MLP, head_depth, 0, 8),
        FIELD(CD_NET_MLP, head_width, 1, 8192), FIELD(CD_NET_MLP, embed, 1, 8192),
        FIELD(CD_NET_MLP, decoder_depth, 1, 8), FIELD(CD_NET_MLP, decoder_width, 1, 8192),
        FIELD(CD_NET_MLP, side_depth, 0, 8),    FIELD(CD_NET_MLP, side_width, 1, 8192),
        FIELD(CD_NET_MLP, w_dev, 0, 4096),      FIELD(CD_NET_MLP, n_out, 1, 3),
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const int64_t value[] = {rows[k].low - 1, rows[k].high + 1, INT64_MIN,
                                 INT64_MAX,       rows[k].low,      rows[k].high};
        for (int i = 0; i < 6; i++) {
            cd_net_config s = cd_net_config_small(rows[k].kind);
            cdmpp_err err = {0};
            s.heads = 1;
            *(int64_t *)((char *)&s + rows[k].at) = value[i];
            if (!strcmp(rows[k].name, "heads")) s.width = 64 * 3;
            assert_status(cd_net_config_check(&s, &err), i < 4 ? CDMPP_ERANGE : CDMPP_OK);
            if (i < 4) assert_string_equal(err.key, rows[k].name);
        }
    }
}

TEST(limits_of_real_numbers) {
    static const struct {
        cd_net_kind kind;
        const char *name;
        size_t at;
        double wrong;
    } rows[] = {
#define REAL(kind, name, wrong) {kind, #name, offsetof(cd_net_config, name), wrong}
        REAL(CD_NET_TSF, dropout, 1),
        REAL(CD_NET_TSF, dropout, -0.1),
        REAL(CD_NET_TSF, temperature, 0),
        REAL(CD_NET_TSF, temperature, (double)NAN),
        REAL(CD_NET_TSF, temperature, (double)INFINITY),
        REAL(CD_NET_LSTM, dropout, 1),
        REAL(CD_NET_TLP, dropout, (double)NAN),
        REAL(CD_NET_MLP, dropout_mlp, 1),
        REAL(CD_NET_MLP, dropout_mlp, -0.1),
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        cd_net_config s = cd_net_config_small(rows[k].kind);
        cdmpp_err err = {0};
        *(double *)((char *)&s + rows[k].at) = rows[k].wrong;
        assert_status(cd_net_config_check(&s, &err), CDMPP_ERANGE);
        assert_string_equal(err.key, rows[k].name);
    }
    cd_net_config s = cd_net_config_small(CD_NET_TSF);
    cdmpp_err err = {0};
    s.tokens = CD_TOKENS_ROWS, s.context = true;
    assert_status(cd_net_config_check(&s, &err), CDMPP_ERANGE);
    assert_string_equal(err.key, "context");
}

/* A function of the leaves that adds up is learnt: plain gradient descent, 100 steps. */
TEST(learns) {
    enum { N = 24, STEPS = 100 };
    for (int head = 0; head < 3; head++) {
        cd_net_config s = spec_of(2);
        rig r;
        float y[N] = {0};
        s.head = (cd_net_head)head;
        s.norm = CD_NORM_LAYER;
        s.n_out = 1;
        s.dropout = s.dropout_mlp = 0;
        open_rig(&r, &s, 0, N, 1, true);
        for (size_t i = 0; i < N; i++)
            for (size_t l = r.b.tok_ptr[i]; l < r.b.tok_ptr[i + 1]; l++)
                y[i] += 0.5f + r.b.tok[l * r.b.w_tok];
        const double left = made_net_descend(&r, y, N, STEPS, 0.015f);
        if (!(left < 0.2)) print_error("head %d: loss x %g\n", head, left);
        assert_true(left < 0.2);
        made_net_close(&r);
    }
}

TEST(no_heap) {
    for (int k = 0; k < N_CASE; k++) {
        const cd_net_config s = spec_of(k);
        static float d_out[30 * 3];
        rig r;
        open_rig(&r, &s, 0, 30, 1, true);
        fault_all();
        const cdmpp_status a = cd_net_forward(r.net, &r.b, r.st, NULL, 5, r.out, r.latent, NULL);
        cd_net_backward(r.net, &r.b, r.st, NULL, d_out, NULL);
        const cdmpp_status b = cd_net_predict(r.net, &r.b, r.st, NULL, r.out, r.latent, NULL);
        fault_off();
        assert_true(!a && !b);
        made_net_close(&r);
    }
}

static void refuse(int k_spec) {
    const cd_net_config s = spec_of(k_spec);
    const cd_batch_dims dims = {10, 50, 7, 100};
    FAULT_SWEEP(f, 1) {
        cd_net *net = NULL;
        cd_net_state *st = NULL;
        f.st = cd_net_new(&s, 1, &net, NULL);
        if (!f.st) f.st = cd_net_state_new(net, &dims, 2, true, &st, NULL);
        cd_net_state_free(st);
        cd_net_free(net);
    }
}

TEST(every_refusal) {
    refuse(3);
    refuse(7);
    refuse(9);
}

TESTS(NULL, NULL, company, pools, shared, accumulates, one_device, misfits, limits_of_descriptions,
      limits_of_real_numbers, learns, no_heap, every_refusal)

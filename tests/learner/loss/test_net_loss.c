/* Losses against finite differences, slow restatements and laws. */
#include "learner/loss/loss.h"
#include "check.h"
#include "fault.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"

enum { N = 60 };
static const double quantile[] = {0.1, 0.5, 0.9};
static double z[N], log_s[N];
static float weight[N], out[N * 8];
static uint32_t group[N];
static cd_transform box_cox;

static double normal(uint64_t seed, uint64_t i) {
    double sum = -6;
    for (uint64_t k = 0; k < 12; k++) sum += cd_rng_unit(seed, i * 12 + k);
    return sum;
}

static int make(void **state) {
    (void)state;
    cdmpp_err err = {0};
    double y[N];
    for (uint64_t i = 0; i < N; i++) {
        y[i] = exp(-9 + 1.5 * normal(1, i));
        log_s[i] = log(y[i]);
        weight[i] = (float)(0.5 + cd_rng_unit(2, i));
        group[i] = (uint32_t)(cd_rng_at(3, i) % 7);
    }
    assert_ok(cd_transform_fit(CD_TRANSFORM_BOX_COX, y, N, &box_cox, &err));
    for (size_t i = 0; i < N; i++) z[i] = cd_transform_forward(&box_cox, y[i]);
    for (uint64_t i = 0; i < N * 8; i++) out[i] = (float)(1.3 * normal(4, i));
    return 0;
}

static cd_net_loss parse(const char *text) {
    cdmpp_err err = {0};
    cd_net_loss p;
    assert_ok(cd_net_loss_parse(text, quantile, 3, &p, &err));
    return p;
}

static const cd_net_loss_batch batch = {N, z, log_s, weight, group, &box_cox};

static double value(const cd_net_loss *p, const cd_net_loss_batch *b, const float *o, float *grad,
                    double *term) {
    cdmpp_err err = {0};
    cd_net_loss_scratch *s;
    cd_transform const *t = &box_cox;
    cd_net_loss_batch own = *b;
    own.transform = t;
    assert_ok(cd_net_loss_scratch_new(p, N, &s, &err));
    const cd_net_loss_norm norm = cd_net_loss_count(p, &own, s);
    const double v = cd_net_loss_eval(p, &own, &norm, o, grad, term, s);
    cd_net_loss_scratch_free(s);
    return v;
}

/* Gradient of every output against central differences. */
static void check_gradient(const char *text) {
    const cd_net_loss p = parse(text);
    const size_t width = cd_net_loss_width(&p);
    static float grad[N * 8], moved[N * 8];
    value(&p, &batch, out, grad, NULL);
    size_t bad = 0;
    for (size_t k = 0; k < N * width; k++) {
        memcpy(moved, out, sizeof moved);
        const float h = 1e-3f;
        moved[k] = out[k] + h;
        const double up = value(&p, &batch, moved, NULL, NULL), x = (double)moved[k];
        moved[k] = out[k] - h;
        const double down = value(&p, &batch, moved, NULL, NULL),
                     slope = (up - down) / (x - (double)moved[k]);
        if (fabs(slope - (double)grad[k]) <= 2e-3 * fabs(slope) + 2e-6) continue;
        if (++bad > 2)
            fail_msg("%s: output %zu: gradient %g, by differences %g", text, k, (double)grad[k],
                     slope);
    } /* at most two samples may sit within 1e-3 of a kink or of a change of rank */
}

TEST(gradients) {
    static const char *const text[] = {
        "1mse",     "1mape",           "1mspe",
        "1mae",     "1huber",          "1mape_s",
        "1mse_log", "1huber_log",      "1nll",
        "1pinball", "1rank",           "1lambdarank",
        "1listnet", "1000mse + 1mape", "2nll+0.5pinball+1e-1rank+3 listnet+ .5mape_s"};
    for (size_t k = 0; k < sizeof text / sizeof text[0]; k++) check_gradient(text[k]);
}

/* ---- values ---- */
TEST(by_hand) {
    static const double zz[] = {1, -2, 0.01, 0.5}, ls[] = {-7, -10, -8.2, -7.9};
    static const float o[] = {1.5f, -1, 0.03f, 0.25f}, w[] = {1, 2, 3, 4};
    static const uint32_t g[] = {5, 5, 5, 1};
    const cd_net_loss_batch b = {4, zz, ls, w, g, NULL};
    double t[CD_NET_LOSS_TERMS];
    const cd_net_loss p = parse("1mse+1mape+1mspe+1mae+1huber+1rank+1listnet");
    const double v = value(&p, &b, o, NULL, t);
    const double e2 = (double)0.03f - 0.01;
    assert_close(t[CD_NET_LOSS_mse], (0.25 + 2 * 1 + 3 * e2 * e2 + 4 * 0.0625) / 10, 1e-12, 0);
    assert_close(t[CD_NET_LOSS_mae], (0.5 + 2 * 1 + 3 * e2 + 4 * 0.25) / 10, 1e-12, 0);
    /* 0.1: the floor */
    assert_close(t[CD_NET_LOSS_mape], (0.5 + 2 * 0.5 + 3 * e2 / 0.1 + 4 * 0.5) / 10, 1e-12, 0);
    assert_close(t[CD_NET_LOSS_mspe], (0.25 + 2 * 0.25 + 3 * e2 * e2 / 0.01 + 4 * 0.25) / 10, 1e-12,
                 0);
    assert_close(t[CD_NET_LOSS_huber], (0.125 + 2 * 0.5 + 1.5 * e2 * e2 + 4 * 0.03125) / 10, 1e-12,
                 0);
    const double l1 = log1p(exp(-1 - 1.5)), l2 = log1p(exp(-1 - (double)0.03f)),
                 l3 = log1p(exp((double)0.03f - 1.5));
    assert_close(t[CD_NET_LOSS_rank], (l1 + l2 + l3) / 3, 1e-12, 0);
    double want[3], got[3], sw = 0, sg = 0, ce = 0;
    for (int i = 0; i < 3; i++) sw += want[i] = exp(-zz[i]), sg += got[i] = exp(-(double)o[i]);
    for (int i = 0; i < 3; i++) ce -= want[i] / sw * log(got[i] / sg);
    assert_close(t[CD_NET_LOSS_listnet], ce, 1e-12, 0);
    double sum = 0;
    for (int k = 0; k < CD_NET_LOSS_TERMS; k++) sum += t[k];
    assert_close(v, sum, 1e-12, 0);
}

/* sum of |gain_i - gain_j| |discount_i - discount_j| softplus / ideal, one group of 4 */
TEST(lambdarank_by_hand) {
    static const double zz[] = {0.3, -1, 2, 0.9}, ls[] = {-8, -9, -6.5, -7};
    static const float o[] = {0.5f, 0.25f, 1, -2};
    static const uint32_t g[] = {0, 0, 0, 0};
    const cd_net_loss_batch b = {4, zz, ls, NULL, g, NULL};
    const cd_net_loss p = parse("2lambdarank");
    static const int place_by_pred[] = {2, 1, 3, 0}, place_by_label[] = {1, 0, 3, 2};
    double gain[4], ideal = 0, sum = 0;
    for (int i = 0; i < 4; i++) {
        gain[i] = pow(2, exp(-9 - ls[i])) - 1;
        ideal += gain[i] / log2(2 + place_by_label[i]);
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            if (zz[i] < zz[j])
                sum += fabs(gain[i] - gain[j]) *
                       fabs(1 / log2(2 + place_by_pred[i]) - 1 / log2(2 + place_by_pred[j])) *
                       log1p(exp((double)o[i] - (double)o[j]));
    assert_close(value(&p, &b, o, NULL, NULL), 2 * sum / ideal, 1e-12, 0);
}

TEST(in_seconds) {
    double t[CD_NET_LOSS_TERMS], ape = 0, sq = 0, w = 0;
    const cd_net_loss p = parse("1mape_s+1mse_log");
    value(&p, &batch, out, NULL, t);
    for (int i = 0; i < N; i++) {
        const double ratio = cd_transform_inverse(&box_cox, (double)out[i]) / exp(log_s[i]),
                     r = log(ratio);
        w += (double)weight[i];
        sq += (double)weight[i] * r * r;
        ape += (double)weight[i] * (r > 2 ? exp(2) - 1 + exp(2) * (r - 2) : fabs(ratio - 1));
    }
    assert_close(t[CD_NET_LOSS_mape_s], ape / w, 1e-10, 0);
    assert_close(t[CD_NET_LOSS_mse_log], sq / w, 1e-10, 0);
}

TEST(uncertainty) {
    static const double zz[] = {1, 1}, ls[] = {-7, -7};
    static const float o[] = {1.5f, 0.5f, 0.2f, 1, 3, /* */ 0.5f, -12, 2, 1, 0};
    const cd_net_loss_batch b = {2, zz, ls, NULL, NULL, NULL};
    double t[CD_NET_LOSS_TERMS];
    const cd_net_loss p = parse("1nll+1pinball");
    assert_int_equal(cd_net_loss_width(&p), 5);
    assert_int_equal(cd_net_loss_quantile_at(&p), 2);
    value(&p, &b, o, NULL, t);
    const double nll = 0.5 * (0.5 + 0.25 * exp(-0.5)) + 0.5 * (-10 + 0.25 * exp(10) + 4);
    assert_close(t[CD_NET_LOSS_nll], nll / 2, 1e-6, 0);
    const double pin =
        0.25 + 0.1 * (1 - (double)0.2f) + 0 + 0.1 * 2 + (0.25 + 0.9 * 1 + 0 + 0.9 * 1);
    assert_close(t[CD_NET_LOSS_pinball], pin / 2, 1e-12, 0);
}

/* ---- laws ---- */
TEST(perfect_is_zero) {
    static float o[N * 5], g[N * 5];
    for (int i = 0; i < N; i++) o[i] = (float)z[i];
    const cd_net_loss p = parse("1mse+1mape+1mspe+1mae+1huber+1mape_s+1mse_log+1huber_log");
    assert_close(value(&p, &batch, o, g, NULL), 0, 0, 1e-5);
}

/* The order of the samples is nothing; a weight of 2 is the sample twice. */
TEST(order_and_weights) {
    const char *text = "1mse+1mape_s+1rank+1lambdarank+1listnet";
    const cd_net_loss p = parse(text);
    double zr[N], lr[N];
    float wr[N], o[N];
    uint32_t gr[N];
    for (int i = 0; i < N; i++) {
        zr[i] = z[N - 1 - i], lr[i] = log_s[N - 1 - i], wr[i] = weight[N - 1 - i],
        gr[i] = group[N - 1 - i], o[i] = out[N - 1 - i];
    }
    const cd_net_loss_batch r = {N, zr, lr, wr, gr, NULL};
    assert_close(value(&p, &batch, out, NULL, NULL), value(&p, &r, o, NULL, NULL), 1e-12, 0);

    const cd_net_loss q = parse("1mse+1mape_s");
    const double z2[] = {z[0], z[0], z[1]}, l2[] = {log_s[0], log_s[0], log_s[1]};
    const float o2[] = {out[0], out[0], out[1]}, w2[] = {2, 1};
    const cd_net_loss_batch twice = {3, z2, l2, NULL, NULL, NULL};
    const cd_net_loss_batch once = {2, z, log_s, w2, NULL, NULL};
    assert_close(value(&q, &twice, o2, NULL, NULL), value(&q, &once, out, NULL, NULL), 1e-12, 0);
}

/* Shares by group add up to the batch: loss and gradient. */
TEST(shares_add_up) {
    cdmpp_err err = {0};
    const cd_net_loss p = parse("3mse+1mape_s+1nll+1pinball+1rank+1lambdarank+1listnet");
    const size_t width = cd_net_loss_width(&p);
    static float whole[N * 5], part[N * 5], o[N * 5];
    cd_net_loss_scratch *scratch;
    assert_ok(cd_net_loss_scratch_new(&p, N, &scratch, &err));
    const cd_net_loss_norm norm = cd_net_loss_count(&p, &batch, scratch);
    const double loss = cd_net_loss_eval(&p, &batch, &norm, out, whole, NULL, scratch);
    double sum = 0;
    for (uint32_t rank = 0; rank < 3; rank++) {
        double zr[N], lr[N];
        float wr[N];
        uint32_t gr[N];
        size_t at[N], n = 0;
        for (size_t i = 0; i < N; i++) {
            if (group[i] % 3 != rank) continue;
            zr[n] = z[i], lr[n] = log_s[i], wr[n] = weight[i], gr[n] = group[i], at[n] = i;
            memcpy(o + n++ * width, out + i * width, width * sizeof *o);
        }
        const cd_net_loss_batch b = {n, zr, lr, wr, gr, &box_cox};
        sum += cd_net_loss_eval(&p, &b, &norm, o, part, NULL, scratch);
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < width; k++)
                assert_close((double)part[i * width + k], (double)whole[at[i] * width + k], 1e-6,
                             1e-12);
    }
    assert_close(sum, loss, 1e-12, 0);
    cd_net_loss_scratch_free(scratch);
}

/* Wild outputs give a finite loss and gradient, and a gradient that leads back. */
TEST(wild_outputs) {
    const cd_net_loss p = parse("1mape_s+1huber_log+1nll+1rank+1lambdarank+1listnet");
    static float o[N * 2], g[N * 2];
    for (int side = -1; side <= 1; side += 2) {
        for (int i = 0; i < N; i++) o[2 * i] = (float)side * 1e4f, o[2 * i + 1] = (float)side * 50;
        assert_true(isfinite(value(&p, &batch, o, g, NULL)));
        for (int i = 0; i < 2 * N; i++) assert_true(isfinite((double)g[i]));
        assert_true(side * (double)g[0] > 0 && side * (double)g[1] > 0);
    }
    o[0] = NAN;
    assert_true(isnan(value(&p, &batch, o, g, NULL)));
}

/* ---- text ---- */
TEST(text) {
    const cd_net_loss p = parse(" 1000mse+1e-3 mape + .5cmd");
    assert_close(p.weight[CD_NET_LOSS_mse], 1000, 0, 0);
    assert_close(p.weight[CD_NET_LOSS_mape], 1e-3, 0, 0);
    assert_close(p.weight[CD_NET_LOSS_cmd], 0.5, 0, 0);
    assert_true(cd_net_loss_domains(&p) && !cd_net_loss_ranks(&p));
    assert_int_equal(cd_net_loss_width(&p), 1);
    assert_int_equal(p.n_quantile, 0);
}

static const struct {
    const char *text, *has;
    cdmpp_status st;
} bad[] = {
    {"mse", "'mse' has no weight, expected for example '1mse'", CDMPP_ESCHEMA},
    {"1mse+mape", "'mape' has no weight", CDMPP_ESCHEMA},
    {"1mes", "unknown loss term 'mes', the nearest is 'mse'", CDMPP_ESCHEMA},
    {"1hubber", "the nearest is 'huber'", CDMPP_ESCHEMA},
    {"1mse+2mse", "'mse' appears twice", CDMPP_ESCHEMA},
    {"0mse", "'mse'", CDMPP_ERANGE},
    {"-1mse", "found -1", CDMPP_ERANGE},
    {"1e99mse", "1e9", CDMPP_ERANGE},
    {"", "expected a loss term", CDMPP_ESCHEMA},
    {"1mse+", "expected a loss term", CDMPP_ESCHEMA},
    {"12", "expected a loss term", CDMPP_ESCHEMA},
    {"+mse", "expected a loss term", CDMPP_ESCHEMA},
    {"1mse 1mape", "expected '+'", CDMPP_ESCHEMA},
    {"1cmd", "beside cmd and mmd", CDMPP_ESCHEMA},
};

static void refused_text(void **s) {
    (void)s;
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        cdmpp_err err = {0};
        cd_net_loss q;
        assert_status(cd_net_loss_parse(bad[k].text, quantile, 3, &q, &err), bad[k].st);
        if (!strstr(err.msg, bad[k].has)) fail_msg("'%s': %s", bad[k].text, err.msg);
    }
    cdmpp_err err = {0};
    cd_net_loss q;
    const double falling[] = {0.5, 0.1}, outside[] = {1};
    assert_status(cd_net_loss_parse("1pinball", NULL, 0, &q, &err), CDMPP_ESCHEMA);
    assert_status(cd_net_loss_parse("1pinball", falling, 2, &q, &err), CDMPP_ERANGE);
    assert_status(cd_net_loss_parse("1pinball", outside, 1, &q, &err), CDMPP_ERANGE);
}

TEST(out_of_memory) {
    const cd_net_loss p = parse("1mse");
    FAULT_SWEEP(f, 1) {
        cd_net_loss_scratch *scratch;
        f.st = cd_net_loss_scratch_new(&p, N, &scratch, &f.err);
        if (!f.st) cd_net_loss_scratch_free(scratch);
    }
}

TESTS(make, NULL, gradients, by_hand, lambdarank_by_hand, in_seconds, uncertainty, perfect_is_zero,
      order_and_weights, shares_add_up, wild_outputs, text, refused_text, out_of_memory)

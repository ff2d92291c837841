/* Networks of every kind as files that somebody made by hand: refused with a reason, or numbers
 * come out; never a crash, never much memory. */
#include "learner/nn/nn.h"
#include "forge.h"

#include "made_nn.h"

enum { N = 5, MOST = 4 };

static cd_net_config tiny(cd_net_kind kind) {
    cd_net_config s = cd_net_config_small(kind);
    s.layers = 1;
    s.width = 12;
    s.heads = 3;
    s.ff = 20;
    s.slots = 3;
    s.head_width = 13;
    s.embed = 7;
    s.decoder_width = 9;
    s.side_width = 6;
    s.program = kind != CD_NET_TLP;
    s.w_dev = kind == CD_NET_TLP ? 0 : 4;
    s.device = kind != CD_NET_TLP;
    if (kind == CD_NET_TLP)
        s.norm = CD_NORM_NONE, s.pre_norm = false, s.context = s.derived = s.trips = false,
        s.values = 5;
    return s;
}

/* The network of the file, on a batch that its description asks for. */
static bool use(const char *p, size_t n) {
    cdmpp_err err = {0};
    made_net r = {0};
    cd_scalers s;
    const cdmpp_status st = cd_net_load(p, n, &r.net, &s, &err);
    if (st) {
        if (st == CDMPP_ENOMEM || !err.msg[0]) fail_msg("refused with %s", err.msg);
        return false;
    }
    const cd_net_config *c = cd_net_config_of(r.net);
    assert_ok(made_batch(&r.b, c, 0, N, MOST, 3, &err));
    assert_ok(cd_net_state_new(r.net, &r.b.dims, 1, false, &r.st, &err));
    r.out = calloc(N * (size_t)c->n_out, sizeof *r.out);
    r.latent = calloc(N * cd_net_n_latent(r.net) + 1, sizeof *r.latent);
    assert_ok(cd_net_predict(r.net, &r.b, r.st, NULL, r.out, r.latent, &err));
    cd_scalers_free(&s);
    made_net_close(&r);
    return true;
}

static void forge_kind_of(cd_net_kind kind) {
    cdmpp_err err = {0};
    cd_buf b = {0};
    cd_net *net;
    cd_scalers s = {0};
    const cd_net_config c = tiny(kind);
    const cd_batch_spec spec = cd_net_batch_spec(&c, NULL, 0);
    assert_ok(cd_net_new(&c, 5, &net, &err));
    assert_ok(cd_scalers_init(&s, &spec, &err));
    assert_ok(cd_net_save(net, &s, &b, &err));
    cd_net_free(net);
    cd_scalers_free(&s);
    forge_all(FORGE_SAFETENSORS, b.p, b.n, 100, use);
    cd_buf_free(&b);
}

TEST(perceptron) { forge_kind_of(CD_NET_MLP); }
TEST(transformer) { forge_kind_of(CD_NET_TSF); }
TEST(lstm) { forge_kind_of(CD_NET_LSTM); }
TEST(tlp) { forge_kind_of(CD_NET_TLP); }

/* A description of 50 GB in a file of some hundred bytes. */
TEST(a_description_asks_for_no_more_than_the_file_has) {
    static const char wide[] =
        "\\\"layers\\\":64,\\\"width\\\":4096,\\\"heads\\\":64,\\\"ff\\\":16384,";
    cdmpp_err err = {0};
    cd_buf b = {0}, header = {0}, out = {0};
    cd_net *net;
    cd_scalers s = {0};
    const cd_net_config c = tiny(CD_NET_TSF);
    const cd_batch_spec spec = cd_net_batch_spec(&c, NULL, 0);
    assert_ok(cd_net_new(&c, 5, &net, &err));
    assert_ok(cd_scalers_init(&s, &spec, &err));
    assert_ok(cd_net_save(net, &s, &b, &err));
    cd_net_free(net);
    cd_scalers_free(&s);
    const char *text = b.p + 8, *from = strstr(text, "\\\"layers\\\":1"),
               *to = strstr(text, "\\\"pre_norm");
    assert_true(from && to && from < to);
    cd_buf_put(&header, text, (size_t)(from - text));
    cd_buf_puts(&header, wide);
    cd_buf_put(&header, to, (size_t)forge_le(b.p) - (size_t)(to - text));
    const cd_buf none = {0};
    forge_frame(FORGE_SAFETENSORS, NULL, &header, &none, &out);
    assert_status(cd_net_load(out.p, out.n, &net, &s, &err), CDMPP_EMODEL);
    assert_non_null(strstr(err.msg, "numbers of weights, found at most 0"));
    cd_buf_free(&b);
    cd_buf_free(&header);
    cd_buf_free(&out);
}

TESTS(NULL, NULL, a_description_asks_for_no_more_than_the_file_has, perceptron, transformer, lstm,
      tlp)

/* Descriptions of networks: defaults, two published ones, and the limits within which a description
 * from a file is accepted. */
#include <math.h>

#include "learner/nn/nn.h"

cd_net_config cd_net_config_small(cd_net_kind kind) {
    const bool lstm = kind == CD_NET_LSTM;
    return (cd_net_config){.kind = kind,
                           .layers = 2,
                           .width = 96,
                           .heads = 4,
                           .values = 11,
                           .log_values = true,
                           .ff = lstm ? 96 : 192,
                           .pre_norm = true,
                           .skip = lstm,
                           .act = lstm ? CD_ACT_ELU : CD_ACT_RELU,
                           .head = CD_HEAD_POOL,
                           .slots = 16,
                           .temperature = 1,
                           .trips = true,
                           .head_width = kind == CD_NET_MLP ? 256 : 128,
                           .head_depth = 1,
                           .embed = 64,
                           .decoder_width = 128,
                           .decoder_depth = 2,
                           .side_width = 64,
                           .side_depth = 1,
                           .norm = CD_NORM_LAYER,
                           .position = CD_POS_SINUSOID,
                           .context = true,
                           .derived = true,
                           .device = true,
                           .n_out = 1};
}

/* leaf 600, 350, 200, 180; state 180; merge 200, 180; regression 200, 180. */
cd_net_config cd_net_config_tiramisu(void) {
    return (cd_net_config){.kind = CD_NET_LSTM,
                           .width = 180,
                           .ff = 200,
                           .temperature = 1,
                           .head_first = 600,
                           .head_width = 350,
                           .head_depth = 1,
                           .embed = 200,
                           .decoder_width = 180,
                           .decoder_depth = 1,
                           .side_width = 128,
                           .side_depth = 1,
                           .norm = CD_NORM_NONE,
                           .act = CD_ACT_ELU,
                           .dropout = 0.112,
                           .device = true,
                           .n_out = 1};
}

cd_net_config cd_net_config_tlp(void) {
    return (cd_net_config){.kind = CD_NET_TLP,
                           .layers = 2,
                           .width = 256,
                           .heads = 8,
                           .slots = 25,
                           .values = 11,
                           .temperature = 1,
                           .head_width = 256,
                           .embed = 256,
                           .decoder_width = 128,
                           .decoder_depth = 2,
                           .side_width = 64,
                           .side_depth = 1,
                           .norm = CD_NORM_NONE,
                           .act = CD_ACT_RELU,
                           .n_out = 1};
}

cd_net_config cd_net_config_published(void) {
    return (cd_net_config){.kind = CD_NET_TSF,
                           .layers = 11,
                           .width = 164,
                           .heads = 4,
                           .ff = 2048,
                           .head = CD_HEAD_FLATTEN,
                           .slots = 16,
                           .temperature = 1,
                           .head_first = 716,
                           .head_width = 985,
                           .head_depth = 3,
                           .embed = 69,
                           .decoder_width = 930,
                           .decoder_depth = 3,
                           .side_width = 128,
                           .side_depth = 3,
                           .norm = CD_NORM_BATCH,
                           .dropout = 0.1,
                           .position = CD_POS_CDMPP,
                           .device = true,
                           .n_out = 1};
}

static cdmpp_status within(const char *name, int64_t v, int64_t lo, int64_t hi, cdmpp_err *err) {
    if (v >= lo && v <= hi) return CDMPP_OK;
    return cd_err_key(err,
                      CD_FAIL(err, ERANGE, "expected %lld..%lld, found %lld", (long long)lo,
                              (long long)hi, (long long)v),
                      name);
}

static cdmpp_status fraction(const char *name, double v, cdmpp_err *err) {
    if (v >= 0 && v < 1) return CDMPP_OK;
    return cd_err_key(err, CD_FAIL(err, ERANGE, "expected 0 or more and less than 1, found %g", v),
                      name);
}

static cdmpp_status check_heads(const cd_net_config *s, cdmpp_err *err) {
    CD_TRY(within("heads", s->heads, 1, 64, err));
    if (s->width % s->heads == 0) return CDMPP_OK;
    return cd_err_key(err,
                      CD_FAIL(err, ERANGE, "%lld heads do not divide a width of %lld",
                              (long long)s->heads, (long long)s->width),
                      "heads");
}

static cdmpp_status check_encoder(const cd_net_config *s, cdmpp_err *err) {
    CD_TRY(within("layers", s->layers, 0, 64, err));
    CD_TRY(within("width", s->width, 2, 4096, err));
    CD_TRY(within("ff", s->ff, 1, 16384, err));
    CD_TRY(within("slots", s->slots, 1, 256, err));
    CD_TRY(check_heads(s, err));
    if (!(s->temperature > 0) || !isfinite(s->temperature))
        return cd_err_key(err,
                          CD_FAIL(err, ERANGE, "expected more than 0, found %g", s->temperature),
                          "temperature");
    if (s->tokens == CD_TOKENS_ROWS && s->context)
        return cd_err_key(
            err, CD_FAIL(err, ERANGE, "tokens rows have no loop context; leaves have"), "context");
    return fraction("dropout", s->dropout, err);
}

static cdmpp_status check_lstm(const cd_net_config *s, cdmpp_err *err) {
    CD_TRY(within("width", s->width, 2, 4096, err));
    CD_TRY(within("ff", s->ff, 1, 16384, err));
    return fraction("dropout", s->dropout, err);
}

static cdmpp_status check_tlp(const cd_net_config *s, cdmpp_err *err) {
    CD_TRY(within("layers", s->layers, 0, 8, err));
    CD_TRY(within("width", s->width, 4, 4096, err));
    CD_TRY(within("slots", s->slots, 1, 256, err));
    CD_TRY(within("values", s->values, 1, 256, err));
    CD_TRY(check_heads(s, err));
    return fraction("dropout", s->dropout, err);
}

/* Limits keep a damaged model file from asking for terabytes. */
cdmpp_status cd_net_config_check(const cd_net_config *s, cdmpp_err *err) {
    if (s->kind == CD_NET_TSF) CD_TRY(check_encoder(s, err));
    if (s->kind == CD_NET_LSTM) CD_TRY(check_lstm(s, err));
    if (s->kind == CD_NET_TLP) CD_TRY(check_tlp(s, err));
    CD_TRY(within("head_first", s->head_first, 0, 8192, err));
    CD_TRY(within("head_depth", s->head_depth, 0, 8, err));
    CD_TRY(within("head_width", s->head_width, 1, 8192, err));
    CD_TRY(within("embed", s->embed, 1, 8192, err));
    CD_TRY(within("decoder_depth", s->decoder_depth, 1, 8, err));
    CD_TRY(within("decoder_width", s->decoder_width, 1, 8192, err));
    CD_TRY(within("side_depth", s->side_depth, 0, 8, err));
    CD_TRY(within("side_width", s->side_width, 1, 8192, err));
    CD_TRY(fraction("dropout_mlp", s->dropout_mlp, err));
    CD_TRY(within("w_dev", s->w_dev, 0, 4096, err));
    return within("n_out", s->n_out, 1, 3, err);
}

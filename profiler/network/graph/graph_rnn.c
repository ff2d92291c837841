/* Recurrent layers: X[seq,batch,I], W[D,G*H,I], R[D,G*H,H] -> Y[seq,D,batch,H], Y_h[D,batch,H],
 * Y_c. With layout 1 the batch stands first everywhere. */
#include <string.h>

#include "profiler/network/graph/graph_call_internal.h"

static int64_t gates(const cd_graph_call *c) {
    return !strcmp(c->op, "LSTM") ? 4 : !strcmp(c->op, "GRU") ? 3 : 1;
}

static cdmpp_status directions(cd_graph_call *c, int64_t *n, cdmpp_err *err) {
    const char *s;
    CD_TRY(cd_graph_call_str(c, "direction", "forward", &s, err));
    *n = !strcmp(s, "bidirectional") ? 2 : 1;
    if (*n == 1 && strcmp(s, "forward") && strcmp(s, "reverse"))
        return CD_FAIL(err, ESCHEMA,
                       "%s: direction \"%s\": expected forward, reverse or bidirectional", c->op,
                       s);
    return CDMPP_OK;
}

static cdmpp_status check_weights(const cd_graph_call *c, int64_t D, int64_t H, cdmpp_err *err) {
    char tw[96], tr[96];
    const cd_graph_shape *x = &cd_graph_call_input(c, 0)->shape,
                         *w = &cd_graph_call_input(c, 1)->shape,
                         *r = &cd_graph_call_input(c, 2)->shape;
    const int64_t G = gates(c);
    if (w->dim[0] == D && r->dim[0] == D && r->dim[2] == H && r->dim[1] == G * H &&
        w->dim[1] == G * H && w->dim[2] == x->dim[2])
        return CDMPP_OK;
    return CD_FAIL(
        err, ESCHEMA,
        "%s: weights %s and %s do not fit %lld directions of %lld cells over %lld inputs", c->op,
        cd_graph_shape_text(w, tw, sizeof tw), cd_graph_shape_text(r, tr, sizeof tr), (long long)D,
        (long long)H, (long long)x->dim[2]);
}

/* One shape rule for RNN, GRU and LSTM, which differ in the number of gates. Y_c is the third
 * result of LSTM only. The bound on hidden_size keeps gates * hidden within int64. */
static cdmpp_status rnn(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    int64_t D, H, layout;
    for (uint32_t i = 0; i < 3; i++) CD_TRY(cd_graph_call_rank(c, i, 3, 3, err));
    CD_TRY(directions(c, &D, err));
    CD_TRY(cd_graph_call_default_int(c, "hidden_size", cd_graph_call_input(c, 2)->shape.dim[2], &H,
                                     err));
    CD_TRY(cd_graph_call_default_int(c, "layout", 0, &layout, err));
    if (layout != 0 && layout != 1)
        return CD_FAIL(err, ESCHEMA, "%s: layout %lld: expected 0 or 1", c->op, (long long)layout);
    if (H < 0 || H > (int64_t)1 << 40)
        return CD_FAIL(err, ERANGE, "%s: hidden_size is %lld", c->op, (long long)H);
    CD_TRY(check_weights(c, D, H, err));
    const int64_t seq = x->shape.dim[layout], batch = x->shape.dim[1 - layout];
    const cd_graph_shape y =
        layout ? (cd_graph_shape){4, {batch, seq, D, H}} : (cd_graph_shape){4, {seq, D, batch, H}};
    const cd_graph_shape h =
        layout ? (cd_graph_shape){3, {batch, D, H}} : (cd_graph_shape){3, {D, batch, H}};
    CD_TRY(cd_graph_call_set_output(c, 0, x->dtype, &y, err));
    CD_TRY(cd_graph_call_set_output(c, 1, x->dtype, &h, err));
    return cd_graph_call_set_output(c, 2, x->dtype, &h, err);
}

cdmpp_status cd_graph_infer_rnn(cd_graph_call *c, cdmpp_err *err) { return rnn(c, err); }
cdmpp_status cd_graph_infer_gru(cd_graph_call *c, cdmpp_err *err) { return rnn(c, err); }
cdmpp_status cd_graph_infer_lstm(cd_graph_call *c, cdmpp_err *err) { return rnn(c, err); }

/* For each element of Y: per gate both products, their sum, the biases and an activation; then what
 * the cell does. */
static double flop(const cd_graph_call *c, double cell) {
    const double i = (double)cd_graph_call_input(c, 0)->shape.dim[2],
                 h = (double)cd_graph_call_input(c, 2)->shape.dim[2];
    const double gate = 2 * i + 2 * h + 1 + (cd_graph_call_input(c, 3) ? 2 : 0) + 1;
    return cd_graph_flop_out(c) * ((double)gates(c) * gate + cell);
}

double cd_graph_flop_rnn(const cd_graph_call *c) { return flop(c, 0); }
/* r * h, (1 - z) * n + z * h */
double cd_graph_flop_gru(const cd_graph_call *c) { return flop(c, 5); }
/* f * c + i * g, o * tanh(c) */
double cd_graph_flop_lstm(const cd_graph_call *c) { return flop(c, 5); }

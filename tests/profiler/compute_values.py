#!/usr/bin/env python3
"""Values of the cases of test_te_compute.c by PyTorch: compute_values.py >data/compute_values.txt"""
import math
import torch
import torch.nn.functional as F


def T(k, *shape):
    n = math.prod(shape)
    return torch.tensor([((i * 7 + k * 5 + i * i % 3) % 13 - 6) / 8.0 for i in range(n)], dtype=torch.float64).reshape(shape)


def bn(x, s, b, mu, var):
    return F.batch_norm(x, mu, var, s, b, eps=0.125)


def recurrent(kind, seq, batch, n_in, hidden, w, r, b, both, order):
    """ONNX's order of gates -> PyTorch's."""
    m = kind(n_in, hidden, bidirectional=both, bias=b is not None).double()
    def gates(t):
        return torch.cat([t[o * hidden:(o + 1) * hidden] for o in order])
    with torch.no_grad():
        for d in range(2 if both else 1):
            s = "_reverse" if d else ""
            getattr(m, "weight_ih_l0" + s).copy_(gates(w[d]))
            getattr(m, "weight_hh_l0" + s).copy_(gates(r[d]))
            if b is not None:
                half = len(order) * hidden
                getattr(m, "bias_ih_l0" + s).copy_(gates(b[d][:half]))
                getattr(m, "bias_hh_l0" + s).copy_(gates(b[d][half:]))
    return m


def seq_y(y, seq, batch, dirs, hidden):
    return y.reshape(seq, batch, dirs, hidden).transpose(1, 2)


def cases():
    yield "conv2d", [F.conv2d(F.pad(T(0, 1, 4, 7, 6), (0, 1, 1, 2)), T(1, 4, 4, 3, 3), T(2, 4), stride=(2, 1), dilation=(1, 2))]
    yield "conv_group", [F.relu(F.conv2d(T(0, 2, 4, 5, 5), T(1, 6, 2, 3, 3), groups=2, padding=1))]
    yield "conv_depthwise", [F.conv2d(T(0, 1, 4, 6, 5), T(1, 4, 1, 3, 3), T(2, 4), groups=4, padding=1, stride=2).clamp(0, 0.5)]
    yield "conv1d", [F.conv1d(T(0, 2, 3, 8), T(1, 4, 3, 3), stride=2, padding=1)]
    yield "conv3d", [F.relu(F.conv3d(T(0, 1, 2, 4, 5, 4), T(1, 3, 2, 3, 3, 3), T(2, 3), stride=(1, 2, 1), padding=1))]
    yield "conv_transposed", [F.conv_transpose2d(T(0, 1, 3, 4, 3), T(1, 3, 2, 3, 4), T(2, 2), stride=(2, 3), padding=(1, 0), output_padding=(1, 2))]
    x, w, s, b, mu, one = T(0, 1, 3, 6, 6), T(1, 3, 3, 3, 3), T(2, 3), T(3, 3), T(4, 3), T(5, 3)
    z = F.relu(bn(F.conv2d(x, w, padding=1), s, b, mu, one * one) + x)
    yield "residual", [F.relu(bn(z, b, s, mu, one * one))]
    x = T(0, 1, 2, 7, 7)
    a = F.max_pool2d(F.pad(x, (1, 1, 0, 0), value=-math.inf), 3, 2, ceil_mode=True)
    yes = F.avg_pool2d(x, 3, 2, 1, count_include_pad=True)
    yield "pools", [a, torch.cat([F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), yes, yes], 1), F.avg_pool2d(x, 2, 2, ceil_mode=True)]
    y = F.conv2d(T(0, 2, 3, 4, 5), T(1, 3, 3, 1, 1))
    yield "global_pools", [y.mean((2, 3)), torch.sigmoid(y.amax((2, 3), keepdim=True)) * y]
    x = T(0, 2, 3, 4)
    yield "softmaxes", [x.softmax(1), x.log_softmax(-1)]
    x = F.layer_norm(T(0, 2, 3, 8), (8,), T(1, 8), T(2, 8), eps=0.0625)
    yield "layer_norms", [x, x]
    x = T(0, 2, 4, 3, 3)
    yield "norms", [F.instance_norm(x, weight=T(1, 4), bias=T(2, 4), eps=0.0625), F.local_response_norm(x, 3, 0.5, 0.75, 2.0)]
    x = T(0, 1, 3, 8)
    o = F.gelu(x @ T(1, 8, 16) + T(2, 16)) @ T(3, 16, 8) + T(4, 8) + x
    yield "feed_forward", [o.mean(-1, keepdim=True), o - o.mean(-1, keepdim=True)]
    yield "matmuls", [T(0, 2, 1, 3, 4) @ T(1, 2, 4, 5), T(0, 2, 1, 3, 4) @ T(2, 4)]
    x = T(0, 1, 4, 6)
    q = (x @ T(1, 6, 6)).reshape(1, 4, 2, 3).transpose(1, 2)
    k = x.reshape(1, 4, 2, 3).permute(0, 2, 3, 1)
    yield "attention", [((q @ k / 2).softmax(-1) @ q).transpose(1, 2).reshape(1, 4, 6)]
    a, b, c = T(0, 4, 3), T(1, 4, 5), T(2, 5)
    yield "gemms", [0.5 * a.T @ b + 2 * c, a.T @ T(3, 5, 4).T]
    x = T(0, 2, 3, 4)
    edge = F.pad(x.unsqueeze(0), (2, 1, 1, 0), mode="replicate")[0]
    yield "moves", [x[:, [2, 0, 2]], x[:, 0:2][:, :, [3, 1]], x.repeat(1, 2, 2), F.pad(x.unsqueeze(0), (2, 3, 1, 1), mode="reflect")[0], edge,
                    torch.cat([x[:, :, 1:], x, x[:, :, :1]], 2), x[:, :, 1:2].expand(2, 3, 2)]
    y = F.conv2d(T(0, 1, 4, 3, 4), T(1, 4, 4, 1, 1))
    yield "images", [F.interpolate(y, (6, 6), mode="nearest"), F.interpolate(y, (6, 6), mode="bilinear", align_corners=False),
                     F.interpolate(y, (6, 6), mode="bilinear", align_corners=True), F.pixel_shuffle(y, 2)]
    x = T(0, 2, 3, 4, 2)
    y = F.conv2d(x, T(1, 3, 3, 1, 1))
    yield "reductions", [y.mean((2, 3)), y.amax(1), y.sum((0, 3), keepdim=True), (y * y).sum((1, 2)).sqrt(), y.prod(0),
                         torch.from_numpy(x.numpy().argmax(2))]
    x, a = T(0, 3, 7), T(1, 7)
    y = torch.where(x > 0, x, x * a)
    for v in (x.tanh(), F.softplus(x), F.softsign(x), F.hardswish(x), -x, x.abs(), x.ceil(), x.sign(), F.mish(x), F.selu(x)):
        y = y + v
    y = torch.where(x < a, F.leaky_relu(y, 0.25), F.elu(-y, 0.5))
    yield "elements", [torch.maximum(torch.maximum(y, x), (x * 0.25 + 0.5).clamp(0, 1)), x.exp() ** 1.5]
    m = recurrent(torch.nn.LSTM, 3, 2, 4, 3, T(1, 2, 12, 4), T(2, 2, 12, 3), T(3, 2, 24), True, (0, 2, 3, 1))
    y, (h, c) = m(T(0, 3, 2, 4), (T(4, 2, 2, 3), T(5, 2, 2, 3)))
    yield "lstms", [seq_y(y, 3, 2, 2, 3), h, c]
    x, w, r = T(0, 3, 2, 4), T(1, 1, 9, 4), T(2, 1, 9, 3)
    y = seq_y(recurrent(torch.nn.GRU, 3, 2, 4, 3, w, r, T(3, 1, 18), False, (1, 0, 2))(x)[0], 3, 2, 1, 3)
    yield "grus", [y, gru_before(x, w[0], r[0]), rnn_back(x, T(4, 3, 4), T(5, 3, 3))]


def gru_before(x, w, r):
    h, out = torch.zeros(2, 3, dtype=torch.float64), []
    for t in x:
        g, q = t @ w.T, h @ r[:6].T
        z, s = torch.sigmoid(g[:, :3] + q[:, :3]), torch.sigmoid(g[:, 3:6] + q[:, 3:])
        h = (1 - z) * torch.tanh(g[:, 6:] + (s * h) @ r[6:].T) + z * h
        out.append(h)
    return torch.stack(out)


def rnn_back(x, w, r):
    h, out = torch.zeros(2, 3, dtype=torch.float64), []
    for t in reversed(x):
        h = torch.tanh(t @ w.T + h @ r.T)
        out.append(h)
    return torch.stack(out[::-1])


for name, results in cases():
    for k, v in enumerate(results):
        v = v.detach().double().reshape(-1)
        print(name, k, len(v))
        print(" ".join("%.8g" % float(e) for e in v))

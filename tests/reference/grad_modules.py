"""grad_modules -- small modules of torch.nn as PyTorch itself exports them, for grads_torch.py: nobody here wrote their operators down."""
import io
import math

import onnx
import torch
from onnx import numpy_helper
from torch import nn

MODULES = {}


def module(loss="cross_entropy", optimizer="sgd"):
    def put(f):
        MODULES["module " + f.__name__] = lambda: (*f(), loss, optimizer)
        return f
    return put


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c))

    def forward(self, x):
        return torch.relu(self.a(x) + x)


@module()
def residual_network():
    return nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(3, 2, 1), Residual(4),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5)), (torch.rand(3, 3, 14, 13),)


class Squeeze(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.f = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(c, 2, 1), nn.ReLU(), nn.Conv2d(2, c, 1), nn.Hardsigmoid())

    def forward(self, x):
        return x * self.f(x)


@module(optimizer="adam")
def mobile_block():
    return nn.Sequential(nn.Conv2d(3, 6, 1), nn.BatchNorm2d(6), nn.Hardswish(), nn.Conv2d(6, 6, 3, 2, 1, groups=6), nn.BatchNorm2d(6), nn.SiLU(), Squeeze(6),
                         nn.Conv2d(6, 4, 1), nn.ReLU6(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 3)), (torch.rand(2, 3, 8, 8),)


@module()
def alexnet_like():
    return nn.Sequential(nn.Conv2d(3, 8, 5, 2, 2), nn.ReLU(), nn.LocalResponseNorm(5, 1e-2), nn.MaxPool2d(3, 2, ceil_mode=True), nn.Conv2d(8, 6, 3, padding=1, groups=2),
                         nn.GroupNorm(3, 6), nn.Tanh(), nn.Flatten(), nn.Linear(6 * 9, 8), nn.ReLU(), nn.Dropout(0.0), nn.Linear(8, 4)), (torch.rand(2, 3, 13, 13),)


@module(loss="squares")
def generator():
    return nn.Sequential(nn.ConvTranspose2d(5, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.ConvTranspose2d(4, 3, 4, 2, 1), nn.LeakyReLU(0.2),
                         nn.Upsample(scale_factor=2), nn.Conv2d(3, 2, 3, padding=1), nn.Tanh()), (torch.rand(2, 5, 2, 2),)


@module()
def encoder_layer():
    return nn.Sequential(nn.TransformerEncoderLayer(8, 2, 12, 0.0, "gelu", batch_first=True), nn.LayerNorm(8), nn.Linear(8, 5)), (torch.rand(2, 4, 8),)


class Words(nn.Module):
    """Words and places, causal attention, the table used again for the result."""

    def __init__(self, tied=True):
        super().__init__()
        self.table, self.place, self.n1, self.n2 = nn.Embedding(11, 8), nn.Embedding(6, 8), nn.LayerNorm(8), nn.LayerNorm(8)
        self.qkv, self.out, self.up, self.down = nn.Linear(8, 24), nn.Linear(8, 8), nn.Linear(8, 16), nn.Linear(16, 8)
        self.register_buffer("mask", torch.triu(torch.full((5, 5), -1e4), 1))
        self.register_buffer("places", torch.arange(5))

    def forward(self, ids):
        x = self.table(ids) + self.place(self.places)
        q, k, v = [t.reshape(2, 5, 2, 4).transpose(1, 2) for t in self.qkv(self.n1(x)).split(8, -1)]
        p = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(4) + self.mask, -1)
        x = x + self.out((p @ v).transpose(1, 2).reshape(2, 5, 8))
        x = x + self.down(nn.functional.gelu(self.up(self.n2(x))))
        return x @ self.table.weight.T


@module(optimizer="adam")
def language_model():
    return Words(), (torch.tensor([[1, 5, 1, 10, 0], [3, 1, 1, 2, 7]]),)


class Recurrent(nn.Module):
    def __init__(self, kind, **more):
        super().__init__()
        self.table, self.f = nn.Embedding(9, 4), kind(4, 3, **more)
        self.head = nn.Linear(3 * (2 if more.get("bidirectional") else 1), 4)

    def forward(self, ids):
        return self.head(self.f(self.table(ids))[0][-1])


@module()
def lstm_of_words():
    return Recurrent(nn.LSTM, num_layers=2), (torch.tensor([[1, 8], [3, 3], [0, 1], [8, 8]]),)


@module()
def gru_of_words():
    return Recurrent(nn.GRU, bidirectional=True), (torch.tensor([[1, 8], [3, 3], [0, 1], [8, 8]]),)


def export(m, args, path):
    """The file at path; {parameter: tensor}, {anything that the graph computes with: tensor}, the results."""
    torch.manual_seed(3)
    for p in m.parameters():
        p.data = torch.rand(p.shape) - 0.4
    m = m.float().train()
    whole = io.BytesIO()
    torch.onnx.export(m, args, whole, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, opset_version=13,
                      input_names=["in%d" % i for i in range(len(args))])
    model = onnx.load_from_string(whole.getvalue())
    held = {t.name: torch.tensor(numpy_helper.to_array(t)) for t in model.graph.initializer}
    with open(path, "wb") as f:
        f.write(model.SerializeToString())
    m = m.double()
    weights = {k: v for k, v in m.named_parameters() if k in held}
    args = tuple(a.double() if a.is_floating_point() else a for a in args)
    y = m(*args)
    values = {k: v.double() if v.is_floating_point() else v for k, v in held.items()}
    values.update({"in%d" % i: a for i, a in enumerate(args)})
    return weights, values, [y]

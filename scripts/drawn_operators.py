#!/usr/bin/python3
"""Drawn operators as ONNX files: what a training set needs beside networks.

    drawn_operators.py SEED FOLDER FILES

Each file has twenty operators that do not know of each other: convolutions (also depthwise, in groups) with what follows
them, products, attention, norms, pools, elementwise ones. Sizes are drawn near those of well-known networks, none is copied.
Then: cdmpp-profile --list-tasks --model-source onnx --network FILE --out-tasks TASKS; cdmpp-profile draw; cdmpp-profile records."""
import math
import random
import sys

import onnx
from onnx import TensorProto as T, helper as h

random.seed(int(sys.argv[1]))
out = sys.argv[2]
N = int(sys.argv[3])


class G:
    def __init__(s):
        s.n = []
        s.i = []
        s.o = []
        s.w = []
        s.k = 0

    def name(s, p="t"):
        s.k += 1
        return p + str(s.k)

    def inp(s, shape):
        x = s.name("x")
        s.i.append(h.make_tensor_value_info(x, T.FLOAT, shape))
        return x

    def weight(s, shape):
        # ConstantOfShape: a weight without content.
        c = s.name("c")
        s.w.append(h.make_tensor(c, T.INT64, [len(shape)], shape))
        y = s.name("w")
        s.n.append(h.make_node("ConstantOfShape", [c], [y], value=h.make_tensor("v", T.FLOAT, [1], [0.01])))
        return y

    def op(s, t, ins, **a):
        y = s.name("y")
        s.n.append(h.make_node(t, ins, [y], name=s.name(t), **a))
        return y

    def out(s, y):
        s.o.append(h.make_tensor_value_info(y, T.FLOAT, None))


def log_uniform(a, b):
    return int(round(math.exp(random.uniform(math.log(a), math.log(b)))))


def chan():
    r = random.random()
    if r < 0.45:
        return random.choice(
            [
                16,
                24,
                32,
                40,
                48,
                64,
                72,
                80,
                96,
                112,
                120,
                128,
                160,
                192,
                224,
                240,
                256,
                320,
                384,
                480,
                512,
                576,
                672,
                768,
                960,
                1024,
                1280,
                1536,
                2048,
            ]
        )
    if r < 0.8:
        return 8 * log_uniform(2, 160)
    if r < 0.92:
        return log_uniform(8, 1100)
    return random.choice([10, 21, 100, 1000, 27, 58, 116, 232, 464, 544, 272, 136, 3, 6, 12])


def act(g, y, shape):
    a = random.choice(
        [
            "none",
            "relu",
            "relu",
            "clip",
            "sigmoid",
            "silu",
            "silu",
            "hsw",
            "gelu",
            "tanh",
            "leaky",
            "add",
            "addrelu",
            "addclip",
            "prelu",
        ]
    )
    if a == "relu":
        return g.op("Relu", [y])
    if a == "clip":
        return g.op("Clip", [y, const(g, 0.0), const(g, 6.0)])
    if a == "sigmoid":
        return g.op("Sigmoid", [y])
    if a == "silu":
        return g.op("Mul", [y, g.op("Sigmoid", [y])])
    if a == "hsw":
        return g.op("HardSwish", [y])
    if a == "gelu":
        e = g.op("Erf", [g.op("Mul", [y, const(g, 0.7071)])])
        return g.op("Mul", [g.op("Mul", [y, g.op("Add", [e, const(g, 1.0)])]), const(g, 0.5)])
    if a == "tanh":
        return g.op("Tanh", [y])
    if a == "leaky":
        return g.op("LeakyRelu", [y], alpha=0.1)
    if a in ("add", "addrelu", "addclip"):
        y = g.op("Add", [y, g.inp(shape)])
        return (
            y
            if a == "add"
            else g.op("Relu", [y])
            if a == "addrelu"
            else g.op("Clip", [y, const(g, 0.0), const(g, 6.0)])
        )
    return y


def const(g, v):
    c = g.name("k")
    g.w.append(h.make_tensor(c, T.FLOAT, [], [v]))
    return c


def conv(g):
    while True:
        b = random.choice([1, 1, 1, 2, 4, 4, 8])
        kind = random.choice(["c", "c", "c", "c", "dw", "dw", "g", "g"])
        k = random.choice([1, 1, 1, 3, 3, 3, 5, 7]) if kind != "dw" else random.choice([3, 3, 5, 7])
        s = random.choice([1, 1, 1, 2])
        hw = random.choice(
            [
                7,
                8,
                10,
                12,
                13,
                14,
                15,
                16,
                17,
                19,
                20,
                24,
                26,
                27,
                28,
                31,
                32,
                35,
                40,
                48,
                52,
                54,
                55,
                56,
                64,
                75,
                80,
                96,
                104,
                112,
                128,
                149,
                160,
                192,
                208,
                224,
            ]
        )
        gr = 1
        if kind == "c":
            ci, co = chan(), chan()
        elif kind == "dw":
            ci = co = gr = chan()
        else:
            gr = random.choice([2, 3, 4, 8, 16, 32])
            ci, co = gr * random.choice([4, 6, 8, 10, 16, 17, 20, 24, 32, 34, 60, 68]), gr * random.choice(
                [4, 6, 8, 10, 16, 17, 20, 24, 32, 34, 60, 68]
            )
        oh = (hw + 2 * (k // 2) - k) // s + 1
        f = 2.0 * b * oh * oh * co * (ci // gr) * k * k
        if f < 3e9 and b * hw * hw * ci < 1.5e7 and b * oh * oh * co < 1.5e7 and ci * co // gr * k * k < 1.2e7:
            break
    x = g.inp([b, ci, hw, hw])
    ins = [x, g.weight([co, ci // gr, k, k])]
    if random.random() < 0.6:
        ins.append(g.weight([co]))
    y = g.op("Conv", ins, kernel_shape=[k, k], pads=[k // 2] * 4, strides=[s, s], group=gr)
    g.out(act(g, y, [b, co, oh, oh]))


def dense(g):
    m = random.choice([1, 1, 2, 4, 8, 16, 32, 64, 96, 128, 197, 256, 400, 512, 784, 1024])
    k = random.choice([log_uniform(16, 4096), 64 * log_uniform(1, 64)])
    n = random.choice([log_uniform(8, 4096), 64 * log_uniform(1, 64), 1000])
    if m * k * n > 1.5e9:
        return dense(g)
    y = (
        g.op("Add", [g.op("MatMul", [g.inp([m, k]), g.weight([k, n])]), g.weight([n])])
        if random.random() < 0.5
        else g.op("Gemm", [g.inp([m, k]), g.weight([n, k]), g.weight([n])], transB=1)
    )
    g.out(act(g, y, [m, n]))


def bmm(g):
    b = random.choice([1, 2, 4, 8, 12, 16, 32, 48])
    s = random.choice([16, 32, 49, 64, 96, 128, 196, 197, 256])
    d = random.choice([16, 32, 48, 64, 80])
    q, kk = g.inp([b, s, d]), g.inp([b, s, d])
    r = random.random()
    if r < 0.4:
        g.out(g.op("MatMul", [g.inp([b, s, s]), kk]))
    else:
        y = g.op("MatMul", [q, g.op("Transpose", [kk], perm=[0, 2, 1])])
        y = g.op("Mul", [y, const(g, 0.125)])
        g.out(g.op("Softmax", [y], axis=-1) if r < 0.8 else y)


def norm(g):
    m = random.choice([1, 16, 49, 64, 128, 196, 256, 512]) * random.choice([1, 2, 4])
    n = random.choice([64, 128, 192, 256, 384, 512, 768, 1024])
    x = g.inp([m, n])
    mu = g.op("ReduceMean", [x], axes=[-1])
    d = g.op("Sub", [x, mu])
    v = g.op("ReduceMean", [g.op("Mul", [d, d])], axes=[-1])
    g.out(
        g.op(
            "Add",
            [
                g.op("Mul", [g.op("Div", [d, g.op("Sqrt", [g.op("Add", [v, const(g, 1e-5)])])]), g.weight([n])]),
                g.weight([n]),
            ],
        )
    )


def pool(g):
    b = random.choice([1, 1, 2, 4])
    c = min(chan(), 640)
    hw = random.choice([7, 8, 13, 14, 16, 17, 27, 28, 32, 35, 55, 56, 64, 112])
    if b * c * hw * hw > 8e6:
        return pool(g)
    x = g.inp([b, c, hw, hw])
    r = random.random()
    if r < 0.35:
        k = random.choice([2, 3])
        g.out(g.op("MaxPool", [x], kernel_shape=[k, k], strides=[2, 2], pads=[0, 0, k // 2, k // 2]))
    elif r < 0.5:
        g.out(g.op("MaxPool", [x], kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4))
    elif r < 0.7:
        g.out(g.op("AveragePool", [x], kernel_shape=[3, 3], strides=[random.choice([1, 2])] * 2, pads=[1] * 4))
    elif r < 0.85:
        g.out(g.op("GlobalAveragePool", [x]))
    else:
        s = g.op("Sigmoid", [g.inp([b, c, 1, 1])])
        g.out(g.op("Mul", [x, s]))


def elem(g):
    b = random.choice([1, 1, 2, 4])
    c = min(chan(), 768)
    hw = random.choice([7, 14, 16, 28, 32, 56])
    sh = [b, c, hw, hw] if random.random() < 0.6 else [b * hw, c]
    r = random.random()
    if len(sh) == 4 and b * c * hw * hw > 6e6:
        return elem(g)
    x = g.inp(sh)
    if r < 0.3:
        g.out(act(g, g.op("Mul", [x, g.weight([1, c] + [1] * (len(sh) - 2))]), sh))
    elif r < 0.6:
        c2 = max(4, c // random.choice([1, 2, 3]))
        g.out(g.op("Concat", [x, g.inp([sh[0], c2] + sh[2:])], axis=1))
    elif r < 0.8:
        g.out(act(g, g.op("Add", [x, g.inp(sh)]), sh))
    elif len(sh) == 4 and c % 2 == 0:
        y = g.op("Reshape", [x, shape(g, [b, 2, c // 2, hw, hw])])
        y = g.op("Transpose", [y], perm=[0, 2, 1, 3, 4])
        g.out(g.op("Reshape", [y, shape(g, [b, c, hw, hw])]))
    else:
        g.out(g.op("Sigmoid", [x]))


def shape(g, v):
    c = g.name("s")
    g.w.append(h.make_tensor(c, T.INT64, [len(v)], v))
    return c


def cell(g):
    b = random.choice([1, 2, 4, 8])
    n = random.choice([64, 96, 128, 200, 256, 384, 512])
    y = g.op("Add", [g.op("MatMul", [g.inp([b, n]), g.weight([n, 4 * n])]), g.inp([b, 4 * n])])
    p = [g.name("p") for _ in range(4)]
    g.n.append(h.make_node("Split", [y], p, axis=1, name=g.name("Split")))
    c = g.op(
        "Add",
        [
            g.op("Mul", [g.op("Sigmoid", [p[0]]), g.op("Tanh", [p[1]])]),
            g.op("Mul", [g.op("Sigmoid", [p[2]]), g.inp([b, n])]),
        ],
    )
    g.out(g.op("Mul", [g.op("Sigmoid", [p[3]]), g.op("Tanh", [c])]))


kinds = [conv] * 26 + [dense] * 6 + [bmm] * 3 + [norm] * 2 + [pool] * 4 + [elem] * 5 + [cell] * 2
for f in range(N):
    g = G()
    for _ in range(20):
        random.choice(kinds)(g)
    m = h.make_model(h.make_graph(g.n, "cov%d" % f, g.i, g.o, g.w), opset_imports=[h.make_opsetid("", 14)])
    m.ir_version = 8
    onnx.save(m, "%s/c%d.onnx" % (out, f))

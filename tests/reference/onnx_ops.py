#!/usr/bin/env python3
"""Operators with drawn attributes and shapes, their results' shapes and types by cdmpp-profile against
onnx.shape_inference: python3 onnx_ops.py PROFILE [ROUNDS]. Needs python3-onnx.
Last line: "onnx operators: N passed, M failed"."""
import json
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper, shape_inference
from onnx_shapes import TYPE

R = random.Random(20)


class Net:
    """One model of many nodes that have nothing to do with each other."""

    def __init__(self, opset):
        self.opset, self.nodes, self.inputs, self.init, self.n = opset, [], [], [], 0

    def name(self, what="t"):
        self.n += 1
        return "%s%d" % (what, self.n)

    def x(self, *dims, kind=T.FLOAT):
        name = self.name("x")
        self.inputs.append(h.make_tensor_value_info(name, kind, dims))
        return name

    def c(self, values, dtype=np.int64):
        name = self.name("c")
        self.init.append(numpy_helper.from_array(np.array(values, dtype), name))
        return name

    def add(self, op, ins, outs=1, **attr):
        o = [self.name(op + "_") for _ in range(outs)]
        self.nodes.append(h.make_node(op, ins, o, **attr))
        return o

    def model(self):
        ends = [h.make_tensor_value_info(o, T.FLOAT, None) for n in self.nodes for o in n.output]
        for e in ends:
            e.ClearField("type")
        m = h.make_model(h.make_graph(self.nodes, "ops", self.inputs, [], self.init), opset_imports=[h.make_opsetid("", self.opset)])
        m.ir_version = 8
        return m


def dims(lo=1, hi=5, least=1, most=7):
    return [R.randint(least, most) for _ in range(R.randint(lo, hi))]


def wide(s):
    """A shape that broadcasts with s."""
    return [R.choice([1, d]) for d in s[R.randint(0, len(s)):]]


def axis(s):
    return R.randrange(-len(s), len(s))


def windows(n, k):
    """Strides, dilations, pads of n spatial dimensions."""
    a = {"kernel_shape": k}
    if R.random() < 0.7:
        a["strides"] = [R.randint(1, 3) for _ in range(n)]
    if R.random() < 0.5:
        a["auto_pad"] = R.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    else:
        a["pads"] = [R.randint(0, 1) for _ in range(2 * n)]
    return a


def convolutions(n):
    r, g = R.randint(1, 3), R.randint(1, 3)
    cin, cout = g * R.randint(1, 3), g * R.randint(1, 3)
    k, x = [R.randint(1, 3) for _ in range(r)], [R.randint(6, 14) for _ in range(r)]
    a = windows(r, k)
    if "auto_pad" not in a and R.random() < 0.5:
        a["dilations"] = [R.randint(1, 2) for _ in range(r)]
    n.add("Conv", [n.x(2, cin, *x), n.x(cout, cin // g, *k)], group=g, **a)
    a.pop("auto_pad", None)
    if R.random() < 0.5:
        a["output_padding"] = [0] * r
    n.add("ConvTranspose", [n.x(2, cin, *x), n.x(cin, cout // g, *k)], group=g, **a)
    p = windows(r, [R.randint(2, 3) for _ in range(r)])
    if n.opset >= 10 and "auto_pad" not in p:
        p["ceil_mode"] = 0
    n.add("MaxPool", [n.x(1, 3, *x)], R.randint(1, 2), **p)
    n.add("AveragePool", [n.x(1, 3, *x)], count_include_pad=R.randint(0, 1), **p)
    for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
        n.add(op, [n.x(1, 3, *x)])
    n.add("LRN", [n.x(1, 4, *x)], size=3)
    n.add("BatchNormalization", [n.x(2, 4, *x)] + [n.x(4) for _ in range(4)])
    n.add("InstanceNormalization", [n.x(2, 4, *x)] + [n.x(4) for _ in range(2)])


def products(n):
    b, m, k, q = dims(0, 3), R.randint(1, 5), R.randint(1, 5), R.randint(1, 5)
    n.add("MatMul", [n.x(*wide(b), m, k), n.x(*b, k, q)])
    ta, tb = R.randint(0, 1), R.randint(0, 1)
    n.add("Gemm", [n.x(*((k, m) if ta else (m, k))), n.x(*((q, k) if tb else (k, q))), n.x(q)], transA=ta, transB=tb)
    if n.opset >= 12:
        n.add("Einsum", [n.x(2, m, k), n.x(2, k, q)], equation=R.choice(["bij,bjk->bik", "bij,bjk->ik", "bij,bjk", "...ij,...jk->...ki"]))
    d, hid = R.randint(1, 2), R.randint(1, 4)
    for op, g in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        ins = [n.x(m, 2, k), n.x(d, g * hid, k), n.x(d, g * hid, hid)]
        n.add(op, ins, 3 if op == "LSTM" else 2, hidden_size=hid, direction="bidirectional" if d == 2 else "forward")


def elements(n):
    s = dims()
    for op in ("Add", "Sub", "Mul", "Div", "Pow"):
        n.add(op, [n.x(*s), n.x(*wide(s))])
    for op in ("Less", "Greater", "Equal"):
        n.add(op, [n.x(*wide(s)), n.x(*s)])
    for op in ("Sum", "Max", "Min", "Mean"):
        n.add(op, [n.x(*wide(s)) for _ in range(R.randint(1, 4))])
    for op in ("Relu", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Abs", "Neg", "Floor", "Ceil", "Erf", "Elu", "Selu", "LeakyRelu", "HardSigmoid",
               "Softplus", "Softsign", "ThresholdedRelu", "Reciprocal", "Sign", "Sin", "Cos", "Tan", "Asin", "Acosh", "Identity", "Dropout"):
        n.add(op, [n.x(*s)])
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        n.add(op, [n.x(*s)], axis=R.randrange(len(s)))
    n.add("PRelu", [n.x(*s), n.x(s[-1])])
    n.add("Cast", [n.x(*s)], to=R.choice([T.FLOAT16, T.INT64, T.INT32, T.BOOL, T.DOUBLE, T.UINT8]))
    n.add("Where", [n.x(*wide(s), kind=T.BOOL), n.x(*s), n.x(*wide(s))])
    n.add("And", [n.x(*s, kind=T.BOOL), n.x(*wide(s), kind=T.BOOL)])
    n.add("Not", [n.x(*s, kind=T.BOOL)])
    n.add("IsNaN", [n.x(*s)])
    if n.opset >= 11:
        n.add("Clip", [n.x(*s), n.c(0.0, np.float32)])
        n.add("Round", [n.x(*s)])
        n.add("Mod", [n.x(*s), n.x(*wide(s))], fmod=1)
        n.add("CumSum", [n.x(*s), n.c(axis(s))])
    if n.opset >= 14:
        n.add("HardSwish", [n.x(*s)])
    if n.opset >= 17:
        n.add("LayerNormalization", [n.x(*s), n.x(s[-1])], R.randint(1, 3), axis=-1)


def shapes(n):
    s, old = dims(1, 4), n.opset < 13
    t = list(s)
    R.shuffle(t)
    t[R.randrange(len(t))] = -1
    n.add("Reshape", [n.x(*s), n.c(t)])
    n.add("Flatten", [n.x(*s)], axis=R.randint(0, len(s)))
    p = list(range(len(s)))
    R.shuffle(p)
    n.add("Transpose", [n.x(*s)], **({"perm": p} if R.random() < 0.8 else {}))
    k = sorted(R.sample(range(len(s) + 2), 2))
    one = [1] + s
    if old:
        n.add("Unsqueeze", [n.x(*s)], axes=k)
        n.add("Squeeze", [n.x(*one)], axes=[0])
    else:
        n.add("Unsqueeze", [n.x(*s), n.c(k)])
        n.add("Squeeze", [n.x(*one), n.c([-len(one)])])
    n.add("Expand", [n.x(*wide(s)), n.c(s)])
    n.add("Tile", [n.x(*s), n.c([R.randint(1, 3) for _ in s])])
    n.add("Shape", [n.x(*s)], **({"start": 1} if n.opset >= 15 and R.random() < 0.5 else {}))
    n.add("Size", [n.x(*s)])
    n.add("ConstantOfShape", [n.c(s)], value=numpy_helper.from_array(np.array([1], np.int32)))
    n.add("EyeLike", [n.x(3, 4)])
    n.add("RandomNormalLike", [n.x(*s)])
    n.add("RandomUniform", [], shape=s)
    if n.opset >= 11:
        n.add("Range", [n.c(R.randint(-5, 5)), n.c(R.randint(-5, 9)), n.c(R.choice([1, 2, 3, -1, -2]))])
    if n.opset >= 14:
        n.add("Trilu", [n.x(4, 5)])


def reductions(n):
    s = dims(1, 4)
    axes = sorted(R.sample(range(len(s)), R.randint(1, len(s))))
    keep = R.randint(0, 1)
    for op in ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "ReduceLogSum"):
        n.add(op, [n.x(*s)], keepdims=keep, **({"axes": axes} if R.random() < 0.8 else {}))
    if n.opset >= 13:
        n.add("ReduceSum", [n.x(*s), n.c(axes)], keepdims=keep)
    else:
        n.add("ReduceSum", [n.x(*s)], keepdims=keep, axes=axes)
    for op in ("ArgMax", "ArgMin"):
        n.add(op, [n.x(*s)], axis=R.randrange(len(s)), keepdims=keep)
    a = R.randrange(len(s))
    if n.opset >= 10:
        n.add("TopK", [n.x(*s), n.c([R.randint(0, s[a])])], 2, axis=a)


def moves(n):
    s, a = dims(1, 4, 2), None
    a = axis(s)
    more = list(s)
    more[a] += 2
    n.add("Concat", [n.x(*s), n.x(*more), n.x(*s)], axis=a)
    k = R.sample(range(len(s)), R.randint(1, len(s)))
    beg, end = [R.randint(-9, 9) for _ in k], [R.choice([R.randint(-9, 9), 2 ** 62]) for _ in k]
    if n.opset >= 10:
        step = [R.choice([1, 2, -1, -3]) for _ in k]
        n.add("Slice", [n.x(*s), n.c(beg), n.c(end), n.c(k), n.c(step)])
    else:
        n.add("Slice", [n.x(*s)], starts=beg, ends=end, axes=k)
    i = dims(0, 2)
    n.add("Gather", [n.x(*s), n.x(*i, kind=T.INT64)], axis=a)
    parts = [1, s[a] - 1]
    if n.opset >= 13:
        n.add("Split", [n.x(*s), n.c(parts)], 2, axis=a)
    else:
        n.add("Split", [n.x(*s)], 2, axis=a % len(s), split=parts)
    pads = [R.randint(0, 2) for _ in range(2 * len(s))]
    if n.opset >= 11:
        n.add("Pad", [n.x(*s), n.c(pads)])
        n.add("GatherElements", [n.x(*s), n.x(*s, kind=T.INT64)], axis=a)
        n.add("ScatterElements", [n.x(*s), n.x(*s, kind=T.INT64), n.x(*s)], axis=a)
        n.add("GatherND", [n.x(*s), n.x(3, 1, kind=T.INT64)])
        n.add("ScatterND", [n.x(*s), n.x(3, 1, kind=T.INT64), n.x(3, *s[1:])])
        n.add("OneHot", [n.x(*s, kind=T.INT64), n.c(6), n.x(2)], axis=R.randint(-len(s) - 1, len(s)))
    else:
        n.add("Pad", [n.x(*s)], pads=pads)
    b = R.randint(1, 3)
    n.add("DepthToSpace", [n.x(1, b * b * 2, 3, 4)], blocksize=b)
    n.add("SpaceToDepth", [n.x(1, 2, b * 2, b * 3)], blocksize=b)
    f = [1.0, 1.0, R.choice([0.5, 1.5, 2.0, 2.3]), R.choice([0.6, 1.0, 3.1])]
    img = n.x(1, 2, R.randint(4, 9), R.randint(4, 9))
    if n.opset >= 11:
        n.add("Resize", [img, n.c([], np.float32), n.c(f, np.float32)], mode="linear")
        n.add("Resize", [img, n.c([], np.float32), n.c([], np.float32), n.c([1, 2, 5, 6])])
    elif n.opset == 10:
        n.add("Resize", [img, n.c(f, np.float32)])
    else:
        n.add("Upsample", [img, n.c([max(1.0, v) for v in f], np.float32)])
    if n.opset >= 16:
        n.add("GridSample", [img, n.x(1, 3, 5, 2)])
        n.add("RoiAlign", [img, n.x(6, 4), n.x(6, kind=T.INT64)], output_height=3, output_width=2)


def quantized(n):
    if n.opset < 10:
        return
    s = [2, 4, 9, 9]
    n.add("QuantizeLinear", [n.x(*s), n.c(0.5, np.float32), n.c(3, np.int8)])
    n.add("DequantizeLinear", [n.x(*s, kind=T.INT8), n.c(0.5, np.float32)])
    n.add("ConvInteger", [n.x(*s, kind=T.UINT8), n.x(3, 4, 3, 3, kind=T.INT8)])
    n.add("MatMulInteger", [n.x(3, 4, kind=T.UINT8), n.x(4, 5, kind=T.INT8)])
    sc, z = n.c(0.5, np.float32), n.c(0, np.uint8)
    n.add("QLinearConv", [n.x(*s, kind=T.UINT8), sc, z, n.x(3, 4, 3, 3, kind=T.UINT8), sc, z, sc, z])
    n.add("QLinearMatMul", [n.x(3, 4, kind=T.UINT8), sc, z, n.x(4, 5, kind=T.UINT8), sc, z, sc, z])
    if n.opset >= 11:
        n.add("DynamicQuantizeLinear", [n.x(*s)], 3)


def compare(profile, n, folder):
    """Numbers of results that agree, that do not, and that onnx does not know in full."""
    path, good, bad, unknown = os.path.join(folder, "ops.onnx"), 0, 0, 0
    m = n.model()
    onnx.save(m, path)
    run = subprocess.run([profile, "--list-ops", "--json", "--model-source", "onnx", "--network", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if run.returncode not in (0, 3):
        print("FAIL", run.stderr.decode())
        return 0, 1, 0
    ours = json.loads(run.stdout)["result"]
    for u in ours["unsupported"]:
        print("FAIL unsupported", u)
        bad += 1
    want = {v.name: v.type.tensor_type for v in shape_inference.infer_shapes(m, strict_mode=True, data_prop=True).graph.value_info}
    for node in ours["nodes"]:
        for o in node["out"]:
            t = want.get(o["name"])
            if t is None or not t.HasField("shape") or not all(d.HasField("dim_value") for d in t.shape.dim):
                unknown += 1
                continue
            same = [d.dim_value for d in t.shape.dim] == o["shape"] and TYPE[t.elem_type] == o["dtype"]
            good += same
            bad += not same
            if not same:
                print("FAIL opset", n.opset, node["op"], node["attributes"], o, [d.dim_value for d in t.shape.dim], TYPE[t.elem_type])
    return good, bad, unknown


if __name__ == "__main__":
    rounds, passed, failed, seen = int(sys.argv[2]) if len(sys.argv) > 2 else 20, 0, 0, set()
    unknown = 0
    with tempfile.TemporaryDirectory() as folder:
        for k in range(rounds):
            for opset in (8, 9, 10, 11, 12, 13, 14, 15, 16, 17):
                n = Net(opset)
                parts = [convolutions, products, elements, shapes, reductions, moves, quantized]
                if opset == 8:
                    parts = [convolutions, products, reductions]
                for p in parts:
                    p(n)
                seen |= {x.op_type for x in n.nodes}
                g, b, u = compare(sys.argv[1], n, folder)
                passed, failed, unknown = passed + g, failed + b, unknown + u
    print("%d operators, %d results whose shape onnx does not know" % (len(seen), unknown))
    print("onnx operators: %d passed, %d failed" % (passed, failed))
    sys.exit(failed > 0 or passed == 0)

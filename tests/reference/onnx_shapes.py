#!/usr/bin/env python3
"""cdmpp-profile --list-ops against onnx: python3 onnx_shapes.py PROFILE FILE|FOLDER...

Shapes and types of every tensor against onnx.shape_inference, which is helped where it gives up: integers
that give shapes are computed here with numpy and put in as constants. Operations of every node against the
formulas below, and of whole networks against what torchvision publishes (multiply-adds of convolutions and
products, GIGA). Needs python3-onnx. Last line: "onnx: N passed, M failed"."""
import glob
import json
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import numpy_helper, shape_inference

# https://pytorch.org/vision/stable/models.html, GFLOPS; r3d_18: 40.697 for 16 frames, the file has 8
PUBLISHED = {"resnet18": 1.814, "resnet50": 4.089, "mobilenet_v2": 0.301, "mobilenet_v3_large": 0.217, "densenet121": 2.835,
             "vgg16": 15.470, "googlenet": 1.498, "inception_v3": 5.713, "squeezenet1_1": 0.349, "efficientnet_b0": 0.386,
             "vit_b_16": 17.564, "r3d_18": 40.697 / 2}
TYPE = {1: "float32", 2: "uint8", 3: "int8", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64"}
passed = failed = 0


def check(ok, *what):
    global passed, failed
    passed += bool(ok)
    failed += not ok
    if not ok:
        print("FAIL", *what)


def attr(n, name, default=None):
    for a in n.attribute:
        if a.name == name:
            return onnx.helper.get_attribute_value(a)
    return default


def shapes_of(g):
    s = {}
    for v in list(g.input) + list(g.value_info) + list(g.output):
        t = v.type.tensor_type
        if t.HasField("shape") and all(d.HasField("dim_value") for d in t.shape.dim):
            s[v.name] = [d.dim_value for d in t.shape.dim]
    return s


def evaluate(n, v, shapes, opset):
    """Result of a node on known integers; None: unknown. v: operands, None where unknown."""
    op, first = n.op_type, v[0] if v else None
    if op == "Shape":
        s = shapes.get(n.input[0])
        return None if s is None else np.array(s, np.int64)
    if op == "Constant":
        return numpy_helper.to_array(attr(n, "value"))
    if any(x is None for x in v) or not v:
        return None
    axes = (list(v[1]) if len(v) > 1 else attr(n, "axes")) if op in ("Unsqueeze", "Squeeze") else None
    if op == "Unsqueeze":
        return np.expand_dims(first, tuple(int(a) for a in axes))
    if op == "Squeeze":
        return np.squeeze(first, None if axes is None else tuple(int(a) for a in axes))
    if op == "Concat":
        return np.concatenate(v, attr(n, "axis"))
    if op == "Gather":
        return np.take(first, v[1], attr(n, "axis", 0))
    if op == "Slice":
        cut = [slice(None)] * first.ndim
        for k, (a, b) in enumerate(zip(v[1], v[2])):
            axis = int(v[3][k]) if len(v) > 3 else k
            cut[axis] = slice(int(a), int(b), int(v[4][k]) if len(v) > 4 else 1)
        return first[tuple(cut)]
    if op == "ConstantOfShape":
        t = attr(n, "value")
        fill = numpy_helper.to_array(t)[0] if t is not None else np.float32(0)
        return np.full([int(d) for d in first], fill) if first.size and np.prod(first) < 1000 else None
    simple = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Equal": np.equal, "Identity": lambda a: a,
              "Where": np.where, "Div": lambda a, b: (a // b).astype(a.dtype) if a.dtype.kind == "i" else a / b, "Neg": np.negative}
    if op in simple:
        return simple[op](*v)
    if op == "Cast":
        return first.astype(onnx.mapping.TENSOR_TYPE_TO_NP_TYPE[attr(n, "to")])
    if op == "Reshape":
        return first.reshape([int(d) for d in v[1]])
    return None


def infer(m):
    """onnx's shapes, again and again while integers that were unknown become known."""
    opset = m.opset_import[0].version
    known = {i.name: numpy_helper.to_array(i) for i in m.graph.initializer
             if i.raw_data or i.float_data or i.int64_data or i.int32_data or np.prod(i.dims) == 0}
    while True:
        g = shape_inference.infer_shapes(m, strict_mode=True, data_prop=True).graph
        shapes, fresh = shapes_of(g), []
        for n in m.graph.node:
            if n.output[0] in known:
                continue
            r = evaluate(n, [known.get(i) for i in n.input], shapes, opset)
            if r is not None and r.size < 1000:
                known[n.output[0]] = r
                fresh.append(n.output[0])
        if not fresh:
            return g, shapes
        make = {o: n for n in m.graph.node for o in n.output}
        for name in fresh:  # by value, so that the next round sees it
            c = onnx.helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(known[name])))
            if make[name].op_type not in ("Constant", "ConstantOfShape"):
                make[name].CopyFrom(c)


def size(s):
    return float(np.prod(s, dtype=np.float64))


def flop(n, i, o):
    """Operations of a node by the convention of graph.h; i, o: shapes of operands and results."""
    op, out = n.op_type, size(o[0])
    if op == "Conv":
        return out * (2 * size(i[1][1:]) + (len(i) > 2))
    if op == "Gemm":
        return out * (2 * i[0][0 if attr(n, "transA", 0) else 1] + (len(i) > 2))
    if op == "MatMul":
        return 2 * out * i[0][-1]
    if op in ("MaxPool", "AveragePool"):
        return out * size(attr(n, "kernel_shape"))
    if op in ("GlobalAveragePool", "ReduceMean"):
        return size(i[0])
    if op == "Softmax":
        return 5 * out
    if op in ("BatchNormalization", "Clip"):
        return 2 * out
    if op == "LRN":
        return out * (attr(n, "size") + 5)
    if op == "Sum":
        return out * (len(i) - 1)
    if op in ("LSTM", "GRU"):
        gates = {"LSTM": 4, "GRU": 3}[op]
        return out * (gates * (2 * i[0][2] + 2 * i[2][2] + 2 + (2 if len(i) > 3 and n.input[3] else 0)) + 5)
    if op in ("Conv", "Shape", "Constant", "ConstantOfShape", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Dropout", "Transpose",
              "Concat", "Slice", "Gather", "Pad", "Expand"):
        return 0
    return out  # element-wise


def products(n, i, o):
    return size(o[0]) * {"Conv": lambda: size(i[1][1:]), "MatMul": lambda: i[0][-1],
                         "Gemm": lambda: i[0][0 if attr(n, "transA", 0) else 1]}.get(n.op_type, lambda: 0)()


def compare(profile, path):
    base = os.path.splitext(os.path.basename(path))[0]
    run = subprocess.run([profile, "--list-ops", "--json", "--model-source", "onnx", "--network", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    check(run.returncode == 0, base, run.stderr.decode())
    if run.returncode:
        return
    ours = json.loads(run.stdout)["result"]
    m = onnx.load(path, load_external_data=False)
    original = {o: n for n in onnx.load(path, load_external_data=False).graph.node for o in n.output}
    g, shapes = infer(m)
    types = {v.name: TYPE.get(v.type.tensor_type.elem_type) for v in list(g.value_info) + list(g.output)}
    shapes.update({i.name: list(i.dims) for i in m.graph.initializer})
    partly = 0
    seen, macs = set(), 0.0
    for node in ours["nodes"]:
        for o in node["out"]:
            seen.add(o["name"])
            partly += o["name"] not in shapes
            check(shapes.get(o["name"]) in (None, o["shape"]), base, o, shapes.get(o["name"]))
            check(types.get(o["name"]) in (None, o["dtype"]), base, o, types.get(o["name"]))
        n = original[node["out"][0]["name"]]
        i, o = [shapes.get(x, []) for x in n.input], [x["shape"] for x in node["out"]]
        want = 0 if node["folded"] or node["view"] else flop(n, i, o)
        check(want == node["flop"], base, node["op"], node["name"], node["flop"], want)
        macs += 0 if node["folded"] else products(n, i, o)
    lost = [o for o, n in original.items() if o and o not in seen and n.op_type != "Constant"]
    check(not lost, base, "not there:", lost[:5])
    check([o["name"] for o in ours["outputs"]] == [o.name for o in m.graph.output], base, "outputs")
    check(not ours["unsupported"], base, ours["unsupported"][:3])
    for o in ours["outputs"]:
        check(o["name"] in shapes, base, "unknown to onnx:", o)
    if base in PUBLISHED:
        check(abs(macs / 1e9 / PUBLISHED[base] - 1) < 0.003, base, macs / 1e9, PUBLISHED[base])
    print("%-32s %5d nodes %3d tensors unknown to onnx  %8.4f G multiply-adds%s" % (base, len(ours["nodes"]), partly, macs / 1e9,
          "  published %.4f" % PUBLISHED[base] if base in PUBLISHED else ""))


if __name__ == "__main__":
    for arg in sys.argv[2:]:
        for f in sorted(glob.glob(os.path.join(arg, "**", "*.onnx"), recursive=True)) if os.path.isdir(arg) else [arg]:
            compare(sys.argv[1], f)
    print("onnx: %d passed, %d failed" % (passed, failed))
    sys.exit(failed > 0 or passed == 0)

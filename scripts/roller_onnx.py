#!/usr/bin/env python3
"""The networks of Roller's V100 table as ONNX files without weights, batch 128.

    roller_onnx.py FOLDER

Layer by layer as the table's measured runs printed them (Roller's artefact, branch osdi22_artifact of microsoft/nnfusion,
artifacts/Table2: models/, logs/ansor_*_infer_bs128.log): ResNet-50 with zeros padded by operators of their own, NASNet-A 6@4032
(Zoph et al. 2018), an LSTM of 10 layers, 256 wide, 100 steps, written out. Batch norms are biases where a convolution takes them in."""
import os, struct, sys

# ---- just enough of protobuf and of onnx.proto ----

def varint(v):
    out = b""
    v &= (1 << 64) - 1
    while v > 127:
        out, v = out + bytes([v & 127 | 128]), v >> 7
    return out + bytes([v])

def number(field, v):
    return varint(field << 3) + varint(v)

def text(field, v):
    v = v.encode() if isinstance(v, str) else v
    return varint(field << 3 | 2) + varint(len(v)) + v

def attribute(name, v):
    if isinstance(v, int):
        return text(5, text(1, name) + number(3, v) + number(20, 2))
    return text(5, text(1, name) + b"".join(number(8, x) for x in v) + number(20, 7))

class Onnx:
    def __init__(self, name, shape):
        self.name, self.body, self.count, self.shape, self.made = name, bytearray(), 0, {"x": tuple(shape)}, {}
        self.body += text(11, self.value("x"))
    def value(self, name):
        dims = b"".join(text(1, number(1, d)) for d in self.shape[name])
        return text(1, name) + text(2, text(1, number(1, 1) + text(2, dims)))
    def ints(self, *v):
        self.count += 1
        name = "i%d" % self.count
        self.body += text(5, number(1, len(v)) + number(2, 7) + text(8, name) + text(9, struct.pack("<%dq" % len(v), *v)))
        return name
    def weight(self, *dims):
        """A constant of that shape; what is in it does not matter to how long it takes."""
        return self.op("ConstantOfShape", [self.ints(*dims)], dims)
    def op(self, kind, inputs, shape, **attributes):
        self.count += 1
        name = "%s_%d" % (kind.lower(), self.count)
        self.body += text(1, b"".join(text(1, i) for i in inputs) + text(2, name) + text(3, name) + text(4, kind) +
                          b"".join(attribute(k, v) for k, v in attributes.items()))
        self.shape[name] = tuple(shape)
        return name
    def write(self, folder, result):
        graph = bytes(self.body) + text(2, self.name) + text(12, self.value(result))
        with open(os.path.join(folder, self.name + ".onnx"), "wb") as f:
            f.write(number(1, 8) + text(7, graph) + text(8, text(1, "") + number(2, 13)))

    # ---- operators ----
    def window(self, x, k, s, same):
        """Edge of the result and the padding: TensorFlow's SAME or none."""
        h = self.shape[x][2]
        if not same:
            return (h - k) // s + 1, [0, 0, 0, 0]
        out = (h + s - 1) // s
        p = max((out - 1) * s + k - h, 0)
        return out, [p // 2, p // 2, p - p // 2, p - p // 2]
    def conv(self, x, c, k=1, s=1, same=True, bias=True):
        out, pads = self.window(x, k, s, same)
        y = self.op("Conv", [x, self.weight(c, self.shape[x][1], k, k)], (self.shape[x][0], c, out, out), kernel_shape=[k, k], strides=[s, s], pads=pads)
        return self.add(y, self.weight(1, c, 1, 1)) if bias else y
    def depthwise(self, x, k, s):
        out, pads = self.window(x, k, s, True)
        c = self.shape[x][1]
        return self.op("Conv", [x, self.weight(c, 1, k, k)], (self.shape[x][0], c, out, out), kernel_shape=[k, k], strides=[s, s], pads=pads, group=c)
    def pool(self, x, kind, k, s, same=True):
        out, pads = self.window(x, k, s, same)
        return self.once(kind, x, self.shape[x][:2] + (out, out), kernel_shape=[k, k], strides=[s, s], pads=pads)
    def once(self, kind, x, shape, **attributes):
        """One for all who want it: TVM computes equal things once."""
        key = (kind, x) + tuple(map(str, attributes.values()))
        if key not in self.made:
            self.made[key] = self.op(kind, [x], shape, **attributes)
        return self.made[key]
    def relu(self, x):
        return self.once("Relu", x, self.shape[x])
    def add(self, a, b):
        return self.op("Add", [a, b], self.shape[a])
    def concat(self, parts):
        s = self.shape[parts[0]]
        return self.op("Concat", parts, (s[0], sum(self.shape[p][1] for p in parts)) + s[2:], axis=1)
    def pad(self, x, before, after):
        """A program of its own, as TVM runs it; not with zeros: those would become the convolution's own padding here."""
        s = self.shape[x]
        self.count += 1
        one = "f%d" % self.count
        self.body += text(5, number(2, 1) + text(8, one) + text(9, struct.pack("<f", 1.0)))
        return self.op("Pad", [x, self.ints(0, 0, before, before, 0, 0, after, after), one], s[:2] + tuple(h + before + after for h in s[2:]))
    def classify(self, x, classes):
        n, c = self.shape[x][:2]
        mean = self.op("ReduceMean", [x], (n, c), axes=[2, 3], keepdims=0)
        return self.add(self.op("MatMul", [mean, self.weight(c, classes)], (n, classes)), self.weight(1, classes))

# ---- ResNet-50, stride in the 3x3 ----

def resnet(batch):
    g = Onnx("resnet_50", (batch, 3, 224, 224))
    x = g.relu(g.conv(g.pad("x", 3, 3), 64, 7, 2, False))
    x = g.pool(x, "MaxPool", 3, 2)
    for stage, (m, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for b in range(blocks):
            s = 2 if b == 0 and stage else 1
            short = g.conv(x, 4 * m, 1, s, False) if b == 0 else x
            y = g.relu(g.conv(x, m))
            y = g.relu(g.conv(g.pad(y, 1, 1), m, 3, 2, False) if s > 1 else g.conv(y, m, 3))
            x = g.relu(g.add(g.conv(y, 4 * m), short))
    g.write_result = g.classify(x, 1000)
    return g

# ---- NASNet-A 6@4032 ----

NORMAL = [("s5", 0), ("s3", 1), ("s5", 1), ("s3", 1), ("avg", 0), (None, 1), ("avg", 1), ("avg", 1), ("s3", 0), (None, 0)]
REDUCE = [("s5", 0), ("s7", 1), ("max", 0), ("s7", 1), ("avg", 0), ("s5", 1), (None, 3), ("avg", 2), ("s3", 2), ("max", 0)]

def separable(g, x, f, k, s):
    x = g.conv(g.depthwise(g.relu(x), k, s), f)
    return g.conv(g.depthwise(g.relu(x), k, 1), f)

def shrink(g, x, f):
    """Factorized reduction: even pixels and odd pixels, half of the channels each, and a batch norm behind the concatenation."""
    n, c, h, _ = g.shape[x]
    x = g.relu(x)
    odd = g.op("Slice", [g.pad(x, 0, 1), g.ints(1, 1), g.ints(h + 1, h + 1), g.ints(2, 3)], (n, c, h, h))
    halves = [g.conv(g.pool(p, "AveragePool", 1, 2, False), f // 2, bias=False) for p in (x, odd)]
    y = g.concat(halves)
    for kind in ("Mul", "Add"):
        y = g.op(kind, [y, g.weight(1, f, 1, 1)], g.shape[y])
    return y

def cell(g, prev, cur, f, reduce):
    p = cur if prev is None else prev
    if g.shape[p][2] != g.shape[cur][2]:
        p = shrink(g, p, f)
    elif g.shape[p][1] != f and prev is not None:
        p = g.conv(g.relu(p), f)
    base = g.conv(g.relu(cur), f)
    states, last = [g.op("Split", [base], g.shape[base], axis=1), p], None
    for i, (op, src) in enumerate(REDUCE if reduce else NORMAL):
        x, s = states[src], 2 if reduce and src < 2 else 1
        if op in ("max", "avg"):
            x = g.pool(x, "MaxPool" if op == "max" else "AveragePool", 3, s)
            if g.shape[x][1] != f:
                x = g.conv(x, f)
        elif op:
            x = separable(g, x, f, int(op[1]), s)
        if i % 2:
            states.append(g.add(last, x))
        last = x
    return g.concat(states[3:] if reduce else states[1:])

def nasnet(batch):
    g = Onnx("nasnet_large", (batch, 3, 331, 331))
    out = [None, g.conv("x", 96, 3, 2, False)]
    for f in (42, 84):
        out.append(cell(g, out[-2], out[-1], f, True))
    f = 168
    for stack in range(3):
        for b in range(6):
            prev = out[-2]
            if stack and b == 0:
                f *= 2
                out.append(cell(g, prev, out[-1], f, True))
            out.append(cell(g, prev, out[-1], f, False))
    g.write_result = g.classify(g.relu(out[-1]), 1000)
    return g

# ---- LSTM ----

def lstm(batch, layers=10, hidden=256, steps=100):
    g = Onnx("lstm", (steps, batch, hidden))
    shape = (batch, hidden)
    w = [[[g.weight(hidden, hidden), g.weight(hidden, hidden), g.weight(1, hidden)] for _ in range(4)] for _ in range(layers)]
    state = [[g.weight(*shape), g.weight(*shape)] for _ in range(layers)]
    one = g.weight()
    for t in range(steps):
        x = g.op("Squeeze", [g.op("Slice", ["x", g.ints(t), g.ints(t + 1), g.ints(0)], (1,) + shape), g.ints(0)], shape)
        for layer in range(layers):
            c, h = state[layer]
            i, j, f, o = [g.add(g.add(g.op("MatMul", [x, a], shape), g.op("MatMul", [h, b], shape)), d) for a, b, d in w[layer]]
            keep = g.op("Mul", [c, g.op("Sigmoid", [g.add(f, one)], shape)], shape)
            new = g.op("Mul", [g.op("Sigmoid", [i], shape), g.op("Tanh", [j], shape)], shape)
            c = g.add(keep, new)
            x = g.op("Mul", [g.op("Tanh", [c], shape), g.op("Sigmoid", [o], shape)], shape)
            state[layer] = [c, x]
    g.write_result = x
    return g

if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    for make in (resnet, nasnet, lstm):
        g = make(128)
        g.write(sys.argv[1], g.write_result)

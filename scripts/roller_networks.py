#!/usr/bin/env python3
"""Networks of Roller's V100 figures as graphs of our own form: which of the set's tasks, how often.

    roller_networks.py TASKS.JSON RECORDS_DIR... > roller.json

Counts follow from the papers: ResNet-50 (He et al. 2015, stride in the 3x3), NASNet-A 6@4032 (Zoph et al. 2018). Of a layer that
the set has with and without bias and ReLU the fused one is taken.  RECORDS are looked at for which tasks have any, not for times."""
import json, os, sys

def load(tasks, folders):
    have = {}
    for f in folders:
        for root, _, names in os.walk(f):
            for n in sorted(names):
                if not n.endswith(".json"):
                    continue
                with open(os.path.join(root, n)) as file:
                    line = file.readline()
                if line.strip():
                    have[json.loads(line)["i"][0][0]] = True
    layers = {}
    for t in json.load(open(tasks)):
        if t["workload_key"] in have:
            layers.setdefault(t["layer"], []).append((t["flop"], t["workload_key"]))
    return {k: sorted(v) for k, v in layers.items()}

class Net:
    def __init__(self, name, layers, measured):
        self.n = {"name": name, "batch": 128, "device": "v100", "measured_s": measured, "nodes": []}
        self.layers, self.last, self.missing = layers, None, []
    def add(self, name, layer, fused=True):
        v = self.layers.get(layer)
        node = {"name": name, "op": json.loads(layer)[0], "after": [self.last] if self.last else []}
        if v:
            node.update(kind="task", key=(v[-1] if fused else v[0])[1])
        else:
            node.update(kind="unknown", why="no record of " + layer)
            self.missing.append(layer)
        self.n["nodes"].append(node)
        self.last = name
    def conv(self, name, c, h, o, k, s, pad):
        lay = lambda p: '["conv2d_layer", 128, %d, %d, %d, %d, %d, %d, %d, "%s"]' % (c, h, h, o, k, k, s, p)
        self.add(name, next((lay(p) for p in (pad, "SAME", "VALID") if lay(p) in self.layers), lay(pad)))
    def depthwise(self, name, c, h, k, s):
        lay = '["depthwise_conv2d_layer", 128, %d, %d, %d, %d, %d, %d, "SAME"]' % (c, h, h, k, k, s)
        pad = '["depthwise_conv2d_layer", 128, %d, %d, %d, %d, %d, %d, "VALID"]' % (c, h + k - 2, h + k - 2, k, k, s)
        self.add(name, pad if pad in self.layers else lay)
    def pool(self, name, kind, c, h, k, s):
        lay = lambda p: '["pool_layer", "%s", 128, %d, %d, %d, %d, %d, %d, "%s"]' % (kind, c, h, h, k, k, s, p)
        self.add(name, lay("SAME") if lay("SAME") in self.layers or lay("VALID") not in self.layers else lay("VALID"), False)

def resnet(layers):
    n = Net("resnet_50", layers, 110.43e-3)
    n.conv("conv1", 3, 230, 64, 7, 2, "VALID")
    n.pool("pool", "max", 64, 112, 3, 2)
    c = 64
    for s, (m, blocks, h) in enumerate(((64, 3, 56), (128, 4, 28), (256, 6, 14), (512, 3, 7)), 1):
        for b in range(blocks):
            at, h0 = "layer%d.%d." % (s, b), 2 * h if b == 0 and s > 1 else h
            n.conv(at + "reduce", c, h0, m, 1, 1, "SAME")
            n.conv(at + "conv", m, h0 + 2 if h0 > h else h, m, 3, h0 // h, "VALID" if h0 > h else "SAME")
            n.conv(at + "expand", m, h, 4 * m, 1, 1, "SAME")
            if b == 0:
                n.conv(at + "down", c, h0, 4 * m, 1, h0 // h, "VALID" if h0 > h else "SAME")
            c = 4 * m
    n.add("mean", '["reduction_layer", [128, 2048, 7, 7], [2, 3], false]')
    n.add("fc", '["matmul_layer", 128, 2048, 1000]')
    return n

NORMAL = [("s5", 0), ("s3", 1), ("s5", 1), ("s3", 1), ("avg", 0), (None, 1), ("avg", 1), ("avg", 1), ("s3", 0), (None, 0)]
REDUCE = [("s5", 0), ("s7", 1), ("max", 0), ("s7", 1), ("avg", 0), ("s5", 1), (None, 3), ("avg", 2), ("s3", 2), ("max", 0)]

def half(h):
    return (h + 1) // 2

def cell(n, at, prev, cur, f, reduce, relu):
    """prev, cur: (channels, edge). What comes out."""
    def act(name, s):
        if relu:
            n.add(name, '["relu_layer", 128, %d, %d, %d]' % (s[0], s[1], s[1]))
    h = cur[1]
    out = half(h) if reduce else h
    act(at + "relu", cur)
    n.conv(at + "base", cur[0], h, f, 1, 1, "SAME")
    p = prev or cur
    if prev and p[1] != h:
        act(at + "prev.relu", p)
        for k in "ab":
            n.pool(at + "prev.pool." + k, "avg", p[0], p[1], 1, 2)
            n.conv(at + "prev.conv." + k, p[0], h, f // 2, 1, 1, "SAME")
        p = (f, h)
    elif prev and p[0] != f:
        act(at + "prev.relu", p)
        n.conv(at + "prev.conv", p[0], h, f, 1, 1, "SAME")
        p = (f, h)
    states = [(f, h), p]
    for i, (op, src) in enumerate(REDUCE if reduce else NORMAL):
        c, edge = states[src] if src < 2 else (f, out)
        s = 2 if reduce and src < 2 else 1
        name = "%s%d.%s" % (at, i, op)
        if op in ("max", "avg"):
            n.pool(name, op, c, edge, 3, s)
            if c != f:
                n.conv(name + ".conv", c, out, f, 1, 1, "SAME")
        elif op:
            k = int(op[1])
            n.depthwise(name + ".dw1", c, edge, k, s)
            n.conv(name + ".pw1", c, out, f, 1, 1, "VALID")
            n.depthwise(name + ".dw2", f, out, k, 1)
            n.conv(name + ".pw2", f, out, f, 1, 1, "VALID")
    return (4 if reduce else 6) * f, out

def nasnet(layers, relu):
    n = Net("nasnet_large" + ("" if relu else "_relu_fused"), layers, 884.11e-3)
    n.conv("stem", 3, 331, 96, 3, 2, "VALID")
    prev, cur = None, (96, 165)
    for i, f in enumerate((42, 84)):
        prev, cur = cur, cell(n, "stem%d." % i, prev, cur, f, True, relu)
    f = 168
    for stack in range(3):
        if stack:
            prev, cur = cur, cell(n, "reduce%d." % stack, prev, cur, 2 * f, True, relu)
            f *= 2
        for b in range(6):
            prev, cur = cur, cell(n, "cell%d.%d." % (stack, b), prev, cur, f, False, relu)
    n.add("mean", '["reduction_layer", [128, 4032, 11, 11], [2, 3], false]')
    n.add("fc", '["matmul_layer", 128, 4032, 1000]')
    return n

if __name__ == "__main__":
    layers = load(sys.argv[1], sys.argv[2:])
    nets = [resnet(layers), nasnet(layers, False), nasnet(layers, True)]
    for n in nets:
        print("%s: %d nodes, %d without records: %s" % (n.n["name"], len(n.n["nodes"]), len(n.missing), ", ".join(sorted(set(n.missing)))), file=sys.stderr)
    json.dump({"schema": "cdmpp.netgraph", "version": 1, "networks": [n.n for n in nets]}, sys.stdout, indent=1)

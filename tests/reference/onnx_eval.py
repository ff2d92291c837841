"""onnx_eval -- the nodes that cdmpp writes, in numpy, after the operators' specifications.

Debian 12 has python3-onnx 1.12 (reader, checker) but no runtime for it. Needs onnx and numpy."""
import numpy as np
import onnx
from onnx import numpy_helper

TYPES = {1: np.float32, 7: np.int64, 11: np.float64}


def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def norm(x, g, s, axis, epsilon):
    assert axis == -1
    mean = x.mean(-1, keepdims=True, dtype=np.float32)
    var = np.mean((x - mean) ** 2, -1, keepdims=True, dtype=np.float32)
    return (x - mean) / np.sqrt(var + np.float32(epsilon)) * g + s


def log_sum_exp(x, axes, keepdims):
    top = x.max(tuple(axes), keepdims=True)
    return np.log(np.exp(x - top).sum(tuple(axes), keepdims=bool(keepdims))) + top


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


class Trees:
    """TreeEnsembleRegressor of ai.onnx.ml, one target, all branches BRANCH_LT."""

    def __init__(self, a):
        assert a["n_targets"] == 1 and a["aggregate_function"] == b"SUM" and a["post_transform"] == b"NONE"
        at = {k: i for i, k in enumerate(zip(a["nodes_treeids"], a["nodes_nodeids"]))}
        tree = a["nodes_treeids"]
        self.leaf = np.array([m == b"LEAF" for m in a["nodes_modes"]])
        assert all(m in (b"LEAF", b"BRANCH_LT") for m in a["nodes_modes"])
        self.column = np.array(a["nodes_featureids"])
        self.cut = np.array(a["nodes_values"], np.float32)
        self.yes = np.array([at[t, k] if not l else i for i, (t, k, l) in enumerate(zip(tree, a["nodes_truenodeids"], self.leaf))])
        self.no = np.array([at[t, k] if not l else i for i, (t, k, l) in enumerate(zip(tree, a["nodes_falsenodeids"], self.leaf))])
        self.weight = np.zeros(len(tree), np.float32)
        for t, k, w in zip(a["target_treeids"], a["target_nodeids"], a["target_weights"]):
            self.weight[at[t, k]] += np.float32(w)
        self.root = np.array([at[t, 0] for t in sorted(set(tree))])
        self.base = np.float32(a["base_values"][0])

    def __call__(self, x):
        out = np.empty((len(x), 1), np.float32)
        for i, row in enumerate(x):
            node = self.root
            while not self.leaf[node].all():
                node = np.where(row[self.column[node]] < self.cut[node], self.yes[node], self.no[node])
            out[i, 0] = self.base + self.weight[node].sum(dtype=np.float64)
        return out


def gemm(x, w, b, transB=0, **rest):
    assert not rest
    return x @ (w.T if transB else w) + b


PLAIN = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Max": np.maximum, "Min": np.minimum, "Pow": np.power,
    "MatMul": np.matmul, "Equal": np.equal, "Greater": np.greater, "Log": np.log, "Sqrt": np.sqrt, "Abs": np.abs, "Sign": np.sign,
    "Neg": np.negative, "Asinh": np.arcsinh, "Identity": lambda x: x, "Relu": lambda x: np.maximum(x, 0),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "Shape": lambda x: np.array(x.shape, np.int64), "Range": np.arange,
    "Reshape": lambda x, s: x.reshape([x.shape[i] if d == 0 else int(d) for i, d in enumerate(s)]),
    "Unsqueeze": lambda x, axes: np.expand_dims(x, tuple(axes)),
}
WITH = {
    "Cast": lambda x, to: x.astype(TYPES[to]),
    "Concat": lambda *x, axis: np.concatenate(x, axis),
    "Gather": lambda x, i, axis=0: np.take(x, i, axis),
    "GatherElements": lambda x, i, axis=0: np.take_along_axis(x, i, axis),
    "ArgMax": lambda x, axis=0, keepdims=1: np.argmax(x, axis, keepdims=bool(keepdims)),
    "Transpose": lambda x, perm: np.transpose(x, perm),
    "ReduceSum": lambda x, axes, keepdims=1: x.sum(tuple(axes), keepdims=bool(keepdims)),
    "ReduceMax": lambda x, axes, keepdims=1: x.max(tuple(axes), keepdims=bool(keepdims)),
    "ReduceMean": lambda x, axes, keepdims=1: x.mean(tuple(axes), keepdims=bool(keepdims)),
    "ReduceLogSumExp": log_sum_exp, "LayerNormalization": norm, "Softmax": softmax, "Gemm": gemm,
}


class Model:
    def __init__(self, path):
        self.proto = onnx.load(path)
        onnx.checker.check_model(self.proto, full_check=True)
        g = self.proto.graph
        self.constant = {t.name: numpy_helper.to_array(t) for t in g.initializer}
        self.trees = {n.output[0]: Trees(attributes(n)) for n in g.node if n.op_type == "TreeEnsembleRegressor"}
        self.meta = {p.key: p.value for p in self.proto.metadata_props}

    def __call__(self, **inputs):
        v = dict(self.constant, **inputs)
        for n in self.proto.graph.node:
            x = [v[i] for i in n.input]
            if n.op_type in PLAIN:
                assert not n.attribute, n.op_type
                y = PLAIN[n.op_type](*x)
            elif n.op_type in WITH:
                y = WITH[n.op_type](*x, **attributes(n))
            else:
                y = self.trees[n.output[0]](*x)
            kind = {a.dtype for a in x if a.dtype.kind == "f"}
            assert len(kind) < 2, (n.op_type, kind)  # ONNX mixes no types
            v[n.output[0]] = np.asarray(y)
        return {o.name: v[o.name] for o in self.proto.graph.output}

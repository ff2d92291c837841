"""grad_cases -- small networks as ONNX files, and the same in PyTorch: what grads_torch.py compares. Each case is a function of a Net.

Every operand is a weight, so that every gradient is compared; c in sum(y*c) makes each element of a result count otherwise.
A case with `missing` has an operator without a gradient: it must be named."""
import math

import torch
import torch.nn.functional as F
from onnx import TensorProto as T
from onnx import helper as h

G = torch.Generator().manual_seed(5)
CASES = []


def case(opset=13, loss="sum", **more):
    def put(f):
        CASES.append((f.__name__, f, opset, loss, more))
        return f
    return put


class V:
    """A tensor of both: ONNX's name and PyTorch's value."""

    def __init__(self, name, t):
        self.n, self.t = name, t


class Net:
    def __init__(self, opset):
        self.opset, self.nodes, self.inputs, self.init, self.outs, self.weights, self.values, self.results = opset, [], [], [], [], [], {}, []
        self.made = 0

    def name(self, what):
        self.made += 1
        return "%s%d" % (what, self.made)

    def _t(self, dims, positive):
        t = torch.rand(dims, generator=G, dtype=torch.float64) * 1.6 - 0.8
        return t.abs() + 0.3 if positive else t

    def w(self, *dims, positive=False):
        """A weight, of which the file has the shape alone."""
        v = V(self.name("w"), self._t(dims, positive).requires_grad_())
        self.init.append(T(dims=dims, data_type=T.FLOAT, name=v.n))
        self.weights.append(v)
        self.values[v.n] = v.t
        return v

    def x(self, *dims, most=None):
        """An input; with `most` integers below it."""
        t = self._t(dims, False) if most is None else torch.randint(0, most, dims, generator=G)
        v = V(self.name("x"), t)
        self.inputs.append(h.make_tensor_value_info(v.n, T.FLOAT if most is None else T.INT64, dims))
        self.values[v.n] = t
        return v

    def ints(self, *v):
        n = self.name("i")
        self.init.append(h.make_tensor(n, T.INT64, [len(v)], v))
        return V(n, None)

    def real(self, v):
        n = self.name("r")
        self.nodes.append(h.make_node("Constant", [], [n], value=h.make_tensor(n, T.FLOAT, [], [v])))
        return V(n, torch.tensor(v, dtype=torch.float64))

    def op(self, op, ins, value, **attr):
        """value: PyTorch's, one tensor or several."""
        many = value if isinstance(value, (tuple, list)) else [value]
        outs = [V(self.name(op + "_") if t is not None else "", t) for t in many]
        self.nodes.append(h.make_node(op, ["" if i is None else i.n for i in ins], [o.n for o in outs], name=outs[0].n or self.name(op), **attr))
        return outs if isinstance(value, (tuple, list)) else outs[0]

    def result(self, y):
        self.results.append(y)
        self.outs.append(h.make_tensor_value_info(y.n, T.FLOAT, list(y.t.shape)))

    def end(self, y):
        c = self.x(*y.t.shape)
        self.result(self.op("Mul", [y, c], y.t * c.t))

    def model(self):
        m = h.make_model(h.make_graph(self.nodes, "case", self.inputs, self.outs, self.init), opset_imports=[h.make_opsetid("", self.opset)])
        m.ir_version = 8
        return m


# ---- convolutions ----

def conv(n, xs, ws, bias, stride=1, pads=None, dil=1, group=1):
    """Pads as ONNX has them: begins, then ends."""
    k = len(xs) - 2
    x, w, b = n.w(*xs), n.w(*ws), n.w(ws[0]) if bias else None
    s, d, p = [v if isinstance(v, (list, tuple)) else [v] * k for v in (stride, dil, pads or 0)]
    p = p * 2 if len(p) == k else p
    flat = [v for i in reversed(range(k)) for v in (p[i], p[i + k])]
    y = (F.conv1d, F.conv2d, F.conv3d)[k - 1](F.pad(x.t, flat), w.t, b.t if bias else None, s, 0, d, group)
    n.end(n.op("Conv", [x, w] + ([b] if bias else []), y, strides=s, dilations=d, pads=p, group=group))


@case()
def conv_plain(n):
    conv(n, (2, 3, 5, 6), (4, 3, 3, 3), True, pads=1)
    conv(n, (2, 3, 5, 6), (4, 3, 3, 2), True)


@case()
def conv_stride(n):
    conv(n, (2, 3, 8, 7), (4, 3, 3, 3), False, 2, 1)
    conv(n, (1, 2, 9, 8), (3, 2, 2, 3), True, (3, 2), [1, 0, 0, 2])
    conv(n, (2, 3, 7, 6), (4, 3, 1, 1), True, 2)
    conv(n, (2, 3, 7, 6), (4, 3, 1, 1), False, 2, 1)
    conv(n, (1, 3, 12, 12), (2, 3, 4, 4), True, 4)


@case()
def conv_dilation(n):
    conv(n, (1, 2, 9, 8), (3, 2, 3, 3), True, 1, 2, 2)
    conv(n, (1, 2, 10, 9), (3, 2, 3, 2), False, 2, [2, 1, 1, 0], (2, 3))


@case()
def conv_wide_pads(n):
    conv(n, (1, 2, 3, 4), (3, 2, 2, 2), True, 1, 3)
    conv(n, (1, 2, 4, 4), (3, 2, 2, 1), True, 2, [2, 1, 3, 2])


@case()
def conv_groups(n):
    conv(n, (2, 4, 5, 5), (6, 2, 3, 3), True, 1, 1, 1, 2)
    conv(n, (2, 4, 7, 6), (6, 2, 3, 2), False, 2, 1, 1, 2)
    conv(n, (2, 6, 4, 4), (9, 2, 1, 1), True, 1, 0, 1, 3)
    conv(n, (2, 6, 5, 4), (9, 2, 1, 1), True, 2, 0, 1, 3)


@case()
def conv_depthwise(n):
    conv(n, (2, 3, 6, 5), (3, 1, 3, 3), True, 1, 1, 1, 3)
    conv(n, (2, 3, 7, 7), (6, 1, 3, 3), False, 2, 1, 1, 3)
    conv(n, (1, 3, 9, 9), (3, 1, 5, 5), True, 2, 4, 2, 3)


@case()
def conv_1d(n):
    conv(n, (2, 3, 9), (4, 3, 3), True, 2, 1)
    conv(n, (2, 4, 9), (4, 2, 3), True, 1, [2, 0], 2, 2)


@case()
def conv_3d(n):
    conv(n, (1, 2, 4, 5, 4), (3, 2, 3, 3, 3), True, (1, 2, 1), 1)
    conv(n, (1, 2, 3, 4, 4), (3, 2, 1, 1, 1), False, (2, 2, 2))
    conv(n, (1, 2, 3, 4, 3), (4, 1, 2, 3, 2), True, 1, [0, 1, 1, 1, 1, 0], 1, 2)


def convt(n, xs, ws, bias, stride=1, pad=0, more=0, dil=1, group=1):
    k = len(xs) - 2
    x, w, b = n.w(*xs), n.w(*ws), n.w(ws[1] * group) if bias else None
    s, d, p, m = [list(v) if isinstance(v, (list, tuple)) else [v] * k for v in (stride, dil, pad, more)]
    y = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[k - 1](x.t, w.t, b.t if bias else None, s, p, m, group, d)
    n.end(n.op("ConvTranspose", [x, w] + ([b] if bias else []), y, strides=s, dilations=d, pads=p + p, output_padding=m, group=group))


@case()
def conv_transposed(n):
    convt(n, (2, 3, 3, 3), (3, 2, 3, 4), True, (2, 3), (1, 0), (1, 2))
    convt(n, (1, 4, 3, 2), (4, 3, 2, 2), False, 2, 0, 0, 1, 2)
    convt(n, (2, 3, 4, 4), (3, 4, 4, 4), True, 2, 1)
    convt(n, (1, 2, 4, 4), (2, 3, 3, 3), True, 1, 1)
    convt(n, (1, 2, 4, 3), (2, 3, 3, 2), True, 2, 1, 1, 2)
    convt(n, (1, 3, 4, 4), (3, 1, 4, 4), True, 2, 1, 0, 1, 3)
    convt(n, (2, 3, 5), (3, 2, 3), True, 2, 1, 1)
    convt(n, (1, 2, 2, 3, 2), (2, 2, 2, 3, 2), False, (2, 1, 2), (0, 1, 0))


# ---- products ----

@case()
def dense(n):
    a, b, c, at, bt, col = n.w(3, 4), n.w(4, 5), n.w(5), n.w(4, 3), n.w(5, 4), n.w(3, 1)
    n.end(n.op("Gemm", [a, b, c], 0.5 * a.t @ b.t + 2 * c.t, alpha=0.5, beta=2.0))
    n.end(n.op("Gemm", [at, b], at.t.T @ b.t, transA=1))
    n.end(n.op("Gemm", [a, bt, col], a.t @ bt.t.T + col.t, transB=1))
    n.end(n.op("Gemm", [at, bt, c], 1.5 * at.t.T @ bt.t.T + c.t, transA=1, transB=1, alpha=1.5))
    x, w, u = n.w(2, 3, 4), n.w(4, 5), n.w(5)
    n.end(n.op("Add", [n.op("MatMul", [x, w], x.t @ w.t), u], x.t @ w.t + u.t))


@case()
def batch_matmul(n):
    a, b, w, one, v, tall = n.w(2, 2, 3, 4), n.w(2, 2, 4, 3), n.w(4, 5), n.w(2, 4, 2), n.w(4), n.w(3, 1, 4, 2)
    for x, y in ((a, b), (a, w), (a, one), (a, v), (v, w), (v, v), (v, b), (w, n.w(5, 2)), (n.w(2, 3, 4), tall)):
        n.end(n.op("MatMul", [x, y], torch.matmul(x.t, y.t)))


# ---- element by element ----

UNARY = {"Relu": F.relu, "Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "Exp": torch.exp, "Neg": torch.neg, "Abs": torch.abs, "Sin": torch.sin,
         "Cos": torch.cos, "Erf": torch.erf, "Softplus": F.softplus, "Softsign": F.softsign, "HardSwish": F.hardswish, "Mish": F.mish, "Selu": F.selu,
         "Identity": lambda x: x * 1, "Reciprocal": torch.reciprocal, "Floor": torch.floor, "Ceil": torch.ceil, "Round": torch.round, "Sign": torch.sign}


@case(opset=18)
def unary(n):
    for op, f in UNARY.items():
        x = n.w(3, 5)
        n.end(n.op(op, [x], f(x.t)))
    x = n.w(2, 9)
    six = n.op("Mul", [x, n.real(6.0)], x.t * 6)  # reaches the bends of the hard ones
    n.end(n.op("HardSwish", [six], F.hardswish(six.t)))
    n.end(n.op("HardSigmoid", [six], F.hardsigmoid(six.t), alpha=1.0 / 6, beta=0.5))
    n.end(n.op("Clip", [six, n.real(0.0), n.real(3.0)], six.t.clamp(0, 3)))
    n.end(n.op("Clip", [six, n.real(-1.0)], six.t.clamp(min=-1)))
    n.end(n.op("Clip", [six, None, n.real(2.0)], six.t.clamp(max=2)))
    n.end(n.op("LeakyRelu", [x], F.leaky_relu(x.t, 0.25), alpha=0.25))
    n.end(n.op("Elu", [x], F.elu(x.t, 0.5), alpha=0.5))
    p = n.w(2, 4, positive=True)
    for op, f in {"Log": torch.log, "Sqrt": torch.sqrt, "Reciprocal": torch.reciprocal}.items():
        n.end(n.op(op, [p], f(p.t)))


@case(opset=18)
def unary_where_flat(n):
    """At a bend: PyTorch's choice is a subgradient, and the one that is compared where both are documented."""
    x = n.w(3, 4)
    r = n.op("Relu", [x], F.relu(x.t))
    n.end(n.op("Relu", [r], F.relu(r.t)))
    n.end(n.op("Abs", [r], torch.abs(r.t)))
    n.end(n.op("Sign", [r], torch.sign(r.t)))


@case(opset=20)
def gelus(n):
    x = n.w(3, 5)
    n.end(n.op("Gelu", [x], F.gelu(x.t)))
    n.end(n.op("Gelu", [x], F.gelu(x.t, approximate="tanh"), approximate="tanh"))


@case()
def gelu_taken_apart(n):
    x = n.w(3, 5)
    e = n.op("Erf", [n.op("Div", [x, n.real(math.sqrt(2))], x.t / math.sqrt(2))], torch.erf(x.t / math.sqrt(2)))
    y = n.op("Mul", [n.op("Mul", [x, n.op("Add", [e, n.real(1.0)], e.t + 1)], x.t * (e.t + 1)), n.real(0.5)], F.gelu(x.t))
    n.end(y)
    n.end(n.op("Mul", [x, n.op("Sigmoid", [x], torch.sigmoid(x.t))], F.silu(x.t)))


@case()
def powers(n):
    x, p, q = n.w(2, 3), n.w(2, 3, positive=True), n.w(3)
    for e in (2.0, 3.0, 4.0):
        n.end(n.op("Pow", [x, n.real(e)], x.t ** e))
    for e in (0.5, 1.5, -1.0):
        n.end(n.op("Pow", [p, n.real(e)], p.t ** e))
    n.end(n.op("Pow", [p, q], p.t ** q.t))
    n.end(n.op("Pow", [p, p], p.t ** p.t))


BINARY = {"Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": torch.div, "Max": torch.maximum, "Min": torch.minimum}


@case()
def broadcast(n):
    for op, f in BINARY.items():
        for sx, sy in (((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (3, 1)), ((4,), (2, 3, 4)), ((2, 1, 4), (1, 3, 1)), ((2, 3), ()), ((1, 1), (2, 3)), ((1,), (2, 3))):
            x, y = n.w(*sx, positive=op == "Div"), n.w(*sy, positive=op == "Div")
            n.end(n.op(op, [x, y], f(x.t, y.t)))
    x, y, z = n.w(2, 3, 4), n.w(3, 1), n.w(4)
    n.end(n.op("Sum", [x, y, z], x.t + y.t + z.t))
    n.end(n.op("Mean", [x, y, z], (x.t + y.t + z.t) / 3))
    n.end(n.op("Max", [x, y, z], torch.maximum(torch.maximum(x.t, y.t), z.t)))
    n.end(n.op("Mul", [x, x], x.t * x.t))
    n.end(n.op("Sub", [x, x], x.t - x.t))
    less = n.op("Less", [x, z], x.t < z.t)
    n.end(n.op("Where", [less, y, x], torch.where(less.t, y.t, x.t)))
    n.end(n.op("PRelu", [x, z], torch.where(x.t > 0, x.t, x.t * z.t)))
    u = n.w(2, 3, 2, 2)
    n.end(n.op("PRelu", [u, y2 := n.w(3, 1, 1)], F.prelu(u.t, y2.t.reshape(3))))


# ---- normalisations ----

@case(opset=15)
def batch_norm(n):
    for s in ((3, 4, 3, 2), (5, 4), (3, 2, 5), (2, 3, 2, 2, 3)):
        x, g, b = n.w(*s), n.w(s[1], positive=True), n.w(s[1])
        mu, var = [n.op("Identity", [v], v.t.detach()) for v in (n.x(s[1]), n.x(s[1]))]
        y = F.batch_norm(x.t, None, None, g.t, b.t, True, eps=1e-3)
        z = n.op("BatchNormalization", [x, g, b, mu, var], y, epsilon=1e-3)
        n.end(z)
        n.end(n.op("Relu", [n.op("Add", [z, x], z.t + x.t)], F.relu(z.t + x.t)))


@case(opset=17)
def layer_norm(n):
    x, g, b, t, u = n.w(2, 3, 4), n.w(4), n.w(4), n.w(3, 4), n.w(3, 4)
    n.end(n.op("LayerNormalization", [x, g, b], F.layer_norm(x.t, (4,), g.t, b.t), axis=-1))
    n.end(n.op("LayerNormalization", [x, t, u], F.layer_norm(x.t, (3, 4), t.t, u.t, eps=1e-2), axis=1, epsilon=1e-2))
    n.end(n.op("LayerNormalization", [x, g], F.layer_norm(x.t, (4,), g.t), axis=2))


@case()
def layer_norm_taken_apart(n):
    x, g, b = n.w(2, 3, 6), n.w(6), n.w(6)
    mu = n.op("ReduceMean", [x], x.t.mean(-1, keepdim=True), axes=[-1])
    d = n.op("Sub", [x, mu], x.t - mu.t)
    v = n.op("ReduceMean", [n.op("Pow", [d, n.real(2.0)], d.t ** 2)], (d.t ** 2).mean(-1, keepdim=True), axes=[-1])
    s = n.op("Sqrt", [n.op("Add", [v, n.real(1e-5)], v.t + 1e-5)], (v.t + 1e-5).sqrt())
    y = n.op("Mul", [n.op("Div", [d, s], d.t / s.t), g], d.t / s.t * g.t)
    n.end(n.op("Add", [y, b], F.layer_norm(x.t, (6,), g.t, b.t)))


@case(opset=18)
def group_instance_norm(n):
    for s in ((2, 4, 2, 3), (2, 4, 5)):
        x, g, b = n.w(*s), n.w(4), n.w(4)
        n.end(n.op("InstanceNormalization", [x, g, b], F.instance_norm(x.t, weight=g.t, bias=b.t)))
    x, g, b = n.w(2, 6, 3, 2), n.w(6), n.w(6)
    y = n.op("Reshape", [x, n.ints(0, 3, -1)], x.t.reshape(2, 3, -1))  # PyTorch's export of group_norm
    one, zero = n.w(3), n.w(3)
    z = n.op("InstanceNormalization", [y, one, zero], F.instance_norm(y.t, weight=one.t, bias=zero.t))
    z = n.op("Reshape", [z, n.ints(2, 6, 3, 2)], z.t.reshape(2, 6, 3, 2))
    g1, b1 = n.op("Unsqueeze", [g, n.ints(1, 2)], g.t[:, None, None]), n.op("Unsqueeze", [b, n.ints(1, 2)], b.t[:, None, None])
    n.end(n.op("Add", [n.op("Mul", [z, g1], z.t * g1.t), b1], z.t * g1.t + b1.t))


@case(opset=21)
def group_norm(n):
    for groups in (1, 2, 4):
        x, g, b = n.w(2, 4, 2, 3), n.w(4), n.w(4)
        n.end(n.op("GroupNormalization", [x, g, b], F.group_norm(x.t, groups, g.t, b.t, eps=1e-3), num_groups=groups, epsilon=1e-3))


@case()
def lrn(n):
    for size, alpha, beta, bias in ((3, 0.5, 0.75, 2.0), (5, 1e-4, 0.75, 1.0), (2, 1.5, 0.5, 1.0), (5, 2.0, 1.25, 1.0)):
        x = n.w(2, 6, 2, 3)
        # Even windows: ONNX begins (size - 1)/2 before, PyTorch size/2 before; so its channels are turned round.
        y = F.local_response_norm(x.t, size, alpha, beta, bias) if size % 2 else F.local_response_norm(x.t.flip(1), size, alpha, beta, bias).flip(1)
        n.end(n.op("LRN", [x], y, size=size, alpha=alpha, beta=beta, bias=bias))


@case()
def softmaxes(n):
    for axis in (0, 1, -1):
        x = n.w(2, 3, 4)
        n.end(n.op("Softmax", [x], x.t.softmax(axis), axis=axis))
        n.end(n.op("LogSoftmax", [x], x.t.log_softmax(axis), axis=axis))


@case(opset=11)
def softmaxes_of_opset_11(n):
    x = n.w(2, 3, 4)
    n.end(n.op("Softmax", [x], x.t.reshape(2, 12).softmax(-1).reshape(2, 3, 4), axis=1))
    n.end(n.op("LogSoftmax", [x], x.t.reshape(6, 4).log_softmax(-1).reshape(2, 3, 4), axis=2))


# ---- pooling, reductions ----

@case()
def max_pool(n):
    for s, k, st, p, d, ceil in (((1, 2, 7, 6), 3, 2, 1, 1, False), ((1, 2, 6, 6), 2, 2, 0, 1, False), ((1, 2, 7, 7), 2, 2, 0, 1, True),
                                 ((1, 2, 8, 7), 3, 2, 1, 1, True), ((1, 2, 9, 8), 3, 1, 1, 2, False), ((2, 1, 7, 7), 3, 1, 1, 1, False)):
        x = n.w(*s)
        n.end(n.op("MaxPool", [x], F.max_pool2d(x.t, k, st, p, d, ceil), kernel_shape=[k, k], strides=[st, st], pads=[p] * 4, dilations=[d, d], ceil_mode=int(ceil)))
    x, y = n.w(2, 2, 9), n.w(1, 2, 4, 5, 4)
    n.end(n.op("MaxPool", [x], F.max_pool1d(x.t, 3, 2), kernel_shape=[3], strides=[2]))
    n.end(n.op("MaxPool", [y], F.max_pool3d(y.t, 2, 2, 1), kernel_shape=[2, 2, 2], strides=[2, 2, 2], pads=[1] * 6))
    x = n.w(1, 2, 5, 5)
    n.end(n.op("MaxPool", [x], F.max_pool2d(F.pad(x.t, (0, 1, 0, 1), value=-math.inf), 2, 1), kernel_shape=[2, 2], strides=[1, 1], pads=[0, 0, 1, 1]))


@case()
def max_pool_of_equals(n):
    """Behind a ReLU windows of zeros: the first one of the window gets the gradient, as in PyTorch."""
    x = n.w(2, 2, 8, 8)
    r = n.op("Relu", [n.op("Sub", [x, n.real(0.3)], x.t - 0.3)], F.relu(x.t - 0.3))
    b = n.w(2, 1, 1)
    y = n.op("Add", [r, b], r.t + b.t)
    n.end(n.op("MaxPool", [y], F.max_pool2d(y.t, 3, 2, 1), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4))
    n.end(n.op("MaxPool", [y], F.max_pool2d(y.t, 2, 2), kernel_shape=[2, 2], strides=[2, 2]))


@case()
def average_pool(n):
    for s, k, st, p, ceil, pad in (((1, 2, 7, 6), 3, 2, 1, False, False), ((1, 2, 7, 6), 3, 2, 1, False, True), ((1, 2, 7, 6), 3, 1, 1, False, True),
                                   ((1, 2, 6, 6), 2, 2, 0, False, False), ((1, 2, 7, 7), 2, 2, 0, True, False), ((1, 2, 8, 8), 3, 2, 0, True, False),
                                   ((1, 2, 8, 7), 3, 2, 1, True, False), ((1, 2, 8, 7), 3, 2, 1, True, True)):
        x = n.w(*s)
        n.end(n.op("AveragePool", [x], F.avg_pool2d(x.t, k, st, p, ceil, pad), kernel_shape=[k, k], strides=[st, st], pads=[p] * 4, ceil_mode=int(ceil), count_include_pad=int(pad)))
    x = n.w(1, 2, 4, 5, 4)
    n.end(n.op("AveragePool", [x], F.avg_pool3d(x.t, 2, 2), kernel_shape=[2, 2, 2], strides=[2, 2, 2]))
    x = n.w(1, 2, 9)
    n.end(n.op("AveragePool", [x], F.avg_pool1d(x.t, 3, 2, 1), kernel_shape=[3], strides=[2], pads=[1, 1], count_include_pad=1))


@case()
def global_pool(n):
    for s in ((2, 3, 4, 5), (2, 3, 4), (1, 2, 2, 3, 2)):
        x = n.w(*s)
        d = tuple(range(2, len(s)))
        n.end(n.op("GlobalAveragePool", [x], x.t.mean(d, keepdim=True)))
        n.end(n.op("GlobalMaxPool", [x], x.t.amax(d, keepdim=True)))


@case()
def reductions(n):
    table = {"ReduceMean": torch.mean, "ReduceMax": torch.amax, "ReduceMin": torch.amin, "ReduceLogSumExp": torch.logsumexp,
             "ReduceSumSquare": lambda x, d, keepdim: (x * x).sum(d, keepdim=keepdim), "ReduceL1": lambda x, d, keepdim: x.abs().sum(d, keepdim=keepdim),
             "ReduceL2": lambda x, d, keepdim: (x * x).sum(d, keepdim=keepdim).sqrt()}
    for op, f in table.items():
        for axes, keep in (([1], 0), ([0, 2], 1), ([-1], 1)):
            x = n.w(2, 3, 4)
            n.end(n.op(op, [x], f(x.t, tuple(axes), keepdim=bool(keep)), axes=axes, keepdims=keep))
    x, p = n.w(2, 3, 4), n.w(2, 3, positive=True)
    n.end(n.op("ReduceSum", [x, n.ints(0, 2)], x.t.sum((0, 2), keepdim=True)))
    n.end(n.op("ReduceSum", [x, n.ints(1)], x.t.sum(1), keepdims=0))
    n.end(n.op("ReduceMean", [x], x.t.mean().reshape(1, 1, 1)))
    n.end(n.op("ReduceProd", [x], x.t.prod(1), axes=[1], keepdims=0))
    n.end(n.op("ReduceLogSum", [p], p.t.sum(1).log(), axes=[1], keepdims=0))


@case()
def maxima_alike(n):
    """Of equal elements: amax shares among them."""
    x = n.w(2, 8)
    r = n.op("Relu", [n.op("Sub", [x, n.real(2.0)], x.t - 2)], F.relu(x.t - 2))
    y = n.op("Add", [r, b := n.w(2, 1)], r.t + b.t)
    n.end(n.op("ReduceMax", [y], y.t.amax(1, keepdim=True), axes=[1]))
    z, one = n.w(1, 2, 1, 1), n.x(1, 2, 3, 3)
    flat = n.op("Add", [z, n.op("Sub", [one, one], one.t - one.t)], z.t + one.t - one.t)
    n.end(n.op("GlobalMaxPool", [flat], flat.t.amax((2, 3), keepdim=True)))
    n.end(n.op("Max", [y, y], torch.maximum(y.t, y.t)))
    n.end(n.op("Min", [y, n.op("Identity", [y], y.t * 1)], torch.minimum(y.t, y.t * 1)))


# ---- what moves elements ----

@case()
def moves(n):
    x, y = n.w(2, 3, 4), n.w(2, 1, 4)
    n.end(n.op("Transpose", [x], x.t.permute(2, 0, 1), perm=[2, 0, 1]))
    n.end(n.op("Transpose", [x], x.t.permute(2, 1, 0)))
    n.end(n.op("Reshape", [x, n.ints(4, 6)], x.t.reshape(4, 6)))
    n.end(n.op("Flatten", [x], x.t.reshape(6, 4), axis=2))
    n.end(n.op("Squeeze", [y, n.ints(1)], y.t.squeeze(1)))
    n.end(n.op("Unsqueeze", [x, n.ints(1)], x.t.unsqueeze(1)))
    n.end(n.op("Concat", [x, y, x], torch.cat([x.t, y.t, x.t], 1), axis=1))
    n.end(n.op("Concat", [y, y], torch.cat([y.t, y.t], -1), axis=-1))
    n.end(n.op("Expand", [y, n.ints(2, 2, 3, 4)], y.t.expand(2, 2, 3, 4)))
    n.end(n.op("Tile", [x, n.ints(1, 2, 3)], x.t.repeat(1, 2, 3)))
    n.end(n.op("Pad", [x, n.ints(0, 1, 2, 0, 1, 3)], F.pad(x.t, (2, 3, 1, 1))))
    n.end(n.op("Pad", [x, n.ints(0, -1, 1, 0, 0, -1)], F.pad(x.t, (1, -1, -1, 0))))
    n.end(n.op("Slice", [x, n.ints(1, -3), n.ints(3, 9), n.ints(1, 2)], x.t[:, 1:3, -3:]))
    z = n.w(2, 5, 7)
    n.end(n.op("Slice", [z, n.ints(1, 0), n.ints(5, 7), n.ints(1, 2), n.ints(2, 3)], z.t[:, 1:5:2, 0:7:3]))
    n.end(n.op("Slice", [z, n.ints(-1), n.ints(-100), n.ints(2), n.ints(-1)], z.t.flip(2)))
    n.end(n.op("Slice", [z, n.ints(5), n.ints(0), n.ints(2), n.ints(-2)], z.t[:, :, [5, 3, 1]]))
    a, b, c = n.op("Split", [z, n.ints(1, 4, 2)], z.t.split([1, 4, 2], 2), axis=2)
    n.end(c)
    n.end(n.op("Mul", [a, c], a.t * c.t))
    a, b = n.op("Split", [n.op("Transpose", [z], z.t.permute(1, 2, 0), perm=[1, 2, 0])], z.t.permute(1, 2, 0).split(1, 2), axis=-1)
    n.end(n.op("Sub", [a, b], a.t - b.t))


@case(missing="Pad")
def pads_that_repeat(n):
    x = n.w(1, 2, 4, 5)
    n.end(n.op("Pad", [x, n.ints(0, 0, 1, 2, 0, 0, 0, 1)], F.pad(x.t, (2, 1, 1, 0), mode="reflect"), mode="reflect"))
    n.end(n.op("Pad", [x, n.ints(0, 0, 1, 2, 0, 0, 0, 1)], F.pad(x.t, (2, 1, 1, 0), mode="replicate"), mode="edge"))


@case()
def images(n):
    x, y = n.w(1, 4, 2, 3), n.w(1, 2, 4, 2)
    n.end(n.op("DepthToSpace", [x], F.pixel_shuffle(x.t, 2), blocksize=2, mode="CRD"))
    n.end(n.op("DepthToSpace", [x], x.t.reshape(1, 2, 2, 1, 2, 3).permute(0, 3, 4, 1, 5, 2).reshape(1, 1, 4, 6), blocksize=2))
    n.end(n.op("SpaceToDepth", [y], y.t.reshape(1, 2, 2, 2, 1, 2).permute(0, 3, 5, 1, 2, 4).reshape(1, 8, 2, 1), blocksize=2))
    for mode in ({"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}, {}):
        n.end(n.op("Resize", [x, None, None, n.ints(1, 4, 4, 9)], F.interpolate(x.t, size=(4, 9), mode="nearest"), mode="nearest", **mode))


@case(missing="Resize")
def resize_linear(n):
    x = n.w(1, 2, 3, 4)
    n.end(n.op("Resize", [x, None, None, n.ints(1, 2, 6, 8)], F.interpolate(x.t, size=(6, 8), mode="bilinear"), mode="linear", coordinate_transformation_mode="pytorch_half_pixel"))
    n.end(n.op("Resize", [x, None, None, n.ints(1, 2, 5, 7)], F.interpolate(x.t, size=(5, 7), mode="bilinear", align_corners=True), mode="linear", coordinate_transformation_mode="align_corners"))


# ---- rows by indices ----

@case()
def gather_of_known_rows(n):
    x = n.w(2, 3, 4)
    n.end(n.op("Gather", [x, V(n.ints(1).n, None)], x.t[:, [1]], axis=1))
    n.end(n.op("Gather", [x, n.ints(2, 3)], x.t[:, :, 2:4], axis=2))
    n.end(n.op("Gather", [x, n.ints(-1, 0, 0)], x.t[:, [2, 0, 0]], axis=1))


@case()
def embedding(n):
    for table, ids in (((7, 4), (2, 5)), ((3, 5), (4,)), ((2, 3), (2, 3, 2)), ((6, 2, 3), (3, 2))):
        x, i = n.w(*table), n.x(*ids, most=table[0])
        n.end(n.op("Gather", [x, i], x.t[i.t]))
    x, i, j = n.w(7, 4), n.x(2, 3, most=7), n.x(2, 3, most=7)  # one table, twice
    n.end(n.op("Add", [n.op("Gather", [x, i], x.t[i.t]), n.op("Gather", [x, j], x.t[j.t])], x.t[i.t] + x.t[j.t]))


@case()
def gather_of_columns(n):
    x, i = n.w(2, 5, 3), n.x(4, most=5)
    n.end(n.op("Gather", [x, i], x.t[:, i.t], axis=1))
    n.end(n.op("Gather", [x, j := n.x(2, 2, most=3)], x.t[:, :, j.t], axis=2))


@case(missing="GatherElements")
def gather_elements(n):
    x, i = n.w(2, 5, 3), n.x(2, 4, 3, most=5)
    n.end(n.op("GatherElements", [x, i], x.t.gather(1, i.t), axis=1))


# ---- recurrent layers ----

def recurrent(n, kind, op, gates, order, extra, both=False, states=True, bias=True, back=False):
    seq, batch, n_in, hid, d = 3, 2, 3, 2, 2 if both else 1
    x, w, r = n.w(seq, batch, n_in), n.w(d, gates * hid, n_in), n.w(d, gates * hid, hid)
    b = n.w(d, 2 * gates * hid) if bias else None
    hx = n.w(d, batch, hid) if states else None
    cx = n.w(d, batch, hid) if states and gates == 4 else None
    def turn(t):  # ONNX's order of gates -> PyTorch's
        return torch.cat([t[o * hid:(o + 1) * hid] for o in order])
    flat = []
    for k in range(d):
        flat += [turn(w.t[k]), turn(r.t[k])] + ([turn(b.t[k][:gates * hid]), turn(b.t[k][gates * hid:])] if bias else [])
    zero = torch.zeros(d, batch, hid, dtype=torch.float64)
    hs = hx.t if states else zero
    xin = x.t.flip(0) if back else x.t
    args = (flat, bias, 1, 0.0, True, both, False)
    if gates == 4:
        y, ht, ct = torch._VF.lstm(xin, (hs, cx.t if states else zero), *args)
    else:
        y, ht = (torch._VF.gru if gates == 3 else torch._VF.rnn_tanh)(xin, hs, *args)
    y = (y.flip(0) if back else y).reshape(seq, batch, d, hid).transpose(1, 2)
    ins = [x, w, r, b, None, hx, cx]
    while ins[-1] is None:
        ins.pop()
    outs = n.op(op, ins, [y, ht] + ([ct] if gates == 4 else []), hidden_size=hid, direction="bidirectional" if both else "reverse" if back else "forward", **extra)
    for o in outs:
        n.end(o)


@case()
def lstm(n):
    recurrent(n, None, "LSTM", 4, (0, 2, 3, 1), {}, both=True)
    recurrent(n, None, "LSTM", 4, (0, 2, 3, 1), {}, states=False, bias=False)
    recurrent(n, None, "LSTM", 4, (0, 2, 3, 1), {}, back=True)


@case()
def gru(n):
    recurrent(n, None, "GRU", 3, (1, 0, 2), {"linear_before_reset": 1}, both=True)
    recurrent(n, None, "GRU", 3, (1, 0, 2), {"linear_before_reset": 1}, states=False, bias=False)


@case()
def gru_gate_first(n):
    """Of PyTorch's, which has no such cell, written out."""
    seq, batch, n_in, hid = 3, 2, 3, 2
    x, w, r, b, h0 = n.w(seq, batch, n_in), n.w(1, 3 * hid, n_in), n.w(1, 3 * hid, hid), n.w(1, 6 * hid), n.w(1, batch, hid)
    wz, wr, wh = w.t[0].split(hid)
    rz, rr, rh = r.t[0].split(hid)
    bz, br, bh, cz, cr, ch = b.t[0].split(hid)
    hs, ys = h0.t[0], []
    for t in range(seq):
        z = torch.sigmoid(x.t[t] @ wz.T + hs @ rz.T + bz + cz)
        q = torch.sigmoid(x.t[t] @ wr.T + hs @ rr.T + br + cr)
        hs = (1 - z) * torch.tanh(x.t[t] @ wh.T + (q * hs) @ rh.T + ch + bh) + z * hs
        ys.append(hs)
    for o in n.op("GRU", [x, w, r, b, None, h0], [torch.stack(ys)[:, None], hs[None]], hidden_size=hid):
        n.end(o)


@case()
def rnn(n):
    recurrent(n, None, "RNN", 1, (0,), {}, both=True)
    recurrent(n, None, "RNN", 1, (0,), {}, back=True, states=False)


# ---- attention ----

@case()
def attention(n):
    B, L, H, D = 2, 4, 2, 3
    x = n.w(B, L, H * D)
    def heads(key):
        w, b = n.w(H * D, H * D), n.w(H * D)
        y = n.op("Add", [n.op("MatMul", [x, w], x.t @ w.t), b], x.t @ w.t + b.t)
        y = n.op("Reshape", [y, n.ints(B, L, H, D)], y.t.reshape(B, L, H, D))
        p = (0, 2, 3, 1) if key else (0, 2, 1, 3)
        return n.op("Transpose", [y], y.t.permute(p), perm=p)
    q, k, v, mask = heads(False), heads(True), heads(False), n.x(B, 1, 1, L)
    s = n.op("Div", [n.op("MatMul", [q, k], q.t @ k.t), n.real(math.sqrt(D))], q.t @ k.t / math.sqrt(D))
    p = n.op("Softmax", [n.op("Add", [s, mask], s.t + mask.t)], (s.t + mask.t).softmax(-1), axis=-1)
    y = n.op("Transpose", [n.op("MatMul", [p, v], p.t @ v.t)], (p.t @ v.t).transpose(1, 2), perm=[0, 2, 1, 3])
    n.end(n.op("Reshape", [y, n.ints(B, L, H * D)], y.t.reshape(B, L, H * D)))


# ---- losses: of each the value, its gradient, the new weights ----

@case(loss="cross_entropy")
def cross_entropy_rows(n):
    x, w, b = n.x(6, 4), n.w(4, 5), n.w(5)
    n.result(n.op("Gemm", [x, w, b], x.t @ w.t + b.t))


@case(loss="cross_entropy")
def cross_entropy_words(n):
    x, w = n.x(2, 3, 4), n.w(4, 5)
    n.result(n.op("MatMul", [x, w], x.t @ w.t))


@case(loss="cross_entropy")
def cross_entropy_pixels(n):
    x, w = n.x(2, 3, 4, 4), n.w(5, 3, 1, 1)
    n.result(n.op("Conv", [x, w], F.conv2d(x.t, w.t)))


@case(loss="squares")
def mean_squares(n):
    x, w = n.x(2, 3, 4, 4), n.w(5, 3, 3, 3)
    n.result(n.op("Conv", [x, w], F.conv2d(x.t, w.t)))


@case(loss="cross_entropy")
def two_heads(n):
    x, w, v = n.x(4, 3), n.w(3, 5), n.w(3, 2)
    n.result(n.op("MatMul", [x, w], x.t @ w.t))
    n.result(n.op("MatMul", [x, v], x.t @ v.t))


@case(loss="cross_entropy", optimizer="sgd-plain")
def plain_sgd(n):
    cross_entropy_rows(n)


@case(loss="cross_entropy", optimizer="adam")
def adam(n):
    cross_entropy_rows(n)

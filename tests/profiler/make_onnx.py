#!/usr/bin/env python3
"""The small ONNX files in data/, which are the seeds of tests/fuzz/fuzz_onnx.c, too.

Needs python3-onnx and numpy: python3 make_onnx.py [FOLDER]. What each is for is told by its function."""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
F = T.FLOAT


def x(name, dims, kind=F):
    return h.make_tensor_value_info(name, kind, dims)


def const(name, values, dtype=np.int64):
    return numpy_helper.from_array(np.array(values, dtype=dtype), name)


def weight(name, *dims):
    return numpy_helper.from_array(np.zeros(dims, np.float32), name)


def hollow(name, *dims):
    """A weight without its content."""
    return T(name=name, data_type=F, dims=dims)


def model(nodes, inputs, outputs, init=(), opset=13, info=(), functions=(), domains=()):
    g = h.make_graph(nodes, "g", inputs, outputs, list(init), value_info=list(info))
    sets = [h.make_opsetid("", opset)] + [h.make_opsetid(d, 1) for d in domains]
    m = h.make_model(g, opset_imports=sets, functions=list(functions), producer_name="cdmpp")
    m.ir_version = 8
    return m


def N(op, ins, outs, **attr):
    return h.make_node(op, ins.split(), outs.split(), **attr)


def whole():
    """A whole model: initializers with content, symbolic dimensions, a reshape by Shape, Gather, Concat."""
    n = [N("Conv", "x w b", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], name="conv"),
         N("BatchNormalization", "c s t m v", "n"), N("Relu", "n", "r"),
         N("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]), N("Shape", "p", "sh"),
         N("Gather", "sh zero", "n0", axis=0), N("Unsqueeze", "n0 axes", "n1"), N("Concat", "n1 minus", "to", axis=0),
         N("Reshape", "p to", "f"), N("Gemm", "f fw fb", "y", transB=1)]
    i = [weight("w", 8, 3, 3, 3), weight("b", 8), weight("s", 8), weight("t", 8), weight("m", 8), weight("v", 8),
         const("zero", 0), const("axes", [0]), const("minus", [-1]), weight("fw", 10, 8 * 4 * 4), weight("fb", 10)]
    return model(n, [x("x", ["batch", 3, "height", 16])], [x("y", ["batch", 10])], i)


def stripped():
    """Weights are inputs without initializers, as exporters write them when they leave weights out."""
    n = [N("Identity", "bias", "bias2"), N("Gather", "table ids", "e"), N("Transpose", "q", "qt", perm=[1, 0]),
         N("MatMul", "e qt", "m"), N("Add", "bias2 m", "a"), N("Mul", "a scale", "s"), N("Expand", "token to", "tok"),
         N("Concat", "tok s", "c", axis=1), N("Softmax", "c", "y")]
    w = [x("ids", [1, 12], T.INT64), x("table", [100, 16]), x("q", [16, 16]), x("bias", [16]), x("scale", [16]), x("token", [1, 1, 16])]
    n.insert(0, h.make_node("Constant", [], ["to"], value=const("", [1, 1, 16])))
    return model(n, w, [x("y", [1, 13, 16])])


def float_input():
    """The same with a real input that comes to a MatMul through Sub and Div by constants."""
    n = [h.make_node("Constant", [], ["mean"], value_float=0.5), h.make_node("Constant", [], ["dev"], value=const("", [2.0], np.float32)),
         N("Sub", "image mean", "i1"), N("Div", "i1 dev", "i2"), N("MatMul", "i2 w", "m"), N("Add", "m mask", "y")]
    return model(n, [x("mask", [4, 8]), x("w", [16, 8]), x("image", [4, 16])], [x("y", [4, 8])])


def no_heads():
    """Only element-wise operators: nothing tells data from weights, so all is data."""
    return model([N("Add", "a b", "y")], [x("a", [4]), x("b", [4])], [x("y", [4])])


def fill():
    """Light models: ConstantOfShape stands for weights; initializers are listed as inputs, too."""
    n = [N("ConstantOfShape", "ws", "w", value=const("", [0.5], np.float32)), N("ConstantOfShape", "bs", "b"), N("Conv", "x w b", "y")]
    return model(n, [x("x", [1, 3, 8, 8]), x("ws", [4], T.INT64), x("bs", [1], T.INT64)], [x("y", [1, 4, 6, 6])],
                 [const("ws", [4, 3, 3, 3]), const("bs", [4])], opset=9)


def hollows():
    """Initializers without content: shapes are enough."""
    return model([N("Conv", "x w", "y")], [x("x", [1, 3, 8, 8])], [x("y", [1, 4, 6, 6])], [hollow("w", 4, 3, 3, 3)], opset=8)


def baked():
    """The batch size is a constant of a Reshape; another one must get there."""
    n = [N("Reshape", "x to", "r"), N("Transpose", "r", "t", perm=[0, 2, 1]), N("Reshape", "t flat", "f"), N("MatMul", "f w", "y")]
    i = [const("to", [1, 4, 6]), const("flat", [1, -1]), weight("w", 24, 5)]
    return model(n, [x("x", [1, 2, 12])], [x("y", [1, 5])], i)


def baked_deep():
    """The batch size is a constant where nothing can be done about it."""
    return model([N("Reshape", "x to", "y")], [x("x", [2, 3, 4])], [x("y", [3, 8])], [const("to", [3, 8])])


def constants():
    """Constant in its forms; types and encodings of contents."""
    n = [h.make_node("Constant", [], ["i"], value_int=3), h.make_node("Constant", [], ["is"], value_ints=[2, 3]),
         h.make_node("Constant", [], ["f"], value_float=1.5), h.make_node("Constant", [], ["fs"], value_floats=[1.0, 1.0, 2.0, 2.5]),
         h.make_node("Constant", [], ["h"], value=h.make_tensor("", T.FLOAT16, [2], [1.5, -2.0])),
         h.make_node("Constant", [], ["t"], value=h.make_tensor("", T.INT64, [2], [4, 6])),
         h.make_node("Constant", [], ["small"], value=const("", [-3], np.int8)), N("Cast", "small", "wide", to=T.INT64),
         N("Cast", "h", "hi", to=T.INT64), N("Mul", "hi t", "k"), N("Expand", "x is", "e"), N("Resize", "img none fs", "y", mode="linear")]
    n[-1].input[1] = ""
    return model(n, [x("x", [1, 1]), x("img", [1, 1, 4, 4])], [x("y", [1, 1, 8, 10]), x("e", [2, 3]), x("k", [2], T.INT64), x("wide", [1], T.INT64)])


def branch(cond):
    """If whose condition is known, or is data; the branch reads what is around it."""
    a = h.make_graph([N("Relu", "x2", "t1"), N("Reshape", "t1 flat", "t")], "a", [], [x("t", [12])], [const("flat", [12])])
    b = h.make_graph([N("Neg", "x2", "e")], "b", [], [x("e", [3, 4])])
    n = [N("Identity", "x", "x2"), h.make_node("If", [cond], ["z"], then_branch=a, else_branch=b, name="if"), N("Exp", "z", "y")]
    return model(n, [x("x", [3, 4]), x("p", [], T.BOOL)], [x("y", None)], [const("yes", True, np.bool_)])


def if_known():
    return branch("yes")


def if_data():
    return branch("p")


def loop(cond, limit):
    """A loop that multiplies what it carries by a weight around it, and collects what it got; how often it runs is known, or is data."""
    goes_on = N("Identity", "c", "c2") if cond == "same" else N("Not", "c", "c2")
    body = h.make_graph([goes_on, N("MatMul", "v w", "v2"), N("Cast", "i", "f", to=F), N("Add", "v2 f", "s")], "body", [x("i", [], T.INT64), x("c", [], T.BOOL), x("v", [2, 4])],
                        [x("c2", [], T.BOOL), x("v2", [2, 4]), x("s", [2, 4])])
    n = [h.make_node("Loop", [limit, "", "x"], ["last", "all"], body=body, name="loop"), N("Relu", "last", "y"), N("Exp", "all", "z")]
    return model(n, [x("x", [2, 4]), x("m", [], T.INT64)], [x("y", None), x("z", None)], [weight("w", 4, 4), const("three", 3)])


def loop_known():
    return loop("same", "three")


def loop_data():
    return loop("other", "three")


def loop_limit():
    return loop("same", "m")


def sizes():
    """Results whose size depends on the data, each read by another operator."""
    made = [("NonMaxSuppression", "nms", "boxes scores", {}, T.INT64), ("NonZero", "nz", "x", {}, T.INT64), ("Compress", "some", "x which", {"axis": 0}, F),
            ("Compress", "flat", "x which", {}, F), ("Unique", "unique", "x", {}, F)]
    n, out = [], []
    for op, name, ins, attr, kind in made:
        outs = name + "_y" if op != "Unique" else "unique_y unique_i unique_v unique_c"
        n += [h.make_node(op, ins.split(), outs.split(), name=name, **attr), N("Neg", name + "_y", name + "_z")]
        out += [x(name + "_z", None, kind)]
    return model(n, [x("x", [3, 4]), x("boxes", [1, 8, 4]), x("scores", [1, 1, 8]), x("which", [3], T.BOOL)], out)


def function():
    """A function of the file that calls another, with attributes by reference; twice, so that its names are its own."""
    leaky = N("LeakyRelu", "v", "u")
    leaky.attribute.append(onnx.AttributeProto(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="slope"))
    inner = h.make_function("mine", "Act", ["v"], ["u"], [leaky], [h.make_opsetid("", 13)], ["slope"])
    call = h.make_node("Act", ["m"], ["r"], domain="mine")
    call.attribute.append(onnx.AttributeProto(name="slope", type=onnx.AttributeProto.FLOAT, ref_attr_name="alpha"))
    outer = h.make_function("mine", "Layer", ["v", "w"], ["r"], [N("MatMul", "v w", "m"), call], [h.make_opsetid("", 13), h.make_opsetid("mine", 1)], ["alpha"])
    n = [h.make_node("Layer", ["x", "w1"], ["h"], domain="mine", alpha=0.25), h.make_node("Layer", ["h", "w2"], ["y"], domain="mine", alpha=0.5)]
    return model(n, [x("x", [2, 4])], [x("y", [2, 8])], [weight("w1", 4, 6), weight("w2", 6, 8)], functions=[outer, inner], domains=["mine"])


def field(number, content):
    """A field with bytes, by hand: the length is below 128."""
    return bytes([number << 3 | 2, len(content)]) + content


def defaults():
    """A function whose attribute has a value of its own (attribute_proto, which the definition at hand may not know)."""
    leaky = N("LeakyRelu", "v", "u")
    leaky.attribute.append(onnx.AttributeProto(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="slope"))
    f = h.make_function("mine", "Act", ["v"], ["u"], [leaky], [h.make_opsetid("", 13)], [])
    f.MergeFromString(field(11, h.make_attribute("slope", 0.75).SerializeToString()))
    n = [h.make_node("Act", ["x"], ["a"], domain="mine"), h.make_node("Act", ["a"], ["y"], domain="mine", slope=0.125)]
    return model(n, [x("x", [2, 4])], [x("y", [2, 4])], functions=[f], domains=["mine"])


def endless():
    """A function that calls itself."""
    f = h.make_function("mine", "F", ["v"], ["u"], [h.make_node("F", ["v"], ["u"], domain="mine")], [h.make_opsetid("mine", 1)])
    return model([h.make_node("F", ["x"], ["y"], domain="mine")], [x("x", [2])], [x("y", [2])], functions=[f], domains=["mine"])


def unsorted():
    """Nodes in no order, and a body that reads what is made later."""
    a = h.make_graph([N("Relu", "r", "t")], "a", [], [x("t", [4])])
    n = [N("Exp", "z", "y"), h.make_node("If", ["yes"], ["z"], then_branch=a, else_branch=a), N("Neg", "x", "r")]
    return model(n, [x("x", [4])], [x("y", [4])], [const("yes", True, np.bool_)])


def cycle():
    return model([N("Add", "x b", "a"), N("Relu", "a", "b")], [x("x", [4])], [x("b", [4])])


def twice():
    return model([N("Relu", "x", "a"), N("Neg", "x", "a")], [x("x", [4])], [x("a", [4])])


def nowhere():
    return model([N("Add", "x ghost", "y")], [x("x", [4])], [x("y", [4])])


def misfit():
    return model([N("MatMul", "x w", "y", name="product")], [x("x", [2, 4])], [x("y", [2, 8])], [weight("w", 5, 8)])


def opaque():
    """An operator of another domain whose result's shape the file tells, and one where it does not."""
    n = [h.make_node("Magic", ["x"], ["m"], domain="com.me", name="magic"), N("Relu", "m", "y"),
         h.make_node("Secret", ["x"], ["s"], domain="com.me"), N("Neg", "s", "z", name="behind")]
    return model(n, [x("x", [2, 4])], [x("y", [2, 7]), x("z", None)], info=[x("m", [2, 7])], domains=["com.me"])


def unknown_behind():
    """What is known is read by an operator that nobody knows alone."""
    n = [N("Conv", "x w", "y", pads=[1, 1, 1, 1], kernel_shape=[3, 3], name="conv"), N("Frobnicate", "y", "z", name="frob"), N("Relu", "z", "q", name="re")]
    q = onnx.ValueInfoProto(name="q")
    q.type.tensor_type.elem_type = F
    return model(n, [x("x", [1, 3, 32, 32])], [q], [hollow("w", 8, 3, 3, 3)])


def known_behind():
    """A known operator behind an unknown one: the file states its result's shape, of its operands only the weights are known."""
    n = [N("MatMul", "x w", "a", name="first"), N("Frobnicate", "a", "u", name="frob"), N("Gemm", "u v c", "g", name="gemm"), N("Relu", "g", "y", name="re")]
    return model(n, [x("x", [2, 4])], [x("y", [2, 6])], [weight("w", 4, 4), weight("v", 5, 6), weight("c", 6)], info=[x("g", [2, 6])])


def dynamic():
    """How large a result is depends on the data; what is behind it, and a loop."""
    body = h.make_graph([N("Identity", "c", "c2"), N("Identity", "v", "v2")], "body", [x("i", [], T.INT64), x("c", [], T.BOOL), x("v", [4])],
                        [x("c2", [], T.BOOL), x("v2", [4])])
    n = [N("NonZero", "x", "k", name="nz"), N("Transpose", "k", "kt", name="after"), N("Frobnicate", "x", "f", name="frob"),
         h.make_node("Loop", ["n", "", "x"], ["l"], body=body, name="loop"), N("Relu", "x", "y")]
    return model(n, [x("x", [4]), x("n", [], T.INT64)], [x("y", [4])])


def external(name, dims, kind, node, ins, file="data.bin", offset=None):
    t = T(name=name, data_type=kind, dims=dims, data_location=T.EXTERNAL)
    t.external_data.add(key="location", value=file)
    if offset:
        t.external_data.add(key="offset", value=str(offset))
    return model([node], ins, [x("y", None)], [t])


def external_weight():
    """Weights in another file: shapes are enough."""
    return external("w", [4, 8], F, N("MatMul", "x w", "y"), [x("x", [2, 4])])


def external_shape():
    """A shape in another file (three int64 at byte 8 of data.bin)."""
    return external("to", [3], T.INT64, N("Reshape", "x to", "y", name="re"), [x("x", [2, 12])], offset=8)


def external_outside():
    return external("to", [3], T.INT64, N("Reshape", "x to", "y"), [x("x", [2, 12])], file="../data.bin")


def unnamed():
    """Dimensions without a name or a number, and a negative one."""
    m = model([N("Relu", "x", "y")], [x("x", [None, 4])], [x("y", [None, 4])])
    return m


def negative():
    return model([N("Relu", "x", "y")], [x("x", [1, -1, 4])], [x("y", [1, -1, 4])])


def overflow():
    return model([N("Relu", "x", "y")], [x("x", [1 << 40, 1 << 40])], [x("y", [1 << 40, 1 << 40])])


def overflow_inside():
    return model([N("Tile", "x k", "y", name="tile")], [x("x", [1 << 30])], [x("y", None)], [const("k", [1 << 40])])


def short_content():
    t = T(name="to", data_type=T.INT64, dims=[3], raw_data=b"\1" * 20)
    return model([N("Reshape", "x to", "y")], [x("x", [2, 12])], [x("y", [1, 2, 12])], [t])


def old():
    return model([N("Relu", "x", "y")], [x("x", [4])], [x("y", [4])], opset=6)


def named_batch():
    """The batch's name at another place of the second input."""
    return model([N("Transpose", "b", "bt", perm=[1, 0]), N("Add", "a bt", "y")], [x("a", ["N", 4]), x("b", [4, "N"])], [x("y", ["N", 4])], [weight("unused", 1)])


def recurrent():
    """LSTM with the initial state that exporters write: Shape, Gather, Expand."""
    n = [N("Transpose", "x", "xt", perm=[1, 0, 2]), N("Shape", "xt", "s"), N("Gather", "s one", "b"), N("Unsqueeze", "b ax", "b1"),
         N("Concat", "d1 b1 hh", "hs", axis=0), N("ConstantOfShape", "hs", "h0"), h.make_node("LSTM", ["xt", "w", "r", "bb", "", "h0", "h0"], ["o", "", "c"], hidden_size=8),
         N("Squeeze", "o ax1", "y")]
    i = [const("one", 1), const("ax", [0]), const("ax1", [1]), const("d1", [1]), const("hh", [8]), weight("w", 1, 32, 5), weight("r", 1, 32, 8), weight("bb", 1, 64)]
    return model(n, [x("x", ["n", "t", 5])], [x("y", ["t", "n", 8]), x("c", [1, "n", 8])], i)


def older_forms():
    """Opset 9: parameters as attributes."""
    n = [N("Slice", "x", "a", starts=[1], ends=[-1], axes=[2]), N("Pad", "a", "b", pads=[0, 0, 1, 0, 0, 0, 1, 0]), N("Unsqueeze", "b", "c", axes=[0]),
         N("Squeeze", "c", "d", axes=[0]), N("Clip", "d", "e", min=0.0, max=6.0), N("Upsample", "e sc", "f", mode="nearest"),
         N("Split", "f", "g0 g1", axis=1, split=[1, 2]), N("ReduceMean", "g1", "r", axes=[2, 3], keepdims=0), N("Softmax", "g0", "y")]
    return model(n, [x("x", [1, 3, 6, 4])], [x("y", [1, 1, 12, 4]), x("r", [1, 2])], [const("sc", [1, 1, 2, 1], np.float32)], opset=9)


def sequence():
    v = h.make_value_info("s", h.make_sequence_type_proto(h.make_tensor_type_proto(F, [4])))
    return model([N("SequenceAt", "s i", "t"), N("Relu", "x", "y")], [v, x("i", [], T.INT64), x("x", [4])], [x("y", [4])])


def no_gradient():
    """Between two products padding that mirrors: it can be computed, but has no gradient."""
    n = [N("MatMul", "x w", "a", name="one"), N("Pad", "a p", "b", name="mirror", mode="reflect"), N("MatMul", "b v", "y", name="two")]
    return model(n, [x("x", [3, 4])], [x("y", [3, 2])], [weight("w", 4, 4), weight("v", 6, 2), const("p", [0, 1, 0, 1])])


def quantised():
    """8 bits: a product between quantisations; one of whole numbers, whose zero point is known only as it runs; a convolution of whole numbers."""
    n = [N("QuantizeLinear", "x s z", "a"), N("DequantizeLinear", "a s z", "b"), N("DequantizeLinear", "w ws wz", "v", axis=1), N("MatMul", "b v", "c"),
         N("DynamicQuantizeLinear", "c", "q qs qz"), N("MatMulInteger", "q u qz", "i"), N("Cast", "i", "f", to=1), N("Mul", "f qs", "g"),
         N("Reshape", "q to", "im"), N("ConvInteger", "im k qz", "y", pads=[1, 1, 1, 1])]
    i = [const("s", 0.05, np.float32), const("z", 128, np.uint8), numpy_helper.from_array(np.ones((64, 64), np.int8), "w"), const("ws", [0.01] * 64, np.float32), const("wz", [0] * 64, np.int8),
         numpy_helper.from_array(np.ones((64, 32), np.int8), "u"), const("to", [1, 16, 8, 16]), numpy_helper.from_array(np.ones((8, 16, 3, 3), np.int8), "k")]
    return model(n, [x("x", [32, 64])], [x("g", [32, 32]), x("y", [1, 8, 8, 16], T.INT32)], i)


def attention_bare():
    """Attention of inputs alone: queries, keys and values are data."""
    n = [N("Transpose", "k", "kt", perm=[0, 1, 3, 2]), N("MatMul", "q kt", "s"), N("Softmax", "s", "p", axis=-1), N("MatMul", "p v", "y")]
    return model(n, [x(i, [1, 2, 16, 8]) for i in "qkv"], [x("y", [1, 2, 16, 8])], opset=17)


def attention_flat():
    """The same of matrices, scaled: only the softmax between the products tells that keys and values are data."""
    n = [N("Transpose", "k", "kt", perm=[1, 0]), N("MatMul", "q kt", "s"), h.make_node("Constant", [], ["c"], value_float=0.5), N("Mul", "s c", "t"),
         N("Softmax", "t", "p", axis=-1), N("MatMul", "p v", "a"), N("MatMul", "a w", "y")]
    return model(n, [x(i, [16, 8]) for i in "qkv"] + [x("w", [8, 4])], [x("y", [16, 4])], opset=17)


def shared_weights():
    """One weight read three times as it is, and turned three times by operators of their own; a GRU, which reads parts of its weights in each step."""
    n = [N("MatMul", "x w", "a"), N("MatMul", "a w", "b"), N("MatMul", "b w", "c")]
    for i, (f, t) in enumerate(("cd", "de", "ef")):
        n += [N("Transpose", "w", "w%d" % i, perm=[1, 0]), N("MatMul", "%s w%d" % (f, i), t)]
    n += [N("GRU", "g gw gr", "gy", hidden_size=4)]
    return model(n, [x("x", [2, 64]), x("g", [6, 1, 4])], [x("f", [2, 64]), x("gy", [6, 1, 1, 4])], [weight("w", 64, 64), weight("gw", 1, 12, 4), weight("gr", 1, 12, 4)], opset=17)


def newer(opset):
    """Operators that a newer opset did not change, and one that is not known here."""
    n = [N("Conv", "x w", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1]), N("NotYet", "c", "d", name="not_yet"), N("Relu", "d", "y"), N("Relu", "c", "z")]
    return model(n, [x("x", [1, 4, 8, 8])], [x("y", [1, 4, 8, 8]), x("z", [1, 4, 8, 8])], [weight("w", 4, 4, 3, 3)], opset, [x("d", [1, 4, 8, 8])])


def newer_25():
    return newer(25)


def newer_99():
    return newer(99)


def types():
    """Weights of 8-bit reals, of four-bit integers and of texts, each with what reads it; what does not is not touched."""
    n = [N("DequantizeLinear", "f8 one", "a"), N("MatMul", "x a", "ya", name="of_f8"), N("DequantizeLinear", "i4 one", "b"), N("MatMul", "x b", "yb", name="of_i4"),
         N("StringNormalizer", "texts", "c", name="of_texts"), N("MatMul", "x w", "y", name="plain"), N("Cast", "x", "q", to=17, name="to_f8"), N("Gather", "f8 rows", "g", name="rows_of_f8")]
    i = [T(name="f8", data_type=17, dims=[8, 8], raw_data=b"\x38" * 64), T(name="i4", data_type=22, dims=[8, 8], raw_data=b"\x11" * 32),
         T(name="texts", data_type=8, dims=[1], string_data=[b"a"]), const("one", 1.0, np.float32), weight("w", 8, 8), const("rows", [1])]
    return model(n, [x("x", [4, 8])], [x("ya", [4, 8]), x("yb", [4, 8]), x("y", [4, 8])], i, opset=23)


def fused():
    """Operators of ONNX Runtime's optimizer that are combinations of standard ones."""
    ms = "com.microsoft"
    n = [N("SkipLayerNormalization", "x s g b", "sl", domain=ms, epsilon=1e-5), h.make_node("SkipSimplifiedLayerNormalization", ["x", "s", "g"], ["sr", "", "", "sum"], domain=ms),
         N("SimplifiedLayerNormalization", "x g", "rn", epsilon=1e-5), N("BiasGelu", "x b", "bg", domain=ms), N("FastGelu", "x b", "fg", domain=ms), N("QuickGelu", "x", "qg", domain=ms),
         N("FusedMatMul", "x w", "fm", domain=ms, transB=1, alpha=0.5), h.make_node("FusedConv", ["im", "k", "kb"], ["fc"], domain=ms, activation="Relu", kernel_shape=[3, 3]),
         h.make_node("MultiHeadAttention", ["x", "x", "x"], ["mh"], domain=ms, num_heads=4), h.make_node("Attention", ["x", "qkv", "qb"], ["at"], domain=ms, num_heads=4, unidirectional=1),
         h.make_node("GroupQueryAttention", ["x", "kv", "kv", "past", "past", "len", "total"], ["gq", "pk", "pv"], domain=ms, num_heads=4, kv_num_heads=2),
         N("RotaryEmbedding", "x at8 cos sin", "ro", domain=ms, num_heads=4), N("QLinearAdd", "u qs qz u qs qz qs qz", "qa", domain=ms),
         N("DynamicQuantizeMatMul", "x w8 qs", "dq", domain=ms), N("EmbedLayerNormalization", "ids ids words places kinds g b", "em mi", domain=ms), N("Nchwc", "x", "no", domain=ms, name="left")]
    i = [hollow("g", 16), hollow("b", 16), hollow("k", 4, 3, 3, 3), hollow("kb", 4), hollow("qkv", 16, 48), hollow("qb", 48), hollow("cos", 8, 2), hollow("sin", 8, 2),
         const("at8", [[0, 1, 2, 3, 4, 5, 6, 7]]), const("len", [7], np.int32), const("total", 12, np.int32), const("qs", 0.5, np.float32), const("qz", 3, np.uint8),
         numpy_helper.from_array(np.ones((16, 4), np.int8), "w8"), hollow("words", 9, 16), hollow("places", 9, 16), hollow("kinds", 2, 16)]
    ins = [x("x", [1, 8, 16]), x("s", [1, 8, 16]), x("im", [1, 3, 6, 6]), x("kv", [1, 8, 8]), x("past", [1, 2, 4, 4]), x("u", [5], T.UINT8), x("ids", [1, 8], T.INT32), x("w", [12, 16])]
    return model(n, ins, [x(o, None) for o in ("sl", "sr", "sum")], i, 17, domains=[ms])


def fused_few():
    """The same with what few of them have: QGemm's factor, in units of which its third operand counts, too; none of the attributes that have a default."""
    ms = "com.microsoft"
    n = [N("QGemm", "u us uz w ws wz c", "qm", domain=ms, alpha=0.5, transB=1), N("SkipLayerNormalization", "x s g b", "sl", domain=ms), N("SkipSimplifiedLayerNormalization", "x s g", "sr", domain=ms),
         N("QuickGelu", "x", "qg", domain=ms), h.make_node("EmbedLayerNormalization", ["ids", "", "words", "places", "", "g", "b"], ["em"], domain=ms)]
    i = [const("us", 0.5, np.float32), const("uz", 3, np.uint8), const("ws", 0.25, np.float32), const("wz", -2, np.int8), const("c", [8, -16, 100], np.int32),
         const("w", [[1, -2, 3, 4], [5, 6, -7, 8], [-9, 10, 11, 12]], np.int8), hollow("g", 4), hollow("b", 4), hollow("words", 9, 4), hollow("places", 9, 4)]
    return model(n, [x("u", [2, 4], T.UINT8), x("x", [1, 2, 4]), x("s", [1, 2, 4]), x("ids", [1, 8], T.INT32)], [x(o, None) for o in ("qm", "sl", "sr", "qg")], i, 17, domains=[ms])


def combined():
    """Operators that ONNX defines by a function: heads shared by groups, a mask, a past; norms, positions, activations."""
    n = [h.make_node("Attention", ["q", "k", "v", "mask", "pk", "pv"], ["at", "npk", "npv", "qk"], q_num_heads=4, kv_num_heads=2, is_causal=1, softcap=2.0, qk_matmul_output_mode=3),
         N("Attention", "q4 q4 q4", "a4"), N("RMSNormalization", "q g", "rms"), N("RotaryEmbedding", "q cos sin", "ro", num_heads=4), h.make_node("RotaryEmbedding", ["q4", "cos4", "sin4", "steps"], ["r4"], interleaved=1),
         N("Swish", "q", "sw", alpha=1.5), N("ThresholdedRelu", "q", "th")]
    ins = [x("q", [2, 3, 16]), x("k", [2, 3, 8]), x("v", [2, 3, 12]), x("mask", [3, 8]), x("pk", [2, 2, 5, 4]), x("pv", [2, 2, 5, 6]), x("q4", [2, 4, 3, 6]), x("cos", [2, 3, 2]), x("sin", [2, 3, 2]), x("cos4", [9, 3]), x("sin4", [9, 3])]
    i = [hollow("g", 16), const("steps", [[0, 1, 2], [3, 4, 5]])]
    return model(n, ins, [x("at", [2, 3, 24])], i, 24)


def huge(op):
    """Sizes that nobody can have, out of a few bytes."""
    big = 1 << 40
    nodes = {"range": [N("Range", "zero big one", "r")], "fill": [N("ConstantOfShape", "bigs", "r", value=const("", [7]))], "expand": [N("Expand", "ones big1", "r")],
             "tile": [N("Tile", "ones big1", "r")], "pad": [N("Pad", "ones pads", "r")], "onehot": [N("OneHot", "ones big values", "r")]}[op]
    nodes += [N("Cast", "r", "f", to=1), N("Relu", "f", "y")]
    i = [const("zero", 0), const("one", 1), const("big", big), const("bigs", [big]), const("big1", [big]), const("ones", [1]), const("pads", [0, 1 << 39]), const("values", [0, 1])]
    return model(nodes, [], [x("y", None)], i)


def huge_range():
    return huge("range")


def huge_fill():
    return huge("fill")


def huge_expand():
    return huge("expand")


def huge_tile():
    return huge("tile")


def huge_pad():
    return huge("pad")


def huge_onehot():
    return huge("onehot")


def tower():
    """Each function calls the next one twice, 18 times: a quarter of a million nodes out of some hundred bytes."""
    f = []
    for i in range(14):
        body = [N("f%d" % (i + 1), "a", "b", domain="own"), N("f%d" % (i + 1), "b", "c", domain="own")] * 1 if i < 13 else [N("Relu", "a", "b")] + [N("Relu", "b", "b%d" % k) for k in range(40)] + [N("Relu", "b", "c")]
        f.append(h.make_function("own", "f%d" % i, ["a"], ["c"], body, [h.make_opsetid("", 17), h.make_opsetid("own", 1)]))
    return model([N("f0", "x", "y", domain="own")], [x("x", [4])], [x("y", [4])], (), 17, functions=f, domains=["own"])


def long_sums():
    """Each of many sums reads all of a constant that is kept."""
    n = [N("ReduceSum", "c", "s%d" % i, keepdims=0) for i in range(4000)] + [N("Cast", "s3999", "f", to=1), N("Add", "x f", "y")]
    c = T(name="one", data_type=T.INT64, dims=[1], raw_data=b"\1" + b"\0" * 7)
    return model([N("Expand", "one to", "c")] + n, [x("x", [4])], [x("y", [4])], [c, const("to", [65536])])


def attributes():
    """One that ONNX does not define; ones whose value is none of those it may have; kernels that differ from the weight; the rest is read."""
    n = [N("Relu", "x", "r", colour=3), N("Conv", "x w", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1], cudnn_algo=1), N("DepthToSpace", "c", "d", name="d2s", blocksize=2, mode="XYZ"),
         N("QuantizeLinear", "x s", "q", output_dtype=T.INT8), N("Cast", "x", "k", to=T.FLOAT16), N("DequantizeLinear", "q hs", "dq", output_dtype=T.FLOAT16)]
    return model(n, [x("x", [1, 4, 8, 8])], [x("r", [1, 4, 8, 8]), x("q", [1, 4, 8, 8], T.INT8), x("dq", [1, 4, 8, 8], T.FLOAT16)],
                 [weight("w", 4, 4, 3, 3), const("s", 0.1, np.float32), const("hs", 0.1, np.float32)], opset=23)


def kernel_misfit():
    return model([N("Conv", "x w", "y", kernel_shape=[5, 5])], [x("x", [1, 4, 8, 8])], [x("y", None)], [weight("w", 4, 4, 3, 3)])


def cells():
    """Recurrent layers with activations of their own, as they are by default, and in other letters."""
    n = [N("LSTM", "x w r", "a", hidden_size=4, activations=["Relu", "Tanh", "Tanh"], name="own"), N("LSTM", "x w r", "b", hidden_size=4, activations=["Sigmoid", "Tanh", "Tanh"]),
         N("LSTM", "x w r", "c", hidden_size=4, activations=["sigmoid", "tanh", "TANH"])]
    return model(n, [x("x", [3, 2, 4])], [x(o, [3, 1, 2, 4]) for o in "abc"], [weight("w", 1, 16, 4), weight("r", 1, 16, 4)])


def time_first():
    """[time, batch, ...] through a projection to a recurrent layer: the batch is the second dimension, also of the state."""
    n = [N("MatMul", "x p", "e"), N("LSTM", "e w r  h c", "o ho co", hidden_size=8), N("Squeeze", "o ax", "y")]
    n[1] = h.make_node("LSTM", ["e", "w", "r", "", "", "h", "c"], ["o"], hidden_size=8)
    i = [weight("p", 6, 5), weight("w", 1, 32, 5), weight("r", 1, 32, 8), const("ax", [1])]
    return model(n, [x("x", [20, 3, 6]), x("h", [1, 3, 8]), x("c", [1, 3, 8])], [x("y", [20, 3, 8])], i)


def turned():
    """Three dimensions that change places in both circles before a recurrent layer: its batch of 4 is the first dimension of one input and the last of the other."""
    n = [N("Transpose", "a", "ta", perm=[2, 0, 1]), N("LSTM", "ta w r", "ya", hidden_size=8), N("Transpose", "b", "tb", perm=[1, 2, 0]), N("LSTM", "tb w r", "yb", hidden_size=8)]
    return model(n, [x("a", [4, 6, 20]), x("b", [6, 20, 4])], [x("ya", [20, 1, 4, 8]), x("yb", [20, 1, 4, 8])], [weight("w", 1, 32, 6), weight("r", 1, 32, 8)])


def resized():
    """By 0.6 and 1.2: positions are divided by these, not by the ratio of the extents (2 to 4, 3 to 3); sizes that keep the ratio of the sides."""
    n = [h.make_node("Resize", ["x", "", "s"], ["a"], mode="linear"),
         h.make_node("Resize", ["x", "", "", "to"], ["b"], mode="nearest", keep_aspect_ratio_policy="not_larger", axes=[2, 3])]
    return model(n, [x("x", [1, 1, 3, 4])], [x("a", [1, 1, 3, 2]), x("b", [1, 1, 4, 5])], [const("s", [1, 1, 1.2, 0.6], np.float32), const("to", [4, 6])], opset=19)


def smooth():
    """Resizing to less with antialias."""
    n = [h.make_node("Resize", ["x", "", "s"], ["y"], mode="linear", antialias=1, name="smooth")]
    return model(n, [x("x", [1, 1, 3, 4])], [x("y", [1, 1, 3, 2])], [const("s", [1, 1, 1, 0.5], np.float32)], opset=19)


def clipped():
    """Integers without limits stay what they are; a lower bound above the upper one loses."""
    n = [N("Clip", "x", "a"), N("Clip", "x low", "b"), N("Clip", "f two one", "c")]
    return model(n, [x("x", [5], T.INT8), x("f", [5])], [x("a", [5], T.INT8), x("b", [5], T.INT8), x("c", [5])],
                 [const("low", -3, np.int8), const("two", 2, np.float32), const("one", 1, np.float32)])


CASES = [whole, stripped, float_input, no_heads, fill, hollows, baked, baked_deep, constants, if_known, if_data, loop_known, loop_data, loop_limit, sizes, function, defaults, endless, unsorted, cycle, twice,
         nowhere, misfit, opaque, dynamic, external_weight, external_shape, external_outside, unnamed, negative, overflow, overflow_inside, short_content,
         old, named_batch, recurrent, older_forms, sequence, no_gradient, unknown_behind, known_behind, quantised, attention_bare, attention_flat, shared_weights,
         newer_25, newer_99, types, fused, fused_few, combined, huge_range, huge_fill, huge_expand, huge_tile, huge_pad, huge_onehot, tower, long_sums, attributes, kernel_misfit, cells,
         time_first, turned, resized, smooth, clipped]

if __name__ == "__main__":
    to = sys.argv[1] if len(sys.argv) > 1 else HERE
    for c in CASES:
        with open(os.path.join(to, c.__name__ + ".onnx"), "wb") as f:
            f.write(c().SerializeToString(deterministic=True))

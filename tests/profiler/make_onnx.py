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


CASES = [whole, stripped, float_input, no_heads, fill, hollows, baked, baked_deep, constants, if_known, if_data, loop_known, loop_data, loop_limit, sizes, function, defaults, endless, unsorted, cycle, twice,
         nowhere, misfit, opaque, dynamic, external_weight, external_shape, external_outside, unnamed, negative, overflow, overflow_inside, short_content,
         old, named_batch, recurrent, older_forms, sequence, no_gradient, unknown_behind, known_behind, quantised]

if __name__ == "__main__":
    to = sys.argv[1] if len(sys.argv) > 1 else HERE
    for c in CASES:
        with open(os.path.join(to, c.__name__ + ".onnx"), "wb") as f:
            f.write(c().SerializeToString(deterministic=True))

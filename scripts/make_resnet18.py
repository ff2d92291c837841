#!/usr/bin/env python3
"""make_resnet18.py OUT.onnx -- ResNet-18 (He et al., 2015) for images of 224 x 224 as an ONNX file without weights.

The weights are inputs of the graph, so the file has 20 kB instead of 45 MB: times depend on shapes, not on weights. Needs python3-onnx."""
import sys

import onnx
from onnx import TensorProto, helper

nodes, inputs = [], []


def weight(name, *shape):
    inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
    return name


def add(op, name, ins, **attr):
    nodes.append(helper.make_node(op, ins, [name], name=name, **attr))
    return name


def conv(name, x, cin, cout, k, stride):
    """Convolution and batch normalisation, as torchvision places them."""
    x = add("Conv", name, [x, weight(name + ".weight", cout, cin, k, k)], kernel_shape=[k, k], strides=[stride] * 2, pads=[k // 2] * 4)
    return add("BatchNormalization", name + ".bn", [x] + [weight("%s.bn.%s" % (name, p), cout) for p in ("scale", "bias", "mean", "var")])


def block(name, x, cin, cout, stride):
    y = add("Relu", name + ".relu1", [conv(name + ".conv1", x, cin, cout, 3, stride)])
    y = conv(name + ".conv2", y, cout, cout, 3, 1)
    if cin != cout:
        x = conv(name + ".downsample", x, cin, cout, 1, stride)
    return add("Relu", name + ".relu2", [add("Add", name + ".add", [y, x])])


def main():
    inputs.append(helper.make_tensor_value_info("image", TensorProto.FLOAT, (1, 3, 224, 224)))
    x = add("Relu", "relu", [conv("conv1", "image", 3, 64, 7, 2)])
    x = add("MaxPool", "maxpool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    cin = 64
    for i, cout in enumerate((64, 128, 256, 512)):
        for j in range(2):
            x = block("layer%d.%d" % (i + 1, j), x, cin, cout, 2 if i and not j else 1)
            cin = cout
    x = add("Flatten", "flatten", [add("GlobalAveragePool", "avgpool", [x])])
    add("Gemm", "logits", [x, weight("fc.weight", 1000, 512), weight("fc.bias", 1000)], transB=1)
    out = helper.make_tensor_value_info("logits", TensorProto.FLOAT, (1, 1000))
    model = helper.make_model(helper.make_graph(nodes, "resnet18", inputs, [out]), opset_imports=[helper.make_opsetid("", 13)], producer_name="cdmpp")
    model.ir_version = 7
    onnx.checker.check_model(model)
    onnx.save(model, sys.argv[1])


main()

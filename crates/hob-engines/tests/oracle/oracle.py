"""Runs the published Kokoro in ONNX Runtime: all of it in floats, and with its int8 vocoder.

    oracle.py MODEL VOCABULARY VOICES OUT   then lines of "case<TAB>voice<TAB>phonemes" on stdin

For each case writes OUT/float-case/*.f32 and OUT/int8-case/*.f32 (little-endian): the cut tensors
and the samples. The text's part (nodes below /encoder/) is in floats in both, so that both
vocoders get the same contours; in the second the vocoder is as published.
"""

import json
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

GENERATOR = "/decoder/decoder/generator/"
TENSORS = {
    "features": "/encoder/MatMul_1_output_0",
    "pitch": "/encoder/Reshape_output_0",
    "energy": "/encoder/Reshape_1_output_0",
    "durations": "/encoder/Clip_output_0",
    "phases": GENERATOR + "m_source/l_sin_gen/Mul_4_output_0",
}


def as_floats(model, below):
    """The same weights without dynamic quantisation, in all nodes whose name begins with `below`."""
    graph = model.graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    producer = {output: node for node in graph.node for output in node.output}
    readers = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)

    def published_bias(name):
        while producer[name].op_type != "Div":
            inputs = [i for i in producer[name].input if i in producer]
            name = inputs[0]
        return numpy_helper.to_array(weights[producer[name].input[0]])

    def weight(name, scale, zero, shape):
        values = [numpy_helper.to_array(weights[n]).astype(np.float32) for n in (name, scale, zero)]
        return (values[0] - values[2].reshape(shape)) * values[1].reshape(shape)

    def as_lstm(node):
        """Quantised LSTMs have one scale a direction, and the gates last."""
        inputs = list(node.input)
        for at, scale, zero in ((1, 8, 9), (2, 10, 11)):
            name = inputs[at] + "/float"
            values = weight(inputs[at], inputs[scale], inputs[zero], (-1, 1, 1)).transpose(0, 2, 1)
            graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
            inputs[at] = name
        floating = helper.make_node("LSTM", inputs[:7], list(node.output), name=node.name)
        floating.attribute.extend(node.attribute)
        return floating

    scaled = {}
    for node in graph.node:
        if not node.name.startswith(below):
            continue
        if node.op_type in ("MatMulInteger", "ConvInteger"):
            after, bias = readers[node.output[0]][0], None
            if after.op_type == "Add":
                bias = [name for name in after.input if name != node.output[0]][0]
                after = readers[after.output[0]][0]
            multiply = readers[after.output[0]][0]
            scaled[multiply.name] = (node, after, multiply, bias)

    nodes = []
    for node in graph.node:
        if node.op_type == "DynamicQuantizeLSTM" and node.name.startswith(below):
            nodes.append(as_lstm(node))
            continue
        if node.name not in scaled:
            nodes.append(node)
            continue
        integer, cast, multiply, bias = scaled[node.name]
        quantised = producer[integer.input[0]]
        scales = producer[[name for name in multiply.input if name != cast.output[0]][0]]
        scale = [name for name in scales.input if name != quantised.output[1]][0]
        name = integer.input[1] + "/float"
        if integer.input[1] not in weights:
            name = producer[integer.input[1]].input[0]
        elif name not in weights:
            values = weight(integer.input[1], scale, integer.input[3], -1)
            graph.initializer.append(numpy_helper.from_array(values, name))
            weights[name] = graph.initializer[-1]
        output = multiply.output[0]
        product = output if bias is None else output + "/product"
        op_type = integer.op_type.removesuffix("Integer")
        floating = helper.make_node(op_type, [quantised.input[0], name], [product], name=product)
        floating.attribute.extend(integer.attribute)
        nodes.append(floating)
        if bias is not None:
            values = published_bias(bias).astype(np.float32)
            values = values.reshape(1, -1, 1) if op_type == "Conv" else values
            graph.initializer.append(numpy_helper.from_array(values, output + "/bias"))
            nodes.append(helper.make_node("Add", [product, output + "/bias"], [output]))
    del graph.node[:]
    graph.node.extend(nodes)
    return model


def session(model):
    for name in TENSORS.values():
        model.graph.output.append(onnx.ValueInfoProto(name=name))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # Another test computes at the same time.
    options.log_severity_level = 3  # The integer weights that floats replaced are not worth a line each.
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def main(model, vocabulary, voices, out):
    vocabulary = json.load(open(vocabulary))["vocab"]
    sessions = {
        "int8": session(as_floats(onnx.load(model), below="/encoder/")),
        "float": session(as_floats(onnx.load(model), below="/")),
    }
    for line in sys.stdin:
        case, voice, phonemes = line.rstrip("\n").split("\t")
        ids = [vocabulary[symbol] for symbol in phonemes]
        styles = np.fromfile(f"{voices}/{voice}.bin", "<f4").reshape(510, 256)
        feeds = {
            "tokens": np.array([[0, *ids, 0]], np.int64),
            "style": styles[len(ids) - 1 : len(ids)],
            "speed": np.ones(1, np.float32),
        }
        for kind, running in sessions.items():
            folder = f"{out}/{kind}-{case}"
            os.makedirs(folder, exist_ok=True)
            values = running.run(["audio", *TENSORS.values()], feeds)
            for name, value in zip(["audio", *TENSORS], values):
                value.astype("<f4").tofile(f"{folder}/{name}.f32")


main(*sys.argv[1:])

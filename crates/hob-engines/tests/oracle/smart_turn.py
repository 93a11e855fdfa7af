"""Runs the published Smart Turn in ONNX Runtime, without the rounding of its values and with it.

    smart_turn.py MODEL   then paths of files with samples (16 kHz, little-endian f32) on stdin

Prints both probabilities, one sound a line, and writes the features of PATH.f32 to PATH.features, which numpy
computes. They are those of Hugging Face's WhisperFeatureExtractor(chunk_length=8) with do_normalize, for the last 8 s with zeros in front.
"""

import os
import sys

import numpy as np
import onnx
import onnxruntime

SAMPLES, FRAME, HOP, BANDS = 128_000, 400, 160, 80


def mel_filters():
    """Triangles of area 1 between points that are equally far on Slaney's mel scale."""

    def hertz(mel):
        return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))

    points = hertz(np.linspace(0, 15 + np.log(8) / (np.log(6.4) / 27), BANDS + 2))
    frequencies = np.linspace(0, 8000, FRAME // 2 + 1)
    rows = []
    for low, peak, high in zip(points, points[1:], points[2:]):
        rise, fall = (frequencies - low) / (peak - low), (high - frequencies) / (high - peak)
        rows.append(np.maximum(0, np.minimum(rise, fall)) * 2 / (high - low))
    return np.array(rows)


def features(sound, filters):
    sound = sound[-SAMPLES:]
    sound = np.concatenate([np.zeros(SAMPLES - len(sound), np.float32), sound])
    sound = (sound - sound.mean()) / np.sqrt(sound.var() + 1e-7)
    padded = np.pad(sound.astype(np.float64), FRAME // 2, mode="reflect")
    window = np.hanning(FRAME + 1)[:-1]
    frames = [padded[at : at + FRAME] * window for at in range(0, SAMPLES, HOP)]
    mel = np.log10(np.maximum(1e-10, filters @ np.abs(np.fft.rfft(frames)).T ** 2))
    return ((np.maximum(mel, mel.max() - 8) + 4) / 4).astype(np.float32)


def as_floats(model):
    """The same graph without QuantizeLinear, and without the DequantizeLinear that follows."""
    graph = model.graph
    exact = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "QuantizeLinear"}
    nodes, values = [], {}
    for node in graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in exact:
            values[node.output[0]] = exact[node.input[0]]
        elif node.op_type != "QuantizeLinear":
            nodes.append(node)
    for node in nodes:
        node.input[:] = [values.get(name, name) for name in node.input]
    del graph.node[:]
    graph.node.extend(nodes)
    return model


def session(model, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = 1  # Another test computes at the same time.
    options.log_severity_level = 3  # The scales that nothing reads any more are not worth a line each.
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def main(model):
    level = onnxruntime.GraphOptimizationLevel
    sessions = [
        session(as_floats(onnx.load(model)), level.ORT_DISABLE_ALL),
        session(onnx.load(model), level.ORT_ENABLE_ALL),
    ]
    filters = mel_filters()
    for line in sys.stdin:
        path = line.rstrip("\n")
        mel = features(np.fromfile(path, "<f4"), filters)
        mel.tofile(os.path.splitext(path)[0] + ".features")
        feeds = {"input_features": mel[None]}
        print(*(running.run(None, feeds)[0].item() for running in sessions))


main(*sys.argv[1:])

"""Speech service on ONNX Runtime: text encoder, a few solver steps of a flow decoder, waveform synthesis."""
import json
import os
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

VOCAB = 96
DIM = 192
BANDS = 80
BLOCKS = 4
SOLVER_STEPS = 4
REQUESTS = 320
HOP = 128


class GraphWriter:
    """Small helper around onnx.helper for graphs with one batch and a free time axis."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], [], 0

    def weight(self, shape, scale=None):
        self.count += 1
        name = f"w{self.count}"
        scale = scale or 1.0 / np.sqrt(np.prod(shape[1:]) if len(shape) > 2 else shape[0])
        value = (self.rng.normal(size=shape) * scale).astype(np.float32)
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def op(self, kind, inputs, **attributes):
        self.count += 1
        out = f"t{self.count}"
        self.nodes.append(helper.make_node(kind, inputs, [out], **attributes))
        return out

    def block(self, x):
        wide = self.op("MatMul", [x, self.weight((DIM, 4 * DIM))])
        gate = self.op("Sigmoid", [wide])
        wide = self.op("Mul", [wide, gate])
        narrow = self.op("MatMul", [wide, self.weight((4 * DIM, DIM))])
        x = self.op("Add", [x, narrow])
        turned = self.op("Transpose", [x], perm=[0, 2, 1])
        mixed = self.op("Conv", [turned, self.weight((DIM, DIM, 5))], pads=[2, 2], kernel_shape=[5])
        back = self.op("Transpose", [self.op("Tanh", [mixed])], perm=[0, 2, 1])
        return self.op("Add", [x, back])

    def save(self, path, inputs, result, width):
        self.nodes.append(helper.make_node("Identity", [result], ["out"]))
        out = helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, "time", width])
        graph = helper.make_graph(self.nodes, "net", inputs, [out], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        onnx.checker.check_model(model)
        onnx.save(model, path)


def write_encoder(path):
    g = GraphWriter(1)
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "time"])
    x = g.op("Gather", [g.weight((VOCAB, DIM), 1.0), "ids"])
    for _ in range(2):
        x = g.block(x)
    g.save(path, [ids], x, DIM)


def write_decoder(path):
    g = GraphWriter(2)
    frames = helper.make_tensor_value_info("frames", TensorProto.FLOAT, [1, "time", BANDS])
    text = helper.make_tensor_value_info("text", TensorProto.FLOAT, [1, "time", DIM])
    clock = helper.make_tensor_value_info("clock", TensorProto.FLOAT, [1, 1, 1])
    x = g.op("MatMul", ["frames", g.weight((BANDS, DIM))])
    x = g.op("Add", [x, "text"])
    x = g.op("Add", [x, g.op("Mul", ["clock", g.weight((1, 1, DIM), 0.5)])])
    for _ in range(BLOCKS):
        x = g.block(x)
    g.save(path, [frames, text, clock], g.op("MatMul", [x, g.weight((DIM, BANDS))]), BANDS)


def open_session(path):
    options = ort.SessionOptions()
    options.inter_op_num_threads = 1
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


class Voice:
    def __init__(self, folder):
        paths = [os.path.join(folder, name) for name in ("encoder.onnx", "decoder.onnx")]
        write_encoder(paths[0])
        write_decoder(paths[1])
        self.encoder, self.decoder = (open_session(path) for path in paths)
        self.noise = np.random.default_rng(7)
        turns = np.arange(HOP) / HOP
        pitch = np.linspace(1, HOP // 2 - 1, BANDS)[:, None]
        self.basis = np.sin(2 * np.pi * pitch * turns).astype(np.float32) / BANDS

    def encode(self, text):
        ids = np.array([[ord(c) % VOCAB for c in text]], dtype=np.int64)
        hidden = self.encoder.run(None, {"ids": ids})[0]
        return np.repeat(hidden, 4, axis=1)

    def sample(self, text):
        frames = self.noise.normal(size=(1, text.shape[1], BANDS)).astype(np.float32)
        times = np.linspace(0.0, 1.0, SOLVER_STEPS + 1, dtype=np.float32)
        for now, then in zip(times[:-1], times[1:]):
            clock = np.full((1, 1, 1), now, dtype=np.float32)
            flow = self.decoder.run(None, {"frames": frames, "text": text, "clock": clock})[0]
            frames = frames + (then - now) * np.clip(flow, -4.0, 4.0)
        return frames[0]

    def speak(self, sentence):
        frames = self.sample(self.encode(sentence))
        wave = (frames @ self.basis).reshape(-1)
        peak = float(np.abs(wave).max()) or 1.0
        return (wave / peak * 32000).astype(np.int16)


def sentences(rng, count):
    words = "the river keeps its slow course while lanterns drift under bridge and harbour wind".split()
    return [" ".join(rng.choice(words, size=rng.integers(18, 26))) for _ in range(count)]


def main():
    begin = time.perf_counter()
    texts = sentences(np.random.default_rng(21), REQUESTS + 4)
    with tempfile.TemporaryDirectory() as folder:
        voice = Voice(folder)
        for text in texts[:4]:
            voice.speak(text)
        samples, waits = 0, []
        start = time.perf_counter()
        for text in texts[4:]:
            mark = time.perf_counter()
            samples += len(voice.speak(text))
            waits.append(time.perf_counter() - mark)
        seconds = time.perf_counter() - start
    print(f"{samples} samples, median wait {np.median(waits) * 1000:.1f} ms, "
          f"p95 {np.percentile(waits, 95) * 1000:.1f} ms")
    print(json.dumps({"units": REQUESTS, "seconds": round(seconds, 3),
                      "wall": round(time.perf_counter() - begin, 3)}))


if __name__ == "__main__":
    main()

"""Photo search service: an ONNX Runtime image encoder behind a small request queue."""
import collections
import json
import os
import queue
import tempfile
import threading
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

SIZE = 128
EMBED = 128
STAGES = ((16, 1, 1), (24, 2, 2), (40, 3, 2), (80, 3, 2))
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)
BUCKETS = (1, 2, 4)


class Exporter:
    """Writes the encoder as ONNX, one residual stage after another."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], [], 0

    def name(self, kind):
        self.count += 1
        return f"{kind}_{self.count}"

    def weight(self, array, kind):
        name = self.name(kind)
        self.weights.append(numpy_helper.from_array(np.asarray(array, np.float32), name))
        return name

    def node(self, op, inputs, **attributes):
        out = self.name(op.lower())
        self.nodes.append(helper.make_node(op, inputs, [out], name=f"/{out}", **attributes))
        return out

    def conv_bn(self, x, cin, cout, kernel, stride, relu=True, group=1):
        scale = np.sqrt(2.0 / (cin // group * kernel * kernel))
        w = self.weight(self.rng.normal(0, scale, (cout, cin // group, kernel, kernel)), "conv.weight")
        pad = kernel // 2
        x = self.node("Conv", [x, w], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=group)
        gamma = self.weight(self.rng.uniform(0.8, 1.2, cout), "bn.weight")
        beta = self.weight(self.rng.normal(0, 0.1, cout), "bn.bias")
        mean = self.weight(self.rng.normal(0, 0.1, cout), "bn.mean")
        var = self.weight(self.rng.uniform(0.5, 1.5, cout), "bn.var")
        x = self.node("BatchNormalization", [x, gamma, beta, mean, var], epsilon=1e-5)
        return self.node("Relu", [x]) if relu else x

    def inverted_residual(self, x, cin, cout, stride, expand=4):
        wide = cin * expand
        y = self.conv_bn(x, cin, wide, 1, 1)
        y = self.conv_bn(y, wide, wide, 3, stride, group=wide)
        y = self.conv_bn(y, wide, cout, 1, 1, relu=False)
        return self.node("Add", [x, y]) if cin == cout and stride == 1 else y

    def save(self, path):
        x, channels = self.conv_bn("pixels", 3, 16, 3, 2), 16
        for width, depth, stride in STAGES:
            for i in range(depth):
                x = self.inverted_residual(x, channels, width, stride if i == 0 else 1)
                channels = width
        x = self.node("Flatten", [self.node("GlobalAveragePool", [x])])
        proj = self.weight(self.rng.normal(0, channels ** -0.5, (EMBED, channels)), "proj.weight")
        bias = self.weight(np.zeros(EMBED), "proj.bias")
        self.nodes.append(helper.make_node("Gemm", [x, proj, bias], ["embedding"], transB=1))
        inputs = [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["batch", 3, SIZE, SIZE])]
        outputs = [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", EMBED])]
        graph = helper.make_graph(self.nodes, "encoder", inputs, outputs, initializer=self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
        onnx.checker.check_model(model)
        onnx.save(model, path)


def open_session(path):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def make_photos(count=64, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 256, (SIZE + 8, SIZE + 8, 3), dtype=np.uint8) for _ in range(count)]


def preprocess(photo):
    crop = photo[4:4 + SIZE, 4:4 + SIZE].astype(np.float32) / 255.0
    return ((crop - MEAN) / STD).transpose(2, 0, 1)


class Index:
    """Brute-force cosine search over the reference photos."""

    def __init__(self, capacity=256, seed=2):
        self.vectors = np.random.default_rng(seed).normal(size=(capacity, EMBED)).astype(np.float32)
        self.vectors /= np.linalg.norm(self.vectors, axis=1, keepdims=True)

    def search(self, vector, k=5):
        scores = self.vectors @ vector
        best = np.argpartition(-scores, k)[:k]
        return best[np.argsort(-scores[best])]


def client(photos, count, inbox):
    rng = np.random.default_rng(3)
    sent = 0
    while sent < count:
        size = min(int(rng.choice(BUCKETS)), count - sent)
        inbox.put([preprocess(photos[(sent + i) % len(photos)]) for i in range(size)])
        sent += size
    inbox.put(None)


def normalise(x):
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-6)


def serve(session, index, photos, count):
    for size in BUCKETS:
        session.run(["embedding"], {"pixels": np.zeros((size, 3, SIZE, SIZE), np.float32)})
    inbox = queue.Queue(maxsize=8)
    thread = threading.Thread(target=client, args=(photos, count, inbox), daemon=True)
    started = time.perf_counter()
    thread.start()
    hits, done, latency = collections.Counter(), 0, collections.deque(maxlen=500)
    while (batch := inbox.get()) is not None:
        t0 = time.perf_counter()
        vectors = normalise(session.run(["embedding"], {"pixels": np.stack(batch)})[0])
        for vector in vectors:
            hits.update(int(i) for i in index.search(vector))
        latency.append(time.perf_counter() - t0)
        done += len(batch)
        if done % 1000 < len(batch):
            print(f"{done} photos, p50 {np.percentile(latency, 50) * 1e3:.1f} ms, p95 {np.percentile(latency, 95) * 1e3:.1f} ms")
    thread.join()
    return done, time.perf_counter() - started, hits


def main(count=14000):
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "encoder.onnx")
        Exporter().save(path)
        session = open_session(path)
        units, seconds, hits = serve(session, Index(), make_photos(), count)
    print("most returned:", hits.most_common(3))
    print(json.dumps({"units": units, "seconds": round(seconds, 4), "wall": round(time.perf_counter() - begun, 3)}))


if __name__ == "__main__":
    main()

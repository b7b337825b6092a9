"""Serve a small land-cover segmentation network with ONNX Runtime."""
import argparse
import collections
import os
import tempfile
import threading
import time

T0 = time.perf_counter()

import cv2
import numpy as np
import onnxruntime as ort
from onnx import TensorProto, checker, helper, numpy_helper, save

CLASSES = 5
MEAN = np.array([0.42, 0.45, 0.40], np.float32)
STD = np.array([0.21, 0.20, 0.22], np.float32)


def export_model(path, width=24, seed=0):
    rng = np.random.default_rng(seed)
    nodes, weights = [], []

    def conv(src, dst, cin, cout, k):
        w = rng.standard_normal((cout, cin, k, k)) / np.sqrt(cin * k * k)
        weights.append(numpy_helper.from_array(w.astype(np.float32), dst + ".w"))
        weights.append(numpy_helper.from_array(np.zeros(cout, np.float32), dst + ".b"))
        nodes.append(helper.make_node("Conv", [src, dst + ".w", dst + ".b"], [dst],
                                      kernel_shape=[k, k], pads=[k // 2] * 4))

    conv("image", "stem", 3, width, 3)
    nodes.append(helper.make_node("Relu", ["stem"], ["x0"]))
    for i in range(3):
        conv(f"x{i}", f"c{i}", width, width, 1)
        nodes.append(helper.make_node("HardSigmoid", [f"c{i}"], [f"g{i}"], alpha=0.1667, beta=0.5))
        nodes.append(helper.make_node("Mul", [f"c{i}", f"g{i}"], [f"s{i}"]))
        nodes.append(helper.make_node("Add", [f"s{i}", f"x{i}"], [f"x{i + 1}"]))
    conv("x3", "head", width, CLASSES, 1)
    nodes.append(helper.make_node("Softmax", ["head"], ["probs"], axis=1))
    graph = helper.make_graph(
        nodes, "cover",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, "h", "w"])],
        [helper.make_tensor_value_info("probs", TensorProto.FLOAT, ["n", CLASSES, "h", "w"])],
        weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    checker.check_model(model)
    save(model, path)


def make_tiles(count, seed=1):
    rng = np.random.default_rng(seed)
    sizes = [(400, 400), (400, 480), (480, 480)]
    tiles = []
    for i in range(count):
        h, w = sizes[i % len(sizes)]
        low = rng.integers(0, 255, (h // 20, w // 20, 3), dtype=np.uint8)
        img = cv2.resize(low, (w, h), interpolation=cv2.INTER_CUBIC)
        tiles.append(cv2.imencode(".jpg", img, [cv2.IMWRITE_JPEG_QUALITY, 90])[1].tobytes())
    return tiles


def open_session(path):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads = 2
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def preprocess(blob):
    img = cv2.imdecode(np.frombuffer(blob, np.uint8), cv2.IMREAD_COLOR)
    img = cv2.cvtColor(img, cv2.COLOR_BGR2RGB).astype(np.float32) / 255.0
    img = (img - MEAN) / STD
    return np.ascontiguousarray(img.transpose(2, 0, 1)[None])


def postprocess(probs):
    labels = probs[0].argmax(0).astype(np.uint8)
    share = np.bincount(labels.ravel(), minlength=CLASSES) / labels.size
    return {"labels": cv2.imencode(".png", labels, [cv2.IMWRITE_PNG_COMPRESSION, 1])[1].tobytes(),
            "share": share.round(4).tolist()}


class Health(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.beats = 0
        self.stop = threading.Event()

    def run(self):
        while not self.stop.wait(0.25):
            self.beats += 1


class Service:
    def __init__(self, session):
        self.session = session
        self.input = session.get_inputs()[0].name
        self.output = session.get_outputs()[0].name
        self.recent = collections.deque(maxlen=256)
        self.lock = threading.Lock()

    def handle(self, blob):
        start = time.perf_counter()
        feed = {self.input: preprocess(blob)}
        probs = self.session.run([self.output], feed)[0]
        answer = postprocess(probs)
        with self.lock:
            self.recent.append(time.perf_counter() - start)
        return answer

    def latency(self):
        ordered = sorted(self.recent)
        return ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--requests", type=int, default=280)
    args = ap.parse_args()
    cv2.setNumThreads(1)
    with tempfile.TemporaryDirectory(prefix="cover_") as folder:
        path = os.path.join(folder, "cover.onnx")
        export_model(path)
        service = Service(open_session(path))
    tiles = make_tiles(24)
    health = Health()
    health.start()
    for blob in tiles[:3]:
        service.handle(blob)

    rng = np.random.default_rng(5)
    totals = np.zeros(CLASSES)
    start = time.perf_counter()
    for i in range(args.requests):
        answer = service.handle(tiles[rng.integers(len(tiles))])
        totals += answer["share"]
        if (i + 1) % 50 == 0:
            p50, p95 = service.latency()
            print(f"{i + 1} requests p50 {p50 * 1e3:.1f} ms p95 {p95 * 1e3:.1f} ms")
    elapsed = time.perf_counter() - start
    health.stop.set()
    health.join()
    print("mean cover", (totals / args.requests).round(3).tolist())
    print(f"steps={args.requests} s_per_step={elapsed / args.requests:.4f} wall={time.perf_counter() - T0:.1f}")


if __name__ == "__main__":
    main()

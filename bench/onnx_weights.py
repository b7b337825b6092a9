"""What do weights that are inputs of the graph too cost in ONNX Runtime? The ground of GRF025.

Each model runs with its weights as constants and with them among the graph's inputs, in turn, on one thread; medians of
the CPU time of a run go to docs/benchmarks/onnx-weights.md.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "onnx-weights.md"
BEGIN, END = "<!-- table -->", "<!-- end -->"
RUNS, WARM = 60, 5
RNG = np.random.default_rng(0)

Model = tuple[list[onnx.NodeProto], list[onnx.TensorProto], str, tuple[int, ...]]
"""Nodes, weights, name of the output, shape of the input."""


def convolutions(channels: int, layers: int, size: int, *, normalized: bool) -> Model:
    """Convolutions of 3 by 3 on one image, each with a normalization if wanted, and a Relu."""
    nodes, weights, last = [], [], "x"
    for i in range(layers):
        shape = (channels, channels if i else 3, 3, 3)
        weights.append(numpy_helper.from_array(RNG.normal(0, 0.05, shape).astype(np.float32), f"w{i}"))
        nodes.append(helper.make_node("Conv", [last, f"w{i}"], [f"c{i}"], pads=[1, 1, 1, 1]))
        last = f"c{i}"
        if normalized:
            names = [f"{part}{i}" for part in ("scale", "bias", "mean", "var")]
            for name, value in zip(names, (1, 0, 0, 1), strict=True):
                weights.append(numpy_helper.from_array(np.full(channels, value, np.float32), name))
            nodes.append(helper.make_node("BatchNormalization", [last, *names], [f"n{i}"]))
            last = f"n{i}"
        nodes.append(helper.make_node("Relu", [last], [f"r{i}"]))
        last = f"r{i}"
    return nodes, weights, last, (1, 3, size, size)


def products(width: int, layers: int) -> Model:
    """Products of ``width`` by ``width`` with a bias and a Relu, on eight rows."""
    nodes, weights, last = [], [], "x"
    for i in range(layers):
        weights.append(numpy_helper.from_array(RNG.normal(0, 0.05, (width, width)).astype(np.float32), f"w{i}"))
        weights.append(numpy_helper.from_array(np.zeros(width, np.float32), f"b{i}"))
        nodes += [
            helper.make_node("Gemm", [last, f"w{i}", f"b{i}"], [f"h{i}"], transB=1),
            helper.make_node("Relu", [f"h{i}"], [f"r{i}"]),
        ]
        last = f"r{i}"
    return nodes, weights, last, (8, width)


MODELS: dict[str, Callable[[], Model]] = {
    "6 convolutions of 32 channels, 56 by 56, normalized": lambda: convolutions(32, 6, 56, normalized=True),
    "the same without normalization": lambda: convolutions(32, 6, 56, normalized=False),
    "12 convolutions of 16 channels, 32 by 32, normalized": lambda: convolutions(16, 12, 32, normalized=True),
    "6 convolutions of 64 channels, 28 by 28, normalized": lambda: convolutions(64, 6, 28, normalized=True),
    "6 products of 512 by 512, 8 rows": lambda: products(512, 6),
    "8 products of 256 by 256, 8 rows": lambda: products(256, 8),
}


def session(model: Model, *, inputs: bool) -> onnxruntime.InferenceSession:
    """A session whose weights are among the graph's inputs, or not."""
    nodes, weights, last, shape = model
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(shape))]
    if inputs:
        given += [helper.make_tensor_value_info(one.name, TensorProto.FLOAT, list(one.dims)) for one in weights]
    output = helper.make_tensor_value_info(last, TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", given, [output], weights)
    whole = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    return onnxruntime.InferenceSession(whole.SerializeToString(), options, providers=["CPUExecutionProvider"])


def measured(model: Model) -> tuple[float, float]:
    """Median CPU time of a run in ms, with constant weights and with weights as inputs."""
    sides = [(session(model, inputs=inputs), list[float]()) for inputs in (False, True)]
    fed = {"x": RNG.normal(size=model[3]).astype(np.float32)}
    for number in range(RUNS + WARM):
        for one, times in sides:
            began = time.thread_time()
            one.run(None, fed)
            if number >= WARM:
                times.append((time.thread_time() - began) * 1e3)
    constant, replaceable = (statistics.median(times) for _, times in sides)
    return constant, replaceable


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the page")
    given = parser.parse_args()
    lines = [
        f"ONNX Runtime {onnxruntime.__version__}, one thread; CPU time of a run in ms, medians of {RUNS} in turn.",
        "",
        "| model | weights are constants | weights are inputs too | constants save |",
        "|---|---|---|---|",
    ]
    for name, make in MODELS.items():
        constant, replaceable = measured(make())
        lines.append(f"| {name} | {constant:.2f} | {replaceable:.2f} | {1 - constant / replaceable:.0%} |")
        print(lines[-1], flush=True)
    if given.write:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{rest.partition(END)[2]}", "utf-8")


if __name__ == "__main__":
    main()

"""What does a row cost in runs of ONNX Runtime on 1, 8 and 32 rows? The ground of HST018.

Makes models of products and of convolutions, runs each on one thread with the sizes in turn, five rounds, and writes
CPU time a row (median, least to most) to docs/benchmarks/onnx-rows.md.
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
PAGE = ROOT / "docs" / "benchmarks" / "onnx-rows.md"
BEGIN, END = "<!-- table -->", "<!-- end -->"
ROWS = (1, 8, 32)
ROUNDS = 5
ROUND_S = 0.5
RNG = np.random.default_rng(0)


def products(width: int, layers: int) -> tuple[bytes, tuple[int, ...], int]:
    """A model of products of ``width`` by ``width``; shape of its row, number of its weights."""
    nodes, weights, last = [], [], "x"
    for i in range(layers):
        weights.append(numpy_helper.from_array(RNG.normal(0, 0.05, (width, width)).astype(np.float32), f"w{i}"))
        nodes += [
            helper.make_node("MatMul", [last, f"w{i}"], [f"h{i}"]),
            helper.make_node("Relu", [f"h{i}"], [f"r{i}"]),
        ]
        last = f"r{i}"
    return model(nodes, weights, last, (width,)), (width,), layers * width * width


def convolutions(channels: int, layers: int, size: int) -> tuple[bytes, tuple[int, ...], int]:
    """A model of convolutions of 3 by 3 on images; shape of its row, number of its weights."""
    nodes, weights, last, count = [], [], "x", 0
    for i in range(layers):
        shape = (channels, channels if i else 3, 3, 3)
        count += int(np.prod(shape))
        weights.append(numpy_helper.from_array(RNG.normal(0, 0.05, shape).astype(np.float32), f"w{i}"))
        nodes += [
            helper.make_node("Conv", [last, f"w{i}"], [f"h{i}"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", [f"h{i}"], [f"r{i}"]),
        ]
        last = f"r{i}"
    return model(nodes, weights, last, (3, size, size)), (3, size, size), count


def model(nodes: list[onnx.NodeProto], weights: list[onnx.TensorProto], last: str, row: tuple[int, ...]) -> bytes:
    """The bytes of a model whose number of rows is open."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", *row])]
    outputs = [helper.make_tensor_value_info(last, TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    data: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9
    ).SerializeToString()
    return data


MODELS: dict[str, Callable[[], tuple[bytes, tuple[int, ...], int]]] = {
    "4 products of 64 by 64": lambda: products(64, 4),
    "6 products of 256 by 256": lambda: products(256, 6),
    "4 products of 1,024 by 1,024": lambda: products(1024, 4),
    "4 convolutions of 16 channels, 32 by 32": lambda: convolutions(16, 4, 32),
    "4 convolutions of 32 channels, 64 by 64": lambda: convolutions(32, 4, 64),
    "3 convolutions of 64 channels, 112 by 112": lambda: convolutions(64, 3, 112),
}


def measured(data: bytes, row: tuple[int, ...]) -> dict[int, list[float]]:
    """CPU time a row in us, by the rows of a run; the sizes in turn."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    found: dict[int, list[float]] = {rows: [] for rows in ROWS}
    fed = {rows: {"x": RNG.normal(size=(rows, *row)).astype(np.float32)} for rows in ROWS}
    for number in range(ROUNDS + 1):
        for rows in ROWS:
            runs, began, until = 0, time.process_time(), time.monotonic() + ROUND_S
            while time.monotonic() < until:
                session.run(None, fed[rows])
                runs += 1
            if number:  # the first round warms up
                found[rows].append((time.process_time() - began) * 1e6 / runs / rows)
    return found


def cell(values: list[float]) -> str:
    """Median, least and most."""
    middle, least, most = map(digits, (statistics.median(values), min(values), max(values)))
    return f"{middle} ({least} to {most})"


def digits(value: float) -> str:
    """Three digits, none of them behind a thousand."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the page")
    given = parser.parse_args()
    lines = [
        f"ONNX Runtime {onnxruntime.__version__}, one thread. CPU time a row in us, in runs of so many rows.",
        "",
        "| model | 1 | 8 | 32 | times less with 32 | ns a weight with 1 |",
        "|---|---|---|---|---|---|",
    ]
    for name, make in MODELS.items():
        data, row, weights = make()
        found = measured(data, row)
        one, many = (statistics.median(found[rows]) for rows in (ROWS[0], ROWS[-1]))
        cells = " | ".join(cell(found[rows]) for rows in ROWS)
        lines.append(f"| {name} | {cells} | {one / many:.2f} | {digits(one * 1000 / weights)} |")
        print(lines[-1], flush=True)
    if given.write:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{rest.partition(END)[2]}", "utf-8")


if __name__ == "__main__":
    main()

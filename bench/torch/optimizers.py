"""What does a fused kernel save of the steps of PyTorch's optimizers on the CPU? The ground of HST019.

For sets of tensors as models have them, one step of each optimizer as it is by default, with ``foreach=True`` and with
``fused=True``, in turn; medians of the wall time go to docs/benchmarks/torch-optimizers.md, and the share saved.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "torch-optimizers.md"
BEGIN, END = "<!-- table -->", "<!-- end -->"
ROUNDS = 25
WARM = 5
MODES: tuple[dict[str, bool], ...] = ({}, {"foreach": True}, {"fused": True})
OPTIMIZERS: dict[str, dict[str, float]] = {
    "Adam": {},
    "AdamW": {},
    "SGD": {},
    "SGD, momentum": {"momentum": 0.9},
    "Adagrad": {},
}
SETS: dict[str, list[tuple[int, ...]]] = {
    "8 of 1,000 by 1,000": [(1000, 1000)] * 8,
    "300 of 64 by 64": [(64, 64)] * 300,
    "120 of 16 by 16 by 3 by 3": [(16, 16, 3, 3)] * 120,
    "1 of 200,000 by 64": [(200_000, 64)],
    "a small transformer: 4 blocks of 256": [(256, 256)] * 16
    + [(1024, 256), (256, 1024)] * 4
    + [(256,)] * 40
    + [(8000, 256)],
}


def measured(name: str, shapes: list[tuple[int, ...]]) -> list[float]:
    """Median wall time of a step in ms, by the mode."""
    cls = getattr(torch.optim, name.partition(",")[0])
    runs = []
    for mode in MODES:
        tensors = [torch.nn.Parameter(torch.randn(shape)) for shape in shapes]
        for one in tensors:
            one.grad = torch.randn_like(one)
        runs.append((cls(tensors, lr=1e-3, **OPTIMIZERS[name], **mode), list[float]()))
    for number in range(ROUNDS + WARM):
        for optimizer, times in runs:
            began = time.perf_counter()
            optimizer.step()
            if number >= WARM:
                times.append((time.perf_counter() - began) * 1e3)
    return [statistics.median(times) for _, times in runs]


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the page")
    given = parser.parse_args()
    lines = [
        f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads, float32; ms a step, median of {ROUNDS}.",
        "",
        "| optimizer | tensors | default | foreach | fused | fused saves |",
        "|---|---|---|---|---|---|",
    ]
    for name in OPTIMIZERS:
        for text, shapes in SETS.items():
            plain, foreach, fused = measured(name, shapes)
            lines.append(f"| {name} | {text} | {plain:.2f} | {foreach:.2f} | {fused:.2f} | {1 - fused / plain:.0%} |")
            print(lines[-1], flush=True)
    if given.write:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{rest.partition(END)[2]}", "utf-8")


if __name__ == "__main__":
    main()

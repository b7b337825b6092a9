"""What do dense gradients of tables cost, and a look at an optimizer? The ground of HST020.

A model of two tables trains in three ways in turn: dense gradients with Adam, the same with the fused kernel, sparse
gradients with SparseAdam. ``--only dense`` trains in that way alone, to be run under stepscope. Then looks of the agent
at optimizers of several sizes. The figures go to docs/benchmarks/torch-optimizers.md.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import torch
from torch import nn

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "src"))
PAGE = ROOT / "docs" / "benchmarks" / "torch-optimizers.md"
BEGIN, END = "<!-- tables -->", "<!-- end of tables -->"
USERS, ITEMS, WIDTH, BATCH = 300_000, 100_000, 32, 1024
STEPS, WARM, ROUNDS = 40, 5, 3
WAYS = ("dense", "fused", "sparse")
SETS = {
    "8 of 100 by 100": [(100, 100)] * 8,
    "296 of 64 by 64, 4 tables of 20,000 by 32": [(64, 64)] * 296 + [(20_000, 32)] * 4,
    "4,000 of 4": [(4,)] * 4000,
}


class TwoTowers(nn.Module):
    """A score of users and items."""

    def __init__(self, *, sparse: bool) -> None:
        super().__init__()
        self.users = nn.Embedding(USERS, WIDTH, sparse=sparse)
        self.items = nn.Embedding(ITEMS, WIDTH, sparse=sparse)
        self.top = nn.Sequential(nn.Linear(2 * WIDTH, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        """One score a row."""
        return self.top(torch.cat([self.users(users), self.items(items)], -1)).squeeze(-1)


class Training:
    """A model with its optimizers."""

    def __init__(self, way: str) -> None:
        torch.manual_seed(0)
        self.model = TwoTowers(sparse=way == "sparse")
        if way == "sparse":
            tables = [self.model.users.weight, self.model.items.weight]
            self.optimizers = [
                torch.optim.SparseAdam(tables, lr=1e-3),
                torch.optim.Adam(self.model.top.parameters(), lr=1e-3),
            ]
        else:
            self.optimizers = [torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=way == "fused")]

    def run(self, steps: int) -> list[float]:
        """Milliseconds of each step."""
        times = []
        for _ in range(steps):
            began = time.perf_counter()
            users, items = torch.randint(0, USERS, (BATCH,)), torch.randint(0, ITEMS, (BATCH,))
            wanted = torch.rand(BATCH).round()
            for one in self.optimizers:
                one.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(self.model(users, items), wanted).backward()
            for one in self.optimizers:
                one.step()
            times.append((time.perf_counter() - began) * 1e3)
        return times


def look_us(shapes: list[tuple[int, ...]]) -> float:
    """Median time of a look at an optimizer of such tensors, in microseconds."""
    from stepscope.agent.optimizer_looks import OptimizerLooks

    tensors = [nn.Parameter(torch.randn(shape)) for shape in shapes]
    for one in tensors:
        one.grad = torch.zeros_like(one)
    optimizer, times = torch.optim.Adam(tensors), []
    for _ in range(20):
        looks = OptimizerLooks(lambda _: None, time.monotonic_ns)
        began = time.perf_counter()
        looks.look(optimizer, 1)
        times.append((time.perf_counter() - began) * 1e6)
    return statistics.median(times)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=WAYS, help="train in this way alone")
    parser.add_argument("--write", action="store_true", help="write the page")
    given = parser.parse_args()
    if given.only:
        print(f"{statistics.median(Training(given.only).run(200)[WARM:]):.1f} ms a step")
        return
    runs = {way: (Training(way), list[float]()) for way in WAYS}
    for _ in range(ROUNDS):
        for training, times in runs.values():
            times += training.run(STEPS)[WARM:]
    medians = {way: statistics.median(times) for way, (_, times) in runs.items()}
    lines = ["| gradients and optimizer | ms a step | saved |", "|---|---|---|"]
    lines += [f"| {way} | {ms:.2f} | {1 - ms / medians['dense']:.0%} |" for way, ms in medians.items()]
    lines += ["", "| tensors of an optimizer | a look, us |", "|---|---|"]
    lines += [f"| {name} | {look_us(shapes):,.0f} |" for name, shapes in SETS.items()]
    print("\n".join(lines))
    if given.write:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{rest.partition(END)[2]}", "utf-8")


if __name__ == "__main__":
    main()

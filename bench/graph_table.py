"""How much of op time is joined to graph nodes, and what does it cost to know them?

Each model of ``programs/graph_models.py`` runs under stepscope until its graphs were read, then TensorFlow's profiler
traces ten steps. Asked of each: at least 95 % of op time is joined to nodes, and noting and reading nodes takes less
than 15 % of the time that tracing took. A session's graph is built by the program: there is no tracing to compare with.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from stepscope import store
from stepscope.derive.graph.index import GraphIndex
from stepscope.derive.optrace import line_times
from stepscope.model.log.events import Framework, Traced
from stepscope.readers.xplane import xspace

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "bench" / "programs" / "graph_models.py"
PAGE = ROOT / "docs" / "benchmarks" / "graph-table.md"
MODELS = (
    *("functional_cnn", "subclassed", "own_train_step", "lstm", "transformer", "custom_loop", "eager_tape"),
    *("autograph", "unrolled", "mapped", "data_in_step", "session", "inception"),
)
MIN_JOINED = 0.95
MAX_COST = 0.15
HEAD = """# Joining op time to graph nodes

Printed by `make bench-graph-table ARGS=--write`. Joined: share of the op time of ten traced steps whose node was
found. Placed: share that stands on a line of user code, or on a layer and the line that built it. Noting: the line and
layer of each op, while it is made. Reading: the rest, later, on the agent's thread. Cost: both, as a share of the time
that tracing took; noting is wall time and counts what else ran meanwhile. Asked: joined at least 95 %, cost below 15 %.
"""
TABLE = """
## {versions}

| model | nodes | op time, ms | joined | placed | tracing, ms | noting, us/node | reading, us/node | cost | good |
|---|---|---|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One model, measured."""

    model: str
    versions: str
    nodes: int
    op_ms: float
    joined: float
    placed: float
    tracing_ns: int
    noted_ns: int
    read_ns: int

    @property
    def cost(self) -> float | None:
        """Noting and reading time over tracing time; None if nothing was traced."""
        return (self.noted_ns + self.read_ns) / self.tracing_ns if self.tracing_ns else None

    @property
    def good(self) -> bool:
        """Whether the requirements hold."""
        return self.joined >= MIN_JOINED and (self.cost is None or self.cost < MAX_COST)

    def line(self) -> str:
        """Line of the table."""
        tracing = f"{self.tracing_ns / 1e6:.0f}" if self.tracing_ns else "-"
        cost = f"{100 * self.cost:.1f} %" if self.cost is not None else "-"
        return (
            f"| {self.model} | {self.nodes:,} | {self.op_ms:.1f} | {100 * self.joined:.1f} % "
            f"| {100 * self.placed:.1f} % | {tracing} | {self.noted_ns / 1e3 / max(1, self.nodes):.1f} "
            f"| {self.read_ns / 1e3 / max(1, self.nodes):.1f} | {cost} | {'yes' if self.good else 'NO'} |"
        )


def measure(model: str, python: str, folder: Path) -> Row:
    """Run one model.

    Raises:
        RuntimeError: it failed, or left no session or no trace.
    """
    session, traces = folder / f"{model}.stepscope", folder / f"{model}-trace"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-m", "stepscope", "run", "-q", "--session", str(session), "--"]
    command += [python, str(PROGRAM), model, str(traces)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    files = sorted(traces.rglob("*.xplane.pb"))
    if result.returncode or not files:
        raise RuntimeError(f"{model}: exit code {result.returncode}, {len(files)} traces\n{result.stderr[-2000:]}")
    worker = max(store.open_session(session).workers, key=lambda w: len(w.graphs))
    index = GraphIndex(worker)
    versions = {f.name: f.version for f in worker.all(Framework) if f.name in {"tensorflow", "keras"}}
    lines = line_times.build(xspace.read_file(files[-1]), index)
    placed = sum(op.self_ps for op in lines.ops if op.place is not None or op.layer is not None)
    return Row(
        model=model,
        versions=", ".join(f"{name} {version}" for name, version in sorted(versions.items())),
        nodes=len(worker.graphs),
        op_ms=lines.total_ps / 1e9,
        joined=lines.joined_ratio,
        placed=placed / max(1, lines.total_ps),
        tracing_ns=sum(trace.dur for trace in worker.all(Traced) if not trace.outer),
        noted_ns=sum(graph.noted_ns for graph in index.graphs.values()),
        read_ns=sum(graph.cpu_ns for graph in index.graphs.values()),
    )


def main() -> int:
    """Measure and print; 1 if a requirement does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--python", action="append", help="a Python with TensorFlow; may be given several times")
    parser.add_argument("--write", action="store_true", help="store the page under docs/benchmarks/")
    options = parser.parse_args()
    page = HEAD
    good = True
    for python in options.python or [sys.executable]:
        with tempfile.TemporaryDirectory(prefix="graph-table-") as folder:
            rows = []
            for model in options.models:
                rows.append(measure(model, python, Path(folder)))
                print(rows[-1].line(), flush=True)
            good = good and all(row.good for row in rows)
            page += TABLE.format(versions=max((row.versions for row in rows), key=len))
            page += "".join(row.line() + "\n" for row in rows)
    if options.write:
        PAGE.write_text(page)
    print(page)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

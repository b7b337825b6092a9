"""Whether the graph of a session keeps growing while it runs, and what that costs.

A run of fetches that were never run before makes the session prune and optimise the whole graph for them, and the more
ops the graph has, the longer that takes. Fetches that a program creates again in each step are run once or twice each.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.python import stack_samples
from stepscope.model.log.events import GraphSize
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.python.stack_samples import Sample
    from stepscope.derive.steps_view import StepsView

MANY_RUNS = 3
"""Fetches that ran this often are not newly made."""
OTHER_FETCHES = "other fetches"
"""Name that the session probe gives fetches beyond the first hundreds: a program with so many keeps creating them."""
USUAL_PERCENTILE = 10
"""Percentile of the runs of lasting fetches: the undisturbed time of a run without new ops."""


class GraphGrowth(Struct, frozen=True, kw_only=True):
    """The graph that grows most within the steady steps."""

    first_ops: int
    last_ops: int
    ops_per_step: float
    until_ratio: float
    """When it was last seen to have grown, as a share of the steady steps' time."""
    fresh_runs: int
    """Steady runs of newly made fetches."""
    fresh_ns: int
    """Time of these runs beyond a usual run."""
    building_ns: int
    """Time in TensorFlow's Python outside of runs, by samples: with sessions that adds ops to the graph."""
    lasting_ns: int
    """Time that the steady runs of lasting fetches would take if each were a usual one: it stays. A run of newly made
    fetches may go whole, as what it does can be fed to another."""
    lines: tuple[tuple[str, str, int, int], ...]
    """(file, function, first line, last line) of user code that adds the ops or runs them, costliest first."""

    @property
    def total_ns(self) -> int:
        """Sum of both times."""
        return self.fresh_ns + self.building_ns


def build(view: StepsView) -> GraphGrowth | None:
    """None if no session's graph was read during the steady steps."""
    steps = view.steps
    sizes: dict[int, list[GraphSize]] = {}
    for event in steps.worker.all(GraphSize):
        sizes.setdefault(event.id, []).append(event)
    if not sizes:
        return None
    lo, hi = int(steps.windows[0][0]), int(steps.windows[1][-1])
    told = max(sizes.values(), key=lambda told: _ops_at(told, hi) - _ops_at(told, lo))
    first, last = _ops_at(told, lo), _ops_at(told, hi)
    grew = [b.at for a, b in itertools.pairwise(told) if b.ops > a.ops and b.at <= hi]
    fresh, fresh_ns, lasting_ns, by_line = _fresh_runs(view)
    building = [s for s in view.samples if _adds_ops(s)]
    whole = stack_samples.weight_of(view.samples)
    return GraphGrowth(
        first_ops=first,
        last_ops=last,
        ops_per_step=(last - first) / steps.steady_count,
        until_ratio=max(0.0, (max(grew, default=lo) - lo) / max(1, hi - lo)),
        fresh_runs=fresh,
        fresh_ns=fresh_ns,
        building_ns=round(stack_samples.weight_of(building) / whole * steps.steady_ns) if whole else 0,
        lasting_ns=lasting_ns,
        lines=tuple(dict.fromkeys((*by_line, *stack_samples.lines_of(building)))),
    )


def _ops_at(told: list[GraphSize], moment: int) -> int:
    """The last size reported before a moment, or else the first one."""
    before = [t.ops for t in told if t.at <= moment]
    return before[-1] if before else told[0].ops


def _fresh_runs(view: StepsView) -> tuple[int, int, int, tuple[tuple[str, str, int, int], ...]]:
    """Steady runs of newly made fetches: their number, their time beyond a usual run, what the other steady runs
    would take as usual ones, and the lines that run them.
    """
    steps = view.steps
    runs = view.calls(Kind.SESSION_RUN)
    texts = {number: name.text for number, name in view.names.items()}
    counts = Counter(texts.get(int(n), "") for n in runs.names)
    lasting = [n for n, text in texts.items() if counts[text] >= MANY_RUNS and text != OTHER_FETCHES]
    usual_runs = runs.named(lasting).durations
    usual = float(np.percentile(usual_runs, USUAL_PERCENTILE)) if len(usual_runs) else 0.0
    steady = runs.begun_in(steps.windows)
    every, steady = len(steady), steady.where(~np.isin(steady.names, lasting))
    beyond = np.maximum(steady.durations - usual, 0)
    lines: Counter[tuple[str, str, int, int]] = Counter()
    for number, extra in zip(steady.names, beyond, strict=True):
        name = view.names.get(int(number))
        if name is not None and name.call_file:
            lines[name.call_file, name.call_function, name.call_line, name.call_line] += int(extra)
    return (
        len(steady),
        int(beyond.sum()),
        round(usual * (every - len(steady))),
        tuple(line for line, _ in lines.most_common(3)),
    )


def _adds_ops(sample: Sample) -> bool:
    return sample.component == "other-python" and sample.in_tensorflow

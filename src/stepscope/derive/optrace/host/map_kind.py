"""Why the slowest stage of a traced pipeline is slow: the cost of calling its function, a state, or the function's
work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from stepscope.derive.optrace.host.traced_stages import StageNode, Tree

Kind = Literal["calls", "state", "work"]
"""calls: calling the function for every record takes longer than its work. state: the stage runs on one thread because
its function has a state. work: neither."""

MIN_AROUND_RATIO = 0.5
"""Minimum share of the runs' time outside the executor: below it the function itself takes the time."""
MIN_CALLS = 4
"""Minimum calls of the function per batch: fewer are not worth batching for."""
PYTHON = ("PyFunc", "PyFuncStateless", "EagerPyFunc")
"""Types of the ops that call user Python."""
STATEFUL = frozenset(
    {
        "Multinomial",
        "RandomGammaV2",
        "RandomShuffle",
        "RandomStandardNormal",
        "RandomUniform",
        "RandomUniformInt",
        "SampleDistortedBoundingBoxV2",
        "TruncatedNormal",
    }
)
"""Ops that draw from a generator with a state. Source: TensorFlow's op registry, SetIsStateful."""


def kind(tree: Tree) -> Kind:
    """Why the blocking stage of a pipeline is slow."""
    stage = tree.blocking
    function = stage.function
    if function is None:
        return "work"
    if stage.parallelism <= 1 and "Map" in stage.type and drawn(stage):
        return "state"
    many = function.runs >= MIN_CALLS * max(1, tree.batches)
    if many and function.around_ratio >= MIN_AROUND_RATIO and not any(t in function.types for t in PYTHON):
        return "calls"
    return "work"


def drawn(stage: StageNode) -> dict[str, int]:
    """Types of the random ops with a state in its function, with their time."""
    types = stage.function.types if stage.function is not None else {}
    return {name: ns for name, ns in types.items() if name in STATEFUL}


def python_ratio(stage: StageNode) -> float:
    """Share of the time of its function's runs in user Python."""
    function = stage.function
    if function is None or not function.run_ns:
        return 0.0
    return min(1.0, sum(function.types.get(name, 0) for name in PYTHON) / function.run_ns)

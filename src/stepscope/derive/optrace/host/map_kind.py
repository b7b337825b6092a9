"""Why the slowest stage of a traced pipeline is slow: what calling its function costs, a state, or what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from stepscope.derive.optrace.host.traced_stages import StageNode, Tree

Kind = Literal["calls", "state", "work"]
"""calls: its function is called for every record, which takes longer than what it does. state: it runs on one thread
because its function has a state. work: neither."""

MIN_AROUND_RATIO = 0.5
"""Of the runs' time outside of the executor: below it the function itself is what takes time."""
MIN_CALLS = 4
"""Of the function a batch: fewer are not worth batching for."""
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
    """Types of the random ops with a state in its function, to their time."""
    types = stage.function.types if stage.function is not None else {}
    return {name: ns for name, ns in types.items() if name in STATEFUL}


def python_ratio(stage: StageNode) -> float:
    """Share of the time of its function's runs in user Python."""
    function = stage.function
    if function is None or not function.run_ns:
        return 0.0
    return min(1.0, sum(function.types.get(name, 0) for name in PYTHON) / function.run_ns)

"""Why the slowest stage of a traced pipeline is slow: the cost of calling its function, a state, or the function's
work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from stepscope.derive.optrace.host.stage_calls import Function
    from stepscope.derive.optrace.host.traced_stages import StageNode, Tree

Kind = Literal["calls", "state", "work"]
"""calls: calling the function for every record, and starting its ops, takes longer than what the ops do. state: the
stage runs on one thread because its function has a state. work: neither."""

MIN_CALL_RATIO = 0.5
"""Minimum share of the runs' time for the calls and for starting ops: below it the function itself takes the time."""
START_NS = 10_000
"""Time for starting an op, in which smaller ops are negligible. Measured in traces of loops: 5 to 20 us."""
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
    if many and call_ratio(function) >= MIN_CALL_RATIO and not any(t in function.types for t in PYTHON):
        return "calls"
    return "work"


def call_ratio(function: Function) -> float:
    """Share of the runs' time that one call for a whole batch saves: outside of the executor, and for starting ops."""
    return min(1.0, function.around_ratio + start_ratio(function))


def start_ratio(function: Function) -> float:
    """Share of the runs' time in starting the function's ops, at least one of each type: a batch starts them once."""
    most = START_NS * max(1, len(function.types)) * function.runs
    return min(function.work_ns, most) / function.run_ns if function.run_ns else 0.0


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

"""A debugging mode of TensorFlow checks or records the output of every op of the step.

## What it detects
`tf.debugging.enable_check_numerics()` or `tf.debugging.experimental.enable_dump_debug_info()` in a job whose compiled
steps spend a tenth of their time or more in the ops that these modes insert after every other op.

## Why it matters
The check reads every tensor of the step once more, and nothing can be fused across it: steps of many small ops take
several times as long. It serves to find one NaN, and is often left on afterwards.

## Evidence
From the log of the run: which mode was turned on, and where. From the graph: `checking_ops`. From an op trace:
`checking_ratio`, share of the steps in these ops, plus their part of the time that the framework spends around all ops
(`handing_out_ratio`).

## Known limits
Fusion that the checks prevent is not part of the cost: the real saving is larger. Checks that the program itself makes
(`tf.debugging.check_numerics`) are not included. The debug mode of tf.data is reported with the Python that it runs
(INP002).

## Remedy
Turn the mode off (`tf.debugging.disable_check_numerics`), or make it a flag of the program;
`tf.debugging.check_numerics` on the loss alone also finds a NaN, one step later.

## References
TensorFlow: tf.debugging.enable_check_numerics ("comes at a performance cost"), Debugger V2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import graph_pattern, trace_evidence
from stepscope.model.log.program import Setting
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.optrace.node_costs import NodeCosts
    from stepscope.derive.steps_view import StepsView
    from stepscope.derive.view import SessionView

MODES = {
    "check_numerics": "tf.debugging.enable_check_numerics",
    "dump_debug_info": "tf.debugging.experimental.enable_dump_debug_info",
}
CHECKS = (
    "CheckNumericsV2",
    "DebugNumericSummaryV2",
    "DebugIdentityV2",
)
"""Ops that only these modes create. Source: tensorflow/python/debug/lib."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of the traced steps."""


class _Cost(Struct, frozen=True, kw_only=True):
    """Cost of the checks, as shares of the traced steps."""

    checks: float
    """Share in the checks themselves."""
    handing: float
    """Share in dispatching them to threads, by their part of all ops."""

    @property
    def ratio(self) -> float:
        """Sum of both shares."""
        return self.checks + self.handing


def detect(view: StepsView, params: Params) -> Iterator[Seen | CaptureRequest]:
    """Yield at most one finding."""
    on = _mode(view)
    if on is None:
        return
    yield from graph_pattern.price(
        view,
        graph_pattern.whole(_checks),
        params.min_ratio,
        ask=lambda rows: f"{len(rows):,} ops of the graphs check or record the outputs of other ops ({MODES[on.name]})",
        weigh=_cost,
        see=lambda ops, rows, cost: _finding(view, ops, on, rows, cost, params),
    )


def _checks(index: GraphIndex) -> list[int]:
    """Rows of the checks, without those of tf.data."""
    return [row for row in index.table.of_types(*CHECKS).tolist() if not index.of_data(int(index.table.graph[row]))]


def _cost(ops: NodeCosts, rows: list[int]) -> _Cost:
    mine, every = ops.of_nodes(rows), ops.of_nodes(range(len(ops.index.table)))
    part = mine.calls_per_step / every.calls_per_step if every.calls_per_step else 0.0
    return _Cost(checks=mine.ratio, handing=part * ops.trace.breakdown.ratio("runtime"))


def _finding(view: StepsView, ops: NodeCosts, on: Setting, rows: list[int], cost: _Cost, params: Params) -> Seen:
    ratio = min(1.0, cost.ratio)
    return Seen(
        title=f"{MODES[on.name]} is on: {len(rows):,} ops that check or record the outputs of other ops "
        f"take {format_ratio(ratio)} of the step",
        confidence=0.95,
        where=(view.place(on.file, on.line, function=on.function),) if on.file else (),
        evidence=(
            trace_evidence.evidence(ops.trace, "checking_ratio", ratio, "ratio", params.min_ratio),
            trace_evidence.evidence(ops.trace, "handing_out_ratio", cost.handing, "ratio"),
            Evidence(metric="checking_ops", value=len(rows), unit="ops"),
            trace_evidence.steps(ops.trace),
        ),
        cost=cost_of(view, ratio, low=cost.checks, high=1.0),
        remedies=(
            Remedy(
                id="debugging-off",
                text=f"turn it off: remove {MODES[on.name]}, or make it a flag of the program; to watch for a NaN, "
                "check the loss alone",
            ),
        ),
        explanation="The mode inserted a check after every op of the graph; the op trace shows how long the "
        "checks take. Their dispatch time is estimated from their share of all ops. Fusion that they prevent is not "
        "counted: the real saving is larger.",
    )


def _mode(view: SessionView) -> Setting | None:
    """The debugging mode that was turned on last and not off again."""
    on: dict[str, Setting] = {}
    for setting in view.worker.all(Setting) if view.worker is not None else ():
        on.pop(setting.name, None)
        if setting.value and setting.name in MODES:
            on[setting.name] = setting
    return next(reversed(on.values()), None)


def _off(view: SessionView) -> str:
    return "" if view.steps is None or _mode(view) is not None else "no debugging mode is on"


DETECTOR = Detector(
    code="CFG005",
    name="debugging-left-on",
    cause="API: inefficient API usage",
    introduced_stage="environment setting",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.NODES}),
    params=Params(),
    detect=detect,
    applies=_off,
)

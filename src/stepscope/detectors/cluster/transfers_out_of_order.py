"""Parameters come from other tasks in an order in which the step cannot use them.

## What it detects
A traced step that receives several parameters over one link, some of them before others that it needs earlier, while
no op runs; and in the best order it would be clearly shorter.

## Why it matters
All parameters are requested at once, and the server sends them in the order in which its executor happened to read
them. If the first layer's weights come last, nothing can be computed until everything has come; in order, the first
layers are computed while the weights of the later ones are on their way.

## Evidence
`gain_ns`: by how much the median traced step would be shorter at most, had the most urgent always come first over the
same links at the same rate. `still_ns`: time of a step in which no op ran while one lacked only what was on its way.
`early`: transfers of a step that came before a more urgent one. `traced_steps`: how many were examined.

## Known limits
Seen in runs of a session (RunMetadata), which name the inputs of each op; traces of TensorFlow's profiler do not. The
best order is computed: every op takes as long as it took, so what computing during transfers costs on a full machine
is not in it. When a tensor could be sent is said by the sender's clock; where that runs ahead of the receiver's, the
gain is too small, where it is behind, it may be too large. A link that others use too seems slower than it is.

## Remedy
Read each parameter when the one before has come, or send fewer bytes.

## References
TicTac: Accelerating Distributed Deep Learning with Communication Scheduling (Hashemi et al., MLSys 2019).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.cluster import transfers_out_of_order
from stepscope.derive.optrace.exchange.step_graph import short_task
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import op_places
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_bytes, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.optrace.exchange.transfer_order import DeviceTransfers
    from stepscope.derive.steps_view import StepsView
    from stepscope.derive.view import SessionView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.05)
    """Gain of the median step, as a share of the traced steps. Less is within what traced steps differ by."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    trace = view.traces.main
    order = view.get(transfers_out_of_order.build)
    if trace is None or order is None:
        return
    mean = trace.periods.mean_ns
    if order.gain_ns >= params.min_ratio * mean and any(one.early for one in order.parameters):
        yield _finding(view, order, mean, params)


def _finding(view: StepsView, order: DeviceTransfers, mean: float, params: Params) -> Seen:
    ratio, low, high = (ns / mean for ns in (order.gain_ns, min(order.gains_ns), max(order.gains_ns)))
    senders = ", ".join(dict.fromkeys(short_task(one.sender) for one in order.parameters))
    first = order.parameters[0]
    return Seen(
        title=f"parameters from {senders} come in an order in which the step cannot use them: no op runs for "
        f"{format_ns(order.still_ns)} of it until one comes; in the best order it is shorter by at most "
        f"{format_ratio(ratio)}",
        confidence=0.8 if order.runs > 1 else 0.6,
        where=op_places.of_steps(view),
        evidence=(
            Evidence(metric="gain_ns", value=order.gain_ns, unit="ns", threshold=params.min_ratio * mean),
            Evidence(metric="still_ns", value=order.still_ns, unit="ns"),
            Evidence(metric="early", value=order.early, unit="transfers"),
            Evidence(metric="traced_steps", value=float(order.runs), unit="steps"),
        ),
        cost=cost_of(view, ratio, low=min(low, ratio), high=max(high, ratio), basis="modelled"),
        remedies=(
            Remedy(
                id="order-the-reads",
                text="read each parameter when the one before has come: under tf.control_dependencies([previous]), "
                "value = variable.read_value(), then previous = tf.identity(value) on the worker, in the order of the "
                "layers",
            ),
            Remedy(
                id="send-fewer-bytes",
                text="or send less: parameters in half precision, only the rows that a step uses, or a server on "
                "the host of each worker",
            ),
        ),
        explanation=f"{first.name} ({format_bytes(first.size_bytes)}) is needed first, {format_ns(first.needed_ns)} "
        f"after the step's begin, and comes at {format_ns(first.came_ns)}; {order.early:.2g} of "
        f"{len(order.parameters)} parameters come before one that is needed more urgently.",
    )


def _applies(view: SessionView) -> str:
    member = view.worker.info.member if view.worker is not None else None
    return "" if member is not None and member.tasks > 1 else "the steps are not made by a task of a cluster"


DETECTOR = Detector(
    code="DST010",
    name="transfers-out-of-order",
    cause="Data: inefficient data transmission",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="gradient-sharing",
    needs=frozenset({Signal.STEPS, Signal.OP_TRACE}),
    params=Params(),
    detect=detect,
    applies=_applies,
)

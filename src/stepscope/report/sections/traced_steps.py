"""The report's part on traced steps: where their time goes, the pipeline that feeds them, when the device is idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.cluster import transfers_out_of_order
from stepscope.derive.optrace import loop_python
from stepscope.derive.optrace.exchange import step_graph
from stepscope.model.report.op_summary import (
    OtherTrace,
    TracedCall,
    TracedCommunication,
    TracedGain,
    TracedGap,
    TracedIdle,
    TracedPart,
    TracedStage,
    TracedSteps,
    TracedTransfer,
    TransferOrder,
)
from stepscope.report.sections.op_table import FAILED
from stepscope.tables.errors import DamagedError, StepscopeError
from stepscope.tables.findings import Diagnostic

if TYPE_CHECKING:
    from stepscope.derive.optrace.exchange.transfer_order import DeviceTransfers
    from stepscope.derive.optrace.host.traced_stages import StageNode, Tree
    from stepscope.derive.optrace.steps.device_idle import DeviceIdle
    from stepscope.derive.optrace.steps.step_parts import Breakdown
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.derive.view import SessionView

MAX_CALLS, MAX_GAINS, MAX_GAPS, MAX_OPS, MAX_OTHERS, MAX_TRANSFERS = 3, 10, 10, 3, 8, 50
LEAST_GAIN = 0.005


def build(view: SessionView) -> tuple[TracedSteps | None, tuple[Diagnostic, ...]]:
    """Traced steps of the report's trace; None without a trace or without ops in it."""
    trace = view.traces.shown
    try:
        if trace is None or not len(trace.stats):
            return None, ()
        return _of(view, trace, view.get(transfers_out_of_order.build)), ()
    except DamagedError:
        raise
    except (StepscopeError, ArithmeticError, LookupError, ValueError) as error:  # files from elsewhere
        text = f"{trace.name if trace else ''}: the analysis of traced steps failed: {type(error).__name__}: {error}"
        return None, (Diagnostic(code=FAILED, text=text),)


def file_of(view: SessionView, trace: OpView) -> str:
    """Name of a trace's file, if several were imported: what is said is about one of them."""
    return trace.trace.source.name if len(view.session.op_traces) > 1 else ""


def _others(view: SessionView, shown: OpView) -> tuple[OtherTrace, ...]:
    """The steps of the other files, those left out that were read together with the shown one."""
    others = [one for one in view.traces.views if one not in (shown, *shown.together)]
    others.sort(key=lambda one: file_of(view, one))
    return tuple(
        OtherTrace(
            file=file_of(view, one),
            count=len(one.periods),
            mean_ns=round(one.periods.mean_ns),
            parts=_parts(one.breakdown.shares(), one.periods.mean_ns),
        )
        for one in [one for one in others if one.shows_steps and file_of(view, one)][:MAX_OTHERS]
    )


def _of(view: SessionView, trace: OpView, order: DeviceTransfers | None) -> TracedSteps:
    split = trace.breakdown
    seen = trace.shows_steps
    return TracedSteps(
        trace=trace.name,
        file=file_of(view, trace),
        capture=trace.ref,
        count=len(trace.periods) if seen else 0,
        name=trace.periods.name,
        mean_ns=round(trace.periods.mean_ns),
        parts=_parts(split.shares(), trace.periods.mean_ns),
        batches=trace.pipeline.batches if trace.pipeline is not None else 0,
        pipeline=_stages(trace.pipeline) if trace.pipeline is not None else (),
        idle=_idle(trace, trace.idle) if trace.idle is not None else None,
        gains=tuple(
            TracedGain(name=gain.what[0], type=gain.what[1], path_ratio=gain.path_ratio, low=gain.low, high=gain.high)
            for gain in (trace.gains() if seen else ())[:MAX_GAINS]
            if gain.high >= LEAST_GAIN
        ),
        communication=communication(split) if seen else None,
        transfers=_transfers(order) if order is not None else None,
        others=_others(view, trace),
    )


def communication(split: Breakdown, steps: slice = slice(None)) -> TracedCommunication | None:
    """Communication in the mean of some steps; None if there is none."""
    exposed, hidden = split.exposed_ns[steps], split.hidden_ns[steps]
    if not len(exposed) or not (exposed.any() or hidden.any()):
        return None
    return TracedCommunication(exposed_ns=round(float(exposed.mean())), hidden_ns=round(float(hidden.mean())))


def _parts(shares: dict[str, float], mean_ns: float) -> tuple[TracedPart, ...]:
    return tuple(
        TracedPart(part=part, ratio=ratio, ns_per_step=round(ratio * mean_ns)) for part, ratio in shares.items()
    )


def _stages(tree: Tree) -> tuple[TracedStage, ...]:
    return tuple(_stage(node, tree) for node in tree.root.walk())


def _stage(node: StageNode, tree: Tree) -> TracedStage:
    return TracedStage(
        name=node.type,
        depth=len(node.path) - len(tree.root.path),
        datasets=node.datasets,
        calls=node.calls,
        self_ns_per_batch=round(tree.per_batch(node.self_ns)),
        parallelism=node.parallelism,
        buffered=node.buffered,
        blocking=node is tree.blocking,
        ops=tuple(filter(None, node.function.types))[:MAX_OPS] if node.function is not None else (),
    )


def _idle(trace: OpView, idle: DeviceIdle) -> TracedIdle:
    return TracedIdle(
        device=trace.trace.planes[trace.device].name,
        ratio=idle.ratio,
        host_ratio=idle.host_ratio,
        count=idle.count,
        parts=_parts(dict(idle.by_part), trace.periods.mean_ns),
        calls=tuple(
            TracedCall(function=call.function, file=call.file, line=call.line, ratio=ratio)
            for call, ratio in list(loop_python.while_idle(trace).items())[:MAX_CALLS]
        ),
        gaps=tuple(TracedGap(at_ns=gap.start_ns, dur_ns=gap.dur_ns, part=gap.part) for gap in idle.gaps[:MAX_GAPS]),
    )


def _transfers(order: DeviceTransfers) -> TransferOrder:
    shown = order.parameters[:MAX_TRANSFERS]
    return TransferOrder(
        device=order.device,
        steps=order.runs,
        early=order.early,
        still_ns=round(order.still_ns),
        gain_ns=round(order.gain_ns),
        gain_low_ns=round(min(order.gains_ns)),
        gain_high_ns=round(max(order.gains_ns)),
        transfers=tuple(
            TracedTransfer(
                name=one.name,
                sender=step_graph.short_task(one.sender),
                size_bytes=one.size_bytes,
                needed_ns=round(one.needed_ns),
                came_ns=round(one.came_ns),
                waited_ns=round(one.waited_ns),
                early=one.early,
            )
            for one in shown
        ),
        more=len(order.parameters) - len(shown) + order.small,
    )

"""The report's answer to whether the step's ops are as fast as they can be here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from stepscope.causes.graph import heavy_ops, op_limits
from stepscope.derive.optrace import line_times
from stepscope.model.report.limits import Limits, MachineRoofs, OpLimit

if TYPE_CHECKING:
    from stepscope.derive.view import SessionView
    from stepscope.model.session.replays import Tensor


def build(view: SessionView) -> Limits | None:
    """None if no ops were run alone."""
    found = view.get(op_limits.build)
    if found is None:
        return None
    roofs = found.roofs
    return Limits(
        text=found.text,
        explained_ratio=found.explained_ratio,
        ops=tuple(_row(view, limit) for limit in found.ops[: heavy_ops.MOST]),
        roofs=MachineRoofs(**msgspec.structs.asdict(roofs)) if roofs is not None else None,
        threads=found.replays.threads,
        cores=found.replays.cores,
        others_cores=found.replays.others_cores,
        problem=found.replays.problem,
    )


def _row(view: SessionView, limit: op_limits.OpLimit) -> OpLimit:
    op = limit.op
    made = line_times.origin(view.graphs, op.rows[0]).place if view.graphs is not None and op.rows else None
    alone_s = 1e-9 * limit.alone_ns
    return OpLimit(
        type=limit.type,
        inputs=tuple(_text(given) for given in op.recipe.inputs if not given.values) if op.recipe is not None else (),
        file=view.place(made.file, made.line).file if made is not None else "",
        line=made.line if made is not None else 0,
        calls_per_step=op.calls_per_step,
        ratio=limit.share,
        step_ns=round(op.call_ns),
        run_ns=round(op.run_ns),
        alone_ns=round(limit.alone_ns),
        reached_ratio=limit.ratio,
        flops_per_s=limit.flops / alone_s if alone_s else 0.0,
        bytes_per_s=limit.bytes / alone_s if alone_s else 0.0,
        roof_ratio=limit.roof_ratio,
        proven=limit.proven,
        why=limit.why,
        cheaper=tuple(way.text for way in limit.cheaper),
    )


def _text(given: Tensor) -> str:
    return f"{given.dtype}[{','.join(map(str, given.shape))}]"

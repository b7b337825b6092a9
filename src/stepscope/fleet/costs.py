"""Where the time went, as the report has it: components, stages, the ledger, findings, ops and captures."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from stepscope.fleet.places import shortened
from stepscope.fleet.rows import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.model.report.report import Report
    from stepscope.tables.findings import Cost

MAX_OPS = 50


def rows(report: Report, cwd: str) -> Iterator[Row]:
    """All of them."""
    steps = report.session.steps
    for part in report.anatomy:
        yield Row(
            kind="component",
            name=part.component,
            text=part.pipeline_stage,
            ratio=part.ratio,
            time_ns=part.ns_per_step * steps,
        ).at(part.where, cwd)
    for stage in report.stages:
        yield Row(kind="stage", name=stage.stage, ratio=stage.ratio)
    for entry in report.ledger:
        if entry.maker is None:
            yield Row(
                kind="ledger",
                name=entry.phase,
                text=entry.component,
                detail=entry.code or entry.settled_by,
                time_ns=entry.ns,
                ratio=entry.ratio,
            ).at(entry.where[0] if entry.where else None, cwd)
    yield from _findings(report, cwd)
    yield from _ops(report, cwd)
    for capture in report.overhead.captures:
        yield Row(kind="capture", name=capture.kind, text=capture.way, time_ns=capture.cost_ns)


def _findings(report: Report, cwd: str) -> Iterator[Row]:
    """Those that cost something here; titles stay in the session, because they quote names of the user's."""
    for one in report.findings:
        if one.severity == "info":
            continue
        cost = one.cost
        time_ns = _saved_ns(report, cost)
        share = cost.exclusive_ratio
        own = None if share is None or time_ns is None or cost.ratio <= 0 else round(time_ns * share / cost.ratio)
        yield Row(
            kind="finding",
            name=one.code,
            text=one.name,
            detail=one.severity,
            time_ns=time_ns,
            self_ns=own,
            ratio=cost.ratio,
            low=cost.low,
            high=cost.high,
        ).at(one.where[0] if one.where else None, cwd)


def _saved_ns(report: Report, cost: Cost) -> int | None:
    """What a remedy is predicted to save over the whole run: of all steps, else of the wall time."""
    if cost.ns_per_step and report.session.steps:
        return cost.ns_per_step * report.session.steps
    return round(cost.ratio * report.session.wall_ns) if report.session.wall_ns else None


def _ops(report: Report, cwd: str) -> Iterator[Row]:
    """Ops of one type, line and device together; names of single ops are as many as the model has layers."""
    table = report.ops
    if table is None:
        return
    per_step = report.session.steps / table.steps if table.steps else None
    found: dict[tuple[str, str, str, int], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for op in table.ops:
        sums = found[op.type, op.device, op.file, op.line]
        for column, value in enumerate((op.ns, op.calls, op.ratio)):
            sums[column] += value
    largest = sorted(found.items(), key=lambda pair: -pair[1][0])[:MAX_OPS]
    for (kind, device, file, line), (ns, calls, ratio) in largest:
        yield Row(
            kind="op",
            name=kind,
            text=device,
            file=shortened(file, cwd),
            line=line,
            time_ns=None if per_step is None else round(ns * per_step),
            number=int(calls),
            ratio=ratio,
        )

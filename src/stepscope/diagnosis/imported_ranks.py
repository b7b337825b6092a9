"""The report of imported files of several ranks of a job: that of the rank the others wait for, with what the others'
say, and what only all of them together show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from stepscope.causes.cluster import traced_ranks
from stepscope.detectors import base, registry
from stepscope.detectors.base import Signal
from stepscope.diagnosis import joint
from stepscope.model.report.cluster import Cluster, Gain, MemberRow
from stepscope.model.report.op_summary import OtherTrace
from stepscope.report.sections import op_trace_summaries
from stepscope.report.sections.cluster.members import MOST_MISSING
from stepscope.report.sections.traced_steps import MAX_OTHERS
from stepscope.tables.findings import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stepscope.causes.cluster.traced_ranks import ComparedRanks, Rank, TracedRanks
    from stepscope.derive.view import SessionView
    from stepscope.model.report.op_summary import TracedSteps
    from stepscope.model.report.report import Report


def build(view: SessionView, ranks: TracedRanks, report_of: Callable[[SessionView], Report]) -> Report:
    """Report of imported ranks.

    Args:
        view: the session.
        ranks: its ranks.
        report_of: makes the report of one rank's view.
    """
    together = [detector for detector in registry.ALL if Signal.RANKS in detector.instead]
    found, checked, failures = base.run(together, view)
    analysed = _analysed(ranks)
    reports = {rank.name: report_of(rank.view) for rank in analysed}
    critical = max(analysed, key=lambda rank: _slowness(ranks.compared, rank, reports[rank.name])).name
    named = [((name,), report) for name, report in reports.items()]
    with_steps = {name for name, report in reports.items() if report.traced is not None and report.traced.count}
    codes = {detector.code for detector in together}
    notes = [*view.session.manifest.diagnostics, *failures, *joint.notes_of(named)]
    if len(analysed) < len(ranks.ranks):
        text = f"only {len(analysed)} of {len(ranks.ranks)} ranks were analysed each by itself"
        notes.append(Diagnostic(code="DX192", text=text))
    traces, damaged = op_trace_summaries.build(view.session)
    notes += [note for note in damaged if note not in notes]
    return replace(
        reports[critical],
        findings=(*found, *sorted(joint.merged(named, with_steps), key=base.rank)),
        checked=(*checked, *joint.outcomes(c for _, r in named for c in r.checked if c.detector not in codes)),
        diagnostics=tuple(notes[: joint.MAX_DIAGNOSTICS]),
        op_traces=traces,
        traced=_traced(ranks, reports, critical),
        cluster=_cluster(ranks, reports),
    )


def _analysed(ranks: TracedRanks) -> list[Rank]:
    """Ranks to analyse: all of a few, else those that do most alone."""
    if len(ranks.ranks) <= joint.MOST_ANALYSED:
        return list(ranks.ranks)
    return sorted(ranks.ranks, key=lambda rank: -_own_ns(ranks.compared, rank))[: joint.MOST_ANALYSED]


def _own_ns(compared: ComparedRanks | None, rank: Rank) -> float:
    if compared is None or rank not in compared.ranks:
        return 0.0
    return float(compared.blame.own_ns[compared.ranks.index(rank)])


def _slowness(compared: ComparedRanks | None, rank: Rank, report: Report) -> tuple[float, int, str]:
    """What a rank does alone, else its mean step, else the last by the name of its file."""
    step_ns = report.traced.mean_ns if report.traced is not None and report.traced.count else 0
    return _own_ns(compared, rank), step_ns, rank.file.source.name


def _traced(ranks: TracedRanks, reports: Mapping[str, Report], critical: str) -> TracedSteps | None:
    """The steps of the rank that the report is about, with those of the others."""
    traced = {rank.file.source.name: reports[rank.name].traced for rank in ranks.ranks if rank.name in reports}
    mine = next(rank.file.source.name for rank in ranks.ranks if rank.name == critical)
    shown = traced.pop(mine)
    others = [
        OtherTrace(file=file, count=one.count, mean_ns=one.mean_ns, parts=one.parts, analysed=True)
        for file, one in traced.items()
        if one is not None and one.count
    ]
    return replace(shown, file=mine, others=tuple(others[:MAX_OTHERS])) if shown is not None else None


def _cluster(ranks: TracedRanks, reports: Mapping[str, Report]) -> Cluster:
    blame = ranks.compared.blame if ranks.compared is not None else None
    return Cluster(
        launcher=ranks.files.launcher,
        tasks=ranks.files.tasks,
        missing=ranks.files.missing[:MOST_MISSING],
        members=tuple(_row(ranks, rank, reports.get(rank.name)) for rank in ranks.ranks),
        common_steps=blame.steps if blame is not None else 0,
        period_ns=round(blame.period_ns) if blame is not None else None,
        waits_ns=round(float(np.mean(blame.waits_ns))) if blame is not None else None,
        exchange_ns=round(ranks.compared.exchange_ns) if ranks.compared is not None else None,
        text=ranks.text,
    )


def _row(ranks: TracedRanks, rank: Rank, report: Report | None) -> MemberRow:
    periods = rank.trace.periods if rank.trace is not None else None
    row = MemberRow(
        name=rank.name,
        rank=rank.file.number if rank.file.number >= 0 else None,
        host=", ".join(rank.file.source.hostnames),
        file=rank.file.source.name,
        steps=len(periods) if periods is not None else 0,
        step_ns=round(periods.mean_ns) if periods is not None else None,
        first=joint.first_of(report) if report is not None else None,
    )
    found = ranks.compared
    if found is None or rank not in found.ranks:
        return row
    j = found.ranks.index(rank)
    share = found.blame.gain[j]
    gain = Gain(ratio=share.ratio, low=share.low, high=share.high)
    return replace(
        row,
        own_ns=round(float(found.blame.own_ns[j])),
        waits_ns=round(float(found.blame.waits_ns[j])),
        blame_ns=round(float(found.blame.blame_median_ns[j])),
        last_ratio=float(found.blame.last_ratio[j]),
        gain=gain if found.blame.steps >= traced_ranks.MIN_STEPS else None,
        paired_by="number" if found.by_number else "clock",
        synchronous=True,
    )

"""The report of a joint session: what its members say, and what only all of them together show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from stepscope.causes.cluster import members as of_job
from stepscope.causes.cluster import waits
from stepscope.detectors import base, registry
from stepscope.detectors.base import Signal
from stepscope.diagnosis import settle
from stepscope.model.report.cluster import FirstFinding
from stepscope.model.report.report import Report, SessionSummary
from stepscope.model.report.step_summary import Throughput
from stepscope.report.sections.cluster import members
from stepscope.report.words import BLIND
from stepscope.tables.findings import Diagnostic
from stepscope.tables.units import format_ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from stepscope.causes.cluster.member import Member
    from stepscope.derive.view import SessionView
    from stepscope.model.report.cluster import Cluster
    from stepscope.model.report.ledger import LedgerEntry, SettledBy
    from stepscope.model.report.report import Component, StageShare
    from stepscope.model.session.session import Session, StoredMember
    from stepscope.tables.findings import Checked, Cost, Finding

IN_COMPUTE = frozenset({"forward-backward", "gradient-sharing"})
"""Stages of the pipeline that lie in a member's compute: exchanges lie inside of the compiled step."""
MOST_ANALYSED = 16
"""Most members that are analysed each by itself; of more, those with the longest own time are."""
MAX_DIAGNOSTICS = 20
ALIKE = 0.5
"""Share of what a finding costs most from which it counts as the same in another member."""
ALONE = frozenset({"DST004"})
"""Questions of a member alone, which the joint session answers."""
OF_MEMBERS = "DX193"
"""The diagnostic by which a member's report names the joint one."""
NOT_COMPARED = "DX190"
"""The one by which it says that it compared no clocks: one collector of a host does it for all."""
OUTCOMES = ("found", "undecided", "failed", "clear", "not-applicable")


def build(view: SessionView, report_of: Callable[[Session], Report]) -> Report:
    """Report of a joint session.

    Args:
        view: the session.
        report_of: makes the report of a member's session.
    """
    session = view.session
    together = [detector for detector in registry.ALL if Signal.MEMBERS in detector.needs]
    found, checked, failures = base.run(together, view)
    everyone = view.get(of_job.build)
    reports = {stored.folder: report_of(stored.load()) for stored in _analysed(view)}
    named = [(_names(everyone, folder), report) for folder, report in reports.items()]
    first: dict[str, FirstFinding | None] = {}
    for names, report in named:
        for name in names:
            first[name] = _worse(first.get(name), first_of(report))
    cluster = members.build(view, first)
    ledger = _ledger(_critical(cluster, reports), found)
    codes = {detector.code for detector in together}
    with_steps = {name for names, report in named if report.session.steps for name in names}
    of_members = [c for _, report in named for c in report.checked if c.detector not in codes]
    answered = {OF_MEMBERS, *({NOT_COMPARED} if None not in of_job.clocks(everyone) else ())}
    notes = [*session.manifest.diagnostics, *failures, *notes_of(named, answered)]
    if len(reports) < len(session.peers.members):
        text = f"only {len(reports)} of {len(session.peers.members)} members were analysed each by itself"
        notes.append(Diagnostic(code="DX192", text=text))
    return Report(
        session=_summary(session, [report for _, report in named], cluster),
        overhead=max((report.overhead for _, report in named), key=lambda overhead: overhead.ratio),
        anatomy=_anatomy([report.anatomy for _, report in named if report.anatomy]),
        stages=_stages([report.stages for _, report in named if report.anatomy and report.stages]),
        findings=(*found, *sorted(merged(named, with_steps), key=base.rank)),
        checked=(*checked, *outcomes(of_members)),
        diagnostics=tuple(notes[:MAX_DIAGNOSTICS]),
        cluster=cluster,
        ledger=ledger,
        unexplained_ratio=settle.unexplained(ledger),
    )


def _analysed(view: SessionView) -> list[StoredMember]:
    """Member sessions to analyse: all of a few, else those with the longest own time."""
    stored = list(view.session.peers.members)
    if len(stored) <= MOST_ANALYSED:
        return stored
    found = view.get(waits.build)
    if found is None or found.blame is None:
        return stored[:MOST_ANALYSED]
    slowest = np.argsort(-np.nan_to_num(found.blame.own_ns))[:MOST_ANALYSED]
    folders = {found.members[j].folder for j in slowest}
    return [one for one in stored if one.folder in folders]


def _critical(cluster: Cluster | None, reports: Mapping[str, Report]) -> Report:
    """The report of the member whose time is the job's: the one with the longest own time, else the longest run."""
    rows = [row for row in (cluster.members if cluster is not None else ()) if row.folder in reports]
    if cluster is not None and cluster.common_steps:
        return reports[max(rows, key=lambda row: row.own_ns or 0).folder]
    return max(reports.values(), key=lambda report: (bool(report.session.steps), report.session.wall_ns))


def _ledger(critical: Report, together: Sequence[Finding]) -> tuple[LedgerEntry, ...]:
    """The ledger of the member whose time is the job's, with what only all members together explain of its compute."""
    computing = [finding for finding in together if finding.pipeline_stage in IN_COMPUTE]
    share = sum(part.ratio for part in critical.anatomy if part.component == settle.COMPUTE)
    if not computing or not share:
        return critical.ledger
    explained = min(1.0, sum(_explains(finding.cost) for finding in computing) / share)
    how: SettledBy = "finding" if explained >= settle.SETTLES else "unexplained"
    code = computing[0].code if explained >= settle.SETTLES else ""
    return tuple(
        replace(entry, explained_ratio=max(entry.explained_ratio, explained), settled_by=how, code=code)
        if entry.component == settle.COMPUTE and entry.settled_by == "unexplained"
        else entry
        for entry in critical.ledger
    )


def _explains(cost: Cost) -> float:
    """Share of the step that a finding says what it goes to, whether or not it says what could be saved."""
    return cost.high if cost.basis == "unknown" else cost.ratio


def _names(everyone: Sequence[Member], folder: str) -> tuple[str, ...]:
    return tuple(member.name for member in everyone if folder in (member.folder, *member.folders))


def _worse(one: FirstFinding | None, other: FirstFinding | None) -> FirstFinding | None:
    """Of two incarnations of a task the finding that costs more."""
    found = [finding for finding in (one, other) if finding is not None]
    return max(found, key=lambda finding: finding.ratio, default=None)


def first_of(report: Report) -> FirstFinding | None:
    """The first finding above info that has a cost."""
    finding = next((f for f in report.findings if f.severity not in {"info", "ask"}), None)
    if finding is None:
        return None
    ratio = finding.cost.ratio
    return FirstFinding(code=finding.code, title=finding.title, severity=finding.severity, ratio=ratio)


def merged(named: Iterable[tuple[tuple[str, ...], Report]], with_steps: Collection[str]) -> list[Finding]:
    """Findings of members, each once, with the names of those that it costs about as much, unless all ``with_steps``
    are.
    """
    groups: dict[tuple[object, ...], list[tuple[tuple[str, ...], Finding]]] = {}
    for names, report in named:
        for finding in report.findings:
            if finding.code not in ALONE:
                place = (finding.where[0].file, finding.where[0].line) if finding.where else None
                groups.setdefault((finding.code, place), []).append((names, finding))
    found = []
    for group in groups.values():
        finding = max((one for _, one in group), key=lambda one: one.cost.weight)
        finding = replace(finding, cost=replace(finding.cost, exclusive_ratio=None))
        most = finding.cost.weight
        who = dict.fromkeys(name for names, one in group if one.cost.weight >= ALIKE * most for name in names)
        if set(with_steps) - set(who):
            finding = replace(finding, title=f"{', '.join(who)}: {finding.title}")
        found.append(finding)
    return found


def outcomes(every: Iterable[Checked]) -> list[Checked]:
    """The outcome of each detector: found if a member's session has it so, clear if none is worse."""
    best: dict[str, Checked] = {}
    for one in every:
        other = best.get(one.detector)
        if other is None or OUTCOMES.index(one.outcome) < OUTCOMES.index(other.outcome):
            best[one.detector] = one
    return [best[code] for code in sorted(best)]


def _anatomy(every: Sequence[tuple[Component, ...]]) -> tuple[Component, ...]:
    """The mean step of all members; the largest contributor is that of the member with the largest part."""
    groups: dict[str, list[Component]] = {}
    for parts in every:
        for part in parts:
            groups.setdefault(part.component, []).append(part)
    means = []
    for parts_of_one in groups.values():
        most = max(parts_of_one, key=lambda part: part.ns_per_step)
        ratio = sum(part.ratio for part in parts_of_one) / len(every)
        ns = round(sum(part.ns_per_step for part in parts_of_one) / len(every))
        means.append(replace(most, ratio=ratio, ns_per_step=ns))
    return tuple(sorted(means, key=lambda part: -part.ratio))


def _stages(every: Sequence[tuple[StageShare, ...]]) -> tuple[StageShare, ...]:
    """The stages of the mean step of the members, by those that measured them. One that is a part of its neighbour in
    some member's report counts as nothing there.
    """
    means = []
    for shares in zip(*every, strict=True):
        told = [share for share in shares if share.ratio is not None]
        if not told:
            means.append(shares[0])
            continue
        within = sum(share.ratio is None and not share.basis.startswith(BLIND) for share in shares)
        most = max(told, key=lambda share: share.ratio or 0.0)
        count = len(told) + within
        ratio = sum(share.ratio or 0.0 for share in told) / count
        lowest = 0.0 if within else min(share.ratio or 0.0 for share in told)
        spread = f" ({format_ratio(lowest)} to {format_ratio(most.ratio or 0.0)})" if lowest != most.ratio else ""
        basis = f"mean of {count} members{spread}; {most.basis}" if count > 1 else most.basis
        means.append(replace(most, ratio=ratio, basis=basis))
    return tuple(means)


def notes_of(named: Iterable[tuple[tuple[str, ...], Report]], answered: Collection[str] = ()) -> list[Diagnostic]:
    """Diagnostics of the members, each text once, without those that the joint session answers."""
    found: dict[tuple[str, str], list[str]] = {}
    for names, report in named:
        for one in report.diagnostics:
            if one.code in answered:
                continue
            found.setdefault((one.code, one.text), []).extend(names)
    return [
        Diagnostic(code=code, text=f"{', '.join(dict.fromkeys(who))}: {text}") for (code, text), who in found.items()
    ]


def _summary(session: Session, reports: Sequence[Report], cluster: Cluster | None) -> SessionSummary:
    manifest, summaries = session.manifest, [report.session for report in reports]
    with_steps = [summary for summary in summaries if summary.steps]
    rates = [summary.throughput.steps_per_s for summary in with_steps if summary.throughput.steps_per_s is not None]
    period = cluster.period_ns if cluster is not None else None
    slowest = max((s.step_times for s in with_steps if s.step_times is not None), key=lambda t: t.mean_ns, default=None)
    hosts = {summary_of.host for summary_of in (cluster.members if cluster is not None else ())}
    return SessionSummary(
        id=manifest.id,
        command=manifest.command,
        framework=next((s.framework for s in with_steps), summaries[0].framework),
        hosts=max(1, len(hosts)),
        steps=max((summary.steps for summary in summaries), default=0),
        throughput=Throughput(
            samples_per_s=cluster.samples_per_s if cluster is not None else None,
            steps_per_s=1e9 / period if period else (sum(rates) if rates else None),
        ),
        wall_ns=manifest.ended_ns,
        exit_code=manifest.exit_code,
        end="code" if manifest.exit_code is not None else "unknown",
        processes=sum(summary.processes for summary in summaries),
        step_times=slowest,
        members=tuple(member for summary in summaries for member in summary.members),
    )

"""The report as a JSON document of at most 4,000 bytes: schema ``stepscope.brief/1``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from stepscope.model.report.brief import MOST_BYTES, Brief, BriefCost, BriefFinding, BriefStep
from stepscope.report import json_report, verdict, words
from stepscope.report.brief import not_known, text, titles, verdict_words

if TYPE_CHECKING:
    from stepscope.model.report.report import Report
    from stepscope.tables.findings import Finding
    from stepscope.tables.place import Place

ROOMS = (400, 250, 150, 100, 60, 30, 15)
"""Longest text, tried in turn until the document is small enough."""
MOST_NOT_KNOWN = 4


def encode(report: Report, session_path: str = "") -> bytes:
    """The document, ending in a newline."""
    report = json_report.finite(report)
    for room in ROOMS:
        data = msgspec.json.format(msgspec.json.encode(brief_of(report, session_path, room)), indent=1) + b"\n"
        if len(data) <= MOST_BYTES:
            return data
    return (
        msgspec.json.encode(Brief(verdict=_cut(verdict_words.text(report), ROOMS[-1]), command="", framework=""))
        + b"\n"
    )


def brief_of(report: Report, session_path: str = "", room: int = ROOMS[0]) -> Brief:
    """The document; ``room``: characters of its longest text."""
    shown = text.findings(report)
    return Brief(
        verdict=_cut(verdict_words.text(report), room),
        command=_cut(words.printable(words.subject(report)), room),
        framework=_cut(words.printable(_framework(report)), room),
        step=_step(report),
        findings=tuple(_finding(finding, room) for finding in shown),
        more_findings=len(report.findings) - len(shown),
        not_known=tuple(_cut(item, room) for item in not_known.items(report)[:MOST_NOT_KNOWN]),
        session=session_path if len(session_path) <= room else "",
    )


def _cut(said: str, room: int) -> str:
    return titles.cut(said, room)


def _framework(report: Report) -> str:
    """The job's framework; of imported files their format, which is all that is known of it."""
    formats = dict.fromkeys(trace.format for trace in report.op_traces)
    return ", ".join(formats) if words.is_imported(report) and formats else report.session.framework


def _step(report: Report) -> BriefStep | None:
    summary, times, traced = report.session, report.session.step_times, report.traced
    if not summary.steps and words.is_imported(report) and traced is not None and traced.count:
        return BriefStep(count=traced.count, mean_ns=traced.mean_ns, parts={})
    if not summary.steps:
        return None
    return BriefStep(
        count=summary.steps,
        mean_ns=times.mean_ns if times is not None else None,
        p95_ns=times.p95_ns if times is not None else None,
        samples_per_s=summary.throughput.samples_per_s,
        run_ratio=verdict.steps_ratio(report),
        parts={_cut(name, 30): round(share, 4) for name, share in text.parts(report).items()},
    )


def _finding(finding: Finding, room: int) -> BriefFinding:
    cost, proof = finding.cost, text.proof_of(finding)
    return BriefFinding(
        code=_cut(words.printable(finding.code), 30),
        severity=finding.severity,
        title=titles.title(finding),
        where=_place(finding.where[0], room) if finding.where else None,
        cost=BriefCost(
            ratio=round(cost.ratio, 4),
            low=round(cost.low, 4),
            high=round(cost.high, 4),
            basis=cost.basis,
            of=words.whole_of(finding),
        ),
        remedy=_cut(words.printable(finding.remedies[0].text), room) if finding.remedies else "",
        proof=proof if proof and len(proof) <= room else None,
    )


def _place(place: Place, room: int) -> Place:
    return msgspec.structs.replace(
        place, file=_cut(words.printable(place.file), room), function=_cut(words.printable(place.function), room)
    )

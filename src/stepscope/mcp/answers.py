"""The answers of the four tools: each asks a use case or a query of the server, and fences what it says.

Heavy imports stand inside functions: a server starts before it is asked.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from stepscope.mcp import fence
from stepscope.mcp.fitting import fit
from stepscope.tables.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stepscope.mcp.fitting import Lists, Record
    from stepscope.mcp.handles import Handles
    from stepscope.mcp.tools import Check, Diagnose, Look, Prove
    from stepscope.model.report.whatif import WhatIfReport
    from stepscope.tables.findings import Finding

SECOND_NS = 1_000_000_000
MOST_ITEMS = 200
"""Most items that are prepared for an answer, more than fit into the largest."""
TRIAL = "--try"
WIDE = (400, 250, 160)
NARROW = (160,)
"""Most characters of a text, as of ``fitting.ROOMS``, where texts matter more than their number, and where less."""


def diagnose(handles: Handles, asked: Diagnose) -> bytes:
    """The report of a session, or one of its findings.

    Raises:
        StepscopeError: there is no such session, or it is damaged.
        UsageError: there is no such finding.
    """
    from stepscope.report import json_report
    from stepscope.report.brief import document, text

    opened = handles.opened(asked.session)
    report = json_report.finite(opened.report)
    head: Record = {"session": handles.handle(asked.session)}
    if asked.finding:
        return _one(head, report.findings, asked)

    shown = text.findings(report)

    def build(room: int) -> tuple[Record, Lists]:
        said = fence.fenced(document.brief_of(report, "", room), room)
        said.pop("untrusted_schema", None)
        rows = said.pop("findings", [])
        unknown = said.pop("untrusted_not_known", [])
        if isinstance(rows, list):
            for row, finding in zip(rows, shown, strict=True):
                row.update(_proof(row.pop("untrusted_proof", ""), room))
                row["finding"] = report.findings.index(finding) + 1
        return {**head, **said}, {"findings": _listed(rows), "untrusted_not_known": _listed(unknown)}

    return fit(build, asked.max_bytes)


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _one(head: Record, findings: Sequence[Finding], asked: Diagnose) -> bytes:
    """All of one finding."""
    if not 0 < asked.finding <= len(findings):
        raise UsageError(f"finding {asked.finding}: the report has {len(findings)}")
    finding = findings[asked.finding - 1]

    def build(room: int) -> tuple[Record, Lists]:
        said = fence.fenced(finding, room)
        lists = {name: _listed(said.pop(name, [])) for name in ("where", "remedies", "evidence")}
        for row, remedy in zip(lists["remedies"], finding.remedies, strict=True):
            if isinstance(row, dict):
                row.pop("untrusted_what_if", None)
                row.update(_proof(remedy.what_if or "", room))
        return {**head, "finding": asked.finding, **said}, lists

    return fit(build, asked.max_bytes, WIDE)


def _proof(command: object, room: int) -> Record:
    """How a remedy is proved: the trial that ``prove`` takes, else the command."""
    said = str(command)
    if not said:
        return {}
    try:
        words = shlex.split(said)
    except ValueError:
        words = []
    if TRIAL in words[:-1]:
        return {"untrusted_trial": fence.escaped(words[words.index(TRIAL) + 1], room)}
    return {"untrusted_proof": fence.escaped(said, room)}


# ---- look


def look(handles: Handles, asked: Look) -> bytes:
    """Evidence in a session.

    Raises:
        StepscopeError: there is no such session, or it does not hold what is asked.
    """
    return _LOOKS[asked.what](handles, asked)


def _source(handles: Handles, asked: Look) -> bytes:
    from stepscope.server import browse

    opened = handles.opened(asked.session)
    with opened.locked():
        found = browse.source(opened, asked.file, max(asked.line, 1), MOST_ITEMS)
    if not found.total:
        raise UsageError("the session holds no copies of sources")

    def build(room: int) -> tuple[Record, Lists]:
        lines = [fence.escaped(line, room) for line in found.lines]
        head: Record = {"first": found.first, "total": found.total}
        return {"untrusted_file": fence.escaped(found.file, room), **head}, {"untrusted_lines": lines}

    return fit(build, asked.max_bytes, WIDE)


def _ops(handles: Handles, asked: Look) -> bytes:
    from stepscope.server import browse, op_graphs

    opened = handles.opened(asked.session)
    with opened.locked():
        found = browse.ops(opened)
        if found is None:
            raise UsageError(op_graphs.no_trace(opened.view))

    def build(room: int) -> tuple[Record, Lists]:
        said = fence.fenced(found, room)
        return said, {name: _listed(said.pop(name, []))[asked.offset :] for name in ("makers", "ops", "types")}

    return fit(build, asked.max_bytes, NARROW)


def _step(handles: Handles, asked: Look) -> bytes:
    from stepscope.server import browse

    opened = handles.opened(asked.session)
    with opened.locked():
        found = browse.step(opened, asked.step)

    def build(room: int) -> tuple[Record, Lists]:
        said = [fence.fenced(one, room) for one in found.in_words]
        return {}, {"steps": said[asked.offset :]}

    return fit(build, asked.max_bytes)


def _timeline(handles: Handles, asked: Look) -> bytes:
    from stepscope.server.timelines import timeline_queries as queries

    reader = handles.timeline(asked.session)
    about = reader.index.timeline
    head: Record = {"begin_ns": about.begin_ns, "end_ns": about.end_ns, "spans": about.spans}
    if asked.words:
        hits = queries.search(reader, asked.words, asked.offset, MOST_ITEMS)
        head["total"] = hits.total
        found: list[Record] = [
            {"untrusted_name": hits.names[one.name], "start_ns": one.start_ns, "dur_ns": one.dur_ns}
            for one in hits.items
        ]
        return fit(lambda room: (head, {"hits": [_cut_name(one, room) for one in found]}), asked.max_bytes, NARROW)
    begin = round(asked.from_s * SECOND_NS) or about.begin_ns
    end = round(asked.to_s * SECOND_NS) or about.end_ns
    rows = queries.statistics(reader, begin, end, range(reader.lanes), asked.offset, MOST_ITEMS)
    head |= {"from_ns": begin, "to_ns": end, "names": rows.total}

    def build(room: int) -> tuple[Record, Lists]:
        said = [fence.fenced(one, room) for one in rows.items]
        for one in said:
            del one["name"]  # a number of the page's
        return head, {"rows": said}

    return fit(build, asked.max_bytes, NARROW)


def _cut_name(hit: Record, room: int) -> Record:
    return {**hit, "untrusted_name": fence.escaped(str(hit["untrusted_name"]), room)}


_LOOKS: dict[str, Callable[[Handles, Look], bytes]] = {
    "source": _source,
    "ops": _ops,
    "step": _step,
    "timeline": _timeline,
}


# ---- prove


def compare(handles: Handles, asked: Prove) -> bytes:
    """Two groups of sessions.

    Raises:
        StepscopeError: a session is missing, damaged, or on both sides.
    """
    from stepscope.use_cases import compare as use_case

    if not asked.before or not asked.after:
        raise UsageError("expected before and after, or command")
    before, after = (tuple(handles.path(word) for word in side) for side in (asked.before, asked.after))
    report = use_case.compare(use_case.CompareOptions(before=before, after=after))

    def build(room: int) -> tuple[Record, Lists]:
        said = fence.fenced(report, room)
        head: Record = {name: said[name] for name in ("design", "basis", "main", "typical") if name in said}
        head["runs"] = [len(report.before), len(report.after)]
        lists = {name: _listed(said.get(name)) for name in ("findings", "untrusted_notes", "differences")}
        return head, {**lists, "differences": lists["differences"][asked.offset :]}

    return fit(build, asked.max_bytes, NARROW)


TRIED = ("verdict", "kind", "ratio", "low", "high", "smallest_ratio", "rounds", "keeps_results", "before_ns", "ns")
TRIED_WORDS = ("remedy", "text", "lasting", "note")
"""What is said of a trial: numbers and closed words, and texts."""


def tried(report: WhatIfReport, asked: Prove) -> bytes:
    """What trials brought."""

    def build(room: int) -> tuple[Record, Lists]:
        head = fence.fenced(report, room)
        names = ("measure", "noise", "interrupted", "isolated", "against")
        rows = []
        for one in report.results:
            said = fence.fenced(one, room)
            wanted = (*TRIED, *(fence.MARK + name for name in TRIED_WORDS))
            rows.append({name: said[name] for name in wanted if name in said})
        return {name: head[name] for name in names if name in head}, {"results": rows[asked.offset :]}

    return fit(build, asked.max_bytes)


# ---- check


def check(asked: Check) -> bytes:
    """Static findings of files.

    Raises:
        CheckError: a path does not exist, or no rule has such a code.
        UsageError: a path is a session.
    """
    from stepscope.check.use_cases import check as use_case

    if not asked.paths:
        raise UsageError("nothing to check; expected paths")
    options = use_case.Options(paths=tuple(map(Path, asked.paths)), select=asked.select)
    report = use_case.check(options).report
    head: Record = {"files": report.files, "found": len(report.findings), "not_analysed": len(report.not_analysed)}

    def build(room: int) -> tuple[Record, Lists]:
        rows = [_row(one, room) for one in report.findings[asked.offset : asked.offset + MOST_ITEMS]]
        notes = [fence.fenced(one, room) for one in report.diagnostics[:MOST_ITEMS]]
        return head, {"findings": rows, "notes": notes}

    return fit(build, asked.max_bytes, NARROW)


def _row(finding: Finding, room: int) -> Record:
    """A static finding: what, where, the first remedy."""
    said = fence.fenced(msgspec.structs.replace(finding, where=finding.where[:1], remedies=finding.remedies[:1]), room)
    row: Record = {name: said[name] for name in ("code", "name", "severity", "untrusted_title") if name in said}
    for place in _listed(said.get("where")):
        row["where"] = place
    for remedy in _listed(said.get("remedies")):
        if isinstance(remedy, dict):
            row |= {f"untrusted_{new}": remedy[old] for new, old in _REMEDY if old in remedy}
            row["safety"] = remedy["safety"]
    return row


_REMEDY = (("remedy", "untrusted_text"), ("fix", "untrusted_fix"))

"""Adds to findings what is known of the installed versions: a defect that explains what was measured, and the way out.

Never a finding, and never a severity: without a finding that measures the symptom, nothing is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from stepscope.model.log.events import Framework, ModelBuilt, Name, ProcessStarted
from stepscope.tables import advisories
from stepscope.tables.findings import Remedy
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.view import SessionView
    from stepscope.model.session.session import Worker
    from stepscope.tables.advisories import Advisory
    from stepscope.tables.findings import Finding

REPEATED = 2
"""Calls from which one counts as repeated."""
_ROLES = {
    "keras.Model.fit": frozenset({"fit"}),
    "keras.Model.evaluate": frozenset({"evaluate"}),
    "keras.Model.predict": frozenset({"predict"}),
}
"""Roles of the LOOP records of a call. ``*_on_batch`` are other calls, and not said to have these defects."""


def annotated(findings: Sequence[Finding], view: SessionView) -> tuple[Finding, ...]:
    """The findings, each with the defects that explain it."""
    workers = view.session.workers
    machine = view.session.manifest.host.machine
    known = [(one, worker) for worker in workers for one in advisories.concerning(versions(worker), machine)]
    if not known:
        return tuple(findings)
    return tuple(
        _with(finding, [one for one, worker in known if _explains(one, worker, finding)]) for finding in findings
    )


def versions(worker: Worker) -> dict[str, str]:
    """Versions of a process's frameworks, and of its Python."""
    started = next(iter(worker.all(ProcessStarted)), None)
    found = {**worker.info.frameworks, **{line.name: line.version for line in worker.all(Framework) if line.version}}
    if started is not None and started.python:
        found["python"] = started.python
    return found


def _explains(one: Advisory, worker: Worker, finding: Finding) -> bool:
    if finding.code not in one.findings or (one.mentions and one.mentions.lower() not in finding.title.lower()):
        return False
    if one.builds and len(worker.all(ModelBuilt)) < REPEATED:
        return False
    wanted = [(call, REPEATED) for call in one.calls] + [(call, 1) for call in one.runs]
    return not wanted or any(_calls(worker, call) >= least for call, least in wanted)


def _calls(worker: Worker, call: str) -> int:
    names = [name.id for name in worker.all(Name) if name.role in _ROLES.get(call, ())]
    records = worker.records
    loops = records.name[records.kind == Kind.LOOP]
    return int(sum((loops == number).sum() for number in names))


def _with(finding: Finding, known: Sequence[Advisory]) -> Finding:
    if not known:
        return finding
    unique = {one.id: one for one in known}.values()
    said = " ".join(f"Known defect: {one.package} of this version {one.what} ({one.source})." for one in unique)
    remedies = tuple(Remedy(id=f"known-{one.id}", text=f"{one.remedy} ({one.source})") for one in unique)
    explanation = f"{finding.explanation} {said}".strip()
    return msgspec.structs.replace(finding, explanation=explanation, remedies=(*finding.remedies, *remedies))

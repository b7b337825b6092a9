"""The cost of captures, for the report, from the account stored with each capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from stepscope.model.api.status import LiveCapture
from stepscope.model.report.overhead import Capture
from stepscope.tables.findings import Evidence
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from stepscope.model.report.op_summary import OpTraceSummary, TracedSteps
    from stepscope.model.report.overhead import Overhead
    from stepscope.model.session.session import CaptureInfo, Manifest
    from stepscope.tables.findings import Diagnostic, Finding


def with_captures(
    overhead: Overhead, manifest: Manifest, traces: Sequence[OpTraceSummary] = (), others: Collection[str] = ()
) -> Overhead:
    """The overhead, including the manifest's captures.

    ``traces``: contents of their op traces; ``others``: names of traces that cover another kind of steps.
    """
    held = {trace.name: trace.events + sum(trace.left_out.values()) for trace in traces}
    done = [capture for capture in manifest.captures if capture.outcome == "done"]
    spent_ns = sum(capture.cost_ns for capture in manifest.captures)
    told = tuple(
        Capture(
            kind=capture.kind,
            steps=capture.steps,
            ratio=capture.ratio,
            low=capture.low,
            high=capture.high,
            id=capture.id,
            way=capture.way,
            asked_by=capture.asked_by,
            title=capture.title,
            work=capture.work,
            place=capture.place,
            joined=not any(name in others for name in _names(capture)),
            events=sum(held.get(name, 0) for name in _names(capture)),
            text=capture.text,
            at_ns=capture.at_ns,
            cost_ns=capture.cost_ns,
            export_ns=capture.export_ns,
            cpu_ns=capture.cpu_ns,
            bytes=capture.bytes,
        )
        for capture in done
    )
    share = spent_ns / manifest.ended_ns if manifest.ended_ns > 0 else 0.0
    return msgspec.structs.replace(overhead, captures=told, captures_ratio=share)


def _names(capture: CaptureInfo) -> list[str]:
    """Of its op traces."""
    return [name.rpartition("/")[2] for name in capture.files]


def annotated(findings: tuple[Finding, ...], manifest: Manifest) -> tuple[Finding, ...]:
    """The findings; those with evidence from captures (refs "capture:ID") carry the cost of the captures."""
    captures = {f"capture:{capture.id}": capture for capture in manifest.captures}
    return tuple(
        msgspec.structs.replace(finding, evidence=(*finding.evidence, *_cost(finding, captures)))
        for finding in findings
    )


def _cost(finding: Finding, captures: dict[str, CaptureInfo]) -> list[Evidence]:
    used = dict.fromkeys(ref for evidence in finding.evidence for ref in evidence.refs if ref in captures)
    told = []
    for ref in used:
        capture = captures[ref]
        told.append(Evidence(metric="capture_cost_ns", value=capture.cost_ns, unit="ns", refs=(ref,)))
        if capture.ratio is not None:
            told.append(Evidence(metric="capture_slowdown_ratio", value=capture.ratio, unit="ratio", refs=(ref,)))
    return told


def failures(manifest: Manifest) -> list[str]:
    """One sentence for each failed capture, and one for all that were discarded under a condition.

    Left out are those that the job's end cut off if another one answers.
    """
    have = {capture.kind for capture in manifest.captures if capture.outcome == "done" and capture.steps}
    said = [
        f"no {'op trace' if capture.kind == 'ops' else f'{capture.kind} capture'}: {capture.text or capture.outcome}"
        for capture in manifest.captures
        if capture.outcome not in {"done", DISCARDED}
        and not (capture.kind in have and capture.asked_by != _USER and _CUT_OFF in capture.text)
    ]
    return [*said, *_discarded(manifest)]


DISCARDED = "discarded"
"""Outcome of a capture in which its condition did not hold."""


def _discarded(manifest: Manifest) -> list[str]:
    """What waiting for a condition has cost, for each condition."""
    every = [capture for capture in manifest.captures if capture.outcome == DISCARDED]
    said = []
    for when in dict.fromkeys(capture.when for capture in every):
        mine = [capture for capture in every if capture.when == when]
        cost = format_ns(sum(capture.cost_ns for capture in mine))
        what = "1 capture was" if len(mine) == 1 else f"{len(mine)} captures were"
        said.append(f"{what} discarded: --when {when} did not hold in them; total cost {cost}")
    return said


_USER = "user"
_CUT_OFF = " ended first"
"""Part of the reason of a capture that the end of the job, or of its process, cut off."""


UNMADE = "no automatic op trace"
"""How the sidecar's note begins when captures were too dear for a job. It cannot know what the report will hold: a
trace beside native stacks, or the user's own profile, may be read after it."""


def unmade(cost_ns: int, age_ns: int, share: float) -> str:
    """What the sidecar notes of captures that were too dear, and how to have them."""
    return (
        f"{UNMADE}: tracing one step would cost about {format_ns(cost_ns)}, but --budget {100 * share:g}% allowed less "
        f"in the job's {format_ns(age_ns)}; to take one while the job runs: stepscope trace JOB --steps 1"
    )


_UNMADE_OF_STEPS = "no automatic op trace of whole steps"


def noted(diagnostics: Sequence[Diagnostic], traced: TracedSteps | None) -> list[Diagnostic]:
    """What was noted while the job ran, as the traced steps of the report leave it."""
    if traced is None:
        return list(diagnostics)
    said = (msgspec.structs.replace(one, text=one.text.replace(UNMADE, _UNMADE_OF_STEPS, 1)) for one in diagnostics)
    return [one for one in said if not (traced.count and one.text.startswith(_UNMADE_OF_STEPS))]


def live(capture: CaptureInfo, number: int = 1) -> LiveCapture:
    """A finished capture, as the live status shows it."""
    return LiveCapture(
        request=capture.request,
        asked_by=capture.asked_by,
        state="done" if capture.outcome == "done" else "failed",
        text=capture.text,
        when=capture.when,
        caught=capture.caught,
        title=capture.title,
        number=number,
        steps=capture.steps,
        ratio=capture.ratio,
        low=capture.low,
        high=capture.high,
        recorded_ns=capture.recorded_ns,
        cost_ns=capture.cost_ns,
        bytes=capture.bytes,
        files=tuple(f"captures/{name}" for name in capture.files),
    )

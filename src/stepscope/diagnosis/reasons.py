"""What the lines of findings do, and the line that no finding explains (docs/decisions/0120).

A general finding about much of the step is information, because what can be saved is not known. Where its line is the
largest thing that the report has to say, it is no information: it is said first, at the level of its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stepscope.causes.general import program_lines, waits, work_at_places
from stepscope.derive import steps_view, unmeasured
from stepscope.detectors import base
from stepscope.detectors.input.parts import dropped
from stepscope.detectors.ranking import meet
from stepscope.detectors.shared import line_words
from stepscope.model.report.components import REF, Trait, components_with
from stepscope.tables.units import format_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.causes.general.work_at_places import WorkThere
    from stepscope.derive.steps_view import StepsView
    from stepscope.derive.view import SessionView
    from stepscope.tables.findings import Finding, LineWork
    from stepscope.tables.place import Place

ALONE = 0.10
"""Share of the steady wall time from which a line is a finding, if nothing else is above information: as of slow Python
in the loop."""
ALWAYS = 0.30
"""The same whatever else is found."""
FORWARD = "forward"
"""The part of a step in which models are called."""
MOST_PLACES = 4
"""Of a general finding, that are looked at."""
REST = frozenset({"time-in-callbacks", "time-in-input-wait", "time-in-other-python"})
"""General findings whose lines are the user's Python."""
PROGRAM = "time-in-program"
PIPELINE = frozenset({"python-function-in-pipeline", "python-generator-input"})
PYTHON = (
    REST
    | PIPELINE
    | {
        "data-loader-wait",
        "periodic-stall",
        "python-input-in-loop",
        "rising-step-time",
        "slow-callback",
        "slow-python-in-loop",
    }
)
"""Findings whose first place is Python of the user's."""


def annotated(findings: Sequence[Finding], view: SessionView) -> tuple[Finding, ...]:
    """The findings in their order, those about lines of Python with what these do."""
    steps = steps_view.of(view)
    if steps is None:
        return tuple(_of_program(view, one) for one in findings)
    return tuple(_with(steps, one) for one in findings)


def _of_program(view: SessionView, finding: Finding) -> Finding:
    """With what its lines do, of a job without steps."""
    parts = view.get(program_lines.build) if finding.name == PROGRAM else ()
    part = next((one for one in parts if one.places == finding.where), None)
    if part is None or part.work is None:
        return finding
    does = line_words.work(part.work, None, 0.0)
    if (part.work.framework and not line_words.has_kind(part.work)) or part.waits_for:  # no reason of the lines' own
        does = replace(does, short="")
    return replace(finding, does=does, explanation=_said(finding, does))


def raised(general: Sequence[Finding], view: SessionView, specific: Sequence[Finding]) -> tuple[Finding, ...]:
    """The general findings, those about a line that nothing explains at the level of its time.

    Args:
        general: what the general detectors found.
        view: the session.
        specific: the findings of specific detectors and of the source.
    """
    steps = steps_view.of(view)
    above = [one for one in (*specific, *general) if one.severity not in {"info", "ask"}]
    return tuple(general) if steps is None else tuple(_raised(steps, one, above) for one in general)


def subject(finding: Finding, prefix: str) -> str:
    """The component or phase that a finding's first evidence about one names; "" for none."""
    refs = (ref for evidence in finding.evidence for ref in evidence.refs)
    return next((ref.removeprefix(prefix) for ref in refs if ref.startswith(prefix)), "")


def _with(view: StepsView, finding: Finding) -> Finding:
    component = _component(finding)
    if component is None or not finding.where:
        return finding
    found = work_at_places.of(view, finding.where[0], component)
    if found is not None and _of_models(finding) and not line_words.has_kind(found.work):
        return finding  # layers that compute
    return _unseen(view, finding) if found is None else _with_work(view, finding, found)


def _component(finding: Finding) -> str | None:
    """The component whose time on a finding's lines counts, "" for all; None where its lines are no Python."""
    component = subject(finding, REF) if finding.name in REST else ""
    others = component in components_with(Trait.TORCH) and component != FORWARD
    return None if finding.name not in PYTHON or others else component


def _of_models(finding: Finding) -> bool:
    """Whether it is about lines that call models, of which only work of a known kind is a reason."""
    return finding.name in REST and subject(finding, REF) == FORWARD


def _with_work(view: StepsView, finding: Finding, found: WorkThere) -> Finding:
    """With what the lines of its first place do."""
    does = line_words.work(found.work, waits.rates(view) if found.own_thread else None, found.calls)
    better = line_words.remedy(found.work)
    spared = tuple(one for one in finding.remedies if one.id in dropped.REMEDIES)
    others = tuple(one for one in finding.remedies if one not in spared)
    remedies = finding.remedies if better is None else (*spared, better, *others)
    return replace(finding, does=does, explanation=_said(finding, does), remedies=remedies)


def _raised(view: StepsView, finding: Finding, above: Sequence[Finding]) -> Finding:
    """``above``: the findings above information."""
    component = _component(finding)
    if not component or finding.severity != "info" or finding.cost.basis != "unknown":
        return finding
    for place in finding.where[:MOST_PLACES]:
        found = work_at_places.of(view, place, component)
        if found is not None and not _explained(view, finding, found, place, above):
            return _at_level(view, finding, found, place)
    return finding


def _at_level(view: StepsView, finding: Finding, found: WorkThere, place: Place) -> Finding:
    """At the level of the time on one of its places, which comes first."""
    share = _share(finding, found)
    saved = share * line_words.own_part(found.work)
    cost = base.cost_of(view, saved, low=0.0, high=max(share, finding.cost.high), basis="modelled")
    if place == finding.where[0]:
        return replace(finding, severity=base.severity_of(saved), cost=cost)
    where = (place, *(other for other in finding.where if other != place))
    short = line_words.work(found.work, None, 0.0).short
    title = f"line {place.line} takes {format_ratio(share)} of the step time{f': {short}' if short else ''}"
    return replace(finding, severity=base.severity_of(saved), cost=cost, where=where, title=title)


def _share(finding: Finding, found: WorkThere) -> float:
    """Of the steady wall time: on the line; of a wait for another thread's line, the wait."""
    if _of_models(finding):  # samples split this part, records measure what it is a part of
        return min(found.share, finding.cost.high)
    return found.share if found.own_thread else finding.cost.high


def _unseen(view: StepsView, finding: Finding) -> Finding:
    """With what the source of a function of the pipeline calls for: its thread is seldom seen."""
    if finding.name not in PIPELINE:
        return finding
    does = line_words.unseen(work_at_places.by_source(view, finding.where[0]))
    return replace(finding, does=does, explanation=_said(finding, does))


def _said(finding: Finding, does: LineWork) -> str:
    return " ".join(filter(None, (finding.explanation, f"What its lines do: {does.text}.")))


def _explained(view: StepsView, finding: Finding, found: WorkThere, place: Place, above: Sequence[Finding]) -> bool:
    """Whether a place needs no higher level: another finding explains it, it is small, or a framework's own time."""
    share = _share(finding, found)
    if share < (ALWAYS if above else ALONE) or any(meet(replace(finding, where=(place,)), other) for other in above):
        return True
    if _of_models(finding):
        return not line_words.has_kind(found.work) or _once_a_step(view, finding, found, place)
    reason = line_words.is_known(found.work)
    return not reason and (share < ALWAYS or found.work.framework or bool(unmeasured.framework(view)))


def _once_a_step(view: StepsView, finding: Finding, found: WorkThere, place: Place) -> bool:
    """Whether all that is known is that weights are computed, each once a step: a training needs that."""
    again = work_at_places.repeats(view, place, _component(finding) or "")
    return line_words.only(found.work, "parametrize") and not again

"""Combine static findings with measurements: join them with a detector's finding, rank by line cost, or list as info.

A static finding is certain of a pattern but does not know its cost; a run knows the cost. So, in this order:

1. If a detector's finding has the same root, the two are merged: the detector's code, cost and advice, and the rule's
   edit. The detector knows the cost; the edit is the nearest one, not always the one that saves most. A death for lack
   of memory of which the detector knows no cause takes the rule's: of a hit at its line, or the only sure one that ran.
2. If the run-time detector for the pattern ran and found nothing, the pattern costs nothing here: info.
3. If the steps are known to spend time in the finding's lines (``causes.host.line_heat``), it becomes a finding. Its
   cost is the share of that time that the pattern's fix removed in our measurements, never more than was measured
   here. The same if the run spends time in them outside of its steps (``diagnosis.static.outside_steps``).
4. If it makes a call of a Keras loop do more steps than are meant, and says by what factor, these steps are its cost,
   whatever else is found in them (``diagnosis.static.needless_steps``).
5. Everything else is info, listed separately (``SourceCheck``).

No finding above info rests on the source alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.python import loop_source
from stepscope.detectors.base import cost_of, rank, severity_of
from stepscope.diagnosis.static import needless_steps, outside_steps
from stepscope.diagnosis.static.static_check import StaticHit
from stepscope.tables.findings import Checked, Evidence, Finding, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import format_ratio

if TYPE_CHECKING:
    from stepscope.causes.host.line_heat import Heat, HotLines
    from stepscope.check.hits import Span
    from stepscope.derive.view import SessionView

FEW_LINES = 3
"""Most lines of a place that counts as one statement; a longer one is a function."""
PARTS = 2
"""Further places of a hit from which it is all that lies between them: from the decoding of a picture to its resize."""
MIN_RATIO = 0.03
"""Share of steady wall time from which a finding is low instead of info (decision 0003)."""
MIN_UNSURE_RATIO = 0.10
"""The same for rules of severity info, which do not know from the source whether their lines run often: medium."""
MIN_OUTSIDE_RATIO = 0.10
"""Share of the run outside of its steps from which a pattern there is a finding: medium (decision 0003). What is
paid once is small in a long run."""
STEP_SYMPTOMS = frozenset({"Time: slow execution time", "Time: increasing time over time"})
"""Symptoms that step times show."""
LOOP_ROLES = frozenset({"fit", "evaluate", "predict"})
OUT_OF_MEMORY = "Memory: out of memory"
"""A symptom that a run measures once: where it has found no cause, a pattern at its line is one."""
SURE = 0.8
"""Confidence from which a pattern far from where the job died may be what it died of."""
WAITING_STAGES = frozenset({"raw-input", "preprocessing", "host-to-device"})
"""Rules about these stages of the pipeline: time in which steps wait for a batch is theirs."""


class JoinedFindings(Struct, frozen=True, kw_only=True):
    """The findings after joining."""

    findings: tuple[Finding, ...]
    """Joined detector findings and static findings with a cost, ranked."""
    rest: tuple[Finding, ...]
    """Static findings on lines that the run did not see or that cost nothing; seen ones first."""


def join(
    view: SessionView,
    found: Iterable[Finding],
    checked: Iterable[Checked],
    static: Sequence[StaticHit],
    lines: HotLines,
) -> JoinedFindings:
    """Join static findings with those of a run.

    Args:
        view: the session.
        found: the detectors' findings.
        checked: the outcome of each detector.
        static: the checker's hits.
        lines: what the session knows about lines.
    """
    measured = list(found)
    outcomes = {c.detector: c for c in checked}
    own: list[tuple[StaticHit, Finding]] = []
    rest: list[Finding] = []
    for item in sorted(static, key=_weight):
        if (needless := needless_steps.finding(view, item)) is not None:
            place = _place(view, item.hit.span)
            own.append((item, replace(needless, where=(place,), remedies=(_remedy(item, place),))))
            continue
        heat = _heat(item, lines)
        home = _home(view, item, heat, measured)
        if home is None and _seen(item, lines):
            home = _home_by_code(view, item, measured, static)
            home = home if home is not None else _home_of_death(item, measured, static)
        if home is not None:
            measured[home] = _joined(view, measured[home], item)
            continue
        refuted = _refuting(item, outcomes)
        mine = (_measured(view, item, heat) or _outside(view, item)) if not refuted else None
        if mine is not None:
            own.append((item, mine))
        else:
            rest.append(_info(view, item, refuted, seen=_seen(item, lines)))
    ranked = sorted([*measured, *_one_per_place(own)], key=rank)
    return JoinedFindings(findings=tuple(ranked), rest=tuple(sorted(rest, key=lambda f: (not f.seen, f.code))))


def _weight(item: StaticHit) -> tuple[int, float, str, int]:
    """Order in which hits are matched: the surest first."""
    severity = ("error", "warning", "info").index(item.hit.severity)
    return severity, -item.hit.confidence, item.hit.span.path, item.hit.span.line


def _heat(item: StaticHit, lines: HotLines) -> Heat:
    span = item.hit.span
    waits = item.rule.pipeline_stage in WAITING_STAGES
    mine = lines.heat(span.path, span.line, span.end_line, waits=waits)
    parts = [part for part in item.hit.also if (part.path, part.function) == (span.path, span.function)]
    if len(parts) < PARTS:
        return mine
    between = lines.heat(span.path, min(p.line for p in parts), max(p.end_line for p in parts), waits=waits)
    return max(mine, between, key=lambda heat: heat.ratio)


def _refuting(item: StaticHit, outcomes: Mapping[str, Checked]) -> tuple[str, ...]:
    """The detectors of a pattern that ran and found nothing; empty if another of them found something."""
    mine = [outcomes[code] for code in item.rule.related if code in outcomes]
    if any(c.outcome == "found" for c in mine):
        return ()
    return tuple(c.detector for c in mine if c.outcome == "clear" and not c.hint)


# ---- one root


def _home(view: SessionView, item: StaticHit, heat: Heat, found: Sequence[Finding]) -> int | None:
    """Index of the finding with the same root; None without one."""
    tests = (_same_pattern, _same_statement, lambda v, i, f: heat.ratio >= MIN_RATIO and _inside(v, i, f))
    for same in tests:
        for index, finding in enumerate(found):
            if finding.origin != "static" and same(view, item, finding):
                return index
    return None


def _home_by_code(
    view: SessionView, item: StaticHit, found: Sequence[Finding], static: Sequence[StaticHit]
) -> int | None:
    """The finding of the rule's detector that could not say where, if the pattern stands in one place only.

    Not to say where is also to name the call of a Keras loop that it happened in; the pattern's object must reach it.
    """
    for index, finding in enumerate(found):
        alone = sum(finding.code in other.rule.related for other in static) == 1
        if finding.code in item.rule.related and alone and (not finding.where or _fed(view, item, finding)):
            return index
    return None


def _home_of_death(item: StaticHit, found: Sequence[Finding], static: Sequence[StaticHit]) -> int | None:
    """The finding of a death of which no cause was seen, if a sure hit that ran is the only one that names one."""
    alike = [one for one in static if one.hit.confidence >= SURE and one.rule.symptom == item.rule.symptom]
    for index, finding in enumerate(found):
        unknown = finding.cause == "unknown" and finding.symptom == item.rule.symptom
        if unknown and finding.code in item.rule.related and alike == [item]:
            return index
    return None


def _fed(view: SessionView, item: StaticHit, finding: Finding) -> bool:
    """Whether the finding's only place is a call of fit, evaluate or predict that uses the result of the hit."""
    span = item.hit.span
    source = view.source_of(span.path)
    calls = {(name.call_file, name.call_line) for name in view.names.values() if name.role in LOOP_ROLES}
    if source is None or len(finding.where) != 1 or (span.path, span.line) in calls:
        return False
    place = finding.where[0]
    called = (span.path, place.line) in calls and place.file == _place(view, span).file
    return called and loop_source.feeds(source, span.line, place.line)


def _same_pattern(view: SessionView, item: StaticHit, finding: Finding) -> bool:
    """Whether the detector of the rule's pattern points at it, or at something that belongs to it."""
    if finding.code not in item.rule.related:
        return False
    spans = (item.hit.span, *item.hit.also)
    return any(
        _overlap(view, place, span) or outside_steps.within(view, place, span)
        for place in finding.where
        for span in spans
    )


def _same_statement(view: SessionView, item: StaticHit, finding: Finding) -> bool:
    """Whether both point at one statement."""
    small = (p for p in finding.where if (p.end_line or p.line) - p.line < FEW_LINES)
    return any(_overlap(view, place, item.hit.span) for place in small)


def _inside(view: SessionView, item: StaticHit, finding: Finding) -> bool:
    """Whether the detector points at the function, whose cost includes the line's cost."""
    return any(_overlap(view, place, item.hit.span) for place in finding.where)


def _overlap(view: SessionView, place: Place, span: Span) -> bool:
    same = place.file in (span.path, _place(view, span).file)
    return same and place.line <= span.end_line and span.line <= (place.end_line or place.line)


def _joined(view: SessionView, finding: Finding, item: StaticHit) -> Finding:
    """A detector's finding, extended by the rule's source location and edit."""
    place = _place(view, item.hit.span)
    known = any(_overlap(view, p, item.hit.span) for p in finding.where)
    advises = finding.code in item.rule.related or item.rule.cause == finding.cause
    remedy = _remedy(item, place)
    adopts = finding.cause == "unknown" and finding.symptom == item.rule.symptom == OUT_OF_MEMORY
    remedies = () if adopts else finding.remedies
    if advises and all(r.id != remedy.id for r in remedies):
        remedies = (*remedies, remedy)
    said = f"{item.rule.code} finds it in the source: {item.hit.message}."
    if advises and item.hit.fix is not None:
        said += f" {item.hit.fix.behaviour}"
    return replace(
        finding,
        title=f"{finding.title}: {item.hit.message}" if adopts else finding.title,
        origin="joined",
        where=finding.where if known else (*finding.where, place),
        remedies=remedies,
        explanation=f"{finding.explanation} {said}".strip() if said not in finding.explanation else finding.explanation,
        related_codes=tuple(dict.fromkeys((*finding.related_codes, item.rule.code))),
        symptom=item.rule.symptom if finding.symptom == "unknown" else finding.symptom,
        cause=item.rule.cause if finding.cause == "unknown" else finding.cause,
        introduced_stage=item.rule.introduced_stage
        if finding.introduced_stage == "unknown"
        else finding.introduced_stage,
    )


def _remedy(item: StaticHit, place: Place) -> Remedy:
    """The rule's advice, with its edit and place if it plans one."""
    advice = item.finding.remedies[0]
    fix = item.hit.fix
    if fix is None:
        return replace(advice, rule=item.rule.code)
    return replace(
        advice,
        text=f"{fix.title[:1].lower()}{fix.title[1:]} at {place.file}:{place.line}",
        rule=item.rule.code,
        edit=item.edit,
    )


# ---- a root of its own


def _measured(view: SessionView, item: StaticHit, heat: Heat) -> Finding | None:
    """The finding of a pattern whose lines are known to cost enough, else None.

    Rules about memory or about what is paid once make none: the time of steps says nothing about them.
    """
    if item.rule.symptom not in STEP_SYMPTOMS:
        return None
    removes = max(0.0, 1.0 - 1.0 / item.rule.speedup)
    ratio = heat.ratio * removes
    if min(ratio, heat.low * removes) < (MIN_UNSURE_RATIO if item.hit.severity == "info" else MIN_RATIO):
        return None
    place = _place(view, item.hit.span)
    finding = item.finding
    return replace(
        finding,
        title=f"{item.hit.message}; this {'takes' if len(item.hit.also) >= PARTS else 'line takes'} "
        f"{format_ratio(heat.ratio)} of the time",
        severity=severity_of(ratio),
        rare="",
        where=(place, *(_place(view, span) for span in item.hit.also)),
        evidence=(
            Evidence(metric="line_ratio", value=heat.ratio, unit="ratio", threshold=MIN_RATIO),
            Evidence(metric="line_samples", value=heat.samples, unit="samples"),
            *finding.evidence,
        ),
        cost=cost_of(view, ratio, low=heat.low * removes, high=heat.ratio, basis="modelled"),
        remedies=(_remedy(item, place),),
        seen=True,
    )


def _outside(view: SessionView, item: StaticHit) -> Finding | None:
    """The finding of a pattern whose lines cost enough of the run outside of its steps, else None."""
    if item.rule.symptom not in STEP_SYMPTOMS:
        return None
    share = outside_steps.ratio(view, item.hit.span)
    cost = share * max(0.0, 1.0 - 1.0 / item.rule.speedup)
    if cost < MIN_OUTSIDE_RATIO:
        return None
    place = _place(view, item.hit.span)
    return replace(
        item.finding,
        title=f"{item.hit.message}; this takes {format_ratio(share)} of the run"
        f"{', outside of the steps' if view.steps is not None else ''}",
        severity=severity_of(cost),
        rare="",
        exposed_stage="initialization",
        where=(place, *(_place(view, span) for span in item.hit.also)),
        evidence=(
            Evidence(metric="run_ratio", value=share, unit="ratio", threshold=MIN_OUTSIDE_RATIO),
            *item.finding.evidence,
        ),
        cost=cost_of(view, cost, low=0.0, high=share, basis="modelled", ns_per_step=0),
        remedies=(_remedy(item, place),),
        seen=True,
    )


def _one_per_place(own: Sequence[tuple[StaticHit, Finding]]) -> Iterator[Finding]:
    """Findings on the same lines count once: the costliest represents the others."""
    kept: list[tuple[StaticHit, Finding]] = []
    for item, finding in sorted(own, key=lambda pair: -pair[1].cost.ratio):
        span = item.hit.span
        for index, (other, first) in enumerate(kept):
            there = other.hit.span
            if there.path == span.path and there.line <= span.end_line and span.line <= there.end_line:
                codes = tuple(dict.fromkeys((*first.related_codes, item.rule.code)))
                remedies = (*first.remedies, *finding.remedies) if item.rule is not other.rule else first.remedies
                kept[index] = other, replace(first, related_codes=codes, remedies=remedies)
                break
        else:
            kept.append((item, finding))
    yield from (finding for _, finding in kept)


def _info(view: SessionView, item: StaticHit, refuted: Sequence[str], *, seen: bool) -> Finding:
    """A pattern without an observed cost; ``refuted``: its detectors that ran and found nothing."""
    span = item.hit.span
    said = f" {', '.join(refuted)} checked for it in this run and found nothing." if refuted else ""
    return replace(
        item.finding,
        severity="info",
        where=(_place(view, span), *(_place(view, s) for s in item.hit.also)),
        remedies=(_remedy(item, _place(view, span)),),
        explanation=f"{item.finding.explanation}{said}".strip(),
        seen=seen,
    )


def _seen(item: StaticHit, lines: HotLines) -> bool:
    span = item.hit.span
    return bool(lines.seen(span.path, span.line, span.end_line, span.function))


def _place(view: SessionView, span: Span) -> Place:
    """A span as the report names places."""
    place = view.place(span.path, span.line, span.end_line, span.function)
    return replace(place, column=span.column, end_column=span.end_column)

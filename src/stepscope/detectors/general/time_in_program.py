"""A program in which no steps were seen spends much of its run in one of the user's functions.

## What it detects
The user's functions that take five percent of the run and more, in a job whose steps stepscope cannot see: inference
with PyTorch, loops of plain Python or NumPy, preparation of data. Of a loop that calls a model it names the loop's
line.

## Why it matters
Without steps nothing is known of parts of a step, but a run has lines on which its time goes, and what these do.

## Evidence
`program_ratio`: share of the job's wall time in the function. `program_ns`: its time. `line_ratio`: part of it on the
first line. What the lines do rests on the same stack samples (20 a second).

## Known limits
A function is above information if the kind of work on its lines is known, or if it takes three tenths of the run in
Python of which the source shows that it calls no framework. Lines that call one, or may (its functions in C have no
frame), stay information: whether a model has to compute that long is not known from stacks. So do those that wait for
other threads, processes or requests: if the main thread mostly waits, the lines of the others are named, while they do
not wait. No saving is measured.

## Remedy
That of the work on the lines, where it is known. To see the parts of a step: call `stepscope.step()` once in each turn
of the loop.

## References
FSE'22 study, slow execution time without a step to look at; decision 0120 of this project.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.general import program_lines
from stepscope.detectors.base import Detector, Seen, Signal, cost_of, severity_of
from stepscope.detectors.shared import general_loss, line_words
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.general.program_lines import ProgramPart
    from stepscope.derive.view import SessionView
    from stepscope.tables.findings import Stage


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.05)
    """Of the job's wall time: the least share that a report must explain (docs/decisions/0042)."""
    min_clear_ratio: Ratio = Ratio(0.10)
    """The same above information, of work of a known kind (docs/decisions/0120)."""
    min_own_ratio: Ratio = Ratio(0.30)
    """The same, of the user's own Python (docs/decisions/0120)."""


MARK = Remedy(
    id="mark-the-steps",
    text="call stepscope.step() once in each turn of this loop: then the parts of a step are measured",
)


def detect(view: SessionView, params: Params) -> Iterator[Seen]:
    """Yield one finding for each function."""
    for part in view.get(program_lines.build):
        if part.ratio >= params.min_ratio:
            yield _finding(view, part, params)


def _finding(view: SessionView, part: ProgramPart, params: Params) -> Seen:
    work, place = part.work, part.places[0]
    known = work is not None and line_words.is_known(work)
    own = work is not None and part.plain and not work.framework and part.ratio >= params.min_own_ratio
    clear = not part.waits_for and (own or (known and part.ratio >= params.min_clear_ratio))
    better = line_words.remedy(work) if work is not None else None
    own_part, most = (line_words.own_part(work), line_words.most_of(work)) if work is not None else (1.0, 1.0)
    name = f"the function {place.function} takes" if place.function != "<module>" else "the script's own lines take"
    if part.waits_for:
        name = f"{name.rpartition(' ')[0]} waits for {part.waits_for} for"
    line = f", {format_ratio(part.line_ratio)} of it at {PurePosixPath(place.file).name}:{place.line}"
    stage: Stage = "prediction" if set(view.frameworks) - {"numpy"} else "unknown"
    return Seen(
        title=f"{name} {format_ratio(part.ratio)} of the run{line} ({format_ns(part.ns)} in all)",
        severity=severity_of(part.ratio * own_part) if clear else "info",
        confidence=general_loss.CONFIDENCE,
        introduced_stage=stage,
        exposed_stage=stage,
        where=part.places,
        evidence=(
            Evidence(
                metric="program_ratio",
                value=part.ratio,
                unit="ratio",
                threshold=params.min_ratio,
                refs=(f"phase:{program_lines.PHASE}",),
            ),
            Evidence(metric="program_ns", value=part.ns, unit="ns"),
            Evidence(metric="line_ratio", value=part.line_ratio, unit="ratio"),
        ),
        cost=cost_of(view, part.ratio * own_part, low=0.0, high=part.ratio * most, basis="modelled", ns_per_step=0)
        if clear
        else cost_of(view, 0.0, high=part.ratio, basis="unknown", ns_per_step=0),
        remedies=(MARK,) if better is None else (better, MARK),
        explanation="No steps were seen in this job, so shares are of the whole run.",
    )


def _has_steps(view: SessionView) -> str:
    return "the job's steps were seen" if view.steps is not None else ""


DETECTOR = Detector(
    code="GEN015",
    name="time-in-program",
    cause="Python: interpreter overhead",
    needs=frozenset({Signal.STACKS}),
    applies=_has_steps,
    params=Params(),
    detect=detect,
)

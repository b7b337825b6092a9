"""What differs between two sides besides times, and what could not be compared: one line each."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from stepscope.experiments.statistics import RUN_SPREAD
from stepscope.use_cases.comparing import findings, rows
from stepscope.use_cases.comparing.rows import MIN_P99_STEPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from stepscope.model.report.compare import Basis
    from stepscope.use_cases.comparing.design import Sides
    from stepscope.use_cases.comparing.differences import Differences
    from stepscope.use_cases.comparing.numbers import SessionNumbers

_WITHOUT_STEPS: dict[Basis, str] = {
    "run": "whole runs, op traces and findings",
    "ops": "ops and findings, not the recordings' lengths,",
}
MOST = 3
"""Values of a side that a note lists."""


def build(before: Sequence[SessionNumbers], after: Sequence[SessionNumbers], compared: Sides) -> tuple[str, ...]:
    """All notes on the sessions of A and B, what matters most first."""
    return (
        *_design(compared),
        *_steps(before, after, compared),
        *_not_looked_for(before, after),
        *_differing(before, after),
        *_failed(before, after),
    )


def of_times(found: Differences) -> Iterator[str]:
    """Why the mean and the rates do not say what the verdict says: the median step decides."""
    main, typical = found.main, found.typical
    if main is not None and typical is not None and main.verdict == "undecided" != typical.verdict:
        change = f"{100 * (main.ratio or 1) - 100:+.1f} % time"
        why = ", because single long steps move them by more than that" if main.runs_needed is None else ""
        yield f"the verdict is that of the median step; the mean step and the rates ({change}) are undecided{why}"


def _design(compared: Sides) -> Iterator[str]:
    if compared.design == "within":
        yield (
            "one run a side does not show how runs of one program differ: intervals of times assume "
            f"{100 * RUN_SPREAD:g} %; compare groups of runs (--a, --b) before you rely on a change"
        )
    elif min(len(compared.before), len(compared.after)) == 1:
        yield "one run against a group: the variation of the group is taken for both"


def _not_looked_for(before: Sequence[SessionNumbers], after: Sequence[SessionNumbers]) -> Iterator[str]:
    """Findings of one side of which the other cannot say whether it has them."""
    for side, here, there in (("B", before, after), ("A", after, before)):
        open_codes = [one.code for one in findings.of_one_side(here, there) if not findings.looked_for(one, there)]
        if open_codes:
            yield f"whether {side} has {', '.join(dict.fromkeys(open_codes))} is not known: it could not look for it"


def _steps(before: Sequence[SessionNumbers], after: Sequence[SessionNumbers], compared: Sides) -> Iterator[str]:
    """Notes on steps, batches, and tables that a side lacks."""
    for side, given in (("A", before), ("B", after)):
        missing = sum(n.step_ns is None for n in given)
        if compared.basis in _WITHOUT_STEPS and missing == len(given):
            yield f"no steps in {side}: only {_WITHOUT_STEPS[compared.basis]} are compared"
        elif compared.basis not in _WITHOUT_STEPS and missing:
            yield f"no steps in {missing} of {len(given)} sessions of {side}: they count for wall time and memory only"
    if compared.basis == "ops" and rows.main(compared) is None:
        yield "the sides have too few ops in common for a verdict"
    if compared.basis not in _WITHOUT_STEPS:
        yield from _of_steps(before, after, compared)


def _of_steps(before: Sequence[SessionNumbers], after: Sequence[SessionNumbers], compared: Sides) -> Iterator[str]:
    """Notes on what is compared of steps."""
    if compared.basis == "sample":
        yield f"batches differ ({_batch(before)} and {_batch(after)} samples a step): times are per sample"
    if min(len(n.durations) for n in (*compared.before, *compared.after) if n.durations is not None) < MIN_P99_STEPS:
        yield f"no 99th percentile: a run has fewer than {MIN_P99_STEPS} timed steps"
    for side, given in (("A", compared.before), ("B", compared.after)):
        if any(n.imported for n in given):
            continue
        if not any(n.ops for n in given):
            yield f"no op trace of steps in {side}: op time by line is not compared"
        if not any(n.samples for n in given):
            yield f"no stack samples of the steps in {side}: lines of Python are not compared"


def _batch(given: Sequence[SessionNumbers]) -> str:
    return _listed(f"{n.samples_per_step:g}" for n in given if n.samples_per_step is not None)


_ASKED: tuple[tuple[str, Callable[[SessionNumbers], str]], ...] = (
    ("hosts", lambda n: n.manifest.host.name),
    ("processors", lambda n: n.manifest.host.cpu),
    ("CPU counts", lambda n: str(n.manifest.host.cpus)),
    ("frameworks", lambda n: n.report.session.framework),
    ("commands", lambda n: shlex.join(n.manifest.command)),
    ("steps", lambda n: n.title),
    ("applied remedies", lambda n: ", ".join(n.manifest.applied) or "none"),
)
"""What should be equal: name and value of a session."""


def _differing(before: Sequence[SessionNumbers], after: Sequence[SessionNumbers]) -> Iterator[str]:
    for what, value in _ASKED:
        sides = [{value(n): None for n in side} for side in (before, after)]
        if set(sides[0]) != set(sides[1]):
            yield f"{what} differ: A {_listed(sides[0])}; B {_listed(sides[1])}"
        elif len(sides[0]) > 1:
            yield f"{what} differ within A and B: {_listed(sides[0])}"


def _failed(before: Sequence[SessionNumbers], after: Sequence[SessionNumbers]) -> Iterator[str]:
    for side, given in (("A", before), ("B", after)):
        codes = [n.manifest.exit_code for n in given if n.manifest.exit_code]
        if codes:
            yield f"exit code {_listed(map(str, codes))} in {len(codes)} of {len(given)} runs of {side}"


def _listed(values: Iterable[str]) -> str:
    found = list(dict.fromkeys(values))
    return ", ".join(value or "unknown" for value in found[:MOST]) + (" ..." if len(found) > MOST else "")

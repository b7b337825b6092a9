"""The step makers of a job with several, in words: trainings, evaluations, predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import words
from stepscope.tables.units import format_rate, format_ratio

if TYPE_CHECKING:
    from stepscope.model.api.status import LiveMaker
    from stepscope.model.report.report import SessionSummary, StepMaker

WORDS = {"training": "training", "evaluation": "evaluation", "prediction": "predict", "step": "steps", "call": "calls"}
_STEPS = frozenset({"training", "step"})
SMALL_RATIO = 0.005
"""Share of the steps below which nothing is said of it."""
MAX_ALIKE = 4
"""Most equal trainers whose counts are listed one by one."""


def lines(summary: SessionSummary) -> list[str]:
    """One item for each maker, with equal trainers summed; empty for a single maker."""
    if len(summary.step_makers) <= 1:
        return []
    groups: dict[tuple[object, ...], list[StepMaker]] = {}
    for maker in summary.step_makers:
        groups.setdefault((maker.kind, maker.title, maker.place), []).append(maker)
    return [_line(group) for group in groups.values()]


def _line(group: list[StepMaker]) -> str:
    first = group[0]
    count = sum(maker.count for maker in group)
    alike = ""
    if len(group) > 1:
        each = f": {' + '.join(f'{maker.count:,}' for maker in group)}" if len(group) <= MAX_ALIKE else ""
        alike = f" by {len(group)} equal makers{each}"
    unit = "steps" if first.kind in _STEPS else "calls"
    rates = [maker.rate for maker in group]
    known = [rate for rate in rates if rate is not None]
    rate = f", {format_rate(sum(known))} per second" if known and len(known) == len(rates) else ""
    samples = [maker.samples_per_s for maker in group if maker.samples_per_s is not None]
    held = f", {format_rate(sum(samples))} samples/s" if len(samples) == len(group) else ""
    threads = f", {first.threads} threads" if first.threads > 1 else ""
    place = f" at {words.place_text(first.place, short=True)}" if first.place is not None else ""
    what = f"{WORDS[first.kind]} {count:,} {unit} of {words.printable(first.title)}"
    return f"{what}{place}{alike}{rate}{held}{threads}{_taking(first)}"


def _taking(maker: StepMaker) -> str:
    """What its calls take of the steps."""
    ratio = maker.step_ratio
    return f", {format_ratio(ratio)} of the steps' time" if ratio is not None and ratio >= SMALL_RATIO else ""


def live(maker: LiveMaker) -> str:
    """One maker of a running job."""
    unit = "steps" if maker.kind in _STEPS else "calls"
    place = f" at {words.printable(maker.place)}" if maker.place else ""
    rate = f", {format_rate(maker.rate)} per second" if maker.rate is not None else ""
    held = f", {format_rate(maker.samples_per_s)} samples/s" if maker.samples_per_s is not None else ""
    threads = f", {maker.threads} threads" if maker.threads > 1 else ""
    kind = WORDS.get(maker.kind, words.printable(maker.kind))
    return f"{kind} {maker.count:,} {unit} of {words.printable(maker.title)}{place}{rate}{held}{threads}"

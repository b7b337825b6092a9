"""The verdict of a report in plain words: what holds the job up, where, and how fast it would be without it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from stepscope.report import verdict, words
from stepscope.report.brief import titles

if TYPE_CHECKING:
    from stepscope.model.report.report import Report
    from stepscope.tables.findings import Cost, Finding

INPUT = ("raw-input", "preprocessing")
KINDS = {
    "raw-input": "Input-bound",
    "preprocessing": "Input-bound",
    "host-to-device": "Held up by copies to the device",
    "device-to-host": "Held up by waits for the device",
    "storage": "Held up by saving",
}
"""What a job is whose first finding lies in this stage; of other stages the finding's title says it."""
PARTLY = "Partly input-bound"
"""What it is if another part of the step takes more than the wait."""
MIN_HELD = 0.10
"""Share of the step from which a job is said to be held up."""
MIN_PART = 0.5
"""Part of a finding's cost that the waits for input are, where these say what the job is held up by."""
MIN_GAIN = 0.05
"""Smallest gain of which a speed is said."""
WIDE = 1.5
"""Ratio of the bounds of a speed from which both are said."""
NEARLY_ALL = 0.95
"""Share from which a speed has no upper bound that says anything."""
DIGITS_BELOW = 3
STEP_TIME = "step time"
"""What most shares are of. Not "each step": a callback, a save or a retrace may be in few of them."""


def text(report: Report) -> str:
    """As in ``Input-bound: 81 % of step time waits for augment, train.py:33. If fixed, about 6 times as fast``."""
    end = verdict.exit_text(report.session) if not words.is_imported(report) else ""
    said = _what(report)
    return f"{_sentence(end)} {said}" if end else said


def _what(report: Report) -> str:
    unread = verdict.unread_text(report)
    if unread and not report.session.steps:
        return _sentence(unread)
    said = _found(report)
    return f"{_sentence(unread)} {said}" if unread else said


def _found(report: Report) -> str:
    if why := verdict.nothing_to_show(report):
        return _sentence(f"no findings: {why}")
    found = words.significant(report)
    if found and found[0].severity == "ask":
        return _sentence(f"perhaps {titles.title(found[0])}")
    first = next((one for one in found if _tells(report, one)), None)
    if first is not None:
        return f"{_held(report, first)}{_gain(report, first)}"
    return _without_findings(report)


def _tells(report: Report, finding: Finding) -> bool:
    """Whether a finding is a verdict: its cause is known, or it is larger than what nothing explains."""
    return finding.severity != "ask" and (finding.cause != "unknown" or finding.cost.high >= report.unexplained_ratio)


def _without_findings(report: Report) -> str:
    general = verdict.listed(report)
    if words.is_imported(report) or not report.session.steps:
        if not words.is_imported(report) and general and general[0].cost.high >= report.unexplained_ratio:
            return _sentence(f"no steps were seen; the largest part of the run: {titles.title(general[0])}")
        return _sentence(verdict.nothing_text(report))
    if general and general[0].cost.high >= report.unexplained_ratio:
        return _sentence(f"no finding with a known saving; the largest part: {titles.title(general[0])}")
    if verdict.unexplained_text(report):
        left = f"{words.percent(report.unexplained_ratio)} % of the time is not explained"
        return f"{left}; what was found takes less." if words.significant(report) else f"No cause found: {left}."
    return _sentence(f"{verdict.NOTHING}{_most(report)}")


def _held(report: Report, finding: Finding) -> str:
    """The first finding as a sentence."""
    cost, kind = finding.cost, KINDS.get(finding.pipeline_stage)
    where = culprit(finding)
    shares: defaultdict[str, float] = defaultdict(float)
    for part in report.anatomy:
        shares[part.component] += part.ratio
    waits = shares["input-wait"]
    if finding.pipeline_stage in INPUT and waits >= max(MIN_HELD, cost.ratio * MIN_PART):
        bound = kind if waits == max(shares.values()) else PARTLY
        return f"{bound}: {words.percent(waits)} % of step time waits for {where or 'its input'}{_reason(finding)}."
    if cost.basis == "unknown":
        return _sentence(titles.title(finding))
    share = f"{words.percent(cost.ratio)} % of {_whole(finding)}"
    if kind is None or not where or finding.pipeline_stage in INPUT or cost.ratio < MIN_HELD:
        return f"{_sentence(titles.title(finding))} Cost: {share}."
    return f"{kind}: {share} goes to {where}{_reason(finding)}."


def _reason(finding: Finding) -> str:
    """`` (parsing of JSON, below load)``: what its lines do, where that is known."""
    return f" ({words.printable(finding.does.short)})" if finding.does is not None and finding.does.short else ""


def culprit(finding: Finding) -> str:
    """``augment, demo_train.py:33``; "" of a finding without a place."""
    if not finding.where:
        return ""
    place = finding.where[0]
    function = words.printable(place.function).rpartition("<locals>.")[2]
    if function in {"", "<module>", "<lambda>"}:
        return titles.at(place)
    return f"{titles.statement(function, titles.MOST_PLACE)}, {titles.at(place)}"


def _whole(finding: Finding) -> str:
    if finding.cost.of_turn:
        return "turn time"
    return "the run" if words.is_between_steps(finding) else STEP_TIME


def _gain(report: Report, finding: Finding) -> str:
    """How fast the step, or the run, would be without the finding."""
    cost = finding.cost
    if cost.basis == "unknown" or cost.ratio < MIN_GAIN:
        return ""
    few = verdict.of_few_steps(report, finding)
    when = "If fixed" if finding.remedies else "Without it"
    return f" {when}, {'its steps are ' if few else ''}{speed(cost)} as fast."


def speed(cost: Cost) -> str:
    """``about 6 times``; where the interval is wide ``1.5 to 3 times``, ``up to 3 times`` or ``at least 2 times``."""
    middle, low, high = (1 / max(1 - ratio, 0.01) for ratio in (cost.ratio, cost.low, cost.high))
    if high <= WIDE * low:
        return f"about {_times(middle)} times"
    if cost.high >= NEARLY_ALL:
        return f"at least {_times(low)} times" if _times(low) != "1" else f"perhaps {_times(middle)} times"
    return f"{_times(low)} to {_times(high)} times" if _times(low) != "1" else f"up to {_times(high)} times"


def _times(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0") if value < DIGITS_BELOW else f"{value:.0f}"


def _most(report: Report) -> str:
    parts = [part for part in report.anatomy if part.component != "unmeasured"]
    if not parts:
        return ""
    most = max(parts, key=lambda part: part.ratio)
    return f": {words.component_of(report, most.component)} takes {words.percent(most.ratio)} % of {STEP_TIME}"


def _sentence(said: str) -> str:
    """With a capital, unless it begins with a name of the program's, and a full stop."""
    first = said.split(" ", 1)[0].rstrip(",")
    name = not first.isalpha()
    return f"{said[:1] if name else said[:1].upper()}{said[1:].rstrip('.')}."

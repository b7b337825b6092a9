"""The sentence that says what a slow step was: how long, against the median, and what took the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from stepscope.model.report.components import COMPONENTS, Trait, components_with
from stepscope.tables.units import format_ns, format_ratio

if TYPE_CHECKING:
    from stepscope.model.report.slow_steps import StepPart
    from stepscope.model.report.step_detail import StepDetail
    from stepscope.tables.place import Place

LEADING_RATIO = 0.5
"""A component that has this share of the extra time is named alone."""
TWO_DIGITS_FROM = 10.0
ALIKE = 1.2
"""Below so many times the median a step is as long as the others."""
FEWEST_SAMPLES = 4
"""Stack samples without which nothing is said of the time on a CPU."""
MOST_ON_CPU = 0.3
"""Share of the sampled time from which a thread counts as running."""
_PYTHON = [name for name in components_with(Trait.HOST) if COMPONENTS[name].stage == "output-processing"]
"""Components in which a thread is expected to run; in the others it waits for a disk, for input or for ops."""
_NO_CAUSE = ("function call", "input")
"""What happens in a component, and explains nothing of it."""


def headed(detail: StepDetail) -> StepDetail:
    """The detail with its sentence."""
    took = f"step {detail.number} took {format_ns(detail.dur_ns)}"
    median = format_ns(detail.median_ns)
    if detail.factor < ALIKE:
        much = "about as long as" if detail.factor >= 1 / ALIKE else "less than"
        return msgspec.structs.replace(detail, headline=f"{took}, {much} the median step ({median})")
    text = f"{took}, {_times(detail.factor)} times the median ({median}): {_why(detail)}"
    return msgspec.structs.replace(detail, headline=text)


def _times(factor: float) -> str:
    return f"{factor:.1f}" if factor < TWO_DIGITS_FROM else f"{factor:,.0f}"


def _why(detail: StepDetail) -> str:
    """The components that made it longer; with the first, what happened in it."""
    extra = detail.dur_ns - detail.median_ns
    first, *rest = [part for part in detail.parts if part.ns > part.median_ns]
    said = [_part(detail, first)]
    if first.ns - first.median_ns < LEADING_RATIO * extra and rest:
        said.append(_part(detail, rest[0]))
    return ", ".join(said) + _off_cpu(detail, first.component)


def _off_cpu(detail: StepDetail, component: str) -> str:
    """Where Python took the time and its thread hardly ran: that it slept, or waited for a CPU, a lock or a file."""
    known = detail.cpu_ratio is not None and detail.samples >= FEWEST_SAMPLES
    if detail.cpu_ratio is None or not known or component not in _PYTHON or detail.cpu_ratio >= MOST_ON_CPU:
        return ""
    return f"; its thread was on a CPU {format_ratio(detail.cpu_ratio)} of the time: it waited or slept"


def _part(detail: StepDetail, part: StepPart) -> str:
    more = part.ns - part.median_ns
    word = COMPONENTS[part.component].word if part.component in COMPONENTS else part.component
    usual = "" if part.median_ns < more / 10 else f" (usually {format_ns(part.median_ns)})"
    what = _cause(detail, part.component)
    return f"{format_ns(part.ns)} of it {word}{usual}{f' ({what})' if what else ''}"


def _cause(detail: StepDetail, component: str) -> str:
    """What happened in a component, and where."""
    found = [one for one in detail.happened if one.component == component and one.what not in _NO_CAUSE]
    if found:
        longest = max(found, key=lambda one: one.ns)
        place = next((at for one in sorted(found, key=lambda one: -one.ns) if (at := _at(one.where))), "")
        reason = f": {longest.reason}" if longest.reason else ""
        return ", ".join(filter(None, (longest.name, place))) + reason
    line = next((one for one in detail.lines if one.component == component), None)
    if line is not None:
        inside = f", in {line.called}" if line.called else ""
        return f"{line.where.function}, {_at(line.where)}{inside}"
    return _machine(detail) if component == "call" else ""


def _machine(detail: StepDetail) -> str:
    """What the machine did meanwhile, where that is unusual."""
    raised = {one.name: one for one in detail.machine if one.raised}
    if "wait_for_cpu" in raised:
        who = f": {detail.rival}" if detail.rival and "others_cpu" in raised else ""
        return f"threads waited for a CPU, {raised['wait_for_cpu'].value:.1f} cores{who}"
    return ""


def _at(where: Place | None) -> str:
    """The place of the user's code; what is installed is no place to act."""
    known = where is not None and where.file and "/site-packages/" not in where.file
    return f"{where.file}:{where.line}" if where is not None and known else ""

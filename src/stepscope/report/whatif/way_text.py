"""``whatif --until-done`` for people: the steps of the way, what makes them permanent, and what is left."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from stepscope.model.report.remedies import ENVIRONMENT_REMEDIES
from stepscope.report.whatif import text as whatif_text
from stepscope.report.words import printable
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stepscope.model.report.whatif import Stop, WhatIfReport, WhatIfResult, WhatIfStep, WhatIfWay

ENDS: dict[Stop, str] = {
    "no-gain": "no trial is a sure gain over 3 % any more",
    "nothing-suggested": "nothing that is left suggests another gain",
    "time": "the time is over: raise --time",
    "steps": "it has kept as many changes as it may",
    "interrupted": "it was ended early",
    "not-measured": "the job with these changes shows no steady steps any more",
}
CHANGED = "--allow-changed-results"


def render(report: WhatIfReport, way: WhatIfWay, *, color: bool = False, width: int = 120) -> str:
    """The report; each line ends in a newline. ``width``: columns of the terminal."""
    width = max(width, whatif_text.MIN_WIDTH)
    name_width = whatif_text.name_width_of(_names(report, way))
    unchanged = whatif_text.AS_IT_IS.ljust(name_width) + format_ns(report.ns) + whatif_text.noise_text(report.noise)
    lines = [whatif_text.head_line(report), "", unchanged, *_steps(way, name_width, width, color=color)]
    lines += [*_total(way, name_width), *_lasting(way, width)]
    lines += [*_not_kept(way, name_width, width, color=color), *_ceilings(way, name_width, width, color=color)]
    lines += whatif_text.not_measured_lines(_not_measured(way), name_width, width)
    lines += ["", *textwrap.wrap(conclusion(report, way), width), *whatif_text.foot_lines(report, width)]
    return "".join(f"{line}\n" for line in lines)


def _names(report: WhatIfReport, way: WhatIfWay) -> Iterator[str]:
    yield from (result.remedy for result in report.results)
    yield from (result.remedy for step in way.steps for result in step.results)
    yield from (result.remedy for result in way.left)


def _steps(way: WhatIfWay, name_width: int, width: int, *, color: bool) -> Iterator[str]:
    for number, step in enumerate(way.steps, 1):
        best = next((result for result in step.results if result.remedy == step.winner), None)
        others = [result for result in step.results if result is not best and result.verdict in whatif_text.MEASURED]
        yield ""
        if best is not None:
            yield f"step {number}: {best.remedy} is kept"
            yield from whatif_text.result_lines(best, name_width, width, color=color)
        else:
            yield f"step {number}: nothing is kept"
        tried = ", ".join(f"{printable(one.remedy)} {whatif_text.change_text(one)}" for one in others)
        if tried:
            yield from textwrap.wrap(f"also tried: {tried}" if best is not None else f"tried: {tried}", width)


def _total(way: WhatIfWay, name_width: int) -> Iterator[str]:
    total = way.total
    if total is None:
        return
    yield ""
    if not total.ns:
        yield f"all together: not possible: {printable(total.note)}"
        return
    yield "all together, measured against the unchanged job in the same rounds:"
    yield " " * name_width + f"{whatif_text.times_column(total)}{whatif_text.change_text(total)}  {_word(total)}"
    yield from (" " * name_width + line for line in whatif_text.memory_lines(total))


def _word(result: WhatIfResult) -> str:
    return "no difference" if result.verdict == "same" else result.verdict


def _lasting(way: WhatIfWay, width: int) -> Iterator[str]:
    if way.kept:
        yield from ("", "to keep all of it:")
    for one, line in zip(way.kept, way.lasting, strict=False):
        if one in ENVIRONMENT_REMEDIES:  # a line to paste is not wrapped
            yield f"  {printable(line)}"
            continue
        yield from textwrap.wrap(
            printable(line), width, initial_indent="  ", subsequent_indent="      ", break_on_hyphens=False
        )


def _not_kept(way: WhatIfWay, name_width: int, width: int, *, color: bool) -> Iterator[str]:
    gains = [one for one in way.left if one.kind == "gain" and one.verdict in whatif_text.MEASURED]
    if gains:
        yield from ("", f"not kept, because they change the results ({CHANGED} keeps them):")
    for result in gains:
        yield from whatif_text.result_lines(result, name_width, width, color=color)


def _ceilings(way: WhatIfWay, name_width: int, width: int, *, color: bool) -> Iterator[str]:
    ceilings = [one for one in way.left if one.kind == "ceiling" and one.verdict in whatif_text.MEASURED]
    if ceilings:
        yield from ("", "ceilings that are left: the most that any further change of this part can bring")
    for result in ceilings:
        yield from whatif_text.result_lines(result, name_width, width, color=color)


def _not_measured(way: WhatIfWay) -> list[WhatIfResult]:
    """What was never measured, each once: the reason of its last step."""
    measured = {one.remedy for one in _all(way) if one.verdict in whatif_text.MEASURED}
    return list({one.remedy: one for one in _all(way) if one.remedy not in measured}.values())


def _all(way: WhatIfWay) -> Iterable[WhatIfResult]:
    steps: tuple[WhatIfStep, ...] = way.steps
    yield from (one for step in steps for one in step.results)
    yield from way.left


def conclusion(report: WhatIfReport, way: WhatIfWay) -> str:
    """The answer in one sentence."""
    end = f"it ended because {ENDS[way.stop]}"
    left = [one for one in way.left if one.kind == "ceiling" and one.verdict in {"faster", "same"}]
    said = ", ".join(f"{printable(one.remedy)} {100 * (one.ratio - 1):+.0f} %" for one in left)
    ceilings = f"; the ceilings that are left: {said}" if said else ""
    if not way.kept:
        return f"nothing is kept: {ENDS[way.stop]}{ceilings}"
    if way.total is None or not way.total.ns:
        return f"kept: {printable(', '.join(way.kept))}; {end}{ceilings}"
    times = f"{1 / way.total.ratio:.2g} times as fast"
    one = len(way.kept) == 1
    sure = way.total.verdict == "faster"
    verb = ("makes" if one else "make") if sure else f"{'seems' if one else 'seem'} to make"
    names = f"{'' if one else 'together '}{printable(', '.join(way.kept))}"
    changed = "" if way.total.keeps_results else f", but {'changes' if one else 'change'} the results"
    return f"{names} {verb} a {report.measure} {times}{changed}; {end}{ceilings}"

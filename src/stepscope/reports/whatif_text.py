"""The gains of remedies, for people: one line for the unchanged job and one for each remedy."""

from __future__ import annotations

import shlex
import textwrap
from typing import TYPE_CHECKING

from stepscope.reports.check.check_text import printable
from stepscope.units import format_ns

if TYPE_CHECKING:
    from stepscope.model.report.whatif import WhatIfReport, WhatIfResult

_AS_IT_IS = "unchanged"
_COLORS = {"faster": "1;32", "slower": "1;31", "undecided": "2"}
_MIN_WIDTH = 60


def render(report: WhatIfReport, *, color: bool = False, width: int = 120) -> str:
    """The report; each line ends in a newline. ``width``: columns of the terminal."""
    name_width = max(len(_AS_IT_IS), *(len(result.remedy) for result in report.results)) + 2
    what = f"a step ({report.step})" if report.measure == "step" and report.step else f"a {report.measure}"
    head = f"{printable(shlex.join(report.command))} \u00b7 {report.rounds} interleaved rounds \u00b7 time of {what}"
    lines = [head, "", _AS_IT_IS.ljust(name_width) + format_ns(report.ns)]
    for result in report.results:
        lines += _result(result, name_width, max(width, _MIN_WIDTH), color=color)
    return "".join(f"{line}\n" for line in [*lines, "", f"sessions: {printable(report.folder)}"])


def _result(result: WhatIfResult, name_width: int, width: int, *, color: bool) -> list[str]:
    verdict = f"\x1b[{_COLORS[result.verdict]}m{result.verdict}\x1b[0m" if color else result.verdict
    line = f"{result.remedy.ljust(name_width)}{format_ns(result.ns).ljust(10)}{change_text(result)}  {verdict}"
    more = [
        f"gone: {', '.join(result.gone)}" if result.gone else "",
        f"new: {', '.join(result.new)}" if result.new else "",
        printable(result.note),
        printable(result.text),
    ]
    indent = " " * name_width
    wrapped = [part for text in more if text for part in textwrap.wrap(text, width - name_width)]
    return [line, *(indent + part for part in wrapped)]


def change_text(result: WhatIfResult) -> str:
    """The change in time, in percent, with its interval."""
    value, low, high = (100 * (ratio - 1) for ratio in (result.ratio, result.low, result.high))
    return f"{value:+.1f} % ({low:+.1f} to {high:+.1f})"

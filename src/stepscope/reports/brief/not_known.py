"""What a run could not see: unexplained time, checks that could not decide, failures of stepscope's own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stepscope.reports import checked_words, verdict, words

if TYPE_CHECKING:
    from stepscope.model.report.finding import Report

_COUNT = re.compile(r"^(\d+) (?=could not decide|failed)")


def items(report: Report) -> list[str]:
    """One text each: ``11 % of the time: 11 % compute at ...``, ``18 checks could not decide: ...``, ``DX...``."""
    checks = [_COUNT.sub(_checks, item) for item in checked_words.blind_items(report.checked)]
    problems = words.merged_diagnostics(report.diagnostics)
    said = [verdict.unexplained_text(report), *checks]
    if problems:  # what failed or was lost stands before what could not be looked at
        code, text, _ = problems[0]
        more = f" and {words.plural(len(problems) - 1, 'more note')}" if len(problems) > 1 else ""
        said.insert(0, f"{code} {text}{more}")
    return [item for item in said if item]


def _checks(count: re.Match[str]) -> str:
    return f"{words.plural(int(count[1]), 'check')} "

"""What a run could not see: unexplained time, checks that could not decide, failures of stepscope's own."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from stepscope.model.frameworks import NOT_FOR
from stepscope.report import checked_words, verdict, words
from stepscope.report.document.traces import traced as traced_words

if TYPE_CHECKING:
    from stepscope.model.report.report import Report

MOST_FILES = 2
"""Files that were not analysed and are named."""
_COUNT = re.compile(r"^(\d+) (?=could not decide|failed)")
_ELSEWHERE = re.compile(rf"^(\d+) {NOT_FOR}")


def items(report: Report) -> list[str]:
    """One text each: ``findings about rank_a.json, not analysed: ...``, ``11 % of the time: 11 % compute at ...``, ``18
    checks could not decide: ...``, ``DX...``.
    """
    blind = checked_words.blind_items(report.checked)
    checks = [_ELSEWHERE.sub(_elsewhere, _COUNT.sub(_checks, item)) for item in blind]
    problems = words.merged_diagnostics(report.diagnostics)
    said = [_not_analysed(report), verdict.unexplained_text(report), *checks]
    if problems:  # what failed or was lost stands before what could not be looked at
        code, text, _ = problems[0]
        more = f" ({words.plural(len(problems) - 1, 'more note')})" if len(problems) > 1 else ""
        said.insert(1, f"{code} {text}{more}")
    return [item for item in said if item]


def _not_analysed(report: Report) -> str:
    """``findings of rank_a.json (other Python 90 % of its steps): stepscope import rank_a.json``; "" without others.

    Captures of a measured job are no such files: its findings rest on all that was recorded.
    """
    every = report.traced.others if report.traced is not None and words.is_imported(report) else ()
    others = [one for one in every if not one.analysed]
    if not others:
        return ""
    named = []
    for one in others[:MOST_FILES]:
        parts = traced_words.part_items(one.parts)
        named.append(f"{words.printable(one.file)}{f' ({parts[0]} of its steps)' if parts else ''}")
    more = f" and {len(others) - MOST_FILES} more" if len(others) > MOST_FILES else ""
    which = shlex.quote(words.printable(others[0].file)) if len(others) == 1 else "FILE, one at a time"
    return f"findings about {', '.join(named)}{more}, not analysed: stepscope import {which}"


def _checks(count: re.Match[str]) -> str:
    return f"{words.plural(int(count[1]), 'check')} "


def _elsewhere(count: re.Match[str]) -> str:
    return f"{words.plural(int(count[1]), 'check')} {'is' if count[1] == '1' else 'are'} not for "

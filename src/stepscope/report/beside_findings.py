"""Every labelled line of the report except rates, step and findings; not wrapped.

What the terminal wraps at its width (``report.text``) and what the page shows below the step; both take the words of
the same functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import capture_text, maker_rows, member_rows, request_rows, verdict, words
from stepscope.report.lines import SEPARATOR
from stepscope.report.memory import room_words
from stepscope.report.page import call_rows, limit_rows, link_rows, op_rows, traced_rows, turn_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.model.report.report import Report

MEMBERS = "members"
"""Label of the tasks of the job."""
TOP = 3
"""Captures, and most expensive lines of the ops."""


def lines(report: Report) -> list[tuple[str, str]]:
    """(label, line); what the report does not say has no line."""
    summary = report.session
    said: list[tuple[str, Iterable[str]]] = [
        ("measured", _one([] if summary.steps else words.measured_items(report))),
        ("makers", maker_rows.lines(summary)),
        ("turns", _one(turn_rows.line(report))),
        ("unexplained", _one([verdict.unexplained_text(report)])),
        ("memory", _one(room_words.items(report.memory_room))),
        ("requests", request_rows.lines(report)),
        ("calls", call_rows.lines(report.system_calls)),
        (MEMBERS, _members(report)),
        ("captured", [capture_text.line(one) for one in report.overhead.captures if one.kind == "ops"][:TOP]),
        ("traced", [text for _, text in traced_rows.lines(report.traced)] if report.traced is not None else []),
        ("ops", [op_rows.summary(report.ops), *op_rows.short(report.ops, TOP)] if report.ops is not None else []),
        ("limits", [report.limits.text, *limit_rows.notes(report.limits)[1:]] if report.limits is not None else []),
        ("source", _one(words.source_items(report.source_check))),
        ("links", link_rows.short(report.links)),
        ("clocks", link_rows.clocks(report)),
    ]
    return [(label, text) for label, texts in said for text in texts if text]


def _one(items: Iterable[str]) -> list[str]:
    return [SEPARATOR.join(filter(None, items))]


def _members(report: Report) -> list[str]:
    if report.cluster is not None:
        return [*_one(member_rows.head(report.cluster)), *member_rows.rows(report.cluster)]
    return _one(words.process_role_items(report.session))

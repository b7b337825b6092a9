"""Requests by shape and calls in flight, and the first answers, as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import words
from stepscope.report.section import Asked, Lines, Said, Section, Where
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.report.report import Report
    from stepscope.model.report.task import CallClass, Task

ANSWERS = frozenset({"request", "ONNX Runtime run"})
"""Kinds of tasks that answer somebody."""
MAX_SHAPES = 4
MIN_FIRST = 10.0
"""A first call of so many medians is said."""


def lines(report: Report) -> list[str]:
    """Of the task with most time among those that answer requests; none if there is nothing to say beyond its row."""
    asked = [task for task in report.tasks if task.kind in ANSWERS]
    return of_task(max(asked, key=lambda task: task.total_ns)) if asked else []


def of_task(task: Task) -> list[str]:
    """``8x512 (812 calls): 40 ms, 2 in flight 75 ms (35 ms queued)`` for each shape, then the first answers."""
    shapes: dict[tuple[int, ...], list[CallClass]] = {}
    for one in task.classes:
        shapes.setdefault(one.dims, []).append(one)
    largest = sorted(shapes, key=lambda dims: -sum(one.total_ns for one in shapes[dims]))
    shown = [dims for dims in shapes if dims in largest[:MAX_SHAPES]]
    found = [f"{shape_text(shapes[dims])}: {_levels(shapes[dims])}" for dims in shown]
    if len(shapes) > len(shown):
        found.append(f"+ {len(shapes) - len(shown)} shapes in less time")
    first = _first(task)
    return [*found, *([first] if first else [])]


def shape_text(classes: Sequence[CallClass]) -> str:
    """``8x512 (812 calls)``; ``up to 8x512`` for rounded sizes, ``any shape`` if none is known."""
    dims = "x".join(map(str, classes[0].dims)) or "any shape"
    rounded = "up to " if classes[0].rounded else ""
    return f"{rounded}{dims} ({words.plural(sum(one.count for one in classes), 'call')})"


def _levels(classes: Sequence[CallClass]) -> str:
    return ", ".join(_level(one) for one in classes)


def _level(one: CallClass) -> str:
    many = f"{one.in_flight}" if one.in_flight == one.in_flight_to else f"{one.in_flight}-{one.in_flight_to}"
    alone = "" if one.in_flight_to == 1 else f"{many} in flight "
    queued = f" ({format_ns(one.queued_ns)} queued)" if one.queued_ns else ""
    return f"{alone}{format_ns(one.p50_ns)}{queued}"


def _first(task: Task) -> str:
    """When the first answer was there, and how many calls were slow before the usual ones."""
    if task.count == 1 or task.first_call_ns < MIN_FIRST * task.p50_ns:
        return ""
    later = f", then {words.plural(task.slow_first - 1, 'slow call')}" if task.slow_first > 1 else ""
    first, at = format_ns(task.first_call_ns), format_ns(task.first_ns + task.first_call_ns)
    return f"first answer {at} after the start, in {first}{later}; later {format_ns(task.p50_ns)}"


def _lines(asked: Asked) -> Said:
    yield Lines(label="requests", texts=lines(asked.report), where=Where.HEAD, web=True)


SECTION = Section(key="requests", lines=_lines)

"""The tasks: calls of what repeats. ``render`` writes all of them for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from stepscope.report import words
from stepscope.report.blocks import Listed, Table, coded, columns
from stepscope.report.document import requests
from stepscope.report.section import Asked, Blocks, Section
from stepscope.tables.units import format_ns, format_rate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.model.report.report import Report
    from stepscope.model.report.task import Task

SHOWN = 30
"""Tasks shown in Markdown and on the page; report.json has all."""
HEAD = columns("Task | Kind | Calls: | Per s: | Total: | Mean: | P50: | P95: | P99: | Outliers: | Trend | Where")
ELASTIC = (0, 11)
"""Columns that may be shortened: name and place."""
LEAST = 16
GAP = 2


def rows(tasks: Iterable[Task]) -> list[tuple[str, ...]]:
    """Tasks as rows, in their order."""
    return [_row(task) for task in tasks]


def _row(task: Task) -> tuple[str, ...]:
    p50, p95, p99 = (format_ns(ns) if task.timed else "" for ns in (task.p50_ns, task.p95_ns, task.p99_ns))
    return (
        words.printable(task.name),
        task.kind,
        f"{task.count:,}" if task.exact else f"at least {task.count:,}",
        format_rate(task.rate_per_s) if task.rate_per_s is not None else "",
        format_ns(task.total_ns),
        format_ns(task.mean_ns),
        p50,
        p95,
        p99,
        f"{task.outliers:,} (to {format_ns(task.max_ns)})" if task.outliers else "",
        trend_text(task),
        words.place_text(task.where, short=True).removesuffix(" <module>") if task.where is not None else "",
    )


def trend_text(task: Task) -> str:
    """``steady``, ``+12 %``, or empty if there were too few calls."""
    if task.trend_ratio is None:
        return ""
    return f"{100 * task.trend_ratio:+.0f} %" if task.trend_ratio else "steady"


def notes(tasks: Iterable[Task]) -> list[str]:
    """Facts without a column: fetches of hooks, requests by shape, and calls that were only counted."""
    found = []
    for task in tasks:
        name = words.printable(task.name)
        if task.added:
            parts = ", ".join(f"{words.printable(p.text)} in {p.count:,}" for p in task.added)
            found.append(f"{name}: hooks also fetched {parts} of {words.plural(task.count, 'run')}")
        found += [f"{name}: {line}" for line in requests.of_task(task)] if task.kind in requests.ANSWERS else []
        if task.timed < task.count:
            found.append(f"{name}: {task.timed:,} of {task.count:,} calls were timed, the others only counted")
    return found


def render(report: Report, *, width: int = 120) -> str:
    """The table of all tasks for a terminal. Names and places are shortened to fit; numbers are not."""
    if not report.tasks:
        return "tasks     none: no Session.run, tf.function, Keras loop or span was seen\n"
    several = len({task.pid for task in report.tasks}) > 1
    head = (*(column.title.lower() for column in HEAD), *(["process"] if several else []))
    pids = [(str(task.pid),) if several else () for task in report.tasks]
    lines = [head, *(row + pid for row, pid in zip(rows(report.tasks), pids, strict=True))]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    room = max(2 * LEAST, width - GAP * (len(widths) - 1) - sum(w for i, w in enumerate(widths) if i not in ELASTIC))
    name, where = ELASTIC
    widths[where] = min(widths[where], max(room - widths[name], room // 2))
    widths[name] = min(widths[name], room - widths[where])
    shown = [_line(cells, widths) for cells in lines]
    return (
        "\n".join([shown[0], "\u2500" * min(width, max(map(cell_len, shown))), *shown[1:], *notes(report.tasks)]) + "\n"
    )


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    parts = []
    for i, (text, width) in enumerate(zip(cells, widths, strict=True)):
        cut = text if cell_len(text) <= width else _cut(text, width, end=i == ELASTIC[1])
        pad = " " * (width - cell_len(cut))
        parts.append(pad + cut if i < len(HEAD) and HEAD[i].numeric else cut + pad)
    return (" " * GAP).join(parts).rstrip()


def _cut(text: str, width: int, *, end: bool) -> str:
    """The beginning of a text, or its end: the end of a path is more informative."""
    if end:
        while cell_len(text) >= width:
            text = text[1:]
        return f"\u2026{text}"
    return f"{set_cell_size(text, width - 1).rstrip()}\u2026"


def _blocks(asked: Asked) -> Blocks:
    tasks = asked.report.tasks
    shown = tasks[:SHOWN]
    if shown:
        more = [f"{len(tasks) - len(shown)} more in report.json"] if len(tasks) > len(shown) else []
        yield Table(HEAD, coded(rows(shown), *ELASTIC))
        yield Listed([*notes(shown), *more])


SECTION = Section(key="tasks", title="Tasks", blocks=_blocks)

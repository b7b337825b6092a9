"""The tasks: calls of what repeats, and the requests that they answer."""

from __future__ import annotations

from stepscope.report import request_rows, task_rows
from stepscope.report.blocks import Listed, Table, coded, columns
from stepscope.report.section import Asked, Blocks, Lines, Said, Section, Where


def _lines(asked: Asked) -> Said:
    yield Lines(label="requests", texts=request_rows.lines(asked.report), where=Where.HEAD)


def _blocks(asked: Asked) -> Blocks:
    tasks = asked.report.tasks
    shown = tasks[: task_rows.SHOWN]
    if shown:
        more = [f"{len(tasks) - len(shown)} more in report.json"] if len(tasks) > len(shown) else []
        yield Table(columns(*task_rows.HEAD, numeric=task_rows.NUMERIC), coded(task_rows.rows(shown), 0, 11))
        yield Listed([*task_rows.notes(shown), *more])


SECTION = Section(key="tasks", title="Tasks", lines=_lines, blocks=_blocks)

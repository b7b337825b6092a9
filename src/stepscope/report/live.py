"""Running jobs on a terminal: the list of ``ps`` and the view of ``top``. Only draws; decides nothing."""

from __future__ import annotations

import io
import shutil
import sys
import time
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from stepscope.report import maker_rows, words
from stepscope.tables.units import format_bytes, format_ns, format_rate, format_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from stepscope.model.api.status import LiveCapture, LiveTask, Status
    from stepscope.tables.hang import HangFrame

PS_SCHEMA = "stepscope.ps/1"
_NO_STEPS = "no repeating work at present"
_SHOWN_SHARES = 3
_WIDE = 140
"""Smallest width at which the whole finding and the session's path are shown."""
_MIN_RATIO = 0.02
_SHOWN_THREADS = 12
_BAR = 30
_MAX_WIDTH = 200
_TEXT_WIDTH = 160


class JobRow(Struct, frozen=True, kw_only=True):
    """One job of ``ps``."""

    status: Status
    user: str
    state: str
    name: str


def terminal_width() -> int:
    """Width of the terminal; without one, a width that suits most jobs."""
    return shutil.get_terminal_size((_TEXT_WIDTH, 24)).columns if sys.stdout.isatty() else _TEXT_WIDTH


def to_json(jobs: Sequence[tuple[Status, str, str]]) -> bytes:
    """All jobs: (status, user, state)."""
    rows = [{**msgspec.to_builtins(status), "user": user, "state": state} for status, user, state in jobs]
    return msgspec.json.encode({"schema": PS_SCHEMA, "jobs": rows}) + b"\n"


def table(rows: Sequence[JobRow], *, width: int) -> str:
    """The list of jobs as text."""
    if not rows:
        return "no job is being measured; start one with stepscope run train.py, or use stepscope enable\n"

    wide = width >= _WIDE
    grid = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True, show_edge=False)
    for title in ("pid", "user"):
        grid.add_column(title, no_wrap=True)
    grid.add_column("command", overflow="fold")
    if wide:
        grid.add_column("framework", no_wrap=True)
    for title in ("steps", "steps/s", "samples/s"):
        grid.add_column(title, justify="right", no_wrap=True)
    grid.add_column("the step", overflow="fold")
    grid.add_column("top finding", overflow="fold", ratio=1 if wide else None)
    if wide:
        grid.add_column("session", overflow="fold")
    for group in _groups(rows):
        if len(group) > 1:
            grid.add_row("", group[0].user, _of_cluster(group), *[""] * (len(grid.columns) - 3))
        for row in group:
            grid.add_row(*_cells(row, wide=wide, indent="  " if len(group) > 1 else ""))
    return _rendered(grid, width)


def _groups(rows: Sequence[JobRow]) -> list[list[JobRow]]:
    """The rows, those of one cluster as one group."""
    groups: dict[tuple[object, ...], list[JobRow]] = {}
    for number, row in enumerate(rows):
        cluster = row.status.cluster
        groups.setdefault((row.user, cluster) if cluster else (number,), []).append(row)
    return [sorted(group, key=lambda row: row.status.member) for group in groups.values()]


def _of_cluster(group: Sequence[JobRow]) -> str:
    names = {name for row in group for name in row.status.member.split(", ")}
    tasks = max(row.status.cluster_tasks for row in group)
    return f"one job: {len(names)} of {words.plural(tasks, 'task')}"


def _cells(row: JobRow, *, wide: bool, indent: str = "") -> list[str]:
    status = row.status
    doing = phase(status) if row.state == "running" else row.state
    doing = {"hang": "hangs", "busy": "no step"}[status.hang.state] if status.hang else doing
    name = f"{indent}{words.printable(status.member)}: {row.name}" if indent else row.name
    command = f"{name} ({doing})" if doing else name
    waits = dict.fromkeys(capture.when for capture in _awaited(status))
    command += f" (trace waits for {words.printable(', '.join(waits))})" if waits else ""
    rates = [f"{status.steps:,}" if status.steps else "-", _rate(status.steps_per_s), _rate(status.samples_per_s)]
    step = shares(status, count=_SHOWN_SHARES if wide else 1)
    silent = row.state == "silent" and status.problems
    found = words.printable(status.problems[-1]) if silent else _finding(status)
    if wide:
        return [str(status.pid), row.user, command, framework(status), *rates, step, found, _session(status)]
    return [str(status.pid), row.user, command, *rates, step, found.split(":")[0]]


def _awaited(status: Status) -> list[LiveCapture]:
    """Requests that wait for a condition."""
    return [one for one in status.captures if one.when and one.state in {"waiting", "tracing"}]


def framework(status: Status) -> str:
    """The framework in one word: "tensorflow 2.21"."""
    first = status.framework.split(",")[0]
    name, _, version = first.partition(" ")
    return f"{name} {'.'.join(version.split('.')[:2])}".strip() or "-"


def shares(status: Status, *, count: int = 3) -> str:
    """The anatomy in short: its largest shares."""
    shown = [s for s in status.anatomy if s.ratio >= _MIN_RATIO][:count]
    return " · ".join(f"{words.component_word(s.component)} {format_ratio(s.ratio)}" for s in shown) or "-"


def phase(status: Status) -> str:
    """What the job does, and how far its fit is: ``training, epoch 3 of 10 (24 %), 2 min 10 s left``."""
    done = status.progress
    if done is None:
        return status.phase
    left = f", {format_ns(done.left_s * 1e9)} left" if done.left_s is not None else ""
    return f"{status.phase}, epoch {done.epoch} of {done.epochs} ({format_ratio(done.ratio)}){left}"


def hanging(status: Status) -> str:
    """Why nothing is done, ``hangs for 40 s: waits for a lock, train.py:12``; "" if something is."""
    hang = status.hang
    if hang is None:
        return ""
    word = "hangs for" if hang.state == "hang" else "no step for"
    place = f", {hang.file.rpartition('/')[2]}:{hang.line}" if hang.file else ""
    lasts = format_ns(max(0.0, status.updated_unix_s - status.hang_since_unix_s) * 1e9)
    return words.printable(f"{word} {lasts}: {hang.text}{place}")


def _hang(status: Status) -> list[str]:
    """What a job that does nothing waits for, and where its threads are."""
    hang = status.hang
    if hang is None:
        return []
    lines = [f"{'hang' if hang.state == 'hang' else 'busy':<11} {hang.kind}: {hanging(status)} ({hang.function})"]
    if hang.main is not None:
        lines.append(f"            the main thread: {_frame(hang.main)}")
    for thread in [thread for thread in hang.threads if thread.frames][:_SHOWN_THREADS]:
        own = next((frame for frame in thread.frames if frame.own), thread.frames[0])
        call = f" in {thread.call}{' ' + thread.on if thread.on else ''}" if thread.call else ""
        lines.append(f"            {thread.pid}/{thread.tid} {thread.name}{call}: {_frame(own)}")
    lines.append(f"            all stacks: stepscope attach {hang.pid} --stacks")
    return [words.printable(line) for line in lines]


def _frame(frame: HangFrame) -> str:
    return f"{frame.function} ({frame.file.rpartition('/')[2]}:{frame.line})"


def _rate(value: float | None) -> str:
    return format_rate(value) if value is not None else "-"


def _finding(status: Status) -> str:
    if status.hang is not None:
        return f"HNG001 {hanging(status)}"
    if not status.analysed_unix_s:
        return "not analysed yet"
    if status.top is None:
        return "nothing significant" if status.step_title else _NO_STEPS
    return f"{status.top.code} {format_ratio(status.top.cost_ratio)}: {status.top.title}"


def _session(status: Status) -> str:
    return status.session or "-"


def _rendered(what: RenderableType, width: int) -> str:

    out = io.StringIO()
    console = Console(file=out, width=min(width, _MAX_WIDTH), color_system=None, markup=False, highlight=False)
    console.print(what)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def page(row: JobRow, *, now_s: float | None = None) -> RenderableType:
    """The view of one job, for rich."""
    status = row.status
    parts: list[RenderableType] = [Text(line) for line in _head(row, time.time() if now_s is None else now_s)]
    if status.anatomy:
        parts += [Text(), *(Text(line) for line in _bars(status))]
    parts += [Text(line) for line in _hang(status)]
    parts += [Text(), *(Text(line) for line in _found(status))]
    if status.tasks:
        parts += [Text(), _task_table(status.tasks)]
    parts += [Text(f"problem     {problem}") for problem in status.problems]
    return Group(*parts)


def text(row: JobRow, *, width: int, now_s: float | None = None) -> str:
    """The view of one job as plain text."""
    return _rendered(page(row, now_s=now_s), width)


def _head(row: JobRow, now_s: float) -> list[str]:
    status = row.status
    runs = format_ns(max(0.0, now_s - status.started_unix_s) * 1e9)
    rates = f"{_rate(status.samples_per_s)} samples/s · {_rate(status.steps_per_s)} steps/s"
    grows = f" · {format_bytes(status.bytes_per_hour)} per hour" if status.bytes_per_hour is not None else ""
    steps = words.plural(status.steps, "step") + (f" of {status.step_title}" if status.step_title else "")
    makers = [f"makers      {maker}" for maker in _makers(status)]
    says = hanging(status) or phase(status)
    doing = f" · {says}" if says and row.state == "running" else ""
    return [
        f"stepscope   {row.name} · pid {status.pid} of {row.user} · {row.state} for {runs}{doing} · {status.mode}",
        f"job         {status.framework or 'no framework yet'} · {status.processes} measured processes",
        f"steps       {steps} · {rates}",
        *makers,
        f"session     {_session(status)} · {format_bytes(status.session_bytes)}{grows}",
        *(f"trace       --when {one.when}: {words.printable(one.text) or 'begins'}" for one in _awaited(status)),
        f"sidecar     {format_ratio(status.sidecar_core_ratio)} of a core · {status.records:,} records",
    ]


def _makers(status: Status) -> list[str]:
    """The step makers, if there are several."""
    if len(status.makers) <= 1 and not any(maker.threads > 1 for maker in status.makers):
        return []
    return [maker_rows.live(maker) for maker in status.makers]


def _bars(status: Status) -> list[str]:
    lines = []
    for number, share in enumerate(s for s in status.anatomy if s.ratio >= _MIN_RATIO):
        bar = "#" * max(1, round(_BAR * min(1.0, share.ratio)))
        head = "the step" if number == 0 else ""
        lines.append(f"{head:<11} {words.component_word(share.component):<15} {format_ratio(share.ratio):>6} {bar}")
    return lines


def _found(status: Status) -> list[str]:
    if not status.analysed_unix_s:
        return ["finding     not analysed yet: the first analysis runs some seconds after the first steps"]
    age = format_ns(max(0.0, status.updated_unix_s - status.analysed_unix_s) * 1e9)
    when = f"analysed {age} ago, every {format_ns(status.analysis_every_s * 1e9)}"
    undecided = f" · could not decide: {', '.join(status.undecided)}" if status.undecided else ""
    if status.top is None:
        return [f"finding     {'nothing significant' if status.step_title else _NO_STEPS} ({when}){undecided}"]
    first = status.top
    more = f" · {status.findings - 1} more" if status.findings > 1 else ""
    costs = "" if first.severity in {"ask", "info"} else f" costs {format_ratio(first.cost_ratio)}"
    lines = [f"finding     {first.severity} {first.code}{costs}: {first.title}"]
    if first.place:
        lines.append(f"            at {first.place}")
    return [*lines, f"            {when}{more}{undecided}"]


def _task_table(tasks: Sequence[LiveTask]) -> RenderableType:

    grid = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    grid.add_column("task", no_wrap=True)
    grid.add_column("name", overflow="ellipsis", no_wrap=True)
    for title in ("pid", "count", "per s", "mean", "p95"):
        grid.add_column(title, justify="right", no_wrap=True)
    for task in tasks:
        grid.add_row(
            task.kind,
            task.name,
            str(task.pid),
            f"{task.count:,}",
            _rate(task.per_s),
            format_ns(task.mean_ns),
            format_ns(task.p95_ns),
        )
    return grid

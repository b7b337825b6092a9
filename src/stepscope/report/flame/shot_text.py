"""The stacks of all threads at one moment, for a terminal: threads that run Python first, equal ones together."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from stepscope.report.words import plural, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.tables.thread_shot import PythonPlace, ThreadShot

STATES = {"R": "running", "S": "sleeping", "D": "in the kernel", "T": "stopped", "t": "stopped", "Z": "ended"}
MAX_ALIKE = 8
"""Threads whose numbers are listed."""


def render(shots: Sequence[ThreadShot], *, command: str, problem: str, folder: str = "") -> str:
    """Lines of text that end in a newline.

    Args:
        shots: the threads.
        command: command line of the process.
        problem: why there are no Python stacks; "" if there are.
        folder: paths below it are shown relative to it.
    """
    lines = [f"{printable(command)} · {plural(len(shots), 'thread')}"]
    if problem:
        lines.append(f"no Python stacks: {printable(problem)}")
    groups: dict[tuple[object, ...], list[ThreadShot]] = {}
    for shot in shots:
        if shot.frames:
            groups.setdefault((shot.frames, shot.state, shot.waits_in), []).append(shot)
    for alike in groups.values():
        lines += ["", _head(alike)]
        lines += [f"    {_place(frame, folder)}" for frame in alike[0].frames]
    lines += _without_python([shot for shot in shots if not shot.frames])
    return "\n".join(lines) + "\n"


def _head(alike: Sequence[ThreadShot]) -> str:
    first = alike[0]
    more = f" and {len(alike) - MAX_ALIKE} more" if len(alike) > MAX_ALIKE else ""
    numbers = ", ".join(str(shot.tid) for shot in alike[:MAX_ALIKE])
    return f"{printable(first.name)} {numbers}{more}: {_doing(first)}"


def _doing(shot: ThreadShot) -> str:
    state = STATES.get(shot.state, shot.state)
    return f"{state} in {printable(shot.waits_in)}" if shot.waits_in and shot.state != "R" else state


def _place(frame: PythonPlace, folder: str) -> str:
    inside = folder and frame.file.startswith(folder.rstrip("/") + "/")
    file = os.path.relpath(frame.file, folder) if inside else frame.file
    return f"{printable(frame.function)} ({printable(file)}{f':{frame.line}' if frame.line else ''})"


def _without_python(shots: Iterable[ThreadShot]) -> list[str]:
    counts = Counter(f"{printable(shot.name)}, {_doing(shot)}" for shot in shots)
    if not counts:
        return []
    return ["", "without Python", *(f"    {count} {what}" for what, count in counts.most_common())]

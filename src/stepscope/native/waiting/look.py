"""One look at all threads of a job's processes: where they are, and what they wait for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.native.cpython import thread_shots
from stepscope.native.user_files import is_user_file
from stepscope.native.waiting import awaited
from stepscope.tables.hang import HangFrame, HangThread

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.tables.thread_shot import ThreadShot

MAX_PROCESSES = 16
MAX_THREADS = 64
"""Threads with Python functions, of one process."""
MAX_FRAMES = 40
_AGENT = "/stepscope/agent/"


def at_threads(pids: Iterable[int]) -> tuple[tuple[HangThread, ...], str]:
    """The threads of processes in their order, and why there are no Python functions ("" if there are)."""
    found: list[HangThread] = []
    problems = []
    for pid in list(pids)[:MAX_PROCESSES]:
        try:
            shots, problem = thread_shots.take(pid)
        except OSError:  # it has just ended
            continue
        problems.append(problem)
        found += _threads(pid, shots)
    return tuple(found), problems[0] if problems else ""


def _threads(pid: int, shots: list[ThreadShot]) -> list[HangThread]:
    files = awaited.Files(pid)
    shots = [shot for shot in shots if not _is_ours(shot)]
    first = [shot for shot in shots if shot.frames or shot.tid == pid]
    told = [_thread(pid, shot, files) for shot in sorted(first, key=lambda shot: shot.tid != pid)[:MAX_THREADS]]
    native = Counter((shot.name, shot.state) for shot in shots if not shot.frames and shot.tid != pid)
    for (name, state), count in native.most_common(MAX_THREADS):
        tid = next(shot.tid for shot in shots if (shot.name, shot.state) == (name, state))
        told.append(HangThread(pid=pid, tid=tid, name=name, state=state, alike=count))
    return told


def _is_ours(shot: ThreadShot) -> bool:
    """Whether it is the agent's thread: the agent's code is below no function of the job's."""
    return (
        bool(shot.frames)
        and any(_AGENT in frame.file for frame in shot.frames)
        and not any(is_user_file(frame.file) for frame in shot.frames)
    )


def _thread(pid: int, shot: ThreadShot, files: awaited.Files) -> HangThread:
    waits = awaited.of_thread(pid, shot.tid, shot.waits_in, files)
    frames = tuple(
        HangFrame(frame.file, frame.function, frame.line, is_user_file(frame.file))
        for frame in shot.frames[:MAX_FRAMES]
    )
    return HangThread(
        pid=pid,
        tid=shot.tid,
        name=shot.name,
        state=shot.state,
        call=waits.call,
        on=waits.on,
        switches=_switches(pid, shot.tid),
        frames=frames,
    )


def _switches(pid: int, tid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/task/{tid}/status").read_text("ascii", "replace")
    except OSError:
        return 0
    _, _, rest = text.partition("\nvoluntary_ctxt_switches:")
    return int(rest.split()[0]) if rest else 0

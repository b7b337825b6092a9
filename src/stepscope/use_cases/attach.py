"""The use case ``attach``: observe a process that was started without stepscope, from outside, for some seconds.

The result is an ordinary session. Nothing is injected into the process and it is never stopped: only /proc and what
perf records are read.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from stepscope._version import __version__
from stepscope.collector.captures.asked import CaptureExtent
from stepscope.collector.captures.reason import USER
from stepscope.collector.recorder import Recording
from stepscope.diagnosis import analyze
from stepscope.launcher import jobs, mask, rundir, session_place
from stepscope.model.session.session import Manifest, WorkerInfo
from stepscope.native import process_stat
from stepscope.native.memory import allocator
from stepscope.native.windows.native_window import SECONDS
from stepscope.report import text
from stepscope.tables import layout
from stepscope.tables.errors import CaptureError, TargetError, UsageError
from stepscope.use_cases.record import REPORT_JSON, copy_json, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MODE = "attach"
LOOK_S = 1.0
MOST_HOT = 5
"""Functions that are listed at the end."""
BEFORE_WINDOW_S = 5.0
"""Duration of the first phase, in which only counters are read; they determine the sampling rate of the window."""


class AttachOptions(Struct, frozen=True, kw_only=True):
    """Options of the command."""

    pid: int
    seconds: float
    session: Path | None = None
    report_json: Path | None = None


def attach(options: AttachOptions, say: Callable[[str], object] = lambda _: None) -> str:
    """Observe the process and return the report for the terminal; ``say`` is called with what is being done.

    Raises:
        TargetError: there is no such process, or we may not read it.
        UsageError: it is already being measured.
        SessionError: the session already exists.
        CaptureError: nothing can be recorded.
    """
    pid = options.pid
    command = command_of(pid)
    if any(pid == job.status.pid for job in jobs.running()):
        raise UsageError(
            f"{pid} is already being measured; use stepscope trace {pid} --kind native, or stepscope top {pid}"
        )
    session, said = session_place.claim(command, options.session)
    run = rundir.make(session, time.monotonic_ns())
    try:
        recording = _begin(run, session, pid, command)
        _look(recording, options.seconds, say)
        say("analysing")
        problems = [*said, *recording.finish()]
        report = analyze.write_reports(session)
    finally:
        rundir.remove(run)
    if options.report_json is not None:
        copy_json(session / REPORT_JSON, options.report_json)
    lines = "".join(f"stepscope: {problem}\n" for problem in problems)
    return lines + text.render(
        report,
        color=sys.stderr.isatty() and not os.environ.get("NO_COLOR"),
        width=shutil.get_terminal_size((120, 24)).columns,
        session_path=shown(session),
        html_path=shown(session / "report.html"),
    ) + hot_functions(session)  # fmt: skip


def hot_functions(session: Path) -> str:
    """The functions that used the most CPU time, one a line; "" if no stacks were sampled."""
    from stepscope.report.flame import text as flame_text
    from stepscope.use_cases import flame

    try:
        chosen = flame.choose(session)
    except UsageError:
        return ""
    return flame_text.hottest(chosen.graph, MOST_HOT)


def command_of(pid: int, option: str = "") -> list[str]:
    """The command of the process; we must be allowed to read its memory map. ``option``: of the command to advise.

    Raises:
        TargetError: there is no such process, it runs no program, or we may not read it.
    """
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        Path(f"/proc/{pid}/maps").read_bytes()
    except FileNotFoundError:
        raise TargetError(f"cannot attach to {pid}: no such process; expected a pid of `ps`") from None
    except OSError as error:
        raise TargetError(
            f"cannot attach to {pid}: {error.strerror}; expected one of your own processes, else run: "
            f"sudo stepscope attach {pid}{option}"
        ) from error
    if not words[0]:
        raise TargetError(f"cannot attach to {pid}: it is a kernel thread, or has ended")
    return [word for word in words if word]


def _begin(run: Path, session: Path, pid: int, command: Sequence[str]) -> Recording:
    ticks = process_stat.start_ticks(pid)
    masked = tuple(mask.mask_command(command))
    try:
        cwd = str(Path(f"/proc/{pid}/cwd").readlink())
    except OSError:
        cwd = ""
    worker = WorkerInfo(
        key=f"{pid}-{ticks}",
        pid=pid,
        command=masked,
        allocator=allocator.look(pid),
        frameworks=allocator.frameworks_of(pid),
    )
    manifest = Manifest(
        stepscope_version=__version__,
        id=os.urandom(8).hex(),
        name=session.name.removesuffix(layout.SUFFIX),
        command=masked,
        cwd=cwd,
        started_unix_ns=time.time_ns() - (time.monotonic_ns() - rundir.origin_of(run)),
        origin_monotonic_ns=rundir.origin_of(run),
        mode=MODE,
        job_pid=pid,
        run_dir=str(run),
        workers=(worker,),
    )
    layout.write_atomic(session / layout.MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
    job = rundir.JobFacts(pid=pid, start_ticks=ticks, launcher_pid=0, command=masked, sources=False, mode=MODE, cwd=cwd)
    rundir.write_job(run, job)
    return Recording(run, session)


def _look(recording: Recording, seconds: float, say: Callable[[str], object]) -> None:
    """Sample until the time is up, the process ends or the user interrupts; includes one window of native stacks."""
    began = time.monotonic()
    asked = False
    try:
        while time.monotonic() - began < seconds and not recording.job_ended(launcher=False):
            now_ns = time.monotonic_ns()
            recording.tick(now_ns)
            if not asked and time.monotonic() - began >= min(BEFORE_WINDOW_S, seconds / 3):
                asked = True
                _window(recording, min(SECONDS, seconds / 3), now_ns)
            recording.native.poll(now_ns)
            left = max(0.0, seconds - (time.monotonic() - began))
            say(f"{'native stacks and counters' if asked else 'counters'} of the process, {left:.0f} s left")
            time.sleep(recording.sampling.pause_s(LOOK_S))
    except KeyboardInterrupt:
        return


def _window(recording: Recording, seconds: float, now_ns: int) -> None:
    try:
        recording.native.begin(CaptureExtent(by=USER, worker="", steps=0, seconds=seconds), now_ns)
    except CaptureError as error:
        recording.note("DX118", f"no native stacks: {str(error).removeprefix('no native stacks: ')}")

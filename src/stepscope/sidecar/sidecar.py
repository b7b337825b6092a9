"""The sidecar: drains, samples and stores while the job runs, and writes the report when it has ended.

``python -m stepscope.sidecar.sidecar RUN SESSION [STARTS] [cell]``, started by the launcher; a process of its own
session, so that neither the terminal nor the launcher's death takes it along. For a ``cell`` the kernel starts it, not
as its child, and it sees by itself when the cell or the kernel has ended.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.collector import host_members, room_watch, sweep
from stepscope.collector.recorder import Recording
from stepscope.collector.room_watch import RoomWatch
from stepscope.launcher import background, give_way, rundir
from stepscope.launcher.give_way import GaveWay
from stepscope.model.session.session import CELL
from stepscope.tables.errors import StepscopeError
from stepscope.wire import off

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_POLL_S = 1.0
"""The rings hold a minute and outlive the sidecar: reading them more often would only cost more."""
_ORPHAN_POLL_S = 0.2
"""Without a launcher nobody tells that the job has ended."""
_STDIN = 0


def main(argv: Sequence[str]) -> None:
    """Entry point; exits 0 when the session is finished and its report stands."""
    launcher = CELL not in argv[3:]
    if not launcher:
        background.leave_the_job()
    run, session = Path(argv[0]), Path(argv[1])
    starts = int(argv[2]) if len(argv) > 2 else 1  # noqa: PLR2004 - optional third argument
    background.become()
    lock = only_one(run)
    if lock < 0:
        return
    recording = Recording(run, session, starts=starts)
    recording.sampling.compare_clocks(run)
    follow(recording, ticks_of(recording), launcher=launcher)
    for problem in complete(recording):
        _say(problem)
    sweep.sweep(run)


def ticks_of(recording: Recording) -> list[Callable[[int, str], object]]:
    """What is due while a job is followed; its modules are loaded now, not at the end, when the user waits."""
    from stepscope.sidecar import capturing, far_captures, hangs, joining, live
    from stepscope.sidecar.ends import unended

    recording.sampling.lead(far_captures.TasksHere(), host_members.reach())
    now_ns = time.monotonic_ns()
    shown = live.Live(recording, now_ns)
    watch = hangs.Hangs(recording, shown)
    ticks = [capturing.Capturing(recording, shown, now_ns).tick, watch.tick, unended.UnendedProcesses(recording).tick]
    return [*ticks, shown.tick, joining.Joining(recording).tick]


def complete(recording: Recording) -> list[str]:
    """The job has ended: store the rest, write the report, clear up; returns lines for the user."""
    from stepscope.sidecar import joining
    from stepscope.sidecar.ends import harm

    problems = recording.finish()
    harm.enter(recording)
    if not problems:  # else the rings and logs stay where they are: opening the session completes it once there is room
        _replay(recording)
        _walk_pages(recording)
        joining.announce(recording)
        problems = _write_reports(recording.session)
        joint = joining.join(recording)
        rundir.remove(recording.run)
        host_members.sweep()
        problems += _write_reports(joint) if joint is not None else []
    return problems


def only_one(run: Path) -> int:
    """The lock of this run's sidecar, -1 if another one holds it."""
    fd = os.open(run / rundir.LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return -1
    return fd


def follow(recording: Recording, ticks: Sequence[Callable[[int, str], object]], *, launcher: bool) -> None:
    """Work until the job has ended.

    Args:
        recording: what is recorded.
        ticks: called about once a second with the time and "running", at last with "ending".
        launcher: whether there is one to tell that the job has ended.
    """
    ended = False
    watch = RoomWatch(recording)
    switch = off.OffSwitch(lambda: off.programs(recording.job.pid if recording.job else 0))
    while not ended:
        woken = False
        usual_s = _POLL_S if launcher or recording.manifest.mode != "run" else _ORPHAN_POLL_S
        waited = [_STDIN, watch.wakes] if launcher else [watch.wakes]
        ready, _, _ = select.select(waited, [], [], recording.sampling.pause_s(usual_s))
        if _STDIN in ready:
            launcher = woken = bool(os.read(_STDIN, 64))
        now_ns = time.monotonic_ns()
        ended = woken or recording.job_ended(launcher=launcher)
        if watch.leaving is not None and not ended:
            room_watch.leave(recording, watch.leaving)
        ended = ended or _switched_off(recording, switch.look(now_ns), now_ns)
        recording.tick(now_ns)
        for tick in ticks:
            tick(now_ns, "ending" if ended else "running")
        watch.spare(now_ns)
    watch.close()


def _switched_off(recording: Recording, why: str, now_ns: int) -> bool:
    """Whether measuring was switched off: then the job's processes stop recording, and nothing is looked at any more.

    Under ``run`` this process leaves, and the launcher starts another one for the report when the job has ended.
    """
    if not why:
        return False
    gave_way = GaveWay(at_ns=now_ns, off=why)
    if recording.manifest.mode == "run":
        room_watch.leave(recording, gave_way)
    give_way.announce(recording.run, gave_way)
    recording.note(give_way.CODE, gave_way.text(recording.manifest.origin_monotonic_ns))
    return True


def _replay(recording: Recording) -> None:
    """Measure the heaviest ops alone, if the session shows any."""
    from stepscope.sidecar import op_replays

    if not recording.manifest.captures or not op_replays.wanted(recording.manifest):
        return
    try:
        op_replays.replay(recording.session)
    except (StepscopeError, OSError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        recording.note(op_replays.FAILED, f"the ops could not be replayed: {type(error).__name__}: {error}")
        recording.write_notes()


def _walk_pages(recording: Recording) -> None:
    """Store what a TLB miss costs here; measured once on a machine, after a job whose memory was looked at."""
    from stepscope.sidecar import op_replays, translation_cost

    if op_replays.wanted(recording.manifest):
        translation_cost.store(recording)


def _write_reports(session: Path) -> list[str]:
    from stepscope.diagnosis import analyze

    try:
        analyze.write_reports(session)
    except Exception as error:  # noqa: BLE001 - the session is safe; the user is told, the traceback is kept
        return [f"writing the report failed ({type(error).__name__}: {error}): {_keep_traceback(session)}"]
    return []


def _keep_traceback(session: Path) -> str:
    path = session / "report-error.txt"
    try:
        path.write_text(traceback.format_exc(), "utf-8")
    except OSError as error:
        return f"{path} could not be written: {error.strerror}"
    return str(path)


def _say(message: str) -> None:
    """Hand a line to the launcher, which shows it; it may be gone."""
    try:
        os.write(1, json.dumps({"message": message}).encode() + b"\n")
    except OSError:
        return


if __name__ == "__main__":
    main(sys.argv[1:])

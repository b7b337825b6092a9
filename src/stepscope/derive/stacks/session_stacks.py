"""The stack profiles of a session: its captures, and the Python stacks sampled throughout the run.

The agent's samples stand for time (``agent.sampling.cpu_timer``): CPU time of the main thread, waiting time of all
threads that ran user code. The event is called "python". Those of them in which a thread was on no CPU are a second
event, "off-cpu": the innermost frame says what the thread waited for.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from stepscope.derive.python import notebook_cells
from stepscope.derive.stacks import memory_stacks, op_at_sample
from stepscope.derive.stacks.merge_profiles import merged
from stepscope.derive.stacks.op_of_pool_thread import with_ops_of_pool_threads
from stepscope.derive.stacks.own_frames import is_ours
from stepscope.derive.stacks.splice import spliced
from stepscope.model.log.events import Code, Stack, ThreadSeen
from stepscope.model.log.waits import WaitSeen
from stepscope.tables.stacks import (
    UNKNOWN,
    Frame,
    FrameKind,
    SampleTable,
    StackBuilder,
    StackFlag,
    StackProfile,
    Thread,
)
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.model.session.session import Session, Worker
    from stepscope.tables.nearby import NotebookCell
    from stepscope.tables.records import Bool, RecordTable

AGENT_THREAD = "stepscope-agent"
"""Name of the thread that samples."""
PYTHON = "python"
"""The event name of the stacks that the agent samples."""
CAPTURED = "python-capture"
"""The event name of those that were sampled densely, in captures of Python stacks."""
OFF_CPU = "off-cpu"
"""The event name of those in which the thread was on no CPU."""
RUNS = Frame("[running]")
"""Innermost frame of a stack at which the thread was seen to run: it waited elsewhere in that sample's time."""
NOT_LOOKED = Frame("[off CPU]")
"""Innermost frame where it is not known what the thread waited for."""
_KEPT_FRAMES, _KEPT_ROOT_FRAMES = 60, 15
"""Frames kept by the agent of a deeper stack: the outermost 15 and the innermost 45."""
LEFT_OUT = Frame("[frames left out]", kind=FrameKind.PYTHON, resolved=False)


def profiles(session: Session) -> tuple[StackProfile, ...]:
    """One profile for each event, in the order: native events as captured, then "python". None without samples.

    Native stacks have Python's functions and lines where the agent sampled the thread close in time, and the op for
    which generated code runs: by an op trace of the same moment, else by samples where a pool thread runs it.
    """
    by_event: dict[str, list[StackProfile]] = {}
    ours = session.manifest.run_dir
    seen = [python_profile(worker) for worker in session.workers] if session.stacks else []
    agents = {
        (worker.info.pid, thread.native)
        for worker in session.workers
        for thread in worker.all(ThreadSeen)
        if thread.name == AGENT_THREAD
    }
    taken = memory_stacks.highest(session.stacks)
    timed, _ = op_at_sample.with_ops_at_samples(taken, op_at_sample.of_session(session, taken))
    for profile in with_ops_of_pool_threads(timed):
        by_event.setdefault(profile.event, []).append(spliced(profile, seen, agents=agents, ours=ours))
    for make in (python_profile, off_cpu_profile):
        for made in (make(worker, ours=ours) for worker in session.workers):
            if len(made.samples):
                by_event.setdefault(made.event, []).append(made)
    spans = _captured(session)
    if spans and PYTHON in by_event:
        dense = [within(profile, spans) for profile in by_event[PYTHON]]
        by_event[CAPTURED] = [replace(one, event=CAPTURED) for one in dense if len(one.samples)]
    cells = {cell.hash: cell for cell in session.manifest.cells}
    return tuple(_with_cells(merged(of_event), cells) for of_event in by_event.values() if of_event)


def _with_cells(profile: StackProfile, cells: Mapping[str, NotebookCell]) -> StackProfile:
    """With notebook cells named as in reports: their files have the number of the kernel's process."""
    if not any(notebook_cells.hash_in(frame.file) for frame in profile.frames):
        return profile
    named = ((frame, *notebook_cells.named(frame.file, cells)) for frame in profile.frames)
    frames = [one._replace(file=file, line=one.line + above if one.line else 0) for one, file, above in named]
    return replace(profile, frames=frames)


def _captured(session: Session) -> list[tuple[int, int]]:
    """When captures of Python stacks were made, (from, to) in ns."""
    made = [one for one in session.manifest.captures if one.kind == PYTHON and one.outcome == "done"]
    return sorted((one.at_ns, one.at_ns + one.recorded_ns) for one in made)


def windows(session: Session, event: str) -> list[tuple[int, int]]:
    """When an event was sampled, (from, to) in ns.

    A window without a known end lasts until the job's end, in a job that runs until its last record.
    """
    captured = [(one.begin_ns, one.end_ns) for one in session.stacks if one.event == event]
    captured += _captured(session) if event == CAPTURED else []
    if event in {PYTHON, OFF_CPU}:
        captured += [(worker.info.started_ns, worker.info.ended_ns) for worker in session.workers]
    last = session.manifest.ended_ns or max(0, *(end for _, end in captured), *map(_last, session.workers))
    return [(max(begin, 0), end if end > 0 else last) for begin, end in captured]


def _last(worker: Worker) -> int:
    """End of its last record."""
    records = worker.records
    return int((records.start_ns + records.dur_ns).max()) if len(records) else 0


def python_profile(worker: Worker, *, ours: str = "") -> StackProfile:
    """The Python stacks of one process. Weights are nanoseconds of wall time.

    ``ours``: the folder from which the agent ran; its frames (wrappers around what is measured) are left out.
    """
    records = worker.with_gaps()
    taken = records.take(records.kind == Kind.SAMPLE)
    made = _profile(worker, PYTHON, taken, {}, ours)
    waits, _ = _on_no_cpu(worker, taken)
    clock = (taken.flags & Flag.CPU) != 0
    flags = made.samples.flags | np.where(waits, int(StackFlag.WAITING), 0)
    flags |= np.where(clock, int(StackFlag.CPU_CLOCK), 0)
    return replace(made, samples=replace(made.samples, flags=flags))


def off_cpu_profile(worker: Worker, *, ours: str = "") -> StackProfile:
    """The Python stacks of one process at times when their thread was on no CPU, each ending in what it waited for.

    Empty where nothing was looked at. A sample without a look ends in what looks on the same stack found most often.
    """
    records = worker.with_gaps()
    taken = records.take((records.kind == Kind.SAMPLE) & (records.dur_ns > 0))
    wanted, leaves = _on_no_cpu(worker, taken)
    return _profile(
        worker, OFF_CPU, taken.take(wanted), {stack: leaf or NOT_LOOKED for stack, leaf in leaves.items()}, ours
    )


def _on_no_cpu(worker: Worker, taken: RecordTable) -> tuple[Bool, dict[int, Frame | None]]:
    """Which samples were taken while their thread was on no CPU, and what looks found for each stack."""
    waits = {wait.id: wait for wait in worker.all(WaitSeen)}
    clock = (taken.flags & Flag.CPU) != 0
    leaves = _waits_of(worker, waits, taken.take(~clock))
    clocked = np.isin(taken.thread, np.unique(taken.thread[clock]))
    known = np.isin(taken.name, [stack for stack, leaf in leaves.items() if leaf is not None])
    ran = np.isin(taken.name, [stack for stack, leaf in leaves.items() if leaf == RUNS])
    return ~clock & ~ran & (known | clocked) & bool(waits), leaves


def _waits_of(worker: Worker, waits: Mapping[int, WaitSeen], taken: RecordTable) -> dict[int, Frame | None]:
    """For each stack the frame that says what was waited for; None: no look at it."""
    weights: Counter[int] = Counter()
    for stack, weight in zip(taken.name.tolist(), taken.dur_ns.tolist(), strict=True):
        weights[stack] += weight
    usual: dict[tuple[tuple[int, int], ...], Counter[int]] = defaultdict(Counter)
    for stack in worker.all(Stack):
        if stack.wait in waits and _wait_frame(waits[stack.wait]) is not RUNS:
            usual[tuple(stack.frames)][stack.wait] += weights[stack.id]
    found: dict[int, Frame | None] = {}
    for stack in worker.all(Stack):
        likely = usual.get(tuple(stack.frames))
        number = stack.wait or (likely.most_common(1)[0][0] if likely else 0)
        found[stack.id] = _wait_frame(waits[number]) if number in waits else None
    return found


def _wait_frame(wait: WaitSeen) -> Frame:
    if wait.call == "running":
        return RUNS
    return Frame(" ".join(filter(None, (f"[{wait.call}]", wait.target))), kind=FrameKind.KERNEL)


def _profile(worker: Worker, event: str, taken: RecordTable, leaves: Mapping[int, Frame], ours: str) -> StackProfile:
    """A profile of these samples; ``leaves``: a further innermost frame for some stacks."""
    codes = {code.id: code for code in worker.all(Code)}
    builder = StackBuilder()
    stacks: dict[int, tuple[int, int]] = {}
    for stack in worker.all(Stack):
        frames = [_frame(codes, *frame) for frame in stack.frames]
        cut = len(frames) >= _KEPT_FRAMES
        if cut:
            frames.insert(_KEPT_ROOT_FRAMES, LEFT_OUT)
        frames = [frame for frame in frames if not is_ours(frame.file, ours)]
        frames += [leaves[stack.id]] if stack.id in leaves else []
        stacks[stack.id] = (
            builder.stack_of(frames),
            int(StackFlag.TRUNCATED if cut else StackFlag.WHOLE) if frames else 0,
        )
    found = [stacks.get(number, (UNKNOWN, 0)) for number in taken.name.tolist()]
    seen = {thread.id: thread for thread in worker.all(ThreadSeen)}
    numbers = sorted(set(taken.thread.tolist()))
    place = {number: i for i, number in enumerate(numbers)}
    return StackProfile(
        event=event,
        unit="ns",
        frames=builder.frames,
        stacks=builder.stacks,
        samples=SampleTable(
            at_ns=taken.start_ns,
            thread=np.array([place[number] for number in taken.thread.tolist()], np.int64),
            stack=np.array([stack for stack, _ in found], np.int64),
            weight=np.maximum(taken.dur_ns, 0).astype(np.float64),
            count=np.ones(len(taken), np.int64),
            flags=np.array([flags for _, flags in found], np.int64),
            op_thread=np.zeros(len(found), np.int64),
        ),
        threads=tuple(_thread(worker.info.pid, seen.get(number)) for number in numbers),
        begin_ns=worker.info.started_ns,
        end_ns=worker.info.ended_ns or UNKNOWN,
    )


def _frame(codes: dict[int, Code], number: int, line: int) -> Frame:
    code = codes.get(number)
    if code is None:
        return Frame("?", line=line, kind=FrameKind.PYTHON, resolved=False)
    return Frame(code.function, file=code.file, line=max(line, 0), kind=FrameKind.PYTHON)


def _thread(pid: int, seen: ThreadSeen | None) -> Thread:
    if seen is None:
        return Thread(pid=pid)
    return Thread(pid=pid, tid=seen.native, name="MainThread" if seen.main else seen.name)


def within(profile: StackProfile, spans: Sequence[tuple[int, int]]) -> StackProfile:
    """The samples within sorted time spans, (from, to) in ns; samples without a time are kept."""
    at = profile.samples.at_ns
    starts = np.array([start for start, _ in spans], np.int64)
    ends = np.array([end for _, end in spans], np.int64)
    before = np.searchsorted(starts, at, side="right") - 1
    inside = (before >= 0) & (at < ends[before]) if len(spans) else np.zeros(len(at), np.bool_)
    return replace(profile, samples=profile.samples.take(inside | (at == UNKNOWN)))

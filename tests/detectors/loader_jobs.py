"""A training with PyTorch of some passes over a DataLoader with workers: when they start and end is chosen here."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace
from tests.derive.sessions import MS, SCRIPT, Frame, Job, S

from stepscope.model.log.events import ChildStarted, ProcessEnded, ProcessStarted
from stepscope.model.log.program import DataLoaderMade
from stepscope.model.session.session import Session, Worker
from stepscope.wire.kinds import Flag, Kind

LOOP = 30
"""The line that takes the batches."""
STEP = 100 * MS
TORCH = "/usr/lib/python3/site-packages/torch/utils/data/dataloader.py"
MAIN = Frame(SCRIPT, "main", LOOP)
STARTS = (
    MAIN,
    Frame(TORCH, "DataLoader.__iter__", 498, own=False),
    Frame(TORCH, "_MultiProcessingDataLoaderIter.__init__", 1171, own=False),
    Frame("/usr/lib/python3/multiprocessing/popen_spawn_posix.py", "Popen._launch", 62, own=False),
)
LOOK = 10 * MS


@dataclass
class _Child(Job):
    """A measured worker."""

    begun: int = 0

    def worker(self) -> Worker:
        """The process."""
        made = super().worker()
        return replace(made, info=msgspec.structs.replace(made.info, started_ns=self.begun))


@dataclass
class LoaderJob(Job):
    """A training process, and in its session the workers."""

    children: list[Job] = field(default_factory=list)
    now: int = 2 * S

    def session(self) -> Session:
        """The session of all."""
        return replace(super().session(), workers=(self.worker(), *(child.worker() for child in self.children)))


@dataclass(frozen=True, kw_only=True)
class Pass:
    """How a pass goes. Times are nanoseconds."""

    start: int = S
    """In the loader's ``__iter__``, while its workers start."""
    ahead: int = 0
    """In other code of the program, between that and the first ``next``."""
    first: int = 2 * MS
    """The first ``next``."""
    imports: int = 0
    """Of the first ``next``: until the workers have imported PyTorch."""
    stop: int = 300 * MS
    """The ``next`` that finds the end."""
    batches: int = 10
    trains: bool = True
    left: bool = False
    """The loop is left before the loader's end."""


def loader(job: LoaderJob, *, workers: int = 2, persistent: bool = False, line: int = LOOP) -> DataLoaderMade:
    """A DataLoader of the job."""
    made = DataLoaderMade(
        id=job.iterator(batch=32),
        workers=workers,
        batch=32,
        persistent=persistent,
        file=SCRIPT,
        line=line,
        function="main",
    )
    job.event(made)
    return made


def run_pass(job: LoaderJob, made: DataLoaderMade, how: Pass, *, starts: bool = True, spawn: bool = True) -> None:
    """One pass. ``starts``: whether workers are started for it; ``spawn``: as new interpreters."""
    if starts:
        job.samples(range(job.now + LOOK, job.now + how.start, LOOK), *STARTS, dur=LOOK)
        for number in range(made.workers):
            _start(job, made, job.now + how.start * (number + 1) // made.workers, how, spawn=spawn)
        job.now += how.start
        job.samples(range(job.now + LOOK, job.now + how.ahead, LOOK), MAIN._replace(line=25), dur=LOOK)
        job.now += how.ahead
    taken = job.call(Kind.NEXT, "next", call_file=SCRIPT, call_line=made.line, call_function="main")
    ends = job.call(Kind.APPLY, "optimizer step", role="optimizer", call_file=SCRIPT, call_line=40)
    for number in range(how.batches):
        wait = how.first if number == 0 else 2 * MS
        taken.at(job.now, wait, arg=made.id)
        job.samples(range(job.now + wait + LOOK, job.now + wait + 98 * MS, LOOK), MAIN._replace(line=38), dur=LOOK)
        job.now += wait + 98 * MS
        if how.trains:
            ends.at(job.now - MS, 0)
    if not how.left:
        taken.at(job.now, how.stop, arg=made.id, flags=int(Flag.END))
        job.now += how.stop


def _start(job: LoaderJob, made: DataLoaderMade, at: int, how: Pass, *, spawn: bool) -> None:
    pid = 500 + len(job.children)
    command = f"{'SpawnProcess SpawnProcess' if spawn else 'Process Process'}-{len(job.children) + 1}"
    job.event(ChildStarted(at=at, pid=pid, command=command, file=SCRIPT, line=made.line, function="main"))
    child = _Child(pid=pid, begun=at - how.start // made.workers // 2)
    child.events[0] = ProcessStarted(pid=pid, ppid=job.pid, origin="exec" if spawn else "fork")
    if spawn:
        child.framework("torch", "2.13.0", at=at + how.imports)
    job.children.append(child)


def training(
    how: Pass | None = None,
    *,
    passes: int = 6,
    persistent: bool = False,
    kept: bool = False,
    spawn: bool = True,
    workers: int = 2,
    validation: Pass | None = None,
) -> LoaderJob:
    """Passes over a loader.

    Args:
        how: each of them.
        passes: their number.
        persistent: the loader is to keep its workers.
        kept: it keeps them.
        spawn: workers are new interpreters.
        workers: of the loader.
        validation: a pass over another loader of one worker after each, at the same line.
    """
    job = LoaderJob()
    job.framework("torch", "2.13.0", at=S, dur=S)
    made = loader(job, workers=workers, persistent=persistent)
    other = loader(job, workers=1) if validation is not None else None
    for number in range(passes):
        run_pass(job, made, how or Pass(), starts=number == 0 or not kept, spawn=spawn)
        if validation is not None and other is not None:
            run_pass(job, other, validation, spawn=spawn)
    job.ended_ns = job.now + MS
    job.event(ProcessEnded(at=job.now))
    return job

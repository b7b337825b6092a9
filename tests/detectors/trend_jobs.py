"""Jobs whose trait shows only over the course of time. The usual step takes 100 ms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np
from tests.derive.sessions import END, MS, POOL, SCRIPT, US, Frame, Job, S
from tests.detectors.jobs import CALL, MAIN_CALL, MAKE, PERIOD, REPORT, SOURCE, STEPS, train_loop

from stepscope.model.log.events import ThreadSeen, UserProfiler
from stepscope.tables.records import ThreadTable
from stepscope.wire.kinds import Flag, Kind

MB = 1 << 20
SECONDS = STEPS * PERIOD // S


def rising(first: int, last: int, *, call: int = 0, call_last: int = 0, sample_lines: bool = True) -> Job:
    """A loop whose Python after the call grows from ``first`` to ``last`` over the steady steps.

    Args:
        first: time of the Python in the first steady step.
        last: in the last one.
        call: time of the call; by default what makes the mean step 100 ms.
        call_last: where the call grows too, its time in the last steady step.
        sample_lines: with a sample of the Python and one of the call in each step.
    """
    job = Job()
    job.sources[SCRIPT] = SOURCE
    step = job.function(**MAIN_CALL)
    call = call or PERIOD - (first + last) // 2
    at = 0
    for i in range(STEPS):
        part = min(1.0, max(0.0, (i - 1) / (STEPS - 3)))
        calling = round(call + part * ((call_last or call) - call))
        python = round(first + part * (last - first))
        step.at(at, calling)
        if sample_lines:
            main = Frame(SCRIPT, "main", CALL)
            job.samples([at + calling // 2], main, dur=calling)
            job.samples(
                [at + calling + python // 2], main._replace(line=REPORT), Frame(SCRIPT, "report", 8), dur=python
            )
        at += calling + python
    return job


def remembering(
    level: Callable[[float], float],
    *,
    reserved: Callable[[float], float] | None = None,
    left: int = 1000 * MB,
    predicts: bool = False,
) -> Job:
    """A loop of 10 s whose process has ``level`` bytes of memory, by the number of steps done.

    Args:
        level: memory of its own.
        reserved: its address space beyond what does not change; the same as the level by default.
        left: memory that the host has left at the end.
        predicts: the steps change no variable.
    """
    job = train_loop(80 * MS)
    job.trace(0, MS, cause="first", updates=0 if predicts else 4)
    job.machine(SECONDS)
    done = np.arange(SECONDS + 1) * (S / PERIOD)
    rss = np.array([round(level(n)) for n in done], np.int64)
    space = np.array([round((reserved or level)(n)) for n in done], np.int64)
    shared = np.full(len(rss), 50 * MB, np.int64)
    job.processes = msgspec.structs.replace(
        job.processes, rss_bytes=rss + shared, shared_bytes=shared, vm_bytes=space + 4000 * MB
    )
    job.hosts = msgspec.structs.replace(job.hosts, available_bytes=np.full(len(rss), left, np.int64))
    return job


def leaking(per_step: float, start: int = 400 * MB, *, left: int = 1000 * MB) -> Job:
    """Memory that rises by so many bytes a step."""
    return remembering(lambda n: start + per_step * n, left=left)


def filling(per_step: float, steps: int, start: int = 400 * MB) -> Job:
    """Memory that rises for so many steps and stands still from then on."""
    return remembering(lambda n: start + per_step * min(n, steps))


def stalled(size: int, at: Iterable[int] = range(10, STEPS - 1, 10), *, part: Kind | None = None) -> Job:
    """A loop of 100 ms a step on average, some of whose steps take ``size`` longer after the call.

    Args:
        size: of one stall.
        at: numbers of the steps that stall.
        part: what is recorded there, FUNCTION: the step's call; without, it is Python of ``report``.
    """
    job = Job()
    job.sources[SCRIPT] = SOURCE
    step = job.function(**MAIN_CALL)
    inside = part is Kind.FUNCTION
    what = job.call(part, "gc generation 2", role="x") if part is not None and not inside else None
    stalls = set(at)
    usual = (PERIOD * (STEPS - 2) - size * len(stalls)) // (STEPS - 2)
    now = 0
    main = Frame(SCRIPT, "main", CALL)
    for i in range(STEPS):
        step.at(now, usual - MS + (size if inside and i in stalls else 0))
        job.samples([now + usual // 2], main, dur=usual)
        end = now + usual
        if i in stalls:
            if what is not None:
                what.at(end, size)
            job.samples([end + size // 2], main._replace(line=REPORT), Frame(SCRIPT, "report", 8), dur=size)
            end += size
        now = end
    return job


def passes(job: Job, at: Iterable[int]) -> Job:
    """The same job, and in these steps a pass over its data ends."""
    starts = sorted(r.start_ns for r in job.records if r.kind == Kind.FUNCTION)
    nexts = job.nexts()
    iterator = job.iterator(batch=8)
    for i in at:
        nexts.at(starts[i + 1] - 10 * US, US, arg=iterator, flags=END)
    return job


QUEUE = Frame("/usr/lib/python3.11/queue.py", "get", 171, own=False)


def hung(
    seconds: float, *, inside: Frame = QUEUE, cores: float = 0.0, trains: bool = True, exit_code: int = -15
) -> Job:
    """A loop of ten seconds whose thread then stands still until the job is killed.

    Args:
        seconds: how long it stands still.
        inside: what its line has called.
        cores: CPUs that the process uses.
        trains: its steps change variables.
        exit_code: of the job.
    """
    job = train_loop(80 * MS)
    job.trace(0, MS, cause="first", updates=4 if trains else 0)
    last = (STEPS - 1) * PERIOD + 80 * MS
    job.ended_ns = last + round(seconds * S)
    job.exit_code = exit_code
    times = range(last + 10 * MS, job.ended_ns, 50 * MS)
    job.samples(times, Frame(SCRIPT, "main", REPORT), inside)
    job.samples([5 * S, 9 * S], Frame("/job/loader.py", "produce", 20), thread=POOL)
    job.machine(job.ended_ns // S, got=cores)
    return job


def loading(dur: int, *, used: float = 1.0, traced: bool = False) -> Job:
    """A loop that a function of 20 samples comes before.

    Args:
        dur: of the function.
        used: share of it on the CPU.
        traced: it is the first trace of the step's function, not a function of its own.
    """
    job = train_loop(20 * MS, offset=dur)
    job.framework()
    line = Frame("/job/loader.py", "read_all", 7)
    times = [i * dur // 20 for i in range(20)]
    job.samples(times, Frame(SCRIPT, "main", MAKE), line, dur=round(used * dur) // 20, flags=int(Flag.CPU))
    if used < 1:
        job.samples(times, Frame(SCRIPT, "main", MAKE), line, dur=(dur - round(used * dur)) // 20)
    job.samples([dur + 10 * PERIOD], Frame(SCRIPT, "main", CALL))
    if traced:
        job.trace(0, dur, cause="first")
    return job


def crowded(threads: int, *, runnable: float | None = None, switches: int = 20_000, own: bool = False) -> Job:
    """A loop of ten seconds on two CPUs that so many threads share, with 20,000 switches a second of CPU time.

    Args:
        threads: that share the work.
        runnable: at once; as many by default.
        switches: a second of CPU time, of which there are two a second.
        own: they are threads of the job's own Python.
    """
    job = train_loop(80 * MS)
    job.sources[SCRIPT] = SOURCE.replace("total = 0.0", "pool = ThreadPoolExecutor(32)")
    job.machine(SECONDS, got=2.0, waiting=(threads if runnable is None else runnable) - 2.0)
    at = job.processes.at_ns
    rows = np.repeat(at, threads)
    job.threads = ThreadTable(
        at_ns=rows,
        pid=rows * 0 + job.pid,
        native=np.tile(np.arange(1000, 1000 + threads, dtype=np.int64), len(at)),
        run_ns=rows * 2 // threads,
        wait_ns=rows * 0,
    )
    job.processes = msgspec.structs.replace(job.processes, voluntary_switches=at // S * 2 * switches)
    if own:
        for number in range(threads // 2):
            job.event(ThreadSeen(id=100 + number, native=1000 + number, name=f"pool_{number}"))
            job.samples([S], Frame("/job/loader.py", "augment", 9), thread=100 + number)
    return job


def summarised(per_step: int, *, dur: int = MS, saved: int = 0) -> Job:
    """A loop that writes a summary in each step, and the process so many bytes.

    Args:
        per_step: written to storage.
        dur: of one summary.
        saved: bytes of a checkpoint in the middle of the run.
    """
    job = train_loop(80 * MS)
    where = {"call_file": SCRIPT, "call_line": REPORT, "call_function": "main"}
    summary = job.call(Kind.SUMMARY, "summary write", role="write", **where)
    summary.every(PERIOD, STEPS, dur=dur, start=80 * MS)
    job.machine(SECONDS)
    written = job.processes.at_ns * per_step // PERIOD
    if saved:
        job.save().at(50 * PERIOD + 85 * MS, MS, arg=saved)
        written = written + np.where(job.processes.at_ns > 5 * S, saved, 0)
    job.processes = msgspec.structs.replace(job.processes, write_bytes=written)
    return job


def profiling(period: int, *, steps: int = 60, stopped: bool = True) -> Job:
    """The program's profiler records ``steps`` steps of a period, then come as many of the usual one; or none."""
    job = Job()
    calls = job.function(**MAIN_CALL)
    calls.every(period, steps, dur=period // 2)
    job.event(UserProfiler(action="start", file=SCRIPT, line=12, function="main"))
    if stopped:
        calls.every(PERIOD, steps, dur=PERIOD // 2, start=steps * period)
        job.event(UserProfiler(at=steps * period, action="stop"))
    return job


def starting(
    wait: int, *, by: str = "Skip", passes: int = 10, others: int = MS, left: int = -2, cached: bool = False
) -> Job:
    """Passes of ten steps over a mapped dataset, each with a wait for its first batch.

    ``by``: the transformation behind the map, which leaves ``left`` of a hundred; ``cached``: a cache, and a take of
    ninety, between; ``others``: waits for other batches.
    """
    job = Job()
    job.sources[SCRIPT] = SOURCE
    source = job.dataset("RangeDataset", line=70)
    own = {"fn_name": "decode", "fn_file": SCRIPT, "fn_line": 15, "fn_end_line": 18}
    mapped = job.dataset("MapDataset", source, line=71, cardinality=100, **own)
    if cached:
        mapped = job.dataset(
            "TakeDataset", job.dataset("CacheDataset", mapped, line=73, cardinality=100), line=74, cardinality=90
        )
    kept = job.dataset(f"{by}Dataset", mapped, line=72, cardinality=left)
    iterator = job.iterator(job.dataset("BatchDataset", kept, line=73, batch=8), batch=8)
    calls, nexts = job.function(**MAIN_CALL), job.nexts()
    at = 0
    for _ in range(passes):
        for step in range(10):
            pull = others if step else wait
            nexts.at(at, pull, arg=iterator)
            calls.at(at + pull, 20 * MS)
            at += pull + 21 * MS
        nexts.at(at - MS, 10 * US, arg=iterator, flags=END)
    return job


def seen_in_windows(every: int, *, starts: Sequence[int], length: int = 25) -> Job:
    """Steps of 30 ms of which only some are timed; a collection of 200 ms after each ``every``-th of all of them."""
    job, at = Job(), 0
    call = job.function(call_file=SCRIPT, call_line=CALL, call_function="main")
    collection = job.call(Kind.GC, "gc")
    timed = {number for start in starts for number in range(start, start + length)}
    hidden_ns = hidden = 0
    for number in range(starts[0], max(timed) + 1):
        dur = 230 * MS if number % every == 0 else 30 * MS
        if number in timed:
            if hidden:
                job.gap(at - hidden_ns - 2 * MS, hidden_ns + MS, hidden, Kind.FUNCTION)
            hidden_ns = hidden = 0
            call.at(at, 25 * MS)
            if dur > 30 * MS:
                collection.at(at + 25 * MS, 200 * MS)
        else:
            hidden_ns, hidden = hidden_ns + dur, hidden + 1
        at += dur
    return job

"""The job has stopped: no work is done any more, and its threads wait.

## What it detects
A job that was ended from outside (Ctrl-C, a signal) or by an error after it had done nothing for much longer than ever
before: no step, no batch, no save, hardly any CPU time of its own or its children's, and its thread waiting in one
function.

## Why it matters
A job that hangs occupies its machine silently. Where its threads wait is lost once it has been killed.

## Evidence
`standstill_ns`: from the last record of work to the end. `longest_before_ns`: the longest such time before. `cores`:
CPU used meanwhile. `samples_in_place`: stack samples of the step's thread since, nearly all in the function named. The
places of the other threads follow; a thread that is not seen any more is named with the line where it was seen last.
`threads_died`: number of threads that died of an uncaught exception. The first of them is named, with its line.

A hang that was recognised while it lasted (`stepscope ps`, `top`, the page) has `told_after_ns` instead of
`samples_in_place`, and names what is waited for: a queue, a dataset, a worker process, a lock, the network.

## Known limits
Waits outside Python (a lock in C, a silent peer) are reported at the Python line that made the call. Threads that wait
idle in a pool are not sampled. A loop that only predicts, or a server, may be waiting for requests, and a task of a
cluster for another task: undecided. A job that ended normally did not hang, however long it waited.

## Remedy
Bound the wait: a timeout on it, an error passed from the worker thread to the one that waits, a lock that is released
in `finally`, processes started by spawn rather than fork. A thread that may fail should catch every exception and pass
it to the thread that waits, which is not notified otherwise.

## References
FSE'22 study, symptom "program hang"; Python documentation of queue.Queue.get and of multiprocessing start methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.host import no_progress, thread_deaths
from stepscope.causes.job import purpose
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_ns, format_number_of, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.host.no_progress import Standstill, ThreadAt
    from stepscope.derive.view import SessionView
    from stepscope.tables.findings import Stage
    from stepscope.tables.hang import Hang


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_standstill_ns: int = 10_000_000_000
    """A shorter standstill is not a hang."""
    min_start_ns: int = 20_000_000_000
    """Before the first step."""
    min_after_death_ns: int = 5_000_000_000
    """Where a thread of the job has died: what waits for it waits for ever."""
    min_times_before: float = 10.0
    """Ratio of the standstill to the longest time without work before."""
    max_cores: float = 0.1
    """Of the process, and of its children: a process that computes does not hang."""
    max_moved_bytes: int = 10 << 20
    """Bytes read, written or sent meanwhile: a copy makes progress."""
    min_same_ratio: Ratio = Ratio(0.9)
    """Share of the later samples of the step's thread in one function."""


_WAITS_FOR_WORK = frozenset({"select", "accept", "serve_forever", "run_forever", "input", "pause", "sigwait", "poll"})
"""Functions in which servers and consoles wait."""
_THREADS_ONLY = frozenset({"queue.py", "threading.py"})
"""Modules whose waits are for a thread of the same process, so that other processes do not matter."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    still = view.get(no_progress.build)
    if still is None or view.session.manifest.exit_code == 0:
        return
    told = no_progress.lasting(view)
    if told is not None and (told.state == "hang" or view.steps is not None):
        yield _told(view, still, told, params)
        return
    if not still.threads:
        return
    least = params.min_standstill_ns if view.steps is not None else params.min_start_ns
    least = max(least, int(params.min_times_before * still.longest_before_ns))
    if still.length_ns < (min(least, params.min_after_death_ns) if still.died else least):
        return
    main = still.threads[0]
    children = 0.0 if main.module in _THREADS_ONLY else still.children_cores
    busy = max(still.cores, children) > params.max_cores or still.moved_bytes > params.max_moved_bytes
    if still.cores < 0:
        yield Undecided(missing=Signal.HOST, hint="no sample shows whether the job used the CPU at its end")
    elif busy or main.spot is None or main.same_ratio < params.min_same_ratio:
        return
    elif main.waits_for_cluster:
        hint = f"{_at(view, main)} waits for another task of its cluster; whether that task runs is not recorded here"
        yield Undecided(missing=Signal.STEPS, hint=hint)
    elif main.inside in _WAITS_FOR_WORK or not (view.get(purpose.trains) or main.framework):
        hint = f"no work was done for {format_ns(still.length_ns)}; {_at(view, main)} may wait for requests"
        yield Undecided(missing=Signal.STEPS, hint=hint)
    else:
        yield _finding(view, still, main, params)


def _finding(view: SessionView, still: Standstill, main: ThreadAt, params: Params) -> Seen:
    ratio = still.length_ns / max(1, still.work_ns)
    count = len(view.steps) if view.steps is not None else 0
    when = f"after {count:,} steps" if count else "before the first step"
    return Seen(
        title=f"the job hangs: no progress for {format_ns(still.length_ns)} {when}; {_waits(view, main)}: "
        f"{format_ratio(ratio)} of the time{_death(view, still)}",
        confidence=0.9 if main.samples else 0.7,
        introduced_stage="training" if count else "initialization",
        exposed_stage="training" if count else "initialization",
        where=_places(view, still),
        evidence=(
            Evidence(
                metric="standstill_ns", value=still.length_ns, unit="ns", threshold=float(params.min_standstill_ns)
            ),
            Evidence(metric="longest_before_ns", value=still.longest_before_ns, unit="ns"),
            Evidence(metric="cores", value=still.cores, unit="cores", threshold=params.max_cores),
            Evidence(metric="samples_in_place", value=main.samples, unit="samples"),
            *((Evidence(metric="threads_died", value=len(still.died), unit="threads"),) if still.died else ()),
        ),
        cost=cost_of(view, ratio, ns_per_step=still.length_ns // max(1, count)),
        remedies=_remedies(still, main),
        explanation=_others(view, still),
    )


def _told(view: SessionView, still: Standstill, told: Hang, params: Params) -> Seen:
    """What was seen while it lasted is exact: the wait on which the others depend, by system call and stack."""
    length = max(1, still.until_ns - told.since_ns)
    ratio = min(1.0, length / max(1, still.work_ns))
    count = len(view.steps) if view.steps is not None else 0
    place = view.place(told.file, told.line, function=told.function)
    when = f"after {count:,} steps" if count else "before the first step"
    stage: Stage = "training" if count else "initialization"
    main = [view.place(told.main.file, told.main.line, function=told.main.function)] if told.main is not None else []
    words = "the job hangs: no progress" if told.state == "hang" else "the input stops: no step"
    return Seen(
        title=f"{words} for {format_ns(length)} {when}; {told.text}, in {told.function} ({place.file}:{place.line}): "
        f"{format_ratio(ratio)} of the time{_death(view, still)}",
        cause="unknown",
        confidence=0.95 if told.state == "hang" else 0.7,
        introduced_stage=stage,
        exposed_stage=stage,
        where=tuple(dict.fromkeys([place, *main])),
        evidence=(
            Evidence(metric="standstill_ns", value=length, unit="ns", threshold=float(params.min_standstill_ns)),
            Evidence(metric="longest_before_ns", value=still.longest_before_ns, unit="ns"),
            Evidence(metric="told_after_ns", value=told.told_ns - told.since_ns, unit="ns"),
            *((Evidence(metric="cores", value=still.cores, unit="cores"),) if still.cores >= 0 else ()),
        ),
        cost=cost_of(view, ratio, ns_per_step=length // max(1, count)),
        remedies=(*_remedies_of_death(still), _remedy(told)),
        explanation=_told_threads(view, told),
    )


_MENDS = {
    "queue": "let the thread that fills the queue pass its end and its errors on (close the queue, put a last element "
    "or the error), and give the wait a timeout",
    "dataset": "make the pipeline yield elements: check what the filter or generator lets through, take a bounded "
    "number of passes, and raise an error where nothing was found",
    "process": "find out why the worker process ended (lack of memory, a crash, os._exit), and use a pool that notices "
    "it: concurrent.futures.ProcessPoolExecutor raises BrokenProcessPool where multiprocessing.Pool waits for ever",
    "lock": "take locks in one order everywhere, release them in finally, start processes by spawn rather than fork, "
    "and give the wait a timeout",
    "network": "give the connection a timeout and try again, and check whether the other end runs",
}


def _remedy(told: Hang) -> Remedy:
    text = _MENDS.get(told.kind, f"find out why what {told.function} waits for never comes; give the wait a timeout")
    return Remedy(id="bound-the-wait", text=text)


def _told_threads(view: SessionView, told: Hang) -> str:
    """Where every thread with functions of the user's was."""
    parts = []
    for thread in told.threads:
        own = next((frame for frame in thread.frames if frame.own), None)
        if own is not None:
            place = view.place(own.file, own.line)
            call = f" in {thread.call}{' of ' + thread.on if thread.on else ''}" if thread.call else ""
            parts.append(f"{thread.name} {thread.pid}/{thread.tid} in {own.function} ({place.file}:{place.line}){call}")
    return (
        f"Recognised after {format_ns(told.told_ns - told.since_ns)}, while it lasted. The threads: {'; '.join(parts)}."
    )


def _remedies(still: Standstill, main: ThreadAt) -> tuple[Remedy, ...]:
    bound = (
        f"find out why the result that {_function(main)} waits for never arrives; give the wait a timeout, and pass "
        "errors of worker threads to the thread that waits"
    )
    return (*_remedies_of_death(still), Remedy(id="bound-the-wait", text=bound))


def _remedies_of_death(still: Standstill) -> tuple[Remedy, ...]:
    if not still.died:
        return ()
    first = still.died[0]
    text = f"fix the cause of {first.error}; in thread {first.name}, catch every exception and pass it to the waiting "
    text += "thread (close the queue with cancel_pending_enqueues, tf.train.Coordinator.request_stop, queue.put(error))"
    return (Remedy(id="hand-errors-over", text=text),)


def _death(view: SessionView, still: Standstill) -> str:
    """Which thread died, of what and where; nothing if none did."""
    return f"; {thread_deaths.sentence(view, still.died)}" if still.died else ""


def _function(thread: ThreadAt) -> str:
    return thread.spot.function if thread.spot is not None else thread.name


def _at(view: SessionView, thread: ThreadAt) -> str:
    spot = thread.spot
    if spot is None:
        return thread.name
    place = view.place(spot.file, spot.line)
    return f"{thread.name} in {spot.function} ({place.file}:{place.line})"


def _waits(view: SessionView, main: ThreadAt) -> str:
    """Where the step's thread waits, and for what."""
    if not main.samples:
        spot = _at(view, main).removeprefix(main.name)
        return f"{main.name} was last seen{spot}; a C call holds the interpreter lock (GIL)"
    if main.framework:
        return f"{_at(view, main)} waits inside {main.framework} ({main.inside})"
    return f"{_at(view, main)} waits {f'in {main.inside}' if main.inside else 'for a lock, a sleep or an answer'}"


def _others(view: SessionView, still: Standstill) -> str:
    """Where every other thread waited."""
    parts = []
    for thread in still.threads[1:]:
        if thread.spot is None:
            continue
        if thread.samples:
            parts.append(f"{_at(view, thread)}{' in ' + thread.inside if thread.inside else ''}")
        else:
            ago = format_ns(still.until_ns - thread.last_ns)
            parts.append(f"{_at(view, thread)} was last seen {ago} before the end: it has ended, or waits idle")
    others = "; ".join(parts) or "none was seen in user code"
    return f"The process used {format_number_of(f'{still.cores:.2g}', 'CPUs')} meanwhile. The other threads: {others}."


def _places(view: SessionView, still: Standstill) -> tuple[Place, ...]:
    died = [view.place(d.file, d.line, function=d.function) for d in still.died if d.file]
    spots = [t.spot for t in still.threads if t.spot is not None]
    return tuple(dict.fromkeys([*died, *(view.place(s.file, s.line, function=s.function) for s in spots)]))


DETECTOR = Detector(
    code="HNG001",
    name="no-progress",
    symptom="Time: program hang",
    needs=frozenset({Signal.STACKS}),
    params=Params(),
    detect=detect,
)

"""Another Python thread holds the interpreter lock while the step waits for it.

## What it detects
The thread that makes the steps waits a tenth of the time or more for CPython's interpreter lock (the GIL), which other
threads of the job hold: threads that keep statistics, parse, log, serve or prepare data in Python.

## Why it matters
Only one thread at a time runs Python. A step releases the lock in each call of TensorFlow and needs it again to
continue; a thread that computes in Python releases it only after 5 ms (`sys.getswitchinterval`). A step of 3 ms that
needs it back once then takes 8 ms, however many CPUs are idle.

## Evidence
`lock_wait_ratio`: share of the time for which the step's thread waited for the lock. It is the blocked share, minus the
share blocked by something else, plus part of the share spent ready for a CPU. Its maximum is the time that the other
threads ran or were ready to run. `blocked_ratio`, `ready_ratio`: from schedstat. `elsewhere_ratio`: share of `looks`
(samples) that found it blocked in a system call other than the wait for the lock (/proc/self/task/TID/syscall, at most
five a second). `holder_cores`: CPUs that the threads named ran on; `samples_on_code`: their stack samples in the
function named.

## Known limits
The cost is the time that the step's thread waits. The gain is smaller if no other CPUs are free, or if a device has
queued work meanwhile: the reported cost is at most the time in which the GPU is idle. Python called by tf.data may hold
the lock too; if the steps wait for its results, INP002 or INP003 reports it instead. In 10 s there are about 45 looks,
which give the share within 15 points. If others use the CPUs (CFG001), part of the wait for the lock appears as a wait
for a CPU; that part is estimated, and the cost then tends to be too low.

## Remedy
Do the work in another process (`multiprocessing`, a subprocess), in NumPy or other native code that releases the lock,
less often, or once at the end. A one-line experiment: `sys.setswitchinterval(0.0005)` makes each wait shorter.

## References
CPython: Python/ceval_gil.c, sys.setswitchinterval; Linux: proc(5), Documentation/scheduler/sched-stats.rst.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.host import gil_contention
from stepscope.causes.system import gpu
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of, step_ns
from stepscope.model.report.components import stage_in_step
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_ns, format_number_of, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.host.gil_contention import GilHolder, LockWaits
    from stepscope.derive.steps_view import StepsView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of the time from the first to the last steady step."""
    min_low: Ratio = Ratio(0.03)
    """Lower end of its interval: few samples give a wide interval."""
    min_looks: int = gil_contention.MIN_LOOKS
    """Fewer are too few to conclude from."""
    sure_low: Ratio = Ratio(0.10)
    """Lower end from which nothing else can explain the wait."""
    min_holder_cores: float = gil_contention.MIN_HOLDER_CORES
    """A thread that takes less of a CPU does not delay the step."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    waits = gil_contention.build(view, params.min_holder_cores)
    if waits is None or min(waits.held, waits.blocked) < params.min_ratio:
        return
    if waits.looks < params.min_looks:
        yield Undecided(missing=Signal.LOCK, hint=f"{waits.looks} looks; the steady part must last some 5 s")
        return
    idle = 1.0 - max((gpu.busy_ratio for gpu in view.get(gpu.build)), default=0.0)
    ratio, low = min(waits.ratio, idle), min(waits.low, idle)
    if ratio < params.min_ratio or low < params.min_low:
        return
    holder = waits.holders[0]
    yield Seen(
        title=_title(view, ratio, holder),
        confidence=0.9 if low >= params.sure_low else 0.7,
        introduced_stage="data preparation" if holder.in_pipeline else "training",
        pipeline_stage=stage_in_step(waits.component or "call"),
        where=_places(view, waits, holder),
        evidence=(
            Evidence(metric="lock_wait_ratio", value=ratio, unit="ratio", threshold=params.min_ratio),
            Evidence(metric="blocked_ratio", value=waits.blocked, unit="ratio"),
            Evidence(metric="ready_ratio", value=waits.ready, unit="ratio"),
            Evidence(metric="elsewhere_ratio", value=waits.elsewhere, unit="ratio"),
            Evidence(metric="looks", value=waits.looks, unit="looks"),
            Evidence(metric="holder_cores", value=holder.cores, unit="cores"),
            Evidence(metric="samples_on_code", value=holder.samples, unit="samples"),
        ),
        cost=cost_of(view, ratio, low=low, high=min(waits.high, idle), by_time=True),
        remedies=_remedies(holder),
        explanation="The step's thread is ready to run but waits for CPython's interpreter lock, which only one "
        "thread holds at a time. More CPUs, a faster model or a faster input do not help.",
    )


def _title(view: StepsView, ratio: float, holder: GilHolder) -> str:
    mean = step_ns(view)
    names = [name for name in holder.threads if name]
    count = len(holder.threads)
    who = f"{count} other Python threads hold" if count > 1 else "another Python thread holds"
    name = f" (thread {names[0]})" if count == 1 and names else ""
    cpus = format_number_of(f"{holder.cores:.2g}", "CPUs")
    return (
        f"{who} the GIL: {holder.spot.function}{name} computes on {cpus}, and each step waits "
        f"{format_ns(ratio * mean)} of {format_ns(mean)} for the interpreter lock: {format_ratio(ratio)} of the time"
    )


def _places(view: StepsView, waits: LockWaits, holder: GilHolder) -> tuple[Place, ...]:
    """What the other thread runs, then the line where the step waits."""
    places = [view.place(holder.spot.file, min(holder.lines), max(holder.lines), holder.spot.function)]
    if waits.waiting_at is not None:
        spot = waits.waiting_at
        places.append(view.place(spot.file, spot.line, function=spot.function))
    return tuple(dict.fromkeys(places))


def _remedies(holder: GilHolder) -> tuple[Remedy, ...]:
    function = holder.spot.function
    process = Remedy(
        id="move-to-process",
        text=f"run {function} in a separate process (multiprocessing), which has its own interpreter lock",
    )
    workers = Remedy(
        id="input-in-processes",
        text="make the input in processes (use_multiprocessing=True of a PyDataset) or with TensorFlow ops",
    )
    return (
        workers if holder.in_pipeline else process,
        Remedy(
            id="let-go-of-lock",
            text="or use native code that releases the lock: NumPy on whole arrays, numba with nogil, pyarrow",
        ),
        Remedy(id="do-it-less-often", text=f"or run {function} less often, or once at the end"),
        Remedy(
            id="switch-interval",
            text="a one-line experiment: sys.setswitchinterval(0.0005) makes threads release the lock ten times as "
            "soon",
        ),
    )


DETECTOR = Detector(
    code="HST011",
    name="gil-contention",
    cause="Python: interpreter overhead",
    exposed_stage="training",
    needs=frozenset({Signal.STEPS, Signal.SAMPLES, Signal.HOST}),
    params=Params(),
    detect=detect,
    yields_to=frozenset({"CFG003", "INP002", "INP003"}),
)

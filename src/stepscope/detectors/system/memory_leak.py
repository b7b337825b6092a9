"""The job's memory rises with every step and does not level off.

## What it detects
Resident memory of the process that makes the steps (without pages of files and shared memory) that rises over the whole
steady part of the run, from quarter to quarter and also in its last third.

## Why it matters
The job gets slower when memory becomes short, and is killed when none is left, hours after its start; the work since
its last checkpoint is lost.

## Evidence
`bytes_per_step`: slope of a robust line (Theil-Sen) over the steps, with its interval as `bytes_per_step_low` and
`_high`; `growth_bytes` within the run; `seconds_to_limit`: time until the memory left at the end is used up at this
rate; `graphs_traced`: graphs made meanwhile; `major_faults`. The cost is that of touching the new pages for the first
time or, for a job killed when memory ran out, the work since its last checkpoint.

## Known limits
A list that is meant to grow up to a bound beyond the run (a replay buffer in Python) looks the same until it is full; a
buffer allocated all at once does not, because its address space does not grow. The result is undecided while a
`Dataset.cache()` is in its first pass, and for a loop that only predicts where the agent did not look at what
variables hold: if a variable keeps what came, it keeps results, which is information; if none does, it leaks. Needs
eight samples, one a second. A job that died for lack of memory is reported as MEM004.

## Remedy
Keep numbers, not tensors (`float(loss)`), bound what is kept (`collections.deque(maxlen=N)`), create functions,
datasets and models once, outside the loop.

## References
FSE'22 study, symptom "memory leak"; Linux: Documentation/filesystems/proc.rst, statm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.job import purpose
from stepscope.causes.system import memory_keeper, memory_leak, out_of_memory
from stepscope.derive.machine import memory_use
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_bytes, format_ns
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.system.memory_keeper import Keeper
    from stepscope.causes.system.memory_leak import MemoryGrowth
    from stepscope.causes.system.memory_owners import MemoryOwner
    from stepscope.derive.steps_view import StepsView

FAULT_NS, SLOW_FAULT_NS = 1_600, 5_000
"""First touch of a page of 4 KiB. Source: measured on a virtual machine, 1.5-1.7 us; up to 6.7 us if the host does not
back the page yet. Between the two, the process's own kernel time per fault is used."""
PAGE_BYTES = 4096
KILLED = frozenset({-9, 137})
"""Exit codes of a job that the kernel kills when memory is used up (or that receives any other SIGKILL)."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_growth_bytes: int = 32 << 20
    """Within the run: the interpreter's arenas and caches settle within less."""
    min_growth_ratio: Ratio = Ratio(0.05)
    """Of the memory at the start of the steady part."""
    min_reserved_ratio: float = 0.5
    """Growth of the address space per growth of memory: below it the memory was reserved before."""
    last_seconds: float = 5.0
    """A job killed with memory left for at most this many seconds of growth ran out of memory."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    growth = view.get(memory_leak.build)
    if growth is None or not growth.goes_on or growth.reserved_ratio < params.min_reserved_ratio:
        return
    line = growth.trend
    if line.rise < params.min_growth_bytes or line.rise < params.min_growth_ratio * line.first:
        return
    death = view.get(out_of_memory.build)
    if death is not None and death.sure:
        return  # MEM004 says who held the memory
    keeper = view.get(memory_keeper.build)
    if not view.get(purpose.trains) and keeper is None:
        yield Undecided(
            missing=Signal.MEMORY,
            hint=f"memory rises by {format_bytes(line.slope)} a step; a loop that predicts may keep its results",
        )
        return
    if growth.cache_fills:
        yield Undecided(
            missing=Signal.MEMORY,
            hint="memory rises, and a Dataset.cache() is still in its first pass: run until it has been read once",
        )
        return
    yield _finding(view, growth, keeper, params)


def _finding(view: StepsView, growth: MemoryGrowth, keeper: Keeper | None, params: Params) -> Seen:
    line = growth.trend
    left = _bytes_left(view)
    seconds = left / growth.per_second if growth.per_second else 0.0
    killed = view.session.manifest.exit_code in KILLED and seconds <= params.last_seconds
    ratio = _lost_ratio(view) if killed else line.rise / PAGE_BYTES * _fault_ns(growth) / max(1, growth.span_ns)
    each = format_bytes(line.slope)
    until = "it was killed when none was left" if killed else _until(view, seconds)
    trains, owner = view.get(purpose.trains), keeper.owner if keeper is not None else None
    results = owner is not None and not trains
    return Seen(
        title=f"{'results are kept' if results else 'memory leak'}: memory rises by {each} a step, "
        f"{format_bytes(line.rise)} in {growth.steps:,} steps, and does not level off: {until}{_kept(owner)}",
        severity="info" if results else None,
        confidence=(0.85 if trains else 0.6) if growth.steps else 0.5,
        symptom="Memory: out of memory" if killed else "Memory: memory leak",
        cause="Model: confusion with computation model" if growth.graphs else "unknown",
        where=tuple(dict.fromkeys([*(owner.where if owner is not None else ()), *_places(view)])),
        evidence=(
            Evidence(metric="bytes_per_step", value=line.slope, unit="bytes"),
            Evidence(metric="bytes_per_step_low", value=line.low, unit="bytes"),
            Evidence(metric="bytes_per_step_high", value=line.high, unit="bytes"),
            Evidence(metric="growth_bytes", value=line.rise, unit="bytes", threshold=params.min_growth_bytes),
            Evidence(metric="seconds_to_limit", value=seconds, unit="s"),
            Evidence(metric="graphs_traced", value=growth.graphs, unit="traces"),
            Evidence(metric="major_faults", value=growth.major_faults, unit="faults"),
        ),
        cost=cost_of(
            view,
            ratio,
            low=ratio if killed else ratio * FAULT_NS / _fault_ns(growth) * max(0.0, line.low / line.slope),
            high=ratio if killed else ratio * min(2.0, line.high / line.slope),
            basis="measured" if killed else "modelled",
        ),
        remedies=_remedies(growth, owner),
        explanation="Each step leaves memory behind: it is the process's own, its address space grows with it, and "
        "the last third of the run grows like the rest.",
    )


def _fault_ns(growth: MemoryGrowth) -> float:
    """Cost of one fault in this process."""
    return min(SLOW_FAULT_NS, max(FAULT_NS, growth.system_ns / max(1, growth.minor_faults)))


def _bytes_left(view: StepsView) -> float:
    """Memory left for the job at the end: the host's, by the kernel's estimate, or its cgroup's."""
    host, memory = view.session.host, view.session.memory
    left = [int(host.available_bytes[-1])] if len(host) else []
    if len(memory) and memory.cgroup_limit_bytes[-1] > 0:
        used = int(memory.cgroup_bytes[-1]) - max(0, int(memory.cgroup_file_bytes[-1]))
        left.append(int(memory.cgroup_limit_bytes[-1]) - used)
    return float(max(0, min(left, default=0)))


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return format_ns(seconds * 1e9)


def _lost_ratio(view: StepsView) -> float:
    """Share of the steady wall time after the last checkpoint: work that was lost with the job."""
    steps = view.steps
    records = steps.worker.records
    saved = records.kind == Kind.SAVE
    last = int((records.start_ns[saved] + records.dur_ns[saved]).max()) if saved.any() else 0
    end = int(steps.windows[1][-1])
    return min(1.0, max(0, end - max(last, int(steps.windows[0][0]))) / max(1, steps.steady_ns))


def _places(view: StepsView) -> tuple[Place, ...]:
    """The loop that makes the steps: whatever is kept from step to step is kept there or below."""
    fit = view.fit_place()
    if fit is not None:
        return (fit,)
    if view.loop is not None and view.call_line is not None:
        return (view.place(view.loop[0], view.call_line, function=view.loop[1]),)
    return ()


def _until(view: StepsView, seconds: float) -> str:
    """``reaches its limit of 4 GiB (control group) in 12 min at this rate``."""
    limit = memory_use.build(view.session, view.steps.worker).limit
    bound = f"its limit of {format_bytes(limit.bytes)} ({limit.kind})" if limit is not None else "the host's memory"
    return f"reaches {bound} in {_duration(seconds)} at this rate"


def _kept(owner: MemoryOwner | None) -> str:
    """``; history in train keeps it: 1,204 entries, 1.5 GiB``."""
    if owner is None:
        return ""
    name = owner.name if owner.function in ("", "<module>") else f"{owner.name} in {owner.function}"
    return f"; {name} keeps it: {owner.count:,} {owner.unit}, {format_bytes(owner.bytes)}"


def _remedies(growth: MemoryGrowth, owner: MemoryOwner | None) -> tuple[Remedy, ...]:
    kept = Remedy(
        id="keep-numbers",
        text="keep numbers, not tensors, from step to step (float(loss)), and bound what is kept (deque(maxlen=N))",
    )
    graphs = Remedy(
        id="make-once",
        text=f"{growth.graphs} graphs were traced meanwhile: create functions, datasets and models once, before the "
        "loop",
    )
    return (graphs, kept) if growth.graphs > growth.steps // 10 > 0 and owner is None else (kept,)


DETECTOR = Detector(
    code="MEM001",
    name="memory-leak",
    introduced_stage="training",
    exposed_stage="training",
    needs=frozenset({Signal.STEPS, Signal.MEMORY}),
    params=Params(),
    detect=detect,
)

"""Other processes, the hypervisor or a quota take the CPU that the job wants.

## What it detects
The job's threads are runnable but wait for a CPU, while processes outside the job's training (including its own
companions), the hypervisor (steal) or a cgroup quota take CPUs that the job would use.

## Why it matters
Every part of the step gets slower together; a profiler of ops shows "host compute" and an input pipeline that looks too
slow. No change to the model or the input helps.

## Evidence
`lost_ratio`: share of the steps' time in which their thread waits for a CPU, or is blocked by threads that themselves
lack a CPU in a call that computes. `step_wait_ratio`: the first part, the thread's own wait in the run queue;
`usable_cores`: how many CPUs this work can use at once, from the ops of a trace or from the slowest input stage.
`wanted_cores`: threads running or runnable on average (including idle pool threads that look for work); `got_cores`:
CPU time a second; `others_cores`, `steal_cores`, `throttled_cores`: who took the rest. From schedstat, /proc/stat and
the cgroup, over the steady steps.

## Known limits
A job with more runnable threads than CPUs makes itself wait; only what others take counts. Samples come once a second,
so the steady part must last some seconds. Contention for memory bandwidth or a shared cache is not seen. If neither an
op trace nor the slowest input stage shows how many CPUs the work can use at once, the interval runs from the cost for
one CPU to the cost for all CPUs. In a process that was attached to, all threads count as one group, which overstates
the cost if they wait for each other.

Threads of a pool use CPU while they look for work, and no op shows it: if many small ops run one after another, the
true cost is near the upper end of the interval (docs/benchmarks/contention.md).

## Remedy
Run the other work later, at low priority (`nice -n 19`), or on other cores (`taskset`, cgroup cpuset); raise the quota.

## References
Linux: Documentation/scheduler/sched-stats.rst; Documentation/admin-guide/cgroup-v2.rst, cpu.stat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.system import contention
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_number_of, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.system.contention import Contention, Rival
    from stepscope.derive.view import SessionView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_lost_ratio: Ratio = Ratio(0.15)
    """Of the steps' time: below it, ordinary system activity."""
    min_rival_cores: float = 0.1
    """A process that takes fewer is not named."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    others = view.get(contention.build)
    if others is None or others.lost_ratio < params.min_lost_ratio:
        return
    ratio = others.lost_ratio
    rivals = [r for r in others.rivals if r.cores >= params.min_rival_cores]
    quota = others.throttled > max(others.others, others.steal)
    yield Seen(
        title=_title(others, rivals, quota=quota),
        confidence=0.85,
        cause="Hardware: improper configuration" if quota else "System: scheduling",
        where=_places(view, rivals),
        evidence=(
            Evidence(metric="lost_ratio", value=ratio, unit="ratio", threshold=params.min_lost_ratio),
            *_of_thread(others),
            Evidence(metric="wanted_cores", value=others.wanted, unit="cores"),
            Evidence(metric="available_cores", value=others.available, unit="cores"),
            Evidence(metric="got_cores", value=others.got, unit="cores"),
            Evidence(metric="others_cores", value=others.others, unit="cores"),
            Evidence(metric="steal_cores", value=others.steal, unit="cores"),
            Evidence(metric="throttled_cores", value=others.throttled, unit="cores"),
        ),
        cost=cost_of(view, ratio, low=others.low, high=others.high, basis="modelled", by_time=True),
        remedies=_remedies(quota=quota, ours=bool(rivals) and (rivals[0].child or rivals[0].companion)),
        explanation="The job's threads were ready to run and waited in the kernel's run queue; the CPUs were busy with "
        "other work. This slows every part of the step that computes; the shares of the other findings remain valid.",
    )


def _of_thread(contention: Contention) -> tuple[Evidence, ...]:
    thread = contention.thread
    if thread is None:
        return ()
    waits = Evidence(metric="step_wait_ratio", value=thread.wait, unit="ratio")
    if thread.at_once is None:
        return (waits,)
    return waits, Evidence(metric="usable_cores", value=thread.at_once, unit="cores")


def _title(contention: Contention, rivals: list[Rival], *, quota: bool) -> str:
    thread = contention.thread
    have = f"{contention.got:.2g} of the {format_number_of(f'{contention.could_have:.2g}', 'CPUs')} it could use"
    if quota:
        return f"the cgroup's CPU quota throttles the job: it got {have}"
    if contention.steal > contention.others:
        stolen = f"steal {format_number_of(f'{contention.steal:.2g}', 'CPUs')}"
        return f"the hypervisor gives the CPU to other virtual machines ({stolen}): the job got {have}"
    alike = [r.name for r in rivals if _whose(r) == _whose(rivals[0])]
    who = ", ".join(alike[:2]) or "many small ones"
    own = _whose(rivals[0]) if rivals else "other processes"
    if thread is not None:
        there = format_number_of(f"{contention.available:.0f}", "CPUs")
        waits = f"the steps' thread waits {format_ratio(thread.wait)} of the time for one"
        return f"{own} take {contention.others:.2g} of {there} ({who}), and {waits}"
    others = format_number_of(f"{contention.others:.2g}", "CPUs")
    return f"{own} take {others} ({who}); the job is starved, it got {have}"


def _whose(rival: Rival) -> str:
    """A process of the job's group may have been started by the same shell, before the job."""
    if not (rival.child or rival.companion):
        return "other processes"
    own = rival.started is not None or not rival.companion
    return "processes that the job itself started" if own else "processes started along with the job"


def _places(view: SessionView, rivals: list[Rival]) -> tuple[Place, ...]:
    """Where the job started the rivals that are its own children."""
    started = [r.started for r in rivals if r.started is not None and r.started.file]
    return tuple(dict.fromkeys(view.place(s.file, s.line, function=s.function) for s in started))


def _remedies(*, quota: bool, ours: bool) -> tuple[Remedy, ...]:
    if quota:
        return (
            Remedy(id="raise-quota", text="raise the cgroup's cpu.max (container CPU limit), or use fewer threads"),
        )
    when = "at low priority (nice -n 19), or on other cores (taskset)"
    first = f"what the steps do not wait for, start when the job has ended, {when}"
    return (
        Remedy(id="separate-cpu", text=first if ours else f"run the other processes later, {when}"),
        Remedy(id="fewer-rivals", text="run the competing work with fewer processes"),
    )


DETECTOR = Detector(
    code="CFG001",
    name="starved-cpu",
    symptom="Processor: abnormal CPU utilization",
    introduced_stage="environment setting",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.HOST}),
    params=Params(),
    detect=detect,
)

"""The job runs many more threads than it has CPUs, and pays for switching between them.

## What it detects
Four or more threads of the job for each CPU that it may use, runnable at once and sharing the work evenly: pools of
ops, of the input and of the job's own Python that were given more threads than there are CPUs.

## Why it matters
Each op is cut into more parts than can run at once, every part waits for its turn, and the CPUs spend their time
switching between them. On two CPUs, 64 op threads instead of two cost a quarter of the time.

## Evidence
`runnable_threads`: threads that ran or wanted to, on average. `sharing_threads`: threads that share the CPU time
evenly. `available_cores`: by affinity and quota. `switches_per_cpu_second`; the cost is that of the switches beyond
the usual 4,000, at 12 us each (measured with 2 and 64 op threads on two CPUs).

## Known limits
Work of the job's other processes is reported as contention (CFG001). The cost is modelled: it does not include the time
that a pool loses waiting for its slowest part, or Python threads waiting for the interpreter lock.

## Remedy
As many threads as CPUs: leave `tf.config.threading` at its defaults, `num_parallel_calls=tf.data.AUTOTUNE`, the job's
own pools no larger than `len(os.sched_getaffinity(0))`, `OMP_NUM_THREADS=1` in data workers. Tasks of a cluster on one
host share its CPUs: give each its part. ONNX Runtime has a pool for each session, whose threads spin while they wait:
`intra_op_num_threads`, `session.intra_op.allow_spinning`.

## References
TensorFlow: tf.config.threading; tf.data performance guide; Linux: Documentation/scheduler/sched-stats.rst.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.system import oversubscribed_threads
from stepscope.derive.machine import rivals
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.system.oversubscribed_threads import Oversubscription
    from stepscope.derive.steps_view import StepsView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_threads_per_cpu: float = 4.0
    """Runnable and sharing the work: a pool of ops, one of the input and the step's own thread make under three."""
    usual_switches: float = 4_000.0
    """Per second of CPU time, for a step with as many threads as CPUs."""
    switch_ns: float = 12_000.0
    """Cost of a switch, including the cache that it evicts."""
    min_ratio: Ratio = Ratio(0.05)
    """Of the time: pools always cost less than this."""
    min_python_ratio: Ratio = Ratio(0.25)
    """Share of the threads' CPU time in the job's own Python threads from which these are named."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    found = view.get(oversubscribed_threads.build)
    if found is None:
        return
    least = params.min_threads_per_cpu * found.available
    ratio = max(0.0, found.switches - params.usual_switches) * params.switch_ns / 1e9
    if min(found.runnable, found.sharing) < least or ratio < params.min_ratio:
        return
    own = found.python_ratio >= params.min_python_ratio and found.spot is not None
    where = found.spot.function if own and found.spot is not None else ""
    cpus = "1 CPU" if found.available == 1 else f"{found.available:.3g} CPUs"
    yield Seen(
        title=f"oversubscribed threads: {found.sharing:.0f} threads share {cpus}, "
        f"{found.runnable:.0f} are runnable at once{f', many in {where}' if where else ''}: switching costs "
        f"{format_ratio(ratio)} of the time",
        confidence=0.85,
        where=_places(view, found, own=own),
        evidence=(
            Evidence(metric="runnable_threads", value=found.runnable, unit="threads", threshold=least),
            Evidence(metric="sharing_threads", value=found.sharing, unit="threads", threshold=least),
            Evidence(metric="available_cores", value=found.available, unit="cores"),
            Evidence(
                metric="switches_per_cpu_second",
                value=found.switches,
                unit="switches",
                threshold=params.usual_switches,
            ),
            Evidence(metric="python_ratio", value=found.python_ratio, unit="ratio"),
        ),
        cost=cost_of(view, ratio, low=0.5 * ratio, high=2.0 * ratio, basis="modelled", by_time=True),
        remedies=_remedies(
            own=own,
            inference="onnxruntime" in view.frameworks,
            cores=found.available,
            tasks=rivals.tasks_here(view.session),
        ),
        explanation="The threads are the job's own: they take turns on its CPUs, independent of other users of the "
        "machine.",
    )


def _places(view: StepsView, found: Oversubscription, *, own: bool) -> tuple[Place, ...]:
    """Lines that set numbers of threads, then where the job's own threads run."""
    places = [view.place(file, line) for file, line in found.settings]
    if own and found.spot is not None:
        places.append(view.place(found.spot.file, found.spot.line, function=found.spot.function))
    return tuple(dict.fromkeys(places))


def _remedies(*, own: bool, inference: bool, cores: float, tasks: int) -> tuple[Remedy, ...]:
    pools = Remedy(
        id="threads-as-cpus",
        text="use as many threads as CPUs: tf.config.threading at its defaults, num_parallel_calls at AUTOTUNE",
    )
    sessions = Remedy(
        id="session-threads",
        text="share the CPUs among ONNX Runtime's sessions: SessionOptions.intra_op_num_threads, and "
        "session.intra_op.allow_spinning = 0 where others wait for them",
    )
    intra = Remedy(id="torch-threads", text="give each process its share of the CPUs: torch.set_num_threads(N)")
    if inference:
        pools = sessions
    elif tasks > 1:
        each = max(1, int(cores / tasks))
        text = f"the {tasks} tasks of the cluster on this host share its CPUs: give each {each} for its op threads "
        text += "(intra_op_parallelism_threads of its tf.compat.v1.ConfigProto, or tf.config.threading)"
        pools = Remedy(id="cores-per-task", text=text)
    mine = Remedy(
        id="smaller-pool", text="make the job's own thread pool no larger than its CPUs: len(os.sched_getaffinity(0))"
    )
    return (mine, pools, intra) if own else (pools, intra)


DETECTOR = Detector(
    code="CFG003",
    name="oversubscribed-threads",
    cause="Hardware: improper configuration",
    introduced_stage="environment setting",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.HOST}),
    params=Params(),
    detect=detect,
)

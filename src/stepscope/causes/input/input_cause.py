"""Why steps wait for their input: the slow stage, or user Python inside the pipeline.

Serves all detectors of the input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from stepscope.causes.host import gil_contention
from stepscope.causes.input import data_loader_wait
from stepscope.causes.job import hidden_wait
from stepscope.causes.system import caches, contention, network, producer, slow_disk_input, uploads_squeeze_input
from stepscope.derive.input import pipeline_python
from stepscope.derive.numeric import intervals
from stepscope.derive.steps import anatomy

if TYPE_CHECKING:
    from stepscope.causes.host.gil_contention import LockWaits
    from stepscope.causes.system.producer import Producer
    from stepscope.derive.input.pipeline import Pipeline
    from stepscope.derive.input.pipeline_python import PythonFunction
    from stepscope.derive.input.stages import Stage
    from stepscope.derive.steps.steps import Steps
    from stepscope.derive.steps_view import StepsView

Limit = Literal["stage", "python-function", "generator", "network", "disk", "unknown"]

PYTHON_SHARE_RATIO = 0.5
"""To be the cause, user Python must explain at least this share of the slow stage's self time (or of the wait)."""
LINKED_SHARE_RATIO = 0.15
"""The same if the stage's own code put the function into the graph: the remainder of the stage's time is then mostly
the cost of calling Python from an op (interpreter lock, conversion of arguments), 0.1 ms a call."""
SERIAL_CORES = 1.25
"""A process that uses no more cores than this runs one thing after another."""
CROWDED_RATIO = 0.8
"""Share of the CPUs: with more runnable threads, the step and the input take CPUs from each other."""
MIN_BUSY_RATIO = 0.9
MAX_OWN_RATIO = 0.7
"""Number of cores. A pipeline in Python that is hardly ever idle sets the pace if the rest of the job computes for less
than this; otherwise the two may just be equally fast."""
SQUEEZED_RATIO = 0.5
"""Uploads that explain this share of the wait are its cause."""
MIN_FED_RATIO = 0.5
"""Share of the evaluations' time in which the input's Python runs, from which it is what they wait for."""
GENERATOR_ROLES = frozenset({"generator", "pydataset"})
OP_ROLES = frozenset({"py_function", "numpy_function", "generator"})
"""User Python that ops call: TensorFlow's C++ side enters the interpreter for each call."""
AROUND_CALL_NS = 25_000
"""CPU time of such a call outside its record: thread state of the interpreter, lock, arguments and results, the op and
the function around it. It goes when the op goes. 25-37 us; TensorFlow 2.21, identity functions in a map."""


class InputCause(Struct, frozen=True, kw_only=True):
    """The input wait of the steady steps and what causes it."""

    wait_ratio: float
    """Share of steady wall time, minus the cost of taking ready batches and the part explained by a starved CPU."""
    whole_wait_ratio: float
    """The same with the part that a starved CPU explains: all of it may be saved, as rivals slow all alike."""
    wait_ns_per_step: float
    error_ratio: float
    """Standard error of ``wait_ratio``."""
    limit: Limit
    stage: Stage | None
    function: PythonFunction | None
    disturbed_ratio: float
    """Share of the steady wall time that user Python of the pipeline costs the rest of the step (interpreter lock)."""
    python_ratio: float
    """Share of the steady wall time in which some user function of the pipeline ran."""
    saved_ratio: float
    """Share of the steady wall time that removing the input's Python saves, between ``saved_low`` and
    ``saved_high``."""
    saved_low: float
    saved_high: float
    captures: tuple[str, ...]
    """Captures from which the wait was read, if tf.data's model could not be."""
    traced_steps: int
    """Number of steps in those captures."""
    producer: Producer | None
    """The threads that run it, if their CPU time is known."""
    lock: LockWaits | None
    """What the step waits for the interpreter lock that they hold, where other processes take too much CPU for these
    to say what they cost; None: not known."""

    @property
    def never_idle(self) -> bool:
        """Whether the input's Python runs without a break and nothing else takes the time, so that steps must wait for
        it.
        """
        made = self.producer
        return made is not None and made.busy_ratio >= MIN_BUSY_RATIO and made.own_ratio <= MAX_OWN_RATIO


def build(view: StepsView) -> InputCause | None:
    """The cause of the wait; None without steps, or for a DataLoader of PyTorch's that reads what is there."""
    steps, parts, pipe = view.steps, view.anatomy, view.pipeline
    if parts.wall_ns == 0:
        return None
    others = view.get(contention.build)
    free = 1.0 - (others.lost_ratio if others else 0.0)
    mean_ns = parts.wall_ns / steps.steady_count
    functions = [f for f in pipe.functions if not f.step_thread or parts.mean_ns("input-wait") > 0]
    python_ratio = pipeline_python.python_ratio(steps, functions)
    made = producer.build(view, functions)
    wait = max(0.0, parts.ratio("input-wait") - pipe.handover_ns / mean_ns)
    limit, function = _limit(pipe, functions, steps, wait, python_ratio)
    gil = _gil_ratio(view, functions, made)
    limit = _outside(view, wait) or limit
    if limit not in {"network", "disk"} and data_loader_wait.build(view) is not None:
        return None  # no pipeline of TensorFlow's, and a device may compute through the wait
    if limit in {"network", "disk"}:
        free = 1.0  # bytes that have not arrived do not wait for a CPU
    disturbed = max(0.0, free * python_ratio * pipe.disturbed_ns() / mean_ns, gil - wait)
    fed = _fed_evaluations(view, functions)
    low, likely, high = _saved(view, made, wait * free, min(1.0, wait * free + disturbed), fed)
    likely, high, lock = max(likely, wait * (1 + free) / 2), max(high, wait), None
    if made is None:
        high, lock = max(high, _at_most(view, functions, wait, fed)), _lock_waits(view)
    if lock is not None:
        low, likely = max(low, wait * free + lock.low), max(likely, min(1.0, wait + lock.ratio))
        high = max(high, min(1.0, wait + lock.high))
    return InputCause(
        wait_ratio=wait * free,
        whole_wait_ratio=wait,
        wait_ns_per_step=wait * free * mean_ns,
        error_ratio=pipe.wait_error_ns() / mean_ns,
        limit=limit,
        stage=pipe.slowest,
        function=function,
        python_ratio=python_ratio,
        disturbed_ratio=disturbed,
        saved_ratio=likely,
        saved_low=low,
        saved_high=high,
        captures=pipe.captures,
        traced_steps=pipe.traced_steps if pipe.windows else 0,
        producer=made,
        lock=lock,
    )


def _outside(view: StepsView, wait: float) -> Limit | None:
    """The network or the disk, if the pipeline waits for it, whichever of its code does the waiting."""
    link, sent, disk = view.get(network.build), view.get(uploads_squeeze_input.build), view.get(slow_disk_input.build)
    if link is not None and (link.is_full or link.is_choppy):
        return "network"
    if sent is not None and sent.lost_ratio > SQUEEZED_RATIO * wait:
        return "network"
    return "disk" if disk is not None and disk.is_full else None


def _gil_ratio(view: StepsView, functions: list[PythonFunction], made: Producer | None) -> float:
    """Share of the wall time that the pipeline's Python takes from the step because only one of them can run.

    If the process uses no more than one core although more are free, while threads of the pipeline compute in Python,
    the interpreter lock serialises them with the step's thread: their time is then part of every step, even if no batch
    was waited for. It is taken from the records (and the cost of each call around them), and is at most the CPU time of
    the threads that ran them: code that only sleeps or waits in Python holds no lock. Else 0.
    """
    steps, others = view.steps, view.get(contention.build)
    if others is None or made is None:
        return 0.0
    if not others.got <= SERIAL_CORES < others.available:
        return 0.0
    calls = sum(f.calls for f in functions if f.role in OP_ROLES and not f.step_thread)
    around = calls * AROUND_CALL_NS / steps.steady_ns
    return min(made.python_ratio + around, made.cpu_ratio, 1.0)


def _fed_evaluations(view: StepsView, functions: list[PythonFunction]) -> float:
    """Share of the wall time in evaluations within the steps, if the functions ran for most of it: they feed these."""
    steps = view.steps
    spans = intervals.clip(anatomy.when(steps, "evaluation"), steps.windows)
    ran = intervals.clip(intervals.merge(*pipeline_python.calls(steps, functions)), spans)
    long = intervals.total(spans)
    return view.anatomy.ratio("evaluation") if long and intervals.total(ran) >= MIN_FED_RATIO * long else 0.0


def _saved(view: StepsView, made: Producer | None, wait: float, least: float, fed: float) -> tuple[float, float, float]:
    """Savings without the input's Python: at least, likely, at most. Shares of steady wall time.

    If interpreter lock or CPUs are scarce, the compiled call and Keras' own loop take longer than they would alone, and
    the call may contain the wait; the computation of the rest of the job bounds their time (``producer``). So it does
    for evaluations that the same Python feeds (``fed``). The likely figure is the middle. Threads that share a CPU also
    share its caches: at most, the rest would compute in less time alone.
    """
    parts, others = view.anatomy, view.get(contention.build)
    if made is None or others is None:
        return wait, least, least
    serial = others.got <= SERIAL_CORES < others.available
    crowded = others.wanted >= CROWDED_RATIO * others.available
    if not (view.get(hidden_wait.build) or serial or crowded):
        return wait, least, least
    stretched = parts.ratio("call") + parts.ratio("framework") + fed
    low, high = (wait + max(0.0, stretched - own) for own in reversed(made.step_ratio()))
    most = high + caches.freed(min(stretched, made.step_ratio()[0])) if crowded else high
    likely = max(least, (low + high) / 2)
    return low if view.get(hidden_wait.build) else wait, likely, min(1.0, max(likely, most))


def _lock_waits(view: StepsView) -> LockWaits | None:
    """How long the step's thread waits for the interpreter lock while the input's Python has it, as looks at the two
    found it. Whatever other processes take makes it no less so.
    """
    waits = view.get(gil_contention.known)
    return waits if waits is not None and waits.holders[0].in_pipeline else None


def _at_most(view: StepsView, functions: list[PythonFunction], wait: float, fed: float) -> float:
    """Most that goes without the input's Python where other processes take too much CPU for more to be said: what
    computes beyond the CPU time of the rest, spread over all cores, may wait for the lock; at most as long as that
    Python runs.
    """
    made = producer.build(view, functions, crowded=True)
    if made is None:
        return 0.0
    stretched = view.anatomy.ratio("call") + view.anatomy.ratio("framework") + fed
    return min(made.python_ratio, wait + max(0.0, stretched - made.step_ratio()[0]))


def _limit(
    pipe: Pipeline, functions: list[PythonFunction], steps: Steps, wait: float, python_ratio: float
) -> tuple[Limit, PythonFunction | None]:
    """The limit of the pipeline."""
    slowest = pipe.slowest
    top = functions[0] if functions else None
    if top is not None:
        batches = max(1, steps.steady_count)
        per_batch = top.total_ns / batches
        if slowest is not None and slowest.self_ns > 0:
            least = LINKED_SHARE_RATIO if _linked(top, slowest) else PYTHON_SHARE_RATIO
            explains = per_batch >= least * slowest.self_ns
        else:
            explains = python_ratio >= PYTHON_SHARE_RATIO * wait
        if explains:
            return ("generator" if top.role in GENERATOR_ROLES else "python-function"), top
    return ("stage", None) if slowest is not None else ("unknown", None)


def _linked(function: PythonFunction, stage: Stage) -> bool:
    """Whether the function was put into the graph by the code that the stage runs."""
    frames = function.made.stack if function.made is not None else []
    return any(
        file == made.fn_file and made.fn_line <= line <= max(made.fn_line, made.fn_end_line)
        for made in stage.datasets
        for file, _, line in frames
    )

"""For every detector a session that it finds something in, one that is clear, one that it cannot look at, and two
on both sides of its threshold.

All sessions are written by hand: what costs how much is chosen here, so what a detector says of it can be asserted.
The usual step takes 100 ms; of 100 steps the first (warm-up) and the last (its end is not known) do not count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.derive.sessions import MS, NESTED, POOL, SCRIPT, TRACED, US, Frame, Job, node

from stepscope.model.finding import Basis, PipelineStage, Severity, Stage
from stepscope.wire.kinds import Kind

STEPS = 100
PERIOD = 100 * MS
LOOP_LINE = 40
"""First line of ``main`` in SOURCE."""

SOURCE = (
    "\n" * (LOOP_LINE - 1)
    + """\
def main():
    total = 0.0
    for i in range(100):
        batch = make_batch(i)
        loss = train_step(batch)
        total = report(loss, total)
        tidy()
    return total
"""
)
MAKE, CALL, REPORT, TIDY = 43, 44, 45, 46
MAIN_CALL: dict[str, Any] = {"call_file": SCRIPT, "call_line": CALL, "call_function": "main"}
TF = "/usr/lib/python3/site-packages/tensorflow/python"

Build = Callable[[], Job]


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a detector must say of its firing session. ``where`` in order; ``metrics``: evidence, complete."""

    severity: Severity
    cost: float
    where: tuple[tuple[str, int], ...]
    metrics: tuple[str, ...]
    title: tuple[str, ...]
    """Words of the title."""
    introduced: Stage = "training"
    exposed: Stage = "training"
    pipeline_stage: PipelineStage
    remedy: str
    """The id of the first remedy."""
    basis: Basis = "measured"


@dataclass(frozen=True, kw_only=True)
class Fixtures:
    """The sessions of one detector. ``below`` is silent, ``at`` is found, and they differ by next to nothing."""

    firing: Build
    expected: Expected
    silent: Build
    not_applicable: Build
    missing: str
    below: Build
    at: Build


def train_loop(call: int, *, steps: int = STEPS, period: int = PERIOD, offset: int = 0) -> Job:
    """A custom loop: a tf.function called once a step from ``main``, ``offset`` into it."""
    job = Job()
    job.sources[SCRIPT] = SOURCE
    job.function(**MAIN_CALL).every(period, steps, dur=call, start=offset)
    return job


def keras_fit(call: int, *, steps: int = STEPS, period: int = PERIOD, role: str = "train") -> Job:
    """Keras' fit without a read of tf.data's model."""
    job = Job()
    job.loop("fit", line=50).at(0, steps * period)
    job.execution(role).every(period, steps, dur=call, arg=1)
    return job


def nothing() -> Job:
    """A job that makes no step."""
    job = Job()
    job.function().every(PERIOD, 2, dur=MS)
    return job


def unsampled() -> Job:
    """Steps without stack samples."""
    return train_loop(20 * MS)


# ---- the input ---------------------------------------------------------------------------------------------------


def pulled(wait: int, *, python: int = 0, role: str = "", stage: int = 0, linked: bool = False) -> Job:
    """A loop that pulls a batch of a mapped dataset in each step.

    Args:
        wait: time in ``next``, at the beginning of each step; the call takes 20 ms after it.
        python: time that user Python of the pipeline runs for each batch, on a thread of tf.data's.
        role: of that Python.
        stage: self time of the slow stage per batch; the wait by default.
        linked: the function was put into the graph by the stage's own code.
    """
    job = Job()
    job.sources[SCRIPT] = SOURCE
    source = job.dataset("RangeDataset", line=70)
    mapped = job.dataset("MapDataset", source, line=71, fn_name="decode", fn_file=SCRIPT, fn_line=15, fn_end_line=18)
    batched = job.dataset("BatchDataset", mapped, line=72, batch=8)
    iterator = job.iterator(batched, batch=8)
    job.function(**MAIN_CALL).every(PERIOD, STEPS, dur=20 * MS, start=wait)
    job.nexts().every(PERIOD, STEPS, dur=wait, arg=iterator)
    if python:
        stack = [(SCRIPT, "decode", 16)] if linked else []
        job.python(role, "decode", stack=stack).every(PERIOD, STEPS, dur=python, thread=POOL)
    busy = stage or wait
    for batches in (50, 90):
        job.model(
            iterator,
            batches * PERIOD,
            [
                node(1, "Batch", 2, elements=batches, busy=batches * MS),
                node(2, "Map", 3, elements=8 * batches, busy=batches * busy),
                node(3, "Range", elements=8 * batches, busy=batches * 10 * US),
            ],
        )
    return job


INP001 = Fixtures(
    firing=lambda: pulled(60 * MS),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", 71), ("train.py", 15)),
        metrics=("input_wait_ratio", "stage_ns_per_batch", "stage_ns_per_element", "stage_parallelism"),
        title=("stage map decode", "60 ms per batch", "train.py:71", "60 %"),
        introduced="data preparation",
        pipeline_stage="preprocessing",
        remedy="parallel-map",
    ),
    silent=lambda: pulled(2 * MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: pulled(10 * MS - US),
    at=lambda: pulled(10 * MS),
)

INP002 = Fixtures(
    firing=lambda: pulled(60 * MS, python=58 * MS, role="numpy_function"),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", 15), ("train.py", 71)),
        metrics=("input_wait_ratio", "python_busy_ratio", "disturbed_ratio", "python_ns_per_batch", "python_calls"),
        title=("decode", "tf.numpy_function", "60 %"),
        introduced="data preparation",
        pipeline_stage="preprocessing",
        remedy="use-tensorflow-ops",
    ),
    silent=lambda: pulled(2 * MS, python=58 * MS, role="numpy_function"),
    not_applicable=nothing,
    missing="steps",
    below=lambda: pulled(60 * MS, python=29 * MS, role="py_function"),
    at=lambda: pulled(60 * MS, python=31 * MS, role="py_function"),
)

INP003 = Fixtures(
    firing=lambda: pulled(60 * MS, python=58 * MS, role="generator"),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", 15), ("train.py", 71)),
        metrics=("input_wait_ratio", "python_busy_ratio", "disturbed_ratio", "python_ns_per_batch"),
        title=("input generator decode", "60 ms of 100 ms"),
        introduced="data preparation",
        pipeline_stage="preprocessing",
        remedy="use-tf-data-map",
    ),
    silent=lambda: pulled(2 * MS, python=58 * MS, role="generator"),
    not_applicable=nothing,
    missing="steps",
    below=lambda: pulled(10 * MS - US, python=58 * MS, role="generator"),
    at=lambda: pulled(10 * MS, python=58 * MS, role="generator"),
)


def sampled(before: int = 0, after: int = 0, *, call: int | None = None, per_step: int = 1, steps: int = STEPS) -> Job:
    """A loop with Python of its own before and after each call, ``per_step`` samples in each of these parts."""
    job = train_loop(PERIOD - before - after if call is None else call, offset=before, steps=steps)
    main = Frame(SCRIPT, "main", MAKE)
    for part, first, frames in (
        (before, 0, (main, Frame(SCRIPT, "make_batch", 4))),
        (after, PERIOD - after, (main._replace(line=REPORT), Frame(SCRIPT, "report", 8))),
    ):
        if part:
            times = [
                i * PERIOD + first + (k + 1) * part // (per_step + 1) for i in range(steps) for k in range(per_step)
            ]
            job.samples(times, *frames)
    return job


INP004 = Fixtures(
    firing=lambda: sampled(before=50 * MS),
    expected=Expected(
        severity="high",
        cost=0.5,
        where=(("train.py", 4), ("train.py", MAKE)),
        metrics=("other_python_ratio", "samples_on_input_code", "samples"),
        title=("prepares each batch in Python", "make_batch", "50 %"),
        introduced="data preparation",
        pipeline_stage="preprocessing",
        remedy="use-tf-data",
    ),
    silent=lambda: sampled(after=50 * MS),
    not_applicable=unsampled,
    missing="stack samples",
    below=lambda: sampled(before=10 * MS - US),
    at=lambda: sampled(before=10 * MS),
)


# ---- Python around the step --------------------------------------------------------------------------------------

HST001 = Fixtures(
    firing=lambda: sampled(after=50 * MS),
    expected=Expected(
        severity="high",
        cost=0.5,
        where=(("train.py", 8), ("train.py", REPORT)),
        metrics=("other_python_ratio", "samples_on_code", "samples"),
        title=("slow Python code", "after the step", "report", "50 %"),
        pipeline_stage="output-processing",
        remedy="do-it-less-often",
    ),
    silent=lambda: sampled(before=50 * MS),
    not_applicable=unsampled,
    missing="stack samples",
    below=lambda: sampled(after=10 * MS - US),
    at=lambda: sampled(after=10 * MS),
)


def eager(python: int, ops: int, *, compiled: int = 0) -> Job:
    """A step that runs op by op; how many of its 100 samples fall on Python of TensorFlow's, ops, compiled code."""
    job = Job()
    job.call(Kind.APPLY, "Adam").every(PERIOD, STEPS, dur=MS, start=90 * MS)
    step = Frame(SCRIPT, "step", 12)
    stacks = (
        (python, (step, Frame(f"{TF}/ops/math_ops.py", "matmul", 3000, own=False))),
        (ops, (step, Frame(f"{TF}/ops/gen_math_ops.py", "mat_mul", 6000, own=False))),
        (compiled, (step, Frame(f"{TF}/eager/polymorphic_function/polymorphic_function.py", "__call__", 1, own=False))),
        (98 - python - ops - compiled, (step,)),
    )
    at = PERIOD + 95 * MS
    for count, frames in stacks:
        job.samples([at + i * PERIOD for i in range(count)], *frames)
        at += count * PERIOD
    return job


HST002 = Fixtures(
    firing=lambda: eager(49, 39),
    expected=Expected(
        severity="high",
        cost=(49 + 39 / 2) / 98,
        where=(("train.py", 12),),
        metrics=("eager_ratio", "python_ratio", "samples"),
        title=("eagerly", "no tf.function"),
        pipeline_stage="forward-backward",
        remedy="use-tf-function",
        basis="modelled",
    ),
    silent=lambda: eager(5, 5, compiled=88),
    not_applicable=unsampled,
    missing="stack samples",
    below=lambda: eager(14, 60),
    at=lambda: eager(15, 60),
)


def predicting(overhead: int, *, calls: int = STEPS) -> Job:
    """``predict`` on single rows in a loop, as the whole work of the loop."""
    job = Job()
    job.loop("predict", line=LOOP_LINE + 3).every(PERIOD, calls, dur=overhead + 5 * MS, arg=1)
    job.execution("predict").every(PERIOD, calls, dur=5 * MS, start=overhead // 2, arg=1)
    return job


def predicting_beside_a_step(calls: int) -> Job:
    """A step of 100 ms; in ``calls`` of the steady ones it also predicts, 40 ms each."""
    job = train_loop(20 * MS)
    job.loop("predict", line=LOOP_LINE + 3).every(PERIOD, calls, dur=40 * MS, start=PERIOD + 50 * MS, arg=1)
    return job


HST003 = Fixtures(
    firing=lambda: predicting(50 * MS),
    expected=Expected(
        severity="high",
        cost=0.5,
        where=(("train.py", LOOP_LINE + 3),),
        metrics=("overhead_ratio", "calls", "call_ns", "overhead_ns"),
        title=("model.predict", "55 ms a call", "50 ms is Keras' own overhead"),
        introduced="prediction",
        exposed="prediction",
        pipeline_stage="forward-backward",
        remedy="no-predict-in-loop",
    ),
    silent=lambda: predicting_beside_a_step(2),
    not_applicable=nothing,
    missing="steps",
    below=lambda: predicting(5 * MS - US),
    at=lambda: predicting(5 * MS),
)


def called_back(dur: int, *, hook: str = "on_train_batch_end", own: bool = True, every: int = 1) -> Job:
    """Keras' fit with one callback that takes ``dur`` in each or each ``every``-th step."""
    job = keras_fit(50 * MS)
    hooks = job.call(Kind.HOOK, hook)
    callback = job.callback(f"Plotter.{hook}", own=own)
    for i in range(0, STEPS, every):
        hooks.at(i * PERIOD + 50 * MS, dur + 10 * US)
        callback.at(i * PERIOD + 50 * MS, dur)
    return job


HST004 = Fixtures(
    firing=lambda: called_back(30 * MS),
    expected=Expected(
        severity="high",
        cost=0.3,
        where=(("train.py", 30),),
        metrics=("callback_ratio", "callback_ns_per_call", "calls"),
        title=("callback Plotter", "30 ms on every batch", "on_train_batch_end", "30 %"),
        pipeline_stage="output-processing",
        remedy="callback-less-often",
    ),
    silent=lambda: called_back(MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: called_back(5 * MS - US),
    at=lambda: called_back(5 * MS),
)


def validated(dur: int, *, calls: int = 9, every: int = 10, hook: str = "on_train_batch_end") -> Job:
    """Keras' fit with a callback that calls ``evaluate`` in ``calls`` steps, one in ``every``."""
    job = keras_fit(10 * MS)
    callback = job.callback(f"Watch.{hook}")
    evaluate = job.loop("evaluate", line=32)
    test = job.execution("test")
    for i in range(1, calls + 1):
        at = i * every * PERIOD + 10 * MS
        callback.at(at, dur + MS)
        evaluate.at(at, dur, flags=NESTED)
        test.at(at + 10 * US, dur - 20 * US)
    return job


HST005 = Fixtures(
    firing=lambda: validated(89 * MS, calls=40, every=2),
    expected=Expected(
        severity="high",
        cost=40 * 89 / 9800,
        where=(("train.py", 32), ("train.py", 30)),
        metrics=("evaluation_ratio", "steps_between", "calls"),
        title=("callback Watch.on_train_batch_end", "model.evaluate", "every 2.45 batches", "89 ms each"),
        introduced="evaluation",
        pipeline_stage="none",
        remedy="evaluate-per-epoch",
    ),
    silent=lambda: validated(89 * MS, calls=2, every=40),
    not_applicable=nothing,
    missing="steps",
    below=lambda: validated(49 * MS - US, calls=20, every=4),
    at=lambda: validated(49 * MS, calls=20, every=4),
)


def saving(dur: int, *, calls: int = 49, every: int = 2, kind: Kind = Kind.SAVE) -> Job:
    """A loop that saves in ``calls`` steps, one in ``every``."""
    job = train_loop(20 * MS)
    save = job.call(
        kind,
        "save",
        role="checkpoint" if kind is Kind.SAVE else "write",
        call_file=SCRIPT,
        call_line=60,
        call_function="main",
    )
    save.every(every * PERIOD, calls, dur=dur, start=PERIOD + 20 * MS)
    return job


HST006 = Fixtures(
    firing=lambda: saving(60 * MS),
    expected=Expected(
        severity="high",
        cost=0.3,
        where=(("train.py", 60),),
        metrics=("saving_ratio", "save_ns", "steps_between", "calls"),
        title=("blocking checkpoint save", "every 2 steps", "60 ms", "30 %"),
        pipeline_stage="storage",
        remedy="save-less-often",
    ),
    silent=lambda: saving(70 * MS, calls=1),
    not_applicable=nothing,
    missing="steps",
    below=lambda: saving(10 * MS - US),
    at=lambda: saving(10 * MS),
)


# ---- graphs and the machine --------------------------------------------------------------------------------------


def retraced(dur: int, *, traces: int = STEPS - 1, cause: str = "python-value", first: int = 1) -> Job:
    """A loop of a function that takes 20 ms and is traced again, ``dur`` more, in ``traces`` of its steps."""
    job = Job()
    job.sources[SCRIPT] = SOURCE
    call = job.function(**MAIN_CALL)
    job.trace(0, 50 * MS, cause="first", ordinal=1)
    call.at(0, 70 * MS, flags=TRACED)
    for i in range(1, STEPS):
        again = first <= i < first + traces
        call.at(i * PERIOD, 20 * MS + (dur if again else 0), flags=TRACED if again else 0)
        if again:
            job.trace(
                i * PERIOD,
                dur - dur // 10,
                cause=cause,
                argument="rate",
                before=f"0.{i}",
                after=f"0.{i + 1}",
                ordinal=i + 1,
                nodes=500,
                stack=[(SCRIPT, "main", CALL)],
            )
    return job


GRF001 = Fixtures(
    firing=lambda: retraced(60 * MS, traces=49),
    expected=Expected(
        severity="high",
        cost=0.3,
        where=(("train.py", CALL), ("train.py", 10)),
        metrics=("retrace_ratio", "traces", "graph_nodes"),
        title=("train_step is retraced in 49 of 98 steps", "60 ms each", "Python value of rate", "30 %"),
        pipeline_stage="forward-backward",
        remedy="pass-tensors",
    ),
    silent=lambda: retraced(60 * MS, traces=2, first=50),
    not_applicable=lambda: keras_fit(20 * MS),
    missing="traces of tf.functions",
    below=lambda: retraced(6 * MS - US, traces=49),
    at=lambda: retraced(6 * MS, traces=49),
)


def shared_machine(others: float, *, got: float = 1.0, waiting: float = 1.0) -> Job:
    """A job that would use two CPUs, on a machine of two, beside a process that takes ``others`` of them."""
    job = train_loop(80 * MS)
    job.machine(10, cpus=2, got=got, waiting=waiting, others=others)
    job.rival("/usr/bin/python3 /opt/archive.py --all", cores=others, seconds=10)
    return job


CFG001 = Fixtures(
    firing=lambda: shared_machine(1.0),
    expected=Expected(
        severity="high",
        cost=0.5,
        where=(),
        metrics=(
            "lost_ratio",
            "wanted_cores",
            "available_cores",
            "got_cores",
            "others_cores",
            "steal_cores",
            "throttled_cores",
        ),
        title=("CPU contention", "other processes", "python3 archive.py", "1 of the 2 CPUs"),
        introduced="environment setting",
        pipeline_stage="forward-backward",
        remedy="separate-cpu",
        basis="modelled",
    ),
    silent=lambda: shared_machine(0.05),
    not_applicable=lambda: train_loop(80 * MS),
    missing="CPU samples of the host",
    below=lambda: shared_machine(0.29, got=1.7),
    at=lambda: shared_machine(0.31, got=1.69),
)

CASES: dict[str, Fixtures] = {
    "CFG001": CFG001,
    "GRF001": GRF001,
    "HST001": HST001,
    "HST002": HST002,
    "HST003": HST003,
    "HST004": HST004,
    "HST005": HST005,
    "HST006": HST006,
    "INP001": INP001,
    "INP002": INP002,
    "INP003": INP003,
    "INP004": INP004,
}

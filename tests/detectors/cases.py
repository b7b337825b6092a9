"""For every detector a session that it finds something in, one that is clear, one that it cannot look at, and two
on both sides of its threshold.

All sessions are written by hand: what costs how much is chosen there, so what a detector says of it can be asserted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.derive.sessions import MS, US, Job
from tests.detectors.jobs import (
    CALL,
    LOOP_LINE,
    MAKE,
    REPORT,
    TURN,
    called_back,
    eager,
    keras_fit,
    nothing,
    predicting,
    predicting_beside_a_step,
    pulled,
    retraced,
    sampled,
    saving,
    shared_machine,
    train_loop,
    unrolled,
    unsampled,
    validated,
)

from stepscope.model.finding import Basis, PipelineStage, Severity, Stage

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


HANDOVER = 300 * US
"""What a batch that is ready costs at most, of each pull: no wait."""
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
    below=lambda: pulled(15 * MS + HANDOVER - US),
    at=lambda: pulled(15 * MS + HANDOVER),
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
        title=("input generator decode", "59.7 ms of 100 ms"),
        introduced="data preparation",
        pipeline_stage="preprocessing",
        remedy="use-tf-data-map",
    ),
    silent=lambda: pulled(2 * MS, python=58 * MS, role="generator"),
    not_applicable=nothing,
    missing="steps",
    below=lambda: pulled(10 * MS + HANDOVER - US, python=58 * MS, role="generator"),
    at=lambda: pulled(10 * MS + HANDOVER + US, python=58 * MS, role="generator"),
)
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
UNROLLED_STEPS = 9_920 * MS
GRF002 = Fixtures(
    firing=lambda: unrolled(UNROLLED_STEPS),
    expected=Expected(
        severity="high",
        cost=0.5,
        where=(("layer.py", TURN),),
        metrics=("tracing_ratio", "loop_ratio", "graph_nodes", "samples"),
        title=("unrolled", "6,000 nodes", "50 %"),
        introduced="model building",
        exposed="initialization",
        pipeline_stage="forward-backward",
        remedy="loop-in-graph",
    ),
    silent=lambda: unrolled(UNROLLED_STEPS, line=3),
    not_applicable=lambda: unrolled(UNROLLED_STEPS, samples=0),
    missing="stack samples",
    below=lambda: unrolled(UNROLLED_STEPS * 15 // 85 - MS),
    at=lambda: unrolled(UNROLLED_STEPS * 15 // 85 + MS),
)
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
    "GRF002": GRF002,
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

"""Reports made by hand: what the tests, the golden files and the example pictures show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace
from tests.report.sample_series import series
from tests.report.sample_sources import HEAT, JOINED, SOURCE_CHECK
from tests.report.sample_tasks import TASKS

from stepscope.model.report.overhead import Capture, Overhead
from stepscope.model.report.report import Component, Report, SessionSummary, StageShare
from stepscope.model.report.step_summary import StepTimes, Throughput
from stepscope.tables.findings import Checked, Cost, Diagnostic, Evidence, Finding, Remedy, severity_of
from stepscope.tables.place import Place

MS = 1_000_000

SOURCE = (Path(__file__).parent / "program.txt").read_text(encoding="utf-8")

REMEDY_MAP = Remedy(
    id="use-tf-data-map",
    text="write the generator as tf.data ops in map with num_parallel_calls, or read TFRecord files",
)
REMEDY_CACHE = Remedy(
    id="cache-input",
    text="if the pictures fit into memory, make them once: dataset.cache() before shuffle and batch",
)


def finding(code: str = "INP003", ratio: float = 0.58, **fields: Any) -> Finding:
    """A finding with every field filled; ``fields`` replace."""
    values: dict[str, Any] = {
        "code": code,
        "name": "python-generator-input",
        "title": "the input generator runs in Python; each step waits 48 of 79 ms for it",
        "severity": severity_of(ratio),
        "confidence": 0.93,
        "symptom": "Time: slow execution time",
        "cause": "API: inefficient API usage",
        "introduced_stage": "data preparation",
        "exposed_stage": "training",
        "pipeline_stage": "preprocessing",
        "where": (
            Place(file="train.py", line=24, end_line=27, function="make_dataset"),
            Place(file="train.py", line=16, end_line=21, function="read_pictures"),
        ),
        "evidence": (
            Evidence(metric="input_wait_ratio", value=0.61, unit="ratio", threshold=0.10, refs=("span:812",)),
            Evidence(metric="generator_python_share", value=0.94, unit="ratio", threshold=0.5),
            Evidence(metric="input_wait_per_step", value=48.1, unit="ms"),
            Evidence(metric="batches_ready_at_next", value=0.02, unit="count", threshold=1.0),
        ),
        "cost": Cost(ratio=ratio, low=max(ratio - 0.03, 0.0), high=min(ratio + 0.02, 1), ns_per_step=46 * MS),
        "remedies": (REMEDY_MAP, REMEDY_CACHE),
        "explanation": (
            "tf.data waits in Dataset.from_generator for Python code that holds the interpreter's lock, so "
            "the stages behind it cannot run ahead. In 98 of 100 steps no batch was ready when the step asked "
            "for one."
        ),
    }
    return Finding(**(values | fields))


def callback_finding(ratio: float = 0.05) -> Finding:
    """A small second finding."""
    return finding(
        "HST004",
        ratio,
        name="slow-callback",
        title="the callback ConfusionPlot runs the model again on every batch: 4.1 ms",
        introduced_stage="training",
        pipeline_stage="output-processing",
        where=(Place(file="train.py", line=35, end_line=38, function="ConfusionPlot.on_train_batch_end"),),
        evidence=(
            Evidence(metric="callback_ratio", value=0.052, unit="ratio", threshold=0.03),
            Evidence(metric="callback_per_step", value=4.1, unit="ms"),
        ),
        cost=Cost(ratio=ratio, low=max(ratio - 0.004, 0.0), high=ratio + 0.003, ns_per_step=4 * MS),
        remedies=(Remedy(id="move-to-epoch-end", text="do this in on_epoch_end, or every hundredth batch"),),
        explanation="It is the only callback that costs more than 0.1 ms a step.",
    )


def anatomy(step_ns: int, **ratios: float) -> tuple[Component, ...]:
    """Components that add up to ``step_ns``."""
    stages: dict[str, Any] = {
        "input-wait": "preprocessing",
        "call": "forward-backward",
        "callbacks": "output-processing",
        "saving": "storage",
        "host-sync": "device-to-host",
    }
    extra: dict[str, dict[str, Any]] = {
        "input-wait": {
            "name": "Generator",
            "where": Place(file="train.py", line=26, end_line=26, function="make_dataset"),
        },
        "callbacks": {
            "name": "ConfusionPlot",
            "where": Place(file="train.py", line=35, end_line=38, function="ConfusionPlot.on_train_batch_end"),
        },
    }
    keys = {word.replace("_", "-"): ratio for word, ratio in ratios.items()}
    return tuple(
        Component(
            component=key,
            pipeline_stage=stages.get(key, "none"),
            ratio=ratio,
            ns_per_step=round(step_ns * ratio),
            **extra.get(key, {}),
        )
        for key, ratio in keys.items()
    )


def stages(preprocessing: float | None = 0.61, forward: float | None = 0.31) -> tuple[StageShare, ...]:
    """Eight stages, some of them unseen."""
    blind, trace = "not measured: needs TensorFlow 2.17", "not measured: needs an op trace"
    seen = preprocessing is not None
    raw, live = ("included in preprocessing: no reader", "tf.data's live model") if seen else (blind, blind)
    return (
        StageShare(stage="raw-input", ratio=None, basis=raw),
        StageShare(stage="preprocessing", ratio=preprocessing, basis=live),
        StageShare(stage="host-to-device", ratio=None, basis=trace),
        StageShare(stage="forward-backward", ratio=forward, basis="time in train_function less its wait for input"),
        StageShare(stage="gradient-sharing", ratio=None, basis=trace),
        StageShare(stage="device-to-host", ratio=0.0, basis="host waits of 20 us or more for a tensor"),
        StageShare(stage="output-processing", ratio=0.06, basis="callbacks and their Python"),
        StageShare(stage="storage", ratio=0.0, basis="no checkpoint and no summary was written within steps"),
    )


CHECKED = (
    Checked(detector="GRF001", name="retracing", outcome="clear"),
    Checked(detector="HST001", name="slow-python-in-loop", outcome="clear"),
    Checked(detector="HST004", name="slow-callback", outcome="clear"),
    Checked(detector="HST006", name="blocking-checkpoint", outcome="clear"),
    Checked(detector="HST008", name="predict-in-loop", outcome="not-applicable"),
    Checked(detector="INP003", name="python-generator-input", outcome="clear"),
    Checked(detector="SYS001", name="cpu-starvation", outcome="clear"),
)


def checked(**outcomes: Any) -> tuple[Checked, ...]:
    """The seven detectors with some outcomes replaced."""
    fields = {code: {"outcome": o} if isinstance(o, str) else o for code, o in outcomes.items()}
    return tuple(replace(c, **fields.get(c.detector, {})) for c in CHECKED)


BLIND = {
    "outcome": "not-applicable",
    "missing": ("schedstat",),
    "hint": "the kernel was built without CONFIG_SCHEDSTATS",
}


def input_bound() -> Report:
    """A Keras fit that waits for a Python generator."""
    return Report(
        session=SessionSummary(
            id="train-1121-0130",
            command=("python", "train.py"),
            framework="tensorflow 2.21.0 · keras 3.15.1",
            hosts=1,
            steps=600,
            throughput=Throughput(samples_per_s=812.4, steps_per_s=12.69),
            wall_ns=52_310_000_000,
            exit_code=0,
            step_times=StepTimes(
                count=598,
                mean_ns=78_900_000,
                p50_ns=77_800_000,
                p95_ns=96_100_000,
                p99_ns=151_000_000,
                warmup_steps=2,
                warmup_ns=4_130_000_000,
                source="keras fit",
            ),
        ),
        overhead=Overhead(ratio=0.003, low=0.0, high=0.009, records=41_230, record_ns=412, sidecar_core_ratio=0.0031),
        anatomy=anatomy(78_900_000, input_wait=0.61, call=0.31, callbacks=0.05, other_python=0.03),
        stages=stages(),
        findings=(finding(), callback_finding()),
        checked=checked(INP003="found", HST004="found", SYS001=BLIND),
        diagnostics=(Diagnostic(code="DX004", text="no schedstat in this kernel: waiting for a CPU is not measured"),),
        tasks=TASKS,
        series=series(),
    )


def clean() -> Report:
    """A job with nothing wrong."""
    base = input_bound()
    times = StepTimes(
        count=598,
        mean_ns=31_000_000,
        p50_ns=30_600_000,
        p95_ns=36_200_000,
        p99_ns=49_000_000,
        warmup_steps=2,
        warmup_ns=2_910_000_000,
        source="keras fit",
    )
    rates = Throughput(samples_per_s=2064.5, steps_per_s=32.3)
    return replace(
        base,
        session=replace(base.session, step_times=times, throughput=rates, wall_ns=22_400_000_000),
        anatomy=anatomy(31_000_000, call=0.89, callbacks=0.05, input_wait=0.03, other_python=0.02, unmeasured=0.01),
        stages=stages(0.03, 0.89),
        findings=(),
        checked=CHECKED,
        diagnostics=(),
        series=series(mean_ms=31.0, call=0.89),
    )


def no_steps() -> Report:
    """A script without TensorFlow."""
    base = input_bound()
    return Report(
        session=replace(
            base.session,
            command=("python", "convert.py", "--all"),
            framework="none",
            steps=0,
            throughput=Throughput(),
            step_times=None,
            processes=2,
            wall_ns=12_300_000_000,
            exit_code=3,
        ),
        overhead=Overhead(ratio=0.0, low=0.0, high=0.001, sidecar_core_ratio=0.004),
        anatomy=(),
        findings=(),
        checked=tuple(
            replace(c, outcome="not-applicable", missing=("steps",), hint="no framework in the job") for c in CHECKED
        ),
        diagnostics=(Diagnostic(code="DX001", text="TensorFlow was never imported: steps cannot be told apart"),),
        series={k: v for k, v in base.series.items() if k.startswith("res")},
    )


EVIL = '<script>alert("x")</script>'


def hostile() -> Report:
    """Every text of the session tries to break out."""
    base = input_bound()
    place = Place(file=f"a b/{EVIL}\n|`x`.py", line=2, end_line=3, function=f"</pre>{EVIL}\x1b[31m\u202e")
    bad = finding(
        name=EVIL,
        title=f"{EVIL} \x1b]0;title\x07 | `code` @somebody &amp; \u202ereversed",
        where=(place,),
        explanation=f"</style>{EVIL}",
        remedies=(Remedy(id='x" onload="alert(1)', text=f"]]> --> {EVIL}"),),
        evidence=(Evidence(metric=f'"><img src=x onerror=alert(1)>{EVIL}', value=1.0, unit=f"</td>{EVIL}"),),
    )
    component = Component(
        component=f'call" onmouseover="{EVIL}',
        pipeline_stage="none",
        ratio=0.5,
        ns_per_step=5,
        name=EVIL,
        where=place,
    )
    return replace(
        base,
        session=replace(base.session, command=("python", f"{EVIL}.py", "`rm -rf`"), framework=EVIL),
        anatomy=(component, *base.anatomy),
        stages=(StageShare(stage="storage", ratio=None, basis=EVIL),),
        findings=(bad,),
        checked=(Checked(detector=EVIL, name=EVIL, outcome="failed", missing=(EVIL,), hint=EVIL),),
        diagnostics=(Diagnostic(code="DX<b>", text=f"</title>{EVIL}"),),
        series=base.series | {f"anat:{EVIL}": base.series["anat:call"]},
    )


def eight() -> Report:
    """Eight findings: five are shown, the rest is counted."""
    base = input_bound()
    many = [finding(f"INP{i:03d}", ratio) for i, ratio in enumerate((0.3, 0.2, 0.12, 0.08, 0.05, 0.04))]
    infos = [
        finding("HST009", 0.01, title="one slow step"),
        finding("GRF002", 0.0, title="a long first trace"),
    ]
    return replace(base, findings=(*many, *infos))


def long_paths() -> Report:
    """Paths and titles that do not fit on a line."""
    base = input_bound()
    deep = "/".join(["experiments", "2026-11-21-image-classification-with-augmentation", "pipelines"] * 2)
    where = Place(
        file=f"{deep}/train_everything.py", line=1241, end_line=1250, function="Trainer.build.<locals>.map_fn"
    )
    title = (
        "the function that Dataset.map calls runs Python for each of the 64 elements of a batch, one after "
        "the other, because num_parallel_calls is not set; each step waits 48 of 79 ms for it"
    )
    whatif = Remedy(
        id="parallel", text="set num_parallel_calls=tf.data.AUTOTUNE in the map", what_if="stepscope report x"
    )
    first = finding(title=title, where=(where,), remedies=(whatif,))
    modelled = finding(
        "GRF001",
        0.04,
        title="train_step is traced anew in each step because the learning rate is a Python float",
        pipeline_stage="none",
        cost=Cost(ratio=0.04, low=0.01, high=0.2, basis="modelled"),
        remedies=(),
    )
    return replace(base, findings=(first, modelled))


def no_series() -> Report:
    """No chart can be drawn; a signal ended the job."""
    base = input_bound()
    blind = {"outcome": "undecided", "missing": ("tf.data live model",), "hint": "TensorFlow 2.17 or later"}
    return replace(
        base,
        session=replace(base.session, exit_code=-15, throughput=Throughput(steps_per_s=12.69)),
        overhead=Overhead(
            ratio=0.003,
            low=0.0,
            high=0.009,
            captures=(
                Capture(
                    kind="ops",
                    steps=20,
                    ratio=0.021,
                    low=0.014,
                    high=0.029,
                    at_ns=9_400 * MS,
                    cost_ns=131 * MS,
                    title="Keras fit",
                    work="training",
                    place="train.py:41",
                    events=1_240_000,
                ),
            ),
            captures_ratio=0.002,
        ),
        stages=stages(None, None),
        findings=(callback_finding(),),
        checked=checked(INP003=blind, HST004="found", SYS001=BLIND, HST006="failed"),
        diagnostics=tuple(
            Diagnostic(code=f"DX{i % 5:03d}", text=f"the ring of process {i % 5} wrapped; 1,204 records were lost")
            for i in range(7)
        ),
        series={},
    )


def from_source() -> Report:
    """A finding that the source shows too, and what only the source shows."""
    return replace(input_bound(), findings=(JOINED, callback_finding()), line_heat=HEAT, source_check=SOURCE_CHECK)


SAMPLES = {
    f.__name__.replace("_", "-"): f
    for f in (input_bound, clean, no_steps, hostile, eight, long_paths, no_series, from_source)
}
"""Name to builder of each sample."""

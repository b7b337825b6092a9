"""Traced steps in the reports: where their time goes, the pipeline that feeds them, when the device is idle."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.report.samples import input_bound

from stepscope.model.report.op_summary import (
    OpTraceSteps,
    OpTraceSummary,
    PlaneSummary,
    TracedGain,
    TracedGap,
    TracedIdle,
    TracedPart,
    TracedStage,
    TracedSteps,
)
from stepscope.model.report.op_table import OpTable, OpTime
from stepscope.model.report.overhead import Overhead
from stepscope.model.report.report import Report, SessionSummary
from stepscope.model.report.step_summary import Throughput
from stepscope.report import html, markdown, text
from stepscope.report.document.traces.traced import blocking, part_class

MS = 1_000_000
CALL = "StatefulPartitionedCall"
TRACED = TracedSteps(
    trace="import-001",
    count=11,
    name="train|<b>",
    mean_ns=20 * MS,
    parts=(
        TracedPart(part="input-wait", ratio=0.6, ns_per_step=12 * MS),
        TracedPart(part="device-compute", ratio=0.398, ns_per_step=8 * MS),
        TracedPart(part="runtime", ratio=0.002, ns_per_step=40_000),
    ),
    batches=12,
    pipeline=(
        TracedStage(name="Prefetch", depth=0, calls=12, self_ns_per_batch=4_000, buffered=0.5),
        TracedStage(
            name="Map<i>", depth=1, calls=384, self_ns_per_batch=11 * MS, blocking=True, ops=("PyFunc", "Cast")
        ),
    ),
    idle=TracedIdle(
        device="/device:GPU:0",
        ratio=0.6,
        host_ratio=0.6,
        count=11,
        gaps=(TracedGap(at_ns=3 * MS, dur_ns=12 * MS, part="input-wait"),),
    ),
    gains=(TracedGain(name="StatefulPartitionedCall/a/MatMul", type="MatMul", path_ratio=0.4, low=0.1, high=0.2),),
)
OPS = OpTable(
    trace="import-001",
    steps=12,
    ns=90 * MS,
    joined_ratio=0.0,
    ops=(
        OpTime(
            name="StatefulPartitionedCall/a/MatMul",
            type="MatMul",
            device="/device:GPU:0",
            calls=12,
            ns=80 * MS,
            ratio=0.89,
        ),
        OpTime(name="k" * 300, type="", device="/device:GPU:0", calls=12, ns=10 * MS, ratio=0.11),
    ),
)
FILE = OpTraceSummary(
    name="import-001",
    file="host<1>.xplane.pb",
    format="xplane",
    events=1704,
    left_out={"bookkeeping": 2_019},
    planes=(
        PlaneSummary(name="/device:GPU:0", kind="gpu", events=12),
        PlaneSummary(name="/device:GPU:1", kind="gpu", events=0),
    ),
    steps=(OpTraceSteps(how="marker", name="train", count=12, median_ns=MS, min_ns=MS, max_ns=MS),),
)


def _imported(*, traced: TracedSteps | None = TRACED) -> Report:
    return Report(
        session=SessionSummary(
            id="ab", command=(), framework="none", hosts=1, steps=0, throughput=Throughput(), processes=0
        ),
        overhead=Overhead(ratio=0, low=0, high=0),
        anatomy=(),
        findings=(),
        checked=(),
        diagnostics=(),
        ops=OPS,
        op_traces=(FILE,),
        traced=traced,
    )


def test_terminal_of_an_imported_file() -> None:
    """Parts of half a percent and more, the blocking stage, the device's idle time, the ops that take the time."""
    lines = text.render(_imported(), width=160).splitlines()
    parts = ("the step    20 ms on average over 11 traced steps", "input wait 60 %", "device compute 40 %")
    assert " \u00b7 ".join(parts) in lines
    assert "input       bottleneck: stage Map<i> takes 11 ms per batch, one call at a time (PyFunc, Cast)" in lines
    said = "/device:GPU:0 idle 60 % of the time, 60 % with an empty queue; longest 12 ms (input wait)"
    assert f"idle        {said}" in lines
    assert "          89 % a/MatMul (MatMul) on /device:GPU:0" in lines
    assert any(line.endswith("k\u2026 on /device:GPU:0") for line in lines)


def test_of_two_batches_no_time_of_a_stage_is_given() -> None:
    few = replace(TRACED, batches=2)
    assert blocking(few) == "stage Map<i> needs the most time, one call at a time (PyFunc, Cast)"
    assert blocking(TRACED) == "stage Map<i> takes 11 ms per batch, one call at a time (PyFunc, Cast)"


def test_terminal_of_a_measured_job_with_a_capture() -> None:
    """Beside the measured step, not in its place."""
    lines = text.render(replace(input_bound(), traced=TRACED), width=160).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("traced"))
    assert "20 ms on average over 11 traced steps" in lines[at]
    assert "stage Map<i>" in lines[at + 1]


def test_page() -> None:
    """All parts with what they are, the tree, idle times, gains, ops by device, what was recorded; markup is text."""
    page = html.render(_imported())
    for part in (
        "framework runtime",
        "waiting for the next batch",
        "Map&lt;i&gt; (blocking)",
        "host&lt;1&gt;.xplane",
    ):
        assert part in page
    for part in (
        "Device idle times",
        "10 to 20 %",
        ">a/MatMul<",
        "GPU:1: not captured",
        "2,019 bookkeeping",
    ):
        assert part in page
    assert "<b>" not in page.replace("<b>stepscope</b>", "")
    assert "No steps seen" not in page
    assert "Nothing found in the trace" in page
    assert "Profiling overhead" not in page


def test_markdown() -> None:
    shown = markdown.render(_imported())
    for part in ("### Traced steps", "| input wait | 60 % | 12 ms |", "stage Map", "/device:GPU:1", "`a/MatMul`"):
        assert part in shown
    assert "| layer |" not in shown


def test_a_trace_without_steps_is_told_as_a_whole() -> None:
    """It has no mean step, no pipeline, no device."""
    bare = replace(TRACED, count=0, name="", pipeline=(), idle=None, gains=())
    shown = text.render(_imported(traced=bare), width=160)
    assert "20 ms of trace, without steps" in shown
    page = html.render(_imported(traced=bare))
    assert "The input pipeline" not in page
    assert "Idle times" not in page


def test_nothing_is_said_without_a_trace() -> None:
    for shown in (text.render(input_bound()), markdown.render(input_bound()), html.render(input_bound())):
        assert "raced step" not in shown


@pytest.mark.parametrize(
    ("part", "css"),
    [
        ("copy-on-device", "c-copy"),
        ("device-gap", "c-unmeasured"),
        ("gc", "c-gc"),
        ("compile", "c-compile"),
        ("x", "c-else"),
    ],
)
def test_every_part_has_a_colour(part: str, css: str) -> None:
    assert part_class(part) == css

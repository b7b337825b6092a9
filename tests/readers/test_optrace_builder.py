"""The op trace as columns: order, rounding, stats, and what names mean."""

import numpy as np
import pytest

from stepscope.readers.op_names import Meaning, meaning, parse_op
from stepscope.readers.optrace_builder import OpTraceBuilder
from stepscope.tables.optrace import Category, LineKind, OpTrace, PlaneKind, TraceSource


def _trace() -> OpTrace:
    builder = OpTraceBuilder(TraceSource(format="test"))
    gpu = builder.plane("/device:GPU:1", PlaneKind.GPU, ordinal=1)
    host = builder.plane("/host:CPU", PlaneKind.HOST)
    thread = builder.line(host, "python")
    stream = builder.line(gpu, "Stream #7(Compute)", LineKind.STREAM)
    builder.event(thread, "dense/MatMul:MatMul", 10, 5, stats={"group_id": 3, "tf_op": "dense"})
    builder.event(thread, "train", 0, 100.0004, stats={"step_num": 7}, step=True)
    builder.event(thread, "dense/Relu:Relu", 10, 9, stats={"group_id": 4})
    builder.event(stream, "volta_sgemm", 50, 0.0007)
    return builder.build()


def test_lines_of_a_plane_stand_together_and_their_events_are_slices_by_start_the_longer_first() -> None:
    trace = _trace()
    assert [(line.plane, line.name) for line in trace.lines] == [(0, "Stream #7(Compute)"), (1, "python")]
    thread = trace.lines[1]
    names = [trace.strings[i] for i in trace.names()[thread.slice]]
    assert names == ["train", "dense/Relu:Relu", "dense/MatMul:MatMul"]
    assert [plane.events for plane in trace.planes] == [1, 3]
    assert trace.planes[0].captured


def test_starts_and_ends_are_rounded_down_and_exact_durations_kept() -> None:
    """A child that ends with its parent still does after rounding; sums of exact durations lose nothing."""
    trace = _trace()
    assert trace.events.dur_ns.tolist() == [0, 100, 9, 5]
    assert trace.events.dur_rem_ps is not None
    assert trace.events.dur_ps().tolist() == [1, 100_000, 9_000, 5_000]
    builder = OpTraceBuilder(TraceSource(format="test"))
    line = builder.line(builder.plane("p", PlaneKind.TPU), "XLA Ops", LineKind.XLA_OPS)
    builder.event(line, "while", 0.7, 2.5)
    builder.event(line, "add", 1.9, 1.3)
    events = builder.build().events
    assert events.end_ns.tolist() == [3, 3]
    assert events.dur_ps().tolist() == [2500, 1300]


def test_stats_follow_their_events() -> None:
    trace = _trace()
    assert trace.ints("group_id").tolist() == [-1, -1, 4, 3]
    codes, texts = trace.texts("tf_op")
    assert [texts[i] if i >= 0 else None for i in codes] == [None, None, None, "dense"]
    assert trace.stats_of(3) == {"group_id": 3, "tf_op": "dense"}
    assert trace.stats.of_events("no such").rows.tolist() == []
    moved = trace.shifted(1_000)
    assert np.array_equal(moved.events.start_ns, trace.events.start_ns + 1_000)


def test_names_of_a_kind_are_worked_out_once() -> None:
    trace = _trace()
    rows = trace.events_of(trace.metas_named("dense/Relu:Relu"))
    assert rows.tolist() == [2]
    meta = trace.events.meta[2]
    assert trace.strings[trace.metas.op_name[meta]] == "dense/Relu"
    assert trace.strings[trace.metas.op_type[meta]] == "Relu"
    assert trace.categories().tolist() == [Category.KERNEL, Category.STEP, Category.OP, Category.OP]


@pytest.mark.parametrize(
    ("name", "plane", "line", "expected"),
    [
        ("a/b/MatMul:MatMul", PlaneKind.HOST, LineKind.THREAD, (Category.OP, "a/b/MatMul", "MatMul")),
        (
            "jit(f)/dot_general_1:",
            PlaneKind.HOST,
            LineKind.THREAD,
            (Category.OP, "jit(f)/dot_general_1", "dot_general"),
        ),
        ("Iterator::Root::Map", PlaneKind.HOST, LineKind.THREAD, (Category.INPUT, "Iterator::Root::Map", "Dataset")),
        ("EagerLocalExecute: ReadVariableOp", PlaneKind.HOST, LineKind.THREAD, (Category.CALL, "", "")),
        ("ExecutorState::Process", PlaneKind.HOST, LineKind.THREAD, (Category.EXECUTOR, "", "")),
        ("PyFunc:PyFunc", PlaneKind.HOST, LineKind.THREAD, (Category.OP, "PyFunc", "PyFunc")),
        ("PyFunc", PlaneKind.HOST, LineKind.THREAD, (Category.PYTHON, "", "")),
        ("cudaLaunchKernel", PlaneKind.HOST, LineKind.THREAD, (Category.RUNTIME, "", "")),
        ("cudaStreamSynchronize", PlaneKind.HOST, LineKind.THREAD, (Category.WAIT, "", "")),
        ("my own span", PlaneKind.HOST, LineKind.THREAD, (Category.OTHER, "", "")),
        ("MemcpyH2D", PlaneKind.GPU, LineKind.STREAM, (Category.COPY, "MemcpyH2D", "MemcpyHToD")),
        ("Memcpy HtoD (Pageable -> Device)", PlaneKind.GPU, LineKind.STREAM, None),
        ("ncclKernel_AllReduce_RING_LL_Sum_float", PlaneKind.GPU, LineKind.STREAM, (Category.COLLECTIVE, "", "")),
        ("%add.3 = f32[8]{0} add(f32[8]{0} %a)", PlaneKind.TPU, LineKind.XLA_OPS, (Category.KERNEL, "add.3", "add")),
        ("%all-reduce = f32[8]{0} all-reduce(f32[8] %a)", PlaneKind.TPU, LineKind.XLA_OPS, None),
    ],
)
def test_what_a_name_means(name: str, plane: PlaneKind, line: LineKind, expected: tuple[Category, str, str]) -> None:
    found = meaning(name, plane, line)
    if expected is None:
        expected = {
            LineKind.STREAM: (Category.COPY, name, "MemcpyHToD"),
            LineKind.XLA_OPS: (Category.COLLECTIVE, "all-reduce", "all-reduce"),
        }[line]
    assert found == Meaning(category=expected[0], op_name=expected[1], op_type=expected[2])


def test_what_is_no_op_is_none() -> None:
    for name in ("plain", "Iterator::Map", "EagerLocalExecute: Add", "a:B c", ""):
        assert parse_op(name) is None

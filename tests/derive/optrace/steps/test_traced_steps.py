"""Steps are found in every way in which a trace shows them."""

import numpy as np
import pytest

from stepscope.derive.optrace.steps.traced_steps import StepKind, find
from stepscope.readers.optrace_builder import OpTraceBuilder
from stepscope.tables.optrace import LineKind, PlaneKind, TraceSource


def _host() -> tuple[OpTraceBuilder, int, int]:
    builder = OpTraceBuilder(TraceSource(format="test"))
    plane = builder.plane("/host:CPU", PlaneKind.HOST)
    return builder, plane, builder.line(plane, "python")


def test_markers_win_over_what_else_shows_steps() -> None:
    builder, _, line = _host()
    core = builder.plane("/device:TPU:0", PlaneKind.TPU, ordinal=0)
    modules = builder.line(core, "XLA Modules", LineKind.XLA_MODULES)
    for i in range(3):
        builder.event(line, "train", 100 * i, 90 + i, stats={"step_num": 5 + i, "_r": 1}, step=True)
        builder.event(modules, "jit_f(1)", 100 * i + 5, 50)
    builder.event(modules, "jit_other", 95, 1)
    steps = find(builder.build())
    assert [(s.how, s.name, len(s)) for s in steps] == [
        (StepKind.MARKER, "train", 3),
        (StepKind.PROGRAM, "jit_f(1)", 3),
    ]
    assert steps[0].number.tolist() == [5, 6, 7]
    assert steps[0].dur_ns.tolist() == [90, 91, 92]
    assert steps[0].whole_ns.tolist() == [91]


def test_numbers_in_names_are_numbers_of_steps() -> None:
    builder, _, line = _host()
    for i in (551, 552):
        builder.event(line, f"ProfilerStep#{i}", i, 1)
    steps = find(builder.build())
    assert [(s.name, s.number.tolist(), s.edge.tolist()) for s in steps] == [("ProfilerStep", [551, 552], [True, True])]
    assert steps[0].whole_ns.tolist() == [1, 1]


def test_a_number_that_counts_with_the_steps_is_no_part_of_the_name() -> None:
    """What xprof groups by the step's number, whatever the name; its own JSON has the number in the name."""
    for write in ("train {}", "train_{}", "train{}", "train #{}"):
        builder, _, line = _host()
        for i in range(4, 9):
            builder.event(line, write.format(i), 100 * i, 90, stats={"step_num": i}, step=True)
        assert [(s.name, s.number.tolist()) for s in find(builder.build())] == [("train", [4, 5, 6, 7, 8])], write


def test_a_function_within_a_marker_of_its_name_is_no_step() -> None:
    """``with Trace("train", step_num=i): train(batch)``: TensorFlow records the call of the function, too."""
    builder, _, line = _host()
    for i in range(5):
        builder.event(line, "train", 100 * i, 90, stats={"step_num": i, "_r": 1}, step=True)
        builder.event(line, "train", 100 * i + 20, 60, step=True)
    (steps,) = find(builder.build())
    assert (steps.number.tolist(), steps.dur_ns.tolist()) == ([0, 1, 2, 3, 4], [90] * 5)
    assert steps.numbered


def test_markers_that_overlap_by_a_rounding_are_all_steps() -> None:
    builder, _, line = _host()
    for i in range(4):
        builder.event(line, f"ProfilerStep#{i}", 100 * i, 101)
    assert len(find(builder.build())[0]) == 4


def test_a_number_counted_from_one_is_also_the_step_s() -> None:
    builder, _, line = _host()
    for i in range(5):
        builder.event(line, f"step {i + 1}", 100 * i, 90, stats={"step_num": i}, step=True)
    assert [(s.name, s.number.tolist()) for s in find(builder.build())] == [("step", [0, 1, 2, 3, 4])]


def test_a_number_that_does_not_count_stays_in_the_name() -> None:
    builder, _, line = _host()
    for i in range(4):
        builder.event(line, "gpt2", 100 * i, 60, stats={"step_num": i}, step=True)
        builder.event(line, "eval 7", 100 * i + 70, 20, stats={"step_num": i}, step=True)
    assert [(s.name, len(s)) for s in find(builder.build())] == [("gpt2", 4), ("eval 7", 4)]


def test_keras_on_jax_writes_the_number_into_the_name() -> None:
    """Keras 3.15.1, keras/src/backend/jax/tensorboard.py: an annotation without a step number; evaluation has none."""
    builder, _, line = _host()
    for i, number in enumerate((17, 18, 19, 0, 1, 2)):
        builder.event(line, f"Profiled batch {number}", 1000 * i, 900)
        builder.event(line, "PjitFunction(train_step)", 1000 * i + 10, 20)
    for i in range(200):
        builder.event(line, "PjitFunction(test_step)", 6000 + 100 * i, 90)
    steps = find(builder.build())
    assert [(s.how, s.name, s.number.tolist()) for s in steps] == [
        (StepKind.MARKER, "Profiled batch", [17, 18, 19, 0, 1, 2])
    ]


def test_a_marker_around_several_others_is_no_step() -> None:
    """An epoch that is marked takes longer in all than its steps, and is none."""
    builder, _, line = _host()
    for epoch in range(2):
        builder.event(line, "epoch", 1000 * epoch, 900, stats={"step_num": epoch}, step=True)
        for i in range(4):
            builder.event(line, "train", 1000 * epoch + 200 * i, 150, stats={"step_num": i}, step=True)
    assert [(s.name, len(s)) for s in find(builder.build())] == [("train", 8), ("epoch", 2)]


@pytest.mark.parametrize("other", ["test", "predict"])
def test_training_makes_the_steps_beside_a_longer_evaluation(other: str) -> None:
    """tf_keras marks both: the first step of an evaluation is traced, and takes longer than all of training."""
    builder, _, line = _host()
    for i in range(4):
        builder.event(line, "train", 100 * i, 50, stats={"step_num": i}, step=True)
        builder.event(line, other, 1000 + 900 * i, 800, stats={"step_num": i}, step=True)
    assert [s.name for s in find(builder.build())] == ["train", other]


def test_an_evaluation_alone_makes_the_steps() -> None:
    """Neither does the name of another marker decide anything."""
    builder, _, line = _host()
    for i in range(4):
        builder.event(line, "validate", 100 * i, 50, stats={"step_num": i}, step=True)
        builder.event(line, "test", 1000 + 900 * i, 800, stats={"step_num": i}, step=True)
    assert [s.name for s in find(builder.build())] == ["test", "validate"]


def test_without_markers_the_function_that_takes_the_time_makes_the_steps() -> None:
    builder, plane, line = _host()
    other = builder.line(plane, "tf_Compute/1")
    for i in range(5):
        builder.event(line, "EagerLocalExecute: __inference_train_step_12", 100 * i, 60)
        builder.event(line, "EagerLocalExecute: ReadVariableOp", 100 * i + 70, 25)
        builder.event(other, "PjitFunction(helper)", 100 * i, 5)
    steps = find(builder.build())
    assert [(s.how, s.name, len(s)) for s in steps] == [(StepKind.CALL, "__inference_train_step_12", 5)]


def test_a_function_that_calls_itself_counts_once() -> None:
    builder, _, line = _host()
    for i in range(3):
        builder.event(line, "PjitFunction(f)", 100 * i, 50)
        builder.event(line, "PjitFunction(f)", 100 * i, 40)
    assert find(builder.build())[0].start_ns.tolist() == [0, 100, 200]


def test_what_is_called_once_is_no_step() -> None:
    builder, _, line = _host()
    builder.event(line, "PjitFunction(f)", 0, 50)
    builder.event(line, "MatMul:MatMul", 5, 50)
    assert find(builder.build()) == ()


def test_a_trace_without_events_has_no_steps() -> None:
    builder, *_ = _host()
    trace = builder.build()
    assert find(trace) == ()
    assert np.array_equal(trace.events.end_ns, np.empty(0, np.int64))

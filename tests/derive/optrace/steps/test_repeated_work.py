"""A loop is seen by what repeats in it, in a trace of any tool."""

from __future__ import annotations

from stepscope.derive.optrace.steps import step_periods
from stepscope.derive.optrace.steps.traced_steps import StepKind, find
from stepscope.readers.op_names import Meaning
from stepscope.readers.optrace_builder import OpTraceBuilder
from stepscope.tables.optrace import Category, OpTrace, PlaneKind, TraceSource

OP, SPAN, PYTHON = Meaning(Category.OP), Meaning(Category.OTHER), Meaning(Category.PYTHON)


class _Thread:
    """A thread of a host whose calls follow each other; times in us."""

    def __init__(self) -> None:
        self.builder = OpTraceBuilder(TraceSource(format="kineto"))
        self.plane = self.builder.plane("python", PlaneKind.HOST)
        self.line = self.builder.line(self.plane, "thread 1")
        self.at = 0

    def call(self, name: str, dur: int, known: Meaning = OP, *, line: int | None = None) -> None:
        self.builder.event(self.line if line is None else line, name, 1000 * self.at, 1000 * dur, known=known)
        self.at += dur + 1

    def around(self, name: str, known: Meaning = PYTHON) -> None:
        """A call around all that was added."""
        self.builder.event(self.line, name, 0, 1000 * self.at, known=known)

    def trace(self) -> OpTrace:
        return self.builder.build()


def _said(trace: OpTrace) -> list[tuple[StepKind, str, int]]:
    return [(steps.how, steps.name, len(steps)) for steps in find(trace)]


def test_one_op_again_and_again() -> None:
    one = _Thread()
    for _ in range(32):
        one.call("aten::matmul", 10)
    assert _said(one.trace()) == [(StepKind.CALL, "aten::matmul", 32)]


def test_runs_of_a_server_after_its_start() -> None:
    one = _Thread()
    one.call("model_loading_uri", 700, SPAN)
    one.call("session_initialization", 300, SPAN)
    for _ in range(20):
        one.call("model_run", 100, SPAN)
    assert _said(one.trace()) == [(StepKind.SESSION, "(model_run)", 20)]


def test_layers_are_no_steps() -> None:
    """An op that occurs six times in each turn does not begin it, however much time it takes."""
    one = _Thread()
    for _ in range(8):
        for _ in range(6):
            one.call("aten::linear", 50)
        one.call("aten::mean", 10)
    assert _said(one.trace()) == [(StepKind.CALL, "aten::mean", 8)]
    (steps,) = find(one.trace())
    assert steps.dur_ns[:-1].tolist() == [1000 * (11 + 6 * 51 - 1)] * 7  # the turn, not the op that begins it


def test_a_loop_below_what_is_called_once() -> None:
    """A tracer of Python begins with the module; the loop is two calls further in."""
    one = _Thread()
    for i in range(12):
        one.call("train.py(20): load", 30, PYTHON)
        one.call("train.py(31): step", 60, PYTHON)
        if i % 6 == 0:
            one.call("train.py(40): log", 2, PYTHON)
    one.around("train.py(50): main")
    one.around("train.py(1): <module>")
    assert _said(one.trace()) == [(StepKind.CALL, "train.py(31): step", 12)]


def test_annotations_that_count() -> None:
    one = _Thread()
    for i in range(5):
        one.call(f"batch {i + 3}", 40, SPAN)
    (steps,) = find(one.trace())
    assert (steps.name, steps.number.tolist()) == ("batch", [3, 4, 5, 6, 7])


def test_numbers_that_do_not_count_stay_names() -> None:
    one = _Thread()
    for _ in range(4):
        one.call("block_1", 20, SPAN)
        one.call("block_2", 30, SPAN)
    assert _said(one.trace()) == [(StepKind.CALL, "block_2", 4)]


def test_a_helper_thread_does_not_make_the_steps() -> None:
    """It repeats more often than the loop, but works much less."""
    one = _Thread()
    helper = one.builder.line(one.plane, "heartbeat")
    for _ in range(10):
        one.call("beat", 1, SPAN, line=helper)
        one.call("aten::conv2d", 80)
        one.call("beat", 1, SPAN, line=helper)
    assert _said(one.trace()) == [(StepKind.CALL, "aten::conv2d", 10)]


def test_optimizer_step_comes_once_a_step() -> None:
    """Also where the thread of the gradients is busier, and its ops repeat more often."""
    one = _Thread()
    gradients = one.builder.line(one.plane, "autograd")
    for _ in range(6):
        one.call("Optimizer.zero_grad#SGD.zero_grad", 5, SPAN)
        one.call("aten::linear", 20)
        one.call("aten::linear", 20)
        for _ in range(4):
            one.call("autograd::engine::evaluate_function: AddmmBackward0", 30, Meaning(Category.CALL), line=gradients)
        one.call("Optimizer.step#SGD.step", 8, SPAN)
    assert _said(one.trace()) == [(StepKind.CALL, "Optimizer.step#SGD.step", 6)]


def test_what_repeats_for_a_small_part_is_no_loop() -> None:
    one = _Thread()
    for _ in range(5):
        one.call("read", 2, SPAN)
    one.call("solve", 900, SPAN)
    assert find(one.trace()) == ()


def test_a_pause_between_two_turns_is_no_part_of_a_step() -> None:
    one = _Thread()
    for i in range(8):
        one.call("model_run", 10, SPAN)
        one.at += 5000 if i == 3 else 0
    periods = step_periods.build(one.trace())
    assert periods.dur_ns.max() == 11_000

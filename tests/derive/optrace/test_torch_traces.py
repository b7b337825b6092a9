"""What an import says of PyTorch's and ONNX Runtime's traces: the same of a job, whatever else was recorded of it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from stepscope.derive.optrace.trace_view import OpView
from stepscope.derive.view import SessionView
from stepscope.detectors import registry
from stepscope.detectors.base import run
from stepscope.model.session.session import Manifest, Session, StoredOpTrace
from stepscope.readers.chrome import trace_events
from stepscope.tables.optrace import OpTrace

SHARED = Path(__file__).resolve().parents[4] / "shared" / "surprises" / "files"
shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not beside this checkout")
STEP, MS = 100_000, 1_000
US = 1_000_000
"""In picoseconds."""
NEXT = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
ENTER = "torch/autograd/profiler.py(921): __enter__"
EXIT = "torch/autograd/profiler.py(945): __exit__"

Json = dict[str, object]


class Kineto:
    """A trace as kineto writes it; times in microseconds."""

    def __init__(self) -> None:
        self.events: list[Json] = []

    def add(self, category: str, name: str, ts: float, dur: float, tid: object = 7, pid: int = 7) -> None:
        """A complete event."""
        at: Json = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur}
        self.events.append(at)

    def steps(self, count: int = 5) -> list[float]:
        """Markers of steps of 100 ms; their starts."""
        starts: list[float] = [MS + STEP * i for i in range(count)]
        for i, at in enumerate(starts):
            self.add("user_annotation", f"ProfilerStep#{i}", at, STEP - 20)
        return starts

    def trace(self) -> OpTrace:
        """The trace as it is imported."""
        return trace_events.read_bytes(json.dumps({"schemaVersion": 1, "traceEvents": self.events}).encode(), "t.json")


def _shares(trace: OpTrace) -> dict[str, float]:
    return {part: round(ratio, 2) for part, ratio in OpView(trace).breakdown.shares().items() if ratio > 0.02}


def _said(trace: OpTrace) -> tuple[list[str], str, str]:
    """Codes of the findings, and outcome and hint of INP007."""
    stored = StoredOpTrace(name="import-001", worker="", source=trace.source, load=partial(_same, trace))
    session = Session(manifest=Manifest(mode="import"), op_traces=[stored])
    found, checked, failures = run(registry.ALL, SessionView(session))
    assert failures == ()
    (about,) = [c for c in checked if c.detector == "INP007"]
    return [f.code for f in found], about.outcome, about.hint


def _same(trace: OpTrace) -> OpTrace:
    return trace


def _loading(*, stacks: bool, loop: bool = False, nested: bool = False) -> OpTrace:
    """A DataLoader makes each batch in 90 of 100 ms; ``stacks``: with Python frames around each annotation's edges."""
    made = Kineto()
    for at in made.steps():
        made.add("user_annotation", NEXT, at + 15, 90 * MS)
        made.add("cpu_op", "aten::mm", at + 90_100, 9 * MS)
        if not stacks:
            continue
        made.add("python_function", ENTER, at - 6, 12)
        made.add("python_function", "torch/utils/data/dataloader.py(720): __next__", at + 9, 90_020)
        made.add("python_function", ENTER, at + 13, 6)
        made.add("python_function", "data.py(9): __getitem__", at + 200, 80 * MS)
        if nested:
            made.add("python_function", "<built-in method _record_function_enter_new of PyCapsule>", at - 4, 8)
            made.add("python_function", EXIT, at + 90_012, 12)
            made.add("python_function", "<built-in function _record_function_exit>", at + 90_013, 8)
    if stacks and loop:
        made.add("python_function", "train.py(3): <module>", 0, 6 * STEP)
        made.add("python_function", "train.py(5): main", 10, 5.5 * STEP)
    return made.trace()


@pytest.mark.parametrize("form", [{}, {"loop": True}, {"nested": True}, {"loop": True, "nested": True}])
def test_stacks_do_not_hide_the_loader(form: dict[str, bool]) -> None:
    """Annotations begin within a Python call and end after it; they stay on the row of the calls inside them."""
    plain, stacked = _loading(stacks=False), _loading(stacks=True, **form)
    assert _shares(plain) == _shares(stacked) == {"input-wait": 0.9, "host-compute": 0.09}
    assert [line.name for line in stacked.lines if line.last > line.first] == ["7"]
    assert _said(stacked)[:2] == _said(plain)[:2] == (["INP007"], "found")


def test_python_of_the_loop_is_between_calls_with_stacks_too() -> None:
    """What an op calls is not."""
    made = Kineto()
    for at in made.steps():
        made.add("python_function", "train.py(20): score", at + 10, 60 * MS)
        made.add("cpu_op", "aten::mm", at + 70 * MS, 29 * MS)
        made.add("python_function", "function.py(3): backward", at + 75 * MS, 4 * MS)
    assert _shares(made.trace()) == {"other-python": 0.71, "host-compute": 0.25, "host-python": 0.04}


@shared
def test_stacks_as_written() -> None:
    """PyTorch 2.14.1, with_stack=True."""
    trace = trace_events.read_file(SHARED / "stack.json")
    assert _shares(trace)["input-wait"] == 0.9
    assert _said(trace)[:2] == (["INP007"], "found")


@pytest.mark.parametrize(("category", "kernels"), [("cpu_op", 0), ("user_annotation", 0), ("user_annotation", 3)])
def test_a_compiled_graph_is_an_op(category: str, kernels: int) -> None:
    """Its category varies with the profiler's options; kernels that the trace holds stand for themselves."""
    made = Kineto()
    for at in made.steps():
        made.add(category, "## Call CompiledFxGraph fztnvwwwu54u3ss6e7h3shp4wted ##", at + 5 * MS, 90 * MS)
        for i in range(kernels):
            made.add("cpu_op", "aten::addmm", at + (10 + 20 * i) * MS, 10 * MS)
    trace = made.trace()
    assert _shares(trace) == {"host-compute": 0.9, "other-python": 0.1}
    own = {op.name: op.self_ps for op in OpView(trace).stats.rows()}
    assert own["compiled graph fztnvwww"] == 5 * (90 - 10 * kernels) * MS * US


def test_a_compiled_graph_on_a_stream_repeats_its_kernels() -> None:
    """Kineto's copy of the annotation on a device is no kernel."""
    made = Kineto()
    made.add("gpu_user_annotation", "## Call CompiledFxGraph fztnvwww ##", 0, 10)
    made.add("kernel", "triton_poi_fused_0", 1, 8)
    assert [op.name for op in OpView(made.trace()).stats.rows()] == ["triton_poi_fused_0"]


def test_a_note_says_where_kernels_are_missing() -> None:
    """Not if they were recorded: on a device, or by Inductor's own profile of its C++ kernels."""
    made = Kineto()
    made.add("cpu_op", "## Call CompiledFxGraph fztnvwww ##", 0, 10)
    (note,) = made.trace().diagnostics
    assert "enable_kernel_profile" in note.text
    for category, kernel in (("cpu_op", "graph_0_cpp_fused_relu_0"), ("kernel", "triton_poi_fused_0")):
        again = Kineto()
        again.events = [*made.events]
        again.add(category, kernel, 1, 8)
        assert again.trace().diagnostics == ()


@shared
@pytest.mark.parametrize("name", ["02ind.json", "03ind.json", "comp.json"])
def test_compiled_graphs_as_written(name: str) -> None:
    """PyTorch 2.14.1 without and with record_shapes."""
    assert _shares(trace_events.read_file(SHARED / name)) == {"host-compute": pytest.approx(0.99, abs=0.011)}


def _maker(tid: object = 8, pid: int = 7, *, backward: bool = False, shown: bool = True) -> OpTrace:
    """The loop computes for 9 of 100 ms; another thread works meanwhile."""
    made = Kineto()
    for at in made.steps():
        made.add("cpu_op", "aten::mm", at + 90_100, 9 * MS)
        if backward:
            made.add("cpu_op", "autograd::engine::evaluate_function: SigmoidBackward0", at + 50, 89_950, tid, pid)
        if shown:
            made.add("cpu_op", "aten::sigmoid", at + 100, 89_900, tid, pid)
    return made.trace()


@pytest.mark.parametrize(("tid", "pid", "name"), [(8, 7, "thread 8"), ("loader", 7, "loader"), (7, 9, "thread 7")])
def test_ops_of_another_thread_are_not_the_steps(tid: object, pid: int, name: str) -> None:
    """A second thread, or process, does not change what the steps' thread did, and is named."""
    trace = _maker(tid, pid)
    assert _shares(trace) == _shares(_maker(shown=False)) == {"other-python": 0.91, "host-compute": 0.09}
    codes, outcome, hint = _said(trace)
    assert (codes, outcome) == ([], "undecided")
    assert hint.endswith(f"Meanwhile {name} runs aten::sigmoid and other ops, 99 % of that time")


def test_a_thread_of_the_backward_pass_works_for_the_step() -> None:
    assert _shares(_maker(backward=True))["host-compute"] == 0.99


def test_an_exchange_on_another_thread_is_the_steps() -> None:
    made = Kineto()
    for at in made.steps():
        made.add("cpu_op", "aten::mm", at + 100, 50 * MS)
        made.add("cpu_op", "gloo:all_reduce", at + 50_100, 49 * MS, 8)
    assert _shares(made.trace()) == {"host-compute": 0.5, "collective": 0.49}


def test_a_trace_without_a_word_on_batches_is_not_clear() -> None:
    """It is clear only if what the trace leaves open is too short to be a wait."""
    assert _said(_maker(shown=False))[1] == "undecided"
    assert _said(_maker(backward=True))[1] == "clear"


@shared
def test_two_threads_as_written() -> None:
    """PyTorch 2.14.1, profile_all_threads=True."""
    one, two = (trace_events.read_file(SHARED / name) for name in ("one_thread.json", "two_threads.json"))
    assert _shares(one) == _shares(two) == {"other-python": 0.91, "host-compute": 0.09}


@pytest.mark.parametrize("inside", ["", "python_function", "user_annotation"])
def test_a_marker_in_which_no_op_ran_is_no_step(inside: str) -> None:
    """The loop ended within the profiler's active steps."""
    made = Kineto()
    for at in made.steps(4):
        made.add("cpu_op", "aten::mm", at + 10, 90 * MS)
    made.add("user_annotation", "ProfilerStep#4", MS + 4 * STEP, 80)
    if inside:
        made.add(inside, "stop", MS + 4 * STEP + 10, 50)
    assert len(OpView(made.trace()).periods) == 3  # the last of the four is left out, as its end is unknown
    made.add("cpu_op", "aten::zeros", MS + 4 * STEP + 20, 5)
    assert len(OpView(made.trace()).periods) == 4


@pytest.mark.parametrize("sessions", [1, 2])
def test_runs_of_onnx_runtime_are_steps(sessions: int) -> None:
    """With two sessions in a file the one with the most time makes them."""
    made = Kineto()
    for i in range(40):
        at = MS + 1_100 * i
        made.add("Session", "model_run", at, 1_000, 1, 1)
        made.add("Session", "SequentialExecutor::Execute", at + 20, 960, 1, 1)
        if sessions > 1:
            made.add("Session", "model_run", at, 300, 2, 2)
    made.add("Session", "session_initialization", 0, 900, 1, 1)
    trace = trace_events.read_bytes(json.dumps(made.events).encode(), "ort.json")
    periods = OpView(trace).periods
    assert (len(periods), periods.name, periods.mean_ns) == (39, "(model_run)", 1_100_000)
    assert _shares(trace) == {"runtime": 0.91, "other-python": 0.09}


@shared
def test_a_profile_of_onnx_runtime_as_written() -> None:
    """ONNX Runtime 1.31.1: 50 runs of 1 ms."""
    trace = trace_events.read_file(SHARED / "ort.json")
    assert len(OpView(trace).periods) == 49
    assert _shares(trace)["host-compute"] == 0.89

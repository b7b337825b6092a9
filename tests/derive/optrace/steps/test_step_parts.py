"""The parts of a traced step add up to it, and each moment goes to the part that explains it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.derive.op_traces import US, Maker

from stepscope.derive.optrace.steps.step_parts import PARTS, SESSION_RUN
from stepscope.derive.optrace.trace_view import OpView


def _input_bound(ready: float = 60) -> Maker:
    """Two steps of 100 us and the beginning of a third: the batch comes after ``ready``, then ops run for 30."""
    made = Maker()
    pool, fetch, data = (
        made.thread("tf_Compute/1"),
        made.thread("tf_data_iterator_get_next/1"),
        made.thread("tf_data/1"),
    )
    for i in range(3):
        at, run = 1000 * i, 100 + i
        made.step(at, 990, i)
        made.call(at + 10, 900, run)
        made.get_next(fetch, at + 20, 10 * ready, run)
        made.stage(fetch, "Root", at + 21, 10 * ready - 2)
        made.op(pool, "model/MatMul:MatMul", at + 20 + 10 * ready, 250, run)
        # what the pipeline's function does, on any thread, is the pipeline's
        made.span(data, "InstantiatedCapturedFunction::Run", at + 21, 10 * ready - 5, id=7000 + i)
        made.op(pool, "map/Sin:Sin", at + 22, 10 * ready - 10, 7000 + i)
    return made


def test_parts_add_up_to_the_periods() -> None:
    view = _input_bound().view()
    found = view.breakdown
    assert found.per_step.sum(axis=1).tolist() == [1000 * US, 1000 * US]
    assert sum(found.shares().values()) == pytest.approx(1)
    assert set(found.shares()) <= set(PARTS)


def test_the_last_step_of_a_capture_of_ours_is_whole() -> None:
    """It is marked from end to end; what follows the last marker of a program is not known."""
    made, ours = Maker(), Maker()
    for i in range(3):
        made.step(1000 * i, 900, i)
        ours.builder.event(ours.main, "stepscope.step", US * 1000 * i, US * 900, stats={"step_num": i}, step=True)
    assert made.view().periods.dur_ns.tolist() == [1000 * US, 1000 * US]
    assert ours.view().periods.dur_ns.tolist() == [1000 * US, 1000 * US, 900 * US]


def test_waiting_for_a_batch_is_input_wait_and_the_pipelines_ops_are_not_compute() -> None:
    found = _input_bound().view().breakdown
    assert found.mean_ns("input-wait") == (600 + 8) * US  # with the 8 from the function's call to GetNext
    assert found.mean_ns("host-compute") == 250 * US
    assert found.mean_ns("other-python") == pytest.approx(100 * US, abs=5 * US)


def test_a_late_start_of_the_executor_is_input_wait_where_the_batch_is_late() -> None:
    """GetNext would only have waited longer; where the batch is ready, a late start is the scheduler's."""
    late, ready = Maker(), Maker()
    for made, wait in ((late, 500), (ready, 10)):
        fetch = made.thread("tf_data_iterator_get_next/1")
        pool = made.thread("tf_Compute/1")
        for i in range(3):
            made.step(1000 * i, 990, i)
            made.call(1000 * i + 10, 900, 50 + i)
            made.op(pool, "a/ReadVariableOp:ReadVariableOp", 1000 * i + 212, 1, 50 + i)
            made.get_next(fetch, 1000 * i + 213, wait, 50 + i)
    assert late.view().breakdown.mean_ns("input-wait") == (500 + 200) * US
    assert ready.view().breakdown.mean_ns("input-wait") == 10 * US
    assert ready.view().breakdown.mean_ns("scheduling") > 800 * US


def test_without_an_event_it_is_python_and_level_0_says_which() -> None:
    made = Maker()
    for i in range(3):
        made.step(1000 * i, 500, i)
        made.op(made.main, "a/MatMul:MatMul", 1000 * i, 400)
    assert made.view().breakdown.mean_ns("other-python") == 600 * US
    callbacks = np.array([600 * US]), np.array([800 * US])
    told = OpView(made.trace(), level_0={"callbacks": callbacks, "no such": callbacks}).breakdown
    assert told.per_step[0, list(PARTS).index("callbacks")] == 200 * US
    assert told.per_step[0].sum() == 1000 * US


def test_what_an_op_says_more_about_is_the_op() -> None:
    """Linear algebra and others mark their loops over shards: `ParallelFor`, which is no op by its name."""
    made = Maker()
    pool = made.thread("tf_Compute/1")
    for i in range(3):
        made.step(1000 * i, 990, i)
        made.call(1000 * i + 10, 900, 50 + i)
        made.op(pool, "a/MatrixSolve:MatrixSolve", 1000 * i + 20, 800, 50 + i)
        made.span(pool, "ParallelFor", 1000 * i + 30, 700)
        made.span(pool, "WorkItem", 1000 * i + 40, 600)
    found = made.view().breakdown
    assert found.mean_ns("host-compute") == 800 * US
    assert found.mean_ns("scheduling") <= 100 * US


def _exchanging(*, beside: int = 0) -> Maker:
    """Steps whose op exchanges gradients for 400 of 1000 us, ``beside`` of which another op runs."""
    made = Maker()
    ring, pool = made.thread("collective/1"), made.thread("tf_Compute/1")
    for i in range(3):
        made.step(1000 * i, 990, i)
        made.call(1000 * i + 10, 900, 50 + i)
        made.op(pool, "a/MatMul:MatMul", 1000 * i + 20, 300 + beside, 50 + i)
        made.op(ring, "b/CollectiveReduceV2:CollectiveReduceV2", 1000 * i + 320, 400, 50 + i)
        made.span(ring, "Loop", 1000 * i + 325, 390)
    return made


def test_what_a_collective_says_more_about_is_the_exchange() -> None:
    """The ring's own loop inside of the op has no name that is known: its time is the op's."""
    found = _exchanging().view().breakdown
    assert found.mean_ns("collective") == 400 * US
    assert found.mean_ns("host-compute") == 300 * US


def test_an_exchange_beside_an_op_is_hidden_by_it() -> None:
    """As one beside a kernel is: without it, the step would take as long."""
    found = _exchanging(beside=150).view().breakdown
    assert (found.mean_ns("host-compute"), found.mean_ns("collective")) == (450 * US, 250 * US)


def test_the_rest_of_a_session_run_is_the_runtimes() -> None:
    """Level 0 counts all of Session.run as the call: what no event of the trace covers in it is no Python."""
    made = Maker()
    for i in range(3):
        made.step(1000 * i, 500, i)
        made.op(made.main, "a/MatMul:MatMul", 1000 * i, 400)
    runs = np.array([0, 1000 * US, 2000 * US]), np.array([900 * US, 1900 * US, 2900 * US])
    found = OpView(made.trace(), level_0={SESSION_RUN: runs}).breakdown
    assert (found.mean_ns("runtime"), found.mean_ns("other-python")) == (500 * US, 100 * US)


def _on_device() -> Maker:
    """Kernels of 40 us each 100; every second one is launched only when the device is idle."""
    made = Maker()
    stream = made.stream(made.device())
    for i in range(3):
        made.step(1000 * i, 990, i)
        for k in range(10):
            at = 1000 * i + 100 * k
            late = k % 2
            made.launch(made.main, stream, "gemm", at + 20 if late else at - 50 + 55 * (k == 0), at + 30, 40)
    return made


def test_a_device_between_two_kernels_that_lie_in_its_queue_waits_for_nobody() -> None:
    view = _on_device().view()
    found = view.breakdown
    assert found.mean_ns("device-compute") == 400 * US
    assert found.ratio("device-gap") > 0.2
    assert view.idle is not None
    assert view.idle.ratio == pytest.approx(0.6)
    assert view.idle.host_ratio == pytest.approx(0.6 - found.ratio("device-gap"))
    assert view.idle.gaps[0].dur_ns >= view.idle.gaps[-1].dur_ns > 0


def test_a_compiler_holds_all_that_lies_in_it() -> None:
    made = Maker()
    for i in range(3):
        made.step(1000 * i, 990, i)
    made.span(made.main, "PjitFunction(f)", 1000, 900)
    made.span(made.main, "backend_compile_and_load", 1200, 600)
    made.span(made.main, "some pass of its own", 1300, 300)
    assert made.view().breakdown.per_step[1, list(PARTS).index("compile")] == 900 * US


def test_an_empty_trace_has_no_steps_and_no_parts() -> None:
    view = Maker().view()
    assert not view.shows_steps
    assert view.breakdown.wall_ns == 0
    assert view.breakdown.shares() == {}
    assert view.paths == ()

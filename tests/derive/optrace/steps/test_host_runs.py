"""JAX on a CPU: a call returns at once, and its program runs on threads of the client."""

from __future__ import annotations

import pytest
from tests.derive.op_traces import Maker

from stepscope.derive.optrace.trace_view import OpView

WORK = 20_000
CLIENT = ("CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice", "TfrtCpuExecutable::ExecuteHelper")


def _jax(steps: int, *, marked: bool, before: int = 0, seen: int | None = None, client: str = CLIENT[0]) -> OpView:
    """Steps that are queued within 10 us each; ``before``: runs queued before the capture; ``seen``: runs that begin
    before it ends.
    """
    made = Maker()
    pool = made.thread("tf_XLAEigen/1")
    for i in range(steps):
        if marked:
            made.step(10 * i, 9, i)
        made.span(made.main, "PjitFunction(train_step)", 10 * i + 1, 7)
        made.span(made.main, client, 10 * i + 2, 5)
    for i in range(before + (steps if seen is None else seen)):
        at = 100 + WORK * i
        for part in range(2):
            made.span(pool, "dot.3", at + 9000 * part, 8900, hlo_op="dot.3", run_id=7_000 + i, device_ordinal=0)
        made.span(pool, "ThunkExecutor::Execute (wait for completion)", at + 18_000, 500, run_id=7_000 + i)
    return made.view()


@pytest.mark.parametrize("client", CLIENT)
@pytest.mark.parametrize("marked", [True, False])
def test_a_queued_step_lasts_as_long_as_its_work(marked: bool, client: str) -> None:
    periods = _jax(10, marked=marked, client=client).periods
    assert periods.by_device
    assert periods.name == ("train" if marked else "train_step")
    assert periods.dur_ns.tolist() == [1000 * WORK] * 9


def test_runs_from_before_the_capture_are_of_no_step() -> None:
    periods = _jax(6, marked=True, before=3).periods
    assert periods.start_ns[0] == 1000 * (100 + 3 * WORK)
    assert len(periods) == 5


def test_steps_whose_work_is_not_in_the_capture_are_not_told_by_others() -> None:
    """The capture ends while four of ten are queued: nothing is known of their length."""
    periods = _jax(10, marked=True, seen=6).periods
    assert periods.dur_ns.tolist() == [1000 * WORK] * 5


def test_a_step_that_waits_for_its_work_is_the_marker_s() -> None:
    made = Maker()
    pool = made.thread("tf_XLAEigen/1")
    for i in range(5):
        made.step(1000 * i, 900, i)
        made.span(made.main, "PjitFunction(train_step)", 1000 * i + 10, 50)
        made.span(made.main, CLIENT[0], 1000 * i + 20, 30)
        made.span(pool, "dot.3", 1000 * i + 100, 700, hlo_op="dot.3", run_id=i + 1)
    view = made.view()
    assert not view.periods.by_device
    assert view.periods.dur_ns.tolist() == [1_000_000] * 4


def test_a_pause_between_queued_steps_is_part_of_none() -> None:
    made = Maker()
    pool = made.thread("tf_XLAEigen/1")
    at = 0
    for i in range(8):
        made.step(at, 90, i)
        made.span(made.main, CLIENT[0], at + 5, 30)
        made.span(pool, "dot.3", at + 50, 95, hlo_op="dot.3", run_id=i + 1)
        at += 10_000 if i == 3 else 100
    periods = made.view().periods
    assert periods.by_device
    assert periods.dur_ns.tolist() == [100_000] * 3 + [95_000] + [100_000] * 3

"""A capture across the end of an epoch: what is said is about the training, not about the evaluation between."""

from __future__ import annotations

import pytest
from tests.derive.op_traces import Maker

from stepscope.derive.optrace import op_times
from stepscope.derive.optrace.trace_view import OpView

STEP, EVALUATION = 20_000, 2_000
TRAIN = "EagerLocalExecute: __inference_multi_step_on_iterator_9"
TEST = "EagerLocalExecute: __inference_one_step_on_iterator_7"


def _batch(made: Maker, line: int, at: int, took: int, root: tuple[int, str], stage: str) -> None:
    """A batch is taken from a pipeline of one stage, whose iterators are numbered."""
    number, dataset = root
    made.get_next(line, at, took)
    made.span(line, "Iterator::Root", at + 1, took - 2, id=number, parent_id=0, name=dataset)
    made.span(line, f"Iterator::Root::{stage}", at + 2, took - 4, id=number + 1, parent_id=number, name=dataset)


def _captured(*, evaluated: int, stage: str = "MapAndBatch") -> OpView:
    """Three steps before and three after the end of an epoch, with an evaluation between."""
    made = Maker()
    pool = made.thread("tf_Compute")
    at = 0
    for epoch in range(2):
        for i in range(3):
            made.step(at, STEP - 500, 3 * epoch + i)
            made.span(made.main, TRAIN, at + 100, STEP - 1000)
            _batch(made, pool, at + 200, 15_000, (10 + 100 * epoch, "MapDataset:3"), "Map")
            made.span(pool, "train/MatMul:MatMul", at + 16_000, 1000)
            at += STEP
        for _ in range(evaluated if epoch == 0 else 0):
            made.span(made.main, TEST, at, EVALUATION - 100)
            _batch(made, pool, at + 100, 1000, (50, "MapDataset:8"), stage)
            made.span(pool, "test/MatMul:MatMul", at + 1300, 400)
            at += EVALUATION
    return made.view()


@pytest.mark.parametrize("evaluated", [6, 40, 400])  # shorter and longer than 20 steps
@pytest.mark.parametrize("stage", ["MapAndBatch", "Map"])  # of another form, or of the same
def test_the_pipeline_is_that_of_the_steps(evaluated: int, stage: str) -> None:
    seen = _captured(evaluated=evaluated, stage=stage)
    assert seen.pipeline is not None
    assert (seen.pipeline.root.datasets, seen.pipeline.blocking.type, seen.pipeline.batches) == (
        "MapDataset:3",
        "Map",
        6,
    )


@pytest.mark.parametrize("evaluated", [6, 40, 400])
def test_an_evaluation_is_no_part_of_a_step(evaluated: int) -> None:
    periods = _captured(evaluated=evaluated).periods
    assert periods.dur_ns.max() == 1000 * STEP
    assert len(periods) == 5


def test_ops_of_the_evaluation_are_not_the_steps() -> None:
    seen = _captured(evaluated=40)
    calls = {row.name: row.calls for row in op_times.build(seen.trace, pauses=seen.periods.pauses).rows()}
    assert calls["train/MatMul"] == 6
    assert "test/MatMul" not in calls
    assert {row.name for row in op_times.build(seen.trace).rows()} >= {"test/MatMul"}  # all ops, as xprof counts them


def test_a_function_that_each_step_is_followed_by_belongs_to_the_steps() -> None:
    """A metric that is computed after each step in five calls of a function of its own."""
    made = Maker()
    for i in range(6):
        made.step(1000 * i, 500, i)
        made.span(made.main, TRAIN, 1000 * i + 10, 400)
        for j in range(5):
            made.span(made.main, TEST, 1000 * i + 550 + 60 * j, 50)
    assert made.view().periods.dur_ns.tolist() == [1_000_000] * 5


def test_calls_of_the_step_s_own_function_are_no_other_phase() -> None:
    """Of six steps the third's marker ends early; the function that all call goes on after it."""
    made = Maker()
    for i in range(6):
        made.step(1000 * i, 900 if i != 2 else 100, i)
        for j in range(8):
            made.span(made.main, TRAIN, 1000 * i + 10 + 100 * j, 90)
    assert made.view().periods.dur_ns.tolist() == [1_000_000] * 5

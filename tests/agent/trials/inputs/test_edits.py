"""Chains of tf.data with edits: the texts, the order of calls, and a real program."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from tests.agent.conftest import Armed
from tests.agent.trials.run_trial import run

from stepscope.agent.trials.inputs.chain import ChainCall
from stepscope.agent.trials.inputs.edits import Edits

PROGRAM = """import tensorflow as tf
calls = 0
def count(v):
    global calls
    calls += 1
    return v
data = tf.data.Dataset.range(20)
data = data.map(lambda i: tf.ensure_shape(tf.numpy_function(count, [i], tf.int64), ()))
data = data.filter(lambda i: i % 5 == 0)
data = data.batch(2)
print([batch.numpy().tolist() for batch in data], calls)
print([batch.numpy().tolist() for batch in data], calls)
"""
ELEMENTS = "[[0, 5], [10, 15]]"


def call(method: str, line: int, file: str = "/job/train.py") -> ChainCall:
    """A call of a chain, which makes a list longer by its name."""
    found = ChainCall(method, functools.partial(_appended, method), None)
    found.file, found.line = file, line
    return found


def _appended(method: str, dataset: list[str], **changed: object) -> list[str]:
    return [*dataset, method + "".join(changed)]


CHAIN = [call("map", 8), call("cache", 8), call("filter", 9), call("batch", 10)]


@pytest.mark.parametrize(
    ("edits", "order"),
    [
        ("filter@9<map@8", ["filter", "map", "cache", "batch"]),
        ("filter@9<map@8;-cache@8", ["filter", "map", "batch"]),
        ("batch@10<filter@9;map@8+parallel", ["mapnum_parallel_calls", "cache", "batch", "filter"]),
    ],
)
def test_calls_move_go_and_change(edits: str, order: list[str]) -> None:
    made = Edits("train.py:" + edits)
    assert made.missing(CHAIN) == ""
    dataset: list[str] = []
    for stage in made.made(CHAIN):
        dataset = stage.made(dataset)
    assert dataset == order


@pytest.mark.parametrize(
    ("argument", "missing"),
    [
        ("train.py:take@9<map@8", "take@9 isn't called"),
        ("other.py:filter@9<map@8", "filter@9 isn't called"),
        ("train.py:filter@9<map@7", "map@7 isn't called"),
    ],
)
def test_a_call_that_the_chain_lacks_is_named(argument: str, missing: str) -> None:
    assert Edits(argument).missing(CHAIN) == missing


def test_two_calls_of_one_line_are_told_apart_by_their_turn() -> None:
    calls = [*CHAIN, call("map", 8)]
    assert Edits("train.py:-map@8").missing(calls) == "map@8 is called more than once"
    second = Edits("train.py:map@8#2+parallel")
    assert second.missing(calls) == ""
    assert [stage.name for stage in second.made(calls) if stage.parallel] == ["map@8#2"]


@pytest.mark.parametrize("argument", ["filter@9<map@8", "train.py:", "train.py:map@8+faster", "train.py:map<filter@9"])
def test_what_is_no_edit_is_refused(argument: str) -> None:
    with pytest.raises(ValueError, match="input-edits"):
        Edits(argument)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The program, as a file."""
    path = tmp_path / "script.py"
    path.write_text(PROGRAM)
    return path


@pytest.mark.tf
def test_a_filter_comes_before_a_map_with_a_cache(armed: Armed, script: Path) -> None:
    """The map runs for what the filter leaves, once; the elements stay."""
    trial = run(armed, script, "input-edits:script.py:filter@9<map@8;map@8+cache")
    assert trial.output.splitlines() == [f"{ELEMENTS} 4", f"{ELEMENTS} 4"], (trial.errors, trial.interventions)
    assert trial.outcome("input-edits") == ("in-effect", 2, "")


@pytest.mark.tf
def test_elements_that_become_others_are_refused(armed: Armed, script: Path) -> None:
    """Without its batches it would give single elements: the job goes on without the edit, and the line says why."""
    trial = run(armed, script, "input-edits:script.py:-batch@10")
    assert trial.output.splitlines() == [f"{ELEMENTS} 20", f"{ELEMENTS} 40"], trial.errors
    outcome, count, why = trial.outcome("input-edits")
    assert (outcome, count) == ("not-reached", 0)
    assert why.startswith("with the edits, the elements are others: TensorSpec(shape=()")

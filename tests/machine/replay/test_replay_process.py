"""Ops run alone by a real TensorFlow: what is measured, and what is no proof."""

from __future__ import annotations

import os
import sys

import msgspec
import pytest

from stepscope.machine.replay import replay_process
from stepscope.machine.replay.replay_process import ReplayLine
from stepscope.model.session.replays import RecipeOrder, ReplayInput, ReplayNode, ReplayOrder, ReplayPart

pytestmark = [pytest.mark.tf, pytest.mark.timeout(300)]

PATIENT_S = 200.0
"""A loaded machine takes long to import TensorFlow; an idle one is done in 5 s."""


def order(key: str, *nodes: ReplayNode, inputs: tuple[ReplayInput, ...]) -> RecipeOrder:
    """A recipe under a name."""
    return RecipeOrder(key=key, bytes=1 << 16, inputs=inputs, nodes=nodes)


FLOATS = ReplayInput(dtype="float32", shape=(64, 64))
RECIPES = (
    order(
        "product",
        ReplayNode(type="MatMul", attributes='{"transpose_a":false,"transpose_b":false}', inputs=((-1, 0), (-2, 0))),
        ReplayNode(type="BiasAdd", attributes='{"data_format":"NHWC"}', inputs=((0, 0), (-3, 0))),
        ReplayNode(type="Relu", inputs=((1, 0),)),
        inputs=(FLOATS, FLOATS, ReplayInput(dtype="float32", shape=(64,))),
    ),
    order(
        "gather",
        ReplayNode(type="GatherV2", attributes='{"batch_dims":0}', inputs=((-1, 0), (-2, 0), (-3, 0))),
        inputs=(
            FLOATS,
            ReplayInput(dtype="int64", shape=(200,), below=64),
            ReplayInput(dtype="int32", values=(0,)),
        ),
    ),
    order(
        "concat",
        ReplayNode(type="ConcatV2", inputs=((-1, 0), (-2, 0), (-3, 0))),
        inputs=(FLOATS, FLOATS, ReplayInput(dtype="int32", values=(1,))),
    ),
    order(
        "cast",
        ReplayNode(type="Cast", inputs=((-1, 0),), out_attr="DstT", out_dtype="float64"),
        inputs=(FLOATS,),
    ),
    order("half", ReplayNode(type="Tanh", inputs=((-1, 0),)), inputs=(ReplayInput(dtype="bfloat16", shape=(64, 64)),)),
    order(
        "definite", ReplayNode(type="Cholesky", inputs=((-1, 0),)),
        inputs=(ReplayInput(dtype="float64", shape=(2, 8, 8), fill="definite"),),
    ),
    order("unknown", ReplayNode(type="NoSuchOp", inputs=((-1, 0),)), inputs=(FLOATS,)),
    order("lacking", ReplayNode(type="Conv2D", inputs=((-1, 0), (-2, 0))), inputs=(FLOATS, FLOATS)),
    order(
        "unequal", ReplayNode(type="MatMul", inputs=((-1, 0), (-2, 0))),
        inputs=(FLOATS, ReplayInput(dtype="float32", shape=(63, 2))),
    ),
)  # fmt: skip


def others() -> list[str]:
    """This Python, and those of other TensorFlows."""
    given = os.environ.get("STEPSCOPE_TEST_PYTHONS", ".venv-tf215/bin/python").split(":")
    return [sys.executable, *(python for python in given if os.access(python, os.X_OK))]


@pytest.fixture(name="said", params=others(), scope="module")
def _said(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[ReplayLine, ...]:
    """What is measured in a home that stays empty."""
    home = tmp_path_factory.mktemp("home")
    part = ReplayPart(threads=1, roofs=True, recipes=RECIPES)
    wanted = ReplayOrder(seconds=PATIENT_S, least_s=PATIENT_S, parts=(part,))
    lines, problem = replay_process.run(request.param, wanted, os.environ | {"HOME": str(home)})
    assert problem == ""
    assert list(home.rglob("*")) == []
    return lines


def test_ops_are_measured(said: tuple[ReplayLine, ...]) -> None:
    """Fused ops, gathers, lists of inputs, constants, types that no input shows: each has a time."""
    times = {line.key: line for line in said if line.what == "op"}
    for key in ("product", "gather", "concat", "cast", "half", "definite"):
        assert (times[key].problem, times[key].runs > 0) == ("", True), key
        assert 0 < times[key].fastest_ns <= times[key].median_ns <= times[key].slow_ns


def test_what_cannot_be_run_says_why(said: tuple[ReplayLine, ...]) -> None:
    """An op that this TensorFlow lacks, one with an unknown attribute, one of shapes that do not fit."""
    problems = {line.key: line.problem for line in said if line.what == "op" and line.problem}
    assert set(problems) == {"unknown", "lacking", "unequal"}
    assert "no op NoSuchOp" in problems["unknown"]
    assert "not known" in problems["lacking"]


def test_roofs_are_measured(said: tuple[ReplayLine, ...]) -> None:
    """Products, memory, copies and the fixed cost have figures."""
    (roofs,) = [line.roofs() for line in said if line.what == "roofs"]
    assert min(roofs.flops_per_s, roofs.memory_bytes_per_s, roofs.fixed_ns, *(rate for _, rate in roofs.copies)) > 0


def test_a_python_without_tensorflow_is_a_problem() -> None:
    """It ends early, and nothing was measured."""
    lines, problem = replay_process.run("/bin/false", ReplayOrder(seconds=5, least_s=1, parts=()), {})
    assert (lines, problem) == ((), "it ended early")
    assert "cannot be run" in replay_process.run("/no/python", ReplayOrder(seconds=5, least_s=1, parts=()), {})[1]


def test_the_order_is_json_that_any_python_reads() -> None:
    """The program reads it without our structs."""
    text = msgspec.json.encode(ReplayOrder(seconds=5, least_s=1, parts=(ReplayPart(recipes=RECIPES),)))
    assert b'"kept"' not in text
    assert text.count(b'"type":') == sum(len(recipe.nodes) for recipe in RECIPES)

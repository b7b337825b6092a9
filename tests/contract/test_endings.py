"""The plan of ``make bench-endings``: its programs exist, and its bound is the one of the books."""

from __future__ import annotations

import ast
import math
import sys

import pytest

from _endings_page import Row, bound, page
from _endings_plan import KINDS, plan
from _endings_run import PROGRAMS, Ended, digest

WAYS = sorted({way.words[:2] for kind in KINDS.values() for way in kind.ways})


@pytest.mark.parametrize(("program", "name"), WAYS)
def test_each_way_is_a_function_of_its_program(program: str, name: str) -> None:
    """A way of the plan is a function of the program that it names."""
    tree = ast.parse((PROGRAMS / program).read_text("utf-8"))
    assert name in {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}


@pytest.mark.parametrize(("differ", "number"), [(0, 100), (0, 1000), (1, 10), (5, 50)])
def test_bound_is_clopper_pearson(differ: int, number: int) -> None:
    """With the bound as the true share, so few are seen in one of twenty samples."""
    share = bound(differ, number)
    chance = sum(math.comb(number, k) * share**k * (1 - share) ** (number - k) for k in range(differ + 1))
    assert chance == pytest.approx(0.05)


def test_plan_is_the_same_and_names_only_interpreters_that_have_the_framework() -> None:
    """The same arguments give the same pairs, in an order by chance, so that shards and later runs agree."""
    pythons = {"python": ["a", "b"], "torch": ["b"]}
    pairs = plan(pythons, ["threads", "exits"], 30, 1)
    assert pairs == plan(pythons, ["threads", "exits"], 30, 1)
    assert len({pair.name for pair in pairs}) == 60
    assert all(pair.python in pythons[pair.framework] for pair in pairs)
    assert {pair.measured_first for pair in pairs} == {True, False}


def test_what_any_two_runs_print_differently_is_left_out() -> None:
    """Times, process numbers and addresses of frameworks' messages do not count as a difference; words do."""
    line = "I0000 00:00:{}    {} port.cc:153] oneDNN is on\n"
    assert digest(line.format("1795872302.397822", 11700)) == digest(line.format("1795872308.1", 7))
    assert digest("<function f at 0x7f00deadbeef>") == digest("<function f at 0x7f11deadbeef>")
    assert digest("loss 0.3\n") != digest("loss 0.4\n")


def _row(number: int, *codes: int | None) -> Row:
    without, under = [Ended(code=code, out="", err="", files="", extra_ns=0) for code in codes]
    name, python = f"exits-{number}", sys.executable
    return Row(sources="1", pair=name, kind="exits", words="exits.py a", python=python, without=without, under=under)


@pytest.mark.parametrize(
    ("without", "under", "said"),
    [
        (None, 0, "In 1 of those that differ it is the run without stepscope"),
        (0, None, ""),
        (1, 2, ""),
    ],
    ids=["the-program-itself", "harm", "neither-is-usual"],
)
def test_the_page_says_which_run_of_a_pair_ended_otherwise(without: int | None, under: int | None, said: str) -> None:
    """By the other runs of its program; the number of pairs that differ stays."""
    text = page([_row(0, without, under), *(_row(number, 0, 0) for number in range(1, 9))], [])
    assert text.startswith("1 of 9 pairs differ")
    assert ("In 1 of those that differ" in text) == bool(said)

"""Who makes the batches that steps wait for, by the Python that a profiler recorded on other threads."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.derive.op_traces import Maker

from stepscope.derive.optrace import loop_python
from stepscope.derive.optrace.trace_view import OpView
from stepscope.tables.optrace import Program
from stepscope.tables.program_ops import Frame, ProgramOp

STEPS, STEP, WAIT = 6, 1_000, 800
SORT, SLEEP = "$numpy sort", "$time sleep"
POOL = "$thread.py:53 run"
WRAPPED = (
    "$stats.py:386 wrapped_get_item",
    "Prefetch._getitem",
    "$prefetch.py:86 _getitem",
    "$map.py:158 _map_element",
)
"""Grain's (0.2.18) frames around the user's function, with an annotation between them."""


def _view(*chain: str, own: str = "/home/me/train.py") -> OpView:
    """Steps that wait in ``next`` while another thread is in a chain of calls, the outermost first; ``own``: the file
    of the program's compiled function.
    """
    made = Maker()
    other = made.thread("pool")
    for i in range(STEPS):
        at = STEP * i
        made.step(at, STEP - 1, i)
        made.span(made.main, "$builtins next", at + 1, WAIT)
        made.span(made.main, "PjitFunction(f)", at + WAIT + 2, 100)
        for depth, name in enumerate(chain):
            made.span(other, name, at + 2 + depth, WAIT - 2 - 2 * depth)
    frames = (Frame(own, "f", 3), Frame("/venv/lib/python3.12/site-packages/numpy/numeric.py", "full", 323))
    op = ProgramOp(name="dot", opcode="dot", shape="", frames=frames)
    return OpView(replace(made.trace(), programs=(Program(name="jit_f", id=1, parameters=(), ops=(op,)),)))


def _made_by(*chain: str, own: str = "/home/me/train.py") -> str:
    maker = loop_python.producer(_view(*chain, own=own))
    return str(maker.call) if maker is not None and maker.ratio > 0.5 else ""


@pytest.mark.parametrize("function", ["<lambda>", "load"])
@pytest.mark.parametrize("work", [SORT, SLEEP])
def test_the_program_s_function_is_named_and_not_what_a_library_wraps_around_it(function: str, work: str) -> None:
    assert _made_by(POOL, *WRAPPED, f"$train.py:12 {function}", work) == f"{function} (train.py:12)"


def test_what_the_program_s_function_calls_of_a_library_is_its_work() -> None:
    chain = POOL, *WRAPPED, "$train.py:12 load", "$numeric.py:323 full", SORT
    assert _made_by(*chain) == "load (train.py:12)"
    assert _made_by(*chain, own="/home/me/model.py") == "load (train.py:12)"


def test_of_two_functions_of_the_program_the_nearer_works() -> None:
    """Also where only the other one's file is known to be the program's own."""
    assert _made_by(POOL, "$train.py:12 batched", "$network.py:5 received", SORT) == "received (network.py:5)"


def test_a_part_of_a_function_is_the_function() -> None:
    assert _made_by(POOL, "$train.py:12 load", "$train.py:13 <listcomp>", SORT) == "load (train.py:12)"


def test_a_thread_of_the_program_that_sleeps_makes_nothing() -> None:
    assert _made_by("$threading.py:9 run", "$train.py:30 watch", SLEEP) == ""
    assert _made_by(POOL, "$train.py:30 watch", SLEEP) == ""


def test_a_wrapper_does_not_work_while_what_it_wraps_does() -> None:
    """Calls and annotations of a library alternate; each has the time that no call within it has."""
    maker = loop_python.producer(_view(*WRAPPED[:2], "$data.py:9 make", SORT, own=""))
    assert maker is not None
    assert str(maker.call) == "make (data.py:9)"

"""Frames that were seen at the moment of a sample are divided among the loops of its stack, or left alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from stepscope.native.cpython.bpf_program import ThreadFrames, WatchedFrame
from stepscope.native.cpython.python_frames import RunningFunction
from stepscope.native.cpython.watched_python import BEGINS_OR_ENDS, WatchedPython
from stepscope.native.formats.python_code import PythonCode
from stepscope.native.formats.unwind import InterpreterLoop, Walk

if TYPE_CHECKING:
    from stepscope.native.cpython.bpf_attach import FrameWatch
    from stepscope.native.cpython.python_memory import Codes
    from stepscope.native.formats.perf_data import Sample

NAMES = {1000: "step", 2000: "fit", 3000: "main"}
LINE_10 = bytes([0x80 | 13 << 3 | 7, 20, 0x80 | 13 << 3 | 7, 0])
"""Eight units of line 10 and eight more, as CPython 3.11 writes them."""
STEP, FIT, MAIN = (WatchedFrame(address, address + 104) for address in NAMES)
GONE = WatchedFrame(4000, 4104)
OLD = RunningFunction("/x.py", "old", 3, alone=False)
SAMPLE = cast("Sample", SimpleNamespace(tid=7, at_ns=5))


def at(address: int) -> PythonCode | None:
    name = NAMES.get(address)
    if name is None:
        return None
    return PythonCode("/x.py", name, 0, address + 100, 32, LINE_10, inside=True, address=address, frame_size=96)


def run(function: str, *callers: str) -> RunningFunction:
    return RunningFunction(
        "/x.py", function, 10, alone=True, callers=tuple(("/x.py", caller, 10) for caller in callers)
    )


def walk(*frames: int, whole: bool = True) -> Walk:
    loops = tuple(InterpreterLoop(frame, {}) for frame in frames)
    return Walk(addresses=(1,) * 9, whole=whole, pointers=(1,) * 9, loops=loops)


def found(
    row: ThreadFrames | None, stack: Walk, told: tuple[RunningFunction | None, ...]
) -> tuple[RunningFunction | None, ...]:
    watch = cast("FrameWatch", SimpleNamespace(row=lambda tid, at_ns: row if (tid, at_ns) == (7, 5) else None))
    codes = cast("Codes", SimpleNamespace(at=at))
    return WatchedPython(codes, watch).running(SAMPLE, stack, told)


TWO = ThreadFrames(5, ((STEP, FIT), (MAIN,)), whole=True)


def test_each_loop_gets_its_functions() -> None:
    """With the lines at which they were; also where the stack itself tells nothing."""
    for told in ((OLD, None), ()):
        assert found(TWO, walk(2, 5), told) == (run("step", "fit"), run("main"))


@pytest.mark.parametrize(
    "row", [None, ThreadFrames(5, ((STEP,),), whole=True), ThreadFrames(5, TWO.loops, whole=False)]
)
def test_a_row_that_does_not_fit_is_not_used(row: ThreadFrames | None) -> None:
    """None at all, another number of loops, or one that breaks off."""
    assert found(row, walk(2, 5), (OLD, None)) == (OLD, None)


def test_a_loop_that_begins() -> None:
    """It has no frame yet, and says so; those further out have theirs."""
    assert found(TWO, walk(0, 3, 6), (OLD, None, None)) == (BEGINS_OR_ENDS, run("step", "fit"), run("main"))
    assert found(TWO, walk(1, 3, 6), (OLD, None, None)) == (OLD, None, None)


def test_a_loop_that_ends() -> None:
    """Its function has been left, which it says; what its end calls has its own."""
    row = ThreadFrames(5, ((STEP,), (), (MAIN,)), whole=True)
    assert found(row, walk(0, 3, 6), (OLD, None, None)) == (run("step"), BEGINS_OR_ENDS, run("main"))


def test_numbers_of_instructions() -> None:
    """CPython 3.10 keeps the number of the instruction; before the first it is the function's own line."""
    code = PythonCode("/x.py", "step", 7, 5000, 12, bytes([4, 2, 8, 5]), inside=False, address=1000, frame_size=0)
    assert [code.line_in_frame(number) for number in (-1, 0, 1, 2, 5)] == [7, 9, 9, 14, 14]


def test_code_that_has_gone() -> None:
    """The loop keeps what the stack tells."""
    row = ThreadFrames(5, ((STEP, GONE), (MAIN,)), whole=True)
    assert found(row, walk(2, 5), (OLD, None)) == (OLD, run("main"))


def test_a_stack_that_is_cut() -> None:
    """The innermost loops are matched; where the leaf is the loop itself, only if both say the same."""
    assert found(TWO, walk(2, whole=False), (OLD,)) == (run("step", "fit"),)
    assert found(TWO, walk(0, whole=False), (OLD,)) == (OLD,)
    same = OLD._replace(function="step")
    assert found(TWO, walk(0, whole=False), (same,)) == (run("step", "fit"),)
    assert found(TWO, walk(2, 3, 4, whole=False), (OLD, None, None)) == (OLD, None, None)

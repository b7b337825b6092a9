"""What Python's loop runs is read from its registers and its frame, as far as one place always tells."""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
import types
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, cast

import pytest

from stepscope.native.cpython.python_frames import PythonFrames, RunningFunction
from stepscope.native.cpython.python_memory import Memory, codes_of
from stepscope.native.formats.perf_data import Sample
from stepscope.native.formats.python_code import LAYOUTS, read_code
from stepscope.native.formats.unwind import InterpreterLoop, Walk

if TYPE_CHECKING:
    from stepscope.native.memory.address_space import AddressSpace

VERSION = sys.version_info[:2]
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or VERSION not in LAYOUTS, reason="memory of another kind"
)
KEPT, STALE, POINTER = 12, 14, 13
BASE, FRAME = 0x7000_0000_0000, 64
DUMPS, LOADS = json.dumps.__code__, json.loads.__code__


def inside(code: CodeType, offset: int) -> int:
    """The address of an instruction."""
    layout = LAYOUTS[VERSION]
    if layout.inside:
        return id(code) + layout.instructions + offset
    with Path("/proc/self/mem").open("rb", buffering=0) as memory:
        memory.seek(id(code) + layout.instructions)
        return int(struct.unpack("<Q", memory.read(8))[0]) + 32 + offset


def space() -> AddressSpace:
    elf = types.SimpleNamespace(address_named=lambda name: id(CodeType) if name == "PyCode_Type" else None)
    return cast("AddressSpace", types.SimpleNamespace(python=(types.SimpleNamespace(python=VERSION, elf=elf), 0)))


ROOM = ctypes.create_string_buffer(4096 * 3)
PAGE = (ctypes.addressof(ROOM) + 4095) // 4096 * 4096


def frame_of(code: CodeType) -> int:
    """An address where a frame of one of the two functions is."""
    at = PAGE + 64 + 128 * (code is DUMPS)
    ctypes.c_uint64.from_address(at + LAYOUTS[VERSION].frame_code).value = id(code)
    return at


def stack(*loops: tuple[CodeType, int, int], frames: tuple[int, ...] = ()) -> tuple[Sample, Walk]:
    """A stack of loops, leaf first: (what it runs, how far it is, what lies in a register that says nothing)."""
    words: list[int] = []
    made = []
    for i, (code, offset, stale) in enumerate(loops):
        registers = {KEPT: inside(code, offset), STALE: stale, POINTER: frames[i] if frames else frame_of(code)}
        made.append(InterpreterLoop(i, registers))
        words += [id(code), *[0] * (FRAME // 8 - 1)]
    pointers = tuple(BASE + FRAME * i for i in range(len(loops) + 1))
    sample = Sample(0, 1, 1, 1, 0, 0, 1, (), (), b"", (), memoryview(struct.pack(f"<{len(words)}Q", *words)))
    return sample, Walk(addresses=(0,) * len(pointers), whole=True, pointers=pointers, loops=tuple(made))


@pytest.fixture
def memory() -> Memory:
    found = Memory(os.getpid())
    if found.problem:
        pytest.skip(found.problem)
    return found


def test_functions_and_lines(memory: Memory) -> None:
    """The place that always points into code tells; one that does so now and then does not."""
    first = next(iter(DUMPS.co_lines()))
    end = [(begin, line) for begin, _, line in DUMPS.co_lines() if line][-1]
    stacks = [stack((DUMPS, end[0] + 2, 0), (LOADS, 4, inside(DUMPS, 6) if i % 3 else 5)) for i in range(20)]
    places = PythonFrames(codes_of(space(), memory), stacks)
    leaf, root = places.running(*stacks[0])
    alone = not LAYOUTS[VERSION].inside
    assert leaf == RunningFunction(json.__file__, "dumps", end[1], alone)
    assert root is not None
    assert (root.function, root.alone, first[2] is not None) == ("loads", alone, True)
    memory.close()


def test_too_few_or_always_the_same_say_nothing(memory: Memory) -> None:
    """Nothing is known then, rather than guessed."""
    few = [stack((DUMPS, 4, 0), (LOADS, 4, 0)) for _ in range(2)]
    same = [stack((DUMPS, 4, 0)) for _ in range(20)]
    for stacks in (few, same):
        assert PythonFrames(codes_of(space(), memory), stacks).running(*stacks[0]) == ()


def test_places_that_do_not_agree_say_nothing(memory: Memory) -> None:
    """Two that always point into code, once into different ones."""
    if not LAYOUTS[VERSION].inside:
        pytest.skip("the code object itself is pointed to")
    agree = [stack((code, 4, inside(code, 6))) for code in (DUMPS, LOADS) * 10]
    differ = stack((DUMPS, 4, inside(LOADS, 6)))
    places = PythonFrames(codes_of(space(), memory), [*agree, differ])
    assert places.running(*differ) == (RunningFunction("", "", 0, alone=False),)
    assert places.running(*agree[0])[0] == RunningFunction(json.__file__, "dumps", 0, alone=False)


def test_one_function_in_a_loop(memory: Memory) -> None:
    """From 3.11 on: its frame lies right behind that of the loop further out, or is a thread's first."""
    layout = LAYOUTS[VERSION]
    if not layout.inside:
        pytest.skip("each loop runs one function")
    read = read_code(memory.read, id(LOADS), layout)
    assert read is not None
    first = PAGE + 4096 + 32
    behind = first + read.frame_size
    for at, code in ((first, LOADS), (behind, DUMPS), (behind + 8, DUMPS)):
        ctypes.c_uint64.from_address(at + layout.frame_code).value = id(code)
    loops = (DUMPS, 4, 0), (LOADS, 4, 0)
    stacks = [stack(*loops, frames=(behind, first)) for _ in range(20)]
    places = PythonFrames(codes_of(space(), memory), stacks)
    for frames, alone in (((behind, first), [True, True]), ((behind + 8, first), [False, True]), ((8, 0), [False] * 2)):
        found = places.running(*stack(*loops, frames=frames))
        assert [run.alone for run in found if run is not None] == alone


def test_no_interpreter_no_memory_no_known_version(memory: Memory) -> None:
    """Nothing is known, and nothing fails."""
    stacks = [stack((DUMPS, 4, 0), (LOADS, 4, 0)) for _ in range(20)]
    without = cast("AddressSpace", types.SimpleNamespace(python=None))
    old = types.SimpleNamespace(python=((types.SimpleNamespace(python=(3, 6), elf=None)), 0))
    gone = Memory(2**31 - 1)
    assert gone.problem
    for where, what in ((without, memory), (space(), gone)):
        assert PythonFrames(codes_of(where, what), stacks).running(*stacks[0]) == ()
    old.python[0].elf = types.SimpleNamespace(address_named=lambda _: 1)
    assert PythonFrames(codes_of(cast("AddressSpace", old), memory), stacks).running(*stacks[0]) == ()

"""What the program tells of Python's frames, and that it tells it of the very moment of a sample."""

from __future__ import annotations

import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from stepscope.native.cpython import bpf_program, layout_check
from stepscope.native.cpython.bpf_attach import FrameWatch
from stepscope.native.cpython.bpf_program import LAYOUTS, WatchedFrame
from stepscope.native.kernel import perf
from stepscope.native.windows.native_decode import CPU
from stepscope.native.windows.native_window import NativeWindow
from stepscope.tables.stacks import FrameKind, StackFlag

PROGRAM = """
def spin(n):
    total = 0
    for i in range(n):
        total += i * i
    return total

def inner(n):
    return spin(n) + 1

def key(n):
    return inner(2000) + n

def outer():
    return sorted(range(40), key=key)

def generated():
    while True:
        yield outer()

print("up", flush=True)
for _ in generated():
    pass
"""
LINES = {"<module>": 22, "generated": 19, "outer": 15, "key": 12, "inner": 9}


def told(tid: int, frames: list[tuple[int, int, int]], rest: int = 0) -> bytes:
    """What the program tells: of each frame code, instruction and marks."""
    head = struct.pack("<4Q", 7, tid, len(frames), rest)
    rows = b"".join(struct.pack("<4Q", 1, *frame) for frame in frames)
    return head + rows + b"x" * 100


def marks(layout: bpf_program.InterpreterOffsets, *, entry: bool = False, owner: int = 0) -> int:
    """A frame's marks, with what is no mark beside them."""
    return 12345 | owner << 8 * layout.owner | (entry << 8 * layout.entry if layout.entry >= 0 else 0)


def test_frames_belong_to_loops() -> None:
    """In 3.11 the outermost frame of a loop says so; later each loop has one of its own behind it."""
    layout = LAYOUTS[3, 11]
    one, last = marks(layout), marks(layout, entry=True)
    tid, row = bpf_program.rows_of(layout, told(5, [(10, 11, one), (20, 21, last), (30, 31, last)]))
    assert (tid, row.at_ns, row.whole) == (5, 7, True)
    assert row.loops == ((WatchedFrame(10, 11), WatchedFrame(20, 21)), (WatchedFrame(30, 31),))
    for version in ((3, 12), (3, 13)):
        layout = LAYOUTS[version]
        one, own = marks(layout), marks(layout, owner=3)
        _, row = bpf_program.rows_of(
            layout, told(5, [(10, 11, one), (20, 21, one), (0, 0, own), (30, 31, one), (0, 0, own)])
        )
        assert row.loops == ((WatchedFrame(10, 11), WatchedFrame(20, 21)), (WatchedFrame(30, 31),))
        assert row.whole


def test_a_row_that_breaks_off_is_not_whole() -> None:
    """A frame could not be read, or there are more than are told; loops that are not complete are left out."""
    layout = LAYOUTS[3, 11]
    frames = [(10, 11, marks(layout, entry=True)), (20, 21, marks(layout))]
    _, row = bpf_program.rows_of(layout, told(5, frames, rest=99))
    assert (row.loops, row.whole) == (((WatchedFrame(10, 11),),), False)
    _, row = bpf_program.rows_of(layout, told(5, frames))
    assert not row.whole


@pytest.mark.parametrize("version", sorted(LAYOUTS))
def test_jumps_stay_inside(version: tuple[int, int]) -> None:
    """Each leads to an instruction of the program."""
    code = bpf_program.program(LAYOUTS[version], 1 << 40, 4, 77)
    steps = list(struct.iter_unpack("<BBhi", code))
    for at, (operation, _, offset, _) in enumerate(steps):
        if operation in (0x05, 0x15, 0x1D, 0x55, 0xA5):
            assert 0 <= at + 1 + offset < len(steps)
    assert steps[-1][0] == 0x95


def test_each_frame_of_310_has_a_loop_of_its_own() -> None:
    """Its instruction is a number, the line beside it is left out; before the first it is less than 0."""
    frames = [(10, 3 | 7 << 32, 0), (20, 0xFFFFFFFF, 0)]
    _, row = bpf_program.rows_of(LAYOUTS[3, 10], told(5, frames))
    assert row == (7, ((WatchedFrame(10, 3),), (WatchedFrame(20, -1),)), True)
    _, row = bpf_program.rows_of(LAYOUTS[3, 10], told(5, frames, rest=99))
    assert not row.whole


def is_deep(row: tuple[tuple[str, int], ...]) -> bool:
    """Whether a stack ends in the loop of ``spin``."""
    return row[-1:] in ((("spin", 4),), (("spin", 5),))


def whole_rows(pid: int, folder: Path, can: perf.Abilities) -> tuple[Counter[tuple[tuple[str, int], ...]], int]:
    """Function and line of Python's frames in the whole stacks of a window, and the samples whose frames were seen."""
    window = NativeWindow(pid, folder, can, perf.Rates(cores=1.0, faults_per_s=0.0), 1.0)
    try:
        while not window.poll(time.monotonic_ns()):
            time.sleep(0.05)
        taken = window.take(origin_ns=0, window=1)
    finally:
        window.close()
    rows: Counter[tuple[tuple[str, int], ...]] = Counter()
    seen = 0
    assert window.watch is not None
    for profile in taken.profiles:
        if profile.event == CPU:
            seen += sum(window.watch.row(pid, at_ns) is not None for at_ns in profile.samples.at_ns.tolist())
            for stack, flags in zip(profile.samples.stack.tolist(), profile.samples.flags.tolist(), strict=True):
                if flags & StackFlag.WHOLE:
                    python = [frame for frame in profile.frames_of(stack) if frame.kind is FrameKind.PYTHON]
                    rows[tuple((frame.function, frame.line) for frame in python)] += 1
    return rows, seen


@pytest.mark.parametrize("version", sorted(LAYOUTS))
def test_stacks_are_whole_without_any_agent(
    version: tuple[int, int], tmp_path: Path, find_python: Callable[[str], str]
) -> None:
    """All functions between two calls from native code are there, with the lines at which they were."""
    can = perf.abilities()
    if not can.perf:
        pytest.skip("no perf")
    python = sys.executable if version == sys.version_info[:2] else find_python(".".join(map(str, version)))
    script = tmp_path / "work.py"
    script.write_text(PROGRAM)
    process = subprocess.Popen([python, "-S", str(script)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"up\n"
        runtime = layout_check.runtime_of(process.pid, "")
        assert runtime is not None
        layout = layout_check.layout_of(process.pid, "", runtime)
        try:
            FrameWatch(layout, runtime.address, process.pid).close()
        except OSError as error:
            pytest.skip(f"no BPF: {error}")
        rows: Counter[tuple[tuple[str, int], ...]] = Counter()
        seen = 0
        for number in range(8):  # a busy machine gives the process little time
            more, told = whole_rows(process.pid, tmp_path / f"w{number}", can)
            rows, seen = rows + more, seen + told
            if sum(times for row, times in rows.items() if is_deep(row)) >= 8 and seen >= 8:
                break
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    deep = [row for row in rows if is_deep(row)]
    assert sum(rows[row] for row in deep) >= 8
    assert seen >= 8
    for row in deep:
        assert [name for name, _ in row] == ["<module>", "generated", "outer", "key", "inner", "spin"]
        assert dict(row[:-1]) == LINES

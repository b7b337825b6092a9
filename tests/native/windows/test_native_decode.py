"""What perf recorded becomes named stacks and memory events."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from tests.native.perf_file import CALL, DWARF, PID, TID_OF, PerfFile

from stepscope.native.formats import perf_data, unwind
from stepscope.native.formats.unwind import Walk
from stepscope.native.kernel.release_calls import ReleaseCall
from stepscope.native.memory.address_space import Range, Ranges, ends_in_indirect_call
from stepscope.native.windows import memory_events
from stepscope.native.windows.jit_map import JitMap
from stepscope.native.windows.native_decode import ONEDNN_CODE, StackDecoder, event_of, root_to_leaf
from stepscope.native.windows.switched_stack import SwitchedStacks
from stepscope.tables.records import Mapped, MemoryEvent
from stepscope.tables.stacks import Frame, FrameKind, StackFlag

EVENTS = [
    ("cpu-clock/freq=99,call-graph=dwarf/", DWARF),
    ("page-faults/period=9/u", DWARF),
    ("syscalls:sys_enter_madvise", CALL),
    ("syscalls:sys_enter_munmap", CALL),
    ("syscalls:sys_enter_brk", CALL),
    ("site_madvise", DWARF),
]
ORIGIN = 1_000
HEAP, ANON, FILE = 0x10000, 0x20000, 0x30000


def call(*arguments: int) -> bytes:
    return b"\0" * 16 + struct.pack("<3Q", *arguments, *([0] * (3 - len(arguments))))


def recorded() -> perf_data.PerfRecording:
    file = PerfFile(EVENTS)
    file.mmap(0, HEAP, 0x1000, "[heap]", data=True)
    file.mmap(0, ANON, 0x2000, "//anon", data=True)
    file.mmap(0, FILE, 0x1000, "/data/x.bin", data=True)
    file.comm(1, TID_OF, "tf_Compute")
    file.sample(2, ORIGIN + 10, raw=call(ANON, 0x1000, 4))
    file.sample(5, ORIGIN + 10, period=7)
    file.sample(1, ORIGIN + 20, address=ANON + 0x10, period=9)
    file.sample(3, ORIGIN + 30, raw=call(ANON, 0x2000))
    file.mmap(ORIGIN + 40, ANON, 0x2000, "//anon", data=True)
    file.sample(1, ORIGIN + 50, address=HEAP, period=9)
    file.sample(1, ORIGIN + 60, address=FILE, period=9)
    file.sample(4, ORIGIN + 70, raw=call(HEAP))
    file.sample(1, ORIGIN + 80, address=5, period=9, pid=PID + 1)
    return perf_data.decode(file.encode(), "x")


def test_memory_events() -> None:
    """Every call once, faults with what is mapped there, maps of the window; other processes left out."""
    table = memory_events.decode(recorded(), PID, origin_ns=ORIGIN, window=3)
    rows = list(
        zip(
            *(c.tolist() for c in (table.at_ns, table.kind, table.address, table.bytes, table.detail, table.weight)),
            strict=True,
        )
    )
    assert rows == [
        (10, MemoryEvent.MADVISE, ANON, 0x1000, 4, 1),
        (20, MemoryEvent.FAULT, ANON + 0x10, 4096, Mapped.ANONYMOUS, 9),
        (30, MemoryEvent.MUNMAP, ANON, 0x2000, 0, 1),
        (40, MemoryEvent.MMAP, ANON, 0x2000, 0, 1),
        (50, MemoryEvent.FAULT, HEAP, 4096, Mapped.HEAP, 9),
        (60, MemoryEvent.FAULT, FILE, 4096, Mapped.FILE, 9),
        (70, MemoryEvent.BRK, HEAP, -1, 0, 1),
    ]
    assert set(table.window.tolist()) == {3}
    assert set(table.native.tolist()) == {PID, TID_OF}


@pytest.mark.parametrize(
    ("call", "row"),
    [
        (("madvise", (ANON, 0x3000, 8)), (MemoryEvent.MADVISE, ANON, 0x3000, 8)),
        (("munmap", (ANON, 0x3000, 99)), (MemoryEvent.MUNMAP, ANON, 0x3000, 0)),
        (("brk", (HEAP, 98, 99)), (MemoryEvent.BRK, HEAP, -1, 0)),
    ],
)
def test_calls_that_perf_did_not_record(call: tuple[str, tuple[int, int, int]], row: tuple[int, ...]) -> None:
    """They stand among the others by their time, without what is no argument of theirs."""
    name, arguments = call
    calls = [ReleaseCall(ORIGIN + 45, TID_OF, name, arguments)]
    table = memory_events.decode(recorded(), PID, origin_ns=ORIGIN, window=3, calls=calls)
    (at,) = np.flatnonzero(table.at_ns == 45)
    found = tuple(int(column[at]) for column in (table.kind, table.address, table.bytes, table.detail))
    assert (found, int(table.weight[at]), int(table.native[at])) == (row, 1, TID_OF)
    assert (np.diff(table.at_ns) >= 0).all()


def test_profiles_of_events(tmp_path: Path) -> None:
    """One profile for each event with stacks; a stack without registers is not whole."""
    profiles = {p.event: p for p in StackDecoder(recorded(), PID, origin_ns=ORIGIN, root=str(tmp_path)).profiles("w")}
    assert set(profiles) == {"page-faults", "madvise"}
    faults = profiles["page-faults"]
    assert (faults.unit, faults.name, faults.total, len(faults.samples)) == ("page-faults", "w", 27.0, 3)
    assert faults.samples.at_ns.tolist() == [20, 50, 60]
    assert [thread.name for thread in faults.threads] == ["tf_Compute"]
    assert set(faults.samples.flags.tolist()) == {int(StackFlag.TRUNCATED)}
    assert profiles["madvise"].total == 7.0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cpu-clock/freq=99/u", ("cpu", "ns")),
        ("page-faults:u", ("page-faults", "page-faults")),
        ("syscalls:sys_enter_brk", ("brk", "calls")),
        ("site_munmap", ("munmap", "calls")),
    ],
)
def test_events_are_named_as_profiles_have_them(name: str, expected: tuple[str, str]) -> None:
    """Perf's names with their settings are stripped."""
    assert event_of(name) == expected


def test_code_that_onednn_calls_is_onednns() -> None:
    """Generated code without a name goes by its caller."""
    frames = {
        1: Frame("[generated code]", kind=FrameKind.GENERATED, resolved=False),
        2: Frame("dnnl::impl::cpu::x64::gemm_driver"),
        3: Frame("other"),
        4: Frame("asm_exc_page_fault", kind=FrameKind.KERNEL),
    }
    assert [f.function for f in root_to_leaf((1, 2, 3), (4,), frames)] == [
        "other",
        "dnnl::impl::cpu::x64::gemm_driver",
        ONEDNN_CODE,
        "asm_exc_page_fault",
    ]
    assert [f.function for f in root_to_leaf((1, 3), (), frames)] == ["other", "[generated code]"]


def test_the_newest_range_counts() -> None:
    """A map over others cuts them; offsets go with what is left."""
    ranges = Ranges()
    ranges.add(Range(100, 200, 0, "a"))
    ranges.add(Range(150, 160, 7, "b"))
    assert ranges.find(149) == Range(100, 150, 0, "a")
    assert ranges.find(150) == Range(150, 160, 7, "b")
    assert ranges.find(160) == Range(160, 200, 60, "a")
    assert ranges.find(200) is None
    ranges.add(Range(0, 1000, 1, "c"))
    assert ranges.find(155) == Range(0, 1000, 1, "c")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ffd0", True),
        ("41ff5708", True),
        ("ff90a8020000", True),
        ("ff1425a8020000", True),
        ("ff15a8020000", True),
        ("e8a8020000", False),
        ("ffe0", False),
        ("909090", False),
    ],
)
def test_only_indirect_calls_reach_generated_code(code: str, expected: bool) -> None:
    """Call *rax, *8(r15), *680(rax), *680, *680(rip); not a direct call, a jump, nor anything else."""
    assert ends_in_indirect_call(bytes.fromhex("90" * 4 + code)) is expected


def test_a_map_of_generated_code(tmp_path: Path) -> None:
    """Names by address; damaged lines cost themselves."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp" / "perf-999999999.map").write_text("1000 40 jit_a\nbroken\n2000 zz x\n1040 10 jit b\n")
    names = JitMap(999_999_999, str(tmp_path))
    assert [names.name(a) for a in (0xFFF, 0x1000, 0x103F, 0x1045, 0x1050)] == ["", "jit_a", "jit_a", "jit b", ""]
    assert JitMap(999_999_998, str(tmp_path)).name(0x1000) == ""


STACK, THREAD = 0x7F0000, 11
KEPT = STACK - 0x400


def in_generated(at_ns: int, word: int, tid: int = THREAD) -> perf_data.Sample:
    """A sample whose stack pointer is in a buffer: only what a kernel keeps there is seen."""
    stack = memoryview(struct.pack("<32Q", *[0] * 15, word, *[0] * 16))
    return perf_data.Sample(0, at_ns, PID, tid, 0, 0, 1, (), (), b"", (1,), stack)


def through(pointer: int, *addresses: int) -> Walk:
    """A whole stack whose second frame's pointer is ``pointer``."""
    pointers = tuple(pointer + 64 * (i - 1) for i in range(len(addresses)))
    return Walk(addresses=addresses, whole=True, pointers=pointers)


def test_callers_of_a_kernel_that_has_moved_its_stack() -> None:
    """They are of the sample nearest in time that was called through the same place of the thread's stack."""
    moved = SwitchedStacks()
    place = KEPT + unwind.PUSHED_BYTES + unwind.WORD
    moved.add(in_generated(100, 0), through(place, 1, 2, 3))
    moved.add(in_generated(200, 0), through(place, 1, 4, 3))
    moved.add(in_generated(300, 0), through(place + 256, 1, 5, 3))
    moved.add(in_generated(120, 0, THREAD + 1), through(place, 1, 6, 3))
    assert moved.callers(in_generated(130, KEPT)) == (2, 3)
    assert moved.callers(in_generated(190, KEPT)) == (4, 3)
    assert moved.callers(in_generated(999, KEPT)) == (4, 3)


def test_nothing_is_invented_for_a_kernel_that_fits_nowhere() -> None:
    """Another place of the stack, another thread, a word that is no pointer: no callers."""
    moved = SwitchedStacks()
    moved.add(in_generated(100, 0), through(KEPT + unwind.PUSHED_BYTES + unwind.WORD, 1, 2, 3))
    assert moved.callers(in_generated(110, KEPT + 16)) == ()
    assert moved.callers(in_generated(110, KEPT, THREAD + 1)) == ()
    assert moved.callers(in_generated(110, 5)) == ()


def test_what_samples_before_and_after_share_further_out() -> None:
    """Nobody was called through that place: callers beyond it stay, as far as both neighbours have them alike."""
    moved = SwitchedStacks()
    for at_ns, inner in ((100, 4), (200, 5)):
        moved.add(in_generated(at_ns, 0), through(KEPT, 1, 2, inner, 7, 8))
    assert moved.callers(in_generated(150, KEPT + 16)) == (7, 8)
    assert moved.callers(in_generated(250, KEPT + 16)) == ()
    assert moved.callers(in_generated(150, KEPT + 200)) == ()

"""perf.data files are read as they were written; damaged ones cost what is damaged."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from tests.native.perf_file import CALL, DWARF, PID, TID_OF, PerfFile

from stepscope.native.formats import perf_data
from stepscope.tables.errors import FormatError

EVENTS = [("cpu-clock/freq=99/", DWARF), ("page-faults", DWARF), ("syscalls:sys_enter_madvise", CALL)]


def written() -> PerfFile:
    file = PerfFile(EVENTS)
    file.mmap(0, 0x1000, 0x2000, "/usr/lib/libx.so", offset=0x400)
    file.comm(5, TID_OF, "tf_Compute")
    file.sample(1, 30, ip=0x1234, address=0x9999, period=200, registers=range(17), stack=b"12345678")
    file.sample(0, 20, ip=0x1111, kernel=(0xFFFF1, 0xFFFF2), registers=range(17), stack=b"abcdefghij")
    file.sample(2, 10, raw=b"R" * 40)
    file.mmap(40, 0x9000, 0x1000, "//anon", data=True)
    file.lost(7)
    return file


def test_everything_is_read() -> None:
    """Samples by time with all of their fields, mappings, names of threads, losses."""
    found = perf_data.decode(written().encode(), "x")
    assert [event.name for event in found.events] == [name for name, _ in EVENTS]
    call, cpu, fault = found.samples
    assert (call.event, call.at_ns, call.raw[:40]) == (2, 10, b"R" * 40)
    assert (cpu.event, cpu.kernel, cpu.user) == (0, (0xFFFF1, 0xFFFF2), (0x1111,))
    assert (cpu.registers, bytes(cpu.stack)) == (tuple(range(17)), b"abcdefghij")
    assert (fault.ip, fault.address, fault.period, fault.pid, fault.tid) == (0x1234, 0x9999, 200, PID, TID_OF)
    code, data = found.mappings
    assert (code.start, code.size, code.offset, code.name, code.data) == (
        0x1000,
        0x2000,
        0x400,
        "/usr/lib/libx.so",
        False,
    )
    assert (data.at_ns, data.data, data.name) == (40, True, "//anon")
    assert [(comm.tid, comm.name) for comm in found.comms] == [(TID_OF, "tf_Compute")]
    assert (found.lost, found.unread) == (7, 0)


def test_a_sample_without_registers() -> None:
    """A sample of a moment in which the process was not in its own code."""
    file = PerfFile(EVENTS)
    file.sample(0, 1, kernel=(1,))
    (sample,) = perf_data.decode(file.encode(), "x").samples
    assert (sample.registers, bytes(sample.stack)) == ((), b"")


def attempt(data: bytes) -> perf_data.PerfRecording | str:
    """What is read of bytes, or the line that is said instead."""
    try:
        return perf_data.decode(data, "x.data")
    except FormatError as error:
        return str(error)


def test_any_cut_is_survived() -> None:
    """A file that ends anywhere gives what was before, or one clear line; never anything else."""
    whole = written().encode()
    for size in range(0, len(whole), 7):
        found = attempt(whole[:size])
        assert found.startswith("x.data:") if isinstance(found, str) else len(found.samples) <= 3


def test_damaged_bytes_are_survived() -> None:
    """Whatever one byte is changed to, reading ends."""
    whole = written().encode()
    for at in range(8, len(whole), 3):
        found = attempt(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        assert found.startswith("x.data:") if isinstance(found, str) else len(found.samples) <= 3


def test_what_is_no_file_of_perfs_is_refused(tmp_path: Path) -> None:
    """Other files say what was expected."""
    other = tmp_path / "a.txt"
    other.write_text("main 12\n")
    with pytest.raises(FormatError, match="perf record"):
        perf_data.read(other)
    other.write_bytes(b"")
    with pytest.raises(FormatError):
        perf_data.read(other)


def test_compressed_files_are_refused() -> None:
    """Perf record -z is told apart."""
    file = PerfFile(EVENTS)
    file.records.append(struct.pack("<IHH", 81, 0, 16) + b"\0" * 8)
    with pytest.raises(FormatError, match="without -z"):
        perf_data.decode(file.encode(), "x")

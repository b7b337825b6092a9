"""ELF files of this machine are read as the dynamic linker and the process itself see them."""

from __future__ import annotations

import ctypes
import resource
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from stepscope.native.formats.eh_frame import UnwindTable
from stepscope.native.formats.elf import ElfFile, Functions
from stepscope.tables.errors import FormatError

pytestmark = pytest.mark.skipif(struct.calcsize("P") != 8, reason="64-bit files only")


def mappings() -> Iterator[tuple[str, int, int, int]]:
    """(path, start, end, offset) of the files that this process has mapped."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        words = line.split(None, 5)
        if len(words) > 5 and words[1].endswith("p") and words[5].startswith("/"):
            start, end = (int(word, 16) for word in words[0].split("-"))
            yield words[5].rstrip(), start, end, int(words[2], 16)


def mapped(part: str) -> tuple[str, int]:
    """(path, address of its first byte) of a library of this process."""
    for path, start, _, offset in mappings():
        if Path(path).name.startswith(part) and offset == 0:
            return path, start
    pytest.skip(f"no {part} in this process")


@pytest.fixture(name="libc")
def _libc() -> ElfFile:
    return ElfFile.open(mapped("libc.so")[0])


def test_functions_lie_where_the_process_has_them(libc: ElfFile) -> None:
    """An address that the dynamic linker gives is found, by its name, also inside of the function."""
    path, base = mapped("libc.so")
    loaded = ctypes.CDLL(path)  # not None: a program that is not position independent has a "malloc" of its own
    functions = libc.functions()
    for name in ("malloc", "getpid", "qsort"):
        address = ctypes.cast(getattr(loaded, name), ctypes.c_void_p).value
        assert address is not None
        (start,) = functions.find(np.array([address - base]))
        (inside,) = functions.find(np.array([address - base + 1]))
        names = libc.name_at(int(functions.name[start]))
        assert start == inside >= 0
        assert name.strip("_") in names or names.strip("_") in name or functions.address[start] == address - base


def test_a_function_of_the_program_is_found_however_it_was_linked() -> None:
    """Addresses in memory lead to the file's own, also in a program that is not position independent."""
    address = ctypes.cast(ctypes.pythonapi.PyObject_Repr, ctypes.c_void_p).value or 0
    path, start, offset = next((p, s, o) for p, s, end, o in mappings() if s <= address < end)
    program = ElfFile.open(path)
    own = program.address_of(address - start + offset)
    functions = program.functions()
    (found,) = functions.find(np.array([own]))
    assert "PyObject_Repr" in program.name_at(int(functions.name[found]))


def test_exports_and_needs(libc: ElfFile) -> None:
    """What a library defines for others, what it does not, and what it is called."""
    assert libc.exports("malloc")
    assert not libc.exports("mallocx")
    assert not libc.exports("alloc")
    assert libc.dynamic()[0].startswith("libc.so")
    program = ElfFile.open("/proc/self/exe")
    assert any(name.startswith("libc.so") for name in program.dynamic()[1]) or program.defines("malloc")


def test_functions_do_not_reach_beyond_their_size() -> None:
    """Between functions there is none."""
    functions = Functions(address=np.array([100, 200]), size=np.array([10, 50]), name=np.array([1, 2]))
    assert functions.find(np.array([99, 100, 109, 110, 200, 249, 250])).tolist() == [-1, 0, 0, -1, 1, 1, -1]
    none = np.empty(0, np.int64)
    assert Functions(address=none, size=none, name=none).find(np.array([1])).tolist() == [-1]


def test_addresses_and_offsets_agree(libc: ElfFile) -> None:
    """A byte of code is the same by its offset and by its address."""
    segment = next(s for s in libc.segments if s.executable)
    assert libc.address_of(segment.offset + 5) == segment.address + 5
    assert libc.address_of(10**15) is None
    section = libc.sections[".text"]
    assert libc.code_at(section.address, 16) == libc.bytes_of(section)[:16] == bytes(libc.view_of(section)[:16])
    assert libc.code_at(10**15, 4) == b""


@pytest.mark.parametrize("size", [0, 3, 20, 63, 200, 4000])
def test_a_cut_file_is_one_clear_line(tmp_path: Path, size: int) -> None:
    """A file that ends early is refused, not misread."""
    cut = tmp_path / "cut.so"
    cut.write_bytes(Path(mapped("libc.so")[0]).read_bytes()[:size])
    with pytest.raises(FormatError, match=r"cut\.so"):
        ElfFile.open(cut)


def test_what_is_no_elf_file_is_refused(tmp_path: Path) -> None:
    """Anything else says what was expected."""
    other = tmp_path / "script.sh"
    other.write_text("#!/bin/sh\n" * 20)
    with pytest.raises(FormatError, match="not a 64-bit little-endian ELF file"):
        ElfFile.open(other)


SECTIONS_AT, SEGMENTS_AT, SECTION_BYTES = 0x28, 0x20, 64
HUGE = (2**63 - 1, 2**63, 2**64 - 1)


@pytest.mark.parametrize("value", HUGE)
def test_numbers_beyond_any_file_are_refused_or_passed_over(tmp_path: Path, value: int) -> None:
    """Offset, address, size of each section, and where the tables lie: no error but a refusal, and the file is let
    go.
    """
    whole = Path(resource.__file__).read_bytes()
    first, count = struct.unpack_from("<Q", whole, SECTIONS_AT)[0], struct.unpack_from("<H", whole, 0x3C)[0]
    fields = [first + n * SECTION_BYTES + field for n in range(count) for field in (0x10, 0x18, 0x20)]
    path = tmp_path / "file.so"
    refused = 0
    for at in (SECTIONS_AT, SEGMENTS_AT, *fields):
        path.write_bytes(whole[:at] + struct.pack("<Q", value) + whole[at + 8 :])
        try:
            elf = ElfFile.open(path)
            UnwindTable(elf).row(0x1100)
            elf.functions()
            elf.dynamic()
            elf.close()
        except FormatError:
            refused += 1
    assert 0 < refused <= len(fields) + 2

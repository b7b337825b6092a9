"""Code objects in memory are read as the interpreter that runs the tests has them, and lines as it tells them."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepscope.native.formats.python_code import LAYOUTS, UNIT, CodeOffsets, PythonCode, read_code

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or sys.version_info[:2] not in LAYOUTS, reason="unknown"
)


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def read_one(code: types.CodeType) -> PythonCode | None:
    descriptor = os.open("/proc/self/mem", os.O_RDONLY)

    def read(address: int, size: int) -> bytes:
        try:
            return os.pread(descriptor, size, address)
        except (OSError, OverflowError):
            return b""

    try:
        return read_code(read, id(code), LAYOUTS[sys.version_info[:2]])
    finally:
        os.close(descriptor)


def test_names_and_every_line() -> None:
    """Of a module with all that makes line tables long."""
    text = Path(types.__file__).read_text("utf-8")
    seen = 0
    for code in codes(compile(text + "\ndef größe_漢():\n    return (1 +\n 2)\n", "/x/ünicode.py", "exec")):
        found = read_one(code)
        assert found is not None
        assert (found.file, found.first_line) == ("/x/ünicode.py", code.co_firstlineno)
        assert found.function == getattr(code, "co_qualname", code.co_name)
        assert found.size == len(code.co_code)
        for begin, end, line in code.co_lines():
            for at in range(begin, end, UNIT):
                assert found.line(found.start + at + UNIT) == (line or 0)
                assert found.is_behind(found.start + at + UNIT)
                seen += 1
        assert not found.is_behind(found.start)
        assert not found.is_behind(found.start + found.size + 1)
    assert seen > 1000


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=[f"{a}.{b}" for a, b in LAYOUTS])
@pytest.mark.parametrize("fill", [b"\0", b"\xff", b"\x10"], ids=["zeros", "ones", "tens"])
def test_what_is_no_code_object_is_none(layout: CodeOffsets, fill: bytes) -> None:
    """Memory may hold anything, and may end anywhere."""
    assert read_code(lambda _, size: fill * size, 4096, layout) is None
    assert read_code(lambda _, size: fill * (size - 1), 4096, layout) is None

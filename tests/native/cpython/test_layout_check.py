"""Where CPython's fields lie is seen in the process before anybody follows them; what does not fit is refused."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from stepscope.native.cpython import layout_check
from stepscope.native.cpython.bpf_program import LAYOUTS, InterpreterOffsets
from stepscope.tables.errors import CaptureError

VERSION = sys.version_info[:2]
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or VERSION not in LAYOUTS, reason="memory of another kind"
)
ME = os.getpid()


def own() -> layout_check.Runtime:
    found = layout_check.runtime_of(ME, "")
    assert found is not None
    return found


@pytest.fixture
def other() -> Iterator[int]:
    """Another process: the frames of one that looks at itself are gone when they are read."""
    program = "print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def test_the_runtime_of_this_process() -> None:
    """It is the one that the linker knows."""
    found = own()
    assert found.version == VERSION
    assert found.address == ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    assert found.code_type == id(type(own.__code__))


def test_a_process_fits(other: int) -> None:
    """Its threads and frames are where they are known to be."""
    found = layout_check.runtime_of(other, "")
    assert found is not None
    layout = layout_check.layout_of(other, "", found)
    assert layout.native_id[: len(LAYOUTS[VERSION].native_id)] == LAYOUTS[VERSION].native_id


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (lambda layout: replace(layout, interpreter=layout.interpreter + 8), "its threads are not where"),
        (lambda layout: replace(layout, code=layout.code + 16), "its frames are not where"),
    ],
)
def test_a_process_that_does_not_fit(
    monkeypatch: pytest.MonkeyPatch, other: int, wrong: Callable[[InterpreterOffsets], InterpreterOffsets], what: str
) -> None:
    """It is refused, with what is not where it should be."""
    found = layout_check.runtime_of(other, "")
    assert found is not None
    monkeypatch.setitem(LAYOUTS, VERSION, wrong(LAYOUTS[VERSION]))
    with pytest.raises(CaptureError, match=rf"CPython 3\.{VERSION[1]} of process {other}: {what}"):
        layout_check.layout_of(other, "", found)


def test_where_the_c_library_keeps_numbers() -> None:
    """In the record of each thread, at the place that it tells debuggers; up to 3.10 threads are found by that."""
    try:
        place = layout_check._number_at(ME, "")
    except CaptureError as error:
        pytest.skip(str(error))
    told: list[tuple[int, int]] = []

    def tell() -> None:
        told.append((ctypes.c_uint32.from_address(threading.get_ident() + place).value, threading.get_native_id()))

    thread = threading.Thread(target=tell)
    thread.start()
    thread.join()
    tell()
    assert all(number == native for number, native in told)
    assert len(set(told)) == 2


def test_a_c_library_that_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPython 3.10 beside another than glibc is refused."""
    monkeypatch.setattr(layout_check, "_LIBC", re.compile("no such library"))
    with pytest.raises(CaptureError, match="its C library does not say where threads store their ids"):
        layout_check.layout_of(ME, "", own()._replace(version=(3, 10)))


def test_a_process_of_another_container(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program tells nothing of it, so nothing is attempted."""
    monkeypatch.setattr(layout_check, "is_here", lambda _: False)
    with pytest.raises(CaptureError, match="another container"):
        layout_check.layout_of(ME, "", own())

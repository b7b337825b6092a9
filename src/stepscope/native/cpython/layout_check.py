"""The place of CPython in a process, and a check in its memory that it has the layout that ``bpf_program`` follows.

Thread states hold the number of their thread from 3.11 on. Up to 3.10 they hold pthread_self(): the address of the C
library's own record of the thread. glibc itself states the offset of the number in that record, for debuggers.

Source: glibc, nptl_db/structs.def and db_info.c: _thread_db_pthread_tid holds bits, count and offset of the field.
"""

from __future__ import annotations

import re
import struct
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from stepscope.native.cpython.bpf_program import LAYOUTS, MAX_FRAMES, MAX_THREADS
from stepscope.native.cpython.python_memory import Memory
from stepscope.native.formats.elf import ElfFile
from stepscope.native.formats.python_code import TYPE_AT
from stepscope.native.memory.address_space import PYTHON
from stepscope.tables.errors import CaptureError, FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from stepscope.native.cpython.bpf_program import InterpreterOffsets

_RUNTIME, _CODE_TYPE = "_PyRuntime", "PyCode_Type"
_LIBC = re.compile(r"lib(?:c|pthread)[.-].*")
_NUMBER = "_thread_db_pthread_tid"
_FIELD = struct.Struct("<3I")
_NUMBER_BITS = 32
_NUMBERS_SINCE = 3, 11
_TRIES, _PAUSE_S = 5, 0.002
"""Retries, because lists may change while they are read."""
_PATH_AT = 5
_WORD, _U32 = struct.Struct("<Q"), struct.Struct("<I")


class Runtime(NamedTuple):
    """A process's CPython. Addresses."""

    version: tuple[int, int]
    address: int
    """Address of its _PyRuntime."""
    code_type: int
    """Address of the type of its code objects."""


def runtime_of(pid: int, root: str) -> Runtime | None:
    """A process's CPython; None: it runs none whose frames are known. ``root``: root of its file system.

    Raises:
        OSError: it has gone, or is not ours.
    """
    for name, elf, bias in _mapped(pid, root, PYTHON):
        version, own, code_type = (3, int(name[1])), elf.address_named(_RUNTIME), elf.address_named(_CODE_TYPE)
        if own is not None and code_type is not None and version in LAYOUTS:
            return Runtime(version, own + bias, code_type + bias)
    return None


def is_here(pid: int) -> bool:
    """Whether a process is in the same container as we are, so that its process id is its only one.

    Raises:
        OSError: it has gone, or is not ours.
    """
    lines = Path(f"/proc/{pid}/status").read_text("utf-8", "replace").splitlines()
    numbers = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])
    return len(numbers) == 1


def layout_of(pid: int, root: str, runtime: Runtime) -> InterpreterOffsets:
    """The offsets of the fields of a process's CPython.

    Raises:
        CaptureError: they are not at the known offsets; the text says which.
        OSError: it has gone, or is not ours.
    """
    if not is_here(pid):
        raise CaptureError(f"process {pid} runs in another container than stepscope")
    layout = LAYOUTS[runtime.version]
    if runtime.version < _NUMBERS_SINCE:
        layout = replace(layout, native_id=(*layout.native_id, _number_at(pid, root)))
    problem = ""
    for _ in range(_TRIES):
        with closing(Memory(pid)) as memory:
            tasks = {int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()}
            problem = memory.problem or _misfit(memory.read, layout, runtime, tasks)
        if not problem:
            return layout
        time.sleep(_PAUSE_S)
    version = ".".join(map(str, runtime.version))
    raise CaptureError(f"CPython {version} of process {pid}: {problem}")


def _mapped(pid: int, root: str, names: re.Pattern[str]) -> Iterator[tuple[re.Match[str], ElfFile, int]]:
    """The files with these names that a process runs, and their load offsets."""
    for line in Path(f"/proc/{pid}/maps").read_text("utf-8", "replace").splitlines():
        words = line.split(None, _PATH_AT)
        name = names.fullmatch(words[-1].rpartition("/")[2]) if len(words) > _PATH_AT and "x" in words[1] else None
        if name is None:
            continue
        try:
            elf = ElfFile.open(root + words[-1])
        except FormatError:
            continue
        own = elf.address_of(int(words[2], 16))
        if own is not None:
            yield name, elf, int(words[0].partition("-")[0], 16) - own


def _number_at(pid: int, root: str) -> int:
    """Offset of a thread's number in the C library's record of it."""
    with closing(Memory(pid)) as memory:
        for _, elf, bias in _mapped(pid, root, _LIBC):
            own = elf.address_named(_NUMBER)
            field = memory.read(own + bias, _FIELD.size) if own is not None else b""
            if len(field) == _FIELD.size:
                bits, _, offset = _FIELD.unpack(field)
                if bits == _NUMBER_BITS:
                    return int(offset)
    raise CaptureError(f"process {pid}: unlike glibc, its C library does not say where threads store their ids")


def _misfit(
    read: Callable[[int, int], bytes], layout: InterpreterOffsets, runtime: Runtime, tasks: Container[int]
) -> str:
    """The part that does not match a layout; "" if threads of the process are found by their numbers, and any frames of
    one run code.
    """

    def pointer(address: int) -> int:
        data = read(address, _WORD.size)
        return int(_WORD.unpack(data)[0]) if len(data) == _WORD.size else 0

    def end_of(address: int, places: tuple[int, ...]) -> int:
        for place in places:
            address = pointer(address + place) if address else 0
        return address

    found = frames = 0
    state = end_of(runtime.address, (layout.interpreter, layout.threads))
    for _ in range(MAX_THREADS):
        *pointers, number = layout.native_id
        holder = end_of(state, tuple(pointers))
        data = read(holder + number, _U32.size) if holder else b""
        if len(data) == _U32.size and _U32.unpack(data)[0] in tasks:
            found += 1
            frame = end_of(state, layout.frame)
            for _ in range(MAX_FRAMES):
                if not frame:
                    break
                frames += 1
                if pointer(pointer(frame + layout.code) + TYPE_AT) == runtime.code_type:
                    return ""
                frame = pointer(frame + layout.previous)
        state = pointer(state + layout.next_thread) if state else 0
    if not found:
        return "its threads are not where those of the known versions are"
    return "its frames are not where those of the known versions are" if frames else ""

"""The Python stacks of all threads of a process at one moment, read from its memory: it is neither stopped nor changed.

The process runs meanwhile: a stack that changed while it was read does not end where a stack ends; it is read again.
CPython 3.10 to 3.13; of others, and of programs without Python, the state of each thread is known.
"""

from __future__ import annotations

import struct
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.native.cpython import layout_check
from stepscope.native.cpython.bpf_program import BEHIND, EACH, MAX_FRAMES, MAX_THREADS, ON_C_STACK, number_of
from stepscope.native.cpython.python_memory import Codes, Memory
from stepscope.native.formats import python_code
from stepscope.tables.errors import CaptureError
from stepscope.tables.thread_shot import PythonPlace, ThreadShot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.native.cpython.bpf_program import InterpreterOffsets

TRIES = 5
_WORD, _U32 = struct.Struct("<Q"), struct.Struct("<I")


def take(pid: int) -> tuple[list[ThreadShot], str]:
    """The threads of a process in the order of their start, and why there are no Python stacks ("" if there are).

    Raises:
        OSError: it has gone, or is not ours.
    """
    stacks, problem = _python_stacks(pid)
    shots = []
    for tid in sorted(int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()):
        shot = _thread(pid, tid)
        if shot is not None:
            shots.append(shot._replace(frames=stacks.get(tid, ())))
    return shots, problem


def _thread(pid: int, tid: int) -> ThreadShot | None:
    folder = Path(f"/proc/{pid}/task/{tid}")
    try:
        stat = (folder / "stat").read_text("utf-8", "replace")
    except OSError:  # it has just ended
        return None
    name, _, rest = stat.partition("(")[2].rpartition(")")
    try:
        waits = (folder / "wchan").read_text("ascii", "replace")
    except OSError:
        waits = ""
    return ThreadShot(tid, name, rest.split()[0], waits if waits != "0" else "")


def _python_stacks(pid: int) -> tuple[dict[int, tuple[PythonPlace, ...]], str]:
    root = f"/proc/{pid}/root"
    runtime = layout_check.runtime_of(pid, root)
    if runtime is None:
        return {}, "it runs no CPython of 3.10 to 3.13"
    try:
        layout = layout_check.layout_of(pid, root, runtime)
    except CaptureError as error:
        return {}, str(error)
    found: dict[int, tuple[PythonPlace, ...]] = {}
    for _ in range(TRIES):
        with closing(Memory(pid)) as memory:
            reader = _Reader(memory, layout, Codes(memory, python_code.LAYOUTS[runtime.version], runtime.code_type))
            torn = False
            for state in reader.states(runtime.address):
                tid, frames, whole = reader.thread(state)
                torn |= not whole
                if frames and (whole or tid not in found):
                    found[tid] = frames
        if not torn:
            break
    return found, ""


class _Reader:
    """Thread states and frames of one moment. Every page is read once."""

    def __init__(self, memory: Memory, layout: InterpreterOffsets, codes: Codes) -> None:
        self._memory = memory
        self._layout = layout
        self._codes = codes

    def states(self, runtime: int) -> Iterator[int]:
        """Addresses of the thread states of the main interpreter."""
        state = self._end_of(runtime, (self._layout.interpreter, self._layout.threads))
        for _ in range(MAX_THREADS):
            if not state:
                return
            yield state
            state = self._pointer(state + self._layout.next_thread)

    def thread(self, state: int) -> tuple[int, tuple[PythonPlace, ...], bool]:
        """A thread's number, its functions, and whether they are all there."""
        *pointers, number = self._layout.native_id
        data = self._memory.read(self._end_of(state, tuple(pointers)) + number, _U32.size)
        tid = int(_U32.unpack(data)[0]) if len(data) == _U32.size else 0
        frame = self._end_of(state, self._layout.frame)
        places: list[PythonPlace] = []
        for _ in range(MAX_FRAMES):
            if not frame:
                return tid, tuple(places), True
            code = self._codes.at(self._pointer(frame + self._layout.code))
            if self._layout.entry != BEHIND or not self._is_of_loop(frame):
                if code is None:
                    return tid, tuple(places), False
                at = self._instruction(self._pointer(frame + self._layout.at))
                places.append(PythonPlace(code.file, code.function, code.line_in_frame(at)))
            frame = self._pointer(frame + self._layout.previous)
        return tid, tuple(places), True

    def _is_of_loop(self, frame: int) -> bool:
        """Whether a frame stands for a loop and runs no function: from 3.12 on."""
        marks = self._memory.read(frame + self._layout.owner + self._layout.head - _WORD.size, 1)
        return marks == bytes([ON_C_STACK])

    def _instruction(self, at: int) -> int:
        return number_of(at) if self._layout.entry == EACH else at

    def _pointer(self, address: int) -> int:
        data = self._memory.read(address, _WORD.size)
        return int(_WORD.unpack(data)[0]) if len(data) == _WORD.size else 0

    def _end_of(self, address: int, places: tuple[int, ...]) -> int:
        for place in places:
            address = self._pointer(address + place) if address else 0
        return address

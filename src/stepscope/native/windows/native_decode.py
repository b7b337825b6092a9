"""The output of ``perf record`` for a process, as profiles of stacks.

Stacks are walked first and named afterwards: equal ones once, each address once, each file's symbols at most once. This
runs in the collector, while the process or at least its files exist. Python frames that were read at the sample itself
(``native.cpython``) are put in here; ``derive.stacks.splice`` adds those known from the agent's samples.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stepscope.native.cpython.python_frames import PythonFrames, RunningFunction
from stepscope.native.cpython.python_memory import codes_of
from stepscope.native.cpython.watched_python import WatchedPython
from stepscope.native.formats import unwind
from stepscope.native.kernel import kernel_symbols
from stepscope.native.kernel.perf import CALL_PREFIX, SITE_PREFIX
from stepscope.native.memory.address_space import AddressSpace
from stepscope.native.windows import thread_stacks
from stepscope.native.windows.jit_map import JitMap
from stepscope.native.windows.switched_stack import SwitchedStacks
from stepscope.readers import native_names
from stepscope.readers.stacks.labels import KERNEL_MODULE, UNKNOWN_NAME
from stepscope.readers.stacks.modules import stand_in
from stepscope.tables.findings import Diagnostic
from stepscope.tables.made_frames import NOT_SAMPLED
from stepscope.tables.stacks import (
    UNKNOWN,
    Frame,
    FrameKind,
    SampleTable,
    StackBuilder,
    StackFlag,
    StackProfile,
    Thread,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stepscope.native.cpython.bpf_attach import FrameWatch
    from stepscope.native.cpython.python_memory import Memory
    from stepscope.native.formats.perf_data import PerfRecording, Sample
    from stepscope.native.formats.unwind import Walk

CPU, FAULTS = "cpu", "page-faults"
_EVENTS = {"cpu-clock": (CPU, "ns"), "page-faults": (FAULTS, "page-faults")}
_ONEDNN = "dnnl"
ONEDNN_CODE = "[oneDNN generated code]"
UNREADABLE_FILES, UNREADABLE_MEMORY = "DX145", "DX148"


class _Stack(NamedTuple):
    """A stack before it has names: addresses, leaf first."""

    user: tuple[int, ...]
    kernel: tuple[int, ...]
    flags: int
    python: tuple[tuple[int, RunningFunction], ...] = ()
    """Indices in ``user`` of Python's loop, with the functions that it ran."""


class _Row(NamedTuple):
    """A sample and the facts about it."""

    sample: Sample
    stack: _Stack
    own: int
    """Value of ``pthread_self()`` in its thread; 0: unknown."""
    waits: int
    """Value of ``pthread_self()`` in the thread that waits for it."""


def _op_thread(row: _Row, *, own: bool) -> int:
    """The thread whose op generated code works for; ``own``: its stack leads through that op."""
    if not row.stack.flags & StackFlag.ATTACHED:
        return 0
    return row.own if own else row.waits or row.own


def event_of(name: str) -> tuple[str, str]:
    """(event, unit) of a profile, by perf's name of an event."""
    plain = name.partition("/")[0].partition(":u")[0]
    return _EVENTS.get(plain) or (plain.removeprefix(CALL_PREFIX).removeprefix(SITE_PREFIX), "calls")


class StackDecoder:
    """Decodes the stacks of one window of one process."""

    def __init__(
        self,
        recorded: PerfRecording,
        pid: int,
        *,
        origin_ns: int,
        root: str,
        memory: Memory | None = None,
        watch: FrameWatch | None = None,
    ) -> None:
        """Prepare. ``origin_ns``: CLOCK_MONOTONIC at session start; ``root``: root of the process's file system;
        ``watch``: Python's frames seen at each sample.
        """
        self._recorded = recorded
        self._pid = pid
        self._origin_ns = origin_ns
        self._memory = memory
        self._watch = watch
        self._space = AddressSpace(root, (m for m in recorded.mappings if m.pid == pid))
        self._generated = JitMap(pid, root)
        self._threads = {comm.tid: comm.name for comm in recorded.comms if comm.pid == pid}

    def profiles(self, name: str) -> tuple[StackProfile, ...]:
        """One profile for each event recorded with stacks, except those without samples. ``name``: the window's name.

        Cost: 0.2 ms of CPU time per sample, 0.2 s to name TensorFlow's functions.
        """
        events = self._recorded.events
        walks = [
            (sample, self._walk(sample))
            for sample in self._recorded.samples
            if sample.pid == self._pid and events[sample.event].registers
        ]
        codes = codes_of(self._space, self._memory) if self._memory is not None else None
        places = PythonFrames(codes, walks)
        watched = WatchedPython(codes, self._watch) if codes is not None and self._watch is not None else None
        moved = SwitchedStacks()
        for sample, walk in walks:
            if walk.whole or walk.attached:
                moved.add(sample, walk)
        generated = any(walk.attached for _, walk in walks)
        threads = thread_stacks.read(self._pid, self._memory) if self._memory is not None and generated else None
        rows: dict[tuple[str, str], list[_Row]] = defaultdict(list)
        for sample, walk in walks:
            running = places.running(sample, walk)
            if watched is not None:
                running = watched.running(sample, walk, running)
            own, waits = 0, 0
            if threads is not None:
                own = threads.numbers.get(sample.tid, 0)
                waits = threads.waiting(sample, walk) if walk.attached else 0
            row = _Row(sample, self._raw(sample, walk, moved, running), own, waits)
            rows[event_of(events[sample.event].name)].append(row)
        frames = self._frames({row.stack for of_event in rows.values() for row in of_event})
        return tuple(self._profile(event, unit, name, of_event, frames) for (event, unit), of_event in rows.items())

    def diagnostics(self) -> list[Diagnostic]:
        """Files whose code could not be named or unwound, and memory that could not be read."""
        found = [
            Diagnostic(code=UNREADABLE_FILES, text=f"native stacks end in {file}, which cannot be read: {why}")
            for file, why in self._space.unreadable.items()
        ]
        if self._memory is not None and self._memory.problem and self._space.python is not None:
            text = (
                f"the memory of process {self._pid} cannot be read ({self._memory.problem}), so Python functions in "
                "native stacks come from nearby samples; run sudo sysctl kernel.yama.ptrace_scope=0, or run as root"
            )
            found.append(Diagnostic(code=UNREADABLE_MEMORY, text=text))
        return found

    def _walk(self, sample: Sample) -> Walk:
        registers = unwind.dwarf_registers(self._recorded.events[sample.event].registers, sample.registers)
        return unwind.walk(self._space, registers, sample.stack)

    def _raw(
        self, sample: Sample, walk: Walk, moved: SwitchedStacks, running: Sequence[RunningFunction | None]
    ) -> _Stack:
        python = tuple((loop.frame, run) for loop, run in zip(walk.loops, running, strict=False) if run is not None)
        if walk.whole:
            return _Stack(walk.addresses, sample.kernel, int(StackFlag.WHOLE), python)
        if walk.attached:
            return _Stack(walk.addresses, sample.kernel, int(StackFlag.ATTACHED), python)
        if len(walk.addresses) == 1 and self._space.is_generated(walk.addresses[0]):
            callers = moved.callers(sample)
            if callers:
                flags = int(StackFlag.ATTACHED | StackFlag.APPROXIMATE)
                return _Stack((*walk.addresses, *callers), sample.kernel, flags)
        return _Stack(walk.addresses, sample.kernel, int(StackFlag.TRUNCATED), python)

    def _frames(self, stacks: Iterable[_Stack]) -> dict[int, Frame]:
        """A frame for each address; kernel and process share none."""
        user: set[int] = set()
        kernel: set[int] = set()
        for stack in stacks:
            user.update(stack.user)
            kernel.update(stack.kernel)
        frames = self._user_frames(user)
        known = kernel_symbols.names(kernel)
        for address in kernel:
            text = known.get(address, "")
            frames[address] = Frame(
                text or KERNEL_MODULE, module=KERNEL_MODULE, kind=FrameKind.KERNEL, resolved=bool(text)
            )
        return frames

    def _user_frames(self, addresses: Iterable[int]) -> dict[int, Frame]:
        frames: dict[int, Frame] = {}
        by_file: dict[str, list[tuple[int, int]]] = defaultdict(list)
        modules = {}
        for address in addresses:
            module, own, name = self._space.module_of(address)
            kind = FrameKind.GENERATED if self._space.is_generated(address) else FrameKind.NATIVE
            if module is not None:
                by_file[name].append((address, own))
                modules[name] = module
                continue
            text = self._generated.name(address) if kind is FrameKind.GENERATED else ""
            other = stand_in(name, kind) if name else UNKNOWN_NAME
            frames[address] = Frame(text or other, module=name, kind=kind, resolved=bool(text))
        for name, pairs in by_file.items():
            module = modules[name]
            texts = module.names([own for _, own in pairs], self._space.debug_file(module))
            for (address, _), text in zip(pairs, texts, strict=True):
                other = text or stand_in(name, FrameKind.NATIVE)
                frames[address] = Frame(other, module=name, kind=FrameKind.NATIVE, resolved=bool(text))
        return frames

    def _profile(
        self,
        event: str,
        unit: str,
        name: str,
        rows: Sequence[_Row],
        frames: Mapping[int, Frame],
    ) -> StackProfile:
        builder = StackBuilder()
        interned: dict[_Stack, tuple[int, bool]] = {}
        threads: dict[int, int] = {}
        for sample, stack, _, _ in rows:
            if stack not in interned:
                chain = self._chain(stack, frames)
                own = any(native_names.computes(frame.function) for frame in chain)
                interned[stack] = builder.stack_of(chain), own
            threads.setdefault(sample.tid, len(threads))
        at = np.array([row.sample.at_ns - self._origin_ns for row in rows], np.int64)
        op_threads = [_op_thread(row, own=interned[row.stack][1]) for row in rows]
        return StackProfile(
            event=event,
            unit=unit,
            name=name,
            frames=builder.frames,
            stacks=builder.stacks,
            samples=SampleTable(
                at_ns=at,
                thread=np.array([threads[row.sample.tid] for row in rows], np.int64),
                stack=np.array([interned[row.stack][0] for row in rows], np.int64),
                weight=np.array([row.sample.period for row in rows], np.float64),
                count=np.ones(len(rows), np.int64),
                flags=np.array([row.stack.flags for row in rows], np.int64),
                op_thread=np.array(op_threads, np.int64),
            ),
            threads=tuple(Thread(self._pid, tid, self._threads.get(tid, "")) for tid in threads),
            begin_ns=int(at.min()) if len(at) else UNKNOWN,
            end_ns=int(at.max()) if len(at) else UNKNOWN,
            lost=self._recorded.lost,
            unread=self._recorded.unread,
        )

    def _chain(self, stack: _Stack, frames: Mapping[int, Frame]) -> list[Frame]:
        """The frames of a stack, root to leaf; after Python's loop the functions that it ran, if known."""
        chain = root_to_leaf(stack.user, stack.kernel, frames)
        for at, run in stack.python:  # leaf first, so that outer positions stay valid
            place = len(stack.user) - at
            chain[place:place] = python_frames(run)
        return chain


def python_frames(run: RunningFunction) -> list[Frame]:
    """The functions that Python's loop ran, root to leaf; if it may run several, the outer ones are unknown."""
    known = [Frame(function, file=file, line=line, kind=FrameKind.PYTHON) for file, function, line in run.callers]
    if run.function:
        known.append(Frame(run.function, file=run.file, line=run.line, kind=FrameKind.PYTHON))
    return known if run.alone else [NOT_SAMPLED, *known]


def root_to_leaf(user: Sequence[int], kernel: Sequence[int], frames: Mapping[int, Frame]) -> list[Frame]:
    """The frames of a stack whose addresses are leaf first; generated code called by oneDNN is oneDNN's."""
    found = [frames[address] for address in reversed(user)]
    if len(found) > 1 and found[-1].kind is FrameKind.GENERATED and not found[-1].resolved:
        caller = found[-2].function
        if _ONEDNN in caller:
            found[-1] = found[-1]._replace(function=ONEDNN_CODE)
    found += [frames[address] for address in reversed(kernel)]
    return found

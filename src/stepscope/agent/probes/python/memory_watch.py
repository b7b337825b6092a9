"""Watches this process's memory: when it has grown, what the job's Python holds; and what it died of for lack of it.

A tick reads /proc/self/statm: 5 us, at most ten times a second. A look (``agent.core.held``) is taken when the memory
has doubled, has passed a share of what bounds it, has grown for ten seconds, or when more address space was taken at
once than there is memory left. Near the bound, graphs and tf.data's models that wait to be read are read at once:
later is too late. An exception for lack of memory that is not caught is logged with the sizes that its message names,
never with the message.
"""

from __future__ import annotations

import functools
import os
import re
import threading
import time

from stepscope.agent.core import frames, held, memory_limits
from stepscope.agent.core.other_frames import Stacks
from stepscope.agent.probes.common import shared
from stepscope.agent.probes.support import drop_our_frame
from stepscope.wire.log import moved_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

EVERY_NS = 90_000_000
FIRST_BYTES = 256 << 20
"""Own memory at the first look; the next ones are taken at its doublings."""
SHARES = (0.5, 0.75, 0.9)
"""Of what bounds it: a look each."""
NEAR = 0.75
"""Share of the bound from which what waits to be read is read at once."""
GROWN_BYTES = 16 << 20
GROWN_NS = 5_000_000_000
"""A look is also taken when the memory has grown by so much since the last one, and that is so long ago; each such look
doubles the time to the next one, up to ``MOST_GROWN_NS``."""
MOST_GROWN_NS = 160_000_000_000
AT_ONCE_BYTES = 256 << 20
MOST_LOOKS = 100
HURRY_NS, MOST_HURRY_NS = 400_000_000, 1_000_000_000
"""Most time for reading graphs that wait, near the bound: in one tick, and in all."""
MOST_POINTS = 100
MOST_THREADS = 16
"""Other threads whose variables are looked at."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TENSOR = re.compile(r"(?:OOM when )?allocating tensor with shape ?\[([\d,]*)\] and type (\w+) on (\S+)")
_ARRAY = re.compile(r"allocate ([\d.]+) (bytes|[KMGTPE]iB) for an array with shape \(([\d, ]*)\) and data type (\S+)")
_BYTES = re.compile(r"(?:allocate|allocating|requested|of) (\d{4,}) ?(?:B\b|bytes)")
_NODE = re.compile(r"\{\{node ([^}]{1,300})\}\}")
_TORCH = re.compile(r"Tried to allocate ([\d.]+) (bytes|[KMGT]iB)\. GPU (\d+) has a total capacity")
_OF_XLA = frozenset(("XlaRuntimeError", "JaxRuntimeError"))
"""Names of the error that jaxlib raises."""
_UNITS = {"bytes": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40, "PiB": 50, "EiB": 60}
_STACK = 8


class Watch:
    """Follows the memory of one process, on the agent's thread."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._file = moved_up(os.open("/proc/self/statm", os.O_RDONLY))
        self._group, self._usage = memory_limits.control_group()
        self._host = memory_limits.host()
        self._due = 0
        self._looks = 0
        self._next = FIRST_BYTES
        self._shares = list(SHARES)
        self._noted = (0, 0)
        """(when, own memory) of the last look."""
        self._before = (0, 0)
        """(own memory, address space) at the last tick."""
        self._series: list[tuple[int, int]] = []
        """(when, own memory) of the ticks since the last look; every other one is dropped when it is long."""
        self._every, self._ticks = 1, 0
        self._grown_ns = GROWN_NS
        self._hurrying = False
        """Whether this process has been so near its bound that graphs are read at once."""
        self._hurried_ns = 0

    def tick(self, now_ns: int) -> None:
        """Look at the memory's size, and at more where there is a reason."""
        if now_ns < self._due or self._state.lines.dormant:
            return
        self._due = now_ns + EVERY_NS
        own, space = self._sizes()
        self._remember(now_ns, own)
        reason = self._reason(now_ns, own, space)
        before, self._before = self._before, (own, space)
        if reason and self._looks < MOST_LOOKS:
            self._looks += 1
            self._noted = (now_ns, own)
            self.look(reason, own, space, before, None)
            self._read_models()
        near = reason == "at-once" or (reason == "share" and own < NEAR * self._limit())  # of the address space
        self._hurrying = self._hurrying or near or own >= NEAR * (self._limit() or own + 1)
        reader = shared(self._state).reader
        if self._hurrying and reader is not None and self._hurried_ns < MOST_HURRY_NS:
            spent = time.thread_time_ns()
            reader.hurry(HURRY_NS)
            spent = time.thread_time_ns() - spent
            self._hurried_ns += spent
            self._state.hooks.apart_ns += spent

    def _remember(self, now_ns: int, own: int) -> None:
        self._ticks += 1
        if self._ticks % self._every == 0:
            self._series.append((now_ns, own))
            if len(self._series) >= MOST_POINTS:
                self._series, self._every = self._series[::2], self._every * 2

    def _sizes(self) -> tuple[int, int]:
        """(resident memory without files and shared memory, address space)."""
        words = os.pread(self._file, 100, 0).split()
        return (int(words[1]) - int(words[2])) * PAGE_BYTES, int(words[0]) * PAGE_BYTES

    def _limit(self) -> int:
        """Bytes of memory that it may have at most; 0: unknown."""
        return min((limit for limit in (self._group, self._host) if limit), default=0)

    def _reason(self, now_ns: int, own: int, space: int) -> str:
        limit, (before, space_before) = self._limit(), self._before
        address = memory_limits.address_space()
        share = max(own / limit if limit else 0.0, space / address if address else 0.0)
        passed = [s for s in self._shares if share >= s]
        if passed:
            self._shares = [s for s in self._shares if share < s]
            while self._next <= own:
                self._next *= 2
            return "share"
        if before and space - space_before >= max(AT_ONCE_BYTES, limit - own):
            return "at-once"
        if own >= self._next:
            while self._next <= own:
                self._next *= 2
            return "doubled"
        at, noted = self._noted
        if not at or now_ns - at < self._grown_ns or own - noted < GROWN_BYTES:
            return ""
        self._grown_ns = min(2 * self._grown_ns, MOST_GROWN_NS)
        return "grown"

    def look(self, reason: str, own: int, space: int, before: tuple[int, int], leaf: Optional[FrameType]) -> None:
        """Log what the job's variables hold. ``leaf``: the innermost frame of an exception's traceback."""
        began = time.thread_time_ns()
        line_at = self._state.now()
        line: dict[str, object] = {"t": "memory-held", "at": line_at, "reason": reason}
        line.update(own_bytes=own, space_bytes=space, before_bytes=before[0], space_before_bytes=before[1])
        line.update(group_limit=self._group, host_limit=self._host, space_limit=memory_limits.address_space())
        if self._usage:
            line.update(group_bytes=_number(self._usage), group_cache=memory_limits.cache(self._usage) or 0)
        with Stacks() as stacks:
            main = stacks.pop(threading.main_thread().ident or 0, None)
            first = leaf if leaf is not None else main
            line["rows"] = held.rows([first, *list(stacks.values())[:MOST_THREADS]], shared(self._state).built.get)
            line["stack"] = frames.user_stack(_STACK, first) if first is not None else []
            del main, first
        line["series"] = [((line_at - at) // 1_000_000, size >> 10) for at, size in self._series]
        self._series, self._every = [], 1
        line["spent_ns"] = time.thread_time_ns() - began
        self._state.hooks.apart_ns += time.thread_time_ns() - began
        self._state.log(line)

    def asked(self) -> None:
        """A look on request, on the agent's thread."""
        own, space = self._sizes()
        self.look("asked", own, space, self._before, None)

    def died(self, leaf: Optional[FrameType]) -> None:
        """A last look, on the thread that an exception ends."""
        own, space = self._sizes()
        self.look("error", own, space, self._before, leaf)

    def _read_models(self) -> None:
        """Read how much the inputs buffer."""
        began = time.thread_time_ns()
        models = shared(self._state).models_now
        if models is not None:
            models()
        self._state.hooks.apart_ns += time.thread_time_ns() - began


def _number(path: str) -> int:
    try:
        with open(path, encoding="ascii") as stream:
            return int(stream.read())
    except (OSError, ValueError):
        return 0


def lacks_memory(error: Foreign) -> bool:
    """Whether an exception says that memory was not enough."""
    names = {cls.__name__ for cls in type(error).__mro__}
    if issubclass(type(error), MemoryError) or "ResourceExhaustedError" in names:
        return True
    if "OutOfMemoryError" in names:  # PyTorch's, of a GPU
        return str(getattr(type(error), "__module__", "")).partition(".")[0] == "torch"
    return bool(names & _OF_XLA) and "RESOURCE_EXHAUSTED" in str(error)[:200]


def sizes(text: str) -> dict[str, object]:
    """What a message says of the memory that was asked for: numbers, types and names of nodes only."""
    found: dict[str, object] = {}
    tensor, array, torch, plain, node = (p.search(text) for p in (_TENSOR, _ARRAY, _TORCH, _BYTES, _NODE))
    if torch is not None:
        found.update(asked_bytes=int(float(torch[1]) * (1 << _UNITS[torch[2]])), device="GPU:" + torch[3])
    elif tensor is not None:
        shape = [int(n) for n in tensor[1].split(",") if n]
        device = tensor[3].rpartition("device:")[2]
        found.update(shape=shape, dtype=tensor[2], device=device[:20])
    elif array is not None:
        found.update(asked_bytes=int(float(array[1]) * (1 << _UNITS[array[2]])), dtype=array[4][:40])
        found.update(shape=[int(n) for n in array[3].replace(" ", "").split(",") if n])
    elif plain is not None:
        found["asked_bytes"] = int(plain[1])
    if node is not None:
        found["node"] = node[1]
    return found


def attach(state: AgentState, module: Foreign) -> None:
    """Start watching, and put our hook before the one for exceptions that are not caught."""
    watch = Watch(state)
    state.hooks.on_tick(watch.tick)
    state.hooks.held = watch.asked
    original = module.excepthook
    guard = state.guard("memory_watch")

    def tell(error: Foreign, trace: Optional[TracebackType]) -> None:
        if state.lines.dormant or not lacks_memory(error):
            return
        stack, leaf = _user_stack(trace)
        file, function, line = stack[-1] if stack else ("", "", 0)
        entry: dict[str, object] = {"t": "memory-error", "at": state.now(), "error": type(error).__qualname__}
        entry.update(file=file, function=function, line=line, stack=stack, thread=state.thread())
        entry.update(sizes(str(error)[:20_000]))
        state.log(entry)
        watch.died(leaf)

    @functools.wraps(original)
    def excepthook(kind: Foreign, error: Foreign, trace: Optional[TracebackType], /) -> Foreign:
        with guard:
            tell(error, trace)
        try:
            return original(kind, error, trace)
        except BaseException as other:
            drop_our_frame(other)
            raise

    state.patch(module, "excepthook", excepthook)
    state.log({"t": "probe", "at": state.now(), "name": "memory_watch", "attached": True})


def _user_stack(trace: Optional[TracebackType]) -> tuple[list[tuple[str, str, int]], Optional[FrameType]]:
    """The innermost user frames of a traceback, root to leaf, and the innermost frame of all."""
    found, leaf = [], None
    while trace is not None:
        code = trace.tb_frame.f_code
        leaf = trace.tb_frame
        if frames.is_own(code.co_filename):
            found.append((frames.absolute(code.co_filename), frames.function_name(code), trace.tb_lineno or 0))
        trace = trace.tb_next
    return found[-_STACK:], leaf


TARGETS = (("sys", attach),)

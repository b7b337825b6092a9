"""Adds Python functions and lines to native stacks: the agent's samples of a thread replace its interpreter frames.

Frames that the collector read at the sample itself (``native.windows.native_decode``) are in the stacks already.

A native stack shows the interpreter (``_PyEval_EvalFrameDefault``), not what it runs; the agent's sample of the same
thread shows that, at another moment. The nearest sample in time is used if it is near enough for its innermost frames
to be still there; else the frames shared by the samples before and after, or those that this native code always calls.
Then the stack counts as cut, unless the code was never seen to call anything else: a pool that runs one callback again
and again.

A sample fits a native stack only if it has at least as many frames as the interpreter: CPython up to 3.10 runs each
Python function in a C frame of its own, later versions run calls from Python to Python in one. If both have the same
number, each C frame becomes its Python frame, and native code called in between stays between. With more Python frames
nothing says to which C frame they belong, so they stand together, and C frames between the outermost and the innermost
are left out.
"""

from __future__ import annotations

import bisect
import functools
import itertools
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.stacks.frame_kinds import kind_of
from stepscope.derive.stacks.interpreter_runs import InterpreterRun, InterpreterRuns, SampledChains, filled
from stepscope.derive.stacks.own_frames import is_ours
from stepscope.tables.made_frames import NOT_SAMPLED
from stepscope.tables.stacks import UNKNOWN, Frame, FrameKind, StackBuilder, StackFlag

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from stepscope.tables.stacks import StackProfile

NEAR_NS = 25_000_000
"""A sample this near gives all of its frames: two and a half periods of the agent's sampling during a window."""
FAR_NS = 1_000_000_000
"""Samples before and after within this time give the frames that they share."""
ALWAYS = 3
"""This many samples of the threads from which native code calls Python in one way show what it always calls."""
AGENT = Frame("[stepscope's agent]", kind=FrameKind.LIBRARY)
"""Stands for the Python frames of the sampling thread."""
_EVALUATES = "_PyEval_EvalFrameDefault"
_PYTHON = frozenset((FrameKind.PYTHON, FrameKind.LIBRARY))
_Key = tuple[int, int]
"""(pid, tid)."""


def runs_python(frame: Frame) -> bool:
    """Whether a frame is the interpreter's loop; clones of it (``.cold``) too."""
    return frame.function.startswith(_EVALUATES)


class _Python(Struct, frozen=True):
    """The Python frames at a moment, root to leaf."""

    frames: tuple[Frame, ...]
    whole: bool
    """Whether no inner frames are missing."""


class _Seen:
    """The Python samples of one thread, in order of time."""

    def __init__(self) -> None:
        self.at_ns: list[int] = []
        self.stacks: list[tuple[Frame, ...]] = []
        self.cut: list[bool] = []

    def _beside(self, at_ns: int) -> list[int]:
        """The samples before and after a moment, the nearer first."""
        after = bisect.bisect_left(self.at_ns, at_ns)
        near = [i for i in (after - 1, after) if 0 <= i < len(self.at_ns)]
        near.sort(key=lambda i: abs(self.at_ns[i] - at_ns))
        return near

    def near(self, at_ns: int) -> list[tuple[Frame, ...]]:
        """The whole stacks near enough for all of their frames to be still there, the nearer first."""
        near = [i for i in self._beside(at_ns) if abs(self.at_ns[i] - at_ns) <= NEAR_NS]
        return [self.stacks[i] for i in near if not self.cut[i]]

    def at(self, at_ns: int, loops: int) -> _Python | None:
        """Python's frames at a moment at which the interpreter's loop is on the stack ``loops`` times."""
        near = self._beside(at_ns)
        for i in near:
            fits = self.cut[i] or len(self.stacks[i]) >= loops
            if fits and abs(self.at_ns[i] - at_ns) <= NEAR_NS:
                return _Python(self.stacks[i], whole=not self.cut[i])
        if len(near) > 1 and all(abs(self.at_ns[i] - at_ns) <= FAR_NS for i in near):
            return _Python(_shared(*(self.stacks[i] for i in sorted(near))), whole=False)
        return None


def spliced(
    native: StackProfile, python: Sequence[StackProfile], *, agents: Container[_Key] = (), ours: str = ""
) -> StackProfile:
    """Native stacks with Python's frames in place of the interpreter's, where there are samples for them.

    Args:
        native: a window's stacks.
        python: the agent's samples, with the agent's own frames.
        agents: (pid, tid) of the sampling threads.
        ours: the folder from which the agent ran; its frames are left out in the end.

    Stacks that receive frames are APPROXIMATE; if inner ones are missing, TRUNCATED instead of WHOLE. Others are
    unchanged.
    """
    if not any(runs_python(frame) for frame in native.frames):
        return native
    seen = _threads(python)
    told = [_told(native.frames_of(stack)) for stack in range(len(native.stacks))]
    chains = [chain for chain, _ in told]
    loops = [len(runs) for _, runs in told]
    keys = [(thread.pid, thread.tid) for thread in native.threads]
    always = _Always(seen, [(keys[t], chains[s]) for t, s in _pairs(native) if loops[s]])
    processes = {pid: _stacks_of(seen, pid) for pid, _ in keys}
    builder = StackBuilder()
    made: dict[tuple[int, tuple[Frame, ...]], int] = {}
    numbers, flags = [], []
    columns = (native.samples.at_ns, native.samples.thread, native.samples.stack, native.samples.flags)
    for at_ns, thread, stack, flag in zip(*(column.tolist() for column in columns), strict=True):
        found = None
        known = stack != UNKNOWN and any(run.inner is not None for run in told[stack][1])
        if known and thread != UNKNOWN and keys[thread] not in agents:
            near = seen[keys[thread]].near(at_ns) if keys[thread] in seen else ()
            rooted = not flag & StackFlag.TRUNCATED
            runs = filled(told[stack][1], near, processes[keys[thread][0]], rooted=rooted)
            chain = _with_runs(chains[stack], runs)
            numbers.append(builder.stack_of(frame for frame in chain if not is_ours(frame.file, ours)))
            flags.append(_flags_of(flag, runs))
            continue
        if UNKNOWN not in (stack, thread) and loops[stack]:
            found = _at(seen, agents, always, keys[thread], at_ns, chains[stack], loops[stack])
        python_frames = () if found is None else found.frames if found.whole else (*found.frames, NOT_SAMPLED)
        key = (stack, python_frames)
        if key not in made:
            chain = _joined(chains[stack], python_frames, loops[stack]) if found is not None else chains[stack]
            made[key] = builder.stack_of(frame for frame in chain if not is_ours(frame.file, ours))
        numbers.append(made[key])
        flags.append(flag if found is None else _flags(flag, found))
    samples = replace(native.samples, stack=np.array(numbers, np.int64), flags=np.array(flags, np.int64))
    return replace(native, frames=builder.frames, stacks=builder.stacks, samples=samples)


def _told(chain: Sequence[Frame]) -> tuple[tuple[Frame, ...], list[InterpreterRun]]:
    """A native stack without Python's functions, and what each of its loops ran as far as the stack itself shows."""
    bare: list[Frame] = []
    runs: list[InterpreterRun] = []
    inside = False
    for frame in chain:
        if runs_python(frame):
            runs.append(InterpreterRun(None, alone=True))
        elif runs and frame == NOT_SAMPLED:
            runs[-1] = InterpreterRun(None, alone=False)
            continue
        elif runs and inside and frame.kind is FrameKind.PYTHON:
            inner = runs[-1].inner
            callers = runs[-1].callers if inner is None else (*runs[-1].callers, inner)
            runs[-1] = runs[-1]._replace(inner=frame, callers=callers)
            continue
        inside = runs_python(frame)
        bare.append(frame)
    return tuple(bare), runs


def _stacks_of(seen: Mapping[_Key, _Seen], pid: int) -> SampledChains:
    """The whole stacks sampled in a process."""
    return SampledChains(
        stack
        for key, samples in seen.items()
        if key[0] == pid
        for stack, cut in zip(samples.stacks, samples.cut, strict=True)
        if not cut
    )


def _with_runs(chain: Sequence[Frame], runs: InterpreterRuns) -> list[Frame]:
    """One stack, root to leaf: what each loop ran in its place; between loops, native code that is not CPython's."""
    last = max(i for i, frame in enumerate(chain) if runs_python(frame))
    parts = zip(runs.parts, runs.whole, strict=True)
    made: list[Frame] = []
    inside = False
    for i, frame in enumerate(chain):
        if runs_python(frame):
            inside = True
            part, whole = next(parts)
            made += part if whole else (NOT_SAMPLED, *part)
        elif not inside or i > last or kind_of(frame) is not FrameKind.INTERPRETER:
            made.append(frame)
    return made


def _flags_of(flags: int, runs: InterpreterRuns) -> int:
    """Flags of a native sample whose loops' functions are known."""
    whole = flags if all(runs.whole) else flags & ~StackFlag.WHOLE | StackFlag.TRUNCATED
    return int(whole | (StackFlag.APPROXIMATE if runs.sampled else 0))


def _flags(flags: int, found: _Python) -> int:
    """Flags of a native sample that received Python frames."""
    if found.frames == (AGENT,):
        return flags
    whole = flags if found.whole else flags & ~StackFlag.WHOLE | StackFlag.TRUNCATED
    return int(whole | StackFlag.APPROXIMATE)


def _pairs(native: StackProfile) -> set[tuple[int, int]]:
    """(thread, stack) of samples that have both."""
    pairs = zip(native.samples.thread.tolist(), native.samples.stack.tolist(), strict=True)
    return {(thread, stack) for thread, stack in pairs if UNKNOWN not in (thread, stack)}


def _threads(python: Sequence[StackProfile]) -> dict[_Key, _Seen]:
    found: dict[_Key, _Seen] = {}
    for profile in python:
        samples = profile.samples
        chains: dict[int, tuple[Frame, ...]] = {}
        for i in np.argsort(samples.at_ns, kind="stable").tolist():
            thread, stack = int(samples.thread[i]), int(samples.stack[i])
            if UNKNOWN in (thread, stack) or not profile.threads[thread].tid:
                continue
            if stack not in chains:
                chains[stack] = profile.frames_of(stack)
            about = profile.threads[thread]
            seen = found.setdefault((about.pid, about.tid), _Seen())
            seen.at_ns.append(int(samples.at_ns[i]))
            seen.stacks.append(chains[stack])
            seen.cut.append(bool(samples.flags[i] & StackFlag.TRUNCATED))
    return found


def _at(
    seen: dict[_Key, _Seen],
    agents: Container[_Key],
    always: _Always,
    key: _Key,
    at_ns: int,
    chain: Sequence[Frame],
    loops: int,
) -> _Python | None:
    if key in agents:
        return _Python((AGENT,), whole=True)
    near = seen[key].at(at_ns, loops) if key in seen else None
    if near is not None and near.whole:
        return near
    usual = always.of(chain, loops)
    if usual is not None and (near is None or len(usual.frames) >= len(near.frames)):
        return usual
    return near if near is not None and near.frames else None


class _Always:
    """Calls into Python that native code always makes, from whichever thread: callbacks of pools."""

    def __init__(self, seen: Mapping[_Key, _Seen], calls: Iterable[tuple[_Key, Sequence[Frame]]]) -> None:
        """``calls``: threads, with stacks sampled on them."""
        threads: dict[tuple[Frame, ...], set[_Key]] = {}
        for key, chain in calls:
            threads.setdefault(_before_python(chain), set()).add(key)
        self._found = {way: _usual([seen[key] for key in keys if key in seen]) for way, keys in threads.items()}

    def of(self, chain: Sequence[Frame], loops: int) -> _Python | None:
        """The frames always found below this native code; whole if there were never others."""
        found = self._found.get(_before_python(chain))
        if found is None or not found.whole:
            return found
        return found if len(found.frames) >= loops else None


def _usual(threads: Sequence[_Seen]) -> _Python | None:
    stacks = [stack for seen in threads for stack in seen.stacks]
    distinct = list(dict.fromkeys(stacks))
    if len(stacks) < ALWAYS:
        return None
    shared = functools.reduce(_shared, distinct)
    cut = any(any(seen.cut) for seen in threads)
    return _Python(shared, whole=not cut and all(len(stack) == len(shared) for stack in distinct)) if shared else None


def _before_python(chain: Sequence[Frame]) -> tuple[Frame, ...]:
    """The native frames that call Python first."""
    return tuple(itertools.takewhile(lambda frame: not runs_python(frame), chain))


def _shared(one: Sequence[Frame], other: Sequence[Frame]) -> tuple[Frame, ...]:
    """The frames from the root on that two stacks share; without a line where the lines differ."""
    shared = []
    for mine, yours in zip(one, other, strict=False):
        if mine == yours:
            shared.append(mine)
        elif mine._replace(line=0) == yours._replace(line=0):
            shared.append(mine._replace(line=0))
        else:
            break
    return tuple(shared)


def _joined(chain: Sequence[Frame], python: Sequence[Frame], loops: int) -> list[Frame]:
    """One stack, root to leaf."""
    places = [i for i, frame in enumerate(chain) if runs_python(frame)]
    first, last = places[0], places[-1]
    if len(python) != loops:
        return [*chain[:first], *python, *chain[last + 1 :]]
    left = iter(python)
    between = (
        next(left) if runs_python(frame) else frame
        for frame in chain[first : last + 1]
        if runs_python(frame) or kind_of(frame) is not FrameKind.INTERPRETER
    )
    return [*chain[:first], *between, *chain[last + 1 :]]


def without_python(profile: StackProfile) -> np.ndarray:
    """Whether the interpreter runs in each stack without any named Python function: bool[stack + 1]; False for stack
    -1.
    """
    loop = [runs_python(frame) for frame in profile.frames]
    named = [frame.kind in _PYTHON and frame.resolved for frame in profile.frames]
    runs: list[bool] = []
    knows: list[bool] = []
    for parent, frame in zip(profile.stacks.parent.tolist(), profile.stacks.frame.tolist(), strict=True):
        runs.append(loop[frame] or (parent != UNKNOWN and runs[parent]))
        knows.append(named[frame] or (parent != UNKNOWN and knows[parent]))
    found: np.ndarray = np.array([*(r and not k for r, k in zip(runs, knows, strict=True)), False], np.bool_)
    return found

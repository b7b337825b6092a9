"""The op for which generated code runs on a pool thread, where no op is on the stack.

oneDNN's primitives are run in parts by pool threads, while the op's own thread waits. Samples of that thread identify
the op: those that begin or end the same primitive. It is the op sampled nearest in time, if near enough; else the only
op sampled with that primitive, if sampled often enough, because oneDNN runs forward convolutions and matrix products
for several ops. Its frame is put where the pool's frames end, and such a stack is APPROXIMATE; if nothing identifies
the op, the stack keeps its primitive alone.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec.structs import replace

from stepscope.readers import native_names
from stepscope.tables.stacks import UNKNOWN, FrameKind, StackBuilder, StackFlag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.tables.stacks import Frame, StackProfile

NEAR_NS = 25_000_000
"""A sample this near identifies the op by itself."""
OFTEN = 5
"""This many samples of one op and none of another show that a primitive always belongs to it: two alternating ops would
look like one in 6 of 100 cases."""
_BACKWARD = "_bwd_"
"""Part of the names of primitives that serve the gradient of one kind of op: one sample is enough."""
_PRIMITIVE = re.compile(r"dnnl::impl::cpu::(?:x64::|aarch64::)?(\w+)")
_EXECUTES = "dnnl_primitive::execute"
"""Code below this frame runs a primitive; other code may only create one."""
_IN_POOL = ("OneDnnThreadPool", "dnnl")
_POOL = "WorkerLoop"
"""Part of the names of the functions that pool threads run."""
OP_TRACE = "[op trace]"
"""Module of a frame that comes from an op trace of the same moment (``derive.stacks.op_at_sample``)."""


_Known = dict[tuple[int, str], list[tuple[int, "Frame"]]]
"""Times at which an op ran a primitive, by process and primitive."""


class _Seen(NamedTuple):
    """A stack, root to leaf."""

    op: Frame | None
    primitive: str
    """The outermost primitive; "" for none."""
    inner: frozenset[str]
    """All primitives that its op executes."""
    place: int
    """Where the op's frame belongs."""
    traced: bool
    """Whether an op trace identified its op."""


def primitive_of(frames: Sequence[Frame]) -> str:
    """The outermost oneDNN primitive of a stack; "" for none."""
    return next((primitive for frame in frames if (primitive := _names(frame.function)[1])), "")


def place_of_op(frames: Sequence[Frame]) -> int:
    """Where an op's frame belongs in a stack: before the op's own function, else where the pool's frames end."""
    own = [i for i, frame in enumerate(frames) if native_names.computes(frame.function)]
    if own:
        return own[-1]
    inner = next((i for i, frame in enumerate(frames) if any(word in frame.function for word in _IN_POOL)), None)
    if inner is not None:
        return inner
    pool = [i + 1 for i, frame in enumerate(frames) if _POOL in frame.function]
    code = (i for i, frame in enumerate(frames) if frame.kind is FrameKind.GENERATED)
    return pool[-1] if pool else next(code, len(frames))


def has_ops_at_samples(profile: StackProfile) -> bool:
    """Whether op traces identified ops of the profile."""
    return any(frame.module == OP_TRACE for frame in profile.frames)


def without_ops_at_samples(profile: StackProfile) -> StackProfile:
    """The profile without the ops that op traces identified: its stacks are those of a profile without an op trace."""
    if not has_ops_at_samples(profile):
        return profile
    builder = StackBuilder()
    numbers: list[int] = []
    for parent, frame in zip(profile.stacks.parent.tolist(), profile.stacks.frame.tolist(), strict=True):
        caller, called = UNKNOWN if parent == UNKNOWN else numbers[parent], profile.frames[frame]
        numbers.append(caller if called.module == OP_TRACE else builder.child(caller, builder.frame(called)))
    stack = np.array([*numbers, UNKNOWN], np.int64)[profile.samples.stack]
    samples = replace(profile.samples, stack=stack)
    return replace(profile, frames=builder.frames, stacks=builder.stacks, samples=samples)


def with_ops_of_pool_threads(profiles: Sequence[StackProfile]) -> tuple[StackProfile, ...]:
    """Profiles of one session, each attached sample with its op, where it is known."""
    seen = [[_seen(profile.frames_of(stack)) for stack in range(len(profile.stacks))] for profile in profiles]
    known: _Known = defaultdict(list)
    for profile, stacks in zip(profiles, seen, strict=True):
        samples = profile.samples
        columns = (samples.at_ns, samples.thread, samples.stack)
        for at_ns, thread, stack in zip(*(column.tolist() for column in columns), strict=True):
            op = stacks[stack].op if UNKNOWN not in (stack, thread) else None
            if op is not None:
                for primitive in stacks[stack].inner:
                    known[profile.threads[thread].pid, primitive].append((at_ns, op))
    for moments in known.values():
        moments.sort(key=lambda one: one[0])
    return tuple(_attached(profile, stacks, known) for profile, stacks in zip(profiles, seen, strict=True))


def _attached(profile: StackProfile, stacks: Sequence[_Seen], known: _Known) -> StackProfile:
    samples = profile.samples
    builder = StackBuilder()
    chains = [profile.frames_of(stack) for stack in range(len(profile.stacks))]
    numbers, flags = samples.stack.copy(), samples.flags.copy()
    changed = False
    columns = (samples.at_ns, samples.thread, samples.stack, samples.flags)
    for i, (at_ns, thread, stack, flag) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        if stack == UNKNOWN:
            continue
        about, chain = stacks[stack], chains[stack]
        op = None
        if flag & StackFlag.ATTACHED and about.op is None and not about.traced and thread != UNKNOWN:
            moments = known.get((profile.threads[thread].pid, about.primitive), ())
            op = _op_at(moments, at_ns, 1 if _BACKWARD in about.primitive else OFTEN)
        if op is not None:
            changed = True
            chain = (*chain[: about.place], op, *chain[about.place :])
            flags[i] = flag | StackFlag.APPROXIMATE
        numbers[i] = builder.stack_of(chain)
    if not changed:
        return profile
    return replace(
        profile,
        frames=builder.frames,
        stacks=builder.stacks,
        samples=replace(samples, stack=numbers, flags=flags.astype(np.int64)),
    )


def _op_at(moments: Sequence[tuple[int, Frame]], at_ns: int, often: int) -> Frame | None:
    """The op of a primitive at a moment."""
    after = bisect.bisect_left(moments, at_ns, key=lambda one: one[0])
    near = [one for one in moments[max(after - 1, 0) : after + 1] if abs(one[0] - at_ns) <= NEAR_NS]
    if near:
        return min(near, key=lambda one: abs(one[0] - at_ns))[1]
    alone = len(moments) >= often and len({op.function for _, op in moments}) == 1
    return moments[0][1] if alone else None


def _seen(frames: Sequence[Frame]) -> _Seen:
    names = [_names(frame.function) for frame in frames]
    ops = [i for i, frame in enumerate(frames) if native_names.computes(frame.function)]
    executes = next((i for i, (short, _) in enumerate(names) if short == _EXECUTES), len(names))
    inner = frozenset(primitive for _, primitive in names[executes:] if primitive) if ops else frozenset()
    return _Seen(
        op=frames[ops[-1]] if ops else None,
        primitive=primitive_of(frames),
        inner=inner,
        place=place_of_op(frames),
        traced=any(frame.module == OP_TRACE for frame in frames),
    )


@functools.lru_cache(maxsize=4096)
def _names(function: str) -> tuple[str, str]:
    """(short name, oneDNN primitive) of a function; "" for none."""
    found = _PRIMITIVE.search(function)
    return native_names.short(function), found[1] if found is not None else ""

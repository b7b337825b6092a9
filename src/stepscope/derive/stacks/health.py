"""How far a profile can be trusted: truncated stacks, frames without names, samples without frames.

A native stack is whole if it reaches the start of its thread. The capturing tool may know (``StackFlag``); otherwise
the outermost frames decide, which are a short list. Sources that know only names or only Python do not say.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.stacks.op_of_pool_thread import OP_TRACE
from stepscope.derive.stacks.splice import without_python
from stepscope.readers import native_names
from stepscope.tables.stacks import UNKNOWN, Frame, FrameKind, StackFlag

if TYPE_CHECKING:
    from stepscope.tables.records import Bool
    from stepscope.tables.stacks import StackProfile

_START = re.compile(
    r"_start|__libc_start_main(_impl)?(@.*)?|__libc_start_call_main|__start_main|main|Py_BytesMain|start_thread|"
    r"(__)?clone3?(\.internal)?|thread_start|ret_from_fork(_asm)?|secondary_startup_64\w*|x86_64_start_kernel|"
    r"start_kernel|start_secondary|cpu_startup_entry|kthread|_dl_start_user|_dl_start|runtime\.(goexit|mstart|main)(\.abi0)?"
)
"""Functions in which threads start: user programs, glibc, the kernel, Go."""
_LIBC = re.compile(r"libc([.-].*)?\.so[.\d]*|libpthread[.-].*")
_OUTER = 4
"""Number of outermost frames searched for the thread's start: a process name or garbage may stand before it."""
_LIBC_DEPTH = 3
"""Minimum depth at which a thread's start in a libc without symbols is trusted: shallower stacks are broken chains."""
_IDLE_THREADS = frozenset({"swapper"})
_IDLE_NAME = re.compile(r"swapper(/\d+)?")
_MACHINE = frozenset(
    {
        FrameKind.NATIVE,
        FrameKind.KERNEL,
        FrameKind.GENERATED,
        FrameKind.INTERPRETER,
        FrameKind.FRAMEWORK,
        FrameKind.MATH,
        FrameKind.ALLOCATOR,
    }
)


class Health(Struct, frozen=True, kw_only=True):
    """Shares of a profile's weight. ``truncated_ratio`` is None if the source does not say."""

    unresolved_leaf_ratio: float
    """Samples whose innermost frame has no name."""
    unresolved_ratio: float
    """Samples with any frame without a name."""
    truncated_ratio: float | None
    """Samples whose stack does not reach its thread's start, or lacks frames between, among those whose source says so.
    """
    attached_ratio: float
    """Samples in generated code that was attached to its callers."""
    without_op_ratio: float
    """The part of ``attached_ratio`` whose op is unknown."""
    approximate_ratio: float
    """Samples whose Python frames, or callers of generated code, come from a sample close in time."""
    unnamed_python_ratio: float
    """Samples in which the interpreter runs but no Python function is known."""
    frameless_ratio: float
    """Samples without any frame."""


def health(profile: StackProfile) -> Health:
    """The shares of a profile that are not whole or have no name."""
    samples, weight = profile.samples, profile.samples.weight
    total = float(weight.sum())

    def ratio(mask: Bool) -> float:
        return float(weight[mask].sum()) / total if total else 0.0

    unnamed = np.array([not frame.resolved for frame in profile.frames], np.bool_)
    leaf, within = _marks(profile, unnamed)
    none = samples.stack == UNKNOWN
    attached = (samples.flags & StackFlag.ATTACHED) != 0
    told = (samples.flags & (StackFlag.WHOLE | StackFlag.TRUNCATED | StackFlag.ATTACHED)) != 0
    return Health(
        unresolved_leaf_ratio=ratio(none | leaf[samples.stack]),
        unresolved_ratio=ratio(none | within[samples.stack]),
        truncated_ratio=ratio((samples.flags & StackFlag.TRUNCATED) != 0) if told.any() else None,
        attached_ratio=ratio(attached),
        without_op_ratio=ratio(attached & ~_with_op(profile)[samples.stack]) if attached.any() else 0.0,
        approximate_ratio=ratio((samples.flags & StackFlag.APPROXIMATE) != 0),
        unnamed_python_ratio=ratio(without_python(profile)[samples.stack]),
        frameless_ratio=ratio(none),
    )


def _with_op(profile: StackProfile) -> Bool:
    """Whether each stack contains the op that it works for; the last entry is for stack -1."""
    op = [frame.module == OP_TRACE or native_names.computes(frame.function) for frame in profile.frames]
    return _marks(profile, np.array(op, np.bool_))[1]


def _marks(profile: StackProfile, mark: Bool) -> tuple[Bool, Bool]:
    """Whether the leaf of each stack is marked, and whether any of its frames is; the last entry is for stack -1."""
    leaf = mark[profile.stacks.frame] if len(profile.stacks) else np.zeros(0, np.bool_)
    within = leaf.tolist()
    for stack, parent in enumerate(profile.stacks.parent.tolist()):
        within[stack] = within[stack] or (parent >= 0 and within[parent])
    last = np.zeros(1, np.bool_)
    return np.concatenate([leaf, last]), np.concatenate([np.array(within, np.bool_), last])


def with_roots_checked(profile: StackProfile) -> StackProfile:
    """The profile with WHOLE or TRUNCATED on each native sample; unchanged where its source has said so already."""
    samples = profile.samples
    told = np.any(samples.flags & (StackFlag.WHOLE | StackFlag.TRUNCATED))
    if told or not any(frame.kind in _MACHINE for frame in profile.frames):
        return profile
    whole = np.array([_is_whole(profile, stack) for stack in range(len(profile.stacks))] + [False], np.bool_)
    flags = samples.flags | np.where(whole[samples.stack], StackFlag.WHOLE, StackFlag.TRUNCATED).astype(np.int64)
    return replace(profile, samples=replace(samples, flags=flags))


def _is_whole(profile: StackProfile, stack: int) -> bool:
    frames = profile.frames_of(stack)
    outer = frames[:_OUTER]
    if any(_START.fullmatch(frame.function) for frame in outer):
        return True
    native = next((frame for frame in outer if frame.kind is not FrameKind.OTHER), None)
    return len(frames) >= _LIBC_DEPTH and native is not None and _is_bare_libc(native)


def _is_bare_libc(frame: Frame) -> bool:
    return not frame.resolved and _LIBC.fullmatch(frame.module.rpartition("/")[2]) is not None


def without_idle(profile: StackProfile) -> tuple[StackProfile, float]:
    """The profile without the kernel's idle tasks, and the weight removed.

    Idle tasks are threads of pid 0, or stacks whose outermost frame is that process's name.
    """
    idle = np.array([t.pid == 0 and t.name in _IDLE_THREADS for t in profile.threads] + [False], np.bool_)
    samples = profile.samples
    out = idle[samples.thread]
    roots = [bool(_IDLE_NAME.fullmatch(frame.function)) and not frame.module for frame in profile.frames]
    if any(roots):
        below: list[bool] = []
        for parent, frame in zip(profile.stacks.parent.tolist(), profile.stacks.frame.tolist(), strict=True):
            below.append(roots[frame] if parent == UNKNOWN else below[parent])
        out = out | np.array([*below, False], np.bool_)[samples.stack]
    if not out.any():
        return profile, 0.0
    return replace(profile, samples=samples.take(~out)), float(samples.weight[out].sum())

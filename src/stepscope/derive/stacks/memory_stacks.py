"""Profiles whose weights are bytes of memory: which events they are, and the places in the user's code that they name.

Serves ``stepscope trace --kind memory``.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.stacks.frame_kinds import kind_of
from stepscope.derive.stacks.own_frames import is_ours
from stepscope.readers import native_names
from stepscope.tables.made_frames import GROWTH, HIGHEST
from stepscope.tables.stacks import Frame, FrameKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.tables.stacks import StackProfile

SAID = {
    GROWTH: "memory that came in a capture and was still there at its end",
    HIGHEST: "all memory at the highest moment of a capture",
}
"""What each covers."""
EVENTS = (GROWTH, HIGHEST)
_TELLING = {FrameKind.FRAMEWORK, FrameKind.MATH, FrameKind.NATIVE}
"""Kinds of code whose innermost function is the place, where no Python is on the stack."""


def highest(profiles: Sequence[StackProfile]) -> list[StackProfile]:
    """The profiles; of those of a highest moment only the one with the most memory: moments do not add up."""
    moments = [one for one in profiles if one.event == HIGHEST]
    kept = max(moments, key=lambda one: one.total, default=None)
    return [one for one in profiles if one.event != HIGHEST or one is kept]


def places(profile: StackProfile, ours: str = "") -> list[tuple[str, float]]:
    """(place, bytes), most first: the innermost line of the user's Python on each stack; else what its code is.

    ``ours``: the folder from which the agent ran, whose code is not the user's.
    """
    stacks = profile.samples.stack
    sums = np.bincount(stacks[stacks >= 0], profile.samples.weight[stacks >= 0], minlength=len(profile.stacks))
    found: dict[str, float] = defaultdict(float)
    for stack in np.flatnonzero(sums).tolist():
        found[_place(profile.frames_of(stack), ours)] += float(sums[stack])
    return sorted(found.items(), key=lambda pair: -pair[1])


def _place(frames: Sequence[Frame], ours: str) -> str:
    """A library's function, an op or other native code where no line of the user is on the stack."""
    python = [f for f in reversed(frames) if f.kind is FrameKind.PYTHON and not is_ours(f.file, ours)]
    for frame in python:
        if kind_of(frame) is FrameKind.PYTHON and frame.line and not frame.file.startswith("<"):
            return f"{frame.file.rpartition('/')[2]}:{frame.line} {frame.function}"
    for frame in python:
        return f"{frame.function} ({'/'.join(frame.file.split('/')[-2:])}:{frame.line})"
    native = (f.function for f in reversed(frames) if f.resolved and kind_of(f) in _TELLING)
    return native_names.owner(frames) or native_names.short(next(native, frames[0].function))


def shares(profile: StackProfile, ours: str = "") -> list[tuple[str, float]]:
    """(place, share of the whole), most first; see ``places``."""
    total = float(np.sum(profile.samples.weight)) or 1.0
    return [(place, weight / total) for place, weight in places(profile, ours)]

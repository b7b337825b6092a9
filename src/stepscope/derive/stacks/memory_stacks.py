"""Profiles whose weights are bytes of memory: which events they are, and the places in the user's code that they name.

Serves ``stepscope trace --kind memory``.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.stacks.frame_kinds import kind_of
from stepscope.model.session.stacks import UNKNOWN, Frame, FrameKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.session.stacks import StackProfile

GROWTH, HIGHEST = "memory-growth", "memory-peak"
"""Event names: memory that came in a window and stayed; all memory at the window's highest moment."""
SAID = {
    GROWTH: "memory that came in a capture and was still there at its end",
    HIGHEST: "all memory at the highest moment of a capture",
}
"""What each covers."""
EVENTS = (GROWTH, HIGHEST)
BEFORE = Frame("[there before the capture]", kind=FrameKind.OTHER)
OTHER = Frame("[came without a page fault]", kind=FrameKind.OTHER)
_OF_PYTHON = {FrameKind.PYTHON, FrameKind.LIBRARY}
_TELLING = {FrameKind.FRAMEWORK, FrameKind.MATH, FrameKind.NATIVE}
"""Kinds of code whose innermost function is the place, where no Python is on the stack."""
SOME = 1.05
"""Ratio from which on two amounts of memory differ in a text."""


def highest(profiles: Sequence[StackProfile]) -> list[StackProfile]:
    """The profiles; of those of a highest moment only the one with the most memory: moments do not add up."""
    moments = [one for one in profiles if one.event == HIGHEST]
    kept = max(moments, key=lambda one: one.total, default=None)
    return [one for one in profiles if one.event != HIGHEST or one is kept]


def places(profile: StackProfile, ours: str = "") -> list[tuple[str, float]]:
    """(place, bytes), most first: the innermost line of the user's Python on each stack; else what its code is.

    ``ours``: the folder from which the agent ran, whose code is not the user's.
    """
    named = _names(profile, ours)
    found: dict[str, float] = defaultdict(float)
    for stack, weight in zip(profile.samples.stack.tolist(), profile.samples.weight.tolist(), strict=True):
        thread = "" if stack == UNKNOWN else named[stack]
        found[thread or "[unknown]"] += weight
    return sorted(found.items(), key=lambda pair: -pair[1])


def _names(profile: StackProfile, ours: str) -> list[str]:
    """For each stack its place."""
    own: list[str] = []
    other: list[str] = []
    for parent, leaf in zip(profile.stacks.parent.tolist(), profile.stacks.frame.tolist(), strict=True):
        frame = profile.frames[leaf]
        kind = kind_of(frame)
        said = own[parent] if parent != UNKNOWN else ""
        named = other[parent] if parent != UNKNOWN else ""
        if kind in _OF_PYTHON and ours and frame.file.startswith(ours):
            pass
        elif kind is FrameKind.PYTHON and frame.line and not frame.file.startswith("<"):
            said = f"{frame.file.rpartition('/')[2]}:{frame.line} {frame.function}"
        elif kind is FrameKind.LIBRARY:
            named = f"{frame.function} ({'/'.join(frame.file.split('/')[-2:])}:{frame.line})"
        elif not named or (frame.resolved and kind in _TELLING):
            named = frame.function
        own.append(said)
        other.append(named)
    return [mine or its for mine, its in zip(own, other, strict=True)]


def shares(profile: StackProfile, ours: str = "") -> list[tuple[str, float]]:
    """(place, share of the whole), most first; see ``places``."""
    total = float(np.sum(profile.samples.weight)) or 1.0
    return [(place, weight / total) for place, weight in places(profile, ours)]

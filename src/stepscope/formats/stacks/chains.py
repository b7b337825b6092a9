"""A sample's frames as other tools get them: a stack whose outer part is missing says so in its outermost frame.

No format has a word for it, and merged with whole ones such a stack would count as one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.formats.stacks.labels import UNKNOWN_NAME
from stepscope.model.stacks import Frame, StackFlag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.stacks import StackProfile

TRUNCATED = Frame("[truncated]")
"""Stands in the place of the frames that are missing."""
NO_FRAME = Frame(UNKNOWN_NAME, resolved=False)
"""Stands for a sample that has no frame at all."""


def chain_of(profile: StackProfile, stack: int, flags: int) -> tuple[Frame, ...]:
    """The frames of a sample, root to leaf, at least one."""
    frames = profile.frames_of(stack) or (NO_FRAME,)
    return (TRUNCATED, *frames) if flags & StackFlag.TRUNCATED else frames


def split_truncated(frames: Sequence[Frame]) -> tuple[int, Sequence[Frame]]:
    """Flags and frames of a chain that was written here; the mark may stand below a thread's name."""
    for at, frame in enumerate(frames[:2]):
        if frame.function == TRUNCATED.function:
            return int(StackFlag.TRUNCATED), [*frames[:at], *frames[at + 1 :]]
    return 0, frames

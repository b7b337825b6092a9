"""A sample's frames as exported: a stack whose outer part is missing says so in its outermost frame.

No format has a field for this, and merged with whole stacks such a stack would count as one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.readers.stacks.labels import UNKNOWN_NAME
from stepscope.tables.stacks import UNKNOWN, Frame, StackFlag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.tables.stacks import StackProfile

TRUNCATED = Frame("[truncated]")
"""Frame in the place of the missing frames."""
NO_FRAME = Frame(UNKNOWN_NAME, resolved=False)
"""Frame of a sample that has none."""


class FrameChains:
    """The samples' frames of one profile, as indices into ``frames``: the profile's, and the two stand-ins."""

    def __init__(self, profile: StackProfile) -> None:
        """Use the frames of ``profile``."""
        self.frames = (*profile.frames, TRUNCATED, NO_FRAME)
        self._truncated, self._no_frame = len(profile.frames), len(profile.frames) + 1
        self._parents, self._leaves = profile.stacks.parent.tolist(), profile.stacks.frame.tolist()

    def of(self, stack: int, flags: int) -> list[int]:
        """A sample's frames, root to leaf, at least one."""
        parents, leaves = self._parents, self._leaves
        chain = []
        while stack != UNKNOWN:
            chain.append(leaves[stack])
            stack = parents[stack]
        if not chain:
            chain.append(self._no_frame)
        if flags & StackFlag.TRUNCATED:
            chain.append(self._truncated)
        chain.reverse()
        return chain


def split_truncated(frames: Sequence[Frame]) -> tuple[int, Sequence[Frame]]:
    """Flags and frames of an exported chain; the mark may follow a thread's name."""
    for at, frame in enumerate(frames[:2]):
        if frame.function == TRUNCATED.function:
            return int(StackFlag.TRUNCATED), [*frames[:at], *frames[at + 1 :]]
    return 0, frames

"""The stacks of many sessions as one profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.readers.stacks.folded import samples_of
from stepscope.readers.stacks.labels import frame_of
from stepscope.tables.stacks import StackBuilder, StackProfile

if TYPE_CHECKING:
    from collections.abc import Sequence


def profile_of(stacks: Sequence[tuple[str, int]], event: str) -> StackProfile:
    """A profile of folded stacks with weights in ns."""
    builder = StackBuilder()
    frames: dict[str, int] = {}
    rows = []
    for text, _ in stacks:
        labels = text.split(";")
        for label in labels:
            if label not in frames:
                frames[label] = builder.frame(frame_of(label))
        rows.append(builder.stack(frames[label] for label in labels))
    return StackProfile(
        event=event,
        unit="ns",
        frames=builder.frames,
        stacks=builder.stacks,
        samples=samples_of(rows, [float(weight) for _, weight in stacks], [0] * len(rows)),
    )

"""A profile ready to be drawn: every sample has a place, truncated stacks stand apart, small ones are merged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.stacks.call_tree import stack_totals
from stepscope.readers.stacks.chains import FrameChains
from stepscope.tables.stacks import UNKNOWN, Frame, StackBuilder, StackFlag

if TYPE_CHECKING:
    from stepscope.tables.records import F64, I64
    from stepscope.tables.stacks import StackProfile

SMALL = Frame("[too small to draw]", resolved=True)
"""Frame that stands for merged stacks."""


def drawn(profile: StackProfile) -> StackProfile:
    """The profile with a stack for each sample.

    Truncated stacks hang below a frame ``[truncated]``: merged with whole ones they would count as whole. A sample
    without frames becomes ``[unknown]``. Stacks in which no sample ends or passes through are dropped.
    """
    samples = profile.samples
    builder = StackBuilder()
    keys = np.stack([samples.stack, samples.flags & StackFlag.TRUNCATED])
    unique, place = np.unique(keys, axis=1, return_inverse=True)
    chains = FrameChains(profile)
    of_frames: dict[int, int] = {}

    def frame(number: int) -> int:
        if number not in of_frames:
            of_frames[number] = builder.frame(chains.frames[number])
        return of_frames[number]

    numbers = np.array([builder.stack(map(frame, chains.of(*key))) for key in unique.T.tolist()], np.int64)
    stack = numbers[place.reshape(-1)] if len(samples) else samples.stack
    return replace(profile, frames=builder.frames, stacks=builder.stacks, samples=replace(samples, stack=stack))


class Cut(Struct, frozen=True, kw_only=True):
    """Summary of what was merged."""

    stacks: int
    """Number of stacks drawn as one of ``SMALL``."""
    weight_ratio: float
    """Their share of the weight."""
    below: float
    """Stacks with a smaller total are merged."""


def cut(profile: StackProfile, weights: F64, most: int) -> tuple[StackProfile, I64, Cut | None]:
    """The profile cut to about ``most`` stacks: the smallest are merged into a child ``SMALL`` of the caller that is
    kept.

    ``weights``: float64[sample], the measure of stacks. Returns the new profile, int64[stack] the new number of each
    old stack, and a summary if anything was merged. Every sample must have a stack.
    """
    parents = profile.stacks.parent
    if len(parents) <= most:
        return profile, np.arange(len(parents)), None
    totals = stack_totals(profile, weights).total
    below = float(np.partition(totals, len(totals) - most)[len(totals) - most])
    kept = totals > below if np.count_nonzero(totals >= below) > most else totals >= below
    builder = StackBuilder()
    frames = [builder.frame(frame) for frame in profile.frames]
    small = builder.frame(SMALL)
    numbers: list[int] = []
    for parent, frame, keep in zip(parents.tolist(), profile.stacks.frame.tolist(), kept.tolist(), strict=True):
        above = UNKNOWN if parent == UNKNOWN else numbers[parent]
        if keep:
            numbers.append(builder.child(above, frames[frame]))
        elif parent != UNKNOWN and not kept[parent]:
            numbers.append(above)
        else:
            numbers.append(builder.child(above, small))
    new = np.array(numbers, np.int64)
    merged = ~kept[profile.samples.stack]
    return (
        replace(
            profile,
            frames=builder.frames,
            stacks=builder.stacks,
            samples=replace(profile.samples, stack=new[profile.samples.stack]),
        ),
        new,
        Cut(
            stacks=int(np.count_nonzero(~kept)),
            weight_ratio=float(weights[merged].sum() / weights.sum()) if weights.sum() else 0.0,
            below=below,
        ),
    )

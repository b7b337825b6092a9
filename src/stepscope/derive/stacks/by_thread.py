"""A profile as the page draws it: stacks below their threads, and ending in ``WAITS`` where the thread was on no CPU.

Threads whose names differ in numbers alone (those of one pool) are one; of a single one there is nothing to tell apart.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from stepscope.tables.stacks import UNKNOWN, Frame, StackBuilder, StackFlag

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.tables.stacks import StackProfile, Thread

WAITS = Frame("[waits]")
"""Innermost frame of the samples in which the thread was on no CPU."""
_NUMBERS = re.compile(r"(?:[-_ /]*\d+)+$")


def by_thread(profile: StackProfile, *, apart: bool = True) -> StackProfile:
    """The same samples, each below a frame that names its thread or pool, if there are several of them.

    ``apart``: false for no such frames. Samples with ``StackFlag.WAITING`` end in ``WAITS``. Every sample must have a
    stack.
    """
    samples = profile.samples
    pools = pools_of(profile.threads, set(samples.thread.tolist())) if apart else {}
    several = len(set(pools.values())) > 1
    waiting = samples.flags & StackFlag.WAITING
    if not len(samples) or (not several and not waiting.any()):
        return profile
    names = sorted(set(pools.values())) if several else [""]
    place = {name: i for i, name in enumerate(names)}
    owner = np.array([place[pools[number]] if several else 0 for number in samples.thread.tolist()], np.int64)
    unique, back = np.unique(np.stack([owner, samples.stack, waiting]), axis=1, return_inverse=True)
    builder = StackBuilder()
    roots = [builder.stack_of([Frame(name)]) if several else UNKNOWN for name in names]
    frames = [builder.frame(frame) for frame in profile.frames]
    parents, leaves = profile.stacks.parent.tolist(), profile.stacks.frame.tolist()
    made: list[dict[int, int]] = [{UNKNOWN: root} for root in roots]
    numbers = []
    for pool, stack, waits in unique.T.tolist():
        known, above, below = made[pool], stack, []
        while above not in known:
            below.append(above)
            above = parents[above]
        for each in reversed(below):
            known[each] = builder.child(known[parents[each]], frames[leaves[each]])
        numbers.append(builder.stack_of([WAITS], parent=known[stack]) if waits else known[stack])
    stack = np.array(numbers, np.int64)[back.reshape(-1)]
    return replace(profile, frames=builder.frames, stacks=builder.stacks, samples=replace(samples, stack=stack))


def pools_of(threads: Sequence[Thread], used: set[int]) -> Mapping[int, str]:
    """The name of the thread or pool of each of these threads (indices; -1: not known)."""
    members: defaultdict[str, list[int]] = defaultdict(list)
    for number in sorted(used):
        name = threads[number].name if number != UNKNOWN else ""
        members[_NUMBERS.sub("", name) or name].append(number)
    return {number: _title(name, threads, numbers) for name, numbers in members.items() for number in numbers}


def _title(name: str, threads: Sequence[Thread], numbers: Sequence[int]) -> str:
    only = threads[numbers[0]].name if len(numbers) == 1 and numbers[0] != UNKNOWN else name
    if len(numbers) == 1:
        return f"[{only or 'thread without a name'}]"
    return f"[{name}: {len(numbers)} threads]" if name else f"[{len(numbers)} threads without names]"


def waiting_ratio(profile: StackProfile) -> float:
    """Share of the weight in samples in which the thread was on no CPU."""
    weight = profile.samples.weight
    waits = (profile.samples.flags & StackFlag.WAITING) != 0
    return float(weight[waits].sum() / weight.sum()) if weight.sum() else 0.0

"""Several profiles as one, and two profiles on one tree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from stepscope.model.session.stacks import UNKNOWN, SampleTable, StackBuilder, StackProfile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stepscope.model.records import I64
    from stepscope.model.session.stacks import Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two profiles whose stacks are numbered by one tree."""

    before: StackProfile
    after: StackProfile


def merged(profiles: Sequence[StackProfile]) -> StackProfile:
    """Windows of one event as one profile, with the description of the first.

    ``begin_ns`` and ``end_ns`` span all windows. At least one profile is expected.
    """
    first, *others = profiles
    if not others:
        return first
    builder = StackBuilder()
    threads = list(dict.fromkeys(thread for profile in profiles for thread in profile.threads))
    number = {thread: i for i, thread in enumerate(threads)}
    parts = []
    for profile in profiles:
        of_threads = np.array([number[thread] for thread in profile.threads] + [UNKNOWN], np.int64)
        parts.append(
            replace(
                profile.samples,
                stack=_translated(profile, builder, _itself)[profile.samples.stack],
                thread=of_threads[profile.samples.thread],
            )
        )
    return replace(
        first,
        name="",
        frames=builder.frames,
        stacks=builder.stacks,
        samples=SampleTable.concat(parts),
        threads=tuple(threads),
        begin_ns=min(profile.begin_ns for profile in profiles),
        end_ns=max(profile.end_ns for profile in profiles),
        lost=sum(profile.lost for profile in profiles),
        unread=sum(profile.unread for profile in profiles),
        diagnostics=tuple(dict.fromkeys(one for profile in profiles for one in profile.diagnostics)),
    )


def _itself(frame: Frame) -> Frame:
    return frame


def paired(before: StackProfile, after: StackProfile, *, same: Callable[[Frame], Frame]) -> Pair:
    """Both profiles on one tree. ``same`` maps a frame to what must be equal for two frames to count as one."""
    builder = StackBuilder()
    maps = [_translated(profile, builder, same) for profile in (before, after)]
    both = [
        replace(
            profile,
            frames=builder.frames,
            stacks=builder.stacks,
            samples=replace(profile.samples, stack=of_stacks[profile.samples.stack]),
        )
        for profile, of_stacks in zip((before, after), maps, strict=True)
    ]
    return Pair(before=both[0], after=both[1])


def _translated(profile: StackProfile, builder: StackBuilder, same: Callable[[Frame], Frame]) -> I64:
    """The builder's number of each stack, int64[stack + 1]; the last entry is for stack -1."""
    frames = [builder.frame(same(frame)) for frame in profile.frames]
    numbers: list[int] = []
    for parent, frame in zip(profile.stacks.parent.tolist(), profile.stacks.frame.tolist(), strict=True):
        numbers.append(builder.child(UNKNOWN if parent == UNKNOWN else numbers[parent], frames[frame]))
    return np.array([*numbers, UNKNOWN], np.int64)


def function_of(frame: Frame) -> Frame:
    """A frame without what differs between two runs of one program: its line and the location of files."""
    return frame._replace(
        file=frame.file.replace("\\", "/").rpartition("/")[2], line=0, module=frame.module.rpartition("/")[2]
    )

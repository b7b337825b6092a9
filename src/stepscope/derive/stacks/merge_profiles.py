"""Several profiles as one, and two profiles on one tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.tables.stacks import UNKNOWN, SampleTable, StackBuilder, StackProfile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stepscope.tables.records import I64
    from stepscope.tables.stacks import Frame

MODULE = "<module>"
"""Function of a Python file's own code."""


class Pair(Struct, frozen=True, kw_only=True):
    """Two profiles whose stacks are numbered by one tree."""

    before: StackProfile
    after: StackProfile
    scripts: tuple[str, str] = ("", "")
    """File names of the two programs, if they differ: functions of the first stand under the name of the second."""


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
    """Both profiles on one tree. ``same`` maps a frame to what must be equal for two frames to count as one.

    Where the two programs are files of different names, the code of the first is compared with that of the second.
    """
    builder = StackBuilder()
    scripts = _scripts(before, after)

    def moved(frame: Frame) -> Frame:
        found = same(frame)
        return found._replace(file=scripts[1]) if scripts[0] and _file_name(found) == scripts[0] else found

    maps = [_translated(before, builder, moved), _translated(after, builder, same)]
    both = [
        replace(
            profile,
            frames=builder.frames,
            stacks=builder.stacks,
            samples=replace(profile.samples, stack=of_stacks[profile.samples.stack]),
        )
        for profile, of_stacks in zip((before, after), maps, strict=True)
    ]
    return Pair(before=both[0], after=both[1], scripts=scripts)


def _scripts(before: StackProfile, after: StackProfile) -> tuple[str, str]:
    """The two programs, if they have different names and neither is also a file of the other side."""
    one, other = _script_of(before), _script_of(after)
    apart = one and other and one != other
    if not apart or one in _files(after) or other in _files(before):
        return "", ""
    return one, other


def _files(profile: StackProfile) -> set[str]:
    return {_file_name(frame) for frame in profile.frames}


def _script_of(profile: StackProfile) -> str:
    """The program that Python was started with: the file of the outermost ``<module>`` of most samples; "" for none."""
    files: list[str] = []
    for parent, frame in zip(profile.stacks.parent.tolist(), profile.stacks.frame.tolist(), strict=True):
        above = "" if parent == UNKNOWN else files[parent]
        own = profile.frames[frame]
        files.append(above or (_file_name(own) if own.function == MODULE else ""))
    weights: dict[str, float] = {}
    for stack, weight in zip(profile.samples.stack.tolist(), profile.samples.weight.tolist(), strict=True):
        if stack != UNKNOWN and files[stack]:
            weights[files[stack]] = weights.get(files[stack], 0.0) + weight
    return max(weights, key=lambda name: weights[name], default="")


def _file_name(frame: Frame) -> str:
    return frame.file.replace("\\", "/").rpartition("/")[2]


def _translated(profile: StackProfile, builder: StackBuilder, same: Callable[[Frame], Frame]) -> I64:
    """The builder's number of each stack, int64[stack + 1]; the last entry is for stack -1."""
    frames = [builder.frame(same(frame)) for frame in profile.frames]
    numbers: list[int] = []
    for parent, frame in zip(profile.stacks.parent.tolist(), profile.stacks.frame.tolist(), strict=True):
        numbers.append(builder.child(UNKNOWN if parent == UNKNOWN else numbers[parent], frames[frame]))
    return np.array([*numbers, UNKNOWN], np.int64)


def function_of(frame: Frame) -> Frame:
    """A frame without what differs between two runs of one program: its line and the location of files."""
    return frame._replace(file=_file_name(frame), line=0, module=frame.module.rpartition("/")[2])

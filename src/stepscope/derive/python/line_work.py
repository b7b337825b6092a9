"""What the lines of a finding do, by the stacks sampled below them: which library function has their time, what runs
innermost there, of which kind that work is, and whether the thread ran.

Parts are shares of the lines' sampled time. Nothing is counted here: a sample says where time is, not how many calls.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.numeric import proportion
from stepscope.derive.python import doing, library_work, stack_samples, wait_reasons
from stepscope.derive.python.framework_files import is_framework

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.python.library_work import SourceOf, WorkKind
    from stepscope.derive.python.stack_samples import Sample
    from stepscope.derive.python.wait_reasons import Reason

MIN_SAMPLES = 8
"""Fewer say nothing of what lines do."""
LEAST = 0.10
"""Parts below this share of the lines' time are left out."""
MOST_PARTS = 3
_QUIET = frozenset({"runs", "gil", "unknown", "native"})
"""What a look finds that is no wait for something."""


class Part(Struct, frozen=True, kw_only=True):
    """A part of the time of some lines."""

    kind: WorkKind
    entry: str
    """The library's function that the line calls; "": the line itself, or C code that it calls, which has no frame."""
    innermost: str
    """The innermost Python function in most of this part, if it is another one."""
    framework: bool
    """Whether the function is a framework's."""
    ratio: float
    low: float
    high: float


class Waited(Struct, frozen=True, kw_only=True):
    """What looks found the thread to wait for on these lines."""

    reason: Reason
    call: str
    target: str
    looks: int


class Work(Struct, frozen=True, kw_only=True):
    """What lines do."""

    samples: int
    parts: tuple[Part, ...]
    """The largest first."""
    ran_ratio: float | None
    """Share of the time on a CPU; None where the thread has no CPU clock."""
    waited: Waited | None = None
    """The most frequent wait, where most looks that found one agree."""

    @property
    def framework(self) -> bool:
        """Whether most of the time is a framework's."""
        return 2 * sum(part.ratio for part in self.parts if part.framework) > 1.0


def build(taken: Sequence[Sample], source_of: SourceOf) -> Work | None:
    """What the lines of some samples do; None if too few show it. ``source_of``: the text of a user's file."""
    mine = [one for one in taken if one.culprit is not None and not one.in_agent and one.weight_ns]
    if len(mine) < MIN_SAMPLES:
        return None
    whole = stack_samples.weight_of(mine)
    groups: dict[tuple[WorkKind, str, bool], list[Sample]] = defaultdict(list)
    for one in mine:
        groups[library_work.of(one, source_of), stack_samples.called(one), one.in_tensorflow].append(one)
    parts = [_part(key, members, mine, source_of) for key, members in groups.items()]
    parts = sorted((part for part in parts if part.ratio >= LEAST), key=lambda part: -part.ratio)
    clock = any(one.on_cpu for one in mine)
    return Work(
        samples=len(mine),
        parts=tuple(parts[:MOST_PARTS]),
        ran_ratio=stack_samples.weight_of(one for one in mine if one.on_cpu) / whole if clock else None,
        waited=_waited(mine, source_of),
    )


def _part(
    key: tuple[WorkKind, str, bool], members: Sequence[Sample], of: Sequence[Sample], source_of: SourceOf
) -> Part:
    kind, entry, framework = key
    ratio = stack_samples.weight_of(members) / stack_samples.weight_of(of)
    low, high = proportion.interval(ratio, proportion.effective(one.weight_ns for one in of))
    leaves: Counter[str] = Counter()
    for one in members:
        leaf = one.leaf
        if not leaf.own and not stack_samples.is_agent(leaf.file) and is_framework(leaf.file) == framework:
            leaves[leaf.function] += one.weight_ns
    innermost, weight = leaves.most_common(1)[0] if leaves else ("", 0)
    most = 2 * weight > stack_samples.weight_of(members)
    return Part(
        kind=kind,
        entry=_written(entry, members[0], source_of),
        innermost=innermost if most and innermost != entry else "",
        framework=framework,
        ratio=ratio,
        low=low,
        high=high,
    )


def _written(entry: str, sample: Sample, source_of: SourceOf) -> str:
    """A function of a module as the source calls it, ``json.load``; a method with its class."""
    spot = sample.culprit
    if not entry or "." in entry or spot is None:
        return entry
    return doing.build(spot.file, [spot.line], entry, source_of) or entry


def _waited(mine: Sequence[Sample], source_of: SourceOf) -> Waited | None:
    looked = [(reason, one) for one in mine if (reason := wait_reasons.reason(one, source_of)) not in _QUIET]
    if not looked:
        return None
    reason, count = Counter(reason for reason, _ in looked).most_common(1)[0]
    waits = [one.wait for found, one in looked if found == reason and one.wait is not None]
    if 2 * count <= len(looked) or not waits:
        return None
    targets = Counter(wait.target for wait in waits if wait.target).most_common(1)
    return Waited(
        reason=reason,
        call=Counter(wait.call for wait in waits).most_common(1)[0][0],
        target=targets[0][0] if targets and 2 * targets[0][1] > len(waits) else "",
        looks=count,
    )

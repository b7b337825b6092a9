"""A track of the steps that several members traced alike: of each joint capture those that all of them have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.cluster import same_steps
from stepscope.model.api.timeline import SpanName
from stepscope.timeline.span_track import SpanTrack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.model.session.session import CaptureInfo
    from stepscope.tables.records import I64
    from stepscope.timeline.joint_tracks import ShownSession
    from stepscope.timeline.span_track import DistinctNames

GROUP = "joint captures"


def tracks(parts: Sequence[ShownSession], names: DistinctNames) -> Iterator[SpanTrack]:
    """One for all joint captures of the same members; none where they have no step in common."""
    found: dict[str, list[tuple[I64, int]]] = {}
    for identity in sorted({capture.joint for part in parts for capture, _ in _taken(part)}):
        ends = _ends(parts, identity)
        same = same_steps.of(ends)
        if same.count and len(same.first) > 1:
            first, shift = next(iter(same.first.items()))
            times = ends[first][shift : shift + same.count + 1]
            found.setdefault(", ".join(same.first), []).append((times, same.count))
    for number, (who, captures) in enumerate(found.items()):
        captures.sort(key=lambda one: int(one[0][0]))
        starts = [times[:-1] for times, _ in captures]
        durations = [np.diff(times) for times, _ in captures]
        words = [
            names.add(SpanName(text=f"step {n + 1} of the same {count} of {who}", category="step"))
            for _, count in captures
            for n in range(count)
        ]
        yield SpanTrack(
            key=f"joint-{number}",
            group=GROUP,
            title=f"the same steps of {who}",
            kind="thread",
            start=np.concatenate(starts),
            dur=np.concatenate(durations),
            name=np.array(words, np.int32),
        )


def _taken(part: ShownSession) -> Iterator[tuple[CaptureInfo, str]]:
    """A member's joint captures, each with the task that it is of."""
    tasks = {info.key: info.member.name for info in part.view.session.manifest.workers if info.member is not None}
    for capture in part.view.session.manifest.captures:
        if part.label and capture.joint and capture.outcome == "done" and len(capture.ends_ns) > 1:
            yield capture, tasks.get(capture.worker, part.label)


def _ends(parts: Sequence[ShownSession], identity: str) -> dict[str, I64]:
    """Ends of steps by task, of the one that was asked first; without those whose clock does not tell steps apart."""
    found: list[tuple[bool, str, I64]] = []
    for part in parts:
        for capture, name in _taken(part):
            period = float(np.median(np.diff(capture.ends_ns)))
            known = part.bound_ns is not None and part.bound_ns <= same_steps.MAX_APART * period
            if capture.joint == identity and known:
                found.append((not capture.leads, name, part.times(np.array(capture.ends_ns, np.int64))))
    return {name: ends for _, name, ends in sorted(found, key=lambda one: one[:2])}

"""The report's part on joint captures: which steps all tasks have in common, what of their communication is hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.causes.cluster import members as of_job
from stepscope.derive.cluster import same_steps
from stepscope.derive.steps import gaps
from stepscope.model.report.cluster import JointCapture, JointTask
from stepscope.report.sections import traced_steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.causes.cluster.member import Member
    from stepscope.causes.cluster.waits import Waits
    from stepscope.derive.cluster.clock import ClockOffset
    from stepscope.derive.cluster.same_steps import SameSteps
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.derive.view import SessionView
    from stepscope.model.session.session import CaptureInfo
    from stepscope.tables.records import I64

MOST = 16
"""Most joint captures that are reported, the newest."""
RUNS = "run-metadata"
"""Way of a capture that holds what parameter servers did for it."""
SERVER = "ps"


def build(members: Sequence[Member], names: Sequence[str], waits: Waits | None) -> tuple[JointCapture, ...]:
    """The joint captures, oldest first.

    Args:
        members: the tasks of which the session has something.
        names: all tasks of the job.
        waits: how steps of the members were paired.
    """
    found: dict[str, dict[str, tuple[Member, CaptureInfo]]] = {}
    for member in members:
        view = member.open()
        keys = {worker.info.key for worker in view.workers}
        for capture in view.session.manifest.captures:
            if capture.joint and capture.worker in keys:
                found.setdefault(capture.joint, {})[member.name] = (member, capture)
    apart = _apart(waits)
    clocks = dict(zip((member.name for member in members), of_job.clocks(members), strict=True)) if found else {}
    return tuple(_of(identity, found[identity], names, apart, clocks) for identity in sorted(found)[-MOST:])


def _apart(waits: Waits | None) -> frozenset[str]:
    """Tasks of which all steps of the job tell that they do not end with those of the others."""
    if waits is None:
        return frozenset()
    paired = zip(waits.members, waits.pairing.synchronous, waits.pairing.basis, strict=True)
    return frozenset(member.name for member, together, basis in paired if basis != "none" and not together)


def _of(
    identity: str,
    taken: Mapping[str, tuple[Member, CaptureInfo]],
    names: Sequence[str],
    apart: frozenset[str],
    clocks: Mapping[str, ClockOffset | None],
) -> JointCapture:
    done = {name: pair for name, pair in taken.items() if pair[1].outcome == "done"}
    order = sorted(done, key=lambda name: not done[name][1].leads)
    ends = {name: _ends(*done[name]) for name in order if name not in apart}
    one = _on_one_clock(done, ends, clocks)
    same = same_steps.of(one)
    served = any(capture.way == RUNS for _, capture in done.values())
    missed = [_why(name, taken) for name in names if name not in done and not (served and name.startswith(SERVER))]
    first = next((name for name in names if name in same.first), "")
    common = same.count if len(same.first) > 1 else 0
    return JointCapture(
        id=identity,
        steps=common,
        first_step=_number(done[first][0].open(), int(ends[first][same.first[first]])) if common else None,
        tasks=tuple(_task(*done[name], same, together=bool(common)) for name in names if name in done),
        missed=tuple(missed),
    )


def _why(name: str, taken: Mapping[str, tuple[Member, CaptureInfo]]) -> str:
    if name in taken:
        capture = taken[name][1]
        return f"{name} ({capture.text or capture.outcome})"
    return f"{name} (no capture)"


def _ends(member: Member, capture: CaptureInfo) -> I64:
    """Begin of the first step and end of each, on the host's monotonic clock."""
    return np.array(capture.ends_ns, np.int64) + member.open().session.manifest.origin_monotonic_ns


def _on_one_clock(
    done: Mapping[str, tuple[Member, CaptureInfo]],
    ends: Mapping[str, I64],
    clocks: Mapping[str, ClockOffset | None],
) -> dict[str, I64]:
    """The ends on the clock of one host; without tasks whose host's clock is not known well enough to tell steps."""
    hosts = {done[name][0].info.clock_domain for name in ends}
    if len(hosts) <= 1:
        return dict(ends)
    found: dict[str, I64] = {}
    for name, times in ends.items():
        clock = clocks.get(name)
        if clock is None or len(times) <= 1:
            continue
        if float(clock.at(times)[1].max()) <= same_steps.MAX_APART * float(np.median(np.diff(times))):
            found[name] = clock.aligned(times).astype(np.int64)
    return found


def _number(view: SessionView, at_ns: int) -> int | None:
    """Number of steps, recorded or counted, that had ended at a moment of the monotonic clock."""
    steps = view.steps
    if steps is None:
        return None
    at_ns -= view.session.manifest.origin_monotonic_ns
    counted = gaps.counted(steps.worker.gaps, steps.kind)
    seen = int(((steps.call_ends <= at_ns) & ~steps.unobserved).sum())
    return seen + int(counted.calls[counted.end_ns <= at_ns].sum())


def _task(member: Member, capture: CaptureInfo, same: SameSteps, *, together: bool) -> JointTask:
    name = member.name
    there = together and name in same.first
    steps = slice(same.first[name], same.first[name] + same.count) if there else slice(None)
    trace = _trace(member, capture)
    marked = trace is not None and trace.shows_steps and len(trace.periods) == capture.steps
    return JointTask(
        name=name,
        traced=capture.steps,
        step_ns=round(float(np.diff(capture.ends_ns)[steps].mean())) if len(capture.ends_ns) > 1 else None,
        communication=traced_steps.communication(trace.breakdown, steps) if trace is not None and marked else None,
        apart=together and not there and bool(capture.ends_ns),
    )


def _trace(member: Member, capture: CaptureInfo) -> OpView | None:
    names = {name.rpartition("/")[2] for name in capture.files}
    return next((trace for trace in member.open().traces.views if trace.name in names), None)

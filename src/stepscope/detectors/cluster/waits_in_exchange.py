"""A member of a job spends much of its step exchanging data with the other members, of which this session says nothing.

## What it detects
A process that is a task of a cluster, and an op trace whose steps lie in collectives or in transfers to and from other
tasks for a tenth of their time or more, while none of its ops runs. The session holds nothing of the others.

## Why it matters
The time lies inside the compiled step, so it reads as compute. It may be the wait for a slower member, which has its
cause there, or the transfer itself; only the sessions together tell.

## Evidence
`exchange_ratio`: share of the traced steps.

## Known limits
Needs an op trace. It does not tell the wait from the transfer. Of training with parameter servers it is information:
workers then wait for the servers, not for each other, unless their updates are synchronous.

## Remedy
Join the sessions: stepscope merge says for whom the members wait.

## References
Wait states (Boehme et al., TOPC 2016): waiting at a collective is caused elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.cluster.members import COLLECTIVE
from stepscope.detectors.base import Detector, Seen, Signal
from stepscope.tables.findings import Cost, Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps_view import StepsView
    from stepscope.derive.view import SessionView
    from stepscope.model.session.member import MemberInfo

SERVER = "ps"


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Share of the traced steps."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    trace, member = view.traces.main, view.worker.info.member
    if trace is None or member is None:
        return
    ratio = trace.breakdown.shares().get(COLLECTIVE, 0.0)
    if ratio >= params.min_ratio:
        yield _finding(member, ratio, params)


def _finding(member: MemberInfo, ratio: float, params: Params) -> Seen:
    served = SERVER in member.jobs
    whom = "the parameter servers" if served else "the other members"
    return Seen(
        title=f"{member.text} spends {format_ratio(ratio)} of its step exchanging data with {whom}: it waits for them, "
        "or for the transfer, and does not compute",
        confidence=0.8,
        severity="info" if served else "ask",
        evidence=(
            Evidence(
                metric="exchange_ratio", value=ratio, unit="ratio", threshold=params.min_ratio, refs=("component:call",)
            ),
        ),
        cost=Cost(ratio=0.0, low=0.0, high=ratio, basis="unknown"),
        remedies=(
            Remedy(
                id="join-the-sessions",
                text="join the sessions of all members: only together do they say whether one is slow, or the transfer",
                what_if=None if served else "stepscope merge SESSION SESSION ... -o JOB.stepscope",
            ),
        ),
    )


def _applies(view: SessionView) -> str:
    members = [worker.info.member for worker in view.workers if worker.info.member is not None]
    steps = view.worker.info.member if view.worker is not None else None
    if steps is None or steps.tasks <= 1:
        return "the steps are not made by a task of a cluster"
    training = sum(member.rank >= 0 for member in members)
    return "this session holds its other members" if training > 1 else ""


DETECTOR = Detector(
    code="DST004",
    name="waits-in-exchange",
    cause="Data: inefficient data transmission",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="gradient-sharing",
    needs=frozenset({Signal.STEPS, Signal.OP_TRACE}),
    params=Params(),
    detect=detect,
    applies=_applies,
)

"""The report's part on the members of the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.causes.cluster import exchange, waits
from stepscope.causes.cluster import members as of_job
from stepscope.derive.cluster import member_calls
from stepscope.model.report.cluster import Cluster, Gain, MemberRow
from stepscope.report.sections.cluster import joint_captures

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.causes.cluster.member import Member
    from stepscope.causes.cluster.waits import Waits
    from stepscope.derive.view import SessionView
    from stepscope.model.report.cluster import FirstFinding

MOST_MISSING = 100


def build(view: SessionView, first: Mapping[str, FirstFinding | None] | None = None) -> Cluster | None:
    """The members; None if the session holds at most one.

    Args:
        view: the session.
        first: of each member by name, the first finding of its report.
    """
    members = view.get(of_job.build)
    if not members:
        return None
    found, traced = view.get(waits.build), view.get(exchange.build)
    blame = found.blame if found is not None else None
    info = max(members, key=lambda member: member.newest_unix_ns).info
    there = {member.name for member in members}
    rates = [member.samples_per_s for member in members if member.steps]
    known = [rate for rate in rates if rate is not None]
    batch = sum(member.samples for member in members)
    return Cluster(
        launcher=info.launcher,
        job_id=info.job_id,
        tasks=len(info.names),
        missing=tuple(name for name in info.names if name not in there)[:MOST_MISSING],
        members=tuple(_row(member, found, first or {}) for member in members),
        common_steps=blame.steps if blame is not None else 0,
        period_ns=round(blame.period_ns) if blame is not None else None,
        waits_ns=round(float(np.nanmean(blame.waits_ns))) if blame is not None else None,
        exchange_ns=round(traced.ns if traced is not None else blame.transfer_ns) if blame is not None else None,
        exchange_usual_ns=round(blame.transfer_usual_ns) if blame is not None and traced is None else None,
        global_batch=batch if blame is not None and known and len(known) == len(rates) else None,
        samples_per_s=sum(known) if known and len(known) == len(rates) else None,
        text="" if blame is not None else _why_not(members, found),
        captures=joint_captures.build(members, info.names, found),
    )


def _row(member: Member, found: Waits | None, first: Mapping[str, FirstFinding | None]) -> MemberRow:
    row = MemberRow(
        name=member.name,
        rank=member.info.rank if member.info.rank >= 0 else None,
        host=member.host,
        pid=member.pid,
        folder=member.folder,
        steps=member.steps,
        serves=member.serves,
        step_ns=round(member.step_ns) if member.step_ns else None,
        samples_per_s=member.samples_per_s,
        first=first.get(member.name),
        incarnations=member.incarnations,
        folders=member.folders,
    )
    if found is None or member not in found.members:
        return row
    j = found.members.index(member)
    blame = found.blame
    said = {"paired_by": found.pairing.basis[j], "synchronous": found.pairing.synchronous[j]}
    fields = {name: getattr(row, name) for name in row.__struct_fields__} | said
    if blame is not None and found.pairing.synchronous[j]:
        share = blame.gain[j]
        fields |= {
            "own_ns": round(float(blame.own_ns[j])),
            "waits_ns": round(float(blame.waits_ns[j])),
            "blame_ns": round(float(blame.blame_median_ns[j])),
            "last_ratio": float(blame.last_ratio[j]),
            "gain": Gain(ratio=share.ratio, low=share.low, high=share.high),
        }
    return MemberRow(**fields)


def _why_not(members: Sequence[Member], found: Waits | None) -> str:
    """Why nothing is said of waits."""
    if found is None:
        made = sum(bool(member.calls) for member in members)
        serving = sum(member.serves for member in members)
        if made == 1 and serving == len(members) - 1:
            name = next(member.name for member in members if member.calls)
            return f"waits are not compared: {name} makes the steps, the others serve it"
        if not made and all(member.steps >= member_calls.MIN_STEPS for member in members if not member.serves):
            return (
                "waits are not compared: no call is recorded that the steps have in common; stepscope.span() around "
                "the call that trains shows them"
            )
        return f"waits are not compared: {made} of the {len(members)} members make enough steps"
    pairing = found.pairing
    if sum(pairing.synchronous) > 1:
        return "waits are not compared: too few steps that all members have in common"
    if "none" in pairing.basis:
        return (
            "waits are not compared: which steps are the same is not known, as the members' clocks are not, and their "
            "steps have no common rhythm"
        )
    return "the members do not wait for each other: their steps do not end together (asynchronous training)"

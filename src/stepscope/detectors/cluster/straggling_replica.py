"""One replica of a strategy in one process makes the others wait, step after step.

## What it detects
A device of a MirroredStrategy (or any strategy whose replicas exchange tensors within one process) whose ops run longer
than those of the others in nearly every traced step, while the others wait for it in the exchange by as much.

## Why it matters
All replicas leave an exchange together, so a step lasts as long as its slowest replica. The op trace shows the wait as
a long collective on the replicas that are not slow.

## Evidence
`own_ns` and `others_own_ns`: time in which ops of the replica, other than exchanges, run in a step. `blame_ns`: the
median step's excess over the median of the others, of which only what the others waited for counts. `last_ratio`: share
of the steps in which it was the slowest. `waits_ns`: what each of the others waits. `traced_steps`.

## Known limits
Needs an op trace of the steps, and the graph's nodes with their devices. Replicas on GPUs, whose work is behind their
host, are not compared. Replicas that share CPUs slow each other down too; only what one does beyond the others counts.

## Remedy
Give every replica the same to do: what depends on the replica's number, or on the data of its shard, belongs outside
the step, or to all of them in turn.

## References
Delay costs of wait states (Boehme et al., TOPC 2016).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.cluster import stragglers, straggling_replica
from stepscope.detectors.base import Detector, Seen, Signal
from stepscope.tables.findings import Cost, Evidence, Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.cluster.straggling_replica import Replicas
    from stepscope.derive.view import SessionView

MIN_PART = 0.2
"""Share of what the replica does longer from which a line is named."""
MOST_LINES = 3


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds, as of members (DST001)."""

    min_ratio: Ratio = stragglers.MIN_RATIO
    """Excess of the median step, and the lower end of what the others lose by it, as a share of the step."""
    min_last: Ratio = stragglers.MIN_LAST
    """Share of the steps in which one of them must be the slowest."""
    max_group: Ratio = stragglers.MAX_GROUP
    """Share of the replicas that can be called stragglers."""


def detect(view: SessionView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    found = view.get(straggling_replica.build)
    if found is None:
        return
    group = stragglers.persistent(
        found.blame, min_ratio=params.min_ratio, spreads=0.0, min_last=params.min_last, max_group=params.max_group
    )
    if group and found.blame.gain[group[0]].low >= params.min_ratio:
        yield _finding(view, found, group[0], params)


def _finding(view: SessionView, found: Replicas, slowest: int, params: Params) -> Seen:
    blame, devices = found.blame, found.times.devices
    share, more = blame.gain[slowest], float(blame.blame_median_ns[slowest])
    others = [j for j in range(len(devices)) if j != slowest]
    lines = [pair for pair in found.lines_beyond(slowest) if pair[1] >= MIN_PART * more][:MOST_LINES]
    where = tuple(view.place(line.file, line.line, function=line.function) for line, _ in lines)
    waiting = float(blame.waits_ns[others].mean())
    refs = (found.ref,) if found.ref else ()
    return Seen(
        title=f"the replica on {devices[slowest]} holds the other{'s' if len(others) > 1 else ''} back: its ops take "
        f"{format_ns(more)} more in each step; without that, a step takes {format_ratio(share.ratio)} less",
        confidence=0.85,
        pipeline_stage="forward-backward",
        where=where,
        evidence=(
            Evidence(metric="own_ns", value=float(np.median(found.times.own_ns[:, slowest])), unit="ns", refs=refs),
            Evidence(metric="others_own_ns", value=float(np.median(found.times.own_ns[:, others])), unit="ns"),
            Evidence(metric="blame_ns", value=more, unit="ns", threshold=params.min_ratio * blame.period_ns),
            Evidence(
                metric="last_ratio",
                value=float(blame.last_ratio[slowest]),
                unit="ratio",
                threshold=params.min_last,
            ),
            Evidence(metric="waits_ns", value=waiting, unit="ns"),
            Evidence(metric="traced_steps", value=float(blame.steps), unit="steps"),
        ),
        cost=Cost(
            ratio=share.ratio,
            low=share.low / 2,
            high=share.high,
            ns_per_step=round(share.ratio * blame.period_ns),
            basis="modelled",
        ),
        remedies=(
            Remedy(
                id="equal-replicas",
                text=f"give the replica on {devices[slowest]} the same to do as the others: work that only one replica "
                "does belongs outside the step, or to all of them in turn",
            ),
        ),
        explanation=f"Each of the others waits {format_ns(waiting)} of a step of {format_ns(blame.period_ns)} in the "
        "exchange, which therefore looks slow; that of the slowest is the shortest.",
    )


DETECTOR = Detector(
    code="DST011",
    name="straggling-replica",
    introduced_stage="training",
    exposed_stage="training",
    needs=frozenset({Signal.OP_TRACE, Signal.NODES}),
    params=Params(),
    detect=detect,
    applies=straggling_replica.why_not,
)

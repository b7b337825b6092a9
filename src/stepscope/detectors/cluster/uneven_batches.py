"""Members of one job train on batches of different sizes.

## What it detects
Members that make steps together, with numbers of samples a step that differ by a tenth or more.

## Why it matters
The member with the largest batch computes longest, and all others wait for it. A mean of gradients then weighs samples
unequally, too.

## Evidence
`largest_samples` and `smallest_samples` of the mean steady step.

## Known limits
Only where the number of samples a step is known of all members. What it costs is known where the straggler (DST001) is
one of the members with the largest batches; else it is information: members may differ on purpose, because their
machines do.

## Remedy
The same batch size on equal machines; on unequal ones, sizes in proportion to their speed.

## References
training-pipeline analysis (Rand 2020): batch size; tf.distribute, "Distributed input": the global batch size is divided
by the number of replicas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.cluster import members, waits
from stepscope.detectors.base import Detector, Seen, Signal
from stepscope.tables.findings import Cost, Evidence, Remedy
from stepscope.tables.units import Ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.cluster.waits import Waits
    from stepscope.derive.view import SessionView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_difference: Ratio = Ratio(waits.UNEVEN)
    """By how much the largest batch exceeds the smallest."""
    min_last: Ratio = Ratio(0.6)
    """Share of the steps in which the member with the largest batch must be the slowest for it to be the cause."""


def detect(view: SessionView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    found = view.get(waits.build)
    if found is None or found.blame is None:
        return
    samples = np.array([member.samples for member in found.members])[list(found.pairing.synchronous)]
    if samples.min() > 0 and samples.max() >= (1 + params.min_difference) * samples.min():
        yield _finding(found, params)


def _finding(found: Waits, params: Params) -> Seen:
    those = [j for j, there in enumerate(found.pairing.synchronous) if there]
    sizes = {j: found.members[j].samples for j in those}
    largest, smallest = max(sizes, key=lambda j: sizes[j]), min(sizes, key=lambda j: sizes[j])
    return Seen(
        title=f"batches are uneven: {found.members[largest].name} trains on {sizes[largest]:g} samples a step, "
        f"{found.members[smallest].name} on {sizes[smallest]:g}",
        confidence=0.8,
        evidence=(
            Evidence(
                metric="largest_samples",
                value=sizes[largest],
                unit="samples",
                threshold=(1 + params.min_difference) * sizes[smallest],
            ),
            Evidence(metric="smallest_samples", value=sizes[smallest], unit="samples"),
        ),
        cost=_cost(found, largest, params),
        remedies=(
            Remedy(
                id="even-batches",
                text="give members of the same speed the same number of samples a step, slower ones fewer",
            ),
        ),
    )


def _cost(found: Waits, largest: int, params: Params) -> Cost:
    """What the wait for the largest batch costs, if an op trace shows that its member computes longest."""
    blame = found.blame
    if blame is None or not found.batch_explains(largest) or blame.last_ratio[largest] < params.min_last:
        return Cost(ratio=0.0, low=0.0, high=0.0, basis="unknown")
    share = blame.gain[largest]
    even = 1.0 - float(np.mean([m.samples for m in found.members])) / found.members[largest].samples
    ratio = min(share.ratio, even)
    return Cost(
        ratio=ratio,
        low=min(share.low, ratio) / 2,
        high=max(share.high, ratio),
        ns_per_step=round(ratio * blame.period_ns),
        basis="modelled",
    )


DETECTOR = Detector(
    code="DST003",
    name="uneven-batches",
    cause="Data: improper data input",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="gradient-sharing",
    needs=frozenset({Signal.MEMBERS}),
    params=Params(),
    detect=detect,
    applies=members.why_not,
)

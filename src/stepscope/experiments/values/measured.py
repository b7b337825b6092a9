"""Shares of claims by the times of their ops in traced steps of the unchanged job, in place of work by shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.experiments.values.claims import Claim
    from stepscope.model.report.op_table import OpTable

_CALL = "StatefulPartitionedCall/"


def times(table: OpTable | None) -> dict[str, float]:
    """Share of each op in the time of all ops, by its name in its function; empty without an op trace."""
    found: dict[str, float] = {}
    for op in table.ops if table is not None else ():
        name = op.name.rpartition(_CALL)[2]
        found[name] = found.get(name, 0.0) + op.ratio
    return found


def with_times(claim: Claim, shares: Mapping[str, float]) -> Claim:
    """The claim by measured times; as it is if any of its main ops was not seen: a fused op has another's name."""
    if not claim.needless or not all(name in shares for name, _ in claim.needless):
        return claim
    ratio = min(1.0, sum(shares[name] * part for name, part in claim.needless))
    factor = ratio / claim.ratio
    places = tuple(replace(place, ratio=min(1.0, place.ratio * factor)) for place in claim.places)
    return replace(claim, ratio=ratio, places=places, basis="op-times")

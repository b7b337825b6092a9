"""The part of each finding's cost that no earlier finding claims: findings about the same time do not add up.

A finding claims time of some components of the step. A claim can be met from any of its components, and no moment
counts twice, so the joint saving of a set of findings is a maximum flow from claims to components; a finding adds the
growth of that flow by its claims. The flow equals the minimum cut: the minimum, over all sets of components, of their
shares plus all claims that reach beyond them. So additions sum to at most 1, and those of findings about one component
to at most its share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.model.report.components import REF, claimed_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stepscope.model.report.report import Component
    from stepscope.tables.findings import Finding
    from stepscope.tables.records import F64

EVERYWHERE = ("System:", "Hardware: improper configuration", "unknown")
"""Causes that slow every component."""
WHOLE = "step"


class Claim(Struct, frozen=True, kw_only=True):
    """Time that a finding would save, from any of ``components``; empty: from all."""

    components: frozenset[str]
    ratio: float


def annotated(findings: Sequence[Finding], anatomy: Sequence[Component]) -> tuple[Finding, ...]:
    """The findings, in their order, with ``cost.exclusive_ratio``.

    One-off costs are shares of the run, and those between the steps of each turn are shares of the turn: both are
    counted separately from those of the step.
    """
    shares: dict[str, float] = {}
    for part in anatomy:
        shares[part.component] = shares.get(part.component, 0.0) + part.ratio
    once = [i for i, f in enumerate(findings) if f.exposed_stage == "initialization"]
    turns = [i for i, f in enumerate(findings) if f.cost.of_turn and i not in once]
    steps = [i for i in range(len(findings)) if i not in once and i not in turns]
    added: dict[int, float] = {}
    for mine, parts in ((steps, shares), (once, {}), (turns, {})):
        added.update(zip(mine, additions([claims(findings[i], parts) for i in mine], parts), strict=True))
    return tuple(
        replace(finding, cost=replace(finding.cost, exclusive_ratio=added[i])) for i, finding in enumerate(findings)
    )


def claims(finding: Finding, shares: Mapping[str, float]) -> list[Claim]:
    """The claims of a finding on components with these shares.

    It claims the components named by its evidence up to their shares, and any excess from all components.
    """
    ratio = finding.cost.ratio
    refs = {ref.removeprefix(REF) for e in finding.evidence for ref in e.refs if ref.startswith(REF)}
    named = frozenset(refs) & shares.keys()
    if named:
        there = min(ratio, sum(shares[c] for c in named))
        return [Claim(components=named, ratio=there), Claim(components=frozenset(), ratio=ratio - there)]
    likely = frozenset() if finding.cause.startswith(EVERYWHERE) else claimed_by(finding.pipeline_stage)
    fits = ratio <= sum(shares.get(c, 0.0) for c in likely)
    return [Claim(components=likely if fits else frozenset(), ratio=ratio)]


def additions(every: Sequence[Sequence[Claim]], shares: Mapping[str, float]) -> Iterator[float]:
    """For each finding in turn: what its claims add to the joint saving of all earlier ones."""
    parts = dict(shares) or {WHOLE: 1.0}
    least: F64 = _sums(list(parts.values()))
    least *= min(1.0, 1.0 / float(least[-1])) if least[-1] > 0 else 0.0
    sets = np.arange(len(least))
    before = 0.0
    for mine in every:
        for claim in mine:
            mask = sum(1 << i for i, name in enumerate(parts) if name in claim.components) or len(least) - 1
            least = least + claim.ratio * ((sets & mask) != mask)
        now = max(before, float(least.min()))
        yield min(now - before, sum(claim.ratio for claim in mine))
        before = now


def _sums(values: Sequence[float]) -> F64:
    """Sum of every subset; bit i of an index says whether ``values[i]`` is in it. float64[2 ** len(values)]."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums, sums + max(0.0, value)])
    return sums

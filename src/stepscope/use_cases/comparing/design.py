"""How two sides are compared: which sessions, in pairs or as groups, by which time, and what that time is made of."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.experiments import statistics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.report.compare import Basis, Design, RowBasis
    from stepscope.tables.records import F64
    from stepscope.use_cases.comparing.numbers import SessionNumbers

MIN_ROUNDS = 8
"""Rounds from which runs made in rounds are compared in pairs. With fewer, the degrees of freedom that pairs lose cost
more than the host's drift on a quiet machine (tests/experiments; docs/compare.md has the figures)."""
SAME_BATCH = 0.005
"""Largest relative difference of samples per step between equal batch sizes: last batches of epochs are shorter. Also
of the work of two runs that did as much."""


class Sides(Struct, frozen=True, kw_only=True):
    """The two sides and how they are compared."""

    before: tuple[SessionNumbers, ...]
    """Sessions whose steps are compared; in pairs: in the order of their start."""
    after: tuple[SessionNumbers, ...]
    design: Design
    basis: Basis

    @property
    def all(self) -> tuple[SessionNumbers, ...]:
        """The sessions of both sides."""
        return (*self.before, *self.after)

    @property
    def blocks(self) -> tuple[int, int] | None:
        """Blocks of the steps of each side, if it is one run each."""
        one, other = self.before[0].durations, self.after[0].durations
        if self.design != "within" or one is None or other is None:
            return None
        return statistics.blocks_of(one), statistics.blocks_of(other)

    @property
    def made_of(self) -> RowBasis:
        """What the mean step is made of."""
        totals = [n.total for n in self.all if n.total is not None]
        if self.basis == "run":
            return "run"
        if self.basis == "ops":
            return "ops"
        if len(totals) < len(self.all) or any(n.imported for n in self.all):
            return "timed"
        work = [n.total.made * self.per(n) for n in self.all if n.total is not None]
        if max(work) <= (1.0 + SAME_BATCH) * min(work):
            return "total"
        return "counted" if any(total.timed < total.count for total in totals) else "timed"

    @property
    def exact(self) -> bool:
        """Whether nothing of the mean step is an estimate: one run a side, all of whose steps are in the total."""
        return self.design == "within" and (self.basis in {"run", "ops"} or all(n.total is not None for n in self.all))

    def per(self, numbers: SessionNumbers) -> float:
        """By what times of a step are divided."""
        return (numbers.samples_per_step or 1.0) if self.basis == "sample" else 1.0

    def mean_ns(self, numbers: SessionNumbers) -> float:
        """Time of the mean step, or of a sample."""
        found = numbers.sample_ns if self.basis == "sample" else numbers.step_ns
        return found or 0.0

    def durations(self, numbers: SessionNumbers) -> F64:
        """Times of the steps that were timed."""
        return (numbers.durations if numbers.durations is not None else np.zeros(0)) / self.per(numbers)


def sides(before: Sequence[SessionNumbers], after: Sequence[SessionNumbers]) -> Sides:
    """How two groups of sessions are compared. Sessions without steps are left out if others have some."""
    with_steps = [tuple(n for n in side if n.step_ns is not None) for side in (before, after)]
    stepped = all(with_steps)
    one, other = with_steps if stepped else (tuple(before), tuple(after))
    design: Design = "unpaired"
    if len(one) == len(other) == 1:
        design = "within"
    elif in_rounds(one, other):
        design = "paired"
    ordered = [tuple(sorted(side, key=started)) if design == "paired" else side for side in (one, other)]
    return Sides(before=ordered[0], after=ordered[1], design=design, basis=_basis(one, other, stepped=stepped))


def _basis(before: Sequence[SessionNumbers], after: Sequence[SessionNumbers], *, stepped: bool) -> Basis:
    if stepped:
        return "sample" if batches_differ(before, after) else "step"
    return "ops" if any(n.imported for n in (*before, *after)) else "run"  # the length of a recording is arbitrary


def in_rounds(before: Sequence[SessionNumbers], after: Sequence[SessionNumbers]) -> bool:
    """Whether the runs were made in rounds, one of each side a round, on one machine, and are enough for pairs."""
    if len(before) != len(after) or len(before) < MIN_ROUNDS:
        return False
    made = sorted([(started(n), 0) for n in before] + [(started(n), 1) for n in after])
    order = [side for _, side in made]
    hosts = {(n.manifest.host.name, n.manifest.host.boot_id) for n in (*before, *after)}
    return len(hosts) == 1 and all(a != b for a, b in zip(order[::2], order[1::2], strict=True))


def batches_differ(before: Sequence[SessionNumbers], after: Sequence[SessionNumbers]) -> bool:
    """Whether the steps of the two sides hold different numbers of samples."""
    held = [[n.samples_per_step for n in side] for side in (before, after)]
    known = [[value for value in side if value is not None] for side in held]
    if [len(side) for side in known] != [len(before), len(after)] or any(
        n.sample_ns is None for n in (*before, *after)
    ):
        return False
    return abs(fmean(known[1]) / fmean(known[0]) - 1.0) > SAME_BATCH


def started(numbers: SessionNumbers) -> int:
    """When a session began."""
    return numbers.manifest.started_unix_ns

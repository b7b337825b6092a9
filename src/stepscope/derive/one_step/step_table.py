"""All steps that were observed, each with its components: what one step is compared with.

The median step is the mean of the steady steps whose duration lies in the middle fifth: its components add up to its
duration, which the medians of the components do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.numeric import outliers
from stepscope.derive.one_step import step_numbers
from stepscope.derive.steps import anatomy

if TYPE_CHECKING:
    from stepscope.derive.steps.anatomy import Anatomy
    from stepscope.derive.steps.steps import Steps
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.records import F64, I64, Bool

MIDDLE = (40.0, 60.0)
"""Percentiles of the duration between which a steady step counts as a median one."""
FEWEST = 8
"""Steady steps without which no step counts as an outlier."""


class StepTable(Struct, frozen=True, kw_only=True):
    """The observed steps. Shapes: [row], one for each observed step."""

    steps: Steps
    numbers: I64
    """Number of every step on record, observed or not (``step_numbers``): int64[step]."""
    index: I64
    """Position of each row's step in ``steps``."""
    anatomy: Anatomy
    """Components of the rows."""
    median: Bool
    """Which rows are median steps."""
    usual: Bool
    """Which rows are steady steps: what a step is compared with."""

    @property
    def durations(self) -> F64:
        """Duration of each row, ns."""
        found: F64 = self.anatomy.per_step.sum(axis=1)
        return found

    @property
    def median_ns(self) -> float:
        """Duration of the median step."""
        return float(self.durations[self.median].mean())

    @property
    def median_parts(self) -> F64:
        """Components of the median step, ns: float64[component]."""
        found: F64 = self.anatomy.per_step[self.median].mean(axis=0)
        return found

    @property
    def slow_from_ns(self) -> float:
        """Duration from which a step is an outlier."""
        return outliers.slow_from_ns(self.durations[self.usual])

    def slowest(self, most: int) -> I64:
        """Rows of the slowest outliers after the warm-up, slowest first; none among too few steps."""
        durations = self.durations
        if int(self.usual.sum()) < FEWEST:
            return np.empty(0, np.int64)
        slow = np.flatnonzero(durations >= self.slow_from_ns)
        slow = slow[(slow >= np.flatnonzero(self.usual)[0]) & (self.index[slow] < len(self.steps) - 1)]
        order: I64 = slow[np.argsort(-durations[slow], kind="stable")][:most]
        return order


def build(view: StepsView) -> StepTable:
    """The observed steps of a view. Cost: that of the anatomy once more."""
    steps = view.steps
    observed = ~steps.unobserved & (steps.ends > steps.starts)
    every = anatomy.build(replace(steps, steady=observed), view.pipeline.wait_ns_per_execution or 0.0)
    index = np.flatnonzero(observed)
    usual = steps.steady[index]
    durations = every.per_step.sum(axis=1)
    low, high = np.percentile(durations[usual], MIDDLE)
    return StepTable(
        steps=steps,
        numbers=step_numbers.of(steps),
        index=index,
        anatomy=every,
        median=usual & (durations >= low) & (durations <= high),
        usual=usual,
    )

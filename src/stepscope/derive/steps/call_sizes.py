"""How many samples each call was given: looked at now and then, and where calls differ, by the shape of each.

The looks come every so many calls, which may be another rhythm than that of the sizes: each of 58 looks saw 32 samples
in a loop of which each tenth call had up to 282.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.model.log.program import ShapeMet
from stepscope.wire.kinds import OTHER_SHAPE, SHAPE_SHIFT

if TYPE_CHECKING:
    from stepscope.derive.steps.candidate import Candidate
    from stepscope.tables.records import I64, Bool


def build(candidate: Candidate) -> I64:
    """Samples of each call; 0: unknown. int64[call]."""
    return _sized(candidate)[0]


def certain(candidate: Candidate) -> bool:
    """Whether no recorded shape shows a call of other, unknown size."""
    return not _sized(candidate)[1].any()


def filled(values: I64) -> I64:
    """Replace each zero by the last value before it that is not zero, leading ones by the first."""
    known = np.flatnonzero(values > 0)
    if len(known) == 0:
        return np.zeros(len(values), np.int64)
    at = np.maximum(np.searchsorted(known, np.arange(len(values)), side="right") - 1, 0)
    result: I64 = values[known[at]]
    return result


def _sized(candidate: Candidate) -> tuple[I64, Bool]:
    """Samples of each call, and which calls had another size than that, which is not known."""
    records = candidate.worker.records
    looked = records.arg[candidate.index]
    found, none = filled(looked), np.zeros(len(looked), np.bool_)
    number = (records.flags[candidate.index] >> SHAPE_SHIFT) & OTHER_SHAPE
    first, rounded = np.zeros(OTHER_SHAPE + 1, np.int64), np.ones(OTHER_SHAPE + 1, np.bool_)
    for shape in candidate.worker.all(ShapeMet):
        if shape.dims:
            first[shape.id], rounded[shape.id] = shape.dims[0], shape.rounded
    size, exact = first[number], (number > 0) & ~rounded[number]
    both = exact & (looked > 0)
    if not both.any() or (size[both] != looked[both]).any():
        return found, none  # the first size of the shape is another thing
    found = np.where(exact, size, found)
    power = 1 << np.ceil(np.log2(np.maximum(found, 1))).astype(np.int64)
    return found, (number > 0) & ~exact & (size != power)

"""The parts of each steady step as spans: what the step's thread was in at each moment, as the anatomy paints it.

Input wait inside a compiled call has no record. tf.data's counters say its mean share of the calls; each call is drawn
with that share first, because a step asks for its batch before it computes. So the spans add up to the anatomy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.model.api.timeline import SpanName
from stepscope.model.report.components import COMPONENTS, PAINTED, REST

if TYPE_CHECKING:
    from stepscope.derive.steps.anatomy import Anatomy
    from stepscope.tables.records import I64

_SHARE = "input wait (mean share of the calls)"


class StepParts(Struct, frozen=True, kw_only=True):
    """Spans in the order of time, which do not overlap. Shapes: [span]."""

    start: I64
    dur: I64
    name: I64
    """Index into ``names``."""
    names: tuple[SpanName, ...]


def build(anatomy: Anatomy) -> StepParts:
    """The parts of the steady steps."""
    painting = anatomy.painting
    components = (*(name for name, _ in PAINTED), REST)
    names = tuple(SpanName(text=COMPONENTS[c].word, category=COMPONENTS[c].drawn or "other") for c in components)
    inside = np.flatnonzero(painting.layer >= 0)
    start, end = painting.edges[:-1][inside], painting.edges[1:][inside]
    layer = painting.layer[inside].astype(np.int64)
    calls = anatomy.mean_ns("call") + anatomy.compiled_wait_ns
    share = anatomy.compiled_wait_ns / calls if calls else 0.0
    if share:
        call = np.isin(layer, [i for i, name in enumerate(components) if name == "call"])
        cut = (start[call] + share * (end - start)[call]).astype(np.int64)
        first = start[call]
        start = start.copy()
        start[call] = cut
        start, end = np.concatenate([start, first]), np.concatenate([end, cut])
        layer = np.concatenate([layer, np.full(len(cut), len(components))])
        names = (*names, SpanName(text=_SHARE, category=COMPONENTS["input-wait"].drawn))
    order = np.lexsort((end, start))
    order = order[end[order] > start[order]]
    used, name = np.unique(layer[order], return_inverse=True)
    return StepParts(
        start=start[order], dur=(end - start)[order], name=name, names=tuple(names[i] for i in used.tolist())
    )

"""How the wall time of the steady steps splits into components.

Every moment of the step thread belongs to exactly one component: the first of ``LAYERS`` that covers it, else other
Python. So components add up to the wall time by construction. The order says what explains a moment best: a model
call or a garbage collection inside of a callback is the callback, a garbage collection between two calls is its own.

Time inside of a compiled step that tf.data's live model shows to be input wait is moved from ``call`` to
``input-wait`` afterwards (``pipeline.compiled_wait``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.numeric import intervals
from stepscope.derive.steps.steps import names_of
from stepscope.wire.kinds import Flag, Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals, Painting
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.log.events import Name
    from stepscope.model.records import F64, I64, Bool
    from stepscope.model.report.finding import PipelineStage

LAYERS = (
    "saving",
    "callbacks",
    "evaluation",
    "hooks",
    "building",
    "tracing",
    "gc",
    "input-wait",
    "host-sync",
    "call",
    "framework",
)
"""Topmost first. ``hooks``: Keras' own work around callbacks; ``framework``: Keras' loop outside of all of these."""

COMPONENTS: dict[str, PipelineStage] = {
    "input-wait": "preprocessing",
    "call": "forward-backward",
    "tracing": "forward-backward",
    "callbacks": "output-processing",
    "evaluation": "none",
    "building": "none",
    "saving": "storage",
    "host-sync": "device-to-host",
    "gc": "output-processing",
    "framework": "output-processing",
    "other-python": "output-processing",
}
"""Components of the report, in its order, and the pipeline stage that each is counted under."""

_CALLS = kinds_with(Trait.COMPUTES)
_NESTED_LOOPS = frozenset({"evaluate", "predict"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Anatomy:
    """The split of the steady steps. ``per_step`` float64[steady step, component] in ns, columns as COMPONENTS."""

    per_step: F64
    painting: Painting
    steps: Steps
    compiled_wait_ns: float
    """What was moved from call to input-wait on the word of tf.data's model, per mean step."""

    @property
    def wall_ns(self) -> float:
        """Steady wall time."""
        return float(self.per_step.sum())

    def mean_ns(self, component: str) -> float:
        """Of the mean steady step."""
        if len(self.per_step) == 0:
            return 0.0
        return float(self.per_step[:, list(COMPONENTS).index(component)].mean())

    def ratio(self, component: str) -> float:
        """Share of steady wall time."""
        wall = self.wall_ns
        return float(self.per_step[:, list(COMPONENTS).index(component)].sum()) / wall if wall else 0.0

    def component_at(self, times: I64) -> list[str]:
        """Component that each moment belongs to; "" outside of the steady steps."""
        shown = self.painting.layer_at(times)
        names = (*(_component(layer) for layer in LAYERS), "other-python")
        return [names[i] if i >= 0 else "" for i in shown]


def _component(layer: str) -> str:
    return "callbacks" if layer == "hooks" else layer


def spans_of(steps: Steps, kind: Kind) -> tuple[I64, I64, Bool]:
    """Starts and ends of one kind on the step thread, and the mask over the worker's records."""
    records = steps.worker.records
    mask = (records.kind == kind) & (records.thread == steps.thread)
    starts = records.start_ns[mask]
    return starts, starts + records.dur_ns[mask], mask


def build(steps: Steps, compiled_wait_ns: float = 0.0) -> Anatomy:
    """Split the steady steps.

    Args:
        steps: the steps.
        compiled_wait_ns: input wait of the mean step inside of its compiled call, as far as known.
    """
    painting = intervals.paint(_layers(steps), steps.windows)
    columns = {name: i for i, name in enumerate(COMPONENTS)}
    per_step = np.zeros((len(painting.sums), len(columns)))
    for index, layer in enumerate((*LAYERS, "other-python")):
        per_step[:, columns[_component(layer)]] += painting.sums[:, index]
    moved = 0.0
    if compiled_wait_ns and len(per_step):
        call, wait = columns["call"], columns["input-wait"]
        calls = float(per_step[:, call].mean())
        share = min(1.0, compiled_wait_ns / calls) if calls else 0.0
        moved = share * calls
        per_step[:, wait] += share * per_step[:, call]
        per_step[:, call] *= 1 - share
    return Anatomy(per_step=per_step, painting=painting, steps=steps, compiled_wait_ns=moved)


def layers(steps: Steps) -> dict[str, Intervals]:
    """When the step's thread was in each of LAYERS; they may overlap."""
    return dict(zip(LAYERS, _layers(steps), strict=True))


def _layers(steps: Steps) -> list[Intervals]:
    """Interval sets in the order of LAYERS."""
    names = names_of(steps.worker)

    def union(*kinds: Kind) -> Intervals:
        parts = [spans_of(steps, kind) for kind in kinds]
        return intervals.merge(np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]))

    return [
        union(*kinds_with(Trait.WRITES)),
        union(Kind.CALLBACK),
        _nested_loops(steps, names),
        union(Kind.HOOK),
        union(Kind.BUILD),
        _tracing(steps),
        union(Kind.GC),
        union(Kind.NEXT),
        union(Kind.SYNC),
        union(*_CALLS),
        union(Kind.LOOP),
    ]


def _nested_loops(steps: Steps, names: dict[int, Name]) -> Intervals:
    """Validation: evaluate or predict inside of another Keras loop, unless that loop is the step itself."""
    if steps.kind == Kind.LOOP:
        return intervals.empty()
    starts, ends, mask = spans_of(steps, Kind.LOOP)
    roles = steps.worker.records.name[mask]
    nested = np.array([_role(names, int(r)) in _NESTED_LOOPS for r in roles], bool)
    nested &= (steps.worker.records.flags[mask] & Flag.NESTED) != 0
    return intervals.merge(starts[nested], ends[nested])


def _role(names: dict[int, Name], name: int) -> str:
    return names[name].role if name in names else ""


def _tracing(steps: Steps) -> Intervals:
    """Tracing, and what a call that traced took beyond the usual call of its function: graph compilation."""
    starts, ends, _ = spans_of(steps, Kind.TRACE)
    records = steps.worker.records
    calls = np.isin(records.kind, kinds_with(Trait.COMPILED)) & (records.thread == steps.thread)
    traced = calls & ((records.flags & Flag.TRACED) != 0)
    if not traced.any():
        return intervals.merge(starts, ends)
    plain = calls & ~traced
    usual = {
        int(name): float(np.median(records.dur_ns[plain & (records.name == name)]))
        for name in np.intersect1d(records.name[traced], records.name[plain])
    }
    fallback = float(np.median(list(usual.values()))) if usual else 0.0
    run = np.array([usual.get(int(name), fallback) for name in records.name[traced]])
    first = records.start_ns[traced]
    last = first + np.maximum(records.dur_ns[traced] - run, 0).astype(np.int64)
    return intervals.merge(np.concatenate([starts, first]), np.concatenate([ends, last]))

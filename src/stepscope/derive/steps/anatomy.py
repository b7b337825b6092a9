"""How the wall time of the steady steps splits into components.

Every moment of the step thread belongs to exactly one component: the topmost that covers it, else other Python
(``model.report.components`` says what is painted over what). So components add up to the wall time by construction. The
order says what explains a moment best: a model call or a garbage collection inside of a callback is the callback, a
garbage collection between two calls is its own.

Time inside of a compiled step that tf.data's live model shows to be input wait is moved from ``call`` to
``input-wait`` afterwards (``pipeline.compiled_wait``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from stepscope.derive.numeric import intervals
from stepscope.derive.steps.steps import names_of
from stepscope.model.report.components import COMPONENTS, PAINTED, REST, ComponentName
from stepscope.wire.kinds import Flag, Kind, Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.derive.numeric.intervals import Intervals, Painting
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.log.events import Name
    from stepscope.model.records import F64, I64, Bool

NAMED_BY: dict[ComponentName, tuple[Kind, ...]] = {
    "callbacks": (Kind.CALLBACK,),
    "saving": kinds_with(Trait.WRITES),
    "gc": (Kind.GC,),
}
"""Components whose records say what it is, by their names."""
_COLUMNS: dict[str, int] = {name: column for column, name in enumerate(COMPONENTS)}
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

    def per_step_of(self, component: ComponentName) -> F64:
        """One component: float64[steady step] in ns."""
        column: F64 = self.per_step[:, _COLUMNS[component]]
        return column

    def mean_ns(self, component: ComponentName) -> float:
        """Of the mean steady step."""
        if len(self.per_step) == 0:
            return 0.0
        return float(self.per_step_of(component).mean())

    def ratio(self, component: ComponentName) -> float:
        """Share of steady wall time."""
        wall = self.wall_ns
        return float(self.per_step_of(component).sum()) / wall if wall else 0.0

    def component_at(self, times: I64) -> list[ComponentName | Literal[""]]:
        """Component that each moment belongs to; "" outside of the steady steps."""
        shown = self.painting.layer_at(times)
        names = (*(name for name, _ in PAINTED), REST)
        return [names[i] if i >= 0 else "" for i in shown]


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
    painting = intervals.paint([MEASURED[name][index](steps) for name, index in PAINTED], steps.windows)
    per_step = np.zeros((len(painting.sums), len(COMPONENTS)))
    for layer, name in enumerate((*(name for name, _ in PAINTED), REST)):
        per_step[:, _COLUMNS[name]] += painting.sums[:, layer]
    moved = 0.0
    if compiled_wait_ns and len(per_step):
        call, wait = _COLUMNS["call"], _COLUMNS["input-wait"]
        calls = float(per_step[:, call].mean())
        share = min(1.0, compiled_wait_ns / calls) if calls else 0.0
        moved = share * calls
        per_step[:, wait] += share * per_step[:, call]
        per_step[:, call] *= 1 - share
    return Anatomy(per_step=per_step, painting=painting, steps=steps, compiled_wait_ns=moved)


def when(steps: Steps, component: ComponentName) -> Intervals:
    """When the step's thread was in a component. Those of several may overlap."""
    first, *more = (measure(steps) for measure in MEASURED[component])
    for other in more:
        first = intervals.union(first, other)
    return first


def _records_of(*kinds: Kind) -> Callable[[Steps], Intervals]:
    """What finds when records of some kinds lasted on the step's thread."""

    def union(steps: Steps) -> Intervals:
        parts = [spans_of(steps, kind) for kind in kinds]
        return intervals.merge(np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]))

    return union


def _nested_loops(steps: Steps) -> Intervals:
    """Validation: evaluate or predict inside of another Keras loop, unless that loop is the step itself."""
    if steps.kind == Kind.LOOP:
        return intervals.empty()
    names = names_of(steps.worker)
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


MEASURED: dict[ComponentName, tuple[Callable[[Steps], Intervals], ...]] = {
    "saving": (_records_of(*NAMED_BY["saving"]),),
    "callbacks": (_records_of(Kind.CALLBACK), _records_of(Kind.HOOK)),
    "evaluation": (_nested_loops,),
    "building": (_records_of(Kind.BUILD),),
    "tracing": (_tracing,),
    "gc": (_records_of(Kind.GC),),
    "input-wait": (_records_of(Kind.NEXT),),
    "host-sync": (_records_of(Kind.SYNC),),
    "call": (_records_of(*kinds_with(Trait.COMPUTES)),),
    "framework": (_records_of(Kind.LOOP),),
}
"""What shows that the step's thread is in a component: of each as many sets of intervals as depths it is painted at.
Of callbacks, the hooks around them (Keras' own work) are painted below; ``framework`` is Keras' loop outside of all."""

"""How the wall time of the steady steps splits into components.

Every moment of the step thread belongs to exactly one component: the topmost one that covers it, or other Python if
none does (``model.report.components`` gives the painting order). So the components add up to the wall time by
construction. The order follows what explains a moment best: a model call or a garbage collection inside a callback
belongs to the callback, a garbage collection between two calls to itself.

Time inside a compiled step that tf.data's live model shows to be input wait is moved from ``call`` to ``input-wait``
afterwards (``derive.input.pipeline``, ``wait_ns_per_execution``); so is, from the rest, what stack samples show to be a
forward pass of PyTorch (``sampled_parts``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.steps import sampled_parts
from stepscope.derive.steps.steps import names_of
from stepscope.model.report.components import COMPONENTS, PAINTED, REST, ComponentName
from stepscope.wire.kinds import Flag, Kind, Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.derive.numeric.intervals import Intervals, Painting
    from stepscope.derive.steps.sampled_parts import SampledParts
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.log.events import Name
    from stepscope.tables.records import F64, I64, Bool

NAMED_BY: dict[ComponentName, tuple[Kind, ...]] = {
    "callbacks": (Kind.CALLBACK,),
    "saving": kinds_with(Trait.WRITES),
    "gc": (Kind.GC,),
}
"""Kinds whose records' names show what the time of a component is."""
_COLUMNS: dict[str, int] = {name: column for column, name in enumerate(COMPONENTS)}
_NESTED_LOOPS = frozenset({"evaluate", "predict"})


class Anatomy(Struct, frozen=True, kw_only=True):
    """The split of the steady steps. ``per_step`` float64[steady step, component] in ns, columns as COMPONENTS."""

    per_step: F64
    painting: Painting
    steps: Steps
    compiled_wait_ns: float
    """Time per mean step that was moved from call to input-wait according to tf.data's model."""
    sampled: SampledParts | None = None
    """How the rest was split by stack samples; None: it was not, as PyTorch makes no part of the steps."""

    @property
    def wall_ns(self) -> float:
        """Wall time of the steady steps."""
        return float(self.per_step.sum())

    def per_step_of(self, component: ComponentName) -> F64:
        """Time of one component: float64[steady step] in ns."""
        column: F64 = self.per_step[:, _COLUMNS[component]]
        return column

    def mean_ns(self, component: ComponentName) -> float:
        """Time of one component in the mean steady step."""
        if len(self.per_step) == 0:
            return 0.0
        return float(self.per_step_of(component).mean())

    def ratio(self, component: ComponentName) -> float:
        """Share of one component in the steady wall time."""
        wall = self.wall_ns
        return float(self.per_step_of(component).sum()) / wall if wall else 0.0

    def component_at(self, times: I64) -> list[ComponentName | Literal[""]]:
        """Component of each moment; "" outside the steady steps."""
        shown = self.painting.layer_at(times)
        names = (*(name for name, _ in PAINTED), REST)
        return [names[i] if i >= 0 else "" for i in shown]


def spans_of(steps: Steps, kind: Kind) -> tuple[I64, I64, Bool]:
    """Starts and ends of one kind on the step thread, and the mask over the worker's records."""
    records = steps.worker.records
    mask = (records.kind == kind) & (records.thread == steps.thread)
    starts = records.start_ns[mask]
    return starts, starts + records.dur_ns[mask], mask


def between(steps: Steps, cells: Intervals) -> dict[ComponentName, F64]:
    """Time of each component within disjoint sorted intervals, float64[interval] in ns; without what tf.data's model
    says of compiled calls.
    """
    return _sums(_painted(steps, cells))


def _painted(steps: Steps, cells: Intervals) -> Painting:
    return intervals.paint([MEASURED[name][index](steps) for name, index in PAINTED], cells)


def _sums(painting: Painting) -> dict[ComponentName, F64]:
    found: dict[ComponentName, F64] = {}
    for layer, name in enumerate((*(name for name, _ in PAINTED), REST)):
        found[name] = found.get(name, np.zeros(len(painting.sums))) + painting.sums[:, layer]
    return found


def build(steps: Steps, compiled_wait_ns: float = 0.0) -> Anatomy:
    """Split the steady steps.

    Args:
        steps: the steps.
        compiled_wait_ns: input wait inside the compiled call of the mean step, as far as known.
    """
    painting = _painted(steps, steps.windows)
    per_step = np.zeros((len(painting.sums), len(COMPONENTS)))
    for name, ns in _sums(painting).items():
        per_step[:, _COLUMNS[name]] = ns
    moved = 0.0
    if compiled_wait_ns and len(per_step):
        calls = float(per_step[:, _COLUMNS["call"]].mean())
        share = min(1.0, compiled_wait_ns / calls) if calls else 0.0
        moved = share * calls
        _move(per_step, "call", "input-wait", share)
    sampled = _sampled(steps, painting)
    if sampled is not None and sampled.forward_ratio:
        _move(per_step, REST, "forward", sampled.forward_ratio)
    return Anatomy(per_step=per_step, painting=painting, steps=steps, compiled_wait_ns=moved, sampled=sampled)


def _move(per_step: F64, source: ComponentName, target: ComponentName, share: float) -> None:
    """Move a share of one component of each step to another one."""
    per_step[:, _COLUMNS[target]] += share * per_step[:, _COLUMNS[source]]
    per_step[:, _COLUMNS[source]] *= 1 - share


def _sampled(steps: Steps, painting: Painting) -> SampledParts | None:
    records = steps.worker.records
    samples = np.flatnonzero((records.kind == Kind.SAMPLE) & (records.thread == steps.thread))
    return sampled_parts.build(steps, painting.layer_at(records.start_ns[samples]) == len(PAINTED), samples)


def when(steps: Steps, component: ComponentName) -> Intervals:
    """Intervals in which the step's thread was in a component. Those of different components may overlap."""
    found = intervals.empty()
    for measure in MEASURED[component]:
        found = intervals.union(found, measure(steps))
    return found


def _records_of(*kinds: Kind) -> Callable[[Steps], Intervals]:
    """A function that returns when records of some kinds lasted on the step's thread."""

    def union(steps: Steps) -> Intervals:
        parts = [spans_of(steps, kind) for kind in kinds]
        return intervals.merge(np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]))

    return union


def _nested_loops(steps: Steps) -> Intervals:
    """Validation: evaluate or predict inside another Keras loop, unless that loop is the step itself."""
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


def _logs(steps: Steps) -> Intervals:
    """Reads of the logs for callbacks, by Keras on JAX or PyTorch: inside of the hook, before the callbacks."""
    names = names_of(steps.worker)
    starts, ends, mask = spans_of(steps, Kind.SYNC)
    mine = np.array([_role(names, int(name)) == "logs" for name in steps.worker.records.name[mask]], bool)
    return intervals.merge(starts[mine], ends[mine])


def _updates(steps: Steps) -> Intervals:
    """PyTorch's optimizers, whose records are moments at the end. None begins before the one before it ends."""
    records = steps.worker.records
    mine = (records.kind == Kind.APPLY) & (records.thread == steps.thread) & (records.dur_ns == 0)
    ends = records.start_ns[mine]
    starts = np.maximum(ends - records.arg[mine], np.concatenate([ends[:1], ends[:-1]]))
    return intervals.merge(np.minimum(starts, ends), ends)


def _tracing(steps: Steps) -> Intervals:
    """Tracing, plus graph compilation: the time of a call that traced beyond the usual call of its function."""
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
    "host-sync": (_logs, _records_of(Kind.SYNC)),
    "call": (_records_of(*kinds_with(Trait.COMPUTES)),),
    "forward": (),
    "backward": (_records_of(Kind.AUTOGRAD),),
    "optimizer": (_updates,),
    "framework": (_records_of(Kind.LOOP),),
}
"""Functions that find when the step's thread is in a component, one for each depth at which it is painted. The hooks
around callbacks (Keras' own work) are painted below them; ``framework`` is Keras' loop, the outermost. No record shows
``forward``."""

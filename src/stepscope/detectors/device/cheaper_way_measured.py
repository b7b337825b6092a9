"""The step's ops are faster in another type or with other threads: measured alone on this machine.

## What it detects
Heavy ops that were at least 1.5 times as fast when they were run alone after the job in float32 instead of float64, in
bfloat16 instead of float32, with the width of a convolution over one channel as its channels (text as an image:
`Conv1D` in place of `Conv2D`), or with another number of threads than the job set.

## Why it matters
What an op costs depends on the machine: processors have instructions for 16-bit numbers or not, small ops lose more by
dividing their work among threads than they win, and a limit of threads from another machine leaves cores idle.

## Evidence
From the op trace of some steps and the replay: `faster_ratio`, share of the traced steps in such ops; `factor`, how
many times as fast they were alone; `saved_ratio`, share of the steps that this would save.

## Known limits
16-bit numbers change what a model learns: that they are faster is information only. Double precision in a model with
single-precision weights is GRF009's, a batch that is too small CFG002's. The step saves no more than its ops:
converting types costs time too.

## Remedy
`tf.keras.backend.set_floatx("float32")` and arrays in float32; remove `set_intra_op_parallelism_threads`; for 16 bits,
`keras.mixed_precision.set_global_policy("mixed_bfloat16")`.

## References
Decision 0044.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.graph import op_limits
from stepscope.derive.graph.index import NOT_FOUND
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import graph_pattern, trace_evidence
from stepscope.model.log.program import Setting
from stepscope.tables.findings import Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.causes.graph.op_limits import Cheaper, OpLimit, OpLimits
    from stepscope.derive.view import SessionView
    from stepscope.tables.place import Place

    Way = tuple[str, int]

INFORMATION = frozenset({"bfloat16"})
"""Variants that change a model's numbers too much to be advised."""
LEAST = 0.5
"""Part of the saving that is certain: converting between types, and ops that were not measured, may take the rest."""
_REMEDIES = {
    "float32": (
        "single-precision",
        'compute in single precision: tf.keras.backend.set_floatx("float32"), arrays with astype("float32")',
    ),
    "bfloat16": (
        "mixed-precision",
        'keras.mixed_precision.set_global_policy("mixed_bfloat16"), and compare what the model learns',
    ),
    "channels": (
        "width-as-channels",
        (
            "give the convolution the width as its channels: Conv1D, or expand_dims on axis 2, with the "
            "filter as (height, 1, width, number); the numbers stay the same"
        ),
    ),
    "": (
        "other-thread-count",
        "change tf.config.threading.set_intra_op_parallelism_threads, TF_NUM_INTRAOP_THREADS or OMP_NUM_THREADS",
    ),
}


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_saved: Ratio = Ratio(0.03)
    """Share of the traced steps that the other way saves. Source: decision 0003, the least finding."""


def detect(view: SessionView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding: the way that saves most."""
    limits = view.get(op_limits.build)
    if limits is None:
        return
    ways: dict[Way, list[tuple[OpLimit, Cheaper]]] = defaultdict(list)
    for limit in limits.ops:
        for way in limit.cheaper:
            if way.variant != "batch":
                ways[way.variant, way.threads if not way.variant else 0].append((limit, way))
    ranked = sorted(ways.items(), key=lambda item: (item[0][0] in INFORMATION, -_saved(item[1])))
    for (variant, _), found in ranked:
        if _saved(found) >= params.min_saved:
            yield _seen(view, limits, variant, found)
            return


def _saved(found: list[tuple[OpLimit, Cheaper]]) -> float:
    """Share of the step that the ops would take less, by their times alone."""
    return sum(limit.step_ratio * min(1.0, limit.ratio) * (1.0 - 1.0 / way.factor) for limit, way in found)


def _seen(view: SessionView, limits: OpLimits, variant: str, found: list[tuple[OpLimit, Cheaper]]) -> Seen:
    share = sum(limit.step_ratio for limit, _ in found)
    saved = _saved(found)
    types = ", ".join(dict.fromkeys(limit.type for limit, _ in found[:3]))
    trace = limits.heavy.trace
    identity, text = _REMEDIES[variant]
    places = _places(view, [row for limit, _ in found for row in limit.op.rows[:1]])
    return Seen(
        title=f"{types} ops, run alone on this machine, are {found[0][1].text}: {format_ratio(share)} of the step",
        confidence=0.6,
        where=(*(_set_to_double(view) if variant == "float32" else ()), *places),
        evidence=(
            trace_evidence.evidence(trace, "faster_ratio", share, "ratio"),
            trace_evidence.evidence(trace, "factor", found[0][1].factor, "times"),
            trace_evidence.evidence(trace, "saved_ratio", saved, "ratio"),
            trace_evidence.steps(trace),
        ),
        cost=cost_of(view, saved, low=saved * LEAST, basis="modelled"),
        remedies=(Remedy(id=identity, text=text),),
        explanation="The ops were run alone after the job as they are, and in this way.",
        severity="info" if variant in INFORMATION else None,
    )


def _places(view: SessionView, rows: Sequence[int]) -> tuple[Place, ...]:
    """Where the ops were made; of gradients where the ops that they belong to were."""
    index = view.graphs
    if index is None:
        return ()
    forward = {row: index.forward_of(row) for row in rows if index.is_gradient(row)}
    mine = [row if forward.get(row, NOT_FOUND) == NOT_FOUND else forward[row] for row in rows]
    return graph_pattern.places(view, index, mine)


def _set_to_double(view: SessionView) -> tuple[Place, ...]:
    """The line that made Keras compute in double precision."""
    settings = view.worker.all(Setting) if view.worker is not None else []
    last = next((one for one in reversed(settings) if one.name == "double_precision"), None)
    if last is None or not last.value or not last.file:
        return ()
    return (view.place(last.file, last.line, function=last.function),)


DETECTOR = Detector(
    code="KRN007",
    name="cheaper-way-measured",
    cause="Hardware: improper configuration",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.NODES, Signal.OP_TRACE}),
    params=Params(),
    detect=detect,
)

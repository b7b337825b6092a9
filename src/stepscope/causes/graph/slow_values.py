"""Nodes of ONNX Runtime that are slow because of the numbers in them, by the model's file or by ONNX Runtime's profile.

A CPU without hardware for denormal numbers (below 1.2e-38 in single precision) leaves its fast path for each of them.
The file says how many of the weights are. A profile shows the rest: of two nodes of one type one takes many times as
long for each multiplication, which sizes do not explain.

Serves denormal_weights.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.model.log.events import InferenceSession
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.nearby import ModelWeights

FLUSHES = "set_denormal_as_zero"
"""Key of the session's configuration. Source: onnxruntime_session_options_config_keys.h, ONNX Runtime 1.32.0."""
_CPU = "CPUExecutionProvider"
_IN, _OUT = "input_type_shape", "output_type_shape"
"""Arguments of a node's event in ONNX Runtime's profile."""
_CONVOLUTIONS = frozenset({"Conv", "FusedConv", "NhwcFusedConv"})
_PRODUCTS = frozenset({"MatMul", "FusedMatMul", "Gemm", "FusedGemm"})
_LEAST_WORK = 100_000
"""Multiplications of a node below which other things take its time."""
_FEW = 8
"""Uses of each weight below which reading the weights from memory takes a node's time, as in the steps of a decoder."""
_SIMILAR = 30
"""Nodes whose work differs by more are not compared."""


class LoadedModel(Struct, frozen=True, kw_only=True):
    """A model that the steps run, whose file was seen."""

    made: InferenceSession
    ratio: float
    """Share of the steady wall time in its runs."""
    weights: ModelWeights


class SlowNode(Struct, frozen=True, kw_only=True):
    """A node of a profile."""

    name: str
    op: str
    times: float
    """Time for a multiplication over that of the fastest node of its type."""
    ratio: float
    """Share of the traced steps."""


def files(view: StepsView) -> tuple[LoadedModel, ...]:
    """The models that the thread of the steps runs on the CPU and whose files were seen near the job."""
    made = {event.model: event for event in view.steps.worker.all(InferenceSession)}
    seen = {one.model: one for one in view.session.manifest.models}
    found = []
    for row in view.named_times(Kind.INFERENCE):
        event = made.get(row.name.text)
        if event is not None and event.model in seen and event.providers[:1] == [_CPU]:
            ratio = min(1.0, row.total_ns / view.steps.steady_ns)
            found.append(LoadedModel(made=event, ratio=ratio, weights=seen[event.model]))
    return tuple(found)


def flushes(view: StepsView) -> bool:
    """Whether the program names the setting that takes denormal numbers for zero."""
    return any(FLUSHES in text for text in view.session.sources.values())


def nodes(trace: OpView, times: float) -> tuple[SlowNode, ...] | None:
    """Nodes that take so many times as long for a multiplication as another one of their type, the slowest first. None:
    it is no profile of ONNX Runtime with the shapes of two such nodes.
    """
    works = list(_works(trace))
    rated = {name: (op, work, work / took) for name, op, work, took in works if took > 0 and work >= _LEAST_WORK}
    if len(rated) <= 1:
        return None
    shares = _shares(trace)
    found = []
    for name, (op, work, rate) in rated.items():
        alike = [r for o, w, r in rated.values() if o == op and 1 / _SIMILAR <= w / work <= _SIMILAR]
        if max(alike) >= times * rate:
            found.append(SlowNode(name=name, op=op, times=max(alike) / rate, ratio=shares.get(name, 0.0)))
    return tuple(sorted(found, key=lambda one: -one.ratio))


def _works(view: OpView) -> Iterator[tuple[str, str, float, float]]:
    """Name and type of each node that multiplies, with its multiplications and the median of its times in ns."""
    trace = view.trace
    if not {_IN, _OUT}.issubset(trace.stats.event_names()):
        return
    inputs, given = trace.texts(_IN)
    outputs, made = trace.texts(_OUT)
    for meta, (name, op) in enumerate(zip(trace.metas.op_name.tolist(), trace.metas.op_type.tolist(), strict=True)):
        if trace.strings[op] not in _CONVOLUTIONS | _PRODUCTS:
            continue
        rows = trace.events_of(np.array([meta]))
        rows = rows[(inputs[rows] >= 0) & (outputs[rows] >= 0)]
        if not len(rows):
            continue
        usual = rows[np.argsort(trace.events.dur_ns[rows])[len(rows) // 2]]
        kind, work = _work(trace.strings[op], given[inputs[usual]], made[outputs[usual]])
        yield trace.strings[name], kind, work, float(trace.events.dur_ns[usual])


def _work(op: str, inputs: str, outputs: str) -> tuple[str, float]:
    """The type, with depthwise convolutions and nodes of few rows apart, and the multiplications of a node; 0 where
    shapes do not say.
    """
    given, made = _shapes(inputs), _shapes(outputs)
    if not given or not made:
        return op, 0.0
    results = math.prod(made[0])
    if op in _PRODUCTS:
        rows = math.prod(made[0][:-1])
        return f"{op} of few rows" if rows < _FEW else op, results * float(given[0][-1]) if given[0] else 0.0
    if len(given) == 1 or not given[1] or not given[1][0]:
        return op, 0.0
    kernel = math.prod(given[1]) / given[1][0]
    if given[1][1:2] == [1]:
        op = f"{op} of one channel"
    elif results < _FEW * given[1][0]:
        op = f"{op} of few rows"
    return op, results * kernel


def _shapes(text: str) -> list[list[int]]:
    """Shapes of tensors in single precision: ``[{"float":[1,3,80,80]}, ...]``; empty if the first is none."""
    try:
        tensors = json.loads(text)
    except ValueError:
        return []
    found = []
    for one in tensors if isinstance(tensors, list) else []:
        shape = one.get("float") if isinstance(one, dict) else None
        if not isinstance(shape, list) or not all(isinstance(size, int) for size in shape):
            break
        found.append(shape)
    return found


def _shares(view: OpView) -> dict[str, float]:
    """Share of the traced steps in each node."""
    trace, windows = view.trace, view.periods.windows
    starts = trace.events.start_ns
    spent = intervals.clipped_sum(starts, trace.events.end_ns, windows)
    whole = max(1, intervals.total(windows))
    per_meta = np.bincount(trace.events.meta, weights=spent, minlength=len(trace.metas)) / whole
    found: dict[str, float] = {}
    for name, ratio in zip(trace.metas.op_name.tolist(), per_meta.tolist(), strict=True):
        found[trace.strings[name]] = found.get(trace.strings[name], 0.0) + ratio
    return found

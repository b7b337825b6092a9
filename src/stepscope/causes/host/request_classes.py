"""The calls of a task by the shape that they were given and by how many were in flight, and its first answers.

Service time is what a call of the same shape takes with no other in flight; what calls with others in flight take
beyond it is time in which they share the cores, or wait for each other: the queue that the records show. A queue before
the call (a server's own) is not in it: only a span of the user's, or the client, sees that.

Serves the report's table of tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from stepscope.model.log.program import ShapeMet
from stepscope.model.report.task import CallClass
from stepscope.wire.kinds import OTHER_SHAPE, SHAPE_SHIFT

if TYPE_CHECKING:
    from stepscope.model.session.session import Worker
    from stepscope.tables.records import I64

MAX_CLASSES = 40
MIN_CALLS = 4
"""A class of fewer calls says nothing about how long they queue, or take alone."""


class TimedCalls(Protocol):
    """The calls of a task that have records. Shapes: int64[call]."""

    @property
    def starts(self) -> I64:
        """Start in nanoseconds since session start."""

    @property
    def durs(self) -> I64:
        """Duration in nanoseconds."""

    @property
    def flags(self) -> I64:
        """Flags of the records, with the number of the shape."""


def build(worker: Worker, calls: TimedCalls) -> tuple[CallClass, ...]:
    """Classes of a task's calls, by shape and then by calls in flight; () if they are all of one class.

    Args:
        worker: the process.
        calls: the calls, each with its own record: what ran with those that were only counted is not known.
    """
    if not len(calls.starts):
        return ()
    shapes = {event.id: event for event in worker.all(ShapeMet)}
    shape = (calls.flags >> SHAPE_SHIFT) & OTHER_SHAPE
    flight = in_flight(calls.starts, calls.durs)
    level = np.ceil(np.log2(np.maximum(flight, 1))).astype(np.int64)  # 1, 2, 3-4, 5-8 ...
    alone = {
        number: _median(calls.durs[mine])
        for number in np.unique(shape).tolist()
        if (mine := (shape == number) & (flight == 1)).sum() >= MIN_CALLS
    }
    pairs, which = np.unique(np.stack([shape, level]), axis=1, return_inverse=True)
    if pairs.shape[1] == 1:  # the task itself says it
        return ()
    found = [
        _class(calls, which.reshape(-1) == i, shapes.get(int(number)), int(step), alone.get(int(number)))
        for i, (number, step) in enumerate(pairs.T.tolist())
    ]
    kept = sorted(found, key=lambda one: -one.total_ns)[:MAX_CLASSES]
    return tuple(sorted(kept, key=lambda one: (_size(one.dims), one.dims, one.in_flight)))


def _median(durs: I64) -> int:
    return int(np.percentile(durs, 50, method="inverted_cdf"))


def _size(dims: tuple[int, ...]) -> int:
    return int(np.prod(dims)) if dims else 0


def _class(calls: TimedCalls, mine: I64, shape: ShapeMet | None, step: int, alone: int | None) -> CallClass:
    durs, starts = calls.durs[mine], calls.starts[mine]
    p50, p95 = _median(durs), int(np.percentile(durs, 95, method="inverted_cdf"))
    return CallClass(
        dims=tuple(shape.dims) if shape is not None else (),
        rounded=shape.rounded if shape is not None else False,
        in_flight=1 if step == 0 else (1 << (step - 1)) + 1,
        in_flight_to=1 << step,
        count=len(durs),
        total_ns=int(durs.sum()),
        first_ns=int(durs[np.argmin(starts)]),
        p50_ns=p50,
        p95_ns=p95,
        queued_ns=max(0, p50 - alone) if alone is not None and step and len(durs) >= MIN_CALLS else None,
    )


def in_flight(starts: I64, durs: I64) -> I64:
    """Calls that run when each call starts, itself included. int64[call]."""
    begun = np.searchsorted(np.sort(starts), starts, side="right")
    ended = np.searchsorted(np.sort(starts + durs), starts, side="right")
    return np.asarray(begun - ended, np.int64)


def slow_first(starts: I64, durs: I64, factor: float) -> int:
    """Number of first calls before one takes at most ``factor`` medians."""
    order = np.argsort(starts, kind="stable")
    usual = durs[order] <= factor * np.median(durs)
    return int(np.argmax(usual)) if usual.any() else 0

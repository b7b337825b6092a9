"""The offset of one link at any time: hard bounds, and the best estimate between them.

Bounds: the truth passes through each gate. Near a moment it is a straight line, the drift, but for a wander of at most
``WANDER`` of the drift; so a gate at a distance d counts, widened by WANDER x d. The bounds are the smallest and the
largest offset at that moment of any line that passes through all gates so widened (a linear program of two unknowns:
offset and drift).
If no line does, the drift has changed more: there each gate bounds by itself, widened by the largest drift x d.

Estimate: a line through the middles of the gates, by weighted least squares; narrow gates and near ones weigh more. Its
error is half the asymmetry of the path, which no method can see: only the bounds hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import Struct

from stepscope.derive.clocks.gates import RATE_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.derive.clocks.gates import Gates
    from stepscope.tables.records import F64, Bool

WANDER = 1e-6
"""Largest change of a clock's rate within some minutes. Source: quartz moves by less than 1 ppm with a few degrees."""
MAX_GATES = 41
"""Gates around a moment that are looked at: ten minutes to each side at a burst every 30 s."""
_FLOOR_NS = 20_000.0
"""What the middle of a gate is off by at best: time between taking a stamp and sending."""
_USUAL_RATE = 1e-4
_HALVINGS = 48


class Offsets(Struct, frozen=True, kw_only=True):
    """Offset of a link at some times, with its bounds. Nanoseconds, float64[time]."""

    low_ns: F64
    high_ns: F64
    estimate_ns: F64
    bent: int
    """Times around which no line passes through all gates: the drift changed."""


class _Around(NamedTuple):
    """Gates around each time. float64[time, gate]."""

    distance: F64
    low: F64
    high: F64


def at(gates: Gates, times: F64) -> Offsets:
    """Offset at ``times``, which are of the clock of A, in any order; there is at least one gate."""
    probes, causal = gates.take(gates.probes), gates.take(~gates.probes)
    around = _Around(
        *(np.concatenate(both, axis=1) for both in zip(_around(probes, times), _around(causal, times), strict=True))
    )
    low, high, fits = _extremes(around)
    bent = ~fits
    if bent.any():
        near = np.searchsorted(gates.at_ns, times)
        wrong = near[bent]
        bent = np.array([bool((np.abs(wrong - here) <= MAX_GATES).any()) for here in near])
        reach = RATE_MAX * np.abs(around.distance)
        low[bent] = (around.low - reach).max(axis=1)[bent]
        high[bent] = (around.high + reach).min(axis=1)[bent]
    middle = (low + high) / 2
    estimate = _estimate(_around(probes, times)) if len(probes) else middle
    return Offsets(low_ns=low, high_ns=high, estimate_ns=np.clip(estimate, low, high), bent=int(bent.sum()))


def _around(gates: Gates, times: F64) -> _Around:
    """The gates next to each time, at most ``MAX_GATES``, widened by the wander until then."""
    count = min(MAX_GATES, len(gates))
    first = np.clip(np.searchsorted(gates.at_ns, times) - (count + 1) // 2, 0, len(gates) - count)
    near = first[:, None] + np.arange(count)
    distance = gates.at_ns[near] - times[:, None]
    wander = WANDER * np.abs(distance) + 1.0  # rounding of what was a nanosecond
    return _Around(distance, gates.low_ns[near] - wander, gates.high_ns[near] + wander)


def _extremes(around: _Around) -> tuple[F64, F64, Bool]:
    """Smallest and largest offset of a line through the gates, and whether there is one. [time]."""
    distance, low, high = around
    rows = np.arange(len(distance))

    def upper(rate: F64) -> tuple[F64, F64]:
        """The lowest of the upper bounds for lines of a rate, and its slope by the rate."""
        value = high - rate[:, None] * distance
        where = np.argmin(value, axis=1)
        return value[rows, where], -distance[rows, where]

    def lower(rate: F64) -> tuple[F64, F64]:
        value = low - rate[:, None] * distance
        where = np.argmax(value, axis=1)
        return value[rows, where], -distance[rows, where]

    def room(rate: F64) -> tuple[F64, F64]:
        (top, up), (bottom, down) = upper(rate), lower(rate)
        return top - bottom, up - down

    ends = np.full(len(distance), RATE_MAX)
    widest = _peak(room, -ends, ends)
    fits = room(widest)[0] >= 0
    slowest, fastest = _edge(room, widest, -ends), _edge(room, widest, ends)
    top = upper(np.clip(_peak(upper, -ends, ends), slowest, fastest))[0]
    bottom = lower(np.clip(_peak(lambda rate: (lower(rate)[0], -lower(rate)[1]), -ends, ends), slowest, fastest))[0]
    return bottom, top, fits


def _peak(function: Callable[[F64], tuple[F64, F64]], left: F64, right: F64) -> F64:
    """Where a concave function of the rate is largest, by halving. [time]."""
    for _ in range(_HALVINGS):
        middle = (left + right) / 2
        rises = function(middle)[1] > 0
        left, right = np.where(rises, middle, left), np.where(rises, right, middle)
    return (left + right) / 2


def _edge(room: Callable[[F64], tuple[F64, F64]], inside: F64, outside: F64) -> F64:
    """The last rate on the way from ``inside`` to ``outside`` for which there is room; on its outer side. [time]."""
    end = outside
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        has = room(middle)[0] >= 0
        inside, outside = np.where(has, middle, inside), np.where(has, outside, middle)
    result: F64 = np.where(room(end)[0] >= 0, end, outside)
    return result


def _estimate(around: _Around) -> F64:
    """Offset of the line of least squares through the middles of exchanges, at each time. [time]."""
    distance, low, high = around
    middle, width = (low + high) / 2, high - low
    error = _FLOOR_NS + (width - width.min(axis=1, keepdims=True)) / 2
    weight = error**-2.0
    origin = middle[:, :1]
    value = middle - origin
    whole, tilt = weight.sum(axis=1), (weight * distance).sum(axis=1)
    spread = (weight * distance**2).sum(axis=1) + _USUAL_RATE**-2
    mean, mixed = (weight * value).sum(axis=1), (weight * distance * value).sum(axis=1)
    result: F64 = (mean * spread - mixed * tilt) / (whole * spread - tilt**2) + origin[:, 0]
    return result

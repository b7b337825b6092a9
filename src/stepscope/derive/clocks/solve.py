"""Offsets of all hosts against one of them, from the links between any two.

Each link has bounds and an estimate at common times. Bounds of a host are the tightest sums of bounds along any path
from the reference (shortest paths in a graph of differences). Estimates are those of least squares over all links, so
that each asymmetry of a path is averaged with those of others (HUYGENS, NSDI 2018: the network effect).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.clocks import link_offset
from stepscope.derive.clocks.gates import RATE_MAX, Gates, gathered, joined
from stepscope.derive.clocks.host_clock import ClockModel, HostClock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.tables.records import F64

MAX_WRONG = 0.05
"""Share of collectives that may contradict the exchanges before none is trusted."""
MAX_SQUARES = 64
"""Hosts up to which least squares are solved over all links; more are estimated along the paths of narrowest links."""
_KNOTS_NS = 5_000_000_000
"""Distance of the times at which offsets are computed, at most so many as ``_MAX_KNOTS``."""
_MAX_KNOTS = 2_000
_MARGIN_NS = 1_000.0
"""More than the resolution of a float64 at an uptime of nine years."""
_AT_ONCE = 200
"""Times at which least squares are solved at once: 64 hosts take 33 kB each."""


class Link(Struct, frozen=True, kw_only=True):
    """What is known of the offset between two hosts: the clock of ``b`` minus that of ``a``."""

    a: str
    b: str
    gates: Gates
    """Times by the clock of ``a``."""


class _Placed(Struct, frozen=True):
    """A link between two hosts by number, its gates at times of the reference."""

    a: int
    b: int
    gates: Gates


def solve(
    links: Sequence[Link],
    reference: str,
    *,
    span: tuple[float, float],
    jumps: Mapping[str, Sequence[float]] | None = None,
) -> ClockModel:
    """The clocks of all hosts that links connect with ``reference``.

    Args:
        links: in any order; several of the same two hosts count as one.
        reference: the host whose clock is the common one.
        span: first and last time of interest, by the clock of the reference; those of gates are added.
        jumps: times at which a host's clock jumped, by its own clock: nothing before says anything about after.
    """
    paired = _paired(links)
    found, dropped = _checked(paired)
    rough = _rough(found, reference)
    hosts = list(rough)
    number = {host: index for index, host in enumerate(hosts)}
    placed = [
        _Placed(number[link.a], number[link.b], link.gates.moved(_to_reference(link.gates.at_ns, rough[link.a])))
        for link in found
        if link.a in number
    ]
    breaks = sorted(
        float(_to_reference(np.array([at]), rough[host])[0])
        for host, times in (jumps or {}).items()
        if host in number
        for at in times
    )
    known = np.concatenate([np.array(span), np.array(breaks), *(link.gates.at_ns for link in placed)])
    edges = [float(known.min()) - _MARGIN_NS, *breaks, float(known.max()) + _MARGIN_NS]
    pieces = [
        _piece(len(hosts), placed, (left, right), last=right == edges[-1])
        for left, right in itertools.pairwise(edges)
        if right > left
    ]
    clocks = {
        host: HostClock(
            host=host,
            at_ns=np.concatenate([piece.at for piece in pieces]),
            piece=np.concatenate([np.full(len(piece.at), index) for index, piece in enumerate(pieces)]),
            offset_ns=np.concatenate([piece.offset[number[host]] for piece in pieces]),
            low_ns=np.concatenate([piece.low[number[host]] for piece in pieces]),
            high_ns=np.concatenate([piece.high[number[host]] for piece in pieces]),
        )
        for host in hosts
    }
    conflicts = sum(piece.conflicts for piece in pieces)
    bent = sum(piece.bent for piece in pieces)
    return ClockModel(reference=reference, clocks=clocks, contradictions=dropped, conflicts=conflicts, bent=bent)


def _paired(links: Sequence[Link]) -> list[Link]:
    """One link for each two hosts, all turned the same way."""
    parts: dict[tuple[str, str], list[Gates]] = {}
    for link in links:
        if link.a == link.b or not len(link.gates):
            continue
        if link.a < link.b:
            parts.setdefault((link.a, link.b), []).append(link.gates)
        else:
            parts.setdefault((link.b, link.a), []).append(_turned(link.gates))
    return [Link(a=a, b=b, gates=joined(gates)) for (a, b), gates in sorted(parts.items())]


def _turned(gates: Gates) -> Gates:
    """The same gates seen from the other host."""
    at = gates.at_ns + (gates.low_ns + gates.high_ns) / 2
    return Gates(at_ns=at, low_ns=-gates.high_ns, high_ns=-gates.low_ns, probes=gates.probes)


def _checked(links: list[Link]) -> tuple[list[Link], int]:
    """Links with what can be trusted of their collectives, and the number of collectives that contradict exchanges."""
    kept, dropped = [], 0
    for link in links:
        known, causal = link.gates.take(link.gates.probes), link.gates.take(~link.gates.probes)
        fits = causal.low_ns <= causal.high_ns
        if len(known) and len(causal):
            offsets = link_offset.at(known, causal.at_ns)
            fits &= (causal.low_ns <= offsets.high_ns) & (causal.high_ns >= offsets.low_ns)
        wrong = int((~fits).sum())
        dropped += wrong
        if wrong > MAX_WRONG * len(causal):  # then the others are paired wrongly as well
            fits[:] = False
        gates = joined([known, gathered(causal.take(fits))])
        if len(gates):
            kept.append(Link(a=link.a, b=link.b, gates=gates))
    return kept, dropped


class _Line(Struct, frozen=True):
    """A host's offset against the reference, roughly: enough to place times that are apart by the drift."""

    at: float
    value: float
    rate: float

    def __call__(self, at: F64) -> F64:
        return self.value + self.rate * (at - self.at)


def _rough(links: list[Link], reference: str) -> dict[str, _Line]:
    """A line for each host that is connected with the reference, along paths of few links."""
    found = {reference: _Line(0.0, 0.0, 0.0)}
    fresh = [reference]
    while fresh:
        after = []
        for link in links:
            for here, there, turn in ((link.a, link.b, 1), (link.b, link.a, -1)):
                if here in fresh and there not in found:
                    gates = link.gates if turn == 1 else _turned(link.gates)
                    found[there] = _chained(found[here], gates)
                    after.append(there)
        fresh = after
    return found


def _chained(line: _Line, gates: Gates) -> _Line:
    at, middle = _to_reference(gates.at_ns, line), (gates.low_ns + gates.high_ns) / 2
    mean = float(at.mean())
    spread = float(((at - mean) ** 2).sum())
    rate = float(((at - mean) * (middle - middle.mean())).sum()) / spread if spread > 0 else 0.0
    rate = min(RATE_MAX, max(-RATE_MAX, rate))
    here = float(line(np.array([mean]))[0])
    return _Line(mean, here + float(middle.mean()), line.rate + rate)


def _to_reference(at: F64, line: _Line) -> F64:
    """Times of a host as times of the reference."""
    guess = at - line.value
    result: F64 = at - line(guess)
    return result


class _Piece(Struct, frozen=True):
    """Offsets of all hosts in a time without jumps. [host, time]."""

    at: F64
    low: F64
    high: F64
    offset: F64
    conflicts: int
    bent: int


def _piece(hosts: int, links: list[_Placed], span: tuple[float, float], *, last: bool) -> _Piece:
    first, end = span
    inside = [
        _Placed(link.a, link.b, gates)
        for link in links
        if len(gates := link.gates.take((link.gates.at_ns >= first) & ((link.gates.at_ns < end) | last)))
    ]
    count = int(np.clip(np.ceil((end - first) / _KNOTS_NS), 1, _MAX_KNOTS))
    at = np.linspace(first, end, count + 1)
    offsets = [link_offset.at(link.gates, at) for link in inside]
    low, high = _tightest(hosts, inside, offsets, len(at))
    wrong = (low > high).any(axis=0)
    estimate = _estimates(hosts, inside, offsets, len(at))
    if wrong.any():  # a tree of the narrowest links cannot contradict itself
        tree = _tree(hosts, inside, offsets)
        links_of, offsets_of = [inside[i] for i in tree], [offsets[i] for i in tree]
        alone = (*_tightest(hosts, links_of, offsets_of, len(at)), _estimates(hosts, links_of, offsets_of, len(at)))
        for values, other in zip((low, high, estimate), alone, strict=True):
            values[:, wrong] = other[:, wrong]
    return _Piece(
        at=at,
        low=low,
        high=high,
        offset=np.clip(estimate, low, high),
        conflicts=int(wrong.sum()),
        bent=sum(one.bent for one in offsets),
    )


def _tightest(hosts: int, links: list[_Placed], offsets: list[link_offset.Offsets], times: int) -> tuple[F64, F64]:
    low, high = np.full((hosts, times), -np.inf), np.full((hosts, times), np.inf)
    low[0] = high[0] = 0.0
    for _ in range(hosts):
        before = high.copy(), low.copy()
        for link, known in zip(links, offsets, strict=True):
            a, b = link.a, link.b
            np.minimum(high[b], high[a] + known.high_ns, out=high[b])
            np.minimum(high[a], high[b] - known.low_ns, out=high[a])
            np.maximum(low[b], low[a] + known.low_ns, out=low[b])
            np.maximum(low[a], low[b] - known.high_ns, out=low[a])
        if np.array_equal(before[0], high) and np.array_equal(before[1], low):
            break
    return low, high


def _tree(hosts: int, links: list[_Placed], offsets: list[link_offset.Offsets]) -> list[int]:
    """Links that connect all hosts with the reference, the narrowest first (Kruskal)."""
    group = list(range(hosts))
    chosen = []
    for index in np.argsort([float(np.median(one.high_ns - one.low_ns)) for one in offsets], kind="stable"):
        a, b = group[links[index].a], group[links[index].b]
        if a != b:
            chosen.append(int(index))
            group = [a if one == b else one for one in group]
    return chosen


def _estimates(hosts: int, links: list[_Placed], offsets: list[link_offset.Offsets], times: int) -> F64:
    """Offset of each host at each time; the reference is 0, a host without links not a number. [host, time]."""
    if hosts > MAX_SQUARES:
        return _along(hosts, links, offsets, times)
    edges = [*range(0, times, _AT_ONCE), times]
    parts = [_squares(hosts, links, offsets, slice(*ends)) for ends in itertools.pairwise(edges)]
    return np.concatenate(parts, axis=1)


def _along(hosts: int, links: list[_Placed], offsets: list[link_offset.Offsets], times: int) -> F64:
    """Sums of estimates along the tree of the narrowest links."""
    found = np.full((hosts, times), np.nan)
    found[0] = 0.0
    left = [(links[i].a, links[i].b, offsets[i].estimate_ns) for i in _tree(hosts, links, offsets)]
    known = {0}
    while True:
        waiting = []
        for a, b, estimate in left:
            if a in known:
                found[b] = found[a] + estimate
            elif b in known:
                found[a] = found[b] - estimate
            else:
                waiting.append((a, b, estimate))
                continue
            known |= {a, b}
        if len(waiting) == len(left):
            return found
        left = waiting


def _squares(hosts: int, links: list[_Placed], offsets: list[link_offset.Offsets], part: slice) -> F64:
    """Least squares over all links at some of the times."""
    times = part.stop - part.start
    normal = np.zeros((times, hosts, hosts))
    right = np.zeros((times, hosts))
    for link, known in zip(links, offsets, strict=True):
        weight = 1e12 / np.maximum(known.high_ns[part] - known.low_ns[part], 1e3) ** 2
        moment = weight * known.estimate_ns[part]
        normal[:, link.a, link.a] += weight
        normal[:, link.b, link.b] += weight
        normal[:, link.a, link.b] -= weight
        normal[:, link.b, link.a] -= weight
        right[:, link.a] -= moment
        right[:, link.b] += moment
    normal[:, 0, :] = normal[:, :, 0] = 0.0
    normal[:, 0, 0] = 1.0
    right[:, 0] = 0.0
    solved: F64 = np.einsum("tij,tj->it", np.linalg.pinv(normal, hermitian=True), right)
    joined_hosts = _joined_hosts(hosts, links)
    solved[[host for host in range(hosts) if host not in joined_hosts]] = np.nan
    return solved


def _joined_hosts(hosts: int, links: list[_Placed]) -> set[int]:
    """Hosts that links connect with the reference, in this piece of time."""
    group = list(range(hosts))
    for link in links:
        a, b = group[link.a], group[link.b]
        if a != b:
            group = [a if one == b else one for one in group]
    return {host for host in range(hosts) if group[host] == group[0]}

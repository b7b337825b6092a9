"""Places boxes in layers so that arrows lead downwards, with few crossings and short ways.

In four steps, as most drawings of directed graphs are made: arrows of circles that lead back are turned around; each
box gets a layer below all that lead to it; boxes are ordered within the layers by the mean place of their neighbours;
and their places are those nearest to the mean place of their neighbours that the order and the widths allow.

Source: Sugiyama, Tagawa, Toda: Methods for visual understanding of hierarchical system structures (IEEE SMC-11, 1981);
places by isotonic regression (pool adjacent violators; Barlow et al. 1972).

Cost: about 20 us for each box and each layer that an arrow crosses.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GAP_X, GAP_Y = 22.0, 46.0
"""Between neighbours, and between layers: the latter has room for a line of text at an arrow."""
SWEEPS = 6
BEND = 10.0
"""Width that an arrow takes where it passes a layer."""
MOST_BENDS = 4_000
"""Places where arrows pass layers, at most: beyond, the longest arrows lead straight to their ends."""
Point = tuple[float, float]


class BoxPlaces(Struct, frozen=True, kw_only=True):
    """Places. Each is the box's upper left corner."""

    corners: tuple[Point, ...]
    width: float
    height: float
    ways: Mapping[tuple[int, int], tuple[Point, ...]]
    """Points through which each arrow leads, from its source to its target."""
    back: frozenset[tuple[int, int]]
    """Arrows that lead upwards: they close circles."""


def place(sizes: Sequence[Point], arrows: Sequence[tuple[int, int]], order: Sequence[int]) -> BoxPlaces:
    """Place boxes.

    Args:
        sizes: width and height of each box.
        arrows: pairs of boxes, each once, none from a box to itself.
        order: which of several boxes comes first where arrows do not say: by time.
    """
    if not sizes:
        return BoxPlaces(corners=(), width=0.0, height=0.0, ways={}, back=frozenset())
    back = _back(len(sizes), arrows, order)
    down = [(b, a) if (a, b) in back else (a, b) for a, b in arrows]
    down = list(dict.fromkeys(down))
    layer = _layers(len(sizes), down)
    drawing = _Drawing(sizes, down, layer, order)
    drawing.sort()
    drawing.settle()
    return drawing.layout(arrows, back)


def _back(count: int, arrows: Sequence[tuple[int, int]], order: Sequence[int]) -> frozenset[tuple[int, int]]:
    """Arrows to be turned around, so that there are no circles.

    Boxes are taken in turn when all that lead to them were; where there is none, the first by ``order`` is.
    """
    targets: dict[int, list[int]] = defaultdict(list)
    left = [0] * count
    for a, b in arrows:
        targets[a].append(b)
        left[b] += 1
    ready = [(order[box], box) for box in range(count) if not left[box]]
    heapq.heapify(ready)
    rest = sorted(range(count), key=lambda box: order[box], reverse=True)
    position: dict[int, int] = {}
    while len(position) < count:
        if ready:
            box = heapq.heappop(ready)[1]
        else:
            while rest[-1] in position:
                rest.pop()
            box = rest.pop()
        if box in position:
            continue
        position[box] = len(position)
        for target in targets[box]:
            left[target] -= 1
            if not left[target] and target not in position:
                heapq.heappush(ready, (order[target], target))
    return frozenset((a, b) for a, b in arrows if position[a] > position[b])


def _layers(count: int, down: Sequence[tuple[int, int]]) -> list[int]:
    """Layer of each box: below all that lead to it; what only leads to others stands right above the first of them."""
    targets: dict[int, list[int]] = defaultdict(list)
    left, layer = [0] * count, [0] * count
    for a, b in down:
        targets[a].append(b)
        left[b] += 1
    sources = [box for box in range(count) if not left[box]]
    ready = list(sources)
    for box in ready:
        for target in targets[box]:
            layer[target] = max(layer[target], layer[box] + 1)
            left[target] -= 1
            if not left[target]:
                ready.append(target)
    for box in sources:
        if targets[box]:
            layer[box] = min(layer[target] for target in targets[box]) - 1
    return layer


class _Drawing:
    """Boxes and bends in their layers."""

    def __init__(
        self, sizes: Sequence[Point], down: Sequence[tuple[int, int]], layer: Sequence[int], order: Sequence[int]
    ) -> None:
        self.sizes = sizes
        self.widths = [width for width, _ in sizes]
        self.rows: list[list[int]] = [[] for _ in range(max(layer) + 1)]
        self.above: list[list[int]] = [[] for _ in sizes]
        self.below: list[list[int]] = [[] for _ in sizes]
        self.bends: dict[tuple[int, int], list[int]] = {}
        self.layer = list(layer)
        for box in sorted(range(len(sizes)), key=lambda one: order[one]):
            self.rows[layer[box]].append(box)
        free = MOST_BENDS
        for a, b in sorted(down, key=lambda arrow: layer[arrow[1]] - layer[arrow[0]]):
            between = layer[b] - layer[a] - 1
            if between > free:
                self.bends[a, b] = []
                continue
            free -= between
            last, through = a, []
            for row in range(layer[a] + 1, layer[b]):
                bend = len(self.widths)
                self.widths.append(BEND)
                self.layer.append(row)
                self.above.append([])
                self.below.append([])
                self.rows[row].append(bend)
                self._link(last, bend)
                through.append(bend)
                last = bend
            self._link(last, b)
            self.bends[a, b] = through
        self.x = [0.0] * len(self.widths)

    def _link(self, upper: int, lower: int) -> None:
        self.below[upper].append(lower)
        self.above[lower].append(upper)

    def sort(self) -> None:
        """Order each layer by the mean place of neighbours, downwards and upwards in turn."""
        place = [0.0] * len(self.widths)
        for row in self.rows:
            for i, box in enumerate(row):
                place[box] = float(i)
        best, fewest = [list(row) for row in self.rows], self._crossings(place)
        for sweep in range(SWEEPS):
            links = self.below if sweep % 2 else self.above
            for row in reversed(self.rows) if sweep % 2 else self.rows:
                mean = {b: sum(place[n] for n in links[b]) / len(links[b]) if links[b] else place[b] for b in row}
                row.sort(key=lambda box: (mean[box], place[box]))
                for i, box in enumerate(row):
                    place[box] = float(i)
            crossings = self._crossings(place)
            if crossings < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
            if not fewest:
                break
        self.rows = best

    def _crossings(self, place: Sequence[float]) -> int:
        """Number of pairs of links that cross, counted by merging."""
        total = 0
        for row in self.rows:
            ends = [end for box in row for end in sorted(place[n] for n in self.below[box])]
            total += _inversions(ends)
        return total

    def settle(self) -> None:
        """Move boxes to the middle of their neighbours, as near as order and widths allow."""
        for row in self.rows:
            at = 0.0
            for box in row:
                self.x[box] = at + self.widths[box] / 2
                at += self.widths[box] + GAP_X
        for sweep in range(2 * SWEEPS):
            both = sweep >= 2 * SWEEPS - 2
            for row in reversed(self.rows) if sweep % 2 else self.rows:
                wanted, weights = [], []
                for box in row:
                    near = self.below[box] if sweep % 2 else self.above[box]
                    near = self.above[box] + self.below[box] if both else near
                    wanted.append(sum(self.x[n] for n in near) / len(near) if near else self.x[box])
                    weights.append(len(near) * (4.0 if box >= len(self.sizes) else 1.0) + 0.1)
                for box, x in zip(row, self._spread(row, wanted, weights), strict=True):
                    self.x[box] = x

    def _spread(self, row: Sequence[int], wanted: Sequence[float], weights: Sequence[float]) -> list[float]:
        """Places nearest to the wanted ones, by squares, at which neighbours keep their distance."""
        offset, offsets = 0.0, []
        for i, box in enumerate(row):
            if i:
                offset += (self.widths[row[i - 1]] + self.widths[box]) / 2 + GAP_X
            offsets.append(offset)
        blocks: list[tuple[float, float, int]] = []  # mean, weight, members
        for want, weight, shift in zip(wanted, weights, offsets, strict=True):
            mean, total, members = want - shift, weight, 1
            while blocks and blocks[-1][0] > mean:
                other, more, few = blocks.pop()
                mean = (mean * total + other * more) / (total + more)
                total, members = total + more, members + few
            blocks.append((mean, total, members))
        means = [mean for mean, _, members in blocks for _ in range(members)]
        return [mean + shift for mean, shift in zip(means, offsets, strict=True)]

    def layout(self, arrows: Sequence[tuple[int, int]], back: frozenset[tuple[int, int]]) -> BoxPlaces:
        """The result, moved to the origin."""
        boxes = range(len(self.sizes))
        left = min(x - w / 2 for x, w in zip(self.x, self.widths, strict=True))
        right = max(x + w / 2 for x, w in zip(self.x, self.widths, strict=True))
        tops, at = [], 0.0
        for row in self.rows:
            tops.append(at)
            at += max([self.sizes[box][1] for box in row if box < len(self.sizes)], default=0.0) + GAP_Y
        heights = [(tops[i + 1] if i + 1 < len(tops) else at) - top - GAP_Y for i, top in enumerate(tops)]

        def corner(box: int) -> Point:
            row = self.layer[box]
            return self.x[box] - self.widths[box] / 2 - left, tops[row] + (heights[row] - self.sizes[box][1]) / 2

        def way(a: int, b: int) -> tuple[Point, ...]:
            (_, top), (_, bottom) = corner(a), corner(b)
            points = [(self.x[a] - left, top + self.sizes[a][1])]
            for bend in self.bends[a, b]:
                row = self.layer[bend]
                points += [(self.x[bend] - left, tops[row]), (self.x[bend] - left, tops[row] + heights[row])]
            return (*points, (self.x[b] - left, bottom))

        ways = {(a, b): way(b, a)[::-1] if (a, b) in back else way(a, b) for a, b in arrows}
        return BoxPlaces(corners=tuple(map(corner, boxes)), width=right - left, height=at - GAP_Y, ways=ways, back=back)


def _inversions(values: Sequence[float]) -> int:
    """Number of pairs in which the first is larger, by merge sort."""
    ordered = sorted(set(values))
    rank = {value: i + 1 for i, value in enumerate(ordered)}
    tree = [0] * (len(ordered) + 1)
    found = 0
    for seen, value in enumerate(values):
        at = rank[value]
        below, i = 0, at
        while i:
            below += tree[i]
            i &= i - 1
        found += seen - below
        while at < len(tree):
            tree[at] += 1
            at += at & -at
    return found

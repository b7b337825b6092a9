"""Where the ops and groups of a folded graph are drawn: opened groups are boxes around a drawing of what they hold.

Each box is laid out by itself, so that opening a group moves nothing inside others, and the cost is that of many small
graphs instead of one large one.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.optrace.opgraph import layered
from stepscope.derive.optrace.opgraph.scopes import ROOT

if TYPE_CHECKING:
    from stepscope.derive.optrace.opgraph.folding import FoldedGraph
    from stepscope.derive.optrace.opgraph.layered import BoxPlaces, Point

BOX = (214.0, 44.0)
"""Size of an op or a folded group: two lines of text."""
LEAST_OPEN = 280.0
"""Width of an opened group at least: its title."""
HEAD, ROOM = 30.0, 12.0
"""Of an opened group: the height of its title, and the room at its borders."""


class Picture(Struct, frozen=True, kw_only=True):
    """Places of what is drawn, in pixels at full size."""

    corners: tuple[Point, ...]
    """Upper left corner of each item of the folded graph."""
    sizes: tuple[Point, ...]
    ways: tuple[tuple[Point, ...], ...]
    """Points of each arrow."""
    back: frozenset[int]
    """Arrows that close a circle: they lead upwards."""
    width: float
    height: float


def build(folded: FoldedGraph) -> Picture:
    """Place everything, from the innermost boxes outwards."""
    members: dict[int, list[int]] = defaultdict(list)
    group_of = {item.group: at for at, item in enumerate(folded.items) if item.group > ROOT}
    for at, item in enumerate(folded.items):
        members[item.outer].append(at)
    arrows: dict[int, list[int]] = defaultdict(list)
    for at, arrow in enumerate(folded.arrows):
        arrows[folded.items[arrow.source].outer].append(at)
    sizes: dict[int, Point] = {}
    inside: dict[int, BoxPlaces] = {}
    for at in range(len(folded.items) - 1, -1, -1):  # groups stand before what they hold
        item = folded.items[at]
        sizes[at] = BOX
        if item.open:
            made = inside[item.group] = _of(folded, members[item.group], arrows[item.group], sizes)
            sizes[at] = (max(LEAST_OPEN, made.width + 2 * ROOM), made.height + HEAD + ROOM)
    whole = inside[ROOT] = _of(folded, members[ROOT], arrows[ROOT], sizes)
    corners: dict[int, Point] = {}
    ways: dict[int, tuple[Point, ...]] = {}
    back = set[int]()
    for group in [ROOT, *(item.group for item in folded.items if item.open)]:
        x, y = (0.0, 0.0) if group == ROOT else corners[group_of[group]]
        if group != ROOT:
            x += (sizes[group_of[group]][0] - inside[group].width) / 2
            y += HEAD
        made = inside[group]
        for at, (left, top) in zip(members[group], made.corners, strict=True):
            corners[at] = (x + left, y + top)
        position = {at: i for i, at in enumerate(members[group])}
        for number in arrows[group]:
            ends = position[folded.arrows[number].source], position[folded.arrows[number].target]
            ways[number] = tuple((x + px, y + py) for px, py in made.ways[ends])
            if ends in made.back:
                back.add(number)
    return Picture(
        corners=tuple(corners[at] for at in range(len(folded.items))),
        sizes=tuple(sizes[at] for at in range(len(folded.items))),
        ways=tuple(ways[number] for number in range(len(folded.arrows))),
        back=frozenset(back),
        width=whole.width,
        height=whole.height,
    )


def _of(folded: FoldedGraph, members: list[int], arrows: list[int], sizes: dict[int, Point]) -> BoxPlaces:
    """The drawing of the members of one group."""
    position = {at: i for i, at in enumerate(members)}
    pairs = [(position[folded.arrows[a].source], position[folded.arrows[a].target]) for a in arrows]
    return layered.place([sizes[at] for at in members], pairs, [folded.items[at].order for at in members])

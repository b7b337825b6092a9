"""Boxes in layers: nothing overlaps, arrows lead down, circles do no harm."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.derive.optrace.opgraph import layered

SIZE = (200.0, 44.0)


def _place(count: int, arrows: list[tuple[int, int]]) -> layered.BoxPlaces:
    return layered.place([SIZE] * count, arrows, list(range(count)))


def test_arrows_lead_down_and_end_at_their_boxes() -> None:
    made = _place(4, [(0, 1), (1, 2), (0, 3), (2, 3)])
    assert not made.back
    tops = [y for _, y in made.corners]
    assert tops == sorted(tops)
    for (a, b), way in made.ways.items():
        assert way[0] == (made.corners[a][0] + 100, made.corners[a][1] + 44)
        assert way[-1] == (made.corners[b][0] + 100, made.corners[b][1])


def test_two_chains_do_not_cross() -> None:
    """Whatever the order of time says."""
    made = _place(6, [(0, 3), (1, 2), (2, 5), (3, 4)])
    left = [made.corners[box][0] for box in range(6)]
    assert (left[0] < left[1]) == (left[3] < left[2]) == (left[4] < left[5])


def test_a_circle_turns_the_arrow_to_the_first_in_time() -> None:
    made = _place(3, [(0, 1), (1, 2), (2, 0)])
    assert made.back == {(2, 0)}
    assert made.ways[2, 0][0][1] > made.ways[2, 0][-1][1]


def test_nothing_is_a_drawing_too() -> None:
    assert _place(0, []).corners == ()


@pytest.mark.parametrize("most", [0, layered.MOST_BENDS])
def test_long_arrows_without_bends_are_still_drawn(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layered, "MOST_BENDS", most)
    made = _place(4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    assert (len(made.ways[0, 3]) > 2) == (most > 0)


@given(st.integers(1, 12), st.data())
def test_no_two_boxes_overlap(count: int, data: st.DataObject) -> None:
    """In any graph, with boxes of any size; every arrow has its way, and all lie in the drawing."""
    pairs = [(a, b) for a in range(count) for b in range(count) if a != b]
    arrows = data.draw(st.lists(st.sampled_from(pairs), unique=True, max_size=30)) if pairs else []
    sizes = data.draw(st.lists(st.tuples(st.floats(1, 500), st.floats(1, 300)), min_size=count, max_size=count))
    made = layered.place(sizes, arrows, data.draw(st.permutations(range(count))))
    assert set(made.ways) == set(arrows)
    boxes = [(x, y, x + w, y + h) for (x, y), (w, h) in zip(made.corners, sizes, strict=True)]
    for (x0, y0, x1, y1), (u0, v0, u1, v1) in combinations(boxes, 2):
        assert x1 <= u0 + 1e-6 or u1 <= x0 + 1e-6 or y1 <= v0 + 1e-6 or v1 <= y0 + 1e-6
    for x0, y0, x1, y1 in boxes:
        assert min(x0, y0) >= -1e-6
        assert x1 <= made.width + 1e-6
        assert y1 <= made.height + 1e-6

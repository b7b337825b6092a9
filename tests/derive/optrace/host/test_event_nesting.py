"""Parents and self times of nested spans."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stepscope.derive.optrace.host.event_nesting import nest, parents, self_times

_SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), max_size=25)


def _by_start(spans: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    ordered = sorted(spans, key=lambda s: (s[0], -s[1]))
    return np.array([s for s, _ in ordered], np.int64), np.array([d for _, d in ordered], np.int64)


def _nested(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans that overlap no earlier one without nesting."""
    kept: list[tuple[int, int]] = []
    for start, dur in sorted(spans, key=lambda s: (s[0], -s[1])):
        if all(start >= s + d or start + dur <= s + d for s, d in kept):
            kept.append((start, dur))
    return kept


@given(spans=_SPANS.map(_nested))
def test_the_parent_is_the_closest_span_around(spans: list[tuple[int, int]]) -> None:
    start, dur = _by_start(spans)
    found = parents(start, dur)
    for i in range(len(start)):
        around = [
            j for j in range(i) if dur[j] and dur[i] and start[j] <= start[i] and start[i] + dur[i] <= start[j] + dur[j]
        ]
        assert found[i] == (around[-1] if around else -1)


@given(spans=_SPANS)
def test_the_depth_is_the_number_of_spans_that_are_open(spans: list[tuple[int, int]]) -> None:
    start, dur = _by_start([(s, d) for s, d in spans if d])
    _, depth = nest(start, dur)
    assert depth.tolist() == [int((start[:i] + dur[:i] > start[i]).sum()) for i in range(len(start))]


@given(spans=_SPANS.map(_nested))
def test_self_times_add_up_to_the_time_of_the_outermost(spans: list[tuple[int, int]]) -> None:
    start, dur = _by_start(spans)
    parent = parents(start, dur)
    own = self_times(dur, parent)
    assert own.sum() == dur[parent < 0].sum()
    assert (own >= 0).all()


@given(spans=_SPANS)
def test_overlapping_spans_neither_fail_nor_go_below_zero(spans: list[tuple[int, int]]) -> None:
    start, dur = _by_start(spans)
    parent = parents(start, dur)
    assert (parent < np.arange(len(start))).all()
    assert (self_times(dur, parent) >= 0).all()

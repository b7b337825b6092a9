"""Threads cut into pieces, each of the innermost event or of what it stands for."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.derive.op_traces import Maker

from stepscope.derive.numeric import intervals
from stepscope.derive.optrace.host import activity, thread_pieces

_SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 25), st.integers(-1, 2), st.booleans()), max_size=20)


def _nested(spans: list[tuple[int, int, int, bool]]) -> list[tuple[int, int, int, bool]]:
    kept: list[tuple[int, int, int, bool]] = []
    for one in sorted(spans, key=lambda s: (s[0], -s[1])):
        if all(one[0] >= s + d or one[0] + one[1] <= s + d for s, d, *_ in kept):
            kept.append(one)
    return kept


@given(spans=_SPANS.map(_nested), more=_SPANS.map(_nested))
def test_pieces_by_code_cover_what_pieces_by_event_do(
    spans: list[tuple[int, int, int, bool]], more: list[tuple[int, int, int, bool]]
) -> None:
    """Whatever is left out, and whichever codes lie inside of which."""
    made = Maker()
    other = made.thread("other")
    for line, its in ((made.main, spans), (other, more)):
        for start, dur, *_ in its:
            made.span(line, "x", start, dur)
    trace = made.builder.build()
    code = np.array([one[2] for one in spans + more], np.int8)
    shown = np.array([one[3] for one in spans + more], np.bool_)
    parent = activity.build(trace).parent
    whole = thread_pieces.build(trace, np.flatnonzero(shown), parent)
    parts = list(thread_pieces.by_code(trace, shown, parent, code))
    assert {int(c) for _, _, codes in parts for c in codes} <= {0, 1, 2}
    for wanted in (0, 1, 2):
        mine = whole.take(code[whole.event] == wanted)
        found = [intervals.merge(start[codes == wanted], end[codes == wanted]) for start, end, codes in parts]
        starts, ends = (np.concatenate([np.empty(0, np.int64), *(one[at] for one in found)]) for at in (0, 1))
        for one, same in zip(intervals.merge(mine.start_ns, mine.end_ns), intervals.merge(starts, ends), strict=True):
            assert one.tolist() == same.tolist()

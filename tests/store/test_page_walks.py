"""The file of what a TLB miss costs: written, read back, and hostile."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.derive.memory_looks import GOOD_WALKS as GOOD
from tests.derive.memory_looks import walk_points

from stepscope.store import open_session, page_walks
from stepscope.tables import layout
from stepscope.tables.page_walks import MAX_POINTS, PageWalks


def test_round_trip(made: Path) -> None:
    """What was stored is what the session has; a session without it has none."""
    assert open_session(made).page_walks is None
    page_walks.write(made, GOOD)
    assert open_session(made).page_walks == GOOD


@pytest.mark.parametrize(
    ("megabytes", "expected", "in_order"),
    [(1, 1.0, 1.0), (4, 1.0, 1.0), (5, 40.0, 40.0), (9, 40.0, 40.0), (16, 40.0, 40.0), (17, 240.0, 65.0)],
)
def test_the_cost_of_a_miss(megabytes: int, expected: float, in_order: float) -> None:
    """The largest up to the next point; beyond the last one two accesses more, which pages in order share."""
    assert GOOD.cost_ns(megabytes << 20) == expected
    assert GOOD.cost_ns(megabytes << 20, in_order=True) == in_order


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"schema": "other/9"}',
        b'{"points": [{"bytes": 4, "small_ns": -1.0, "huge_ns": 1.0, "walk_ns": 1.0}]}',
        b'{"points": [{"bytes": 4, "small_ns": 1.0, "huge_ns": 1.0, "walk_ns": 1e999}]}',
        b'{"points": [{"bytes": 0, "small_ns": 1.0, "huge_ns": 1.0, "walk_ns": 1.0}]}',
        msgspec.json.encode(PageWalks(points=walk_points(1.0, 2.0)[::-1])),
        msgspec.json.encode(PageWalks(points=walk_points(1.0) * (MAX_POINTS + 1))),
        b"x" * (page_walks.MAX_BYTES + 1),
    ],
    ids=["empty", "list", "schema", "negative", "infinite", "no-size", "backwards", "many", "large"],
)
def test_a_hostile_file_costs_itself_only(made: Path, data: bytes) -> None:
    """The session opens without it, and says so."""
    path = made / layout.PAGE_WALKS
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    session = open_session(made)
    assert session.page_walks is None
    assert any(layout.PAGE_WALKS in d.text for d in session.manifest.diagnostics)

"""The file of ops that were run alone: written, read back, and hostile."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from stepscope.model.session.replays import MAX_OPS, ReplayedOp, Replays, ReplayTimes, Roofs
from stepscope.store import open_session, replays
from stepscope.tables import layout

GOOD = Replays(
    tensorflow="2.21.0",
    cores=2,
    fixed_ns=900.0,
    ops=(ReplayedOp(key="ab", times=(ReplayTimes(fastest_ns=1.0, median_ns=2.0, slow_ns=3.0, runs=4),)),),
    roofs=Roofs(flops_per_s=1e11, memory_bytes_per_s=1e10, copies=((4096, 1e11),), fixed_ns=900.0),
)


def test_round_trip(made: Path) -> None:
    """What was stored is what the session has."""
    replays.write(made, GOOD)
    assert open_session(made).replays == GOOD


def test_a_session_without_it(made: Path) -> None:
    """An older session has none."""
    assert open_session(made).replays is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"schema": "other/9"}',
        b'{"ops": [{"key": "a", "times": [{"fastest_ns": -1.0}]}]}',
        b'{"ops": [{"key": "a", "times": [{"fastest_ns": 1e999}]}]}',
        b'{"ops": [{"key": "a", "times": [{"variant": "rm -rf"}]}]}',
        b'{"others_cores": -2.0}',
        msgspec.json.encode(Replays(ops=(ReplayedOp(key="a"),) * (MAX_OPS + 1))),
        b"x" * (replays.MAX_BYTES + 1),
    ],
    ids=["empty", "list", "schema", "negative", "infinite", "variant", "others", "many", "large"],
)
def test_a_hostile_file_costs_itself_only(made: Path, data: bytes) -> None:
    """The session opens without it, and says so."""
    path = made / layout.REPLAY
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    session = open_session(made)
    assert session.replays is None
    assert any(layout.REPLAY in d.text for d in session.manifest.diagnostics)

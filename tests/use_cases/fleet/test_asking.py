"""Questions to a place: each session counts once, whatever lies there."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.fleet.made_parts import VERSION, put, put_bytes, rows_of

from stepscope.fleet.part_names import parsed
from stepscope.fleet.questions import Asked
from stepscope.sessions.fleet.sending import Destination
from stepscope.sessions.gathering.folder_target import FolderTarget
from stepscope.tables.errors import FormatError, UsageError
from stepscope.use_cases.fleet import asking, parts
from stepscope.use_cases.fleet.asking import Scope

SESSIONS = 12


def scope(folder: Path | str, **filters: str) -> Scope:
    """All that lies in a folder."""
    days = {name: filters.pop(name) for name in ("since", "until") if name in filters}
    return Scope(place=Destination(url=str(folder)), asked=Asked(filters=filters, limit=100), **days)


@pytest.fixture(name="place")
def _place(tmp_path: Path) -> Path:
    """Sessions of one hour each, on two days, written in any order."""
    numbers = list(range(SESSIONS))
    random.Random(1).shuffle(numbers)
    for number in numbers:
        day = "2026-11-29" if number % 2 else "2026-11-30"
        put(tmp_path / "parts", f"s{number:02d}", rows_of(user="ann" if number < 4 else "bob"), day=day)
    return tmp_path / "parts"


def test_counts_are_exact(place: Path) -> None:
    """With parts sent twice under two days, older contents, a second version, foreign files and a cut upload."""
    first = next(path for path in sorted(place.rglob("s00-*.parquet")))
    put_bytes(place, "s00", first.read_bytes(), day="2026-12-01")
    put(place, "s01", rows_of(user="ann", wall_h=1.0, finding="HST004"))
    table = pq.read_table(first)
    extended = table.append_column("extra", pa.array([1] * len(table)))
    sink = pa.BufferOutputStream()
    pq.write_table(extended, sink)
    put_bytes(place, "s00", sink.getvalue().to_pybytes(), version=VERSION + 1)
    (place / "fleet" / "2026-11-30" / "notes.txt").write_text("of a user")
    cut = put(place, "s99", rows_of(wall_h=1000.0))
    cut.write_bytes(cut.read_bytes()[:-5])
    found = asking.top(scope(place), "user")
    assert {one.name: one.jobs for one in found.costs} == {"ann": 4, "bob": SESSIONS - 4}
    assert sum(one.wall_hours for one in found.costs) == pytest.approx(SESSIONS)
    assert (found.parts.sessions, found.parts.others, found.parts.newer) == (SESSIONS, 3, 1)
    assert found.parts.damaged == (str(cut.relative_to(place)),)


def test_days(place: Path) -> None:
    """Parts of other days are not opened, so that damage among them hinders no answer."""
    cut = put(place, "s99", rows_of(), day="2026-10-01")
    cut.write_bytes(b"")
    found = asking.jobs(scope(place, since="2026-11-30", until="2026-11-30"))
    assert len(found.jobs) == SESSIONS // 2
    assert found.parts.damaged == ()


def test_nothing_there(tmp_path: Path, place: Path) -> None:
    """Each empty place says what was expected; one in which all is damaged is no empty one."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="holds no part of a session; parts come by: stepscope run --fleet"):
        asking.jobs(scope(tmp_path / "empty"))
    with pytest.raises(UsageError, match="of these days"):
        asking.jobs(scope(place, since="2027-01-01"))
    with pytest.raises(UsageError, match="no job there has stacks of cpu"):
        asking.flame(scope(place), "cpu", None)
    for path in place.rglob("*.parquet"):
        path.write_bytes(b"PAR1")
    with pytest.raises(FormatError, match="all parts there are damaged"):
        asking.jobs(scope(place))


def test_a_store_is_fetched_once(place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each part once; what was deleted there leaves the cache, and a damaged one never enters it."""
    memory = pytest.importorskip("fsspec.implementations.memory").MemoryFileSystem()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for path in place.rglob("*.parquet"):
        memory.pipe_file(f"/asked/{path.relative_to(place)}", path.read_bytes())
    first = min(path.relative_to(place) for path in place.rglob("*.parquet"))
    memory.pipe_file(f"/asked/{first}", b"cut")
    found = asking.top(scope("memory://asked"), "user")
    assert sum(one.jobs for one in found.costs) == SESSIONS - 1
    assert found.parts.damaged == (str(first),)
    fetched: list[str] = []
    whole = memory.cat_file

    def counted(_: object, path: str) -> bytes:
        fetched.append(path)
        return bytes(whole(path))

    monkeypatch.setattr(type(memory), "cat_file", counted)
    memory.rm_file(f"/asked/{first}")
    gone = sorted(path.relative_to(place) for path in place.rglob("*.parquet"))[1]
    memory.rm_file(f"/asked/{gone}")
    again = asking.jobs(scope("memory://asked"))
    assert len(again.jobs) == SESSIONS - 2
    assert fetched == []
    kept = [path.name for path in (tmp_path / "cache").rglob("*.parquet")]
    assert len(kept) == SESSIONS - 2
    assert gone.name not in kept


def test_removed(place: Path) -> None:
    """All parts of a user's sessions, and no other: first counted, then deleted."""
    put(place, "s00", rows_of(user="ann", wall_h=3.0))
    assert asking.remove(scope(place, user="ann"), really=False) == 5
    assert len(list(place.rglob("*.parquet"))) == SESSIONS + 1
    assert asking.remove(scope(place, user="ann"), really=True) == 5
    left = [parsed(name) for name in FolderTarget(place).names()]
    assert len(left) == SESSIONS - 4
    assert {one.name for one in asking.top(scope(place), "user").costs} == {"bob"}
    with pytest.raises(UsageError, match="in folders only"):
        parts.remove(Destination(url="memory://asked").open(), [])

"""Names of parts: one for each content, and one part of each session."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from stepscope.fleet.part_names import PartName, chosen, digest, parsed
from stepscope.sessions.gathering.target import NAME

NAMES = st.builds(
    PartName,
    session=st.from_regex(r"[0-9a-f]{1,4}", fullmatch=True),
    version=st.integers(1, 3),
    hash=st.from_regex(r"[0-9a-f]{16}", fullmatch=True),
    day=st.dates().map(str),
)


@given(NAMES)
def test_round_trip(name: PartName) -> None:
    """A name is read back from its path, which folders and stores take as a part's."""
    assert parsed(name.path) == name
    assert NAME.fullmatch(name.path)


@given(st.lists(NAMES, max_size=20), st.randoms())
def test_one_of_each_session(names: list[PartName], order: random.Random) -> None:
    """In whatever order they are listed, and however often: the newest version of each session."""
    paths = [name.path for name in names] * 2
    found, others = chosen(paths)
    order.shuffle(paths)
    assert chosen(paths) == (found, others)
    assert {one.session for one in found} == {one.session for one in names}
    assert len(found) + others == len(paths)
    for one in found:
        assert one.version == max(name.version for name in names if name.session == one.session)


def test_foreign_files_are_no_parts() -> None:
    """Files of others, and of gathered sessions in the same place."""
    for path in ("fleet/2026-11-30/readme.txt", "job/worker-0/part-000001", "fleet/x/a-0123456789abcdef-v1.parquet"):
        assert parsed(path) is None


def test_days() -> None:
    """Both ends count."""
    days = ("2026-11-29", "2026-11-30", "2026-12-01")
    paths = [PartName(session=f"s{day[-2:]}", version=1, hash=digest(day.encode()), day=day).path for day in days]
    assert [one.day for one in chosen(paths, "2026-11-30", "2026-11-30")[0]] == ["2026-11-30"]

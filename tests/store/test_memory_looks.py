"""Looks at address spaces in a session: written, read back, and damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from tests.derive.memory_looks import look, packed

from stepscope.store import memory_looks, open_session, tables
from stepscope.tables import layout
from stepscope.tables.address_space import FreeZone, MappingTable, MemoryLook, PageSize


def same(one: MemoryLook, other: MemoryLook) -> bool:
    """Whether two looks say the same."""
    for name in MappingTable.__struct_fields__:
        if not np.array_equal(getattr(one.mappings, name), getattr(other.mappings, name)):
            return False
    rest = [name for name in MemoryLook.__struct_fields__ if name not in {"mappings", "names"}]
    return list(one.names) == list(other.names) and all(getattr(one, f) == getattr(other, f) for f in rest)


def test_round_trip(made: Path) -> None:
    """What was stored is what the session has, in the order of time."""
    late, early = look(packed(3), at_s=20, minor_faults=5), look(packed(2), at_s=3)
    memory_looks.write(made, "7-000020000", late)
    memory_looks.write(made, "7-000003000", early)
    first, second = open_session(made).memory_looks
    assert same(first, early)
    assert same(second, late)


def test_the_hosts_memory_is_kept() -> None:
    """Free blocks and sizes of pages come back; a look of an older stepscope has neither."""
    given = replace(
        look(packed(1)),
        zones=(FreeZone(node=1, zone="Normal", blocks=(3, 0, 7)),),
        page_sizes=(PageSize(bytes=65536, mode="inherit", counters={"split": 4}),),
        hardware={"cycles": 5},
    )
    assert same(memory_looks.decode(memory_looks.encode(given)), given)
    columns, metadata = tables.read_columns(memory_looks.encode(look(packed(1))))
    older = {key: text.replace('"zones"', '"older"') for key, text in metadata.items()}
    assert memory_looks.decode(tables.encode(columns, older)).zones == ()


def test_a_look_at_nothing() -> None:
    """No mappings are no error."""
    empty = look([])
    assert same(memory_looks.decode(memory_looks.encode(empty)), empty)


def hostile() -> dict[str, bytes]:
    """Files that are no look."""
    good = look(packed(3))
    table = good.mappings
    return {
        "no parquet": b"PAR1 and nothing",
        "no metadata": tables.encode(tables.columns_of(table)),
        "bad metadata": tables.encode(tables.columns_of(table), {"look": "{}"}),
        "a name that is none": memory_looks.encode(replace(good, mappings=replace(table, name=table.name + 9))),
        "backwards": memory_looks.encode(replace(good, mappings=table.take(slice(None, None, -1)))),
        "inside out": memory_looks.encode(replace(good, mappings=replace(table, start=table.end, end=table.start))),
        "no pages": memory_looks.encode(replace(good, page_bytes=0)),
        "fewer than no free blocks": memory_looks.encode(
            replace(good, zones=(FreeZone(node=0, zone="", blocks=(-1,)),))
        ),
        "a negative counter": memory_looks.encode(replace(good, hardware={"cycles": -1})),
        "pages of no size": memory_looks.encode(replace(good, page_sizes=(PageSize(bytes=0, mode="always"),))),
        "odd pages": memory_looks.encode(replace(good, huge_page_bytes=5000)),
    }


@pytest.mark.parametrize("name", list(hostile()))
def test_damaged_looks_are_left_out_and_said(made: Path, name: str) -> None:
    """A look that is no look costs that look, not the session."""
    memory_looks.write(made, "7-000000001", look(packed(2)))
    (made / layout.MEMORY / "7-000000002.parquet").write_bytes(hostile()[name])
    session = open_session(made)
    assert len(session.memory_looks) == 1
    assert [d.code for d in session.manifest.diagnostics if "7-000000002" in d.text] == ["DX106"]

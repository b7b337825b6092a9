"""docs/session-format.md says what a session holds."""

import re
import typing
from pathlib import Path

import msgspec
import pytest

from stepscope.model.log import events
from stepscope.model.session.session import SCHEMA_VERSION, HostInfo, Manifest, WorkerInfo
from stepscope.tables.network_tables import ClockProbeTable, PacketTable, TcpTable
from stepscope.tables.records import HostTable, ProcessTable, RecordTable, RivalTable, Table, ThreadTable

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "session-format.md").read_text()


def test_version() -> None:
    """The page is about the schema version that is written."""
    assert f"Schema version {SCHEMA_VERSION}." in PAGE


@pytest.mark.parametrize(
    "kind", [RecordTable, ProcessTable, ThreadTable, HostTable, RivalTable, TcpTable, ClockProbeTable, PacketTable]
)
def test_columns(kind: type[Table]) -> None:
    """Every column of every table is documented."""
    names = list(kind.__struct_fields__)
    assert [name for name in names if not re.search(rf"^\|.*`{name}`.* \|", PAGE, re.MULTILINE)] == []


@pytest.mark.parametrize("kind", [Manifest, WorkerInfo, HostInfo, *typing.get_args(events.AnyEvent)])
def test_fields(kind: type[msgspec.Struct]) -> None:
    """Every field of the manifest and of every log line is documented, and every type of line."""
    names = [f.name for f in msgspec.structs.fields(kind) if f.name != "at"]
    assert [name for name in names if f"| `{name}` |" not in PAGE] == []
    tag = kind.__struct_config__.tag
    assert tag is None or f"### {tag}\n" in PAGE

"""Files of system calls: written, read back, and hostile; and what the report says of them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.report.samples import input_bound

from stepscope.derive.machine.system_calls import summary
from stepscope.report import html
from stepscope.report.document.machine import calls as call_lines
from stepscope.store import open_session, system_calls
from stepscope.tables import layout
from stepscope.tables.system_calls import CallTotal, SystemCalls

MS = 1_000_000
MAIN = CallTotal(
    native=7, thread="python", call="write", target="/data/frames.bin", count=400, total_ns=40 * MS, longest_ns=MS,
    bytes=800_000,
)  # fmt: skip
POOL = CallTotal(
    native=9,
    thread="pool",
    call="futex",
    count=2,
    total_ns=60 * MS,
    longest_ns=40 * MS,
    failed=1,
    unfinished_ns=20 * MS,
)
FAILING = msgspec.structs.replace(MAIN, call="read", target="pipe", count=1, total_ns=MS, bytes=0, failed=1)
WINDOW = SystemCalls(pid=7, at_ns=0, wall_ns=100 * MS, calls=(POOL, MAIN, FAILING))


def test_round_trip(made: Path) -> None:
    """Windows come back in their order."""
    later = msgspec.structs.replace(WINDOW, at_ns=500 * MS)
    assert open_session(made).system_calls == []
    assert system_calls.write(made, 1, WINDOW).name == "0001.json"
    system_calls.write(made, 2, later)
    assert open_session(made).system_calls == [WINDOW, later]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b'{"schema": "other/9", "pid": 1, "at_ns": 0, "wall_ns": 1}',
        msgspec.json.encode(msgspec.structs.replace(WINDOW, wall_ns=0)),
        msgspec.json.encode(msgspec.structs.replace(WINDOW, calls=(msgspec.structs.replace(MAIN, total_ns=-1),))),
    ],
    ids=["empty", "schema", "no-length", "negative"],
)
def test_a_hostile_file_costs_itself_only(made: Path, data: bytes) -> None:
    """The session opens without it, and says so."""
    system_calls.write(made, 1, WINDOW)
    (made / layout.CALLS / "0002.json").write_bytes(data)
    session = open_session(made)
    assert session.system_calls == [WINDOW]
    assert list(session.lost_files) == ["captures/calls/0002.json"]


def test_windows_are_added_up(made: Path) -> None:
    """Shares are of all windows; the main thread comes first where nothing says which thread makes the steps."""
    for number in (1, 2):
        system_calls.write(made, number, WINDOW)
    found = summary(open_session(made), None)
    assert found is not None
    assert (found.windows, found.wall_ns, found.steps, found.count) == (2, 200 * MS, 0, 806)
    assert [(row.of_steps, row.call, row.count, round(row.ratio, 6)) for row in found.rows] == [
        (True, "write", 800, 0.4),
        (True, "read", 2, 0.01),
        (False, "futex", 4, 0.8),
    ]
    assert summary(open_session(made.parent / made.name), None) == found


def test_what_the_report_says(made: Path) -> None:
    """The largest calls of the steps' thread in its head, all in the table."""
    system_calls.write(made, 1, WINDOW)
    found = summary(open_session(made), None)
    assert found is not None
    each = msgspec.structs.replace(found, steps=10)
    assert call_lines.lines(each) == [
        "403 system calls (40.3 a step) in 100 ms",
        "write /data/frames.bin: 40 % of the time, 40.0 a step, 1.95 KiB each",
        "read pipe: 1.0 % of the time, 0.10 a step",
    ]
    assert call_lines.lines(None) == []
    assert call_lines.rows(each)[2] == (*("pool", "futex", "", "2", "0.20", "80 %", "30 ms", "40 ms", "", "1"),)
    page = html.render(msgspec.structs.replace(input_bound(), system_calls=each))
    table = page[page.index('id="calls"') : page.index('id="checked"')]
    assert "<td>/data/frames.bin</td>" in table
    assert table.count("<tr>") == 4

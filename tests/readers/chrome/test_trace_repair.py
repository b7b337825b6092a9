"""One broken event costs itself: the others of the file are read, and what is missing is told."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterable

import pytest

from stepscope.readers.chrome import trace_json
from stepscope.tables.errors import FormatError

HEAD = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}], "displayTimeUnit": "ms"}
COUNT = 40
BAD = "@bad@"
BROKEN = {
    "quotes and a line break": b'_lib = Library("x", "IMPL")\n(1): <module>',
    "one quote": b'say "',
    "brackets": b'f("{", [")',
    "backslash": b"C:\\users\\x",
}
READABLE = {
    "bytes": b"\xe0\x99\xff",
    "latin-1": "gr\u00fc\u00df".encode("latin-1"),
    "control": b"a\x01\x7f\x02",
    "tab": b"a\tb",
}


def _file(*, bad: dict[int, bytes], whole: bool, indent: int | None = None) -> bytes:
    """A file of events, some of whose names are written as they are."""
    events = [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": BAD if i in bad else f"op {i}",
            "pid": 1,
            "tid": 1,
            "ts": 10 * i,
            "dur": 5,
            "args": {"dims": [{"x": 1}, {"y": 2}]},
        }
        for i in range(COUNT)
    ]
    text = json.dumps(HEAD | {"traceEvents": events, "traceName": "t"} if whole else events, indent=indent).encode()
    for name in bad.values():
        text = text.replace(BAD.encode(), name, 1)
    return text


def _read(content: bytes, name: str = "t.json") -> tuple[trace_json.TraceFile, list[int]]:
    """What is around the events, and the number of each."""
    events: list[trace_json.RawEvent] = []

    def take(batches: Iterable[list[trace_json.RawEvent]]) -> None:
        events.extend([event for batch in batches for event in batch])

    file = trace_json.read(trace_json.Text(io.BytesIO(content), name), take)
    return file, [int(str(event.ts)) // 10 for event in events]


@pytest.fixture(params=[True, False], ids=["pieces", "whole"], autouse=True)
def _sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same is read of a file in pieces and at once."""
    if request.param:
        monkeypatch.setattr(trace_json, "PIECE_BYTES", 700)
        monkeypatch.setattr(trace_json, "_PART_BYTES", 250)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("at", [0, 17, COUNT - 1])
@pytest.mark.parametrize("name", BROKEN.values(), ids=BROKEN)
def test_a_name_that_breaks_the_json_costs_one_event(name: bytes, at: int, whole: bool, indent: int | None) -> None:
    file, numbers = _read(_file(bad={at: name}, whole=whole, indent=indent))
    assert numbers == [i for i in range(COUNT) if i != at]
    assert len(file.told) == 1
    if at < COUNT - 1:  # what is wrong with the last one looks like a cut
        assert file.told == ("left out, as they are no JSON (a quote in a name, for example): 1 of its events",)
    assert file.kineto == whole


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("name", READABLE.values(), ids=READABLE)
def test_a_name_with_odd_characters_costs_nothing(name: bytes, whole: bool) -> None:
    file, numbers = _read(_file(bad={17: name}, whole=whole))
    assert numbers == list(range(COUNT))
    assert "replaced" in file.told[0]
    assert file.devices == (HEAD["deviceProperties"] if whole else None)


def test_several_kinds_of_damage_at_once() -> None:
    """Broken names, bytes, and a cut end."""
    text = _file(bad={3: BROKEN["one quote"], 9: READABLE["bytes"], 20: BROKEN["brackets"]}, whole=True)
    file, numbers = _read(text[: text.index(b'"op 35"')])
    assert numbers == [i for i in range(35) if i not in {3, 20}]
    assert ["replaced" in file.told[0], "2 of its events" in file.told[1], "truncated" in file.told[2]] == [True] * 3
    assert (file.kineto, file.devices) == (True, HEAD["deviceProperties"])


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.95])
def test_a_gzip_stream_without_its_end_is_read_as_far_as_it_goes(kept: float) -> None:
    text = json.dumps({"traceEvents": [{"ph": "X", "name": str(i * i), "ts": 10 * i} for i in range(4_000)]}).encode()
    packed = gzip.compress(text, mtime=0)
    cut = packed[: int(kept * len(packed))]
    there = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(cut)
    file, numbers = _read(cut, "t.json.gz")
    assert numbers == list(range(there.count(b"}")))
    assert file.told[-1] == "its gzip stream has no end"


def test_a_text_most_of_which_is_no_event_is_refused() -> None:
    with pytest.raises(FormatError, match="damaged JSON"):
        _read(_file(bad=dict.fromkeys(range(25), b'"'), whole=True))

"""JSON that is nested deeper than Python goes is damage like any other, wherever it comes from."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.model.log import events
from stepscope.readers import run_metadata
from stepscope.readers.chrome import trace_events
from stepscope.readers.protobuf.codec import encode_bytes, encode_varint
from stepscope.readers.stacks import speedscope
from stepscope.store import open_session
from stepscope.tables.errors import FormatError, SessionError

DEEP = b"[" * 3_000 + b"]" * 3_000


def test_a_log_line() -> None:
    """It is damaged."""
    with pytest.raises(msgspec.DecodeError, match="nested too deeply"):
        events.decode(b'{"t": "end", "records": 1, "more": %s}' % DEEP)


@pytest.mark.parametrize(
    "text",
    [
        DEEP,
        b'{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2, "args": {"a": %s}}]}' % DEEP,
        b'{"more": %s, "traceEvents": []}' % DEEP,
        b'{"schemaVersion": %s, "traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2}]}' % DEEP,
    ],
    ids=["whole", "argument", "other field", "field before"],
)
def test_a_trace(text: bytes) -> None:
    """Chrome's traces, wherever in them."""
    with pytest.raises(FormatError, match=r"^f: "):
        trace_events.read_bytes(text, "f")


def test_a_profile() -> None:
    """Speedscope's file."""
    with pytest.raises(FormatError, match="nested too deeply"):
        speedscope.read(b'{"shared": {"frames": []}, "profiles": [], "more": %s}' % DEEP, where="f")


@pytest.mark.parametrize("file", ["manifest.json", "captures/sources/index.json"])
def test_a_session(made: Path, file: str) -> None:
    """A manifest ends it, a list of sources costs these."""
    path = made / file
    path.write_bytes(b'{"more": %s, ' % DEEP + path.read_bytes().lstrip()[1:])
    if file == "manifest.json":
        with pytest.raises(SessionError, match="nested too deeply"):
            open_session(made)
    else:
        assert list(open_session(made).lost_files) == [file]


def test_text_around_events_that_is_broken() -> None:
    """What stands before the events decides how they are read: broken, it is refused in one line."""
    with pytest.raises(FormatError, match=r"^f: damaged JSON around its events"):
        trace_events.read_bytes(b'{"a" 1, "traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2}], "b": }', "f")


@given(st.integers(2**53, 2**64 - 1))
def test_times_beyond_the_range_of_a_trace(micros: int) -> None:
    """A node of TensorFlow 1's run metadata that began in another age is read or refused: no other error."""
    node = encode_bytes(1, b"MatMul") + b"\x10" + encode_varint(micros) + b"\x18\x01\x20\x02\x28\x03"
    first = encode_bytes(1, b"MatMul") + b"\x10\x01\x18\x01\x20\x02\x28\x03"
    device = encode_bytes(1, b"/job:a/device:CPU:0") + encode_bytes(2, first) + encode_bytes(2, node)
    with contextlib.suppress(FormatError):
        assert len(run_metadata.read_bytes(encode_bytes(1, encode_bytes(1, device)), "f").events) == 2

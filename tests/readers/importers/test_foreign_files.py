"""Files of tools whose formats are not read: each is refused in one line, whatever protocol buffer it resembles."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.readers import xspace

from stepscope.cli.import_ import import_
from stepscope.readers.importers import registry
from stepscope.readers.protobuf.codec import encode_bytes, encode_number
from stepscope.tables.errors import FormatError

SHARED = Path(__file__).resolve().parents[4] / "shared" / "surprises" / "files"

Field = tuple[int, int | bytes]


def _message(*fields: Field) -> bytes:
    return b"".join(encode_bytes(n, v) if isinstance(v, bytes) else encode_number(n, v) for n, v in fields)


def _packets(*packets: tuple[Field, ...]) -> bytes:
    return b"".join(encode_bytes(1, _message(*packet)) for packet in packets)


TRACK = (60, _message((1, 1), (2, b"train")))
PERFETTO = {
    "a track and slices": _packets((TRACK,), ((8, 1000), (10, 1), (11, _message((9, 1)))), ((8, 1100), (10, 1))),
    "clocks first": _packets(((6, b"\x0a\x04\x08\x06\x10\x07"), (10, 1)), ((8, 5), (10, 1), TRACK)),
    "a long configuration first, then cut": _packets(((33, b"\x0a" * 3000), (10, 7)), ((8, 5), (11, b"\x48\x01")))[:-1],
}
OTHERS = {
    "OTLP profiles": _message((1, _message((2, _message((2, b"\x0a\x04\x08\x01\x10\x02"))))), (2, b"\x0a\x00\x12\x00")),
    "op statistics of xprof": _message((1, _message((10, _message((1, b"MatMul"), (2, b"dot"))))), (4, b"\x0a\x00")),
    "a program of XLA": _message((1, _message((1, b"jit_step"), (2, b"main.7")))),
    "a plane without a name": _message((1, _message((1, 3), (3, b"")))),
}


@pytest.mark.parametrize("kind", PERFETTO)
def test_a_trace_of_perfetto_is_named(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "t.pftrace"
    path.write_bytes(PERFETTO[kind])
    with pytest.raises(FormatError, match=r"a trace of Perfetto; .*traceconv json t.pftrace"):
        registry.read(path)


@pytest.mark.parametrize("kind", OTHERS)
def test_another_protocol_buffer_is_no_trace(kind: str, tmp_path: Path) -> None:
    """It is neither an empty XSpace nor damaged RunMetadata, and leaves no session."""
    path = tmp_path / "other.pb"
    path.write_bytes(OTHERS[kind])
    with pytest.raises(FormatError, match=r"begins with|no plane with a name") as refused:
        registry.read(path)
    assert "RunMetadata, or damaged" not in str(refused.value)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not beside this checkout")
@pytest.mark.parametrize("name", ["t.pftrace", "otlp.pb"])
def test_files_as_their_tools_wrote_them(name: str, tmp_path: Path) -> None:
    """Perfetto's TraceProtoBuilder; opentelemetry-proto 1.45.2."""
    made = tmp_path / "s.stepscope"
    done = CliRunner().invoke(import_, [str(SHARED / name), "-o", str(made)])
    assert isinstance(done.exception, FormatError)
    assert done.exception.exit_code == 68
    assert not made.exists()


def test_text_of_a_file_stays_on_its_line(tmp_path: Path) -> None:
    """The name of a plane and what a profiler reports: no line break and no escape of a terminal reaches it."""
    path = tmp_path / "a.xplane.pb"
    odd = "/host:\n\x1b[2JCPU"
    path.write_bytes(xspace.space(xspace.Plane(odd), xspace.Plane("/host:CPU", (xspace.Line("python"),))))
    done = CliRunner().invoke(import_, [str(path), "-o", str(tmp_path / "s.stepscope")], catch_exceptions=False)
    (line,) = [line for line in done.output.splitlines() if line.startswith("no events")]
    assert "/host: \ufffd[2JCPU, /host:CPU: not captured" in line
    assert "\x1b" not in done.output

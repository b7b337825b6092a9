"""Valid forms of stack files that differ from the usual ones: comments, task events, fewer fields, a default type."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.readers.importers import stack_files
from stepscope.readers.protobuf.codec import encode_bytes, encode_number
from stepscope.readers.stacks import detect
from stepscope.tables.errors import FormatError
from stepscope.use_cases import flame

SHARED = Path(__file__).resolve().parents[4] / "shared" / "surprises" / "files"
shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not beside this checkout")

STACKS = b"P1;T1;a.py:main:1;a.py:f:2 10100\nP1;T1;a.py:main:1;a.py:g:3 9900\n"
RECORD = (
    b"python3 11300  7209.99: PERF_RECORD_MMAP2 11300/11300: [0x400000(0x20000) @ 0 fe:00 1 2]: r--p /usr/bin/python3\n"
)
FRAMES = b"\t  58dfc9 leaf+0x1 (/bin/x)\n\t  58dfca main+0x2 (/bin/x)\n\n"
SAMPLE = b"python3 11300  7210.004306:    5025125 task-clock:ppp: \n" + FRAMES
BARE = b"python3 \n\t          585742 leaf\n\t          58dfc9 main\n\n"


@pytest.mark.parametrize(
    "head", [b"# interval: 10000\n# mode: wall\n# duration: 3000000\n", b"#\n# made by hand 12\n", b""]
)
def test_comments_of_folded_files_are_no_stacks(head: bytes) -> None:
    (profile,) = detect.read(head + STACKS, where="x")
    assert (profile.total, len(profile.samples), profile.diagnostics) == (20_000, 2, ())


@pytest.mark.parametrize(
    "text",
    [
        b"# Event count (approx.): 1195979750\n#\n    60.00%     0.10  python3\n      |\n      ---main 3\n      |\n",
        b"Overview\nof the run\nwith notes\nmain;f 3\n",
    ],
)
def test_a_file_of_other_lines_is_refused(text: bytes) -> None:
    with pytest.raises(FormatError, match=r"no folded stacks.*not of perf report") as refused:
        detect.read(text, where="x")
    assert refused.value.exit_code == 68


@pytest.mark.parametrize("text", [RECORD * 3 + SAMPLE * 2, SAMPLE + RECORD + SAMPLE, RECORD + SAMPLE + SAMPLE + RECORD])
def test_task_events_of_perf_are_no_samples(text: bytes) -> None:
    (profile,) = detect.read(text, where="x")
    assert (len(profile.samples), profile.total, profile.unread) == (2, 2 * 5_025_125, 0)


def test_a_recording_of_task_events_alone_has_no_samples() -> None:
    with pytest.raises(FormatError, match="no samples"):
        detect.read(RECORD * 3, where="x")


@pytest.mark.parametrize("name", [b"python3", b"tf_data pool/1"])
def test_perf_without_process_and_time(name: bytes) -> None:
    """As ``-F comm,ip,sym`` prints it."""
    (profile,) = detect.read(BARE.replace(b"python3", name) * 3, where="x")
    assert (len(profile.samples), profile.total, profile.unread) == (3, 3, 0)
    assert [thread.name for thread in profile.threads] == [name.decode()]
    assert {frame.function for frame in profile.frames} == {"leaf", "main"}


@shared
@pytest.mark.parametrize(("name", "samples"), [("va_ev.txt", 238), ("va_F3.txt", 238), ("austin.txt", 2)])
def test_as_written(name: str, samples: int) -> None:
    """With --show-task-events --show-mmap-events and with -F comm,ip,sym of perf 6.12; austin's text."""
    (profile,) = detect.read_file(SHARED / name)
    assert (len(profile.samples), profile.diagnostics) == (samples, ())


def _pprof(default: int) -> bytes:
    """Two types of one sample each, ``cpu`` and ``wall``; ``default``: index of a name, 0 for none."""
    names = [b"", b"cpu", b"nanoseconds", b"wall", b"leaf"]
    types = [encode_bytes(1, encode_number(1, kind) + encode_number(2, 2)) for kind in (1, 3)]
    sample = encode_bytes(2, encode_bytes(1, b"\x01") + encode_bytes(2, b"\x05\x09"))
    line = encode_bytes(4, encode_number(1, 1))
    places = encode_bytes(4, encode_number(1, 1) + line) + encode_bytes(5, encode_number(1, 1) + encode_number(2, 4))
    rest = b"".join(encode_bytes(6, name) for name in names)
    return b"".join(types) + sample + places + rest + (encode_number(14, default) if default else b"")


@pytest.mark.parametrize(("default", "shown"), [(1, "cpu"), (3, "wall"), (0, "wall")])
def test_the_type_that_the_file_names_is_drawn(default: int, shown: str, tmp_path: Path) -> None:
    """Without one the last, as pprof does; a note says what else there is."""
    path = tmp_path / "p.pb"
    path.write_bytes(_pprof(default))
    chosen = flame.choose(path).graph.profile
    other = "cpu" if shown == "wall" else "wall"
    assert chosen.event == shown
    assert [one.text for one in chosen.diagnostics] == [f"the file also holds {other} (--event)"]
    asked = flame.choose(path, event=other).graph.profile
    assert (asked.event, asked.diagnostics) == (other, ())


@shared
def test_the_default_type_as_written() -> None:
    """`go tool pprof -top` of Go 1.19.8 says: Type: wall, leaf 91 %."""
    assert stack_files.read(SHARED / "default_wall.pb.gz")[0].event == "wall"
    assert flame.choose(SHARED / "default_wall.pb.gz").graph.profile.event == "wall"

"""Readers of stack files: what formats allow, what writers do, and what is damaged."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.readers.protobuf import codec
from stepscope.readers.stacks import detect, folded, labels, perf_script, pprof, speedscope
from stepscope.tables.errors import FormatError
from stepscope.tables.stacks import Frame, FrameKind, SampleTable, StackBuilder, StackFlag, StackProfile, Thread


def chains(profile: StackProfile) -> list[tuple[str, ...]]:
    return [tuple(f.function for f in profile.frames_of(s)) for s in profile.samples.stack.tolist()]


def refusal(data: bytes, read: Callable[..., object] = detect.read) -> str:
    """What the reader says of a file that it refuses; any other error is a failure of the test."""
    try:
        read(data, where="that file")
    except FormatError as error:
        return str(error)
    return "that file: is read"


def perf(text: str) -> StackProfile:
    (profile,) = perf_script.read(text.encode(), where="x")
    return profile


# ---- anything


@given(st.binary(max_size=300))
def test_bytes_of_any_kind_raise_nothing_else(data: bytes) -> None:
    """Whatever the bytes: a profile or a FormatError that names the file."""
    for mutilated in (data, b"\x1f\x8b" + data, b"{" + data, gzip.compress(data)):
        assert refusal(mutilated).startswith("that file: ")


@given(st.data())
def test_damaged_profiles_raise_nothing_else(data: st.DataObject) -> None:
    """A profile with changed bytes is read, or refused by name."""
    whole = bytearray(gzip.decompress(pprof.write(sampled())))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    assert refusal(cut, pprof.read).startswith("that file: ")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"hello world\n", "'hello world'"),
        (b"PERFILE2" + b"\0" * 100, "perf script -i"),
        (b"PK\x03\x04", "zip"),
        (b"{}", "shared"),
        (b'{"traceEvents": []}', "shared"),
        (gzip.compress(b"main 1\n" * 100, mtime=0)[:-12], "cut short"),
        (b"\x1f\x8bnonsense", "gzip"),
    ],
)
def test_refusals_say_what_was_got_and_what_was_expected(data: bytes, said: str) -> None:
    """One line: the file, what it is, what was expected."""
    with pytest.raises(FormatError, match=r"expected|damaged") as caught:
        detect.read(data, where="a.txt")
    assert str(caught.value).startswith("a.txt: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bombs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What unpacks to more than the limit is not unpacked."""
    monkeypatch.setattr(detect, "MAX_BYTES", 1000)
    with pytest.raises(FormatError, match="unpacks to more"):
        detect.read(gzip.compress(b"a 1\n" * 10_000), where="x")


def test_gzipped_text_and_several_members() -> None:
    """Any format may be gzipped, also in several pieces."""
    (profile,) = detect.read(gzip.compress(b"a;b 1\n") + gzip.compress(b"a;c 2\n"), where="x")
    assert chains(profile) == [("a", "b"), ("a", "c")]


# ---- folded


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_folded_in_any_encoding(encoding: str, end: str) -> None:
    """PowerShell writes UTF-16 and CRLF; the mark of the byte order may be missing."""
    profile = folded.read(f"main;größe 3{end}main 4{end}".encode(encoding), where="x")
    assert chains(profile) == [("main", "größe"), ("main",)]
    assert profile.samples.weight.tolist() == [3, 4]


@pytest.mark.parametrize(
    "line", ["a", "a b", "12", " 3", "a -1", "a nan", "a inf", "a 1_0", "# a 1 comment", "a;b 1e400"]
)
def test_lines_that_are_no_stacks_are_counted(line: str) -> None:
    """They cost themselves, not the file; a diagnostic quotes the first."""
    profile = folded.read(f"main 1\n{line}\n".encode(), where="x")
    assert (len(profile.samples), profile.unread) == (1, 1)
    assert len(profile.diagnostics) == (not line.startswith("#"))


@pytest.mark.parametrize(
    ("label", "frame"),
    [
        ("step (/x/train.py:41)", Frame("step", "/x/train.py", 41, kind=FrameKind.PYTHON)),
        ("<module> (train.py)", Frame("<module>", "train.py", kind=FrameKind.PYTHON)),
        ("f (<frozen importlib._bootstrap>:9)", Frame("f", "<frozen importlib._bootstrap>", 9, kind=FrameKind.PYTHON)),
        ("clear_page_[k]", Frame("clear_page", module="[kernel]", kind=FrameKind.KERNEL)),
        ("jit_[j]", Frame("jit", kind=FrameKind.GENERATED)),
        ("[libz.so.1]", Frame("[libz.so.1]", module="libz.so.1", kind=FrameKind.NATIVE, resolved=False)),
        ("[unknown]", Frame("[unknown]", resolved=False)),
        ("void f<int>(long (*)(int))", Frame("void f<int>(long (*)(int))")),
        ("a::b (1:2)", Frame("a::b", "1", 2)),
        ("f (x.py:99999999999)", Frame("f (x.py:99999999999)")),
    ],
)
def test_labels(label: str, frame: Frame) -> None:
    """Conventions of names are read, and written again as they were."""
    assert labels.frame_of(label) == frame
    assert labels.frame_of(labels.label_of(frame)) == frame


def test_names_cannot_break_out_of_their_line() -> None:
    """A name with a separator or a line break stays one frame of one line."""
    builder = StackBuilder()
    stack = builder.stack_of([Frame("evil;root 9\nmain 5", file="a\r\n;b", line=3)])
    written = folded.write(of_stacks(builder, [stack]))
    assert written.count(b"\n") == 1
    assert chains(folded.read(written, where="x")) == [("evil:root 9 main 5",)]


# ---- perf script


def test_perf_fields_may_be_missing_or_more() -> None:
    """With and without cpu, time, period, offsets and modules; names with blanks; CRLF; comments between samples."""
    text = (
        "# header\n"
        "V8 Worker 24636/25607 [000] 94564.109216789: 100 cycles:u: \n"
        "\t    7f00000000aa inner+0x10 (/lib/libx.so (deleted))\n"
        "\t    7f00000000ab outer (/lib/libx.so)\n\n"
        "# comment\n"
        "V8 Worker 24636/25607 [001] d..1. 94564.109216790: 50 cycles:u: \n"
        "\t    7f00000000ff operator()(int, char (*)[3])+0x1 (/lib/libx.so)\n\n"
    )
    profile = perf(text.replace("\n", "\r\n"))
    assert (profile.event, profile.name, profile.unit) == ("cycles", "cycles:u", "cycles")
    assert profile.threads == (Thread(24636, 25607, "V8 Worker"),)
    assert chains(profile) == [("outer", "inner"), ("operator()(int, char (*)[3])",)]
    assert profile.samples.at_ns.tolist() == [0, 1]
    assert profile.samples.weight.tolist() == [100, 50]
    assert profile.frames_of(int(profile.samples.stack[0]))[-1].module == "/lib/libx.so"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("size", [1, 2, 7, 64, 1000])
def test_a_file_is_read_in_pieces(size: int, end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever they end, it is the same as read at once."""
    text = "".join(
        f"tf 7/{8 + i % 2} {1 + i}.000000: 10 cpu-clock: \n\t f{i}+0x1 (/a)\n\t g (/a)\n\n" for i in range(9)
    )
    data = f"# a comment\n#\n{text}".replace("\n", end).encode()
    path = tmp_path / "perf.txt"
    path.write_bytes(data)
    expected = perf_script.read(data, where="x")
    monkeypatch.setattr(perf_script, "_READ", size)
    monkeypatch.setattr(detect, "HEAD_BYTES", 120)
    found = detect.read_file(path)
    assert [chains(profile) for profile in found] == [chains(profile) for profile in expected]
    assert [len(profile.samples) for profile in found] == [9]
    assert not found[0].unread


def test_perf_kinds_of_frames() -> None:
    """The kernel, generated code, Python's trampolines, and what has no name."""
    text = (
        "python 7/7 1.000001: 1 page-faults: \n"
        "\tffffffff81000000 clear_page_erms+0x7 ([kernel.kallsyms])\n"
        "\tffffffff81000001 [unknown] ([unknown])\n"
        "\tffffffffc0000001 nf_hook ([nf_conntrack])\n"
        "\t    7f0000000001 [unknown] (/tmp/perf-7.map)\n"
        "\t    7f0000000002 py::train:/x/train.py (/tmp/perf-7.map)\n"
        "\t    7f0000000003 [unknown] (/lib/libz.so.1)\n"
        "\t    7f0000000004 inlined_one (inlined)\n"
        "\t    7f0000000005 [unknown] ([unknown])\n\n"
    )
    frames = perf(text).frames_of(int(perf(text).samples.stack[0]))
    assert [(f.function, f.kind.name, f.resolved) for f in frames] == [
        ("[unknown]", "NATIVE", False),
        ("inlined_one", "NATIVE", True),
        ("[libz.so.1]", "NATIVE", False),
        ("train", "PYTHON", True),
        ("[generated code]", "GENERATED", False),
        ("nf_hook", "KERNEL", True),
        ("[kernel]", "KERNEL", False),
        ("clear_page_erms", "KERNEL", True),
    ]


def test_perf_events_are_apart() -> None:
    """Samples of two events are two profiles on one clock; tracepoints keep their names and need no period."""
    text = (
        "a 1/1 5.000000: 9 cpu-clock: \n\t 1 f+0x1 (/a)\n\n"
        "a 1/1 5.000002: syscalls:sys_enter_madvise: start: 0x1, behavior: 0x4\n\t 1 f+0x1 (/a)\n\n"
        "a 1/1 5.000003: 9 cpu-clock: \n\t 1 g+0x1 (/a)\n\n"
    )
    cpu, madvise = perf_script.read(text.encode(), where="x")
    assert (cpu.event, cpu.unit, len(cpu.samples)) == ("cpu-clock", "ns", 2)
    assert (madvise.event, madvise.unit) == ("syscalls:sys_enter_madvise", "samples")
    assert madvise.samples.at_ns.tolist() == [2000]


def test_perf_without_stacks() -> None:
    """Recorded without -g, a sample is one line and its only frame stands in it."""
    text = (
        "     a 1 5.000001: 1 cpu-clock:  7f01 f+0x1 (/lib/a.so)\na 1 5.000002: 1 cpu-clock:  7f02 g+0x1 (/lib/a.so)\n"
    )
    profile = perf(text)
    assert chains(profile) == [("f",), ("g",)]


def test_perf_source_lines_are_no_frames() -> None:
    """-F +srcline prints a line below each frame."""
    text = (
        "a 1/1 5.000001: 1 cpu-clock: \n\t  1 f+0x1 (/a)\n  a.cpp:137\n\t  1 main+0x1 (/a)\n  libc-2.33.so[27b25]\n\n"
    )
    assert chains(perf(text)) == [("main", "f")]


def test_perf_damage_is_counted() -> None:
    """Text that is no sample is left out, quoted and counted."""
    profile = perf("a 1/1 5.000001: 1 cpu-clock: \n\t  1 f+0x1 (/a)\n\nwhat is this\n\n")
    assert (len(profile.samples), profile.unread) == (1, 1)
    assert "what is this" in profile.diagnostics[0].text


# ---- pprof and speedscope


def of_stacks(
    builder: StackBuilder,
    stacks: list[int],
    *,
    threads: tuple[Thread, ...] = (),
    thread: list[int] | None = None,
    flags: list[int] | None = None,
    weight: list[float] | None = None,
) -> StackProfile:
    size = len(stacks)
    samples = SampleTable(
        at_ns=np.arange(size),
        thread=np.array(thread or [-1] * size, np.int64),
        stack=np.array(stacks, np.int64),
        weight=np.array(weight or [1] * size, np.float64),
        count=np.ones(size, np.int64),
        flags=np.array(flags or [0] * size, np.int64),
        op_thread=np.zeros(size, np.int64),
    )
    return StackProfile(
        event="cpu",
        unit="ns",
        frames=builder.frames,
        stacks=builder.stacks,
        samples=samples,
        threads=threads,
    )


def sampled() -> StackProfile:
    """Threads, kinds, a truncated stack, a sample without frames."""
    builder = StackBuilder()
    python = Frame("step", "/x/train.py", 41, kind=FrameKind.PYTHON)
    whole = builder.stack_of([python, Frame("clear_page", module="[kernel]", kind=FrameKind.KERNEL)])
    cut = builder.stack_of([Frame("[libz.so.1]", module="libz.so.1", kind=FrameKind.NATIVE, resolved=False)])
    return of_stacks(
        builder,
        [whole, cut, -1, whole],
        threads=(Thread(7, 7, "python"), Thread(7, 8, "tf_Compute")),
        flags=[StackFlag.WHOLE, StackFlag.TRUNCATED, 0, StackFlag.WHOLE],
        thread=[0, 1, 1, 0],
        weight=[5, 3, 1, 2],
    )


@pytest.mark.parametrize("module", [folded, pprof, speedscope])
def test_a_truncated_stack_is_never_written_as_whole(module: ModuleType) -> None:
    """In each format the missing part has a frame, and read again the sample is truncated still."""
    (again, *_) = detect.read(module.write(sampled()), where="x")
    cut = again.samples.take((again.samples.flags & StackFlag.TRUNCATED) != 0)
    assert cut.weight.sum() == 3
    assert {again.frames_of(int(s))[-1].function for s in cut.stack} == {"[libz.so.1]"}
    assert again.total == 11


def test_pprof_keeps_threads_counts_and_places() -> None:
    """Labels name threads; samples/count stands beside the event."""
    cpu, counts = pprof.read(gzip.decompress(pprof.write(sampled())), where="x")
    assert (cpu.event, cpu.unit, counts.event) == ("cpu", "ns", "samples")
    assert set(cpu.threads) == set(sampled().threads)
    assert counts.total == 4
    assert cpu.frames_of(int(cpu.samples.stack[0])) == sampled().frames_of(int(sampled().samples.stack[0]))


def test_pprof_differences_are_refused() -> None:
    """Negative values are a difference of two profiles, and no profile."""
    strings = b"".join(codec.encode_bytes(6, text) for text in (b"", b"cpu", b"nanoseconds"))
    types = codec.encode_bytes(1, codec.encode_number(1, 1) + codec.encode_number(2, 2))
    sample = codec.encode_bytes(2, codec.encode_packed(2, [-5]))
    with pytest.raises(FormatError, match="flame diff"):
        detect.read(types + sample + strings, where="x")


def test_speedscope_file_is_what_its_schema_says() -> None:
    """Required fields, indexes within bounds, as many weights as samples, sums that agree."""
    file = json.loads(speedscope.write(sampled(), name="run", exporter="stepscope"))
    assert file["$schema"] == speedscope.SCHEMA
    assert (file["name"], file["exporter"]) == ("run", "stepscope")
    assert None not in file.values()  # the schema knows no null
    assert [p["name"] for p in file["profiles"]] == ["python (7)", "tf_Compute (8)"]
    for profile in file["profiles"]:
        assert profile["type"] == "sampled"
        assert profile["unit"] == "nanoseconds"
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] == sum(profile["weights"])
        assert all(0 <= i < len(file["shared"]["frames"]) for s in profile["samples"] for i in s)


def evented(events: list[tuple[str, float, int]], end: float = 9) -> bytes:
    profile = {
        "type": "evented",
        "name": "t",
        "unit": "milliseconds",
        "startValue": 0,
        "endValue": end,
        "events": [{"type": kind, "at": at, "frame": frame} for kind, at, frame in events],
    }
    return json.dumps({"shared": {"frames": [{"name": "a"}, {"name": "b"}]}, "profiles": [profile]}).encode()


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([("O", 0, 0), ("C", 1, 1)], "closes frame 1 while frame 0"),
        ([("C", 1, 1)], "while no frame"),
        ([("O", 3, 0), ("C", 1, 0)], "before 3"),
        ([("O", 0, 2)], "below 2"),
    ],
)
def test_speedscope_events_that_do_not_nest(events: list[tuple[str, float, int]], said: str) -> None:
    """The place is named."""
    with pytest.raises(FormatError, match=r"profiles\[0\]\.events\[\d\]") as caught:
        detect.read(evented(events), where="x")
    assert said in str(caught.value)


def test_speedscope_frames_left_open_last_until_the_end() -> None:
    """A recording that was cut off keeps its weight, and says so."""
    (profile,) = detect.read(evented([("O", 0, 0), ("O", 2, 1)]), where="x")
    assert profile.samples.weight.tolist() == [2e6, 7e6]
    assert profile.samples.at_ns.tolist() == [0, 2_000_000]
    assert "never closed" in profile.diagnostics[0].text

"""The text of perf script: what repeats from sample to sample is read as what is new."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.readers.stacks import perf_script
from stepscope.tables.errors import FormatError

FRAMES = (
    "f+0x1 (/a.so)",
    "f+0x2 (/a.so)",
    "f+0x1 (/b.so)",
    "f (/a.so)",
    "f+0x1",
    "[unknown] ([unknown])",
    "g h+0x3 (/c d)",
)
ADDRESSES = ("    7f0000000001", "ffffffff81000000", "7f01", "")
HEADS = (
    "tf 7/7 [000] 1.{:06}: ",
    "V8 Worker 7/8 1.{:06}: ",
    "# tf 7/7 [000] 1.{:06}: ",
    "tf 7/7 [000] ",
    "a: b 7/7 {}.5: ",
)
EVENTS = ("10 cpu-clock: ", "   11 cycles:u: ", "cycles:u: ", "s:open: start: 0x1", "")
CALLERS = "\t    7f0000000002 callers+0x1 (/a.so)\n" * 12 + "\t    7f0000000003 "

frame_lines = st.tuples(st.sampled_from(ADDRESSES), st.sampled_from(FRAMES)).map("\t{0[0]} {0[1]}\n".format)
samples_of_perf = st.tuples(
    st.sampled_from(HEADS),
    st.sampled_from(EVENTS),
    st.lists(frame_lines, max_size=3),
    st.sampled_from(["", CALLERS + "main+0x1 (/a.so)\n", CALLERS + "main+0x1 (/b.so)\n"]),
    st.sampled_from(["\n", "\n", "\n", "\n\n", "", "junk\n\n"]),
)


def told(text: str) -> object:
    """All that is read of a text."""
    try:
        found = perf_script.read(text.encode(), where="x")
    except FormatError as error:
        return str(error)
    columns = ("at_ns", "thread", "stack", "weight")
    tables = [
        [
            p.stacks.parent.tolist(),
            p.stacks.frame.tolist(),
            *(getattr(p.samples, column).tolist() for column in columns),
        ]
        for p in found
    ]
    return [(p.event, p.name, p.unread, p.threads, p.frames, t) for p, t in zip(found, tables, strict=True)]


def read_one_by_one(text: str) -> object:
    """The same without the loop for samples that say nothing new."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(perf_script, "_DIGITS", b"")
        return told(text)


@given(st.lists(samples_of_perf, max_size=12))
def test_what_repeats_is_read_as_what_is_new(samples: list[tuple[str, str, list[str], str, str]]) -> None:
    """Samples that say nothing new are taken by a loop of their own: it reads what reading one by one does."""
    text = "".join(
        head.format(i) + event + "\n" + "".join(frames) + callers + end
        for i, (head, event, frames, callers, end) in enumerate(samples)
    )
    assert told(text) == read_one_by_one(text)


@pytest.mark.parametrize(
    "leaf",
    [
        "\t    7f0000000001Xf+0x1 (/a.so)",
        "x    7f0000000001 f+0x1 (/a.so)",
        "\t    7f0000000001 f+0x1 (/b.so)",
        "\t    7f0000000001 f+0x1",
        "\t    7f0000000001 f (/a.so)",
        "",
    ],
)
def test_what_is_alike_but_for_one_place_is_new(leaf: str) -> None:
    """Leaves that differ in a blank, in their module or in what they lack; callers that differ in the last line."""
    head = "tf 7/7 [000] 1.000001: 10 cpu-clock: \n"
    usual = "\t    7f0000000001 f+0x1 (/a.so)"
    text = "".join(
        f"{head}{first}\n{CALLERS}main+0x1 ({module})\n\n"
        for first, module in ((usual, "/a.so"), (usual, "/a.so"), (leaf, "/a.so"), (usual, "/b.so"), (usual, "/b.so"))
    )
    assert told(text) == read_one_by_one(text)


def test_what_stands_where_a_time_stood_may_be_none() -> None:
    """An event that follows the process at once is no time of the samples before it."""
    frames = "\t    7f0000000001 f+0x1 (/a)\n\t    7f0000000001 g+0x1 (/a)\n\n"
    text = f"tf 7/7 [000] 1.000001: \n{frames}tf 7/7 [000] cycles:u: \n{frames}tf 7/7 [000] : \n{frames}"
    found = perf_script.read(text.encode(), where="x")
    assert [(p.name, len(p.samples), p.unread) for p in found] == [("", 1, 1), ("cycles:u", 1, 1)]


def test_perf_samples_without_a_time_stand_beside_others() -> None:
    """Their time is unknown; the others keep theirs."""
    frame = "\t    7f0000000001 f+0x1 (/a)\n\n"
    heads = "a 1/1 5.000001: 9 cpu-clock: ", "a 1/1 9 cpu-clock: ", "a 1/1 5.000003: 9 cpu-clock: "
    (profile,) = perf_script.read("".join(f"{head}\n{frame}" for head in heads).encode(), where="x")
    assert profile.samples.at_ns.tolist() == [0, -1, 2000]

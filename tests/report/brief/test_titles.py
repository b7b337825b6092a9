"""Short titles of findings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len
from tests.report import samples

from stepscope.report.brief import titles
from stepscope.tables.findings import LineWork
from stepscope.tables.place import Place


@pytest.mark.parametrize(
    ("text", "room", "said"),
    [
        (
            "the input generator runs in Python; each step waits",
            60,
            "the input generator runs in Python; each step waits",
        ),
        ("the input generator runs in Python; each step waits", 40, "the input generator runs in Python"),
        ("decode runs as Python (tf.py_function, slow), 31 ms per batch", 30, "decode runs as Python"),
        (
            "copies (977 KiB, twice) take 40 % of the step, with no kernel",
            50,
            "copies (977 KiB, twice) take 40 % of the step",
        ),
        ("frozen layers recompute the same features in every epoch", 30, "frozen layers recompute the …"),
        ("GPU: it is idle for the first 25 s of the whole job", 30, "GPU: it is idle for the …"),
        ("1,234,567 elements of a tensor that nobody ever uses", 30, "1,234,567 elements of a …"),
    ],
)
def test_a_statement_is_whole_where_it_can_be(text: str, room: int, said: str) -> None:
    """A text ends before its details: at a semicolon, colon or parenthesis, else at a comma, else at a word."""
    assert titles.statement(text, room) == said


def test_the_place_is_said_once() -> None:
    """A title names the file without its folders and the line; not again if the detector's text does."""
    deep = Place(file="a/b/train.py", line=24, function="read")
    assert titles.title(samples.finding(title="reads are slow", where=(deep,))) == "reads are slow, train.py:24"
    said = "the stage map takes 48 ms (train.py:24)"
    assert titles.title(samples.finding(title=said, where=(deep,))) == said
    assert titles.title(samples.finding(title="reads are slow", where=())) == "reads are slow"


@pytest.mark.parametrize(
    ("said", "title"),
    [
        (
            "the callback Log takes 12 ms on every batch",
            "the callback Log takes 12 ms on every batch: a deep copy, train.py:24",
        ),
        (
            "the loop prepares each batch in Python before the step and takes 74 % of the time",
            "a deep copy, train.py:24",
        ),
    ],
)
def test_the_reason_has_its_room_first(said: str, title: str) -> None:
    """What the lines do, and where; what the detector says first stands before it where both fit."""
    does = LineWork(text="90 % is a deep copy", short="a deep copy", samples=40)
    place = Place(file="a/train.py", line=24)
    assert titles.title(samples.finding(title=said, where=(place,), does=does)) == title


@given(
    st.text(max_size=300),
    st.text(max_size=200),
    st.integers(min_value=0, max_value=10**9),
    st.integers(min_value=60, max_value=200),
)
def test_no_title_is_longer(text: str, file: str, line: int, room: int) -> None:
    """Whatever a program's names are, a title has at most 90 columns, and no more than there are."""
    found = samples.finding(title=text, where=(Place(file=file, line=line),))
    assert cell_len(titles.title(found, room)) <= min(room, 90)
    assert titles.title(found, room).replace("�", "").isprintable()


def test_a_general_finding_is_not_all_at_its_place() -> None:
    """Its time is spread over lines, of which one is named."""
    place = Place(file="a/train.py", line=7)
    (first, *_) = samples.eight().findings
    calls = replace(first, code="GEN012", title="calls take 100 % of the step time", where=(place,))
    assert titles.title(calls) == "calls take 100 % of the step time, for instance at train.py:7"
    assert titles.title(replace(calls, code="HST001")) == "calls take 100 % of the step time, train.py:7"

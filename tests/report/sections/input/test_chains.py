"""Edits of chains of calls as text."""

from __future__ import annotations

import pytest

from stepscope.causes.input.source_change import SourceChange
from stepscope.model.log.events import DatasetMade
from stepscope.report.sections.input import chains

FILE = "/job/train.py"
ONE_CHAIN = """import tensorflow as tf

def pipeline():
    return (
        source()
        .shuffle(100)  # rows
        .map(decode)
        .batch(32)
    )
"""
STATEMENTS = """import tensorflow

dataset = source().cache().map(decode)
dataset = dataset.filter(wanted)
for batch in dataset.batch(8):
    pass
"""


def made(number: int, line: int) -> DatasetMade:
    """A transformation on a line of the file."""
    return DatasetMade(at=0, id=number, cls="", file=FILE, line=line)


def test_calls_move_with_their_lines_and_comments() -> None:
    """A map before a shuffle, a cache after it, in the form of the chain."""
    changes = [
        SourceChange(kind="move", made=made(2, 7), other=made(1, 6)),
        SourceChange(kind="insert", made=made(2, 7), text="cache()"),
    ]
    after = chains.edited(ONE_CHAIN, changes, {1: "shuffle", 2: "map"})
    assert [line.strip() for line in after.splitlines()[4:9]] == [
        "source()",
        ".map(decode)",
        ".cache()",
        ".shuffle(100)  # rows",
        ".batch(32)",
    ]


def test_a_line_without_column_is_that_of_the_chain() -> None:
    """Before Python 3.11 every call of a chain is on the line where the chain begins."""
    change = SourceChange(kind="keyword", made=made(2, 5), text="num_parallel_calls=tf.data.AUTOTUNE")
    after = chains.edited(ONE_CHAIN, [change], {2: "map"})
    assert ".map(decode, num_parallel_calls=tf.data.AUTOTUNE)" in after


def test_calls_move_from_one_statement_to_the_one_before() -> None:
    """The statements give the same name one value after the other."""
    changes = [
        SourceChange(kind="move", made=made(3, 4), other=made(2, 3)),
        SourceChange(kind="remove", made=made(1, 3)),
        SourceChange(kind="insert", made=made(2, 3), text="prefetch(tf.data.AUTOTUNE)"),
    ]
    after = chains.edited(STATEMENTS, changes, {1: "cache", 2: "map", 3: "filter"})
    assert "dataset = source().filter(wanted).map(decode).prefetch(tensorflow.data.AUTOTUNE)\n" in after


@pytest.mark.parametrize(
    ("change", "method", "why"),
    [
        (SourceChange(kind="move", made=made(1, 3), other=made(2, 4)), {1: "map", 2: "filter"}, "one chain"),
        (SourceChange(kind="remove", made=made(1, 9)), {1: "map"}, "line 9 has 0 calls of map"),
    ],
)
def test_what_cannot_be_made_is_refused(change: SourceChange, method: dict[int, str], why: str) -> None:
    """A call that is not there, or a move to a later statement."""
    with pytest.raises(chains.RefusedError, match=why):
        chains.edited(STATEMENTS, [change], method)


def test_a_diff_says_what_changes() -> None:
    """In the form that patch takes."""
    change = SourceChange(kind="insert", made=made(2, 7), text="cache()")
    after = chains.edited(ONE_CHAIN, [change], {2: "map"})
    said = chains.diff("train.py", ONE_CHAIN, after).splitlines()
    assert said[:2] == ["--- a/train.py", "+++ b/train.py"]
    assert [line for line in said[2:] if line.startswith(("+", "-"))] == ["+        .cache()"]


def test_a_statement_whose_calls_have_all_moved_goes() -> None:
    """What would only give a name its own value is left out."""
    text = "rows = source().shuffle(9)\nrows = rows.map(decode)\nrows = rows.batch(8)\n"
    moved = SourceChange(kind="move", made=made(2, 2), other=made(1, 1))
    cached = SourceChange(kind="insert", made=made(2, 2), text="cache()")
    after = chains.edited(text, [moved, cached], {1: "shuffle", 2: "map"})
    assert after == "rows = source().map(decode).cache().shuffle(9)\nrows = rows.batch(8)\n"

"""Whatever a program's formatting, a fix keeps every comment and every token that it is not about."""

from __future__ import annotations

import ast
import io
import json
import tokenize
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.check.fixing.planning import fix_files, hits_of

from stepscope.check.fixing.edits import Edit, apply, replacement
from stepscope.check.fixing.fixer import comments

SLOW = """\
import tensorflow as tf
def augment ( x , y ) :
    r = tf . random . uniform ( [ ] )
    return x + r , y
def make ( files , n = 2 ) :
    ds = ( tf . data . Dataset . list_files ( files ) . interleave ( tf . data . TFRecordDataset , cycle_length = n )
        . map ( augment , deterministic = True ) . batch ( 32 ) . prefetch ( 2 ) )
    return ds
@tf . function
def step ( x , n ) :
    return tf . reduce_sum ( x ) * n
x = tf . ones ( [ 3 ] )
for n in range ( 1000 ) :
    step ( x , n + 1 )
"""
SPACES = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.NL, tokenize.COMMENT)


def words(text: str) -> list[str]:
    """The tokens of a text without blanks, comments and line ends."""
    return [t.string for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type not in SPACES]


@st.composite
def layouts(draw: st.DrawFn) -> str:
    """SLOW with other blanks, line breaks inside of brackets, trailing commas and comments."""
    out: list[str] = []
    depth = 0
    for line in SLOW.splitlines():
        stripped = line.lstrip()
        if not depth:
            if draw(st.integers(0, 5)) == 0:
                out.append(f"{' ' * (len(line) - len(stripped))}# note {draw(st.integers(0, 99))} größe\n")
            out.append(" " * (len(line) - len(stripped)))
        tokens = stripped.split()
        for index, token in enumerate(tokens):
            depth += token in "([" and token != ""
            depth -= token in ")]" and token != ""
            if token == ")" and depth >= 0 and tokens[index - 1] not in ("(", ",") and draw(st.integers(0, 3)) == 0:
                out.append(draw(st.sampled_from([",", " ,", ",  # last\n", "  # last\n"])))
            out.append(token)
            glue = draw(st.sampled_from(["", " ", "  "]))
            if depth:
                glue = draw(st.sampled_from(["", " ", "\n    ", "  # é why\n        ", " \\\n   "]))
            after = tokens[index + 1 : index + 2]
            if not glue.strip(" ") and not glue and after and (token[-1:] + after[0][:1]).replace("_", "a").isalnum():
                glue = " "
            if token == "." or after == ["."]:
                glue = glue if depth else ""
            out.append(glue)
        out.append("\n" if not depth else " ")
    return "".join(out)


def parses(text: str) -> bool:
    """Whether a text is Python: of the layouts that are drawn, a few are not."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


@settings(max_examples=60, deadline=None)
@given(text=layouts().filter(parses), ending=st.sampled_from(["\n", "\r\n"]))
def test_layouts(text: str, ending: str) -> None:
    """All comments stay, tokens are only added, the rules are silent, and a second time nothing happens."""
    data = text.replace("\n", ending).encode()
    outcome = fix_files({"main.py": data})
    found = hits_of({"main.py": data})["main.py"]
    assert len(found) == 3
    done = outcome.contents.get("main.py", data).decode()
    assert not Counter(comments(text)) - Counter(comments(done.replace(ending, "\n")))
    assert done.count(ending) == done.count("\n")
    left = Counter(words(text)) - Counter(words(done.replace(ending, "\n")))
    assert left == Counter()
    assert [(f.hit.code, f.refused) for f in outcome.refused] == []
    assert hits_of({"main.py": done.encode()}) == {"main.py": []}
    assert fix_files({"main.py": done.encode()}).contents == {}


PIECES = (
    "import tensorflow as tf\n",
    '# größe \\u00e9 "quoted"',
    "%matplotlib inline\nx = 1",
    "%%time\ny = 2\n",
    "!ls",
    "%%bash\necho 1",
    "",
    "def f(x):\n    return x + tf.random.uniform([])\n",
    "ds = tf.data.Dataset.range(900).map(f)",
    "ds = ds.interleave(tf.data.Dataset.range)  # é\n",
)


@st.composite
def notebooks(draw: st.DrawFn) -> bytes:
    """A notebook with cells in any order, laid out in one of the ways in which JSON is written."""
    as_list = draw(st.booleans())
    cells: list[dict[str, object]] = []
    for piece in ["import tensorflow as tf", *draw(st.lists(st.sampled_from(PIECES), max_size=8))]:
        source = piece.splitlines(keepends=True) if as_list else piece
        cell: dict[str, object] = {"cell_type": "code", "outputs": [{"text": "é"}], "metadata": {}, "source": source}
        if draw(st.booleans()):
            cell = dict(reversed(cell.items()))
        cells.append(cell)
        if draw(st.integers(0, 3)) == 0:
            cells.append({"cell_type": "markdown", "source": ["ds = tf.data"]})
    book = {"nbformat": 4, "cells": cells, "metadata": {"kernelspec": {"language": "python"}}}
    indent = draw(st.sampled_from([None, 0, 1, 2, "\t"]))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": ")])) if indent is None else (",", ": ")
    text = json.dumps(book, indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
    return (text + draw(st.sampled_from(["", "\n"]))).encode()


@settings(max_examples=60, deadline=None)
@given(data=notebooks())
def test_notebooks(data: bytes) -> None:
    """In a notebook the sources that changed are the only change, all lines of theirs that are not fixed stay."""
    found = hits_of({"a.ipynb": data})
    outcome = fix_files({"a.ipynb": data})
    done = outcome.contents.get("a.ipynb", data)
    assert ("a.ipynb" in outcome.contents) == bool(outcome.done)
    assert len(outcome.done) + len(outcome.refused) == len([h for h in found["a.ipynb"] if h.fix])
    assert not outcome.refused
    old, new = (json.loads(d) for d in (data, done))
    for before, after in zip(old["cells"], new["cells"], strict=True):
        assert type(before["source"]) is type(after["source"])
        joined = ["".join(cell.pop("source")) for cell in (before, after)]
        assert joined[1].replace(", num_parallel_calls=tf.data.AUTOTUNE", "") == joined[0]
    assert old == new
    assert done.replace(b", num_parallel_calls=tf.data.AUTOTUNE", b"") == data
    assert hits_of({"a.ipynb": done}) == {"a.ipynb": []}


@given(st.text(alphabet="ab\n"), st.text(alphabet="ab\n"), st.text(alphabet="ab\n"), st.text(alphabet="ab\n"))
def test_smallest_replacement(head: str, old: str, new: str, tail: str) -> None:
    """An edit gives the new text in place of the old one and touches nothing that both share."""
    text = head + old + tail
    edits = replacement(text, len(head), len(head) + len(old), new)
    assert apply(text, edits) == head + new + tail
    assert (edits == ()) == (old == new)
    for edit in edits:
        gone = text[edit.start : edit.end]
        assert not gone or not edit.text or gone[0] != edit.text[0]
        assert not gone or not edit.text or gone[-1] != edit.text[-1]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.text(alphabet="xy", max_size=3)), max_size=6))
def test_edits_that_do_not_touch(raw: list[tuple[int, int, str]]) -> None:
    """Edits that do not touch each other may be done in any order, one after the other or at once."""
    text = "abcdefghijklmnopqrstu"
    chosen: list[Edit] = []
    for a, b, new in raw:
        edit = Edit(min(a, b), max(a, b), new)
        if not any(edit.touches(c) or edit == c for c in chosen):
            chosen.append(edit)
    one_by_one = text
    for edit in sorted(chosen, reverse=True):
        one_by_one = apply(one_by_one, [edit])
    assert apply(text, chosen) == one_by_one


@pytest.mark.parametrize("text", ["", "\n", "x", "x\r\ny\r", "\ufeffx"])
def test_positions(text: str) -> None:
    """Lines and offsets go back and forth."""
    from stepscope.check.fixing.edits import ParserLines

    lines = ParserLines(text)
    for offset in range(len(text) + 1):
        assert lines.offset(*lines.position(offset)) == offset

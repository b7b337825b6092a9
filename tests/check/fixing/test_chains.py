"""Actions on chains keep how the chain is laid out."""

from __future__ import annotations

import pytest
from tests.check.fixing.planning import fixed

HEAD = "import tensorflow as tf\n"


@pytest.mark.parametrize(
    ("before", "node", "after"),
    [
        ("d = x.map(f)\n", "x.map(f)", "d = x.map(f).c(1)\n"),
        ("d = x.map(f).batch(2)\n", "x.map(f)", "d = x.map(f).c(1).batch(2)\n"),
        ("d = x\n", "x", "d = x.c(1)\n"),
        ("d = a or b\n", "a or b", "d = (a or b).c(1)\n"),
        ("d = (a or b)\n", "a or b", "d = (a or b).c(1)\n"),
        ("d = (x\n  .map(f)\n  .batch(2)\n)\n", "x\n  .map(f)", "d = (x\n  .map(f)\n  .c(1)\n  .batch(2)\n)\n"),
        (
            "d = (x\n  .map(f)  # decode\n  .batch(2)  # rows\n)\n",
            "x\n  .map(f)",
            "d = (x\n  .map(f)  # decode\n  .c(1)\n  .batch(2)  # rows\n)\n",
        ),
        ("d = x \\\n    .map(f)\n", "x \\\n    .map(f)", "d = x \\\n    .map(f) \\\n    .c(1)\n"),
        ("d = (x\r\n  .map(f))\r\n", "x\r\n  .map(f)", "d = (x\r\n  .map(f)\r\n  .c(1))\r\n"),
        ("d = x.map(\n  f,\n).batch(2)\n", "x.map(\n  f,\n)", "d = x.map(\n  f,\n).c(1).batch(2)\n"),
    ],
)
def test_insert_call_in_chain(before: str, node: str, after: str) -> None:
    """A further call stands right after the node, on a line of its own where the others do."""
    assert fixed(before, "insert-call-in-chain", node, call="c(1)") == after


def test_insert_call_spells_names() -> None:
    """What the inserted call is given is spelled as the file does."""
    done = fixed(f"{HEAD}d = x.map(f)\n", "insert-call-in-chain", "x.map(f)", call="prefetch(tensorflow.data.AUTOTUNE)")
    assert done == f"{HEAD}d = x.map(f).prefetch(tf.data.AUTOTUNE)\n"


@pytest.mark.parametrize(
    ("before", "node", "after"),
    [
        ("d = x.cache().map(f)\n", "x.cache()", "d = x.map(f)\n"),
        ("d = (x\n  .cache()  # why\n  .map(f))\n", "x\n  .cache()", "refused: a comment would be lost"),
        ("d = (x  # rows\n  .cache()\n  .map(f))\n", "x  # rows\n  .cache()", "d = (x  # rows\n  .map(f))\n"),
        ("d = f(x)\n", "f(x)", "refused: the target is not a method call"),
    ],
)
def test_remove_call_from_chain(before: str, node: str, after: str) -> None:
    """A call goes and the chain closes."""
    assert fixed(before, "remove-call-from-chain", node) == after


@pytest.mark.parametrize(
    ("before", "moved", "place", "after"),
    [
        ("d = x.map(f).batch(8).g()\n", "x.map(f).batch(8)", "x.map(f)", "d = x.batch(8).map(f).g()\n"),
        ("d = x.map(f).s().batch(8)\n", "x.map(f).s().batch(8)", "x.map(f)", "d = x.batch(8).map(f).s()\n"),
        (
            "d = (x  # rows\n  .map(f)  # decode\n  .batch(8)  # eight\n  .go())\n",
            "x  # rows\n  .map(f)  # decode\n  .batch(8)",
            "x  # rows\n  .map(f)",
            "d = (x  # rows\n  .batch(8)  # eight\n  .map(f)  # decode\n  .go())\n",
        ),
        ("d = x.map(f)\ne = y.batch(8)\n", "y.batch(8)", "x.map(f)", "refused: the two calls are not in one chain"),
    ],
)
def test_move_call_in_chain(before: str, moved: str, place: str, after: str) -> None:
    """A call moves before another of its chain, with its line and its comment."""
    assert fixed(before, "move-call-in-chain", moved, place) == after

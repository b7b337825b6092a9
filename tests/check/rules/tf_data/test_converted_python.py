"""Which Python in stages TFD023 reports: variants and near-misses."""

from __future__ import annotations

import pytest
from tests.check.checking import hits

HEAD = "import numpy as np\nimport tensorflow as tf\nrows = tf.data.TextLineDataset('rows.txt')\n"
INNER = """
    def lengths(row):
        return np.array([len(w) for w in row.split()], "float32")
"""
COUNTS = """
    def lengths(row):
        n = 0
        for w in row:
            n += 1
        return n
"""
CALL = "    return tf.numpy_function(lengths, [row], tf.float32)\n"
MAP = "data = rows.map(load)\n"


def found(text: str) -> list[str]:
    """Messages of the rule."""
    return [hit.message for hit in hits(HEAD + text) if hit.code == "TFD023"]


@pytest.mark.parametrize(
    "text",
    [
        f"def load(row):{INNER}{CALL}{MAP}",
        f"def load(row):{INNER}{CALL}".replace("numpy_function", "py_function") + MAP,
        f"def read(row):{INNER}{CALL}def load(row):\n    return read(row)\n{MAP}",
        "def load(row):\n    return tf.numpy_function(lambda r: sum(len(w) for w in r.split()), [row], tf.int64)\n"
        + MAP,
        "def load(row):\n    @tf.autograph.experimental.do_not_convert" + INNER + CALL + MAP,
        f"def load(row):{COUNTS}{CALL}data = rows.interleave(load)\n",
    ],
    ids=["map", "py_function", "called by the map's", "lambda", "inner is marked", "interleave"],
)
def test_python_that_is_written_inside(text: str) -> None:
    """Whatever calls it, of the stage's function and of what that calls; a mark on the inner one does not help."""
    (message,) = found(text)
    assert "which is written inside of" in message


@pytest.mark.parametrize(
    "text",
    [
        "def lengths(row):\n    return np.array([len(w) for w in row.split()])\ndef load(row):\n" + CALL + MAP,
        f"def make():{INNER}    def load(row):\n    {CALL}    return rows.map(load)\ndata = make()\n",
        f"def load(row):{INNER}{CALL}".replace("def load", "@tf.autograph.experimental.do_not_convert\ndef load") + MAP,
        f"def load(row):\n    def lengths(row):\n        return np.load(row)\n{CALL}{MAP}",
        f"def load(row):{INNER}    return tf.strings.length(row)\n{MAP}",
        f"def load(row):{INNER}{CALL}load(next(iter(rows)))\n",
    ],
    ids=["module", "around the stage", "outer is marked", "no loop", "not called", "no stage"],
)
def test_near_misses(text: str) -> None:
    """Where it is not converted, or its conversion costs nothing."""
    assert found(text) == []

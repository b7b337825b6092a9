"""Relevance: what the source says of how often code runs, and the level that follows."""

from __future__ import annotations

import json

import pytest
from tests.check.checking import hits

HEAD = "import keras\nimport tensorflow as tf\nmodel = keras.Sequential([keras.layers.Dense(1)])\n"
LOOP = HEAD + "for row in rows:\n    model.predict(row[None])\n"
STATEFUL = "ds = tf.data.Dataset.{source}.map(lambda x: tf.image.random_flip_up_down(x))\n"


def levels(files: str | dict[str, str], code: str = "KER001") -> list[tuple[str, str]]:
    """Level, and why it is rare, of each finding of a rule."""
    return [(hit.reported_severity, hit.often.rare) for hit in hits(files) if hit.code == code]


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("train.py", ""),
        ("tests/train.py", "only tests run it"),
        ("Trash/train.py", "nothing uses what is in Trash"),
        ("caps_net copy.py", "nothing uses caps_net copy.py"),
        ("model(1).py", "nothing uses model(1).py"),
        ("old/train.py", "nothing uses what is in old"),
        ("benchmarks/run.py", "it is a benchmark"),
        ("bench_input.py", "it is a benchmark"),
        ("convert_weights.py", "it is a script for one use"),
        ("converter.py", ""),
        ("workbench.py", ""),
        ("photocopy.py", ""),
    ],
)
def test_files(path: str, why: str) -> None:
    """By folder and name, below what was checked; a name that only begins alike is no such file."""
    assert levels({path: LOOP}) == [("info" if why else "error", why)]


def test_old_folders_that_are_in_use() -> None:
    """What a file in use imports is in use, whatever its folder is called."""
    module = HEAD + "def score(rows):\n    for row in rows:\n        model.predict(row[None])\n"
    used = {"old/scores.py": module, "main.py": "from old.scores import score\nscore(open('rows'))\n"}
    assert levels(used) == [("error", "")]
    dead = {"old/scores.py": module, "old/main.py": "from scores import score\nscore(open('rows'))\n"}
    assert [level for level, _ in levels(dead)] == ["info"]


def test_demonstrations() -> None:
    """The main program of a module that others import; of a script it is the program."""
    demo = HEAD + "def show(rows):\n    return rows\n\nif __name__ == '__main__':\n    for row in show(rows):\n"
    demo += "        model.predict(row[None])\n"
    assert levels({"net.py": demo}) == [("error", "")]
    assert [level for level, _ in levels({"net.py": demo, "main.py": "from net import show\n"})] == ["info"]


SCORE = HEAD + "def score(rows):\n    for row in rows:\n        model.predict(row[None])\n"
TEST = "from scores import score\n\ndef test_score():\n    score([1])\n"


def test_functions_that_only_tests_call() -> None:
    """Unless something in use calls it, by whatever object, imports it, or passes it on; or nothing calls it."""
    assert levels({"scores.py": SCORE, "tests/test_scores.py": TEST}) == [("info", "only tests run it")]
    assert levels({"scores.py": SCORE}) == [("error", "")]
    for use in ("import scores\nscores.score(x)\n", "from scores import score\napply(score)\n", "thing.score(x)\n"):
        assert levels({"scores.py": SCORE, "tests/test_scores.py": TEST, "main.py": use}) == [("error", "")]
    handed_on = f"{SCORE}\nschedule(score)\n"
    assert levels({"scores.py": handed_on, "tests/test_scores.py": TEST}) == [("error", "")]


def test_few_iterations() -> None:
    """A stated number for all loops, and for all callers; who calls a function from outside is not known."""
    few = HEAD + "for step in range(14):\n    x = model.predict(x)\n"
    assert levels(few) == [("info", "it runs 14 times")]
    assert [level for level, _ in levels(few.replace("14", "17"))] == ["warning"]
    nested = HEAD + "for epoch in range(12):\n    for step in range(12):\n        x = model.predict(x)\n"
    assert [level for level, _ in levels(nested)] == ["warning"]
    function = HEAD + "def forecast(x):\n    for step in range(14):\n        x = model.predict(x)\n"
    assert [level for level, _ in levels(function)] == ["warning"]
    assert levels(f"{function}forecast(x)\n") == [("info", "it runs 14 times")]


def test_what_takes_seconds_matters_a_few_times() -> None:
    """A model that is loaded ten times costs seconds, whatever else ten runs cost."""
    loads = HEAD + "for part in range(10):\n    m = keras.models.load_model('m.keras')\n    m.predict(x)\n"
    assert levels(loads, "KER003") == [("error", "")]


@pytest.mark.parametrize(
    ("source", "level"),
    [
        ("range(64)", "info"),
        ("range(1000)", "warning"),
        ("from_tensor_slices(tf.zeros([64, 8, 8, 3]))", "info"),
        ("from_tensor_slices((tf.zeros([64, 8, 8, 3]), y))", "info"),
        ("from_tensor_slices(tf.zeros([4096, 8, 8, 3]))", "warning"),
        ("from_tensor_slices(tf.zeros([64, 8, 8, 3])).repeat()", "warning"),
        ("from_tensor_slices(images)", "warning"),
    ],
)
def test_small_data(source: str, level: str) -> None:
    """The rows of data whose size is written out; a repeat, or a size that is not stated, may be any number."""
    assert [got for got, _ in levels(HEAD + STATEFUL.format(source=source), "TFD001")] == [level]


def notebook(*cells: str) -> str:
    """A notebook of these code cells."""
    return json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells]})


def test_notebooks_that_teach_the_slow_way_first() -> None:
    """A tape in a cell, and a tf.function in a later one; a notebook without one trains slowly."""
    step = "for x in data:\n    with tf.GradientTape() as t:\n        l = model(x)\n"
    step += (
        "    g = t.gradient(l, model.trainable_variables)\n    o.apply_gradients(zip(g, model.trainable_variables))\n"
    )
    head = HEAD + "o = keras.optimizers.SGD()\ndata = tf.data.TFRecordDataset('x').batch(8)\n"
    later = "@tf.function\ndef step(x):\n    return model(x)\n"
    for cells, level in (((head, step), "error"), ((head, step, later), "info"), ((later, head, step), "error")):
        assert levels({"a.ipynb": notebook(*cells)}, "TFF005") == [(level, "")]

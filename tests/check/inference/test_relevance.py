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


GUARD = "\nif __name__ == '__main__':\n"
TRAIN = HEAD + "def main():\n    for row in rows:\n        model.predict(row[None])\n"


@pytest.mark.parametrize(
    ("others", "level"),
    [
        ({"tests/test_net.py": "from net import show\n"}, "error"),
        ({"other.py": "from library.net import show\n"}, "error"),
        ({"a/main.py": "import net\n", "a/net.py": "def show(rows): ...\n"}, "error"),
        ({"main.py": "import net\n"}, "info"),
        ({"main.py": "def late():\n    from net import *\n"}, "info"),
    ],
)
def test_who_imports_a_demonstration(others: dict[str, str], level: str) -> None:
    """A test, or a file that imports another one of the same name, says nothing of the file."""
    demo = HEAD + GUARD + "    for row in rows:\n        model.predict(row[None])\n"
    assert [got for got, _ in levels({"net.py": demo, **others})] == [level]


def test_imports_below_a_package_of_a_demonstration() -> None:
    """``import package.module`` names the module, and a relative import does."""
    demo = HEAD + GUARD + "    for row in rows:\n        model.predict(row[None])\n"
    for path, text in (("main.py", "import pack.net\n"), ("pack/other.py", "from . import net\n")):
        files = {"pack/__init__.py": "", "pack/net.py": demo, path: text}
        assert [got for got, _ in levels(files)] == ["info"]


@pytest.mark.parametrize(
    ("text", "level"),
    [
        (TRAIN + GUARD + "    main()\n", "error"),
        (TRAIN.replace("main", "evaluate") + "def train():\n    evaluate()\n" + GUARD + "    train()\n", "error"),
        (TRAIN + GUARD + "    app.run(main)\n    main()\n", "error"),
        (TRAIN.replace("main", "work") + "    model.fit(rows)\n" + GUARD + "    work()\n", "error"),
        (TRAIN.replace("main", "show") + GUARD + "    show()\n", "info"),
        (TRAIN.replace("main", "show") + GUARD + "    session.run(x)\n    show()\n", "info"),
    ],
)
def test_programs_that_are_no_demonstrations(text: str, level: str) -> None:
    """What main, train or run do is the program, as is what trains; others may import parts of it."""
    assert [got for got, _ in levels({"net.py": text, "main.py": "from net import model\n"})] == [level]


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


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("@app.route('/')\ndef score(rows):\n{}", "error"),
        ("@task\ndef score(rows):\n{}", "error"),
        ("@tf.function\ndef other(): ...\ndef score(rows):\n{}", "info"),
    ],
)
def test_functions_that_a_decorator_hands_on(text: str, level: str) -> None:
    """A route or a task runs for others than the tests that call it."""
    loop = "    for row in rows:\n        model.predict(row[None])\n"
    files = {"scores.py": HEAD + text.format(loop), "tests/test_scores.py": TEST}
    assert [got for got, _ in levels(files)] == [level]


def test_entry_points() -> None:
    """A function called main is a program."""
    test = "from net import main\n\ndef test_main():\n    main()\n"
    assert [got for got, _ in levels({"net.py": TRAIN, "tests/test_net.py": test})] == ["error"]


@pytest.mark.parametrize(
    ("base", "level"),
    [
        ("", "info"),
        ("(object)", "info"),
        ("(Own)", "info"),
        ("(keras.callbacks.Callback)", "error"),
        ("(Missing)", "error"),
        ("(Below)", "error"),
    ],
)
def test_methods_that_a_base_class_calls(base: str, level: str) -> None:
    """A base outside of the project may call any method; one of the project shows its calls."""
    text = f"{HEAD}class Own: ...\nclass Below(keras.callbacks.Callback): ...\nclass Log{base}:\n"
    text += "    def on_epoch_end(self, rows):\n        for row in rows:\n            model.predict(row[None])\n"
    test = "from log import Log\n\ndef test_log():\n    Log().on_epoch_end([1])\n"
    assert [got for got, _ in levels({"log.py": text, "tests/test_log.py": test})] == [level]


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
        ("from_tensor_slices(np.random.normal(0, 1, (50000, 32)))", "warning"),
        ("from_tensor_slices(np.random.normal(0, 1, (64, 32)))", "info"),
        ("from_tensor_slices(np.random.uniform(0, 1, size=(50000, 32)))", "warning"),
        ("from_tensor_slices(np.random.uniform(size=(64, 32)))", "info"),
        ("from_tensor_slices(generator.normal(0, 1, (50000, 32)))", "warning"),
        ("from_tensor_slices(tf.random.normal((64, 32)))", "info"),
        ("from_tensor_slices(tf.random.uniform((50000, 32), 0, 1))", "warning"),
        ("from_tensor_slices(np.random.rand(64, 32))", "info"),
        ("from_tensor_slices([*paths])", "warning"),
        ("from_tensor_slices([])", "warning"),
        ("from_tensor_slices({**parts})", "warning"),
        ("range(0, 1_000_000, 10)", "warning"),
        ("range(0, 640, 10)", "info"),
        ("range(10, 100000)", "warning"),
        ("range(99999999999999999999)", "warning"),
        ("range(900, 260, -10)", "info"),
        ("range(*bounds)", "warning"),
        ("range(64).apply(stage)", "warning"),
        ("range(64).concatenate(more)", "warning"),
        ("from_tensor_slices(tf.zeros([2, 9000])).unbatch()", "warning"),
    ],
)
def test_small_data(source: str, level: str) -> None:
    """The rows of data whose size is written out; a repeat, or a size that is not stated, may be any number."""
    text = f"import numpy as np\n{HEAD}{STATEFUL.format(source=source)}"
    assert [got for got, _ in levels(text, "TFD001")] == [level]


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

"""Loops: which repeat a node, through calls too; what varies in them; what is traced."""

from __future__ import annotations

import pytest
from tests.check import checking
from tests.check.asking import Asked


@pytest.mark.parametrize(
    ("text", "iterations"),
    [
        ("for i in range(10):\n    ask(i)", [10]),
        ("for i in range(2, 10, 3):\n    for j in [1, 2]:\n        ask(i)", [2, 3]),
        ("while True:\n    ask(1)", [None]),
        ("x = [ask(i) for i in range(5) for j in y]", [None]),
        ("x = {ask(i) for i in range(5) for j in (1, 2)}", [10]),
        ("x = [i for i in ask(y)]", []),
        ("x = [i for i in y for j in ask(i)]", [None]),
        ("for i in ask(y):\n    pass", []),
        ("for i in y:\n    pass\nelse:\n    ask(1)", []),
        ("days = [i + 1 for i in range(7)]\nfor day in days:\n    ask(day)", [7]),
        ("days = [i for i in range(7) if i in y]\nfor day in days:\n    ask(day)", [None]),
        ("t = [1]\nfor i in range(4):\n    t = [x + 1 for x in t]\n    for x in t:\n        ask(x)", [None, 4]),
        ("n = 7\nfor i in range(n * 2):\n    ask(i)", [14]),
        ("def f(n=4):\n    for i in range(n):\n        ask(i)", [4]),
        ("for i, x in enumerate([1, 2, 3]):\n    ask(x)", [3]),
        ("def f():\n    ask(1)\nfor i in range(3):\n    f()", [3]),
        ("def f():\n    ask(1)\ndef g():\n    f()\nwhile c:\n    g()", [None]),
        (
            "class A:\n    def f(self):\n        ask(1)\n    def g(self):\n        for i in range(6):\n            self.f()",
            [6],
        ),
        ("def f():\n    ask(1)\n    f()", []),
        ("import tensorflow as tf\n@tf.function\ndef f():\n    ask(1)\nfor i in range(3):\n    f()", []),
        ("def a():\n    ask(1)\ndef b():\n    a()\ndef c():\n    b()\ndef d():\n    c()\nfor i in x:\n    d()", []),
        ("for i in x:\n    def f():\n        ask(1)", []),
        ("while True:\n    try:\n        ask(1)\n        break\n    except OSError:\n        continue", []),
        ("while True:\n    try:\n        ask(1)\n    except OSError:\n        break", [None]),
        ("for t in range(9):\n    if t in y:\n        continue\n    ask(t)\n    break", [9]),
        ("for t in y:\n    with ask(t):\n        break", []),
    ],
)
def test_around(text: str, iterations: list[int | None]) -> None:
    """Innermost first, bodies only, up to three calls away, not through tf.functions."""
    asked = Asked(text)
    assert [loop.iterations for loop in asked.context.loops.around(asked.expressions[0])] == iterations


def test_through_files() -> None:
    """A loop in another file that calls what it has imported."""
    asked = Asked(
        {
            "main.py": "class Agent:\n    def act(self, s):\n        return ask(s)\n",
            "train.py": "from main import Agent as A\nagent = A()\nfor e in range(99):\n    agent.act(e)\n",
        }
    )
    (loop,) = asked.context.loops.around(asked.expressions[0])
    assert (loop.module.path, loop.iterations, len(loop.via)) == ("train.py", 99, 1)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("ask(i)", True),
        ("ask(i * 2 + k)", True),
        ("ask(k)", False),
        ("ask(5)", False),
        ("x = i\n    ask(x)", True),
        ("x = k + 1\n    ask(x)", False),
        ("k += 1\n    ask(k)", True),
        ("ask(f(k))", None),
        ("ask(str(k))", False),
        ("ask(o.attribute)", False),
        ("o.attribute = i\n    ask(o.attribute)", True),
        ("o.attribute += 1\n    ask(o.attribute)", True),
        ("o.attribute = o.attribute + k\n    ask(o.attribute)", True),
        ("o.attribute = f(o.attribute)\n    o.attribute = g(o.attribute)\n    ask(o.attribute)", True),
        ("items.append(1)\n    ask(items)", None),
        ("ask(time.time())", True),
        ("ask([j for j in range(k)])", False),
        ("ask([j for j in k])", None),
        ("ask([j for j in range(i)])", True),
        ("x, y = k, i\n    ask(x)", False),
        ("x, y = k, i\n    ask(y)", True),
        ("for j in k:\n        pass\n    ask(j)", None),
    ],
)
def test_varies(body: str, expected: bool | None) -> None:
    """By expression, not by line: what depends on the loop, what does not, what is not known."""
    asked = Asked(f"import time\nk = 1\no = unknown()\nitems = []\nfor i in data:\n    {body}\n")
    (loop,) = [loop for loop in asked.context.loops.around(asked.expressions[0], calls=False) if loop.line == 5]
    assert asked.context.loops.varies(asked.expressions[0], loop) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ask(1)", False),
        ("@tf.function\ndef f():\n    ask(1)", True),
        ("def f():\n    ask(1)\ng = tf.function(f)", True),
        ("ds.map(lambda x: ask(x))", True),
        ("sorted(x, key=lambda x: ask(x))", False),
        ("class M(tf.keras.Model):\n    def call(self, x):\n        ask(x)", True),
        (
            "class M(tf.keras.Model):\n    def train_step(self, x):\n        self.h(x)\n    def h(self, x):\n        ask(x)",
            True,
        ),
        ("class M(tf.keras.Model):\n    def other(self, x):\n        ask(x)", False),
        ("class M:\n    def call(self, x):\n        ask(x)", False),
        ("def h():\n    ask(1)\n@tf.function\ndef f():\n    h()", True),
        ("def h():\n    ask(1)\n@tf.function\ndef f():\n    h()\nh()", False),
        ("@tf.function\ndef f():\n    def g():\n        ask(1)\n    g()", True),
        ("def f(x):\n    ask(x)\nds.map(f)", True),
    ],
)
def test_traced(text: str, expected: bool) -> None:
    """In tf.functions, map functions and Keras' compiled methods, and in what only these call."""
    asked = Asked(f"import tensorflow as tf\nds = tf.data.Dataset.range(3)\n{text}\n")
    assert asked.context.traced(asked.expressions[0]) is expected


def test_a_list_that_is_filled_later_is_not_short() -> None:
    """``rows = []`` and ``rows.append(row)``: what is written down is not how long it gets."""
    head = "import tensorflow as tf\nmodel = tf.keras.models.load_model('m')\n"
    loop = "for row in rows:\n    model.predict(row[None])\n"
    fill = "for line in open('x'):\n    {}\n"
    assert "KER001" in checking.codes(f"{head}rows = []\n{fill.format('rows.append(line)')}{loop}")
    assert "KER001" in checking.codes(f"{head}rows = {{}}\n{fill.format('rows[line] = line')}{loop}")
    severe = [h.severity for h in checking.hits(f"{head}rows = [a, b]\n{loop}") if h.code == "KER001"]
    assert severe in ([], ["info"])

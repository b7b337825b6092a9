"""Fixes keep arrays arrays, and numbers the type that they had: where that is not shown there is no fix."""

from __future__ import annotations

import textwrap

import pytest
from tests.check.checking import hits
from tests.check.fixing.planning import fix_files, fixed_by

from stepscope.check.registry import ALL

PREDICT = """
    import numpy as np
    import keras
    def load():
        return open("x").read()
    inp = keras.Input((4,))
    model = keras.Model(inp, {{"a": keras.layers.Dense(3)(inp)}})
    rows = np.zeros((30, 4), "float32")
    things = load()
    for i in range(30):
        out = {call}
        print(out["a"].sum())
    """


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ("model.predict(rows[i][None], verbose=0)", "model.predict_on_batch(rows[i][None])"),
        ("model.predict(batch_size=1, x=rows[i:i + 1])", "model.predict_on_batch(rows[i:i + 1])"),
        ("model.predict([rows[i:i + 1]], verbose=0)", "model.predict_on_batch([rows[i:i + 1]])"),
        ("model.predict(things[i:i + 1])", ""),
        ("model.predict([[0.5, 1.0, i, i]])", ""),
        ("model.predict(rows[i][None], steps=1)", ""),
        ("model.predict(rows[i][None], callbacks=[print])", ""),
    ],
)
def test_predict_gives_arrays(call: str, after: str) -> None:
    """KER001 writes a call that gives the same arrays in the same structure, for arrays alone."""
    text = textwrap.dedent(PREDICT.format(call=call))
    assert [h.code for h in hits(text) if h.code == "KER001"] == ["KER001"]
    assert only(text, "KER001") == (text.replace(call, after) if after else text)


ARGUMENT = """
    import numpy as np
    import tensorflow as tf
    @tf.function
    def step(x, n):
        {body}
    def load():
        return open("x").read()
    for n in range(20):
        step({given}, n)
    """


@pytest.mark.parametrize(
    ("body", "given", "after"),
    [
        ("return x * n", "tf.ones([3])", "tf.constant(n, dtype=tf.float32)"),
        ("return x * n", "tf.ones([3], tf.float64)", "tf.constant(n, dtype=tf.float64)"),
        ("return x + n", "tf.constant([1, 2])", "tf.constant(n, dtype=tf.int32)"),
        ("return tf.square(x) > n", "tf.ones([3])", "tf.constant(n, dtype=tf.float32)"),
        ("return x * tf.cast(n, tf.float32)", "tf.ones([3])", "tf.constant(n)"),
        ("return x * n", "load()", ""),
        ("return x * (n + 1)", "tf.ones([3])", ""),
        ("return tf.reshape(x, [n, 1])", "tf.ones([3])", ""),
        ("print(n); return x * n", "tf.ones([3])", ""),
        ("return x * n if n > 2 else x", "tf.ones([3])", ""),
    ],
)
def test_number_has_the_type_that_it_took(body: str, given: str, after: str) -> None:
    """TFF001 gives a tensor of the type that the number takes in the function, or nothing."""
    text = textwrap.dedent(ARGUMENT.format(body=body, given=given))
    assert "TFF001" in [h.code for h in hits(text)]
    assert only(text, "TFF001") == (text.replace(f"({given}, n)", f"({given}, {after})") if after else text)


STEP = """
    import tensorflow as tf
    w = tf.Variable(tf.ones([3, 3]))
    opt = tf.keras.optimizers.SGD(0.01)
    def helper(a, b):
        {helper}
    def step(x):
        with tf.GradientTape() as tape:
            loss = helper(x @ w, x)
        g = tape.gradient(loss, [w])
        opt.apply_gradients(zip(g, [w]))
        {effect}
        return loss
    for i in range(300):
        step(tf.ones([2, 3]))
    """


@pytest.mark.parametrize(
    ("helper", "said"),
    [
        ("return tf.reduce_sum(a * b)", True),
        ("return tf.reduce_sum(a * b) * float(tf.reduce_max(a))", False),
        ("return tf.reduce_sum(a * b) * tf.reduce_max(a).numpy()", False),
        ("return tf.add_n([tf.reduce_sum(p * q) for p, q in zip(a, b)])", False),
        ("return sum(tf.reduce_sum(row) for row in a * b)", False),
    ],
)
def test_what_cannot_be_compiled_is_not_advised(helper: str, said: bool) -> None:
    """TFF005 is silent where a function that the step calls holds what a graph cannot."""
    text = textwrap.dedent(STEP.format(helper=helper, effect="pass"))
    assert ("TFF005" in [h.code for h in hits(text)]) == said


@pytest.mark.parametrize(
    ("helper", "effect", "fixed"),
    [
        ("return tf.reduce_sum(a * b)", "pass", True),
        ("return tf.reduce_sum(a * b)", "print(loss)", False),
        ("return tf.reduce_sum(a * b)", "seen.append(loss)", False),
        ("return tf.reduce_sum(a * b)", "opt.last = loss", False),
        ("return tf.reduce_sum(a * b) if isinstance(a, tf.Tensor) else 0.0", "pass", False),
        ("return unknown(a, b)", "pass", False),
    ],
)
def test_a_step_is_decorated_where_it_keeps_its_results(helper: str, effect: str, *, fixed: bool) -> None:
    """TFF005 decorates a step only where all that it does happens in the graph."""
    text = textwrap.dedent(STEP.format(helper=helper, effect=effect))
    assert ("@tf.function\ndef step" in only(text, "TFF005")) == fixed


def only(text: str, code: str) -> str:
    """A text after the unsafe fixes of one rule."""
    rules = [rule for rule in ALL if rule.code == code]
    outcome = fix_files({"main.py": text.encode()}, rules=rules)
    return outcome.contents.get("main.py", text.encode()).decode()


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("TFD013", "d = tf.data.Dataset.range(9).shuffle(9).repeat(2).cache()"),
        ("TFD016", "d = tf.data.Dataset.range(9)\nfor _ in range(20):\n    print(next(iter(d)).shape)"),
        (
            "TFF002",
            "for k in range(20):\n    @tf.function\n    def f(x):\n        print(x)\n        return x\n    f(tf.ones([]))",
        ),
        (
            "TFF004",
            "@tf.function\ndef f(x):\n    for i in range(90):\n        x = x + i\n    return x\nf(tf.ones([2]))",
        ),
        (
            "TFF004",
            "@tf.function\ndef f(x):\n    for i in range(90):\n        x = tf.concat([x, x], 0)\n    return x\nf(tf.ones([2]))",
        ),
    ],
)
def test_no_fix_that_changes_results(code: str, text: str) -> None:
    """Reported, and left alone: the fix would change what the program prints or computes."""
    text = f"import tensorflow as tf\n{text}\n"
    assert code in [h.code for h in hits(text)]
    assert only(text, code) == text


def test_a_counted_loop_becomes_one_of_the_graph() -> None:
    """TFF004 still fixes a loop whose body keeps shape and type."""
    text = "import tensorflow as tf\n@tf.function\ndef f(x):\n    for i in range(90):\n        x = x * 0.5 + 1.0\n    return x\nf(tf.ones([2]))\n"
    assert "in tf.range(90)" in fixed_by(text, "TFF004")

"""Variants and near-misses of the rules about Keras: expectations stand on the lines."""

from __future__ import annotations

import pytest
from tests.check.checking import assert_expected, codes, hits

HEAD = """
import numpy as np
import tensorflow as tf
from tensorflow import keras

model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])
x, y = np.zeros((640, 4)), np.zeros(640)
"""


def test_rows_that_are_predicted() -> None:
    """A single row by its many spellings is an error; what may be batches info; every n-th time is left alone."""
    text = """
def row_of(env):
    return np.reshape(env.state(), [1, 4])

for env in envs:
    model.predict(np.expand_dims(env, axis=0))  # expect: KER001
    model.predict(env.reshape((1,) + env.shape))  # expect: KER001
    model.predict(x[env:env + 1])  # expect: KER001
    model.predict(env[np.newaxis, ...] / 255.0)  # expect: KER001
    model.predict([env.reshape(1, -1), np.array([env])])  # expect: KER001
    model.predict(np.random.rand(1, 4))  # expect: KER001
    model.predict(env)  # expect: KER001
    if env % 50 == 0:
        model.predict(env[None])
    model.predict(env, batch_size=256)
    model.predict(x)
for env in range(8):
    model.predict(env[None])
"""
    assert_expected(HEAD + text, only="KER001")
    found = {h.span.line: h.severity for h in hits(HEAD + text) if h.code == "KER001"}
    lines = (HEAD + text).splitlines()
    assert {found[n] for n in found if "predict(env) " in lines[n - 1]} == {"info"}
    assert {found[n] for n in found if "predict(env) " not in lines[n - 1]} == {"error"}


def test_rows_that_a_caller_makes() -> None:
    """A parameter is a row where every call passes one; training on each row in the same loop does not excuse it."""
    text = (
        HEAD
        + """
def act(state):
    return model.predict(state)

def replay(memory):
    for state, goal in memory:
        model.fit(state, model.predict(state), epochs=1)  # expect: KER001

while True:
    state = np.reshape(environment(), [1, 4])
    act(state)
"""
    )
    assert [(h.span.line, h.severity) for h in hits(text) if h.code == "KER001"] == [(10, "error"), (14, "warning")]


def test_rows_by_apply() -> None:
    """A function that pandas or map runs for each element is a loop."""
    text = (
        HEAD
        + """
import pandas as pd

def score(text):
    return model.predict(np.array([text]))[0]  # expect: KER001

def once(text):
    return model.predict(np.array([text]))[0]

frame = pd.read_csv("texts.csv")
frame["score"] = frame["text"].apply(score)
scores = list(map(lambda row: model.predict(row[None]), x))  # expect: KER001
once("text")
"""
    )
    assert_expected(text, only="KER001")


def test_rows_for_whoever_calls() -> None:
    """In a method that nobody here calls it is info, in a request handler a warning, in a script's function nothing."""
    text = (
        HEAD
        + """
from flask import Flask
app = Flask(__name__)

class Pilot:
    def __init__(self):
        self.model = keras.models.load_model("pilot.keras")

    def run(self, image):
        image = image.reshape((1,) + image.shape)
        return self.model.predict(image)

@app.route("/score", methods=["POST"])
def score():
    return model.predict([[1.0, 2.0, 3.0, 4.0]])

def main():
    print(model.predict(x[:1]))

main()
"""
    )
    assert [(h.span.line, h.severity) for h in hits(text)] == [(18, "info"), (22, "warning")]


def test_models_that_are_loaded() -> None:
    """The same model in a loop or per request; not another one, one that is kept, or one to be trained."""
    assert_expected(
        {
            "main.py": """
            import functools
            import os
            import tensorflow as tf
            from flask import Flask
            from predictor import Predictor
            from tensorflow.keras.models import load_model

            PATH = "model.h5"
            app = Flask(__name__)

            def score(image, path=PATH):
                model = load_model(os.path.join("models", path))  # expect: KER003
                return model(image)

            def of_fold(fold):
                return load_model(f"fold{fold}.h5")

            @functools.lru_cache
            def kept():
                return load_model(PATH)

            @app.post("/predict")
            def predict():
                net = load_model(PATH)  # expect: KER003
                kept()
                return net(0)

            for image in images:
                score(image)
                kept()
                tf.saved_model.load("saved")  # expect: KER003
                Predictor("best.h5").run(image)
            for fold in range(100):
                of_fold(fold)
            for path in paths:
                load_model(path)
                Predictor(path)
            for split in splits:
                fresh = load_model(PATH)
                fresh.fit(split)
            """,
            "predictor.py": """
            import tensorflow as tf

            class Predictor:
                def __init__(self, path):
                    self.model = None
                    self.net = tf.keras.models.load_model(path)  # expect: KER003

                def run(self, image):
                    if self.model is None:
                        self.model = tf.keras.models.load_model("other.h5")
                    return self.model(image)
            """,
        },
        only="KER003",
    )


def test_models_on_layers_of_others() -> None:
    """``Model(model.input, layer.output)`` for each image, as Grad-CAM does it."""
    assert_expected(
        HEAD
        + """
def heat(image, net):
    part = keras.Model([net.inputs], [net.get_layer("conv").output, net.output])  # expect: KER003
    return part(image)

for image in images:
    heat(image, model)
""",
        only="KER003",
    )


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("m = build(trial)", ["KER004"]),
        ("m = build(trial)\n    keras.backend.clear_session()", []),
        ("m = build(trial)\n    models.append(m)", []),
        ("models[trial] = build(trial)", []),
        ("with tf.Graph().as_default():\n        m = build(trial)", []),
        ("m = keras.models.load_model(trial)", ["KER004"]),
    ],
)
def test_models_that_pile_up(body: str, found: list[str]) -> None:
    """Made in a loop through a function; not where they are kept or cleared."""
    build = "def build(units):\n    return keras.Sequential([keras.layers.Dense(units), keras.layers.Dense(1)])\n"
    text = f"{HEAD}models = []\n{build}for trial in trials:\n    {body}\n"
    assert [c for c in codes(text) if c == "KER004"] == found


def test_compiles_in_loops() -> None:
    """With the same arguments; not in a search, for a model of the loop, or after layers were thawed."""
    assert_expected(
        HEAD
        + """
for epoch in range(100):
    model.compile(optimizer=keras.optimizers.Adam(0.001), loss="mse", metrics=["mae"])  # expect: KER005
for rate in rates:
    model.compile(keras.optimizers.Adam(rate), "mse")
for units in sizes:
    net = keras.Sequential([keras.layers.Dense(units)])
    net.compile("adam", "mse")
for layer in model.layers:
    layer.trainable = True
    model.compile("adam", "mse")
for step in range(2):
    model.compile("adam", "mse")
""",
        only="KER005",
    )


def test_fits_of_one_epoch() -> None:
    """The same arrays again and again; not other data, several epochs or an epoch to start from."""
    assert_expected(
        HEAD
        + """
for epoch in range(100):
    model.fit(x, y)  # expect: KER006
    model.fit(x, y, epochs=5)
    model.fit(x, y, epochs=epoch + 1, initial_epoch=epoch)
    model.fit(chunk(epoch), y)
for part in np.split(x, 20):
    model.fit(part)
""",
        only="KER006",
    )


def test_datasets_made_for_each_predict() -> None:
    """Made in the loop or in the function that it calls; not before it, and not with the model."""
    assert_expected(
        HEAD
        + """
def score(part):
    ds = tf.data.Dataset.from_tensor_slices(part).batch(8)
    return model.predict(ds)  # expect: KER002

whole = tf.data.Dataset.from_tensor_slices(x).batch(8)
for part in parts:
    score(part)
    model.evaluate(tf.data.Dataset.from_tensor_slices(part).batch(8))  # expect: KER002
    model.predict(whole)
for part in parts:
    net = keras.Sequential([keras.layers.Dense(2)])
    net.predict(tf.data.Dataset.from_tensor_slices(part).batch(8))
""",
        only="KER002",
    )


@pytest.mark.parametrize("path", ["tests/test_model.py", "model_test.py", "pkg/tests/helpers.py"])
def test_tests_are_not_hot(path: str) -> None:
    """What a test does it does on a few rows: at most info."""
    text = HEAD + "for row in rows:\n    model.predict(row[None])\n    keras.models.load_model('m.h5')\n"
    text += "def test_model(): ...\n"
    assert {h.reported_severity for h in hits({path: text})} <= {"info"}

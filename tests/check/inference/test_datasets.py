"""Chains of datasets: one for each way to make it, nothing merged that is not one."""

from __future__ import annotations

import pytest
from tests.check.asking import Asked

from stepscope.check.inference.datasets import MAX_CHAINS

HEAD = """
import tensorflow as tf
from functools import partial
base = tf.data.TFRecordDataset("x")
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ask(base.map(f).batch(2))", ["TFRecordDataset map batch"]),
        ("ds = base.map(f)\nds = ds.batch(2)\nds = ds.prefetch(1)\nask(ds)", ["TFRecordDataset map batch prefetch"]),
        ("a = base.map(f)\nb = base.batch(2)\nask(a)", ["TFRecordDataset map"]),
        ("ds = base\nif c:\n    ds = ds.shuffle(9)\nask(ds.batch(2))", ["TFRecordDataset batch", "TFRecordDataset shuffle batch"]),
        ("if c:\n    ds = base.map(f)\nelse:\n    ds = base.batch(1)\nask(ds)", ["TFRecordDataset batch", "TFRecordDataset map"]),
        ("ds = base.repeat() if c else base\nask(ds)", ["TFRecordDataset", "TFRecordDataset repeat"]),
        ("def make(files):\n    return tf.data.TextLineDataset(files).map(f)\nask(make('x').batch(2))", ["TextLineDataset map batch"]),
        ("def add(ds):\n    return ds.map(f)\nask(add(base).batch(3))", ["TFRecordDataset map batch"]),
        ("def show(ds):\n    ask(ds)\nshow(base.batch(2))", ["TFRecordDataset batch"]),
        ("def show(ds: tf.data.Dataset):\n    ask(ds.map(f))", ["unknown map"]),
        ("ask(tf.data.Dataset.from_tensor_slices([1]).apply(g).take(3))", ["from_tensor_slices apply take"]),
        ("ds = base\nfor _ in range(3):\n    ds = ds.map(f)\nask(ds)", ["TFRecordDataset", "TFRecordDataset map"]),
        ("ds = tf.data.Dataset.zip((base, base.map(f)))\nask(ds.batch(2))", ["zip batch"]),
        ("ask(unknown.map(f))", []),
        ("ask(list(map(f, base)))", []),
        ("train = base.take(1)\ntest = base.skip(1)\nask(test.map(f))", ["TFRecordDataset skip map"]),
        ("class D:\n    def __init__(self):\n        self.ds = base.map(f)\n    def get(self):\n        ask(self.ds.batch(1))", ["TFRecordDataset map batch"]),
    ],
)  # fmt: skip
def test_stages(text: str, expected: list[str]) -> None:
    """The words of each chain, from the source on."""
    assert Asked(HEAD + text).chains == [expected]


@pytest.mark.parametrize(
    ("function", "effects", "vectorisable"),
    [
        ("lambda x: tf.cast(x, tf.float32) / 255.0", [], True),
        ("lambda x: x['image'] * 2", [], True),
        ("lambda x: tf.random.uniform([]) + x", ["random"], False),
        ("lambda x: tf.image.random_crop(x, [2])", ["random"], False),
        ("lambda x: tf.random.stateless_uniform([], (1, 2)) + x", [], None),
        ("lambda x: x + weight", ["variable"], False),
        ("lambda x: tf.numpy_function(g, [x], tf.int32)", ["python"], False),
        ("lambda x: table.lookup(x)", ["table"], False),
        ("lambda x: tf.io.decode_jpeg(x)", [], None),
        ("lambda x: flip(x)", ["random"], False),
        ("named", [], True),
        ("partial(scaled, by=2)", [], None),
        ("flip_layer", ["random"], False),
    ],
)
def test_functions(function: str, effects: list[str], vectorisable: bool | None) -> None:
    """What a stage runs, whether it is stateful, and whether it would work on batches."""
    flip = """
weight = tf.Variable(1.0)
table = tf.lookup.StaticHashTable(init, 0)
flips = tf.keras.layers.RandomFlip()
def named(x):
    return tf.multiply(x, 2)
def scaled(x, by):
    return x * by
def flip(x):
    return inner(x)
def inner(x):
    return tf.image.random_flip_left_right(x)
def flip_layer(x):
    return flips(x)
"""
    asked = Asked(f"{HEAD}{flip}ask(base.map({function}))")
    (chain,) = asked.context.chains(asked.expressions[0])
    found = asked.context.functions.of_stage(chain.stages[-1])
    assert found is not None
    assert [effect.kind for effect in asked.context.functions.effects(found)] == effects
    assert asked.context.functions.vectorisable(found) is vectorisable


def test_many_conditional_stages_end() -> None:
    """Each doubles the ways through the function: as many are told as are of use, in time."""
    steps = "".join(f"if c{i}:\n    ds = ds.map(f{i})\nelif d{i}:\n    ds = ds.repeat({i})\n" for i in range(15))
    (chains,) = Asked(f"{HEAD}ds = base\n{steps}ask(ds.batch(2))").chains
    assert len(chains) == MAX_CHAINS
    assert all(chain.startswith("TFRecordDataset") and chain.endswith("batch") for chain in chains)

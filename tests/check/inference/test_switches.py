"""Branches that a call switches off count for nothing."""

import pytest
from tests.check import checking

PROGRAM = """
import tensorflow as tf

def preprocess(image, size, training=False, flip=True):
    image = tf.image.resize(image, size)
    {body}
    return image

def both(image, training):
    return preprocess(image, 224, training)

images = tf.data.Dataset.from_tensor_slices(load())
ds = images.map(lambda image: {call})
"""
IF = "if training:\n        image = tf.image.random_flip_left_right(image)"


@pytest.mark.parametrize(
    ("call", "body", "fires"),
    [
        ("preprocess(image, 224, True)", IF, True),
        ("preprocess(image, 224, training=True)", IF, True),
        ("preprocess(image, 224, training=False)", IF, False),
        ("preprocess(image, 224, False)", IF, False),
        ("preprocess(image, 224)", IF, False),
        ("preprocess(image, 224, training=flag)", IF, True),
        ("preprocess(image, 224, **options)", IF, True),
        ("preprocess(image, *options)", IF, True),
        ("both(image, False)", IF, False),
        ("both(image, True)", IF, True),
        ("preprocess(image, 224)", IF.replace("training", "not training"), True),
        ("preprocess(image, 224)", IF.replace("training", "training and flip"), False),
        ("preprocess(image, 224)", IF.replace("training", "training or flip"), True),
        ("preprocess(image, 224)", IF.replace("training", "training or other"), True),
        ("preprocess(image, 224)", "image = tf.image.random_flip_left_right(image) if training else image", False),
        ("preprocess(image, 224)", "training = choose()\n    " + IF, True),
        ("preprocess(image, 224)", "if training:\n        pass\n    else:\n        image = image + tf.random.normal([])",
         True),
    ],
)  # fmt: skip
def test_switched_off(call: str, body: str, fires: bool) -> None:
    """What is random only in training is no reason to report a map that does not train."""
    found = checking.codes(PROGRAM.format(call=call, body=body))
    assert ("TFD001" in found) is fires

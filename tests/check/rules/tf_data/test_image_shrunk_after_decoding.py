"""Images that are decoded whole and shrunk afterwards, and look-alikes: expectations stand on the lines."""

from __future__ import annotations

from tests.check.checking import assert_expected, codes

HEAD = """
import cv2
import keras
import numpy as np
import tensorflow as tf
from PIL import Image

SIZE = (128, 128)
paths = tf.io.gfile.glob("pictures/*.jpg")
"""


def test_pictures_that_are_shrunk_in_python() -> None:
    """By any loader and resize, through conversions and functions, in loops, comprehensions and generators."""
    assert_expected(
        HEAD
        + """
def read(path):
    return np.asarray(Image.open(path).convert("RGB"))

def load(path):
    whole = keras.utils.img_to_array(keras.utils.load_img(path)) / 255.0
    return tf.image.resize(whole, SIZE)  # expect: TFD021

def rows():
    for path in paths:  # expect: TFD021
        whole = read(path)
        yield cv2.resize(whole, SIZE)

class Pictures(keras.utils.PyDataset):
    def __getitem__(self, index):
        return Image.open(paths[index]).resize(SIZE)  # expect: TFD021

for path in paths:  # expect: TFD021
    picture = cv2.imread(path)
    picture = cv2.resize(picture, (64, 64))
for path in paths:  # expect: TFD021
    with Image.open(path) as photo:
        small = photo.resize(SIZE)
for path in paths:  # expect: TFD021
    whole = tf.io.decode_jpeg(tf.io.read_file(path))
    small = tf.image.resize(whole, [96, 96])

pictures = [load(path) for path in paths]
""",
        only="TFD021",
    )


def test_pictures_that_are_left_alone() -> None:
    """A told size, a crop or another use first, large results, single pictures, what was not decoded."""
    assert_expected(
        HEAD
        + """
one = tf.image.resize(keras.utils.img_to_array(keras.utils.load_img(paths[0])), SIZE)
for path in paths:
    small = keras.utils.img_to_array(keras.utils.load_img(path, target_size=SIZE))
    small = tf.image.resize(small, SIZE)
    half = tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(path), ratio=4), SIZE)
    whole = cv2.imread(path, cv2.IMREAD_REDUCED_COLOR_4)
    small = cv2.resize(whole, SIZE)
    photo = Image.open(path)
    photo.draft("RGB", SIZE)
    small = photo.resize(SIZE)
    whole = cv2.imread(path)
    height = whole.shape[0]
    small = cv2.resize(whole, SIZE)
    face = cv2.resize(cv2.imread(path)[10:50, 10:50], SIZE)
    large = cv2.resize(cv2.imread(path), (2048, 2048))
    small = tf.image.resize(unknown(path), SIZE)
for path in paths[:3]:
    array.resize(SIZE)
for path in ["a.jpg", "b.jpg"]:
    small = cv2.resize(cv2.imread(path), SIZE)
""",
        only="TFD021",
    )
    loop = HEAD.replace(".jpg", ".png") + "for p in paths:\n    small = cv2.resize(cv2.imread(p), SIZE)\n"
    assert "TFD021" not in codes(loop)
    assert "TFD021" in codes(loop.replace(".png", ".jpeg"))


def test_pictures_that_a_map_shrinks() -> None:
    """To a size for which half of a usual picture is enough, also in a function that the map's function calls."""
    text = (
        HEAD
        + """
def shrink(path):
    return tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(path), channels=3), {size})

def load(path):
    return shrink(path) / 255.0

data = tf.data.Dataset.from_tensor_slices(paths).map(load, num_parallel_calls=tf.data.AUTOTUNE)
"""
    )
    assert codes(text.format(size="SIZE")) == ["TFD021"]
    assert codes(text.format(size="[224, 224]")) == []
    assert codes(text.format(size="unknown")) == []

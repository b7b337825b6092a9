"""Which arrays of loaded files TFD022 reports: variants and near-misses."""

from __future__ import annotations

import pytest
from tests.check.checking import hits

HEAD = """
import glob
import cv2
import numpy as np
import pandas as pd
import tensorflow as tf
from PIL import Image

paths = glob.glob("images/*.jpg")

def read(path):
    image = tf.io.decode_jpeg(tf.io.read_file(path))
    return tf.image.resize(image, [128, 128])

"""
TRAIN = "\nmodel.fit(x, y)\n"


def found(text: str) -> list[str]:
    """Messages of the rule."""
    return [hit.message for hit in hits(text) if hit.code == "TFD022"]


@pytest.mark.parametrize(
    "text",
    [
        "x = np.array([cv2.imread(p) for p in paths])",
        "x = np.stack([read(p).numpy() for p in paths])",
        "rows = [np.asarray(Image.open(p)) for p in paths]\nx = tf.convert_to_tensor(rows)",
        "rows = []\nfor p in paths:\n  i = cv2.imread(p)\n  i = cv2.resize(i, size)\n  rows.append(i)\nx = np.array(rows)",
        "def load():\n    rows = list()\n    for p in paths:\n        rows.append(read(p))\n    return tf.stack(rows)\nx = load()",
    ],
)
def test_all_files_in_an_array(text: str) -> None:
    """Loops and comprehensions, with the library's loaders and the project's."""
    assert len(found(HEAD + text + TRAIN)) == 1


def test_bytes_that_become_float64() -> None:
    """A division is told, at once or by name; not where a type is given."""
    rows = "np.array([cv2.imread(p) for p in paths]"
    assert "float64" in found(f"{HEAD}x = {rows}) / 255.0{TRAIN}")[0]
    assert "float64" in found(f"{HEAD}x = {rows})\nx = x / 255.0{TRAIN}")[0]
    assert "float64" not in found(f"{HEAD}x = {rows}, dtype='float32') / 255.0{TRAIN}")[0]
    assert "float64" not in found(f"{HEAD}x = {rows}){TRAIN}")[0]


@pytest.mark.parametrize(
    "text",
    [
        "rows = []\nfor p in paths:\n    image = cv2.imread(p)\n    rows.append(p)\nx = np.array(rows)",
        "x = np.array([cv2.imread(p) for p in ('a.png', 'b.png')])",
        "x = np.array([pd.read_csv(p) for p in paths])",
        "x = np.array(cv2.imread(paths[0]))",
        "for some in batches:\n    x = np.array([cv2.imread(p) for p in some])\n    model.predict(x)",
        "def batches():\n    x = np.array([cv2.imread(p) for p in paths])\n    yield x",
    ],
)
def test_what_is_left_alone(text: str) -> None:
    """Names of files, few files, tables, one file, batches."""
    assert found(HEAD + text + TRAIN) == []


def test_a_program_that_does_not_train() -> None:
    """Pictures that are only looked at, or given to predict, are left alone; a function is followed to its caller."""
    load = "def load():\n    return np.array([cv2.imread(p) for p in paths])\n"
    assert found(HEAD + load + "model.predict(load())\n") == []
    project = {"data.py": HEAD + load, "train.py": "from data import load\nmodel.fit(load(), y)\n"}
    assert [(h.code, h.span.path) for h in hits(project)] == [("TFD022", "data.py")]

"""Near-misses and variants of the rules on generators, caches, order and rows of tf.data; expectations on the lines."""

from __future__ import annotations

import pytest
from tests.check.checking import assert_expected, codes, hits
from tests.check.fixing.planning import fixed_by

HEAD = """
import glob
import random
import numpy as np
import tensorflow as tf
import keras

x, y = np.load("x.npy"), np.load("y.npy")
paths = tf.data.Dataset.list_files("a/*.jpg", shuffle=False)
records = tf.data.TFRecordDataset("x")
model = keras.Sequential([])
F = tf.float32

def load(path):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(image, [224, 224])

def parse(record):
    return tf.io.parse_tensor(record, F)
"""


def test_generators_over_arrays() -> None:
    """By index, by zip and enumerate, permuted, endless, converted on the way; lambdas."""
    assert_expected(
        HEAD
        + """
def by_index():
    for i in range(len(x)):
        yield x[i], y[i]

def shuffled():
    while True:
        for i in np.random.permutation(len(x)):
            yield {"image": x[i].astype("float32") / 255, "label": y[i]}

def zipped():
    for i, (a, b) in enumerate(zip(x, y)):
        yield a, b

def given(rows):
    for row in rows:
        yield row

a = tf.data.Dataset.from_generator(by_index, output_types=(F, F))  # expect: TFD006
b = tf.data.Dataset.from_generator(shuffled, output_types=F).batch(32)  # expect: TFD006
c = tf.data.Dataset.from_generator(zipped, output_types=(F, F))  # expect: TFD006
d = tf.data.Dataset.from_generator(lambda: given(x), output_types=F)  # expect: TFD006
e = tf.data.Dataset.from_generator(lambda: zip(x, y), output_types=(F, F))  # expect: TFD006
f = tf.data.Dataset.from_generator(lambda: (row for row in x), output_types=F)  # expect: TFD006
"""
    )


@pytest.mark.parametrize(
    "body",
    [
        "    for i in range(0, len(x), 32):\n        yield x[i : i + 32]",
        "    for i in range(100):\n        yield x[np.random.choice(10, 32)]",
        "    for i in range(len(x)):\n        yield tokenize(x[i])",
        "    for i in range(len(x)):\n        if y[i]:\n            yield x[i]",
        "    for row in unknown:\n        yield row",
        "    for word in ['a', 'b']:\n        yield word",
        "    for i in range(10):\n        yield np.random.rand(16)",
        "    for i in range(len(x)):\n        with lock:\n            yield x[i]",
        "    yield from x",
    ],
)
def test_generators_that_are_left_alone(body: str) -> None:
    """Batches, conditions, unknown calls and sources, numbers that are made up."""
    text = f"def gen():\n{body}\n\nds = tf.data.Dataset.from_generator(gen, output_types=F)\n"
    assert codes(HEAD + text) == []


@pytest.mark.parametrize(
    "rest",
    [
        "output_shapes=[None])",
        "output_signature=tf.TensorSpec([None, 3], F))",
        "output_types=F).padded_batch(8)",
        "output_types=tf.string).map(lambda p: load(p))",
        "**options)",
    ],
)
def test_generators_of_rows_that_differ_or_name_files(rest: str) -> None:
    """Rows of several lengths; names that a map loads; hidden arguments."""
    text = f"def gen():\n    for row in x:\n        yield row\n\nds = tf.data.Dataset.from_generator(gen, {rest}\n"
    assert codes(HEAD + text) == []


def test_python_in_maps() -> None:
    """NumPy arithmetic, OpenCV, a library's function itself, helpers, lambdas."""
    assert_expected(
        """
        import cv2
        import librosa
        import re
        import numpy as np
        import tensorflow as tf

        ds = tf.data.TFRecordDataset("x")
        F = tf.float32

        def scale(a):
            return np.log1p(np.abs(a)).astype("float32").reshape(-1)

        def read(path):
            image = cv2.imread(path.numpy().decode())
            return smaller(image) / 255.0

        def smaller(image):
            return cv2.resize(image, (64, 64))

        def spectrum(a):
            return librosa.feature.melspectrogram(y=a)

        def rows(path):
            return tokenizer.encode(np.array(path))

        def filled(a):
            for i in range(3):
                a[i] = state.next()
            return a

        def wrapped(a):
            return tf.numpy_function(scale, [a], F)  # expect: TFD007

        a = ds.map(wrapped, 4)
        b = ds.map(lambda p: tf.py_function(read, [p], F), 4)  # expect: TFD007
        c = ds.map(lambda p: tf.py_function(cv2.imread, [p], F), 4)  # expect: TFD007
        d = ds.map(lambda p: tf.py_function(lambda v: np.mean(v), [p], F), 4)  # expect: TFD007
        e = ds.map(lambda p: tf.numpy_function(np.load, [p], F), 4)
        f = ds.map(lambda p: tf.numpy_function(spectrum, [p], F), 4)
        g = ds.map(lambda p: tf.numpy_function(rows, [p], F), 4)
        h = ds.map(lambda p: tf.numpy_function(filled, [p], F), 4)
        i = ds.map(lambda p: tf.numpy_function(unknown, [p], F), 4)
        j = tf.numpy_function(scale, [1.0], F)

        class Words:
            def __init__(self, ids):
                self.ids = ids

            def encode(self, text):
                words = re.findall("[a-z]+", text.numpy().decode().lower())
                return np.array([self.ids.get(w, 1) for w in words])

            def make(self, data):
                return ds.map(lambda t: tf.py_function(self.encode, [t], F), 4)  # expect: TFD007
        """
    )


def test_misplaced_caches() -> None:
    """Of names, of serialized records, across statements; not of images that are decoded from cached bytes."""
    assert_expected(
        HEAD
        + """
a = paths.cache().map(load, 4)  # expect: TFD004
names = paths.shuffle(100).cache()
b = names.map(load, 4)  # expect: TFD004
c = records.cache().map(parse, 4)  # expect: TFD004
d = records.cache().map(lambda r: tf.io.decode_jpeg(r), 4)
e = paths.map(tf.io.read_file).cache().map(load, 4)
f = records.cache().map(lambda r: parse(r) + tf.random.normal([]), 4)
g = records.cache().map(lambda r: r, 4)
h = records.cache().map(parse, 4).cache()
i = paths.map(load, 4).cache()
j = records.cache().map(unknown, 4)
k = records.cache().map(lambda r: unknown(parse(r)), 4)
"""
    )


def test_caches_that_are_missing() -> None:
    """An info, where ``fit`` is told several epochs and the work is the same in each."""
    text = HEAD + "ds = records.map(parse, 4).batch(8)\nmodel.fit(ds, epochs=5)\n"
    assert [(h.code, h.severity) for h in hits(text)] == [("TFD004", "info")]
    for silent in (
        text.replace("epochs=5", "epochs=1"),
        text.replace(".batch", ".cache().batch"),
        text.replace("epochs=5", "epochs=n"),
        text.replace("records.map", "records.shuffle(100).map"),
    ):
        assert codes(silent) == []


def test_cached_repeats() -> None:
    """With and without a count; a take between ends it."""
    assert_expected(
        HEAD
        + """
a = records.repeat().cache()  # expect: TFD013
b = records.repeat(5).shuffle(10).cache()  # expect: TFD013
c = records.repeat(1).cache()
d = records.repeat().take(100).cache()
e = records.cache().repeat()
f = unknown.repeat().cache()
"""
    )
    assert "records.cache().repeat()" in fixed_by(HEAD + "a = records.repeat().cache()\n", "TFD013")


def test_map_before_shard() -> None:
    """Costly maps alone, and with nothing between that would give other elements."""
    assert_expected(
        HEAD
        + """
a = paths.map(load, 4).shard(4, index)  # expect: TFD017
b = paths.map(load, 4).prefetch(1).shard(n, index)  # expect: TFD017
c = paths.shard(4, index).map(load, 4)
d = paths.map(load, 4).shard(1, 0)
e = paths.map(load, 4).filter(keep).shard(4, index)
f = paths.map(load, 4).cache().shard(4, index)
g = paths.map(lambda p: p + "x").shard(4, index)
h = paths.map(unknown).shard(4, index)
i = paths.map(load, 4).batch(8).shard(4, index)
"""
    )
    assert "paths.shard(4, 0).map(load, 4)" in fixed_by(HEAD + "a = paths.map(load, 4).shard(4, 0)\n", "TFD017")


def test_shuffled_images() -> None:
    """From 256 MB on: 448 images of 224 x 224; where sizes are written down and images are decoded."""
    assert_expected(
        HEAD
        + """
a = paths.map(load, 4).shuffle(446)  # expect: TFD012
b = paths.map(load, 4).shuffle(445)
c = paths.shuffle(5000).map(load, 4)
d = paths.map(load, 4).shuffle(size)
e = paths.map(lambda p: tf.io.decode_png(tf.io.read_file(p)), 4).shuffle(5000)
f = paths.map(load, 4).cache().shuffle(5000)
g = paths.map(load, 4).map(unknown, 4).shuffle(5000)
"""
    )


def test_shuffle_after_batch() -> None:
    """Only where nothing was shuffled before and nothing is taken apart between."""
    assert_expected(
        HEAD
        + """
a = records.batch(32).shuffle(100)  # expect: TFD010
b = records.shuffle(100).batch(32).shuffle(10)
c = records.batch(32).unbatch().shuffle(100)
d = records.window(5).flat_map(lambda w: w.batch(5)).shuffle(100)
e = unknown.batch(32).shuffle(100)
f = paths.batch(32).shuffle(100)
"""
    )
    assert "records.shuffle(100).batch(32)" in fixed_by(HEAD + "a = records.batch(32).shuffle(100)\n", "TFD010")


def test_missing_prefetch() -> None:
    """What fit and training loops are given, before 2.12; never from 2.12 on."""
    text = (
        HEAD
        + """
ds = records.map(parse, 4).batch(8)
ready = ds.prefetch(1).repeat()
arrays = tf.data.Dataset.from_tensor_slices(x).batch(8)
model.fit(ds)  # expect: TFD003
model.fit(ready)
model.fit(arrays)
model.fit(records.map(parse, 4).cache().batch(8))
model.fit(unknown.batch(8))
for batch in ds:
    print(batch)
for step, batch in enumerate(ds):  # expect: TFD003
    model.train_on_batch(batch)
"""
    )
    assert_expected(text, version="2.11")
    assert codes(text, version="2.12") == []


def test_rows_in_python() -> None:
    """Steps of single rows are a warning; collecting and counting an info; batches, few rows and printing nothing."""
    assert_expected(
        HEAD
        + """
rows = tf.data.Dataset.from_tensor_slices((x, y))
for a, b in rows:  # expect: TFD019
    model.train_on_batch(a[None], b[None])
for a, b in rows.shuffle(100).as_numpy_iterator():  # expect: TFD019
    model.train_on_batch(a[None], b[None])
labels = [b for a, b in rows.batch(8).unbatch()]  # expect: TFD019
count = sum(1 for _ in records)  # expect: TFD019
n = 0
for _ in records:  # expect: TFD019
    n += 1
for a, b in rows.batch(8):
    model.train_on_batch(a, b)
for a, b in rows.take(5):
    model.train_on_batch(a, b)
for a, b in rows:
    print(a)
for i in tf.data.Dataset.range(50):
    model.train_on_batch(i)
for a in tf.data.Dataset.from_generator(gen, F):
    model.train_on_batch(a)
for a in unknown:
    model.train_on_batch(a)
names = [p for p in paths]
count = sum(1 for r in tf.compat.v1.io.tf_record_iterator("x"))  # expect: TFD019
for r in tf.python_io.tf_record_iterator("x"):  # expect: TFD019
    example.ParseFromString(r)
"""
    )
    text = HEAD + "for r in records:\n    model.train_on_batch(r)\nn = sum(1 for r in records)\n"
    assert [h.severity for h in hits(text)] == ["warning", "info"]


def test_forked_workers() -> None:
    """True alone."""
    assert_expected(
        HEAD
        + """
model.fit(data, workers=4, use_multiprocessing=True)  # expect: TFD020
model.fit_generator(data, use_multiprocessing=True)  # expect: TFD020
model.fit(data, use_multiprocessing=False)
model.fit(data, use_multiprocessing=flag)
other.fit(data, use_multiprocessing=True)
"""
    )
    assert "model.fit(d, workers=4)" in fixed_by(HEAD + "model.fit(d, workers=4, use_multiprocessing=True)\n", "TFD020")


def test_fixes_of_order() -> None:
    """Batch before an elementwise map; a parse of the batch; an iterator before its loop."""
    scaled = "rows = tf.data.Dataset.from_tensor_slices(x)\nb = rows.map(lambda r: r / 255).batch(32)\n"
    assert "rows.batch(32).map(lambda r: r / 255)" in fixed_by(HEAD + scaled, "TFD002")
    parsed = """
S = {"x": tf.io.FixedLenFeature([16], tf.float32)}

def one(record):
    return tf.io.parse_single_example(record, S)

b = records.map(one).batch(32)
"""
    text = fixed_by(HEAD + parsed, "TFD009")
    assert "records.batch(32).map(one)" in text
    assert "tf.io.parse_example(record, S)" in text
    looped = "b = records.repeat().batch(8)\nfor step in range(100):\n    r = next(iter(b))\n"
    text = fixed_by(HEAD + looped, "TFD016")
    assert "iterator = iter(b)\nfor step in range(100):\n    r = next(iterator)\n" in text

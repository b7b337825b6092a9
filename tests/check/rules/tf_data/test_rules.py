"""Near-misses and variants of the rules of tf.data: expectations stand on the lines."""

from __future__ import annotations

import pytest
from tests.check.checking import assert_expected, codes, hits

HEAD = """
import glob
import numpy as np
import tensorflow as tf

def scale(x, y):
    x = tf.cast(x, tf.float32) / 255.0 - 0.5
    return x, tf.one_hot(tf.cast(y, tf.int32), 10)

FEATURES = {"x": tf.io.FixedLenFeature([16], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}
rows = tf.data.Dataset.from_tensor_slices((np.load("x.npy"), np.load("y.npy")))
"""


def test_elementwise_maps_before_batch() -> None:
    """Casts, scaling, one_hot, with a shuffle or repeat between, through names and functions; the first of several."""
    assert_expected(
        HEAD
        + """
MEAN = np.array([0.4, 0.5, 0.6])
a = rows.map(scale).batch(32)  # expect: TFD002
b = rows.shuffle(100).map(scale, num_parallel_calls=4).repeat().batch(32)  # expect: TFD002
c = (
    rows
    .map(lambda x, y: (x / 255, y))  # expect: TFD002
    .map(lambda x, y: (x - MEAN, y))
    .shuffle(100)
    .batch(32)
)
d = rows.map(lambda x, y: {"image": tf.image.convert_image_dtype(x, tf.float32), "label": y}).batch(8)  # expect: TFD002

def batches(ds, n):
    return ds.batch(n)

e = rows.map(scale)  # expect: TFD002
f = batches(e, 64)
"""
    )


@pytest.mark.parametrize(
    "text",
    [
        "rows.map(lambda x, y: (tf.image.stateless_random_flip_left_right(x, (1, 2)), y)).batch(32)",
        "rows.map(lambda x, y: (tf.reshape(x, [784]), y)).batch(32)",
        "rows.map(lambda x, y: (x * y, y)).batch(32)",
        "rows.map(lambda x, y: (x * tf.one_hot(x, 3), y)).batch(32)",
        "rows.map(lambda x, y: (x, 1)).batch(32)",
        "rows.map(lambda x, y: (x[0], y)).batch(32)",
        "rows.map(lambda x, y: (x - tf.reduce_mean(x), y)).batch(32)",
        "rows.map(lambda x, y: (x @ x, y)).batch(32)",
        "rows.map(lambda x, y: (x - weights, y)).batch(32)",
        "rows.map(lambda x, y: (x / x.shape[0], y)).batch(32)",
        "rows.map(unknown).batch(32)",
        "rows.map(scale).cache().shuffle(10).batch(32)",
        "rows.map(scale).filter(lambda x, y: x > 0).batch(32)",
        "rows.map(scale).padded_batch(32)",
        "rows.map(scale).batch(1)",
        "rows.batch(32).map(scale)",
        "tf.data.Dataset.range(100).map(lambda x: x + 1).batch(8)",
        "tf.data.Dataset.from_tensor_slices([1, 2, 3]).map(lambda x: x + 1).batch(2)",
        "tf.data.TFRecordDataset('x').map(lambda x: tf.strings.lower(x)).batch(32)",
        "rows.map(lambda x, y: (tf.io.decode_png(x), y)).map(scale).batch(32)",
        "unknown().map(scale).batch(32)",
    ],
)
def test_maps_that_must_stay_before_batch(text: str) -> None:
    """Random, shapes, operands of other ranks, constants, a cache or filter between, costly or unknown functions."""
    assert codes(HEAD + text) == []


def test_map_before_batch_needs_every_chain() -> None:
    """One way of several that has no elementwise map before the batch is enough to be silent."""
    text = "ds = rows.map(scale)\nif unknown():\n    ds = rows.map(other)\nds = ds.batch(32)\n"
    assert codes(HEAD + text) == []


def test_parsing_single_examples() -> None:
    """Fixed features, returned as they are or cast; also through a lambda and before a shuffle."""
    assert_expected(
        HEAD
        + """
records = tf.data.TFRecordDataset("x")

def parse(record):
    example = tf.io.parse_single_example(record, FEATURES)
    return tf.cast(example["x"], tf.float16), example["y"]

a = records.map(parse).shuffle(100).batch(32)  # expect: TFD009
b = records.map(lambda r: tf.io.parse_single_example(r, FEATURES)).batch(32)  # expect: TFD009
c = records.map(parse).map(lambda x, y: (x / 2, y)).batch(32)  # expect: TFD009
"""
    )


@pytest.mark.parametrize(
    "text",
    [
        "records.map(lambda r: tf.io.parse_single_example(r, {'x': tf.io.VarLenFeature(tf.int64)})).batch(32)",
        "records.map(lambda r: tf.io.parse_single_example(r, unknown)).batch(32)",
        "records.map(lambda r: tf.io.parse_single_example(r, FEATURES)).padded_batch(32)",
        "records.map(lambda r: tf.io.parse_single_example(r, FEATURES)).filter(keep).batch(32)",
        "records.map(lambda r: tf.io.parse_single_example(r, FEATURES)).cache().batch(32)",
        "records.map(lambda r: tf.io.decode_jpeg(tf.io.parse_single_example(r, FEATURES)['x'])).batch(32)",
        "records.batch(32).map(lambda r: tf.io.parse_example(r, FEATURES))",
        "records.map(lambda r: tf.io.parse_single_example(r, FEATURES))",
    ],
)
def test_parsing_that_is_left_alone(text: str) -> None:
    """Varying lengths, unknown features, decoding, padding, filters and caches; what is parsed as a batch."""
    assert codes(HEAD + "records = tf.data.TFRecordDataset('x')\n" + text) == []


def test_files_one_after_the_other() -> None:
    """Globs, long lists, comprehensions, slices and parameters; flat_map of readers."""
    assert_expected(
        HEAD
        + """
from glob import glob as find
files = sorted(tf.io.gfile.glob("a/*"))
a = tf.data.TFRecordDataset(files)  # expect: TFD005
b = tf.data.TFRecordDataset(find("a/*.tfrecord"), num_parallel_reads=1)  # expect: TFD005
c = tf.data.TFRecordDataset([f"part-{i}" for i in range(16)])  # expect: TFD005
d = tf.data.TextLineDataset(["a", "b", "c", "d"])  # expect: TFD005
e = tf.data.TFRecordDataset(files[4:])  # expect: TFD005
f = tf.data.Dataset.from_tensor_slices(files).flat_map(tf.data.TFRecordDataset)  # expect: TFD005
g = tf.data.Dataset.list_files("a/*").flat_map(lambda p: tf.data.TextLineDataset(p).skip(1))  # expect: TFD005

def read(names):
    return tf.data.TFRecordDataset(names)  # expect: TFD005

h = read(files)
"""
    )


@pytest.mark.parametrize(
    "text",
    [
        "tf.data.TFRecordDataset(glob.glob('a/*'), num_parallel_reads=tf.data.AUTOTUNE)",
        "tf.data.TFRecordDataset(glob.glob('a/*'), None, None, 8)",
        "tf.data.TFRecordDataset(glob.glob('a/*'), **options)",
        "tf.data.TFRecordDataset(glob.glob('a/one.tfrecord'))",
        "tf.data.TFRecordDataset('one')",
        "tf.data.TFRecordDataset(['one', 'two'])",
        "tf.data.TFRecordDataset(unknown)",
        "if tf.__version__ < '1.7':\n    tf.data.TFRecordDataset(glob.glob('a/*'))",
        "tf.data.Dataset.list_files('a/*').interleave(tf.data.TFRecordDataset, num_parallel_calls=4)",
        "rows.flat_map(lambda x, y: tf.data.Dataset.from_tensors(x))",
        "rows.window(5).flat_map(lambda w: w.batch(5))",
    ],
)
def test_readers_that_are_left_alone(text: str) -> None:
    """Parallel, few, unknown, hidden; flat_map of anything else."""
    assert codes(HEAD + text) == []


def test_python_loaders() -> None:
    """Generators, through lambdas, partials, methods and helpers; Sequences; loops with train_on_batch."""
    assert_expected(
        """
        import functools
        import cv2
        import keras
        import numpy as np
        import tensorflow as tf
        from PIL import Image

        def plain(paths):
            while True:
                for path in paths:
                    yield np.array(Image.open(path))  # expect: TFD008

        def load(path):
            return cv2.imread(path)  # expect: TFD008

        def helped(paths):
            for path in paths:
                yield load(path)

        class Data:
            def __init__(self, paths, read=np.load):
                self.paths = paths
                self.read = read

            def generator(self):
                for path in self.paths:
                    yield self.read(path)  # expect: TFD008

            def make(self):
                return tf.data.Dataset.from_generator(self.generator, output_types=tf.float32)

        a = tf.data.Dataset.from_generator(lambda: plain(names), tf.uint8)
        b = tf.data.Dataset.from_generator(functools.partial(helped, names), tf.uint8)

        class Batches(keras.utils.Sequence):
            def __getitem__(self, index):
                return np.stack([cv2.imread(p) for p in self.paths[index]]), 0  # expect: TFD008

        model = keras.Sequential([])
        model.fit(Batches(), epochs=3)

        def train(paths):
            for path in paths:
                x = np.load(path)  # expect: TFD008
                model.train_on_batch(x, x)
        """
    )


@pytest.mark.parametrize(
    "text",
    [
        (
            "def gen():\n    data = np.load('a.npy')\n    for row in data:\n        yield data2[row] * 2 + f(row)\n"
            "tf.data.Dataset.from_generator(gen, tf.float32)"
        ),
        (
            "def gen():\n    for shard in shards:\n        data = np.load(shard)\n"
            "        for row in data:\n            yield g(row)\n"
            "tf.data.Dataset.from_generator(gen, tf.float32)"
        ),
        (
            "def gen():\n    for path in paths:\n        yield path\n"
            "tf.data.Dataset.from_generator(gen, tf.string).map(lambda p: tf.numpy_function(np.load, [p], "
            "tf.float32), 4)"
        ),
        "images = [Image.open(p) for p in paths]",
        "def gen():\n    for path in paths:\n        yield Image.open(path)\nfor image in gen():\n    show(image)",
        (
            "class S(keras.utils.Sequence):\n    def __getitem__(self, i):\n        return cv2.imread(self.p[i])\n"
            "model.fit(S(), workers=4)"
        ),
        (
            "class S(keras.utils.PyDataset):\n    def __getitem__(self, i):\n        return cv2.imread(self.p[i])\n"
            "model.fit(S(workers=4))"
        ),
        ("def gen():\n    for path in paths:\n        yield np.load(path), 0\nmodel.fit_generator(gen(), workers=4)"),
        "for epoch in range(5):\n    x = np.load('a.npy')\n    model.train_on_batch(x, x)",
    ],
)
def test_loaders_that_are_left_alone(text: str) -> None:
    """Loaded once, many elements per file, names only, no training, several workers, a handful of iterations."""
    head = "import cv2, keras\nimport numpy as np\nimport tensorflow as tf\nfrom PIL import Image\n"
    head += "model = keras.Sequential([])\n"
    assert codes(head + text) == []


def test_iterators_per_step() -> None:
    """In for and while loops, through a function, with take(1)."""
    assert_expected(
        HEAD
        + """
batches = rows.shuffle(100).repeat().batch(32)
for step in range(1000):
    x, y = next(iter(batches))  # expect: TFD016
while unknown():
    batch = next(iter(batches.take(1)))  # expect: TFD016
for step in range(100):
    for x, y in batches.take(1):  # expect: TFD016
        train(x)
for step in range(100):
    z = next(batches.as_numpy_iterator())  # expect: TFD016

def one():
    return next(iter(batches))  # expect: TFD016

for step in range(100):
    use(one())
"""
    )


@pytest.mark.parametrize(
    "text",
    [
        "sample = next(iter(batches))",
        "it = iter(batches)\nfor i in range(1000):\n    x = next(it)",
        "for i in range(5):\n    x = next(iter(batches))",
        "for p in paths:\n    ds = tf.data.TFRecordDataset(p)\n    x = next(iter(ds))",
        "for epoch in range(100):\n    x = next(iter(batches))\n    for b in batches:\n        train(b)",
        "for epoch in range(100):\n    x = next(iter(batches))\n    for b in range(n):\n        train(b)",
        "import matplotlib.pyplot as plt\nfor i in range(25):\n    plt.imshow(next(iter(batches))[0])",
        "for epoch in range(100):\n    for x, y in batches:\n        train(x)",
        "for i in range(100):\n    x = next(iter(numbers))",
    ],
)
def test_iterators_that_are_left_alone(text: str) -> None:
    """Once, few times, one dataset per iteration, once an epoch, pictures, no dataset."""
    assert codes(HEAD + "batches = rows.batch(32)\nnumbers = [1, 2]\n" + text) == []


def test_a_method_in_a_chain_is_pointed_at_by_its_name() -> None:
    """Not where the chain begins: two stages of one chain are two places."""
    text = "import tensorflow as tf\nds = (tf.data.TFRecordDataset('x')\n  .map(lambda x: x + tf.random.normal([]))\n"
    found = hits(text + "  .map(lambda x: tf.random.normal([]) - x))")
    assert [(h.span.line, h.span.column) for h in found] == [(3, 4), (4, 4)]


def test_how_loud_a_sequential_map_is() -> None:
    """An info for cheap random work, a model on batches, and stateless work that is no mere cast on old versions."""
    head = HEAD + "model = tf.keras.Sequential([])\n"

    def severities(text: str, version: str = "2.21") -> list[str]:
        return [h.severity for h in hits(head + text, version=version) if h.code == "TFD001"]

    assert severities("rows.map(lambda x, y: (x + tf.random.normal([]), y))") == ["info"]
    assert severities("rows.map(lambda x, y: (g(x) + tf.random.normal([]), y))") == ["info"]
    assert severities("rows.map(lambda x, y: (tf.image.random_flip_up_down(x), y))") == ["warning"]
    assert severities("rows.map(lambda x, y: (tf.io.decode_png(x) + tf.random.uniform([]), y))") == ["warning"]
    assert severities("rows.batch(8).map(lambda x, y: (x + tf.random.normal([]), y))") == ["info"]
    assert severities("rows.batch(8).map(lambda x, y: (tf.image.random_flip_up_down(x), y))") == ["warning"]
    assert severities("rows.batch(8).map(lambda x, y: model(x))") == ["info"]
    assert severities("rows.batch(8).unbatch().batch(4).map(lambda x, y: model(x))") == ["info"]
    assert severities("rows.batch(8).unbatch().map(lambda x, y: model(x))") == ["warning"]
    assert severities("rows.map(lambda x, y: (x / 2, y))", "2.6") == []
    assert severities("rows.map(lambda x, y: (tf.math.exp(x), y))", "2.6") == ["info"]
    assert severities("rows.map(lambda x, y: (tf.io.decode_png(x), y))", "2.6") == ["warning"]
    assert severities("rows.map(lambda x, y: (tf.io.decode_png(x), y))", "2.8") == ["info"]
    assert severities("rows.map(lambda x, y: (tf.io.decode_png(x), y))", "2.12") == []


def test_interleaves_that_are_left_alone() -> None:
    """One input at a time; datasets that exist already."""
    assert (
        codes(HEAD + "d = tf.data.Dataset.list_files('a*').interleave(tf.data.TFRecordDataset, cycle_length=1)") == []
    )
    assert codes(HEAD + "d = tf.data.Dataset.range(99).map(f).interleave(lambda d: d)") == []


def test_files_that_are_zipped_stay_in_order() -> None:
    """Interleaved, the lines of two languages would meet the wrong partners."""
    read = "import tensorflow as tf\na = tf.data.TextLineDataset(tf.io.gfile.glob(p))\n"
    read += "b = tf.data.TextLineDataset(tf.io.gfile.glob(q))\n"
    assert codes(read) == ["TFD005", "TFD005"]
    assert codes(read + "d = tf.data.Dataset.zip((a.map(f), b))") == []
    assert codes(read + "d = tf.data.Dataset.zip((a, other))") == ["TFD005"]
    there = "import tensorflow as tf\ndef pairs(x, y):\n    return tf.data.Dataset.zip((x, y))\n"
    assert codes({"main.py": f"{read}from there import pairs\nd = pairs(a, b)", "there.py": there}) == []


def test_a_path_without_wildcard_is_one_file() -> None:
    """Whatever folder it is joined to."""
    read = "import os\nimport tensorflow as tf\na = tf.data.TFRecordDataset(tf.io.gfile.glob(os.path.join(d, '{}')))"
    assert codes(read.format("train.tfrecord")) == []
    assert codes(read.format("train-*.tfrecord")) == ["TFD005"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("x = tf.expand_dims(2.0 * x - 1.0, -1)", True),
        ("x = tf.expand_dims(x, axis=-1) / 255.0", True),
        ("x = tf.expand_dims(x, 0)", False),
        ("x = tf.expand_dims(x, axis)", False),
        ("x = tf.expand_dims(x, -2)", False),
        ("x = tf.expand_dims(x, -1) * x", False),
    ],
)
def test_a_dimension_behind_is_one_of_a_batch_too(line: str, found: bool) -> None:
    """Before the others, or beside what has none, it would be another one."""
    text = (
        f"{HEAD}axis = glob.glob('*')\ndef widen(x, y):\n    {line}\n    return x, y\nd = rows.map(widen).batch(32)\n"
    )
    assert ("TFD002" in codes(text)) is found

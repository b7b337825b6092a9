"""TFD001 where little is to be gained: trivial functions, single elements, models over batches."""

from tests.check import checking

TRIVIAL = """
import tensorflow as tf

def scale(x, y):
    return 2 * tf.cast(x, tf.float32) - 1, tf.expand_dims(y, -1)

def make(rows, labels):
    return tf.data.Dataset.from_tensor_slices((rows, labels)).map(scale).repeat()
"""
MODEL = """
import keras
import tensorflow as tf

model = keras.Sequential([keras.layers.Embedding(100, 8)])
titles = tf.data.TFRecordDataset("titles")
"""


def test_a_cast_of_a_row_is_no_work_for_a_thread() -> None:
    """A few casts on elements that are not known to be images are left alone, on any version."""
    assert checking.codes(TRIVIAL, version="1.14") == []
    assert checking.codes(TRIVIAL, version="2.5") == []


def test_work_beside_the_cast_is_reported() -> None:
    """The same function with a decode in it is reported where maps are sequential."""
    decoding = TRIVIAL.replace("tf.cast(x, tf.float32)", "tf.cast(tf.io.decode_jpeg(x), tf.float32)")
    assert checking.codes(decoding, version="2.5") == ["TFD001"]


def test_work_that_is_not_known_is_an_info() -> None:
    """Before 2.7 a function that calls what is not known may be cheap: an info, unless it is known to decode as well."""
    unknown = TRIVIAL.replace("tf.cast(x, tf.float32)", "helper.convert(x)")
    assert [(hit.code, hit.severity) for hit in checking.hits(unknown, version="2.5")] == [("TFD001", "info")]
    both = TRIVIAL.replace("tf.cast(x, tf.float32)", "helper.convert(tf.io.decode_jpeg(x))")
    assert [(hit.code, hit.severity) for hit in checking.hits(both, version="2.5")] == [("TFD001", "warning")]
    random = TRIVIAL.replace("tf.cast(x, tf.float32)", "helper.convert(tf.random.uniform([]) + x)")
    assert [(hit.code, hit.severity) for hit in checking.hits(random, version="2.5")] == [("TFD001", "info")]


def test_images_are_worth_a_thread() -> None:
    """The same function on a dataset that is known to hold images is reported."""
    images = """
    import tensorflow as tf

    def scale(x, y):
        return tf.cast(x, tf.float32) / 255.0, tf.cast(y, tf.int32)

    (x, y), _ = tf.keras.datasets.cifar100.load_data()
    data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1000).map(scale).repeat()
    """
    assert checking.codes(images, version="2.5") == ["TFD001"]


def test_one_element_is_left_alone() -> None:
    """A dataset of one tensor has one call to run, unless it is repeated."""
    one = """
    import tensorflow as tf

    def read(_):
        return tf.random.uniform([8])

    data = tf.data.Dataset.from_tensors([1]).map(read)
    """
    assert checking.codes(one, version="1.15") == []
    noise = checking.hits(one.replace(".map", ".repeat().map"), version="1.15")
    assert [(hit.code, hit.severity) for hit in noise] == [("TFD001", "info")]


def test_a_model_over_batches_is_info() -> None:
    """A map that is stateful only because it reads a model's variables, over batches, is told as info."""
    batched = checking.hits(MODEL + "vectors = titles.batch(4096).map(lambda t: model(t))\n")
    single = checking.hits(MODEL + "vectors = titles.map(lambda t: model(t))\n")
    assert [(h.code, h.severity) for h in batched] == [("TFD001", "info")]
    assert ("TFD001", "warning") in [(h.code, h.severity) for h in single]

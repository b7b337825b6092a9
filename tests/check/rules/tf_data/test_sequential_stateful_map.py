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


def test_layers_that_are_added_later() -> None:
    """A ``Sequential`` to which layers are added is more than its list says."""
    text = PREPROCESS.replace("LAYERS", "tf.keras.layers.Rescaling(0.1)")
    assert "TFD001" not in checking.codes(text)
    assert "TFD001" in checking.codes(text.replace("data =", "preprocess.add(tf.keras.layers.RandomFlip())\ndata ="))
    assert "TFD001" not in checking.codes(text.replace("data =", "found.add(1)\ndata ="))


PREPROCESS = """
import tensorflow as tf

preprocess = tf.keras.Sequential([LAYERS])
data = tf.data.TFRecordDataset("images").map(lambda x: preprocess(x)).batch(32)
"""


def test_a_model_without_weights_has_no_state() -> None:
    """Resizing and rescaling hold no variable: tf.data runs the map in parallel; a layer with weights is reported."""
    layers = (
        "tf.keras.layers.Resizing(224, 224), tf.keras.layers.Lambda(tf.keras.applications.xception.preprocess_input)"
    )
    assert "TFD001" not in checking.codes(PREPROCESS.replace("LAYERS", layers))
    assert "TFD001" not in checking.codes(PREPROCESS.replace("LAYERS", "tf.keras.layers.Lambda(lambda x: x / 255)"))
    assert "TFD001" in checking.codes(
        PREPROCESS.replace("LAYERS", "tf.keras.layers.Lambda(tf.image.random_flip_up_down)")
    )
    assert "TFD001" in checking.codes(PREPROCESS.replace("LAYERS", f"{layers}, tf.keras.layers.Dense(8)"))


SHARED = """
import tensorflow as tf

def fetch(i):
    return tf.py_function(lambda j: video[int(j)], [i], tf.uint8)

data = tf.data.Dataset.range(n)
COMMENT
frames = data.map(fetch)
"""


def test_shared_objects_get_no_fix() -> None:
    """What Python reads besides its arguments may bear one caller at a time; a function of its arguments gets the fix."""
    found = [hit for hit in checking.hits(SHARED.replace("COMMENT", "")) if hit.code == "TFD001"]
    assert [hit.fix for hit in found] == [None]
    alone = SHARED.replace("video[int(j)]", "int(j) + 1").replace("COMMENT", "")
    assert [hit.fix is not None for hit in checking.hits(alone) if hit.code == "TFD001"] == [True]


def test_objects_of_the_program_have_no_op() -> None:
    """TFD007 says that TensorFlow has ops for it only of functions of their arguments."""
    assert "TFD007" not in checking.codes(SHARED.replace("COMMENT", ""))
    assert "TFD007" in checking.codes(SHARED.replace("video[int(j)]", "int(j) + 1").replace("COMMENT", ""))


def test_a_comment_says_why() -> None:
    """What an author keeps sequential for a reason is not reported; another comment does not count."""
    said = SHARED.replace("COMMENT", "# Note: We don't parallelize here for thread safety.")
    assert "TFD001" not in checking.codes(said)
    assert "TFD001" in checking.codes(SHARED.replace("COMMENT", "# frames of the video"))


def test_what_a_fix_changes_is_said_in_its_own_words() -> None:
    """A safe fix says nothing about random ops; an unsafe one names what changes."""
    table = """
    import tensorflow as tf

    table = tf.lookup.StaticHashTable(init, -1)
    ids = tf.data.TextLineDataset("words").map(lambda w: table.lookup(w))
    """
    (hit,) = [hit for hit in checking.hits(table) if hit.code == "TFD001"]
    assert hit.fix is not None
    assert (hit.fix.safety, hit.fix.behaviour) == ("safe", "Elements keep their order.")
    random = table.replace("table.lookup(w)", "tf.image.random_flip_up_down(w)")
    (hit,) = [hit for hit in checking.hits(random) if hit.code == "TFD001"]
    assert hit.fix is not None
    assert (hit.fix.safety, "random" in hit.fix.behaviour) == ("unsafe", True)

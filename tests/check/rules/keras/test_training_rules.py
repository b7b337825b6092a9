"""Variants and near-misses of the rules about Keras models and their training: expectations stand on the lines."""

from __future__ import annotations

from tests.check.checking import assert_expected, codes, hits

HEAD = """
import numpy as np
import tensorflow as tf
from tensorflow import keras

model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])
x, y = np.zeros((640, 4)), np.zeros(640)
"""


CALLBACK = """
import matplotlib.pyplot as plt
import tensorflow as tf
from tensorflow.keras.callbacks import Callback, LambdaCallback, ModelCheckpoint, TensorBoard

class Base(Callback):
    def __init__(self, x, every=10):
        super().__init__()
        self.x, self.every, self.often = x, every, 500
"""


def test_callbacks_that_work_after_each_batch() -> None:
    """Directly, through their own methods, every ten batches, in lambdas; not once an epoch, rarely or when told."""
    assert_expected(
        CALLBACK
        + """
class Score(Base):
    def on_train_batch_end(self, batch, logs=None):
        self.draw()  # expect: KER008

    def draw(self):
        plt.savefig("now.png")

class Save(Base):
    def on_batch_end(self, batch, logs=None):
        if batch % self.every == 0:
            self.model.save_weights("now.h5")  # expect: KER008

class Rare(Base):
    def on_batch_end(self, batch, logs=None):
        if batch % self.often:
            return
        self.model.save_weights("now.h5")

class Once(Base):
    def on_batch_end(self, batch, logs=None):
        if batch == 0:
            self.model.predict(self.x)

class Cheap(Base):
    def on_batch_end(self, batch, logs=None):
        self.losses.append(logs["loss"])
        self.writer.save()

class Epoch(Base):
    def on_epoch_end(self, epoch, logs=None):
        self.model.predict(self.x)

class NoCallback:
    def on_batch_end(self, batch, logs=None):
        self.model.predict(batch)

model = tf.keras.Sequential()
LambdaCallback(on_batch_end=lambda batch, logs: model.save("now.keras"))  # expect: KER008
LambdaCallback(on_epoch_end=lambda epoch, logs: model.save("now.keras"))
ModelCheckpoint("a", save_freq=5)  # expect: KER008
ModelCheckpoint("a", save_freq="epoch")
TensorBoard("logs", update_freq="batch")  # expect: KER008
TensorBoard("logs")
""",
        only="KER008",
    )


def test_how_often_is_told_by_the_caller() -> None:
    """The n of ``batch % self.every`` is what the class is made with."""
    hook = "\nclass Save(Base):\n    def on_batch_end(self, batch, logs=None):\n"
    body = "        if batch % self.every == self.every - 1:\n            self.model.save_weights('now.h5')\n"
    assert codes(f"{CALLBACK}{hook}{body}Save(0, every=5)\n") == ["KER008"]
    assert codes(f"{CALLBACK}{hook}{body}Save(0, every=1000)\n") == []
    assert codes(f"{CALLBACK}{hook}{body}Save(0, every=arguments.every)\n") == []


def test_shapes_of_the_three_styles() -> None:
    """Sequential with a list, with add, and the functional style; windows, strides, padding and names of numbers."""
    assert_expected(
        """
        from tensorflow import keras
        from tensorflow.keras.layers import Conv2D, Dense, Dropout, Flatten, Input, MaxPooling2D

        SIDE = 400

        a = keras.Sequential([
            Conv2D(32, (3, 3), input_shape=(SIDE, SIDE, 3)),
            MaxPooling2D((2, 2)),
            Flatten(),
            Dropout(0.5),
            Dense(256),  # expect: KER009
        ])

        b = keras.models.Sequential()
        b.add(Conv2D(64, 3, padding="same", input_shape=(SIDE, SIDE, 3)))
        b.add(Flatten())
        b.add(Dense(64))  # expect: KER009
        b.add(Dense(4096))

        inputs = Input(shape=(SIDE, SIDE, 1))
        h = Conv2D(16, 5, strides=(2, 2), padding="same")(inputs)
        h = Flatten()(h)
        out = Dense(1024)(h)  # expect: KER009

        small = keras.Sequential([Input((28, 28, 1)), Conv2D(32, 3), Flatten(), Dense(512)])
        unknown = keras.Sequential([Input(shape), Flatten(), Dense(100000)])
        per_pixel = keras.Sequential([Input((SIDE, SIDE, 3)), Dense(100000)])
        """,
        only="KER009",
    )


def test_weights_are_counted() -> None:
    """The message tells features and weights; from 200 million on it is a warning, below info."""
    model = "import keras\nkeras.Sequential([keras.Input(({}, 100)), keras.layers.Flatten(), keras.layers.Dense(1000)])"
    (large,) = hits(model.format(3000))
    (small,) = hits(model.format(700))
    assert (large.severity, small.severity) == ("warning", "info")
    assert "300,000 flattened features (3000 x 100) has 300 million weights: 4.8 GB" in large.message
    assert codes(model.format(100)) == []


def test_steps_that_count_samples() -> None:
    """Lengths and shapes of what the input is made of; not of generators, divided, or with batches of one."""
    assert_expected(
        HEAD
        + """
gen = keras.preprocessing.image.ImageDataGenerator()
train = gen.flow(x, y, batch_size=16)
ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(100).repeat().batch(32)
steps = len(x)
once = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
model.fit(train, steps_per_epoch=len(x))  # expect: KER011
model.fit(once, steps_per_epoch=len(x))
model.fit_generator(gen.flow(x, y), steps_per_epoch=x.shape[0], epochs=3)  # expect: KER011
model.fit(ds, steps_per_epoch=steps)  # expect: KER011
model.fit(ds, steps_per_epoch=len(x) // 32)
model.fit(train, steps_per_epoch=len(train))
model.fit(gen.flow(x, y, batch_size=1), steps_per_epoch=len(x))
model.fit(gen.flow_from_directory("d"), steps_per_epoch=len(names))
model.fit(ds, steps_per_epoch=len(other))
""",
        version="2.12",
        only="KER011",
    )


def test_steps_of_a_generator_that_count_samples() -> None:
    """Generators that never end, with batches whose size is in the source; not those that end, nor single rows."""
    assert_expected(
        HEAD
        + """
import numpy as np

SIZE = 16

def drawn(data, labels):
    while True:
        rows = np.random.randint(0, len(data), SIZE)
        yield data[rows], labels[rows]

def in_turn(data, labels, size=8):
    at = 0
    while True:
        part = data[at : at + size].astype("float32")
        yield {"a": part}, labels[at : at + size]
        at = (at + size) % len(data)

def stacked():
    while True:
        yield np.stack([x[np.random.randint(len(x))] for _ in range(SIZE)]), np.zeros(SIZE)

def ending(data, labels):
    for at in range(0, len(data), SIZE):
        yield data[at : at + SIZE], labels[at : at + SIZE]

def stopping(data, labels):
    while True:
        yield data[:SIZE], labels[:SIZE]
        if len(data) < 3:
            break

def single(data, labels):
    while True:
        i = np.random.randint(len(data))
        yield data[i : i + 1], labels[i : i + 1]

def row(data):
    while True:
        yield data[0]

model.fit(drawn(x, y), steps_per_epoch=len(x))  # expect: KER011
model.fit(in_turn(x, y), steps_per_epoch=x.shape[0])  # expect: KER011
model.fit(in_turn(x, y, size=1), steps_per_epoch=len(x))
model.fit(stacked(), steps_per_epoch=len(x))  # expect: KER011
model.fit(x, y, validation_data=drawn(xv, yv), validation_steps=len(xv))  # expect: KER011
fed = drawn(x, y)
model.fit(fed, steps_per_epoch=len(x))  # expect: KER011
model.fit(drawn(x, y), steps_per_epoch=len(x) // SIZE)
model.fit(drawn(xv, yv), steps_per_epoch=len(other))
model.fit(ending(x, y), steps_per_epoch=len(x))
model.fit(stopping(x, y), steps_per_epoch=len(x))
model.fit(single(x, y), steps_per_epoch=len(x))
rows = tf.data.Dataset.from_generator(lambda: row(x), tf.float32)
model.fit(rows.batch(32), steps_per_epoch=len(x))  # expect: KER011
model.fit(rows.batch(1), steps_per_epoch=len(x))
whole = tf.data.Dataset.from_generator(lambda: ending(x, y), (tf.float32, tf.float32))
model.fit(whole, steps_per_epoch=len(x))
model.fit(whole.repeat(), steps_per_epoch=len(x))  # expect: KER011
""",
        only="KER011",
    )


def test_flows_end_in_keras_3() -> None:
    """There an epoch ends with the data; and in TensorFlow 1 an array with steps is one batch each."""
    gen = "keras.preprocessing.image.ImageDataGenerator().flow(x, y, batch_size=16)"
    text = f"{HEAD}model.fit({gen}, steps_per_epoch=len(x))\n"
    assert codes(text, version="2.12") == ["KER011"]
    assert codes(text) == []
    assert codes(f"{HEAD}model.fit(x, y, steps_per_epoch=20)\n", version="1.12") == ["KER011"]
    assert codes(f"{HEAD}model.fit(x, y, steps_per_epoch=20)\n") == []


def test_data_that_are_not_in_batches() -> None:
    """One tensor, one batch, or rows one by one; not arrays, batches, or what is not known."""
    assert_expected(
        HEAD
        + """
slices = tf.data.Dataset.from_tensor_slices((x, y))
model.fit(tf.Variable(x), y)  # expect: KER012
model.fit(tf.data.Dataset.from_tensors((x, y)).repeat(3))  # expect: KER012
model.fit(slices.shuffle(100))  # expect: KER012
model.fit(x, y, batch_size=len(x))  # expect: KER012
model.fit(x, y)
model.fit(slices.shuffle(100).batch(32))
model.fit(slices.map(group))
model.fit(slices.apply(group))
model.fit(tf.data.Dataset.from_generator(rows, tf.float32))
model.fit(x, y, batch_size=len(gpus))
""",
        only="KER012",
    )


def test_recurrent_layers_that_lose_the_kernel() -> None:
    """Arguments that cuDNN does not compute; defaults written out, other layers and TensorFlow 1 are left alone."""
    text = """
from tensorflow.keras.layers import GRU, LSTM, Dense

LSTM(64, activation="relu")  # expect: KER010
LSTM(64, "relu", return_sequences=True)  # expect: KER010
LSTM(64, recurrent_dropout=0.2)  # expect: KER010
GRU(64, reset_after=False)  # expect: KER010
GRU(64, unroll=True)  # expect: KER010
LSTM(64, activation="tanh", recurrent_dropout=0.0, dropout=0.3)
LSTM(64, activation=chosen)
Dense(64, activation="relu")
"""
    assert_expected(text)
    assert codes(text, version="1.15") == []
    assert codes("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '-1'\n" + text) == []


def test_one_batch_of_what_is_no_array_is_an_info() -> None:
    """A graph is learnt as a whole: it has no rows to cut."""
    text = HEAD + "model.fit(tf.data.Dataset.from_tensors({data}).repeat())\n"
    assert [h.severity for h in hits(text.format(data="(x, y)"))] == ["warning"]
    assert [h.severity for h in hits(text.format(data="loader.collate(graph)"))] == ["info"]

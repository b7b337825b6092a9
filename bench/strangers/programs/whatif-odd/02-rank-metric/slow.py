"""Wine price regression with Spearman's rank correlation as the headline metric, on a small dense network."""
import json
import time

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

BOTTLES = 24000
BATCH = 64
EPOCHS = 10
RESERVOIR = 24000


def make_bottles(seed=14):
    rng = np.random.default_rng(seed)
    region = rng.integers(0, 40, BOTTLES).astype("int32")
    vintage = rng.normal(0, 1, (BOTTLES, 1)).astype("float32")
    notes = rng.random((BOTTLES, 64)).astype("float32")
    worth = rng.normal(0, 1, 40)[region] + notes[:, :10].sum(1) - 0.5 * vintage[:, 0] ** 2
    price = worth + rng.normal(0, 0.5, BOTTLES)
    return {"region": region, "vintage": vintage, "notes": notes}, ((price - price.mean()) / price.std()).astype("float32")


def ranks(values):
    order = tf.argsort(values)
    return tf.cast(tf.argsort(order), tf.float32)


def correlation(a, b):
    a = a - tf.reduce_mean(a)
    b = b - tf.reduce_mean(b)
    return tf.reduce_sum(a * b) / (tf.norm(a) * tf.norm(b) + 1e-9)


class SpearmanRank(keras.metrics.Metric):
    """Rank correlation of the predictions seen since the last reset."""

    def __init__(self, size, name="spearman", **kwargs):
        super().__init__(name=name, **kwargs)
        self.size = size
        self.truth = self.add_variable((size,), "zeros", name="truth")
        self.guess = self.add_variable((size,), "zeros", name="guess")
        self.seen = self.add_variable((), "zeros", dtype="int32", name="seen")
        self.value = self.add_variable((), "zeros", name="value")

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true = tf.reshape(tf.cast(y_true, tf.float32), [-1])
        y_pred = tf.reshape(tf.cast(y_pred, tf.float32), [-1])
        n = tf.shape(y_true)[0]
        at = (self.seen.value + tf.range(n)) % self.size
        self.truth.value.scatter_update(tf.IndexedSlices(y_true, at))
        self.guess.value.scatter_update(tf.IndexedSlices(y_pred, at))
        self.seen.assign_add(n)
        used = tf.minimum(self.seen.value, self.size)
        self.value.assign(correlation(ranks(self.truth.value[:used]), ranks(self.guess.value[:used])))

    def result(self):
        return ops.convert_to_tensor(self.value)


def build_model():
    region = keras.Input((), dtype="int32", name="region")
    vintage = keras.Input((1,), name="vintage")
    notes = keras.Input((64,), name="notes")
    x = layers.Concatenate()([layers.Embedding(40, 8)(region), vintage, notes])
    for width in (256, 256, 128):
        x = layers.Dense(width, activation="relu")(x)
        x = layers.LayerNormalization()(x)
    return keras.Model([region, vintage, notes], layers.Dense(1)(x))


class Timer(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.t = []

    def on_epoch_begin(self, epoch, logs=None):
        self.t.append(time.perf_counter())

    def on_train_end(self, logs=None):
        self.t.append(time.perf_counter())


def main():
    keras.utils.set_random_seed(15)
    x, y = make_bottles()
    model = build_model()
    model.compile(keras.optimizers.Adam(1e-3), "mse", metrics=["mae", SpearmanRank(RESERVOIR)])
    timer = Timer()
    hist = model.fit(x, y, batch_size=BATCH, epochs=EPOCHS, callbacks=[timer], verbose=0)
    print("spearman by epoch", [round(float(v), 3) for v in hist.history["spearman"]])
    seconds = timer.t[-1] - timer.t[1]
    print(json.dumps({"samples": (EPOCHS - 1) * BOTTLES, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()

"""Click-through model for a shop's listing page: daily retraining job."""
import json
import os
import sys
import time

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf
import keras

ROWS = 480_000
FEATURES = 40
BATCH = 4096
EPOCHS = 12


def simulate_day(rng, rows):
    """Make numeric features, clicks and per-row weights of one day."""
    features = rng.standard_normal((rows, FEATURES), dtype=np.float32)
    features[:, ::5] = np.abs(features[:, ::5])
    slopes = rng.normal(0.0, 0.35, size=FEATURES).astype(np.float32)
    logit = features @ slopes - 0.8
    clicked = (rng.random(rows) < 1.0 / (1.0 + np.exp(-logit))).astype(np.float32)
    weight = np.where(clicked > 0, 1.5, 1.0).astype(np.float32)
    return features, clicked[:, None], weight[:, None]


def standardise(train, held):
    mean = train.mean(axis=0, keepdims=True)
    spread = train.std(axis=0, keepdims=True) + 1e-6
    return (train - mean) / spread, (held - mean) / spread


def split(features, clicked, weight, share=0.96):
    cut = int(len(features) * share)
    first = (features[:cut], clicked[:cut], weight[:cut])
    second = (features[cut:], clicked[cut:], weight[cut:])
    return first, second


def training_feed(features, clicked, weight, batch_size, seed):
    """Endless stream of shuffled batches, one pass after another."""
    rows = len(features)
    feed = tf.data.Dataset.from_tensor_slices((features, clicked, weight))
    feed = feed.shuffle(min(rows, 65_536), seed=seed, reshuffle_each_iteration=True)
    feed = feed.batch(batch_size, drop_remainder=True)
    return feed.repeat().prefetch(tf.data.AUTOTUNE)


def held_out_feed(features, clicked, weight, batch_size):
    whole = len(features) // batch_size * batch_size
    parts = (
        features[:whole].reshape(-1, batch_size, FEATURES),
        clicked[:whole].reshape(-1, batch_size, 1),
        weight[:whole].reshape(-1, batch_size, 1),
    )
    return tf.data.Dataset.from_tensor_slices(parts).prefetch(1)


def build_model():
    inputs = keras.Input((FEATURES,))
    hidden = keras.layers.Dense(64, activation="relu")(inputs)
    hidden = keras.layers.Dropout(0.1)(hidden)
    hidden = keras.layers.Dense(32, activation="relu")(hidden)
    outputs = keras.layers.Dense(1, activation="sigmoid")(hidden)
    model = keras.Model(inputs, outputs)
    model.compile(
        optimizer=keras.optimizers.Adam(2e-3),
        loss="binary_crossentropy",
        weighted_metrics=[keras.metrics.BinaryAccuracy(name="acc")],
        jit_compile=False,
    )
    return model


class Clock(keras.callbacks.Callback):
    """Counts steps after the first few and keeps a short loss history."""

    def __init__(self, skip):
        super().__init__()
        self.skip = skip
        self.seen = 0
        self.started = None
        self.finished = None
        self.history = []

    def on_train_batch_end(self, batch, logs=None):
        self.seen += 1
        if self.seen == self.skip:
            self.started = time.perf_counter()
        self.finished = time.perf_counter()
        if self.seen % 50 == 0 and logs:
            self.history.append(float(logs["loss"]))

    def result(self):
        return self.seen - self.skip, self.finished - self.started


def main():
    begin = time.perf_counter()
    keras.utils.set_random_seed(11)
    tf.config.threading.set_intra_op_parallelism_threads(2)
    rng = np.random.default_rng(11)

    features, clicked, weight = simulate_day(rng, ROWS)
    (train_x, train_y, train_w), (held_x, held_y, held_w) = split(features, clicked, weight)
    train_x, held_x = standardise(train_x, held_x)

    feed = training_feed(train_x, train_y, train_w, BATCH, seed=11)
    checks = held_out_feed(held_x, held_y, held_w, BATCH)
    steps = len(train_x) // BATCH

    model = build_model()
    clock = Clock(skip=10)
    history = model.fit(
        feed,
        epochs=EPOCHS,
        steps_per_epoch=steps,
        shuffle=False,
        callbacks=[clock, keras.callbacks.TerminateOnNaN()],
        verbose=0,
    )
    held = model.evaluate(checks, verbose=0, return_dict=True)

    for index, loss in enumerate(history.history["loss"]):
        print(f"pass {index + 1}: loss {loss:.4f}", file=sys.stderr)
    print(f"held out: loss {held['loss']:.4f}  acc {held['acc']:.4f}", file=sys.stderr)

    units, seconds = clock.result()
    wall = time.perf_counter() - begin
    print(json.dumps({"units": units, "seconds": round(seconds, 3), "wall": round(wall, 3)}))


if __name__ == "__main__":
    main()

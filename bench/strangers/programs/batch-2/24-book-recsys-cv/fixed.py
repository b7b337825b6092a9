"""Cross-validated choice of learning rate and rank for a book recommender (neural matrix factorisation)."""
import itertools
import json
import time

import numpy as np
import tensorflow as tf
from tensorflow import keras

N_READERS = 24_000
N_BOOKS = 15_000
N_RATINGS = 36_000
N_FOLDS = 3
BATCH = 512
EPOCHS = 5
GRID = {"lr": [0.05, 0.1], "rank": [32]}
WEIGHT_DECAY = 1e-5


def synth_ratings(seed=17):
    """Long-tailed popularity, latent tastes, ratings from 0 to 1."""
    rng = np.random.default_rng(seed)
    reader = rng.integers(0, N_READERS, N_RATINGS).astype(np.int32)
    book = np.minimum(rng.zipf(1.25, N_RATINGS) - 1, N_BOOKS * 50) % N_BOOKS
    taste = rng.normal(size=(N_READERS, 4)).astype(np.float32)
    theme = rng.normal(size=(N_BOOKS, 4)).astype(np.float32)
    score = (taste[reader] * theme[book]).sum(axis=1) + rng.normal(0, 0.3, N_RATINGS)
    side = np.stack([rng.random(N_RATINGS), rng.random(N_RATINGS) > 0.6, np.tanh(score) * 0.1], axis=1)
    return {"reader": reader, "book": book.astype(np.int32), "side": side.astype(np.float32)}, \
        (1.0 / (1.0 + np.exp(-score))).astype(np.float32)


class BatchPenalty(keras.layers.Layer):
    """L2 penalty on the factors of the ratings at hand."""

    def call(self, factors):
        rows = tf.cast(tf.shape(factors)[0], tf.float32)
        self.add_loss(WEIGHT_DECAY * tf.reduce_sum(tf.square(factors)) / rows)
        return factors


def latent(name, rows, rank, ids):
    table = keras.layers.Embedding(
        rows, rank, name=name,
        embeddings_initializer=keras.initializers.RandomNormal(stddev=0.05, seed=rows))
    return BatchPenalty()(table(ids))


def build_model(lr, rank):
    reader = keras.Input((), dtype="int32", name="reader")
    book = keras.Input((), dtype="int32", name="book")
    side = keras.Input((3,), name="side")
    r = latent("reader_factors", N_READERS, rank, reader)
    b = latent("book_factors", N_BOOKS, rank, book)
    dot = keras.layers.Dot(axes=1)([r, b])
    x = keras.layers.Concatenate()([r, b, side])
    for width in (128, 64):
        x = keras.layers.Dense(width, activation="relu")(x)
    x = keras.layers.Concatenate()([x, dot])
    out = keras.layers.Dense(1, activation="sigmoid", name="rating")(x)
    model = keras.Model({"reader": reader, "book": book, "side": side}, out)
    model.compile(optimizer=keras.optimizers.Adagrad(lr),
                  loss="mse", metrics=[keras.metrics.MeanAbsoluteError(name="mae")])
    return model


def take(features, labels, rows):
    return {k: v[rows] for k, v in features.items()}, labels[rows]


def folds(n, k, seed=2):
    order = np.random.default_rng(seed).permutation(n)
    parts = np.array_split(order, k)
    for i in range(k):
        yield np.concatenate(parts[:i] + parts[i + 1:]), parts[i]


class SteadyClock(keras.callbacks.Callback):
    """Times a fit from the second epoch on, validation included."""

    def __init__(self):
        super().__init__()
        self.seconds, self.samples, self.began = 0.0, 0, None

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            self.began = time.perf_counter()

    def on_train_end(self, logs=None):
        self.seconds += time.perf_counter() - self.began


def run_fold(params, features, labels, train_rows, valid_rows, clock):
    keras.backend.clear_session()
    keras.utils.set_random_seed(7)
    model = build_model(**params)
    inputs, targets = take(features, labels, train_rows)
    hist = model.fit(inputs, targets, batch_size=BATCH, epochs=EPOCHS, verbose=0,
                     validation_data=take(features, labels, valid_rows), callbacks=[clock])
    clock.samples += (EPOCHS - 1) * len(targets)
    return min(hist.history["val_mae"])


def cross_validate(params, features, labels, clock):
    scores = [run_fold(params, features, labels, tr, va, clock)
              for tr, va in folds(len(labels), N_FOLDS)]
    return float(np.mean(scores)), float(np.std(scores))


def search(features, labels, clock):
    results = []
    for values in itertools.product(*GRID.values()):
        params = dict(zip(GRID, values))
        mean, std = cross_validate(params, features, labels, clock)
        print(f"{params} val_mae {mean:.4f} +- {std:.4f}", flush=True)
        results.append((mean, params))
    return min(results, key=lambda r: r[0])


def main():
    features, labels = synth_ratings()
    clock = SteadyClock()
    best, params = search(features, labels, clock)
    print("best", params, "val_mae", round(best, 4))
    print(json.dumps({"samples": clock.samples, "seconds": round(clock.seconds, 4)}))


if __name__ == "__main__":
    main()

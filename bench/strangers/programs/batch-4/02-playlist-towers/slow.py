"""Next-track model for a music service: session tower against an item table, sampled softmax in the batch."""
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf
from tensorflow import keras

N_TRACKS = 60_000
DIM = 64
HISTORY = 20
BATCH = 512
WARMUP = 5
STEPS = 60


class TrackTable(keras.layers.Layer):
    """Unit-length track vectors, shared by the history and by the target side."""

    def __init__(self, n_tracks, dim, **kw):
        super().__init__(**kw)
        self.n_tracks = n_tracks
        self.dim = dim

    def build(self, _):
        self.table = self.add_weight(name="table", shape=(self.n_tracks, self.dim),
                                     initializer=keras.initializers.RandomNormal(stddev=0.05, seed=2))

    def call(self, ids):
        vectors = tf.math.l2_normalize(self.table, axis=-1)
        return tf.nn.embedding_lookup(vectors, ids)


class SessionEncoder(keras.layers.Layer):
    def __init__(self, dim, **kw):
        super().__init__(**kw)
        init = lambda s: keras.initializers.GlorotUniform(seed=s)
        self.score = keras.layers.Dense(1, kernel_initializer=init(3))
        self.hidden = keras.layers.Dense(512, activation="relu", kernel_initializer=init(4))
        self.hidden2 = keras.layers.Dense(256, activation="relu", kernel_initializer=init(6))
        self.out = keras.layers.Dense(dim, kernel_initializer=init(5))

    def call(self, seq):
        w = tf.nn.softmax(self.score(seq), axis=1)
        pooled = tf.reduce_sum(w * seq, axis=1)
        flat = tf.reshape(seq, [-1, HISTORY * DIM])
        h = self.hidden2(self.hidden(tf.concat([pooled, flat], axis=1)))
        return tf.math.l2_normalize(self.out(h), axis=-1)


class InBatchSoftmax(keras.layers.Layer):
    def __init__(self, temperature=0.07, **kw):
        super().__init__(**kw)
        self.temperature = temperature

    def call(self, inputs):
        user, item = inputs
        return tf.matmul(user, item, transpose_b=True) / self.temperature


def build_model():
    history = keras.Input((HISTORY,), dtype="int32", name="history")
    target = keras.Input((), dtype="int32", name="target")
    tracks = TrackTable(N_TRACKS, DIM, name="tracks")
    user = SessionEncoder(DIM, name="session")(tracks(history))
    item = tracks(target)
    logits = InBatchSoftmax(name="logits")([user, item])
    model = keras.Model([history, target], logits)
    model.compile(optimizer=keras.optimizers.Adagrad(0.05),
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def synth_sessions(n, rng):
    genre = rng.integers(0, 120, size=n)
    block = N_TRACKS // 120
    history = genre[:, None] * block + (rng.random((n, HISTORY)) ** 2 * block).astype(np.int64)
    target = genre * block + (rng.random(n) ** 2 * block).astype(np.int64)
    noise = rng.random((n, HISTORY)) < 0.1
    history[noise] = rng.integers(0, N_TRACKS, size=int(noise.sum()))
    return history.astype(np.int32), target.astype(np.int32)


def batches(history, target, steps, rng):
    n = len(target)
    for _ in range(steps):
        pick = rng.integers(0, n, size=BATCH)
        yield {"history": history[pick], "target": target[pick]}


def train(model, feed, labels):
    losses = []
    for x in feed:
        losses.append(model.train_on_batch(x, labels))
    return losses


def main():
    rng = np.random.default_rng(17)
    history, target = synth_sessions(60_000, rng)
    labels = np.arange(BATCH, dtype=np.int32)
    model = build_model()
    train(model, batches(history, target, WARMUP, rng), labels)
    start = time.perf_counter()
    losses = train(model, batches(history, target, STEPS, rng), labels)
    seconds = time.perf_counter() - start
    print("loss first %.5f last %.5f" % (losses[0], losses[-1]))
    print(json.dumps({"samples": STEPS * BATCH, "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()

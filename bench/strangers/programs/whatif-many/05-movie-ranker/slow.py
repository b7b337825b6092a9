"""Movie ranker: two-tower retrieval with in-batch negatives, trained from the click log."""
import json
import tempfile
import time

import keras
import numpy as np
import tensorflow as tf

CONFIG = {
    "users": 6000,
    "movies": 2500,
    "dim": 48,
    "tower": [96, 48],
    "batch": 128,
    "steps": 200,
    "warmup": 20,
    "lr": 0.02,
    "summary_every": 1,
    "histograms": True,
    "flush_millis": 1,
    "max_queue": 1,
    "check_numerics": True,
}


def make_clicks(cfg, n=120000, seed=4):
    rng = np.random.default_rng(seed)
    taste = rng.integers(0, 20, cfg["users"])
    genre = rng.integers(0, 20, cfg["movies"])
    by_genre = [np.flatnonzero(genre == g) for g in range(20)]
    users = rng.integers(0, cfg["users"], n)
    movies = np.empty(n, "int64")
    for i, u in enumerate(users):
        pool = by_genre[taste[u]]
        movies[i] = pool[rng.integers(0, len(pool))] if rng.random() < 0.8 else rng.integers(0, cfg["movies"])
    return users.astype("int32"), movies.astype("int32")


def make_dataset(cfg, users, movies):
    ds = tf.data.Dataset.from_tensor_slices((users, movies))
    ds = ds.shuffle(20000, seed=2).repeat().batch(cfg["batch"], drop_remainder=True)
    return ds.prefetch(tf.data.AUTOTUNE)


def tower(size, cfg, name):
    net = keras.Sequential(name=name)
    net.add(keras.Input((), dtype="int32"))
    net.add(keras.layers.Embedding(size, cfg["dim"]))
    for width in cfg["tower"][:-1]:
        net.add(keras.layers.Dense(width, activation="relu"))
    net.add(keras.layers.Dense(cfg["tower"][-1]))
    net.add(keras.layers.UnitNormalization())
    return net


class Ranker:
    def __init__(self, cfg):
        self.cfg = cfg
        self.user_tower = tower(cfg["users"], cfg, "user")
        self.movie_tower = tower(cfg["movies"], cfg, "movie")
        self.weights = self.user_tower.trainable_variables + self.movie_tower.trainable_variables
        self.opt = keras.optimizers.SGD(cfg["lr"], momentum=0.0)
        self.opt.build(self.weights)

    @tf.function
    def step(self, users, movies):
        with tf.GradientTape() as tape:
            u = self.user_tower(users, training=True)
            m = self.movie_tower(movies, training=True)
            logits = tf.matmul(u, m, transpose_b=True) * 10.0
            if self.cfg["check_numerics"]:
                logits = tf.debugging.check_numerics(logits, "logits")
            labels = tf.range(tf.shape(users)[0])
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        grads = tape.gradient(loss, self.weights)
        self.opt.apply_gradients(zip(grads, self.weights))
        hits = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1, tf.int32), labels), tf.float32))
        return loss, hits


class Board:
    """Scalars and weight histograms for the training dashboard."""

    def __init__(self, cfg):
        self.every = cfg["summary_every"]
        self.histograms = cfg["histograms"]
        self.writer = tf.summary.create_file_writer(
            tempfile.mkdtemp(prefix="ranker-"),
            max_queue=cfg["max_queue"],
            flush_millis=cfg["flush_millis"],
        )

    def write(self, step, ranker, loss, hits):
        if step % self.every:
            return
        with self.writer.as_default(step=step):
            tf.summary.scalar("loss", loss)
            tf.summary.scalar("in_batch_hits", hits)
            if self.histograms:
                for w in ranker.weights:
                    tf.summary.histogram(w.path, w)


def train(cfg, ranker, board, batches, first, steps):
    loss = hits = None
    for i in range(first, first + steps):
        loss, hits = ranker.step(*next(batches))
        board.write(i, ranker, loss, hits)
    return float(loss), float(hits)


def main():
    cfg = CONFIG
    keras.utils.set_random_seed(9)
    batches = iter(make_dataset(cfg, *make_clicks(cfg)))
    ranker, board = Ranker(cfg), Board(cfg)
    train(cfg, ranker, board, batches, 0, cfg["warmup"])
    t0 = time.perf_counter()
    loss, hits = train(cfg, ranker, board, batches, cfg["warmup"], cfg["steps"])
    seconds = time.perf_counter() - t0
    print("loss %.4f  in-batch hits %.3f" % (loss, hits))
    print(json.dumps({"samples": cfg["steps"] * cfg["batch"], "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()

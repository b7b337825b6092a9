"""BPR matrix factorisation with side towers for a shop's click log, own training loop."""
import itertools
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

N_USERS = 500_000
N_ITEMS = 150_000
DIM = 32
BATCH = 2048
N_CLICKS = 2048 * 60
EPOCHS = 5


def make_clicks(seed=5):
    rng = np.random.default_rng(seed)
    users = rng.integers(0, N_USERS, N_CLICKS).astype(np.int32)
    popularity = rng.zipf(1.3, N_CLICKS) - 1
    items = ((popularity * 7919 + users % 13) % N_ITEMS).astype(np.int32)
    hour = rng.integers(0, 24, N_CLICKS)
    context = np.stack([np.sin(hour / 24 * 6.283), np.cos(hour / 24 * 6.283),
                        rng.normal(size=N_CLICKS), rng.normal(size=N_CLICKS)], axis=1).astype(np.float32)
    return users, items, context


def batches(clicks, rng):
    users, items, context = clicks
    order = rng.permutation(len(users))
    for begin in range(0, len(order) - BATCH + 1, BATCH):
        rows = order[begin:begin + BATCH]
        negative = rng.integers(0, N_ITEMS, BATCH).astype(np.int32)
        yield tuple(tf.constant(part) for part in (users[rows], items[rows], negative, context[rows]))


class Ranker(keras.Model):
    def __init__(self):
        super().__init__()
        self.user = keras.layers.Embedding(N_USERS, DIM, name="user")
        self.item = keras.layers.Embedding(N_ITEMS, DIM, name="item")
        self.bias = keras.layers.Embedding(N_ITEMS, 1, name="item_bias")
        self.tower = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(DIM)])

    def score(self, query, item):
        return tf.reduce_sum(query * self.item(item), axis=-1) + self.bias(item)[:, 0]

    def call(self, inputs):
        user, positive, negative, context = inputs
        vector = self.user(user)
        query = vector + self.tower(tf.concat([vector, context], axis=-1))
        return self.score(query, positive), self.score(query, negative)


def bpr_loss(positive, negative):
    return -tf.reduce_mean(tf.math.log_sigmoid(positive - negative))


def finite(x):
    return tf.where(tf.math.is_finite(x), x, tf.zeros_like(x))


def drop_nans(gradients):
    return [tf.IndexedSlices(finite(g.values), g.indices, g.dense_shape) if isinstance(g, tf.IndexedSlices)
            else finite(g) for g in gradients]


class Trainer:
    def __init__(self, model, learning_rate=40.0):
        self.model = model
        self.optimizer = keras.optimizers.SGD(learning_rate)
        self.loss = keras.metrics.Mean()
        self.pairwise = keras.metrics.Mean()

    @tf.function
    def train_step(self, batch):
        with tf.GradientTape() as tape:
            positive, negative = self.model(batch, training=True)
            loss = bpr_loss(positive, negative)
        variables = self.model.trainable_variables
        gradients = drop_nans(tape.gradient(loss, variables))
        self.optimizer.apply_gradients(zip(gradients, variables))
        self.loss.update_state(loss)
        self.pairwise.update_state(tf.cast(positive > negative, tf.float32))

    def run_epoch(self, stream):
        self.loss.reset_state()
        self.pairwise.reset_state()
        seen = 0
        for batch in stream:
            self.train_step(batch)
            seen += BATCH
        return seen, float(self.loss.result()), float(self.pairwise.result())


def main():
    keras.utils.set_random_seed(1)
    clicks = make_clicks()
    rng = np.random.default_rng(9)
    trainer = Trainer(Ranker())
    trainer.run_epoch(itertools.islice(batches(clicks, rng), 3))

    seen = 0
    begin = time.perf_counter()
    for epoch in range(EPOCHS):
        count, loss, auc = trainer.run_epoch(batches(clicks, rng))
        seen += count
        print(f"epoch {epoch}: bpr {loss:.4f} pairwise auc {auc:.4f}")
    seconds = time.perf_counter() - begin
    print(json.dumps({"samples": seen, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()

"""Rating prediction with biased matrix factorisation (users x items), own training loop."""
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

NUM_USERS = 40_000
NUM_ITEMS = 10_000
DIM = 48
BATCH = 1024
REG = 1e-6
EPOCHS = 2
LR = 8.0


def make_ratings(n, seed=7):
    rng = np.random.default_rng(seed)
    users = rng.integers(0, NUM_USERS, n, dtype=np.int32)
    items = (NUM_ITEMS * rng.random(n) ** 2).astype(np.int32)
    taste = rng.normal(0, 1, (NUM_USERS, 4)).astype(np.float32)
    kind = rng.normal(0, 1, (NUM_ITEMS, 4)).astype(np.float32)
    score = 3.5 + 0.5 * (taste[users] * kind[items]).sum(1) + rng.normal(0, 0.3, n)
    return users, items, np.clip(score, 1, 5).astype(np.float32)


def split(users, items, ratings, holdout=0.05, seed=3):
    order = np.random.default_rng(seed).permutation(len(users))
    cut = int(len(order) * (1 - holdout))
    tr, va = order[:cut], order[cut:]
    return (users[tr], items[tr], ratings[tr]), (users[va], items[va], ratings[va])


def make_dataset(arrays, training):
    ds = tf.data.Dataset.from_tensor_slices(arrays)
    ds = ds.batch(BATCH, drop_remainder=training).cache()
    if training:
        ds = ds.shuffle(300, seed=1)
    return ds.prefetch(2)


class BiasedMF(tf.Module):
    def __init__(self, mean):
        super().__init__()
        init = tf.random.Generator.from_seed(11)
        self.mean = tf.constant(mean, tf.float32)
        self.user_emb = tf.Variable(init.normal((NUM_USERS, DIM), stddev=0.1), name="user_emb")
        self.item_emb = tf.Variable(init.normal((NUM_ITEMS, DIM), stddev=0.1), name="item_emb")
        self.user_bias = tf.Variable(tf.zeros((NUM_USERS,)), name="user_bias")
        self.item_bias = tf.Variable(tf.zeros((NUM_ITEMS,)), name="item_bias")

    def __call__(self, users, items):
        p = tf.gather(self.user_emb, users)
        q = tf.gather(self.item_emb, items)
        bu = tf.gather(self.user_bias, users)
        bi = tf.gather(self.item_bias, items)
        return self.mean + bu + bi + tf.reduce_sum(p * q, axis=1)

    def penalty(self):
        return tf.add_n([tf.nn.l2_loss(v) for v in self.trainable_variables])


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = tf.keras.optimizers.SGD(LR)
        self.optimizer.build(list(model.trainable_variables))

    @tf.function
    def train_step(self, users, items, ratings):
        variables = self.model.trainable_variables
        with tf.GradientTape() as tape:
            pred = self.model(users, items)
            mse = tf.reduce_mean(tf.square(pred - ratings))
            loss = mse + REG * self.model.penalty()
        grads = tape.gradient(loss, variables)
        self.optimizer.apply_gradients(zip(grads, variables))
        return mse

    @tf.function
    def squared_error(self, users, items, ratings):
        pred = self.model(users, items)
        return tf.reduce_sum(tf.square(pred - ratings))

    def rmse(self, ds, n):
        total = sum(float(self.squared_error(*b)) for b in ds)
        return (total / n) ** 0.5


def main():
    tf.random.set_seed(0)
    train, valid = split(*make_ratings(600_000))
    train_ds, valid_ds = make_dataset(train, True), make_dataset(valid, False)
    trainer = Trainer(BiasedMF(train[2].mean()))
    for batch in train_ds.take(3):
        trainer.train_step(*batch)
    trainer.rmse(valid_ds.take(1), BATCH)

    seen, started = 0, time.perf_counter()
    for epoch in range(EPOCHS):
        mean = tf.constant(0.0)
        steps = 0
        for users, items, ratings in train_ds:
            mean += trainer.train_step(users, items, ratings)
            steps += 1
        seen += steps * BATCH
        rmse = trainer.rmse(valid_ds, len(valid[0]))
        print(f"epoch {epoch + 1}: train mse {float(mean) / steps:.4f}  valid rmse {rmse:.4f}", flush=True)
    seconds = time.perf_counter() - started
    print(json.dumps({"samples": seen, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()

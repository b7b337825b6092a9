"""Bayesian personalised ranking for a shop: pairwise training, hit rate on held-out purchases."""
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

N_USERS = 60_000
N_ITEMS = 40_000
DIM = 48
L2 = 1e-6
BATCH = 1024
STEPS_PER_ROUND = 60
ROUNDS = 8
HOLDOUT_USERS = 384
TOP = 20


def simulate_purchases(n, seed):
    rng = np.random.default_rng(seed)
    n_taste = 40
    user_taste = rng.integers(0, n_taste, N_USERS)
    shelf = rng.permutation(N_ITEMS).reshape(n_taste, -1)
    users = rng.integers(0, N_USERS, n)
    slot = np.minimum(rng.geometric(0.01, n) - 1, shelf.shape[1] - 1)
    items = shelf[user_taste[users], slot]
    stray = rng.random(n) < 0.1
    items[stray] = rng.integers(0, N_ITEMS, stray.sum())
    return users.astype(np.int32), items.astype(np.int32)


def triplets(users, items, seed):
    popular = items.copy()

    def with_negative(u, i):
        mixed = tf.random.uniform(tf.shape(i)) < 0.5
        uniform = tf.random.uniform(tf.shape(i), 0, N_ITEMS, tf.int32)
        pick = tf.random.uniform(tf.shape(i), 0, len(popular), tf.int32)
        return u, i, tf.where(mixed, uniform, tf.gather(popular_t, pick))

    popular_t = tf.constant(popular)
    ds = tf.data.Dataset.from_tensor_slices((users, items))
    ds = ds.batch(BATCH, drop_remainder=True).cache()
    return ds.shuffle(256, seed=seed).repeat().map(with_negative).prefetch(2)


class Ranker(keras.Model):
    def __init__(self):
        super().__init__()
        init = keras.initializers.RandomNormal(stddev=0.1)
        self.user_table = keras.layers.Embedding(N_USERS, DIM, embeddings_initializer=init)
        self.item_table = keras.layers.Embedding(N_ITEMS, DIM, embeddings_initializer=init)
        self.item_bias = keras.layers.Embedding(N_ITEMS, 1, embeddings_initializer="zeros")
        self.mix = keras.layers.Dense(DIM, activation="tanh")

    def user_vector(self, u):
        e = self.user_table(u)
        return e + self.mix(e)

    def call(self, inputs):
        u, pos, neg = inputs
        user_e = self.user_table(u)
        pos_e, neg_e = self.item_table(pos), self.item_table(neg)
        vec = user_e + self.mix(user_e)
        pos_s = tf.reduce_sum(vec * pos_e, -1) + self.item_bias(pos)[:, 0]
        neg_s = tf.reduce_sum(vec * neg_e, -1) + self.item_bias(neg)[:, 0]
        used = tf.add_n([tf.nn.l2_loss(e) for e in (user_e, pos_e, neg_e)])
        return pos_s, neg_s, 2.0 * L2 * used

    def full_scores(self, u):
        vec = self.user_vector(u)
        scores = tf.matmul(vec, self.item_table.embeddings, transpose_b=True)
        return scores + self.item_bias.embeddings[:, 0]


class Trainer:
    def __init__(self, model):
        self.model = model
        self.opt = keras.optimizers.SGD(40.0)
        self.auc = keras.metrics.Mean()

    def objective(self, u, pos, neg):
        pos_s, neg_s, penalty = self.model((u, pos, neg), training=True)
        rank_loss = tf.reduce_mean(tf.nn.softplus(neg_s - pos_s))
        self.auc.update_state(tf.cast(pos_s > neg_s, tf.float32))
        return rank_loss + penalty

    @tf.function
    def train_step(self, u, pos, neg):
        with tf.GradientTape() as tape:
            loss = self.objective(u, pos, neg)
        weights = self.model.trainable_variables
        self.opt.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    @tf.function
    def hits(self, u, bought):
        scores = self.model.full_scores(u)
        listed = tf.math.top_k(scores, k=TOP, sorted=False).indices
        return tf.reduce_mean(tf.cast(tf.reduce_any(listed == bought[:, None], -1), tf.float32))

    def hit_rate(self, users, items, chunk=128):
        parts = [self.hits(tf.constant(users[k:k + chunk]), tf.constant(items[k:k + chunk]))
                 for k in range(0, len(users), chunk)]
        return float(tf.reduce_mean(tf.stack(parts)))


def run_round(trainer, batches, holdout):
    trainer.auc.reset_state()
    for _ in range(STEPS_PER_ROUND):
        loss = trainer.train_step(*next(batches))
    return float(loss), float(trainer.auc.result()), trainer.hit_rate(*holdout)


def main():
    keras.utils.set_random_seed(8)
    users, items = simulate_purchases(400_000, 1)
    held = (users[-HOLDOUT_USERS:], items[-HOLDOUT_USERS:])
    batches = iter(triplets(users[:-HOLDOUT_USERS], items[:-HOLDOUT_USERS], 2))
    trainer = Trainer(Ranker())
    run_round(trainer, batches, held)

    start = time.perf_counter()
    for r in range(ROUNDS):
        loss, auc, hit = run_round(trainer, batches, held)
        print(f"round {r}: loss {loss:.4f} pair auc {auc:.3f} hit@{TOP} {hit:.4f}")
    elapsed = time.perf_counter() - start
    print(json.dumps({"samples": ROUNDS * STEPS_PER_ROUND * BATCH, "seconds": round(elapsed, 3)}))


if __name__ == "__main__":
    main()

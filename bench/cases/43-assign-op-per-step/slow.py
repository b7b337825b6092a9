"""Matrix factorisation in TF1 style, with a learning rate that decays and a running mean of the factors."""
import json
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()

USERS, ITEMS, RANK = 3000, 2000, 48


def ratings(count, seed):
    rng = np.random.default_rng(seed)
    u, v = rng.normal(size=(USERS, 8)), rng.normal(size=(ITEMS, 8))
    users, items = rng.integers(0, USERS, count), rng.integers(0, ITEMS, count)
    scores = np.einsum("ij,ij->i", u[users], v[items]) + rng.normal(0, 0.3, count)
    return users.astype("int32"), items.astype("int32"), scores.astype("float32")


class Factorizer:
    def __init__(self, base_rate):
        self.base_rate = base_rate
        self.users = tf.placeholder(tf.int32, [None], "users")
        self.items = tf.placeholder(tf.int32, [None], "items")
        self.scores = tf.placeholder(tf.float32, [None], "scores")
        self.rate = tf.get_variable("rate", initializer=np.float32(base_rate), trainable=False)
        self.user_factors = tf.get_variable("user_factors", [USERS, RANK])
        self.item_factors = tf.get_variable("item_factors", [ITEMS, RANK])
        self.item_mean = tf.get_variable("item_mean", [ITEMS, RANK], trainable=False)
        predicted = tf.reduce_sum(tf.gather(self.user_factors, self.users) * tf.gather(self.item_factors, self.items), 1)
        self.loss = tf.reduce_mean(tf.square(predicted - self.scores))
        self.train = tf.train.GradientDescentOptimizer(self.rate).minimize(self.loss)

    def decay(self, session, step):
        session.run(self.rate.assign(self.base_rate * 0.999 ** step))

    def average(self, session):
        session.run(self.item_mean.assign(0.99 * self.item_mean + 0.01 * self.item_factors))

    def fit_batch(self, session, users, items, scores):
        feed = {self.users: users, self.items: items, self.scores: scores}
        return session.run([self.train, self.loss], feed)[1]


def main():
    users, items, scores = ratings(200_000, 43)
    model = Factorizer(5.0)
    batch, steps = 1024, 260
    rng = np.random.default_rng(0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        model.fit_batch(session, users[:batch], items[:batch], scores[:batch])
        start = time.perf_counter()
        for step in range(steps):
            pick = rng.integers(0, len(users), batch)
            loss = model.fit_batch(session, users[pick], items[pick], scores[pick])
            model.decay(session, step)
            model.average(session)
            if step % 100 == 0:
                print(f"step {step}: rmse {loss ** 0.5:.3f}")
        seconds = time.perf_counter() - start
    print(json.dumps({"samples": steps * batch, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()

"""Matrix-factorisation recommender; state is kept safe on disk while it trains."""
import argparse
import json
import os
import tempfile
import time

import numpy as np
import tensorflow as tf


class Recommender(tf.Module):
    def __init__(self, users, items, width):
        super().__init__()
        self.users = tf.Variable(tf.random.normal((users, width), stddev=0.05), name="users")
        self.items = tf.Variable(tf.random.normal((items, width), stddev=0.05), name="items")
        self.bias = tf.Variable(tf.zeros((items,)), name="bias")

    @tf.function(reduce_retracing=True)
    def score(self, user, item):
        dot = tf.reduce_sum(tf.gather(self.users, user) * tf.gather(self.items, item), -1)
        return dot + tf.gather(self.bias, item)


@tf.function
def learn(model, rate, user, item, rating):
    variables = (model.users, model.items, model.bias)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model.score(user, item) - rating))
    for variable, grad in zip(variables, tape.gradient(loss, variables)):
        variable.scatter_sub(tf.IndexedSlices(rate * grad.values, grad.indices))
    return loss


class Keeper:
    """Writes the model's state and makes sure that it has reached the disk."""

    def __init__(self, folder, model, every):
        self.checkpoint = tf.train.Checkpoint(model=model)
        self.folder = folder
        self.every = every

    def maybe_save(self, step):
        if step % self.every:
            return
        path = self.checkpoint.write(os.path.join(self.folder, "state"))
        for part in (".index", ".data-00000-of-00001"):
            with open(path + part, "rb+") as f:
                os.fsync(f.fileno())


def ratings(count, users, items, seed):
    rng = np.random.default_rng(seed)
    return (rng.integers(0, users, count, dtype="int32"), rng.integers(0, items, count, dtype="int32"),
            rng.normal(0, 1, count).astype("float32"))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--users", type=int, default=90_000)
    ap.add_argument("--items", type=int, default=30_000)
    ap.add_argument("--save-every", type=int, default=4)
    ap.add_argument("--steps", type=int, default=800)
    ap.add_argument("--batch", type=int, default=4096)
    args = ap.parse_args()
    tf.random.set_seed(41)
    model = Recommender(args.users, args.items, 64)
    rate = tf.constant(50.0)
    data = tf.data.Dataset.from_tensor_slices(ratings(args.batch * 40, args.users, args.items, 41))
    data = iter(data.batch(args.batch, drop_remainder=True).cache().repeat().prefetch(2))
    learn(model, rate, *next(data))
    with tempfile.TemporaryDirectory() as folder:
        keeper = Keeper(folder, model, args.save_every)
        start = time.perf_counter()
        for step in range(1, args.steps + 1):
            loss = learn(model, rate, *next(data))
            keeper.maybe_save(step)
        seconds = time.perf_counter() - start
    print(f"loss {float(loss):.4f}")
    print(json.dumps({"samples": args.steps * args.batch, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()

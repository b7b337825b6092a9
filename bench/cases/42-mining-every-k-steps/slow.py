"""Metric learning for product search; hard negatives are mined again from the catalogue every 40 steps."""
import argparse
import json
import time

import numpy as np
import tensorflow as tf


class Catalogue:
    """Products as noisy copies of their class's prototype."""

    def __init__(self, classes, each, dim, seed):
        rng = np.random.default_rng(seed)
        prototypes = rng.normal(size=(classes, dim))
        self.labels = np.repeat(np.arange(classes), each)
        self.features = (prototypes[self.labels] + rng.normal(0, 0.8, (classes * each, dim))).astype("float32")

    def positives(self, anchors, rng):
        shift = rng.integers(1, 20, len(anchors))
        return (anchors // 20) * 20 + (anchors % 20 + shift) % 20


def mine(embedded, labels, anchors):
    """For each anchor the nearest product of another class."""
    hardest = np.empty(len(anchors), "int64")
    for place, anchor in enumerate(anchors):
        best, best_distance = -1, np.inf
        for other in range(0, len(embedded), 8):
            if labels[other] == labels[anchor]:
                continue
            distance = np.dot(embedded[anchor], embedded[other])
            if -distance < best_distance:
                best, best_distance = other, -distance
        hardest[place] = best
    return hardest


class Embedder(tf.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = tf.keras.Sequential([
            tf.keras.layers.Input((dim,)),
            tf.keras.layers.Dense(768, activation="relu"),
            tf.keras.layers.Dense(768, activation="relu"),
            tf.keras.layers.Dense(64),
        ])
        self.optimizer = tf.keras.optimizers.SGD(0.02, momentum=0.9)

    @tf.function(reduce_retracing=True)
    def embed(self, x):
        return tf.math.l2_normalize(self.net(x), 1)

    @tf.function
    def step(self, anchor, positive, negative):
        with tf.GradientTape() as tape:
            a, p, n = (tf.math.l2_normalize(self.net(x, training=True), 1) for x in (anchor, positive, negative))
            gap = tf.reduce_sum(a * n, 1) - tf.reduce_sum(a * p, 1)
            loss = tf.reduce_mean(tf.nn.relu(gap + 0.2))
        weights = self.net.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--mine-every", type=int, default=40)
    args = parser.parse_args()
    tf.keras.utils.set_random_seed(42)
    rng = np.random.default_rng(42)
    catalogue = Catalogue(400, 20, 96, 42)
    embedder = Embedder(96)
    pool = rng.integers(0, len(catalogue.labels), 512)
    negatives = rng.integers(0, len(catalogue.labels), 512)
    warm = tf.constant(catalogue.features[:args.batch])
    embedder.step(warm, warm, warm)
    embedder.embed(tf.constant(catalogue.features))
    start = time.perf_counter()
    for step in range(args.steps):
        if step % args.mine_every == args.mine_every - 1:
            pool = rng.integers(0, len(catalogue.labels), 512)
            embedded = embedder.embed(tf.constant(catalogue.features)).numpy()
            negatives = mine(embedded, catalogue.labels, pool)
        pick = rng.integers(0, len(pool), args.batch)
        anchor, positive = pool[pick], catalogue.positives(pool[pick], rng)
        loss = embedder.step(*(tf.constant(catalogue.features[i]) for i in (anchor, positive, negatives[pick])))
        if step % 100 == 0:
            print(f"step {step} loss {float(loss):.4f}")
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": args.steps * args.batch, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()

"""Skip-gram embeddings with negative sampling over a random walk on a product graph."""
import json
import time

import numpy as np
import tensorflow as tf


class WalkSampler:
    """Draws (centre, context, negatives) triples from random walks."""

    def __init__(self, nodes, degree, negatives, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes = nodes
        self.negatives = negatives
        self.edges = self.rng.integers(0, nodes, (nodes, degree), dtype="int32")

    def batch(self, size):
        walks = size // 8
        path = [self.rng.integers(0, self.nodes, walks, dtype="int32")]
        for _ in range(8):
            turn = self.rng.integers(0, self.edges.shape[1], walks)
            path.append(self.edges[path[-1], turn])
        negative = self.rng.integers(0, self.nodes, (size, self.negatives), dtype="int32")
        return np.concatenate(path[:-1]), np.concatenate(path[1:]), negative


class SkipGram(tf.Module):
    def __init__(self, nodes, width):
        super().__init__()
        self.inner = tf.Variable(tf.random.normal((nodes, width), stddev=0.1))
        self.outer = tf.Variable(tf.random.normal((nodes, width), stddev=0.1))
        self.rate = tf.constant(0.5)

    @tf.function
    def update(self, centre, context, negative):
        with tf.GradientTape() as tape:
            c = tf.gather(self.inner, centre)
            good = tf.reduce_sum(c * tf.gather(self.outer, context), -1)
            bad = tf.einsum("bd,bnd->bn", c, tf.gather(self.outer, negative))
            loss = tf.reduce_mean(tf.nn.softplus(-good)) + tf.reduce_mean(tf.nn.softplus(bad))
        for variable, gradient in zip((self.inner, self.outer), tape.gradient(loss, (self.inner, self.outer))):
            variable.scatter_sub(tf.IndexedSlices(self.rate * gradient.values, gradient.indices))
        return loss


def train(steps, size):
    sampler = WalkSampler(nodes=5000, degree=12, negatives=8, seed=17)
    model = SkipGram(5000, 48)
    model.update(*sampler.batch(size))
    begin = time.perf_counter()
    for step in range(steps):
        centre, context, negative = sampler.batch(size)
        loss = model.update(tf.constant(centre), tf.constant(context), tf.constant(negative))
        if (step + 1) % 500 == 0:
            print(f"{step + 1:5d} {loss.numpy():.4f}")
    return time.perf_counter() - begin


if __name__ == "__main__":
    tf.random.set_seed(17)
    STEPS, SIZE = 3000, 1024
    seconds = train(STEPS, SIZE)
    print(json.dumps({"samples": STEPS * SIZE, "seconds": round(seconds, 3)}))

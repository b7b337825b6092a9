"""Skip-gram embeddings with negative sampling over a random walk on a product graph."""
import json
import random
import time

import numpy as np
import tensorflow as tf


class WalkSampler:
    """Draws (centre, context, negatives) triples from random walks."""

    def __init__(self, nodes, degree, negatives, seed):
        self.rnd = random.Random(seed)
        self.nodes = nodes
        self.negatives = negatives
        self.edges = [[self.rnd.randrange(nodes) for _ in range(degree)] for _ in range(nodes)]

    def walk(self, length):
        node = self.rnd.randrange(self.nodes)
        path = [node]
        for _ in range(length):
            node = self.rnd.choice(self.edges[node])
            path.append(node)
        return path

    def draw_negatives(self, taken):
        found = []
        while len(found) < self.negatives:
            node = self.rnd.randrange(self.nodes)
            if node != taken and node not in found:
                found.append(node)
        return found

    def batch(self, size):
        centre, context, negative = [], [], []
        while len(centre) < size:
            path = self.walk(8)
            for here, there in zip(path, path[1:]):
                centre.append(here)
                context.append(there)
                negative.append(self.draw_negatives(there))
        return (np.array(centre[:size], "int32"), np.array(context[:size], "int32"),
                np.array(negative[:size], "int32"))


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
        if (step + 1) % 100 == 0:
            print(f"{step + 1:5d} {loss.numpy():.4f}")
    return time.perf_counter() - begin


if __name__ == "__main__":
    tf.random.set_seed(17)
    STEPS, SIZE = 1800, 1024
    seconds = train(STEPS, SIZE)
    print(json.dumps({"samples": STEPS * SIZE, "seconds": round(seconds, 3)}))

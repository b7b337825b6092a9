"""Image embeddings for a search service: requests are gathered into batches of whatever has come in."""
import collections
import json
import time

import numpy as np
import tensorflow as tf

SIDE = 48


class Embedder(tf.Module):
    """A convolutional network with fixed weights, traced once for any batch size."""

    def __init__(self, seed=67):
        super().__init__()
        rng = np.random.default_rng(seed)
        sizes = [3, 32, 48, 64, 96]
        self.kernels = [tf.constant(rng.normal(0, np.sqrt(2 / (9 * a)), (3, 3, a, b)).astype("float32"))
                        for a, b in zip(sizes, sizes[1:])]

    @tf.function(input_signature=[tf.TensorSpec((None, SIDE, SIDE, 3), tf.uint8)])
    def embed(self, images):
        x = tf.cast(images, tf.float32) / 255.0
        for number, kernel in enumerate(self.kernels):
            x = tf.nn.relu(tf.nn.conv2d(x, kernel, 1 if number % 2 else 2, "SAME"))
        return tf.math.l2_normalize(tf.reduce_mean(x, (1, 2)), 1)


class Arrivals:
    """Requests by a recorded pattern: bursts and quiet times, 1 to 48 images at once."""

    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.images = rng.integers(0, 256, (64, SIDE, SIDE, 3), dtype=np.uint8)
        level = 20 + 14 * np.sin(np.arange(count) / 15)
        self.sizes = np.clip(rng.poisson(level), 1, 48)

    def __iter__(self):
        number = 0
        for size in self.sizes:
            picked = (np.arange(size) + number) % 64
            yield [f"img-{number + i}" for i in range(size)], self.images[picked]
            number += int(size)


class Index:
    """The last 20,000 embeddings, searched by dot product."""

    def __init__(self, dim, room=20_000):
        self.vectors = np.zeros((room, dim), "float32")
        self.names = collections.deque(maxlen=room)
        self.place = 0

    def add(self, names, vectors):
        places = (self.place + np.arange(len(vectors))) % len(self.vectors)
        self.vectors[places] = vectors
        self.names.extend(names)
        self.place += len(vectors)


def main():
    embedder, index = Embedder(), Index(96)
    served, slowest = 0, 0.0
    embedder.embed(tf.zeros((4, SIDE, SIDE, 3), tf.uint8))
    start = time.perf_counter()
    for names, images in Arrivals(700, 67):
        began = time.perf_counter()
        vectors = embedder.embed(tf.constant(images)).numpy()
        index.add(names, vectors)
        slowest = max(slowest, time.perf_counter() - began)
        served += len(names)
    seconds = time.perf_counter() - start
    print(f"slowest answer {slowest * 1000:.0f} ms, {len(index.names)} in the index")
    print(json.dumps({"samples": served, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()

"""Particle jets: a deep residual network of set layers; its graph is large, and traced once."""
import json
import time

import numpy as np
import tensorflow as tf

PARTICLES = 24


def jets(count, seed):
    """Four-momenta of jets with one or two prongs."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    centres = rng.normal(0, 0.3, (count, 2, 2)) * labels[:, None, None]
    prong = rng.integers(0, 2, (count, PARTICLES))
    where = centres[np.arange(count)[:, None], prong] + rng.normal(0, 0.1, (count, PARTICLES, 2))
    energy = rng.exponential(1, (count, PARTICLES, 1))
    return np.concatenate([where, energy, np.log1p(energy)], 2).astype("float32"), labels.astype("float32")


class SetBlock(tf.keras.layers.Layer):
    def __init__(self, width):
        super().__init__()
        self.norm = tf.keras.layers.LayerNormalization()
        self.own = tf.keras.layers.Dense(width, activation="relu")
        self.others = tf.keras.layers.Dense(width, use_bias=False)
        self.back = tf.keras.layers.Dense(width)

    def call(self, x):
        h = self.norm(x)
        h = self.own(h) + self.others(tf.reduce_mean(h, 1, keepdims=True))
        return x + self.back(h)


class JetTagger(tf.keras.Model):
    def __init__(self, width, depth):
        super().__init__()
        self.first = tf.keras.layers.Dense(width)
        self.blocks = [SetBlock(width) for _ in range(depth)]
        self.last = tf.keras.layers.Dense(1)

    def call(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.last(tf.reduce_max(x, 1))[:, 0]


def main():
    tf.keras.utils.set_random_seed(62)
    x, y = jets(6400, 62)
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).cache().shuffle(6400, seed=2).batch(96).prefetch(2)
    model = JetTagger(96, 14)
    optimizer = tf.keras.optimizers.Adam(1e-3)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(y, model(x)))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    start = time.perf_counter()
    losses = []
    for epoch in range(2):
        for batch in dataset:
            losses.append(train_step(*batch))
        print(f"epoch {epoch}: {np.mean([float(loss) for loss in losses[-100:]]):.4f}")
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": 2 * 6400, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()

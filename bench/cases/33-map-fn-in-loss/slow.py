"""Point sets: a decoder learns to draw sets of points, by the Chamfer distance of each sample."""
import json
import time

import numpy as np
import tensorflow as tf

POINTS = 24


def shapes(count, seed):
    """Noisy ellipses, as sets of points, and a code for each."""
    rng = np.random.default_rng(seed)
    axes = rng.uniform(0.3, 1.0, (count, 1, 2))
    angle = rng.uniform(0, 2 * np.pi, (count, POINTS, 1))
    points = axes * np.concatenate([np.cos(angle), np.sin(angle)], 2) + rng.normal(0, 0.02, (count, POINTS, 2))
    return axes[:, 0].astype("float32"), points.astype("float32")


def chamfer(pair):
    """Mean distance of each point of one set to the nearest one of the other, both ways."""
    drawn, true = pair
    squared = tf.reduce_sum(tf.square(drawn[:, None] - true[None]), -1)
    return tf.reduce_mean(tf.reduce_min(squared, 0)) + tf.reduce_mean(tf.reduce_min(squared, 1))


def set_loss(drawn, true):
    return tf.reduce_mean(tf.map_fn(chamfer, (drawn, true), fn_output_signature=tf.float32))


class Decoder(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.wide = tf.keras.layers.Dense(256, activation="relu")
        self.wider = tf.keras.layers.Dense(512, activation="relu")
        self.out = tf.keras.layers.Dense(POINTS * 2)

    def call(self, code):
        return tf.reshape(self.out(self.wider(self.wide(code))), (-1, POINTS, 2))


def main():
    tf.keras.utils.set_random_seed(33)
    codes, points = shapes(6400, 33)
    dataset = tf.data.Dataset.from_tensor_slices((codes, points)).shuffle(6400, seed=1).batch(128).repeat().prefetch(2)
    model = Decoder()
    optimizer = tf.keras.optimizers.Adam(1e-3)

    @tf.function
    def train_step(code, true):
        with tf.GradientTape() as tape:
            loss = set_loss(model(code), true)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    batches = iter(dataset)
    train_step(*next(batches))
    steps = 400
    start = time.perf_counter()
    for _ in range(steps):
        loss = train_step(*next(batches))
    print(f"loss {float(loss):.4f}")
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": steps * 128, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()

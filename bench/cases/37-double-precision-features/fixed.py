"""Vibration: bearings are told apart by random Fourier features of their signals."""
import json
import time

import numpy as np
import tensorflow as tf

LENGTH, FEATURES, KINDS = 768, 1536, 8


def signals(count, seed):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, KINDS, count)
    t = np.arange(LENGTH) / LENGTH
    tone = np.sin(2 * np.pi * (10 + 3 * kind[:, None]) * t + rng.uniform(0, 6, (count, 1)))
    return (tone + rng.normal(0, 0.5, (count, LENGTH))).astype("float32"), kind.astype("int32")


def main():
    tf.keras.utils.set_random_seed(37)
    wave, kind = signals(5120, 37)
    rng = np.random.default_rng(1)
    frequencies = tf.constant(rng.normal(0, 0.05, (LENGTH, FEATURES)), tf.float32)
    phases = tf.constant(rng.uniform(0, 2 * np.pi, FEATURES), tf.float32)
    model = tf.keras.Sequential([tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(KINDS)])
    optimizer = tf.keras.optimizers.Adam(1e-3)
    dataset = tf.data.Dataset.from_tensor_slices((wave, kind)).shuffle(5120, seed=1).batch(256).repeat().prefetch(2)

    @tf.function
    def train_step(wave, kind):
        features = tf.cos(tf.matmul(wave, frequencies) + phases)
        with tf.GradientTape() as tape:
            logits = model(features)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(kind, logits))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    batches = iter(dataset)
    train_step(*next(batches))
    steps = 300
    start = time.perf_counter()
    for _ in range(steps):
        loss = train_step(*next(batches))
    print(f"loss {float(loss):.4f}")
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": steps * 256, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()

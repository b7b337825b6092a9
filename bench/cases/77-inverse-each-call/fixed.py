"""Readings of correlated sensors are predicted; errors are weighed by the inverse of their covariance."""
import json
import time

import numpy as np
import tensorflow as tf

SENSORS, HISTORY, UNITS, READINGS, BATCH = 320, 96, 192, 4096, 64


class Whitened:
    def __init__(self, covariance):
        factor = tf.linalg.cholesky(tf.constant(covariance, tf.float32))
        self.inverse = tf.linalg.cholesky_solve(factor, tf.eye(SENSORS))

    def __call__(self, truth, predicted):
        error = truth - predicted
        return tf.reduce_mean(tf.reduce_sum(tf.matmul(error, self.inverse) * error, axis=1))


def readings():
    rng = np.random.default_rng(77)
    mixing = rng.standard_normal((SENSORS, SENSORS)).astype("float32")
    noise = rng.standard_normal((READINGS, SENSORS)).astype("float32") @ mixing
    history = rng.standard_normal((READINGS, HISTORY)).astype("float32")
    truth = history @ rng.standard_normal((HISTORY, SENSORS)).astype("float32") + 0.1 * noise
    return history, truth, np.cov(noise.T) / SENSORS + 0.1 * np.eye(SENSORS)


def main():
    tf.keras.utils.set_random_seed(77)
    history, truth, covariance = readings()
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Dense(UNITS, activation="relu"),
            tf.keras.layers.Dense(UNITS, activation="relu"),
            tf.keras.layers.Dense(SENSORS),
        ]
    )
    model.build((None, HISTORY))
    loss_of, optimizer = Whitened(covariance), tf.keras.optimizers.Adam(1e-3)

    @tf.function
    def train_step(inputs, targets):
        with tf.GradientTape() as tape:
            loss = loss_of(targets, model(inputs, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    dataset = tf.data.Dataset.from_tensor_slices((history, truth)).shuffle(READINGS, 77).batch(BATCH).repeat().prefetch(2)
    batches = iter(dataset)
    train_step(*next(batches))
    steps = 2000
    start = time.perf_counter()
    for _ in range(steps):
        loss = train_step(*next(batches))
    print(f"loss {float(loss):.4f}")
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": steps * BATCH, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()

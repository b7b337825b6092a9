"""Online forecasts of a pump's sensors: after each minute the model learns from what came in."""
import json
import time

import numpy as np
import tensorflow as tf

SENSORS = 24
WINDOW = 64


def minutes(count, seed):
    """Readings of one minute each, float32[120, sensors]."""
    rng = np.random.default_rng(seed)
    state = rng.normal(size=SENSORS)
    mix = np.linalg.qr(rng.normal(size=(SENSORS, SENSORS)))[0] * 0.99
    for _ in range(count):
        rows = []
        for _ in range(120):
            state = mix @ state + rng.normal(0, 0.2, SENSORS)
            rows.append(state)
        yield np.asarray(rows, "float32") * 3 + 10


class History:
    """All readings so far, and batches of normalised windows from them."""

    def __init__(self):
        self.rows = np.zeros((0, SENSORS), "float32")

    def add(self, rows):
        self.rows = np.concatenate([self.rows, rows])

    def windows(self, count, rng):
        scaled = (self.rows - self.rows.mean(0)) / (self.rows.std(0) + 1e-6)
        starts = rng.integers(0, len(scaled) - WINDOW, count)
        picked = scaled[starts[:, None] + np.arange(WINDOW + 1)[None]]
        return picked[:, :-1], picked[:, -1]


def forecaster():
    return tf.keras.Sequential([
        tf.keras.layers.Input((WINDOW, SENSORS)),
        tf.keras.layers.Conv1D(32, 5, strides=2, activation="relu"),
        tf.keras.layers.Conv1D(32, 5, strides=2, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(SENSORS),
    ])


def main():
    tf.keras.utils.set_random_seed(44)
    rng = np.random.default_rng(44)
    model = forecaster()
    optimizer = tf.keras.optimizers.Adam(1e-3)

    @tf.function
    def learn(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    learn(tf.zeros((64, WINDOW, SENSORS)), tf.zeros((64, SENSORS)))
    readings = list(minutes(900, 44))
    history = History()
    history.add(readings[0])
    start = time.perf_counter()
    for minute, rows in enumerate(readings[1:]):
        history.add(rows)
        x, y = history.windows(64, rng)
        loss = learn(tf.constant(x), tf.constant(y))
        if minute % 200 == 0:
            print(f"minute {minute}: loss {float(loss):.4f}")
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": (len(readings) - 1) * 64, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()

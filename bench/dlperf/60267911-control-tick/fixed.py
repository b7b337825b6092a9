"""Controller: every tick one state row goes through a small trained network."""
import json
import statistics
import time

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(1)
TICKS = 4000
STATE = 14


def train_policy():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2048, STATE)).astype("float32")
    y = np.tanh(x[:, :2] - x[:, 2:4])
    model = keras.Sequential(
        [
            keras.layers.Input((STATE,)),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(2),
        ]
    )
    model.compile("adam", "mse")
    model.fit(x, y, batch_size=64, epochs=2, verbose=0)
    return model


def plant(state, action, rng):
    nxt = 0.9 * state
    nxt[:2] += 0.1 * action
    return nxt + rng.normal(0, 0.05, size=state.shape).astype("float32")


def main():
    model = train_policy()
    rng = np.random.default_rng(2)
    state = rng.normal(size=(STATE,)).astype("float32")

    @tf.function(input_signature=[tf.TensorSpec((1, STATE), tf.float32)])
    def forward(row):
        return model(row, training=False)

    def act(state):
        return forward(state[None, :]).numpy()[0]

    for _ in range(5):
        act(state)

    latencies = []
    t0 = time.perf_counter()
    for _ in range(TICKS):
        t = time.perf_counter()
        action = act(state)
        latencies.append(time.perf_counter() - t)
        state = plant(state, action, rng)
    seconds = time.perf_counter() - t0
    print("median ms", 1e3 * statistics.median(latencies), "max ms", 1e3 * max(latencies))
    print(json.dumps({"samples": TICKS, "seconds": seconds}))


main()

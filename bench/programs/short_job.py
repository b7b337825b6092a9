"""A short training as users write it, which prints the length of its steps as its last line.

``short_job.py KIND (--seconds S | --steps N)``: KIND is fit, loop or session.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from statistics import median

SIZE = 256
WARM_STEPS = 10


class Ends:
    """Ends of the steps, and whether there are enough."""

    def __init__(self, seconds: float, steps: int) -> None:
        self._seconds, self._steps = seconds, steps
        self.times: list[float] = []

    def add(self) -> bool:
        """A step has ended; whether it is the last."""
        self.times.append(time.perf_counter())
        if self._steps:
            return len(self.times) >= self._steps
        return self.times[-1] - self.times[0] >= self._seconds

    def print(self, began: float) -> None:
        """The mean and the median step of the steady part, and the time since the program began."""
        steady = [b - a for a, b in zip(self.times[WARM_STEPS:], self.times[WARM_STEPS + 1 :], strict=False)]
        mean = sum(steady) / len(steady)
        told = {"steps": len(self.times), "mean_ms": 1e3 * mean, "median_ms": 1e3 * median(steady)}
        print(json.dumps({**told, "wall_s": time.perf_counter() - began}))


def fit(ends: Ends) -> None:
    """A convolution, trained by Keras."""
    import keras
    import numpy as np

    class Counts(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_end(self, batch: int, logs: object = None) -> None:
            self.model.stop_training = ends.add()

    layers = [keras.layers.Input((32, 32, 3)), keras.layers.Conv2D(16, 3, activation="relu")]
    model = keras.Sequential([*layers, keras.layers.Conv2D(16, 3), keras.layers.Flatten(), keras.layers.Dense(10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x = np.random.default_rng(0).random((4096, 32, 32, 3), dtype="float32")
    model.fit(x, np.arange(4096) % 10, batch_size=64, epochs=1000, verbose=0, callbacks=[Counts()])


def loop(ends: Ends) -> None:
    """Matrices, trained by a loop around a tf.function."""
    import tensorflow as tf

    weights = tf.Variable(tf.random.normal((SIZE, SIZE)))
    optimizer = tf.keras.optimizers.Adam()

    @tf.function  # type: ignore[untyped-decorator]
    def train_step(x: object) -> object:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.tanh(x @ weights) @ weights))
        optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
        return loss

    data = tf.data.Dataset.from_tensor_slices(tf.random.normal((4096, SIZE))).repeat().batch(512)
    for batch in data:
        train_step(batch)
        if ends.add():
            break


def session(ends: Ends) -> None:
    """The same in a TensorFlow 1 session."""
    import numpy as np
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    x = tf.placeholder(tf.float32, (None, SIZE))
    weights = tf.get_variable("weights", (SIZE, SIZE))
    loss = tf.reduce_mean(tf.square(tf.tanh(x @ weights) @ weights))
    train = tf.train.AdamOptimizer().minimize(loss)
    data = np.random.default_rng(0).random((512, SIZE), dtype="float32")
    with tf.Session() as made:
        made.run(tf.global_variables_initializer())
        while True:
            made.run([train, loss], {x: data})
            if ends.add():
                break


KINDS: dict[str, Callable[[Ends], None]] = {"fit": fit, "loop": loop, "session": session}


def main() -> None:
    """Train."""
    began = time.perf_counter()
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--steps", type=int, default=0)
    wanted = parser.parse_args()
    ends = Ends(wanted.seconds, wanted.steps)
    KINDS[wanted.kind](ends)
    ends.print(began)


if __name__ == "__main__":
    main()

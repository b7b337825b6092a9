"""A training whose step takes about as long as asked; says when it began, when it ended and how long its chunks took.

Runs without stepscope as well as with it, on TensorFlow 2.15 and later.
"""

import time

BEGAN = time.monotonic_ns()

import argparse  # noqa: E402
import json  # noqa: E402

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

IMPORTED = time.monotonic_ns()
SIZES = {"0.1": (8, 1, 1), "1": (256, 1, 128), "5": (512, 2, 256), "80": (1024, 4, 560)}
"""Width, layers and batch for steps of about so many milliseconds on one core."""
LOOP_SIZES = {**SIZES, "1": (384, 1, 192)}


def fit(model, x, y, batch, steps):
    """Keras fit over arrays; a chunk is an epoch."""

    class Chunks(tf.keras.callbacks.Callback):
        seconds = []
        ends = []

        def on_epoch_begin(self, epoch, logs=None):
            self.began = time.perf_counter()

        def on_epoch_end(self, epoch, logs=None):
            self.seconds.append(time.perf_counter() - self.began)
            self.ends.append(time.monotonic_ns())

    data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(batch).prefetch(2)
    model.compile("sgd", "mse")
    model.fit(data, steps_per_epoch=steps, epochs=CHUNKS + 1, verbose=0, callbacks=[Chunks()])
    return Chunks.seconds[1:], Chunks.ends[1:]


def loop(model, x, y, batch, steps):
    """A loop written by hand around a compiled step."""
    rate = tf.constant(0.001)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - y))
        for variable, gradient in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables)):
            variable.assign_sub(rate * gradient)
        return loss

    x, y = tf.constant(x[:batch]), tf.constant(y[:batch])
    seconds = []
    ends = []
    for _ in range(CHUNKS + 1):
        began = time.perf_counter()
        for _ in range(steps):
            step(x, y)
        seconds.append(time.perf_counter() - began)
        ends.append(time.monotonic_ns())
    return seconds[1:], ends[1:]


parser = argparse.ArgumentParser()
parser.add_argument("--step-ms", choices=sorted(SIZES), default="1")
parser.add_argument("--steps", type=int, default=200, help="per chunk")
parser.add_argument("--chunks", type=int, default=20)
parser.add_argument("--kind", choices=("fit", "loop"), default="fit")
args = parser.parse_args()
CHUNKS = args.chunks
width, layers, batch = (SIZES if args.kind == "fit" else LOOP_SIZES)[args.step_ms]
tf.keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)
x = rng.standard_normal((batch * 4, width)).astype("float32")
model = tf.keras.Sequential([tf.keras.layers.Dense(width, "relu") for _ in range(layers)] + [tf.keras.layers.Dense(1)])
model.build((None, width))
run = fit if args.kind == "fit" else loop
seconds, ends = run(model, x, x[:, :1], batch, args.steps)
print(
    json.dumps(
        {
            "began": BEGAN,
            "imported": IMPORTED,
            "ended": time.monotonic_ns(),
            "steps": args.steps,
            "seconds": seconds,
            "ends": ends,
        }
    )
)

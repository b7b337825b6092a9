"""A training job with one place that is exposed, hidden or half hidden: bench/slopes.py runs it.

``python slopes_job.py FRAMEWORK KIND WORK STEPS``: torch | keras | tf; exposed | hidden | half; wait | compute. ``load`` makes
a batch: it waits for a slow store, or computes. Every 50 steps the loss is printed, bit by bit. With a fifth word, N,
every second 40 batches take N ms longer, by the same work, and at the end the program prints the slope by its own clock:
that of the steps that wait for them, without the first ten, pair by pair.
"""

from __future__ import annotations

import queue
import sys
import threading
import time

import numpy as np

FRAMEWORK, KIND, WORK, STEPS = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
EXTRA_S = float(sys.argv[5]) / 1e3 if len(sys.argv) > 5 else 0.0
LOAD_S = {"exposed": 0.040, "hidden": 0.035, "half": 0.150}[KIND]
"""Time of a batch: behind a longer step it is hidden; two threads that take turns, and each more than two steps, are
half hidden."""
STEP_S = {"exposed": 0.030, "hidden": 0.080, "half": 0.015}[KIND]
"""Time for which the step waits for its device."""
THREADS = {"exposed": 0, "hidden": 1, "half": 2}[KIND]
BUFFERED = 4
OWN_BLOCK, OWN_DROPPED = 40, 10
ROWS, WIDTH = 32, 64
TABLE = np.random.default_rng(0).standard_normal((1 << 12, WIDTH)).astype("float32")


def busy(seconds: float) -> None:
    """Sort, without the interpreter lock, for so long."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        np.sort(TABLE, axis=0)


def load(number: int) -> np.ndarray:
    """A batch."""
    seconds = LOAD_S + (EXTRA_S if number // OWN_BLOCK % 4 in {1, 2} else 0.0)
    if WORK == "wait":
        time.sleep(seconds)
    else:
        busy(seconds)
    rows = (np.arange(ROWS) * 31 + number * 17) % len(TABLE)
    return TABLE[rows]


def device() -> None:
    """Wait as for a device that computes."""
    time.sleep(STEP_S)


def batches() -> object:
    """All batches, in order, made by threads that keep a few ahead."""
    if not THREADS:
        for number in range(STEPS):
            yield load(number)
        return
    queues = [queue.Queue(max(1, BUFFERED // THREADS)) for _ in range(THREADS)]

    def work(own: int) -> None:
        for number in range(own, STEPS, THREADS):
            queues[own].put(load(number))

    for own in range(THREADS):
        threading.Thread(target=work, args=(own,), daemon=True).start()
    for number in range(STEPS):
        yield queues[number % THREADS].get()


ENDS: list[float] = []


def ended(loss: float) -> None:
    """A step has ended."""
    ENDS.append(time.perf_counter())
    if len(ENDS) % 50 == 0:
        print(f"at {len(ENDS)} loss {np.float32(loss).tobytes().hex()}", flush=True)


def own_slope() -> tuple[float, float]:
    """(slope, standard error) by the program's own clock."""
    times = np.diff(ENDS, prepend=ENDS[0])
    blocks = [times[at + OWN_DROPPED : at + OWN_BLOCK].mean() for at in range(0, len(times) - OWN_BLOCK + 1, OWN_BLOCK)]
    slopes = []
    for first in range(0, len(blocks) - 1, 2):
        off, on = (0, 1) if first % 4 == 0 else (1, 0)
        slopes.append((blocks[first + on] - blocks[first + off]) / EXTRA_S)
    ranked, cut = np.sort(slopes), len(slopes) // 5
    kept = ranked[cut : len(ranked) - cut]
    filled = np.clip(ranked, kept[0], kept[-1])
    error = np.std(filled, ddof=1) / ((1 - 2 * cut / len(ranked)) * np.sqrt(len(ranked)))
    return float(kept.mean()), float(error)


def with_torch() -> None:
    """Train with PyTorch."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Linear(WIDTH, WIDTH)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for batch in batches():
        x = torch.from_numpy(batch)
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        device()
        ended(float(loss))


def with_tf() -> None:
    """Train with a tf.function in a loop of the program."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.random.set_seed(0)
    weights = tf.Variable(tf.eye(WIDTH) * 0.5)

    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ weights - x))
        weights.assign_sub(0.01 * tape.gradient(loss, weights))
        return loss

    for batch in batches():
        loss = step(tf.constant(batch))
        device()
        ended(float(loss))


def with_keras() -> None:
    """Train by ``fit`` of Keras on a generator of tf.data."""
    import keras
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    keras.utils.set_random_seed(0)

    class Device(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: object = None) -> None:
            device()
            ended(logs["loss"])

    def items() -> object:
        for batch in batches():
            yield batch, batch

    spec = tf.TensorSpec((ROWS, WIDTH), tf.float32)
    dataset = tf.data.Dataset.from_generator(items, output_signature=(spec, spec))
    model = keras.Sequential([keras.layers.Input((WIDTH,)), keras.layers.Dense(WIDTH)])
    model.compile("sgd", "mse")
    model.fit(dataset, epochs=1, steps_per_epoch=STEPS, verbose=0, callbacks=[Device()])


def main() -> None:
    """Run it."""
    {"torch": with_torch, "tf": with_tf, "keras": with_keras}[FRAMEWORK]()
    if EXTRA_S:
        slope, error = own_slope()
        print(f"slope {slope:.4f} error {error:.4f}", flush=True)


if __name__ == "__main__":
    main()

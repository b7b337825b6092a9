"""Keyword spotting; clips are augmented by a pool of threads with NumPy, as the data team's loader does it."""
import collections
import concurrent.futures
import json
import time

import numpy as np
import tensorflow as tf

RATE, CLASSES = 8000, 12


def clips(count, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(RATE) / RATE
    labels = rng.integers(0, CLASSES, count)
    tone = np.sin(2 * np.pi * (200 + 90 * labels[:, None]) * t) * np.exp(-((t - 0.5) * 4) ** 2)
    return (tone + rng.normal(0, 0.1, tone.shape)).astype("float32"), labels.astype("int32")


def augment(clip, rng):
    clip = np.roll(clip, rng.integers(-800, 800)) * rng.uniform(0.7, 1.3)
    spectrum = np.fft.rfft(clip)
    spectrum *= np.exp(-np.linspace(0, rng.uniform(0, 2), len(spectrum)))
    clip = np.fft.irfft(spectrum, RATE)
    return (clip + rng.normal(0, 0.02, RATE)).astype("float32")


class Loader:
    """Keeps `ahead` batches in work on `threads` threads."""

    def __init__(self, data, labels, batch, threads, ahead):
        self.data, self.labels, self.batch, self.ahead = data, labels, batch, ahead
        self.pool = concurrent.futures.ThreadPoolExecutor(threads)
        self.rng = np.random.default_rng(0)

    def make(self, seed):
        rng = np.random.default_rng(seed)
        picked = rng.integers(0, len(self.data), self.batch)
        return np.stack([augment(self.data[i], rng) for i in picked]), self.labels[picked]

    def batches(self, count):
        waiting = collections.deque()
        for number in range(count + self.ahead):
            if number < count:
                waiting.append(self.pool.submit(self.make, int(self.rng.integers(1 << 31))))
            if number >= self.ahead:
                yield waiting.popleft().result()


def spectrograms(audio):
    frames = tf.abs(tf.signal.stft(audio, 256, 128, 256))
    return tf.math.log(frames[..., None] + 1e-3)


def main():
    tf.config.threading.set_intra_op_parallelism_threads(32)
    tf.keras.utils.set_random_seed(48)
    data, labels = clips(1500, 48)
    model = tf.keras.Sequential([
        tf.keras.layers.Input((61, 129, 1)),
        tf.keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
        tf.keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(CLASSES),
    ])
    optimizer = tf.keras.optimizers.Adam(1e-3)
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(audio, label):
        with tf.GradientTape() as tape:
            loss = loss_fn(label, model(spectrograms(audio), training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    loader = Loader(data, labels, 32, threads=32, ahead=64)
    steps = 250
    for audio, label in loader.batches(3):
        train_step(audio, label)
    start = time.perf_counter()
    for audio, label in loader.batches(steps):
        loss = train_step(tf.constant(audio), tf.constant(label))
    seconds = time.perf_counter() - start
    print(f"loss {float(loss):.3f}")
    print(json.dumps({"samples": steps * 32, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()

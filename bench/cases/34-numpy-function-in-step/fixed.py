"""Keyword spotting on spectrograms, with random bands of time and frequency masked in each training step."""
import json
import time

import numpy as np
import tensorflow as tf

FRAMES, BANDS, WORDS = 96, 40, 12


def recordings(count, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, WORDS, count)
    centre = 3 * labels[:, None, None] + np.sin(np.linspace(0, 6, FRAMES))[None, :, None]
    band = np.arange(BANDS)[None, None]
    sound = np.exp(-((band - centre) ** 2) / 6) + rng.normal(0, 0.2, (count, FRAMES, BANDS))
    return sound.astype("float32"), labels.astype("int32")


def bands(size, count, widest, rows):
    """1 where no band of that axis is masked. Shape: (rows, size)."""
    first = tf.random.uniform((rows, count, 1), 0, size - widest, tf.int32)
    width = tf.random.uniform((rows, count, 1), 1, widest, tf.int32)
    at = tf.range(size)[None, None]
    return 1.0 - tf.reduce_max(tf.cast((at >= first) & (at < first + width), tf.float32), 1)


def mask_bands(batch):
    """Sets some bands of each spectrogram to zero."""
    rows = tf.shape(batch)[0]
    return batch * bands(FRAMES, 12, 8, rows)[:, :, None] * bands(BANDS, 12, 4, rows)[:, None]


class Spotter(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.first = tf.keras.layers.Conv1D(48, 5, strides=2, activation="relu")
        self.second = tf.keras.layers.Conv1D(64, 5, strides=2, activation="relu")
        self.pool = tf.keras.layers.GlobalMaxPooling1D()
        self.out = tf.keras.layers.Dense(WORDS)

    def call(self, sound):
        return self.out(self.pool(self.second(self.first(sound))))


def main():
    tf.keras.utils.set_random_seed(34)
    sounds, labels = recordings(2560, 34)
    dataset = tf.data.Dataset.from_tensor_slices((sounds, labels)).shuffle(2560, seed=1).batch(64).repeat().prefetch(2)
    model = Spotter()
    optimizer = tf.keras.optimizers.Adam(1e-3)

    @tf.function
    def train_step(sound, label):
        masked = mask_bands(sound)
        with tf.GradientTape() as tape:
            logits = model(masked)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(label, logits))
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
    print(json.dumps({"samples": steps * 64, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()

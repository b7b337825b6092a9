"""Keyword spotting on log-mel frames: dilated temporal convolutions in a custom training loop."""
import json
import time

import numpy as np
import tensorflow as tf

CLIPS = 4096
FRAMES = 98
MELS = 40
KEYWORDS = 12
BATCH = 128
EPOCHS = 7
TEST_CLIPS = 512


def synthesise(count, seed):
    """Log-mel pictures of keywords: two gliding formants per word, random onset and loudness."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(KEYWORDS, size=count).astype(np.int32)
    words = np.random.default_rng(99).uniform(4, MELS - 4, (KEYWORDS, 2, 2)).astype(np.float32)
    time_axis = np.linspace(0, 1, FRAMES, dtype=np.float32)
    mel_axis = np.arange(MELS, dtype=np.float32)
    onset = rng.uniform(0.0, 0.3, (count, 1)).astype(np.float32)
    progress = np.clip((time_axis - onset) / 0.6, 0, 1)
    clips = 0.6 * rng.standard_normal((count, FRAMES, MELS), dtype=np.float32)
    for formant in range(2):
        start, stop = words[labels, formant, 0][:, None], words[labels, formant, 1][:, None]
        centre = start + (stop - start) * progress
        clips += np.exp(-((mel_axis - centre[:, :, None]) ** 2) / 4.0)
    return clips, labels


class ResidualBlock(tf.keras.layers.Layer):
    def __init__(self, width, dilation):
        super().__init__()
        self.conv = tf.keras.layers.Conv1D(width, 5, dilation_rate=dilation, padding="same", activation="relu")
        self.mix = tf.keras.layers.Conv1D(width, 1)

    def call(self, x):
        return tf.nn.relu(x + self.mix(self.conv(x)))


def build_model(width=96):
    return tf.keras.Sequential([
        tf.keras.Input((FRAMES, MELS)),
        tf.keras.layers.Conv1D(width, 5, strides=2, padding="same", activation="relu"),
        ResidualBlock(width, 1),
        ResidualBlock(width, 2),
        ResidualBlock(width, 4),
        tf.keras.layers.GlobalAveragePooling1D(),
        tf.keras.layers.Dense(KEYWORDS),
    ])


class Trainer:
    def __init__(self, model, clips, labels):
        self.model = model
        self.clips, self.labels = tf.constant(clips), tf.constant(labels)
        self.optimizer = tf.keras.optimizers.Adam(1e-3)
        self.loss_sum = tf.Variable(0.0)

    @tf.function(input_signature=[tf.TensorSpec([BATCH], tf.int64)])
    def train_step(self, rows):
        clips, labels = tf.gather(self.clips, rows), tf.gather(self.labels, rows)
        with tf.GradientTape() as tape:
            logits = self.model(clips, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        self.loss_sum.assign_add(loss)

    def epoch(self, rows):
        self.loss_sum.assign(0.0)
        steps = 0
        for batch in rows:
            self.train_step(batch)
            steps += 1
        return float(self.loss_sum) / steps


@tf.function
def count_correct(model, clips, labels):
    guesses = tf.argmax(model(clips, training=False), axis=1, output_type=tf.int32)
    return tf.reduce_sum(tf.cast(guesses == labels, tf.int32))


def accuracy(model, clips, labels):
    correct = 0
    for i in range(0, len(clips), 256):
        correct += int(count_correct(model, clips[i : i + 256], labels[i : i + 256]))
    return correct / len(clips)


def main():
    tf.keras.utils.set_random_seed(6)
    clips, labels = synthesise(CLIPS, seed=1)
    test_clips, test_labels = map(tf.constant, synthesise(TEST_CLIPS, seed=2))
    model = build_model()
    trainer = Trainer(model, clips, labels)
    rows = tf.data.Dataset.range(CLIPS).shuffle(CLIPS, seed=3).batch(BATCH, drop_remainder=True).prefetch(2)

    trainer.epoch(rows.take(3))
    accuracy(model, test_clips, test_labels)
    started = time.perf_counter()
    for epoch in range(EPOCHS):
        loss = trainer.epoch(rows)
        print(f"epoch {epoch}  loss {loss:.4f}  test accuracy {accuracy(model, test_clips, test_labels):.3f}")
    seconds = time.perf_counter() - started
    print(json.dumps({"samples": EPOCHS * (CLIPS // BATCH) * BATCH, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()

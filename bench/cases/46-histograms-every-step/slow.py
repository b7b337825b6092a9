"""Language identification from character n-grams; a custom loop with TensorBoard monitoring."""
import json
import os
import string
import tempfile
import time

import numpy as np
import tensorflow as tf

BUCKETS = 4096
LETTERS = np.array(list(string.ascii_lowercase + " "))


def sentences(count, languages, seed):
    """Each language has its own letter frequencies."""
    rng = np.random.default_rng(seed)
    tables = rng.dirichlet(np.full(len(LETTERS), 0.7), languages)
    labels = rng.integers(0, languages, count)
    texts = ["".join(rng.choice(LETTERS, 60, p=tables[label])) for label in labels]
    return texts, labels.astype("int32")


def hashed_trigrams(text):
    grams = tf.strings.ngrams(tf.strings.unicode_split(text, "UTF-8"), 3, separator="")
    ids = tf.strings.to_hash_bucket_fast(grams, BUCKETS)
    return ids.to_tensor(0)


class Identifier(tf.keras.Model):
    def __init__(self, languages):
        super().__init__()
        self.embedding = tf.keras.layers.Embedding(BUCKETS, 64)
        self.hidden = [tf.keras.layers.Dense(256, activation="relu") for _ in range(3)]
        self.out = tf.keras.layers.Dense(languages)

    def call(self, ids):
        h = tf.reduce_mean(self.embedding(ids), 1)
        for layer in self.hidden:
            h = layer(h)
        return self.out(h)


class Monitor:
    def __init__(self, folder, model):
        self.writer = tf.summary.create_file_writer(folder)
        self.model = model

    def log(self, step, loss, gradients):
        with self.writer.as_default(step=step):
            tf.summary.scalar("loss", loss)
            for weight, gradient in zip(self.model.trainable_variables, gradients):
                tf.summary.histogram(f"weights/{weight.name}", weight)
                tf.summary.histogram(f"gradients/{weight.name}", tf.convert_to_tensor(gradient))


def main():
    tf.keras.utils.set_random_seed(46)
    texts, labels = sentences(4000, 12, 46)
    dataset = tf.data.Dataset.from_tensor_slices((texts, labels)).shuffle(4000, seed=1).batch(128, drop_remainder=True)
    dataset = dataset.map(lambda t, y: (hashed_trigrams(t), y)).cache().repeat().prefetch(2)
    model = Identifier(12)
    optimizer = tf.keras.optimizers.Adam(1e-3)
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function(reduce_retracing=True)
    def train_step(ids, labels):
        with tf.GradientTape() as tape:
            loss = loss_fn(labels, model(ids))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss, gradients

    steps = 60
    with tempfile.TemporaryDirectory() as folder:
        batches = iter(dataset)
        for _ in range(2):
            loss, gradients = train_step(*next(batches))
        monitor = Monitor(os.path.join(folder, "run-1"), model)
        monitor.log(0, loss, gradients)
        start = time.perf_counter()
        for step in range(1, steps + 1):
            loss, gradients = train_step(*next(batches))
            monitor.log(step, loss, gradients)
        monitor.writer.flush()
        seconds = time.perf_counter() - start
    print(f"loss {float(loss):.3f}")
    print(json.dumps({"samples": steps * 128, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()

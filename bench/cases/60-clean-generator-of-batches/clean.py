"""Next-word model; a generator cuts ready batches out of one long array of ids."""
import json
import time

import numpy as np
import tensorflow as tf

VOCABULARY, LENGTH, BATCH = 3000, 48, 64


def corpus(words, seed):
    """A Markov chain over the vocabulary: each word has eight followers."""
    rng = np.random.default_rng(seed)
    followers = rng.integers(0, VOCABULARY, (VOCABULARY, 8))
    choice = rng.integers(0, 8, words)
    ids = np.zeros(words, "int32")
    for i in range(1, words):
        ids[i] = followers[ids[i - 1], choice[i]]
    return ids


def batches(ids, count, seed):
    rng = np.random.default_rng(seed)
    window = np.arange(LENGTH + 1)
    for _ in range(count):
        block = ids[rng.integers(0, len(ids) - LENGTH - 1, (BATCH, 1)) + window]
        yield block[:, :-1], block[:, 1:]


class Block(tf.keras.layers.Layer):
    """Causal attention and a feed-forward layer."""

    def __init__(self, width):
        super().__init__()
        self.attention = tf.keras.layers.MultiHeadAttention(4, width // 4)
        self.norms = [tf.keras.layers.LayerNormalization() for _ in range(2)]
        self.wide = tf.keras.layers.Dense(4 * width, activation="gelu")
        self.back = tf.keras.layers.Dense(width)

    def call(self, x):
        h = self.norms[0](x)
        x = x + self.attention(h, h, use_causal_mask=True)
        return x + self.back(self.wide(self.norms[1](x)))


def language_model(width, depth):
    ids = tf.keras.Input((LENGTH,), dtype="int32")
    x = tf.keras.layers.Embedding(VOCABULARY, width)(ids)
    for _ in range(depth):
        x = Block(width)(x)
    model = tf.keras.Model(ids, tf.keras.layers.Dense(VOCABULARY)(x))
    model.compile(tf.keras.optimizers.Adam(1e-3), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def main():
    tf.keras.utils.set_random_seed(60)
    ids = corpus(200_000, 60)
    spec = (tf.TensorSpec((BATCH, LENGTH), tf.int32),) * 2
    steps = 16
    dataset = tf.data.Dataset.from_generator(lambda: batches(ids, steps, 1), output_signature=spec).prefetch(2)
    model = language_model(96, 2)
    model.fit(dataset.take(2), verbose=0)
    epochs = 3
    start = time.perf_counter()
    model.fit(dataset, epochs=epochs, verbose=2)
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": epochs * steps * BATCH, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()

"""Sentence encoder of a search index, compiled with XLA; batches are padded to their longest sentence."""
import json
import time

import numpy as np
import tensorflow as tf

WORDS, WIDTH, BATCH = 5000, 128, 32


def encoder():
    table = tf.Variable(tf.random.normal((WORDS, WIDTH)))
    weights = [tf.Variable(tf.random.normal((WIDTH, WIDTH)) * 0.1) for _ in range(4)]

    @tf.function(jit_compile=True, reduce_retracing=True)
    def encode(ids):
        hidden = tf.gather(table, ids)
        for weight in weights:
            hidden = tf.nn.relu(tf.matmul(hidden, weight))
        return tf.reduce_mean(hidden, 1)

    return encode


def batches(rng, count):
    for _ in range(count):
        sentences = [rng.integers(1, WORDS, n) for n in rng.integers(8, rng.integers(30, 230), BATCH)]
        longest = max(map(len, sentences))
        batch = np.zeros((BATCH, longest), "int32")
        for row, sentence in zip(batch, sentences):
            row[: len(sentence)] = sentence
        yield batch


def main(count=150):
    tf.random.set_seed(27)
    rng = np.random.default_rng(27)
    encode = encoder()
    for batch in batches(rng, 12):
        encode(batch)
    vectors = []
    start = time.perf_counter()
    for batch in batches(rng, count):
        vectors.append(encode(batch).numpy())
    spent = time.perf_counter() - start
    print(f"{len(vectors)} batches, mean {float(np.mean(vectors[-1])):.3f}")
    print(json.dumps({"samples": count * BATCH, "seconds": round(spent, 3)}))


if __name__ == "__main__":
    main()

"""Nightly scoring: every product description gets a vector, in one call of predict."""
import json
import time

import numpy as np
import tensorflow as tf

WORDS, LENGTH = 6000, 32


def encoder():
    words = tf.keras.Input((LENGTH,), dtype="int32")
    hidden = tf.keras.layers.Embedding(WORDS, 48)(words)
    hidden = tf.keras.layers.Conv1D(48, 3, activation="relu")(hidden)
    hidden = tf.keras.layers.GlobalAveragePooling1D()(hidden)
    return tf.keras.Model(words, tf.keras.layers.Dense(32)(hidden))


def main(count=8000):
    descriptions = np.random.default_rng(22).integers(0, WORDS, (count, LENGTH)).astype("int32")
    model = encoder()
    model.predict(descriptions[:64], batch_size=32, verbose=0)
    start = time.perf_counter()
    vectors = model.predict(descriptions, batch_size=1, verbose=0)
    spent = time.perf_counter() - start
    print(vectors.shape, float(np.abs(vectors).mean()))
    print(json.dumps({"samples": count, "seconds": round(spent, 3)}))


if __name__ == "__main__":
    main()

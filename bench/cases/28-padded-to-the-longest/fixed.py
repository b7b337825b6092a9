"""Review classifier: reviews of a few dozen words, all padded to the longest that there can be."""
import json
import time

import numpy as np
import tensorflow as tf

WORDS, LONGEST, BATCH = 8000, 400, 32


def reviews(count=8000):
    rng = np.random.default_rng(28)
    lengths = np.clip(rng.lognormal(3.3, 0.5, count).astype(int), 5, LONGEST)
    return [rng.integers(1, WORDS, n).astype("int32") for n in lengths], rng.integers(0, 2, count)


def batches(texts, labels):
    ragged = tf.data.Dataset.from_tensor_slices((tf.ragged.constant(texts, dtype=tf.int32), labels))
    data = ragged.map(lambda text, label: (tf.ensure_shape(text, [None]), label)).cache().shuffle(8000).repeat()
    lengths = [16, 32, 64, 128]
    data = data.bucket_by_sequence_length(lambda text, _: tf.shape(text)[0], [n + 1 for n in lengths], [BATCH] * 5,
                                          drop_remainder=True)
    return data.prefetch(4)


def main(steps=900):
    words = tf.keras.Input((None,), dtype="int32")
    hidden = tf.keras.layers.Embedding(WORDS, 64, mask_zero=True)(words)
    model = tf.keras.Model(words, tf.keras.layers.Dense(1)(tf.keras.layers.LSTM(64)(hidden)))
    model.compile("sgd", tf.keras.losses.BinaryCrossentropy(from_logits=True))
    data = batches(*reviews())
    model.fit(data, steps_per_epoch=40, verbose=0)
    start = time.perf_counter()
    model.fit(data, steps_per_epoch=steps, epochs=1, verbose=2)
    spent = time.perf_counter() - start
    print(json.dumps({"samples": steps * BATCH, "seconds": round(spent, 3)}))


if __name__ == "__main__":
    main()

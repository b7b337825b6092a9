"""Ranks articles for readers, while a process keeps the word counts of the day's feed for the editors' page."""
import collections
import json
import multiprocessing
import random
import time

import numpy as np

FEATURES, BATCH = 96, 128


def feed(count):
    rng = random.Random(39)
    words = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(3000)]
    return [" ".join(rng.choices(words, k=40)) for _ in range(count)]


def count_words(lines):
    counts = collections.Counter()
    while True:
        for line in lines:
            for word in line.title().split():
                counts[word.lower()] = counts.get(word.lower(), 0) + 1
        counts = collections.Counter(dict(counts.most_common(500)))


def ranker():
    model = tf.keras.Sequential([
        tf.keras.layers.Input((FEATURES,)),
        tf.keras.layers.Dense(128, activation="relu"),
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(1),
    ])
    model.compile("adam", tf.keras.losses.BinaryCrossentropy(from_logits=True))
    return model


def main():
    tf.keras.utils.set_random_seed(39)
    rng = np.random.default_rng(39)
    readers = rng.normal(size=(300 * BATCH, FEATURES)).astype("float32")
    clicked = (readers[:, :8].sum(1) > 0).astype("float32")
    model = ranker()
    counting = multiprocessing.get_context("spawn").Process(target=count_words, args=(feed(5000),), daemon=True)
    counting.start()
    model.fit(readers, clicked, batch_size=BATCH, epochs=1, verbose=0)
    start = time.perf_counter()
    epochs = 6
    history = model.fit(readers, clicked, batch_size=BATCH, epochs=epochs, verbose=0)
    seconds = time.perf_counter() - start
    print(f"loss {history.history['loss'][-1]:.3f}")
    print(json.dumps({"samples": epochs * len(readers), "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    import tensorflow as tf  # not in the process that counts

    main()

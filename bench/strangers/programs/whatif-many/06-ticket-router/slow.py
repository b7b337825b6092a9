"""Ticket router: assigns support tickets to a queue from hashed word and bigram ids."""
import json
import re
import time
import zlib

import keras
import numpy as np
import tensorflow as tf

QUEUES = ["billing", "network", "device", "roaming", "contract", "other"]
BUCKETS = 180_000
DIM = 48
MAX_LEN = 64
BATCH = 64
TICKETS = 3000
EPOCHS = 16
WORD = re.compile(r"[a-z0-9']+")
STOP = {"the", "a", "an", "and", "or", "to", "of", "is", "was", "it"}


def invent_vocabulary(rng, n=6000):
    syllables = ["ka", "lo", "mi", "ter", "sun", "ver", "pol", "ri", "den", "gas", "ur", "ex"]
    return ["".join(rng.choice(syllables, rng.integers(2, 5))) for _ in range(n)]


def make_tickets(seed=8):
    rng = np.random.default_rng(seed)
    vocab = invent_vocabulary(rng)
    topic_words = [rng.choice(len(vocab), 150, replace=False) for _ in QUEUES]
    texts, labels = [], []
    for _ in range(TICKETS):
        label = int(rng.integers(0, len(QUEUES)))
        n = int(rng.integers(150, 350))
        ids = np.where(rng.random(n) < 0.3, rng.choice(topic_words[label], n), rng.integers(0, len(vocab), n))
        words = [vocab[i] for i in ids]
        words[::9] = ["The"] * len(words[::9])
        texts.append(" ".join(words).capitalize() + ".")
        labels.append(label)
    return texts, np.array(labels, "int32")


def stem(word):
    for suffix in ("ing", "ed", "es", "er", "s"):
        if word.endswith(suffix) and len(word) > len(suffix) + 3:
            return word[: -len(suffix)]
    return word


def bucket(token):
    return zlib.crc32(token.encode()) % (BUCKETS - 1) + 1


def encode_ticket(raw):
    words = [stem(w) for w in WORD.findall(raw.decode().lower()) if w not in STOP]
    grams = ["_".join(p) for p in zip(words, words[1:])]
    ids = [bucket(t) for pair in zip(words, grams) for t in pair][:MAX_LEN]
    out = np.zeros(MAX_LEN, "int32")
    out[: len(ids)] = ids
    return out


def tokenize(text, label):
    ids = tf.numpy_function(encode_ticket, [text], tf.int32, stateful=False)
    ids.set_shape((MAX_LEN,))
    return ids, label


def make_dataset(texts, labels):
    ds = tf.data.Dataset.from_tensor_slices((texts, labels))
    ds = ds.map(tokenize, num_parallel_calls=tf.data.AUTOTUNE)
    ds = ds.shuffle(2000, seed=6)
    return ds.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def build_model():
    ids = keras.Input((MAX_LEN,), dtype="int32")
    x = keras.layers.Embedding(BUCKETS, DIM)(ids)
    x = keras.layers.GlobalAveragePooling1D()(x)
    x = keras.layers.Dense(64, activation="relu")(x)
    return keras.Model(ids, keras.layers.Dense(len(QUEUES), activation="softmax")(x))


class SteadyTime(keras.callbacks.Callback):
    def __init__(self, skip_epochs=1):
        super().__init__()
        self.skip = skip_epochs
        self.samples = 0

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == self.skip:
            self.begin = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        if epoch >= self.skip:
            self.samples += TICKETS // BATCH * BATCH
            self.end = time.perf_counter()


def main():
    keras.utils.set_random_seed(2)
    texts, labels = make_tickets()
    model = build_model()
    model.compile(
        optimizer=keras.optimizers.SGD(8.0),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    clock = SteadyTime()
    hist = model.fit(make_dataset(texts, labels), epochs=EPOCHS, callbacks=[clock], verbose=0)
    print("accuracy", [round(a, 3) for a in hist.history["accuracy"]])
    print(json.dumps({"samples": clock.samples, "seconds": round(clock.end - clock.begin, 3)}))


if __name__ == "__main__":
    main()

# Language identification by hashed character n-grams.
import json
import random
import time
import zlib

import numpy as np
import tensorflow as tf
from tensorflow import keras

BUCKETS = 1024
ALPHABETS = ["etaoinshrdlu ", "enisratdhulcg ", "eaosrnidlctu ", "aionetsrkvlm "]


def corpus(size, seed=0):
    rnd = random.Random(seed)
    docs = []
    for _ in range(size):
        language = rnd.randrange(len(ALPHABETS))
        letters = ALPHABETS[language]
        docs.append(("".join(rnd.choice(letters) for _ in range(rnd.randint(150, 260))), language))
    return docs


def ngrams(text, low=2, high=4):
    for n in range(low, high + 1):
        for i in range(len(text) - n + 1):
            yield text[i:i + n]


def featurize(text):
    row = np.zeros(BUCKETS, "float32")
    for gram in ngrams(text):
        row[zlib.crc32(gram.encode()) % BUCKETS] += 1.0
    return row / max(1.0, np.linalg.norm(row))


def make_iterator(docs, batch):
    rows = np.stack([featurize(text) for text, _ in docs])
    languages = np.array([language for _, language in docs], "int32")
    dataset = tf.data.Dataset.from_tensor_slices((rows, languages)).repeat()
    return iter(dataset.batch(batch).prefetch(2))


model = keras.Sequential([keras.layers.Input((BUCKETS,)), keras.layers.Dense(128, activation="relu"),
                          keras.layers.Dense(len(ALPHABETS))])
optimizer = keras.optimizers.Adam(1e-3)
crossentropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = crossentropy(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


def main():
    steps, batch = 4800, 64
    keras.utils.set_random_seed(1)
    docs = corpus(2400)
    iterator = make_iterator(docs, batch)
    train_step(*next(iterator))
    began = time.perf_counter()
    for step in range(steps):
        x, y = next(iterator)
        loss = train_step(x, y)
        if step % 600 == 599:
            print("step", step + 1, "loss", round(float(loss), 4))
    took = time.perf_counter() - began
    print(json.dumps({"samples": steps * batch, "seconds": round(took, 3)}))


if __name__ == "__main__":
    main()

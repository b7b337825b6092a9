"""Product-review rating model with text preprocessing in Keras 3 on TensorFlow."""
import json
import os
import tempfile
import time

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import pandas as pd
import tensorflow as tf
from keras import layers

tf.config.threading.set_intra_op_parallelism_threads(2)
tf.config.threading.set_inter_op_parallelism_threads(2)

SEED = 8
REVIEWS = 8000
WORDS = 5000
LENGTH = 48
BATCH = 64
EPOCHS = 2
SYLLABLES = ["ba", "cor", "di", "el", "fun", "gra", "hi", "jo", "kel", "lum",
             "mar", "no", "ost", "pri", "qua", "ran", "sil", "tor", "um", "ves"]


def make_vocabulary(rng, n):
    words = set()
    while len(words) < n:
        words.add("".join(rng.choice(SYLLABLES, size=rng.integers(2, 5))))
    return np.array(sorted(words))


def write_reviews(path, rng):
    """CSV with a review text, a price, an age in days and a rating of 0 to 4."""
    vocabulary = make_vocabulary(rng, WORDS)
    mood = rng.integers(0, 5, size=WORDS)
    weight = 1.0 / np.arange(1, WORDS + 1) ** 0.8
    weight /= weight.sum()
    rows = []
    for _ in range(REVIEWS):
        rating = int(rng.integers(0, 5))
        ids = rng.choice(WORDS, size=rng.integers(10, 60), p=weight)
        ids = ids[(mood[ids] == rating) | (rng.random(len(ids)) < 0.6)]
        text = " ".join(vocabulary[ids]).capitalize() + "!"
        rows.append((text, float(rng.lognormal(3, 1)), int(rng.integers(0, 900)), rating))
    pd.DataFrame(rows, columns=["text", "price", "age", "rating"]).to_csv(path, index=False)


def load_table(path):
    table = pd.read_csv(path)
    table["text"] = table["text"].fillna("")
    numbers = table[["price", "age"]].to_numpy("float32")
    numbers[:, 0] = np.log1p(numbers[:, 0])
    return table["text"].to_numpy(str), numbers, table["rating"].to_numpy("int32")


def make_dataset(text, numbers, rating):
    features = {"text": text, "numbers": numbers}
    return tf.data.Dataset.from_tensor_slices((features, rating))


def fit_preprocessing(train):
    vectorize = layers.TextVectorization(max_tokens=WORDS, output_sequence_length=LENGTH)
    vectorize.adapt(train.map(lambda f, y: f["text"]).batch(1024))
    normalize = layers.Normalization()
    normalize.adapt(np.stack([f["numbers"] for f, _ in train.take(512).as_numpy_iterator()]))
    return vectorize, normalize


def training_input(train, vectorize):
    def encode(features, rating):
        return {"tokens": vectorize(features["text"]), "numbers": features["numbers"]}, rating

    train = train.shuffle(REVIEWS, seed=SEED).batch(BATCH, drop_remainder=True)
    return train.map(encode, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def build_model(normalize, width=64):
    tokens = keras.Input((LENGTH,), dtype="int64", name="tokens")
    numbers = keras.Input((2,), name="numbers")
    x = layers.Embedding(WORDS, width)(tokens)
    x = layers.Conv1D(width, 3, padding="same", activation="relu")(x)
    x = layers.GlobalMaxPooling1D()(x)
    x = layers.Concatenate()([x, normalize(numbers)])
    x = layers.Dense(width, activation="relu")(x)
    x = layers.Dropout(0.2)(x)
    return keras.Model({"tokens": tokens, "numbers": numbers}, layers.Dense(5)(x))


def main():
    begin = time.perf_counter()
    keras.utils.set_random_seed(SEED)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "reviews.csv")
        write_reviews(path, np.random.default_rng(SEED))
        text, numbers, rating = load_table(path)

        run_start = time.perf_counter()
        train = make_dataset(text, numbers, rating)
        vectorize, normalize = fit_preprocessing(train)
        print(f"vocabulary: {vectorize.vocabulary_size()} words")

        model = build_model(normalize)
        model.compile(
            optimizer=keras.optimizers.Adam(1e-3),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )
        model.fit(training_input(train, vectorize), epochs=EPOCHS, verbose=2,
                  callbacks=[keras.callbacks.ModelCheckpoint(
                      os.path.join(folder, "best.keras"), monitor="loss",
                      save_best_only=True)])
    seconds = time.perf_counter() - run_start
    print(json.dumps({"units": 1, "seconds": round(seconds, 3),
                      "wall": round(time.perf_counter() - begin, 3)}))


if __name__ == "__main__":
    main()

"""Next-word model for song lyrics: 40 words of context, one word to guess."""
import json
import time

import keras
import numpy as np
import tensorflow as tf
from keras import layers

VOCAB = 1500
CONTEXT = 40
UNITS = 96
BATCH = 128
WORDS = 10000
EPOCHS = 3


def write_corpus(words=WORDS, seed=2):
    """A walk over a sparse word graph with refrains that come back."""
    rng = np.random.default_rng(seed)
    successors = rng.integers(1, VOCAB, size=(VOCAB, 6))
    refrains = [rng.integers(1, VOCAB, size=12) for _ in range(30)]
    text, word = [], 1
    while len(text) < words:
        if rng.random() < 0.01:
            text.extend(refrains[int(rng.integers(30))])
            word = int(text[-1])
        word = int(successors[word, min(int(rng.geometric(0.5)) - 1, 5)])
        text.append(word)
    return np.array(text[:words], np.int32)


def make_dataset(corpus, shuffle=True):
    corpus = tf.constant(corpus)
    span = tf.range(CONTEXT + 1, dtype=tf.int64)

    def cut_windows(starts):
        words = tf.gather(corpus, starts[:, None] + span[None, :])
        return words[:, :-1], words[:, -1]

    ds = tf.data.Dataset.range(corpus.shape[0] - CONTEXT)
    if shuffle:
        ds = ds.shuffle(4000, seed=1)
    return ds.batch(BATCH, drop_remainder=True).map(cut_windows).prefetch(2)


def build_model():
    words = keras.Input((CONTEXT,), dtype="int32")
    x = layers.Embedding(VOCAB, UNITS)(words)
    x = layers.GRU(UNITS)(x)
    x = layers.LayerNormalization()(x)
    x = layers.Dense(UNITS, activation="gelu")(x)
    logits = layers.Dense(VOCAB)(x)
    model = keras.Model(words, logits)
    model.compile(
        optimizer=keras.optimizers.Adam(2e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[keras.metrics.SparseTopKCategoricalAccuracy(5, name="top5")],
    )
    return model


class Stopwatch(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.started = time.perf_counter()

    def on_train_end(self, logs=None):
        self.seconds = time.perf_counter() - self.started


def continue_song(model, corpus, length=12):
    context = corpus[-CONTEXT:].copy()
    song = []
    for _ in range(length):
        logits = model(context[None], training=False)
        word = int(tf.argmax(logits[0]))
        song.append(word)
        context = np.append(context[1:], np.int32(word))
    return song


def main():
    keras.utils.set_random_seed(0)
    corpus = write_corpus()
    cut = int(len(corpus) * 0.9)
    train_ds = make_dataset(corpus[:cut])
    valid_ds = make_dataset(corpus[cut:], shuffle=False)
    model = build_model()
    model.fit(train_ds.take(10), validation_data=valid_ds.take(2), verbose=0)

    watch = Stopwatch()
    history = model.fit(train_ds, validation_data=valid_ds, epochs=EPOCHS, callbacks=[watch], verbose=2)
    print("top5", round(history.history["val_top5"][-1], 3), "song", continue_song(model, corpus))
    steps = (cut - CONTEXT) // BATCH
    print(json.dumps({"samples": EPOCHS * steps * BATCH, "seconds": round(watch.seconds, 3)}))


if __name__ == "__main__":
    main()

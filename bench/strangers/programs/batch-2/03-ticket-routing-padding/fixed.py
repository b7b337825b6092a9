"""Routes support tickets to one of 24 queues: a small convolutional text model on token ids."""
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

VOCAB = 6000
QUEUES = 24
TICKETS = 32 * 20
BATCH = 32
MAX_TOKENS = 120
EPOCHS = 10


def make_corpus(seed=2):
    """Token ids as one flat array with row splits, as the tokeniser job stores them."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, QUEUES, TICKETS).astype(np.int32)
    lengths = np.clip(rng.lognormal(4.0, 0.45, TICKETS), 8, MAX_TOKENS).astype(np.int64)
    rows = []
    for label, length in zip(labels, lengths):
        common = rng.zipf(1.4, length) % (VOCAB // 2) + 1
        topical = VOCAB // 2 + label * 100 + rng.integers(0, 100, length)
        rows.append(np.where(rng.random(length) < 0.25, topical, common))
    splits = np.concatenate([[0], np.cumsum(lengths)])
    return np.concatenate(rows).astype(np.int32), splits, labels


def make_dataset(tokens, splits, labels):
    ragged = tf.RaggedTensor.from_row_splits(tokens, splits)
    ds = tf.data.Dataset.from_tensor_slices((ragged, labels))
    ds = ds.shuffle(TICKETS, seed=4).batch(BATCH, drop_remainder=True)
    return ds.map(lambda text, label: (text.to_tensor(), label)).prefetch(tf.data.AUTOTUNE)


def conv_block(x, filters, width):
    skip = keras.layers.Conv1D(filters, 1, use_bias=False)(x)
    x = keras.layers.Conv1D(filters, width, padding="same")(x)
    x = keras.layers.Activation("relu")(x)
    return keras.layers.Add()([x, skip])


def build_model():
    text = keras.Input((None,), dtype="int32", name="tokens")
    x = keras.layers.Embedding(VOCAB, 64)(text)
    x = conv_block(x, 128, 5)
    pooled = keras.layers.GlobalMaxPooling1D()(x)
    x = keras.layers.Dense(96, activation="relu")(pooled)
    x = keras.layers.Dropout(0.2)(x)
    return keras.Model(text, keras.layers.Dense(QUEUES)(x), name="ticket_router")


def compile_model(model):
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=False,
    )
    return model


def train(model, dataset, log_path):
    callbacks = [
        keras.callbacks.CSVLogger(log_path),
        keras.callbacks.ReduceLROnPlateau(monitor="loss", patience=2),
    ]
    begin = time.perf_counter()
    history = model.fit(dataset, epochs=EPOCHS, verbose=0, callbacks=callbacks)
    return history, time.perf_counter() - begin


def main():
    keras.utils.set_random_seed(0)
    dataset = make_dataset(*make_corpus())
    model = compile_model(build_model())
    model.fit(dataset.take(2), verbose=0)

    with tempfile.TemporaryDirectory() as work:
        history, seconds = train(model, dataset, os.path.join(work, "log.csv"))
    print("loss", [round(v, 3) for v in history.history["loss"]], "accuracy", round(history.history["accuracy"][-1], 3))
    print(json.dumps({"samples": EPOCHS * TICKETS, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()

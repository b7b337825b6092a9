"""Intent classifier for short support messages, Keras 3 on TensorFlow."""
import json
import os
import time

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from keras import layers

tf.config.threading.set_intra_op_parallelism_threads(2)
tf.config.threading.set_inter_op_parallelism_threads(2)

VOCAB = 4000
CLASSES = 12
BATCH = 32
EPOCHS = 3
MESSAGES = 1280
SEED = 11


def make_messages(n, rng):
    """Token ids with a topic per class and a log-normal length."""
    lengths = np.clip(rng.lognormal(3.6, 0.55, size=n).astype(int), 6, 176)
    labels = rng.integers(0, CLASSES, size=n)
    topics = rng.integers(1, VOCAB, size=(CLASSES, 80))
    texts = []
    for length, label in zip(lengths, labels):
        common = rng.integers(1, VOCAB, size=length)
        topical = topics[label][rng.integers(0, 80, size=length)]
        mask = rng.random(length) < 0.3
        texts.append(np.where(mask, topical, common).astype("int32"))
    return texts, labels.astype("int32")


def round_up(tokens, multiple=8):
    return tf.pad(tokens, [[0, -tf.size(tokens) % multiple]])


def train_pipeline(texts, labels):
    tokens = tf.ragged.constant([t.tolist() for t in texts], dtype=tf.int32)
    ds = tf.data.Dataset.from_tensor_slices((tokens, labels))
    ds = ds.map(lambda t, y: (round_up(tf.convert_to_tensor(t)), y),
                num_parallel_calls=tf.data.AUTOTUNE)
    ds = ds.cache()
    ds = ds.shuffle(len(texts), seed=SEED)
    ds = ds.padded_batch(BATCH, padded_shapes=([None], []), drop_remainder=True)
    return ds.prefetch(tf.data.AUTOTUNE)


def encoder_block(x, mask, width, heads):
    h = layers.LayerNormalization()(x)
    h = layers.MultiHeadAttention(heads, width // heads)(h, h, attention_mask=mask)
    x = layers.Add()([x, h])
    h = layers.LayerNormalization()(x)
    h = layers.Dense(width * 4, activation="gelu")(h)
    h = layers.Dense(width)(h)
    return layers.Add()([x, h])


def build_model(width=64, heads=4, depth=1):
    ids = keras.Input((None,), dtype="int32")
    keep = keras.ops.not_equal(ids, 0)
    attn = keras.ops.expand_dims(keep, 1)
    x = layers.Embedding(VOCAB, width)(ids)
    for _ in range(depth):
        x = encoder_block(x, attn, width, heads)
    x = layers.GlobalAveragePooling1D()(x, mask=keep)
    x = layers.Dropout(0.1)(x)
    out = layers.Dense(CLASSES)(x)
    return keras.Model(ids, out)


class StepClock(keras.callbacks.Callback):
    """Collects step ends, skips the first few steps."""

    def __init__(self, skip=5):
        super().__init__()
        self.skip = skip
        self.count = 0
        self.start = None
        self.last = None

    def on_train_batch_end(self, batch, logs=None):
        self.count += 1
        now = time.perf_counter()
        if self.count == self.skip:
            self.start = now
        self.last = now

    def summary(self):
        return self.count - self.skip, self.last - self.start


class LossHistory(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.values = []

    def on_train_batch_end(self, batch, logs=None):
        self.values.append(float(logs["loss"]))


def main():
    begin = time.perf_counter()
    keras.utils.set_random_seed(SEED)
    rng = np.random.default_rng(SEED)
    texts, labels = make_messages(MESSAGES, rng)
    ds = train_pipeline(texts, labels)

    model = build_model()
    model.compile(
        optimizer=keras.optimizers.AdamW(5e-4, weight_decay=0.01),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=True,
    )
    clock, history = StepClock(), LossHistory()
    model.fit(ds, epochs=EPOCHS, verbose=2, callbacks=[clock, history])

    print(f"last losses: {np.mean(history.values[-10:]):.4f}")
    units, seconds = clock.summary()
    print(json.dumps({"units": units, "seconds": round(seconds, 3),
                      "wall": round(time.perf_counter() - begin, 3)}))


if __name__ == "__main__":
    main()

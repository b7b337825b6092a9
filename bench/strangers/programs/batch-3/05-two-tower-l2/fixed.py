"""Click prediction from user and item embeddings (Keras 2)."""
import json
import time

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers, regularizers

N_USERS = 60000
N_ITEMS = 20000
N_CONTEXT = 8
DIM = 32
BATCH = 512
STEPS_PER_EPOCH = 80
EPOCHS = 4
L2 = 1e-6


def make_log(n, seed):
    """Impressions with a long tail over items and a hidden taste per user and item."""
    rng = np.random.default_rng(seed)
    world = np.random.default_rng(99)
    taste = world.normal(0.0, 1.0, (N_USERS, 4))
    style = world.normal(0.0, 1.0, (N_ITEMS, 4))
    users = rng.integers(0, N_USERS, n)
    items = np.minimum((rng.pareto(1.1, n) * 200).astype(np.int64), N_ITEMS - 1)
    context = rng.normal(0.0, 1.0, (n, N_CONTEXT)).astype(np.float32)
    score = (taste[users] * style[items]).sum(axis=1) + context[:, 0] - 0.5
    clicks = (rng.random(n) < 1.0 / (1.0 + np.exp(-score))).astype(np.float32)
    inputs = {"user": users.astype(np.int32), "item": items.astype(np.int32), "context": context}
    return inputs, clicks


def tower(ids, size, name):
    table = layers.Embedding(
        size,
        DIM,
        embeddings_initializer=keras.initializers.RandomNormal(stddev=0.05),
        activity_regularizer=regularizers.L2(L2),
        name=f"{name}_table",
    )
    bias = layers.Embedding(size, 1, embeddings_initializer="zeros", name=f"{name}_bias")
    return table(ids), bias(ids)


def build_model():
    user = keras.Input((), dtype="int32", name="user")
    item = keras.Input((), dtype="int32", name="item")
    context = keras.Input((N_CONTEXT,), name="context")
    user_vec, user_bias = tower(user, N_USERS, "user")
    item_vec, item_bias = tower(item, N_ITEMS, "item")
    dot = layers.Dot(axes=1)([user_vec, item_vec])
    x = layers.Concatenate()([user_vec, item_vec, context])
    x = layers.Dense(128, activation="relu")(x)
    x = layers.Dense(64, activation="relu")(x)
    logit = layers.Add()([layers.Dense(1)(x), dot, user_bias, item_bias])
    return keras.Model([user, item, context], logit)


def make_dataset(inputs, clicks, training):
    data = tf.data.Dataset.from_tensor_slices((inputs, clicks)).batch(BATCH, drop_remainder=True)
    data = data.cache()
    if training:
        data = data.shuffle(STEPS_PER_EPOCH)
    return data.prefetch(2)


class Throughput(keras.callbacks.Callback):
    """Seconds of all training epochs but the first."""

    def __init__(self):
        super().__init__()
        self.seconds = 0.0
        self.steps = 0

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch
        self.began = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self.steps += self.epoch > 0

    def on_epoch_end(self, epoch, logs=None):
        if epoch > 0:
            self.seconds += time.perf_counter() - self.began


def main():
    keras.utils.set_random_seed(8)
    train = make_dataset(*make_log(BATCH * STEPS_PER_EPOCH, 1), training=True)
    test = make_dataset(*make_log(BATCH * 20, 2), training=False)

    model = build_model()
    model.compile(
        optimizer=keras.optimizers.Adagrad(0.05),
        loss=keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=[keras.metrics.BinaryAccuracy(threshold=0.0)],
    )
    clock = Throughput()
    model.fit(train, epochs=EPOCHS, callbacks=[clock], verbose=2)
    loss, accuracy = model.evaluate(test, verbose=0)
    print(f"test: loss {loss:.4f} accuracy {accuracy:.3f}")
    print(json.dumps({"samples": clock.steps * BATCH, "seconds": round(clock.seconds, 4)}))


if __name__ == "__main__":
    main()

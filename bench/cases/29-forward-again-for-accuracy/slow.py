"""Image classifier, own loop, accuracy reported with the loss."""
import json
import time

import numpy as np
import tensorflow as tf
from tensorflow import keras


BATCH = 32
STEPS = 160


def build():
    return keras.Sequential([
        keras.layers.Input((32, 32, 3)),
        keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
        keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Conv2D(64, 3, padding="same", activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(10),
    ])


def main():
    keras.utils.set_random_seed(14)
    rng = np.random.default_rng(14)
    images = rng.random((1024, 32, 32, 3), dtype="float32")
    labels = rng.integers(0, 10, 1024)
    ds = tf.data.Dataset.from_tensor_slices((images, labels)).batch(BATCH).cache().repeat().prefetch(2)
    model = build()
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.SGD(0.05)
    accuracy = keras.metrics.SparseCategoricalAccuracy()
    top3 = keras.metrics.SparseTopKCategoricalAccuracy(3)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = loss_fn(y, logits)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        accuracy.update_state(y, model(x, training=False))
        top3.update_state(y, model(x, training=False))
        return loss

    start = time.perf_counter()
    for step, (x, y) in enumerate(ds.take(STEPS)):
        loss = train_step(x, y)
        if step % 40 == 0:
            print(f"step {step} loss {float(loss):.4f} acc {float(accuracy.result()):.3f} {float(top3.result()):.3f}")
    print(json.dumps({"samples": STEPS * BATCH, "seconds": round(time.perf_counter() - start, 3)}))


if __name__ == "__main__":
    main()

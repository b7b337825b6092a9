"""Image classifier with a custom loop that saves a checkpoint after each long epoch."""
import json
import tempfile
import time

import numpy as np
import tensorflow as tf


def shapes(count, seed):
    """Squares, discs and stripes in noise, 48 x 48."""
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[-1:1:48j, -1:1:48j]
    labels = rng.integers(0, 3, count)
    size = rng.uniform(0.3, 0.8, (count, 1, 1))
    figures = np.stack([
        np.broadcast_to(np.maximum(abs(xx), abs(yy)) < size, (count, 48, 48)),
        np.broadcast_to(np.hypot(xx, yy) < size, (count, 48, 48)),
        np.broadcast_to(np.sin(xx * 12 / size) > 0, (count, 48, 48)),
    ])
    images = figures[labels, np.arange(count)] + rng.normal(0, 0.4, (count, 48, 48))
    return images.astype("float32")[..., None], labels.astype("int32")


def classifier():
    return tf.keras.Sequential([
        tf.keras.layers.Input((48, 48, 1)),
        tf.keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
        tf.keras.layers.MaxPooling2D(),
        tf.keras.layers.Conv2D(48, 3, padding="same", activation="relu"),
        tf.keras.layers.MaxPooling2D(),
        tf.keras.layers.Conv2D(64, 3, padding="same", activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(3),
    ])


class Trainer:
    def __init__(self, folder):
        self.model = classifier()
        self.optimizer = tf.keras.optimizers.Adam(1e-3)
        self.loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.mean = tf.keras.metrics.Mean()
        self.epoch = tf.Variable(0, trainable=False, dtype=tf.int64)
        checkpoint = tf.train.Checkpoint(model=self.model, epoch=self.epoch)
        self.manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)

    @tf.function
    def step(self, images, labels):
        with tf.GradientTape() as tape:
            loss = self.loss(labels, self.model(images, training=True))
        weights = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        self.mean.update_state(loss)

    def epochs(self, dataset, count):
        for _ in range(count):
            self.mean.reset_state()
            for images, labels in dataset:
                self.step(images, labels)
            self.epoch.assign_add(1)
            path = self.manager.save()
            print(f"epoch {int(self.epoch)}: loss {float(self.mean.result()):.4f}, saved {path.rsplit('/', 1)[1]}")


def main():
    tf.keras.utils.set_random_seed(61)
    images, labels = shapes(1920, 61)
    dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(1920, seed=1).batch(32).prefetch(2)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(folder)
        trainer.step(tf.constant(images[:32]), tf.constant(labels[:32]))
        start = time.perf_counter()
        trainer.epochs(dataset, 3)
        seconds = time.perf_counter() - start
    print(json.dumps({"samples": 3 * 1920, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()

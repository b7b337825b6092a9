"""Metric-learning on synthetic products with a live picture of the nearest neighbours."""
import argparse
import json
import os
import tempfile
import time

import numpy as np
import tensorflow as tf

GREY = " .:-=+*#%@"


class NeighbourSheet(tf.keras.callbacks.Callback):
    """Draws each probe beside its nearest neighbours, as text, so that one can watch them settle."""

    def __init__(self, probes, gallery, path, every):
        super().__init__()
        self.probes, self.gallery = probes, gallery
        self.path, self.every = path, every

    def draw(self, images):
        lines = []
        for row in range(0, images.shape[1], 2):
            lines.append("  ".join("".join(GREY[int(9 * min(1.0, max(0.0, v)))] for v in image[row])
                                   for image in images))
        return "\n".join(lines)

    def on_train_batch_end(self, batch, logs=None):
        if batch % self.every:
            return
        embed = self.model.get_layer("embedding")
        probe = tf.math.l2_normalize(embed(self.probes.reshape(len(self.probes), -1)), 1).numpy()
        items = tf.math.l2_normalize(embed(self.gallery.reshape(len(self.gallery), -1)), 1).numpy()
        order = np.argsort(-(probe @ items.T), axis=1)[:, :5]
        with open(self.path, "w") as f:
            for one, nearest in zip(self.probes, order):
                f.write(self.draw(np.concatenate([one[None], self.gallery[nearest]])) + "\n\n")


def products(count, side, seed):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 10, count)
    prototypes = rng.random((10, side, side))
    return (prototypes[kind] + rng.normal(0, 0.15, (count, side, side))).astype("float32"), kind


def build(side):
    return tf.keras.Sequential([
        tf.keras.layers.Input((side * side,)),
        tf.keras.layers.Dense(128, activation="relu", name="embedding"),
        tf.keras.layers.Dense(10, activation="softmax"),
    ])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    tf.keras.utils.set_random_seed(2)
    side = 24
    x, y = products(12000, side, 2)
    model = build(side)
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    flat = x.reshape(len(x), -1)
    model.fit(flat[:256], y[:256], batch_size=64, verbose=0)
    with tempfile.TemporaryDirectory() as folder:
        sheet = NeighbourSheet(x[:12], x[12:1500], os.path.join(folder, "sheet.txt"), args.every)
        began = time.perf_counter()
        model.fit(flat, y, batch_size=64, epochs=args.epochs, callbacks=[sheet], verbose=2)
        seconds = time.perf_counter() - began
    print(json.dumps({"samples": args.epochs * len(x), "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()

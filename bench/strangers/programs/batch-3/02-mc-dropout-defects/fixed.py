"""Defect screening of wafer tiles with an uncertainty estimate for every tile."""
import json
import time

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

TILE = 48
N_CLASSES = 6
PASSES = 10
BATCH = 32
REVIEW_ENTROPY = 1.2


def make_tiles(n, seed):
    """Noise with a class dependent scratch/spot pattern."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, N_CLASSES, n)
    yy, xx = np.mgrid[0:TILE, 0:TILE] / TILE
    patterns = np.stack([np.sin((k + 1) * 3.0 * xx + k * yy * 5.0) for k in range(N_CLASSES)])
    tiles = 0.5 * patterns[labels] + rng.normal(0.0, 0.6, (n, TILE, TILE))
    return tiles[..., None].astype(np.float32), labels.astype(np.int32)


def conv_stage(x, filters, pool):
    x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    if pool:
        x = layers.MaxPooling2D()(x)
    return x


def build_classifier():
    inputs = keras.Input((TILE, TILE, 1))
    x = conv_stage(inputs, 16, True)
    x = conv_stage(x, 32, False)
    x = conv_stage(x, 32, True)
    x = conv_stage(x, 64, True)
    features = layers.Flatten(name="features")(x)
    h = layers.Dropout(0.4)(features)
    h = layers.Dense(512, activation="relu")(h)
    h = layers.Dropout(0.4)(h)
    h = layers.Dense(256, activation="relu")(h)
    h = layers.Dropout(0.3)(h)
    outputs = layers.Dense(N_CLASSES, activation="softmax", name="probs")(h)
    model = keras.Model(inputs, outputs, name="wafer_net")
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


class UncertaintyScreener:
    """Monte Carlo dropout: several stochastic passes, mean and entropy of them."""

    def __init__(self, model, passes):
        features = model.get_layer("features").output
        self.trunk = keras.Model(model.inputs, features)
        self.head = keras.Model(features, model.outputs[0])
        self.passes = passes

    @tf.function(reduce_retracing=True)
    def stochastic_probs(self, tiles):
        draws = []
        features = self.trunk(tiles)
        for _ in range(self.passes):
            draws.append(self.head(features, training=True))
        return tf.stack(draws)

    def screen(self, tiles):
        draws = self.stochastic_probs(tf.constant(tiles)).numpy()
        mean = draws.mean(axis=0)
        entropy = -(mean * np.log(mean + 1e-9)).sum(axis=1)
        spread = draws.std(axis=0).max(axis=1)
        return mean.argmax(axis=1), entropy, spread


def screen_lot(screener, tiles):
    decisions, review = [], 0
    for start in range(0, len(tiles), BATCH):
        label, entropy, spread = screener.screen(tiles[start:start + BATCH])
        decisions.append(label)
        review += int(((entropy > REVIEW_ENTROPY) | (spread > 0.4)).sum())
    return np.concatenate(decisions), review


def main():
    keras.utils.set_random_seed(11)
    train_x, train_y = make_tiles(1024, 0)
    model = build_classifier()
    model.fit(train_x, train_y, batch_size=64, epochs=1, verbose=2)

    screener = UncertaintyScreener(model, PASSES)
    lots = [make_tiles(320, 100 + k) for k in range(4)]
    screen_lot(screener, train_x[:2 * BATCH])

    done = 0
    start = time.perf_counter()
    for number, (tiles, labels) in enumerate(lots):
        decided, review = screen_lot(screener, tiles)
        done += len(tiles)
        print(f"lot {number}: accuracy {np.mean(decided == labels):.3f}, {review} tiles to review")
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": done, "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()

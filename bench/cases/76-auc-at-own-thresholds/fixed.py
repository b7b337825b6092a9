"""Fraud scores of card payments, with the precision-recall area at the thresholds that the fraud desk uses."""
import argparse
import json
import time

import numpy as np
import tensorflow as tf


def payments(rows, fields, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, fields)).astype("float32")
    odds = x[:, :8] @ rng.standard_normal(8) + np.abs(x[:, 8]) - 3
    return x, (rng.random(rows) < 1 / (1 + np.exp(-odds))).astype("float32")


def desk_thresholds(count):
    """Close together where scores are high: there a payment is looked at by a person."""
    return list(1 - np.geomspace(1e-4, 0.999, count))


def scorer(fields):
    net = tf.keras.Sequential([tf.keras.layers.Input((fields,))])
    for width in (96, 48):
        net.add(tf.keras.layers.Dense(width, activation="relu"))
    net.add(tf.keras.layers.Dense(1, activation="sigmoid"))
    net.compile(tf.keras.optimizers.Adam(1e-3), "binary_crossentropy")
    return net


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=262_144)
    parser.add_argument("--fields", type=int, default=64)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--epochs", type=int, default=12)
    args = parser.parse_args()
    tf.keras.utils.set_random_seed(7)
    x, y = payments(args.rows, args.fields, 7)
    net = scorer(args.fields)
    data = tf.data.Dataset.from_tensor_slices((x, y[:, None])).batch(args.batch).cache().prefetch(2)
    net.fit(data.take(2), verbose=0)
    began = time.perf_counter()
    net.fit(data, epochs=args.epochs, verbose=0)
    seconds = time.perf_counter() - began
    area = tf.keras.metrics.AUC(curve="PR", thresholds=desk_thresholds(1000))
    area.update_state(y[:65_536, None], net.predict(x[:65_536], batch_size=args.batch, verbose=0))
    print("area", round(float(area.result()), 3))
    print(json.dumps({"samples": args.rows * args.epochs, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()

"""House prices from a table of 20 columns, with a small network and fit on arrays."""
import argparse
import json
import time

import numpy as np
import tensorflow as tf

NAMES = ("area", "rooms", "year", "lot", "garage")


def table(rows, seed):
    """Columns by name: areas, rooms and years, 12 districts as one-hot, three distances."""
    rng = np.random.default_rng(seed)
    columns = {
        "area": rng.gamma(9, 15, rows),
        "rooms": rng.integers(1, 9, rows).astype(float),
        "year": rng.integers(1890, 2024, rows).astype(float),
        "lot": rng.gamma(2, 300, rows),
        "garage": rng.integers(0, 3, rows).astype(float),
    }
    district = rng.integers(0, 12, rows)
    distances = rng.exponential(4, (rows, 3))
    level = rng.normal(0, 0.3, 12)
    price = (columns["area"] * 3 + columns["rooms"] * 20 + (columns["year"] - 1890) * 0.8 - distances.sum(1) * 6)
    price = price * np.exp(level[district]) * rng.lognormal(0, 0.1, rows)
    numeric = np.stack([columns[name] for name in NAMES], 1)
    numeric = (numeric - numeric.mean(0)) / numeric.std(0)
    x = np.concatenate([numeric, np.eye(12)[district], distances], 1).astype("float32")
    return x, np.log(np.maximum(price, 1)).astype("float32")


def network(width):
    model = tf.keras.Sequential([
        tf.keras.layers.Input((20,)),
        tf.keras.layers.Dense(width, activation="relu"),
        tf.keras.layers.Dense(width, activation="relu"),
        tf.keras.layers.Dense(1),
    ])
    model.compile(tf.keras.optimizers.Adam(1e-3), "mae")
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rows", type=int, default=16_000)
    args = parser.parse_args()
    tf.keras.utils.set_random_seed(49)
    x, y = table(args.rows, 49)
    model = network(64)
    model.fit(x[:512], y[:512], batch_size=args.batch_size, verbose=0)
    start = time.perf_counter()
    history = model.fit(x, y, batch_size=args.batch_size, epochs=args.epochs, verbose=2)
    seconds = time.perf_counter() - start
    print(f"mean error {history.history['loss'][-1]:.3f} of log price")
    print(json.dumps({"samples": args.rows * args.epochs, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
